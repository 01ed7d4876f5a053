"""Compares times on lavapipe with those that the shipped profile of it predicts.

    python -m tests.hardware.predict_software_times [--entries FILE.json] [--page docs/time-model.md]

`bankshot calibrate` made the profile, of micro-benchmarks alone. The dispatches are those of `timed_families` at a 16th
of their size, in three runs of `measure_times`, minutes apart. The time of a dispatch is the least of all passes, as
other programs and the machine's other guests only make it longer. A pair is two kernels for one family and shape, whose
order is the same in each run, by more than 5%; the times do not decide which kernel of another pair is faster.
`--entries` compares entry points of other repositories instead, of two runs.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from bankshot.oracle.calibration.fit import Point
from bankshot.sim.device_files import find
from bankshot.sim.models.time_model import predict
from tests.hardware import measure_times, predict_times
from tests.hardware.measure_times import Item
from tests.hardware.page_table import write
from tests.hardware.predict_times import APART, HERE, Timed, rows, timed_point

DEVICE = "lavapipe-epyc"
SCALE = 16  # divides the sizes of families
RUNS = (1, 2, 3)
RUNS_OF_ENTRIES = (1, 2)

Times = Mapping[Timed, float]


def times(run: int, of: str = "families") -> dict[Timed, float]:
    """The least microseconds of each dispatch in a run; without those that the clock does not tell from a launch."""
    _, *lines = (HERE / f"llvmpipe_times_{of}_{run}.csv").read_text(encoding="utf-8").splitlines()
    found = {(row["family"], row["kernel"], row["shape"]): float(row["least_us"]) for row in csv.DictReader(lines)}
    return {at: us for at, us in found.items() if us > 0}


def points(items: Iterable[Item], runs: Sequence[Times]) -> Iterator[tuple[Timed, Point]]:
    """The work and the time of each dispatch that was timed in each run."""
    for item in items:
        at = (item.family, item.kernel, item.shape)
        if all(at in each for each in runs):
            yield at, timed_point(item, DEVICE, min(each[at] for each in runs))


def slower(one: Timed, other: Timed, runs: Sequence[Times]) -> bool | None:
    """Whether `one` takes longer than `other` in each run, by more than 5%; None where runs differ, or by less."""
    ratios = [each[one] / each[other] for each in runs]
    if min(ratios) > APART:
        return True
    return False if max(ratios) < 1 / APART else None


def pairs(
    found: Sequence[tuple[Timed, Point]], predicted: Sequence[float], runs: Sequence[Times]
) -> list[tuple[str, bool, float]]:
    """Of each pair: the family, whether the order is right, the error of the ratio as a logarithm."""
    groups: dict[tuple[str, str], list[tuple[Timed, float, float]]] = defaultdict(list)
    for (at, point), us in zip(found, predicted, strict=True):
        groups[at[0], at[2]].append((at, point.us, us))
    return [
        (family, one[2] > other[2] if is_slower else one[2] < other[2],
         abs(np.log(one[1] / other[1] * other[2] / one[2])))
        for (family, _), rows in groups.items()
        for one, other in combinations(rows, 2)
        if (is_slower := slower(one[0], other[0], runs)) is not None
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=Path, help="entry points of other repositories, as choose_entries wrote them")
    parser.add_argument("--page", type=Path, help="write the table into this page")
    args = parser.parse_args()
    kinds = "repositories" if args.entries else "families"
    if args.entries:
        runs = [times(run, "entries") for run in RUNS_OF_ENTRIES]
        found = list(points(measure_times.entries(args.entries), runs))
    else:
        runs = [times(run) for run in RUNS]
        found = list(points(measure_times.families(SCALE), runs))
    predicted = [predict(point.work, find(DEVICE)).us for _, point in found]
    lines = rows(found, predicted, kinds, pairs(found, predicted, runs))
    print("\n".join(lines))
    apart = predict_times.pairs(found, predicted)
    print(f"{len(apart)} pairs are 5% apart by their least times; {sum(right for _, right, _ in apart)} are in order")
    if args.page:
        write(args.page, f"{kinds} on lavapipe", lines)


if __name__ == "__main__":
    main()
