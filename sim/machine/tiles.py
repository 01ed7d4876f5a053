"""Sums of products, many at once.

A `tile` says that the rows after it are the factors and the sums of an outer product: `regs[D] = A * B + regs[D]` for
every A of some and every B of others. It changes nothing that the rows would not do one by one, in this order; where it
cannot, they do. A tile's factors go to a queue, and its sums wait for more factors where the program lets them: then a
sum stays in a register of the processor for many steps, and `add_up` adds what is queued.

In the queue a factor is as small as its lanes allow: see FULL, SAME and SPLAT.

Of sums that are to be checked those before are kept till those after have been seen to be finite (see `checks`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from . import layout as at
from . import opcodes as op
from .checks import all_finite, look_at_sum
from .compile.by_address import borrower
from .compile.units import compiled, inlined, kind_of, part
from .kinds import LONG, PROGRAM, REGISTERS, TABLE, WORDS
from .lanes import address_of_first, data_of, gather_four, generated, row_of, spread, vector_at
from .layout import VECTOR_LANES
from .memory import inside, load, load_from_known, shared_part
from .opcodes import scalar_opcodes
from .probe_arrays import make_queue

# What a factor is in the queue: a row; 16 lanes that all others repeat; one number for each 16 lanes.
FULL, SAME, SPLAT, IMPOSSIBLE = 0, 1, 2, -1
_MOVES = (VECTOR_LANES, 0, 1)  # words from one 16 lanes to the next, by form
_VECTOR = 4 * VECTOR_LANES  # bytes

_BLOCK = 4  # sums of that many rows and columns of a tile stay in registers; what is left over goes one by one
_BLOCKS = tuple((m, n) for m in (_BLOCK, 1) for n in (_BLOCK, 1))
_SPLATS = ((False, False), (True, False), (False, True))  # whether A's, and B's, are SPLAT
_CODES = tuple(scalar_opcodes()[name] for name in op.TILED)

# What is in the queue: how many tiles wait, in which row of the program their sums begin, and what is alike in all.
_STEPS, _FIRST, _SUMS, _ROWS, _COLUMNS, _FORM_A, _FORM_B = range(7)


QUEUE = kind_of(make_queue(np.zeros(1, np.uint32), np.zeros(1, np.uint32)))
_CONTEXT = types.Tuple((REGISTERS, PROGRAM, TABLE, TABLE, WORDS, WORDS, QUEUE, TABLE, LONG, LONG, LONG))
_borrowed = borrower(_CONTEXT)


# ---- factors -----------------------------------------------------------------------------------------


@inlined
def form_of(regs, row, access, patterns):
    """The smallest form of a factor that this row of the program brings."""
    if row[0] == op.BROADCAST:
        return SPLAT
    if row[0] == op.COPY:
        return FULL
    entry = access[row[5]]
    if entry[at.UNIT] != 4:
        return IMPOSSIBLE
    if row[0] == op.LOAD_KNOWN and inside(patterns[row[2]], shared_part(regs, row[3], row[4]), entry):
        known = patterns[row[2]]
        if known[at.SHAPE] == at.BLOCKS:
            return SPLAT
        return SAME if known[at.SHAPE] == at.PERIODIC and known[at.PERIOD] == VECTOR_LANES else FULL
    return FULL if entry[at.POLICY] == at.CLAMP else IMPOSSIBLE


@inlined
def joined(form, other):
    """The form that two factors can both have."""
    if form == IMPOSSIBLE or other == IMPOSSIBLE:
        return IMPOSSIBLE
    return form if form == other else FULL


@inlined
def size_of(form, width):
    """Words of a factor in the queue."""
    return width if form == FULL else (width // VECTOR_LANES + VECTOR_LANES - 1) // VECTOR_LANES * VECTOR_LANES


@inlined
def bring(regs, row, form, into, access, patterns, storage, shared, width):
    """Put a factor into the queue."""
    addresses = regs[row[2]]
    if row[0] == op.BROADCAST:
        for i in range(into.size):
            into[i] = addresses[0]
        return
    if row[0] == op.COPY:
        for lane in range(width):
            into[lane] = addresses[lane]
        return
    entry = access[row[5]]
    memory = shared if entry[at.SPACE] == at.SHARED else storage
    extra, shifts = shared_part(regs, row[3], row[4]), regs[row[7]]
    if form == SPLAT:
        base = np.int64(entry[at.BASE])
        for i in range(width // VECTOR_LANES):
            into[i] = memory[np.uint64(base + np.int64(np.uint32(addresses[i * VECTOR_LANES] + extra)))]
    elif form == SAME:
        load(into, memory, addresses, extra, entry, shifts, VECTOR_LANES)
    elif row[0] == op.LOAD_KNOWN:
        load_from_known(into, memory, addresses, extra, entry, shifts, patterns[row[2]], width)
    else:
        load(into, memory, addresses, extra, entry, shifts, width)


@inlined
def neighbours(code, first):
    """Whether four rows load four words that follow each other, in one array, from the same addresses."""
    alike = code[first, 0] == op.LOAD_KNOWN
    for i in range(first + 1, first + 4):
        row, before = code[i], code[i - 1]
        alike &= row[0] == before[0] and row[2] == before[2] and row[3] == before[3] and row[7] == before[7]
        next_word = row[5] == before[5] and row[4] == before[4] + 1
        next_unit = row[5] == before[5] + 1 and row[4] == before[4] and row[5] % op.FOUR != 0
        alike &= next_word or next_unit
    return alike


@inlined
def bring_four(regs, row, into, access, storage, shared):
    """Put four factors that are neighbours, and SAME, into the queue."""
    entry = access[row[5]]
    memory = shared if entry[at.SPACE] == at.SHARED else storage
    extra, base, start = shared_part(regs, row[3], row[4]), np.uint32(entry[at.BASE]), address_of_first(into)
    outs = (start, start + _VECTOR, start + 2 * _VECTOR, start + 3 * _VECTOR)
    # All are in bounds, the last one too: no limit is needed.
    gather_four(outs, memory[base:], regs[row[2]], extra, np.uint32(0xFFFFFFFF), regs[row[7]], VECTOR_LANES)


# ---- sums --------------------------------------------------------------------------------------------


def _fused(builder: Any, a: Any, b: Any, c: Any) -> Any:
    kind = ir.FunctionType(a.type, (a.type,) * 3)
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{VECTOR_LANES}f32")
    return builder.call(function, (a, b, c))


# The scalar operations on vectors, which LLVM does not make of functions by itself; the tests hold each against them.
_ON_VECTORS: dict[str, Callable[..., Any]] = {
    "mad_f32": lambda builder, a, b, c: builder.fadd(builder.fmul(a, b), c),
    "fma_f32": _fused,
}


@generated
def _sum_up(
    typingctx, which, regs, code, first, pitch, words, a, a_next, a_move, b, b_next, b_move, step, steps, vectors
):  # type: ignore[no-untyped-def]
    """Case `which` of `_CASES`: sums row `first + i * pitch + j` of the program has in D, for each A `i` and B `j`.

    A number i is at word `a + i * a_next` of the queue, `a_move` further on for each 16 lanes and `step` for each step;
    so is B.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        done = builder.append_basic_block("tile.done")
        switch = builder.switch(args[0], done)
        for number, case in enumerate(_CASES):
            block = builder.append_basic_block("tile")
            switch.add_case(ir.Constant(args[0].type, number), block)
            builder.position_at_end(block)
            _block(context, builder, signature, args, *case)
            builder.branch(done)
        builder.position_at_end(done)
        return context.get_dummy_value()

    longs = (types.int64,) * 2, (types.int64,) * 9
    return types.void(types.int64, regs, code, *longs[0], words, *longs[1]), codegen


_CASES = tuple((name, *size, *splats) for name in op.TILED for size in _BLOCKS for splats in _SPLATS)


def _block(
    context: Any, builder: Any, signature: Any, args: Any, name: str, m: int, n: int, a_splat: bool, b_splat: bool
) -> None:
    """One case of `_sum_up`: all steps of 16 lanes, then those of the next 16."""
    _, regs, code, first, pitch, words, a, a_next, a_move, b, b_next, b_move, step, steps, vectors = args
    long, number = ir.IntType(64), ir.FloatType()
    queue = data_of(context, builder, signature.args[5], words, number)
    program = data_of(context, builder, signature.args[2], code, ir.IntType(32))

    def constant(value: int) -> Any:
        return ir.Constant(long, value)

    def sum_of(i: int, j: int) -> Any:
        row = builder.add(builder.add(first, constant(j)), builder.mul(pitch, constant(i)))
        field = builder.gep(program, [builder.add(builder.mul(row, constant(op.FIELDS)), constant(op.D))])
        return row_of(context, builder, signature.args[1], regs, builder.load(field), number)

    def factor(start: Any, splat: bool) -> Any:
        if splat:
            return spread(builder, builder.load(start))
        return builder.load(vector_at(builder, start, constant(0), number), align=4)

    sums = [sum_of(i, j) for i in range(m) for j in range(n)]
    with cgutils.for_range(builder, vectors) as vector:
        lane = builder.mul(vector.index, constant(VECTOR_LANES))
        places = [vector_at(builder, row, lane, number) for row in sums]
        before = [builder.load(place, align=4) for place in places]
        starts = [
            builder.gep(queue, [builder.add(begin, builder.mul(constant(i), following))])
            for begin, following, count in (
                (builder.add(a, builder.mul(vector.index, a_move)), a_next, m),
                (builder.add(b, builder.mul(vector.index, b_move)), b_next, n),
            )
            for i in range(count)
        ]
        entered, head, tail = builder.block, builder.append_basic_block("step"), builder.append_basic_block("steps")
        builder.branch(head)
        builder.position_at_end(head)
        turn, moved = builder.phi(long), builder.phi(long)
        running = [builder.phi(each.type) for each in before]
        factors = [factor(builder.gep(p, [moved]), a_splat if i < m else b_splat) for i, p in enumerate(starts)]
        after = [
            _ON_VECTORS[name](builder, factors[i // n], factors[m + i % n], each) for i, each in enumerate(running)
        ]
        more = builder.add(turn, constant(1))
        onward = [(turn, constant(0), more), (moved, constant(0), builder.add(moved, step))]
        for phi, start, following in [*onward, *zip(running, before, after, strict=True)]:
            phi.add_incoming(start, entered)
            phi.add_incoming(following, head)
        builder.cbranch(builder.icmp_signed("<", more, steps), head, tail)
        builder.position_at_end(tail)
        for value, place in zip(after, places, strict=True):
            builder.store(value, place, align=4)


# ---- what the machine calls --------------------------------------------------------------------------


@inlined
def restart(queue):
    """Nothing waits any more."""
    queue.state[_STEPS] = 0


@inlined
def is_fused(row):
    """Whether a sum rounds once."""
    return row[0] == _CODES[1] or (row[0] == op.CHECKED and row[5] == op.FUSED)


@compiled
def keep_sums(regs, code, first, count, kept, width):
    """Keep the sums as they are now."""
    for i in range(count):
        row, into = regs[code[first + i, 1]], kept[i * width :]
        for lane in range(width):
            into[lane] = row[lane]


@compiled
def sums_stay_finite(regs, code, first, count, lanes):
    """Whether all sums are finite, and so have been."""
    finite = True
    for i in range(count):
        finite &= all_finite(regs[code[first + i, 1]], lanes)
    return finite


@inlined
def factor_at(words, start, form, lane):
    """A factor, which begins there in the queue, in one lane."""
    return words[start + lane // VECTOR_LANES * (1 if form == SPLAT else (VECTOR_LANES if form == FULL else 0))
                 + (0 if form == SPLAT else lane % VECTOR_LANES)]  # fmt: skip


@part(LONG, LONG, LONG)
def look_back(steps, width, lent):
    """Look at each sum that was made of what is queued, from those that are kept on, in the order of the program."""
    _, code, _, _, _, _, queue, checks, size, workgroup, workgroups_per_batch = _borrowed(lent)
    state, factors, sums = queue.state, queue.words.view(np.float32), queue.kept.view(np.float32)
    m, n, a_form, b_form = state[_ROWS], state[_COLUMNS], state[_FORM_A], state[_FORM_B]
    a_size, b_size = size_of(a_form, width), size_of(b_form, width)
    for turn in range(steps):
        start = turn * (m * a_size + n * b_size)
        for i in range(m * n):
            row, running = code[queue.begins[turn] + i], sums[i * width :]
            a_start, b_start = start + i // n * a_size, start + m * a_size + i % n * b_size
            for lane in range(workgroups_per_batch * size):
                a, b = factor_at(factors, a_start, a_form, lane), factor_at(factors, b_start, b_form, lane)
                group = workgroup + lane // size
                running[lane] = look_at_sum(row, a, b, running[lane], checks, lane % size, group)


@part(LONG, LONG)
def add_up(width, lent):
    """Add the products of what is queued, and empty the queue."""
    regs, code, _, _, _, _, queue, _, lanes, _, workgroups_per_batch = _borrowed(lent)
    state = queue.state
    steps, first, m, n = state[_STEPS], state[_FIRST], state[_ROWS], state[_COLUMNS]
    if steps == 0:
        return
    state[_STEPS] = 0
    checked = code[first, 0] == op.CHECKED
    if checked:
        keep_sums(regs, code, first, m * n, queue.kept, width)
    a_form, b_form = state[_FORM_A], state[_FORM_B]
    a_next, b_next = size_of(a_form, width), size_of(b_form, width)
    name = np.int64(is_fused(code[first]))
    splats = 1 if a_form == SPLAT else (2 if b_form == SPLAT else 0)
    i = 0
    while i < m:
        rows = _BLOCK if i + _BLOCK <= m else 1
        j = 0
        while j < n:
            columns = _BLOCK if j + _BLOCK <= n else 1
            size = 2 * np.int64(rows == 1) + np.int64(columns == 1)
            which = (name * len(_BLOCKS) + size) * len(_SPLATS) + splats
            _sum_up(
                which, regs, code, first + i * n + j, n, queue.words, i * a_next, a_next, _MOVES[a_form],
                m * a_next + j * b_next, b_next, _MOVES[b_form], m * a_next + n * b_next, steps, width // VECTOR_LANES,
            )  # fmt: skip
            j += columns
        i += rows
    if checked and not sums_stay_finite(regs, code, first, m * n, workgroups_per_batch * lanes):
        look_back(steps, width, lent)


@inlined
def add_what_waits(width, queue, lent):
    """`add_up`, before other lanes are computed than those of what is queued."""
    if queue.state[_STEPS] > 0:
        add_up(width, lent)


@part(LONG, LONG, LONG, returns=LONG)
def tile(place, width, lent):
    """The tile in row `place`: queue its factors. The sums are added when the queue is full, or at once where they may
    not wait. Returns how many of the rows after it are done with that."""
    regs, code, access, patterns, storage, shared, queue, _, _, _, _ = _borrowed(lent)
    row, state = code[place], queue.state
    m, n, first = np.int64(row[2]), np.int64(row[3]), place + 1
    a_form = b_form = FULL
    for i in range(m + n):
        form = form_of(regs, code[first + i], access, patterns)
        if i < m:
            a_form = form if i == 0 else joined(a_form, form)
        else:
            b_form = form if i == m else joined(b_form, form)
    if a_form == IMPOSSIBLE or b_form == IMPOSSIBLE:
        add_up(width, lent)
        return 0
    if a_form == SPLAT and b_form == SPLAT:
        b_form = FULL
    a_size, b_size = size_of(a_form, width), size_of(b_form, width)
    step = m * a_size + n * b_size
    alike = state[_SUMS] == row[1] and state[_FORM_A] == a_form and state[_FORM_B] == b_form
    if not alike or (state[_STEPS] + 1) * step > queue.words.size:
        add_up(width, lent)
    state[_FIRST], state[_SUMS], state[_ROWS], state[_COLUMNS] = first + m + n, row[1], m, n
    state[_FORM_A], state[_FORM_B] = a_form, b_form
    queue.begins[state[_STEPS]] = first + m + n
    start, i = state[_STEPS] * step, 0
    while i < m + n:
        form, size, end = (a_form, a_size, m) if i < m else (b_form, b_size, m + n)
        into = queue.words[start : start + size]
        if form == SAME and size == VECTOR_LANES and i + 4 <= end and neighbours(code, first + i):
            bring_four(regs, code[first + i], into, access, storage, shared)
            start, i = start + 4 * size, i + 4
        else:
            bring(regs, code[first + i], form, into, access, patterns, storage, shared, width)
            start, i = start + size, i + 1
    state[_STEPS] += 1
    if row[5] == 0:
        add_up(width, lent)
    return m + n + m * n
