"""Probes: instructions that count, and change nothing that a program can see.

A memory probe stands before the access it is about and has its operands. It remembers the addresses of an execution,
and what others have counted that had the same lanes active and all addresses moved by one distance: that hangs only on
where in a column of banks, or in a line of storage, the first address lies.
"""

from __future__ import annotations

import numpy as np

from ..models import rules
from . import layout as at
from . import opcodes as op
from .address_extents import margin, reach
from .checks import all_finite, check
from .compile.by_address import borrower
from .compile.units import compiled, inlined, kind_of, part
from .kinds import INSTRUCTION, LONG, NUMBERS, REGISTERS, TABLE, WORD
from .memory import address_of, highest_of, inside, shared_part
from .ordering import watch_order
from .probe_arrays import PLACES, make_probes
from .shadow import read_again, watch_read, watch_write
from .trace import trace

for _each in rules.PARTS:
    compiled(_each)
_wavefronts, _sectors = compiled(rules.wavefronts), compiled(rules.sectors)
_atomic_wavefronts, _atomic_sectors = compiled(rules.atomic_wavefronts), compiled(rules.atomic_sectors)


_NONE = np.zeros(1, np.int64)
PROBES = kind_of(make_probes(1, 1, 1, 1, _NONE, np.zeros(1, np.uint8), _NONE, 0, 0))
_borrowed = borrower(PROBES)


@inlined
def count(regs, row, config, workgroups_per_batch, p, lent):
    """Executions (subgroups with an active lane) and lanes of one straight run.

    B: the lanes that guards have let through; X: it touches memory.
    """
    if row[6] < 0:
        count_all(row, config, workgroups_per_batch, p)
    else:
        count_some(regs, row, config, workgroups_per_batch, lent)


@inlined
def count_all(row, config, workgroups_per_batch, p):
    """The same, of all lanes."""
    size, subgroup, tally = config[at.LANES], config[at.SUBGROUP], p.blocks[row[2]]
    tally[at.EXECUTIONS] += workgroups_per_batch * ((size + subgroup - 1) // subgroup)
    for column in range(at.ACTIVE, at.BLOCK_SIZE):
        tally[column] += workgroups_per_batch * size
    p.worked[0] |= row[7] == 1


@inlined
def all_ones(mask, lanes):
    """Whether every lane is active."""
    active = np.uint32(1)
    for lane in range(lanes):
        active &= mask[lane]
    return active == 1


@part(REGISTERS, INSTRUCTION, NUMBERS, LONG, LONG)
def count_some(regs, row, config, workgroups_per_batch, lent):
    """The same under a mask, which most workgroups pass whole."""
    p = _borrowed(lent)
    size, subgroup, tally = config[at.LANES], config[at.SUBGROUP], p.blocks[row[2]]
    mask, through = regs[row[6]], p.ones if row[3] < 0 else regs[row[3]]
    if all_ones(mask, workgroups_per_batch * size) and all_ones(through, workgroups_per_batch * size):
        count_all(row, config, workgroups_per_batch, p)
        return
    if row[7] == 1 and p.worked[0] == 0:
        for lane in range(workgroups_per_batch * size):
            p.working[lane] |= mask[lane]
    for w in range(workgroups_per_batch):
        present = 0
        for start in range(w * size, (w + 1) * size, subgroup):
            end = min(start + subgroup, (w + 1) * size)
            active = stayed = 0
            for lane in range(start, end):
                active += np.int64(mask[lane])
                stayed += np.int64(through[lane])
            if active > 0:
                tally[at.EXECUTIONS] += 1
                tally[at.ACTIVE] += active
                tally[at.STAYED] += stayed
                present += end - start
        tally[at.PRESENT] += present
        tally[at.LAUNCHED] += size * (present > 0)


@compiled
def settle(config, workgroups_per_batch, p):
    """At the end of a batch: add up the invocations that have touched memory."""
    lanes = workgroups_per_batch * config[at.LANES]
    if p.worked[0] == 1:
        p.worked[1] += lanes
    else:
        for lane in range(lanes):
            p.worked[1] += np.int64(p.working[lane])
    p.worked[0] = 0
    for lane in range(lanes):
        p.working[lane] = 0


@compiled
def addresses_of(regs, row, entry, into, lanes):
    """Addresses of the access after the policy: words for banks, else in units of the access."""
    extra = shared_part(regs, row[3], row[4])
    base, limit = np.uint32(entry[at.BASE]), np.uint32(entry[at.LIMIT])
    a = row[2]
    half = np.uint32(row[0] == op.BANKS and entry[at.UNIT] == 2)
    for lane in range(lanes):
        into[lane] = (min(np.uint32(regs[a, lane] + extra), limit) + base) >> half


@compiled
def moved_together(current, before, mask, mask_before, lanes):
    """Whether every active lane has moved by one distance, that of the first lane, under one mask."""
    distance = np.uint32(current[0] - before[0])
    differs = np.uint32(0)
    for lane in range(lanes):
        moved = (np.uint32(current[lane] - before[lane]) ^ distance) & np.uint32(0 - mask[lane])
        differs = np.uint32(differs | moved | (mask[lane] ^ mask_before[lane]))
    return differs == 0


@compiled
def take_turns(row, rule, mask, start, end, ideal, p, last):
    """What an atomic operation of one subgroup costs instead, and the least that it could."""
    charged, turns = _atomic_sectors(p.current, mask, start, end, rule[at.SECTOR], p.scratch)
    if row[0] == op.BANKS:
        charged, ideal = _atomic_wavefronts(p.current, mask, start, end, rule[at.SHIFT], rule[at.COLUMNS], p.scratch)
    last[at.TURNS] += turns
    return charged, ideal


@compiled
def charge(row, config, entry, mask, workgroups_per_batch, p, last):
    """Count one access by the device's rule into `last`."""
    slot = row[7]
    rule = p.rules[slot]
    for i in range(at.TALLY_SIZE):
        last[i] = 0
    size, subgroup = config[at.LANES], config[at.SUBGROUP]
    order = p.orders[slot]
    for w in range(workgroups_per_batch):
        for start in range(w * size, (w + 1) * size, subgroup):
            end = min(start + subgroup, (w + 1) * size)
            if row[0] == op.BANKS:
                charged, ideal = _wavefronts(
                    p.current,
                    mask,
                    start,
                    end,
                    rule[at.SHIFT],
                    rule[at.COLUMNS],
                    rule[at.MERGE],
                    order[: rule[at.ORDERED]],
                    p.scratch,
                )
            else:
                charged, ideal, lines, asked = _sectors(
                    p.current, mask, start, end, entry[at.UNITS], rule[at.SECTOR], rule[at.LINE], p.scratch
                )
                last[at.LINES] += lines
                last[at.BYTES] += asked * entry[at.UNIT]
            if rule[at.TURNS_TAKEN] != 0:
                charged, ideal = take_turns(row, rule, mask, start, end, ideal, p, last)
            last[at.REQUESTS] += charged > 0
            last[at.CHARGED] += charged
            last[at.IDEAL] += ideal


@inlined
def memory_probe(regs, row, config, entry, patterns, workgroups_per_batch, p, lent):
    """Charge one access, anew only where nothing like it has been charged."""
    slot = row[7]
    known, rule = p.known[slot], p.rules[slot]
    keep = np.uint32((1 << rule[at.SHIFT]) - 1 if row[0] == op.BANKS else rule[at.LINE] - 1)
    stamp = patterns[row[2], at.STAMP] if row[1] == 1 and row[6] < 0 else np.int64(-1)
    like = np.int64(0)
    if stamp >= 0 and known[at.KEPT] == workgroups_per_batch * config[at.LANES] and known[at.KEPT_STAMP] == stamp:
        like = like_known(regs, row, entry, keep, patterns, known)
    if like == 0 or p.last[slot, like % PLACES, at.LIKE] != like:
        like = look(regs, row, config, entry, workgroups_per_batch, keep, lent)
        known[at.KEPT_STAMP] = stamp
    tally, last = p.tallies[slot], p.last[slot, like % PLACES]
    for i in range(at.TALLY_SIZE):
        tally[i] += last[i]


@inlined
def like_what(known, first, keep):
    """What executions have in common that count alike: the addresses that are kept, moved by one distance, and where in
    its line or column the first of them lies. Never 0."""
    return known[at.VERSION] << 32 | np.int64(first & keep)


@inlined
def like_known(regs, row, entry, keep, patterns, known):
    """The same of a known pattern that is the one kept; 0 where not all of it is in bounds."""
    extra = shared_part(regs, row[3], row[4])
    half = np.uint32(row[0] == op.BANKS and entry[at.UNIT] == 2)
    first = (np.uint32(regs[row[2], 0] + extra) + np.uint32(entry[at.BASE])) >> half
    return like_what(known, first, keep) if inside(patterns[row[2]], extra, entry) else np.int64(0)


@part(REGISTERS, INSTRUCTION, NUMBERS, NUMBERS, LONG, WORD, LONG, returns=LONG)
def look(regs, row, config, entry, workgroups_per_batch, keep, lent):
    """Compare the addresses with those that are kept, and charge the access where nothing like it has been. Returns
    what it is like."""
    p = _borrowed(lent)
    slot = row[7]
    lanes = workgroups_per_batch * config[at.LANES]
    mask = p.ones if row[6] < 0 else regs[row[6]]
    addresses_of(regs, row, entry, p.current, lanes)
    before, mask_before, known = p.addresses[slot], p.masks[slot], p.known[slot]
    if known[at.KEPT] != lanes or not moved_together(p.current, before, mask, mask_before, lanes):
        for lane in range(lanes):
            before[lane] = p.current[lane]
            mask_before[lane] = mask[lane]
        known[at.KEPT] = lanes
        known[at.VERSION] += 1
    like = like_what(known, p.current[0], keep)
    last = p.last[slot, like % PLACES]
    if last[at.LIKE] != like:
        charge(row, config, entry, mask, workgroups_per_batch, p, last)
        last[at.LIKE] = like
    return like


@inlined
def bounds(regs, row, entry, config, patterns, workgroup, workgroups_per_batch, p):
    """Active lanes whose address is past the end of what they index."""
    extra, limit = shared_part(regs, row[3], row[4]), np.uint32(entry[at.LIMIT])
    if row[1] != 1 or not inside(patterns[row[2]], extra, entry):
        outside(regs, row, extra, limit, config, workgroup, workgroups_per_batch, p.bounds[row[7]])


@part(REGISTERS, INSTRUCTION, WORD, WORD, NUMBERS, LONG, LONG, NUMBERS)
def outside(regs, row, extra, limit, config, workgroup, workgroups_per_batch, found):
    """The same, lane by lane."""
    size, addresses = config[at.LANES], regs[row[2]]
    if np.uint64(highest_of(addresses, workgroups_per_batch * size)) + np.uint64(extra) <= np.uint64(limit):
        return
    for lane in range(workgroups_per_batch * size):
        address = np.uint32(addresses[lane] + extra)
        if address > limit and (row[6] < 0 or regs[row[6], lane] != 0):
            if found[at.OUTSIDE] == 0:
                found[at.LANE], found[at.WORKGROUP] = lane % size, workgroup + lane // size
                found[at.ADDRESS] = address
            found[at.OUTSIDE] += 1


@part(REGISTERS, INSTRUCTION, NUMBERS, NUMBERS, LONG, LONG, LONG)
def note_writers(regs, row, config, entry, workgroup, workgroups_per_batch, lent):
    """Remember who stores where, lane by lane in the order in which they do."""
    p = _borrowed(lent)
    size, half, words = config[at.LANES], entry[at.UNIT] == 2, (entry[at.UNITS] * entry[at.UNIT] + 3) // 4
    extra, limit = shared_part(regs, row[3], row[4]), np.uint32(entry[at.LIMIT])
    for lane in range(workgroups_per_batch * size):
        address = np.uint32(regs[row[2], lane] + extra)
        if address <= limit and (row[6] < 0 or regs[row[6], lane] != 0):
            place = (entry[at.BASE] + np.int64(address)) >> half
            for word in range(place, place + words):
                p.writers[word] = 1 + workgroup * size + lane


@part(REGISTERS, INSTRUCTION, NUMBERS, NUMBERS, LONG, LONG, LONG, LONG)
def note_meetings(regs, row, config, entry, workgroup, workgroups_per_batch, lanes, lent):
    """Count stores to where another workgroup of the batch has stored: who is last depends on how they go together.
    Workgroups are abreast; D is 1 where places are noted in halves of a word."""
    p = _borrowed(lent)
    addresses, mask = regs[row[2]], p.ones if row[6] < 0 else regs[row[6]]
    extra, each, interleaved = (
        shared_part(regs, row[3], row[4]),
        entry[at.UNIT] // (4 - 2 * row[1]),
        config[at.TOGETHER],
    )
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
    p.bounds[row[7], at.OUTSIDE] += met


@part(REGISTERS, INSTRUCTION, NUMBERS, NUMBERS, TABLE, LONG, LONG)
def note_touched(regs, row, config, entry, patterns, workgroups_per_batch, lent):
    """Remember which words are accessed: of lanes that are neighbours, or a vector of them in one place, at once."""
    p = _borrowed(lent)
    addresses, mask = regs[row[2]], p.ones if row[6] < 0 else regs[row[6]]
    extra, limit, lanes = (
        shared_part(regs, row[3], row[4]),
        np.uint32(entry[at.LIMIT]),
        workgroups_per_batch * config[at.LANES],
    )
    half, base, words = entry[at.UNIT] == 2, entry[at.BASE], (entry[at.UNITS] * entry[at.UNIT] + 3) // 4
    if not all_ones(mask, lanes) or np.uint64(highest_of(addresses, lanes)) + np.uint64(extra) > np.uint64(limit):
        for lane in range(lanes):
            here = np.uint32(addresses[lane] + extra)
            if here <= limit and mask[lane] != 0:
                touch(p.touched, (base + here) >> half, words)
        return
    shape = patterns[row[2], at.SHAPE] if row[1] == 1 else at.SCATTERED
    if shape == at.CONSECUTIVE:
        first, last = np.uint32(addresses[0] + extra), np.uint32(addresses[lanes - 1] + extra)
        touch(p.touched, (base + first) >> half, ((base + last) >> half) - ((base + first) >> half) + words)
        return
    for word in range(words):
        for lane in range(0, lanes, at.VECTOR_LANES if shape == at.BLOCKS else 1):
            place = ((base + np.uint32(addresses[lane] + extra)) >> half) + word
            p.touched[np.uint64(place)] = 1


@inlined
def touch(touched, first, words):
    """Mark so many words."""
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
    lent,
    watch,
    lent_watch,
):
    """One probe instruction. `lanes`: those that are computed; `lent`, `lent_watch`: where the records are that stand
    before them."""
    if row[0] == op.COUNT:
        count(regs, row, config, workgroups_per_batch, p, lent)
    elif row[0] == op.TRACE:
        trace(regs, row, config, access, workgroup, workgroups_per_batch, p.watched, p.notes)
    elif row[0] == op.WRITERS:
        note_writers(regs, row, config, access[row[5]], workgroup, workgroups_per_batch, lent)
    elif row[0] == op.MEETS:
        note_meetings(regs, row, config, access[row[5]], workgroup, workgroups_per_batch, lanes, lent)
    elif row[0] == op.TOUCHED:
        note_touched(regs, row, config, access[row[5]], patterns, workgroups_per_batch, lent)
    elif row[0] == op.BOUNDS:
        bounds(regs, row, access[row[5]], config, patterns, workgroup, workgroups_per_batch, p)
    elif row[0] == op.WATCH_READ:
        if not read_again(regs, row, patterns, watch):
            watch_read(regs, row, config, patterns, workgroup, workgroups_per_batch, lent_watch)
    elif row[0] == op.WATCH_WRITE:
        memory = shared if access[row[5], at.SPACE] == at.SHARED else storage
        watch_write(regs, row, config, memory, workgroup, workgroups_per_batch, lent_watch)
    elif row[0] == op.WATCH_ORDER:
        watch_order(regs, row, config, workgroup, lent_watch)
    elif row[0] == op.REACH:
        reach(regs, row, config, workgroups_per_batch, p.reached[row[7]])
    elif row[0] == op.MARGIN:
        margin(regs, row, config, workgroups_per_batch, p.margins[row[7]])
    elif row[0] == op.CHECK:
        if row[5] != at.BORN or not all_finite(regs[row[1]], lanes):
            check(regs, row, config, workgroup, workgroups_per_batch, p.checks[row[7]])
    else:
        memory_probe(regs, row, config, access[row[5]], patterns, workgroups_per_batch, p, lent)
