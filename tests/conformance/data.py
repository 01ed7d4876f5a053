"""The conformance data: what the WebGPU conformance suite says of WGSL, as records.

The records are read from the folder that BANKSHOT_CONFORMANCE names (default `../shared/conformance`, beside the
repository). There are three kinds: `expr`, one shader, its input, and for each result what is accepted; `exec`,
operations on buffers, some of which are dispatches, and some reads with what is expected; `valid`, a module or a
pipeline, and whether creating it must succeed. Every record has an `id`, and a `test`: its path in the suite.

`listed.toml`, beside this file, holds the ids of records on which we and the suite may both be right, each under the
sentence of the specification that says so.
"""

from __future__ import annotations

import gzip
import json
import os
import tomllib
import zlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

Record = dict[str, Any]

KINDS = ("expr", "exec", "valid")
FOLDER = Path(os.environ.get("BANKSHOT_CONFORMANCE", Path(__file__).parents[3] / "shared" / "conformance"))


def path(kind: str) -> Path:
    """The file that holds the records of a kind; it need not exist."""
    return FOLDER / f"{kind}.dev.jsonl.gz"


def records(kind: str) -> Iterator[Record]:
    """Every record of a kind, in the order of the file."""
    with gzip.open(path(kind), "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def sample(everything: Iterable[Record], one_in: int) -> Iterator[Record]:
    """One record in so many of every test, and one at least: always the same, those whose hash of the id is least."""
    by_test: dict[str, list[Record]] = {}
    for record in everything:
        by_test.setdefault(record["test"], []).append(record)
    for alike in by_test.values():
        alike.sort(key=lambda record: zlib.crc32(record["id"].encode()))
        yield from alike[: -(-len(alike) // one_in)]


@cache
def listed() -> dict[str, str]:
    """Id of a record on which we may differ -> why, and the section of the specification that says so."""
    reasons = tomllib.loads(Path(__file__).with_name("listed.toml").read_text(encoding="utf-8"))["reason"]
    return {id_: f"{reason['why']} ({reason['spec']})" for reason in reasons for id_ in reason["ids"]}
