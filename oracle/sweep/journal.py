"""Rows on disk as they are made, a line of JSON for each: what is left of a sweep that did not come to its end.

A line is whole or it is none. One that was torn (the machine stopped in the middle of it) is passed over, and its case
runs again; a new line never goes on where a torn one stopped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ..errors import UsageError
from .columns import FAILED, Row


class Journal:
    """The rows in a file, and a way to add to them. Raises `UsageError` where the file cannot be used."""

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
        """The row of that key, unless its case could not be run: such are tried again."""
        row = self.rows.get(key)
        return None if row is None or row["verdict"] == FAILED else row

    def add(self, row: Row) -> None:
        """Keep a row; it is on disk when this returns."""
        self.rows[row["key"]] = row
        self._file.write(json.dumps(row).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def _rows(text: bytes) -> Iterator[Row]:
    for line in text.splitlines():
        with suppress(ValueError):  # torn
            row = json.loads(line)
            if isinstance(row, dict) and {"key", "verdict"} <= row.keys():
                yield row
