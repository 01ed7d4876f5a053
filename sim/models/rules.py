"""What one access of one subgroup costs: wavefronts in workgroup memory, sectors and lines in storage.

The rule stands once, here, as plain functions over arrays: `Device` calls them from Python, the machine compiles them
(`register_jitable` for `PARTS`, then `njit` for `wavefronts` and `sectors`). They hold to what both understand.

A subgroup is the lanes `lo <= lane < hi` of `addresses` and `mask` (0 or 1). `scratch` is `new_scratch()`; its contents
mean nothing between calls. The bank rule has no mismatch against the counters of an NVIDIA H200:

- Lanes are served in groups, in `order`; each group is counted alone and the counts are added.
- A group takes as many wavefronts as the largest number of *distinct* words that its lanes ask of one bank.
- `merge` (wide loads): where every pair of active lanes `l`, `l^1` asks for one address, or every such pair `l`, `l^2`,
  two neighbouring groups are served as one.

Distinct words and sectors are counted by one walk over the addresses in ascending order. Addresses nearly always come
sorted, so that the insertion sort is one comparison per lane.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_LANES = 128
MAX_BANKS = 64


class BankRule(NamedTuple):
    """How a device serves one width of access: what `wavefronts` wants to know besides the addresses."""

    words: int  # 4-byte words per lane
    banks: int  # a power of two
    shift: int  # log2 of the words that a bank delivers at once
    group: int  # lanes served together
    merge: int  # 1 where two neighbouring groups may be served as one
    order: NDArray[np.int64]  # lanes of a full subgroup in the order of their groups


def new_scratch() -> NDArray[np.int64]:
    """Working memory for `wavefronts` and `sectors`: one per thread."""
    return np.zeros(MAX_BANKS + 2 * MAX_LANES, np.int64)


def wavefronts(addresses, mask, lo, hi, words, banks, shift, group, merge, order, scratch):
    """`(wavefronts, ideal)` of one access to workgroup memory; addresses are in 4-byte words.

    Ideal is the least that the same groups would take with their distinct words spread evenly over the banks.
    So ideal <= wavefronts, and the difference is what a profiler calls bank conflicts.
    """
    total = 0
    ideal = 0
    position = 0
    while position < len(order):
        size = group
        if merge != 0 and _pairs_agree(addresses, mask, lo, hi, order, position, 2 * group):
            size = 2 * group
        asked = 0
        for p in range(position, min(position + size, len(order))):
            lane = lo + order[p]
            if lane < hi and mask[lane] != 0:
                _insert(scratch, asked, addresses[lane])
                asked += 1
        if asked > 0:
            degree, distinct = _busiest_bank(scratch, asked, words, banks, shift)
            total += degree
            ideal += (distinct + banks - 1) // banks
        position += size
    return total, ideal


def sectors(addresses, mask, lo, hi, width, sector, line, scratch):
    """`(sectors, ideal, lines, asked)` of one access to storage.

    Addresses, `width` (per lane), `sector` and `line` (powers of two) are all in one unit, bytes or words, and so is
    `asked`: active lanes times width. Ideal is the fewest sectors that could hold the distinct units asked for.
    """
    count = 0
    for lane in range(lo, hi):
        if mask[lane] != 0:
            _insert(scratch, count, addresses[lane])
            count += 1
    in_sectors = 0
    in_lines = 0
    distinct = 0
    unit_end = sector_end = line_end = scratch[MAX_BANKS]
    for i in range(MAX_BANKS, MAX_BANKS + count):
        start = scratch[i]
        end = start + width
        distinct += end - max(start, unit_end)
        unit_end = end
        # Ends only grow, because starts are sorted and every lane is as wide as the next.
        sector_start = max(start & -sector, sector_end)
        sector_end = (end + sector - 1) & -sector
        in_sectors += sector_end - sector_start
        line_start = max(start & -line, line_end)
        line_end = (end + line - 1) & -line
        in_lines += line_end - line_start
    return in_sectors // sector, (distinct + sector - 1) // sector, in_lines // line, count * width


def _pairs_agree(addresses, mask, lo, hi, order, position, size):
    """Whether lanes `l` and `l^1` ask for one address wherever both are active, or lanes `l` and `l^2` do."""
    by_one = True
    by_two = True
    for p in range(position, min(position + size, len(order))):
        lane = lo + order[p]
        if lane < hi and mask[lane] != 0:
            one = lo + (order[p] ^ 1)
            two = lo + (order[p] ^ 2)
            if one < hi and mask[one] != 0 and addresses[one] != addresses[lane]:
                by_one = False
            if two < hi and mask[two] != 0 and addresses[two] != addresses[lane]:
                by_two = False
            if not (by_one or by_two):
                return False
    return True


def _insert(scratch, count, address):
    """Adds one address to the `count` that scratch holds in ascending order."""
    i = MAX_BANKS + count
    address = np.int64(address)
    while i > MAX_BANKS and scratch[i - 1] > address:
        scratch[i] = scratch[i - 1]
        i -= 1
    scratch[i] = address


def _busiest_bank(scratch, count, words, banks, shift):
    """`(the most distinct entries that one bank must deliver, distinct entries in all)`; an entry is a bank's width."""
    first = scratch[MAX_BANKS] >> shift
    last = (scratch[MAX_BANKS + count - 1] + words - 1) >> shift
    if last - first < banks:
        return 1, 1
    for bank in range(banks):
        scratch[bank] = 0
    busiest = 0
    distinct = 0
    fresh = first
    for i in range(MAX_BANKS, MAX_BANKS + count):
        end = ((scratch[i] + words - 1) >> shift) + 1
        for entry in range(max(scratch[i] >> shift, fresh), end):
            bank = entry & (banks - 1)
            scratch[bank] += 1
            busiest = max(busiest, scratch[bank])
            distinct += 1
        fresh = end
    return busiest, distinct


PARTS = (_pairs_agree, _insert, _busiest_bank)
"""The functions that `wavefronts` and `sectors` call."""
