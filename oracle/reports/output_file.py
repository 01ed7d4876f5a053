"""The file that an option such as `--html` names: checked before a run, which may be long, and written after it."""

from __future__ import annotations

from pathlib import Path

from ...sim.disk_cache import write
from ..errors import UsageError


class OutputFile:
    """The file of an option. Raises `UsageError` if its folder does not exist."""

    def __init__(self, option: str, path: Path) -> None:
        self._name, self._path = f"{option} {path}", path
        if not path.parent.is_dir():
            raise UsageError(f"{self._name}: no folder {path.parent}")

    def write(self, text: str) -> None:
        """Write the whole file. Raises `UsageError` if that fails."""
        try:
            write(self._path, text.encode())
        except OSError as error:
            raise UsageError(f"{self._name}: {error.strerror}") from None
