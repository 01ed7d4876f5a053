"""`python -m tests.fuzz N` runs N generated programs in the simulator and on an adapter, and wants them to agree.

Outputs are compared bit by bit, where they differ within the bounds that are derived for the run, and
of some programs the counters, too. A program on which there is no agreement, and for which no known fault of a driver
is the reason, is made as small as can be and written into `--into`; then the exit status is 1. Program number i is
always the same: `--only i` runs it alone, `--file F` one that was written. The result of each is added to a file in
`--into` at once: with `--resume` programs that stand there are not run again.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path

from bankshot.oracle import wgpu_client

from .batches import Log, Result, is_counted, search
from .judging import Judge
from .known import answer_for
from .opinions import PROFILES, Opinion
from .programs import Program
from .reducing import reduce
from .searching import program_of


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=500, help="programs")
    parser.add_argument("--from", dest="first", type=int, default=0, help="number of the first program")
    parser.add_argument("--only", type=int, help="print program number so many and judge it")
    parser.add_argument("--file", type=Path, help="judge the program in a file")
    parser.add_argument("--adapter", choices=PROFILES, default="lavapipe")
    parser.add_argument("--into", type=Path, default=Path("fuzz-output"), help="folder for what is found")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--seconds", type=float, default=1e6, help="begin no program after so long")
    parser.add_argument("--resume", action="store_true", help="leave out what the last run did")
    parser.add_argument("--most", type=int, default=10, help="disagreements to stop after")
    parser.add_argument("--reduce", type=float, default=120.0, metavar="SECONDS", help="for making a program small")
    args = parser.parse_args()
    if args.only is not None:
        sys.exit(not _one(args.adapter, program_of(args.only)))
    if args.file is not None:
        sys.exit(not _one(args.adapter, Program.read(args.file.read_text(encoding="utf-8"))))
    found = _many(args)
    with Opinion(args.adapter) as opinion:
        for result in found if args.reduce else ():
            _write(Judge(opinion), result, args.into, args.reduce)
    sys.exit(bool(found))


def _one(profile: str, program: Program) -> bool:
    with Opinion(profile) as opinion:
        judge = Judge(opinion)
        verdict = judge.judge(program, count=True)
        known = None if verdict.agreed else answer_for(judge, program, verdict)
    print(f"{program.file()}\n{verdict.word} {verdict.why}")
    if known:
        print(f"known: {known.name}: {known.reason}")
    return verdict.agreed or known is not None


def _many(args: argparse.Namespace) -> list[Result]:
    """Run the chosen programs, print the results, and return the disagreements without explanation."""
    log, numbers = Log(args.into / f"{args.adapter}.jsonl"), range(args.first, args.first + args.count)
    results = [result for result in log.results() if args.resume and result.number in numbers]
    log.write(results)
    before, start = {result.number for result in results}, time.perf_counter()
    for result in search(args.adapter, [n for n in numbers if n not in before], args.jobs, args.seconds):
        log.add(result)
        results.append(result)
        if not result.explained:
            print(f"program {result.number}: {result.word}: {result.why}", flush=True)
        if sum(not result.explained for result in results) >= args.most:
            break
    _summary(results, len(results) - len(before), time.perf_counter() - start, args)
    return [result for result in results if not result.explained]


def _summary(results: list[Result], new: int, seconds: float, args: argparse.Namespace) -> None:
    info = wgpu_client.require_adapter(args.adapter)
    words = Counter(result.title for result in results)
    shown = ", ".join(f"{n:,} {word}" for word, n in words.most_common())
    print(f"{len(results):,} of {args.count:,} programs from {args.first:,} on {info}")
    print(f"{shown}; {new / seconds:.1f} programs per second, processes: {args.jobs}", flush=True)


def _write(judge: Judge, result: Result, into: Path, seconds: float) -> None:
    """The smallest program on which there is the same verdict."""
    count = is_counted(result.number)

    def disagreed(program: Program) -> bool:
        now = judge.judge(program, count)
        return now.word == result.word and answer_for(judge, program, now) is None

    program = reduce(program_of(result.number), disagreed, seconds)
    now = judge.judge(program, count)
    path = into / f"{judge.opinion.profile}-{result.number}.wgsl"
    path.write_text(program.file(), encoding="utf-8")
    again = f"python -m tests.fuzz --adapter {judge.opinion.profile} --file {path}"
    print(f"program {result.number}: {now.word}\n{now.why}\n\n{program.file()}\nagain: {again}\n", flush=True)


if __name__ == "__main__":
    main()
