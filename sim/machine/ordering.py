"""What a barrier is for: accesses of one word by two invocations, a store among them, that only it keeps in order.

The run takes one barrier to order nothing. Of each grain the shadow keeps two summaries: of what came since the last
barrier, and of what came before it and after the last barrier that counts. Each says who has stored and who has loaded:
nobody, one invocation, or many. That is exact, for of many one is always somebody else. Atomics are looked at as well:
they do not race, but what they see would change.

Of `Shadow`, writer holds the first summary and reader the second, each beside the barriers passed when it began.
"""

from __future__ import annotations

import numpy as np

from . import layout as at
from .compile.by_address import borrower
from .compile.units import compiled, inlined, part
from .kinds import INSTRUCTION, LONG, NUMBERS, REGISTERS
from .memory import shared_part
from .probe_arrays import READER, WRITER
from .shadow import WATCH

_borrowed = borrower(WATCH)
_BITS, _MANY = 16, 0xFFFF  # of a summary: barriers passed, who has stored, who has loaded


@inlined
def joined(one, other):
    """Nobody (0), one (1 + lane), or many."""
    return one | other if one == 0 or other == 0 or one == other else np.int64(_MANY)


@inlined
def someone_else(who, me):
    return who != 0 and who != me


@inlined
def touch(s, place, group, me, writes, since, counted):
    """Note an access. Whether only the barrier that does not count orders it after another's.

    `since`, `counted`: barriers passed at the last barrier, and at the last one that counts.
    """
    now, before = s.stamps[WRITER, place], s.stamps[READER, place]
    if s.words[WRITER, place] != group:
        s.words[WRITER, place] = group
        now = before = np.int64(0)
    if before >> (2 * _BITS) != counted:
        before = counted << (2 * _BITS)
    if now >> (2 * _BITS) != since:
        if now >> (2 * _BITS) >= counted:
            stored = joined((before >> _BITS) & _MANY, (now >> _BITS) & _MANY)
            before = counted << (2 * _BITS) | stored << _BITS | joined(before & _MANY, now & _MANY)
        now = since << (2 * _BITS)
    stored, loaded = (now >> _BITS) & _MANY, now & _MANY
    if writes:
        stored = joined(stored, me)
    else:
        loaded = joined(loaded, me)
    s.stamps[WRITER, place], s.stamps[READER, place] = since << (2 * _BITS) | stored << _BITS | loaded, before
    return someone_else((before >> _BITS) & _MANY, me) or (writes and someone_else(before & _MANY, me))


@compiled
def touch_lanes(w, s, slot, addresses, mask, masked, extra, writes, config, workgroup):
    """One access, lane by lane; how many grains of it only that barrier orders."""
    row, clocks, found = w.table[slot], w.clocks[0], np.int64(0)
    limit, kind = np.uint32(row[at.W_LIMIT]), row[at.W_MEMORY]
    since, counted = clocks[at.PASSED_SINCE + kind], clocks[at.ORDERED_SINCE + kind]
    for lane in range(config[at.LANES]):
        address = np.uint32(addresses[lane] + extra)
        if address <= limit and not (masked and mask[lane] == 0):
            first = row[at.W_BASE] + np.int64(address) * row[at.W_FACTOR]
            for place in range(first, first + row[at.W_GRAINS]):
                found += touch(s, place, np.uint32(workgroup + 1), np.int64(lane + 1), writes, since, counted)
    return found


@part(REGISTERS, INSTRUCTION, NUMBERS, LONG, LONG)
def watch_order(regs, row, config, workgroup, lent):
    """An access (D is 1: that stores) of the one workgroup of a batch."""
    w = _borrowed(lent)
    slot, mask = np.int64(row[7]), regs[max(np.int64(row[6]), 0)]
    s = w.workgroup if w.table[slot, at.W_MEMORY] == at.ORDERED_WORKGROUP else w.storage
    extra = shared_part(regs, row[3], row[4])
    found = touch_lanes(w, s, slot, regs[row[2]], mask, row[6] >= 0, extra, row[1] == 1, config, workgroup)
    w.races[0, at.NEEDED] += found
