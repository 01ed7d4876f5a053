"""The work of a dispatch that ran: its program, its counters, and what two neighbouring workgroups load."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from math import log, prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.program import Program
from ..fast_dataclass import frozen
from ..models.device import Device
from ..models.work import Work
from .atomic_contention import Contention, largest_stripe
from .dispatch import Dispatch
from .program_work import Access, Accesses, program_work
from .region_sums import ExecutedPhase
from .site import Site
from .workgroup_sample import Misses, Sample, Spread, sample_workgroups
from .workgroup_schedule import differing, unevenness

_ALL_MISS = Misses(1.0, 1.0)
_PACKED = Spread(1.0, 1.0, 0.0, 0.0, 1.0)
_NO_CONTENTION = Contention(0.0, 0.0, 0.0, 1.0, 0.0)
# Lines that the cache of a core looks up in the time of a wavefront, and the wavefronts that the first one takes more:
# on an H200, 32 lines take 8.7, and 17 take 5.
_LINES_OF_WAVEFRONT, _FIRST_LINE = 4, 0.75
_ALL_ALIKE = 0.98  # of the lanes of an atomic operation are on one word
_PARTS = 96  # of the L2 cache: 1 in 100 stripes of an H200 shares one with another
_PAGE = 1 << 21  # bytes
# Pages that are at hand; of a buffer with more, the square of that share. On an H200, loads at random places of 8, 16,
# 24, 32 and 64 MiB take 0.13, 0.68, 0.85, 0.95 and 1 of the time that pages can cost.
_PAGES_AT_HAND = 3.6
_AROUND_CACHE = 6  # how steep the step is at the size of a core's cache; 3 and 12 predict sparse rows as well
# The fields of `Work` that are sums over accesses.
_SUMS_OVER_ACCESSES = (
    *("load_lines", "ideal_load_lines", "load_wavefronts", "ideal_load_wavefronts"),
    *("missed_lines", "load_sectors", "ideal_load_sectors", "page_turns"),
    *("store_lines", "ideal_store_lines", "stored_lines", "store_sectors", "ideal_store_sectors"),
    *("wavefronts", "ideal_wavefronts", "workgroup_atomic_turns"),
)


def work_of(
    dispatch: Dispatch,
    program: Program,
    rows: list[Site],
    blocks: NDArray[np.int64],
    executed_by_each: NDArray[np.int64] | None = None,
) -> Work:
    """Return the work of a dispatch. `program`: what ran; `rows`, `blocks` and `executed_by_each`: what that counted.
    Without `executed_by_each`, all workgroups execute the same."""
    count, grid, device, known = dispatch.count, prod(dispatch.grid), dispatch.device, program_work(dispatch, program)
    sharing = min(known.resident, -(-grid // (device.cores or 1)))
    if executed_by_each is not None:
        executed_by_each = differing(executed_by_each, grid)
    turning = [each for each in known.whole.atomics if rows[each.row].atomic_turns]
    changed = frozenset([each.variable or "" for each in turning])
    sample = Sample({}, 0.0, {}, {})
    if grid:
        sample = sample_workgroups(dispatch, known.sampler, sharing, changed, executed_by_each)
    scale = grid / max(1, count)
    executed = known.sums.of(blocks, count, known.subgroups, dispatch.lanes, scale)
    used = _used(dispatch, known.by_variable, rows, sample, scale)
    footprint, reach, moves = _memory(used, grid)
    loads = _loads(known.whole.all_loads, rows, sample, _kept(used, grid, device, known.room), _far(dispatch))
    run = _CountedRun(device, rows, sample, scale, known.lost_lines(sharing), loads)
    same: dict[str, Any] = {  # in the work of each phase
        "workgroups": grid,
        "subgroups": known.subgroups,
        "registers": known.registers,
        "resident": known.resident,
        "unevenness": unevenness(executed_by_each, grid, device.cores, known.resident),
        "footprint": footprint,
        "reach": reach,
        "missed": run.missed(known.whole.loads),
        "reloaded": _reloaded(used, sample),
        "software": executed.software,
        "software_chain": executed.software_chain,
        "lanes": {name: scale * run.words(its) for name, its in known.by_kind.items()},
        "shared_atomics": scale * sum([run.crossing(each) for each in turning]),
    }
    runs = [replace(run, shares=each) if each else run for each in executed.shares]
    parts = [one.of_phase(its, each) for one, its, each in zip(runs, known.phases, executed.phases, strict=True)]
    turns = _storage_atomics(dispatch, turning, run)
    if len(parts) == 1:
        return Work(**same, **moves, **turns, **parts[0])
    sums = {name: sum([each[name] for each in parts]) for name in _SUMS_OVER_ACCESSES}
    waits = run.executed(known.whole, ExecutedPhase.sum(executed.phases))
    moved = _divided(moves, [one.sectors(its.all) for one, its in zip(runs, known.phases, strict=True)])
    its = [[each for each in turning if phase in each.phases] for phase in range(len(parts))]
    turned = _divided(turns, [one.sectors(each) for one, each in zip(runs, its, strict=True)])
    own = zip(moved, turned, parts, strict=True)
    phases = tuple([Work(**same, **its_moves, **its_turns, **part) for its_moves, its_turns, part in own])
    return Work(**same, **moves, **turns, **sums, **waits, phases=phases)


def _divided(figures: Mapping[str, float], sectors: Sequence[float]) -> list[dict[str, float]]:
    """Divide figures of a dispatch among its phases by the sectors that each accesses."""
    total = max(1, sum(sectors))
    return [{name: figure * (each / total) for name, figure in figures.items()} for each in sectors]


@frozen
class _Load:
    """What a load asks of the cache of a core. `sectors` and `executions`: the shares that it does not serve, as of
    `Misses`; `page_turns`: of its sectors, those that wait for a page; `wavefronts`: those in the cache."""

    sectors: float
    executions: float
    page_turns: float
    wavefronts: float


def _loads(
    loads: Sequence[Access],
    rows: list[Site],
    sample: Sample,
    kept: Mapping[str | None, float],
    far: Mapping[str, float],
) -> dict[int, _Load]:
    """Return what each load asks of the cache of a core, by its row. `kept`: of the sectors of a buffer, those that the
    cache keeps for later workgroups; `far`: of its pages, those that are not at hand.

    The cache has the banks of workgroup memory, and looks up some lines in the time of a wavefront.
    """
    found: dict[int, _Load] = {}
    for each in loads:
        row, sampled = rows[each.row], sample.misses.get(each.sampled, _ALL_MISS)
        sectors, executions, share = sampled.sectors, sampled.executions, kept.get(each.variable, 0.0)
        if share and executions:
            together = row.global_sectors * sectors / max(1, row.global_requests * executions)
            sectors *= 1 - share
            executions *= 1 - share ** max(1.0, together)  # they wait for one of the sectors that it misses
        looked_up = row.global_lines / _LINES_OF_WAVEFRONT + _FIRST_LINE * row.global_requests
        wavefronts = max(looked_up, row.global_lines * sampled.wavefronts)
        page_turns = sectors * sampled.page_changes * far.get(each.variable or "", 0.0)
        found[each.row] = _Load(sectors, executions, page_turns, wavefronts)
    return found


@frozen
class _CountedRun:
    """What a run counted, as figures of a work.

    `scale`: workgroups of the grid to each that ran. `lost`: the share of lines of arrays of function space that the
    cache of a core does not hold. `loads`: by their rows. `shares`: of the executions of sites in several phases, by
    their numbers, those that count here.
    """

    device: Device
    rows: list[Site]
    sample: Sample
    scale: float
    lost: float
    loads: Mapping[int, _Load] = field(hash=False)
    shares: Mapping[int, float] = field(default_factory=dict[int, float], hash=False)

    def share(self, access: Access) -> float:
        """Return the share of the executions of an access that counts here."""
        return self.shares.get(access.sampled, 1.0)

    def of_phase(self, accesses: Accesses, executed: ExecutedPhase) -> dict[str, Any]:
        """Return the fields of the work of a phase that are its own: sums over its accesses, and what it executes."""
        sums, rows = dict.fromkeys(_SUMS_OVER_ACCESSES, 0.0), self.rows
        width = self.device.line_bytes // self.device.sector_bytes
        for each in accesses.loads:
            row, load, scale = rows[each.row], self.loads[each.row], self.scale * self.share(each)
            share, wavefronts, ideal = load.sectors, load.wavefronts, _ideal_lines(row, width)
            sums["load_lines"] += scale * row.global_lines
            sums["ideal_load_lines"] += scale * ideal
            sums["load_wavefronts"] += scale * wavefronts
            sums["ideal_load_wavefronts"] += scale * min(ideal, wavefronts)
            sums["missed_lines"] += scale * row.global_lines * share
            sums["load_sectors"] += scale * row.global_sectors * share
            sums["ideal_load_sectors"] += scale * min(row.global_ideal_sectors, row.global_sectors * share)
            sums["page_turns"] += scale * row.global_sectors * load.page_turns
        for each in accesses.stores:
            row, scale, share = rows[each.row], self.scale * self.share(each), each.l2_share
            sums["store_lines"] += scale * row.global_lines
            sums["ideal_store_lines"] += scale * _ideal_lines(row, width)
            sums["stored_lines"] += scale * row.global_lines * share
            sums["store_sectors"] += scale * row.global_sectors * share
            sums["ideal_store_sectors"] += scale * row.global_ideal_sectors
        for each in accesses.shared:
            row, scale = rows[each.row], self.scale * self.share(each)
            sums["wavefronts"] += scale * (row.shared_wavefronts * each.passes)
            sums["ideal_wavefronts"] += scale * (row.shared_ideal_wavefronts * each.passes)
        for each in accesses.shared_atomics:
            row, scale = rows[each.row], self.scale * self.share(each)
            turns = row.shared_requests if _is_summed_up(each, row) else row.atomic_turns * each.turns
            sums["workgroup_atomic_turns"] += scale * turns
        return sums | self.executed(accesses, executed)

    def executed(self, accesses: Accesses, executed: ExecutedPhase) -> dict[str, Any]:
        """Return what is executed, and what its loads wait for: the fields of `Work` with these names."""
        issued, passes = executed.issued, self._passes(accesses.all_loads)
        width = self.device.line_bytes // self.device.sector_bytes
        stored = issued.get("local_store", 0.0) + issued.get("local_fill", 0.0)
        stored += issued.get("local_scattered_store", 0.0) / width
        loaded = width * issued.get("local", 0.0) + issued.get("local_scattered", 0.0)
        return {
            "issued": issued,
            "code": executed.code,
            "chain": _with_passes(executed.chain, passes),
            "longest": _with_passes(executed.longest, passes),
            "local_lines": stored,
            "missed_local_sectors": self.lost * loaded,
            "delayed": self._delayed(accesses.loads, executed.steps.get("storage_load", 0.0) / self.scale),
        }

    def _passes(self, loads: Sequence[Access]) -> tuple[float, float]:
        """Return the wavefronts that a load takes after the first, on average: in workgroup memory and in storage."""
        if not loads:
            return 0.0, 0.0
        wavefronts = requests = storage = asked = 0.0
        for each in loads:
            row, share = self.rows[each.row], self.share(each)
            wavefronts, requests = wavefronts + share * row.shared_wavefronts, requests + share * row.shared_requests
            storage, asked = storage + share * self.loads[each.row].wavefronts, asked + share * row.global_requests
        return max(0.0, wavefronts / max(1, requests) - 1), max(0.0, storage / max(1, asked) - 1)

    def _delayed(self, loads: Sequence[Access], steps: float) -> float:
        """Return the share of the steps of subgroups, so many in all, that wait for a sector that misses the core's
        cache.

        Loads of one variable that are waited for together go through it together, and miss in turn; those of different
        variables miss at the same time.
        """
        if not loads:
            return 0.0
        delayed, requests = defaultdict[str | None, float](float), 0.0
        for each in loads:
            its = self.share(each) * self.rows[each.row].global_requests
            delayed[each.variable] += its * self.loads[each.row].executions
            requests += its
        mean, most = sum(delayed.values()) / max(1, requests), max(delayed.values())
        return min(1.0, max(mean, most / steps if steps else 0.0))

    def sectors(self, accesses: Sequence[Access]) -> float:
        """Return the sectors of storage that accesses touch."""
        return sum([self.share(each) * self.rows[each.row].global_sectors for each in accesses])

    def missed(self, loads: Sequence[Access]) -> float:
        """Return the share of the sectors of loads that the core's cache does not hold."""
        missed = [self.rows[each.row].global_sectors * self.loads[each.row].sectors for each in loads]
        return sum(missed) / max(1, self.sectors(loads))

    def words(self, accesses: Sequence[Access]) -> int:
        """Return the words that the active lanes of accesses access."""
        return sum([self.rows[each.row].active_lanes * each.words for each in accesses])

    def crossing(self, atomic: Access) -> float:
        """Return the operations of a place that share a granule with one of the neighbouring workgroup."""
        found = self.sample.contention.get(atomic.variable or "")
        return self.rows[atomic.row].active_lanes * found.crossing if found else 0.0


def _with_passes(chain: Mapping[str, float], passes: tuple[float, float]) -> dict[str, float]:
    """Add the wavefronts, after the first, that the loads of a chain wait for: in workgroup memory and in storage."""
    wavefronts, storage = passes
    return {
        **chain,
        "wavefront": chain.get("workgroup_load", 0.0) * wavefronts,
        "storage_wavefront": (chain.get("storage_load", 0.0) + chain.get("next_load", 0.0)) * storage,
    }


def _ideal_lines(row: Site, sectors_per_line: int) -> float:
    requests = row.global_requests
    return min(row.global_lines, max(requests, row.global_ideal_sectors / sectors_per_line))


# ---- memory ------------------------------------------------------------------------------------------


@frozen
class _Used:
    """What a dispatch accesses of a buffer, in bytes. `lines`: of distinct lines, at most; `own`: of distinct granules,
    likewise; `new`: of granules that a workgroup accesses and its neighbour does not. `moves`: how often device memory
    moves them. `loaded`: the dispatch loads from it."""

    name: str
    lines: float
    own: float
    new: float
    moves: float
    loaded: bool


def _used(
    dispatch: Dispatch, accesses: Mapping[str | None, list[Access]], rows: list[Site], sample: Sample, scale: float
) -> list[_Used]:
    """Return what a dispatch accesses of each buffer. `accesses`: of storage, by variable."""
    found: list[_Used] = []
    for each in dispatch.bound:
        if each.variable.space == "storage":
            name, size = each.variable.name, len(each.data)
            mine, spread = accesses.get(name, []), sample.spreads.get(name, _PACKED)
            sectors = scale * sum([rows[access.row].global_sectors for access in mine]) * dispatch.device.sector_bytes
            lines, own = min(size, sectors * spread.lines), min(size, sectors * spread.granules)
            loaded = any([access.kind == "load" for access in mine])
            found.append(_Used(name, lines, own, spread.new, _moves(mine, rows, spread.covered), loaded))
    return found


def _memory(used: Sequence[_Used], grid: int) -> tuple[float, float, dict[str, float]]:
    """Return the bytes of the distinct lines of storage that are accessed, at most, the reach, and the bytes that
    device memory moves.

    It moves granules; and twice those to which parts of sectors are stored, as it reads their other parts first.
    Workgroups that share a granule are far apart where neighbours do not share it. From one of them to the next, all
    others between them access storage: that is the reach.
    """
    moved = again = far = 0.0
    for each in used:
        moved += each.own * each.moves
        if each.new * grid > each.own > 0:
            its = each.new * grid - each.own
            again += its
            far += its * _between(each, used)
    footprint = sum([each.lines for each in used])
    return footprint, far / again if again else 0.0, {"moved": moved, "moved_again": again}


def _reloaded(used: Sequence[_Used], sample: Sample) -> float:
    """Return the share of what a workgroup misses in the cache of its core that it has loaded before."""
    loaded = [sample.spreads[each.name].own for each in used if each.loaded and each.name in sample.spreads]
    return 1 - min(1.0, sum(loaded) / max(1.0, sample.missed))


def _between(one: _Used, used: Sequence[_Used]) -> float:
    """Return the bytes that are accessed from a workgroup that accesses a granule of a buffer to the next that does."""
    workgroups = one.own / one.new
    return sum([min(each.own, workgroups * each.new) for each in used])


def _kept(used: Sequence[_Used], grid: int, device: Device, room: float) -> dict[str | None, float]:
    """Return the share of the sectors of each buffer that the cache of a core keeps for a later workgroup, though not
    for the next: of the vector that all rows of a matrix are multiplied by, for example. `room`: lines of that cache.

    The workgroups of a core load it again and again, if they load more than it has; all but the first time, the cache
    has what was loaded since.
    """
    loaded = [each for each in used if each.loaded]
    cores, cache = device.cores or 1, room * device.line_bytes
    shares = dict[str | None, float]()
    for each in loaded:
        loads = each.new * grid / cores
        if loads > each.own > 0:
            fits = 1 / (1 + (_between(each, loaded) / cache) ** _AROUND_CACHE)
            shares[each.name] = (1 - each.own / loads) * fits
    return shares


def _far(dispatch: Dispatch) -> dict[str, float]:
    """Return the share of the pages of each buffer that are not at hand."""
    sizes = {each.variable.name: len(each.data) for each in dispatch.bound}
    return {name: max(0.0, 1 - (_PAGES_AT_HAND * _PAGE / max(1, size)) ** 2) for name, size in sizes.items()}


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

    A part serves some stripes, which are spread over the parts as by random numbers.
    """
    if not accesses:
        return {"atomic_sectors": 0.0, "atomic_turns": 0.0, "atomic_word_turns": 0.0}
    grid, sizes = prod(dispatch.grid), {bound.variable.name: len(bound.data) for bound in dispatch.bound}
    passes, turns = defaultdict[str, float](float), defaultdict[str, float](float)
    for each in accesses:
        row = run.rows[each.row]
        count = run.scale * (row.global_requests if _is_summed_up(each, row) else row.global_sectors)
        alike = (row.atomic_turns - row.global_requests) / max(1, row.atomics - row.global_requests)
        passes[each.variable or ""] += count
        turns[each.variable or ""] += count * (1 + (each.turns - 1) * (1 - alike))
    squares = most = word_turns = 0.0
    for name, count in passes.items():
        if not count:
            continue
        its = run.sample.contention.get(name, _NO_CONTENTION)
        growth, least = max(1.0, grid / 2) ** its.apart, largest_stripe(sizes[name]) if name in sizes else 1.0
        of_word = count * its.word / growth
        squares += turns[name] ** 2 * max(least, its.collisions / growth)
        others = max(0.0, count * max(least, its.busiest / growth) - of_word)
        most = max(most, of_word + others * turns[name] / count)
        word_turns = max(word_turns, of_word)
    total = sum(turns.values())
    busiest = max(most, total / _PARTS + sqrt(2 * log(_PARTS) * squares / _PARTS))
    return {"atomic_sectors": total, "atomic_turns": busiest, "atomic_word_turns": min(busiest, word_turns)}
