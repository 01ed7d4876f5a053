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
from .barriers import at_barrier, meet
from .checks import checked_sum
from .compile.by_address import lend
from .compile.units import compiled, inlined, part, recorded
from .endless import still_differs
from .kinds import CUBE, FILES, LONG, NUMBERS, PROGRAM, TABLE, WORDS
from .lanes import address_of_first, blend, both, copy, fill, pitch_of
from .loads_and_stores import load_or_store
from .memory import address_of, learn, pick, put, put_all, shared_part
from .opcodes import first_opcode
from .probes import PROBES, probe, settle
from .shadow import WATCH, watch_batch
from .subgroups import collective
from .tiles import QUEUE, add_up, add_what_waits, restart, tile
from .turns import NONE, STUCK, after_turn, begin_turns, next_group, release

_HALF, _INTEGER, _CONVERSION, _CURVE = (first_opcode(each) for each in ("half", "integer", "conversion", "curve"))
_FIRST_PROBE, _SCALAR = op.FIRST_PROBE, op.SCALAR
_DISPATCH = 16  # lanes that take as long to compute as an instruction takes to begin
_LAST_LOOP = at.MOST_LOOPS - 1
_GOES_ON, _PAUSES = -1, -2  # instead of why a lockstep group stops
_PATIENCE = 1 << 8  # backward jumps after which a loop of a lockstep group may wait for others
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
def width_from(regs, row, config, progress, lanes, width):
    """Return how many lanes to compute from a `narrow` or `restore` on; 0 if it jumps."""
    if row[field.OP] == op.RESTORE:
        return progress[at.WIDTHS + row[field.LEVEL]]
    if config[at.SAMPLING] == 1:
        progress[at.ACTIVE_LANES + row[field.LEVEL]] = last_active(regs[row[field.MASK]], lanes)
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


@inlined
def run_atomic(regs, row, access, storage, shared, progress, after, lanes, shares):
    """Run an atomic operation. `after`: the next instruction; `shares`: lockstep groups take turns."""
    if shares:
        note_awaited(regs, row, access, progress, after, lanes)
    atomic(regs, row, access[row[field.ACCESS]], storage, shared, lanes)


@compiled
def note_awaited(regs, row, access, progress, after, lanes):
    """Note an atomic operation, and where its first active lane finds its word."""
    lane, mask = 0, row[field.MASK]
    while mask >= 0 and lane < lanes - 1 and regs[mask, lane] == 0:
        lane += 1
    address, _ = address_of(regs[row[field.ADDRESS], lane], shared_part(regs, row), access[row[field.ACCESS]])
    progress[at.AWAITED] = after
    progress[at.AWAITED_PLACE] = np.int64(address)


@inlined
def jump_back(
    regs, shared, storage, snapshot, row, config, progress, after, budget, work,
    width, lanes_in_use, shares, patient_until, queue, context,
):  # fmt: skip
    """Count an iteration. `after`: the instruction after the jump. Returns the iterations and the work that are left,
    and why the lockstep group stops, if it does."""
    budget -= 1
    work -= row[field.COST] * (width + _DISPATCH) + row[field.COST_ONCE] * (1 + _DISPATCH)
    loop = min(row[field.LOOP], _LAST_LOOP)
    progress[at.TURNS + loop] += 1
    progress[at.TURNED + loop] = budget
    if config[at.SAMPLING] == 1:
        needed = progress[at.ACTIVE_LANES + progress[at.LEVEL]]
        progress[at.NEEDED_LANES] += (after - row[field.TARGET]) * needed
        progress[at.ALL_LANES] += (after - row[field.TARGET]) * lanes_in_use
    if budget < 0 or work < 0:
        add_what_waits(width, queue, context)
        if budget < 0 or not still_differs(regs, shared, storage, snapshot, row[field.LOOP], progress):
            progress[at.PAUSED] = 1 + row[field.LOOP]
            return budget, work, np.int64(_PAUSES)
    waits = shares and row[field.WAITS] == 1
    if waits:
        budget += 1  # waiting is limited by work alone
        progress[at.PATIENCE_LEFT] -= 1
    if (waits and progress[at.PATIENCE_LEFT] < 0) or (shares and budget < patient_until):
        progress[at.AT_LOOP] = row[field.LOOP]
        return budget, work, np.int64(at.SPINS)
    return budget, work, np.int64(_GOES_ON)


@compiled
def run_lockstep_group(
    code, config, regs, shared, shared16, storage, storage16, access, patterns,
    workgroup, workgroups_per_batch, progress, events, probes, probes_at, watch, watch_at, queue, snapshot, learned,
):  # fmt: skip
    """Continue the program for a batch of workgroups from `workgroup` on, at `progress`.

    Runs to the end or, if a batch has several lockstep groups, until it lets others go on (see `turns`). Returns False
    if it pauses in a loop, because a limit is reached or its state repeats.
    """
    start, pitch, size = address_of_first(regs), pitch_of(regs), config[at.LANES]
    context = lend(  # to `tile` and `add_up`
        (regs, code, access, patterns, storage, shared, queue, probes.checks, size, workgroup, workgroups_per_batch)
    )
    lanes_in_use = (workgroups_per_batch if config[at.LANE_PITCH] == 1 else config[at.WORKGROUPS_PER_BATCH]) * size
    pc, budget, epoch = progress[at.PC], progress[at.BUDGET_LEFT], progress[at.BARRIERS_PASSED]
    work = progress[at.WORK_LEFT]
    shares, switches, patient_until = config[at.LOCKSTEP_GROUPS] > 1, config[at.SWITCHES] == 1, budget - _PATIENCE
    stops = np.int64(_GOES_ON)
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
                pc += load_or_store(
                    regs, code, pc - 1, config, access, storage, storage16, shared, shared16,
                    patterns, probes.stored, lanes, width, switches,
                )  # fmt: skip
                if switches and access[row[field.ACCESS], at.RACING] == 1:
                    stops = at.READY
                    break
            elif what >= _FIRST_PROBE:
                probe(
                    regs, row, config, access, storage, shared, patterns,
                    workgroup, workgroups_per_batch, lanes, probes, probes_at, watch, watch_at,
                )  # fmt: skip
            elif what == op.JUMP:
                if row[field.TARGET] < pc:
                    budget, work, stops = jump_back(
                        regs, shared, storage, snapshot, row, config, progress, pc, budget, work,
                        width, lanes_in_use, shares, patient_until, queue, context,
                    )  # fmt: skip
                pc = np.int64(row[field.TARGET])
                if stops != _GOES_ON:
                    break
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
                wanted = width_from(regs, row, config, progress, lanes, width)
                if wanted == 0:
                    pc = np.int64(row[field.TARGET])
                elif go_to_level(progress, row[field.LEVEL], wanted):
                    add_what_waits(width, queue, context)
                    break
            elif op.COPY <= what <= op.MASK or what == op.LENGTH:
                move_rows(regs, row, access, lanes, width, config[at.WIDTH])
            elif what == op.BARRIER:
                epoch += 1
                if shares:
                    stops = at.AT_BARRIER
                    break
                at_barrier(regs, row, config, workgroup, workgroups_per_batch, epoch - 1, events, watch_at)
            elif what == op.LEARN:
                learn(regs, row, patterns, learned, width)
            elif what == op.HALT:
                progress[at.PC] = -1
                progress[at.BUDGET_USED] = max(progress[at.BUDGET_USED], config[at.BUDGET] - budget)
                return True
            else:
                if what >= op.FIRST_COLLECTIVE:
                    collective(regs, row, config, workgroups_per_batch)
                else:
                    run_atomic(regs, row, access, storage, shared, progress, pc, lanes, shares)
                if switches:
                    stops = at.READY
                    break
        if stops != _GOES_ON:
            add_what_waits(width, queue, context)
            progress[at.PC], progress[at.BUDGET_LEFT], progress[at.BARRIERS_PASSED] = pc, budget, epoch
            progress[at.WORK_LEFT] = work
            if stops == _PAUSES:
                return False
            progress[at.STOPPED] = stops
            return True


@compiled
def pause_spinning(progress):
    """Pause all lockstep groups that spin: the state has come back."""
    for s in range(len(progress)):
        if progress[s, at.STOPPED] == at.SPINS:
            progress[s, at.PAUSED], progress[s, at.REPEATED] = 1 + progress[s, at.AT_LOOP], 1


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
        shared[word] = 0
    if config[at.FILL_WORDS] > 0:
        for first in range(config[at.FILL_WORD], shared.size, config[at.FILL_PITCH]):
            for word in range(first, first + config[at.FILL_WORDS]):
                shared[word] = (config[at.FILL] + word * config[at.FILL_STEP]) & 0xFFFFFFFF


_ALL = types.Tuple((
    PROGRAM, TABLE, FILES, WORDS, WORDS, TABLE, TABLE, CUBE, TABLE, NUMBERS, NUMBERS, PROBES, WATCH, QUEUE, WORDS,
    FILES,
))  # fmt: skip
_recorded = recorded(_ALL)


@part(LONG, returns=LONG, record=_ALL)
def run(address):
    """Run workgroups FIRST_WORKGROUP to END_WORKGROUP, on the arrays at this address. Returns how many finished.

    A batch is one lockstep group or several, each a workgroup or a part of one, which take turns. Groups are the first
    axis of `configs`, `regs`, `patterns`, `progress` and `learned`. RESUMES continues a batch of one lockstep group
    that has paused.
    """
    (
        code, configs, regs, shared, storage, access, events, patterns, progress, turns, order, probes, watch, queue,
        snapshot, learned,
    ) = _recorded(address)  # fmt: skip
    shared16 = shared.view(np.uint16)
    storage16 = storage.view(np.uint16)
    probes_at, watch_at = lend(probes), lend(watch)
    config = configs[_FIRST_GROUP]
    turns[at.TURN_SEED] = config[at.SEED]
    workgroup, resumes, shares = config[at.FIRST_WORKGROUP], config[at.RESUMES] == 1, config[at.LOCKSTEP_GROUPS] > 1
    while workgroup < config[at.END_WORKGROUP]:
        in_batch = max(config[at.WORKGROUPS_PER_BATCH], config[at.BESIDE])
        workgroups_per_batch = min(in_batch, config[at.END_WORKGROUP] - workgroup)
        per_row = np.int64(1) if shares else workgroups_per_batch
        if resumes:
            progress[_FIRST_GROUP, at.PAUSED] = 0
        else:
            begin(configs, regs, progress, order, shared, workgroup, workgroups_per_batch)
            restart(queue)
            if config[at.WATCHES] == 1:
                watch_batch(workgroups_per_batch, watch_at)
            if shares:
                begin_turns(turns, configs, progress)
        resumes = False
        s = np.int64(_FIRST_GROUP)
        while s >= 0:
            if shares:
                s = next_group(turns, configs, progress, regs, shared, storage)
                if s == NONE:
                    break
                if s == STUCK:
                    pause_spinning(progress)
                    return workgroup - config[at.FIRST_WORKGROUP]
                progress[s, at.WORK_LEFT] = turns[at.TURN_WORK]
            if not run_lockstep_group(
                code, configs[s], regs[s], shared, shared16, storage, storage16, access, patterns[s],
                workgroup + configs[s, at.PLACE], per_row, progress[s], events, probes, probes_at, watch, watch_at,
                queue, snapshot, learned[s],
            ):  # fmt: skip
                return workgroup - config[at.FIRST_WORKGROUP]
            if not shares:
                break
            turns[at.TURN_WORK] = progress[s, at.WORK_LEFT]
            if after_turn(turns, configs, progress, s) == 1:
                meet(code, configs, regs, progress, s, events, workgroup, watch_at)
                release(turns, configs, progress, configs[s, at.PLACE])
        settle(config, order, workgroup, workgroups_per_batch, probes)
        workgroup += workgroups_per_batch
        if config[at.STOP] == 1 and watch.races[at.HEADER, at.BARRIER_NEEDED] > 0:
            break
    return workgroup - config[at.FIRST_WORKGROUP]
