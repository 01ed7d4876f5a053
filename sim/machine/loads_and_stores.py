"""Loads and stores: of one unit, or of four in consecutive instructions at once."""

# Numba infers the types of compiled functions, which have no annotations.
# pyright: basic

from __future__ import annotations

import numpy as np

from . import instruction as field
from . import layout as at
from . import opcodes as op
from .compile.units import inlined, part
from .kinds import HALVES, INSTRUCTION, LONG, NUMBERS, PROGRAM, REGISTERS, TABLE, WORDS
from .memory import (
    are_apart,
    load,
    load_from_known,
    load_units,
    shared_part,
    stays_inside,
    store,
    store_known,
    store_units,
)
from .thread_accesses import are_neighbors, note_stores


@inlined
def load_or_store(
    regs, code, place, config, access, storage, storage16, shared, shared16, patterns, stored, lanes, width, switches
):
    """Run the load or store in instruction `place`, and the three after it if that is the same. Returns how many of
    these it has run."""
    row = code[place]
    what = row[field.OP]
    if what >= op.STORE and stored.size > 1 and access[row[field.ACCESS], at.SPACE] == at.GLOBAL:
        note_stores(regs, code, place, config, access, stored, lanes)
    at_once = np.int64(0)
    if what == op.STORE_FOUR:
        at_once = store_four(regs, code, place, access, storage, storage16, shared, shared16, lanes, switches)
    elif what <= op.LOAD_KNOWN and row[field.MASK] == field.FOUR and should_load_four(row, patterns):
        at_once = load_four(regs, code, place, access, storage, storage16, shared, shared16, width, switches)
    if at_once:
        return field.FOUR - 1
    memory_row(regs, row, access, storage, storage16, shared, shared16, patterns, lanes, width)
    return 0


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
def should_load_four(row, patterns):
    """Whether to load four units at once: loads with a known pattern are faster one by one."""
    return row[field.OP] == op.LOAD or patterns[row[field.ADDRESS], at.SHAPE] == at.SCATTERED


@inlined
def four_inside(regs, code, place, access, lanes):
    """Whether no address of the access in instruction `place` and the three after it is out of bounds."""
    row, last = code[place], code[place + field.FOUR - 1]
    entry, addresses = access[row[field.ACCESS]], row[field.ADDRESS]
    return stays_inside(regs, addresses, shared_part(regs, row), entry, lanes) and (
        not are_neighbors(code, place) or stays_inside(regs, addresses, shared_part(regs, last), entry, lanes)
    )


@part(REGISTERS, PROGRAM, LONG, TABLE, WORDS, HALVES, WORDS, HALVES, LONG, LONG, returns=LONG)
def load_four(regs, code, place, access, storage, storage16, shared, shared16, width, switches):
    """Run the load in instruction `place` and the three after it. Returns 0, and loads nothing, if that would differ
    from one by one: out of bounds, or if lockstep groups switch between them."""
    row = code[place]
    entry, extra, neighbors = access[row[field.ACCESS]], shared_part(regs, row), are_neighbors(code, place)
    if neighbors and switches:
        return 0
    if (neighbors or entry[at.POLICY] != at.CLAMP) and not four_inside(regs, code, place, access, width):
        return 0
    if entry[at.UNIT] == 2:
        load_units(regs, code, place, shared16 if entry[at.SPACE] == at.SHARED else storage16, entry, extra, width)
    else:
        load_units(regs, code, place, shared if entry[at.SPACE] == at.SHARED else storage, entry, extra, width)
    return 1


@part(REGISTERS, PROGRAM, LONG, TABLE, WORDS, HALVES, WORDS, HALVES, LONG, LONG, returns=LONG)
def store_four(regs, code, place, access, storage, storage16, shared, shared16, lanes, switches):
    """Run the store in instruction `place` and the three after it. Returns 0, and stores nothing, if that would differ
    from one by one: out of bounds, if lanes may overlap, or if lockstep groups switch between them."""
    row = code[place]
    entry, extra, neighbors = access[row[field.ACCESS]], shared_part(regs, row), are_neighbors(code, place)
    if neighbors and (switches or not are_apart(regs[row[field.ADDRESS]], lanes)):
        return 0
    if not four_inside(regs, code, place, access, lanes):
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
