"""What a memory model does, and the sequentially consistent one: one value for each word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Protocol

from .invocations import Event, apply

Alike = tuple[Sequence[int], Sequence[int]]  # units, see `Memory.perform`


class Memory(Protocol):
    """A memory model. The contents of memory are a hashable value, in a canonical form.

    `defers`: accesses may wait while later ones of their thread go ahead.
    """

    defers: bool

    def begin(self) -> Any:
        """Return the memory before the dispatch."""
        ...

    def perform(
        self, memory: Any, unit: int, event: Event, alike: Alike = ((), ())
    ) -> Iterator[tuple[Any, tuple[int, ...]]]:
        """Yield each way to perform an access of a unit: the memory after it, and its results.

        `alike`: units that a barrier has ordered after the access, which has waited since before the barrier; those
        that see it from now on, and those that see it once accesses of their own that wait as long are done.
        """
        ...

    def join(self, memory: Any, units: Iterable[int], space: str) -> Any:
        """Return the memory after a barrier of these units that orders `space`."""
        ...

    def settle(self, memory: Any, ahead: Sequence[AbstractSet[int]], waiting: AbstractSet[tuple[int, int]]) -> Any:
        """Return the memory without what no unit can still see.

        `ahead`: the words that each unit may still access. `waiting`: units with a word that an access of theirs has
        waited for since before a barrier.
        """
        ...

    def value(self, memory: Any, word: int) -> int:
        """Return what a word holds after the dispatch."""
        ...

    def is_behind(self, memory: Any, unit: int, word: int) -> bool:
        """Whether a unit may still read a word's value from before the newest store."""
        ...


class Sequential:
    """Sequentially consistent memory: a tuple with the value of each word that was accessed, in the order of their
    first access, without initial values at its end."""

    defers = False

    def __init__(self, initial: list[int]) -> None:
        self._initial = initial
        self._slots: dict[int, int] = {}
        self._words: list[int] = []

    def begin(self) -> tuple[int, ...]:
        return ()

    def perform(
        self, memory: tuple[int, ...], unit: int, event: Event, alike: Alike = ((), ())
    ) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        old = self.value(memory, event.word)
        new, results = apply(event, old)
        yield (memory if new == old else self._written(memory, event.word, new)), results

    def join(self, memory: tuple[int, ...], units: Iterable[int], space: str) -> tuple[int, ...]:
        return memory

    def settle(
        self, memory: tuple[int, ...], ahead: Sequence[AbstractSet[int]], waiting: AbstractSet[tuple[int, int]]
    ) -> tuple[int, ...]:
        return memory

    def value(self, memory: tuple[int, ...], word: int) -> int:
        slot = self._slots.get(word)
        return self._initial[word] if slot is None or slot >= len(memory) else memory[slot]

    def is_behind(self, memory: tuple[int, ...], unit: int, word: int) -> bool:
        return False

    def _written(self, memory: tuple[int, ...], word: int, value: int) -> tuple[int, ...]:
        slot = self._slots.get(word)
        if slot is None:
            slot = self._slots[word] = len(self._words)
            self._words.append(word)
        values = [*memory, *(self._initial[w] for w in self._words[len(memory) : slot + 1])]
        values[slot] = value
        while values and values[-1] == self._initial[self._words[len(values) - 1]]:
            values.pop()
        return tuple(values)
