"""Every access and barrier of one workgroup, lane by lane, in execution order: the data behind figures.

The simulator runs the shader with probes inserted into its text (see `instrument`), so that a trace depends on nothing
but the shader.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from operator import ge
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ... import sim
from ...sim.fast_dataclass import frozen
from ...sim.ir.sites import SourceSite
from ..errors import UsageError
from ..manifests.manifest import Case
from ..manifests.reflection import check_module
from .wgsl_probes import HEADER_WORDS, LOG, MOST_LANES, MOST_PROBES, ROW_WORDS, Probe, instrument, workgroup_shift

if TYPE_CHECKING:
    from ...sim.run.result import Run

_MOST_ROWS = 1 << 22


@frozen
class Request:
    """One execution of one access or barrier by one subgroup.

    `addresses` are bytes from the start of the variable, `[lanes]`, -1 for inactive lanes. `epoch` counts the barriers
    that the subgroup has passed before.
    """

    site: SourceSite
    subgroup: int
    epoch: int
    addresses: NDArray[np.int64]

    @property
    def active(self) -> NDArray[np.bool_]:
        return self.addresses >= 0


@frozen
class Trace:
    """The `requests` of one workgroup in execution order. `run`: the run of the whole grid without probes in its text,
    with its counters."""

    case: Case
    run: Run
    workgroup: tuple[int, int, int]
    requests: tuple[Request, ...]

    def of(self, variable: str, kind: str | None = None, line: int | None = None) -> list[Request]:
        """Return the requests to a variable, optionally of one kind (load, store, atomic) and one line."""
        found = [r for r in self.requests if r.site.variable == variable]
        return [r for r in found if kind in (None, r.site.kind) and line in (None, r.site.line)]

    def lines(self, variable: str, kind: str) -> list[int]:
        """Return the lines with accesses of one kind to a variable, in execution order."""
        return list(dict.fromkeys(r.site.line for r in self.of(variable, kind)))

    @cached_property
    def lanes(self) -> int:
        return math.prod(self.run.pipeline.workgroup_size)

    @cached_property
    def epochs(self) -> int:
        return max((request.epoch for request in self.requests), default=0) + 1


def trace(case: Case, workgroup: tuple[int, int, int] = (0, 0, 0), device: str = "nvidia") -> Trace:
    """Run `case` and record one workgroup of its grid. Raises `WgslError`, `UsageError`."""
    kernel = case.kernel
    run = sim.simulate(
        check_module(kernel),
        entry=kernel.entry,
        grid=case.grid,
        bindings=case.bindings,
        overrides=case.overrides,
        device=device,
        probes="counters",
    )
    require_inside(run, workgroup)
    capacity = min(_MOST_ROWS, 1024 + sum(site.active_lanes for site in run.sites))
    log = record(case, run, None, workgroup, run.grid, capacity)
    if log.missed:
        needed = capacity + log.missed
        raise UsageError(
            f"{kernel.name}: a workgroup makes {needed:,} rows, at most {capacity:,} fit; choose a smaller shape"
        )
    found = tuple(requests(log.rows, log.probes, run.program.sites, run.device.subgroup_size))
    return Trace(case, run, workgroup, found)


def require_inside(run: Run, workgroup: tuple[int, int, int]) -> None:
    """Raise `UsageError` if a workgroup is outside the grid of a run."""
    if any(map(ge, workgroup, run.grid)):
        raise UsageError(f"workgroup {workgroup} is outside the grid {run.grid}")


@frozen
class Log:
    """The records of workgroups in execution order: `rows` of `probes`, `[rows, 4]`, as `wgsl_probes` describes
    them. `missed`: how many more did not fit."""

    rows: NDArray[np.uint32]
    probes: tuple[Probe, ...]
    missed: int


def record(
    case: Case,
    run: Run,
    wanted: Collection[int] | None,
    workgroup: tuple[int, int, int],
    grid: tuple[int, ...],
    most: int,
    count: int = 1,
) -> Log:
    """Record at most `most` rows of one workgroup in a grid, or of `count` workgroups from it on, in grid order.

    `run` is a run of `case`; probes are inserted at its sites with the numbers `wanted` (None: all). Raises
    `UsageError` if a probe cannot be inserted.
    """
    probed = instrument(run.pipeline, run.program.sites, wanted)
    log = np.zeros(HEADER_WORDS + ROW_WORDS * most, np.uint32)
    x, y, z = workgroup
    log[1:4] = (z * grid[1] + y) * grid[0] + x, count, most
    out = sim.simulate(
        probed.text,
        entry=run.pipeline.entry.name,
        grid=grid,
        bindings={**case.bindings, LOG: log},
        overrides=case.overrides,
        device=run.device,
        probes="none",
    )
    words = np.asarray(out.outputs[LOG])
    used = min(int(words[0]), most)
    rows = words[HEADER_WORDS:][: used * ROW_WORDS].reshape(used, ROW_WORDS)
    return Log(rows, probed.probes, int(words[0]) - used)


def by_workgroup(rows: NDArray[np.uint32], lanes: int) -> list[NDArray[np.uint32]]:
    """Split the rows of a log by their workgroups of `lanes` invocations, in grid order."""
    workgroups = rows[:, 0] >> workgroup_shift(lanes)
    order = np.argsort(workgroups, kind="stable")
    return np.split(rows[order], np.flatnonzero(np.diff(workgroups[order])) + 1) if len(rows) else []


def requests(
    rows: NDArray[np.uint32],
    probes: Sequence[Probe],
    sites: Sequence[SourceSite],
    size: int,
    lanes: int = MOST_LANES,
) -> Iterator[Request]:
    """Combine the rows of one workgroup, `[rows, 4]`, into requests, in the order of their first rows.

    Rows with the same probe, path and subgroup form one request. `size`: lanes of a subgroup; `lanes`: of a workgroup,
    for rows of a log of several.
    """
    lane = (rows[:, 0] & np.uint32((1 << workgroup_shift(lanes)) - 1)) >> 12
    keys = np.column_stack([rows[:, 0] & np.uint32(MOST_PROBES - 1), rows[:, 1], rows[:, 2], lane // size])
    _, first, issue = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    addresses = np.full((len(first), size), -1, np.int64)
    addresses[issue.ravel(), lane % size] = rows[:, 3]
    passed: dict[int, int] = {}
    for number in np.argsort(first):
        probe, subgroup = probes[int(keys[first[number], 0])], int(keys[first[number], 3])
        epoch = passed.get(subgroup, 0)
        for site, offset in probe.parts:
            at = np.where(addresses[number] >= 0, addresses[number] + offset, -1)
            yield Request(sites[site], subgroup, epoch, at)
            if sites[site].kind == "barrier":
                passed[subgroup] = epoch + probe.times
