"""The machine: runs a program over a range of workgroups, a batch of them side by side in the lanes.

The loop knows nothing of WGSL: it reads rows of the program (see `opcodes`), and each works on all lanes of the batch.
`layout` says what stands where in the arrays. Everything is compiled once, whatever the program.
"""

from __future__ import annotations

import numpy as np
from numba import types

from . import layout as at
from . import opcodes as op
from .alu import conversion, curve, float_, half, integer
from .atomics import atomic
from .checks import checked_sum
from .compile.by_address import lend
from .compile.units import compiled, inlined, part, recorded
from .kinds import CUBE, FILES, HALVES, INSTRUCTION, LONG, NUMBERS, PROGRAM, REGISTERS, TABLE, WORDS
from .lanes import address_of_first, blend, both, copy, fill, pitch_of
from .memory import (
    learn,
    load,
    load_from_known,
    load_units,
    pick,
    put,
    shared_part,
    stays_inside,
    store,
    store_known,
    store_units,
)
from .opcodes import families, scalar_opcodes
from .probes import PROBES, probe, settle
from .shadow import WATCH, watch_barrier, watch_batch
from .subgroups import collective
from .tiles import QUEUE, add_up, add_what_waits, restart, tile

_CODES = scalar_opcodes()
_HALF, _INTEGER, _CONVERSION, _CURVE = (_CODES[families()[f][0]] for f in ("half", "integer", "conversion", "curve"))
_FIRST_PROBE, _SCALAR = op.FIRST_PROBE, op.SCALAR


@inlined
def scalar(start, pitch, row, lanes):
    """One scalar operation on rows, by family."""
    code, d, a, b, c, e = row[0], row[1], row[2], row[3], row[4], row[5]
    if code < _HALF:
        float_(start, pitch, code, d, a, b, c, e, lanes)
    elif code < _INTEGER:
        half(start, pitch, code, d, a, b, c, e, lanes)
    elif code < _CONVERSION:
        integer(start, pitch, code, d, a, b, c, e, lanes)
    elif code < _CURVE:
        conversion(start, pitch, code, d, a, b, c, e, lanes)
    else:
        curve(start, pitch, code, d, a, b, c, e, lanes)


@inlined
def some_active(regs, mask, lanes):
    """Whether any lane of a mask row is on."""
    seen = np.uint32(0)
    for lane in range(lanes):
        seen = np.uint32(seen | regs[mask, lane])
    return seen != 0


@compiled
def lanes_up_to(regs, mask, lanes):
    """The lanes of a mask row up to the last that is on, in whole vectors."""
    row, end, seen = regs[mask], lanes - lanes % at.VECTOR_LANES, np.uint32(0)
    for lane in range(end, lanes):
        seen = np.uint32(seen | row[lane])
    if seen != 0:
        return end + at.VECTOR_LANES
    while seen == 0 and end > 0:
        for lane in range(end - at.VECTOR_LANES, end):
            seen = np.uint32(seen | row[lane])
        end -= at.VECTOR_LANES
    return end + at.VECTOR_LANES if seen != 0 else end


@compiled
def last_active(mask, lanes):
    """The lanes of a mask row up to the last that is on."""
    while lanes > 0 and mask[lanes - 1] == 0:
        lanes -= 1
    return lanes


@compiled
def record(events, kind, site, workgroup, lane, detail, other, epoch):
    """Note an event: the first of each kind and site with its details, the others by their number alone. Its row if it
    is the first, else 0."""
    place = 1
    while place <= events[0, 0] and (events[place, at.KIND] != kind or events[place, at.SITE] != site):
        place += 1
    if place < len(events):
        row = events[place]
        row[at.TIMES] += 1
        if place <= events[0, 0]:
            return 0
        events[0, 0] = place
        row[at.KIND], row[at.SITE], row[at.EVENT_WORKGROUP], row[at.EVENT_LANE] = kind, site, workgroup, lane
        row[at.DETAIL], row[at.OTHER], row[at.EPOCH] = detail, other, epoch
        return place
    return 0


@part(REGISTERS, INSTRUCTION, NUMBERS, LONG, LONG, LONG, TABLE)
def barrier(regs, row, config, workgroup, workgroups_per_batch, epoch, events):
    """Every lane of each workgroup should be here; those that are not are an event."""
    mask, site = row[6], row[2]
    size, step = config[at.LANES], config[at.LANE_PITCH]
    for w in range(workgroups_per_batch):
        first = w * config[at.GROUP_PITCH]
        active = 0
        absent = -1
        for lane in range(size):
            if regs[mask, first + lane * step] != 0:
                active += 1
            elif absent < 0:
                absent = lane
        if 0 < active < size:
            new = record(events, at.DIVERGED, site, workgroup + w, absent, size - active, 0, epoch)
            for lane in range(min(size, 1024) if new > 0 else 0):
                missing = np.int64(regs[mask, first + lane * step] == 0)
                events[new, at.ABSENT + lane // 32] |= missing << (lane % 32)


@inlined
def meet(regs, row, config, workgroup, workgroups_per_batch, epoch, events, lent_watch):
    """A barrier, for those who watch it and those who are there."""
    if config[at.WATCHES] == 1:
        watch_barrier(regs, row, config, workgroup, workgroups_per_batch, lent_watch)
    if row[6] >= 0:
        barrier(regs, row, config, workgroup, workgroups_per_batch, epoch, events)


@inlined
def touch(regs, row, entry, memory, patterns, lanes, width):
    """A load or a store on this memory, whatever its addresses."""
    if row[0] == op.STORE or row[0] == op.STORE_FOUR:
        store(regs, memory, row[1], row[2], row[3], row[4], entry, row[7], row[6], lanes)
    elif row[0] == op.STORE_KNOWN:
        known = patterns[row[2]]
        store_known(regs, memory, row[1], row[2], row[3], row[4], entry, row[7], row[6], known, lanes)
    else:
        extra, lanes = shared_part(regs, row[3], row[4]), np.int64(1) if row[6] == 1 else width
        load(regs[row[1]], memory, regs[row[2]], extra, entry, regs[row[7]], lanes)


@inlined
def memory_row(regs, row, access, storage, storage16, shared, shared16, patterns, lanes, width):
    """A load or a store, on the memory and of the unit that its access says."""
    entry = access[row[5]]
    if entry[at.UNIT] == 2:
        touch_halves(regs, row, entry, shared16 if entry[at.SPACE] == at.SHARED else storage16, patterns, lanes, width)
    elif row[0] == op.LOAD_KNOWN:
        memory = shared if entry[at.SPACE] == at.SHARED else storage
        extra, known = shared_part(regs, row[3], row[4]), patterns[row[2]]
        load_from_known(regs[row[1]], memory, regs[row[2]], extra, entry, regs[row[7]], known, width)
    else:
        touch_words(regs, row, entry, shared if entry[at.SPACE] == at.SHARED else storage, patterns, lanes, width)


@inlined
def four_at_once(row, access, patterns):
    """Whether a load of four units is best done at once: a known pattern has a faster way."""
    known = row[0] == op.LOAD_KNOWN and patterns[row[2], at.SHAPE] != at.SCATTERED
    return not known and access[row[5], at.POLICY] == at.CLAMP


@part(REGISTERS, PROGRAM, LONG, TABLE, WORDS, HALVES, WORDS, HALVES, LONG)
def load_four(regs, code, place, access, storage, storage16, shared, shared16, width):
    """The load in row `place` and the three after it."""
    row = code[place]
    entry, extra = access[row[5]], shared_part(regs, row[3], row[4])
    if entry[at.UNIT] == 2:
        load_units(regs, code, place, shared16 if entry[at.SPACE] == at.SHARED else storage16, entry, extra, width)
    else:
        load_units(regs, code, place, shared if entry[at.SPACE] == at.SHARED else storage, entry, extra, width)


@part(REGISTERS, PROGRAM, LONG, TABLE, WORDS, HALVES, WORDS, HALVES, LONG, returns=LONG)
def store_four(regs, code, place, access, storage, storage16, shared, shared16, lanes):
    """The store in row `place` and the three after it, where no address is out of bounds; else 0, and none of them."""
    row = code[place]
    entry, extra = access[row[5]], shared_part(regs, row[3], row[4])
    if not stays_inside(regs, row[2], extra, entry, lanes):
        return 0
    if entry[at.UNIT] == 2:
        store_units(regs, code, place, shared16 if entry[at.SPACE] == at.SHARED else storage16, entry, extra, lanes)
    else:
        store_units(regs, code, place, shared if entry[at.SPACE] == at.SHARED else storage, entry, extra, lanes)
    return 1


@part(REGISTERS, INSTRUCTION, NUMBERS, WORDS, TABLE, LONG, LONG)
def touch_words(regs, row, entry, memory, patterns, lanes, width):
    touch(regs, row, entry, memory, patterns, lanes, width)


@part(REGISTERS, INSTRUCTION, NUMBERS, HALVES, TABLE, LONG, LONG)
def touch_halves(regs, row, entry, memory, patterns, lanes, width):
    touch(regs, row, entry, memory, patterns, lanes, width)


@inlined
def move_rows(regs, row, access, lanes, width, whole):
    """What moves registers, and computes nothing. `whole`: lanes of a row, those that are left out among them."""
    what = row[0]
    if what == op.BLEND:
        blend(regs, row[1], row[2], row[6], width)
    elif what == op.COPY:
        copy(regs, row[1], row[2], np.int64(1) if row[6] == 1 else width)
    elif what == op.BROADCAST:
        fill(regs, row[1], regs[row[2], 0], width)
    elif what == op.PICK:
        pick(regs, row[1], row[2], row[3], row[4], lanes)
    elif what == op.PUT:
        put(regs, row[1], row[2], row[3], row[4], row[6], lanes)
    elif what == op.LENGTH:
        fill(regs, row[1], np.uint32(access[row[5], at.COUNT_OF]), width)
    else:
        both(regs, row[1], row[2], row[3], whole)


@inlined
def width_from(regs, row, place, lanes, width):
    """How many lanes are to be computed from an `narrow` or `restore` on; 0 where it jumps."""
    if row[0] == op.RESTORE:
        return place[at.WIDTHS + row[1]]
    wanted = lanes_up_to(regs, row[6], lanes)
    if wanted == 0 and row[2] >= 0:
        return np.int64(0)
    return min(max(wanted, np.int64(at.VECTOR_LANES)), width)


@inlined
def go_to_level(place, level, width):
    """Compute so many lanes from here on. Whether that is another number than before."""
    changes = place[at.WIDTHS + place[at.LEVEL]] != width
    place[at.LEVEL], place[at.WIDTHS + level] = level, width
    return changes


@compiled
def run_strand(
    code, config, regs, shared, shared16, storage, storage16, access, patterns,
    workgroup, workgroups_per_batch, place, events, probes, lent_probes, watch, lent_watch, queue,
):  # fmt: skip
    """Go on with the program for `together` workgroups from `workgroup` on: to its end, or, where the workgroup is cut
    into several strands, to the next barrier. `place` says where it stands. False where the budget is spent."""
    start, pitch, size = address_of_first(regs), pitch_of(regs), config[at.LANES]
    lent = lend((
        regs, code, access, patterns, storage, shared, queue, probes.checks, size, workgroup, workgroups_per_batch
    ))  # fmt: skip
    places = (workgroups_per_batch if config[at.LANE_PITCH] == 1 else config[at.TOGETHER]) * size
    pc, budget, epoch = place[at.PC], place[at.LEFT], place[at.PASSED]
    while True:  # once for each change of the width, so that it is a constant of the loop that counts
        width = place[at.WIDTHS + place[at.LEVEL]]
        lanes = min(places, width)
        while True:
            row = code[pc]
            what = row[0]
            pc += 1
            if what >= _SCALAR:
                scalar(start, pitch, row, np.int64(1) if row[6] == 1 else width)
            elif op.LOAD <= what <= op.STORE_FOUR and what != op.LEARN:
                if what <= op.LOAD_KNOWN and row[6] == op.FOUR and four_at_once(row, access, patterns):
                    load_four(regs, code, pc - 1, access, storage, storage16, shared, shared16, width)
                    pc += op.FOUR - 1
                elif what == op.STORE_FOUR and store_four(
                    regs, code, pc - 1, access, storage, storage16, shared, shared16, lanes
                ):
                    pc += op.FOUR - 1
                else:
                    memory_row(regs, row, access, storage, storage16, shared, shared16, patterns, lanes, width)
            elif what >= _FIRST_PROBE:
                probe(
                    regs, row, config, access, storage, shared, patterns,
                    workgroup, workgroups_per_batch, lanes, probes, lent_probes, watch, lent_watch,
                )  # fmt: skip
            elif what == op.JUMP:
                if row[2] < pc:
                    budget -= 1
                    if budget < 0:
                        record(events, at.BUDGET_SPENT, row[5], workgroup, 0, 0, 0, epoch)
                        return False
                    if config[at.GLANCE] == 1:
                        place[at.NEEDED_LANES] += (pc - row[2]) * place[at.ACTIVE_LANES + place[at.LEVEL]]
                        place[at.ALL_LANES] += (pc - row[2]) * places
                pc = row[2]
            elif what == op.JUMP_ZERO:
                if regs[row[3], 0] == 0:
                    pc = row[2]
            elif what == op.TILE:
                pc += tile(pc - 1, width, lent)
            elif what == op.ADD_UP:
                add_up(width, lent)
            elif what == op.CHECKED:
                checked_sum(regs, row, config, workgroup, lanes, width, probes.checks)
            elif what == op.JUMP_NONE:
                if not some_active(regs, row[6], lanes):
                    pc = row[2]
            elif what == op.NARROW or what == op.RESTORE:
                wanted = width_from(regs, row, place, lanes, width)
                if config[at.GLANCE] == 1 and what == op.NARROW:
                    place[at.ACTIVE_LANES + row[1]] = last_active(regs[row[6]], lanes)
                if wanted == 0:
                    pc = np.int64(row[2])
                elif go_to_level(place, row[1], wanted):
                    add_what_waits(width, queue, lent)
                    break
            elif op.COPY <= what <= op.MASK or what == op.LENGTH:
                move_rows(regs, row, access, lanes, width, config[at.WIDTH])
            elif what == op.BARRIER:
                meet(regs, row, config, workgroup, workgroups_per_batch, epoch, events, lent_watch)
                epoch += 1
                if config[at.STRANDS] > 1:
                    place[at.PC], place[at.LEFT], place[at.PASSED] = pc, budget, epoch
                    return True
            elif what == op.LEARN:
                learn(regs, row[2], patterns, width)
            elif what == op.HALT:
                place[at.PC] = -1
                place[at.MOST] = max(place[at.MOST], config[at.BUDGET] - budget)
                return True
            elif what >= op.FIRST_COLLECTIVE:
                collective(regs, row, config, workgroups_per_batch)
            else:
                atomic(regs, row, access[row[5]], storage, shared, lanes)


@part(NUMBERS, FILES, TABLE, NUMBERS, WORDS, LONG, LONG)
def begin(config, regs, places, order, shared, workgroup, workgroups_per_batch):
    """Put every strand of a batch at the start of the program, in its workgroup of the grid, and fill its memory.

    Where fewer are left than go together, the last one stands in all the other places, too: what it does more than
    once, at the same time, it might as well do once."""
    grid_x, grid_y, wgid = config[at.GRID_X], config[at.GRID_Y], config[at.WGID_ROW]
    size, step = config[at.LANES], config[at.LANE_PITCH]
    for lockstep_group in range(len(regs)):
        places[lockstep_group, at.PC], places[lockstep_group, at.LEFT], places[lockstep_group, at.PASSED] = (
            0,
            config[at.BUDGET],
            0,
        )
        places[lockstep_group, at.LEVEL], places[lockstep_group, at.WIDTHS] = 0, config[at.WIDTH]
        places[lockstep_group, at.ACTIVE_LANES] = workgroups_per_batch * size
        for w in range(config[at.TOGETHER]):
            number = workgroup + min(w, workgroups_per_batch - 1)
            index = order[number] if order.size > 0 else number
            x, y, z = index % grid_x, index // grid_x % grid_y, index // (grid_x * grid_y)
            first = w * config[at.GROUP_PITCH]
            for place in range(first, first + size * step, step):
                (
                    regs[lockstep_group, wgid, place],
                    regs[lockstep_group, wgid + 1, place],
                    regs[lockstep_group, wgid + 2, place],
                ) = x, y, z
    for word in range(shared.size):
        shared[word] = config[at.FILLING]


@part(NUMBERS, LONG, returns=LONG)
def draw_turns(turns, seed):
    """Put the strands in the order in which they go to the next barrier; returns what the next draw starts from."""
    last = turns.size - 1
    for i in range(turns.size):
        turns[i] = last - i if seed == at.BACKWARD else i
    if seed <= 0:
        return seed
    for i in range(last, 0, -1):
        seed = (seed * 25214903917 + 11) & 0xFFFFFFFFFFFF
        other = (seed >> 17) % (i + 1)
        turns[i], turns[other] = turns[other], turns[i]
    return max(seed, 1)


_ALL = types.Tuple(
    (PROGRAM, TABLE, FILES, WORDS, WORDS, TABLE, TABLE, CUBE, TABLE, NUMBERS, NUMBERS, PROBES, WATCH, QUEUE)
)
_recorded = recorded(_ALL)


@part(LONG, returns=LONG, record=_ALL)
def run(address):
    """Run workgroups FIRST to LAST of the grid, on the arrays at this address. Returns how many were finished.

    A workgroup is one strand, or several (the first axis of `configs`, `regs`, `patterns` and `places`), which take
    turns from barrier to barrier.
    """
    code, configs, regs, shared, storage, access, events, patterns, places, turns, order, probes, watch, queue = (
        _recorded(address)
    )
    shared16 = shared.view(np.uint16)
    storage16 = storage.view(np.uint16)
    lent_probes, lent_watch = lend(probes), lend(watch)
    config = configs[0]
    seed = config[at.SEED]
    workgroup = config[at.FIRST]
    while workgroup < config[at.LAST]:
        workgroups_per_batch = min(config[at.TOGETHER], config[at.LAST] - workgroup)
        begin(config, regs, places, order, shared, workgroup, workgroups_per_batch)
        restart(queue)
        if config[at.WATCHES] == 1:
            watch_batch(workgroups_per_batch, lent_watch)
        going = True
        while going:
            going = False
            seed = draw_turns(turns, seed)
            for turn in range(turns.size):
                s = turns[turn]
                if places[s, at.PC] < 0:
                    continue
                if not run_strand(
                    code, configs[s], regs[s], shared, shared16, storage, storage16, access, patterns[s],
                    workgroup, workgroups_per_batch, places[s], events, probes, lent_probes, watch, lent_watch, queue,
                ):  # fmt: skip
                    return workgroup - config[at.FIRST]
                going |= places[s, at.PC] >= 0
        settle(config, workgroups_per_batch, probes)
        workgroup += workgroups_per_batch
        if config[at.STOP] == 1 and watch.races[0, at.NEEDED] > 0:
            break
    return workgroup - config[at.FIRST]
