"""How the simulator's cost grows with the work: dispatches with more and more rows of a grid, on the same bindings."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bankshot.oracle import wgpu_client
from bankshot.oracle.manifests.manifest import Case

from .figures import Summary
from .ways import Simulator, Way, measure

PROBES = {"plain": "none", "all probes": "all"}


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
    """The number of `workgroups` of each dispatch, and for each of `PROBES` the `seconds` of each dispatch."""

    workgroups: tuple[int, ...]
    seconds: dict[str, tuple[Summary, ...]]

    def line(self, name: str) -> Line:
        """Fit a line to the minimum seconds, minimizing relative deviations."""
        seconds = np.array([taken.least for taken in self.seconds[name]])
        degree = min(1, len(seconds) - 1)
        *each, fixed = np.polyfit(self.workgroups, seconds, degree, w=1 / seconds)
        on_it = np.polyval([*each, fixed], self.workgroups)
        return Line(float(fixed), float(sum(each)), float(np.max(np.abs(on_it / seconds - 1))))


def growth(case: Case, adapter: wgpu_client.AdapterInfo, rounds: int) -> Growth:
    """Time dispatches of 1 to all rows of the case's grid, as the device that matches the adapter."""
    x, y, z = case.grid
    cases = [replace(case, grid=(x, rows, z)) for rows in range(1, y + 1)]
    ways = [_way(each, kind, adapter) for each in cases for kind in PROBES]
    taken = iter(measure(ways, rounds).values())
    spreads = [{kind: Summary.of(next(taken)) for kind in PROBES} for _ in cases]
    return Growth(
        workgroups=tuple(x * rows * z for rows in range(1, y + 1)),
        seconds={kind: tuple(each[kind] for each in spreads) for kind in PROBES},
    )


def _way(case: Case, kind: str, adapter: wgpu_client.AdapterInfo) -> Way:
    simulator = Simulator.of(case, adapter.profile or wgpu_client.FALLBACK)
    return Way(f"{kind}, grid {case.grid}", 0.0, lambda: simulator.seconds(PROBES[kind]))
