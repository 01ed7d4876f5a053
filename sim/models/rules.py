"""What one access of one subgroup costs: wavefronts in workgroup memory, sectors and lines in storage.

The rule stands once, here, as plain functions over arrays: `Device` calls them from Python, the machine compiles them
(`PARTS` is what they call among themselves). They keep to what both understand.

A subgroup is the lanes `lo <= lane < hi` of `addresses` and `mask` (0 or 1), at most MAX_LANES. Addresses are in 4-byte
words, or in any other unit that all arguments share, and count from 0; an access is aligned to its width. `scratch` is
`new_scratch()`.

Against the counters of an NVIDIA H200 the bank rule has no mismatch in 2,769 cases, the sector rule none in 979, of all
widths and many masks (`tests/hardware`). Of the banks:

- The banks side by side make *columns* as wide as the access. As many lanes as there are columns are served together,
  in `order`; each such group is counted alone, and the counts are added.
- A group takes as many wavefronts as the largest number of *distinct* addresses that its active lanes ask of one
  column.
- `merge` (wide loads): where each pair of active lanes `l`, `l^1` of the whole subgroup asks for one address, or each
  such pair `l`, `l^2` does, two neighbouring groups are served as one.

Atomic operations that read and write go lane by lane where lanes meet (atomic loads and stores cost what others do). In
workgroup memory lanes meet in a bank, even on one word: an access takes as many wavefronts as the most active lanes
have in one bank; none of 205 cases differs. In storage they meet on a word: a sector is passed once for each lane on
its busiest word; 228 of 235 cases agree. In the other 7 lanes ask for one word of different lines, and 1 or 2 sectors
are passed once more: a hash of the address, and so of where the buffer lies, makes the hardware part such lanes or not,
which no kernel decides. The rule leaves that out, and is never above what the hardware counts.

Distinct addresses are counted by a walk in ascending order. They nearly always come sorted, so that the insertion sort
is one comparison per lane.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_LANES = 128
MAX_BANKS = 64


class BankRule(NamedTuple):
    """How a device serves one width of access: what `wavefronts` wants to know besides the addresses."""

    shift: int  # log2 of the words in a column
    columns: int  # a power of two; also the lanes that are served together
    merge: int  # 1 where two neighbouring groups may be served as one
    order: NDArray[np.int64]  # lanes of a full subgroup in the order of their groups


def new_scratch() -> NDArray[np.int64]:
    """Working memory for `wavefronts` and `sectors`, one per thread; its contents mean nothing between calls."""
    return np.zeros(MAX_BANKS + MAX_LANES, np.int64)


def wavefronts(addresses, mask, lo, hi, shift, columns, merge, order, scratch):
    """`(wavefronts, ideal)` of one access to workgroup memory.

    Ideal is one for each group that is served, so it is never more than wavefronts; the difference is what a profiler
    calls bank conflicts.
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


def sectors(addresses, mask, lo, hi, width, sector, line, scratch):
    """`(sectors, ideal, lines, asked)` of one access to storage.

    `width` (per lane), `sector` and `line` (powers of two) are in the unit of the addresses, and so is `asked`: active
    lanes times width. Ideal is the fewest sectors that could hold the distinct units asked for.
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


def atomic_wavefronts(addresses, mask, lo, hi, shift, columns, scratch):
    """`(wavefronts, ideal)` of one atomic operation on workgroup memory, one word a lane.

    Ideal is one for each group of `columns` lanes, as if no two met.
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


def atomic_sectors(addresses, mask, lo, hi, sector, scratch):
    """`(sectors, turns)` of one atomic operation on storage, one word a lane: how often sectors are passed, and the
    most lanes on any one word."""
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


def _pairs_agree(addresses, mask, lo, hi, distance):
    """Whether lanes `l` and `l ^ distance` ask for one address wherever both are active."""
    for lane in range(lo, hi):
        other = lo + ((lane - lo) ^ distance)
        if other < hi and mask[lane] != 0 and mask[other] != 0 and addresses[lane] != addresses[other]:
            return False
    return True


def _sort(scratch, count):
    """Puts the addresses in scratch into ascending order, by insertion."""
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


def _busiest_column(scratch, count, columns):
    """The most distinct addresses that fall into one column."""
    _sort(scratch, count)
    for column in range(columns):
        scratch[column] = 0
    previous = scratch[MAX_BANKS]
    busiest = scratch[previous & (columns - 1)] = 1
    for i in range(MAX_BANKS + 1, MAX_BANKS + count):
        address = scratch[i]
        if address != previous:
            column = address & (columns - 1)
            scratch[column] += 1
            busiest = max(busiest, scratch[column])
            previous = address
    return busiest


PARTS = (_pairs_agree, _sort, _busiest_column)
"""The functions that `wavefronts` and `sectors` call."""
