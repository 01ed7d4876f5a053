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
from .memory import Alike


class Message(NamedTuple):
    """One value in the history of a word. `glued`: written by a read-modify-write that read the message before it."""

    value: int
    glued: bool = False


class Word(NamedTuple):
    """The state of a word: its messages in modification order, and the view of each unit.

    `floors`: what barriers have moved views to; accesses that have waited since before the barrier do not look at it.
    """

    history: tuple[Message, ...]
    views: tuple[int, ...]
    floors: tuple[int, ...]

    def view(self, unit: int, *, early: bool) -> int:
        """Return the oldest message that a unit may read. `early`: in an access from before a barrier."""
        return self.views[unit] if early else max(self.views[unit], self.floors[unit])


Contents = tuple[Word, ...]  # by slot
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
        self._untouched: list[Word] = []  # the first state of each slot's word
        self._settled: dict[tuple[Word, tuple[int, ...], tuple[int, ...]], Word] = {}

    def begin(self) -> Contents:
        return ()

    def perform(self, memory: Contents, unit: int, event: Event, alike: Alike = ((), ())) -> Iterator[Performed]:
        slot = self._slot(event.word)
        memory += tuple(self._untouched[len(memory) : slot + 1])
        before, after = memory[:slot], memory[slot + 1 :]
        for word, results in _performed(memory[slot], event, unit, alike):
            yield (*before, word, *after), results

    def join(self, memory: Contents, units: Iterable[int], space: str) -> Contents:
        units = [*units]
        return tuple(
            _raised(word, units, max(word.view(unit, early=False) for unit in units))
            if space == self._space(number)
            else word
            for word, number in zip(memory, self._words, strict=False)
        )

    def settle(
        self, memory: Contents, ahead: Sequence[AbstractSet[int]], waiting: AbstractSet[tuple[int, int]]
    ) -> Contents:
        """Drop views of words that a unit cannot access any more, and messages that no view reaches."""
        settled: list[Word] = []
        for word, number in zip(memory, self._words, strict=False):
            seers = tuple(unit for unit, words in enumerate(ahead) if number in words)
            early = tuple(unit for unit, each in waiting if each == number) if waiting else ()
            found = self._settled.get((word, seers, early))
            if found is None:
                found = self._settled[word, seers, early] = _settle(word, seers, early)
            settled.append(found)
        while settled and settled[-1] == self._untouched[len(settled) - 1]:
            settled.pop()
        return tuple(settled)

    def value(self, memory: Contents, word: int) -> int:
        slot = self._slots.get(word)
        return self._initial[word] if slot is None or slot >= len(memory) else memory[slot].history[-1].value

    def is_behind(self, memory: Contents, unit: int, word: int) -> bool:
        slot = self._slots.get(word)
        return slot is not None and slot < len(memory) and memory[slot].views[unit] < len(memory[slot].history) - 1

    def _slot(self, word: int) -> int:
        slot = self._slots.get(word)
        if slot is None:
            slot = self._slots[word] = len(self._words)
            self._words.append(word)
            nothing = (0,) * self._units
            self._untouched.append(Word((Message(self._initial[word]),), nothing, nothing))
        return slot


def _performed(word: Word, event: Event, unit: int, alike: Alike) -> Iterator[tuple[Word, tuple[int, ...]]]:
    """Yield each way to perform an access: the word after it, and its results."""
    history, view = word.history, word.view(unit, early=event.barriers > 0)
    if event.op == "store" and event.half < 0:
        value = event.args[0]
        assert isinstance(value, int)
        for place in range(view + 1, len(history) + 1):
            if not _is_glued(history, place):
                yield _seen(_added(word, place, Message(value)), unit, alike, place), (0,)
        return
    for read in range(view, len(history)):
        new, results = apply(event, history[read].value)
        if event.op == "load" or (event.op == "compare" and not results[1]):
            yield _seen(word, unit, alike, read), results
        elif not _is_glued(history, read + 1):
            yield _seen(_added(word, read + 1, Message(new, glued=True)), unit, alike, read + 1), results


def _is_glued(history: tuple[Message, ...], place: int) -> bool:
    """Whether no message may be added at a place."""
    return place < len(history) and history[place].glued


def _added(word: Word, place: int, message: Message) -> Word:
    """Return a word with a message at a place in its history."""
    history = (*word.history[:place], message, *word.history[place:])
    views, floors = (tuple(v + (v >= place) for v in each) for each in (word.views, word.floors))
    return Word(history, views, floors)


def _seen(word: Word, unit: int, alike: Alike, place: int) -> Word:
    """Return a word whose message at a place this unit has seen, and those `alike` (see `Memory.perform`)."""
    now, later = alike
    views = [*word.views]
    views[unit] = place
    for each in now:
        views[each] = max(views[each], place)
    return _raised(Word(word.history, tuple(views), word.floors), later, place)


def _raised(word: Word, units: Iterable[int], place: int) -> Word:
    """Return a word whose message at a place a barrier makes these units see."""
    floors = [*word.floors]
    for unit in units:
        floors[unit] = max(floors[unit], place)
    return Word(word.history, word.views, tuple(floors))


def _settle(word: Word, seers: tuple[int, ...], early: tuple[int, ...]) -> Word:
    """Drop the views of other units than `seers`, and messages that no view reaches.

    `early`: units with an access to the word that waits since before a barrier; the views of others take the floors.
    """
    views = {unit: word.view(unit, early=unit in early) for unit in seers}
    oldest = min(views.values(), default=len(word.history) - 1)
    history = (Message(word.history[oldest].value), *word.history[oldest + 1 :])
    units = range(len(word.views))
    floors = tuple(max(0, word.floors[unit] - oldest) if unit in early else 0 for unit in units)
    return Word(history, tuple(views.get(unit, oldest) - oldest for unit in units), floors)
