"""Shadow memory: who accessed each word, to find races and loads of words that were never written.

Two accesses of one word race if different invocations make them, at least one is a store, they are not both atomic, and
no barrier orders them: they are of one workgroup without a barrier for this memory between them, or of two workgroups,
which nothing orders. Words of atomic type are not watched: WGSL has no plain access to them. Spec: "Memory Semantics"
(atomics are relaxed, each barrier orders its own address space).

Shadow memory has the last writer of each grain (see `layout`) and two readers by different invocations, of two
workgroups if there are such. That is enough: if a store races with any earlier access, it races with one of the three.
It races with all accesses of other workgroups, and with readers of two workgroups there is one of another. A reader is
replaced by a later one of its workgroup that a barrier orders after it, and any access that races with the former races
with the latter; or the second reader, of the same workgroup as the first, by one of another.

Loads with a known address pattern are not examined lane by lane. They access an interval of grains; as long as no store
hits it before the next barrier, the load is only noted, and notes are examined when a store comes near.

For a store by all lanes, the addresses are kept, and whether each lane had grains of its own. If the next store has the
same addresses, shifted, and all earlier accesses of these grains are ordered before it, it cannot race.

Both hold for whole workgroups: accesses of a batch of several lockstep groups are examined lane by lane.
"""

# Numba infers the types of compiled functions, which have no annotations.
# pyright: basic

from __future__ import annotations

import numpy as np

from . import instruction as field
from . import layout as at
from .compile.by_address import borrower
from .compile.units import compiled, inlined, part
from .grains import CLOCK_SHIFT, begin_of, stamp_of
from .kinds import INSTRUCTION, LONG, NUMBERS, REGISTERS, TABLE, WORDS
from .memory import shared_part
from .shadow_blocks import WATCH, by_blocks
from .shadow_lanes import grains_of, read_lanes, write_lanes

_NOWHERE = 1 << 62
_NO_MASK = 0  # any row, where the mask is not read
_PATIENCE = 16  # stores with other addresses, in a row, after which an access keeps no more


_borrowed = borrower(WATCH)


# ---- all lanes of an access --------------------------------------------------------------------------


@inlined
def distinct_lanes(known, size):
    """Return how many lanes of a workgroup, and how far apart, have all of its addresses in a known pattern."""
    if known[at.SHAPE] == at.PERIODIC:
        return min(size, known[at.PERIOD]), np.int64(1)
    if known[at.SHAPE] == at.BLOCKS and size % at.VECTOR_LANES == 0:
        return size, np.int64(at.VECTOR_LANES)
    return size, np.int64(1)


@compiled
def all_written(w, slot, addresses, known, extra, config, workgroups_per_batch):
    """Whether all words of a load with a known pattern, in bounds, have been written."""
    row, size, writers = w.table[slot], config[at.LANES], w.workgroup.stamps[at.WRITER]
    factor = row[at.WATCHED_FACTOR]
    lanes, step = distinct_lanes(known, size)
    for g in range(workgroups_per_batch):
        here, fresh = addresses[g * size :], w.clocks[g, at.START] << CLOCK_SHIFT
        base = row[at.WATCHED_BASE] + (g + config[at.PLACE]) * row[at.WATCHED_PITCH]
        for first in range(base, base + row[at.WATCHED_GRAINS]):
            for lane in range(0, lanes, step):  # a gather would be slower
                if writers[np.uint64(first + np.int64(np.uint32(here[lane] + extra)) * factor)] < fresh:
                    return False
    return True


@compiled
def examine_notes(w, config, workgroup, workgroups_per_batch):
    """Examine the noted loads, lane by lane."""
    for i in range(w.state[at.PENDING]):
        slot = w.loads[i, at.LOAD_SLOT]
        row, distance = w.rows[slot], np.uint32(w.loads[i, at.LOAD_DISTANCE])
        lanes = workgroups_per_batch * config[at.LANES]
        read_lanes(w, w.workgroup, slot, row, row, False, distance, config, workgroup, lanes)
    w.state[at.PENDING] = 0
    for variable in range(len(w.spans)):
        w.spans[variable, at.READ_LOW], w.spans[variable, at.READ_HIGH] = _NOWHERE, -1


@compiled
def open_window(w):
    """Begin a window: all earlier accesses of workgroup memory are ordered before all later ones."""
    w.state[at.WINDOW] += 1
    w.state[at.PENDING] = 0
    for variable in range(len(w.spans)):
        span = w.spans[variable]
        span[at.READ_LOW], span[at.READ_HIGH], span[at.WRITE_LOW], span[at.WRITE_HIGH] = _NOWHERE, -1, _NOWHERE, -1


@inlined
def all_of(mask, lanes):
    """Whether all lanes of a mask are active."""
    every = np.uint32(1)
    for lane in range(lanes):
        every = np.uint32(every & mask[lane])
    return every != 0


@inlined
def some_idle(regs, row, config, workgroups_per_batch, lanes):
    """Whether an access leaves out a lane of the batch. Lanes from `lanes` on are inactive."""
    return row[field.MASK] >= 0 and (
        lanes < workgroups_per_batch * config[at.LANES] or not all_of(regs[row[field.MASK]], lanes)
    )


# ---- entry points ------------------------------------------------------------------------------------


@part(LONG, LONG)
def watch_batch(workgroups_per_batch, watch_at):
    """Begin a batch of workgroups."""
    w = _borrowed(watch_at)
    for g in range(workgroups_per_batch):
        now = w.clocks[g, at.CLOCK] + 1
        for i in range(at.CLOCKS_SIZE):
            w.clocks[g, i] = now
    w.state[at.BATCH] += 1
    open_window(w)


@part(REGISTERS, INSTRUCTION, NUMBERS, LONG, LONG, LONG)
def watch_barrier(regs, row, config, workgroup, workgroups_per_batch, watch_at):
    """Order memory at a barrier. Workgroups without an active lane do not pass it; of several lockstep groups some has
    one."""
    w = _borrowed(watch_at)
    size, kind, counts = config[at.LANES], np.int64(row[field.MEMORY]), row[field.SITE] != config[at.IGNORED_BARRIER]
    everywhere, shares = True, config[at.LOCKSTEP_GROUPS] > 1
    if row[field.MASK] >= 0 and not shares:
        everywhere = all_of(regs[row[field.MASK]], workgroups_per_batch * size)
    if not (everywhere and kind == at.ORDERED_WORKGROUP):
        examine_notes(w, config, workgroup, workgroups_per_batch)
    for g in range(workgroups_per_batch):
        passes, clocks = everywhere, w.clocks[g + config[at.PLACE]]
        if not passes:
            for lane in range(g * size, (g + 1) * size):
                passes |= regs[row[field.MASK], lane] != 0
        if passes:
            clocks[at.CLOCK] += 1
            clocks[at.PASSED_SINCE + kind] = clocks[at.CLOCK]
            if counts:
                clocks[at.ORDERED_SINCE + kind] = clocks[at.CLOCK]
            else:
                w.races[at.HEADER, at.BARRIER_PASSED] += 1
    if everywhere and kind == at.ORDERED_WORKGROUP:
        open_window(w)


@part(REGISTERS, INSTRUCTION, NUMBERS, NUMBERS, WORDS, TABLE, LONG, LONG, LONG, LONG)
def watch_read(regs, row, config, entry, memory, patterns, workgroup, workgroups_per_batch, lanes, watch_at):
    """Examine a load by the first `lanes` lanes: note it if its pattern is known, else examine it lane by lane."""
    w = _borrowed(watch_at)
    slot, addresses = np.int64(row[field.SLOT]), regs[row[field.ADDRESS]]
    extra = shared_part(regs, row)
    watched, known = w.table[slot], patterns[row[field.ADDRESS]]
    masked = some_idle(regs, row, config, workgroups_per_batch, lanes)
    if watched[at.WATCHED_MEMORY] != at.ORDERED_WORKGROUP:
        mask = regs[max(np.int64(row[field.MASK]), _NO_MASK)]
        s = w.storage
        left = by_blocks(regs, row, config, entry, memory, 0, workgroup, lanes, watch_at)
        if left == at.NONE_LEFT:
            return
        if left == at.SOME_LEFT:
            mask, masked = w.left, True
        read_lanes(w, s, slot, addresses, mask, masked, extra, config, workgroup, lanes)
        return
    if row[field.LEARNED] != 1 or masked or config[at.LOCKSTEP_GROUPS] > 1 or not within(watched, known, extra):
        mask = regs[max(np.int64(row[field.MASK]), _NO_MASK)]
        read_lanes(w, w.workgroup, slot, addresses, mask, masked, extra, config, workgroup, lanes)
        return
    read_known(w, slot, addresses, known, extra, config, workgroup, workgroups_per_batch)


@inlined
def within(watched, known, extra):
    """Whether all addresses of a known pattern are in bounds."""
    return np.int64(known[at.HIGHEST]) + np.int64(extra) <= np.int64(np.uint32(watched[at.WATCHED_LIMIT]))


@inlined
def seen_before(w, slot, distance):
    """Return the entry of `seen` for a load of the kept row at this distance, and whether it is of that load."""
    seen = w.seen[slot, np.int64(np.uint32(distance * np.uint32(2654435761)) >> np.uint32(24))]
    return seen, seen[at.SEEN_DISTANCE] == np.int64(distance) and seen[at.SEEN_VERSION] == w.kept[slot, at.ROW_VERSION]


@inlined
def touched(watched, known, extra):
    """Return the lowest and the highest grain of a load with a known pattern."""
    factor, base = watched[at.WATCHED_FACTOR], watched[at.WATCHED_BASE]
    high = base + (known[at.HIGHEST] + np.int64(extra)) * factor + watched[at.WATCHED_GRAINS] - 1
    return base + (known[at.LOWEST] + np.int64(extra)) * factor, high


@inlined
def note_load(w, slot, distance, span, low, high):
    """Note a load, to be examined when a store comes near."""
    note = w.loads[w.state[at.PENDING]]
    note[at.LOAD_SLOT], note[at.LOAD_DISTANCE] = slot, np.int64(distance)
    w.state[at.PENDING] += 1
    span[at.READ_LOW], span[at.READ_HIGH] = min(span[at.READ_LOW], low), max(span[at.READ_HIGH], high)


@inlined
def read_again(regs, row, patterns, w):
    """Handle the frequent case of `watch_read`: all lanes repeat a load of this batch, with a known pattern.

    Returns whether it is that case.
    """
    slot, extra = np.int64(row[field.SLOT]), shared_part(regs, row)
    watched, known, pattern, state = w.table[slot], patterns[row[field.ADDRESS]], w.kept[slot], w.state
    shared = watched[at.WATCHED_MEMORY] == at.ORDERED_WORKGROUP
    if not shared or row[field.LEARNED] != 1 or row[field.MASK] >= 0 or pattern[at.ROW_FORM] != known[at.FORM]:
        return False
    distance = np.uint32(np.int64(extra) + pattern[at.ROW_SHIFT] + known[at.MOVED])
    seen, again = seen_before(w, slot, distance)
    if not again or seen[at.SEEN_BATCH] != state[at.BATCH] or not within(watched, known, extra):
        return False
    if seen[at.SEEN_WINDOW] == state[at.WINDOW]:
        return True
    span = w.spans[watched[at.WATCHED_VARIABLE]]
    low, high = touched(watched, known, extra)
    if state[at.PENDING] == len(w.loads) or (low <= span[at.WRITE_HIGH] and high >= span[at.WRITE_LOW]):
        return False
    seen[at.SEEN_WINDOW] = state[at.WINDOW]
    note_load(w, slot, distance, span, low, high)
    return True


@inlined
def read_known(w, slot, addresses, known, extra, config, workgroup, workgroups_per_batch):
    """Examine a load by all lanes, with a known pattern, in bounds."""
    watched, state, pattern = w.table[slot], w.state, w.kept[slot]
    if pattern[at.ROW_FORM] != known[at.FORM]:
        recognize(w, slot, addresses, known, config, workgroup, workgroups_per_batch)
    distance = np.uint32(np.int64(extra) + pattern[at.ROW_SHIFT] + known[at.MOVED])
    seen, again = seen_before(w, slot, distance)
    if again and seen[at.SEEN_WINDOW] == state[at.WINDOW]:
        return
    written = watched[at.WATCHED_UNWRITTEN] == 0 or (again and seen[at.SEEN_BATCH] == state[at.BATCH])
    if not written:
        written = all_written(w, slot, addresses, known, extra, config, workgroups_per_batch)
    seen[at.SEEN_DISTANCE], seen[at.SEEN_VERSION] = np.int64(distance), pattern[at.ROW_VERSION]
    seen[at.SEEN_WINDOW], seen[at.SEEN_BATCH] = state[at.WINDOW], state[at.BATCH]
    span = w.spans[watched[at.WATCHED_VARIABLE]]
    low, high = touched(watched, known, extra)
    if not written or (low <= span[at.WRITE_HIGH] and high >= span[at.WRITE_LOW]):
        races = state[at.RACES_SEEN]
        lanes = workgroups_per_batch * config[at.LANES]
        read_lanes(w, w.workgroup, slot, addresses, addresses, False, extra, config, workgroup, lanes)
        if not written or state[at.RACES_SEEN] != races:
            seen[at.SEEN_WINDOW] = seen[at.SEEN_BATCH] = -1  # so that each occurrence is counted
        return
    if state[at.PENDING] == len(w.loads):
        examine_notes(w, config, workgroup, workgroups_per_batch)
    note_load(w, slot, distance, span, low, high)


@compiled
def recognize(w, slot, addresses, known, config, workgroup, workgroups_per_batch):
    """Compare a row of addresses with the kept one: note the shift, or keep the new row instead."""
    row, pattern, lanes = w.rows[slot], w.kept[slot], workgroups_per_batch * config[at.LANES]
    pattern[at.ROW_FORM] = known[at.FORM]
    shift = np.uint32(addresses[at.FIRST_LANE] - row[at.FIRST_LANE])
    differs = np.uint32(0)
    for lane in range(lanes):
        differs |= np.uint32(addresses[lane] - row[lane]) ^ shift
    if differs == 0 and lanes <= pattern[at.ROW_LANES]:
        pattern[at.ROW_SHIFT] = np.int64(shift) - known[at.MOVED]
        return
    examine_notes(w, config, workgroup, workgroups_per_batch)
    pattern[at.ROW_SHIFT], pattern[at.ROW_LANES] = -known[at.MOVED], lanes
    pattern[at.ROW_VERSION] += 1
    for lane in range(lanes):
        row[lane] = addresses[lane]


@part(REGISTERS, INSTRUCTION, NUMBERS, NUMBERS, WORDS, LONG, LONG, LONG, LONG)
def watch_write(regs, row, config, entry, memory, workgroup, workgroups_per_batch, lanes, watch_at):
    """Examine a store by the first `lanes` lanes: first the noted loads that it may race with, then all its lanes at
    once, or one by one."""
    w = _borrowed(watch_at)
    slot, addresses, values = np.int64(row[field.SLOT]), regs[row[field.ADDRESS]], regs[row[field.DEST]]
    unit, extra = np.int64(row[field.ACCESS]) & (field.FOUR - 1), shared_part(regs, row)
    mask = regs[max(np.int64(row[field.MASK]), _NO_MASK)]
    masked = some_idle(regs, row, config, workgroups_per_batch, lanes)
    watched = w.table[slot]
    s = w.storage
    if watched[at.WATCHED_MEMORY] != at.ORDERED_WORKGROUP:
        left = by_blocks(regs, row, config, entry, memory, 1, workgroup, lanes, watch_at)
        if left == at.NONE_LEFT:
            return
        if left == at.SOME_LEFT:
            mask, masked = w.left, True
    lowest, highest = extent(addresses, extra, lanes)
    if watched[at.WATCHED_MEMORY] == at.ORDERED_WORKGROUP:
        s = w.workgroup
        examine_notes_near(w, watched, lowest, highest, config, workgroup, workgroups_per_batch)
    plain = not masked and config[at.LOCKSTEP_GROUPS] == 1
    plain &= highest <= np.uint32(watched[at.WATCHED_LIMIT]) and watched[at.WATCHED_FACTOR] == 1
    plain &= np.uint64(watched[at.WATCHED_BASE] + np.int64(highest) + unit) < grains_of(s)
    known, pattern = plain and is_kept(w, slot, addresses, lanes), w.kept[slot]
    if known:
        pattern[at.ROW_MISSES] = 0
    distinct = known and pattern[at.ROW_DISTINCT] == 1
    if distinct and write_distinct(w, s, slot, values, addresses, extra, unit, config, workgroup, workgroups_per_batch):
        return
    write_lanes(w, s, slot, memory, values, addresses, mask, masked, extra, unit, config, workgroup, lanes)
    if plain and not known and pattern[at.ROW_MISSES] < _PATIENCE:
        pattern[at.ROW_MISSES] += 1
        keep_store(w, s, slot, addresses, extra, unit, config, workgroup, workgroups_per_batch)


@inlined
def extent(addresses, extra, lanes):
    """Return the lowest and the highest address of a row."""
    lowest, highest = np.uint32(0xFFFFFFFF), np.uint32(0)
    for lane in range(lanes):
        address = np.uint32(addresses[lane] + extra)
        lowest, highest = min(lowest, address), max(highest, address)
    return lowest, highest


@inlined
def examine_notes_near(w, watched, lowest, highest, config, workgroup, workgroups_per_batch):
    """Examine the noted loads near a store between these addresses of workgroup memory, and note its range."""
    limit, factor = np.uint32(watched[at.WATCHED_LIMIT]), watched[at.WATCHED_FACTOR]
    low = watched[at.WATCHED_BASE] + np.int64(min(lowest, limit)) * factor
    high = watched[at.WATCHED_BASE] + np.int64(min(highest, limit)) * factor + watched[at.WATCHED_GRAINS] - 1
    span = w.spans[watched[at.WATCHED_VARIABLE]]
    if low <= span[at.READ_HIGH] and high >= span[at.READ_LOW]:
        examine_notes(w, config, workgroup, workgroups_per_batch)
    span[at.WRITE_LOW], span[at.WRITE_HIGH] = min(span[at.WRITE_LOW], low), max(span[at.WRITE_HIGH], high)


@inlined
def is_kept(w, slot, addresses, lanes):
    """Whether a row of addresses is the kept one, shifted."""
    row = w.rows[slot]
    shift, differs = np.uint32(addresses[at.FIRST_LANE] - row[at.FIRST_LANE]), np.uint32(0)
    for lane in range(lanes):
        differs |= np.uint32(addresses[lane] - row[lane]) ^ shift
    return differs == 0 and w.kept[slot, at.ROW_LANES] == lanes


@compiled
def keep_store(w, s, slot, addresses, extra, unit, config, workgroup, workgroups_per_batch):
    """Keep the addresses of a store by all lanes that has just been examined, and whether they are distinct.

    They are if each lane is still the last writer of its grains.
    """
    row, pattern, watched, size = w.rows[slot], w.kept[slot], w.table[slot], config[at.LANES]
    own = watched[at.WATCHED_MEMORY] == at.ORDERED_WORKGROUP
    distinct = True
    for g in range(workgroups_per_batch):
        stamp, base = stamp_of(w, slot, g, config), watched[at.WATCHED_BASE] + g * watched[at.WATCHED_PITCH] + unit
        group = np.int64(0) if own else workgroup + g
        for lane in range(size):
            place = np.uint64(base + np.int64(np.uint32(addresses[g * size + lane] + extra)))
            distinct &= s.stamps[at.WRITER, place] == stamp + lane and np.int64(s.words[at.WRITER, place]) == group
            row[g * size + lane] = addresses[g * size + lane]
    pattern[at.ROW_DISTINCT], pattern[at.ROW_LANES] = np.int64(distinct), workgroups_per_batch * size


@compiled
def write_distinct(w, s, slot, values, addresses, extra, unit, config, workgroup, workgroups_per_batch):
    """Store to distinct grains, one per lane, if all earlier accesses are ordered before. Returns whether they are."""
    row, size = w.table[slot], config[at.LANES]
    own = row[at.WATCHED_MEMORY] == at.ORDERED_WORKGROUP
    unread = row[at.WATCHED_READ] == 0 or (own and w.state[at.READ_WINDOW] != w.state[at.WINDOW])
    for g in range(workgroups_per_batch):
        here, base = addresses[g * size :], row[at.WATCHED_BASE] + g * row[at.WATCHED_PITCH] + unit
        since = w.clocks[g, at.ORDERED_SINCE + row[at.WATCHED_MEMORY]] << CLOCK_SHIFT if own else begin_of(w)
        if not all_before(s.stamps, at.WRITER, here, extra, base, size, since):
            return False
        if not unread and not (
            all_before(s.stamps, at.READER, here, extra, base, size, since)
            and all_before(s.stamps, at.OTHER, here, extra, base, size, since)
        ):
            return False
    writers, groups, kept = s.stamps[at.WRITER], s.words[at.WRITER], s.words[at.VALUE]
    bits = np.uint32((1 << (8 * row[at.WATCHED_GRAIN])) - 1)
    for g in range(workgroups_per_batch):
        here, base = addresses[g * size :], row[at.WATCHED_BASE] + g * row[at.WATCHED_PITCH] + unit
        stamp, stored = stamp_of(w, slot, g, config), values[g * size :]
        for lane in range(size):
            place = np.uint64(base + np.int64(np.uint32(here[lane] + extra)))
            writers[place], kept[place] = stamp + lane, stored[lane] & bits
            if not own:
                groups[place] = np.uint32(workgroup + g)
    return True


@compiled
def all_before(stamps, who, addresses, extra, base, size, since):
    """Whether all accesses of kind `who` to these grains were before `since`. (A gather would be slower.)"""
    column, lane = stamps[who], 0
    while lane < size and column[np.uint64(base + np.int64(np.uint32(addresses[lane] + extra)))] < since:
        lane += 1
    return lane == size
