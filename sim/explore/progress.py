"""Progress models: which runs that never end does a GPU's scheduler allow?

WGSL and WebGPU promise no progress: a workgroup that spins on a flag may keep another from ever running. What GPUs do
promise has been described as *progress models*. Each says which workgroups the scheduler must schedule *fairly*:

- `fair`: all.
- `hsa`: the first that has not ended (Heterogeneous System Architecture).
- `obe`: each that has taken a step (occupancy-bound execution: workgroups that run stay resident, others may wait until
  one of those ends).
- `hsa+obe`: both of the above.
- `lobe`: each that has taken a step, and all before it (linear occupancy-bound execution: workgroups start in order).
- `none`: no particular one; some workgroup steps.

The definitions are those of Sorensen, Salvador, Raval, Evrard, Wickerson, Martonosi and Donaldson, "Specifying and
Testing GPU Workgroup Progress Models", OOPSLA 2021, with *weak* fairness: no workgroup may, from some point on, be
guaranteed, able to step, and never step.

As in Dartagnan's hierarchies of progress models, a second model holds for the invocations of a workgroup: a workgroup
that is guaranteed owes its invocations what that model says. In every model, including `none`, a run that never ends
steps some workgroup forever, which owes its invocations the same.

A run of finitely many states that does not end stays in one strongly connected component of the graph of states. If
such a run exists, one exists that visits all of that component again and again: this steps every unit that can step
there, and passes every state in which a unit is not guaranteed or cannot step. So a component has an allowed run that
never ends exactly if each unit that is guaranteed in all of its states steps in it. Which units have started is part
of the state where a model needs it; it is the same in a whole component, since it only grows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Protocol

from ..fast_dataclass import frozen


class Graph(Protocol):
    """All states of a dispatch, by number, the first one first; a unit is an invocation."""

    @property
    def edges(self) -> Sequence[Sequence[tuple[int, int]]]:
        """For each state, the units that can step, each with the state after."""
        ...

    @property
    def finished(self) -> Sequence[frozenset[int]]:
        """For each state, the units that ended."""
        ...

    @property
    def blocked(self) -> Sequence[frozenset[int]]:
        """For each state, the units that wait at a barrier or a collective for others."""
        ...

    @property
    def units(self) -> int:
        """How many invocations the dispatch has; those of a workgroup follow each other."""
        ...


@frozen
class Model:
    """Which of several siblings the scheduler must schedule fairly.

    `guaranteed(able, started)` takes the siblings that can step, ascending, and those that have taken a step.
    """

    guaranteed: Callable[[Sequence[int], frozenset[int]], Iterable[int]]
    needs_started: bool = False


def _lowest(able: Sequence[int], _: frozenset[int]) -> Iterable[int]:
    return able[:1]


def _started(able: Sequence[int], started: frozenset[int]) -> Iterable[int]:
    return (each for each in able if each in started)


def _up_to_started(able: Sequence[int], started: frozenset[int]) -> Iterable[int]:
    last = max(started, default=-1)
    return (each for each in able if each <= last)


MODELS = {
    "fair": Model(lambda able, _: able),
    "hsa": Model(_lowest),
    "obe": Model(_started, needs_started=True),
    "hsa+obe": Model(lambda able, started: {*_lowest(able, started), *_started(able, started)}, needs_started=True),
    "lobe": Model(_up_to_started, needs_started=True),
    "none": Model(lambda _, __: ()),
}


@frozen
class Stuck:
    """A run that never ends: the units that step to reach its cycle, and those that step in the cycle, forever.

    `states` are the states before each step of the cycle. In a deadlock, where every unit that has not ended is
    blocked, the cycle is empty, and `states` has that state alone.
    """

    prefix: tuple[int, ...]
    cycle: tuple[int, ...]
    states: tuple[int, ...]


def find_stuck(graph: Graph, model: str, *, within: str = "fair", size: int = 1) -> Stuck | None:
    """Return a run that never ends and that the model allows, or None if every allowed run ends.

    `size` is the number of invocations of a workgroup, `within` the model for those of one workgroup. The way to the
    cycle is a shortest one. If states are missing from the graph, None says only that no such run was found.
    """
    return _Search(graph, MODELS[model], MODELS[within], size).find()


# The workgroups and the invocations that have taken a step, as far as the models look at them.
_Started = tuple[frozenset[int], frozenset[int]]
# What must step again and again: a workgroup, as its number and -1, or an invocation, as its workgroup and its own.
_Duty = tuple[int, int]
# A step: the node before, the unit that steps, and the node after.
_Step = tuple[int, int, int]


class _Search:
    """The nodes, each a state with what has started, numbered breadth first."""

    def __init__(self, graph: Graph, model: Model, within: Model, size: int):
        self.graph, self.model, self.within, self.size = graph, model, within, size
        self.nodes: list[tuple[int, _Started]] = []
        self.edges: list[list[tuple[int, int]]] = []
        self.parents: list[tuple[int, int]] = []  # the node before on a shortest way, and the unit that stepped
        self._explore()
        self._duties = cache(self._find_duties)

    def find(self) -> Stuck | None:
        deadlocks = ([number] for number in range(len(self.nodes)) if self._deadlocked(number))
        cycles = (component for component in components(self.edges) if self._kept(component) is not None)
        found = min((*deadlocks, *cycles), key=min, default=None)
        if found is None:
            return None
        walk = self._closed_walk(found)
        states = [self.nodes[before][0] for before, _, _ in walk] or [self.nodes[found[0]][0]]
        return Stuck(self._way(min(found)), tuple(unit for _, unit, _ in walk), tuple(states))

    def _explore(self) -> None:
        start: tuple[int, _Started] = (0, (frozenset[int](), frozenset[int]()))
        numbers = {start: 0}
        self.nodes.append(start)
        self.parents.append((0, -1))
        for number, (state, started) in enumerate(self.nodes):  # which grows here
            successors: list[tuple[int, int]] = []
            for unit, after in self.graph.edges[state]:
                node = (after, self._start(started, unit))
                target = numbers.setdefault(node, len(self.nodes))
                if target == len(self.nodes):
                    self.nodes.append(node)
                    self.parents.append((number, unit))
                successors.append((unit, target))
            self.edges.append(successors)

    def _start(self, started: _Started, unit: int) -> _Started:
        groups, units = started
        if self.model.needs_started:
            groups |= {unit // self.size}
        if self.within.needs_started:
            units |= {unit}
        return groups, units

    def _deadlocked(self, number: int) -> bool:
        state, _ = self.nodes[number]
        left = frozenset(range(self.graph.units)) - self.graph.finished[state]
        return bool(left) and left <= self.graph.blocked[state]

    def _find_duties(self, number: int, kept: int) -> frozenset[_Duty]:
        """Return what can step and must, where the workgroup `kept` is guaranteed, and those that the model names."""
        _, (groups, units) = self.nodes[number]
        children: dict[int, list[int]] = {}
        for unit in sorted({unit for unit, _ in self.edges[number]}):
            children.setdefault(unit // self.size, []).append(unit)
        duties: set[_Duty] = set()
        for group in {*self.model.guaranteed(list(children), groups), kept} & children.keys():
            duties.add((group, -1))
            duties.update((group, unit) for unit in self.within.guaranteed(children[group], units))
        return frozenset(duties)

    def _does(self, unit: int, duty: _Duty) -> bool:
        group, one = duty
        return unit // self.size == group if one == -1 else unit == one

    def _kept(self, component: Sequence[int]) -> int | None:
        """Return a workgroup that can step forever if a run stays in a component, or None if no run may.

        A run may if each duty of all nodes is done there.
        """
        inside = set(component)
        steps = {unit for number in component for unit, after in self.edges[number] if after in inside}
        for kept in sorted({unit // self.size for unit in steps}):
            left = self._duties(component[0], kept).intersection(*(self._duties(number, kept) for number in component))
            if all(any(self._does(unit, duty) for unit in steps) for duty in left):
                return kept
        return None

    def _closed_walk(self, component: Sequence[int]) -> list[_Step]:
        """Return the steps of a cycle that a run may repeat forever, from the node that is reached first."""
        inside, entry = set(component), min(component)
        kept = self._kept(component)
        if kept is None:
            return []
        walk: list[_Step] = []
        for duty in sorted({(kept, -1), *self._duties(entry, kept)}):

            def meets(step: _Step, duty: _Duty = duty) -> bool:
                return self._does(step[1], duty) or duty not in self._duties(step[2], kept)

            if not any(map(meets, walk)):
                walk += self._shortest(walk[-1][2] if walk else entry, inside, meets)
        if not walk or walk[-1][2] != entry:
            walk += self._shortest(walk[-1][2] if walk else entry, inside, lambda step: step[2] == entry)
        return walk

    def _shortest(self, start: int, inside: set[int], last: Callable[[_Step], bool]) -> list[_Step]:
        """Return the fewest steps from a node inside a component that end with one for which `last` holds."""
        came: dict[int, _Step | None] = {start: None}
        for number in (queue := [start]):
            for unit, after in self.edges[number]:
                step = (number, unit, after)
                if after not in inside:
                    continue
                if last(step):
                    walk = [step]
                    while before := came[walk[-1][0]]:
                        walk.append(before)
                    return walk[::-1]
                if after not in came:
                    came[after] = step
                    queue.append(after)
        return []

    def _way(self, number: int) -> tuple[int, ...]:
        """Return the units that step on a shortest way to a node."""
        way: list[int] = []
        while number:
            number, unit = self.parents[number]
            way.append(unit)
        return tuple(way[::-1])


def components(edges: Sequence[Sequence[tuple[int, int]]]) -> Iterator[list[int]]:
    """Yield the strongly connected components of a graph whose edges are (label, target), by Tarjan's algorithm."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    for root in range(len(edges)):
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        work = [(root, iter(edges[root]))]
        while work:
            number, left = work[-1]
            for _, after in left:
                if after not in index:
                    index[after] = low[after] = len(index)
                    stack.append(after)
                    on_stack.add(after)
                    work.append((after, iter(edges[after])))
                    break
                if after in on_stack:
                    low[number] = min(low[number], index[after])
            else:
                work.pop()
                if work:
                    before = work[-1][0]
                    low[before] = min(low[before], low[number])
                if low[number] == index[number]:
                    component = [stack.pop()]
                    while component[-1] != number:
                        component.append(stack.pop())
                    on_stack.difference_update(component)
                    yield component
