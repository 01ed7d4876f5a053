"""The work of a dispatch that ran: its program, its counters, and what two neighbouring workgroups load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import log2, prod

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import lowered
from ..fast_dataclass import frozen
from ..launch.device_memory import DeviceMemory
from ..launch.launch import Launch
from ..machine import layout as at
from ..models.occupancy import occupancy
from ..models.time_model import Work
from ..performance.chains import RegionCosts, region_costs
from .dispatch import Dispatch
from .site import Site, site_counters

_REDUCTIONS = frozenset(f"atomic{name}" for name in ("Add", "Sub", "Max", "Min", "And", "Or", "Xor"))
_ALL_ALIKE = 0.98  # of the lanes of an atomic operation are on one word
_TURNS = {"atomicCompareExchangeWeak": 2}


@frozen
class Reach:
    """What a workgroup accesses of one buffer: sectors requested by its loads, and distinct ones."""

    requested: int
    sectors: int
    lines: int
    growth: float  # from one workgroup to two, of distinct words: 0 the same ones, 1 twice as many


def work_of(
    dispatch: Dispatch, probes: frozenset[str], sites: Iterable[Site], blocks: NDArray[np.int64], count: int
) -> Work:
    """Return the work of a dispatch.

    `sites` and `blocks`: what a run with these probes counted of `count` workgroups.
    """
    rows, grid, device = list(sites), prod(dispatch.grid), dispatch.device
    scale = grid / max(1, count)
    subgroups = -(-dispatch.lanes // device.subgroup_size)
    issued, chain = _executed(dispatch, probes, blocks, count)
    reach = _reach(dispatch) if grid else {}
    loads = [row for row in rows if row.space == "storage" and row.kind == "load"]
    stores = [row for row in rows if row.space == "storage" and row.kind == "store"]
    atomics = [row for row in rows if row.kind == "atomic" and row.atomic_turns]
    plain = [row for row in rows if row.kind in ("load", "store")]
    missing = {name: min(1.0, each.sectors / each.requested) for name, each in reach.items() if each.requested}
    requested = scale * sum(row.global_sectors for row in loads)
    missed = scale * sum(row.global_sectors * missing.get(row.name or "", 1.0) for row in loads)
    ideal = scale * sum(
        min(row.global_ideal_sectors, row.global_sectors * missing.get(row.name or "", 1.0)) for row in loads
    )
    passes, turns = _storage_atomics(atomics, reach, dispatch)
    width = device.line_bytes // device.sector_bytes
    return Work(
        workgroups=grid,
        subgroups=subgroups,
        resident=max(1, occupancy(device, dispatch.lanes, dispatch.pipeline.workgroup_bytes).workgroups),
        issued={kind: scale * n for kind, n in issued.items()},
        chain=chain,
        wavefronts=scale * sum(_wavefronts(row, row.shared_wavefronts) for row in plain),
        ideal_wavefronts=scale * sum(_wavefronts(row, row.shared_ideal_wavefronts) for row in plain),
        load_lines=scale * sum(row.global_lines for row in loads),
        ideal_load_lines=scale * sum(_ideal_lines(row, width) for row in loads),
        store_lines=scale * sum(row.global_lines for row in stores),
        ideal_store_lines=scale * sum(_ideal_lines(row, width) for row in stores),
        load_sectors=missed,
        ideal_load_sectors=ideal,
        store_sectors=scale * sum(row.global_sectors for row in stores),
        ideal_store_sectors=scale * sum(row.global_ideal_sectors for row in stores),
        footprint=_footprint(dispatch, rows, scale),
        missed=missed / requested if requested else 0.0,
        atomic_sectors=scale * passes,
        atomic_turns=scale * turns,
        workgroup_atomic_turns=scale * sum(_turns(row) for row in atomics if row.space == "workgroup"),
    )


# ---- instructions ------------------------------------------------------------------------------------


def _executed(
    dispatch: Dispatch, probes: frozenset[str], blocks: NDArray[np.int64], count: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the instructions that all workgroups issued, and the chain of one of them."""
    regions = region_costs(lowered(dispatch.pipeline, **dispatch.build_options(probes)))
    subgroups = -(-dispatch.lanes // dispatch.device.subgroup_size)
    issued, chain = dict[str, float](), dict[str, float]()
    visits: dict[int, tuple[float, float]] = {}
    for region in regions:
        times, once = visits[id(region)] = _visits(region, blocks, visits, count * subgroups, count * dispatch.lanes)
        for kind, number in (region.issued | Counter(loop=int(region.iterates))).items():
            issued[kind] = issued.get(kind, 0.0) + number * times
        for step, steps in region.chain.items():
            chain[step] = chain.get(step, 0.0) + steps * once
    return {kind: n for kind, n in issued.items() if n}, {step: n for step, n in chain.items() if n}


def _visits(
    region: RegionCosts,
    blocks: NDArray[np.int64],
    known: Mapping[int, tuple[float, float]],
    subgroups: int,
    lanes: int,
) -> tuple[float, float]:
    """Return how often subgroups executed a region, and how often a workgroup did on average, with any subgroup."""
    if region.blocks:
        rows = blocks[region.blocks]
        return float(rows[:, at.EXECUTIONS].max()), float(rows[:, at.LAUNCHED].max()) / max(1, lanes)
    return (float(subgroups), 1.0) if region.parent is None else known[id(region.parent)]


# ---- memory ------------------------------------------------------------------------------------------


def _wavefronts(row: Site, counted: int) -> int:
    """Stores of three components take twice the wavefronts: they are split (measured on an H200)."""
    return counted * (2 if row.kind == "store" and row.bytes_per_lane == 12 else 1)


def _ideal_lines(row: Site, sectors_per_line: int) -> float:
    requests = row.global_requests
    return min(row.global_lines, max(requests, row.global_ideal_sectors / sectors_per_line))


def _footprint(dispatch: Dispatch, rows: list[Site], scale: float) -> float:
    """Return the distinct bytes of storage that are accessed, at most."""
    total = 0.0
    for bound in dispatch.bound:
        if bound.variable.space == "storage":
            name = bound.variable.name
            sectors = scale * sum(row.global_sectors for row in rows if row.name == name)
            total += min(len(bound.data), sectors * dispatch.device.sector_bytes)
    return total


def _reach(dispatch: Dispatch) -> dict[str, Reach]:
    """Run two neighbouring workgroups in the middle of the grid, and return what the first accesses."""
    last = prod(dispatch.grid) - 1
    middle = (last + 1) // 2
    launch, requested = _touched(dispatch, middle)
    first = launch.touched_words()
    second = _touched(dispatch, min(middle + 1, last), launch.device_memory)[0].touched_words()
    sector, line = dispatch.device.sector_bytes // 4, dispatch.device.line_bytes // 4
    return {
        name: Reach(
            requested.get(name, 0),
            len(np.unique(words // sector)),
            len(np.unique(words // line)),
            log2(max(1.0, len(np.union1d(words, second[name])) / max(1, len(words)))),
        )
        for name, words in first.items()
    }


def _touched(dispatch: Dispatch, number: int, memory: DeviceMemory | None = None) -> tuple[Launch, dict[str, int]]:
    """Run a workgroup. Returns the launch, and the sectors that the workgroup's loads request by buffer."""
    how = replace(dispatch.how, chosen=np.array([number]), threads=1, trace=None)
    program = dispatch.with_(how=how).program(frozenset(("touched", "sectors", "lanes")), how)
    launch = Launch(program, dispatch.bound, dispatch.grid, dispatch.device, how, memory)
    outcome = launch.run()
    size = dispatch.device.subgroup_size
    requested: Counter[str] = Counter()
    for row in site_counters(launch.program, outcome.blocks, outcome.tallies, dispatch.lanes, size):
        if row.kind == "load" and row.space == "storage":
            requested[row.name or ""] += row.global_sectors
    return launch, dict(requested)


# ---- atomic operations -------------------------------------------------------------------------------


def _is_summed_up(row: Site) -> bool:
    """Whether the device combines the lanes of a subgroup first: all change one word, by a reduction."""
    return row.site.name in _REDUCTIONS and row.atomic_turns >= _ALL_ALIKE * row.atomics


def _turns(row: Site) -> int:
    """Return how many operations wait for one another."""
    requests = row.shared_requests + row.global_requests
    return requests if _is_summed_up(row) else row.atomic_turns * _TURNS.get(row.site.name or "", 1)


def _storage_atomics(rows: list[Site], reach: Mapping[str, Reach], dispatch: Dispatch) -> tuple[float, float]:
    """Return the sectors that atomic operations pass, and the turns on the busiest line, if all are equally busy."""
    grid, sizes = prod(dispatch.grid), {bound.variable.name: len(bound.data) for bound in dispatch.bound}
    passes = turns = 0.0
    for row in rows:
        if row.space == "storage":
            name = row.name or ""
            near = reach.get(name, Reach(0, 1, 1, 1.0))
            lines = max(1.0, min(near.lines * grid**near.growth, sizes.get(name, 0) / dispatch.device.line_bytes))
            passes += row.global_requests if _is_summed_up(row) else row.global_sectors
            turns += _turns(row) / lines
    return passes, turns
