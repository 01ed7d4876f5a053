"""Tiles: sums of products, many at once.

A `tile` says that the instructions after it load the factors and compute the sums of an outer product: `DEST = A * B +
DEST` for each of some factors A and each of some factors B. It has the same effect as these instructions one by one, in
this order; if it cannot, they run. The factors of a tile go to a queue, and its sums wait for more factors if the
program allows: a sum then stays in a processor register for many steps, until `add_up` adds what is queued.

A factor takes as few words in the queue as its lanes allow: see FULL, SAME and SPLAT.

If sums are checked, their old values are kept until the new ones are known to be finite (see `checks`).
"""

# Numba infers the types of compiled functions, which have no annotations.
# pyright: basic

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from . import instruction as field
from . import layout as at
from . import opcodes as op
from .checks import all_finite, check_sum_lane
from .compile.by_address import borrower
from .compile.units import compiled, inlined, kind_of, part
from .kinds import LONG, PROGRAM, REGISTERS, TABLE, WORDS
from .lanes import address_of_first, data_of, gather_four, generated, row_of, spread, vector_at
from .layout import FULL, IMPOSSIBLE, SAME, SPLAT, VECTOR_LANES
from .memory import inside, load, load_from_known, shared_part, stays_inside
from .opcodes import scalar_opcodes
from .probe_arrays import make_queue

_NO_LIMIT = 1 << 32
_MOVES = (VECTOR_LANES, 0, 1)  # words from one vector of lanes to the next, by form

# Sums stay in processor registers, of which AVX2 has 16: for 8 lanes, those of 4 rows and 2 columns of a tile. With
# more, most sums go to memory and back in each step. The remaining rows and columns go one by one.
_ROWS, _COLUMNS, _SUMMED_LANES = 4, 2, 8
_BLOCKS = tuple((m, n) for m in (_ROWS, 1) for n in (_COLUMNS, 1))
_SPLATS = ((False, False), (True, False), (False, True))  # whether factors A, and factors B, are SPLAT
_FUSED = scalar_opcodes()[op.TILED_FUSED]


QUEUE = kind_of(make_queue(np.zeros(1, np.uint32), np.zeros(1, np.uint32)))
_CONTEXT = types.Tuple((REGISTERS, PROGRAM, TABLE, TABLE, WORDS, WORDS, QUEUE, TABLE, LONG, LONG, LONG))
_borrowed = borrower(_CONTEXT)


# ---- factors -----------------------------------------------------------------------------------------


@inlined
def form_of(regs, row, access, patterns, width):
    """Return the smallest form of the factor that this instruction loads."""
    if row[field.OP] == op.BROADCAST:
        return SPLAT
    if row[field.OP] == op.COPY:
        return FULL
    entry = access[row[field.ACCESS]]
    if entry[at.UNIT] != 4:
        return IMPOSSIBLE
    known = patterns[row[field.ADDRESS]]
    if row[field.OP] == op.LOAD_KNOWN and inside(known, shared_part(regs, row), entry):
        if known[at.SHAPE] == at.BLOCKS:
            return SPLAT
        return SAME if known[at.SHAPE] == at.PERIODIC and known[at.PERIOD] == VECTOR_LANES else FULL
    if entry[at.POLICY] == at.CLAMP or stays_inside(regs, row[field.ADDRESS], shared_part(regs, row), entry, width):
        return FULL
    return IMPOSSIBLE


@inlined
def joined(form, other):
    """Return a form that two factors can both have."""
    if form == IMPOSSIBLE or other == IMPOSSIBLE:
        return IMPOSSIBLE
    return form if form == other else FULL


@inlined
def are_loaded_together(code, first):
    """Whether four instructions load four consecutive words with a known pattern of addresses."""
    return code[first, field.OP] == op.LOAD_KNOWN and code[first, field.MASK] == field.FOUR


@inlined
def form_of_all(regs, code, first, count, access, patterns, width):
    """Return the smallest form that all of the factors can have that instructions from `first` on load."""
    form, i = np.int64(IMPOSSIBLE), np.int64(0)
    while i < count:
        one = form_of(regs, code[first + i], access, patterns, width)
        form = one if i == 0 else joined(form, one)
        if i + field.FOUR <= count and are_loaded_together(code, first + i):
            i += field.FOUR - 1  # if the first and the last are in bounds, so are those between
            form = joined(form, form_of(regs, code[first + i], access, patterns, width))
        i += 1
    return form


@compiled
def room_of(code, first, count, access, patterns):
    """Return up to which shared part of their addresses all of the factors are in bounds.

    -1 if none, or if instructions from `first` on do not load them all with one known pattern of addresses.
    """
    row, room = code[first], np.int64(_NO_LIMIT)
    for i in range(first, first + count):
        same = code[i, field.ADDRESS] == row[field.ADDRESS] and code[i, field.SHARED] == row[field.SHARED]
        if not same or code[i, field.OP] != op.LOAD_KNOWN:
            return np.int64(-1)
        limit = np.int64(np.uint32(access[code[i, field.ACCESS], at.LIMIT]))
        room = min(room, limit - np.int64(np.uint32(code[i, field.CONSTANT])))
    return max(room - patterns[row[field.ADDRESS], at.HIGHEST], np.int64(-1))


@inlined
def is_within(regs, row, room):
    """Whether the shared part of the addresses of factors that are loaded like this one is at most `room`."""
    shared = np.int64(regs[row[field.SHARED], at.FIRST_LANE]) if row[field.SHARED] >= 0 else np.int64(0)
    return shared <= room


@inlined
def are_known(regs, row, patterns, stamp, room):
    """Whether factors that are loaded like this one have the form that they had with this pattern of addresses."""
    return patterns[row[field.ADDRESS], at.STAMP] == stamp and is_within(regs, row, room)


@inlined
def size_of(form, width):
    """Return the words of a factor in the queue."""
    return width if form == FULL else (width // VECTOR_LANES + VECTOR_LANES - 1) // VECTOR_LANES * VECTOR_LANES


@inlined
def load_factor(regs, row, form, into, access, patterns, storage, shared, width):
    """Load a factor into the queue."""
    addresses = regs[row[field.ADDRESS]]
    if row[field.OP] == op.BROADCAST:
        for i in range(into.size):
            into[i] = addresses[at.FIRST_LANE]
        return
    if row[field.OP] == op.COPY:
        for lane in range(width):
            into[lane] = addresses[lane]
        return
    entry = access[row[field.ACCESS]]
    memory = shared if entry[at.SPACE] == at.SHARED else storage
    extra, shifts = shared_part(regs, row), regs[row[field.SHIFTS]]
    if form == SPLAT:
        base = np.int64(entry[at.BASE])
        for i in range(width // VECTOR_LANES):
            into[i] = memory[np.uint64(base + np.int64(np.uint32(addresses[i * VECTOR_LANES] + extra)))]
    elif form == SAME:
        load(into, memory, addresses, extra, entry, shifts, VECTOR_LANES)
    elif row[field.OP] == op.LOAD_KNOWN:
        load_from_known(into, memory, addresses, extra, entry, shifts, patterns[row[field.ADDRESS]], width)
    else:
        load(into, memory, addresses, extra, entry, shifts, width)


@inlined
def place_of(regs, row, access):
    """Return where in memory a load in bounds begins, without the part of its addresses that differs among lanes."""
    return access[row[field.ACCESS], at.BASE] + np.int64(shared_part(regs, row))


@inlined
def load_four_splats(regs, code, place, into, size, access, storage, shared, width):
    """Load four factors of form SPLAT, with one pattern of addresses, into the queue."""
    row, second, third, fourth = code[place], place + 1, place + 2, place + 3
    memory = shared if access[row[field.ACCESS], at.SPACE] == at.SHARED else storage
    places = (
        place_of(regs, row, access),
        place_of(regs, code[second], access),
        place_of(regs, code[third], access),
        place_of(regs, code[fourth], access),
    )
    addresses = regs[row[field.ADDRESS]]
    for i in range(width // VECTOR_LANES):
        address = np.int64(addresses[i * VECTOR_LANES])
        for word in range(field.FOUR):
            into[word * size + i] = memory[np.uint64(places[word] + address)]


@inlined
def load_four_factors(regs, row, into, size, access, storage, shared):
    """Load four factors of form SAME, from consecutive words, into the queue."""
    entry = access[row[field.ACCESS]]
    memory = shared if entry[at.SPACE] == at.SHARED else storage
    extra, base, start = shared_part(regs, row), np.uint32(entry[at.BASE]), address_of_first(into)
    outs = (start, start + 4 * size, start + 8 * size, start + 12 * size)
    # All four are in bounds: no limit is needed.
    addresses, shifts = regs[row[field.ADDRESS]], regs[row[field.SHIFTS]]
    gather_four(outs, memory[base:], addresses, extra, np.uint32(0xFFFFFFFF), shifts, VECTOR_LANES)


# ---- sums --------------------------------------------------------------------------------------------


def _fused(builder: Any, a: Any, b: Any, c: Any) -> Any:
    kind = ir.FunctionType(a.type, (a.type,) * 3)
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{_SUMMED_LANES}f32")
    return builder.call(function, (a, b, c))


# The scalar operations on vectors, since LLVM does not vectorize the functions. Tests compare them.
_ON_VECTORS: dict[str, Callable[..., Any]] = {
    "mad_f32": lambda builder, a, b, c: builder.fadd(builder.fmul(a, b), c),
    "fma_f32": _fused,
}


@generated
def _sum_up(
    typingctx, which, regs, code, first, pitch, words, a, a_next, a_move, b, b_next, b_move, step, steps, vectors
):  # type: ignore[no-untyped-def]
    """Add to the sums of instructions `first + i * pitch + j`, for each A `i` and B `j`, by case `which` of `_CASES`.

    Factor A `i` begins at word `a + i * a_next` of the queue, plus `a_move` per vector of lanes and `step` per step.
    Factor B likewise.
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

    long = types.int64
    return types.void(long, regs, code, *(long,) * 2, words, *(long,) * 9), codegen


_CASES = tuple((name, *size, *splats) for name in op.TILED for size in _BLOCKS for splats in _SPLATS)


def _block(
    context: Any, builder: Any, signature: Any, args: Any, name: str, m: int, n: int, a_splat: bool, b_splat: bool
) -> None:
    """Generate a case of `_sum_up`: all steps for some lanes, then for the next ones."""
    _, _, _, first, pitch, _, a, a_next, a_move, b, b_next, b_move, step, steps, vectors = args
    long, number = ir.IntType(64), ir.FloatType()
    queue = data_of(context, builder, signature, args, 5, number)
    program = data_of(context, builder, signature, args, 2, ir.IntType(32))

    def constant(value: int) -> Any:
        return ir.Constant(long, value)

    def sum_of(i: int, j: int) -> Any:
        row = builder.add(builder.add(first, constant(j)), builder.mul(pitch, constant(i)))
        place = builder.gep(program, [builder.add(builder.mul(row, constant(field.SIZE)), constant(field.DEST))])
        return row_of(context, builder, signature, args, 1, builder.load(place), number)

    def factor(start: Any, splat: bool) -> Any:
        if splat:
            return spread(builder, builder.load(start), _SUMMED_LANES)
        return builder.load(vector_at(builder, start, constant(0), number, _SUMMED_LANES), align=4)

    def begin_of(begin: Any, move: Any, splat: bool) -> Any:
        begin = builder.add(begin, builder.mul(vector, move))
        return begin if splat else builder.add(begin, builder.mul(part, constant(_SUMMED_LANES)))

    sums = [sum_of(i, j) for i in range(m) for j in range(n)]
    parts = constant(VECTOR_LANES // _SUMMED_LANES)
    with cgutils.for_range(builder, builder.mul(vectors, parts)) as loop:
        vector, part = builder.sdiv(loop.index, parts), builder.srem(loop.index, parts)
        lane = builder.mul(loop.index, constant(_SUMMED_LANES))
        places = [vector_at(builder, row, lane, number, _SUMMED_LANES) for row in sums]
        before = [builder.load(place, align=4) for place in places]
        starts = [
            builder.gep(queue, [builder.add(begin, builder.mul(constant(i), following))])
            for begin, following, count in (
                (begin_of(a, a_move, a_splat), a_next, m),
                (begin_of(b, b_move, b_splat), b_next, n),
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


# ---- entry points ------------------------------------------------------------------------------------


@inlined
def restart(queue):
    """Empty the queue."""
    queue.state[at.QUEUED_STEPS], queue.state[at.QUEUED_TILE] = 0, -1


@inlined
def is_fused(row):
    """Whether the product of a sum is not rounded."""
    return row[field.OP] == _FUSED or (row[field.OP] == op.CHECKED and row[field.ROUNDING] == op.FUSED)


@compiled
def keep_sums(regs, code, first, count, kept, width):
    """Copy the sums."""
    for i in range(count):
        row, into = regs[code[first + i, field.DEST]], kept[i * width :]
        for lane in range(width):
            into[lane] = row[lane]


@compiled
def sums_stay_finite(regs, code, first, count, lanes):
    """Whether all sums are finite, so that all earlier ones were."""
    finite = True
    for i in range(count):
        finite &= all_finite(regs[code[first + i, field.DEST]], lanes)
    return finite


@inlined
def factor_at(words, start, form, lane):
    """Return one lane of the factor that begins at `start` in the queue."""
    return words[start + lane // VECTOR_LANES * (1 if form == SPLAT else (VECTOR_LANES if form == FULL else 0))
                 + (0 if form == SPLAT else lane % VECTOR_LANES)]  # fmt: skip


@part(LONG, LONG, LONG)
def check_sums(steps, width, context):
    """Check every sum of the queued factors, from the kept sums on, in program order."""
    _, code, _, _, _, _, queue, checks, size, workgroup, workgroups_per_batch = _borrowed(context)
    state, factors, sums = queue.state, queue.words.view(np.float32), queue.kept.view(np.float32)
    m, n = state[at.QUEUED_ROWS], state[at.QUEUED_COLUMNS]
    a_form, b_form = state[at.QUEUED_FORM_A], state[at.QUEUED_FORM_B]
    a_size, b_size = size_of(a_form, width), size_of(b_form, width)
    for turn in range(steps):
        start = turn * (m * a_size + n * b_size)
        for i in range(m * n):
            row, running = code[queue.begins[turn] + i], sums[i * width :]
            a_start, b_start = start + i // n * a_size, start + m * a_size + i % n * b_size
            for lane in range(workgroups_per_batch * size):
                a, b = factor_at(factors, a_start, a_form, lane), factor_at(factors, b_start, b_form, lane)
                group = workgroup + lane // size
                running[lane] = check_sum_lane(row, a, b, running[lane], checks, lane % size, group)


@part(LONG, LONG)
def add_up(width, context):
    """Add the products of the queued factors to their sums, and empty the queue."""
    regs, code, _, _, _, _, queue, _, lanes, _, workgroups_per_batch = _borrowed(context)
    state = queue.state
    steps, first, m, n = state[at.QUEUED_STEPS], state[at.QUEUED_FIRST], state[at.QUEUED_ROWS], state[at.QUEUED_COLUMNS]
    if steps == 0:
        return
    state[at.QUEUED_STEPS] = 0
    checked = code[first, field.OP] == op.CHECKED
    if checked:
        keep_sums(regs, code, first, m * n, queue.kept, width)
    a_form, b_form = state[at.QUEUED_FORM_A], state[at.QUEUED_FORM_B]
    a_next, b_next = size_of(a_form, width), size_of(b_form, width)
    name = np.int64(is_fused(code[first]))
    splats = 1 if a_form == SPLAT else (2 if b_form == SPLAT else 0)
    i = 0
    while i < m:
        rows = _ROWS if i + _ROWS <= m else 1
        j = 0
        while j < n:
            columns = _COLUMNS if j + _COLUMNS <= n else 1
            size = 2 * np.int64(rows == 1) + np.int64(columns == 1)
            which = (name * len(_BLOCKS) + size) * len(_SPLATS) + splats
            _sum_up(
                which, regs, code, first + i * n + j, n, queue.words, i * a_next, a_next, _MOVES[a_form],
                m * a_next + j * b_next, b_next, _MOVES[b_form], m * a_next + n * b_next, steps, width // VECTOR_LANES,
            )  # fmt: skip
            j += columns
        i += rows
    if checked and not sums_stay_finite(regs, code, first, m * n, workgroups_per_batch * lanes):
        check_sums(steps, width, context)


@inlined
def add_what_waits(width, queue, context):
    """Call `add_up` if tiles wait, before the number of lanes changes."""
    if queue.state[at.QUEUED_STEPS] > 0:
        add_up(width, context)


@compiled
def keep_forms(regs, code, place, again, access, patterns, state):
    """Keep for which addresses the factors of the tile in `place` have the forms found now, if it runs `again`."""
    row, a = code[place], place + 1
    b = a + row[field.TILE_ROWS]
    a_room = room_of(code, a, row[field.TILE_ROWS], access, patterns) if again else np.int64(-1)
    b_room = room_of(code, b, row[field.TILE_COLUMNS], access, patterns) if again else np.int64(-1)
    state[at.QUEUED_ROOM_A] = a_room if is_within(regs, code[a], a_room) else -1
    state[at.QUEUED_ROOM_B] = b_room if is_within(regs, code[b], b_room) else -1
    state[at.QUEUED_STAMP_A] = patterns[code[a, field.ADDRESS], at.STAMP]
    state[at.QUEUED_STAMP_B] = patterns[code[b, field.ADDRESS], at.STAMP]
    state[at.QUEUED_TILE] = place


@part(LONG, LONG, LONG, returns=LONG)
def tile(place, width, context):
    """Run the tile in instruction `place`: queue its factors.

    The products are added when the queue is full, or at once if they may not wait. Returns how many of the following
    instructions are done; 0 if the tile cannot be queued.
    """
    regs, code, access, patterns, storage, shared, queue, _, _, _, _ = _borrowed(context)
    row, state = code[place], queue.state
    m, n, first = np.int64(row[field.TILE_ROWS]), np.int64(row[field.TILE_COLUMNS]), place + 1
    a_form, b_form = state[at.QUEUED_FORM_A], state[at.QUEUED_FORM_B]
    again, a_row, b_row = state[at.QUEUED_TILE] == place, code[first], code[first + m]
    if not (
        again
        and are_known(regs, a_row, patterns, state[at.QUEUED_STAMP_A], state[at.QUEUED_ROOM_A])
        and are_known(regs, b_row, patterns, state[at.QUEUED_STAMP_B], state[at.QUEUED_ROOM_B])
    ):
        a_form = form_of_all(regs, code, first, m, access, patterns, width)
        b_form = form_of_all(regs, code, first + m, n, access, patterns, width)
        if a_form == IMPOSSIBLE or b_form == IMPOSSIBLE:
            add_up(width, context)
            return 0
        if a_form == SPLAT and b_form == SPLAT:
            b_form = FULL
        keep_forms(regs, code, place, again, access, patterns, state)
    a_size, b_size = size_of(a_form, width), size_of(b_form, width)
    step = m * a_size + n * b_size
    alike = state[at.QUEUED_FORM_A] == a_form and state[at.QUEUED_FORM_B] == b_form
    alike &= state[at.QUEUED_SUMS] == row[field.TILE_SUMS]
    if not alike or (state[at.QUEUED_STEPS] + 1) * step > queue.words.size:
        add_up(width, context)
    state[at.QUEUED_FIRST], state[at.QUEUED_SUMS] = first + m + n, row[field.TILE_SUMS]
    state[at.QUEUED_ROWS], state[at.QUEUED_COLUMNS] = m, n
    state[at.QUEUED_FORM_A], state[at.QUEUED_FORM_B] = a_form, b_form
    queue.begins[state[at.QUEUED_STEPS]] = first + m + n
    start, i = state[at.QUEUED_STEPS] * step, 0
    while i < m + n:
        form, size, end = (a_form, a_size, m) if i < m else (b_form, b_size, m + n)
        into, factor, together = queue.words[start:], code[first + i], np.int64(1)
        room = state[at.QUEUED_ROOM_A] if i < m else state[at.QUEUED_ROOM_B]
        four = are_loaded_together(code, first + i) or (form == SPLAT and room >= 0)
        if i + field.FOUR <= end and four and form != FULL:
            together = np.int64(field.FOUR)
            if form == SPLAT:
                load_four_splats(regs, code, first + i, into, size, access, storage, shared, width)
            else:
                load_four_factors(regs, factor, into, size, access, storage, shared)
        else:
            load_factor(regs, factor, form, into[:size], access, patterns, storage, shared, width)
        start, i = start + together * size, i + together
    state[at.QUEUED_STEPS] += 1
    if row[field.MAY_WAIT] == 0:
        add_up(width, context)
    return m + n + m * n
