"""The work of a dispatch that ran: its program, its counters, and what two neighbouring workgroups load."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from math import log, prod, sqrt
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ..bounded_cache import remember
from ..codegen.build import draft
from ..codegen.program import Program
from ..fast_dataclass import frozen
from ..ir.sites import SourceSite
from ..machine.sample_notes import SECTORS_OF_LINE
from ..models.device import Device
from ..models.occupancy import occupancy
from ..models.time_model import Work
from ..performance.chains import region_costs
from ..performance.instruction_costs import local_words, used_atomics
from ..performance.registers import registers
from ..performance.store_runs import store_runs
from ..wgsl.typed import Module
from .dispatch import Dispatch, program_key
from .region_sums import ExecutedPhase, RegionSums, region_sums
from .site import Site
from .workgroup_sample import CHUNK, SAMPLED, Contention, Misses, Sample, Spread, cache_lines, sample_workgroups

_ACCESSES = ("load", "store", "atomic")
_ALL_MISS = Misses(1.0, 1.0)
_PACKED = Spread(1.0, 1.0, 0.0, 1.0)
_SUMS = frozenset(("atomicAdd", "atomicSub"))
_REDUCTIONS = _SUMS | frozenset(("atomicMax", "atomicMin", "atomicAnd", "atomicOr", "atomicXor"))
_ALL_ALIKE = 0.98  # of the lanes of an atomic operation are on one word
_PARTS = 48  # of the L2 cache
_TURNS = {"atomicCompareExchangeWeak": 2}
_MOST_PROGRAMS = 16  # that are kept for each module


@frozen
class SampledProgram:
    """A program that samples workgroups, and what its text alone decides.

    `sums`: over its regions. `used`: the atomic operations whose results are needed. `local_words`: of each invocation
    in arrays of function space. `store_runs`: the bytes that runs of stores write together. `phases`: of the places
    that access memory; one in several phases counts in the first. `registers`: of each invocation. Its basic blocks are
    those of any program of the dispatch.
    """

    program: Program
    sums: RegionSums
    used: frozenset[SourceSite]
    local_words: int
    store_runs: Mapping[SourceSite, int] = field(hash=False)
    phases: Mapping[SourceSite, int] = field(hash=False)
    registers: int


_PROGRAMS: WeakKeyDictionary[Module, dict[tuple[Any, ...], SampledProgram]] = WeakKeyDictionary()


def work_of(dispatch: Dispatch, rows: list[Site], blocks: NDArray[np.int64]) -> Work:
    """Return the work of a dispatch. `rows` and `blocks`: what a run of it counted."""
    count, grid, device, lanes = dispatch.count, prod(dispatch.grid), dispatch.device, dispatch.lanes
    scale = grid / max(1, count)
    subgroups = -(-lanes // device.subgroup_size)
    sampled = _sampled(dispatch)
    executed = sampled.sums.of(blocks, count, subgroups, lanes)
    held = min(sampled.registers, device.registers_per_lane_max)
    resident = max(1, occupancy(device, lanes, dispatch.pipeline.workgroup_bytes, held).workgroups)
    sharing = min(resident, -(-grid // (device.cores or 1)))
    found = _accesses(rows)
    loads, stores, atomics = (found["storage", kind] for kind in _ACCESSES)
    turning = [row for row in atomics if row.atomic_turns]
    changed = frozenset(row.name or "" for row in turning)
    sample = sample_workgroups(dispatch, sampled.program, sharing, changed) if grid else Sample({}, {}, {})
    asked = _Asked(device, sampled, sample, scale, count * subgroups, sampled.local_words * subgroups * sharing)
    sums = asked.sums(found, len(executed.phases))
    memory = _memory(dispatch, [*loads, *stores, *atomics], sample, scale)
    atomic_sectors, turns, word_turns = _storage_atomics(turning, sampled.used, sample, dispatch, scale)
    misses = sum(row.global_sectors * sample.misses.get(row.site, _ALL_MISS).sectors for row in loads)
    whole = Work(
        workgroups=grid,
        subgroups=subgroups,
        registers=held,
        resident=resident,
        **{name: sum(each[name] for each in sums) for name in _TOTALS},
        **asked.waits(found, ExecutedPhase.sum(executed.phases)),
        footprint=memory.footprint,
        moved=memory.moved,
        moved_again=memory.moved_again,
        reach=memory.reach,
        missed=misses / max(1, sum(row.global_sectors for row in loads)),
        atomic_sectors=atomic_sectors,
        atomic_turns=turns,
        atomic_word_turns=word_turns,
        software={kind: scale * n for kind, n in executed.software.items()},
        software_chain={step: scale * n for step, n in executed.software_chain.items()},
        lanes={f"{space}_{kind}": scale * sum(map(_words, each)) for (space, kind), each in found.items()},
        shared_atomics=scale * sum(_shared(row, sample) for row in turning),
    )
    return whole if len(sums) == 1 else replace(whole, phases=_phases(whole, asked, rows, sums, executed.phases))


def _phases(
    whole: Work, asked: _Asked, rows: list[Site], sums: list[dict[str, float]], executed: list[ExecutedPhase]
) -> tuple[Work, ...]:
    """Return the work of each phase. What the dispatch as a whole asks of device memory and atomic operations is
    divided by the sectors that the phases access."""
    by_phase: list[list[Site]] = [[] for _ in executed]
    for row in rows:
        by_phase[asked.phase(row)].append(row)
    sectors = [sum(row.global_sectors for row in its) for its in by_phase]
    atomics = [sum(row.global_sectors for row in its if row.atomic_turns) for its in by_phase]

    def phase(number: int) -> Work:
        moves = sectors[number] / max(1, sum(sectors))
        changes = atomics[number] / max(1, sum(atomics))
        return replace(
            whole,
            **sums[number],
            **asked.waits(_accesses(by_phase[number]), executed[number]),
            moved=whole.moved * moves,
            moved_again=whole.moved_again * moves,
            atomic_sectors=whole.atomic_sectors * changes,
            atomic_turns=whole.atomic_turns * changes,
            atomic_word_turns=whole.atomic_word_turns * changes,
        )

    return tuple(map(phase, range(len(executed))))


_Found = Mapping[tuple[str | None, str], list[Site]]  # the rows that access memory, by space and kind
# The fields of `Work` that are sums over accesses.
_TOTALS = (
    *("load_lines", "ideal_load_lines", "missed_lines", "load_sectors", "ideal_load_sectors"),
    *("store_lines", "ideal_store_lines", "stored_lines", "store_sectors", "ideal_store_sectors"),
    *("wavefronts", "ideal_wavefronts", "workgroup_atomic_turns"),
)


@frozen
class _Asked:
    """How what a run counted becomes figures of a work. `scale`: workgroups of the grid to each that ran; `subgroups`:
    those that ran; `local_lines`: of the arrays of function space that share the cache of a core."""

    device: Device
    sampled: SampledProgram
    sample: Sample
    scale: float
    subgroups: int
    local_lines: int

    def phase(self, row: Site) -> int:
        """Return the phase of a row."""
        return self.sampled.phases.get(row.site, 0)

    def sums(self, found: _Found, phases: int) -> list[dict[str, float]]:
        """Return the sums over the accesses of each of so many phases, by name."""
        sums = [dict.fromkeys(_TOTALS, 0.0) for _ in range(phases)]
        device, scale = self.device, self.scale
        width = device.line_bytes // device.sector_bytes
        for row in found.get(("storage", "load"), []):
            its, share = sums[self.phase(row)], self.sample.misses.get(row.site, _ALL_MISS).sectors
            its["load_lines"] += scale * row.global_lines
            its["ideal_load_lines"] += scale * _ideal_lines(row, width)
            its["missed_lines"] += scale * row.global_lines * share
            its["load_sectors"] += scale * row.global_sectors * share
            its["ideal_load_sectors"] += scale * min(row.global_ideal_sectors, row.global_sectors * share)
        for row in found.get(("storage", "store"), []):
            its, share = sums[self.phase(row)], _apart(row, self.sampled.store_runs, device)
            its["store_lines"] += scale * row.global_lines
            its["ideal_store_lines"] += scale * _ideal_lines(row, width)
            its["stored_lines"] += scale * row.global_lines * share
            its["store_sectors"] += scale * row.global_sectors * share
            its["ideal_store_sectors"] += scale * row.global_ideal_sectors
        for row in (row for kind in ("load", "store") for row in found.get(("workgroup", kind), [])):
            its = sums[self.phase(row)]
            its["wavefronts"] += scale * _wavefronts(row, row.shared_wavefronts)
            its["ideal_wavefronts"] += scale * _wavefronts(row, row.shared_ideal_wavefronts)
        for row in found.get(("workgroup", "atomic"), []):
            sums[self.phase(row)]["workgroup_atomic_turns"] += scale * _turns(row, self.sampled.used)
        return sums

    def waits(self, found: _Found, executed: ExecutedPhase) -> dict[str, Any]:
        """Return what is executed, and what its loads wait for: the fields of `Work` with these names."""
        passes = _passes([row for (_, kind), each in found.items() if kind == "load" for row in each])
        loads, steps = found.get(("storage", "load"), []), executed.chain.get("storage_load", 0.0) * self.subgroups
        return {
            "issued": {kind: self.scale * n for kind, n in executed.issued.items()},
            "chain": _with_passes(executed.chain, passes),
            "longest": _with_passes(executed.longest, passes),
            "local_lines": self.scale * _local_lines(executed.issued, self.local_lines, self.device),
            "delayed": _delayed(loads, self.sample, steps) if loads else 0.0,
        }


def _delayed(loads: list[Site], sample: Sample, steps: float) -> float:
    """Return the share of the steps of chains, so many in all, that wait for a sector that misses the core's cache.

    Loads of one variable that are waited for together go through it together, and miss in turn; those of different
    variables miss at the same time.
    """
    delayed = defaultdict[str | None, float](float)
    for row in loads:
        delayed[row.name] += row.global_requests * sample.misses.get(row.site, _ALL_MISS).executions
    mean = sum(delayed.values()) / max(1, sum(row.global_requests for row in loads))
    return min(1.0, max(mean, max(delayed.values(), default=0.0) / steps if steps else 0.0))


def _accesses(rows: Iterable[Site]) -> defaultdict[tuple[str | None, str], list[Site]]:
    """Return the rows that access memory, by space and kind."""
    found = defaultdict[tuple[str | None, str], list[Site]](list)
    for row in rows:
        if (kind := row.site.kind) in _ACCESSES:
            found[row.site.space, kind].append(row)
    return found


def _sampled(dispatch: Dispatch) -> SampledProgram:
    """Return the program that samples workgroups; those of a module are kept."""
    pipeline, how = dispatch.pipeline, dispatch.build_options(SAMPLED)
    how["workgroups_per_batch"] = 1
    several = dispatch.lanes > dispatch.device.subgroup_size

    def make() -> SampledProgram:
        made = draft(pipeline, **how)  # lowered once for the program and its costs, as lowering takes most of the time
        program = made.program()
        regions = region_costs(made.lowered, barriers=several)
        sites = made.lowered.sites.rows
        return SampledProgram(
            program,
            region_sums(regions),
            used_atomics(made.lowered),
            local_words(made.lowered.body),
            store_runs(made.lowered),
            {sites[site]: region.phase for region in reversed(regions) for site in region.sites if site >= 0},
            registers(made.lowered),
        )

    known = _PROGRAMS.setdefault(pipeline.module, {})
    return remember(known, (*program_key(pipeline, how), several), make, _MOST_PROGRAMS)


# ---- instructions ------------------------------------------------------------------------------------


def _local_lines(issued: Mapping[str, float], lines: int, device: Device) -> float:
    """Return the lines of stores to arrays of function space that the core's cache does not hold. `lines`: of all
    arrays that share it.

    An element of all lanes of a subgroup is a line, with all of its sectors. Arrays twice as large as the cache leave
    nothing in it, as all are used in turn. Loads mostly follow the stores that they need.
    """
    width = device.line_bytes // device.sector_bytes
    room = cache_lines(device, 1) * SECTORS_OF_LINE / width
    lost = min(1.0, max(0.0, lines / room - 1))
    return lost * (issued.get("local_store", 0.0) + issued.get("local_scattered_store", 0.0) / width)


def _shared(row: Site, sample: Sample) -> float:
    """Return the operations of a site that share a granule with one of the neighbouring workgroup."""
    found = sample.contention.get(row.name or "")
    return row.active_lanes * found.crossing if found else 0.0


def _words(row: Site) -> int:
    """Return the words that the active lanes of a site access."""
    return row.active_lanes * max(1, -(-row.site.bytes_per_lane // 4))


def _passes(loads: Iterable[Site]) -> tuple[float, float]:
    """Return the passes that a load takes after the first, on average: wavefronts and lines."""
    wavefronts = requests = lines = asked = 0
    for row in loads:
        wavefronts, requests = wavefronts + row.shared_wavefronts, requests + row.shared_requests
        lines, asked = lines + row.global_lines, asked + row.global_requests
    return max(0.0, wavefronts / max(1, requests) - 1), max(0.0, lines / max(1, asked) - 1)


def _with_passes(chain: Mapping[str, float], passes: tuple[float, float]) -> dict[str, float]:
    """Add the passes, after the first, that the loads of a chain wait for: wavefronts and lines."""
    wavefronts, lines = passes
    return {
        **chain,
        "wavefront": chain.get("workgroup_load", 0.0) * wavefronts,
        "line": chain.get("storage_load", 0.0) * lines,
    }


# ---- memory ------------------------------------------------------------------------------------------


def _wavefronts(row: Site, counted: int) -> int:
    """Stores of three components take twice the wavefronts: they are split (measured on an H200)."""
    return counted * (2 if row.kind == "store" and row.bytes_per_lane == 12 else 1)


def _ideal_lines(row: Site, sectors_per_line: int) -> float:
    requests = row.global_requests
    return min(row.global_lines, max(requests, row.global_ideal_sectors / sectors_per_line))


@frozen
class Memory:
    """Bytes of storage: see the fields of `Work` with these names."""

    footprint: float
    moved: float
    moved_again: float
    reach: float


def _apart(row: Site, runs: Mapping[SourceSite, int], device: Device) -> float:
    """Return the share of a site's stores that reach the L2 cache, where runs of stores reach it together.

    On an H200 these are half of them, for three and more stores to less than a sector.
    """
    together = runs.get(row.site, 0)
    return 0.5 if 3 * row.bytes_per_lane <= together < device.sector_bytes else 1.0


def _memory(dispatch: Dispatch, rows: list[Site], sample: Sample, scale: float) -> Memory:
    """Return the bytes of the distinct lines of storage that are accessed, at most, and those that device memory moves.

    It moves granules; and twice those to which parts of sectors are stored, as it reads their other parts first.
    Workgroups that share a granule are far apart where neighbours do not share it. From one of them to the next, all
    others between them access storage: that is the reach.
    """
    footprint = moved = again = far = 0.0
    grid, sector_bytes = prod(dispatch.grid), dispatch.device.sector_bytes
    found: list[tuple[float, float, float]] = []  # of a buffer: its bytes, new ones of a workgroup, how often they move
    for each in dispatch.bound:
        if each.variable.space == "storage":
            mine = [row for row in rows if row.site.variable == each.variable.name]
            spread = sample.spreads.get(each.variable.name, _PACKED)
            used = scale * sum(row.global_sectors for row in mine) * sector_bytes
            footprint += min(len(each.data), used * spread.lines)
            found.append((min(len(each.data), used * spread.granules), spread.new, _moves(mine, spread.covered)))
    for own, new, times in found:
        moved += own * times
        if new * grid > own > 0:
            between = own / new  # workgroups
            its = new * grid - own
            again += its
            far += its * sum(min(most, between * other) for most, other, _ in found)
    return Memory(footprint, moved, again, far / again if again else 0.0)


def _moves(rows: list[Site], covered: float) -> float:
    """Return how often device memory moves what these accesses need: twice if they store parts of sectors alone.

    `covered`: the share of these sectors that neighbouring workgroups access.
    """
    stores = any(row.global_sectors > row.global_ideal_sectors for row in rows if row.site.kind == "store")
    return 1 + (min(1.0, 2 * (1 - covered)) if stores else 0.0)


# ---- atomic operations -------------------------------------------------------------------------------


def _is_summed_up(row: Site, used: frozenset[SourceSite]) -> bool:
    """Whether the device combines the lanes of a subgroup first: all change one word, by a sum, or by a reduction whose
    results nothing needs."""
    kinds = _SUMS if row.site in used else _REDUCTIONS
    return row.site.name in kinds and row.atomic_turns >= _ALL_ALIKE * row.atomics


def _turns(row: Site, used: frozenset[SourceSite]) -> int:
    """Return how many operations in workgroup memory wait for one another."""
    requests = row.shared_requests
    return requests if _is_summed_up(row, used) else row.atomic_turns * _TURNS.get(row.site.name or "", 1)


def _storage_atomics(
    rows: list[Site], used: frozenset[SourceSite], sample: Sample, dispatch: Dispatch, scale: float
) -> tuple[float, float, float]:
    """Return the passes of sectors by atomic operations in storage, those of the busiest part of the L2 cache, and of
    these the ones of one word.

    A part serves some chunks, which are spread over the parts as by random numbers.
    """
    if not rows:
        return 0.0, 0.0, 0.0
    grid, sizes = prod(dispatch.grid), {bound.variable.name: len(bound.data) for bound in dispatch.bound}
    passes, again = defaultdict[str, float](float), 0.0
    for row in rows:
        count = scale * (row.global_requests if _is_summed_up(row, used) else row.global_sectors)
        passes[row.name or ""] += count
        again += count * (_TURNS.get(row.site.name or "", 1) - 1)
    squares = most = word_turns = 0.0
    for name, count in passes.items():
        its = sample.contention.get(name, Contention(0.0, 0.0, 0.0, 1.0, 0.0))
        apart, least = max(1.0, grid / 2) ** its.growth, 4 * CHUNK / max(4 * CHUNK, sizes.get(name, 0))
        squares += count * count * max(least, its.collisions / apart)
        most = max(most, count * max(least, its.busiest / apart))
        word_turns = max(word_turns, count * its.word / apart)
    total = sum(passes.values())
    turns = max(most, total / _PARTS + sqrt(2 * log(_PARTS) * squares / _PARTS))
    return total + again, turns, min(turns, word_turns)
