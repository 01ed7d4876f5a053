"""Turns: which lockstep group of a batch goes on next, and whether any of them can still go on.

A group goes on until it meets a barrier, turns in a loop that may wait for others, or ends; and with SWITCHES until an
atomic operation, a subgroup operation or an access that races. Groups that spin pause until all others have had a turn.
The batch is stuck if a state comes back in which all groups spin or wait at a barrier.

`turns` is a row of `TURNS_TAKEN`, the list of groups that are ready, and by workgroup of the batch how many of its
groups wait at a barrier, and how many have not ended.
"""

# Numba infers the types of compiled functions, which have no annotations.
# pyright: basic

from __future__ import annotations

import numpy as np

from . import layout as at
from .compile.units import compiled, inlined, part
from .kinds import FILES, LONG, NUMBERS, TABLE, WORDS

NONE, STUCK = -1, -2  # instead of a group
_FIRST_GROUP = 0  # whose config holds what all groups share
LIST = at.TURNS_TAKEN.size
MOST_COMPARED = 8  # states that are compared with one
_PATIENCE = 4  # turns for each group before those that spin go on
_PRIME = 0x100000001B3  # of FNV-1a hashes
_LONGEST = 12  # bits of the steps between two drops of a priority


@inlined
def drawn(turns, below):
    """Draw a number."""
    turns[at.TURN_SEED] = (turns[at.TURN_SEED] * 25214903917 + 11) & 0xFFFFFFFFFFFF
    return (turns[at.TURN_SEED] >> 17) % below


@compiled
def shuffle(turns, groups):
    """List all groups in an order that is drawn."""
    for i in range(groups):
        turns[LIST + i] = i
    for i in range(groups - 1, 0, -1):
        other = drawn(turns, i + 1)
        turns[LIST + i], turns[LIST + other] = turns[LIST + other], turns[LIST + i]
    turns[at.TURN_SEED] = max(turns[at.TURN_SEED], 1)


@part(NUMBERS, TABLE, TABLE)
def begin_turns(turns, configs, progress):
    """Prepare the turns of a batch, whose groups are at the start of the program."""
    groups, beside, config = len(progress), configs[_FIRST_GROUP, at.BESIDE], configs[_FIRST_GROUP]
    seed = turns[at.TURN_SEED]
    for i in range(LIST):
        turns[i] = 0
    turns[at.TURN_SEED], turns[at.TURN_CHANGED], turns[at.TURN_WORK] = seed, 1, config[at.WORK]
    if config[at.PICK] == at.PRIORITIES:
        shuffle(turns, groups)
        for i in range(groups):
            progress[turns[LIST + i], at.PRIORITY] = i + 1
        next_drop(turns, config)
    for w in range(beside):
        turns[LIST + groups + w] = turns[LIST + groups + beside + w] = 0
    for s in range(groups):
        runs = progress[s, at.PC] >= 0
        progress[s, at.STOPPED] = at.SPINS if runs else at.ENDED  # the first turn wakes all
        progress[s, at.SPUN_AT] = progress[s, at.AWAITED] = 0
        progress[s, at.PATIENCE_LEFT] = config[at.PATIENCE]
        turns[LIST + groups + beside + configs[s, at.PLACE]] += np.int64(runs)


@inlined
def next_drop(turns, config):
    """Draw when the group that goes on loses its priority."""
    turns[at.TURN_DROP_AT] = -1
    if turns[at.TURN_DROPS] < config[at.DEPTH] - 1:
        turns[at.TURN_DROP_AT] = turns[at.TURN_STEPS] + 1 + drawn(turns, 1 << (1 + drawn(turns, _LONGEST)))


@part(NUMBERS, TABLE, TABLE, FILES, WORDS, WORDS, returns=LONG)
def next_group(turns, configs, progress, regs, shared, storage):
    """Return the group that goes on; NONE if all have ended, STUCK if none ever will."""
    config = configs[_FIRST_GROUP]
    if config[at.PICK] == at.ROUNDS:
        if turns[at.TURN_NEXT] >= turns[at.TURN_LISTED]:
            if is_stuck(turns, config, progress, regs, shared, storage):
                return STUCK
            begin_round(turns, config, progress)
            if turns[at.TURN_LISTED] == 0:
                return NONE
        turns[at.TURN_NEXT] += 1
        turns[at.TURN_STEPS] += 1
        return turns[LIST + turns[at.TURN_NEXT] - 1]
    empty = turns[at.TURN_LISTED] == 0
    if empty or turns[at.TURN_STEPS] - turns[at.TURN_WOKEN] > _PATIENCE * len(progress):
        if empty and is_stuck(turns, config, progress, regs, shared, storage):
            return STUCK
        wake(turns, progress)
        if turns[at.TURN_LISTED] == 0:
            return NONE
    turns[at.TURN_STEPS] += 1
    if config[at.PICK] == at.DRAWN:
        turns[at.TURN_NEXT] = drawn(turns, turns[at.TURN_LISTED])
    else:
        by_priority(turns, config, progress)
    return turns[LIST + turns[at.TURN_NEXT]]


@compiled
def begin_round(turns, config, progress):
    """List all groups that are ready or spin, in the order of the next round."""
    groups, each = len(progress), len(progress) // config[at.BESIDE]
    if config[at.SEED] > 0:
        shuffle(turns, groups)
    else:
        for i in range(groups):  # workgroups are in launch order, which is descending, too, for BACKWARD
            turns[LIST + i] = i + each - 1 - 2 * (i % each) if config[at.SEED] == at.BACKWARD else i
    listed = 0
    for i in range(groups):
        s = turns[LIST + i]
        if progress[s, at.STOPPED] == at.SPINS:
            progress[s, at.STOPPED] = at.READY
        if progress[s, at.STOPPED] == at.READY:
            turns[LIST + listed] = s
            listed += 1
    turns[at.TURN_LISTED], turns[at.TURN_NEXT] = listed, 0


@compiled
def wake(turns, progress):
    """List the groups that spin with those that are ready."""
    for s in range(len(progress)):
        if progress[s, at.STOPPED] == at.SPINS:
            progress[s, at.STOPPED] = at.READY
            turns[LIST + turns[at.TURN_LISTED]] = s
            turns[at.TURN_LISTED] += 1
    turns[at.TURN_WOKEN], turns[at.TURN_NEXT] = turns[at.TURN_STEPS], -1


@compiled
def by_priority(turns, config, progress):
    """Set TURN_NEXT to the ready group of the highest priority, once the present one has lost its own if it must."""
    if turns[at.TURN_NEXT] >= 0 and turns[at.TURN_STEPS] == turns[at.TURN_DROP_AT]:
        turns[at.TURN_DROPS] += 1
        progress[turns[LIST + turns[at.TURN_NEXT]], at.PRIORITY] = -turns[at.TURN_DROPS]
        next_drop(turns, config)
        turns[at.TURN_NEXT] = -1
    elif turns[at.TURN_STEPS] == turns[at.TURN_DROP_AT]:
        turns[at.TURN_DROP_AT] += 1
    if turns[at.TURN_NEXT] < 0:
        best = 0
        for i in range(1, turns[at.TURN_LISTED]):
            if progress[turns[LIST + i], at.PRIORITY] > progress[turns[LIST + best], at.PRIORITY]:
                best = i
        turns[at.TURN_NEXT] = best


@part(NUMBERS, TABLE, TABLE, LONG, returns=LONG)
def after_turn(turns, configs, progress, s):
    """Note why a group has stopped. Returns whether all of its workgroup that have not ended wait at a barrier."""
    groups, beside, w = len(progress), configs[_FIRST_GROUP, at.BESIDE], configs[s, at.PLACE]
    waiting, running = LIST + groups + w, LIST + groups + beside + w
    if progress[s, at.PC] < 0:
        progress[s, at.STOPPED] = at.ENDED
    stopped = progress[s, at.STOPPED]
    if stopped == at.ENDED:
        turns[running] -= 1
        turns[at.TURN_CHANGED] = 1
    elif stopped == at.AT_BARRIER:
        turns[waiting] += 1
        progress[s, at.SPUN_AT] = 0
    elif stopped == at.SPINS:
        if progress[s, at.SPUN_AT] != progress[s, at.PC]:
            turns[at.TURN_CHANGED] = 1
        progress[s, at.SPUN_AT] = progress[s, at.PC]
    if configs[_FIRST_GROUP, at.PICK] != at.ROUNDS and stopped != at.READY:
        turns[at.TURN_LISTED] -= 1
        turns[LIST + turns[at.TURN_NEXT]] = turns[LIST + turns[at.TURN_LISTED]]
        turns[at.TURN_NEXT] = -1
    return np.int64(0 < turns[waiting] == turns[running])


@part(NUMBERS, TABLE, TABLE, LONG)
def release(turns, configs, progress, w):
    """Let the groups of a workgroup that wait at a barrier go on."""
    groups, each = len(progress), len(progress) // configs[_FIRST_GROUP, at.BESIDE]
    turns[LIST + groups + w], turns[at.TURN_CHANGED] = 0, 1
    for s in range(w * each, (w + 1) * each):
        if progress[s, at.STOPPED] == at.AT_BARRIER:
            progress[s, at.STOPPED] = at.READY
            if configs[_FIRST_GROUP, at.PICK] != at.ROUNDS:
                turns[LIST + turns[at.TURN_LISTED]] = s
                turns[at.TURN_LISTED] += 1
                turns[at.TURN_NEXT] = -1


# ---- states that come back ---------------------------------------------------------------------------


@compiled
def is_stuck(turns, config, progress, regs, shared, storage):
    """Whether the state has come back since all groups had a turn.

    It is compared only where no group has left its loop, met others or ended: with a few before it, at distances that
    double. Where turns are drawn, it has to come back each time.
    """
    if turns[at.TURN_CHANGED] == 1:
        turns[at.TURN_CHANGED] = turns[at.TURN_STILL] = 0
        return False
    turns[at.TURN_STILL] += 1
    still = turns[at.TURN_STILL]
    begins = still & (still - 1) == 0
    if turns[at.TURN_COMPARED] == MOST_COMPARED and not begins:
        return False
    state = state_of(progress, regs, shared, storage)
    turns[at.TURN_COMPARED] += 1
    turns[at.TURN_SAME] += np.int64(still > 1 and state == turns[at.TURN_STATE])
    is_fixed = config[at.PICK] == at.ROUNDS and config[at.SEED] <= 0
    if turns[at.TURN_SAME] == (1 if is_fixed else MOST_COMPARED):
        return True
    if begins:
        turns[at.TURN_STATE], turns[at.TURN_COMPARED], turns[at.TURN_SAME] = state, 0, 0
    return False


@compiled
def state_of(progress, regs, shared, storage):
    """Return a hash of all that decides what the groups do next."""
    state = np.int64(1)
    for s in range(len(progress)):
        state = (state ^ progress[s, at.PC]) * _PRIME
        if progress[s, at.PC] >= 0:
            for level in range(at.LEVELS):
                state = (state ^ progress[s, at.WIDTHS + level]) * _PRIME
            rows = regs[s]
            for row in range(len(rows)):
                values = rows[row]
                for lane in range(len(values)):
                    state = (state ^ np.int64(values[lane])) * _PRIME
    for word in range(shared.size):
        state = (state ^ np.int64(shared[word])) * _PRIME
    for word in range(storage.size):
        state = (state ^ np.int64(storage[word])) * _PRIME
    return state
