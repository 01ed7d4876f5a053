"""Fairness of memory: no run overlooks a store forever.

With weak memory a load may read an old value, and so could a loop that waits for a new one, forever. Vulkan rules that
out, as stores become visible in finite time. Lahav, Namakonov, Oberhauser, Podkopaev and Vafeiadis, "Making Weak Memory
Models Fair", OOPSLA 2021, say what that means: no store has infinitely many loads that overlook it, nor infinitely many
stores before it in modification order. Likewise no access waits forever while its thread goes on.

In a component of the graph of states, these steps are barred:

- an access to a word whose newest store its unit does not see afterwards, unless steps of the component store to the
  word, and see that as the newest. Where they do, histories of finite length mean that all views move on.
- all steps of a unit with an access that waits, and that could be performed, in all states of the component.
"""

from __future__ import annotations

from functools import cache

from .progress import Step
from .search import Graph, Taken


class Visibility:
    """What memory bars in the components of a graph of states."""

    def __init__(self, graph: Graph):
        self._graph = graph
        self._steps = cache(self._find_steps)

    def barred(self, steps: set[Step]) -> set[Step]:
        """Return which of the steps inside a component no run takes forever that stays there."""
        moving = {
            taken.event.word
            for step in steps
            for taken in self._taken(step)
            if _stores(taken) and not self._overlooks(step, taken)
        }
        held = self._held({state for state, _, _ in steps})
        return {
            step
            for step in steps
            if step[1] in held
            or all(self._overlooks(step, taken) and taken.event.word not in moving for taken in self._taken(step))
        }

    def _taken(self, step: Step) -> list[Taken]:
        """Return what a step may do; several accesses can lead to the same state."""
        before, unit, after = step
        return self._steps(before)[unit, after]

    def _find_steps(self, state: int) -> dict[tuple[int, int], list[Taken]]:
        """Return what each step from a state may do, by its unit and the state after it."""
        states, found = self._graph.states, dict[tuple[int, int], list[Taken]]()
        numbers = {states[after]: after for _, after in self._graph.edges[state]}
        for unit, after, taken in self._graph.system.steps(states[state]):
            found.setdefault((unit, numbers[after]), []).append(taken)
        return found

    def _overlooks(self, step: Step, taken: Taken) -> bool:
        """Whether a step accesses a word whose newest store its unit does not see afterwards."""
        _, unit, after = step
        memory = self._graph.states[after][1]
        return taken.results is not None and self._graph.system.memory.is_behind(memory, unit, taken.event.word)

    def _held(self, states: set[int]) -> set[int]:
        """Return the units whose first access that waits is the same in all states, and could be performed."""
        threads = self._graph.states[min(states)][0]
        return {
            unit
            for unit, thread in enumerate(threads)
            if thread.queue and all(self._performable(state, unit, thread.queue[0].pc) for state in states)
        }

    def _performable(self, state: int, unit: int, pc: int) -> bool:
        queue = self._graph.states[state][0][unit].queue
        if not queue or queue[0].pc != pc:
            return False
        steps = ((who, taken) for (who, _), several in self._steps(state).items() for taken in several)
        return any(who == unit and taken.event == queue[0] and taken.results is not None for who, taken in steps)


def _stores(taken: Taken) -> bool:
    if taken.results is None or taken.event.op == "load":
        return False
    return taken.event.op != "compare" or bool(taken.results[1])
