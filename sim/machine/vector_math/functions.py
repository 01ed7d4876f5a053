"""Functions of float64 on rows: by vectors where what they nearly are tells how they round, else one by one.

The meaning of these operations is a function of float64, rounded to f32 or f16. A library computes it for one lane in
the time that vectors take for several. So 16 lanes are computed as `near` says: off by so little that it nearly always
rounds as the function itself does. In lanes where it might not, and of a lane alone, the function itself is called.
"""

# Numba and llvmlite have no types, so strict checks would find only unknowns.
# pyright: basic

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from ...fast_dataclass import frozen
from ...scalar import OPS, ScalarOp
from ..compile.scalar_ir import emitted
from ..lanes import generated, lane_loop, vector_at, wide
from ..layout import VECTOR_LANES
from .approximations import NEAR, OFF

_I16, _I32, _I64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)
_FLOAT, _DOUBLE = ir.FloatType(), ir.DoubleType()
_FREELY = ("contract",)  # a product and a sum may be one instruction
_TO_HALF = "quantizeToF16_f32"
_NEXT = 2.0**-23  # relatively, at least as far as from one f32 to the next


def _vector(element: ir.Type) -> ir.VectorType:
    return ir.VectorType(element, VECTOR_LANES)


def _value(number: Any, element: ir.Type) -> Any:
    """A vector, or a number in all of its lanes, as LLVM has it."""
    if isinstance(number, _Vector):
        return number.value
    return ir.Constant(_vector(element), [ir.Constant(element, number)] * VECTOR_LANES)


@frozen(eq=False)
class _Vector:
    """Sixteen float64 or int64, or the result of comparing them, with the arithmetic that `near` uses."""

    builder: Any
    value: Any

    def _with(self, other: Any) -> Any:
        return _value(other, self.value.type.element)

    def _made(self, instruction: str, *operands: Any, **how: Any) -> _Vector:
        return _Vector(self.builder, getattr(self.builder, instruction)(*operands, **how))

    def _sum(self, instruction: str, one: Any, other: Any) -> _Vector:
        if self.value.type.element == _DOUBLE:
            return self._made("f" + instruction, one, other, flags=_FREELY)
        return self._made(instruction, one, other)

    def __add__(self, other: Any) -> _Vector:
        return self._sum("add", self.value, self._with(other))

    def __sub__(self, other: Any) -> _Vector:
        return self._sum("sub", self.value, self._with(other))

    def __rsub__(self, other: Any) -> _Vector:
        return self._sum("sub", self._with(other), self.value)

    def __mul__(self, other: Any) -> _Vector:
        return self._made("fmul", self.value, self._with(other), flags=_FREELY)

    def __truediv__(self, other: Any) -> _Vector:
        return self._made("fdiv", self.value, self._with(other))

    def __rtruediv__(self, other: Any) -> _Vector:
        return self._made("fdiv", self._with(other), self.value)

    def __and__(self, other: Any) -> _Vector:
        return self._made("and_", self.value, self._with(other))

    def __or__(self, other: Any) -> _Vector:
        return self._made("or_", self.value, self._with(other))

    def __xor__(self, other: Any) -> _Vector:
        return self._made("xor", self.value, self._with(other))

    def __lshift__(self, by: int) -> _Vector:
        return self._made("shl", self.value, self._with(by))

    def __rshift__(self, by: int) -> _Vector:
        return self._made("lshr", self.value, self._with(by))

    def __lt__(self, other: Any) -> _Vector:
        return self._made("fcmp_ordered", "<", self.value, self._with(other))

    def __le__(self, other: Any) -> _Vector:
        return self._made("fcmp_ordered", "<=", self.value, self._with(other))

    def __gt__(self, other: Any) -> _Vector:
        return self._made("fcmp_ordered", ">", self.value, self._with(other))

    def __eq__(self, other: object) -> Any:
        return self._made("icmp_signed", "==", self.value, self._with(other))

    __rmul__ = __mul__


@frozen
class _Numbers:
    """What `near` asks of the numbers that it works with."""

    builder: Any

    def where(self, condition: _Vector, one: Any, other: Any) -> _Vector:
        values = (_value(each, _DOUBLE) for each in (one, other))
        return _Vector(self.builder, self.builder.select(condition.value, *values))

    def sqrt(self, x: _Vector) -> _Vector:
        return self._called("sqrt", x)

    def trunc(self, x: _Vector) -> _Vector:
        return self._called("trunc", x)

    def _called(self, name: str, x: _Vector) -> _Vector:
        kind = ir.FunctionType(x.value.type, [x.value.type])
        function = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.{name}.v{VECTOR_LANES}f64")
        return _Vector(self.builder, self.builder.call(function, [x.value]))

    def bits(self, x: _Vector) -> _Vector:
        return _Vector(self.builder, self.builder.bitcast(x.value, _vector(_I64)))

    def double(self, x: _Vector) -> _Vector:
        return _Vector(self.builder, self.builder.bitcast(x.value, _vector(_DOUBLE)))


def curves_of(rows: Sequence[tuple[int, ScalarOp]]) -> Any:
    """An intrinsic like that of `lanes.switch_of`, of operations that have a function in `near`."""

    @generated
    def run(typingctx, start, pitch, op, d, a, b, lanes):  # type: ignore[no-untyped-def]
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _Curves(builder, rows, args).emit()
            return context.get_dummy_value()

        return types.void(start, pitch, op, d, a, b, lanes), codegen

    return run


class _Curves:
    """The code of one such function."""

    def __init__(self, builder: Any, rows: Any, args: Any) -> None:
        self.builder, self.rows = builder, rows
        start, pitch, self.opcode, target, *sources, lanes = args
        self.lanes = wide(builder, lanes)
        self.target, *self.sources = (
            builder.inttoptr(builder.add(start, builder.mul(wide(builder, row), pitch)), _FLOAT.as_pointer())
            for row in (target, *sources)
        )
        # What is read is kept here, for the target may be a source; and what comes out, and what is in doubt.
        room = (
            ("one", _FLOAT),
            ("other", _FLOAT),
            ("near", _DOUBLE),
            ("single", _FLOAT),
            ("half", _FLOAT),
            ("doubt", _I32),
        )
        self.room = {name: self._room(kind) for name, kind in room}

    def _room(self, element: ir.Type) -> Any:
        """Sixteen of a kind."""
        place = cgutils.alloca_once(self.builder, ir.ArrayType(element, VECTOR_LANES))
        place.align = 64
        return self.builder.bitcast(place, element.as_pointer())

    def emit(self) -> None:
        builder, zero = self.builder, _I64(0)
        with cgutils.for_range_slice(builder, zero, self.lanes, _I64(VECTOR_LANES), _I64) as (first, _):
            alone = builder.icmp_signed("<", self.lanes, _I64(VECTOR_LANES))
            doubtful = cgutils.alloca_once(builder, _I16)
            builder.store(_I16(1), doubtful)
            with builder.if_else(alone) as (then, otherwise):
                with then:
                    self._keep_first()
                with otherwise:
                    self._near(first)
                    builder.store(self._round(first), doubtful)
            with builder.if_then(builder.icmp_unsigned("!=", builder.load(doubtful), _I16(0)), likely=False):
                self._exactly(first, doubtful)

    def _cases(self, body: Callable[[ScalarOp], None]) -> None:
        """`body(table row)` of the operation."""
        builder = self.builder
        done = builder.append_basic_block("curve.done")
        switch = builder.switch(self.opcode, done)
        for code, row in self.rows:
            case = builder.append_basic_block(f"curve.{row.name}")
            switch.add_case(ir.Constant(self.opcode.type, code), case)
            builder.position_at_end(case)
            body(row)
            builder.branch(done)
        builder.position_at_end(done)

    def _keep_first(self) -> None:
        """Operands of a lane alone."""

        def body(row: ScalarOp) -> None:
            self._keep(row, lambda source: source, lambda room: room)

        self._cases(body)

    def _keep(self, row: Any, of: Callable[[Any], Any], to: Callable[[Any], Any]) -> list[Any]:
        values = []
        for source, room in zip(self.sources[: len(row.args)], ("one", "other"), strict=False):
            values.append(self.builder.load(of(source), align=4))
            self.builder.store(values[-1], to(self.room[room]), align=4)
        return values

    def _near(self, first: Any) -> None:
        """What the operation nearly gives, unrounded, in 16 lanes. One case for a function, whatever its kind."""
        builder = self.builder
        done = builder.append_basic_block("near.done")
        switch = builder.switch(self.opcode, done)
        cases: dict[str, Any] = {}
        for code, row in self.rows:
            stem = row.name.rpartition("_")[0]
            if stem not in cases:
                cases[stem] = builder.append_basic_block(f"near.{stem}"), row
            switch.add_case(ir.Constant(self.opcode.type, code), cases[stem][0])
        for stem, (case, row) in cases.items():
            builder.position_at_end(case)
            values = self._keep(row, lambda s: vector_at(builder, s, first, _FLOAT), self._all)
            operands = [_Vector(builder, builder.fpext(value, _vector(_DOUBLE))) for value in values]
            value = NEAR[stem](_Numbers(builder), *operands).value
            builder.store(value, self._all(self.room["near"], _DOUBLE), align=8)
            builder.branch(done)
        builder.position_at_end(done)

    def _all(self, room: Any, element: ir.Type = _FLOAT) -> Any:
        return vector_at(self.builder, room, _I64(0), element)

    def _round(self, first: Any) -> Any:
        """Leave rounded results in the target; returns a bit for each lane whose result may be another."""
        builder = self.builder
        value = _Vector(builder, builder.load(self._all(self.room["near"], _DOUBLE), align=8))
        below, above = (builder.fptrunc((value * by).value, _vector(_FLOAT)) for by in (1 - OFF, 1 + OFF))
        single = builder.fptrunc(value.value, _vector(_FLOAT))
        target = vector_at(builder, self.target, first, _FLOAT)
        builder.store(single, target, align=4)
        in_doubt = cgutils.alloca_once(builder, _I16)
        builder.store(self._differ(below, above), in_doubt)
        halves = [ir.Constant(self.opcode.type, code) for code, row in self.rows if row.result == "f16"]
        done, half = builder.append_basic_block("rounded"), builder.append_basic_block("rounded.half")
        switch = builder.switch(self.opcode, done)
        for each in halves:
            switch.add_case(each, half)
        builder.position_at_end(half)
        self._round_to_half(single)
        builder.store(builder.load(self._all(self.room["half"]), align=4), target, align=4)
        doubts = builder.load(self._all(self.room["doubt"], _I32), align=4)
        builder.store(builder.bitcast(builder.trunc(doubts, _vector(ir.IntType(1))), _I16), in_doubt)
        builder.branch(done)
        builder.position_at_end(done)
        return builder.load(in_doubt)

    def _differ(self, one: Any, other: Any) -> Any:
        """A bit for each lane where vectors differ. A NaN is as good as any other."""
        return self.builder.bitcast(self.builder.fcmp_ordered("!=", one, other), _I16)

    def _round_to_half(self, single: Any) -> None:
        """Of what is f32 already: only where that is halfway between two f16 may the function be on its other side."""
        builder, room = self.builder, self.room
        builder.store(single, self._all(room["single"]), align=4)

        def body(lane: Any, note: Any) -> None:
            value = note(builder.load(builder.gep(room["single"], [lane])))
            around = (builder.fmul(value, ir.Constant(_FLOAT, 1 + by)) for by in (-_NEXT, _NEXT))
            below, above = (emitted(builder, OPS[_TO_HALF], [each]) for each in around)
            differ = builder.zext(builder.fcmp_ordered("!=", below, above), _I32)
            note(builder.store(below, builder.gep(room["half"], [lane])))
            note(builder.store(differ, builder.gep(room["doubt"], [lane])))

        lane_loop(builder, _I64(VECTOR_LANES), body)

    def _exactly(self, first: Any, doubtful: Any) -> None:
        """The operation itself, in the lanes whose bits are set."""
        builder = self.builder
        with cgutils.for_range(builder, _I64(VECTOR_LANES)) as loop:
            bit = builder.shl(_I16(1), builder.trunc(loop.index, _I16))
            chosen = builder.and_(builder.load(doubtful), bit)
            with builder.if_then(builder.icmp_unsigned("!=", chosen, _I16(0)), likely=False):

                def body(row: ScalarOp) -> None:
                    rooms = (self.room["one"], self.room["other"])[: len(row.args)]
                    values = [builder.load(builder.gep(room, [loop.index])) for room in rooms]
                    place = builder.gep(self.target, [builder.add(first, loop.index)])
                    builder.store(emitted(builder, row, values), place)

                self._cases(body)
