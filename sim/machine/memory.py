"""Memory instructions: loads, stores and indexed registers.

An address is `row ADDRESS + first lane of row SHARED + CONSTANT`, in units of the access, wrapping at 2^32. Past the
limit of the access, its policy applies. Inactive lanes load, too (from an address that is in bounds), but never store.
"""

# Numba infers the types of compiled functions, which have no annotations.
# pyright: basic

from __future__ import annotations

import numpy as np

from . import instruction as field
from .compile.units import compiled, inlined
from .lanes import address_of_first, blend, copy, gather, gather_four, pitch_of, repeat, scatter_four, splat, transfer
from .layout import (
    BASE,
    BLOCKS,
    CLAMP,
    CONSECUTIVE,
    COUNT_OF,
    FIRST_LANE,
    FORM,
    GLOBAL,
    HIGHEST,
    LEARNED_BY,
    LEARNED_LANES,
    LIMIT,
    LOWEST,
    MOVED,
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
    """Return one lane's address after the policy, and whether the access happens."""
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
def shared_part(regs, row):
    """The part of an instruction's addresses that is the same in all lanes."""
    extra = np.uint32(row[field.CONSTANT])
    if row[field.SHARED] >= 0:
        extra = np.uint32(extra + regs[row[field.SHARED], FIRST_LANE])
    return extra


@inlined
def inside(known, extra, row):
    """Whether no address of a known pattern is out of bounds."""
    return np.uint64(known[HIGHEST]) + np.uint64(extra) <= np.uint64(np.uint32(row[LIMIT]))


@inlined
def all_ones(mask, lanes):
    """Whether every lane is active."""
    active = np.uint32(1)
    for lane in range(lanes):
        active &= mask[lane]
    return active == 1


@compiled
def highest_address(row, extra, lanes):
    """Return the largest address of an access."""
    highest = np.uint32(0)
    for lane in range(lanes):
        highest = max(highest, np.uint32(row[lane] + extra))
    return highest


@inlined
def stays_inside(regs, a, extra, row, lanes):
    """Whether no address is out of bounds."""
    return highest_address(regs[a], extra, lanes) <= np.uint32(row[LIMIT])


@compiled
def load(into, memory, addresses, extra, row, shifts, lanes):
    """Load one unit of `memory` (uint32 or uint16) into each lane of a row."""
    base = np.uint32(row[BASE])
    limit = np.uint32(row[LIMIT])
    if row[POLICY] == CLAMP or highest_address(addresses, extra, lanes) <= limit:
        gather(into, memory[base:], addresses, extra, limit, shifts, lanes)
        return
    for lane in range(lanes):
        at, happens = address_of(addresses[lane], extra, row)
        at = np.uint32(at + shifts[lane])
        into[lane] = np.uint32(memory[base + at]) if happens else np.uint32(0)


@inlined
def four_rows(code, place, start, pitch):
    """Return the addresses of the register rows DEST of instructions `place` to `place + 3`."""
    second, third, fourth = place + 1, place + 2, place + 3
    return (
        start + code[place, field.DEST] * pitch,
        start + code[second, field.DEST] * pitch,
        start + code[third, field.DEST] * pitch,
        start + code[fourth, field.DEST] * pitch,
    )


@inlined
def load_units(regs, code, place, memory, entry, extra, width):
    """Load four units into each lane: instructions `place` to `place + 3`."""
    base, limit, row = np.uint32(entry[BASE]), np.uint32(entry[LIMIT]), code[place]
    outs = four_rows(code, place, address_of_first(regs), pitch_of(regs))
    gather_four(outs, memory[base:], regs[row[field.ADDRESS]], extra, limit, regs[row[field.SHIFTS]], width)


@compiled
def learn(regs, row, patterns, learned, width):
    """Find the pattern of a row of addresses, so that loads and probes that use it need not examine each lane."""
    addresses, known, number = regs[row[field.ADDRESS]], patterns[row[field.ADDRESS]], np.int64(row[field.KEEPS])
    kept = learned[number]
    if known[LEARNED_BY] == number and known[LEARNED_LANES] == width and has_moved(addresses, kept, known, width):
        return
    find_pattern(addresses, known, width)
    known[FORM], known[MOVED], known[LEARNED_BY], known[LEARNED_LANES] = known[STAMP], 0, number, width
    for lane in range(width):
        kept[lane] = addresses[lane]


@inlined
def has_moved(addresses, kept, known, width):
    """Whether a row has the kept addresses, shifted, as most often in a loop. If so, its pattern moves with them."""
    shift, differs = np.uint32(addresses[FIRST_LANE] - kept[FIRST_LANE]), np.uint32(0)
    for lane in range(width):
        differs |= np.uint32(addresses[lane] - kept[lane]) ^ shift
    by = np.uint32(shift - np.uint32(known[MOVED]))
    lowest, highest = np.uint32(np.uint32(known[LOWEST]) + by), np.uint32(np.uint32(known[HIGHEST]) + by)
    if differs != 0 or lowest > highest:  # some addresses have wrapped around
        return False
    if by != 0:
        known[LOWEST], known[HIGHEST], known[MOVED] = lowest, highest, shift
        known[STAMP] += 1
    return True


@inlined
def find_pattern(row, known, width):
    """Find the pattern of a row lane by lane."""
    highest = np.uint32(0)
    lowest = row[FIRST_LANE]
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
    """`load` with a known pattern of addresses: faster if all of them are in bounds."""
    shape, base = known[SHAPE], np.int64(row[BASE])
    if shape == SCATTERED or not inside(known, extra, row):
        load(into, memory, addresses, extra, row, shifts, width)
    elif shape == BLOCKS:
        for lane in range(0, width, VECTOR_LANES):
            splat(into, lane, memory[base + np.int64(np.uint32(addresses[lane] + extra))])
    elif shape == CONSECUTIVE:
        start = base + np.int64(np.uint32(addresses[FIRST_LANE] + extra))
        for lane in range(0, width, VECTOR_LANES):
            transfer(into, lane, memory, start + lane)
    else:
        period = min(known[PERIOD], width)  # the row may have been learned with more lanes
        load(into, memory, addresses, extra, row, shifts, period)
        repeat(into, period, width)


@compiled
def are_apart(row, lanes):
    """Whether four words from each address on are those from another address on, or none of them.

    True if addresses are equal modulo four, or ascend by four or more.
    """
    differs = np.uint32(0)
    for lane in range(lanes):
        differs = np.uint32(differs | (row[lane] ^ row[FIRST_LANE]))
    if differs % field.FOUR == 0:
        return True
    ascend = np.uint32(row[FIRST_LANE] - row[lanes - 1]) >= field.FOUR  # the last may be just below 2**32
    for lane in range(1, lanes):
        before, after = row[lane - 1], row[lane]
        ascend &= (after > before) & (np.uint32(after - before) >= field.FOUR)
    return ascend


@inlined
def store_units(regs, code, place, memory, entry, extra, lanes):
    """Store four units from each lane of the mask: instructions `place` to `place + 3`."""
    row, start, pitch = code[place], address_of_first(regs), pitch_of(regs)
    values, addresses, shifts = four_rows(code, place, start, pitch), regs[row[field.ADDRESS]], regs[row[field.SHIFTS]]
    mask = start + row[field.MASK] * pitch if row[field.MASK] >= 0 else np.int64(0)
    scatter_four(memory[np.uint32(entry[BASE]) :], values, addresses, extra, shifts, mask, lanes)


@compiled
def store(regs, memory, row, entry, lanes):
    """Store one unit from each lane of the mask, in lane order."""
    extra, mask = shared_part(regs, row), row[field.MASK]
    if stays_inside(regs, row[field.ADDRESS], extra, entry, lanes):
        store_inside(regs, memory, row, extra, entry, lanes)
        return
    base, addresses = np.int64(entry[BASE]), regs[row[field.ADDRESS]]
    values, shifts = regs[row[field.DEST]], regs[row[field.SHIFTS]]
    for lane in range(lanes):
        if mask < 0 or regs[mask, lane] != 0:
            at, happens = address_of(addresses[lane], extra, entry)
            if happens:
                memory[base + np.int64(at) + np.int64(shifts[lane])] = memory.dtype.type(values[lane])


@compiled
def store_inside(regs, memory, row, extra, entry, lanes):
    """`store` with all addresses in bounds."""
    base, mask = np.int64(entry[BASE]), row[field.MASK]
    addresses, values, shifts = regs[row[field.ADDRESS]], regs[row[field.DEST]], regs[row[field.SHIFTS]]
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
def store_known(regs, memory, row, entry, known, lanes):
    """`store` with a known pattern of addresses: no bounds to check, and consecutive lanes at once."""
    extra, mask = shared_part(regs, row), row[field.MASK]
    if not inside(known, extra, entry):
        store(regs, memory, row, entry, lanes)
    elif known[SHAPE] == CONSECUTIVE and mask < 0 and entry[SPACE] == GLOBAL:
        start = np.int64(entry[BASE]) + np.int64(np.uint32(regs[row[field.ADDRESS], FIRST_LANE] + extra))
        values = regs[row[field.DEST]]
        for lane in range(lanes):
            memory[start + lane] = memory.dtype.type(values[lane])
    else:
        store_inside(regs, memory, row, extra, entry, lanes)


@inlined
def all_alike(row, lanes):
    """Whether all lanes of a row are equal."""
    differs = np.uint32(0)
    for lane in range(lanes):
        differs = np.uint32(differs | (row[lane] ^ row[FIRST_LANE]))
    return differs == 0


@compiled
def pick(regs, d, a, b, c, lanes):
    """Set D to row A + row B, lane by lane, with the index clamped to C - 1."""
    if all_alike(regs[b], lanes):
        copy(regs, d, np.int32(a + np.int32(min(regs[b, FIRST_LANE], np.uint32(c - 1)))), lanes)
        return
    for lane in range(lanes):
        at = min(regs[b, lane], np.uint32(c - 1))
        regs[d, lane] = regs[a + np.int64(at), lane]


@compiled
def put(regs, d, a, b, c, mask, lanes):
    """Set row A + row B to D in the lanes of the mask, with the index clamped to C - 1."""
    if all_alike(regs[b], lanes):
        row = np.int32(a + np.int32(min(regs[b, FIRST_LANE], np.uint32(c - 1))))
        if mask < 0:
            copy(regs, row, d, lanes)
        else:
            blend(regs, row, d, mask, lanes)
        return
    for lane in range(lanes):
        if mask < 0 or regs[mask, lane] != 0:
            at = min(regs[b, lane], np.uint32(c - 1))
            regs[a + np.int64(at), lane] = regs[d, lane]


@compiled
def put_all(regs, d, a, c, mask, lanes):
    """Set C rows from row A on to D in the lanes of the mask."""
    for row in range(a, a + c):
        if mask < 0:
            copy(regs, np.int32(row), d, lanes)
        else:
            blend(regs, np.int32(row), d, mask, lanes)
