"""`python -m benchmarks.calls [--count 1000000]`: run a small prepared dispatch again and again in one process.

Each call gives the dispatch other numbers and reads its output. Of every so many calls, the output is compared with
NumPy's, which must be the same bits; this is not timed. For each tenth of the calls, the result has the median and the
99th percentile of the milliseconds of a call, and the resident memory at its end, after a search for garbage.

Memory grows if it is over a MiB more at the end than after the first half, in which caches and the heap reach their
size. Linux reports it. The figures are also saved to benchmarks/output.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

import bankshot
from bankshot.oracle.cli.main import Guarded
from bankshot.oracle.errors import UsageError

from . import memory
from .__main__ import OUTPUT, machine

WGSL = """\
@group(0) @binding(0) var<uniform> factor: f32;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn scale(@builtin(global_invocation_id) id: vec3u) {
    y[id.x] = factor * x[id.x];
}
"""
GRID = 4
SIZE = 64 * GRID  # numbers in each array
TENTHS = 10
CHECKED = 997  # calls from one whose output is checked to the next: a prime, so that their numbers differ
ALLOWED = 1 << 20  # bytes of growth that do not count: 2.1 for each of 500,000 calls


@dataclass(frozen=True, slots=True)
class Tenth:
    """The last call of a tenth, counted from 1, its milliseconds, and the resident bytes at its end."""

    last: int
    median: float
    high: float
    resident: int

    @staticmethod
    def of(last: int, seconds: NDArray[np.float64], resident: int) -> Tenth:
        median, high = np.percentile(1e3 * seconds, (50, 99))
        return Tenth(last, float(median), float(high), resident)

    def __str__(self) -> str:
        return f"{self.last:12,}{self.median:13.4f}{self.high:11.4f}{self.resident / 1e6:14.2f}"


HEAD = f"{'calls':>12}{'median, ms':>13}{'99th, ms':>11}{'resident, MB':>14}"


@click.group(cls=Guarded, invoke_without_command=True)
@click.option("--count", type=click.IntRange(TENTHS), default=1_000_000, show_default=True, help="Calls.")
@click.option("--probes", default="none", show_default=True, help="As in bankshot.prepare, separated by commas.")
def main(count: int, probes: str) -> None:
    """Time many calls of one small dispatch, and see whether memory grows."""
    if not memory.readable():
        raise UsageError("this system does not report the resident memory of a process; Linux does")
    conditions = machine()
    prepared = bankshot.prepare(WGSL, grid=GRID, probes=probes.split(","))
    seconds = np.full(count, np.nan)  # resident before the first call
    tenths: list[Tenth] = []
    click.echo(HEAD)
    for tenth in calls(prepared.run, seconds):
        tenths.append(tenth)
        click.echo(tenth)
    median = 1e3 * float(np.median(seconds))
    click.echo(summary(tenths, median))
    OUTPUT.mkdir(exist_ok=True)
    path = OUTPUT / f"calls_{'_'.join(probes.split(','))}.json"
    figures = {"machine": conditions, "count": count, "probes": probes, "median": median}
    path.write_text(json.dumps(figures | {"tenths": [asdict(tenth) for tenth in tenths]}, indent=2) + "\n")
    click.echo(f"written to {path}")


def calls(run: Callable[[dict[str, Any]], bankshot.Run], seconds: NDArray[np.float64]) -> Iterator[Tenth]:
    """Time a call of `run` for each of `seconds`, and yield each tenth. Exits if an output is wrong."""
    arrays = np.random.default_rng(0).standard_normal((61, SIZE), np.float32)
    ends = [len(seconds) * tenth // TENTHS for tenth in range(TENTHS + 1)]
    for first, end in pairwise(ends):
        for number in range(first, end):
            factor, x = np.float32(number % 1021 / 8), arrays[number % len(arrays)]
            seconds[number], y = _call(run, {"factor": factor, "x": x, "y": np.zeros(SIZE, np.float32)})
            if (number % CHECKED == 0 or number == end - 1) and not np.array_equal(y, factor * x):
                raise SystemExit(f"call {number + 1:,} has another output than NumPy")
        gc.collect()
        yield Tenth.of(end, seconds[first:end], memory.resident())


def _call(run: Callable[[dict[str, Any]], bankshot.Run], bindings: dict[str, Any]) -> tuple[float, NDArray[Any]]:
    """Return the seconds of a call with these bindings, and its output."""
    start = time.perf_counter()
    y = run(bindings).outputs["y"]
    return time.perf_counter() - start, np.asarray(y)


def summary(tenths: Sequence[Tenth], median: float) -> str:
    """Return the line that says whether memory grew. `median`: milliseconds, of all calls."""
    first, half, last = tenths[0], tenths[TENTHS // 2 - 1], tenths[-1]
    added = last.resident - half.resident
    grew = f"grew by {added / (last.last - half.last):.2g} bytes a call" if added > ALLOWED else "did not grow"
    ends = ", ".join(f"{each.resident / 1e6:.2f} MB after {each.last:,}" for each in (first, half, last))
    return f"memory {grew} in the second half of the calls ({ends}); median of all calls: {median:.4f} ms"


if __name__ == "__main__":
    main()
