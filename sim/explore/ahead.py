"""What may still come: the words that each invocation may access from a step on, as far as the search has seen."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TypeVar

from .code import Code
from .invocations import Accesses, Thread
from .words import Words

T = TypeVar("T")


class Ahead:
    """Facts about the steps from each step on, that step included.

    `stores[pc]`: whether a step after `pc` may store to a word that invocations share.
    """

    def __init__(self, code: Code, words: Words, accesses: Accesses, units: int) -> None:
        following = [_following(code, pc) for pc in range(len(code.steps))]
        order = range(len(code.steps) - 1, -1, -1)
        storing = _union(following, order, [{"store"} if pc in accesses.storing else set() for pc in range(len(order))])
        self.stores = [any(storing[after] for after in each) for each in following]
        barriers = [{step.op} if step.kind == "barrier" else set[str]() for step in code.steps]
        self._barriers = _union(following, order, barriers)
        own = [[accesses.at.get((unit, pc), set[int]()) for pc in range(len(order))] for unit in range(units)]
        self._words = [_union(following, order, each) for each in own]
        self._near = [_union(_cut(code, following), order, each) for each in own]
        stored = [[own[unit][pc] if code.steps[pc].op != "load" else set[int]() for pc in range(len(order))]
                  for unit in range(units)]  # fmt: skip
        self._stored = [_union(following, order, each) for each in stored]
        self._stored_before = {
            space: [_union(_cut(code, following, space), order, each) for each in stored]
            for space in ("workgroup", "storage", "texture")
        }
        self._space = words.space
        self._known: dict[tuple[tuple[int, ...], ...], list[frozenset[int]]] = {}

    def words(self, threads: Sequence[Thread], workgroups: Sequence[range]) -> list[frozenset[int]]:
        """Return the words that each unit may still access, or make others of its workgroup see by a barrier."""
        key = tuple((thread.pc, *(event.word for event in thread.queue)) for thread in threads)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._combined(threads, workgroups)
        return found

    def _combined(self, threads: Sequence[Thread], workgroups: Sequence[range]) -> list[frozenset[int]]:
        ahead = [self._of(unit, thread) for unit, thread in enumerate(threads)]
        for group in workgroups:
            spaces = {unit: self._barriers[threads[unit].pc] for unit in group}
            if len(group) > 1 and any(spaces.values()):
                together = frozenset[int]().union(*(ahead[unit] for unit in group))
                for unit in group:
                    ahead[unit] |= {word for word in together if self._space(word) in spaces[unit]}
        return ahead

    def is_alone(self, unit: int, words: AbstractSet[int], threads: Sequence[Thread], group: range) -> bool:
        """Whether no other unit can access one of these words before `unit` has moved.

        Units of its workgroup cannot get past their next barrier before it does.
        """
        for other, thread in enumerate(threads):
            if other != unit:
                ahead = (self._near if other in group else self._words)[other][thread.pc]
                if not words.isdisjoint(ahead) or any(event.word in words for event in thread.queue):
                    return False
        return True

    def may_gain(self, pc: int, word: int, unit: int, threads: Sequence[Thread], group: range) -> bool:
        """Whether an access to `word` at step `pc` may see more if it waits.

        Its unit must store something later that others see, and another unit must store to the word meanwhile. Units
        of its workgroup cannot do so past a barrier that orders the word.
        """
        if not self.stores[pc]:
            return False
        space = self._space(word)
        return any(
            word in (self._stored_before[space] if other in group else self._stored)[other][thread.pc]
            or any(event.word == word and event.stores for event in thread.queue)
            for other, thread in enumerate(threads)
            if other != unit
        )

    def _of(self, unit: int, thread: Thread) -> frozenset[int]:
        words = self._words[unit][thread.pc]
        return words.union(event.word for event in thread.queue) if thread.queue else words


def _following(code: Code, pc: int) -> list[int]:
    """Return the steps that may come next."""
    step = code.steps[pc]
    match step.kind:
        case "end":
            return []
        case "jump":
            return [step.target]
        case "branch":
            return [pc + 1, step.target]
        case _:
            return [pc + 1]


def _cut(code: Code, following: list[list[int]], space: str = "") -> list[list[int]]:
    """Return the steps that may come next, none after a barrier: one that orders `space`, or any."""
    cut = [step.kind == "barrier" and space in ("", step.op) for step in code.steps]
    return [[] if cut[pc] else each for pc, each in enumerate(following)]


def _union(following: list[list[int]], order: range, own: Sequence[set[T]]) -> list[frozenset[T]]:
    """Return, for each step, what it and the steps that may follow it have in all."""
    found = [frozenset(each) for each in own]
    changed = True
    while changed:
        changed = False
        for pc in order:
            more = found[pc].union(*(found[after] for after in following[pc]))
            if len(more) > len(found[pc]):
                found[pc], changed = more, True
    return found
