"""The search: every state that a dispatch can reach, by breadth, with the steps between them.

A state is the threads and the memory. One step is one access that other invocations can see; barriers and subgroup
operations happen as soon as all who take part have arrived.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field
from itertools import accumulate
from math import prod
from time import monotonic
from typing import Any, NamedTuple

from ..codegen.build import lowered
from ..fast_dataclass import entity
from ..ir.passes import ALL
from ..run.dispatch import Dispatch
from ..wgsl.diagnostics import fail
from ..wgsl.source import Span
from .ahead import Ahead
from .code import Step, flatten
from .collectives import combine
from .invocations import Accesses, Event, Invocation, OutOfTime, Thread
from .memory import Memory, Sequential
from .waiting import deferred, performed, waits_for
from .weak import Weak
from .words import Words

STATES = 1_000_000
SECONDS = 60.0
MOST_INVOCATIONS = 64
_REHEARSED = 10_000  # steps of the run that finds which words are shared
MODELS = ("sc", "weak")

State = tuple[tuple[Thread, ...], Any]


class Taken(NamedTuple):
    """What a step does. `results`: of an access; None where it begins to wait, or repeats local steps."""

    event: Event
    results: tuple[int, ...] | None


@entity
class Graph:
    """The states that were found, the first state first; none if the time was too short for the first.

    `edges[i]`: the steps from state i, as the unit that takes it and the state that it leads to. `finished[i]`: the
    units that have ended; `blocked[i]`: those that wait at a barrier or a subgroup operation. `parents[i]`: the step by
    which state i was found first, of a shortest way from the first state. `complete`: no limit ended the search.

    A *unit* is an invocation by its number in the grid, workgroup by workgroup: workgroup * invocations + local index.
    """

    system: System
    states: list[State] = field(default_factory=list[State])
    edges: list[list[tuple[int, int]]] = field(default_factory=list[list[tuple[int, int]]])
    finished: list[frozenset[int]] = field(default_factory=list[frozenset[int]])
    blocked: list[frozenset[int]] = field(default_factory=list[frozenset[int]])
    parents: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    complete: bool = False
    seconds: float = 0.0

    @property
    def units(self) -> int:
        """The number of invocations."""
        return len(self.system.invocations)

    def path(self, state: int) -> list[int]:
        """Return the states on a shortest way to a state, with both ends."""
        path = [state]
        while path[-1]:
            path.append(self.parents[path[-1]][0])
        return path[::-1]

    def span(self, state: int, unit: int) -> Span | None:
        """Return the place in the source of a unit's next step."""
        return self.system.code.span_near(self.states[state][0][unit].pc)

    @property
    def ends(self) -> list[int]:
        """The states in which every unit has ended."""
        return [i for i, done in enumerate(self.finished) if len(done) == self.units]

    def changes(self, state: int) -> frozenset[tuple[int, int]]:
        """Return the words of the writable bindings that a state has changed, with their values."""
        return self.system.changes(self.states[state])

    def contents(self, state: int) -> tuple[bytes, ...]:
        """Return the contents of each writable binding in a state, in the order of `system.outputs`."""
        return self.system.contents(self.states[state])


def search(
    dispatch: Dispatch,
    memory: str = "sc",
    *,
    states: int = STATES,
    seconds: float | None = SECONDS,
    reduce: bool = False,
    lanes: Sequence[int] | None = None,
    without: Iterable[int] = (),
) -> Graph:
    """Find every state that a dispatch can reach, or as many as the limits allow.

    `memory`: "sc" or "weak". `states` and `seconds`: limits of the search. `reduce`: leave out states that make no
    difference to how the dispatch can end; the graph then lacks orders of steps. `lanes`: the invocations of each
    workgroup that run, by local index, ascending; None: all. `without`: barriers to leave out, by their steps.

    Raises `WgslError` for what the search cannot run.
    """
    system = System(dispatch, memory, reduce, lanes, without)
    began, graph = monotonic(), Graph(system)
    system.limit(began + (float("inf") if seconds is None else seconds))
    with suppress(OutOfTime):
        system.rehearse()
        patience = 1000
        while not system.explore(graph, states, patience):
            graph, patience = Graph(system), patience * 4
    system.limit(float("inf"))
    system.describe(graph)
    graph.seconds = monotonic() - began
    return graph


class System:
    """A dispatch as a system of states. `outputs`: the writable bindings. `reduces`: see `steps`."""

    def __init__(
        self,
        dispatch: Dispatch,
        memory: str,
        reduces: bool = False,
        chosen: Sequence[int] | None = None,
        without: Iterable[int] = (),
    ) -> None:
        self.reduces = reduces
        self._chosen = range(dispatch.lanes) if chosen is None else chosen
        lanes, size = len(self._chosen), dispatch.device.subgroup_size
        count = lanes * prod(dispatch.grid)
        if count > MOST_INVOCATIONS:
            message = f"the dispatch has {count:,} invocations, and the search runs at most {MOST_INVOCATIONS}"
            hint = "use a smaller grid, or a smaller workgroup size"
            raise fail("limit", message, dispatch.pipeline.entry.span, hint=hint)
        program = lowered(
            dispatch.pipeline,
            rounding=dispatch.rounding,
            probes=frozenset(),
            workgroups_per_batch=1,
            policy=dispatch.how.policy,
            passes=ALL - {"combine"},
        )
        self.dispatch = dispatch
        self.code = flatten(program)
        for pc in without:
            self.code.steps[pc] = Step("jump", target=pc + 1)
        self.words = Words(dispatch, program.accesses)
        weak = Weak(self.words.initial, count, self.words.space)
        self.memory: Memory = weak if memory == "weak" else Sequential(self.words.initial)
        self.outputs = [b for b in dispatch.bound if b.writable]
        self.invocations = [
            Invocation(unit, unit // lanes, _inputs(dispatch, *self._place(unit)), self.code, self.words)
            for unit in range(count)
        ]
        self._workgroups = [range(first, first + lanes) for first in range(0, count, lanes)]
        self._subgroups = [
            range(group.start + first, group.start + first + len(same))
            for group in self._workgroups
            for first, same in self._split(size)
        ]
        self._accesses = Accesses()

    def _split(self, size: int) -> list[tuple[int, list[int]]]:
        """Return the subgroups of a workgroup: the place of the first unit in it, and their local indices."""
        found: dict[int, list[int]] = {}
        for lane in self._chosen:
            found.setdefault(lane // size, []).append(lane)
        firsts = accumulate((len(same) for same in found.values()), initial=0)
        return [*zip(firsts, found.values(), strict=False)]

    def _place(self, unit: int) -> tuple[int, int]:
        """Return the number of its workgroup and the local invocation index of a unit."""
        workgroup, place = divmod(unit, len(self._chosen))
        return workgroup, self._chosen[place]

    # ---- states ----

    def begin(self) -> State:
        """Return the first state."""
        self._ahead = Ahead(self.code, self.words, self._accesses)
        threads = [each.begin(self._accesses) for each in self.invocations]
        return self._released(threads, self.memory.begin())

    def steps(self, state: State) -> Iterator[tuple[int, State, Taken]]:
        """Yield each step from a state: the unit that takes it, the state after it, and what it does.

        Where `reduces`, a unit whose steps no other can affect goes first, alone: that leaves out states, but no end.
        """
        threads = state[0]
        if self.reduces:
            for unit, thread in enumerate(threads):
                event, group = self.invocations[unit].event(thread), self._workgroups[self.invocations[unit].workgroup]
                if event.kind == "access" and self._ahead.is_alone(unit, event, threads, group):
                    alone = [*self._steps_of(unit, state, defers=not self._ahead.commutes(event.pc))]
                    if alone:
                        yield from alone
                        return
        for unit in range(len(threads)):
            yield from self._steps_of(unit, state)

    def _steps_of(self, unit: int, state: State, *, defers: bool = True) -> Iterator[tuple[int, State, Taken]]:
        """Yield each step of a unit. `defers`: its next access may wait though it need not."""
        threads, memory = state
        thread, invocation = threads[unit], self.invocations[unit]
        event, group = invocation.event(thread), self._workgroups[invocation.workgroup]
        if event.kind == "access":
            waits = not event.decided or waits_for(event, unit, thread.queue, threads, group)
            if not waits:
                for after, results in self.memory.perform(memory, unit, event):
                    moved = self._moved(state, unit, invocation.resume(thread, results), after)
                    yield unit, moved, Taken(event, results)
            if self.memory.defers and (defers or waits):
                gains = self._ahead.may_gain(event.pc, event.word, unit, threads, group)
                later = deferred(invocation, thread, event, gains, waits)
                if later is not None:
                    yield unit, self._moved(state, unit, later, memory), Taken(event, None)
        elif event.kind == "spin":
            yield unit, state, Taken(event, None)
        if thread.queue:
            for waited, results, later, after in performed(self.memory, memory, threads, invocation, group):
                yield unit, self._moved(state, unit, later, after), Taken(waited, results)

    def _moved(self, state: State, unit: int, thread: Thread, memory: Any) -> State:
        threads = [*state[0]]
        threads[unit] = thread
        return self._released(threads, memory)

    def _released(self, threads: list[Thread], memory: Any) -> State:
        """Return the state after every barrier and subgroup operation at which all have arrived."""
        moved = True
        while moved:
            moved = False
            for group in self._workgroups:
                waiting = self._meeting(threads, group, "barrier")
                if waiting is not None:
                    space = next(iter(waiting.values())).op
                    memory = self.memory.join(memory, waiting, space)
                    for unit in waiting:
                        queue = tuple(self._passed(event, space) for event in threads[unit].queue)
                        threads[unit] = self.invocations[unit].resume(threads[unit], (), queue, self.reduces)
                    moved = True
            for group in self._subgroups:
                waiting = self._meeting(threads, group, "collective")
                if waiting is not None:
                    self._exchange(threads, waiting, group)
                    moved = True
        if not self.memory.defers:
            return tuple(threads), memory
        ahead = self._ahead.words(threads, self._workgroups)
        waiting = {(u, each.word) for u, thread in enumerate(threads) for each in thread.queue if each.barriers}
        return tuple(threads), self.memory.settle(memory, ahead, waiting)

    def _passed(self, event: Event, space: str) -> Event:
        """Return an access that waits, after its thread has passed a barrier."""
        ordered = self.words.space(event.word) == space
        return event._replace(barriers=event.barriers + 1) if ordered else event

    def _meeting(self, threads: list[Thread], group: range, kind: str) -> dict[int, Event] | None:
        """Return the events of the units of a group that have not ended, if all wait at one step of this kind."""
        events: dict[int, Event] = {}
        for unit in group:
            event = self.invocations[unit].event(threads[unit])
            if event.kind == kind:
                events[unit] = event
            elif event.kind != "end" or threads[unit].queue:
                return None
        return events if events and len({event.pc for event in events.values()}) == 1 else None

    def _exchange(self, threads: list[Thread], waiting: dict[int, Event], group: range) -> None:
        step = self.code.steps[next(iter(waiting.values())).pc]
        lanes, size = self.dispatch.lanes, self.dispatch.device.subgroup_size
        at = {unit: self._place(unit)[1] % size for unit in waiting}
        args: dict[int, tuple[Any, ...]] = {at[unit]: event.args for unit, event in waiting.items()}
        first_lane = self._place(group.start)[1] // size * size
        results = combine(step.op, step.scalar, args, min(size, lanes - first_lane))
        for unit in waiting:
            threads[unit] = self.invocations[unit].resume(threads[unit], results[at[unit]])

    def place(self, unit: int) -> tuple[tuple[int, int, int], int]:
        """Return the workgroup_id and the local invocation index of a unit."""
        workgroup, lane = self._place(unit)
        x, y, _ = self.dispatch.grid
        return (workgroup % x, workgroup // x % y, workgroup // (x * y)), lane

    def who(self, unit: int) -> str:
        """Name a unit as messages do."""
        workgroup, lane = self.place(unit)
        if len(self._workgroups) == 1:
            return f"invocation {lane}"
        return f"workgroup {workgroup}" if len(self._chosen) == 1 else f"invocation {lane} of workgroup {workgroup}"

    def changes(self, state: State) -> frozenset[tuple[int, int]]:
        """Return the words of `outputs` that a state has changed, with their values."""
        threads, memory = state
        values = {word: bits for thread in threads for word, bits in thread.own if isinstance(bits, int)}
        values |= {word: self.memory.value(memory, word) for word in self._accesses.shared}
        parts = [self.words.part(each) for each in self.outputs]
        initial = self.words.initial
        return frozenset((w, v) for w, v in values.items() if v != initial[w] and any(w in part for part in parts))

    def contents(self, state: State) -> tuple[bytes, ...]:
        """Return the contents of each of `outputs` in a state."""
        threads, memory = state
        own = {word: bits for thread in threads for word, bits in thread.own if isinstance(bits, int)}
        shared = self._accesses.shared

        def value(word: int) -> int:
            return self.memory.value(memory, word) if word in shared else own.get(word, self.words.initial[word])

        return tuple(
            b"".join(value(word).to_bytes(4, "little") for word in self.words.part(each))[: len(each.data)]
            for each in self.outputs
        )

    # ---- the search ----

    def rehearse(self) -> None:
        """Run one schedule, fair and round robin, to find most of the words that units share."""
        state, turn = self.begin(), 0
        earlier, next_kept = (state, -1), 1
        for step in range(_REHEARSED):
            if (state, turn) == earlier:
                return  # units that wait in a loop go round in a circle
            if step == next_kept:
                earlier, next_kept = (state, turn), 2 * next_kept
            for unit in (*range(turn, len(self.invocations)), *range(turn)):
                if steps := [*self._steps_of(unit, state)]:
                    turn, state = unit + 1, steps[-1][1]
                    break
            else:
                return

    def limit(self, deadline: float) -> None:
        """Let the search raise `OutOfTime` from then on, by `monotonic`."""
        for each in self.invocations:
            each.deadline = deadline
        self._deadline = deadline

    def explore(self, graph: Graph, most: int, patience: int) -> bool:
        """Fill the graph. Returns False if units turned out to share more words, so that it has to begin again.

        `patience`: how many states to find before it begins again.
        """
        self._accesses.grown = False
        first = self.begin()
        numbers: dict[State, int] = {first: 0}
        graph.states.append(first)
        graph.parents.append((0, 0))
        place = 0
        while place < len(graph.states) and len(graph.states) <= most:
            if place % 64 == 0 and monotonic() > self._deadline:
                raise OutOfTime
            state, edges = graph.states[place], list[tuple[int, int]]()
            for unit, after, _ in self.steps(state):
                number = numbers.setdefault(after, len(graph.states))
                if number == len(graph.states):
                    graph.states.append(after)
                    graph.parents.append((place, unit))
                edges.append((unit, number))
            graph.edges.append([*dict.fromkeys(edges)])
            if self._accesses.grown and len(graph.states) >= patience:
                return False
            place += 1
        graph.complete = place == len(graph.states)
        return not self._accesses.grown

    def describe(self, graph: Graph) -> None:
        """Fill in what the graph says of each state."""
        if self._accesses.grown:  # what was found may be wrong
            graph.states, graph.edges, graph.complete = [], [], False
        explored = len(graph.edges)
        graph.edges += [[] for _ in graph.states[explored:]]
        for threads, _ in graph.states:
            self._note_threads(graph, threads)
        self._refuse_divergence(graph, explored)

    def _note_threads(self, graph: Graph, threads: tuple[Thread, ...]) -> None:
        kinds = [self.invocations[unit].event(thread).kind for unit, thread in enumerate(threads)]
        ended = (u for u, kind in enumerate(kinds) if kind == "end" and not threads[u].queue)
        graph.finished.append(frozenset(ended))
        graph.blocked.append(frozenset(u for u, kind in enumerate(kinds) if kind in ("barrier", "collective")))

    def _refuse_divergence(self, graph: Graph, explored: int) -> None:
        """Raise `WgslError` where invocations of a subgroup wait for each other in different places."""
        for i in range(explored):
            if graph.edges[i] or not graph.blocked[i]:
                continue
            for unit in graph.blocked[i]:
                thread = graph.states[i][0][unit]
                if self.invocations[unit].event(thread).kind == "collective":
                    message = "the search cannot run a subgroup operation that some invocations of a subgroup skip"
                    raise fail("unsupported", message, self.code.span_near(thread.pc))


def _inputs(dispatch: Dispatch, workgroup: int, lane: int) -> dict[str, int]:
    """Return the inputs of an invocation, by name."""
    lanes, subgroup = dispatch.lanes, dispatch.device.subgroup_size
    x, y, _ = dispatch.pipeline.workgroup_size
    width, height, depth = dispatch.grid
    return {
        "local_x": lane % x,
        "local_y": lane // x % y,
        "local_z": lane // (x * y),
        "local_index": lane,
        "group_x": workgroup % width,
        "group_y": workgroup // width % height,
        "group_z": workgroup // (width * height),
        "grid_x": width,
        "grid_y": height,
        "grid_z": depth,
        "subgroup_lane": lane % subgroup,
        "subgroup_index": lane // subgroup,
        "subgroup_size": subgroup,
        "subgroup_count": -(-lanes // subgroup),
    }
