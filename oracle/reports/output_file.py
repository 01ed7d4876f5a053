"""The file that an option such as `--html` names: checked before a run, which may be long, and written after it."""

from __future__ import annotations

from pathlib import Path

from ...sim.disk_cache import write
from ..errors import check_writable, writing


class OutputFile:
    """The file of an option. Raises `UsageError` if it cannot be written there."""

    def __init__(self, option: str, path: Path) -> None:
        self._name, self._path = f"{option} {path}", path
        check_writable(path, self._name)

    def write(self, text: str) -> None:
        """Write the whole file. Raises `UsageError` if that fails."""
        with writing(self._name):
            write(self._path, text.encode())
