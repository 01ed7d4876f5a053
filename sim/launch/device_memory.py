"""The device memory of a launch: all bindings, side by side in one array."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ..bindings.binding import Blank, Borrowed, Bound
from ..fast_dataclass import frozen
from ..ir import texture_handles
from ..machine.compile.loader import address_of
from ..mechanisms import is_on
from ..wgsl.diagnostics import fail
from .threads import processors, run_on_threads

_LINE = 64  # bytes
_ALIGN = texture_handles.TEXELS  # bytes: bindings share no line of memory or of texels
_FRESH = 1 << 25  # bytes: above, the system provides zeroed pages on first use
_FEW = 1 << 14  # bytes that take less time to zero than what lies between bindings
_SPARED = 1 << 20  # bytes: the allocator keeps less at hand itself
BORROWED = 1 << 26  # bytes from which on runs keep no copy of a writable binding
_CHECKED = 1 << 24  # bytes that a thread computes a checksum of at a time
_COPIED = 1 << 18  # bytes that a thread copies at a time
_WORTH = 1 << 22  # bytes for each thread: to copy them takes several times as long as to wake it

_LEAST_IDLE, _MOST_IDLE = 1 << 24, 1 << 27  # bytes that are kept for the next run: the allocator keeps less itself

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


def lined_up(make: Callable[[int, Any], NDArray[np.uint32]], count: int) -> NDArray[np.uint32]:
    """Allocate words from the start of a cache line on: a vector across two lines costs twice as much."""
    room = make(count + _LINE // 4, np.uint32)
    first = -address_of(room) % _LINE // 4
    return room[first : first + count]


def _tracked(words: NDArray[np.uint32], give_back: Callable[[], None]) -> NDArray[np.uint32]:
    """Return the same memory, and call `give_back` when the last array that views it is freed."""
    tracked = np.frombuffer(words.data, np.uint32)  # not a view of an array, so that its views keep it
    weakref.finalize(tracked, give_back).atexit = False
    return tracked


class SpareMemory:
    """Device memory that reruns of a dispatch use one after the other.

    What a run cannot store to still holds its bindings, so that the next one copies only the writable ones. Memory
    becomes spare when the last array that views it is freed, until `close` is called.
    """

    def __init__(self) -> None:
        self._rooms: list[_Room] = []
        self._is_open = True

    def __reduce__(self) -> tuple[type[SpareMemory], tuple[()]]:
        return SpareMemory, ()

    def close(self) -> None:
        """Free what is spare, now and from now on."""
        self._is_open = False
        self._rooms.clear()

    def make(self, bound: list[Bound]) -> DeviceMemory:
        """Return memory that holds all bindings."""
        while is_on("spare memory") and self._rooms:
            room = self._rooms.pop()
            if room.holds(bound):
                parts = [room.memory.part(each) for each in bound]
                pairs = zip(parts, bound, strict=True)
                _copy([_Copy(part, each.data, is_zeroed=False) for part, each in pairs if each.writable])
                _check_borrowed(bound, parts)
                return self._used(room)
        memory = make_device_memory(bound)
        return self._used(_Room(memory, bound)) if self._is_open and memory.words.nbytes >= _SPARED else memory

    def _used(self, room: _Room) -> DeviceMemory:
        """Return memory in this room, which comes back when nothing uses it any more."""
        return DeviceMemory(room.memory.places, _tracked(room.memory.words, lambda: self._keep(room)))

    def _keep(self, room: _Room) -> None:
        if self._is_open:
            self._rooms.append(room)


@frozen
class _Room:
    """Memory, and the bindings that it was made for."""

    memory: DeviceMemory
    bound: list[Bound]

    def holds(self, bound: list[Bound]) -> bool:
        """Whether it has room for these bindings, and the contents of those that are read-only."""
        return len(bound) == len(self.bound) and all(
            old.variable.name == new.variable.name
            and old.writable == new.writable
            and len(old.data) == len(new.data)
            and (new.writable or old.data is new.data)
            for old, new in zip(self.bound, bound, strict=True)
        )


class IdleMemory:
    """Memory of a run that has ended, for the next one with as much: the system provides new memory page by page, which
    takes longer than to copy into it. One piece is kept."""

    def __init__(self) -> None:
        self._idle: list[NDArray[np.uint32]] = []

    def make(self, count: int) -> tuple[NDArray[np.uint32], bool]:
        """Return so many words, and whether all are zero. When nothing uses them any more, they become idle."""
        found, is_zeroed = None, False
        with suppress(IndexError):  # another thread may have taken it
            found = self._idle.pop()
        if found is None or len(found) != count or not is_on("spare memory"):
            found, is_zeroed = lined_up(np.zeros, count), True
        return _tracked(found, lambda: self._keep(found)), is_zeroed

    def _keep(self, words: NDArray[np.uint32]) -> None:
        self._idle[:] = [words]


_IDLE = IdleMemory()


def make_device_memory(bound: list[Bound]) -> DeviceMemory:
    """Allocate memory for all bindings and copy their contents."""
    device_memory, copies = _laid_out(bound)
    _copy([copy for each, copy in zip(bound, copies, strict=True) if not (copy.is_zeroed and isinstance(each, Blank))])
    _check_borrowed(bound, [copy.into for copy in copies])
    return device_memory


def snapshot(bound: list[Bound]) -> tuple[list[Bound], DeviceMemory]:
    """Copy the bindings. Returns them, and the memory that holds the copies.

    Data of a read-only binding is a view of that memory. A writable one has a copy of its own, too; a large one is
    borrowed instead. Where large bindings are zero, as outputs often are, neither takes any memory.
    """
    device_memory, copies = _laid_out(bound)
    is_fresh = device_memory.words.nbytes > _FRESH
    kept: list[Bound] = []
    more: list[_Copy] = []
    for each, copy in zip(bound, copies, strict=True):
        part, data, is_writable = copy.into, copy.data, each.writable
        if is_writable and len(data) >= BORROWED and data.view(np.bool_).any():
            kept.append(_borrowed(each))
            continue
        if is_writable:
            part = (np.zeros if is_fresh else np.empty)(len(data), np.uint8)
            more.append(_Copy(part, data, is_fresh))
        kept.append(each.with_data(part))
    _copy([*copies, *more])
    return kept, device_memory


def seal(bound: list[Bound]) -> None:
    """Note the checksums of what was borrowed, before its owner may change it.

    Later runs of the dispatch check them.
    """
    for number, each in enumerate(bound):
        if isinstance(each, Borrowed):
            bound[number] = replace(each, checksums=tuple(_checksums(each.data).values()))


def _borrowed(each: Bound) -> Bound:
    return Borrowed(each.variable, each.type, each.key, each.given, each.data)


def _check_borrowed(bound: list[Bound], copies: list[Bytes]) -> None:
    """Raise `WgslError` where bytes that were just copied are not those that were borrowed."""
    for each, copy in zip(bound, copies, strict=True):
        if isinstance(each, Borrowed) and each.checksums is not None:
            _check(each, each.checksums, _checksums(copy))


def check_borrowed_parts(bound: Sequence[Borrowed], starts: dict[str, int], accessed: NDArray[np.int64]) -> None:
    """Raise `WgslError` where the parts of what was borrowed that hold these bytes have changed since the run.

    `starts`: the first byte of each binding.
    """
    for each in bound:
        if each.checksums is not None:
            places = accessed - starts[each.variable.name]
            inside = places[(places >= 0) & (places < len(each.data))]
            _check(each, each.checksums, _checksums(each.data, np.unique(inside // _CHECKED).tolist()))


def _check(borrowed: Borrowed, checksums: Sequence[int], found: Mapping[int, int]) -> None:
    """Raise `WgslError` where checksums of some parts, by number, are not those of the run."""
    if any(checksums[number] != checksum for number, checksum in found.items()):
        name, size = borrowed.variable.name, len(borrowed.data)
        message = f"{name} has changed since the run, which kept no copy of its {size:,} bytes"
        hint = "change it after the last use of the run, or give the run a copy"
        raise fail("binding-changed", message, None, hint=hint)


def _checksums(data: Bytes, parts: Sequence[int] | None = None) -> dict[int, int]:
    """Return the checksums of all parts of bytes, or of these, by number: by as many threads as there are
    processors."""
    sums = dict.fromkeys(range(-(-len(data) // _CHECKED)) if parts is None else parts, 0)
    left = iter([*sums])

    def work() -> None:
        for number in left:
            sums[number] = crc32(data[number * _CHECKED : (number + 1) * _CHECKED].data)

    run_on_threads(work, processors())
    return sums


class _Copy(NamedTuple):
    """Copies `data` `into` memory. `is_zeroed`: that is zero, in pages that exist only once something is stored
    there."""

    into: Bytes
    data: Bytes
    is_zeroed: bool


def _laid_out(bound: list[Bound]) -> tuple[DeviceMemory, list[_Copy]]:
    """Allocate memory for all bindings, with zeros between them. Returns it, and the copies that fill it."""
    places, size = places_of(bound)
    if _LEAST_IDLE < size <= _MOST_IDLE:
        words, is_zeroed = _IDLE.make(size // 4)
    else:
        is_zeroed = not _FEW < size <= _FRESH
        words = lined_up(np.zeros if is_zeroed else np.empty, size // 4)
    memory, copies = words.view(np.uint8), list[_Copy]()
    for each in bound:
        start = places[each.variable.name]
        last = start + len(each.data)
        copies.append(_Copy(memory[start:last], each.data, is_zeroed and size > _FRESH))
        if not is_zeroed:
            memory[last : start + _room(each)] = 0
    return DeviceMemory(places, words), copies


def places_of(bound: Sequence[Bound]) -> tuple[dict[str, int], int]:
    """Return the first byte of each binding, and the bytes of all."""
    places = dict.fromkeys([each.variable.name for each in bound], 0)
    end = 0
    for each in sorted(bound, key=lambda each: not each.writable):
        places[each.variable.name] = end
        end += _room(each)
    return places, max(_ALIGN, end)


def _room(bound: Bound) -> int:
    """Return the bytes that a binding takes, with the zeros after it."""
    return -(-len(bound.data) // _ALIGN) * _ALIGN


def _copy(copies: list[_Copy]) -> None:
    """Copy on as many threads as pay off."""
    size = sum([len(data) for _, data, _ in copies])
    if size < 2 * _WORTH:
        for into, data, _ in copies:
            into[:] = data
        return
    threads = max(1, min(processors(), size // _WORTH))
    step = _COPIED if threads > 1 else max(1, size)
    left = iter([
        (into[i : i + step], data[i : i + step], is_zeroed)
        for into, data, is_zeroed in copies
        for i in range(0, len(data), step)
    ])  # fmt: skip

    def work() -> None:
        for into, data, is_zeroed in left:
            if not is_zeroed or data.view(np.bool_).any():  # which ends at the first byte that is not 0
                into[:] = data

    run_on_threads(work, threads)
