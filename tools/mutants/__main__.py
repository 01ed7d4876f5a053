"""`python -m tools.mutants` puts small faults into `sim` and `oracle`, and runs the tests that reach each.

Mutants are chosen at random by `--seed`, some in each area, beside a list of named ones. Each is tried in a copy of the
repository, with the tests that run the mutated line: those of its room first, and the fastest first, until one fails or
they have taken `--limit` seconds. coverage.py measures which tests run which lines: of a test file again when it
changes, or a source of which it runs a function. Files that Numba compiles cannot be measured: there each mutant needs
a machine of its own, and a list in `areas.py` names the tests.

A mutant is killed if a test fails; those whose tests do not end count, too, in a column of their own. Tests that fail
without a mutant are left out, and listed. The exit status is 1 if fewer than 95% are killed, not counting those in
`equivalent.toml`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NoReturn

from . import report
from .areas import AREAS, Area
from .choice import ROOT, candidates, choose
from .code import Mutant
from .named import named
from .trial import BROKEN, Result, Trials


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=320, help="mutants, beside the named ones")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutants to try at a time")
    parser.add_argument("--rooms", nargs="+", metavar="AREA", help="only these areas of tools/mutants/areas.py")
    parser.add_argument("--shard", default="0/1", metavar="I/N", help="only every N-th mutant, from number I on")
    parser.add_argument("--only", metavar="TEXT", help="only mutants whose place and lines contain this text")
    parser.add_argument("--again", type=Path, metavar="FILE", help="only the mutants that were alive in this result")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results here, after each mutant")
    parser.add_argument("--seconds", type=float, default=1e6, help="begin no mutant after so long")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of tests on each mutant, as measured")
    parser.add_argument("--report", type=Path, nargs="+", metavar="FILE", help="print what these results say together")
    parser.add_argument("--list", action="store_true", help="list the mutants and run nothing")
    args = parser.parse_args()
    if args.report:
        _end(report.read(args.report))
    areas = [area for area in AREAS if not args.rooms or area.name in args.rooms]
    mutants = _chosen(args, areas)
    if args.list:
        print(*(mutant for mutant, _ in mutants), f"{len(mutants)} mutants", sep="\n")
        return
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        results = _tried(args, mutants, Trials(Path(folder), args.jobs, args.limit))
    _end(results)


def _end(results: Sequence[Result]) -> NoReturn:
    """Print the table and the survivors, and exit with the verdict."""
    print(report.table(results))
    if alive := report.survivors(results):
        print(f"\nalive:\n{alive}")
    killed = report.share(results)
    print(f"\n{killed:.1%} killed, or without end, of those that can be; at least {report.LEAST:.0%} must be")
    sys.exit(killed < report.LEAST)


def _chosen(args: argparse.Namespace, areas: Sequence[Area]) -> list[tuple[Mutant, Area]]:
    """The mutants to try, with their areas: in any order, but compiled ones first, because they take the longest."""
    of_file = {file: area for area in areas for file in area.files(ROOT)}
    wanted = alive(args.again) if args.again else [*named(ROOT), *choose(args.count, args.seed, areas)]
    found = {each.key: each for each in wanted if each.file in of_file}
    mutants = random.Random(args.seed).sample([*found.values()], len(found))
    mutants.sort(key=lambda each: not of_file[each.file].compiled)
    if args.only:
        mutants = [each for each in mutants if args.only in str(each)]
    first, step = map(int, args.shard.split("/"))
    return [(each, of_file[each.file]) for each in mutants[first::step]]


def alive(result: Path) -> list[Mutant]:
    """The mutants that were alive in a result, and that the files still have."""
    rows = json.loads(result.read_text(encoding="utf-8"))["results"]
    rows = [row for row in rows if row["state"] not in report.CAUGHT]
    alive = {(row["file"], row["operator"], row["before"], row["after"]) for row in rows}
    files = {row["file"] for row in rows if (ROOT / row["file"]).exists()}
    mutants = [candidate.mutant() for file in sorted(files) for candidate in candidates(file)]
    return [each for each in (*named(ROOT), *mutants) if each is not None and each.key in alive]


def _tried(args: argparse.Namespace, mutants: Sequence[tuple[Mutant, Area]], trials: Trials) -> list[Result]:
    end = time.monotonic() + args.seconds
    start = time.monotonic()
    trials.prepare()
    print(f"{len(trials.reach.files)} test files measured in {time.monotonic() - start:.0f} s; fail without a mutant: "
          f"{', '.join(trials.failed) or 'none'}", flush=True)  # fmt: skip

    if not trials.has_adapter():
        left_out = sorted({area.name for _, area in mutants if area.gpu})
        print(f"no adapter: not tried {', '.join(left_out)}" if left_out else "no adapter")
        mutants = [(mutant, area) for mutant, area in mutants if not area.gpu]

    def run(mutant: Mutant, area: Area) -> Result:
        return trials.run(mutant, area) if time.monotonic() < end else Result(mutant, area.name, BROKEN)

    results: list[Result] = []
    with ThreadPoolExecutor(args.jobs) as pool:
        for done in as_completed(pool.submit(run, *each) for each in mutants):
            results.append(done.result())
            m, r = results[-1].mutant, results[-1]
            print(f"{len(results)}/{len(mutants)} {r.state} {m.file}:{m.line} {m.operator} {r.by[:80]} "
                  f"{r.seconds:.0f} s", flush=True)  # fmt: skip
            if args.json:
                report.write(args.json, results)
    return results


if __name__ == "__main__":
    main()
