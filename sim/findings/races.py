"""From the machine's records of shared memory to findings: races, and reads of memory that nobody wrote."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..fast_dataclass import frozen
from ..ir.sites import SourceSite
from ..launch.launch import Launch
from ..launch.partition import Outcome
from ..launch.race_tables import race_rows
from ..machine import layout as at
from ..wgsl.diagnostics import Note
from ..wgsl.types import Scalar
from .finding import Finding
from .memory_paths import number, path

UNSTORED = "WGSL makes it zero at first, which not every driver does; store what it is to hold"
_DOES = {"load": ("loads", "loads it"), "store": ("stores to", "stores to it")}


@frozen
class _Access:
    """One of the two accesses of a race."""

    site: SourceSite
    workgroup: tuple[int, int, int]
    lane: int
    clock: int
    value: str


def find_races(launch: Launch, outcome: Outcome) -> list[Finding]:
    """One finding for each pair of places that race, with the first time in full."""
    findings: dict[tuple[SourceSite, SourceSite, int], Finding] = {}
    if not launch.program.probe_names & {"races", "across"}:  # across: those in storage only
        return []
    for row in race_rows(outcome.races):
        found = _race(launch, row)
        key = (_site(launch, row[at.R_FIRST]), _site(launch, row[at.R_SECOND]), int(row[at.R_ACROSS]))
        known = findings.get(key) or findings.get((key[1], key[0], key[2]))
        if known is None:
            findings[key] = found
        else:
            same = known.verdict if known.verdict == found.verdict else None
            key = key if key in findings else (key[1], key[0], key[2])
            findings[key] = replace(known, count=known.count + found.count, verdict=same)
    return list(findings.values())


def _site(launch: Launch, slot: int | np.int64) -> SourceSite:
    return launch.program.sites[launch.program.race_probes[int(slot)].site]


def _race(launch: Launch, row: NDArray[np.int64]) -> Finding:
    name, scalar = _place(launch, int(row[at.R_SECOND]), int(row[at.R_PLACE]))
    across = bool(row[at.R_ACROSS])
    one, two = (
        _Access(
            _site(launch, row[start_slot]),
            launch.workgroup(int(row[start])),
            int(row[start + 1]),
            int(row[start + 2]),
            number(scalar, int(row[start + 3])),
        )
        for start_slot, start in ((at.R_FIRST, at.R_FIRST_WORKGROUP), (at.R_SECOND, at.R_SECOND_WORKGROUP))
    )
    same_value = row[at.R_DIFFERENT] == 0
    verdict = "same-value" if same_value else "wrong-barrier" if not across and one.clock != two.clock else None
    where = f" of workgroup {two.workgroup}" if across else ""
    other = f" of workgroup {one.workgroup}" if across else ""
    order = "nothing orders workgroups" if across else "no barrier orders them"
    message = (
        f"invocation {two.lane}{where} {_DOES[two.site.kind][0]} {name}, and invocation {one.lane}{other} "
        f"{_DOES[one.site.kind][1]}; {order}"
    )
    return Finding(
        "race",
        "warning" if same_value else "error",
        message,
        two.site.span,
        int(row[at.R_TIMES]),
        two.workgroup,
        (one.lane, two.lane),
        None if across else two.clock,
        notes=(Note(_other_words(one, two, same_value), one.site.span), *_wrong_kind(launch, one, two, across)),
        hint=_advice(one, two, across),
        verdict=verdict,
    )


def _other_words(one: _Access, two: _Access, same_value: bool) -> str:
    if one.site.kind == two.site.kind == "store":
        return f"both store {two.value}" if same_value else f"one stores {one.value} here, the other {two.value}"
    if two.site.kind == "load":
        return f"the store of {one.value} is here"
    return f"the load of what is {one.value} before and {two.value} after the store is here"


def _wrong_kind(launch: Launch, one: _Access, two: _Access, across: bool) -> tuple[Note, ...]:
    """The barriers that stand between, and order another kind of memory."""
    if across or one.clock == two.clock:
        return ()
    barriers = [s for s in launch.program.sites if s.kind == "barrier" and s.space != _memory(two.site)]
    return tuple(
        Note(f"{b.name} orders {b.space} memory, and not {_memory(two.site)} memory", b.span) for b in barriers
    )


def _memory(site: SourceSite) -> str:
    return site.space or "storage"


def _advice(one: _Access, two: _Access, across: bool) -> str:
    if across:
        return "give each workgroup places of its own, use atomics, or go on in a second dispatch"
    barrier = f"{_memory(two.site)}Barrier()"
    if one.clock != two.clock:
        return f"use {barrier} there"
    if one.site == two.site and one.site.kind == "store":
        return "let one invocation store there, give each a place of its own, or use atomics"
    first, second = one.site.span, two.site.span
    if first.line == second.line:
        return f"put {barrier} between the two"
    if first.start < second.start:
        return f"put {barrier} between line {first.line} and line {second.line}"
    return f"put {barrier} after line {first.line}, before the loop comes round to line {second.line}"


def find_unwritten(launch: Launch, outcome: Outcome) -> list[Finding]:
    """One finding for each load of workgroup memory that came before any store."""
    findings: dict[int, Finding] = {}
    if not outcome.unwritten[:, at.OUTSIDE].any():
        return []
    for slot, (watched, row) in enumerate(zip(launch.program.race_probes, outcome.unwritten, strict=False)):
        if row[at.OUTSIDE] == 0:
            continue
        known = findings.get(watched.site)
        if known is not None:
            findings[watched.site] = replace(known, count=known.count + int(row[at.OUTSIDE]))
            continue
        site, name = launch.program.sites[watched.site], _place(launch, slot, int(row[at.ADDRESS]))[0]
        findings[watched.site] = Finding(
            "uninit",
            "warning",
            f"invocation {int(row[at.LANE])} loads {name}, which nobody has stored to",
            site.span,
            int(row[at.OUTSIDE]),
            launch.workgroup(int(row[at.WORKGROUP])),
            (int(row[at.LANE]),),
            hint=UNSTORED,
        )
    return list(findings.values())


def _place(launch: Launch, slot: int, grain: int) -> tuple[str, Scalar | None]:
    """The name of a grain, and the type of what lies there."""
    access = launch.program.accesses[launch.program.race_probes[slot].access]
    rest, scalar = path(launch.type_of(access.variable), launch.watching.byte(slot, grain))
    return f"{access.variable.name}{rest}", scalar
