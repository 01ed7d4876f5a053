"""Every access and barrier of one workgroup, lane by lane, in the order of the run: what figures are drawn from.

The simulator runs the shader with probes written into its text (see `instrument`), so a trace tells of the text
that is given, and of nothing that a figure was told.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import sim
from ...sim.fast_dataclass import frozen
from ...sim.ir.sites import SourceSite
from ..errors import UsageError
from ..manifests.manifest import Case
from ..manifests.reflection import check_module
from .wgsl_probes import HEADER_WORDS, LOG, MOST_LANES, MOST_PROBES, ROW_WORDS, Probe, instrument

_PROBES = ("lanes", "banks", "sectors", "barriers", "flops")
_MOST_ROWS = 1 << 22


@frozen
class Request:
    """One subgroup coming to one place in the source, once. `addresses` are bytes in the variable, `[lanes]`; -1 for
    lanes that are not there. `epoch`: barriers that the subgroup has passed before."""

    site: SourceSite
    subgroup: int
    epoch: int
    addresses: NDArray[np.int64]

    @property
    def active(self) -> NDArray[np.bool_]:
        return self.addresses >= 0


@frozen
class Trace:
    """`requests` in the order of the run. `run`: the plain run of the whole grid, with its counters."""

    case: Case
    run: Any  # bankshot.Run
    workgroup: tuple[int, int, int]
    requests: tuple[Request, ...]

    def of(self, variable: str, kind: str | None = None, line: int | None = None) -> list[Request]:
        """The requests to a variable; of one kind (load, store, atomic), and of one line, where these are given."""
        found = [r for r in self.requests if r.site.variable == variable]
        return [r for r in found if kind in (None, r.site.kind) and line in (None, r.site.line)]

    def lines(self, variable: str, kind: str) -> list[int]:
        """The lines that access a variable so, in the order in which the run comes to them."""
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
    module = check_module(kernel)
    how: dict[str, Any] = {"entry": kernel.entry, "overrides": case.overrides, "device": device, "grid": case.grid}
    run = sim.simulate(module, bindings=case.bindings, probes=_PROBES, **how)
    if any(at >= size for at, size in zip(workgroup, run.grid, strict=True)):
        raise UsageError(f"there is no workgroup {workgroup} in a grid of {run.grid}")
    room = min(_MOST_ROWS, 1024 + sum(site.active_lanes for site in run.sites))
    log = record(case, run, None, workgroup, run.grid, room)
    if log.missed:
        made = room + log.missed
        raise UsageError(f"{kernel.name}: a workgroup makes {made:,} rows, {room:,} fit; choose a smaller shape")
    found = tuple(requests(log.rows, log.probes, run.program.sites, run.device.subgroup_size))
    return Trace(case, run, workgroup, found)


@frozen
class Log:
    """What one workgroup recorded, in the order of the run: `rows` as `instrument` says, `[rows, 4]`, of `probes`.
    `missed`: rows that had no room."""

    rows: NDArray[np.uint32]
    probes: tuple[Probe, ...]
    missed: int


def record(
    case: Case,
    run: Any,
    wanted: Collection[int] | None,
    workgroup: tuple[int, int, int],
    grid: tuple[int, ...],
    most: int,
) -> Log:
    """Run the kernel of `run`, which is one of `case`, in a grid, with probes at the sites `wanted` (None: all), and
    record `most` rows of one workgroup. Raises `UsageError` where the kernel takes no probes."""
    probed = instrument(run.pipeline, run.program.sites, wanted)
    log = np.zeros(HEADER_WORDS + ROW_WORDS * most, np.uint32)
    x, y, z = workgroup
    log[1:4] = (z * grid[1] + y) * grid[0] + x, 1, most
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


def requests(rows: NDArray[np.uint32], probes: Any, sites: list[SourceSite], size: int) -> Iterator[Request]:
    """What a log tells, `[rows, 4]`. Rows that share probe, path and subgroup are one request, which stands where the
    first of them does."""
    lane = (rows[:, 0] >> 12) & (MOST_LANES - 1)
    keys = np.column_stack([rows[:, 0] & np.uint32(MOST_PROBES - 1), rows[:, 1], rows[:, 2], lane // size])
    _, first, issue = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    addresses = np.full((len(first), size), -1, np.int64)
    addresses[issue.reshape(-1), lane % size] = rows[:, 3]
    passed: dict[int, int] = {}
    for number in np.argsort(first):
        probe, subgroup = probes[int(keys[first[number], 0])], int(keys[first[number], 3])
        epoch = passed.get(subgroup, 0)
        for site, offset in probe.parts:
            at = np.where(addresses[number] >= 0, addresses[number] + offset, -1)
            yield Request(sites[site], subgroup, epoch, at)
            if sites[site].kind == "barrier":
                passed[subgroup] = epoch + probe.times
