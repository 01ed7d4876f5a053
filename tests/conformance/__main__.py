"""`python -m tests.conformance [SUBSTRING]` runs every record of the conformance data and prints a table by test.

Only records whose id holds SUBSTRING are run, and only those of `--kind`, where these are given. It ends with totals
and times, and exits with 1 if a record failed and is not listed (see `data`). Records that expect nothing of any output
are *uncompared*; percentages are of the others.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor

from . import data
from .judging import GOOD, HARMLESS, OUTCOMES, Verdict, judge

Judged = list[tuple[data.Record, Verdict]]

_CHUNK = 16  # records given to a process at once


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("only", nargs="?", default="", help="run only the records whose id holds this")
    parser.add_argument("--kind", choices=data.KINDS, action="append", help="run only this kind; may be given again")
    parser.add_argument("--show", type=int, default=1, help="print that many of the records of each test that fail")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    args = parser.parse_args()
    totals: list[tuple[str, Counter[str], float]] = []
    print(_row(OUTCOMES), " test")
    for kind in args.kind or data.KINDS:
        if not data.path(kind).is_file():
            sys.exit(f"no {data.path(kind)}: set BANKSHOT_CONFORMANCE to the folder of the conformance data")
        chosen = [record for record in data.records(kind) if args.only in record["id"]]
        start = time.perf_counter()
        judged = list(zip(chosen, _verdicts(kind, chosen, args.jobs), strict=True))
        seconds = time.perf_counter() - start
        _print_tests(kind, judged, args.show)
        totals += [(name, _count(part), seconds * len(part) / len(judged)) for name, part in _parts(kind, judged)]
    print(f"\n{_row(OUTCOMES)}      of  good %  seconds  in all")
    for name, counts, seconds in totals:
        compared = counts.total() - counts["uncompared"]
        good = 100 * sum(counts[outcome] for outcome in GOOD) / compared if compared else 100
        print(f"{_row(counts[o] for o in OUTCOMES)} {counts.total():7} {good:7.2f} {seconds:8.1f}  {name}")
    sys.exit(any(counts.keys() - {*HARMLESS} for _, counts, _ in totals))


def _verdicts(kind: str, chosen: list[data.Record], jobs: int) -> Iterator[Verdict]:
    """The verdict on each record, in order. The first is given here, so that the machine is compiled once."""
    for record in chosen[:1]:
        yield judge(kind, record)
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(functools.partial(judge, kind), chosen[1:], chunksize=_CHUNK)


def _count(judged: Judged) -> Counter[str]:
    return Counter(verdict.outcome for _, verdict in judged)


def _parts(kind: str, judged: Judged) -> list[tuple[str, Judged]]:
    """Return the keys of a record in the totals: the expected verdict and the features of the module."""
    parts: dict[str, Judged] = defaultdict(list)
    for record, verdict in judged:
        name = kind
        if kind == "valid":
            what = "" if record["compute_only"] else ", with other stages or textures"
            name += f": to be {'accepted' if record['expect'] else 'rejected'}{what}"
        parts[name].append((record, verdict))
    return sorted(parts.items())


def _print_tests(kind: str, judged: Judged, show: int) -> None:
    """A row for each test, those that did not pass as a whole last, each with the records that did not."""
    by_test: dict[str, Judged] = defaultdict(list)
    for record, verdict in judged:
        by_test[record["test"].removeprefix("webgpu:shader,")].append((record, verdict))
    for test, part in sorted(by_test.items(), key=lambda row: (_wrong(row[1]) != [], row[0])):
        counts = _count(part)
        print(_row(counts[outcome] for outcome in OUTCOMES), f" {kind} {test}")
        for record, verdict in _wrong(part)[:show]:
            source = record.get("wgsl") or "\n\n".join(record["shaders"])
            print(f"\n--- {record['id']}\n{source.strip()}\n>>> {verdict.outcome}: {verdict.said}\n")


def _wrong(judged: Judged) -> Judged:
    return [(record, verdict) for record, verdict in judged if verdict.outcome not in HARMLESS]


def _row(cells: Iterable[object]) -> str:
    return " ".join(f"{cell:>11}" for cell in cells)


if __name__ == "__main__":
    main()
