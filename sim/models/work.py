"""What one dispatch asks of a device: what a model of time predicts from, and `sim.run.work` finds out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, fields, replace

from ..fast_dataclass import frozen


@frozen
class Work:
    """What one dispatch asks of a device. Counts are of all workgroups, unless they say otherwise.

    `resident`: workgroups of it that a core holds. `unevenness`: how many times as long the last core takes as if all
    executed the same. `issued`: instructions of subgroups by class; `code`: those of the program that are executed at
    all. `chain`: steps that depend on each other, by kind,
    of one workgroup on average; `longest`: of the workgroup that takes the most.
    `footprint`: bytes of the distinct lines of storage; `moved`: by device memory, if none stay in the L2 cache.
    `moved_again`: for workgroups far apart, if what they share does not stay in the L2 cache; `reach`: bytes that are
    accessed between two of them, on average.
    `load_wavefronts`: of loads from storage, by the banks of the core's cache.
    `missed`: share of loaded sectors that the core's cache does not hold; `delayed`: of loads that wait for one;
    `reloaded`: of what they miss, what their own workgroup has loaded before.
    `atomic_turns`: of the busiest part of the L2 cache; `atomic_word_turns`: of these, those of the busiest word.
    `phases`: the work of each phase of the program, in order, with the dispatch's own figures; empty if there is one.
    The four before it are what a software adapter does. `software`: instructions of subgroups by class, functions by
    name and accesses by words, with both sides of each branch. `software_chain`: steps that depend on each other, of
    all subgroups. `lanes`: words that active lanes access, by kind. `shared_atomics`: atomic operations in storage that
    share a granule with one of the neighbouring workgroup.
    """

    workgroups: int
    subgroups: int  # of a workgroup
    registers: int  # of an invocation, see `performance.registers`
    resident: int
    unevenness: float
    issued: Mapping[str, float] = field(hash=False)
    code: Mapping[str, float] = field(hash=False)
    chain: Mapping[str, float] = field(hash=False)
    longest: Mapping[str, float] = field(hash=False)
    wavefronts: float
    ideal_wavefronts: float
    load_lines: float
    ideal_load_lines: float
    load_wavefronts: float
    ideal_load_wavefronts: float
    store_lines: float
    ideal_store_lines: float
    missed_lines: float  # of loads, of which sectors miss the core's cache
    load_sectors: float  # that miss the core's cache
    ideal_load_sectors: float
    local_lines: float  # of stores to arrays of function space in memory
    page_turns: float  # sectors that loads miss on another page than the one before, if that is not at hand
    missed_local_sectors: float  # of loads from these, that miss the core's cache
    stored_lines: float  # that reach the L2 cache: those of neighbouring stores once
    store_sectors: float  # likewise
    ideal_store_sectors: float
    footprint: float
    moved: float
    moved_again: float
    reach: float
    missed: float
    delayed: float
    reloaded: float
    atomic_sectors: float
    atomic_turns: float
    atomic_word_turns: float
    workgroup_atomic_turns: float
    software: Mapping[str, float] = field(hash=False)
    software_chain: Mapping[str, float] = field(hash=False)
    lanes: Mapping[str, float] = field(hash=False)
    shared_atomics: float
    phases: tuple[Work, ...] = ()

    def without_conflicts(self) -> Work:
        """Return the work of the same dispatch without bank conflicts."""
        return self.in_each_phase(lambda work: replace(work, wavefronts=work.ideal_wavefronts))

    def coalesced(self) -> Work:
        """Return the work if each access to storage touched the fewest lines and sectors that hold its bytes."""
        return self.in_each_phase(
            lambda work: replace(
                work,
                load_lines=work.ideal_load_lines,
                load_wavefronts=work.ideal_load_wavefronts,
                store_lines=work.ideal_store_lines,
                stored_lines=min(work.stored_lines, work.ideal_store_lines),
                missed_lines=min(work.missed_lines, work.ideal_load_lines),
                load_sectors=work.ideal_load_sectors,
                page_turns=0.0,
                store_sectors=min(work.store_sectors, work.ideal_store_sectors),
            )
        )

    def in_each_phase(self, change: Callable[[Work], Work]) -> Work:
        """Return the work with a change of the whole and of each phase."""
        return replace(change(self), phases=tuple(map(change, self.phases)))

    def idle(self) -> Work:
        """Return a phase of the same dispatch that uses no unit."""
        sums = {each.name: 0.0 for each in fields(self) if each.name not in (*_OF_DISPATCH, *_BY_KIND, "phases")}
        return replace(self, **sums, **{name: {} for name in _BY_KIND}, phases=())


# The fields of a work that are those of the dispatch in each phase, and those that have figures by kind.
_OF_DISPATCH = ("workgroups", "subgroups", "registers", "resident", "unevenness", "footprint", "reach", "reloaded")
_BY_KIND = ("issued", "code", "chain", "longest", "software", "software_chain", "lanes")
