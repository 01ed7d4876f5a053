"""The structure of a program's expressions: what decides branches, and what belongs to one sum or product."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import cast

from ...ir import ir
from ...ir.access import Access
from ...ir.ir import Region, Slot, Value, items_of
from ...ir.register_bits import from_bits
from ...wgsl.typed import Variable

_FLOATS = ("f32", "f16")
_SUMS, _PRODUCTS = ("add", "sub", "fma"), ("mul", "div")
_STEPS = frozenset(("floor", "ceil", "trunc", "round", "fract", "sign", "step", "rem", "modf_fract"))


class Shapes:
    """What rules need to know about a program.

    `delicate`: floats from which a comparison, a whole number or an integer is computed. For these it matters whether
    they were rounded at all.

    `terms`: sums that are a term of another sum, and that no variable keeps. `factors`: products and quotients that
    belong to a larger product, and that product, which may be that of an fma. An implementation may compute these in
    another order; what is an operand more than once, like an element of a matrix, each time in another. Spec:
    "Reassociation and Fusion".

    `exponents`: whether anything is exponentiated.
    """

    def __init__(self, body: Region, accesses: list[Access]) -> None:
        self._written: dict[Slot | Variable, list[Value]] = {}
        self._loaded: dict[Value, Variable] = {}
        self._kept: set[Value] = set()
        values: list[Value] = []
        for item in items_of(body):
            if isinstance(item, Value):
                values.append(item)
                continue
            self._kept.update(map(without_sign, _operands(item)))
            if isinstance(item, ir.Set):
                self._written.setdefault(item.slot, []).append(item.value)
            elif isinstance(item, ir.Put):
                for slot in item.block.slots:
                    self._written.setdefault(slot, []).append(item.value)
            elif isinstance(item, ir.Store):
                self._written.setdefault(accesses[item.access].variable, []).extend(item.values)
            elif isinstance(item, ir.Load):
                self._loaded |= dict.fromkeys(item.results, accesses[item.access].variable)
        self.exponents = any(value.op.startswith("exp") for value in values)
        self.delicate = self._delicate(values)
        self.terms = {term for _, term in _chains(values, _SUMS) if term not in self._kept}
        self.factors = {value for pair in _chains(values, _PRODUCTS) for value in pair}

    def _delicate(self, values: list[Value]) -> set[Value]:
        found: set[Value] = set()
        waiting = [a for v in values if _decides(v) for a in v.args]
        while waiting:
            value = waiting.pop()
            if value in found or value.kind not in _FLOATS:
                continue
            found.add(value)
            waiting += [*value.args, *(v for place in self._places(value) for v in self._written.get(place, ()))]
        return found

    def _places(self, value: Value) -> list[Slot] | list[Variable]:
        """Return the variables that a value may come from."""
        if value.op == "result":
            return [self._loaded[value]] if value in self._loaded else []
        return [value.imm] if value.op == "get" else value.imm.block.slots if value.op == "pick" else []


def _chains(values: list[Value], stems: tuple[str, ...]) -> Iterator[tuple[Value, Value]]:
    """Yield pairs of an operation and an operand that is such an operation too, perhaps negated."""
    for value in values:
        operands = value.args
        if _stem(value) == "fma":
            operands = [value.args[i] for i in terms_of_fma(value.args)] if "fma" in stems else value.args[:2]
        elif _stem(value) not in stems:
            continue
        for operand in map(without_sign, operands):
            if _stem(operand) in stems and operand.region is value.region:
                yield value, operand


def without_sign(value: Value) -> Value:
    """Return what a negation negates, including one written as a product."""
    while True:
        match _stem(value), value.args:
            case "neg", (value,):
                pass
            case "mul", (one, other) if _is_unit(one) or _is_unit(other):
                value = other if _is_unit(one) else one
            case _:
                return value


def terms_of_fma(args: Sequence[Value]) -> list[int]:
    """Return the operands of an fma that are terms: the last, and before it one that is multiplied by 1 or -1."""
    signed = [i for i in (0, 1) if _is_unit(args[1 - i])]
    return [*signed[:1], 2]


def _is_unit(value: Value) -> bool:
    """Whether a value is the constant 1 or -1."""
    return value.op == "const" and abs(from_bits(value.kind, value.imm)) == 1


def _stem(value: Value) -> str:
    return value.op.rpartition("_")[0] if value.kind in _FLOATS else ""


def _decides(value: Value) -> bool:
    """Whether a result is discontinuous in its operands that are floats."""
    return (value.kind not in _FLOATS and value.op != "f16_to_bits_f16") or _stem(value) in _STEPS


def _operands(item: ir.Item) -> Iterator[Value]:
    """Yield the values that an item takes."""
    if isinstance(item, Value):
        yield from item.args
        return
    for field in fields(item):
        part: object = getattr(item, field.name)
        if field.name not in ("result", "results"):
            yield from (
                v for v in (cast(list[object], part) if isinstance(part, list) else [part]) if isinstance(v, Value)
            )
