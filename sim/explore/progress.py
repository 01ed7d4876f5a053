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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    """Which of several siblings the scheduler must schedule fairly; siblings are workgroups, or invocations of one.

    `guaranteed(able, started)` takes the siblings that can step, ascending, and those that have taken a step. `promise`
    says the same of `{each}`, in words; `under` is how a sentence refers to the model.
    """

    under: str
    promise: str
    guaranteed: Callable[[Sequence[int], frozenset[int]], Iterable[int]]
    needs_started: bool = False


def _lowest(able: Sequence[int], _: frozenset[int]) -> Iterable[int]:
    return able[:1]


def _started(able: Sequence[int], started: frozenset[int]) -> Iterable[int]:
    return (each for each in able if each in started)


def _up_to_started(able: Sequence[int], started: frozenset[int]) -> Iterable[int]:
    last = max(started, default=-1)
    return (each for each in able if each <= last)


def _lowest_and_started(able: Sequence[int], started: frozenset[int]) -> Iterable[int]:
    return {*_lowest(able, started), *_started(able, started)}


MODELS = {
    "fair": Model("under fair scheduling", "every {each} is guaranteed to run", lambda able, _: able),
    "hsa": Model("under HSA", "HSA guarantees only the first {each} that has not ended", _lowest),
    "obe": Model("under OBE", "OBE guarantees only {each}s that have started", _started, needs_started=True),
    "hsa+obe": Model(
        under="under HSA+OBE",
        promise="HSA+OBE guarantees only the first {each} that has not ended, and {each}s that have started",
        guaranteed=_lowest_and_started,
        needs_started=True,
    ),
    "lobe": Model(
        under="under LOBE",
        promise="LOBE guarantees only {each}s that have started, and those before them",
        guaranteed=_up_to_started,
        needs_started=True,
    ),
    "none": Model("without guarantees", "no {each} is guaranteed to run", lambda _, __: ()),
}


# A step: the state or node before, the unit that steps, and the state or node after.
Step = tuple[int, int, int]


@frozen
class Stuck:
    """A run that never ends: `way` leads from the first state to `state`, from where the run repeats `cycle` forever.

    In a deadlock, where every unit that has not ended is blocked, the cycle is empty.
    """

    way: tuple[Step, ...]
    state: int
    cycle: tuple[Step, ...]


def find_stuck(
    graph: Graph,
    model: str,
    *,
    within: str = "fair",
    size: int = 1,
    barred: Callable[[set[Step]], set[Step]] | None = None,
) -> Stuck | None:
    """Return a run that never ends and that the model allows, or None if every allowed run ends.

    `size` is the number of invocations of a workgroup, `within` the model for those of one workgroup. `barred` takes
    the steps inside a component, and returns those that no run takes forever that stays there; memory may bar some.
    The way to the cycle is a shortest one. If states are missing from the graph, None says only that no such run was
    found.
    """
    return _Search(graph, MODELS[model], MODELS[within], size, barred).find()


# The workgroups and the invocations that have taken a step, as far as the models look at them.
_Started = tuple[frozenset[int], frozenset[int]]
# What must step again and again: a workgroup, as its number and -1, or an invocation, as its workgroup and its own.
_Duty = tuple[int, int]
# Nodes, each with the steps that lead to others of them: the unit, and the node after.
_Component = dict[int, list[tuple[int, int]]]


class _Search:
    """The nodes, each a state with what has started, numbered breadth first."""

    def __init__(
        self,
        graph: Graph,
        model: Model,
        within: Model,
        size: int,
        barred: Callable[[set[Step]], set[Step]] | None,
    ):
        self.graph, self.model, self.within, self.size, self.barred = graph, model, within, size, barred
        self.nodes: list[tuple[int, _Started]] = []
        self.edges: list[list[tuple[int, int]]] = []
        self.parents: list[tuple[int, int]] = []  # the node before on a shortest way, and the unit that stepped
        self._explore()
        self._duties = cache(self._find_duties)

    def find(self) -> Stuck | None:
        deadlocks = (number for number in range(len(self.nodes)) if self._deadlocked(number))
        cycles = {min(each): each for each in self._components() if self._kept(each) is not None}
        entry = min((*deadlocks, *cycles), default=None)
        if entry is None:
            return None
        cycle = self._closed_walk(cycles[entry], entry) if entry in cycles else []
        # A step that only starts a unit can be left out: the fewer have started, the less is guaranteed.
        way = tuple(step for step in self._in_states(self._way(entry)) if step[0] != step[2])
        return Stuck(way, self.nodes[entry][0], self._in_states(cycle))

    def _in_states(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        return tuple((self.nodes[before][0], unit, self.nodes[after][0]) for before, unit, after in steps)

    def _explore(self) -> None:
        self.nodes.append((0, (frozenset(), frozenset())))
        numbers = {self.nodes[0]: 0}
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
        return not self.edges[number] and bool(left) and left <= self.graph.blocked[state]

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

    def _components(self) -> Iterator[_Component]:
        """Yield the components in which no step is barred; where some are, those that are left without them."""
        parts: list[_Component] = [dict(enumerate(self.edges))]
        while parts:
            part = parts.pop()
            for numbers in components(part):
                inside = set(numbers)
                component = {number: [each for each in part[number] if each[1] in inside] for number in numbers}
                barred = self._barred(component)
                if barred:
                    parts.append({
                        number: [(unit, after) for unit, after in steps if (number, unit, after) not in barred]
                        for number, steps in component.items()
                    })  # fmt: skip
                elif any(component.values()):
                    yield component

    def _barred(self, component: _Component) -> set[Step]:
        if self.barred is None or not any(component.values()):
            return set()
        steps = {
            (self.nodes[number][0], unit, self.nodes[after][0]): (number, unit, after)
            for number, successors in component.items()
            for unit, after in successors
        }
        return {steps[each] for each in self.barred(set(steps))}

    def _kept(self, component: _Component) -> int | None:
        """Return a workgroup that can step forever if a run stays in a component, or None if no run may.

        A run may if each duty of all nodes is done there.
        """
        units = {unit for successors in component.values() for unit, _ in successors}
        for kept in sorted({unit // self.size for unit in units}):
            first, *others = (self._duties(each, kept) for each in component)
            left = first.intersection(*others)
            if all(any(self._does(unit, duty) for unit in units) for duty in left):
                return kept
        return None

    def _closed_walk(self, component: _Component, entry: int) -> list[Step]:
        """Return the steps of a cycle that a run may repeat forever, from the node that is reached first."""
        kept = self._kept(component)
        assert kept is not None
        walk: list[Step] = []
        for duty in sorted({(kept, -1), *self._duties(entry, kept)}):

            def meets(step: Step, duty: _Duty = duty) -> bool:
                return self._does(step[1], duty) or duty not in self._duties(step[2], kept)

            if not any(map(meets, walk)):
                walk += _shortest(component, walk[-1][2] if walk else entry, meets)
        if walk[-1][2] != entry:
            walk += _shortest(component, walk[-1][2], lambda step: step[2] == entry)
        return walk

    def _way(self, number: int) -> list[Step]:
        """Return the steps of a shortest way to a node."""
        way: list[Step] = []
        while number:
            before, unit = self.parents[number]
            way.append((before, unit, number))
            number = before
        return way[::-1]


def _shortest(component: _Component, start: int, last: Callable[[Step], bool]) -> list[Step]:
    """Return the fewest steps from a node in a component that end with one for which `last` holds."""
    came: dict[int, Step | None] = {start: None}
    for number in (queue := [start]):
        for unit, after in component[number]:
            step = (number, unit, after)
            if last(step):
                walk = [step]
                while before := came[walk[-1][0]]:
                    walk.append(before)
                return walk[::-1]
            if after not in came:
                came[after] = step
                queue.append(after)
    raise AssertionError("the component has no such step")


def components(edges: Mapping[int, Sequence[tuple[int, int]]]) -> Iterator[list[int]]:
    """Yield the strongly connected components of a graph whose edges are (label, target), by Tarjan's algorithm."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    for root in edges:
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
