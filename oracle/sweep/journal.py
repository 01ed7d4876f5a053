"""A file of finished rows, one line of JSON each, from which an interrupted sweep can resume.

An incomplete line, left by a crash in the middle of a write, is ignored, so that its case runs again. New rows always
start on a new line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import cast

from ..errors import UsageError
from .columns import FAILED, Row


class Journal:
    """A journal on disk. Raises `UsageError` if the file cannot be read or written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.touch()
            text = path.read_bytes()
        except OSError as error:
            raise UsageError(f"{path}: cannot be used as a journal: {error.strerror}") from None
        self._file = path.open("ab")
        if text and not text.endswith(b"\n"):
            self._file.write(b"\n")
        self.rows = {row["key"]: row for row in _rows(text)}

    def done(self, key: str) -> Row | None:
        """Return the row with a key, None if there is none or its case could not run, which is then tried again."""
        row = self.rows.get(key)
        return None if row is None or row["verdict"] == FAILED else row

    def add(self, row: Row) -> None:
        """Append a row. It is on disk when this returns."""
        self.rows[row["key"]] = row
        self._file.write(json.dumps(row).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def _rows(text: bytes) -> Iterator[Row]:
    for line in text.splitlines():
        with suppress(ValueError):  # incomplete
            row: object = json.loads(line)
            if isinstance(row, dict) and "key" in row and "verdict" in row:
                yield cast(Row, row)
