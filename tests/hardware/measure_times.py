"""Time many dispatches on an adapter, as data for a cost model.

`python -m tests.hardware.measure_times TABLE.csv --adapter NAME` times the kernels of `timed_families`, and the
micro-benchmarks of `bankshot.oracle.calibration`; `--entries FILE.json` times entry points of other repositories, whose
texts the file has and the table does not. It uses `wgpu_client.time_dispatches`. Columns:

    set             families, calibration or entries
    family          of `timed_families`; of a micro-benchmark its constant; of an entry point its repository
    kernel, shape   the variant and its sizes; the parameters of a micro-benchmark; an entry point's file and name
    grid            workgroups, `x y z`
    median_us       without the launch, like the quartiles and the least; microseconds
    q1_us, q3_us
    least_us
    passes          timed passes
    launch_us       of a dispatch that does nothing, in the same rounds

Where buffers lie decides how long atomic operations on storage take, by up to a factor of three on an H200: with
`--placements N`, dispatches that have some are timed N times, in another order each time, and the row is that of the
run in the middle.

The first line is a comment with device, driver, date and command. Rows are written as they are measured.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import bankshot
from bankshot.oracle import wgpu_client
from bankshot.oracle.calibration.micro_benchmarks import micro_benchmarks
from bankshot.oracle.errors import UsageError
from bankshot.oracle.guesses import invented_inputs
from bankshot.oracle.kernel_timing import groups
from bankshot.oracle.wgpu_worker.messages import DispatchRequest
from bankshot.sim.wgsl.check.pipeline import GRANTED
from bankshot.sim.wgsl.types import contains_atomic
from tests.hardware.timed_families import dispatches

COLUMNS = ("set", "family", "kernel", "shape", "grid", "median_us", "q1_us", "q3_us", "least_us", "passes", "launch_us")
CORES = 132  # of the GPU that micro-benchmarks are made for


@dataclass(frozen=True)
class Item:
    """A dispatch to time, under its names in the table."""

    set: str
    family: str
    kernel: str
    shape: str
    wgsl: str
    entry: str
    grid: tuple[int, ...]
    bindings: dict[str, Any]
    overrides: dict[str, Any]

    @property
    def bytes(self) -> int:
        return sum(getattr(data, "nbytes", 0) for data in self.bindings.values())


def families(scale: int = 1) -> Iterator[Item]:
    for each in dispatches(scale):
        names = (each.family, each.kernel, each.shape)
        yield Item("families", *names, each.wgsl, each.entry, each.grid, dict(each.bindings), {})


def calibration(cores: int = CORES, scale: float = 1.0) -> Iterator[Item]:
    for each in micro_benchmarks(cores, scale, software=cores != CORES):
        shape = " ".join(f"{name}={value:g}" for name, value in each.parameters.items())
        yield Item("calibration", each.constant, "", shape, each.wgsl, each.entry, each.grid, dict(each.bindings), {})


def entries(file: Path) -> Iterator[Item]:
    """Entry points with invented inputs, as `tests.hardware.choose_entries` found them."""
    for each in json.loads(file.read_text(encoding="utf-8")):
        pipeline = bankshot.check(each["text"], uniformity="warning").pipeline(
            each["entry"], each["overrides"], GRANTED
        )
        recipe = replace(invented_inputs.RECIPES[each["recipe"]], tail=each["tail"])
        given = invented_inputs.bindings(pipeline, recipe)
        names = (each["repo"], f"{each['path']}:{each['entry']}", f"{recipe.name}, arrays of {recipe.tail}")
        yield Item("entries", *names, each["text"], each["entry"], tuple(each["grid"]), given, each["overrides"])


def timed(group: Sequence[Item], adapter: str, rounds: int) -> Iterator[tuple[Item, wgpu_client.KernelTimes]]:
    """The times of a group; where a dispatch is refused, each alone, and the refused ones are left out."""
    requests: list[tuple[Item, DispatchRequest]] = []
    for item in group:
        try:
            request = wgpu_client.dispatch_request(
                item.wgsl, item.entry, item.grid, item.bindings, overrides=item.overrides, adapter=adapter
            )
            requests.append((item, request))
        except UsageError as error:
            _refused(item, error)
    try:
        times = wgpu_client.time_dispatches([request for _, request in requests], rounds=rounds)
        yield from zip([item for item, _ in requests], times, strict=True)
        return
    except UsageError as error:
        print(f"one by one: {str(error).splitlines()[0]}", file=sys.stderr)
    for item, request in requests:
        try:
            yield item, wgpu_client.time_dispatches([request], rounds=rounds)[0]
        except UsageError as error:
            _refused(item, error)


def _refused(item: Item, error: Exception) -> None:
    print(f"not timed: {item.family} {item.kernel} {item.shape}: {str(error).splitlines()[0]}", file=sys.stderr)


def placed(
    items: Sequence[Item], adapter: str, rounds: int, placements: int
) -> Iterator[tuple[Item, wgpu_client.KernelTimes]]:
    """The times of items in the middle one of several runs, in each of which their buffers lie elsewhere."""
    runs = defaultdict[int, list[wgpu_client.KernelTimes]](list)
    for seed in range(placements):
        shuffled = random.Random(seed).sample(items, len(items))
        for group in groups(shuffled, lambda item: item.bytes):
            for item, times in timed(group, adapter, rounds):
                runs[id(item)].append(times)
    for item in items:
        if found := sorted(runs[id(item)], key=lambda times: times.median):
            yield item, found[len(found) // 2]


def has_storage_atomics(item: Item) -> bool:
    """Whether the entry point has atomic operations on storage."""
    pipeline = bankshot.check(item.wgsl, uniformity="warning").pipeline(item.entry, item.overrides, GRANTED)
    return any(v.space == "storage" and contains_atomic(type_) for v, type_ in pipeline.store_types.items())


def without_atomics(items: Iterable[Item], others: list[Item]) -> Iterator[Item]:
    """Yield the items without atomic operations on storage, and add the others to `others`."""
    for item in items:
        if has_storage_atomics(item):
            others.append(item)
        else:
            yield item


def row(item: Item, times: wgpu_client.KernelTimes) -> list[str]:
    low, high = times.quartiles
    figures = (f"{1e6 * each:.3f}" for each in (times.median, low, high, times.least))
    names = (item.set, item.family, item.kernel, item.shape, " ".join(map(str, item.grid)))
    return [*names, *figures, str(len(times.passes)), f"{1e6 * times.launch:.3f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--adapter", default="nvidia")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--placements", type=int, default=1, help="of the buffers of atomic operations")
    parser.add_argument("--seconds", type=float, default=1e6, help="begin no group after so long")
    parser.add_argument("--sets", nargs="*", default=["families", "calibration"], choices=["families", "calibration"])
    parser.add_argument("--entries", type=Path, help="also these entry points of other repositories")
    parser.add_argument("--scale", type=int, default=1, help="divide the sizes of families, for a slower adapter")
    parser.add_argument("--cores", type=int, default=CORES, help="of the adapter that micro-benchmarks are made for")
    parser.add_argument("--micro-scale", type=float, default=1.0, help="of micro-benchmarks, as of bankshot calibrate")
    args = parser.parse_args()
    info = wgpu_client.require_adapter(args.adapter)
    made = {
        "families": partial(families, args.scale),
        "calibration": partial(calibration, args.cores, args.micro_scale),
    }
    sources = [*(made[name]() for name in args.sets), *([entries(args.entries)] if args.entries else [])]
    end = time.monotonic() + args.seconds
    with args.table.open("w", encoding="utf-8", newline="") as file:
        today = datetime.now(UTC).date().isoformat()
        given = ["--sets", *args.sets, *(["--entries", "FILE.json"] if args.entries else [])]
        given += ["--placements", str(args.placements)] if args.placements > 1 else []
        given += ["--rounds", str(args.rounds), *(["--scale", str(args.scale)] if args.scale != 1 else [])]
        file.write(f"# {info}; {today}; python -m tests.hardware.measure_times {' '.join(given)}\n")
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        for source in sources:
            later: list[Item] = []
            for group in groups(
                without_atomics(source, later) if args.placements > 1 else source, lambda item: item.bytes
            ):
                if time.monotonic() > end:
                    print(f"stopped before {group[0].set} {group[0].family}", file=sys.stderr)
                    break
                table.writerows(row(*each) for each in timed(group, args.adapter, args.rounds))
                file.flush()
            table.writerows(row(*each) for each in placed(later, args.adapter, args.rounds, args.placements))


if __name__ == "__main__":
    main()
