"""The numbers that a host passes to a shader, and how the shader uses them: as sizes, or otherwise.

A number is a *size* if ids or loops are compared with it, or an index multiplies by it. The comparison of an id with a
size also says how many workgroups an axis needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from fractions import Fraction
from typing import Any

from ...sim.fast_dataclass import entity, frozen
from ...sim.wgsl import typed
from ...sim.wgsl import types as t
from ..manifests.dimension_arithmetic import FUNCTIONS
from . import index_forms
from .index_forms import Atom, Form, Walk, leaves

MOST_NUMBERS = 40  # in one binding; one with more holds data
AXES = "xyz"

Key = tuple[typed.Variable, tuple[Any, ...]]  # a variable, and a path of `index_forms.leaves` or ("length",)


@frozen
class Bound:
    """What ids along an axis are compared with: a form of sizes, of which a workgroup covers `step`."""

    form: Form
    step: Fraction


@entity
class SizeUses:
    """What a shader does with the numbers that it is passed. `names`: of dims, by key, in the order of declaration.
    `bounds`: by axis. `strides`: by variable, how many terms of its indices each size multiplies. `lengths`: variables
    whose length the shader reads. `flat`: axes whose ids are terms of an index that another axis' comparison bounds.
    `unread`: numbers that the shader never reads."""

    names: dict[Key, str] = field(default_factory=dict[Key, str])
    bounds: dict[int, Bound] = field(default_factory=dict[int, Bound])
    strides: dict[typed.Variable, dict[str, int]] = field(default_factory=dict[typed.Variable, dict[str, int]])
    lengths: set[typed.Variable] = field(default_factory=set[typed.Variable])
    flat: set[int] = field(default_factory=set[int])
    unread: set[Key] = field(default_factory=set[Key])

    def dims_of(self, form: Form) -> list[str]:
        """The names of the sizes in a form, in the order of declaration."""
        keys = {atom.key for atom in index_forms.atoms(form) if atom.kind == "size"}
        return [name for key, name in self.names.items() if key in keys]

    def text(self, form: Form, divisor: Fraction = Fraction(1)) -> str | None:
        """A form of sizes, divided and rounded up, as arithmetic on the dims; constants are dropped. None where it
        holds more than sizes."""
        if any(atom.kind != "size" or atom.key not in self.names for atom in index_forms.atoms(form)):
            return None
        whole: list[str] = []
        for term, factor in form.items():
            factor = factor / divisor
            if term and factor > 0:
                parts = [str(factor.numerator)] * (factor.numerator != 1) + [self.names[atom.key] for atom in term]
                below = f" / {factor.denominator}" if factor.denominator != 1 else ""
                whole.append(" * ".join(parts) + below)
        joined = " + ".join(whole)
        return (f"ceil({joined})" if "/" in joined else joined) or None


def size_uses(pipeline: typed.Pipeline) -> SizeUses:
    """Find what the entry point of a pipeline uses as sizes."""
    return _Finder(pipeline).found()


def numbers_of(pipeline: typed.Pipeline) -> Iterator[tuple[Key, t.Scalar]]:
    """The numbers in bindings of fixed size that a shader only reads, if there are few."""
    for variable in pipeline.globals:
        type_ = pipeline.store_types[variable]
        fixed = variable.space in ("uniform", "immediate") or (
            variable.access == "read" and isinstance(type_, t.Struct)
        )
        if fixed and not isinstance(type_, t.Texture | t.Sampler) and t.has_fixed_footprint(type_):
            found = list(leaves(type_))
            if len(found) <= MOST_NUMBERS:
                yield from (((variable, path), scalar) for path, scalar in found)


@entity
class _Finder:
    pipeline: typed.Pipeline
    _numbers: dict[Key, t.Scalar] = field(default_factory=dict[Key, t.Scalar])
    _sizes: set[Key] = field(default_factory=set[Key])
    _bounds: dict[int, Bound] = field(default_factory=dict[int, Bound])
    _strides: dict[typed.Variable, dict[Key, int]] = field(default_factory=dict[typed.Variable, dict[Key, int]])

    _flat: set[int] = field(default_factory=set[int])

    def found(self) -> SizeUses:
        self._numbers = dict(numbers_of(self.pipeline))
        Walk(self.pipeline, self._key, self._compared, self._indexed, self._note_sizes).run()
        uses = SizeUses(bounds=self._bounds, lengths={v for v, path in self._sizes if path == ("length",)})
        uses.flat, uses.unread = self._flat - self._bounds.keys(), {*self._numbers} - {*self._read()}
        aliases = dict(self._aliases())
        lengths = [key for key in self._sizes if key[1] == ("length",)]
        order = [key for key in self._numbers if key in self._sizes]
        order += sorted(lengths, key=lambda key: self.pipeline.globals.index(key[0]))
        for key in order:
            uses.names[key] = _unused(self._name(key, len(lengths), aliases), uses.names.values())
        for variable, counts in self._strides.items():
            named = {uses.names[key]: count for key, count in counts.items() if key in uses.names}
            uses.strides[variable] = named
        return uses

    def _key(self, variable: typed.Variable, path: tuple[Any, ...]) -> Key | None:
        if path == ("length",):
            return variable, path
        inside = any(key[0] is variable and key[1][: len(path)] == path for key in self._numbers)
        return (variable, path) if inside else None

    def _compared(self, operator: str, left: Form, right: Form) -> None:
        for one, other in ((left, right), (right, left)):
            whole = index_forms.number_of(one) is not None or index_forms.number_of(other) is not None
            if not whole:
                self._note_sizes(other)
            if operator not in ("==", "!="):
                self._note_bound(one, other)

    def _note_sizes(self, form: Form) -> None:
        keys = {atom.key for atom in index_forms.atoms(form) if atom.kind == "size"}
        self._sizes |= {key for key in keys if key[1] == ("length",) or self._is_whole(key)}

    def _is_whole(self, key: Key) -> bool:
        scalar = self._numbers.get(key)
        return scalar is not None and not t.is_float(scalar)

    def _note_bound(self, ids: Form, limit: Form) -> None:
        """Note what ids of an axis are compared with; of several axes in one form, the one with a known factor."""
        if any(atom.kind != "size" for atom in index_forms.atoms(limit)):
            return
        steps: dict[int, Fraction] = {}
        for term, factor in ids.items():
            match term:
                case (Atom(kind="global", key=axis),):
                    steps[axis] = steps.get(axis, Fraction(0)) + factor * self.pipeline.workgroup_size[axis]
                case (Atom(kind="workgroup", key=axis),):
                    steps[axis] = steps.get(axis, Fraction(0)) + factor
                case _:
                    pass
        axis = min((axis for axis, step in steps.items() if step > 0), default=None)
        if axis is None:
            return
        among = {atom.key for atom in index_forms.atoms(ids) if atom.kind in ("global", "workgroup")}
        self._flat |= among - {axis}
        if axis not in self._bounds or not index_forms.atoms(self._bounds[axis].form):
            self._bounds[axis] = Bound(limit, steps[axis])

    def _indexed(self, variable: typed.Variable, index: Form) -> None:
        for term in index:
            for atom in {*term}:
                if atom.kind == "size" and len(term) > 1:
                    self._note_sizes({(atom,): Fraction(1)})
                    counts = self._strides.setdefault(variable, {})
                    counts[atom.key] = counts.get(atom.key, 0) + 1

    def _read(self) -> Iterator[Key]:
        """The numbers that expressions name, or whose struct or vector they name as a whole."""
        for function in typed.reached(self.pipeline.entry):
            tops = [part for part in typed.every_expression(function) if not isinstance(part, typed.Load)]
            inner = {id(base) for part in tops if isinstance(part, typed.Member | typed.Swizzle | typed.Index)
                     for base in (part.base, getattr(part.base, "ref", None))}  # fmt: skip
            for part in tops:
                base, path = index_forms.path_of(part)
                if id(part) not in inner and isinstance(base, typed.VarRef):
                    yield from (key for key in self._numbers if key[0] is base.var and key[1][: len(path)] == path)

    def _aliases(self) -> Iterator[tuple[Key, str]]:
        """Names that a shader gives to numbers: `let M = dims.x`."""
        for function in reversed(typed.reached(self.pipeline.entry)):
            assert function.body is not None
            for statement in typed.statements(function.body):
                if isinstance(statement, typed.LetDecl):
                    base, path = index_forms.path_of(statement.init)
                    if isinstance(base, typed.VarRef) and (base.var, path) in self._numbers:
                        yield (base.var, path), statement.var.name

    def _name(self, key: Key, lengths: int, aliases: dict[Key, str]) -> str:
        variable, path = key
        if path == ("length",):
            return "N" if lengths == 1 else f"N_{variable.name}"
        return aliases.get(key) or member_name(self.pipeline.store_types[variable], path) or variable.name


def member_name(type_: t.Type, path: tuple[Any, ...]) -> str:
    """The name of a number in a binding: `n`, `size_x`; empty for a binding that is one number."""
    if not path:
        return ""
    if isinstance(type_, t.Struct):
        member = type_.members[int(path[0])]
        inner = member_name(member.type, path[1:])
        return f"{member.name}_{inner}" if inner else member.name
    number = int(path[0][1])
    inner = member_name(type_.elem, path[1:]) if isinstance(type_, t.Array) else ""
    name = "xyzw"[number] if isinstance(type_, t.Vec) else f"at{number}"
    return f"{name}_{inner}" if inner else name


def _unused(name: str, taken: Any) -> str:
    """A name that a dim may have and none has."""
    name = re.sub(r"\W", "_", name)
    name = f"{name}_" if name in (*FUNCTIONS, "cost", "golden") else name
    return name if name not in taken else next(f"{name}{n}" for n in range(2, 99) if f"{name}{n}" not in taken)
