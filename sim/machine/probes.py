"""Probes: instructions that count, and change nothing that a program can see.

A memory probe precedes the access it measures, and has the same operands. It keeps the addresses and the mask of one
execution, and remembers the cost of executions with the same mask and all addresses shifted by the same distance: their
cost depends only on the position of the first address in a column of banks, or in a line of storage.
"""

# Numba infers the types of compiled functions, which have no annotations.
# pyright: basic

from __future__ import annotations

import numpy as np

from ..models import rules
from . import instruction as field
from . import layout as at
from . import opcodes as op
from .address_extents import margin, reach
from .checks import all_finite, check
from .compile.by_address import borrower
from .compile.units import compiled, inlined, part
from .kinds import INSTRUCTION, LONG, NUMBERS, PROBES, REGISTERS, TABLE, WORD
from .memory import address_of, all_ones, highest_address, inside, shared_part
from .ordering import watch_order
from .probe_arrays import PLACES
from .sample_notes import note_cached, note_sampled
from .shadow import read_again, watch_read, watch_write
from .thread_accesses import note_accesses
from .trace import trace

for _each in rules.PARTS:
    compiled(_each)
_wavefronts, _sectors = compiled(rules.wavefronts), compiled(rules.sectors)
_atomic_wavefronts, _atomic_sectors = compiled(rules.atomic_wavefronts), compiled(rules.atomic_sectors)


_borrowed = borrower(PROBES)


@inlined
def count(regs, row, config, workgroups_per_batch, lanes, p, probes_at):
    """Count executions (subgroups with an active lane) and lanes of a basic block. Lanes from `lanes` on are idle."""
    if row[field.MASK] < 0:
        count_all(row, config, workgroups_per_batch, p)
    else:
        count_some(regs, row, config, workgroups_per_batch, lanes, probes_at)


@inlined
def first_of(config):
    """Return the number in a batch of the first invocation of a lockstep group."""
    return config[at.PLACE] * config[at.WORKGROUP_LANES] + config[at.LANE_OFFSET]


@inlined
def count_all(row, config, workgroups_per_batch, p):
    """`count` with all lanes active."""
    size, subgroup, tally = config[at.LANES], config[at.SUBGROUP_SIZE], p.blocks[row[field.BLOCK]]
    subgroups = (size + subgroup - 1) // subgroup
    tally[at.EXECUTIONS] += workgroups_per_batch * subgroups
    tally[at.VISITS] += size
    for column in range(at.ACTIVE, at.VISITS):
        tally[column] += workgroups_per_batch * size
    if config[at.LOCKSTEP_GROUPS] == 1:
        p.worked[at.EXECUTED_BY_EACH] += row[field.INSTRUCTIONS] * subgroups
        p.worked[at.ALL_WORKED] |= row[field.ACCESSES] == 1
        return
    p.executed[config[at.PLACE]] += row[field.INSTRUCTIONS] * subgroups
    if row[field.ACCESSES] == 1:
        first = first_of(config)
        for lane in range(first, first + size):
            p.working[lane] = 1


@part(REGISTERS, INSTRUCTION, NUMBERS, LONG, LONG, LONG)
def count_some(regs, row, config, workgroups_per_batch, lanes, probes_at):
    """`count` under a mask, in which most often all lanes are active."""
    p = _borrowed(probes_at)
    size, subgroup, tally = config[at.LANES], config[at.SUBGROUP_SIZE], p.blocks[row[field.BLOCK]]
    mask, through = regs[row[field.MASK]], p.ones if row[field.THROUGH] < 0 else regs[row[field.THROUGH]]
    if lanes == workgroups_per_batch * size and all_ones(mask, lanes) and all_ones(through, lanes):
        count_all(row, config, workgroups_per_batch, p)
        return
    if row[field.ACCESSES] == 1 and p.worked[at.ALL_WORKED] == 0:
        first = first_of(config)
        for lane in range(lanes):
            p.working[first + lane] |= mask[lane]
    if size == 1:
        count_single(row, mask, through, lanes, tally, p.executed, config[at.PLACE])
        return
    before = tally[at.EXECUTIONS]
    for w in range((lanes + size - 1) // size):
        present = subgroups = 0
        for start in range(w * size, min((w + 1) * size, lanes), subgroup):
            end = min(start + subgroup, (w + 1) * size)
            active = stayed = 0
            for lane in range(start, end):
                active += np.int64(mask[lane])
                stayed += np.int64(through[lane])
            if active > 0:
                subgroups += 1
                tally[at.ACTIVE] += active
                tally[at.STAYED] += stayed
                present += end - start
        tally[at.EXECUTIONS] += subgroups
        p.executed[config[at.PLACE] + w] += row[field.INSTRUCTIONS] * subgroups
        tally[at.PRESENT] += present
        tally[at.LAUNCHED] += size * (present > 0)
    tally[at.VISITS] += size * (tally[at.EXECUTIONS] > before)


@inlined
def count_single(row, mask, through, lanes, tally, executed, place):
    """`count_some` for workgroups of one invocation, each of which is a subgroup."""
    active = stayed = np.uint32(0)
    for lane in range(lanes):
        active += mask[lane]
        executed[place + lane] += row[field.INSTRUCTIONS] * np.int64(mask[lane])
        stayed += mask[lane] & through[lane]
    tally[at.STAYED] += np.int64(stayed)
    for column in (at.EXECUTIONS, at.ACTIVE, at.PRESENT, at.LAUNCHED):
        tally[column] += np.int64(active)
    tally[at.VISITS] += active > 0


@inlined
def count_workgroups(config, order, first, workgroups_per_batch, p):
    """Count what each workgroup of a batch has executed. `first`: of the batch, in launch order."""
    count, of_each = config[at.GRID_X] * config[at.GRID_Y] * config[at.GRID_Z], p.worked[at.EXECUTED_BY_EACH]
    for w in range(workgroups_per_batch):
        slot = order[first + w] if order.size > 0 else first + w
        if count > at.WORKGROUP_SLOTS:
            slot = slot * at.WORKGROUP_SLOTS // count
        p.by_workgroup[slot] += of_each + p.executed[w]
        p.executed[w] = 0
    p.worked[at.EXECUTED_BY_EACH] = 0


@compiled
def settle(config, order, first, workgroups_per_batch, p):
    """At the end of a batch, add up the invocations that have accessed memory and what each workgroup has executed, and
    keep the most visits of a block. `first`: the first workgroup of the batch, in launch order."""
    if p.by_workgroup.size > 1:
        count_workgroups(config, order, first, workgroups_per_batch, p)
    beside = max(1, config[at.BESIDE])
    for block in range(len(p.blocks)):
        p.blocks[block, at.LONGEST] = max(p.blocks[block, at.LONGEST], p.blocks[block, at.VISITS] // beside)
        p.blocks[block, at.VISITS] = 0
    lanes = workgroups_per_batch * config[at.WORKGROUP_LANES]
    if p.worked[at.ALL_WORKED] == 1:
        p.worked[at.WORKED_LANES] += lanes
    else:
        for lane in range(lanes):
            p.worked[at.WORKED_LANES] += np.int64(p.working[lane])
    p.worked[at.ALL_WORKED] = 0
    for lane in range(lanes):
        p.working[lane] = 0


@compiled
def addresses_of(regs, row, entry, into, lanes):
    """Write the addresses after clamping into a row: in words for banks, else in units of the access."""
    extra = shared_part(regs, row)
    base, limit = np.uint32(entry[at.BASE]), np.uint32(entry[at.LIMIT])
    a = row[field.ADDRESS]
    half = np.uint32(row[field.OP] == op.BANKS and entry[at.UNIT] == 2)
    for lane in range(lanes):
        into[lane] = (min(np.uint32(regs[a, lane] + extra), limit) + base) >> half


@compiled
def moved_together(current, before, mask, mask_before, lanes):
    """Whether the masks are equal, and the addresses of all active lanes are shifted by that of the first lane."""
    distance = np.uint32(current[at.FIRST_LANE] - before[at.FIRST_LANE])
    differs = np.uint32(0)
    for lane in range(lanes):
        moved = (np.uint32(current[lane] - before[lane]) ^ distance) & np.uint32(0 - mask[lane])
        differs = np.uint32(differs | moved | (mask[lane] ^ mask_before[lane]))
    return differs == 0


@compiled
def charge_atomic(row, rule, mask, start, end, ideal, p, last):
    """Return the cost of an atomic operation of one subgroup, and its ideal cost."""
    charged, turns = _atomic_sectors(p.current, mask, start, end, rule[at.SECTOR], p.scratch)
    if row[field.OP] == op.BANKS:
        charged, ideal = _atomic_wavefronts(p.current, mask, start, end, rule[at.SHIFT], rule[at.COLUMNS], p.scratch)
    last[at.SERIALIZED_LANES] += turns
    return charged, ideal


@compiled
def charge(row, config, entry, mask, lanes, p, last):
    """Compute the cost of an access by the device's rule, into `last`."""
    slot = row[field.SLOT]
    rule = p.rules[slot]
    for i in range(at.TALLY_SIZE):
        last[i] = 0
    size, subgroup = config[at.LANES], config[at.SUBGROUP_SIZE]
    order = p.orders[slot]
    for w in range((lanes + size - 1) // size):
        for start in range(w * size, min((w + 1) * size, lanes), subgroup):
            end = min(start + subgroup, (w + 1) * size, lanes)
            if row[field.OP] == op.BANKS:
                charged, ideal = _wavefronts(
                    p.current,
                    mask,
                    start,
                    end,
                    rule[at.SHIFT],
                    rule[at.COLUMNS],
                    rule[at.MERGE],
                    order[: rule[at.ORDER_LENGTH]],
                    p.scratch,
                )
            else:
                charged, ideal, lines, asked = _sectors(
                    p.current, mask, start, end, entry[at.UNITS], rule[at.SECTOR], rule[at.LINE], p.scratch
                )
                last[at.LINES] += lines
                last[at.BYTES] += asked * entry[at.UNIT]
            if rule[at.SERIALIZES] != 0:
                charged, ideal = charge_atomic(row, rule, mask, start, end, ideal, p, last)
            last[at.REQUESTS] += charged > 0
            last[at.CHARGED] += charged
            last[at.IDEAL] += ideal


@inlined
def memory_probe(regs, row, config, entry, patterns, lanes, p, probes_at):
    """Add the cost of an access, computed only if it is not known from a like execution."""
    slot = row[field.SLOT]
    known = p.known[slot]
    is_learned = row[field.LEARNED] == 1 and row[field.MASK] < 0 and config[at.LOCKSTEP_GROUPS] == 1
    form = patterns[row[field.ADDRESS], at.FORM] if is_learned else np.int64(-1)
    is_inside = form >= 0 and inside(patterns[row[field.ADDRESS]], shared_part(regs, row), entry)
    like = np.int64(0)
    if is_inside and known[at.KEPT] == lanes and known[at.KEPT_FORM] == form:
        like = like_what(regs, row, entry, known, p.rules[slot])
    if like == 0 or p.last[slot, like % PLACES, at.LIKE] != like:
        like = look(regs, row, config, entry, lanes, like, probes_at)
        known[at.KEPT_FORM] = form if is_inside else np.int64(-1)
    tally, last = p.tallies[slot], p.last[slot, like % PLACES]
    for i in range(at.TALLY_SIZE):
        tally[i] += last[i]


@inlined
def like_what(regs, row, entry, known, rule):
    """Return a key that is equal for executions of equal cost, never 0.

    They have the kept addresses, shifted by one distance, and the same position of the first in its line or column; of
    units of half a word also the same half.
    """
    address = np.uint32(regs[row[field.ADDRESS], at.FIRST_LANE] + shared_part(regs, row))
    first = np.int64(np.uint32(min(address, np.uint32(entry[at.LIMIT])) + np.uint32(entry[at.BASE])))
    units = rule[at.LINE]
    if row[field.OP] == op.BANKS:
        units = (np.int64(1) << rule[at.SHIFT]) * (2 if entry[at.UNIT] == 2 else 1)
    return known[at.VERSION] << 32 | (first & (units - 1))


@part(REGISTERS, INSTRUCTION, NUMBERS, NUMBERS, LONG, LONG, LONG, returns=LONG)
def look(regs, row, config, entry, lanes, like, probes_at):
    """Compute the cost unless it is known. Returns the key: `like`, or, if that is 0, what a comparison of the
    addresses with those that are kept gives."""
    p = _borrowed(probes_at)
    slot = row[field.SLOT]
    mask = p.ones if row[field.MASK] < 0 else regs[row[field.MASK]]
    addresses_of(regs, row, entry, p.current, lanes)
    if like == 0:
        before, mask_before, known = p.addresses[slot], p.masks[slot], p.known[slot]
        if known[at.KEPT] != lanes or not moved_together(p.current, before, mask, mask_before, lanes):
            for lane in range(lanes):
                before[lane] = p.current[lane]
                mask_before[lane] = mask[lane]
            known[at.KEPT] = lanes
            known[at.VERSION] += 1
        like = like_what(regs, row, entry, known, p.rules[slot])
    last = p.last[slot, like % PLACES]
    if last[at.LIKE] != like:
        charge(row, config, entry, mask, lanes, p, last)
        last[at.LIKE] = like
    return like


@inlined
def bounds(regs, row, entry, config, patterns, workgroup, workgroups_per_batch, p):
    """Count the active lanes whose address is out of bounds."""
    extra, limit = shared_part(regs, row), np.uint32(entry[at.LIMIT])
    if row[field.LEARNED] != 1 or not inside(patterns[row[field.ADDRESS]], extra, entry):
        outside(regs, row, extra, limit, config, workgroup, workgroups_per_batch, p.bounds[row[field.SLOT]])


@part(REGISTERS, INSTRUCTION, WORD, WORD, NUMBERS, LONG, LONG, NUMBERS)
def outside(regs, row, extra, limit, config, workgroup, workgroups_per_batch, found):
    """`bounds`, lane by lane."""
    size, addresses = config[at.LANES], regs[row[field.ADDRESS]]
    if highest_address(addresses, extra, workgroups_per_batch * size) <= limit:
        return
    for lane in range(workgroups_per_batch * size):
        address = np.uint32(addresses[lane] + extra)
        if address > limit and (row[field.MASK] < 0 or regs[row[field.MASK], lane] != 0):
            group = workgroup + lane // size
            if found[at.OUTSIDE] == 0 or group < found[at.WORKGROUP]:
                found[at.LANE], found[at.WORKGROUP] = config[at.LANE_OFFSET] + lane % size, group
                found[at.ADDRESS] = address
            found[at.OUTSIDE] += 1


@part(REGISTERS, INSTRUCTION, NUMBERS, NUMBERS, LONG, LONG, LONG)
def note_writers(regs, row, config, entry, workgroup, workgroups_per_batch, probes_at):
    """Note the last writer of each word, in the order of the stores."""
    p = _borrowed(probes_at)
    half, words = entry[at.UNIT] == 2, (entry[at.UNITS] * entry[at.UNIT] + 3) // 4
    first = 1 + workgroup * config[at.WORKGROUP_LANES] + config[at.LANE_OFFSET]
    extra, limit = shared_part(regs, row), np.uint32(entry[at.LIMIT])
    for lane in range(workgroups_per_batch * config[at.LANES]):
        address = np.uint32(regs[row[field.ADDRESS], lane] + extra)
        if address <= limit and (row[field.MASK] < 0 or regs[row[field.MASK], lane] != 0):
            place = (entry[at.BASE] + np.int64(address)) >> half
            for word in range(place, place + words):
                p.writers[word] = first + lane


@part(REGISTERS, INSTRUCTION, NUMBERS, NUMBERS, LONG, LONG, LONG, LONG)
def note_meetings(regs, row, config, entry, workgroup, workgroups_per_batch, lanes, probes_at):
    """Count stores to words that another workgroup of the batch has stored to: their order depends on interleaving."""
    p = _borrowed(probes_at)
    addresses, mask = regs[row[field.ADDRESS]], p.ones if row[field.MASK] < 0 else regs[row[field.MASK]]
    extra, interleaved = shared_part(regs, row), config[at.WORKGROUPS_PER_BATCH]
    each = entry[at.UNIT] // (4 - 2 * row[field.HALVES])  # notes per unit
    met = np.int64(0)
    for first in range(0, lanes, interleaved):
        for w in range(min(interleaved, lanes - first)):
            if mask[first + w] == 0:
                continue
            address, happens = address_of(addresses[first + w], extra, entry)
            start, own = (entry[at.BASE] + np.int64(address)) * each, 1 + min(w, workgroups_per_batch - 1)
            for place in range(start, start + entry[at.UNITS] * each if happens else start):
                before = p.writers[place] - workgroup
                met += np.int64(0 < before <= workgroups_per_batch and before != own)
                p.writers[place] = workgroup + own
    p.bounds[row[field.SLOT], at.OUTSIDE] += met


@part(REGISTERS, INSTRUCTION, NUMBERS, NUMBERS, TABLE, LONG, LONG)
def note_touched(regs, row, config, entry, patterns, workgroups_per_batch, probes_at):
    """Note which words are accessed; consecutive or equal addresses at once."""
    p = _borrowed(probes_at)
    addresses, mask = regs[row[field.ADDRESS]], p.ones if row[field.MASK] < 0 else regs[row[field.MASK]]
    extra, limit = shared_part(regs, row), np.uint32(entry[at.LIMIT])
    lanes = workgroups_per_batch * config[at.LANES]
    half, base, words = entry[at.UNIT] == 2, entry[at.BASE], (entry[at.UNITS] * entry[at.UNIT] + 3) // 4
    if not all_ones(mask, lanes) or highest_address(addresses, extra, lanes) > limit:
        for lane in range(lanes):
            here = np.uint32(addresses[lane] + extra)
            if here <= limit and mask[lane] != 0:
                touch(p.touched, (base + here) >> half, words)
        return
    shape = patterns[row[field.ADDRESS], at.SHAPE] if row[field.LEARNED] == 1 else at.SCATTERED
    if shape == at.CONSECUTIVE:
        first, last = np.uint32(addresses[at.FIRST_LANE] + extra), np.uint32(addresses[lanes - 1] + extra)
        touch(p.touched, (base + first) >> half, ((base + last) >> half) - ((base + first) >> half) + words)
        return
    for word in range(words):
        for lane in range(0, lanes, at.VECTOR_LANES if shape == at.BLOCKS else 1):
            place = ((base + np.uint32(addresses[lane] + extra)) >> half) + word
            p.touched[np.uint64(place)] = 1


@inlined
def touch(touched, first, words):
    """Mark `words` words from `first` on."""
    for word in range(first, first + words):
        touched[word] = 1


@inlined
def probe(
    regs,
    row,
    config,
    access,
    storage,
    shared,
    patterns,
    workgroup,
    workgroups_per_batch,
    lanes,
    p,
    probes_at,
    watch,
    watch_at,
):
    """Run a probe instruction on `lanes` lanes. `probes_at` and `watch_at` are the addresses of `p` and `watch`."""
    if row[field.OP] == op.COUNT:
        count(regs, row, config, workgroups_per_batch, lanes, p, probes_at)
    elif row[field.OP] == op.TRACE:
        trace(regs, row, config, access, workgroup, workgroups_per_batch, p.traced, p.notes)
    elif row[field.OP] == op.WRITERS:
        note_writers(regs, row, config, access[row[field.ACCESS]], workgroup, workgroups_per_batch, probes_at)
    elif row[field.OP] == op.MEETS:
        note_meetings(regs, row, config, access[row[field.ACCESS]], workgroup, workgroups_per_batch, lanes, probes_at)
    elif row[field.OP] == op.LOADED:
        if p.loaded.size > 1:
            note_accesses(regs, row, config, access[row[field.ACCESS]], p.loaded, lanes)
    elif row[field.OP] == op.TOUCHED:
        note_touched(regs, row, config, access[row[field.ACCESS]], patterns, workgroups_per_batch, probes_at)
    elif row[field.OP] == op.SAMPLED:
        entry = access[row[field.ACCESS]]
        note_sampled(regs, row, config, entry, storage, workgroup, workgroups_per_batch, probes_at)
    elif row[field.OP] == op.CACHED:
        entry = access[row[field.ACCESS]]
        note_cached(regs, row, config, entry, storage, workgroup, workgroups_per_batch, probes_at)
    elif row[field.OP] == op.BOUNDS:
        bounds(regs, row, access[row[field.ACCESS]], config, patterns, workgroup, workgroups_per_batch, p)
    elif row[field.OP] == op.WATCH_READ:
        if not read_again(regs, row, patterns, watch):
            entry = access[row[field.ACCESS]]
            watch_read(regs, row, config, entry, storage, patterns, workgroup, workgroups_per_batch, lanes, watch_at)
    elif row[field.OP] == op.WATCH_WRITE:
        entry = access[row[field.ACCESS]]
        memory = shared if entry[at.SPACE] == at.SHARED else storage
        watch_write(regs, row, config, entry, memory, workgroup, workgroups_per_batch, lanes, watch_at)
    elif row[field.OP] == op.WATCH_ORDER:
        watch_order(regs, row, config, workgroup, watch_at)
    elif row[field.OP] == op.REACH:
        reach(regs, row, config, workgroups_per_batch, p.reached[row[field.SLOT]])
    elif row[field.OP] == op.MARGIN:
        margin(regs, row, config, workgroups_per_batch, p.margins[row[field.SLOT]])
    elif row[field.OP] == op.CHECK:
        if row[field.ACCESS] != at.NON_FINITE or not all_finite(regs[row[field.DEST]], lanes):
            check(regs, row, config, workgroup, workgroups_per_batch, p.checks[row[field.SLOT]])
    else:
        memory_probe(regs, row, config, access[row[field.ACCESS]], patterns, lanes, p, probes_at)
