"""How time and memory of the simulator grow with the work: dispatches of about 10^2 to 10^5 workgroups.

The bindings grow with the grid. Times are those of this process, in interleaved rounds; each peak of memory is that of
a process of its own (`memory`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path

import click
import numpy as np

from bankshot.oracle.manifests.manifest import Case

from . import memory
from .cases import SHADERS, case
from .figures import Summary
from .ways import Simulator, Way, measure

PROBES = {"plain": "none", "all probes": "all"}
WORKGROUPS = (96, 288, 960, 3_072, 9_600, 30_720, 98_304)
LARGE = 960  # workgroups from which on the exponent is fitted, where the fixed part no longer dominates


@dataclass(frozen=True, slots=True)
class Series:
    """A kernel at many sizes. `at` returns it as `case` takes it, in `shaders`, with a multiple of 96 workgroups.

    `what` describes it on the page.
    """

    at: Callable[[int], str]
    what: str


KERNELS = {
    "gemv_subgroup": Series(
        lambda count: f"gemv/gemv.toml:gemv_subgroup:N={4 * count},K=256",
        "four rows of a matrix times a vector in each workgroup, with a barrier and sums of subgroups",
    ),
    "ffn_project": Series(
        lambda count: f"ffn/ffn.toml:ffn_project:M={count // 6},D=64,F=1536",
        "a tile of 16 x 16 of a product of matrices in each workgroup, with workgroup memory and eight barriers",
    ),
}


@dataclass(frozen=True, slots=True)
class Line:
    """A linear model of a dispatch's cost in seconds: a `fixed` part, and a part for `each` workgroup.

    `off` is the largest relative deviation of a measurement.
    """

    fixed: float
    each: float
    off: float


@dataclass(frozen=True, slots=True)
class Growth:
    """Dispatches of one of `KERNELS`: the number of `workgroups` and the bytes of `bindings` of each.

    For each of `PROBES`, `seconds` are those of each dispatch, and `peaks` the bytes that it adds to a process at its
    peak, with the bindings. There are no `peaks` where the system does not report them.
    """

    kernel: str
    workgroups: tuple[int, ...]
    bindings: tuple[int, ...]
    seconds: dict[str, tuple[Summary, ...]]
    peaks: dict[str, tuple[int, ...]]

    def line(self, kind: str) -> Line:
        """Fit a line to the minimum seconds, minimizing relative deviations."""
        seconds = self._least(kind)
        degree = min(1, len(seconds) - 1)
        *each, fixed = np.polyfit(self.workgroups, seconds, degree, w=1 / seconds)
        on_it = np.polyval([*each, fixed], self.workgroups)
        return Line(float(fixed), float(sum(each)), float(np.max(np.abs(on_it / seconds - 1))))

    def exponent(self, kind: str) -> float:
        """Fit a power of the workgroups to the minimum seconds from `LARGE` workgroups on, and return its exponent.

        It is 1 if the seconds grow as the workgroups do, and NaN if fewer than two dispatches are as large.
        """
        large = np.array(self.workgroups) >= LARGE
        if np.count_nonzero(large) < 2:
            return float("nan")
        logarithms = np.log(np.array(self.workgroups)[large]), np.log(self._least(kind)[large])
        return float(np.polyfit(*logarithms, 1)[0])

    def memory(self, kind: str) -> tuple[float, ...]:
        """Return the peaks divided by the bytes of the bindings."""
        return tuple(peak / size for peak, size in zip(self.peaks[kind], self.bindings, strict=True))

    def _least(self, kind: str) -> np.ndarray:
        return np.array([taken.least for taken in self.seconds[kind]])


def growth(device: str, rounds: int) -> list[Growth]:
    """Time dispatches of all `WORKGROUPS` of each of `KERNELS` on a device, and measure their memory."""
    texts = {name: [f"{SHADERS / series.at(count)}" for count in WORKGROUPS] for name, series in KERNELS.items()}
    peaks = {name: _peaks(each, device) for name, each in texts.items()}  # first, while this process is small
    cases = {name: [case(text) for text in each] for name, each in texts.items()}
    ways = [_way(each, kind, device) for name in cases for each in cases[name] for kind in PROBES]
    taken = iter(measure(ways, rounds).values())
    grown: list[Growth] = []
    for name, each in cases.items():
        spreads = [{kind: Summary.of(next(taken)) for kind in PROBES} for _ in each]
        grown.append(
            Growth(
                kernel=name,
                workgroups=tuple(prod(one.grid) for one in each),
                bindings=tuple(_bytes(one) for one in each),
                seconds={kind: tuple(spread[kind] for spread in spreads) for kind in PROBES},
                peaks=peaks[name],
            )
        )
    return grown


def save(grown: Sequence[Growth], folder: Path) -> None:
    """Save all figures as JSON."""
    folder.mkdir(exist_ok=True)
    path = folder / "growth.json"
    path.write_text(json.dumps([asdict(each) for each in grown], indent=2) + "\n", encoding="utf-8")
    click.echo(f"written to {path}")


def _peaks(texts: Sequence[str], device: str) -> dict[str, tuple[int, ...]]:
    if not memory.readable():
        return {}
    peaks: dict[str, list[int]] = {kind: [] for kind in PROBES}
    for text in texts:
        for kind, probes in PROBES.items():
            click.echo(f"memory, {kind}: {Path(text).name}", err=True)
            peaks[kind].append(memory.peak(text, device, probes))
    return {kind: tuple(each) for kind, each in peaks.items()}


def _way(case: Case, kind: str, device: str) -> Way:
    simulator = Simulator.of(case, device)
    name = f"{case.kernel.name}, {prod(case.grid):,} workgroups, {kind}"
    return Way(name, 0.0, lambda: simulator.seconds(PROBES[kind]))


def _bytes(case: Case) -> int:
    arrays = (np.asarray(value) for value in case.bindings.values())
    return sum(array.nbytes for array in arrays)
