"""Who waits for whom in a run that never ends, in the terms of the source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..fast_dataclass import frozen
from ..wgsl.source import Span
from .invocations import Event
from .progress import Stuck
from .search import Graph


@frozen
class Wait:
    """Invocations of one workgroup that never end in a run.

    `kind`: "loop" where they step forever, "barrier" where they are blocked, "unscheduled" where they could step and
    never do. `words`: what the loop reads, by name. `others`: the invocations that would have to store to one of them,
    or to reach the barrier. `store`: where the first of them stores.
    """

    units: tuple[int, ...]
    kind: str
    span: Span | None
    words: tuple[str, ...] = ()
    others: tuple[int, ...] = ()
    store: Span | None = None


def waits_of(graph: Graph, stuck: Stuck) -> tuple[Wait, ...]:
    """Return who never ends in a run: loops, then barriers, then who is never scheduled.

    Invocations of one workgroup that wait alike are one row.
    """
    lanes = graph.system.dispatch.lanes
    alike: dict[tuple[int, Wait], list[int]] = {}
    for wait in _Explainer(graph, stuck).waits():
        alike.setdefault((wait.units[0] // lanes, replace(wait, units=())), []).extend(wait.units)
    return tuple(replace(wait, units=tuple(units)) for (_, wait), units in alike.items())


class _Explainer:
    """A run that never ends, with the states that it stays in."""

    def __init__(self, graph: Graph, stuck: Stuck):
        self.graph = graph
        self.state = stuck.state
        self.cycle: dict[int, list[int]] = {}  # the units that step in it, each with the states in which it does
        for before, unit, _ in stuck.cycle:
            self.cycle.setdefault(unit, []).append(before)
        self.left = [unit for unit in range(graph.units) if unit not in graph.finished[stuck.state]]

    def waits(self) -> Iterator[Wait]:
        """Yield a row for each invocation."""
        still = [unit for unit in self.left if unit not in self.cycle]
        states = {self.state, *(state for each in self.cycle.values() for state in each)}
        for unit, steps in sorted(self.cycle.items()):
            yield self._loop(unit, steps)
        blocked = [unit for unit in still if all(unit in self.graph.blocked[state] for state in states)]
        for unit in blocked:
            yield self._barrier(unit)
        for unit in still:
            if unit not in blocked:
                yield Wait((unit,), "unscheduled", self.graph.span(self.state, unit))

    def _event(self, state: int, unit: int) -> Event:
        return self.graph.system.invocations[unit].event(self.graph.states[state][0][unit])

    def _loop(self, unit: int, states: list[int]) -> Wait:
        system = self.graph.system
        events = [self._event(state, unit) for state in states]
        loads = {event.word: event.pc for event in events[::-1] if event.kind == "access" and event.op != "store"}
        if events[0].kind == "spin":
            loads = system.invocations[unit].spins_on(self.graph.states[states[0]][0][unit])
        span = system.code.span_near(next(iter(loads.values()), events[0].pc))
        words = tuple(map(system.words.name, sorted(loads)))
        store = self._store(unit, frozenset(loads))
        if store is None:
            return Wait((unit,), "loop", span, words)
        state, writer = store
        return Wait((unit,), "loop", span, words, (writer,), self.graph.span(state, writer))

    def _store(self, unit: int, words: frozenset[int]) -> tuple[int, int] | None:
        """Return the step that another unit would take to change a word: the state before it, and the unit.

        It is the nearest that the cycle leads to. If there is none, any step of a unit that has not ended.
        """
        for states in (self._ahead(), range(len(self.graph.states))):
            for state in states:
                for writer, after in self.graph.edges[state]:
                    if writer != unit and writer in self.left and self._changes(state, writer, after, words):
                        return state, writer
        return None

    def _ahead(self) -> Iterator[int]:
        """Yield the states that the run leads to, nearest first."""
        queue, seen = [self.state], {self.state}
        for state in queue:
            yield state
            for _, after in self.graph.edges[state]:
                if after not in seen:
                    seen.add(after)
                    queue.append(after)

    def _changes(self, state: int, unit: int, after: int, words: frozenset[int]) -> bool:
        event, memory = self._event(state, unit), self.graph.system.memory
        if event.kind != "access" or not event.stores or event.word not in words:
            return False
        before, later = self.graph.states[state][1], self.graph.states[after][1]
        return memory.value(before, event.word) != memory.value(later, event.word)

    def _barrier(self, unit: int) -> Wait:
        lanes = self.graph.system.dispatch.lanes
        first = unit - unit % lanes
        here = self._event(self.state, unit).pc
        others = (each for each in range(first, first + lanes) if self._event(self.state, each).pc != here)
        return Wait((unit,), "barrier", self.graph.span(self.state, unit), others=tuple(others))
