"""What may still come: the words that each invocation may access from a step on, as far as the search has seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .code import Code, set_bits
from .invocations import Accesses, Event, Thread
from .words import Words

COMMUTING = {
    "add_u32": "add",
    "sub_u32": "add",
    **{each: each for each in ("and_u32", "or_u32", "xor_u32", "max_u32", "max_i32", "min_u32", "min_i32")},
}
_ALL = ("workgroup", "storage", "texture")


class Ahead:
    """Facts about the steps from each step on, that step included.

    `stores[pc]`: whether a step after `pc` may store to a word that invocations share.
    """

    def __init__(self, code: Code, words: Words, accesses: Accesses) -> None:
        following = [_following(code, pc) for pc in range(len(code.steps))]
        own = [1 << pc if step.kind in ("access", "barrier") else 0 for pc, step in enumerate(code.steps)]
        self._all = _union(following, own)
        self._near = _union(_cut(code, following, _ALL), own)
        self._before = {space: _union(_cut(code, following, (space,)), own) for space in _ALL}
        storing = sum(1 << pc for pc in accesses.storing)
        self.stores = [any(self._all[after] & storing for after in each) for each in following]
        self._others = {space: sum(1 << pc for pc, step in enumerate(code.steps)
                                   if step.kind == "barrier" and step.op != space) for space in _ALL}  # fmt: skip
        kinds = [1 << _ALL.index(step.op) if step.kind == "barrier" else 0 for step in code.steps]
        self._barriers = [{_ALL[at] for at in set_bits(each)} for each in _union(following, kinds)]
        self._kinds = [_kind(code, pc) for pc in range(len(code.steps))]
        self._at, self._space = accesses.at, words.space
        self._known: dict[Any, list[frozenset[int]]] = {}
        self._found: dict[tuple[int, int, int, str], dict[int, str]] = {}

    def words(self, threads: Sequence[Thread], workgroups: Sequence[range]) -> list[frozenset[int]]:
        """Return the words that each unit may still access, or make others of its workgroup see by a barrier."""
        key = tuple((thread.pc, thread.phase, *(event.word for event in thread.queue)) for thread in threads)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._combined(threads, workgroups)
        return found

    def _combined(self, threads: Sequence[Thread], workgroups: Sequence[range]) -> list[frozenset[int]]:
        ahead = [
            frozenset((*self._of(unit, thread, "all"), *(event.word for event in thread.queue)))
            for unit, thread in enumerate(threads)
        ]
        for group in workgroups:
            spaces = {unit: self._barriers[threads[unit].pc] for unit in group}
            if any(spaces.values()):
                together = frozenset[int]().union(*(ahead[unit] for unit in group))
                for unit in group:
                    ahead[unit] |= {word for word in together if self._space(word) in spaces[unit]}
        return ahead

    def is_alone(self, unit: int, event: Event, threads: Sequence[Thread], group: range) -> bool:
        """Whether no other unit can do anything before `unit` has moved that its next access would affect.

        Accesses of one kind to a word do not affect each other: loads, or additions whose results nothing uses. Units
        of its workgroup cannot get past their next barrier before it does. Additions look further, past barriers that
        do not order the word: there a load may tell their order.
        """
        kind = self._kinds[event.pc]
        near = "near" if kind in ("", "load") else self._space(event.word)
        words = {each.word: "" for each in threads[unit].queue}
        words[event.word] = "" if event.word in words else kind
        for other, thread in enumerate(threads):
            if other != unit:
                ahead = self._of(other, thread, near if other in group else "all")
                if any(word in ahead and (not each or ahead[word] != each) for word, each in words.items()):
                    return False
                if any(each.word in words for each in thread.queue):
                    return False
        return True

    def commutes(self, pc: int) -> bool:
        """Whether a step's access may change places with others of its kind, and nothing can tell."""
        return self._kinds[pc] not in ("", "load")

    def may_gain(self, pc: int, word: int, unit: int, threads: Sequence[Thread], group: range) -> bool:
        """Whether an access to `word` at step `pc` may see more if it waits.

        Its unit must store something later that others see, and another unit must store to the word meanwhile. Units
        of its workgroup cannot do so past a barrier that orders the word.
        """
        if not self.stores[pc]:
            return False
        space = self._space(word)
        return any(
            self._of(other, thread, space if other in group else "all").get(word, "load") != "load"
            or any(event.word == word and event.stores for event in thread.queue)
            for other, thread in enumerate(threads)
            if other != unit
        )

    def _of(self, unit: int, thread: Thread, until: str) -> dict[int, str]:
        """Return the words that a unit may access from a step on, each with the kind of these accesses, "" for several.

        `until`: its end ("all"), the next barrier ("near"), or the next barrier that orders this memory.
        """
        key = (unit, thread.pc, thread.phase, until)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = {}
            reached = {"all": self._all, "near": self._near, **self._before}[until][thread.pc]
            later = until == "all" or reached & self._others.get(until, 0)
            for pc in set_bits(reached):
                for phase, words in self._at.get((unit, pc), {}).items():
                    if phase == thread.phase or (phase > thread.phase and later):
                        for word in words:
                            found[word] = self._kinds[pc] if found.get(word, self._kinds[pc]) == self._kinds[pc] else ""
        return found


def _kind(code: Code, pc: int) -> str:
    """Return what accesses of a step have in common that do not affect each other, or "" if they do."""
    step = code.steps[pc]
    if step.kind != "access" or step.op == "load":
        return step.op
    unused = not set(step.results) & set(code.live[pc + 1])
    return COMMUTING.get(step.op, "") if unused else ""


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


def _cut(code: Code, following: list[list[int]], spaces: tuple[str, ...]) -> list[list[int]]:
    """Return the steps that may come next, none after a barrier that orders one of `spaces`."""
    cut = [step.kind == "barrier" and step.op in spaces for step in code.steps]
    return [[] if cut[pc] else each for pc, each in enumerate(following)]


def _union(following: list[list[int]], own: Sequence[int]) -> list[int]:
    """Return, for each step, the bits that it and the steps that may follow it have in all."""
    found = [*own]
    changed = True
    while changed:
        changed = False
        for pc in reversed(range(len(found))):
            more = found[pc]
            for after in following[pc]:
                more |= found[after]
            if more != found[pc]:
                found[pc], changed = more, True
    return found
