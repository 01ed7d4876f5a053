"""The memory of a launch: all bindings side by side in one array."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bindings.binding import Blank, Bound
from ..fast_dataclass import frozen
from ..ir import texture_handles
from .threads import processors, workgroups_per_batch

_LINE = 64  # bytes
_ALIGN = texture_handles.TEXELS  # bytes, between bindings: no line of memory, or of texels, belongs to two
_FRESH = 1 << 25  # bytes: more than this the system gives, and takes back, page by page, as zeros
_COPIED = 1 << 18  # bytes that a thread copies at a time
_WORTH = 1 << 20  # bytes: below, one thread has copied them before another wakes up

Bytes = NDArray[np.uint8]


@frozen
class DeviceMemory:
    """All bindings side by side in one array: where each starts in bytes, and the words."""

    places: dict[str, int]
    words: NDArray[np.uint32]

    def part(self, bound: Bound) -> Bytes:
        """The bytes of a binding."""
        start = self.places[bound.variable.name]
        return self.words.view(np.uint8)[start : start + len(bound.data)]


def _lined_up(make: Callable[[int, Any], NDArray[np.uint32]], count: int) -> NDArray[np.uint32]:
    """Words that begin a line of the cache: a vector across two lines costs twice as much."""
    room = make(count + _LINE // 4, np.uint32)
    first = -room.ctypes.data % _LINE // 4
    return room[first : first + count]


def make_arena(bound: list[Bound]) -> DeviceMemory:
    """Room for all bindings, and what they hold."""
    device_memory, pairs = _laid_out(bound)
    _copy(pairs)
    return device_memory


def take(bound: list[Bound]) -> tuple[list[Bound], DeviceMemory]:
    """The bindings as they are at this moment, and an arena that holds them. What no shader writes to is there only."""
    device_memory, pairs = _laid_out(bound)
    kept = [replace(b, data=np.empty_like(b.data) if b.writable else device_memory.part(b)) for b in bound]
    _copy(pairs + [(new.data, old.data) for new, old in zip(kept, bound, strict=True) if old.writable])
    return kept, device_memory


def _laid_out(bound: list[Bound]) -> tuple[DeviceMemory, list[tuple[Bytes, Bytes]]]:
    """Room for all bindings, and what is to be copied into which part of it. There are zeros between them."""
    ends = [0]
    for each in bound:
        ends.append(ends[-1] + -(-len(each.data) // _ALIGN) * _ALIGN)
    size = max(_ALIGN, ends[-1])
    is_fresh = size > _FRESH
    places = {each.variable.name: start for each, start in zip(bound, ends, strict=False)}
    device_memory = DeviceMemory(places, _lined_up(np.zeros if is_fresh else np.empty, size // 4))
    if is_fresh:
        bound = [each for each in bound if not isinstance(each, Blank)]
    else:
        memory = device_memory.words.view(np.uint8)
        for each, start, end in zip(bound, ends, ends[1:], strict=False):
            memory[start + len(each.data) : end] = 0
    return device_memory, [(device_memory.part(each), each.data) for each in bound]


def _copy(pairs: list[tuple[Bytes, Bytes]]) -> None:
    """Copy bytes into others, on as many threads as it is worth."""
    size = sum(len(data) for _, data in pairs)
    threads = max(1, min(processors(), size // _WORTH))
    step = _COPIED if threads > 1 else max(1, size)
    left = iter([(a[i : i + step], b[i : i + step]) for a, b in pairs for i in range(0, len(b), step)])

    def work() -> None:
        for into, data in left:
            into[:] = data

    workgroups_per_batch(work, threads)
