"""The table of counters: one row for each, from which reports, goldens, sweeps and `docs/counters.md` are made.

The fields of `Counters` are the rows for what each place in the source is charged; `RUN_COUNTERS` holds the totals that
only a whole run has, `REPORT_COUNTERS` what reports derive from totals. To add a counter, add a row here and the probe
that records it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ..fast_dataclass import entity, frozen
from ..ir.sites import NO_SITE, SourceSite
from ..machine import layout as at


@entity
class SiteRecord:
    """What the machine recorded for one site: sums over the blocks that contain it, and over its memory probes."""

    site: SourceSite = NO_SITE
    subgroup_size: int = 1
    executions: int = 0  # subgroups that came here
    active: int = 0  # their active lanes
    admitted: int = 0  # their invocations that guards had let through
    present: int = 0  # their invocations
    launched: int = 0  # invocations of the workgroups of which any subgroup came
    workgroups: int = 0  # executions, in whole workgroups
    banks: list[int] = field(default_factory=lambda: [0] * at.TALLY_SIZE)
    sectors: list[int] = field(default_factory=lambda: [0] * at.TALLY_SIZE)

    def add_block(self, block: list[int], subgroups: int) -> None:
        """Add a row of `blocks` (see `machine.layout`); a workgroup has `subgroups` subgroups."""
        self.executions += block[at.EXECUTIONS]
        self.active += block[at.ACTIVE]
        self.admitted += block[at.STAYED]
        self.present += block[at.PRESENT]
        self.launched += block[at.LAUNCHED]
        self.workgroups += block[at.EXECUTIONS] // subgroups

    def add_tally(self, kind: str, tally: list[int]) -> None:
        """Add a row of `tallies` (see `machine.layout`) of a probe of this kind."""
        if kind == "banks":
            self.banks = [a + b for a, b in zip(self.banks, tally, strict=True)]
        elif kind == "sectors":
            self.sectors = [a + b for a, b in zip(self.sectors, tally, strict=True)]


@frozen
class RunRecord:
    """Figures of a whole run from which its totals follow."""

    sums: Mapping[str, int]  # of each counter over all sites
    workgroups: int
    workgroup_size: int
    workgroup_bytes: int
    subgroup_size: int
    worked: int | None  # invocations that did work beyond a guard; None: the probe `lanes` was off

    @property
    def invocations(self) -> int:
        return self.workgroups * self.workgroup_size


@frozen
class Counter:
    """A row of the table.

    `key` is its name in Python, JSON and CSV. `unit` is what one of it is; `share` is a ratio of 1. `label` is short,
    and follows a number in a sentence ("32 barriers"); `heading` names it in a table of totals. `probe` names what
    records it. `metrics` are the metrics of NVIDIA's profiler that it was compared with, whose sum it predicts.
    `cost`: smaller is better. `ideal` and `per` are the keys of the counters that it is compared with and divided by.
    `cause` is why lanes are idle, in words and as a letter. `summary` and `golden` are ranks in the table of totals and
    in the differences of goldens; 0: left out.
    """

    unit: str
    label: str
    definition: str
    heading: str = ""
    probe: str = ""
    metrics: tuple[str, ...] = ()
    cost: bool = False
    ideal: str = ""
    per: str = ""
    cause: tuple[str, str] = ("", "")
    summary: int = 0
    golden: int = 0
    key: str = ""
    of_site: Callable[[SiteRecord], int] = lambda record: 0
    of_run: Callable[[RunRecord], float | None] = lambda record: None
    of_totals: Callable[[Mapping[str, float]], float] | None = None

    @property
    def title(self) -> str:
        """The heading, or the label where that serves as one."""
        return self.heading or self.label


def _counter(of_site: Callable[[SiteRecord], int], /, **row: Any) -> int:
    """Declare a field of `Counters` together with its row."""
    return field(default=0, metadata={"counter": (of_site, row)})


@dataclass
class Counters:
    """What one place in the source, or a whole run, asks of the device.

    The lanes of a subgroup that issues are active, or idle for one of three causes: `active_lanes`, `idle_guard`,
    `idle_overhang` and `idle_divergence` add up to `executions` times the subgroup size.

    Texels are taken to lie row by row, layer by layer and level by level, packed as their format says; real GPUs tile
    them in undocumented ways. A filtered sample is one access for each texel that it reads.
    """

    executions: int = _counter(
        lambda site: site.executions,
        unit="subgroups",
        label="times issued",
        heading="executions, of all places",
        definition="Subgroups that issued it, each time that they did.",
        probe="lanes",
        cost=True,
        golden=7,
    )
    active_lanes: int = _counter(
        lambda site: site.active,
        unit="lanes",
        label="active lanes",
        definition="Invocations that were active when their subgroup issued it.",
        probe="lanes",
        golden=6,
    )
    idle_guard: int = _counter(
        lambda site: site.present - site.admitted,
        unit="lanes",
        label="lanes behind a guard",
        definition="Idle lanes that had returned, or that an `if` around the whole body of the entry point keeps out, "
        "before the outermost statement that contains the place began.",
        probe="lanes",
        cost=True,
        cause=("behind a guard", "g"),
    )
    idle_overhang: int = _counter(
        lambda site: site.executions * site.subgroup_size - site.present,
        unit="lanes",
        label="lanes past the workgroup",
        definition="Idle lanes without an invocation, in the last subgroup of a workgroup that does not fill it.",
        probe="lanes",
        cost=True,
        cause=("past the workgroup", "o"),
    )
    idle_divergence: int = _counter(
        lambda site: site.admitted - site.active,
        unit="lanes",
        label="diverged lanes",
        definition="All other idle lanes: they take another branch or iteration of the outermost statement that "
        "contains the place, wait for its end, or returned inside it.",
        probe="lanes",
        cost=True,
        cause=("diverged", "d"),
    )
    idle_skipped: int = _counter(
        lambda site: site.launched - site.present,
        unit="lanes",
        label="lanes in skipped subgroups",
        definition="Invocations in whole subgroups that do not come here while another subgroup of their workgroup "
        "does, each time that it does; they occupy the core but take no issue slot.",
        probe="lanes",
        cost=True,
    )
    shared_requests: int = _counter(
        lambda site: site.banks[at.REQUESTS],
        unit="requests",
        label="requests to workgroup memory",
        definition="Accesses to workgroup memory, one for each subgroup that makes one, atomic operations included.",
        probe="banks",
        cost=True,
        golden=2,
    )
    shared_wavefronts: int = _counter(
        lambda site: site.banks[at.CHARGED],
        unit="wavefronts",
        label="wavefronts",
        heading="workgroup memory wavefronts",
        definition="Passes that the banks of workgroup memory take to serve these requests.",
        probe="banks",
        metrics=(
            "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
            "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
            "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum",
        ),
        cost=True,
        ideal="shared_ideal_wavefronts",
        per="shared_requests",
    )
    shared_ideal_wavefronts: int = _counter(
        lambda site: site.banks[at.IDEAL],
        unit="wavefronts",
        label="ideal wavefronts",
        definition="Passes that accesses of the same width by the same lanes take without bank conflicts.",
        probe="banks",
        golden=9,
    )
    global_requests: int = _counter(
        lambda site: site.sectors[at.REQUESTS],
        unit="requests",
        label="requests to global memory",
        definition="Accesses to storage buffers and textures, one for each subgroup that makes one, atomic operations "
        "included.",
        probe="sectors",
        metrics=(
            "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
            "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
        ),
        cost=True,
        golden=3,
    )
    global_sectors: int = _counter(
        lambda site: site.sectors[at.CHARGED],
        unit="sectors",
        label="sectors",
        heading="global memory sectors",
        definition="Sectors of the device's size (32 bytes on NVIDIA) that the active lanes of each request touch; for "
        "atomic operations, in each sector as many as lanes share its busiest word.",
        probe="sectors",
        metrics=(
            "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
            "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
            "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum",
        ),
        cost=True,
        ideal="global_ideal_sectors",
        per="global_requests",
    )
    global_ideal_sectors: int = _counter(
        lambda site: site.sectors[at.IDEAL],
        unit="sectors",
        label="ideal sectors",
        definition="The fewest sectors that can hold the distinct bytes of each request.",
        probe="sectors",
        golden=10,
    )
    global_lines: int = _counter(
        lambda site: site.sectors[at.LINES],
        unit="lines",
        label="lines of global memory",
        heading="global memory lines",
        definition="Lines of the device's cache (128 bytes on NVIDIA) that the active lanes of each request touch.",
        probe="sectors",
        cost=True,
        golden=11,
    )
    global_bytes: int = _counter(
        lambda site: site.sectors[at.BYTES],
        unit="bytes",
        label="bytes of global memory",
        heading="requested global memory",
        definition="Bytes of storage buffers and textures that active lanes request, each lane counted.",
        probe="sectors",
        cost=True,
        summary=9,
        golden=8,
    )
    atomics: int = _counter(
        lambda site: site.active if site.site.kind == "atomic" else 0,
        unit="operations",
        label="atomic operations",
        definition="Atomic operations of active lanes; they count as requests, wavefronts and sectors too, as they do "
        "in NVIDIA's profiler.",
        probe="lanes",
        cost=True,
        summary=11,
        golden=4,
    )
    atomic_turns: int = _counter(
        lambda site: site.banks[at.SERIALIZED_LANES] + site.sectors[at.SERIALIZED_LANES],
        unit="lanes",
        label="serialized atomic lanes",
        definition="For each request that reads and writes atomically, the most lanes on any one word, which the "
        "device serves one after the other.",
        probe="banks, sectors",
        cost=True,
        summary=12,
    )
    barriers: int = _counter(
        lambda site: site.workgroups if site.site.kind == "barrier" else 0,
        unit="workgroups",
        label="barriers",
        heading="barriers, summed over workgroups",
        definition="Workgroups that passed a barrier, each time that they did.",
        probe="barriers",
        cost=True,
        summary=6,
        golden=1,
    )
    flops: int = _counter(
        lambda site: site.active * site.site.flops,
        unit="operations",
        label="floating point operations",
        heading="floating point operations (fma = 2)",
        definition="Floating point operations of active lanes; a fused multiply-add counts as two.",
        probe="flops",
        cost=True,
        summary=7,
        golden=5,
    )


def _site_rows() -> tuple[Counter, ...]:
    rows: list[Counter] = []
    for member in fields(Counters):
        of_site, row = member.metadata["counter"]
        rows.append(Counter(key=member.name, of_site=of_site, **row))
    return tuple(rows)


SITE_COUNTERS = _site_rows()
NAMES = tuple(row.key for row in SITE_COUNTERS)


def _simt_efficiency(run: RunRecord) -> float | None:
    if run.worked is None or not run.invocations:
        return None
    issued = run.sums["executions"] * run.subgroup_size
    return run.sums["active_lanes"] / issued if issued else 0.0


def _working_invocations(run: RunRecord) -> float | None:
    return None if run.worked is None or not run.invocations else run.worked / run.invocations


RUN_COUNTERS = (
    Counter(
        key="workgroups",
        of_run=lambda run: run.workgroups,
        unit="workgroups",
        label="workgroups",
        definition="Workgroups that the counters describe: those of the grid, or of the sample that ran.",
        summary=1,
        golden=12,
    ),
    Counter(
        key="invocations",
        of_run=lambda run: run.invocations,
        unit="invocations",
        label="invocations",
        definition="Invocations of these workgroups.",
        summary=2,
        golden=13,
    ),
    Counter(
        key="workgroup_memory_bytes",
        of_run=lambda run: run.workgroup_bytes,
        unit="bytes",
        label="bytes of workgroup memory",
        heading="workgroup memory",
        definition="Workgroup memory that one workgroup declares.",
        cost=True,
        summary=3,
        golden=14,
    ),
    Counter(
        key="simt_efficiency",
        of_run=_simt_efficiency,
        unit="share",
        label="SIMT efficiency",
        definition="Active lanes, divided by the lanes of the subgroups that issued, over all places.",
        probe="lanes",
        summary=5,
    ),
    Counter(
        key="working_invocations",
        of_run=_working_invocations,
        unit="share",
        label="working invocations",
        definition="Invocations that pass the guards and access memory that others see, divided by all invocations.",
        probe="lanes",
        summary=4,
        golden=15,
    ),
)

REPORT_COUNTERS = (
    Counter(
        key="bank_conflicts",
        of_totals=lambda totals: totals["shared_wavefronts"] - totals["shared_ideal_wavefronts"],
        unit="wavefronts",
        label="bank conflicts",
        definition="`shared_wavefronts` beyond `shared_ideal_wavefronts`, under the name that manifests use.",
        probe="banks",
        cost=True,
    ),
    Counter(
        key="excess_wavefronts",
        of_totals=lambda totals: totals["shared_wavefronts"] - totals["shared_ideal_wavefronts"],
        unit="wavefronts",
        label="excess wavefronts",
        definition="`shared_wavefronts` beyond `shared_ideal_wavefronts`, as sweeps and CI reports name it.",
        probe="banks",
        cost=True,
    ),
    Counter(
        key="excess_sectors",
        of_totals=lambda totals: totals["global_sectors"] - totals["global_ideal_sectors"],
        unit="sectors",
        label="excess sectors",
        definition="`global_sectors` beyond `global_ideal_sectors`: accesses that are not coalesced.",
        probe="sectors",
        cost=True,
    ),
    Counter(
        key="intensity",
        of_totals=lambda totals: totals["flops"] / totals["global_bytes"] if totals["global_bytes"] else 0.0,
        unit="FLOP/byte",
        label="FLOP per byte requested",
        definition="`flops` divided by `global_bytes`; 0 without either.",
        probe="flops, sectors",
        summary=10,
    ),
    Counter(
        key="useful_flops",
        unit="share",
        label="useful FLOPs",
        definition="Share of `flops` outside `Run.padding_flops`: those whose result may reach a store, an atomic "
        "operation or an exchange.",
        probe="flops",
        summary=8,
    ),
)

COUNTERS = {row.key: row for row in (*SITE_COUNTERS, *RUN_COUNTERS, *REPORT_COUNTERS)}

# The totals of a run that reports show, in their order; the pairs of a charge and its ideal, and the causes of idle
# lanes are shown beside them.
SUMMARY = tuple(sorted((row for row in COUNTERS.values() if row.summary), key=lambda row: row.summary))
CHARGES = tuple(row for row in SITE_COUNTERS if row.ideal)
IDLE_CAUSES = tuple(row for row in SITE_COUNTERS if row.cause[0])


def derived(totals: Mapping[str, float], keys: tuple[str, ...]) -> dict[str, float]:
    """Compute these rows of `REPORT_COUNTERS` from the totals of a run."""
    return {key: function(totals) for key in keys if (function := COUNTERS[key].of_totals) is not None}
