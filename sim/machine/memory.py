"""Memory instructions: loads, stores and indexed registers.

An address is `row A + lane 0 of row B + C`, in units of the access, wrapping at 2^32; past the access' limit its policy
decides. Lanes that are inactive load too (harmlessly: the address is clamped) and never store.
"""

from __future__ import annotations

import numpy as np

from .jit import compiled
from .lanes import gather
from .layout import BASE, CLAMP, LIMIT, POLICY, ZERO


@compiled
def address_of(row, extra, limit, policy):
    """One lane's address after the policy, and whether the access happens."""
    at = np.uint32(row + extra)
    if at <= limit:
        return at, True
    if policy == CLAMP:
        return limit, True
    if policy == ZERO:
        return limit, False
    return np.uint32(at % (np.uint64(limit) + np.uint64(1))), True


@compiled
def shared_part(regs, b, c):
    """The part of an address that all lanes share."""
    extra = np.uint32(c)
    if b >= 0:
        extra = np.uint32(extra + regs[b, 0])
    return extra


@compiled
def load(regs, memory, d, a, b, c, row, offsets, lanes):
    """D = one unit of `memory` (uint32 or uint16 words) for each lane."""
    extra = shared_part(regs, b, c)
    base = np.uint32(row[BASE])
    limit = np.uint32(row[LIMIT])
    if row[POLICY] == CLAMP:
        gather(regs, memory[base:], d, a, extra, limit, offsets, lanes)
        return
    for lane in range(lanes):
        at, happens = address_of(regs[a, lane], extra, limit, row[POLICY])
        at = np.uint32(at + regs[offsets, lane])
        regs[d, lane] = np.uint32(memory[base + at]) if happens else np.uint32(0)


@compiled
def store(regs, memory, d, a, b, c, row, offsets, mask, lanes):
    """One unit of `memory` = D for each lane of the mask, in lane order."""
    extra = shared_part(regs, b, c)
    base = np.uint32(row[BASE])
    limit = np.uint32(row[LIMIT])
    policy = row[POLICY]
    for lane in range(lanes):
        if mask < 0 or regs[mask, lane] != 0:
            at, happens = address_of(regs[a, lane], extra, limit, policy)
            if happens:
                memory[base + np.uint32(at + regs[offsets, lane])] = memory.dtype.type(regs[d, lane])


@compiled
def pick(regs, d, a, b, c, lanes):
    """D = row (A + row B), lane by lane, clamped to C rows."""
    for lane in range(lanes):
        at = min(regs[b, lane], np.uint32(c - 1))
        regs[d, lane] = regs[a + np.int64(at), lane]


@compiled
def put(regs, d, a, b, c, mask, lanes):
    """Row (A + row B) = D in the lanes of the mask."""
    for lane in range(lanes):
        if mask < 0 or regs[mask, lane] != 0:
            at = min(regs[b, lane], np.uint32(c - 1))
            regs[a + np.int64(at), lane] = regs[d, lane]
