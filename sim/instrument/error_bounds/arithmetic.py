"""F32 values with the arithmetic of Python numbers, and the identities that hold for bounds."""

from __future__ import annotations

from ...ir.builder import Builder
from ...ir.ir import Value
from ...ir.register_bits import from_bits

INF = float("inf")


def simpler_bound(name: str, args: tuple[Value, ...]) -> Value | None:
    """Return a value equal to a float operation on bounds, if there is one: a bound of 0 times anything is 0."""
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

    __slots__ = ("builder", "value")

    def __init__(self, builder: Builder, value: Value | float) -> None:
        self.builder = builder
        self.value = value if isinstance(value, Value) else builder.const("f32", value)

    def _op(self, name: str, *others: Real | float) -> Value:
        return self.builder.op(name, self.value, *(self.like(o).value for o in others))

    def like(self, other: Real | float) -> Real:
        return other if isinstance(other, Real) else Real(self.builder, other)

    def __add__(self, other: Real | float) -> Real:
        return Real(self.builder, self._op("add_f32", other))

    def __sub__(self, other: Real | float) -> Real:
        return Real(self.builder, self._op("sub_f32", other))

    def __mul__(self, other: Real | float) -> Real:
        return Real(self.builder, self._op("mul_f32", other))

    def __truediv__(self, other: Real | float) -> Real:
        return self.like(0.0) if self.is_zero else Real(self.builder, self._op("div_f32", other))

    def __abs__(self) -> Real:
        return Real(self.builder, self._op("abs_f32"))

    def __gt__(self, other: Real | float) -> Truth:
        return Truth(self.builder, self._op("gt_f32", other))

    def __ge__(self, other: Real | float) -> Truth:
        return Truth(self.builder, self._op("ge_f32", other))

    def __lt__(self, other: Real | float) -> Truth:
        return Truth(self.builder, self._op("lt_f32", other))

    def __le__(self, other: Real | float) -> Truth:
        return Truth(self.builder, self._op("le_f32", other))

    def times_plus(self, factor: Real | float, addend: Real | float) -> Real:
        """Return self * factor + addend, rounded once."""
        factor, addend = self.like(factor), self.like(addend)
        if self.is_zero or factor.is_zero:
            return addend
        return self * factor if addend.is_zero else Real(self.builder, self._op("fma_f32", factor, addend))

    def called(self, name: str) -> Real:
        """Apply the f32 builtin `name`."""
        return Real(self.builder, self._op(f"{name}_f32"))

    def at_least(self, other: Real | float) -> Real:
        """Return the larger of two numbers (not of two bounds: it would lose a NaN)."""
        return Real(self.builder, self._op("max_f32", other))

    def at_most(self, other: Real | float) -> Real:
        """Return the smaller of two numbers."""
        return Real(self.builder, self._op("min_f32", other))

    @property
    def unknown(self) -> Real:
        """NaN if a bound is infinite or NaN, else 0."""
        return Real(self.builder, self._op("sub_f32", self))

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

    __slots__ = ("builder", "value")

    def __init__(self, builder: Builder, value: Value | bool) -> None:
        self.builder = builder
        self.value = value if isinstance(value, Value) else builder.const("bool", value)

    def __and__(self, other: Truth) -> Truth:
        return Truth(self.builder, self.builder.op("and_bool", self.value, other.value))

    def __or__(self, other: Truth) -> Truth:
        return Truth(self.builder, self.builder.op("or_bool", self.value, other.value))

    def __invert__(self) -> Truth:
        return Truth(self.builder, self.builder.op("lnot_bool", self.value))

    def choose(self, if_true: Real | float, if_false: Real | float) -> Real:
        yes, no = (x if isinstance(x, Real) else Real(self.builder, x) for x in (if_true, if_false))
        return Real(self.builder, self.builder.op("select_f32", no.value, yes.value, self.value))
