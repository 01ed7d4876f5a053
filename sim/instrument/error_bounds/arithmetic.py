"""A writer of operations, and f32 values with the arithmetic of Python numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir import ir
from ...ir.ir import Region, Value
from ...ir.register_bits import from_bits, to_bits
from ...ir.simplify import simplify
from ...scalar import OPS

INF = float("inf")


class Writer:
    """Appends to the region `here`. Folds constants, and writes an operation once per region."""

    def __init__(self, root: Region) -> None:
        self.root = root
        self.here = root
        self._constants: dict[tuple[str, int], Value] = {}
        self._known: dict[Region, dict[Any, Value]] = {}

    def append(self, item: ir.Item) -> None:
        self.here.items.append(item)

    def const(self, kind: str, value: float) -> Value:
        bits = to_bits(kind, value)
        if (kind, bits) not in self._constants:
            self._constants[kind, bits] = Value("const", (), kind, self.root, bits, uniform=True)
        return self._constants[kind, bits]

    def input(self, name: str) -> Value:
        return Value("input", (), "u32", self.root, name)

    def op(self, name: str, *args: Value) -> Value:
        row = OPS[name]
        if all(a.op == "const" for a in args):
            with np.errstate(all="ignore"):
                folded = row.fn(*(from_bits(k, a.imm) for k, a in zip(row.args, args, strict=True)))
            return self.const(row.result, folded)
        simpler = _of_zero_and_one(name, args) or simplify(self, name, args)
        return simpler or self._once(name, args, row.result)

    def bits(self, value: Value, kind: str) -> Value:
        """Return a value of another kind with the same bits."""
        if value.op == "const":
            return self.const(kind, from_bits(kind, value.imm))
        return value if value.kind == kind else self._once("bits", (value,), kind)

    def get(self, slot: ir.Slot) -> Value:
        value = Value("get", (), slot.kind, self.here, slot)
        self.append(value)
        return value

    def result(self, kind: str) -> Value:
        return Value("result", (), kind, self.here)

    def inside(self, then: Callable[[], None]) -> Region:
        """Return a new region inside this one, to which `then` writes."""
        outer = self.here
        inner = self.here = Region(outer, depth=outer.depth + 1)
        then()
        self.here = outer
        return inner

    def only_where(self, condition: Value, then: Callable[[], None]) -> None:
        """Let `then` write code for the lanes where a condition holds."""
        if condition.op != "const":
            self.append(ir.If(condition, self.inside(then), Region(self.here, depth=self.here.depth + 1)))
        elif condition.imm:
            then()

    def _once(self, name: str, args: tuple[Value, ...], kind: str) -> Value:
        known = self._known.setdefault(self.here, {})
        if (name, args, kind) not in known:
            known[name, args, kind] = Value(name, args, kind, self.here)
            self.append(known[name, args, kind])
        return known[name, args, kind]


def _of_zero_and_one(name: str, args: tuple[Value, ...]) -> Value | None:
    """Apply float identities that hold for bounds: a bound of 0 times anything is 0."""
    zero, one = (next((a for a in args if _is(a, number)), None) for number in (0.0, 1.0))
    if name == "mul_f32" and zero is not None:
        return zero
    if (name == "add_f32" and zero is not None) or (name == "mul_f32" and one is not None):
        return args[1] if args[0] in (zero, one) else args[0]
    if name == "sub_f32" and _is(args[1], 0.0):
        return args[0]
    return args[0] if name == "select_f32" and args[0] is args[1] else None


def _is(value: Value, number: float) -> bool:
    return value.op == "const" and value.kind == "f32" and float(from_bits("f32", value.imm)) == number


class Real:
    """An f32 value in a formula. Comparisons give a `Truth`."""

    __slots__ = ("value", "writer")

    def __init__(self, writer: Writer, value: Value | float) -> None:
        self.writer = writer
        self.value = value if isinstance(value, Value) else writer.const("f32", value)

    def _op(self, name: str, *others: Real | float) -> Value:
        return self.writer.op(name, self.value, *(self.like(o).value for o in others))

    def like(self, other: Real | float) -> Real:
        return other if isinstance(other, Real) else Real(self.writer, other)

    def __add__(self, other: Real | float) -> Real:
        return Real(self.writer, self._op("add_f32", other))

    def __sub__(self, other: Real | float) -> Real:
        return Real(self.writer, self._op("sub_f32", other))

    def __mul__(self, other: Real | float) -> Real:
        return Real(self.writer, self._op("mul_f32", other))

    def __truediv__(self, other: Real | float) -> Real:
        return self.like(0.0) if self.is_zero else Real(self.writer, self._op("div_f32", other))

    def __abs__(self) -> Real:
        return Real(self.writer, self._op("abs_f32"))

    def __gt__(self, other: Real | float) -> Truth:
        return Truth(self.writer, self._op("gt_f32", other))

    def __ge__(self, other: Real | float) -> Truth:
        return Truth(self.writer, self._op("ge_f32", other))

    def __lt__(self, other: Real | float) -> Truth:
        return Truth(self.writer, self._op("lt_f32", other))

    def __le__(self, other: Real | float) -> Truth:
        return Truth(self.writer, self._op("le_f32", other))

    def times_plus(self, factor: Real | float, addend: Real | float) -> Real:
        """Return self * factor + addend, rounded once."""
        factor, addend = self.like(factor), self.like(addend)
        if self.is_zero or factor.is_zero:
            return addend
        return self * factor if addend.is_zero else Real(self.writer, self._op("fma_f32", factor, addend))

    def called(self, name: str) -> Real:
        """Apply the f32 builtin `name`."""
        return Real(self.writer, self._op(f"{name}_f32"))

    def at_least(self, other: Real | float) -> Real:
        """Return the larger of two numbers (not of two bounds: it would lose a NaN)."""
        return Real(self.writer, self._op("max_f32", other))

    def at_most(self, other: Real | float) -> Real:
        """Return the smaller of two numbers."""
        return Real(self.writer, self._op("min_f32", other))

    @property
    def unknown(self) -> Real:
        """NaN if a bound is infinite or NaN, else 0."""
        return Real(self.writer, self._op("sub_f32", self))

    @property
    def is_sure(self) -> Truth:
        """Whether a bound is 0: all implementations agree."""
        return self <= 0.0

    @property
    def is_zero(self) -> bool:
        """Whether it is the constant 0."""
        return _is(self.value, 0.0)


class Truth:
    """A truth value in a formula."""

    __slots__ = ("value", "writer")

    def __init__(self, writer: Writer, value: Value | bool) -> None:
        self.writer = writer
        self.value = value if isinstance(value, Value) else writer.const("bool", value)

    def __and__(self, other: Truth) -> Truth:
        return Truth(self.writer, self.writer.op("and_bool", self.value, other.value))

    def __or__(self, other: Truth) -> Truth:
        return Truth(self.writer, self.writer.op("or_bool", self.value, other.value))

    def __invert__(self) -> Truth:
        return Truth(self.writer, self.writer.op("lnot_bool", self.value))

    def choose(self, if_true: Real | float, if_false: Real | float) -> Real:
        yes, no = (x if isinstance(x, Real) else Real(self.writer, x) for x in (if_true, if_false))
        return Real(self.writer, self.writer.op("select_f32", no.value, yes.value, self.value))
