"""Holds the checker against the validation half of the WebGPU conformance suite.

`python -m tests.conformance.cts_validation [SUBSTRING] [--show N]` runs every record (whose id holds SUBSTRING) and
prints, by test path, how often we reject what must be accepted and accept what must be rejected.

The records are read from the folder that BANKSHOT_CONFORMANCE names (default `../shared/conformance`, beside the
repository). One record: a module or a pipeline, and whether creating it must succeed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sim.wgsl.check import LANGUAGE_FEATURES, check
from sim.wgsl.diagnostics import WgslError
from sim.wgsl.source import Source

Record = dict[str, Any]

FOLDER = Path(os.environ.get("BANKSHOT_CONFORMANCE", Path(__file__).parents[3] / "shared" / "conformance"))
RECORDS = FOLDER / "valid.dev.jsonl.gz"


def records() -> Iterator[Record]:
    """Every record, in the order of the file."""
    with gzip.open(RECORDS, "rt") as file:
        yield from map(json.loads, file)


def outcome(record: Record) -> tuple[bool, str]:
    """Is it accepted, and what was said. A crash of ours is accepted by nobody: it is raised."""
    absent = {name for name, supported in (record.get("langq") or {}).items() if not supported}
    try:
        module = check(Source(record["wgsl"]), features=LANGUAGE_FEATURES - absent)
        if record["kind"] == "pipeline":
            module.pipeline(overrides=record.get("constants") or {})
        if record["kind"] == "warning" and not module.warnings:
            return False, "no warning was given"
    except WgslError as error:
        return False, error.diagnostics[0].render()
    return True, "accepted"


def disagreements(chosen: Iterable[Record]) -> Iterator[tuple[Record, str]]:
    """The records on which we and the suite differ, each with what we said."""
    for record in chosen:
        try:
            accepted, said = outcome(record)
        except Exception as error:
            yield record, f"crash: {type(error).__name__}: {error}"
            continue
        if accepted != record["expect"]:
            yield record, said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="?", default="", help="run only the records whose id holds this")
    parser.add_argument("--show", type=int, default=0, help="print that many disagreements of each test")
    args = parser.parse_args()
    chosen = [record for record in records() if args.only in record["id"]]
    wrong: dict[str, list[tuple[Record, str]]] = defaultdict(list)
    for record, said in disagreements(chosen):
        wrong[record["test"]].append((record, said))
    totals = Counter(record["test"] for record in chosen)
    print(f"{'wrong':>6} {'of':>6} {'rejected':>9} {'accepted':>9}  test")
    for test, found in sorted(wrong.items(), key=lambda item: -len(item[1])):
        rejected = sum(record["expect"] for record, _ in found)
        print(f"{len(found):6} {totals[test]:6} {rejected:9} {len(found) - rejected:9}  {test.removeprefix('webgpu:')}")
        for record, said in found[: args.show]:
            print(f"\n--- {record['id']}\n{record['wgsl'].strip()}\n>>> {said}\n")
    for label, want in (("compute only", True), ("with other stages or textures", False)):
        part = [record for record in chosen if record["compute_only"] is want]
        bad = sum(record["compute_only"] is want for found in wrong.values() for record, _ in found)
        if part:
            print(f"{label}: {len(part) - bad} of {len(part)} agree ({100 * (1 - bad / len(part)):.2f}%)")


if __name__ == "__main__":
    main()
