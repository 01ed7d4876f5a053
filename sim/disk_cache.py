"""The cache folder on disk, and atomic writes into it: a reader sees a whole file or none."""

from __future__ import annotations

import os
from pathlib import Path


def cache_home() -> Path:
    """Return `bankshot` in `$BANKSHOT_CACHE`, in `$XDG_CACHE_HOME` or in `~/.cache`, the first that is set."""
    home = os.environ.get("BANKSHOT_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "bankshot"


def write(file: Path, content: bytes) -> None:
    """Write a file atomically, also while other processes write it: by renaming a temporary file beside it."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    fresh.write_bytes(content)
    fresh.replace(file)
