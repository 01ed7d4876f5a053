"""A stable sample of records: the same ones on every run and machine, some of every test path."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Any

Record = dict[str, Any]


def sample(everything: Iterable[Record], one_in: int) -> Iterator[Record]:
    """One record in so many of every test path, and one at least: those whose hash of the id is least."""
    by_test: dict[str, list[Record]] = {}
    for record in everything:
        by_test.setdefault(record["test"], []).append(record)
    for records in by_test.values():
        records.sort(key=lambda record: zlib.crc32(record["id"].encode()))
        yield from records[: -(-len(records) // one_in)]
