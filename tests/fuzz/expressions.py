"""Expressions of any wanted type, over what is in scope. Choices come from hypothesis, simplest first, so that it can
shrink them.

What the reader can compute by itself it does, and rejects the program where that overflows; so no operation has only
constant operands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from hypothesis import strategies as st

from bankshot.sim.wgsl import types as t

from .forms import FORMS, Form, is_half
from .scopes import Root, Scope, routes, swizzles

T = TypeVar("T")

LITERALS = {
    t.BOOL: ("false", "true"),
    t.U32: ("0u", "1u", "2u", "3u", "7u", "8u", "31u", "32u", "100u", "65535u", "2147483648u", "4294967295u"),
    t.I32: ("0i", "1i", "2i", "-1i", "3i", "-7i", "31i", "100i", "-65536i", "2147483647i", "i32(-2147483648)"),
    t.F32: ("0f", "1f", "2f", "-1f", "0.5f", "-0.75f", "3f", "0.1f", "10f", "-100.5f", "1e-3f", "16777216f"),
    t.F16: ("0h", "1h", "2h", "-1h", "0.5h", "-0.75h", "3h", "0.1h", "10h", "-100.5h", "1e-3h", "2048h"),
}
FLOAT_KINDS, WHOLE_KINDS = (t.F32, t.F16), (t.U32, t.I32)
_HOLE = re.compile(r"#(\d+)")


class Choice:
    """Choices drawn from hypothesis; the first is the simplest."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self._draw = draw

    def below(self, count: int) -> int:
        return self._draw(_below(count)) if count > 1 else 0

    def between(self, low: int, high: int) -> int:
        return low + self.below(high - low + 1)

    def of(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def chance(self, percent: int) -> bool:
        """True so often; no is the simpler."""
        return self.below(100) >= 100 - percent


@cache
def _below(count: int) -> Any:
    return st.integers(0, count - 1)


@dataclass(frozen=True, slots=True)
class Text:
    """An expression; `constant`: the reader can compute it."""

    text: str
    constant: bool = False


@dataclass(frozen=True)
class Function:
    """A function of the program. `pointers` are the address spaces of parameters that are pointers, None of others.

    `alone`: touches no module-scope variable that can be written, so that it may be given pointers to them.
    """

    name: str
    params: tuple[t.Type, ...]
    pointers: tuple[str | None, ...]
    result: t.Type
    alone: bool


@cache
def _operations(result: t.Type, half: bool, free: bool) -> list[list[Form]]:
    """Forms that make a type, a list for each operation: with f16 or without, with transcendental ones or without."""
    kept = (
        [f for f in forms if (free or not f.free) and (half or not any(map(is_half, f.params)))]
        for forms in FORMS.get(result, {}).values()
    )
    return list(filter(None, kept))


class Expressions:
    """Writes expressions. `half`: with f16; `free`: with operations that every implementation does its own way."""

    def __init__(self, choice: Choice, half: bool, free: bool) -> None:
        self.choice = choice
        self.half = half
        self.free = free
        self.scope = Scope()
        self.functions: list[Function] = []

    def roots(self) -> list[Root]:
        """What can be named here."""
        return list(self.scope)

    # ---- types ----

    def scalar(self) -> t.Scalar:
        return self.choice.of((t.U32, t.F32, t.I32, *((t.F16,) if self.half else ())))

    def type(self) -> t.Type:
        """A scalar, vector or matrix type of numbers."""
        match self.choice.below(6):
            case 0 | 1:
                return self.scalar()
            case 5:
                kind = t.F16 if self.half and self.choice.chance(30) else t.F32
                return t.Mat(self.choice.between(2, 4), self.choice.between(2, 4), kind)
            case _:
                return t.Vec(self.choice.between(2, 4), self.scalar())

    # ---- values ----

    def value(self, type_: t.Type, depth: int) -> str:
        return self.expression(type_, depth).text

    def moving(self, type_: t.Type, depth: int = 1) -> str:
        """A value that the reader cannot compute."""
        made = self.expression(type_, depth)
        return self._moved(type_) if made.constant else made.text

    def expression(self, type_: t.Type, depth: int) -> Text:
        choice = self.choice
        if depth > 0 and choice.chance(70):
            if choice.chance(15) and (called := self._call(type_, depth)):
                return called
            if isinstance(type_, t.Vec) and choice.chance(12):
                size = choice.between(2, 4)
                base = self.expression(t.Vec(size, type_.elem), depth - 1)
                return Text(f"{base.text}.{choice.of(swizzles(size, type_.size))}", base.constant)
            if operations := _operations(type_, self.half, self.free):
                return self._apply(choice.of(choice.of(operations)), depth)
        return self.leaf(type_)

    def _apply(self, form: Form, depth: int) -> Text:
        args = [self.expression(param, depth - 1) for param in form.params[:3]]
        args += [self.expression(param, 0) for param in form.params[3:]]
        for number in form.limited:
            if args[number].constant:
                args[number] = Text(f"{form.params[number]}({4 * number + self.choice.below(4)})", True)
        if all(arg.constant for arg in args):
            args[0] = Text(self._moved(form.params[0]))
        texts = [arg.text for arg in args]
        return Text(form.text.format(*texts))

    def _call(self, result: t.Type, depth: int) -> Text | None:
        fitting = [f for f in self.functions if f.result == result and self.callable(f)]
        return Text(self.call(self.choice.of(fitting), depth)) if fitting else None

    # ---- calls ----

    def callable(self, function: Function) -> bool:
        """Whether there are different variables for all its pointers."""
        return self._pointed(function) is not None

    def _pointed(self, function: Function) -> list[Root] | None:
        found: list[Root] = []
        for param, space in zip(function.params, function.pointers, strict=True):
            if space is not None:
                taken = {root.owner for root in found}
                fitting = [r for r in self.roots() if r.space == space and r.type == param and r.owner not in taken]
                if not fitting:
                    return None
                found.append(fitting[0])
        return found

    def call(self, function: Function, depth: int) -> str:
        pointed = iter(self._pointed(function) or ())
        args = [
            self.value(param, min(depth - 1, 1)) if space is None else f"&{next(pointed).text}"
            for param, space in zip(function.params, function.pointers, strict=True)
        ]
        return f"{function.name}({', '.join(args)})"

    # ---- leaves ----

    def leaf(self, type_: t.Type) -> Text:
        if self.choice.chance(75) and (ways := self._ways(type_, constants=True)):
            root, route = self.choice.of(ways)
            return Text(self.place(root, route), root.constant)
        return self._built(
            type_, lambda part: self.leaf(part) if self.choice.chance(60) else Text(self.literal(part), True)
        )

    def _ways(self, type_: t.Type, constants: bool) -> list[tuple[Root, str]]:
        roots = [root for root in self.roots() if constants or not root.constant]
        return [(root, route) for root in roots for route in routes(root.type, type_)]

    def _moved(self, type_: t.Type) -> str:
        """A value that the reader cannot compute, without indices. Of u32 there is always a variable."""
        plain = [(r.text, route) for r, route in self._ways(type_, constants=False) if "#" not in r.text + route]
        if plain:
            return "".join(self.choice.of(plain))
        if isinstance(type_, t.Scalar):
            return f"{type_}({self._moved(t.U32)})"
        moved = iter([True])
        return self._built(type_, lambda p: Text(self._moved(p) if next(moved, False) else self.literal(p))).text

    def _built(self, type_: t.Type, part: Callable[[t.Type], Text]) -> Text:
        """A constructor, or a literal of a scalar type."""
        if isinstance(type_, t.Scalar):
            return Text(self.literal(type_), True)
        parts = [part(each) for each in parts_of(type_)]
        return Text(f"{type_}({', '.join(p.text for p in parts)})", all(p.constant for p in parts))

    def literal(self, type_: t.Type) -> str:
        """A value of nothing but literals."""
        if isinstance(type_, t.Scalar):
            return self.choice.of(LITERALS[type_])
        return self._built(type_, lambda part: Text(self.literal(part), True)).text

    def place(self, root: Root, route: str) -> str:
        """A part of a root, its indices written out."""

        def index(found: re.Match[str]) -> str:
            return self._index(int(found[1]), root)

        return _HOLE.sub(index, root.text + route)

    def _index(self, count: int, root: Root) -> str:
        choice = self.choice
        if count and choice.chance(40):
            return str(choice.below(count))
        if root.clamped and choice.chance(15):
            return self.moving(choice.of(WHOLE_KINDS))  # of any size
        if choice.chance(30) and count:
            return f"{self.moving(t.U32)} % {count}u"
        length = f"{count}u" if count else f"arrayLength(&{root.owner})"
        return f"{self._moved(t.U32)} % {length}"


def parts_of(type_: t.Type) -> list[t.Type]:
    """What a constructor of a composite type takes."""
    match type_:
        case t.Vec():
            return [type_.elem] * type_.size
        case t.Mat():
            return [t.Vec(type_.rows, type_.elem)] * type_.cols
        case t.Array(count=int() as count):
            return [type_.elem] * count
        case t.Struct():
            return [member.type for member in type_.members]
        case _:
            raise ValueError(type_)
