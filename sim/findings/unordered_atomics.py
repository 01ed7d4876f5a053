"""Pairs of atomic operations on one word that nothing orders, and whose order can show.

Machine code with the probe `atomics` examines them as it examines plain accesses for races. Updates of one kind, such
as two additions, commute: their order shows only in what they return.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..analysis.influence import Influence, Node
from ..fast_dataclass import frozen
from ..ir.sites import SourceSite
from ..launch.launch import Launch
from ..launch.race_tables import race_rows
from ..machine import layout as at
from .runner import Runner

_PROBES = ("atomics", "commuting")
_COMMUTE: dict[str | None, str] = {
    "atomicAdd": "sum",
    "atomicSub": "sum",
}  # every other update commutes with its own kind
_NEVER = frozenset(("atomicStore", "atomicExchange", "atomicCompareExchangeWeak"))
LOADS = frozenset(("atomicLoad", "workgroupUniformLoad"))


@frozen
class Unordered:
    """Two atomic operations on one word by different invocations. `influences`: the variables in which their order can
    show. `workgroups`: of the first occurrence, by number in the grid; `across`: whether they are two. `waits`: whether
    a barrier for other memory separates them there, which makes one wait for the other."""

    sites: tuple[SourceSite, SourceSite]
    influences: frozenset[str]
    workgroups: tuple[int, int]
    across: bool
    waits: bool


def find_unordered(run: Runner, influence: Influence) -> list[Unordered]:
    """Return the pairs whose order can show in some variable, once for each two places: those without a barrier between
    them, if there are such."""
    found: dict[tuple[frozenset[SourceSite], bool], Unordered] = {}
    for probe in _PROBES:
        launch, outcome = run(frozenset((probe,)), threads=1)
        for row in race_rows(outcome.races):
            one, two = (_site(launch, int(row[slot])) for slot in (at.RACE_FIRST, at.RACE_SECOND))
            across = bool(row[at.RACE_ACROSS])
            waits = not across and bool(row[at.RACE_FIRST_CLOCK] != row[at.RACE_SECOND_CLOCK])
            stores_same = one.name == two.name == "atomicStore" and row[at.RACE_DIFFERENT] == 0
            if not stores_same and (influences := _influences(influence, one, two)):
                first, second = (int(row[place]) for place in (at.RACE_FIRST_WORKGROUP, at.RACE_SECOND_WORKGROUP))
                workgroups = launch.number(first), launch.number(second)
                pair = Unordered((one, two), influences, workgroups, across, waits)
                found.setdefault((frozenset((one, two)), across), pair)
    return [pair for pair in found.values() if not pair.waits] or list(found.values())


def _site(launch: Launch, slot: int) -> SourceSite:
    return launch.program.sites[launch.program.race_probes[slot].site]


def _influences(influence: Influence, one: SourceSite, two: SourceSite) -> frozenset[str]:
    """Return the variables that depend on which of two operations comes first."""
    loads = [site for site in (one, two) if site.name in LOADS]
    if len(loads) == 2:
        return frozenset()
    nodes = {node for site in loads or (one, two) for node in results(influence, site)}
    memory = set[Node]() if loads or _commute(one, two) else {one.variable or ""}
    return influence.variables(nodes | memory)


def results(influence: Influence, site: SourceSite) -> set[Node]:
    """Return the values that an atomic operation returns."""
    return {node for node in influence.results.get(site.span, ()) if not isinstance(node, str)}


def _commute(one: SourceSite, two: SourceSite) -> bool:
    kinds = {_COMMUTE.get(site.name, site.name) for site in (one, two)}
    return len(kinds) == 1 and not kinds & _NEVER


def by_cause(pairs: Iterable[Unordered], changed: frozenset[str]) -> list[list[Unordered]]:
    """Return the pairs that influence a changed variable, those together that influence the same one."""
    groups: list[tuple[set[str], list[Unordered]]] = []
    for pair in pairs:
        shown = set(pair.influences & changed)
        if not shown:
            continue
        joined = [group for group in groups if group[0] & shown]
        groups = [group for group in groups if not group[0] & shown]
        members = [each for _, group in joined for each in group]
        groups.append((shown.union(*(outputs for outputs, _ in joined)), [*members, pair]))
    return [group for _, group in groups]
