"""What a program alone decides about the work of its dispatches on a device: made once, and kept with the program."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any
from weakref import WeakKeyDictionary

from ..bounded_cache import remember
from ..codegen.build import draft
from ..codegen.program import Program
from ..fast_dataclass import frozen
from ..ir.sites import SourceSite
from ..models.device import Device
from ..models.occupancy import occupancy, registers_to_hold
from ..performance.chains import RegionCosts, program_costs
from ..performance.instruction_costs import used_atomics
from ..performance.store_runs import store_runs
from ..wgsl.typed import Module
from .dispatch import Dispatch, program_key
from .region_sums import RegionSums, region_sums
from .workgroup_sample import SAMPLED, Sampler, cache_lines, sampler

_KINDS = ("load", "store", "atomic")
_ATOMIC_SUMS = frozenset(("atomicAdd", "atomicSub"))
_ATOMIC_REDUCTIONS = _ATOMIC_SUMS | frozenset(("atomicMax", "atomicMin", "atomicAnd", "atomicOr", "atomicXor"))
_ATOMIC_TURNS = {"atomicCompareExchangeWeak": 2}
_FIRST = frozenset((0,))  # phase
_MOST_PROGRAMS = 16  # that are kept for each module
_MOST_DEVICES = 4  # that a program is kept for


@frozen
class Access:
    """A place that accesses memory.

    `row`: of the counters of a run; `sampled`: its number in the program that samples workgroups, -1 if it is not in
    it. `words`: of each lane. `l2_share`: of its stores, those that reach the L2 cache, where runs of stores reach it
    together. `passes`: wavefronts to each that is counted. `combines`: the device combines its atomic operations where
    all lanes of a subgroup change one word; `turns`: to each that is counted, otherwise.
    """

    row: int
    sampled: int
    phases: frozenset[int]
    kind: str
    space: str | None
    variable: str | None
    words: int
    l2_share: float
    passes: int
    combines: bool
    turns: int


@frozen
class Accesses:
    """The accesses of a phase, or of all, in the order of their places.

    `all`: of any memory; `all_loads`: the loads of these. `loads`, `stores` and `atomics`: of storage. `shared`: loads
    and stores of workgroup memory; `shared_atomics`: atomic operations there.
    """

    all: list[Access]
    all_loads: list[Access]
    loads: list[Access]
    stores: list[Access]
    atomics: list[Access]
    shared: list[Access]
    shared_atomics: list[Access]

    @staticmethod
    def of(accesses: list[Access]) -> Accesses:
        """Divide accesses by what they do."""

        def some(space: str, kind: str) -> list[Access]:
            return [each for each in accesses if (each.space, each.kind) == (space, kind)]

        return Accesses(
            all=accesses,
            all_loads=[each for each in accesses if each.kind == "load"],
            loads=some("storage", "load"),
            stores=some("storage", "store"),
            atomics=some("storage", "atomic"),
            shared=[*some("workgroup", "load"), *some("workgroup", "store")],
            shared_atomics=some("workgroup", "atomic"),
        )


@frozen
class ProgramWork:
    """What a program decides about the work of a dispatch.

    `sums`: over its regions. `sampler`: what samples workgroups. `registers`: of each invocation, as far as the device
    has them; `resident`: workgroups that a core holds; `subgroups`: of each of these. `local_lines`: of each workgroup,
    in arrays of function space. `room`: the lines of these that the cache of a core holds.
    `whole`, `phases`: all accesses, and those of each phase, of which several may share one. `by_kind`: all, by space
    and kind; `by_variable`: those of storage.
    """

    sums: RegionSums
    sampler: Sampler
    registers: int
    resident: int
    subgroups: int
    local_lines: int
    room: float
    whole: Accesses
    phases: list[Accesses]
    by_kind: Mapping[str, list[Access]] = field(hash=False)
    by_variable: Mapping[str | None, list[Access]] = field(hash=False)

    def lost_lines(self, sharing: int) -> float:
        """Return the share of the lines of arrays of function space that the core's cache does not hold. `sharing`:
        workgroups that share it.

        An element of all lanes of a subgroup is a line, with all of its sectors. Arrays twice as large as the cache
        leave nothing in it, as all are used in turn.
        """
        return min(1.0, max(0.0, self.local_lines * sharing / self.room - 1))


@frozen
class _Analysed:
    """What the text of a program decides, on all devices that build it alike.

    `numbers`: of the sites of the sampler, without the widths of texels; `phases`: of those that access memory.
    `used`: the atomic operations whose results are needed. `local_words`: of each invocation in
    arrays of function space. `store_runs`: the bytes that runs of stores write together. Its basic blocks are those of
    any program of the dispatch.
    """

    sampler: Sampler
    sums: RegionSums
    registers: int
    local_words: int
    used: frozenset[SourceSite]
    numbers: Mapping[SourceSite, int] = field(hash=False)
    phases: Mapping[SourceSite, frozenset[int]] = field(hash=False)
    store_runs: Mapping[SourceSite, int] = field(hash=False)


_ANALYSED: WeakKeyDictionary[Module, dict[tuple[Any, ...], _Analysed]] = WeakKeyDictionary()
_KNOWN: WeakKeyDictionary[Program, dict[Device, ProgramWork]] = WeakKeyDictionary()


def program_work(dispatch: Dispatch, program: Program) -> ProgramWork:
    """Return what the program of a run of a dispatch decides; it is kept with the program."""
    known = _KNOWN.setdefault(program, {})
    return remember(known, dispatch.device, lambda: _program_work(dispatch, program), _MOST_DEVICES)


def _analysed(dispatch: Dispatch) -> _Analysed:
    """Return what the text of the program decides; that of a module's programs is kept."""
    pipeline, how = dispatch.pipeline, dispatch.build_options(SAMPLED)
    how["workgroups_per_batch"] = 1
    has_barriers = dispatch.lanes > dispatch.device.subgroup_size
    held = registers_to_hold(dispatch.device, dispatch.lanes, pipeline.workgroup_bytes)
    unit = dispatch.device.register_unit

    def make() -> _Analysed:
        made = draft(pipeline, **how)  # lowered once for the program and its costs, as lowering takes most of the time
        program = made.program()
        costs = program_costs(made.lowered, barriers=has_barriers, held=held, register_unit=unit)
        sites = made.lowered.sites.rows
        return _Analysed(
            sampler(program),
            region_sums(costs.regions),
            costs.live.registers,
            costs.local_words,
            used_atomics(made.lowered),
            {_without_texels(site): number for number, site in enumerate(sites)},
            _phases_of(costs.regions, sites),
            store_runs(made.lowered),
        )

    known = _ANALYSED.setdefault(pipeline.module, {})
    return remember(known, (*program_key(pipeline, how), has_barriers, held, unit), make, _MOST_PROGRAMS)


def _phases_of(regions: Sequence[RegionCosts], sites: Sequence[SourceSite]) -> dict[SourceSite, frozenset[int]]:
    """Return the phases of each site that accesses memory."""
    found = defaultdict[SourceSite, set[int]](set)
    for region in regions:
        for site in region.sites:
            if site >= 0:
                found[_without_texels(sites[site])].add(region.phase)
    return {site: frozenset(phases) for site, phases in found.items()}


def _without_texels(site: SourceSite) -> SourceSite:
    """Return a site without the width of the texels that are bound."""
    return replace(site, bytes_per_lane=0) if site.space == "texture" else site


def _program_work(dispatch: Dispatch, program: Program) -> ProgramWork:
    analysed, device, lanes = _analysed(dispatch), dispatch.device, dispatch.lanes
    held = min(analysed.registers, device.registers_per_lane_max)
    subgroups = -(-lanes // device.subgroup_size)
    sites = [site for site in program.sites if site.kind != "index"]  # a row of the counters each
    accesses = [_access(row, site, analysed, device) for row, site in enumerate(sites) if site.kind in _KINDS]
    made = [each for each in accesses if each.phases]  # a compiler leaves out the others
    by_kind: dict[str, list[Access]] = {}
    by_variable: dict[str | None, list[Access]] = {}
    for each in accesses:
        by_kind.setdefault(f"{each.space}_{each.kind}", []).append(each)
        if each.space == "storage" and each.phases:
            by_variable.setdefault(each.variable, []).append(each)
    phases = range(len(analysed.sums.phases))
    return ProgramWork(
        sums=analysed.sums,
        sampler=analysed.sampler,
        registers=held,
        resident=max(1, occupancy(device, lanes, dispatch.pipeline.workgroup_bytes, held).workgroups),
        subgroups=subgroups,
        local_lines=analysed.local_words * subgroups,
        room=cache_lines(device, 1),
        whole=Accesses.of(made),
        phases=[Accesses.of([each for each in made if phase in each.phases]) for phase in phases],
        by_kind=by_kind,
        by_variable=by_variable,
    )


def _access(row: int, site: SourceSite, analysed: _Analysed, device: Device) -> Access:
    width, operation = site.bytes_per_lane, site.name or ""
    known = _without_texels(site)
    return Access(
        row=row,
        sampled=analysed.numbers.get(known, -1),
        phases=analysed.phases.get(known, frozenset() if known in analysed.numbers else _FIRST),
        kind=site.kind,
        space=site.space,
        variable=site.variable,
        words=max(1, -(-width // 4)),
        l2_share=_l2_share(width, analysed.store_runs.get(site, 0), device),
        passes=2 if site.kind == "store" and width == 12 else 1,  # such stores are split (measured on an H200)
        combines=operation in (_ATOMIC_SUMS if site in analysed.used else _ATOMIC_REDUCTIONS),
        turns=_ATOMIC_TURNS.get(operation, 1),
    )


def _l2_share(width: int, together: int, device: Device) -> float:
    """Return the share of stores of this width that reach the L2 cache. `together`: bytes of their run.

    On an H200 these are half of them, for three and more stores to less than a sector.
    """
    return 0.5 if 3 * width <= together < device.sector_bytes else 1.0
