"""Shadow memory by blocks of 16 grains, each with one record of its stores and one of its loads.

Most accesses are regular: consecutive lanes access consecutive elements. Then a record says who accessed each grain of
a block: the access of its first lane, and a bit for each grain. 16 lanes cost as much as one.

Four blocks make a span, and most accesses are to whole spans. Then the record of the span stands for those of its
blocks: it is that of the first, and those of the others differ only in the lane. A span whose accesses do not fit into
such a record is split for the rest of the run: then its blocks have records of their own. Records of spans take an
eighth of a byte per byte of memory, those of blocks half a byte.

A block whose accesses do not fit into records is split, too: then `stamps` and `words` have its grains. Where they have
no room for them, the block is not watched from then on. An access fits only where it cannot race. Blocks are split for
all lanes of an access before any record changes, so that the value that each record stands for is already in memory.
"""

# Numba infers the types of compiled functions, which have no annotations.
# pyright: basic

from __future__ import annotations

import numpy as np

from . import instruction as field
from . import layout as at
from .compile.by_address import borrower
from .compile.units import compiled, inlined, kind_of, part
from .grains import CLOCK_SHIFT, begin_of, record_of, stamp_of
from .kinds import INSTRUCTION, LONG, NUMBERS, REGISTERS, WORDS
from .memory import address_of, all_ones, shared_part
from .probe_arrays import BLOCK, BLOCK_BITS, LANE_BITS, LANES, SPAN, SPAN_BITS, no_watch

WATCH = kind_of(no_watch())
_borrowed = borrower(WATCH)
_PATIENCE = 16  # rows of an access that are mostly examined by lanes, in a row, after which all its variable is
_NOWHERE, _NO_LIMIT = 1 << 62, 0xFFFFFFFE

_BIAS = np.int64(BLOCK + (BLOCK << LANE_BITS))  # a block may begin before the first lane, and before the first unit

_ALL = (1 << BLOCK) - 1
_STEP, _UNIT = 7, 3  # a shape: log2 of the grains from lane to lane in the lower bits, of those of a unit above
_NOTHING = np.int64(-1)


@inlined
def log2(number):
    result = np.int64(0)
    while number > 1:
        number >>= 1
        result += 1
    return result


@inlined
def is_split(start, begin):
    """Whether a block or a span is split, by the start of its stores: no access has the least clock of a run."""
    return begin <= start < begin + (np.int64(1) << CLOCK_SHIFT)


@inlined
def is_recorded(start, begin):
    return start >= begin + (np.int64(1) << CLOCK_SHIFT)


@inlined
def step_of(row, addresses, lanes):
    """Return the grains from lane to lane of a row that may be regular; 0 if it is not."""
    if lanes < 2:
        return np.int64(0)
    step = np.int64(np.uint32(addresses[1] - addresses[at.FIRST_LANE])) * row[at.WATCHED_FACTOR]
    return step if 0 < step <= BLOCK and step & (step - 1) == 0 else np.int64(0)


@inlined
def is_run(addresses, lane, count, apart):
    """Whether the addresses of `count` lanes are this far apart."""
    first, differs = addresses[lane], np.uint32(0)
    for i in range(count):
        differs |= np.uint32(addresses[lane + i] - first) ^ np.uint32(i * apart)
    return differs == 0


@inlined
def covered(mask, masked, lane, step, bits, low, high):
    """Return the grains of a block that lanes `low` to `high` (exclusive) access. Lane 0, at `lane` in the row, has its
    first grains, `bits`."""
    cover = np.int64(0)
    if not masked and step == 1:
        cover = ((1 << high) - 1) ^ ((1 << low) - 1)
    else:
        for i in range(low, high):
            if not masked or mask[lane + i] != 0:
                cover |= bits << (i * step)
    return cover


@inlined
def goes_with(start, group_before, cover, me, group, shape, bits, since):
    """Whether an access cannot race with a recorded one: no grain in common, the same invocations, or a barrier."""
    same = (start ^ me) & (LANES - 1) == 0 and ((cover >> BLOCK) ^ shape) & _STEP == 0
    return cover & bits == 0 or (group_before == group and (same or start < since))


@inlined
def merged(start, group_before, cover, me, group, shape, bits, since, stores):
    """Return the record of a block after an access: its start and its cover. Start -1: it does not fit."""
    is_own = group_before == group
    if is_own and start == me and cover >> BLOCK == shape:
        return start, cover | bits
    if not stores and is_own and start >= since:  # the earlier load stays
        same = (start ^ me) & (LANES - 1) == 0 and cover >> BLOCK == shape
        return start if same and cover & bits == bits else _NOTHING, cover
    return me if cover & _ALL & ~bits == 0 and (stores or is_own) else _NOTHING, shape << BLOCK | bits


@inlined
def enter(s, record, me, group, shape, bits, since, begin, stores, changes):
    """Enter an access into the record of a block or a span if `changes`. Returns whether it fits."""
    start, cover = s.starts[at.WRITER, record], np.int64(s.covers[at.WRITER, record])
    if is_split(start, begin):
        return False
    fits = not is_recorded(start, begin) or goes_with(
        start, s.groups[at.WRITER, record], cover, me, group, shape, bits, since
    )
    start, cover = s.starts[at.READER, record], np.int64(s.covers[at.READER, record])
    if stores and is_recorded(start, begin):
        fits &= goes_with(start, s.groups[at.READER, record], cover, me, group, shape, bits, since)
    who = at.WRITER if stores else at.READER
    start, cover = s.starts[who, record], np.int64(s.covers[who, record])
    if is_recorded(start, begin):
        start, cover = merged(start, s.groups[who, record], cover, me, group, shape, bits, since, stores)
    else:
        start, cover = me, shape << BLOCK | bits
    if changes:
        s.starts[who, record], s.groups[who, record], s.covers[who, record] = start, group, cover
    return fits and start >= 0


@compiled
def row_by_blocks(
    w, s, slot, memory, addresses, mask, masked, extra, unit, step, stores, config, workgroup, lanes, changes
):
    """Examine an access by `lanes` lanes, block by block. Returns whether it is regular.

    First, without `changes`, split the blocks into whose records it does not fit. Then enter it into the others, where
    it cannot race, and mark the lanes whose blocks are split in `left`.
    """
    row, size, begin = w.table[slot], config[at.LANES], begin_of(w)
    factor, limit = row[at.WATCHED_FACTOR], np.int64(np.uint32(row[at.WATCHED_LIMIT]))
    width = factor if stores else row[at.WATCHED_GRAINS]
    apart, shape = step // factor, log2(step) | (log2(factor) << _UNIT if stores else 0)
    last_grain = last_block = last_start = np.int64(-1)
    lane = end = since = stamp = np.int64(0)
    group = last_group = np.uint32(0)
    blocks, in_span = record_of(s, 0), BLOCK * SPAN // step  # lanes
    while lane < lanes:
        if lane == end:  # the next workgroup begins
            g = lane // size
            since = w.clocks[g, at.ORDERED_SINCE + row[at.WATCHED_MEMORY]] << CLOCK_SHIFT
            stamp, group, end = stamp_of(w, slot, g, config) + _BIAS - lane, np.uint32(workgroup + g), end + size
        left = min(end, lanes) - lane
        address = np.int64(np.uint32(addresses[lane] + extra))
        place = row[at.WATCHED_BASE] + (address + unit) * factor
        offset = place & (step - 1)  # in the element
        element, me = place - offset, stamp - ((offset // factor) << LANE_BITS if stores else 0)
        span = element >> (BLOCK_BITS + SPAN_BITS)
        whole = not masked and element % (BLOCK * SPAN) == 0 and left >= in_span
        if whole and changes:
            whole = not is_split(s.starts[at.WRITER, span], begin)
        elif whole:
            whole = is_run(addresses, lane, in_span, apart)
        count = in_span if whole else min(BLOCK, left)
        if not changes and (
            not (whole or is_run(addresses, lane, count, apart))
            or address + (count - 1) * apart > limit
            or offset + width > step
            or element <= last_grain
        ):
            return False
        last_grain = element + count * step - 1
        one = ((1 << width) - 1) << offset
        bits = covered(mask, masked, lane, step, one, 0, BLOCK // step) if whole else np.int64(0)
        if whole and enter(s, span, me + lane, group, shape, bits, since, begin, stores, changes):
            lane += count
            continue
        for block in range(element >> BLOCK_BITS, (last_grain >> BLOCK_BITS) + 1):
            if not changes and not is_split(s.starts[at.WRITER, block >> SPAN_BITS], begin):
                split_span(s, block >> SPAN_BITS, begin)
            before = ((block << BLOCK_BITS) - element) // step  # the lane of its first grain, from `lane` on
            start, record = me + lane + before, blocks + block
            low, high = max(-before, 0), min(BLOCK // step, count - before)
            bits = covered(mask, masked, lane + before, step, one, low, high)
            shared = block == last_block and (start != last_start or group != last_group)
            last_block, last_start, last_group = block, start, group
            if not shared and enter(s, record, start, group, shape, bits, since, begin, stores, changes):
                continue
            if changes:
                leave(w, mask, masked, lane + before, low, high)
            elif not is_split(s.starts[at.WRITER, record], begin):
                split(s, block, memory, 8 * row[at.WATCHED_GRAIN], begin)
        lane += count
    return True


@inlined
def leave(w, mask, masked, lane, low, high):
    """Mark the active lanes of a split block."""
    for each in range(lane + low, lane + high):
        if not masked or mask[each] != 0:
            w.left[each] = 1
            w.state[at.LANES_LEFT] += 1


@compiled
def split_span(s, span, begin):
    """Give each block of a span a record of its own."""
    for who in range(at.WRITER, at.OTHER):
        start, cover = s.starts[who, span], s.covers[who, span]
        lanes = BLOCK >> ((np.int64(cover) >> BLOCK) & _STEP)  # of a block
        first = record_of(s, span << SPAN_BITS)
        for i in range(SPAN if is_recorded(start, begin) else 0):
            s.starts[who, first + i], s.covers[who, first + i] = start + i * lanes, cover
            s.groups[who, first + i] = s.groups[who, span]
    s.starts[at.WRITER, span] = begin


@compiled
def split(s, block, memory, grain_bits, begin):
    """Give each grain of a block a record of its own, unless it has one: without room for them, bits of its stores."""
    if not is_split(s.starts[at.WRITER, block >> SPAN_BITS], begin):
        split_span(s, block >> SPAN_BITS, begin)
    record = record_of(s, block)
    if is_split(s.starts[at.WRITER, record], begin):
        return
    if (block << BLOCK_BITS) >= len(s.stamps[at.WRITER]):
        stored = np.int64(s.covers[at.WRITER, record]) & _ALL if is_recorded(s.starts[at.WRITER, record], begin) else 0
        s.covers[at.WRITER, record], s.starts[at.WRITER, record] = stored, begin
        return
    for who in range(at.WRITER, at.OTHER):
        start, cover, group = s.starts[who, record], np.int64(s.covers[who, record]), s.groups[who, record]
        if not is_recorded(start, begin):
            continue
        shape = cover >> BLOCK
        step, unit = shape & _STEP, shape >> _UNIT
        for i in range(BLOCK):
            if cover & (1 << i) == 0:
                continue
            place = np.uint64((block << BLOCK_BITS) + i)
            stamp = start - _BIAS + (i >> step)
            if who == at.WRITER:
                stamp += ((i & ((1 << step) - 1)) >> unit) << LANE_BITS
                bit = ((block << BLOCK_BITS) + i) * grain_bits
                kept = np.int64((1 << grain_bits) - 1)
                s.words[at.VALUE, place] = np.uint32((np.int64(memory[bit >> 5]) >> (bit & 31)) & kept)
            s.stamps[who, place], s.words[who, place] = stamp, group
    s.starts[at.WRITER, record] = begin


@compiled
def split_row(w, s, slot, memory, entry, addresses, mask, masked, extra, unit, stores, lanes):
    """Split the blocks of an access by `lanes` lanes, those outside its bounds included."""
    row, begin, last = w.table[slot], begin_of(w), np.int64(-1)
    factor, width = row[at.WATCHED_FACTOR], row[at.WATCHED_FACTOR] if stores else row[at.WATCHED_GRAINS]
    for lane in range(lanes):
        if masked and mask[lane] == 0:
            continue
        address, happens = address_of(addresses[lane], extra, entry)
        if not happens:
            continue
        first = row[at.WATCHED_BASE] + (np.int64(address) + unit) * factor
        for block in range(first >> BLOCK_BITS, ((first + width - 1) >> BLOCK_BITS) + 1):
            if block != last and not is_split(s.starts[at.WRITER, record_of(s, block)], begin):
                split(s, block, memory, 8 * row[at.WATCHED_GRAIN], begin)
            last = block


@compiled
def split_variable(w, s, variable, memory, begin):
    """Split all blocks of a variable. From then on, its accesses are examined by lanes."""
    first, last, grain_bits = np.int64(_NOWHERE), np.int64(-1), np.int64(32)
    for i in range(len(w.table)):
        row = w.table[i]
        if row[at.WATCHED_VARIABLE] == variable:
            indexed = row[at.WATCHED_LIMIT] < _NO_LIMIT
            highest = row[at.WATCHED_LIMIT] * row[at.WATCHED_FACTOR] if indexed else np.int64(0)
            first = min(first, row[at.WATCHED_BASE])
            last = max(last, row[at.WATCHED_BASE] + highest + row[at.WATCHED_GRAINS] - 1)
            row[at.WATCHED_BLOCKS] = 0
            grain_bits = 8 * row[at.WATCHED_GRAIN]
    for block in range(first >> BLOCK_BITS, (last >> BLOCK_BITS) + 1):
        split(s, block, memory, grain_bits, begin)


@part(REGISTERS, INSTRUCTION, NUMBERS, NUMBERS, WORDS, LONG, LONG, LONG, LONG, returns=LONG)
def by_blocks(regs, row, config, entry, memory, stores, workgroup, lanes, watch_at):
    """Examine an access to storage by blocks. Returns which lanes are left to be examined one by one: see `left lanes`.

    Must be called for all accesses to storage, or for none.
    """
    w = _borrowed(watch_at)
    s, slot, extra = w.storage, np.int64(row[field.SLOT]), shared_part(regs, row)
    if w.table[slot, at.WATCHED_BLOCKS] == 0 or config[at.LOCKSTEP_GROUPS] > 1:
        return np.int64(at.ALL_LEFT)
    addresses, kept = regs[row[field.ADDRESS]], w.kept[slot]
    mask = regs[max(row[field.MASK], np.int32(0))]
    masked = row[field.MASK] >= 0 and not all_ones(mask, lanes)
    unit = np.int64(row[field.ACCESS]) & (field.FOUR - 1) if stores else np.int64(0)
    if kept[at.ROW_IRREGULAR] == _PATIENCE:
        split_variable(w, s, w.table[slot, at.WATCHED_VARIABLE], memory, begin_of(w))
        return np.int64(at.ALL_LEFT)
    step = step_of(w.table[slot], addresses, lanes)
    for lane in range(lanes if step != 0 else 0):
        w.left[lane] = 0
    if step != 0 and row_by_blocks(
        w, s, slot, memory, addresses, mask, masked, extra, unit, step, stores, config, workgroup, lanes, False
    ):
        w.state[at.LANES_LEFT] = 0
        row_by_blocks(
            w, s, slot, memory, addresses, mask, masked, extra, unit, step, stores, config, workgroup, lanes, True
        )
        kept[at.ROW_IRREGULAR] = kept[at.ROW_IRREGULAR] + 1 if w.state[at.LANES_LEFT] > lanes // 2 else 0
        return np.int64(at.SOME_LEFT if w.state[at.LANES_LEFT] > 0 else at.NONE_LEFT)
    kept[at.ROW_IRREGULAR] += 1
    split_row(w, s, slot, memory, entry, addresses, mask, masked, extra, unit, stores, lanes)
    return np.int64(at.ALL_LEFT)
