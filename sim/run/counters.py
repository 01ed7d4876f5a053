"""One schema of counters, the same names for each place in the source and for the whole run."""

from __future__ import annotations

from dataclasses import dataclass, fields
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from ..codegen.program import Program
from ..ir.sites import NO_SITE, Site
from ..machine import layout as at
from ..wgsl.source import Span


@dataclass
class Counters:
    """What one place, or a whole run, asked of the device.

    `executions`: subgroups that issued it. `active_lanes`: invocations in them. `*_requests`: accesses by subgroups;
    `shared_wavefronts` and `shared_ideal_wavefronts` of workgroup memory; `global_sectors`, `global_ideal_sectors`,
    `global_lines` of storage and textures; `global_bytes`: bytes that active lanes asked for. `atomics`: atomic
    operations of active lanes; they are requests too, and what they take is among the wavefronts and sectors, as it is
    in NVIDIA's profiler. `atomic_turns`: of each request that reads and writes, the most lanes on any one word, which
    go one after the other. `barriers`: workgroups that passed one. `flops`: floating-point operations of active lanes,
    fma counted as 2.

    Lanes that an execution leaves idle, by cause; with `active_lanes` they make up `executions` x the subgroup size:

    - `idle_overhang`: lanes that no invocation has, in the last subgroup of a workgroup that does not fill it.
    - `idle_guard`: invocations that were gone when the outermost statement that holds the place began: they had
      returned, or an `if` around all that the entry point does keeps them out (`program.guards` says what that is).
    - `idle_divergence`: the others: they take another branch or turn of that statement, wait for its end, or have
      returned in it.

    `idle_skipped`: invocations in whole subgroups that do not come here while another of their workgroup does, each
    time that it does. They hold a place on the core, but take no issue slot.

    Texels are taken to lie row by row, layer by layer and level by level, as their format packs them: real GPUs tile
    them in ways that they do not tell. A filtered sample is an access for each texel that it reads.
    """

    executions: int = 0
    active_lanes: int = 0
    idle_guard: int = 0
    idle_overhang: int = 0
    idle_divergence: int = 0
    idle_skipped: int = 0
    shared_requests: int = 0
    shared_wavefronts: int = 0
    shared_ideal_wavefronts: int = 0
    global_requests: int = 0
    global_sectors: int = 0
    global_ideal_sectors: int = 0
    global_lines: int = 0
    global_bytes: int = 0
    atomics: int = 0
    atomic_turns: int = 0
    barriers: int = 0
    flops: int = 0


NAMES = tuple(f.name for f in fields(Counters))
_COUNTS = attrgetter(*NAMES)


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

    @property
    def turns_per_request(self) -> float:
        """How many ways an atomic operation is serialized, on average: 32.0 where 32 lanes are on one word."""
        requests = self.shared_requests + self.global_requests
        return self.atomic_turns / requests if requests else 0.0

    def counts(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in NAMES}


def site_counters(
    program: Program, blocks: NDArray[np.int64], tallies: NDArray[np.int64], lanes: int, subgroup_size: int
) -> list[SiteCounters]:
    """Counters of every site. `blocks` and `tallies`: see `machine.layout`; `lanes`: invocations of a workgroup."""
    rows = [SiteCounters(site=site) for site in program.sites]
    subgroups = -(-lanes // subgroup_size)
    for run, block in zip(program.block_sites, blocks.tolist(), strict=False):
        for number in run:
            row, site = rows[number], program.sites[number]
            _count(row, block, subgroup_size)
            row.flops += block[at.ACTIVE] * site.flops
            if site.kind == "atomic":
                row.atomics += block[at.ACTIVE]
            elif site.kind == "barrier":
                row.barriers += block[at.EXECUTIONS] // subgroups
    for probe, tally in zip(program.memory_probes, tallies, strict=False):
        _charge(rows[probe.site], probe.kind, tally)
    return [row for row in rows if row.site.kind != "index"]


def _count(row: Counters, block: list[int], subgroup_size: int) -> None:
    executions, active, stayed, present, launched = block
    row.executions += executions
    row.active_lanes += active
    row.idle_divergence += stayed - active
    row.idle_guard += present - stayed
    row.idle_overhang += executions * subgroup_size - present
    row.idle_skipped += launched - present


def _charge(row: Counters, kind: str, tally: NDArray[np.int64]) -> None:
    if kind in ("banks", "sectors"):
        row.atomic_turns += int(tally[at.TURNS])
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
    columns = zip(*map(_COUNTS, rows or [Counters()]), strict=True)
    return {name: sum(column) for name, column in zip(NAMES, columns, strict=True)}
