"""Where is kept what is made once per install, and how: whoever reads a file there finds all of it."""

from __future__ import annotations

import os
from pathlib import Path


def cache_home() -> Path:
    """In `$BANKSHOT_CACHE`, or the user's cache folder."""
    home = os.environ.get("BANKSHOT_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "bankshot"


def write(file: Path, content: bytes) -> None:
    """Write a file that is there whole or not at all, whoever else writes it."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    fresh.write_bytes(content)
    fresh.replace(file)
