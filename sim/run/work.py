"""The work of a dispatch that ran: its program, its counters, and what two neighbouring workgroups load."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import log, prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.program import Program
from ..fast_dataclass import frozen
from ..models.device import Device
from ..models.time_model import Work
from .dispatch import Dispatch
from .program_work import Access, Accesses, program_work
from .region_sums import ExecutedPhase
from .site import Site
from .workgroup_sample import CHUNK, Contention, Misses, Sample, Spread, sample_workgroups

_ALL_MISS = Misses(1.0, 1.0)
_PACKED = Spread(1.0, 1.0, 0.0, 1.0)
_NO_CONTENTION = Contention(0.0, 0.0, 0.0, 1.0, 0.0)
_ALL_ALIKE = 0.98  # of the lanes of an atomic operation are on one word
_PARTS = 48  # of the L2 cache
# The fields of `Work` that are sums over accesses.
_SUMS_OVER_ACCESSES = (
    *("load_lines", "ideal_load_lines", "missed_lines", "load_sectors", "ideal_load_sectors"),
    *("store_lines", "ideal_store_lines", "stored_lines", "store_sectors", "ideal_store_sectors"),
    *("wavefronts", "ideal_wavefronts", "workgroup_atomic_turns"),
)


def work_of(dispatch: Dispatch, program: Program, rows: list[Site], blocks: NDArray[np.int64]) -> Work:
    """Return the work of a dispatch. `program`: what ran; `rows` and `blocks`: what that counted."""
    count, grid, device, known = dispatch.count, prod(dispatch.grid), dispatch.device, program_work(dispatch, program)
    sharing = min(known.resident, -(-grid // (device.cores or 1)))
    turning = [each for each in known.whole.atomics if rows[each.row].atomic_turns]
    changed = frozenset([each.variable or "" for each in turning])
    sample = sample_workgroups(dispatch, known.sampler, sharing, changed) if grid else Sample({}, {}, {})
    scale = grid / max(1, count)
    executed = known.sums.of(blocks, count, known.subgroups, dispatch.lanes, scale)
    run = _CountedRun(device, rows, sample, scale, count * known.subgroups, known.lost_lines(sharing))
    footprint, reach, moves = _memory(dispatch, known.by_variable, run)
    same: dict[str, Any] = {  # in the work of each phase
        "workgroups": grid,
        "subgroups": known.subgroups,
        "registers": known.registers,
        "resident": known.resident,
        "footprint": footprint,
        "reach": reach,
        "missed": run.missed(known.whole.loads),
        "software": executed.software,
        "software_chain": executed.software_chain,
        "lanes": {name: scale * run.words(its) for name, its in known.by_kind.items()},
        "shared_atomics": scale * sum([run.crossing(each) for each in turning]),
    }
    parts = [run.of_phase(its, each) for its, each in zip(known.phases, executed.phases, strict=True)]
    turns = _storage_atomics(dispatch, turning, run)
    if len(parts) == 1:
        return Work(**same, **moves, **turns, **parts[0])
    sums = {name: sum([each[name] for each in parts]) for name in _SUMS_OVER_ACCESSES}
    waits = run.executed(known.whole, ExecutedPhase.sum(executed.phases))
    moved = _divided(moves, [run.sectors(its.all) for its in known.phases])
    numbers = range(len(parts))
    turned = _divided(turns, [run.sectors([each for each in turning if each.phase == phase]) for phase in numbers])
    phases = tuple([Work(**same, **moved[phase], **turned[phase], **parts[phase]) for phase in numbers])
    return Work(**same, **moves, **turns, **sums, **waits, phases=phases)


def _divided(figures: Mapping[str, float], sectors: Sequence[int]) -> list[dict[str, float]]:
    """Divide figures of a dispatch among its phases by the sectors that each accesses."""
    total = max(1, sum(sectors))
    return [{name: figure * (each / total) for name, figure in figures.items()} for each in sectors]


@frozen
class _CountedRun:
    """What a run counted, as figures of a work. `scale`: workgroups of the grid to each that ran; `subgroups`:
    those that ran; `lost`: the share of lines of arrays of function space that the cache of a core does not hold."""

    device: Device
    rows: list[Site]
    sample: Sample
    scale: float
    subgroups: int
    lost: float

    def of_phase(self, accesses: Accesses, executed: ExecutedPhase) -> dict[str, Any]:
        """Return the fields of the work of a phase that are its own: sums over its accesses, and what it executes."""
        sums, rows, scale, misses = dict.fromkeys(_SUMS_OVER_ACCESSES, 0.0), self.rows, self.scale, self.sample.misses
        width = self.device.line_bytes // self.device.sector_bytes
        for each in accesses.loads:
            row, share = rows[each.row], misses.get(each.sampled, _ALL_MISS).sectors
            sums["load_lines"] += scale * row.global_lines
            sums["ideal_load_lines"] += scale * _ideal_lines(row, width)
            sums["missed_lines"] += scale * row.global_lines * share
            sums["load_sectors"] += scale * row.global_sectors * share
            sums["ideal_load_sectors"] += scale * min(row.global_ideal_sectors, row.global_sectors * share)
        for each in accesses.stores:
            row, share = rows[each.row], each.l2_share
            sums["store_lines"] += scale * row.global_lines
            sums["ideal_store_lines"] += scale * _ideal_lines(row, width)
            sums["stored_lines"] += scale * row.global_lines * share
            sums["store_sectors"] += scale * row.global_sectors * share
            sums["ideal_store_sectors"] += scale * row.global_ideal_sectors
        for each in accesses.shared:
            row = rows[each.row]
            sums["wavefronts"] += scale * (row.shared_wavefronts * each.passes)
            sums["ideal_wavefronts"] += scale * (row.shared_ideal_wavefronts * each.passes)
        for each in accesses.shared_atomics:
            row = rows[each.row]
            turns = row.shared_requests if _is_summed_up(each, row) else row.atomic_turns * each.turns
            sums["workgroup_atomic_turns"] += scale * turns
        return sums | self.executed(accesses, executed)

    def executed(self, accesses: Accesses, executed: ExecutedPhase) -> dict[str, Any]:
        """Return what is executed, and what its loads wait for: the fields of `Work` with these names."""
        issued, passes = executed.issued, self._passes(accesses.all_loads)
        width = self.device.line_bytes // self.device.sector_bytes
        local = issued.get("local_store", 0.0) + issued.get("local_scattered_store", 0.0) / width
        return {
            "issued": issued,
            "chain": _with_passes(executed.chain, passes),
            "longest": _with_passes(executed.longest, passes),
            "local_lines": self.lost * local,
            "delayed": self._delayed(accesses.loads, executed.chain.get("storage_load", 0.0) * self.subgroups),
        }

    def _passes(self, loads: Sequence[Access]) -> tuple[float, float]:
        """Return the passes that a load takes after the first, on average: wavefronts and lines."""
        if not loads:
            return 0.0, 0.0
        wavefronts = requests = lines = asked = 0
        for each in loads:
            row = self.rows[each.row]
            wavefronts, requests = wavefronts + row.shared_wavefronts, requests + row.shared_requests
            lines, asked = lines + row.global_lines, asked + row.global_requests
        return max(0.0, wavefronts / max(1, requests) - 1), max(0.0, lines / max(1, asked) - 1)

    def _delayed(self, loads: Sequence[Access], steps: float) -> float:
        """Return the share of the steps of chains, so many in all, that wait for a sector that misses the core's cache.

        Loads of one variable that are waited for together go through it together, and miss in turn; those of different
        variables miss at the same time.
        """
        if not loads:
            return 0.0
        delayed, requests = defaultdict[str | None, float](float), 0
        for each in loads:
            its = self.rows[each.row].global_requests
            delayed[each.variable] += its * self.sample.misses.get(each.sampled, _ALL_MISS).executions
            requests += its
        mean, most = sum(delayed.values()) / max(1, requests), max(delayed.values())
        return min(1.0, max(mean, most / steps if steps else 0.0))

    def sectors(self, accesses: Sequence[Access]) -> int:
        """Return the sectors of storage that accesses touch."""
        return sum([self.rows[each.row].global_sectors for each in accesses])

    def missed(self, loads: Sequence[Access]) -> float:
        """Return the share of the sectors of loads that the core's cache does not hold."""
        misses = self.sample.misses
        missed = [self.rows[each.row].global_sectors * misses.get(each.sampled, _ALL_MISS).sectors for each in loads]
        return sum(missed) / max(1, self.sectors(loads))

    def words(self, accesses: Sequence[Access]) -> int:
        """Return the words that the active lanes of accesses access."""
        return sum([self.rows[each.row].active_lanes * each.words for each in accesses])

    def crossing(self, atomic: Access) -> float:
        """Return the operations of a place that share a granule with one of the neighbouring workgroup."""
        found = self.sample.contention.get(atomic.variable or "")
        return self.rows[atomic.row].active_lanes * found.crossing if found else 0.0


def _with_passes(chain: Mapping[str, float], passes: tuple[float, float]) -> dict[str, float]:
    """Add the passes, after the first, that the loads of a chain wait for: wavefronts and lines."""
    wavefronts, lines = passes
    return {
        **chain,
        "wavefront": chain.get("workgroup_load", 0.0) * wavefronts,
        "line": chain.get("storage_load", 0.0) * lines,
    }


def _ideal_lines(row: Site, sectors_per_line: int) -> float:
    requests = row.global_requests
    return min(row.global_lines, max(requests, row.global_ideal_sectors / sectors_per_line))


# ---- memory ------------------------------------------------------------------------------------------


def _memory(
    dispatch: Dispatch, accesses: Mapping[str | None, list[Access]], run: _CountedRun
) -> tuple[float, float, dict[str, float]]:
    """Return the bytes of the distinct lines of storage that are accessed, at most, the reach, and the bytes that
    device memory moves. `accesses`: of storage, by variable.

    It moves granules; and twice those to which parts of sectors are stored, as it reads their other parts first.
    Workgroups that share a granule are far apart where neighbours do not share it. From one of them to the next, all
    others between them access storage: that is the reach.
    """
    footprint = moved = again = far = 0.0
    grid, sector_bytes = prod(dispatch.grid), dispatch.device.sector_bytes
    found: list[tuple[float, float, float]] = []  # of a buffer: its bytes, new ones of a workgroup, how often they move
    for each in dispatch.bound:
        if each.variable.space == "storage":
            mine, size = accesses.get(each.variable.name, []), len(each.data)
            spread = run.sample.spreads.get(each.variable.name, _PACKED)
            used = run.scale * run.sectors(mine) * sector_bytes
            footprint += min(size, used * spread.lines)
            times = _moves(mine, run.rows, spread.covered)
            found.append((min(size, used * spread.granules), spread.new, times))
    for own, new, times in found:
        moved += own * times
        if new * grid > own > 0:
            between = own / new  # workgroups
            its = new * grid - own
            again += its
            far += its * sum([min(most, between * other) for most, other, _ in found])
    return footprint, far / again if again else 0.0, {"moved": moved, "moved_again": again}


def _moves(accesses: Sequence[Access], rows: list[Site], covered: float) -> float:
    """Return how often device memory moves what accesses need: twice if they store parts of sectors alone.

    `covered`: the share of these sectors that neighbouring workgroups access.
    """
    stores = [rows[each.row] for each in accesses if each.kind == "store"]
    is_partial = any([row.global_sectors > row.global_ideal_sectors for row in stores])
    return 1 + (min(1.0, 2 * (1 - covered)) if is_partial else 0.0)


# ---- atomic operations -------------------------------------------------------------------------------


def _is_summed_up(access: Access, row: Site) -> bool:
    """Whether the device combines the lanes of a subgroup first: all change one word, by a sum, or by a reduction whose
    results nothing needs."""
    return access.combines and row.atomic_turns >= _ALL_ALIKE * row.atomics


def _storage_atomics(dispatch: Dispatch, accesses: Sequence[Access], run: _CountedRun) -> dict[str, float]:
    """Return the passes of sectors by atomic operations in storage, those of the busiest part of the L2 cache, and of
    these the ones of one word: the fields of `Work` with these names.

    A part serves some chunks, which are spread over the parts as by random numbers.
    """
    if not accesses:
        return {"atomic_sectors": 0.0, "atomic_turns": 0.0, "atomic_word_turns": 0.0}
    grid, sizes = prod(dispatch.grid), {bound.variable.name: len(bound.data) for bound in dispatch.bound}
    passes, again = defaultdict[str, float](float), 0.0
    for each in accesses:
        row = run.rows[each.row]
        count = run.scale * (row.global_requests if _is_summed_up(each, row) else row.global_sectors)
        passes[each.variable or ""] += count
        again += count * (each.turns - 1)
    squares = most = word_turns = 0.0
    for name, count in passes.items():
        its = run.sample.contention.get(name, _NO_CONTENTION)
        growth, least = max(1.0, grid / 2) ** its.growth, 4 * CHUNK / max(4 * CHUNK, sizes.get(name, 0))
        squares += count * count * max(least, its.collisions / growth)
        most = max(most, count * max(least, its.busiest / growth))
        word_turns = max(word_turns, count * its.word / growth)
    total = sum(passes.values())
    turns = max(most, total / _PARTS + sqrt(2 * log(_PARTS) * squares / _PARTS))
    return {"atomic_sectors": total + again, "atomic_turns": turns, "atomic_word_turns": min(turns, word_turns)}
