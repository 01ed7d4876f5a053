"""The object files of units in a folder, whose names end with a checksum."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

from ...disk_cache import write

INDEX = "index.json"


def keep(folder: Path, symbol: str, content: bytes) -> None:
    """Write the object file of a unit. Its name has its checksum: of two processes that compile, none changes what the
    other has listed."""
    write(folder / f"{symbol}.{crc32(content):08x}.o", content)


def find(folder: Path, symbol: str) -> Path | None:
    """The object file of a unit; None where there is none, or it is damaged."""
    return next((file for file in sorted(folder.glob(f"{symbol}.*.o")) if is_intact(file)), None)


def is_intact(file: Path) -> bool:
    """Whether an object file is as it was written."""
    return file.exists() and f"{crc32(file.read_bytes()):08x}" == file.name.split(".")[-2]


@cache
def _here() -> Any:
    from tempfile import TemporaryDirectory  # which takes long to import

    return TemporaryDirectory(prefix="bankshot-")


def writable(folder: Path) -> Path:
    """The folder, made where it is not there; one for this process alone where it is not writable, which is said."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    print(f"bankshot: it cannot be kept for the next time in {folder}", file=sys.stderr, flush=True)
    return Path(_here().name)
