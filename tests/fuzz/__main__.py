"""`python -m tests.fuzz N` runs N generated programs in the simulator and on an adapter, and wants them to agree.

Outputs are held against each other bit by bit, where they differ within the bounds that are derived for the run, and
of some programs the counters, too. A program on which there is no agreement, and for which no known fault of a driver
is the reason, is made as small as can be and written into `--into`; then the exit status is 1. Program number i is
always the same: `--only i` runs it alone, `--file F` one that was written.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from .judging import Judge, Verdict
from .known import answer_for
from .opinions import PROFILES, Opinion
from .programs import Program
from .reducing import reduce
from .searching import program_of

COUNTED = 20  # of so many programs one is counted, too
SECONDS = 120.0  # for making a program small


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=500, help="programs")
    parser.add_argument("--from", dest="first", type=int, default=0, help="number of the first program")
    parser.add_argument("--only", type=int, help="print program number so many and judge it")
    parser.add_argument("--file", type=Path, help="judge the program in a file")
    parser.add_argument("--adapter", choices=PROFILES, default="lavapipe")
    parser.add_argument("--into", type=Path, default=Path("fuzz-output"), help="folder for what is found")
    parser.add_argument("--most", type=int, default=10, help="disagreements to stop after")
    args = parser.parse_args()
    with Opinion(args.adapter) as opinion:
        judge = Judge(opinion)
        if args.only is not None:
            sys.exit(not _one(judge, program_of(args.only)))
        if args.file is not None:
            sys.exit(not _one(judge, Program.read(args.file.read_text(encoding="utf-8"))))
        sys.exit(not _many(judge, range(args.first, args.first + args.count), args.into, args.most))


def _one(judge: Judge, program: Program) -> bool:
    verdict = judge.judge(program, count=True)
    known = None if verdict.agreed else answer_for(judge, program, verdict)
    print(f"{program.file()}\n{verdict.word} {verdict.why}")
    if known:
        print(f"known: {known.name}: {known.reason}")
    return verdict.agreed or known is not None


def _many(judge: Judge, numbers: range, into: Path, most: int) -> bool:
    words: Counter[str] = Counter()
    found, start = 0, time.perf_counter()
    for number in numbers:
        program = program_of(number)
        count = number % COUNTED == 0
        verdict = judge.judge(program, count)
        known = None if verdict.agreed else answer_for(judge, program, verdict)
        words[f"known: {known.name}" if known else verdict.word] += 1
        if verdict.agreed or known:
            continue
        found += 1
        _write(judge, number, verdict, count, into)
        if found >= most:
            break
    seconds, done = time.perf_counter() - start, sum(words.values())
    shown = ", ".join(f"{n:,} {word}" for word, n in words.most_common())
    print(f"{done:,} programs on {judge.opinion.profile}: {shown}; {done / seconds:.1f} programs per second")
    return not found


def _write(judge: Judge, number: int, verdict: Verdict, count: bool, into: Path) -> None:
    """The smallest program on which there is the same verdict."""

    def disagreed(program: Program) -> bool:
        now = judge.judge(program, count)
        return now.word == verdict.word and answer_for(judge, program, now) is None

    program = reduce(program_of(number), disagreed, SECONDS)
    now = judge.judge(program, count)
    path = into / f"{judge.opinion.profile}-{number}.wgsl"
    into.mkdir(parents=True, exist_ok=True)
    path.write_text(program.file(), encoding="utf-8")
    again = f"python -m tests.fuzz --adapter {judge.opinion.profile} --file {path}"
    print(f"program {number}: {now.word}\n{now.why}\n\n{program.file()}\nagain: {again}\n", flush=True)


if __name__ == "__main__":
    main()
