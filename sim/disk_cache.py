"""The cache folder on disk, and atomic writes: a reader sees a whole file or none."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path


def cache_home() -> Path:
    """Return `bankshot` in `$BANKSHOT_CACHE`, in `$XDG_CACHE_HOME` or in `~/.cache`, the first that is set."""
    home = os.environ.get("BANKSHOT_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "bankshot"


def write(file: Path, content: bytes) -> None:
    """Write a file atomically, also while other processes write it. Raises OSError, and leaves nothing behind then."""
    with replacing(file) as fresh:
        fresh.write_bytes(content)


@contextmanager
def replacing(file: Path) -> Generator[Path]:
    """Give the path to write to: a temporary file that replaces `file` at the end, or is removed where that fails.

    Something other than a regular file, such as a pipe, is written to directly.
    """
    if file.exists() and not file.is_file():
        yield file
        return
    file = file.resolve()  # a link stays a link
    fresh = file.with_name(f".{file.name}.{os.getpid()}{file.suffix}")
    try:
        yield fresh
        fresh.replace(file)
    except BaseException:
        with suppress(OSError):
            fresh.unlink()
        raise
