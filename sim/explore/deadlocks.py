"""Deadlocks: states from which a dispatch cannot end, in whatever order its invocations go on."""

from __future__ import annotations

from ..wgsl.diagnostics import Diagnostic, Note
from ..wgsl.source import Span
from .search import Graph

MOST_NOTES = 4  # places of other invocations that a diagnostic shows


def dead_ends(graph: Graph) -> list[int]:
    """Return a state from which the dispatch cannot end, for each set of places where invocations then wait for ever.

    From each of these states, every state that can be reached leads back to it. The graph must be complete.
    """
    before: list[list[int]] = [[] for _ in graph.states]
    for state, edges in enumerate(graph.edges):
        for _, after in edges:
            before[after].append(state)
    after = [[target for _, target in edges] for edges in graph.edges]
    can_end = _reached(graph.ends, before)
    left = {*range(len(graph.states))} - can_end
    found: dict[tuple[int, ...], int] = {}
    while left:
        state = min(left)
        while more := _reached([state], after) - (leading := _reached([state], before)):
            state = min(more)
        left -= leading
        found.setdefault(tuple(sorted(span.start for _, span in _waiting(graph, state))), state)
    return [*found.values()]


def deadlock(graph: Graph, state: int) -> Diagnostic:
    """Return a diagnostic that says who waits where, in a state from which the dispatch cannot end."""
    waiting = _waiting(graph, state)
    if not waiting:
        return Diagnostic("error", "deadlock", "the dispatch never ends", graph.system.dispatch.pipeline.entry.span)
    (unit, span), *others = waiting
    message = f"{graph.system.who(unit)} may wait here for ever, in whatever order the invocations go on"
    notes = tuple(Note(f"{graph.system.who(each)} then waits here", place) for each, place in others[:MOST_NOTES])
    return Diagnostic("error", "deadlock", message, span, notes)


def _reached(states: list[int], edges: list[list[int]]) -> set[int]:
    """Return the states that can be reached along edges, with those where it begins."""
    reached, left = set(states), [*states]
    while left:
        left += (new := {*edges[left.pop()]} - reached)
        reached |= new
    return reached


def _waiting(graph: Graph, state: int) -> list[tuple[int, Span]]:
    """Return the units that have not ended, each with the place where it is."""
    places = ((unit, graph.span(state, unit)) for unit in range(graph.units) if unit not in graph.finished[state])
    return [(unit, span) for unit, span in places if span is not None]
