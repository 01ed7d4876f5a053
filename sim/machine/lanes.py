"""Loops over lanes, written as LLVM IR so that they always vectorize.

Registers are rows of a `uint32[register, lane]` array. An operation on rows is elementwise: lane `l` of the result
depends on lane `l` of the operands alone, so a row may be both operand and result. LLVM cannot see that and would guard
each loop with overlap tests and fall back to one lane at a time; the loops made here carry the metadata that says so
(`llvm.mem.parallel_loop_access`). Measured on 256 lanes, against the same loop left to Numba: 2x, in place 5x.

`switch_of(rows)` is the heart of the machine: one LLVM switch whose cases are such loops around the scalar meaning of
each operation, made straight from the table.
"""

# Numba and llvmlite have no types, so strict checks would find only unknowns.
# pyright: basic

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ..scalar import ScalarOp
from .compile.scalar_ir import emitted
from .compile.units import length_of, start_of
from .layout import VECTOR_LANES

_I16, _I32, _I64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)
_FLOAT = ir.FloatType()
KINDS: dict[str, ir.Type] = {"f32": _FLOAT, "f16": _FLOAT, "i32": _I32, "u32": _I32, "bool": _I32}


def generated(function: Callable[..., Any]) -> Any:
    """A function whose code is written as LLVM IR; compiled code calls it without its first parameter."""
    return intrinsic(function)


def row_of(context: Any, builder: Any, signature: Any, args: Any, number: int, index: Any, element: ir.Type) -> Any:
    """Pointer to row `index` of argument `number`, a 2-D array, as a pointer to `element`."""
    array = context, builder, signature.args[number], args[number]
    pointer = builder.gep(start_of(*array), [builder.mul(wide(builder, index), length_of(*array, 1))])
    return builder.bitcast(pointer, element.as_pointer())


def data_of(context: Any, builder: Any, signature: Any, args: Any, number: int, element: ir.Type) -> Any:
    """Pointer to the data of argument `number`, an array, as a pointer to `element`."""
    return builder.bitcast(start_of(context, builder, signature.args[number], args[number]), element.as_pointer())


def wide(builder: Any, value: Any) -> Any:
    return builder.sext(value, _I64) if value.type.width < 64 else value


def lane_loop(builder: Any, lanes: Any, body: Callable[[Any, Callable[[Any], Any]], None]) -> None:
    """`body(lane, note)` for each lane; `note` marks a memory instruction as independent of other lanes."""
    module = builder.module
    loop = module.add_metadata([ir.Constant(_I32, len(module.metadata))])
    one_by_one = module.add_metadata([ir.MetaDataString(module, "llvm.loop.interleave.count"), _I32(1)])
    loop.operands = (loop, one_by_one)  # a loop is named by metadata that names itself

    def note(instruction: Any) -> Any:
        instruction.set_metadata("llvm.mem.parallel_loop_access", loop)
        return instruction

    before = builder.block
    head, done = builder.append_basic_block("lane"), builder.append_basic_block("lanes.done")
    builder.cbranch(builder.icmp_signed(">", lanes, ir.Constant(_I64, 0)), head, done)
    builder.position_at_end(head)
    lane = builder.phi(_I64)
    lane.add_incoming(ir.Constant(_I64, 0), before)
    body(lane, note)
    following = builder.add(lane, ir.Constant(_I64, 1), flags=["nsw", "nuw"])
    lane.add_incoming(following, builder.block)
    branch = builder.cbranch(builder.icmp_signed("<", following, lanes), head, done)
    branch.set_metadata("llvm.loop", loop)
    builder.position_at_end(done)


@generated
def address_of_first(typingctx, array):  # type: ignore[no-untyped-def]
    """Where an array begins: an address is one argument of a call, an array is seven or nine."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ptrtoint(data_of(context, builder, signature, args, 0, _I32), _I64)

    return types.int64(array), codegen


@generated
def pitch_of(typingctx, array):  # type: ignore[no-untyped-def]
    """Bytes from row to row."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        return builder.mul(length_of(context, builder, kind, args[0], 1), _I64(kind.dtype.bitwidth // 8))

    return types.int64(array), codegen


def switch_of(rows: Sequence[tuple[int, ScalarOp]]) -> Any:
    """An intrinsic `run(start, pitch, op, d, a, b, c, e, lanes)`: registers are from the address `start` on, rows
    `pitch` bytes apart; `rows` are opcodes with the rows of the table."""

    @generated
    def run(typingctx, start, pitch, op, d, a, b, c, e, lanes):  # type: ignore[no-untyped-def]
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            start, pitch, opcode, target, *sources = args[:8]

            def row_at(index: Any, element: ir.Type) -> Any:
                place = builder.add(start, builder.mul(wide(builder, index), pitch))
                return builder.inttoptr(place, element.as_pointer())

            done = builder.append_basic_block("op.done")
            switch = builder.switch(opcode, done)
            for code, row in rows:
                case = builder.append_basic_block(f"op.{row.name}")
                switch.add_case(ir.Constant(opcode.type, code), case)
                builder.position_at_end(case)
                inputs = [row_at(s, KINDS[k]) for s, k in zip(sources, row.args, strict=False)]
                output = row_at(target, KINDS[row.result])

                def body(lane, note, row=row, inputs=inputs, output=output):  # type: ignore[no-untyped-def]
                    values = [note(builder.load(builder.gep(p, [lane]))) for p in inputs]
                    note(builder.store(emitted(builder, row, values), builder.gep(output, [lane])))

                lane_loop(builder, wide(builder, args[8]), body)
                builder.branch(done)
            builder.position_at_end(done)
            return context.get_dummy_value()

        return types.void(start, pitch, op, d, a, b, c, e, lanes), codegen

    return run


@generated
def gather(typingctx, into, memory, addresses, extra, last, shifts, lanes):  # type: ignore[no-untyped-def]
    """into[l] = memory[min(addresses[l] + extra, last) + shifts[l]] for each lane (wrapping uint32 arithmetic).

    `memory` is uint32 or uint16 (widened).
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        more, limit, n = args[3], args[4], args[6]
        element = _I32 if signature.args[1].dtype.bitwidth == 32 else _I16
        out, data, index, shift = (
            data_of(context, builder, signature, args, i, kind)
            for i, kind in ((0, _I32), (1, element), (2, _I32), (5, _I32))
        )

        def body(lane, note):  # type: ignore[no-untyped-def]
            at = builder.add(note(builder.load(builder.gep(index, [lane]))), more)
            at = builder.select(builder.icmp_unsigned("<", at, limit), at, limit)
            at = builder.add(at, note(builder.load(builder.gep(shift, [lane]))))
            value = note(builder.load(builder.gep(data, [at])))  # memories have less than 2^31 words
            if element is _I16:
                value = builder.zext(value, _I32)
            note(builder.store(value, builder.gep(out, [lane])))

        lane_loop(builder, wide(builder, n), body)
        return context.get_dummy_value()

    return types.void(into, memory, addresses, types.uint32, types.uint32, shifts, lanes), codegen


@generated
def gather_four(typingctx, outs, memory, addresses, extra, last, shifts, lanes):  # type: ignore[no-untyped-def]
    """What `gather` does, four times: for a word of `memory` and the three after it. Results go to four addresses.

    All of a lane's words come at once, and 16 lanes are then turned into four vectors. A result may be the row of the
    addresses.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        element = _I32 if signature.args[1].dtype.bitwidth == 32 else _I16
        four = ir.VectorType(element, 4)
        index, shift = (data_of(context, builder, signature, args, i, _I32) for i in (2, 5))
        data = data_of(context, builder, signature, args, 1, element)
        results = [builder.inttoptr(each, _I32.as_pointer()) for each in cgutils.unpack_tuple(builder, args[0])]
        more, limit = (spread(builder, each) for each in args[3:5])
        zero, step = _I64(0), _I64(VECTOR_LANES)
        with cgutils.for_range_slice(builder, zero, wide(builder, args[6]), step, _I64) as (lane, _):
            at = builder.add(builder.load(vector_at(builder, index, lane), align=4), more)
            at = builder.select(builder.icmp_unsigned("<", at, limit), at, limit)
            at = builder.add(at, builder.load(vector_at(builder, shift, lane), align=4))
            found = []
            for i in range(VECTOR_LANES):
                place = builder.gep(data, [builder.extract_element(at, _I32(i))])
                found.append(builder.load(builder.bitcast(place, four.as_pointer()), align=element.width // 8))
            for value, result in zip(_turned(builder, found), results, strict=True):
                if element is _I16:
                    value = builder.zext(value, ir.VectorType(_I32, VECTOR_LANES))
                builder.store(value, vector_at(builder, result, lane), align=4)
        return context.get_dummy_value()

    addresses_of = types.UniTuple(types.int64, 4)
    return types.void(addresses_of, memory, addresses, types.uint32, types.uint32, shifts, lanes), codegen


def _turned(builder: Any, rows: list[Any]) -> list[Any]:
    """The columns of a matrix of few columns, whose rows are vectors."""
    columns, count = rows[0].type.count, len(rows)
    while len(rows) > 1:  # side by side, until all are in one
        whole = ir.Constant(ir.VectorType(_I32, 2 * rows[0].type.count), list(range(2 * rows[0].type.count)))
        rows = [builder.shuffle_vector(a, b, whole) for a, b in zip(rows[::2], rows[1::2], strict=True)]
    empty = ir.Constant(rows[0].type, ir.Undefined)
    picks = [ir.Constant(ir.VectorType(_I32, count), list(range(c, columns * count, columns))) for c in range(columns)]
    return [builder.shuffle_vector(rows[0], empty, pick) for pick in picks]


@generated
def scatter_four(typingctx, memory, values, addresses, extra, shifts, mask, lanes):  # type: ignore[no-untyped-def]
    """memory[addresses[l] + extra + shifts[l]] and the three words after it are those of lane l in the rows at four
    addresses, for each lane in order; of those alone that are on in the row at the address `mask`, unless that is 0.

    16 lanes of the rows are turned, so that all of a lane's words go at once.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        element = _I32 if signature.args[0].dtype.bitwidth == 32 else _I16
        four = ir.VectorType(element, 4)
        data = data_of(context, builder, signature, args, 0, element)
        index, shift = (data_of(context, builder, signature, args, i, _I32) for i in (2, 4))
        rows = [builder.inttoptr(each, _I32.as_pointer()) for each in cgutils.unpack_tuple(builder, args[1])]
        more, lanes = spread(builder, args[3]), wide(builder, args[6])
        turned = cgutils.alloca_once(builder, ir.ArrayType(four, VECTOR_LANES))
        places = cgutils.alloca_once(builder, ir.ArrayType(_I32, VECTOR_LANES))
        zero, step = _I64(0), _I64(VECTOR_LANES)
        with cgutils.for_range_slice(builder, zero, lanes, step, _I64) as (first, _):
            at = builder.add(builder.load(vector_at(builder, index, first), align=4), more)
            at = builder.add(at, builder.load(vector_at(builder, shift, first), align=4))
            found = [builder.load(vector_at(builder, row, first), align=4) for row in rows]
            if element is _I16:
                found = [builder.trunc(each, ir.VectorType(_I16, VECTOR_LANES)) for each in found]
            units = _turned(builder, found)
            chosen = _chosen(builder, args[5], first, lanes)
            with builder.if_else(builder.icmp_signed("==", chosen, _I16(-1))) as (all_of_them, some):
                with all_of_them:
                    for lane, value in enumerate(units):
                        place = builder.gep(data, [builder.extract_element(at, _I32(lane))])
                        builder.store(value, builder.bitcast(place, four.as_pointer()), align=element.width // 8)
                with some:
                    for lane, value in enumerate(units):
                        builder.store(value, builder.gep(turned, [_I32(0), _I32(lane)]))
                    builder.store(at, builder.bitcast(places, at.type.as_pointer()), align=4)
                    with cgutils.for_range(builder, _I64(VECTOR_LANES)) as loop:
                        bit = builder.and_(builder.lshr(chosen, builder.trunc(loop.index, _I16)), _I16(1))
                        with builder.if_then(builder.icmp_unsigned("!=", bit, _I16(0))):
                            place = builder.gep(data, [builder.load(builder.gep(places, [_I64(0), loop.index]))])
                            value = builder.load(builder.gep(turned, [_I64(0), loop.index]))
                            builder.store(value, builder.bitcast(place, four.as_pointer()), align=element.width // 8)
        return context.get_dummy_value()

    addresses_of = types.UniTuple(types.int64, 4)
    return types.void(memory, addresses_of, addresses, types.uint32, shifts, types.int64, lanes), codegen


def _chosen(builder: Any, mask: Any, first: Any, lanes: Any) -> Any:
    """A bit for each of 16 lanes from `first` on: whether there is one, and it is on in the row at the address."""
    numbers = ir.Constant(ir.VectorType(_I64, VECTOR_LANES), list(range(VECTOR_LANES)))
    there = builder.icmp_signed("<", numbers, spread(builder, builder.sub(lanes, first)))
    bits = cgutils.alloca_once(builder, _I16)
    builder.store(builder.bitcast(there, _I16), bits)
    with builder.if_then(builder.icmp_unsigned("!=", mask, _I64(0))):
        row = vector_at(builder, builder.inttoptr(mask, _I32.as_pointer()), first)
        active = builder.load(row, align=4)
        on = builder.icmp_unsigned("!=", active, ir.Constant(active.type, [0] * VECTOR_LANES))
        builder.store(builder.and_(builder.load(bits), builder.bitcast(on, _I16)), bits)
    return builder.load(bits)


@generated
def blend(typingctx, regs, d, a, mask, lanes):  # type: ignore[no-untyped-def]
    """regs[d, l] = regs[a, l] where regs[mask, l], else as it was."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        out, source, chosen = (row_of(context, builder, signature, args, 0, r, _I32) for r in args[1:4])

        def body(lane, note):  # type: ignore[no-untyped-def]
            old = note(builder.load(builder.gep(out, [lane])))
            new = note(builder.load(builder.gep(source, [lane])))
            on = builder.icmp_unsigned("!=", note(builder.load(builder.gep(chosen, [lane]))), ir.Constant(_I32, 0))
            note(builder.store(builder.select(on, new, old), builder.gep(out, [lane])))

        lane_loop(builder, wide(builder, args[4]), body)
        return context.get_dummy_value()

    return types.void(regs, d, a, mask, lanes), codegen


@generated
def copy(typingctx, regs, d, a, lanes):  # type: ignore[no-untyped-def]
    """regs[d, l] = regs[a, l]."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        out, source = (row_of(context, builder, signature, args, 0, r, _I32) for r in args[1:3])

        def body(lane, note):  # type: ignore[no-untyped-def]
            note(builder.store(note(builder.load(builder.gep(source, [lane]))), builder.gep(out, [lane])))

        lane_loop(builder, wide(builder, args[3]), body)
        return context.get_dummy_value()

    return types.void(regs, d, a, lanes), codegen


@generated
def both(typingctx, regs, d, a, b, lanes):  # type: ignore[no-untyped-def]
    """regs[d, l] = regs[a, l] & regs[b, l]."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        out, one, other = (row_of(context, builder, signature, args, 0, r, _I32) for r in args[1:4])

        def body(lane, note):  # type: ignore[no-untyped-def]
            values = [note(builder.load(builder.gep(row, [lane]))) for row in (one, other)]
            note(builder.store(builder.and_(*values), builder.gep(out, [lane])))

        lane_loop(builder, wide(builder, args[4]), body)
        return context.get_dummy_value()

    return types.void(regs, d, a, b, lanes), codegen


@generated
def fill(typingctx, regs, d, value, lanes):  # type: ignore[no-untyped-def]
    """regs[d, l] = value."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        out = row_of(context, builder, signature, args, 0, args[1], _I32)
        lane_loop(
            builder,
            wide(builder, args[3]),
            lambda lane, note: note(builder.store(args[2], builder.gep(out, [lane]))),
        )
        return context.get_dummy_value()

    return types.void(regs, d, types.uint32, lanes), codegen


def vector_at(builder: Any, row: Any, lane: Any, element: ir.Type = _I32, size: int = VECTOR_LANES) -> Any:
    """Pointer to the `size` elements of a row from `lane` on."""
    pointer = builder.gep(row, [wide(builder, lane)])
    return builder.bitcast(pointer, ir.VectorType(element, size).as_pointer())


def spread(builder: Any, value: Any, size: int = VECTOR_LANES) -> Any:
    """A vector of `size` times one value."""
    empty = ir.Constant(ir.VectorType(value.type, size), ir.Undefined)
    one = builder.insert_element(empty, value, ir.Constant(_I32, 0))
    return builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(_I32, size), [0] * size))


@generated
def splat(typingctx, into, lane, value):  # type: ignore[no-untyped-def]
    """into[lane : lane + 16] = value."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = data_of(context, builder, signature, args, 0, _I32)
        builder.store(spread(builder, args[2]), vector_at(builder, row, args[1]), align=4)
        return context.get_dummy_value()

    return types.void(into, lane, types.uint32), codegen


@generated
def repeat(typingctx, row, period, lanes):  # type: ignore[no-untyped-def]
    """row[l] = row[l - period] for each lane from `period` on; both are multiples of 16.

    Each vector stays in a register: what was stored just now is slow to load.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = data_of(context, builder, signature, args, 0, _I32)
        period, lanes = wide(builder, args[1]), wide(builder, args[2])
        zero, step = ir.Constant(_I64, 0), ir.Constant(_I64, VECTOR_LANES)
        with cgutils.for_range_slice(builder, zero, period, step, _I64) as (first, _):
            value = builder.load(vector_at(builder, data, first), align=4)
            with cgutils.for_range_slice(builder, builder.add(first, period), lanes, period, _I64) as (lane, _):
                builder.store(value, vector_at(builder, data, lane), align=4)
        return context.get_dummy_value()

    return types.void(row, period, lanes), codegen


@generated
def transfer(typingctx, into, lane, memory, place):  # type: ignore[no-untyped-def]
    """into[lane : lane + 16] = memory[place : place + 16], widened where memory is uint16."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        element = _I32 if signature.args[2].dtype.bitwidth == 32 else _I16
        row = data_of(context, builder, signature, args, 0, _I32)
        data = data_of(context, builder, signature, args, 2, element)
        value = builder.load(vector_at(builder, data, args[3], element), align=element.width // 8)
        if element is _I16:
            value = builder.zext(value, ir.VectorType(_I32, VECTOR_LANES))
        builder.store(value, vector_at(builder, row, args[1]), align=4)
        return context.get_dummy_value()

    return types.void(into, lane, memory, place), codegen
