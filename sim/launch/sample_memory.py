"""The memory of sampled workgroups, which is filled as they access it (see `machine.sample_notes`).

What a sample costs depends on what its workgroups access: nothing is as large as the bindings, but address space. Small
memories are kept for samples to come, as the pages of new ones take longer to provide than most samples to run.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from ..bindings.binding import Borrowed, Bound
from ..bindings.texture_arrays import BoundTexture
from ..fast_dataclass import entity, frozen
from ..ir import texture_handles
from ..machine import layout as at
from ..machine.compile.loader import address_of, machine
from ..mechanisms import is_on
from ..models.device import Device
from .device_memory import DeviceMemory, check_borrowed_parts, lined_up, places_of

GRANULE = 16  # words that device memory moves at once
_MOST_WORDS = 8  # of a chunk, whose notes are a byte for each in one number
_LEAST_CHUNKS = 1 << 14
_MOST_KEPT = 1 << 21  # chunks of a memory that is kept: 180 MiB, of which pages that were accessed take memory
_MOST_IDLE = 1  # memories that are kept
_SPARE_SOURCES = 16
_NOTHING = [0] * (at.SOURCE_SIZE - at.SOURCE_SECTORS)  # accessed of a source


@frozen
class Accessed:
    """What two workgroups access of storage buffers: chunks of a few words, in ascending order, a row of each array.

    `names`: of the buffers. `buffers`: the number of a chunk's buffer in them. `words`: the chunk's first word, counted
    from the start of its buffer. `first` and `second`: notes on the words, as `layout.CHUNK_FIRST` says.
    """

    names: list[str]
    buffers: NDArray[np.int64]
    words: NDArray[np.int64]
    first: NDArray[np.int64]
    second: NDArray[np.int64]

    def operations(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint8]]:
        """Return how many atomic operations of each workgroup change the words of a buffer; 127 stands for more.

        Returns the first word of each chunk, and a row of eight words for it: all but those of the chunk are 0.
        """
        begin, end = self.buffers.searchsorted([number := self.names.index(name), number + 1]).tolist()
        first, second = (bytes_of(notes[begin:end]).reshape(-1, 8) for notes in (self.first, self.second))
        return self.words[begin:end], first >> np.uint8(1), second >> np.uint8(1)


@frozen
class Parts:
    """How many parts of a buffer two workgroups access. `own`: granules that the first accesses."""

    sectors: int
    granules: int
    lines: int
    own: int
    words: int


def bytes_of(notes: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return notes on words, a byte for each, the first word's first."""
    return notes.astype("<i8", copy=False).view(np.uint8)


@entity
class _Room:
    """Storage, and the array of the notes on it: SAMPLE, then a row of CHUNK for each chunk, the list of those that
    were accessed, and the sources."""

    storage: NDArray[np.uint32]
    notes: NDArray[np.int64]
    chunks: int

    def clear(self) -> None:
        """Forget what was accessed."""
        self.rows[self.listed] = 0
        self.notes[: at.SAMPLE_SIZE] = 0

    @property
    def listed(self) -> NDArray[np.int64]:
        """The accessed chunks, as a view."""
        first, count = int(self.notes[at.SAMPLE_LIST_AT]), int(self.notes[at.SAMPLE_LISTED])
        return self.notes[first : first + count]

    @property
    def rows(self) -> NDArray[np.int64]:
        """The rows of all chunks, as a view."""
        return self.notes[at.SAMPLE_SIZE :][: self.chunks * at.CHUNK_SIZE].reshape(-1, at.CHUNK_SIZE)


_IDLE: list[_Room] = []


class SampleMemory:
    """Storage for a sample of these bindings, empty but for what no probe precedes, and the notes on it.

    `close` gives it back; nothing may use it afterwards.
    """

    def __init__(self, bound: Sequence[Bound], device: Device) -> None:
        self._bound = bound
        self._textures = {each.variable.name for each in bound if isinstance(each, BoundTexture)}
        self._starts, size = places_of(bound)
        self._sizes = device.sector_bytes // 4, GRANULE, device.line_bytes // 4
        self._chunk = max(1, min(_MOST_WORDS, *self._sizes))  # words
        self._room = _room(-(-size // (4 * self._chunk)), size // 4, len(bound))
        self.notes = self._room.notes
        self.memory = DeviceMemory(self._starts, self._room.storage)
        self._begin()

    def _begin(self) -> None:
        """Note where chunks are copied from, and copy what is accessed without a probe."""
        storage, rows = self._room.storage.view(np.uint8), list[int]()
        self._sources = list[str]()  # in ascending order
        for each in sorted(self._bound, key=lambda each: self._starts[each.variable.name]):
            name, size, unprobed = each.variable.name, len(each.data), _unprobed(each)
            start = self._starts[name]
            if unprobed < size:
                rows += (start, size, address_of(each.data), *_NOTHING)
                self._sources.append(name)
            if unprobed:
                storage[start : start + unprobed] = each.data[:unprobed]
                storage[start + unprobed : start - unprobed // -4 * 4] = 0
        notes, listed_at = self.notes, at.SAMPLE_SIZE + self._room.chunks * at.CHUNK_SIZE
        first = listed_at + self._room.chunks
        notes[at.SAMPLE_SHIFT] = self._chunk.bit_length() - 1
        notes[at.SAMPLE_LIST_AT], notes[at.SAMPLE_SOURCES_AT] = listed_at, first
        notes[at.SAMPLE_SOURCES] = len(self._sources)
        notes[at.SAMPLE_SECTOR], notes[at.SAMPLE_GRANULE], notes[at.SAMPLE_LINE] = self._sizes
        notes[first : first + len(rows)] = rows

    def limit_cache(self, lines: int) -> None:
        """Set how many lines the cache of a core holds for a workgroup."""
        self.notes[at.SAMPLE_CACHE_LINES] = lines

    @property
    def was_full(self) -> bool:
        """Whether more lines have entered the cache than it holds."""
        return bool(self.notes[at.SAMPLE_CACHE_INSERTED] > self.notes[at.SAMPLE_CACHE_LINES])

    def restart(self) -> None:
        """Forget all accesses, and what they changed."""
        self._room.clear()
        self._begin()

    def parts(self) -> dict[str, Parts]:
        """Return how much was accessed of each storage buffer of which anything was."""
        self._room.listed.sort()
        machine().count_parts(self.notes)
        first, textures = int(self.notes[at.SAMPLE_SOURCES_AT]), self._textures
        rows = self.notes[first : first + len(self._sources) * at.SOURCE_SIZE].reshape(-1, at.SOURCE_SIZE).tolist()
        found = ((name, row[at.SOURCE_SECTORS :]) for name, row in zip(self._sources, rows, strict=True))
        return {name: Parts(*counts) for name, counts in found if any(counts) and name not in textures}

    def accessed(self) -> Accessed:
        """Return what was accessed of storage buffers."""
        starts = sorted((start // 4, name) for name, start in self._starts.items())
        names, firsts = [name for _, name in starts], np.array([start for start, _ in starts], np.int64)
        listed = self._room.listed
        listed.sort(kind="stable")  # one pass where `parts` has sorted it
        rows = self._room.rows[listed]
        first, second = rows[:, at.CHUNK_FIRST], rows[:, at.CHUNK_SECOND]
        noted = np.flatnonzero(first | second)
        words = listed[noted] * self._chunk
        buffers = firsts.searchsorted(words, "right") - 1
        if self._textures:
            is_buffer = np.array([name not in self._textures for name in names])[buffers]
            noted, words, buffers = noted[is_buffer], words[is_buffer], buffers[is_buffer]
        return Accessed(names, buffers, words - firsts[buffers], first[noted], second[noted])

    def close(self) -> None:
        """Check that what was copied is what the run had, and give the memory back.

        Raises `WgslError` where a borrowed buffer has changed.
        """
        if borrowed := [each for each in self._bound if isinstance(each, Borrowed)]:
            check_borrowed_parts(borrowed, self._starts, 4 * self._chunk * self._room.listed)
        self._room.clear()
        if len(_IDLE) < _MOST_IDLE and self._room.chunks <= _MOST_KEPT and is_on("spare memory"):
            _IDLE.append(self._room)


def _unprobed(bound: Bound) -> int:
    """Return how many of a binding's first bytes are accessed without a probe: uniforms, and the sizes of textures."""
    if isinstance(bound, BoundTexture):
        return min(len(bound.data), texture_handles.TEXELS)
    return 0 if bound.variable.space == "storage" else len(bound.data)


def _room(chunks: int, words: int, sources: int) -> _Room:
    """Return memory without notes for so many chunks, words of storage and sources: a kept one, or a new one."""
    with suppress(IndexError):  # another thread may have taken the last
        room = _IDLE.pop()
        spare = len(room.notes) - at.SAMPLE_SIZE - room.chunks * (at.CHUNK_SIZE + 1)
        if room.chunks >= chunks and len(room.storage) >= words and spare >= sources * at.SOURCE_SIZE:
            return room
    chunks = max(chunks, _LEAST_CHUNKS)
    size = at.SAMPLE_SIZE + chunks * (at.CHUNK_SIZE + 1) + (sources + _SPARE_SOURCES) * at.SOURCE_SIZE
    return _Room(lined_up(np.empty, max(words, chunks * _MOST_WORDS)), np.zeros(size, np.int64), chunks)
