"""Shadow memory: who touched each word, so that races and reads of what nobody wrote are seen.

Two accesses of one word race where different invocations make them, at least one is a store, they are not both atomic,
and no barrier orders them: they are of one workgroup and no barrier of this memory's kind stands between, or they are
of two workgroups, which nothing orders. Words of atomic type are not watched: WGSL has no plain access to them. Spec:
"Memory Semantics" (atomics are relaxed, each barrier orders its own address space).

Of each grain (see `layout`) the shadow keeps the last writer and two readers that are not one invocation. That is
enough: of the first two accesses that race, the earlier one is always among these three. A reader gives way only to a
later one of its workgroup that it is ordered before by a barrier, and whoever races with the one races with the other.

Loads of a known address pattern are not looked at lane by lane. What they touch is an interval; as long as nobody has
stored there since the last barrier they are only noted down, and the note is worked off if a store comes near it.

Of a store by all lanes the addresses are kept, and whether each lane had a grain of its own. Where the next has the
same, moved as a whole, and nobody has touched these grains who is not ordered before it, it races with nothing.
"""

from __future__ import annotations

import numpy as np

from . import layout as at
from .compile.by_address import borrower
from .compile.units import compiled, inlined, kind_of, part
from .kinds import INSTRUCTION, LONG, NUMBERS, REGISTERS, TABLE, WORDS
from .memory import shared_part
from .probe_arrays import LANE_BITS, LANES, OTHER, READER, SLOT_BITS, SLOTS, VALUE, WRITER, no_watch

_CLOCK_SHIFT = LANE_BITS + SLOT_BITS
_NOWHERE = 1 << 62
# Of `state`: notes; ordering barriers, batches and races so far; the window in which a load was looked at last.
_PENDING, _WINDOW, _BATCH, _RACES, _READ_IN = range(5)
_STAMP, _SHIFT, _VERSION, _KEPT = range(4)  # of `patterns`: last stamp, how far moved, which row, lanes of it
_APART, _MISSED = _STAMP, _SHIFT  # of a store: 1 where its lanes keep apart; how often in a row it was another
_PATIENCE = 16  # stores that are kept in vain before that is given up
_READ_LOW, _READ_HIGH, _WRITE_LOW, _WRITE_HIGH = range(4)  # of `spans`


WATCH = kind_of(no_watch())
_borrowed = borrower(WATCH)


# ---- one grain ---------------------------------------------------------------------------------------


@inlined
def same_invocation(one, group, other, other_group):
    return group == other_group and (one ^ other) & (LANES - 1) == 0


@inlined
def races_with(before, group_before, me, group, since):
    """Whether an earlier access is another invocation's, and no barrier has ordered it."""
    return before != 0 and (group_before != group or (before >= since and (before ^ me) & (LANES - 1) != 0))


@compiled
def note_race(w, before, group_before, me, group, place, started, old, new, different):
    """Count a race between two stamps; the first between each two places is kept with its details."""
    w.state[_RACES] += 1
    races, mask = w.races, SLOTS - 1
    first, second = (before >> LANE_BITS) & mask, (me >> LANE_BITS) & mask
    across = np.int64(group_before != group)
    i, known = 1, races[0, at.HOW_MANY]
    while i <= known and (
        races[i, at.R_FIRST] != first or races[i, at.R_SECOND] != second or races[i, at.R_ACROSS] != across
    ):
        i += 1
    if i >= len(races):
        return
    row = races[i]
    row[at.R_TIMES] += 1
    row[at.R_DIFFERENT] += different
    if i <= known:
        return
    races[0, at.HOW_MANY] = i
    row[at.R_FIRST], row[at.R_SECOND], row[at.R_ACROSS], row[at.R_PLACE] = first, second, across, np.int64(place)
    row[at.R_FIRST_WORKGROUP], row[at.R_FIRST_LANE] = group_before, before & (LANES - 1)
    row[at.R_FIRST_CLOCK], row[at.R_FIRST_VALUE] = (before >> _CLOCK_SHIFT) - started, old
    row[at.R_SECOND_WORKGROUP], row[at.R_SECOND_LANE] = group, me & (LANES - 1)
    row[at.R_SECOND_CLOCK], row[at.R_SECOND_VALUE] = (me >> _CLOCK_SHIFT) - started, new


@inlined
def read_grain(w, s, place, me, group, since, started):
    """A load of one grain."""
    before = s.stamps[WRITER, place]
    if races_with(before, s.words[WRITER, place], me, group, since):
        value = np.int64(s.words[VALUE, place])
        note_race(w, before, np.int64(s.words[WRITER, place]), me, group, place, started, value, value, 1)
    reader, reader_group = s.stamps[READER, place], s.words[READER, place]
    if reader == 0 or (reader_group == group and reader < since):
        s.stamps[READER, place], s.words[READER, place] = me, group
    elif not same_invocation(reader, reader_group, me, group):
        other, other_group = s.stamps[OTHER, place], s.words[OTHER, place]
        if (
            other == 0
            or (other_group == group and other < since)
            or same_invocation(other, other_group, reader, reader_group)
        ):
            s.stamps[OTHER, place], s.words[OTHER, place] = me, group


@inlined
def write_grain(w, s, place, me, group, since, started, old, new, own):
    """A store to one grain. `old`: what it held; `own`: it is of a memory that workgroups do not share."""
    newest = max(max(s.stamps[WRITER, place], s.stamps[READER, place]), s.stamps[OTHER, place])
    if not own or newest >= since:
        for who in range(WRITER, VALUE):
            before, group_before = s.stamps[who, place], s.words[who, place]
            if races_with(before, group_before, me, group, since):
                different = np.int64(old != new)
                note_race(w, before, np.int64(group_before), me, group, place, started, old, new, different)
    s.stamps[WRITER, place], s.words[WRITER, place], s.words[VALUE, place] = me, group, np.uint32(new)


# ---- all lanes of an access --------------------------------------------------------------------------


@compiled
def read_lanes(w, s, slot, addresses, mask, masked, extra, config, workgroup, workgroups_per_batch):
    """A load, lane by lane."""
    row, size = w.table[slot], config[at.LANES]
    limit, factor, grains = np.uint32(row[at.W_LIMIT]), row[at.W_FACTOR], row[at.W_GRAINS]
    own = row[at.W_MEMORY] == at.ORDERED_WORKGROUP
    if own:
        w.state[_READ_IN] = w.state[_WINDOW]
    for g in range(workgroups_per_batch):
        clocks = w.clocks[g]
        since = clocks[at.ORDERED_SINCE + row[at.W_MEMORY]] << _CLOCK_SHIFT
        stamp = stamp_of(w, slot, g)
        group = np.int64(0) if own else workgroup + g
        fresh = clocks[at.START] << _CLOCK_SHIFT if row[at.W_UNWRITTEN] == 1 else np.int64(-1)
        base = row[at.W_BASE] + g * row[at.W_PITCH]
        for lane in range(size):
            address = np.uint32(addresses[g * size + lane] + extra)
            if address > limit or (masked and mask[g * size + lane] == 0):
                continue
            first = base + np.int64(address) * factor
            unwritten = np.int64(-1)
            for grain in range(first, first + grains):
                place = np.uint64(grain)  # an index that cannot be negative costs less
                if s.stamps[WRITER, place] < fresh and unwritten < 0:
                    unwritten = grain
                read_grain(w, s, place, stamp | lane, group, since, clocks[at.START])
            if unwritten >= 0:
                note_unwritten(w.unwritten[slot], lane, workgroup + g, unwritten)


@compiled
def all_written(w, slot, addresses, extra, config, workgroups_per_batch):
    """Whether somebody has stored to every word that a load in bounds touches."""
    row, size, writers = w.table[slot], config[at.LANES], w.workgroup.stamps[WRITER]
    factor = row[at.W_FACTOR]
    for g in range(workgroups_per_batch):
        here, fresh = addresses[g * size :], w.clocks[g, at.START] << _CLOCK_SHIFT
        base = row[at.W_BASE] + g * row[at.W_PITCH]
        for first in range(base, base + row[at.W_GRAINS]):
            lane = 0  # one by one, for gathering them is slower
            while lane < size and writers[np.uint64(first + np.int64(np.uint32(here[lane] + extra)) * factor)] >= fresh:
                lane += 1
            if lane < size:
                return False
    return True


@inlined
def note_unwritten(found, lane, workgroup, place):
    if found[at.OUTSIDE] == 0:
        found[at.LANE], found[at.WORKGROUP], found[at.ADDRESS] = lane, workgroup, place
    found[at.OUTSIDE] += 1


@compiled
def write_lanes(
    w, s, slot, memory, values, addresses, mask, masked, extra, unit, config, workgroup, workgroups_per_batch
):
    """A store of one unit, lane by lane."""
    row, size = w.table[slot], config[at.LANES]
    limit, factor = np.uint32(row[at.W_LIMIT]), row[at.W_FACTOR]
    own = row[at.W_MEMORY] == at.ORDERED_WORKGROUP
    bits = 8 * row[at.W_GRAIN]
    kept = np.int64((1 << bits) - 1)
    for g in range(workgroups_per_batch):
        clocks = w.clocks[g]
        since = clocks[at.ORDERED_SINCE + row[at.W_MEMORY]] << _CLOCK_SHIFT
        stamp = stamp_of(w, slot, g)
        group = np.int64(0) if own else workgroup + g
        fresh = clocks[at.START] << _CLOCK_SHIFT if own else np.int64(1)
        base = row[at.W_BASE] + g * row[at.W_PITCH] + unit * factor
        for lane in range(size):
            address = np.uint32(addresses[g * size + lane] + extra)
            if address > limit or (masked and mask[g * size + lane] == 0):
                continue
            first, word = base + np.int64(address) * factor, np.int64(values[g * size + lane])
            for i in range(factor):
                place = np.uint64(first + i)
                if s.stamps[WRITER, place] >= fresh:
                    old = np.int64(s.words[VALUE, place])
                else:
                    bit = (first + i) * bits
                    old = (np.int64(memory[bit >> 5]) >> (bit & 31)) & kept
                new = (word >> (i * bits)) & kept
                write_grain(w, s, place, stamp | lane, group, since, clocks[at.START], old, new, own)


@compiled
def work_off(w, config, workgroup, workgroups_per_batch):
    """Look lane by lane at the loads that were only noted down."""
    for i in range(w.state[_PENDING]):
        slot = w.notes[i, 0]
        row = w.rows[slot]
        read_lanes(
            w, w.workgroup, slot, row, row, False, np.uint32(w.notes[i, 1]), config, workgroup, workgroups_per_batch
        )
    w.state[_PENDING] = 0
    for variable in range(len(w.spans)):
        w.spans[variable, _READ_LOW], w.spans[variable, _READ_HIGH] = _NOWHERE, -1


@compiled
def open_window(w):
    """All that came before is ordered before all that comes now."""
    w.state[_WINDOW] += 1
    w.state[_PENDING] = 0
    for variable in range(len(w.spans)):
        span = w.spans[variable]
        span[_READ_LOW], span[_READ_HIGH], span[_WRITE_LOW], span[_WRITE_HIGH] = _NOWHERE, -1, _NOWHERE, -1


@inlined
def all_of(mask, lanes):
    """Whether every lane of a mask is on."""
    every = np.uint32(1)
    for lane in range(lanes):
        every = np.uint32(every & mask[lane])
    return every != 0


# ---- what the machine calls --------------------------------------------------------------------------


@part(LONG, LONG)
def watch_batch(workgroups_per_batch, lent):
    """A batch of workgroups begins."""
    w = _borrowed(lent)
    for g in range(workgroups_per_batch):
        now = w.clocks[g, at.CLOCK] + 1
        for i in range(at.CLOCKS_SIZE):
            w.clocks[g, i] = now
    w.state[_BATCH] += 1
    open_window(w)


@part(REGISTERS, INSTRUCTION, NUMBERS, LONG, LONG, LONG)
def watch_barrier(regs, row, config, workgroup, workgroups_per_batch, lent):
    """A barrier of kind B under mask M. Workgroups without a lane there do not pass it."""
    w = _borrowed(lent)
    size, kind, counts = config[at.LANES], np.int64(row[3]), row[2] != config[at.IGNORED]
    everywhere = True
    if row[6] >= 0:
        everywhere = all_of(regs[row[6]], workgroups_per_batch * size)
    if not (everywhere and kind == at.ORDERED_WORKGROUP):
        work_off(w, config, workgroup, workgroups_per_batch)
    for g in range(workgroups_per_batch):
        passes = everywhere
        if not passes:
            for lane in range(g * size, (g + 1) * size):
                passes |= regs[row[6], lane] != 0
        if passes:
            w.clocks[g, at.CLOCK] += 1
            w.clocks[g, at.PASSED_SINCE + kind] = w.clocks[g, at.CLOCK]
            if counts:
                w.clocks[g, at.ORDERED_SINCE + kind] = w.clocks[g, at.CLOCK]
    if everywhere and kind == at.ORDERED_WORKGROUP:
        open_window(w)


@part(REGISTERS, INSTRUCTION, NUMBERS, TABLE, LONG, LONG, LONG)
def watch_read(regs, row, config, patterns, workgroup, workgroups_per_batch, lent):
    """A load: noted down where that will do, else lane by lane."""
    w = _borrowed(lent)
    slot, addresses = np.int64(row[7]), regs[row[2]]
    extra = shared_part(regs, row[3], row[4])
    watched, known = w.table[slot], patterns[row[2]]
    lanes = workgroups_per_batch * config[at.LANES]
    masked = row[6] >= 0 and not all_of(regs[row[6]], lanes)
    if watched[at.W_MEMORY] != at.ORDERED_WORKGROUP:
        mask = regs[max(np.int64(row[6]), 0)]
        read_lanes(w, w.storage, slot, addresses, mask, masked, extra, config, workgroup, workgroups_per_batch)
        return
    if row[1] != 1 or masked or not within(watched, known, extra):
        mask = regs[max(np.int64(row[6]), 0)]
        read_lanes(w, w.workgroup, slot, addresses, mask, masked, extra, config, workgroup, workgroups_per_batch)
        return
    read_known(w, slot, addresses, known, extra, config, workgroup, workgroups_per_batch)


@inlined
def within(watched, known, extra):
    """Whether no address of a known pattern is out of bounds."""
    return np.int64(known[at.HIGHEST]) + np.int64(extra) <= np.int64(np.uint32(watched[at.W_LIMIT]))


@inlined
def seen_before(w, slot, distance):
    """Where a load of this row, so far moved, is remembered, and whether it is that one that is."""
    seen = w.seen[slot, np.int64(np.uint32(distance * np.uint32(2654435761)) >> np.uint32(24))]
    return seen, seen[0] == np.int64(distance) and seen[1] == w.patterns[slot, _VERSION]


@inlined
def touched(watched, known, extra):
    """The lowest and the highest grain that a load of a known pattern touches."""
    factor, base = watched[at.W_FACTOR], watched[at.W_BASE]
    high = base + (known[at.HIGHEST] + np.int64(extra)) * factor + watched[at.W_GRAINS] - 1
    return base + (known[at.LOWEST] + np.int64(extra)) * factor, high


@inlined
def note_down(w, slot, distance, span, low, high):
    """Remember a load, which is worked off if a store comes near."""
    note = w.notes[w.state[_PENDING]]
    note[0], note[1] = slot, np.int64(distance)
    w.state[_PENDING] += 1
    span[_READ_LOW], span[_READ_HIGH] = min(span[_READ_LOW], low), max(span[_READ_HIGH], high)


@inlined
def read_again(regs, row, patterns, w):
    """The frequent case of `watch_read`, done in place: every lane loads by a known pattern what it has loaded before
    in this batch. Whether it was that."""
    slot, extra = np.int64(row[7]), shared_part(regs, row[3], row[4])
    watched, known, pattern, state = w.table[slot], patterns[row[2]], w.patterns[slot], w.state
    shared = watched[at.W_MEMORY] == at.ORDERED_WORKGROUP
    if not shared or row[1] != 1 or row[6] >= 0 or pattern[_STAMP] != known[at.STAMP]:
        return False
    distance = np.uint32(np.int64(extra) + pattern[_SHIFT])
    seen, again = seen_before(w, slot, distance)
    if not again or seen[3] != state[_BATCH] or not within(watched, known, extra):
        return False
    if seen[2] == state[_WINDOW]:
        return True
    span = w.spans[watched[at.W_VARIABLE]]
    low, high = touched(watched, known, extra)
    if state[_PENDING] == len(w.notes) or (low <= span[_WRITE_HIGH] and high >= span[_WRITE_LOW]):
        return False
    seen[2] = state[_WINDOW]
    note_down(w, slot, distance, span, low, high)
    return True


@inlined
def read_known(w, slot, addresses, known, extra, config, workgroup, workgroups_per_batch):
    """A load by every lane, of a known pattern, in bounds."""
    watched, state, pattern = w.table[slot], w.state, w.patterns[slot]
    if pattern[_STAMP] != known[at.STAMP]:
        recognize(w, slot, addresses, known[at.STAMP], config, workgroup, workgroups_per_batch)
    distance = np.uint32(np.int64(extra) + pattern[_SHIFT])
    seen, again = seen_before(w, slot, distance)
    if again and seen[2] == state[_WINDOW]:
        return
    written = watched[at.W_UNWRITTEN] == 0 or (again and seen[3] == state[_BATCH])
    if not written:
        written = all_written(w, slot, addresses, extra, config, workgroups_per_batch)
    seen[0], seen[1], seen[2], seen[3] = np.int64(distance), pattern[_VERSION], state[_WINDOW], state[_BATCH]
    span = w.spans[watched[at.W_VARIABLE]]
    low, high = touched(watched, known, extra)
    if not written or (low <= span[_WRITE_HIGH] and high >= span[_WRITE_LOW]):
        races = state[_RACES]
        read_lanes(w, w.workgroup, slot, addresses, addresses, False, extra, config, workgroup, workgroups_per_batch)
        if not written or state[_RACES] != races:
            seen[2] = seen[3] = -1  # what is wrong is counted each time
        return
    if state[_PENDING] == len(w.notes):
        work_off(w, config, workgroup, workgroups_per_batch)
    note_down(w, slot, distance, span, low, high)


@compiled
def recognize(w, slot, addresses, stamp, config, workgroup, workgroups_per_batch):
    """Compare a new row of addresses with the one that is kept: moved as a whole, or another, which is kept instead."""
    row, pattern, lanes = w.rows[slot], w.patterns[slot], workgroups_per_batch * config[at.LANES]
    pattern[_STAMP] = stamp
    shift = np.uint32(addresses[0] - row[0])
    differs = np.uint32(0)
    for lane in range(lanes):
        differs |= np.uint32(addresses[lane] - row[lane]) ^ shift
    if differs == 0 and lanes <= pattern[_KEPT]:
        pattern[_SHIFT] = np.int64(shift)
        return
    work_off(w, config, workgroup, workgroups_per_batch)
    pattern[_SHIFT], pattern[_KEPT] = 0, lanes
    pattern[_VERSION] += 1
    for lane in range(lanes):
        row[lane] = addresses[lane]


@part(REGISTERS, INSTRUCTION, NUMBERS, WORDS, LONG, LONG, LONG)
def watch_write(regs, row, config, memory, workgroup, workgroups_per_batch, lent):
    """A store: before it, the noted loads that it may be near; then all lanes at once where that will do, or each."""
    w = _borrowed(lent)
    slot, addresses, values = np.int64(row[7]), regs[row[2]], regs[row[1]]
    unit, lanes = np.int64(row[5]) & 3, workgroups_per_batch * config[at.LANES]
    extra = shared_part(regs, row[3], row[4])
    mask = regs[max(np.int64(row[6]), 0)]
    masked = row[6] >= 0 and not all_of(mask, lanes)
    watched = w.table[slot]
    lowest, highest = extent(addresses, extra, lanes)
    s = w.storage
    if watched[at.W_MEMORY] == at.ORDERED_WORKGROUP:
        s = w.workgroup
        meet_notes(w, watched, lowest, highest, config, workgroup, workgroups_per_batch)
    plain = not masked and highest <= np.uint32(watched[at.W_LIMIT]) and watched[at.W_FACTOR] == 1
    known, pattern = plain and is_kept(w, slot, addresses, lanes), w.patterns[slot]
    if known:
        pattern[_MISSED] = 0
    apart = known and pattern[_APART] == 1
    if apart and write_apart(w, s, slot, values, addresses, extra, unit, config, workgroup, workgroups_per_batch):
        return
    write_lanes(
        w, s, slot, memory, values, addresses, mask, masked, extra, unit, config, workgroup, workgroups_per_batch
    )
    if plain and not known and pattern[_MISSED] < _PATIENCE:
        pattern[_MISSED] += 1
        keep_store(w, s, slot, addresses, extra, unit, config, workgroup, workgroups_per_batch)


@inlined
def extent(addresses, extra, lanes):
    """The lowest and the highest address of a row."""
    lowest, highest = np.uint32(0xFFFFFFFF), np.uint32(0)
    for lane in range(lanes):
        address = np.uint32(addresses[lane] + extra)
        lowest, highest = min(lowest, address), max(highest, address)
    return lowest, highest


@inlined
def meet_notes(w, watched, lowest, highest, config, workgroup, workgroups_per_batch):
    """A store between these addresses of workgroup memory: work off the notes that it may be near, and note where."""
    limit, factor = np.uint32(watched[at.W_LIMIT]), watched[at.W_FACTOR]
    low = watched[at.W_BASE] + np.int64(min(lowest, limit)) * factor
    high = watched[at.W_BASE] + np.int64(min(highest, limit)) * factor + watched[at.W_GRAINS] - 1
    span = w.spans[watched[at.W_VARIABLE]]
    if low <= span[_READ_HIGH] and high >= span[_READ_LOW]:
        work_off(w, config, workgroup, workgroups_per_batch)
    span[_WRITE_LOW], span[_WRITE_HIGH] = min(span[_WRITE_LOW], low), max(span[_WRITE_HIGH], high)


@inlined
def is_kept(w, slot, addresses, lanes):
    """Whether a row of addresses is the one that is kept, moved as a whole."""
    row = w.rows[slot]
    shift, differs = np.uint32(addresses[0] - row[0]), np.uint32(0)
    for lane in range(lanes):
        differs |= np.uint32(addresses[lane] - row[lane]) ^ shift
    return differs == 0 and w.patterns[slot, _KEPT] == lanes


@compiled
def keep_store(w, s, slot, addresses, extra, unit, config, workgroup, workgroups_per_batch):
    """Keep the addresses of a store by all lanes that has just been looked at, and whether they are all different: then
    each lane is still the last writer of its grain."""
    row, pattern, watched, size = w.rows[slot], w.patterns[slot], w.table[slot], config[at.LANES]
    own = watched[at.W_MEMORY] == at.ORDERED_WORKGROUP
    apart = True
    for g in range(workgroups_per_batch):
        stamp, base = stamp_of(w, slot, g), watched[at.W_BASE] + g * watched[at.W_PITCH] + unit
        group = np.int64(0) if own else workgroup + g
        for lane in range(size):
            place = np.uint64(base + np.int64(np.uint32(addresses[g * size + lane] + extra)))
            apart &= s.stamps[WRITER, place] == stamp | lane and np.int64(s.words[WRITER, place]) == group
            row[g * size + lane] = addresses[g * size + lane]
    pattern[_APART], pattern[_KEPT] = np.int64(apart), workgroups_per_batch * size


@inlined
def stamp_of(w, slot, g):
    """The stamp of an access that lane 0 of workgroup `g` of the batch makes now."""
    return w.clocks[g, at.CLOCK] << _CLOCK_SHIFT | slot << LANE_BITS


@compiled
def write_apart(w, s, slot, values, addresses, extra, unit, config, workgroup, workgroups_per_batch):
    """A store of every lane to a grain of its own, if all who have touched these are ordered before it. Whether they
    are."""
    row, size = w.table[slot], config[at.LANES]
    own = row[at.W_MEMORY] == at.ORDERED_WORKGROUP
    unread = row[at.W_READ] == 0 or (own and w.state[_READ_IN] != w.state[_WINDOW])
    for g in range(workgroups_per_batch):
        here, base = addresses[g * size :], row[at.W_BASE] + g * row[at.W_PITCH] + unit
        since = w.clocks[g, at.ORDERED_SINCE + row[at.W_MEMORY]] << _CLOCK_SHIFT if own else np.int64(1)
        if not all_before(s.stamps, WRITER, here, extra, base, size, since):
            return False
        if not unread and not (
            all_before(s.stamps, READER, here, extra, base, size, since)
            and all_before(s.stamps, OTHER, here, extra, base, size, since)
        ):
            return False
    writers, groups, kept = s.stamps[WRITER], s.words[WRITER], s.words[VALUE]
    bits = np.uint32((1 << (8 * row[at.W_GRAIN])) - 1)
    for g in range(workgroups_per_batch):
        here, base = addresses[g * size :], row[at.W_BASE] + g * row[at.W_PITCH] + unit
        stamp, stored = stamp_of(w, slot, g), values[g * size :]
        for lane in range(size):
            place = np.uint64(base + np.int64(np.uint32(here[lane] + extra)))
            writers[place], kept[place] = stamp | lane, stored[lane] & bits
            if not own:
                groups[place] = np.uint32(workgroup + g)
    return True


@compiled
def all_before(stamps, who, addresses, extra, base, size, since):
    """Whether all that such have done with these grains they did before: one by one, for gathering them is slower."""
    column, lane = stamps[who], 0
    while lane < size and column[np.uint64(base + np.int64(np.uint32(addresses[lane] + extra)))] < since:
        lane += 1
    return lane == size
