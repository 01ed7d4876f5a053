"""What a witness does that sequentially consistent memory does not: diagnostics with both places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..findings.table import WEAK_ORDER
from ..wgsl.diagnostics import Diagnostic, Note
from ..wgsl.source import Span
from .search import Graph, Taken
from .witness import taken_steps


class _Store(NamedTuple):
    """The store that a word's newest value is from. `step`: its number on the way."""

    step: int
    unit: int
    value: int
    span: Span


def weak_orders(graph: Graph, ends: Iterable[int]) -> list[Diagnostic]:
    """Return a diagnostic for each pair of places whose accesses take effect out of order on the way to these ends."""
    found: dict[tuple[int, int], Diagnostic] = {}
    for end in ends:
        seen = [*_out_of_order(graph, end)]
        for each in [each for each, needed in seen if needed] or [each for each, _ in seen]:
            assert each.span is not None
            other = each.notes[0].span
            found.setdefault((each.span.start, -1 if other is None else other.start), each)
    return [*found.values()]


def _out_of_order(graph: Graph, state: int) -> Iterator[tuple[Diagnostic, bool]]:
    """Yield what takes effect out of order on a shortest way to a state, and whether that is needed there.

    It is not where the unit took no step since the store: its access might as well have come before.
    """
    stores: dict[int, _Store] = {}  # of the newest value of each word
    latest: dict[int, int] = {}  # of each unit, the number of its last step
    for step, (before, after, unit, taken) in enumerate(taken_steps(graph, state)):
        since, latest[unit] = latest.get(unit, -1), step
        if taken.results is None:
            continue
        event, span = taken.event, graph.system.code.span(taken.event.pc)
        assert span is not None  # of an access
        waited = event in graph.states[before][0][unit].queue
        value = graph.system.memory.value(graph.states[after][1], event.word)
        newest = stores.get(event.word)
        if newest is not None and newest.unit != unit:
            said = _said(graph, unit, taken, newest, value, waited)
            if said is not None:
                name = graph.system.words.name(event.word)
                note = Note(f"{name} is stored here, and no barrier orders the two", newest.span)
                found = Diagnostic(WEAK_ORDER.severity, WEAK_ORDER.code, said, span, (note,), WEAK_ORDER.hint)
                yield found, waited or since > newest.step
        if event.op != "load" and (newest is None or value != newest.value):
            stores[event.word] = _Store(step, unit, value, span)


def _said(graph: Graph, unit: int, taken: Taken, newest: _Store, value: int, waited: bool) -> str | None:
    """Say what is out of order about a step; None if nothing is. `value`: what the word holds after it."""
    event, results, system = taken.event, taken.results, graph.system
    assert results is not None
    name, who, other = system.words.name(event.word), system.who(unit), system.who(newest.unit)
    if event.op == "store":
        stored = event.args[0]
        if value == stored:
            return None
        return (
            f"the {stored:,} that {who} stores to {name} may come before the {newest.value:,} that {other} has stored"
        )
    if results[0] != newest.value:
        return f"{who} may read {results[0]:,} from {name} after {other} has stored {newest.value:,}"
    if waited:
        return f"{who} may read {results[0]:,} from {name}, which {other} stores, after its own next accesses"
    return None
