"""Faults in what the simulator computes, one row each: an output shows them.

`bankshot diff` must name it for the kernel `VALUES`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bankshot.sim.codegen.control_flow import ControlFlow
from bankshot.sim.ir.builder import Builder
from bankshot.sim.lowering import accesses, effects, expressions, lower
from bankshot.sim.wgsl.builtins import compositions
from tests.judge.seeded_faults import Faults

FAULTS = Faults()


def _instead(patch: Any, change: Callable[[Any, str, tuple[Any, ...]], Any], *ops: str) -> None:
    """Build something else instead of a scalar operation."""
    right = Builder.op

    def op(self: Any, name: str, /, *args: Any) -> Any:
        if name not in ops:
            return right(self, name, *args)
        return change(lambda name, *args: right(self, name, *args), name, (self, *args))

    patch.setattr(Builder, "op", op)


def _renamed(other: str) -> Callable[[Any, str, tuple[Any, ...]], Any]:
    return lambda op, name, args: op(other, *args[1:])


def _inexact(op: Any, name: str, args: tuple[Any, ...]) -> Any:
    builder, left, right = args
    return op(name, left, op("mul_f32", right, builder.const("f32", 1 + 2.0**-18)))


def _few_bits(op: Any, name: str, args: tuple[Any, ...]) -> Any:
    builder, left, right = args
    return op(name, left, op("and_u32", right, builder.const("u32", 15)))


def _logical(op: Any, name: str, args: tuple[Any, ...]) -> Any:
    builder, left, right = args
    return builder.reinterpret("i32", op("shr_u32", builder.reinterpret("u32", left), right))


def _rounded(op: Any, name: str, args: tuple[Any, ...]) -> Any:
    return op(name, op("round_f32", args[1]))


def _swapped(op: Any, name: str, args: tuple[Any, ...]) -> Any:
    _, one, other, *rest = args
    return op(name, other, one, *rest)


FAULTS.row("a difference is rounded badly", "y", _instead, _inexact, "sub_f32")
FAULTS.row("a quotient of u32 is a product", "z", _instead, _renamed("mul_u32"), "div_u32")
FAULTS.row("a remainder of u32 is a quotient", "z", _instead, _renamed("div_u32"), "rem_u32")
FAULTS.row("a shift takes four bits of its amount", "z", _instead, _few_bits, "shr_u32")
FAULTS.row("a shift of i32 forgets the sign", "z", _instead, _logical, "shr_i32")
FAULTS.row("a conversion to i32 rounds", "z", _instead, _rounded, "convert_f32_i32")
FAULTS.row("min takes the larger", "y", _instead, _renamed("max_f32"), "min_f32")
FAULTS.row("less is less or equal", "z", _instead, _renamed("le_u32"), "lt_u32")
FAULTS.row("select takes the other", "z", _instead, _swapped, "select_u32")
FAULTS.row("a difference is the other way round", "y", _instead, _swapped, "sub_f32")
FAULTS.row("round goes down", "y", _instead, _renamed("floor_f32"), "round_f32")
FAULTS.row("fract keeps all", "y", _instead, lambda op, name, args: args[1], "fract_f32")


@FAULTS.made_by("a dot product forgets its last component", "y")
def _(patch: Any) -> None:
    right = compositions._dot
    patch.setattr(compositions, "_dot", lambda ops, kind, a, b: right(ops, kind, a[:-1], b[:-1]))


@FAULTS.made_by("a matrix is read by row", "y")
def _(patch: Any) -> None:
    patch.setattr(
        compositions,
        "_rows",
        lambda type_, handles: [handles[i : i + type_.cols] for i in range(0, len(handles), type_.cols)],
    )


@FAULTS.made_by("lanes are numbered from 1", "z")
def _(patch: Any) -> None:
    right = expressions.Expressions._builtin_input

    def builtin_input(self: Any, name: str | None, span: Any) -> Any:
        values = right(self, name, span)
        if name != "local_invocation_index":
            return values
        return [self.builder.op("add_u32", values[0], self.builder.const("u32", 1))]

    patch.setattr(expressions.Expressions, "_builtin_input", builtin_input)


@FAULTS.made_by("an index out of bounds wraps", "z")
def _(patch: Any) -> None:
    right = accesses.Memory._kept

    def kept(self: Any, step: Any, view: Any) -> Any:
        self.policy, before = "wrap", self.policy
        value = right(self, step, view)
        self.policy = before
        return value

    patch.setattr(accesses.Memory, "_kept", kept)


@FAULTS.made_by("continue leaves the loop", "z")
def _(patch: Any) -> None:
    right = lower._Lowering._jump

    def jump(self: Any, kind: str, target: Any, span: Any) -> None:
        right(self, "exit" if kind == "continue" else kind, target, span)

    patch.setattr(lower._Lowering, "_jump", jump)


@FAULTS.made_by("a return does not leave", "y")
def _(patch: Any) -> None:
    right = lower._Lowering._jump

    def jump(self: Any, kind: str, target: Any, span: Any) -> None:
        if not span.text.startswith("return"):
            right(self, kind, target, span)

    patch.setattr(lower._Lowering, "_jump", jump)


@FAULTS.made_by("atomicMax adds", "hist")
def _(patch: Any) -> None:
    patch.setitem(effects.EFFECTS, "atomicMax", effects.EFFECTS["atomicAdd"])


@FAULTS.made_by("stores go to the next element", "y")
def _(patch: Any) -> None:
    right = accesses.Memory._store_leaf

    def store(self: Any, view: Any, leaf: Any, offset: int, values: Any, span: Any, part: int) -> None:
        moved = 4 if view.variable.name == "y" else 0
        right(self, view, leaf, offset + moved, values, span, part)

    patch.setattr(accesses.Memory, "_store_leaf", store)


@FAULTS.made_by("the other arm runs in all lanes", "hist")
def _(patch: Any) -> None:
    patch.setattr(ControlFlow, "_complement", lambda self, condition, outer: outer or self._operands.constant(1))
