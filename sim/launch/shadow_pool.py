"""Shadow memory of storage that runs use one after the other.

To allocate and clear it takes longer than a small run. A run does not clear it: its clocks begin where those of the run
before have ended, and the machine takes earlier stamps for no access.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from operator import attrgetter

from ..fast_dataclass import entity
from ..machine import layout as at
from ..machine.compile.loader import header
from ..machine.probe_arrays import (
    BLOCK,
    BLOCK_BYTES,
    GRAIN_BYTES,
    SPAN,
    Shadow,
    make_shadow,
    record_count,
)
from ..mechanisms import is_on

ROOM = 128 << 20  # bytes that all idle shadows may take
MOST = 64  # idle shadows: each run looks at all of them
RECORDED = 1 << 24  # grains that can have a record of their own, the first of all bindings: 0.7 GB of records
_LAST_CLOCK = 1 << 30  # a stamp has 31 bits for clocks, and a run needs some


@entity
class StorageShadow:
    """The shadow of a run. `begun` is the first clock of the run: no earlier one has reached it."""

    arrays: Shadow
    begun: int = 1

    @cached_property
    def headers(self) -> list[int]:
        """Its arrays as the machine has them in memory."""
        return [number for array in self.arrays for number in header(array)]

    @cached_property
    def nbytes(self) -> int:
        return shadow_bytes(self.grains)

    @cached_property
    def grains(self) -> int:
        """How many grains it is for, at least."""
        recorded = len(self.arrays.stamps[at.WRITER])
        return recorded if recorded < RECORDED else self._spans * SPAN * BLOCK

    @property
    def _spans(self) -> int:
        return len(self.arrays.starts[at.WRITER]) // (1 + SPAN)


def shadow_bytes(grains: int) -> int:
    """Return the bytes of the shadow of so many grains, if all of it is used."""
    return min(grains, RECORDED) * GRAIN_BYTES + record_count(grains) * BLOCK_BYTES


class ShadowPool:
    """Idle shadows.

    Each step is one operation of a list, atomic without a lock, which a process could be forked with.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._idle: list[StorageShadow] = []

    def take(self, grains: int) -> StorageShadow:
        """Return a shadow of so many grains, without accesses."""
        while is_on("kept shadow"):
            large = [each for each in list(self._idle) if each.grains >= grains]
            if not large:
                break
            smallest = min(large, key=attrgetter("grains"))
            with suppress(ValueError):  # another thread has taken it
                self._idle.remove(smallest)
                return smallest
        return StorageShadow(make_shadow(grains, RECORDED))

    def give_back(self, shadow: StorageShadow, clock: int) -> None:
        """Keep a shadow for later runs, where there is room. `clock` is the last one that its run has reached."""
        if shadow.nbytes > self._room or clock >= _LAST_CLOCK or not is_on("kept shadow"):
            return
        shadow.begun = clock + 1
        self._idle.append(shadow)
        while len(self._idle) > MOST or sum([each.nbytes for each in list(self._idle)]) > self._room:
            with suppress(IndexError):
                self._idle.pop(0)


SHADOWS = ShadowPool(ROOM)
