"""Notes of which storage a thread accesses, a bit for each grain: whether two threads have met decides what a run is
worth.

A note may be of more than was accessed, never of less.
"""

# Numba infers the types of compiled functions, which have no annotations.
# pyright: basic

from __future__ import annotations

import numpy as np

from . import instruction as field
from . import layout as at
from . import opcodes as op
from .compile.units import inlined, part
from .kinds import INSTRUCTION, LONG, NUMBERS, REGISTERS, WORDS
from .memory import address_of, all_ones, shared_part

_WORD_BITS = 5
_LAST_BIT = (1 << _WORD_BITS) - 1
_EVERY_BIT = 0xFFFFFFFF


@inlined
def bits_from(grain):
    """Return the bits of this grain and those after it in its word."""
    return np.uint32((_EVERY_BIT << (grain & _LAST_BIT)) & _EVERY_BIT)


@inlined
def bits_to(grain):
    """Return the bits of this grain and those before it in its word."""
    return np.uint32(_EVERY_BIT >> (_LAST_BIT - (grain & _LAST_BIT)))


@inlined
def note_range(noted, first, last):
    """Note the grains from `first` to `last`."""
    start, end = first >> _WORD_BITS, last >> _WORD_BITS
    if start == end:
        noted[start] |= np.uint32(bits_from(first) & bits_to(last))
        return
    noted[start] |= bits_from(first)
    for word in range(start + 1, end):
        noted[word] = np.uint32(_EVERY_BIT)
    noted[end] |= bits_to(last)


@inlined
def is_regular(addresses, step, lanes):
    """Whether each lane's address is `step` after that of the lane before it."""
    differs = np.uint32(0)
    for lane in range(1, lanes):
        differs = np.uint32(differs | (np.uint32(addresses[lane] - addresses[lane - 1]) ^ step))
    return differs == 0


@part(REGISTERS, INSTRUCTION, NUMBERS, NUMBERS, WORDS, LONG)
def note_accesses(regs, row, config, entry, noted, lanes):
    """Note the units that the active lanes of an access store or load. `entry`: of its first unit."""
    addresses, extra = regs[row[field.ADDRESS]], shared_part(regs, row)
    masked, mask = row[field.MASK] >= 0, regs[max(row[field.MASK], np.int32(0))]
    grains = entry[at.UNIT] // config[at.GRAIN]  # of a unit
    size, every = entry[at.UNITS] * grains, (not masked) or all_ones(mask, lanes)
    if every and is_regular(addresses, np.uint32(entry[at.UNITS]), lanes):
        first = np.int64(np.uint32(addresses[at.FIRST_LANE] + extra))
        last = first + (lanes - 1) * entry[at.UNITS]
        if last <= np.int64(np.uint32(entry[at.LIMIT])):
            note_range(noted, (entry[at.BASE] + first) * grains, (entry[at.BASE] + last) * grains + size - 1)
            return
    word, bits = np.int64(0), np.uint32(0)  # neighbors often share a word, which is then noted once
    for lane in range(lanes):
        if masked and mask[lane] == 0:
            continue
        address, happens = address_of(addresses[lane], extra, entry)
        if not happens:
            continue
        first = (entry[at.BASE] + np.int64(address)) * grains
        last = first + size - 1
        if last >> _WORD_BITS != word:
            noted[word] |= bits
            word, bits = last >> _WORD_BITS, np.uint32(0)
        if first >> _WORD_BITS == word:
            bits = np.uint32(bits | (bits_from(first) & bits_to(last)))
        else:
            note_range(noted, first, last)
    noted[word] |= bits


@inlined
def are_neighbors(code, place):
    """Whether the access in instruction `place` and the three after it are several accesses, not units of one."""
    return code[place + field.FOUR - 1, field.ACCESS] - code[place, field.ACCESS] != field.FOUR - 1


@inlined
def note_stores(regs, code, place, config, access, stored, lanes):
    """Note what the store in instruction `place` stores, and the three after it if they are other accesses."""
    row = code[place]
    unit = row[field.ACCESS] % field.FOUR
    if unit == 0:  # all units of an access are stored, one after the other
        note_accesses(regs, row, config, access[row[field.ACCESS]], stored, lanes)
    if row[field.OP] == op.STORE_FOUR and are_neighbors(code, place):
        for i in range(place + 1, place + field.FOUR):
            note_accesses(regs, code[i], config, access[code[i, field.ACCESS]], stored, lanes)
