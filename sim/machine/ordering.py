"""Whether a barrier is needed: whether only it orders two accesses of one word, one of them a store.

In this run one barrier orders nothing. Shadow memory has two summaries per grain: of the accesses since the last
barrier, and of those before it, back to the last barrier that orders. Each says who stored and who loaded: no
invocation, one, or several. That is exact, since of several invocations at least one is another. Atomic accesses count
as well: they do not race, but the values they see may change.

Entry WRITER of `Shadow` has the first summary and READER the second, each with the barriers passed when it began.
"""

# Numba infers the types of compiled functions, which have no annotations.
# pyright: basic

from __future__ import annotations

import numpy as np

from . import instruction as field
from . import layout as at
from .compile.by_address import borrower
from .compile.units import compiled, inlined, part
from .kinds import INSTRUCTION, LONG, NUMBERS, REGISTERS
from .memory import shared_part
from .shadow import WATCH

_borrowed = borrower(WATCH)
_NO_MASK = 0  # any row, where the mask is not read
_BITS, _MANY = 16, 0xFFFF  # fields of a summary: barriers passed, stored by, loaded by


@inlined
def joined(one, other):
    """Combine two sets of invocations: none (0), one (1 + lane), or many."""
    return one | other if one == 0 or other == 0 or one == other else np.int64(_MANY)


@inlined
def is_another(who, me):
    return who != 0 and who != me


@inlined
def touch(s, place, group, me, writes, since, counted):
    """Note an access. Returns whether only the ignored barrier orders it after that of another invocation.

    `since` and `counted` are the barriers passed at the last barrier, and at the last one that orders.
    """
    now, before = s.stamps[at.WRITER, place], s.stamps[at.READER, place]
    if s.words[at.WRITER, place] != group:
        s.words[at.WRITER, place] = group
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
    s.stamps[at.WRITER, place], s.stamps[at.READER, place] = since << (2 * _BITS) | stored << _BITS | loaded, before
    return is_another((before >> _BITS) & _MANY, me) or (writes and is_another(before & _MANY, me))


@compiled
def touch_lanes(w, s, slot, addresses, mask, masked, extra, writes, config, workgroup):
    """Note an access lane by lane. Returns how many of its grains only the ignored barrier orders."""
    row, clocks, found = w.table[slot], w.clocks[config[at.PLACE]], np.int64(0)
    limit, kind = np.uint32(row[at.WATCHED_LIMIT]), row[at.WATCHED_MEMORY]
    since, counted = clocks[at.PASSED_SINCE + kind], clocks[at.ORDERED_SINCE + kind]
    for lane in range(config[at.LANES]):
        address = np.uint32(addresses[lane] + extra)
        if address <= limit and not (masked and mask[lane] == 0):
            first = row[at.WATCHED_BASE] + config[at.PLACE] * row[at.WATCHED_PITCH]
            first += np.int64(address) * row[at.WATCHED_FACTOR]
            me = np.int64(config[at.LANE_OFFSET] + lane + 1)
            for place in range(first, min(first + row[at.WATCHED_GRAINS], len(s.stamps[at.WRITER]))):
                found += touch(s, place, np.uint32(workgroup + 1), me, writes, since, counted)
    return found


@part(REGISTERS, INSTRUCTION, NUMBERS, LONG, LONG)
def watch_order(regs, row, config, workgroup, watch_at):
    """Note an access. The lockstep group must be of one workgroup."""
    w = _borrowed(watch_at)
    slot, mask = np.int64(row[field.SLOT]), regs[max(np.int64(row[field.MASK]), _NO_MASK)]
    s = w.workgroup if w.table[slot, at.WATCHED_MEMORY] == at.ORDERED_WORKGROUP else w.storage
    extra = shared_part(regs, row)
    addresses, masked, writes = regs[row[field.ADDRESS]], row[field.MASK] >= 0, row[field.STORES] == 1
    found = touch_lanes(w, s, slot, addresses, mask, masked, extra, writes, config, workgroup)
    w.races[at.HEADER, at.BARRIER_NEEDED] += found
