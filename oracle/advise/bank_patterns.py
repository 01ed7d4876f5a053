"""What the recorded accesses to a workgroup array cost in each layout, without running it.

A layout that moves elements without merging any keeps which lanes agree on an address, and so which lanes a device
serves together and how many distinct addresses they request. Only the columns of banks change: an access takes as many
wavefronts as the busiest column has distinct addresses, or, for an atomic that is serialized, as it has lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...sim.fast_dataclass import frozen
from ...sim.models import Device
from ..gpu_counters.access_trace import Request

_WORD = 4  # bytes

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

    def excess(self, stride: int, move: Move) -> int:
        """The wavefronts beyond one for each time that a group of lanes occurs."""
        column = (move(self.elements) * stride + self.offsets >> self.shift) & (self.columns - 1)
        counts = np.bincount(self._first_counter + column, minlength=self._counters)
        return int(counts.reshape(-1, self.columns).max(axis=1) @ self.weights) - self.ideal

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

    def wavefronts(self, move: Move = lambda index: index, most: int | None = None) -> int:
        """Return the wavefronts of all recorded accesses if element i is stored at `move(i)`, an injective map. Where
        they are more than `most`, any number above it: the search stops there."""
        total = self.ideal
        for group in self._by_work:
            total += group.excess(self.stride, move)
            if most is not None and total > most:
                break
        return total

    @cached_property
    def _by_work(self) -> list[Group]:
        return sorted(self.groups, key=lambda group: group.work)

    def with_pitch(self, now: int, then: int) -> Patterns | None:
        """Return the patterns with rows of `then` elements in place of `now`, None where elements share words, which
        others would then."""
        if self.stride % _WORD:
            return None
        moved = [group.moved(lambda index: index // now * then + index % now) for group in self.groups]
        return Patterns(self.stride, tuple(moved))

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
