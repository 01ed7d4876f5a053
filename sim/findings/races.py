"""Findings from the machine's records of shared memory: races, and loads of memory before it is written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..codegen.program import ORDERS, Program
from ..fast_dataclass import frozen
from ..ir.sites import SourceSite
from ..launch.launch import Launch
from ..launch.partition import Outcome
from ..launch.race_tables import race_rows
from ..machine import layout as at
from ..machine.probe_arrays import MOST_RACES
from ..wgsl.diagnostics import Note
from ..wgsl.source import Span
from ..wgsl.types import Scalar
from .finding import Finding
from .grouping import AtPlaces
from .memory_paths import number, path
from .runner import Runner
from .table import COMPONENT_RACE, RACE, UNINIT

_COMPONENTS = frozenset(("races", "components"))
_SHOW_RACES = frozenset(("races", "across"))  # across: between workgroups only
RACES = _SHOW_RACES | _COMPONENTS  # the probes that look for races
_DOES = {"load": ("loads", "loads it"), "store": ("stores to", "stores to it")}
# Fields of a race: slot, workgroup, lane, clock and value of each access.
_FIRST = (
    *(at.RACE_FIRST, at.RACE_FIRST_WORKGROUP, at.RACE_FIRST_LANE),
    *(at.RACE_FIRST_CLOCK, at.RACE_FIRST_VALUE),
)
_SECOND = (
    *(at.RACE_SECOND, at.RACE_SECOND_WORKGROUP, at.RACE_SECOND_LANE),
    *(at.RACE_SECOND_CLOCK, at.RACE_SECOND_VALUE),
)


@frozen
class _Access:
    """One of the two accesses of a race."""

    site: SourceSite
    workgroup: tuple[int, int, int]
    lane: int
    clock: int  # barriers that its workgroup had passed
    value: str


def find_races(launch: Launch, outcome: Outcome) -> list[Finding]:
    """Return a finding for each pair of places that race, which describes the first time in full."""
    findings: dict[tuple[SourceSite, SourceSite, int], Finding] = {}
    if not launch.program.probe_names & _SHOW_RACES:
        return []
    for row in race_rows(outcome.races):
        found = _race(launch, row)
        key = (_site(launch, row[at.RACE_FIRST]), _site(launch, row[at.RACE_SECOND]), int(row[at.RACE_ACROSS]))
        known = findings.get(key) or findings.get((key[1], key[0], key[2]))
        if known is None:
            findings[key] = found
        else:
            same = known.verdict if known.verdict == found.verdict else None
            key = key if key in findings else (key[1], key[0], key[2])
            findings[key] = replace(known, count=known.count + found.count, verdict=same)
    return list(findings.values())


def race_places(launch: Launch, outcome: Outcome) -> set[tuple[frozenset[Span], bool]]:
    """Return what tells the races of a run apart, as `Finding.race_places` has it."""
    if not launch.program.probe_names & _SHOW_RACES:
        return set()
    return {
        (
            frozenset(_site(launch, row[slot]).span for slot in (at.RACE_FIRST, at.RACE_SECOND)),
            bool(row[at.RACE_ACROSS]),
        )
        for row in race_rows(outcome.races)
    }


def note_limit(findings: list[Finding], outcome: Outcome) -> list[Finding]:
    """Return the findings; the last race says so if the machine had no room for more."""
    last = next((n for n in reversed(range(len(findings))) if findings[n].code == RACE.code), None)
    if last is None or len(race_rows(outcome.races)) < MOST_RACES:
        return findings
    limit = Note(f"the first {MOST_RACES} pairs of accesses that race were recorded; cure these to see any others")
    noted = replace(findings[last], notes=(*findings[last].notes, limit))
    return [*findings[:last], noted, *findings[last + 1 :]]


def _site(launch: Launch, slot: int | np.int64) -> SourceSite:
    return launch.program.sites[launch.program.race_probes[int(slot)].site]


def _race(launch: Launch, row: NDArray[np.int64]) -> Finding:
    name, scalar = _place(launch, int(row[at.RACE_SECOND]), int(row[at.RACE_PLACE]))
    across = bool(row[at.RACE_ACROSS])
    one, two = (
        _Access(
            _site(launch, row[slot]),
            launch.workgroup(int(row[workgroup])),
            int(row[lane]),
            int(row[clock]),
            number(scalar, int(row[value])),
        )
        for slot, workgroup, lane, clock, value in (_FIRST, _SECOND)
    )
    same_value = row[at.RACE_DIFFERENT] == 0
    wrong_barrier = not across and one.clock != two.clock
    if "components" in launch.program.probe_names:
        return COMPONENT_RACE.make(
            two.site.span,
            count=int(row[at.RACE_TIMES]),
            workgroup=two.workgroup,
            lanes=(one.lane, two.lane),
            epoch=None if across else two.clock,
            notes=() if one.site == two.site else (Note(f"the {one.site.kind} is here", one.site.span),),
            lane=two.lane,
            group=f" of workgroup {two.workgroup}" if across else "",
            does=_DOES[two.site.kind][0],
            place=name.rpartition(".")[0],
            other=one.lane,
            other_group=f" of workgroup {one.workgroup}" if across else "",
            other_does=_DOES[one.site.kind][0],
            order="nothing orders workgroups" if across else "no barrier orders them",
            advice=_component_advice(one, two, across),
        )
    return RACE.make(
        two.site.span,
        count=int(row[at.RACE_TIMES]),
        workgroup=two.workgroup,
        lanes=(one.lane, two.lane),
        epoch=None if across else two.clock,
        notes=(Note(_other_words(one, two, same_value), one.site.span), *_wrong_barriers(launch, one, two, across)),
        verdict="same-value" if same_value else "wrong-barrier" if wrong_barrier else None,
        lane=two.lane,
        group=f" of workgroup {two.workgroup}" if across else "",
        does=_DOES[two.site.kind][0],
        place=name,
        other=one.lane,
        other_group=f" of workgroup {one.workgroup}" if across else "",
        other_does=_DOES[one.site.kind][1],
        order="nothing orders workgroups" if across else "no barrier orders them",
        advice=_advice(one, two, across),
    )


def _other_words(one: _Access, two: _Access, same_value: bool) -> str:
    if one.site.kind == two.site.kind == "store":
        return f"both store {two.value}" if same_value else f"one stores {one.value} here, the other {two.value}"
    if two.site.kind == "load":
        return f"the store of {one.value} is here"
    return f"the load is here; the store changes its value from {one.value} to {two.value}"


def _wrong_barriers(launch: Launch, one: _Access, two: _Access, across: bool) -> tuple[Note, ...]:
    """Return a note for each barrier between the two accesses that orders another kind of memory."""
    if across or one.clock == two.clock:
        return ()
    memory = _memory(two.site)
    barriers = [site for site in launch.program.sites if site.kind == "barrier" and site.space != memory]
    return tuple(Note(f"{b.name} orders {b.space} memory, not {memory} memory", b.span) for b in barriers)


def _memory(site: SourceSite) -> str:
    return site.space or "storage"


def _advice(one: _Access, two: _Access, across: bool) -> str:
    if across:
        return "give each workgroup its own elements, use atomics, or continue in a second dispatch"
    barrier = f"{_memory(two.site)}Barrier()"
    if one.clock != two.clock:
        return f"use {barrier} there"
    if one.site == two.site and one.site.kind == "store":
        return "let only one invocation store there, give each its own element, or use atomics"
    first, second = one.site.span, two.site.span
    if first.line == second.line:
        return f"put {barrier} between the two accesses, or after line {first.line} if they are in different iterations"
    if first.start < second.start:
        return f"put {barrier} between line {first.line} and line {second.line}"
    return f"put {barrier} after line {first.line}, before the next iteration reaches line {second.line}"


def _component_advice(one: _Access, two: _Access, across: bool) -> str:
    own = "give each invocation a vector of its own, or use an array of scalars"
    return own if across or one.site == two.site else f"{_advice(one, two, across)}, or {own}"


def stores_components(program: Program) -> bool:
    """Whether a program stores single components of vectors that others can access."""
    return any(a.component and a.memory in ORDERS for a in program.accesses)


def find_component_races(run: Runner, launch: Launch, found: Iterable[Finding]) -> list[Finding]:
    """Return the races that exist only because a store to a component of a vector may access all of it.

    `found` are the other findings of the run.
    """
    if launch.invocations == 1 or not stores_components(launch.program):
        return []
    again, outcome = run(_COMPONENTS)
    races = {finding.race_places for finding in found if finding.code == RACE.code}
    return [finding for finding in find_races(again, outcome) if finding.race_places not in races]


def find_unwritten(launch: Launch, outcome: Outcome) -> list[Finding]:
    """Return a finding for each load of workgroup memory that ran before any store to it."""
    if not launch.program.race_probes or not outcome.unwritten[:, at.OUTSIDE].any():
        return []
    found = AtPlaces()
    for slot, (watched, row) in enumerate(zip(launch.program.race_probes, outcome.unwritten, strict=False)):
        site, lane = launch.program.sites[watched.site], int(row[at.LANE])
        if found.counts(site, int(row[at.OUTSIDE])):
            found.first[site.place] = UNINIT.make(
                site.span,
                workgroup=launch.workgroup(int(row[at.WORKGROUP])),
                lanes=(lane,),
                access=f"invocation {lane} loads {_place(launch, slot, int(row[at.ADDRESS]))[0]}",
            )
    return found.findings()


def _place(launch: Launch, slot: int, grain: int) -> tuple[str, Scalar | None]:
    """Return the name of a grain of memory, and the type of the scalar there."""
    access = launch.program.accesses[launch.program.race_probes[slot].access]
    rest, scalar = path(launch.type_of(access.variable), launch.race_shadow.byte(slot, grain))
    return f"{access.variable.name}{rest}", scalar
