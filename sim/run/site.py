"""The counters of each place in the source, and their sums: `run.sites` and `run.counters`."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from ..codegen.program import Program
from ..ir.sites import NO_SITE, SourceSite
from ..wgsl.source import Span
from .counters import NAMES, RUN_COUNTERS, SITE_COUNTERS, Counters, RunRecord, SiteRecord

_COUNTS = attrgetter(*NAMES)


@dataclass
class Site(Counters):
    """One access, operation or barrier as written in the source, with what it was charged."""

    site: SourceSite = NO_SITE

    @property
    def span(self) -> Span:
        """The place in the source."""
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
        """The variable that it accesses, or the operation."""
        return self.site.variable or self.site.name

    @property
    def bytes_per_lane(self) -> int:
        """Bytes that each active lane accesses; 0 of sites that access no memory."""
        return self.site.bytes_per_lane

    @property
    def turns_per_request(self) -> float:
        """How many ways an atomic operation is serialized, on average: 32.0 where 32 lanes share a word."""
        requests = self.shared_requests + self.global_requests
        return self.atomic_turns / requests if requests else 0.0

    def counts(self) -> dict[str, int]:
        """Return every counter by its key."""
        return {name: getattr(self, name) for name in NAMES}


def site_counters(
    program: Program, blocks: NDArray[np.int64], tallies: NDArray[np.int64], lanes: int, subgroup_size: int
) -> list[Site]:
    """Return the counters of every site. `blocks` and `tallies`: see `machine.layout`; `lanes`: invocations of a
    workgroup."""
    records = [SiteRecord(site, subgroup_size) for site in program.sites]
    subgroups = -(-lanes // subgroup_size)
    for run, block in zip(program.block_sites, blocks.tolist(), strict=False):
        for number in run:
            records[number].add_block(block, subgroups)
    for probe, tally in zip(program.memory_probes, tallies.tolist(), strict=False):
        records[probe.site].add_tally(probe.kind, tally)
    return [
        Site(*(row.of_site(record) for row in SITE_COUNTERS), site=record.site)
        for record in records
        if record.site.kind != "index"
    ]


def sums(rows: list[Site]) -> dict[str, int]:
    """Add up every counter over all sites."""
    columns = zip(*map(_COUNTS, rows or [Counters()]), strict=True)
    return {name: sum(column) for name, column in zip(NAMES, columns, strict=True)}


def totals(run: RunRecord) -> dict[str, float]:
    """Return the sums of a run and the totals that only a whole run has, by key."""
    values = {row.key: row.of_run(run) for row in RUN_COUNTERS}
    return {**run.sums, **{key: value for key, value in values.items() if value is not None}}
