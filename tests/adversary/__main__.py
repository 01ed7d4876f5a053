"""`python -m tests.adversary N` judges N wrong kernels, each under a manifest of its own; none may pass.

A try is a kernel with one slip, whose outputs differ from a NumPy reference beyond their rules, or that nothing
compares, judged by a command with random options, formats and readers of its output. Tries that end with 0, or with an
internal error, are printed with their files, and the exit status is 1. Try number i of a seed is always the same:
`--only i` repeats it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from .tries import Try, attempt

_CHUNK = 50


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.adversary", description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=1000, help="tries")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--only", type=int, help="make this try alone, and print it")
    parser.add_argument("--gpu", action="store_true", help="compare with an adapter, too")
    parser.add_argument("--into", type=Path, metavar="FILE", help="write the tries that pass here, as they are found")
    args = parser.parse_args()
    if args.only is not None:
        made = attempt(args.only, args.seed, gpu=args.gpu)
        print(made)
        sys.exit(made.is_fooled)
    start, codes, fooled = time.monotonic(), Counter[int](), list[Try]()
    with ProcessPoolExecutor(args.jobs) as pool:
        chunks = [range(first, min(first + _CHUNK, args.count)) for first in range(0, args.count, _CHUNK)]
        for done in as_completed(pool.submit(_chunk, chunk, args.seed, args.gpu) for chunk in chunks):
            for made in done.result():
                codes[made.code] += 1
                if made.is_fooled:
                    fooled.append(made)
                    _tell(made, args.into)
            print(f"{codes.total()} of {args.count}, {len(fooled)} passed", file=sys.stderr)
    ended = ", ".join(f"{count} with {code}" for code, count in sorted(codes.items()))
    print(f"{codes.total()} tries in {time.monotonic() - start:.0f} s ended: {ended}; {len(fooled)} passed or broke")
    sys.exit(bool(fooled))


def _chunk(numbers: range, seed: int, gpu: bool) -> list[Try]:
    return [attempt(number, seed, gpu=gpu) for number in numbers]


def _tell(made: Try, into: Path | None) -> None:
    if into is None:
        print(made)
    else:
        with into.open("a", encoding="utf-8") as file:
            file.write(f"{made}\n")


if __name__ == "__main__":
    main()
