"""The main loop of the machine: runs a program over a range of workgroups, a batch of them side by side in the lanes.

Each instruction works on all lanes of the batch. `opcodes` and `instruction` declare the instructions, `layout` the
arrays.
"""

# Numba infers the types of compiled functions, which have no annotations.
# pyright: basic

from __future__ import annotations

import numpy as np
from numba import types

from . import instruction as field
from . import layout as at
from . import opcodes as op
from .alu import conversion, curve, float_, half, integer
from .atomics import atomic
from .checks import checked_sum
from .compile.by_address import lend
from .compile.units import compiled, inlined, part, recorded
from .endless import still_differs
from .kinds import CUBE, FILES, HALVES, INSTRUCTION, LONG, NUMBERS, PROGRAM, REGISTERS, TABLE, WORDS
from .lanes import address_of_first, blend, both, copy, fill, pitch_of
from .memory import (
    learn,
    load,
    load_from_known,
    load_units,
    pick,
    put,
    put_all,
    shared_part,
    stays_inside,
    store,
    store_known,
    store_units,
)
from .opcodes import first_opcode
from .probes import PROBES, probe, settle
from .shadow import WATCH, watch_barrier, watch_batch
from .subgroups import collective
from .tiles import QUEUE, add_up, add_what_waits, restart, tile

_HALF, _INTEGER, _CONVERSION, _CURVE = (first_opcode(each) for each in ("half", "integer", "conversion", "curve"))
_FIRST_PROBE, _SCALAR = op.FIRST_PROBE, op.SCALAR
_ABSENT_LANES = 1024  # that an event can name
_DISPATCH = 16  # lanes that take as long to compute as an instruction takes to begin
_LAST_LOOP = at.MOST_LOOPS - 1
_NEVER = 1 << 62
_FIRST_GROUP = 0  # the lockstep group whose config holds what all groups share


@inlined
def scalar(start, pitch, row, lanes):
    """Run a scalar operation on register rows."""
    code, d, a, b, c, e = row[field.OP], row[field.DEST], row[field.A], row[field.B], row[field.C], row[field.E]
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
    """Whether any lane of a mask is active."""
    seen = np.uint32(0)
    for lane in range(lanes):
        seen = np.uint32(seen | regs[mask, lane])
    return seen != 0


@compiled
def lanes_up_to(regs, mask, lanes):
    """Return the number of lanes up to the last active one of a mask, in whole vectors."""
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
    """Return the number of lanes up to the last active one of a mask."""
    while lanes > 0 and mask[lanes - 1] == 0:
        lanes -= 1
    return lanes


@compiled
def record(events, kind, site, workgroup, lane, detail, epoch):
    """Record an event: the first of each kind and site with details, the others as a count.

    Returns the row of a first event, else 0.
    """
    place = 1
    recorded = events[at.HEADER, at.RECORDED]
    while place <= recorded and (events[place, at.KIND] != kind or events[place, at.SITE] != site):
        place += 1
    if place < len(events):
        row = events[place]
        row[at.TIMES] += 1
        if place <= recorded:
            return 0
        events[at.HEADER, at.RECORDED] = place
        row[at.KIND], row[at.SITE], row[at.EVENT_WORKGROUP], row[at.EVENT_LANE] = kind, site, workgroup, lane
        row[at.DETAIL], row[at.EPOCH] = detail, epoch
        return place
    return 0


@part(REGISTERS, INSTRUCTION, NUMBERS, LONG, LONG, LONG, TABLE)
def barrier(regs, row, config, workgroup, workgroups_per_batch, epoch, events):
    """Record an event for each workgroup of which some lanes, but not all, are at a barrier."""
    mask, site = row[field.MASK], row[field.SITE]
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
            new = record(events, at.DIVERGED, site, workgroup + w, absent, size - active, epoch)
            for lane in range(min(size, _ABSENT_LANES) if new > 0 else 0):
                missing = np.int64(regs[mask, first + lane * step] == 0)
                events[new, at.ABSENT + lane // at.ABSENT_BITS] |= missing << (lane % at.ABSENT_BITS)


@inlined
def at_barrier(regs, row, config, workgroup, workgroups_per_batch, epoch, events, watch_at):
    """Run a barrier: order memory in the shadows, and check that no lane is missing."""
    if config[at.WATCHES] == 1:
        watch_barrier(regs, row, config, workgroup, workgroups_per_batch, watch_at)
    if row[field.MASK] >= 0:
        barrier(regs, row, config, workgroup, workgroups_per_batch, epoch, events)


@inlined
def access_memory(regs, row, entry, memory, patterns, lanes, width):
    """Run a load or a store on this memory."""
    if row[field.OP] == op.STORE or row[field.OP] == op.STORE_FOUR:
        store(regs, memory, row, entry, lanes)
    elif row[field.OP] == op.STORE_KNOWN:
        store_known(regs, memory, row, entry, patterns[row[field.ADDRESS]], lanes)
    else:
        extra, addresses, shifts = shared_part(regs, row), regs[row[field.ADDRESS]], regs[row[field.SHIFTS]]
        lanes = np.int64(1) if row[field.MASK] == field.ONE_LANE else width
        load(regs[row[field.DEST]], memory, addresses, extra, entry, shifts, lanes)


@inlined
def memory_row(regs, row, access, storage, storage16, shared, shared16, patterns, lanes, width):
    """Run a load or a store, on the memory and with the unit size of its access."""
    entry = access[row[field.ACCESS]]
    if entry[at.UNIT] == 2:
        access_halves(regs, row, entry, shared16 if entry[at.SPACE] == at.SHARED else storage16, patterns, lanes, width)
    elif row[field.OP] == op.LOAD_KNOWN:
        memory = shared if entry[at.SPACE] == at.SHARED else storage
        extra, addresses, shifts = shared_part(regs, row), regs[row[field.ADDRESS]], regs[row[field.SHIFTS]]
        known = patterns[row[field.ADDRESS]]
        load_from_known(regs[row[field.DEST]], memory, addresses, extra, entry, shifts, known, width)
    else:
        access_words(regs, row, entry, shared if entry[at.SPACE] == at.SHARED else storage, patterns, lanes, width)


@inlined
def four_at_once(row, access, patterns):
    """Whether to load four units at once: loads with a known pattern are faster one by one."""
    known = row[field.OP] == op.LOAD_KNOWN and patterns[row[field.ADDRESS], at.SHAPE] != at.SCATTERED
    return not known and access[row[field.ACCESS], at.POLICY] == at.CLAMP


@part(REGISTERS, PROGRAM, LONG, TABLE, WORDS, HALVES, WORDS, HALVES, LONG)
def load_four(regs, code, place, access, storage, storage16, shared, shared16, width):
    """Run the load in instruction `place` and the three after it."""
    row = code[place]
    entry, extra = access[row[field.ACCESS]], shared_part(regs, row)
    if entry[at.UNIT] == 2:
        load_units(regs, code, place, shared16 if entry[at.SPACE] == at.SHARED else storage16, entry, extra, width)
    else:
        load_units(regs, code, place, shared if entry[at.SPACE] == at.SHARED else storage, entry, extra, width)


@part(REGISTERS, PROGRAM, LONG, TABLE, WORDS, HALVES, WORDS, HALVES, LONG, returns=LONG)
def store_four(regs, code, place, access, storage, storage16, shared, shared16, lanes):
    """Run the store in instruction `place` and the three after it. Returns 0, and stores nothing, if out of bounds."""
    row = code[place]
    entry, extra = access[row[field.ACCESS]], shared_part(regs, row)
    if not stays_inside(regs, row[field.ADDRESS], extra, entry, lanes):
        return 0
    if entry[at.UNIT] == 2:
        store_units(regs, code, place, shared16 if entry[at.SPACE] == at.SHARED else storage16, entry, extra, lanes)
    else:
        store_units(regs, code, place, shared if entry[at.SPACE] == at.SHARED else storage, entry, extra, lanes)
    return 1


@part(REGISTERS, INSTRUCTION, NUMBERS, WORDS, TABLE, LONG, LONG)
def access_words(regs, row, entry, memory, patterns, lanes, width):
    access_memory(regs, row, entry, memory, patterns, lanes, width)


@part(REGISTERS, INSTRUCTION, NUMBERS, HALVES, TABLE, LONG, LONG)
def access_halves(regs, row, entry, memory, patterns, lanes, width):
    access_memory(regs, row, entry, memory, patterns, lanes, width)


@inlined
def move_rows(regs, row, access, lanes, width, whole):
    """Run an operation that only moves registers. `whole` is the width of a row, tail lanes included."""
    what = row[field.OP]
    if what == op.BLEND:
        blend(regs, row[field.DEST], row[field.A], row[field.MASK], width)
    elif what == op.COPY:
        copy(regs, row[field.DEST], row[field.A], np.int64(1) if row[field.MASK] == field.ONE_LANE else width)
    elif what == op.BROADCAST:
        fill(regs, row[field.DEST], regs[row[field.A], at.FIRST_LANE], width)
    elif what == op.PICK:
        pick(regs, row[field.DEST], row[field.BASE_ROW], row[field.INDEX], row[field.COUNT], lanes)
    elif what == op.PUT:
        put(regs, row[field.DEST], row[field.BASE_ROW], row[field.INDEX], row[field.COUNT], row[field.MASK], lanes)
    elif what == op.PUT_ALL:
        put_all(regs, row[field.DEST], row[field.BASE_ROW], row[field.COUNT], row[field.MASK], width)
    elif what == op.LENGTH:
        fill(regs, row[field.DEST], np.uint32(access[row[field.ACCESS], at.COUNT_OF]), width)
    else:
        both(regs, row[field.DEST], row[field.A], row[field.B], whole)


@inlined
def width_from(regs, row, progress, lanes, width):
    """Return how many lanes to compute from an `narrow` or `restore` on; 0 if it jumps."""
    if row[field.OP] == op.RESTORE:
        return progress[at.WIDTHS + row[field.LEVEL]]
    wanted = lanes_up_to(regs, row[field.MASK], lanes)
    if wanted == 0 and row[field.TARGET] >= 0:
        return np.int64(0)
    return min(max(wanted, np.int64(at.VECTOR_LANES)), width)


@inlined
def go_to_level(progress, level, width):
    """Set the number of lanes to compute. Returns whether it changes."""
    changes = progress[at.WIDTHS + progress[at.LEVEL]] != width
    progress[at.LEVEL], progress[at.WIDTHS + level] = level, width
    return changes


@compiled
def run_lockstep_group(
    code, config, regs, shared, shared16, storage, storage16, access, patterns,
    workgroup, workgroups_per_batch, progress, events, probes, probes_at, watch, watch_at, queue, snapshot,
):  # fmt: skip
    """Continue the program for a batch of workgroups from `workgroup` on, at `progress`.

    Runs to the end or, if a batch has several lockstep groups, to the next barrier, or to the end of an iteration of a
    loop that waits for others. Returns False if it pauses in a
    loop, because a limit is reached or its state repeats.
    """
    start, pitch, size = address_of_first(regs), pitch_of(regs), config[at.LANES]
    context = lend(  # to `tile` and `add_up`
        (regs, code, access, patterns, storage, shared, queue, probes.checks, size, workgroup, workgroups_per_batch)
    )
    lanes_in_use = (workgroups_per_batch if config[at.LANE_PITCH] == 1 else config[at.WORKGROUPS_PER_BATCH]) * size
    pc, budget, epoch = progress[at.PC], progress[at.BUDGET_LEFT], progress[at.BARRIERS_PASSED]
    work = progress[at.WORK_LEFT]
    while True:  # once per change of the width, which is constant in the inner loop
        width = progress[at.WIDTHS + progress[at.LEVEL]]
        lanes = min(lanes_in_use, width)
        while True:
            row = code[pc]
            what = row[field.OP]
            pc += 1
            if what >= _SCALAR:
                scalar(start, pitch, row, np.int64(1) if row[field.MASK] == field.ONE_LANE else width)
            elif op.LOAD <= what <= op.STORE_FOUR and what != op.LEARN:
                if what <= op.LOAD_KNOWN and row[field.MASK] == field.FOUR and four_at_once(row, access, patterns):
                    load_four(regs, code, pc - 1, access, storage, storage16, shared, shared16, width)
                    pc += field.FOUR - 1
                elif what == op.STORE_FOUR and store_four(
                    regs, code, pc - 1, access, storage, storage16, shared, shared16, lanes
                ):
                    pc += field.FOUR - 1
                else:
                    memory_row(regs, row, access, storage, storage16, shared, shared16, patterns, lanes, width)
            elif what >= _FIRST_PROBE:
                probe(
                    regs, row, config, access, storage, shared, patterns,
                    workgroup, workgroups_per_batch, lanes, probes, probes_at, watch, watch_at,
                )  # fmt: skip
            elif what == op.JUMP:
                if row[field.TARGET] < pc:
                    budget -= 1
                    work -= row[field.COST] * (width + _DISPATCH)
                    loop = min(row[field.LOOP], _LAST_LOOP)
                    progress[at.TURNS + loop] += 1
                    progress[at.TURNED + loop] = budget
                    if config[at.SAMPLING] == 1:
                        needed = progress[at.ACTIVE_LANES + progress[at.LEVEL]]
                        progress[at.NEEDED_LANES] += (pc - row[field.TARGET]) * needed
                        progress[at.ALL_LANES] += (pc - row[field.TARGET]) * lanes_in_use
                    if budget < 0 or work < 0:
                        add_what_waits(width, queue, context)
                        if budget < 0 or not still_differs(regs, shared, storage, snapshot, row[field.LOOP], progress):
                            progress[at.PC], progress[at.BARRIERS_PASSED] = row[field.TARGET], epoch
                            progress[at.BUDGET_LEFT], progress[at.WORK_LEFT] = budget, work
                            progress[at.PAUSED] = 1 + row[field.LOOP]
                            return False
                    if row[field.WAITS] == 1 and config[at.LOCKSTEP_GROUPS] > 1:
                        progress[at.PC], progress[at.BUDGET_LEFT] = row[field.TARGET], budget
                        progress[at.BARRIERS_PASSED], progress[at.WORK_LEFT] = epoch, work
                        return True
                pc = row[field.TARGET]
            elif what == op.JUMP_ZERO:
                if regs[row[field.CONDITION], at.FIRST_LANE] == 0:
                    pc = row[field.TARGET]
            elif what == op.TILE:
                pc += tile(pc - 1, width, context)
            elif what == op.ADD_UP:
                add_up(width, context)
            elif what == op.CHECKED:
                checked_sum(regs, row, config, workgroup, lanes, width, probes.checks)
            elif what == op.JUMP_NONE:
                if not some_active(regs, row[field.MASK], lanes):
                    pc = row[field.TARGET]
            elif what == op.NARROW or what == op.RESTORE:
                wanted = width_from(regs, row, progress, lanes, width)
                if config[at.SAMPLING] == 1 and what == op.NARROW:
                    progress[at.ACTIVE_LANES + row[field.LEVEL]] = last_active(regs[row[field.MASK]], lanes)
                if wanted == 0:
                    pc = np.int64(row[field.TARGET])
                elif go_to_level(progress, row[field.LEVEL], wanted):
                    add_what_waits(width, queue, context)
                    break
            elif op.COPY <= what <= op.MASK or what == op.LENGTH:
                move_rows(regs, row, access, lanes, width, config[at.WIDTH])
            elif what == op.BARRIER:
                at_barrier(regs, row, config, workgroup, workgroups_per_batch, epoch, events, watch_at)
                epoch += 1
                if config[at.LOCKSTEP_GROUPS] > 1:
                    progress[at.PC], progress[at.BUDGET_LEFT], progress[at.BARRIERS_PASSED] = pc, budget, epoch
                    progress[at.WORK_LEFT] = work
                    return True
            elif what == op.LEARN:
                learn(regs, row[field.ADDRESS], patterns, width)
            elif what == op.HALT:
                progress[at.PC] = -1
                progress[at.BUDGET_USED] = max(progress[at.BUDGET_USED], config[at.BUDGET] - budget)
                return True
            elif what >= op.FIRST_COLLECTIVE:
                collective(regs, row, config, workgroups_per_batch)
            else:
                atomic(regs, row, access[row[field.ACCESS]], storage, shared, lanes)


@part(TABLE, FILES, TABLE, NUMBERS, WORDS, LONG, LONG)
def begin(configs, regs, progress, order, shared, workgroup, workgroups_per_batch):
    """Set every lockstep group of a batch to the start of the program, set workgroup_id, and fill workgroup memory.

    In a batch that is not full, the last workgroup also occupies the remaining lanes: doing the same several times at
    once changes no result.
    """
    config = configs[_FIRST_GROUP]
    grid_x, grid_y, row_x = config[at.GRID_X], config[at.GRID_Y], config[at.WGID_ROW]
    row_y, row_z = row_x + 1, row_x + 2
    size, step = config[at.LANES], config[at.LANE_PITCH]
    for lockstep_group in range(len(regs)):
        progress[lockstep_group, at.PC] = progress[lockstep_group, at.BARRIERS_PASSED] = 0
        progress[lockstep_group, at.BUDGET_LEFT] = config[at.BUDGET]
        progress[lockstep_group, at.WORK_LEFT] = config[at.WORK]
        progress[lockstep_group, at.PAUSED] = progress[lockstep_group, at.TO_COMPARE] = 0
        for loop in range(at.MOST_LOOPS):
            progress[lockstep_group, at.TURNS + loop] = 0
        progress[lockstep_group, at.LEVEL], progress[lockstep_group, at.WIDTHS] = 0, config[at.WIDTH]
        progress[lockstep_group, at.ACTIVE_LANES] = workgroups_per_batch * size
        for w in range(config[at.WORKGROUPS_PER_BATCH]):
            number = min(workgroup + w, config[at.END_WORKGROUP] - 1)
            if config[at.BESIDE] > 0:
                number = min(workgroup + configs[lockstep_group, at.PLACE], config[at.END_WORKGROUP] - 1)
            index = order[number] if order.size > 0 else number
            x, y, z = index % grid_x, index // grid_x % grid_y, index // (grid_x * grid_y)
            first = w * config[at.GROUP_PITCH]
            for lane in range(first, first + size * step, step):
                regs[lockstep_group, row_x, lane] = x
                regs[lockstep_group, row_y, lane] = y
                regs[lockstep_group, row_z, lane] = z
        if config[at.BESIDE] > 0 and configs[lockstep_group, at.PLACE] >= workgroups_per_batch:
            progress[lockstep_group, at.PC] = -1
    for word in range(shared.size):
        shared[word] = (config[at.FILL] + word * config[at.FILL_STEP]) & 0xFFFFFFFF


@part(NUMBERS, LONG, returns=LONG)
def draw_turns(turns, seed):
    """Draw the order in which lockstep groups run to the next barrier. Returns the seed of the next draw."""
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


@part(TABLE, NUMBERS, returns=LONG)
def least_epoch(progress, config):
    """Return the fewest barriers that a lockstep group has passed, of those that have not ended.

    Groups that have passed more wait for the others, unless they are workgroups of their own.
    """
    least = _NEVER
    for lockstep_group in range(len(progress)):
        if progress[lockstep_group, at.PC] >= 0 and config[at.BESIDE] == 0:
            least = min(least, progress[lockstep_group, at.BARRIERS_PASSED])
    return least


_ALL = types.Tuple(
    (PROGRAM, TABLE, FILES, WORDS, WORDS, TABLE, TABLE, CUBE, TABLE, NUMBERS, NUMBERS, PROBES, WATCH, QUEUE, WORDS)
)
_recorded = recorded(_ALL)


@part(LONG, returns=LONG, record=_ALL)
def run(address):
    """Run workgroups FIRST_WORKGROUP to END_WORKGROUP, on the arrays at this address. Returns how many finished.

    A workgroup is one lockstep group or several, which take turns from barrier to barrier; or the workgroups of a batch
    (BESIDE) take turns, each a lockstep group. Groups are the first axis of
    `configs`, `regs`, `patterns` and `progress`. RESUMES continues a batch of one lockstep group that has paused.
    """
    (
        code, configs, regs, shared, storage, access, events, patterns, progress, turns, order, probes, watch, queue,
        snapshot,
    ) = _recorded(address)  # fmt: skip
    shared16 = shared.view(np.uint16)
    storage16 = storage.view(np.uint16)
    probes_at, watch_at = lend(probes), lend(watch)
    config = configs[_FIRST_GROUP]
    seed = config[at.SEED]
    workgroup, resumes = config[at.FIRST_WORKGROUP], config[at.RESUMES] == 1
    while workgroup < config[at.END_WORKGROUP]:
        in_batch = max(config[at.WORKGROUPS_PER_BATCH], config[at.BESIDE])
        workgroups_per_batch = min(in_batch, config[at.END_WORKGROUP] - workgroup)
        per_row = np.int64(1) if config[at.BESIDE] > 0 else workgroups_per_batch
        if resumes:
            progress[_FIRST_GROUP, at.PAUSED] = 0
        else:
            begin(configs, regs, progress, order, shared, workgroup, workgroups_per_batch)
            restart(queue)
            if config[at.WATCHES] == 1:
                watch_batch(workgroups_per_batch, watch_at)
        resumes = False
        running = True
        while running:
            running = False
            seed, epoch = draw_turns(turns, seed), least_epoch(progress, config)
            for turn in range(turns.size):
                s = turns[turn]
                if progress[s, at.PC] < 0 or progress[s, at.BARRIERS_PASSED] > epoch:
                    continue
                if not run_lockstep_group(
                    code, configs[s], regs[s], shared, shared16, storage, storage16, access, patterns[s],
                    workgroup + configs[s, at.PLACE], per_row, progress[s], events, probes, probes_at, watch, watch_at,
                    queue, snapshot,
                ):  # fmt: skip
                    return workgroup - config[at.FIRST_WORKGROUP]
                running |= progress[s, at.PC] >= 0
        settle(config, per_row, probes)
        workgroup += workgroups_per_batch
        if config[at.STOP] == 1 and watch.races[at.HEADER, at.BARRIER_NEEDED] > 0:
            break
    return workgroup - config[at.FIRST_WORKGROUP]
