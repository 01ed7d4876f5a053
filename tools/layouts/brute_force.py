"""The fewest wavefronts that the accesses to a workgroup array can take, over every layout, each counted in full.

A layout moves the rows of an array apart or together, and then swizzles its elements, by
`index ^ ((index >> shift) & mask) << left` with one such term, two or none. Nothing is left out because another layout
seems better, and no code is shared with the search of `bankshot advise`. The rule of banks is that of
docs/counting-rules.md, for an NVIDIA GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bankshot import Run
from bankshot.oracle.gpu_counters.access_trace import by_workgroup, record, requests
from bankshot.oracle.manifests.manifest import Case
from bankshot.sim.wgsl import types

WORD = 4  # bytes
BANKS = 32
LANES = 32
MOST_BITS = 5  # of an index that choose a bank

Integers = NDArray[np.int64]


class TooLarge(Exception):
    """Accesses that are too many to record."""


@dataclass(frozen=True, slots=True)
class Access:
    """An access of a subgroup: the byte that each lane asks for, -1 where it is inactive, and the times it occurs.

    `width`: bytes a lane. `serialized`: an atomic operation that lanes of one bank take turns for.
    """

    addresses: tuple[int, ...]
    width: int
    is_store: bool
    serialized: bool


@dataclass(frozen=True, slots=True)
class Array:
    """A workgroup array of `length` elements, `stride` bytes apart, and the accesses of all workgroups, with the times
    that each occurs. `row`: the elements of the innermost arrays of an array of arrays, 0 for another array."""

    length: int
    stride: int
    row: int
    accesses: Counter[Access]

    @property
    def elements(self) -> Integers:
        """The elements that are accessed."""
        asked = np.unique([each.addresses for each in self.accesses])
        return np.unique(asked[asked >= 0] // self.stride)


@dataclass(frozen=True, slots=True)
class Layout:
    """Rows of `now` elements become rows of `pitch`; then elements are swizzled by terms: shift, bits, left."""

    wavefronts: int
    now: int = 0
    pitch: int = 0
    terms: tuple[tuple[int, int, int], ...] = ()


def array_of(case: Case, run: Run, name: str, most: int = 1 << 21) -> Array:
    """Record the accesses to an array. `run`: of the case. Raises `TooLarge` for more than `most` accesses of lanes."""
    sites, size = run.program.sites, run.device.subgroup_size
    wanted = [number for number, site in enumerate(sites) if site.variable == name and site.is_work]
    rows = size * sum(site.shared_requests for site in run.sites if site.name == name)
    if rows > most:
        raise TooLarge(f"{rows:,} accesses to {name}")
    log = record(case, run, wanted, (0, 0, 0), run.grid, rows, prod(run.grid))
    if log.missed:
        raise TooLarge(f"more than {rows:,} accesses to {name}")
    held = next(type_ for variable, type_ in run.pipeline.store_types.items() if variable.name == name)
    length, row, stride = 1, 0, 0
    while isinstance(held, types.Array):
        assert isinstance(held.count, int)
        row, length, stride, held = held.count, length * held.count, types.stride_of(held), held.elem
    lanes = prod(run.pipeline.workgroup_size)
    found = (r for part in by_workgroup(log.rows, lanes) for r in requests(part, log.probes, sites, size, lanes))
    accesses = Counter(
        Access(tuple(r.addresses.tolist()), r.site.bytes_per_lane, r.site.kind == "store", r.site.takes_turns)
        for r in found
    )
    return Array(length, stride, row if row != length else 0, accesses)


# ---- what an access costs ------------------------------------------------------------------------------


def groups(access: Access) -> Iterator[list[int]]:
    """The addresses of lanes that are served together, those of one column of banks once unless lanes take turns."""
    column = _column(access)
    together = BANKS * WORD // column
    if column > WORD and not access.is_store and any(_agree(access.addresses, distance) for distance in (1, 2)):
        together *= 2
    for start in range(0, LANES, together):
        asked = [each // column * column for each in access.addresses[start : start + together] if each >= 0]
        if asked:
            yield asked if access.serialized else sorted(set(asked))


def _column(access: Access) -> int:
    """The bytes of a column of banks: as wide as the access, 3 components as 4."""
    if access.serialized:
        return WORD
    return max(WORD, 1 << (access.width - 1).bit_length())


def _agree(addresses: tuple[int, ...], distance: int) -> bool:
    """Whether lanes that are this far apart ask for one address, where both are active."""
    pairs = ((addresses[lane], addresses[lane ^ distance]) for lane in range(len(addresses) // 4 * 4))
    return all(one == other or min(one, other) < 0 for one, other in pairs)


@dataclass(frozen=True, slots=True)
class Groups:
    """All groups of lanes, one after the other: `elements` and bytes in them, by lane; where each group starts, the
    bytes of its columns, and the times it occurs."""

    elements: Integers
    offsets: Integers
    starts: Integers
    columns: Integers
    times: Integers

    def costs(self, stride: int, moved: Integers, pairs: Integers) -> Integers:
        """The wavefronts of each pair of rows of `moved`, by element: what a term adds to it, by exclusive or."""
        return _costs(self.elements, self.offsets, self.starts, self.columns, self.times, stride, moved, pairs)


def groups_of(array: Array) -> Groups:
    """The groups of all accesses to an array."""
    found: Counter[tuple[int, tuple[int, ...]]] = Counter()
    for access, times in array.accesses.items():
        for group in groups(access):
            found[_column(access), tuple(group)] += times
    flat = np.array([address for _, group in found for address in group], np.int64)
    starts = np.cumsum([0, *(len(group) for _, group in found)])
    columns = np.array([column for column, _ in found], np.int64)
    return Groups(flat // array.stride, flat % array.stride, starts, columns, np.array([*found.values()], np.int64))


@njit(cache=True)
def _costs(
    elements: Any, offsets: Any, starts: Any, columns: Any, times: Any, stride: int, moved: Any, pairs: Any
) -> Any:
    totals = np.zeros(len(pairs), np.int64)
    asked = np.zeros(BANKS, np.int64)
    shifts = np.array([0 if each == 4 else 1 if each == 8 else 2 for each in columns]) + 2
    masks = BANKS * WORD // columns - 1
    for number in range(len(pairs)):
        first, second = moved[pairs[number, 0]], moved[pairs[number, 1]]
        for group in range(len(times)):
            asked[:] = 0
            most, shift, mask = 0, shifts[group], masks[group]
            for at in range(starts[group], starts[group + 1]):
                address = (elements[at] ^ first[at] ^ second[at]) * stride + offsets[at]
                column = address >> shift & mask
                asked[column] += 1
                most = max(most, asked[column])
            totals[number] += most * times[group]
    return totals


# ---- layouts -------------------------------------------------------------------------------------------


def terms(length: int, row: int, stride: int) -> list[tuple[int, int, int]]:
    """Every term, as shift, bits and left, that adds higher bits of an index to lower ones which choose a bank, moves
    whole words, and permutes the elements of each aligned block, which the rows are made of."""
    index = np.arange(length)
    found: list[tuple[int, int, int]] = []
    for shift in range(1, length.bit_length()):
        for left in range(MOST_BITS):
            for bits in range(1, MOST_BITS + 1 - left):
                in_blocks = left + bits <= shift and row % (1 << left + bits) == 0
                if in_blocks and (1 << left) * stride >= WORD and term_of(index, (shift, bits, left)).any():
                    found.append((shift, bits, left))
    return found


def term_of(index: Integers, term: tuple[int, int, int]) -> Integers:
    shift, bits, left = term
    return (index >> shift & (1 << bits) - 1) << left


def swizzle_costs(array: Array) -> dict[tuple[tuple[int, int, int], ...], int]:
    """The wavefronts of an array as it is and with each swizzle."""
    known, every = terms(array.length, array.row or array.length, array.stride), groups_of(array)
    moved = np.array([0 * every.elements, *(term_of(every.elements, each) for each in known)])
    pairs = [(0, 0), *((0, n + 1) for n in range(len(known))), *combinations(range(1, len(known) + 1), 2)]
    costs = every.costs(array.stride, moved, np.array(pairs))
    made = (tuple(known[n - 1] for n in pair if n) for pair in pairs)
    return dict(zip(made, map(int, costs), strict=True))


def with_pitch(array: Array, now: int, pitch: int) -> Array | None:
    """The array with rows of `pitch` elements in place of `now`; None where two elements in use would be one."""
    elements = array.elements
    if len(np.unique(_moved(elements, now, pitch))) < len(elements) or pitch < 1:
        return None
    length = -(-array.length // now) * pitch
    row = array.row // now * pitch if array.row else 0
    accesses: Counter[Access] = Counter()
    for each, times in array.accesses.items():
        asked = np.array(each.addresses)
        to = _moved(asked // array.stride, now, pitch) * array.stride + asked % array.stride
        addresses = tuple(np.where(asked >= 0, to, -1).tolist())
        accesses[Access(addresses, each.width, each.is_store, each.serialized)] += times
    return Array(length, array.stride, row, accesses)


def _moved(elements: Integers, now: int, pitch: int) -> Integers:
    return elements // now * pitch + elements % now


def fewest(array: Array, pitches: Iterable[tuple[int, Iterable[int]]], most_bytes: int) -> tuple[Layout, int]:
    """The layout with the fewest wavefronts, of those whose array takes at most `most_bytes`, and how many those are.
    `pitches`: the elements of a row as written, and the values to try in their place."""
    found = [_fewest(array, 0, 0)]
    for now, values in pitches:
        for value in values:
            moved = with_pitch(array, now, value)
            if value != now and moved is not None and moved.length * moved.stride <= most_bytes:
                found.append(_fewest(moved, now, value))
    return min((each for each, _ in found), key=lambda each: each.wavefronts), sum(count for _, count in found)


def _fewest(array: Array, now: int, pitch: int) -> tuple[Layout, int]:
    costs = swizzle_costs(array)
    best = min(costs, key=lambda swizzle: (costs[swizzle], len(swizzle)))
    return Layout(costs[best], now, pitch, best), len(costs)
