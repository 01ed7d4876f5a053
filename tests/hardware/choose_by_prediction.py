"""Chooses the kernel with the shortest predicted time for each problem, and compares it with the best one measured.

    python -m tests.hardware.choose_by_prediction [--page docs/time-model.md]

A problem is a family of `timed_families` at one shape, with all its kernels that were timed on an H200. The costs are
those of the profile that ships, whose fit has seen none of these kernels. The cost of a choice is its measured time
over that of the best kernel. `--page` writes the table into a page.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median

from bankshot.sim.device_files import find
from bankshot.sim.fast_dataclass import frozen
from bankshot.sim.models.time_model import predict
from tests.hardware import measure_times
from tests.hardware.page_table import write
from tests.hardware.predict_times import Timed, points

DEVICE = "nvidia-h200"
WITHIN = 1.05


@frozen
class Choice:
    """A problem with several kernels. `cost`: the measured time of the chosen one over the best; `blind`: the mean over
    all kernels, which a choice at random costs."""

    family: str
    shape: str
    kernels: int
    chosen: str
    cost: float
    blind: float


def choices(times: Iterable[tuple[Timed, float, float]]) -> list[Choice]:
    """Return the choice for each problem with several kernels, from measured and predicted microseconds."""
    problems: dict[tuple[str, str], list[tuple[float, str, float]]] = defaultdict(list)
    for (family, kernel, shape), measured, predicted in times:
        problems[family, shape].append((predicted, kernel, measured))
    found: list[Choice] = []
    for (family, shape), rows in problems.items():
        if len(rows) > 1:
            best = min(measured for _, _, measured in rows)
            _, chosen, us = min(rows)
            blind = fmean(measured / best for _, _, measured in rows)
            found.append(Choice(family, shape, len(rows), chosen, us / best, blind))
    return found


def table(found: Sequence[Choice]) -> list[str]:
    """Return the rows of a table in Markdown: all problems, then each family."""
    families: Mapping[str, list[Choice]] = {
        f"**{len({each.family for each in found})} families**": list(found),
        **{name: [each for each in found if each.family == name] for name in dict.fromkeys(c.family for c in found)},
    }
    rows = [
        "| kernels | problems | best or within 5% | costs, median | mean | worst | at random, mean |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, each in families.items():
        costs = [choice.cost for choice in each]
        good = sum(cost <= WITHIN for cost in costs)
        figures = (median(costs), fmean(costs), max(costs), fmean(choice.blind for choice in each))
        rows.append(f"| {name} | {len(each)} | {good} | " + " | ".join(f"{_percent(cost)}" for cost in figures) + " |")
    return rows


def _percent(cost: float) -> str:
    return f"{100 * (cost - 1):.1f}%"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, help="write the table into this page")
    args = parser.parse_args()
    device = find(DEVICE)
    timed = [(at, p.us, predict(p.work, device).us) for at, p in points("families", measure_times.families())]
    rows = table(choices(timed))
    print("\n".join(rows))
    if args.page:
        write(args.page, "choices", rows)


if __name__ == "__main__":
    main()
