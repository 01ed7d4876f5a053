"""Integer expressions of a shader as polynomials of ids and of sizes that the host passes.

A `Form` maps products of atoms to factors: `(params.n - 1) * 2` is {(n,): 2, (): -2}. Division by a constant is exact
here, as only sizes are estimated from it. What has no such form is an atom of its own, of kind `other`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from fractions import Fraction
from typing import Any

from ...sim.fast_dataclass import entity, frozen
from ...sim.wgsl import typed
from ...sim.wgsl import types as t
from ...sim.wgsl.texel_formats import shape_of

IDS = {
    "global_invocation_id": "global",
    "workgroup_id": "workgroup",
    "local_invocation_id": "local",
    "global_invocation_index": "global",
    "workgroup_index": "workgroup",
    "local_invocation_index": "local",
}
TEXELS = 64  # along an axis of a texture, as `invented_inputs` makes them
_DEEPEST = 12  # calls


@frozen
class Atom:
    """What a form depends on. `kind`: global, workgroup or local (an id; `key` is its axis), size (`key` is the place
    of a number in a binding, or the length of an array), or other."""

    kind: str
    key: Any


Form = Mapping[tuple[Atom, ...], Fraction]
Vector = tuple[Form, ...]

ONE = ()


def constant(number: float | Fraction) -> Form:
    return {ONE: Fraction(number)}


def add(left: Form, right: Form, sign: int = 1) -> Form:
    total = dict(left)
    for term, factor in right.items():
        total[term] = total.get(term, Fraction(0)) + sign * factor
    return {term: factor for term, factor in total.items() if factor}


def multiply(left: Form, right: Form) -> Form:
    total: Form = {}
    for term, factor in left.items():
        for other, by in right.items():
            total = add(total, {tuple(sorted((*term, *other), key=repr)): factor * by})
    return total


def number_of(form: Form) -> Fraction | None:
    """The value of a form without atoms, else None."""
    return form.get(ONE, Fraction(0)) if all(term == ONE for term in form) else None


def atoms(form: Form) -> set[Atom]:
    return {atom for term in form for atom in term}


@entity
class Walk:
    """A walk through everything that an entry point reaches, which reports comparisons, indices and divisors.

    `size`: the key of a number in a binding, by variable and path of members; None for what is no size. `compared`
    receives both sides, also of texel coordinates and the size of their texture, `indexed` a variable and an index,
    `divided` a divisor.
    """

    pipeline: typed.Pipeline
    size: Callable[[typed.Variable, tuple[Any, ...]], object]
    compared: Callable[[str, Form, Form], None]
    indexed: Callable[[typed.Variable, Form], None]
    divided: Callable[[Form], None]
    _vectors: dict[typed.Variable, Vector] = field(
        default_factory=dict[typed.Variable, "Vector"]
    )  # that variables hold

    def run(self) -> None:
        self._function(self.pipeline.entry, {}, 0)

    def _function(self, function: typed.Function, values: dict[typed.Variable, Form], depth: int) -> None:
        assert function.body is not None
        changing = _assigned(function.body)
        for statement in typed.statements(function.body):
            if isinstance(statement, typed.LetDecl):
                self._hold(statement.var, statement.init, values, values)
            elif isinstance(statement, typed.VarDecl) and statement.init is not None:
                later = {(Atom("other", statement.var),): Fraction(1)} if statement.var in changing else {}
                self._hold(statement.var, statement.init, values, values, later)
            for operand in typed.operands(statement):
                self._look(operand, values, depth)

    def _hold(
        self,
        variable: typed.Variable,
        init: typed.Expr,
        values: Mapping[typed.Variable, Form],
        into: dict[typed.Variable, Form],
        later: Form = {},  # noqa: B006  # never changed
    ) -> None:
        """Note what a variable holds; `later`: added to it, for what statements add."""
        vector = self._vector(init, values)
        if vector is not None:
            self._vectors[variable] = tuple(add(part, later) for part in vector)
        into[variable] = add(self._form(init, values), later)

    def _look(self, whole: typed.Expr, values: dict[typed.Variable, Form], depth: int) -> None:
        for part in typed.expressions(whole):
            match part:
                case typed.BuiltinCall(builtin=builtin, args=[left, right]) if builtin.name in _COMPARISONS:
                    sides = [self._vector(side, values) or (self._form(side, values),) for side in (left, right)]
                    for one, other in zip(*sides, strict=True):
                        self.compared(builtin.name, one, other)
                case typed.BuiltinCall(builtin=builtin, args=[texture, at, *_]) if builtin.name in _OF_TEXELS:
                    for coordinate in self._vector(at, values) or (self._form(at, values),):
                        self.compared("<", coordinate, constant(texels_of(texture.type)))
                case typed.BuiltinCall(builtin=builtin, args=[_, right]) if builtin.name in ("/", "%"):
                    self.divided(self._form(right, values))
                case typed.Index(index=index):
                    if root := root_of(part):
                        self.indexed(root, self._form(index, values))
                case typed.Call(function=callee, args=args) if depth < _DEEPEST:
                    held: dict[typed.Variable, Form] = {}
                    for parameter, arg in zip(callee.params, args, strict=True):
                        self._hold(parameter, arg, values, held)
                    self._function(callee, held, depth + 1)
                case _:
                    pass

    def _form(self, expr: typed.Expr, values: Mapping[typed.Variable, Form]) -> Form:
        """The form of a scalar expression."""
        return self._known(expr, values) or {(Atom("other", id(expr)),): Fraction(1)}

    def _known(self, expr: typed.Expr, values: Mapping[typed.Variable, Form]) -> Form | None:
        match expr:
            case typed.Const(value=bool() | int() as value):
                return constant(value)
            case typed.OverrideRef(override=override):
                value = self.pipeline.values.get(override)
                return constant(value) if isinstance(value, int) else None
            case typed.Convert(arg=arg):
                return self._form(arg, values)
            case typed.ValueRef(var=var) if var in values:
                return values[var]
            case typed.Load(ref=typed.VarRef(var=var)) if var in values:
                return values[var]
            case typed.ValueRef() | typed.Swizzle() | typed.Member() | typed.Index() | typed.Load():
                return self._leaf(expr, values)
            case typed.BuiltinCall(builtin=builtin, args=args):
                return self._call(builtin.name, args, values)
            case _:
                return None

    def _leaf(self, expr: typed.Expr, values: Mapping[typed.Variable, Form]) -> Form | None:
        """An id, a component of what a `let` holds, or a number in a binding."""
        base, path = path_of(expr)
        return self._at(base, path, values)

    def _at(self, base: typed.Expr, path: tuple[Any, ...], values: Mapping[typed.Variable, Form]) -> Form | None:
        """What is at the end of a path of `path_of`."""
        match path:
            case (("at", int(number)),) if held := self._parts(base, values):
                return held[number]
            case _:
                pass
        if isinstance(base, typed.ValueRef):
            return self._id(base.var, path) or self._of_let(base.var, path, values)
        if isinstance(base, typed.VarRef):
            key = self.size(base.var, path)
            return None if key is None else {(Atom("size", key),): Fraction(1)}
        if isinstance(base, typed.BuiltinCall) and base.builtin.name == "textureDimensions":
            return constant(TEXELS)
        return None

    def _vector(self, expr: typed.Expr, values: Mapping[typed.Variable, Form]) -> Vector | None:
        """The forms of the components of a vector; None for an expression of another type."""
        if not isinstance(expr.type, t.Vec):
            return None
        if held := self._parts(expr, values):
            return held
        base, path = path_of(expr)
        unknown = (self._at(base, (*path, ("at", number)), values) for number in range(expr.type.size))
        return tuple(form or {(Atom("other", (id(expr), number)),): Fraction(1)} for number, form in enumerate(unknown))

    def _parts(self, expr: typed.Expr, values: Mapping[typed.Variable, Form]) -> Vector | None:
        """The components of a vector that a variable holds or that is computed; None for others."""
        match expr:
            case typed.ValueRef(var=var) | typed.VarRef(var=var) | typed.Load(ref=typed.VarRef(var=var)):
                return self._vectors.get(var)
            case typed.Convert(arg=arg, type=t.Vec()):
                return self._vector(arg, values)
            case typed.Swizzle(base=base, components=components, type=t.Vec()):
                whole = self._vector(base, values)
                return None if whole is None else tuple(whole[number] for number in components)
            case typed.Construct(args=args, type=t.Vec(size=size)):
                parts = [form for arg in args for form in self._vector(arg, values) or (self._form(arg, values),)]
                return tuple(parts) if len(parts) == size else tuple((parts or [constant(0)]) * size)
            case typed.BuiltinCall(builtin=builtin, args=[left, right], type=t.Vec(size=size)):
                sides = [self._vector(arg, values) or (self._form(arg, values),) * size for arg in (left, right)]
                made = (_computed(builtin.name, *pair) for pair in zip(*sides, strict=True))
                return tuple(
                    form or {(Atom("other", (id(expr), number)),): Fraction(1)} for number, form in enumerate(made)
                )
            case _:
                return None

    def _id(self, var: typed.Variable, path: tuple[Any, ...]) -> Form | None:
        name = var.builtin
        if isinstance(var.type, t.Struct) and path and isinstance(path[0], int):
            name, path = var.type.members[path[0]].attrs.get("builtin"), path[1:]
        if name not in IDS or len(path) > 1:
            return None
        axis = path[0][1] if path else 0
        return {(Atom(IDS[name], axis),): Fraction(1)}

    def _of_let(self, var: typed.Variable, path: tuple[Any, ...], values: Mapping[typed.Variable, Form]) -> Form | None:
        """The component of a vector that a `let` names: follow the name to the binding or the id."""
        terms = list(values.get(var, {}))
        if not path or len(terms) != 1 or len(terms[0]) != 1:
            return None
        (atom,) = terms[0]
        if atom.kind == "size":
            variable: typed.Variable = atom.key[0]
            before: tuple[Any, ...] = atom.key[1]
            key = self.size(variable, (*before, *path))
            return None if key is None else {(Atom("size", key),): Fraction(1)}
        if atom.kind in IDS.values():
            return {(Atom(atom.kind, path[0][1]),): Fraction(1)}
        return None

    def _call(self, name: str, args: list[typed.Expr], values: Mapping[typed.Variable, Form]) -> Form | None:
        if name == "arrayLength":
            root = root_of(args[0])
            key = None if root is None else self.size(root, ("length",))
            return None if key is None else {(Atom("size", key),): Fraction(1)}
        return _computed(name, *(self._form(arg, values) for arg in args)) if len(args) == 2 else None


def _computed(name: str, left: Form, right: Form) -> Form | None:
    """The form of an operation on two numbers."""
    by = number_of(right)
    match name:
        case "min" | "max":
            return left  # a clamped index, whose bounds are close
        case "+" | "-":
            return add(left, right, 1 if name == "+" else -1)
        case "*":
            return multiply(left, right)
        case "/" if by:
            return multiply(left, constant(1 / by))
        case ">>" if by is not None and 0 <= by < 32:
            return multiply(left, constant(Fraction(1, 1 << int(by))))
        case "<<" if by is not None and 0 <= by < 32:
            return multiply(left, constant(1 << int(by)))
        case _:
            return None


def _assigned(body: typed.Block) -> set[typed.Variable]:
    """The variables that statements change after their declaration."""
    targets = (s.target for s in typed.statements(body) if isinstance(s, typed.Assign | typed.CompoundAssign))
    return {root for target in targets if (root := root_of(target))}


def texels_of(texture: t.Type) -> int:
    """How many texels a texture of `invented_inputs` has along each axis."""
    return TEXELS // 2 if isinstance(texture, t.Texture) and shape_of(texture).axes == 3 else TEXELS


_OF_TEXELS = frozenset(("textureLoad", "textureStore"))
_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))


def path_of(expr: typed.Expr) -> tuple[typed.Expr, tuple[Any, ...]]:
    """What an expression is a part of, and the way to it: numbers of members, and (`at`, n) for elements."""
    match expr:
        case typed.Load(ref=ref):
            return path_of(ref)
        case typed.Member(base=base, index=index):
            root, path = path_of(base)
            return root, (*path, index)
        case typed.Swizzle(base=base, components=(only,)):
            root, path = path_of(base)
            return root, (*path, ("at", only))
        case typed.Index(base=base, index=typed.Const(value=int(value))):
            root, path = path_of(base)
            return root, (*path, ("at", value))
        case _:
            return expr, ()


def root_of(ref: typed.Expr) -> typed.Variable | None:
    """The variable that a reference or pointer is a part of."""
    match ref:
        case typed.VarRef(var=var):
            return var
        case typed.Index(base=base) | typed.Member(base=base) | typed.Swizzle(base=base):
            return root_of(base)
        case typed.Deref(pointer=inner) | typed.AddressOf(ref=inner) | typed.Load(ref=inner):
            return root_of(inner)
        case _:
            return None


def leaves(type_: t.Type) -> Iterator[tuple[tuple[Any, ...], t.Scalar]]:
    """The scalars of a type of fixed size, with the paths to them."""
    match type_:
        case t.Scalar():
            yield (), type_
        case t.Atomic(elem=elem):
            yield (), elem
        case t.Struct(members=members):
            for number, member in enumerate(members):
                yield from (((number, *path), leaf) for path, leaf in leaves(member.type))
        case t.Vec(size=count, elem=elem) | t.Array(count=int(count), elem=elem):
            for number in range(count):
                yield from (((("at", number), *path), leaf) for path, leaf in leaves(elem))
        case _:
            return
