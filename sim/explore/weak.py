"""Weak memory: WGSL's atomics are relaxed, and nothing but a barrier of a workgroup orders accesses to other words.

Each word has a history: its messages in modification order. Each unit has a view of each word: the oldest message that
it may still read. A load reads a message of its view or a later one, and moves the view there. A store adds its message
anywhere after the view. A read-modify-write adds its message directly after the one that it reads, and nothing comes
between the two. A barrier moves the views of all units of the workgroup to the newest of them. This is Vulkan's memory
model for relaxed atomics with barriers of workgroup scope, without values out of thin air: where a load may wait for
later accesses of its thread (see `search`), dependencies are kept.

Plain accesses follow the same rules; races on them are reported elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from .invocations import Event, apply


class Message(NamedTuple):
    """One value in the history of a word. `glued`: written by a read-modify-write that read the message before it."""

    value: int
    glued: bool = False


History = tuple[Message, ...]
View = tuple[int, ...]
Contents = tuple[tuple[History, ...], tuple[View, ...]]  # histories by slot, views by unit
Performed = tuple[Contents, tuple[int, ...]]


class Weak:
    """Weak memory of `units` units; `space(word)` is the memory that a word is in.

    Words have slots in the order of their first access. Slots at the end that only hold initial values are left out.
    """

    defers = True

    def __init__(self, initial: list[int], units: int, space: Callable[[int], str]) -> None:
        self._initial, self._units, self._space = initial, units, space
        self._slots: dict[int, int] = {}
        self._words: list[int] = []

    def begin(self) -> Contents:
        return (), ((),) * self._units

    def perform(self, memory: Contents, unit: int, event: Event, alike: Iterable[int] = ()) -> Iterator[Performed]:
        """See `Memory.perform`. `alike`: units that come after this access by a barrier, and see what it sees."""
        slot = self._slot(event.word)
        history, view = self._history(memory, slot), _at(memory[1][unit], slot)
        seers = (unit, *alike)
        if event.op == "store" and event.half < 0:
            for place in range(view + 1, len(history) + 1):
                if not _is_glued(history, place):
                    value = event.args[0]
                    assert isinstance(value, int)
                    yield self._added(memory, slot, place, Message(value), seers), (0,)
            return
        for read in range(view, len(history)):
            new, results = apply(event, history[read].value)
            if event.op == "load" or (event.op == "compare" and not results[1]):
                yield (memory[0], _raised(memory[1], seers, slot, read)), results
            elif not _is_glued(history, read + 1):
                yield self._added(memory, slot, read + 1, Message(new, glued=True), seers), results

    def _added(self, memory: Contents, slot: int, place: int, message: Message, seers: Iterable[int]) -> Contents:
        """Return the memory with a message at a place in a history, which these units have seen."""
        histories, views = memory
        histories += tuple((Message(self._initial[w]),) for w in self._words[len(histories) : slot + 1])
        history = histories[slot]
        history = (*history[:place], message, *history[place:])
        moved = tuple(_replaced(v, slot, v[slot] + 1) if _at(v, slot) >= place else v for v in views)
        return (*histories[:slot], history, *histories[slot + 1 :]), _raised(moved, seers, slot, place)

    def join(self, memory: Contents, units: Iterable[int], space: str) -> Contents:
        histories, views = memory
        units = [*units]
        for slot in range(len(histories)):
            if self._space(self._words[slot]) == space:
                newest = max(_at(views[unit], slot) for unit in units)
                views = _raised(views, units, slot, newest)
        return histories, views

    def settle(self, memory: Contents, ahead: Sequence[AbstractSet[int]]) -> Contents:
        """Drop views of words that a unit cannot access any more, and messages that no view reaches."""
        histories, views = [*memory[0]], [list(view) for view in memory[1]]
        for slot, history in enumerate(histories):
            word = self._words[slot]
            seers = [unit for unit, words in enumerate(ahead) if word in words]
            oldest = min((_at(views[unit], slot) for unit in seers), default=len(history) - 1)
            if oldest or history[0].glued:
                histories[slot] = (Message(history[oldest].value), *history[oldest + 1 :])
            for unit, view in enumerate(views):
                if slot < len(view):
                    view[slot] = view[slot] - oldest if word in ahead[unit] else 0
        while histories and histories[-1] == (Message(self._initial[self._words[len(histories) - 1]]),):
            histories.pop()
        for view in views:
            while view and not view[-1]:
                view.pop()
        return tuple(histories), tuple(map(tuple, views))

    def value(self, memory: Contents, word: int) -> int:
        slot = self._slots.get(word)
        return self._initial[word] if slot is None else self._history(memory, slot)[-1].value

    def _slot(self, word: int) -> int:
        slot = self._slots.get(word)
        if slot is None:
            slot = self._slots[word] = len(self._words)
            self._words.append(word)
        return slot

    def _history(self, memory: Contents, slot: int) -> History:
        histories = memory[0]
        return histories[slot] if slot < len(histories) else (Message(self._initial[self._words[slot]]),)


def _is_glued(history: History, place: int) -> bool:
    """Whether no message may be added at a place."""
    return place < len(history) and history[place].glued


def _at(view: View | list[int], slot: int) -> int:
    return view[slot] if slot < len(view) else 0


def _replaced(view: View, slot: int, place: int) -> View:
    filled = view + (0,) * (slot + 1 - len(view))
    return (*filled[:slot], place, *filled[slot + 1 :])


def _raised(views: tuple[View, ...], units: Iterable[int], slot: int, place: int) -> tuple[View, ...]:
    """Return the views where these units have seen a message of a slot."""
    changed = [*views]
    for unit in units:
        if _at(changed[unit], slot) < place:
            changed[unit] = _replaced(changed[unit], slot, place)
    return tuple(changed)
