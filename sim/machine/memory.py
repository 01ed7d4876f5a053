"""Memory instructions: loads, stores and indexed registers.

An address is `row A + lane 0 of row B + C`, in units of the access, wrapping at 2^32; past the access' limit its policy
decides. Lanes that are inactive load too (harmlessly: the address is clamped) and never store.
"""

from __future__ import annotations

import numpy as np

from .compile.units import compiled, inlined
from .lanes import address_of_first, blend, copy, gather, gather_four, pitch_of, repeat, scatter_four, splat, transfer
from .layout import (
    BASE,
    BLOCKS,
    CLAMP,
    CONSECUTIVE,
    COUNT_OF,
    GLOBAL,
    HIGHEST,
    LIMIT,
    LOWEST,
    PERIOD,
    PERIODIC,
    POLICY,
    SCATTERED,
    SHAPE,
    SPACE,
    STAMP,
    STRIDE,
    VECTOR_LANES,
    ZERO,
)


@inlined
def address_of(row, extra, entry):
    """One lane's address after the policy, and whether the access happens."""
    at, limit = np.uint32(row + extra), np.uint32(entry[LIMIT])
    if at <= limit:
        return at, True
    if entry[POLICY] == CLAMP:
        return limit, True
    if entry[POLICY] == ZERO:
        return limit, False
    first = limit - np.uint32((entry[COUNT_OF] - 1) * entry[STRIDE])
    element = np.int64(np.uint32(at - first)) // entry[STRIDE] % entry[COUNT_OF]
    return np.uint32(first + np.uint32(element * entry[STRIDE])), True


@inlined
def shared_part(regs, b, c):
    """The part of an address that all lanes share."""
    extra = np.uint32(c)
    if b >= 0:
        extra = np.uint32(extra + regs[b, 0])
    return extra


@inlined
def inside(known, extra, row):
    """Whether no address of a known pattern is out of bounds."""
    return np.uint64(known[HIGHEST]) + np.uint64(extra) <= np.uint64(np.uint32(row[LIMIT]))


@compiled
def load(into, memory, addresses, extra, row, shifts, lanes):
    """One unit of `memory` (uint32 or uint16 words) for each lane."""
    base = np.uint32(row[BASE])
    limit = np.uint32(row[LIMIT])
    if row[POLICY] == CLAMP:
        gather(into, memory[base:], addresses, extra, limit, shifts, lanes)
        return
    for lane in range(lanes):
        at, happens = address_of(addresses[lane], extra, row)
        at = np.uint32(at + shifts[lane])
        into[lane] = np.uint32(memory[base + at]) if happens else np.uint32(0)


@inlined
def load_units(regs, code, place, memory, row, extra, width):
    """The four units of an access, for each lane: rows `place` to `place + 3` of the program."""
    base, limit, here = np.uint32(row[BASE]), np.uint32(row[LIMIT]), code[place]
    start, pitch = address_of_first(regs), pitch_of(regs)
    one, two, three, four = code[place, 1], code[place + 1, 1], code[place + 2, 1], code[place + 3, 1]
    outs = (start + one * pitch, start + two * pitch, start + three * pitch, start + four * pitch)
    gather_four(outs, memory[base:], regs[here[2]], extra, limit, regs[here[7]], width)


@compiled
def learn(regs, a, patterns, width):
    """Note the pattern of a row of addresses: loads and probes that see it again and again are spared the lanes."""
    row = regs[a]
    known = patterns[a]
    highest = np.uint32(0)
    lowest = row[0]
    uneven = np.uint32(0)
    jumps = np.uint32(0)
    for start in range(0, width, VECTOR_LANES):
        for lane in range(start, start + VECTOR_LANES):
            highest = max(highest, row[lane])
            lowest = min(lowest, row[lane])
            uneven = np.uint32(uneven | (row[lane] ^ row[start]))
    for lane in range(1, width):
        jumps = np.uint32(jumps | (np.uint32(row[lane] - row[lane - 1]) ^ np.uint32(1)))
    known[LOWEST], known[HIGHEST] = lowest, highest
    known[STAMP] += 1
    known[SHAPE] = BLOCKS if uneven == 0 else (CONSECUTIVE if jumps == 0 else SCATTERED)
    period = VECTOR_LANES
    while known[SHAPE] == SCATTERED and period < width:
        differs = np.uint32(0)
        for lane in range(period, width):
            differs = np.uint32(differs | (row[lane] ^ row[lane - period]))
        if differs == 0:
            known[SHAPE], known[PERIOD] = PERIODIC, period
        period *= 2


@compiled
def load_from_known(into, memory, addresses, extra, row, shifts, known, width):
    """`load` by the pattern of its addresses, where none of them can be out of bounds."""
    shape, base = known[SHAPE], np.int64(row[BASE])
    if shape == SCATTERED or not inside(known, extra, row):
        load(into, memory, addresses, extra, row, shifts, width)
    elif shape == BLOCKS:
        for lane in range(0, width, VECTOR_LANES):
            splat(into, lane, memory[base + np.int64(np.uint32(addresses[lane] + extra))])
    elif shape == CONSECUTIVE:
        start = base + np.int64(np.uint32(addresses[0] + extra))
        for lane in range(0, width, VECTOR_LANES):
            transfer(into, lane, memory, start + lane)
    else:
        period = min(known[PERIOD], width)  # of a row that was learnt before lanes were left out
        load(into, memory, addresses, extra, row, shifts, period)
        repeat(into, period, width)


@compiled
def highest_of(row, lanes):
    """The largest of a row of addresses."""
    highest = np.uint32(0)
    for lane in range(lanes):
        highest = max(highest, row[lane])
    return highest


@inlined
def stays_inside(regs, a, extra, row, lanes):
    """Whether no address is out of bounds."""
    return np.uint64(highest_of(regs[a], lanes)) + np.uint64(extra) <= np.uint64(np.uint32(row[LIMIT]))


@inlined
def store_units(regs, code, place, memory, row, extra, lanes):
    """The four units of an access, for each lane of the mask: rows `place` to `place + 3` of the program."""
    here, start, pitch = code[place], address_of_first(regs), pitch_of(regs)
    one, two, three, four = here[1], code[place + 1, 1], code[place + 2, 1], code[place + 3, 1]
    values = (start + one * pitch, start + two * pitch, start + three * pitch, start + four * pitch)
    mask = start + here[6] * pitch if here[6] >= 0 else np.int64(0)
    scatter_four(memory[np.uint32(row[BASE]) :], values, regs[here[2]], extra, regs[here[7]], mask, lanes)


@compiled
def store(regs, memory, d, a, b, c, row, offsets, mask, lanes):
    """One unit of `memory` = D for each lane of the mask, in lane order."""
    extra = shared_part(regs, b, c)
    limit = np.uint32(row[LIMIT])
    if np.uint64(highest_of(regs[a], lanes)) + np.uint64(extra) <= np.uint64(limit):
        store_inside(regs, memory, d, a, extra, row, offsets, mask, lanes)
        return
    base = np.int64(row[BASE])
    for lane in range(lanes):
        if mask < 0 or regs[mask, lane] != 0:
            at, happens = address_of(regs[a, lane], extra, row)
            if happens:
                memory[base + np.int64(at) + np.int64(regs[offsets, lane])] = memory.dtype.type(regs[d, lane])


@compiled
def store_inside(regs, memory, d, a, extra, row, offsets, mask, lanes):
    """`store` where no address is out of bounds."""
    base = np.int64(row[BASE])
    addresses, values, shifts = regs[a], regs[d], regs[offsets]
    if mask < 0:
        for lane in range(lanes):
            place = base + np.int64(np.uint32(addresses[lane] + extra)) + np.int64(shifts[lane])
            memory[np.uint64(place)] = memory.dtype.type(values[lane])
        return
    active = regs[mask]
    for lane in range(lanes):
        if active[lane] != 0:
            place = base + np.int64(np.uint32(addresses[lane] + extra)) + np.int64(shifts[lane])
            memory[np.uint64(place)] = memory.dtype.type(values[lane])


@compiled
def store_known(regs, memory, d, a, b, c, row, offsets, mask, known, lanes):
    """`store` by the pattern of its addresses: neighbours in one go, and no look at bounds that are known to hold."""
    extra = shared_part(regs, b, c)
    if not inside(known, extra, row):
        store(regs, memory, d, a, b, c, row, offsets, mask, lanes)
    elif known[SHAPE] == CONSECUTIVE and mask < 0 and row[SPACE] == GLOBAL:
        start = np.int64(row[BASE]) + np.int64(np.uint32(regs[a, 0] + extra))
        values = regs[d]
        for lane in range(lanes):
            memory[start + lane] = memory.dtype.type(values[lane])
    else:
        store_inside(regs, memory, d, a, extra, row, offsets, mask, lanes)


@inlined
def all_alike(row, lanes):
    """Whether a row holds one number in all lanes."""
    differs = np.uint32(0)
    for lane in range(lanes):
        differs = np.uint32(differs | (row[lane] ^ row[0]))
    return differs == 0


@compiled
def pick(regs, d, a, b, c, lanes):
    """D = row (A + row B), lane by lane, clamped to C rows."""
    if all_alike(regs[b], lanes):
        copy(regs, d, np.int32(a + np.int32(min(regs[b, 0], np.uint32(c - 1)))), lanes)
        return
    for lane in range(lanes):
        at = min(regs[b, lane], np.uint32(c - 1))
        regs[d, lane] = regs[a + np.int64(at), lane]


@compiled
def put(regs, d, a, b, c, mask, lanes):
    """Row (A + row B) = D in the lanes of the mask."""
    if all_alike(regs[b], lanes):
        row = np.int32(a + np.int32(min(regs[b, 0], np.uint32(c - 1))))
        if mask < 0:
            copy(regs, row, d, lanes)
        else:
            blend(regs, row, d, mask, lanes)
        return
    for lane in range(lanes):
        if mask < 0 or regs[mask, lane] != 0:
            at = min(regs[b, lane], np.uint32(c - 1))
            regs[a + np.int64(at), lane] = regs[d, lane]
