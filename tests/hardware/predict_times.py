"""Fits the costs of an H200 to the times of the micro-benchmarks, and compares predictions with measured times.

    python -m tests.hardware.predict_times [--entries FILE.json] [--write FILE.toml] [--page docs/time-model.md]

The fit sees the micro-benchmarks of `bankshot calibrate` alone. The dispatches of `timed_families`, and the entry
points of other repositories, are predicted blind. Prints pairs of kernels for one family and shape whose times differ
by more than 5%, and how many are in the right order; how far off the ratio of such a pair is; how far off times are.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import bankshot
from bankshot.oracle.calibration.fit import Point, bound_of, fit
from bankshot.oracle.calibration.measure import PROBES, costs_of, timed_work
from bankshot.sim.device_files import find, write_profile
from bankshot.sim.models.costs import Cost, MeasuredCosts
from bankshot.sim.models.time_model import predicted_us
from tests.hardware import measure_times
from tests.hardware.measure_times import CORES, Item
from tests.hardware.page_table import write

HERE = Path(__file__).parent
COMMAND = "python -m tests.hardware.predict_times"
BUDGET = 1 << 40  # loop iterations: the dispatches have ended on the device
APART = 1.05  # times that differ by less are a tie

Timed = tuple[str, str, str]  # family, kernel, shape


def table(name: str) -> tuple[str, dict[Timed, float]]:
    """The header of a table, and the measured microseconds of each of its dispatches."""
    header, *rows = (HERE / f"h200_times_{name}.csv").read_text(encoding="utf-8").splitlines()
    times = {(row["family"], row["kernel"], row["shape"]): float(row["median_us"]) for row in csv.DictReader(rows)}
    return header.removeprefix("# "), times


def points(name: str, items: Iterable[Item]) -> Iterator[tuple[Timed, Point]]:
    """The work and the time of each dispatch that was timed."""
    times = table(name)[1]
    for item in items:
        at = (item.family, item.kernel, item.shape)
        if times.get(at, 0.0) > 0:
            yield at, timed_point(item, "nvidia", times[at])


def timed_point(item: Item, device: str, us: float) -> Point:
    """The work of a dispatch on a device, which took `us` microseconds."""
    run = bankshot.simulate(
        bankshot.check(item.wgsl, uniformity="warning"),
        entry=item.entry,
        grid=item.grid,
        bindings=item.bindings,
        overrides=item.overrides,
        device=device,
        probes=PROBES,
        workgroups="classes",
        replay=False,
        budget=BUDGET,
    )
    return Point(item.family, timed_work(run), us)


def pairs(found: Sequence[tuple[Timed, Point]], predicted: Sequence[float]) -> list[tuple[str, bool, float]]:
    """Of each pair of kernels for one family and shape: the family, whether the order is right, the error of the
    ratio as a logarithm."""
    groups: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for ((family, _, shape), point), us in zip(found, predicted, strict=True):
        groups[family, shape].append((point.us, us))
    return [
        (family, (one[0] < other[0]) == (one[1] < other[1]), abs(np.log(one[0] / other[0] * other[1] / one[1])))
        for (family, _), rows in groups.items()
        for one, other in combinations(rows, 2)
        if max(one[0], other[0]) > APART * min(one[0], other[0])
    ]


def rows(
    found: Sequence[tuple[Timed, Point]],
    predicted: Sequence[float],
    kinds: str,
    ordered: Sequence[tuple[str, bool, float]],
) -> list[str]:
    """Return the rows of a table in Markdown: all dispatches, then each kind. `kinds`: what they are; `ordered`: their
    pairs."""
    families = [point.kind for _, point in found]
    off = np.exp(np.abs(np.log(ratios(found, predicted))))
    lines = [
        "| kernels | dispatches | pairs in order | ratio off by | time off by, median | 90% | worst |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for family in ["", *dict.fromkeys(families)]:
        mine = off[[family in ("", its) for its in families]]
        of_pairs = [(right, each) for its, right, each in ordered if family in ("", its)]
        in_order = f"{sum(right for right, _ in of_pairs):,} of {len(of_pairs):,}"
        ratio = f"{np.exp(np.median([each for _, each in of_pairs])):.2f}" if of_pairs else ""
        name = family or f"**{len(set(families))} {kinds}**"
        errors = f"{np.median(mine):.2f} | {np.quantile(mine, 0.9):.2f} | {mine.max():.1f}"
        lines.append(f"| {name} | {len(mine)} | {in_order} | {ratio} | {errors} |")
    return lines


def ratios(found: Sequence[tuple[Timed, Point]], predicted: Sequence[float]) -> NDArray[np.float64]:
    """Return predicted / measured of each dispatch."""
    return np.array([us / point.us for us, (_, point) in zip(predicted, found, strict=True)])


def report(found: Sequence[tuple[Timed, Point]], costs: Mapping[str, float], kinds: str, page: Path | None) -> float:
    """Print the table of some kinds, and write it into a page. Returns the factor that holds 90% of the times."""
    predicted = [float(predicted_us(point.work, costs, CORES)[0]) for _, point in found]
    lines = rows(found, predicted, kinds, pairs(found, predicted))
    print("\n".join(lines))
    if page:
        write(page, kinds, lines)
    return bound_of(ratios(found, predicted))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=Path, help="entry points of other repositories, as choose_entries wrote them")
    parser.add_argument("--write", type=Path, help="write the device profile here")
    parser.add_argument("--page", type=Path, help="write the tables into this page")
    args = parser.parse_args()
    known = [point for _, point in points("calibration", measure_times.calibration())]
    fitted = fit(known, CORES)
    print(f"fitted to {len(known)} micro-benchmarks: {bound_of(fitted.errors):.2f} holds 90%")
    found = list(points("families", measure_times.families()))
    blind = [report(found, fitted.costs, "families", args.page)]
    if args.entries:
        others = list(points("entries", measure_times.entries(args.entries)))
        if not others:
            parser.error(f"{args.entries}: none of its entry points is in h200_times_entries.csv")
        blind.append(report(others, fitted.costs, "repositories", args.page))
    error_90 = round(max(blind), 2)
    print(f"90% of the times of each set are within a factor of {error_90:.2f}")
    if args.write:
        header = table("calibration")[0].split("; ")
        adapter, _, driver = header[0].partition(", driver ")
        source = f"fitted to the times of {len(known)} micro-benchmarks (tests/hardware/h200_times_calibration.csv)"
        costs = costs_of(fitted, error_90, source, COMMAND)
        where = "the larger one of tests/hardware/h200_times_families.csv and h200_times_entries.csv, unseen"
        costs["error_90"] = Cost(error_90, None, where, COMMAND)
        measured = MeasuredCosts(costs, adapter=adapter, driver=driver, date=header[1], command=COMMAND)
        write_profile(args.write, find("nvidia").with_(name=args.write.stem), measured)


if __name__ == "__main__":
    main()
