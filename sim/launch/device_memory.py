"""The device memory of a launch: all bindings, side by side in one array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bindings.binding import Blank, Bound
from ..fast_dataclass import frozen
from ..ir import texture_handles
from .threads import processors, run_on_threads

_LINE = 64  # bytes
_ALIGN = texture_handles.TEXELS  # bytes: bindings share no line of memory or of texels
_FRESH = 1 << 25  # bytes: above, the system provides zeroed pages on first use
_COPIED = 1 << 18  # bytes that a thread copies at a time
_WORTH = 1 << 22  # bytes for each thread: to copy them takes several times as long as to wake it

Bytes = NDArray[np.uint8]


@frozen
class DeviceMemory:
    """All bindings, side by side: `places` has the first byte of each, `words` the contents.

    Writable ones come first, so that shadow memory ends with the last of them.
    """

    places: dict[str, int]
    words: NDArray[np.uint32]

    def part(self, bound: Bound) -> Bytes:
        """Return the bytes of a binding, as a view."""
        start = self.places[bound.variable.name]
        return self.words.view(np.uint8)[start : start + len(bound.data)]


def _lined_up(make: Callable[[int, Any], NDArray[np.uint32]], count: int) -> NDArray[np.uint32]:
    """Allocate words from the start of a cache line on: a vector across two lines costs twice as much."""
    room = make(count + _LINE // 4, np.uint32)
    address, _ = room.__array_interface__["data"]
    first = -address % _LINE // 4
    return room[first : first + count]


def make_device_memory(bound: list[Bound]) -> DeviceMemory:
    """Allocate memory for all bindings and copy their contents."""
    device_memory, pairs = _laid_out(bound)
    is_zeroed = device_memory.words.nbytes > _FRESH
    _copy([p for each, p in zip(bound, pairs, strict=True) if not (is_zeroed and isinstance(each, Blank))], is_zeroed)
    return device_memory


def snapshot(bound: list[Bound]) -> tuple[list[Bound], DeviceMemory]:
    """Copy the bindings. Returns them, and the memory that holds the copies.

    Data of a read-only binding is a view of that memory; a writable one has a copy of its own, too. Where large
    bindings are zero, as outputs often are, neither takes any memory.
    """
    device_memory, pairs = _laid_out(bound)
    is_zeroed = device_memory.words.nbytes > _FRESH
    make = np.zeros if is_zeroed else np.empty
    kept: list[Bound] = []
    copied = [*pairs]
    for each, (part, data) in zip(bound, pairs, strict=True):
        if each.writable:
            part = make(len(data), np.uint8)
            copied.append((part, data))
        kept.append(each.with_data(part))
    _copy(copied, is_zeroed)
    return kept, device_memory


def _laid_out(bound: list[Bound]) -> tuple[DeviceMemory, list[tuple[Bytes, Bytes]]]:
    """Allocate memory for all bindings, with zeros between them. Returns it, and pairs of destination and source."""
    starts, end = [0] * len(bound), 0
    for number in sorted(range(len(bound)), key=lambda number: not bound[number].writable):
        starts[number] = end
        end += _room(bound[number])
    size = max(_ALIGN, end)
    is_fresh = size > _FRESH
    places = {each.variable.name: start for each, start in zip(bound, starts, strict=True)}
    words = _lined_up(np.zeros if is_fresh else np.empty, size // 4)
    memory, pairs = words.view(np.uint8), list[tuple[Bytes, Bytes]]()
    for each, start in zip(bound, starts, strict=True):
        last = start + len(each.data)
        pairs.append((memory[start:last], each.data))
        if not is_fresh:
            memory[last : start + _room(each)] = 0
    return DeviceMemory(places, words), pairs


def _room(bound: Bound) -> int:
    """Return the bytes that a binding takes, with the zeros after it."""
    return -(-len(bound.data) // _ALIGN) * _ALIGN


def _copy(pairs: list[tuple[Bytes, Bytes]], is_zeroed: bool) -> None:
    """Copy each pair's second member into the first, on as many threads as pay off.

    `is_zeroed`: the first members are zero, in pages that exist only once something is stored there.
    """
    size = sum(len(data) for _, data in pairs)
    if size < 2 * _WORTH:
        for into, data in pairs:
            into[:] = data
        return
    threads = max(1, min(processors(), size // _WORTH))
    step = _COPIED if threads > 1 else max(1, size)
    left = iter([(a[i : i + step], b[i : i + step]) for a, b in pairs for i in range(0, len(b), step)])

    def work() -> None:
        for into, data in left:
            if not is_zeroed or data.view(np.bool_).any():  # which ends at the first byte that is not 0
                into[:] = data

    run_on_threads(work, threads)
