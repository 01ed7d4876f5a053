"""One schema of counters, the same names for each place in the source and for the whole run."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from .machine import layout as at
from .program.program import Program
from .program.sites import NO_SITE, Site
from .wgsl.source import Span


@dataclass
class Counters:
    """What one place, or a whole run, asked of the device.

    `executions`: subgroups that issued it. `active_lanes`: invocations in them. `*_requests`: accesses by subgroups;
    `shared_wavefronts` and `shared_ideal_wavefronts` of workgroup memory; `global_sectors`, `global_ideal_sectors`,
    `global_lines` of storage and textures; `global_bytes`: bytes that active lanes asked for. `barriers`: workgroups
    that passed one. `flops`: floating-point operations of active lanes, fma counted as 2.

    Texels are taken to lie row by row, layer by layer and level by level, as their format packs them: real GPUs tile
    them in ways that they do not tell. A filtered sample is an access for each texel that it reads.
    """

    executions: int = 0
    active_lanes: int = 0
    shared_requests: int = 0
    shared_wavefronts: int = 0
    shared_ideal_wavefronts: int = 0
    global_requests: int = 0
    global_sectors: int = 0
    global_ideal_sectors: int = 0
    global_lines: int = 0
    global_bytes: int = 0
    atomics: int = 0
    barriers: int = 0
    flops: int = 0


NAMES = tuple(f.name for f in fields(Counters))


@dataclass
class SiteCounters(Counters):
    """The counters of one place in the source."""

    site: Site = NO_SITE

    @property
    def span(self) -> Span:
        return self.site.span

    @property
    def line(self) -> int:
        """1-based line in its original file."""
        return self.site.line

    @property
    def kind(self) -> str:
        """load, store, atomic, barrier, subgroup or op."""
        return self.site.kind

    @property
    def space(self) -> str | None:
        """workgroup, storage, uniform or texture, of memory sites."""
        return self.site.space

    @property
    def name(self) -> str | None:
        """The variable that is touched, or the operation."""
        return self.site.variable or self.site.name

    @property
    def bytes_per_lane(self) -> int:
        return self.site.bytes_per_lane

    def counts(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in NAMES}


def site_counters(
    program: Program, blocks: NDArray[np.int64], tallies: NDArray[np.int64], workgroups_of: int
) -> list[SiteCounters]:
    """Counters of every site. `workgroups_of`: subgroups per workgroup, to turn barrier executions into workgroups."""
    rows = [SiteCounters(site=site) for site in program.sites]
    for run, (executions, active) in zip(program.runs, blocks, strict=False):
        for number in run:
            row, site = rows[number], program.sites[number]
            row.executions += int(executions)
            row.active_lanes += int(active)
            row.flops += int(active) * site.flops
            if site.kind == "atomic":
                row.atomics += int(active)
            elif site.kind == "barrier":
                row.barriers += int(executions) // workgroups_of
    for probe, tally in zip(program.probes, tallies, strict=False):
        _charge(rows[probe.site], probe.kind, tally)
    return [row for row in rows if row.site.kind != "index"]


def _charge(row: Counters, kind: str, tally: NDArray[np.int64]) -> None:
    if kind == "banks":
        row.shared_requests += int(tally[at.REQUESTS])
        row.shared_wavefronts += int(tally[at.CHARGED])
        row.shared_ideal_wavefronts += int(tally[at.IDEAL])
    elif kind == "sectors":
        row.global_requests += int(tally[at.REQUESTS])
        row.global_sectors += int(tally[at.CHARGED])
        row.global_ideal_sectors += int(tally[at.IDEAL])
        row.global_lines += int(tally[at.LINES])
        row.global_bytes += int(tally[at.BYTES])


def totals(rows: list[SiteCounters]) -> dict[str, int]:
    """The sum of every counter over all sites."""
    return {name: sum(getattr(row, name) for row in rows) for name in NAMES}
