"""The cost of one access of one subgroup: wavefronts in workgroup memory, sectors and lines in storage.

The rules are plain functions over arrays, written once: `Device` calls them from Python and the machine compiles them
(`PARTS` lists the functions that they call), so they keep to what both support.

A subgroup is the lanes `lo <= lane < hi` of `addresses` and `mask` (0 or 1), at most MAX_LANES. Addresses count from 0
in 4-byte words, or in any other unit that all arguments share; an access is aligned to its width. `scratch` is
`new_scratch()`.

Compared with the profiler counters of an NVIDIA H200, the bank rule has no mismatch in 2,769 cases and the sector rule
none in 979, over all widths and many masks (`tests/hardware`). The bank rule:

- Adjacent banks form *columns* as wide as the access. As many lanes as there are columns are served together, in
  `order`; each such group is counted by itself, and the counts are added.
- A group takes as many wavefronts as the largest number of *distinct* addresses that its active lanes request from one
  column.
- `merge` (wide loads): two neighbouring groups are served as one where every pair of active lanes `l`, `l^1` of the
  subgroup requests one address, or every pair `l`, `l^2` does.

Atomic read-modify-writes are serialized where lanes collide (atomic loads and stores cost what others do). In workgroup
memory lanes collide in a bank, even on one word: an access takes as many wavefronts as the busiest bank has active
lanes; no mismatch in 205 cases. In storage they collide on a word: a sector passes once for each lane on its busiest
word; 228 of 235 cases agree. In the other 7, lanes request one word of different lines, and the hardware passes 1 or 2
sectors once more: it hashes the address, and so the position of the buffer, which no kernel decides. The rule leaves
that out, and is never above the hardware's count.

Distinct addresses are counted in ascending order. They are nearly always sorted already, so that the insertion sort
makes one comparison per lane.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_LANES = 128
MAX_BANKS = 64

Integers = NDArray[np.integer[Any]]
Mask = NDArray[Any]  # bools, or integers that are 0 or 1
Scratch = NDArray[np.int64]
Count = int | np.integer[Any]


class BankRule(NamedTuple):
    """How a device serves accesses of one width: the arguments of `wavefronts` after the lanes."""

    shift: int  # log2 of the words in a column
    columns: int  # a power of two; also the number of lanes served together
    merge: int  # 1 where two neighbouring groups may be served as one
    order: NDArray[np.int64]  # lanes of a full subgroup in the order of their groups


def new_scratch() -> Scratch:
    """Allocate working memory for the rules, one array per thread. Its contents mean nothing between calls."""
    return np.zeros(MAX_BANKS + MAX_LANES, np.int64)


def wavefronts(
    addresses: Integers,
    mask: Mask,
    lo: int,
    hi: int,
    shift: int,
    columns: int,
    merge: int,
    order: NDArray[np.int64],
    scratch: Scratch,
) -> tuple[Count, Count]:
    """Count `(wavefronts, ideal)` of one access to workgroup memory.

    Ideal is one for each group with an active lane, so never more than wavefronts. The difference is what profilers
    call bank conflicts.
    """
    group = columns
    if merge != 0 and (_pairs_agree(addresses, mask, lo, hi, 1) or _pairs_agree(addresses, mask, lo, hi, 2)):
        group = 2 * columns
    total = 0
    ideal = 0
    for position in range(0, len(order), group):
        asked = 0
        lowest = highest = np.int64(0)
        for p in range(position, min(position + group, len(order))):
            lane = lo + order[p]
            if lane < hi and mask[lane] != 0:
                address = np.int64(addresses[lane]) >> shift
                lowest = min(lowest, address) if asked > 0 else address
                highest = max(highest, address) if asked > 0 else address
                scratch[MAX_BANKS + asked] = address
                asked += 1
        if asked > 0:
            ideal += 1
            total += 1 if highest - lowest < columns else _busiest_column(scratch, asked, columns)
    return total, ideal


def sectors(
    addresses: Integers, mask: Mask, lo: int, hi: int, width: int, sector: int, line: int, scratch: Scratch
) -> tuple[Count, Count, Count, Count]:
    """Count `(sectors, ideal, lines, requested)` of one access to storage.

    `width` (per lane), `sector` and `line` (powers of two) are in the unit of the addresses, and so is `requested`:
    active lanes times width. Ideal is the fewest sectors that could hold the distinct units requested.
    """
    count = 0
    for lane in range(lo, hi):
        if mask[lane] != 0:
            scratch[MAX_BANKS + count] = addresses[lane]
            count += 1
    _sort(scratch, count)
    in_sectors = 0
    in_lines = 0
    distinct = 0
    end = sector_end = line_end = np.int64(0)
    for i in range(MAX_BANKS, MAX_BANKS + count):
        start = scratch[i]
        # Ends only grow, because starts are sorted and every lane is as wide as the next.
        distinct += start + width - max(start, end)
        end = start + width
        sector_start = max(start & -sector, sector_end)
        sector_end = (end + sector - 1) & -sector
        in_sectors += sector_end - sector_start
        line_start = max(start & -line, line_end)
        line_end = (end + line - 1) & -line
        in_lines += line_end - line_start
    return in_sectors // sector, (distinct + sector - 1) // sector, in_lines // line, count * width


def atomic_wavefronts(
    addresses: Integers, mask: Mask, lo: int, hi: int, shift: int, columns: int, scratch: Scratch
) -> tuple[Count, Count]:
    """Count `(wavefronts, ideal)` of one atomic read-modify-write in workgroup memory, one word a lane.

    Ideal is one for each group of `columns` lanes with an active lane, as if none collided.
    """
    total = 0
    ideal = 0
    for start in range(lo, hi, columns):
        busiest = np.int64(0)
        for column in range(columns):
            scratch[column] = 0
        for lane in range(start, min(start + columns, hi)):
            if mask[lane] != 0:
                column = (np.int64(addresses[lane]) >> shift) & (columns - 1)
                scratch[column] += 1
                busiest = max(busiest, scratch[column])
        total += busiest
        ideal += busiest > 0
    return total, ideal


def atomic_sectors(
    addresses: Integers, mask: Mask, lo: int, hi: int, sector: int, scratch: Scratch
) -> tuple[Count, Count]:
    """Count `(sectors, turns)` of one atomic read-modify-write in storage, one word a lane: the passes of sectors, and
    the active lanes on the busiest word."""
    count = 0
    for lane in range(lo, hi):
        if mask[lane] != 0:
            scratch[MAX_BANKS + count] = addresses[lane]
            count += 1
    _sort(scratch, count)
    passed = 0
    turns = np.int64(0)
    on_word = in_sector = np.int64(0)
    for i in range(MAX_BANKS, MAX_BANKS + count):
        first = i == MAX_BANKS
        on_word = on_word + 1 if not first and scratch[i] == scratch[i - 1] else np.int64(1)
        if not first and scratch[i] & -sector != scratch[i - 1] & -sector:
            passed += in_sector
            in_sector = np.int64(0)
        in_sector = max(in_sector, on_word)
        turns = max(turns, on_word)
    return passed + in_sector, turns


def _pairs_agree(addresses: Integers, mask: Mask, lo: int, hi: int, distance: int) -> bool:
    """Whether lanes `l` and `l ^ distance` request one address wherever both are active."""
    for lane in range(lo, hi):
        other = lo + ((lane - lo) ^ distance)
        if other < hi and mask[lane] != 0 and mask[other] != 0 and addresses[lane] != addresses[other]:
            return False
    return True


def _sort(scratch: Scratch, count: int) -> None:
    """Sort the addresses in `scratch` into ascending order, by insertion."""
    highest = scratch[MAX_BANKS]
    for i in range(MAX_BANKS + 1, MAX_BANKS + count):
        address = scratch[i]
        if address >= highest:
            highest = address
        else:
            hole = i
            while hole > MAX_BANKS and scratch[hole - 1] > address:
                scratch[hole] = scratch[hole - 1]
                hole -= 1
            scratch[hole] = address


def _busiest_column(scratch: Scratch, count: int, columns: int) -> Count:
    """Count the distinct addresses in the column that has the most."""
    _sort(scratch, count)
    for column in range(columns):
        scratch[column] = 0
    previous = scratch[MAX_BANKS]
    scratch[previous & (columns - 1)] = 1
    busiest: Any = np.int64(1)
    for i in range(MAX_BANKS + 1, MAX_BANKS + count):
        address = scratch[i]
        if address != previous:
            column = address & (columns - 1)
            scratch[column] += 1
            busiest = max(busiest, scratch[column])
            previous = address
    return busiest


PARTS = (_pairs_agree, _sort, _busiest_column)
"""The functions that the rules call; the machine compiles them first."""
