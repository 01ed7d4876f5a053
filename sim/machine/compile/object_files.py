"""The object files of units in a folder, whose names end with a checksum."""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

from ...disk_cache import write


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
