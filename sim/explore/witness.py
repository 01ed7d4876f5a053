"""Witnesses: the steps of a shortest way to a state, in words and with places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from ..fast_dataclass import sealed
from ..wgsl.source import Span
from .invocations import Event, apply
from .progress import Step
from .search import Graph, Taken


@sealed
class Move:
    """One step of a witness. `lane`: the local invocation index. `does`: what it does, as a phrase with a verb."""

    workgroup: tuple[int, int, int]
    lane: int
    span: Span | None
    does: str

    def __str__(self) -> str:
        line = "" if self.span is None else f", line {self.span.line}"
        return f"workgroup {self.workgroup}, invocation {self.lane}{line}: {self.does}"


def moves(graph: Graph, state: int) -> list[Move]:
    """Return the steps of a shortest way to a state."""
    return [_move(graph, before, unit, taken) for before, _, unit, taken in taken_steps(graph, state)]


def moves_along(graph: Graph, steps: Iterable[Step]) -> list[Move]:
    """Return steps, each given by the state before, its unit and the state after, as moves."""
    return [_move(graph, before, unit, _taken(graph, before, unit, after)) for before, unit, after in steps]


def taken_steps(graph: Graph, state: int) -> Iterator[tuple[int, int, int, Taken]]:
    """Yield each step of a shortest way to a state: the states before and after it, its unit, and what it does."""
    for before, after in pairwise(graph.path(state)):
        unit = graph.parents[after][1]
        yield before, after, unit, _taken(graph, before, unit, after)


def _taken(graph: Graph, before: int, unit: int, after: int) -> Taken:
    steps, reached = graph.system.steps(graph.states[before]), graph.states[after]
    return next(taken for who, found, taken in steps if who == unit and found == reached)


def _move(graph: Graph, before: int, unit: int, taken: Taken) -> Move:
    workgroup, lane = graph.system.place(unit)
    memory = graph.states[before][1]
    newest = graph.system.memory.value(memory, taken.event.word) if taken.event.kind == "access" else 0
    return Move(workgroup, lane, graph.system.code.span_near(taken.event.pc), _phrase(graph, taken, newest))


def _phrase(graph: Graph, taken: Taken, newest: int) -> str:
    event, results = taken.event, taken.results
    if event.kind == "spin":
        return "repeats a loop in which nothing changes"
    name = graph.system.words.name(event.word)
    if results is None:
        return f"leaves its {'load' if event.op == 'load' else 'access'} of {name} for later"
    match event.op:
        case "load":
            late = f" ({newest:,} is newer)" if newest != results[0] else ""
            return f"reads {results[0]:,} from {name}{late}"
        case "store":
            return f"stores {event.args[0]:,} to {name}"
        case "compare" if not results[1]:
            return f"reads {results[0]:,} from {name}, and stores nothing"
        case _:
            return f"reads {results[0]:,} from {name}, and stores {_stored(event, results[0]):,}"


def _stored(event: Event, old: int) -> int:
    return int(apply(event, old)[0])
