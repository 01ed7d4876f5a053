"""What the recorded accesses to a workgroup array cost in each layout, without running it.

A layout that moves elements without merging any keeps which lanes agree on an address, and so which lanes a device
serves together and how many distinct addresses they request. Only the columns of banks change: an access takes as many
wavefronts as the busiest column has distinct addresses, or, for an atomic that is serialized, as it has lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...sim.fast_dataclass import frozen
from ...sim.models import Device
from ..gpu_counters.access_trace import Request
from .swizzles import Swizzle, Term

_WORD = 4  # bytes
_AT_ONCE = 1 << 15  # addresses and counters

Move = Callable[[NDArray[np.int32]], NDArray[np.int32]]  # element indices -> element indices


@frozen
class Group:
    """Lanes that are served together, of many accesses alike in their rule: `elements` and `offsets`, bytes in an
    element, by distinct address; `row` says of which of `weights`, the times that a group of lanes occurs."""

    shift: int  # log2 of the bytes in a column
    columns: int
    elements: NDArray[np.int32]
    offsets: NDArray[np.int32]
    row: NDArray[np.int64]
    weights: NDArray[np.int64]

    def excess(self, columns: NDArray[np.uint16]) -> NDArray[np.int64]:
        """Return the wavefronts beyond one for each time that a group of lanes occurs, for several layouts, of which
        `columns` has the column of each address: `[layouts, addresses]`."""
        counters = self._first_counter + np.arange(len(columns))[:, np.newaxis] * self._counters
        counters += columns
        counts = np.bincount(counters.ravel(), minlength=len(columns) * self._counters)
        return counts.reshape(len(columns), len(self.weights), self.columns).max(axis=2) @ self.weights - self.ideal

    def columns_of(self, stride: int, elements: NDArray[np.int32]) -> NDArray[np.uint16]:
        """Return the columns of the addresses if these are their elements."""
        return ((elements * stride + self.offsets >> self.shift) & (self.columns - 1)).astype(np.uint16)

    def swizzled(self, stride: int, swizzles: Sequence[Swizzle]) -> NDArray[np.uint16]:
        """Return the columns of the addresses with each of several swizzles of equally many terms."""
        if stride & (stride - 1):
            return np.array([self.columns_of(stride, swizzle.of(self.elements)) for swizzle in swizzles])
        # An exclusive or of indices is one of columns, too.
        columns = self._column_bits(stride, None)
        for alike in zip(*(swizzle.terms for swizzle in swizzles), strict=True):
            columns = columns ^ np.array([self._column_bits(stride, term) for term in alike])
        return columns

    def _column_bits(self, stride: int, term: Term | None) -> NDArray[np.uint16]:
        """Return what a term changes of the columns; of none, the columns as they are."""
        found = self._known_bits.get(term)
        if found is None:
            if term is None:
                found = self.columns_of(stride, self.elements)
            else:
                found = (term.of(self.elements) * stride >> self.shift & (self.columns - 1)).astype(np.uint16)
            self._known_bits[term] = found
        return found

    @cached_property
    def _known_bits(self) -> dict[Term | None, NDArray[np.uint16]]:
        return {}

    @cached_property
    def ideal(self) -> int:
        return int(self.weights.sum())

    @cached_property
    def _first_counter(self) -> NDArray[np.int64]:
        """The counter of column 0, for each address."""
        return self.row * self.columns

    @property
    def _counters(self) -> int:
        return len(self.weights) * self.columns

    @property
    def work(self) -> int:
        """What `excess` looks at: addresses, and counters."""
        return len(self.elements) + self._counters

    def moved(self, move: Move) -> Group:
        return Group(self.shift, self.columns, move(self.elements), self.offsets, self.row, self.weights)


@frozen
class Patterns:
    """The accesses to one array, whose elements are `stride` bytes apart."""

    stride: int
    groups: tuple[Group, ...]

    def wavefronts(self, move: Move = lambda index: index) -> int:
        """Return the wavefronts of all recorded accesses if element i is stored at `move(i)`, an injective map."""
        columns = ((group, group.columns_of(self.stride, move(group.elements))) for group in self.groups)
        return self.ideal + sum(int(group.excess(each[np.newaxis])[0]) for group, each in columns)

    def of_swizzles(self, swizzles: Sequence[Swizzle], most: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the wavefronts with each of several swizzles of equally many terms. Where they are more than its
        number in `most`, any number above that: the search stops there."""
        totals = np.full(len(swizzles), self.ideal, np.int64)
        for group in self._by_work:
            left = np.flatnonzero(totals <= most)
            if len(left):
                totals[left] += group.excess(group.swizzled(self.stride, [swizzles[n] for n in left.tolist()]))
        return totals

    @property
    def at_once(self) -> int:
        """How many swizzles `of_swizzles` should be given: what it looks at stays in the processor's cache."""
        return max(1, _AT_ONCE // max([1, *(group.work for group in self.groups)]))

    @cached_property
    def _by_work(self) -> list[Group]:
        return sorted(self.groups, key=lambda group: group.work)

    def with_pitch(self, now: int, then: int) -> Patterns | None:
        """Return the patterns with rows of `then` elements in place of `now`, None where elements share words, which
        others would then."""
        if self.stride % _WORD:
            return None
        groups = [group.moved(lambda index: index // now * then + index % now) for group in self.groups]
        return Patterns(self.stride, tuple(groups))

    def padded_rows(self, length: int) -> tuple[int, int] | None:
        """Return the elements of a row of an array of `length` elements, and how many at its start are accessed, if
        that is fewer: the pitch and the width of padded rows."""
        used = np.unique(np.concatenate([group.elements for group in self.groups] or [np.zeros(0, np.int64)]))
        for pitch in range(3, length // 2 + 1):
            columns = np.unique(used % pitch) if length % pitch == 0 else used[:0]
            if 1 < len(columns) == columns[-1:].sum() + 1 < pitch and used[-1] >= pitch:
                return pitch, len(columns)
        return None

    @property
    def size(self) -> int:
        """The addresses that `wavefronts` looks at."""
        return sum(len(group.elements) for group in self.groups)

    @cached_property
    def ideal(self) -> int:
        """The wavefronts without any bank conflict."""
        return sum(group.ideal for group in self.groups)


def patterns_of(requests: Iterable[Request], stride: int, device: Device) -> Patterns:
    """Return the patterns of an array's requests, from a trace."""
    alike: dict[tuple[int, bool, bool], list[NDArray[np.int64]]] = {}
    for each in requests:
        site = each.site
        kind = (site.bytes_per_lane, site.kind == "store", site.takes_turns)
        alike.setdefault(kind, []).append(each.addresses)
    groups: list[Group] = []
    for (width, is_store, is_serialized), addresses in alike.items():
        rows, counts = np.unique(np.array(addresses), axis=0, return_counts=True)
        groups.append(_group(rows, counts, stride, width, is_serialized, device, is_store))
    return Patterns(stride, tuple(groups))


def _group(
    rows: NDArray[np.int64],
    counts: NDArray[np.int64],
    stride: int,
    width: int,
    is_serialized: bool,
    device: Device,
    is_store: bool,
) -> Group:
    """Split rows of addresses, `[requests, lanes]`, -1 for inactive lanes, into the groups that are served together."""
    rule = device.bank_rule(_WORD if is_serialized else width, is_store)
    shift = rule.shift + (_WORD.bit_length() - 1)
    chunks: list[NDArray[np.int64]] = []  # distinct addresses of a group, as first bytes of columns
    weights: list[int] = []
    order: NDArray[np.int64] = np.arange(rows.shape[1], dtype=np.int64) if is_serialized else rule.order
    for row, count in zip(rows, counts, strict=True):
        size = rule.columns * (2 if rule.merge and not is_serialized and _pairs_agree(row) else 1)
        for start in range(0, len(order), size):
            asked = row[order[start : start + size]]
            asked = asked[asked >= 0] >> shift << shift
            if len(asked):
                chunks.append(asked if is_serialized else np.unique(asked))
                weights.append(int(count))
    number = np.repeat(np.arange(len(chunks)), [len(chunk) for chunk in chunks])
    flat = np.concatenate(chunks) if chunks else np.zeros(0, np.int64)
    elements, offsets = (part.astype(np.int32) for part in divmod(flat, stride))  # a search reads them many times
    return Group(shift, rule.columns, elements, offsets, number, np.array(weights, np.int64))


def _pairs_agree(row: NDArray[np.int64]) -> bool:
    """Whether all lanes `l` and `l ^ 1`, or all `l` and `l ^ 2`, request one address where both are active."""
    lanes = np.arange(len(row))
    for distance in (1, 2):
        other = row[(lanes ^ distance) % len(row)]
        if not ((row >= 0) & (other >= 0) & (row != other)).any():
            return True
    return False
