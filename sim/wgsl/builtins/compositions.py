"""Builtins in terms of scalar operations, defined once for const-evaluation and for lowering.

`apply` defines every row of kind "op" and "compose" by the `ops` of the caller: const-evaluation computes numbers, the
lowerer emits instructions. A handle is what `ops` represents a scalar by. A vector is a list of handles, a matrix a
list by column, a struct the handles of its members in order.

Sums go from left to right, products before sums, as in the spec's "inherited from" formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product
from typing import Any, Protocol

from .. import types as t
from . import BUILTINS, OPERATORS, Builtin

Handle = Any


class Ops(Protocol):
    """Scalar operations: `ops("add_f32", a, b)`, and `ops.const("f32", 0.5)` for a number."""

    def __call__(self, op: str, /, *args: Handle) -> Handle: ...

    def const(self, kind: str, value: float, /) -> Handle: ...


Args = Sequence[list[Handle]]
Types = Sequence[t.Type]


def apply(builtin: Builtin, ops: Ops, arg_types: Types, args: Args, result: t.Type) -> list[Handle]:
    """Return the scalars of `builtin(args)`. `arg_types` are the parameters' types, `args` their flattened scalars."""
    first, stem = arg_types[0], builtin.op or ("mul" if builtin.name == "*" else "")
    if stem and isinstance(result, t.Scalar) and isinstance(first, t.Scalar):  # one operation: the most frequent
        return [ops(f"{stem}_{t.KIND[first]}", *[handle for (handle,) in args])]
    if builtin.kind == "compose":
        return COMPOSE[builtin.name](ops, arg_types, args, result)
    return componentwise(ops, f"{builtin.op}_{_kind(first)}", args)


def componentwise(ops: Ops, op: str, args: Args) -> list[Handle]:
    """Apply a scalar operation to each component; a scalar argument is broadcast."""
    width = max(map(len, args))
    if width == 1:
        return [ops(op, *[arg[0] for arg in args])]
    columns = [arg if len(arg) > 1 else arg * width for arg in args]
    return [ops(op, *handles) for handles in zip(*columns, strict=True)]


def required_ops() -> set[str]:
    """Return the names of the scalar operations that the overloads of all builtins and operators need."""
    recorder = _Recorder()
    for row in (*BUILTINS.values(), *OPERATORS.values()):
        if row.kind == "effect":
            continue
        for signature in row.overloads:
            for candidate in signature.candidates(()):
                args = [[None] * t.components(param) for param in candidate.params]
                assert candidate.result is not None
                apply(row, recorder, candidate.params, args, candidate.result)
    kinds = [*t.KIND.items()]
    conversions = {f"convert_{a}_{b}" for (one, a), (two, b) in product(kinds, kinds) if one != two and _converts(two)}
    return recorder.names | conversions | {"convert_ai_af"}


def _converts(to: t.Scalar) -> bool:
    return to not in t.ABSTRACTS


class _Recorder:
    """`Ops` that record the names of operations."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def __call__(self, op: str, /, *args: Handle) -> None:
        self.names.add(op)

    def const(self, kind: str, value: float, /) -> None:
        pass


def _kind(type_: t.Type) -> str:
    """Return the kind of the elements: `f32` for f32, vec3<f32> and mat2x2<f32>."""
    return t.KIND[t.element_of(type_)]


# ---- vectors -------------------------------------------------------------------------------------------


def _fold(ops: Ops, op: str, handles: list[Handle]) -> Handle:
    return reduce(lambda a, b: ops(op, a, b), handles)


def _dot(ops: Ops, kind: str, a: list[Handle], b: list[Handle]) -> Handle:
    return _fold(ops, f"add_{kind}", componentwise(ops, f"mul_{kind}", [a, b]))


def _length(ops: Ops, kind: str, v: list[Handle]) -> Handle:
    return ops(f"length_{kind}", v[0]) if len(v) == 1 else ops(f"sqrt_{kind}", _dot(ops, kind, v, v))


def _dot_product(ops: Ops, types: Types, args: Args, result: t.Type) -> list[Handle]:
    return [_dot(ops, _kind(result), *args)]


def _length_of(ops: Ops, types: Types, args: Args, result: t.Type) -> list[Handle]:
    return [_length(ops, _kind(result), args[0])]


def _distance(ops: Ops, types: Types, args: Args, result: t.Type) -> list[Handle]:
    kind = _kind(result)
    return [_length(ops, kind, componentwise(ops, f"sub_{kind}", args))]


def _normalize(ops: Ops, types: Types, args: Args, result: t.Type) -> list[Handle]:
    kind = _kind(result)
    return componentwise(ops, f"div_{kind}", [args[0], [_length(ops, kind, args[0])]])


def _cross(ops: Ops, types: Types, args: Args, result: t.Type) -> list[Handle]:
    kind = _kind(result)
    a, b = args

    def minor(i: int, j: int) -> Handle:
        return ops(f"sub_{kind}", ops(f"mul_{kind}", a[i], b[j]), ops(f"mul_{kind}", a[j], b[i]))

    return [minor(1, 2), minor(2, 0), minor(0, 1)]


def _face_forward(ops: Ops, types: Types, args: Args, result: t.Type) -> list[Handle]:
    """select(-e1, e1, dot(e2, e3) < 0)"""
    kind = _kind(result)
    e1, e2, e3 = args
    behind = ops(f"lt_{kind}", _dot(ops, kind, e2, e3), ops.const(kind, 0))
    return componentwise(ops, f"select_{kind}", [componentwise(ops, f"neg_{kind}", [e1]), e1, [behind]])


def _reflect(ops: Ops, types: Types, args: Args, result: t.Type) -> list[Handle]:
    """e1 - 2 * dot(e2, e1) * e2"""
    kind = _kind(result)
    e1, e2 = args
    twice = ops(f"mul_{kind}", ops.const(kind, 2), _dot(ops, kind, e2, e1))
    return componentwise(ops, f"sub_{kind}", [e1, componentwise(ops, f"mul_{kind}", [[twice], e2])])


def _refract(ops: Ops, types: Types, args: Args, result: t.Type) -> list[Handle]:
    """k = 1 - e3 * e3 * (1 - d * d), d = dot(e2, e1); e3 * e1 - (e3 * d + sqrt(k)) * e2, or 0 where k < 0"""
    kind = _kind(result)
    e1, e2, (e3,) = args
    zero, one = ops.const(kind, 0), ops.const(kind, 1)

    def op(name: str, *handles: Handle) -> Handle:
        return ops(f"{name}_{kind}", *handles)

    d = _dot(ops, kind, e2, e1)
    k = op("sub", one, op("mul", op("mul", e3, e3), op("sub", one, op("mul", d, d))))
    root = op("sqrt", op("max", k, zero))  # that of a negative k is unused
    along = op("add", op("mul", e3, d), root)
    bent = [op("sub", op("mul", e3, x), op("mul", along, n)) for x, n in zip(e1, e2, strict=True)]
    return componentwise(ops, f"select_{kind}", [bent, [zero], [op("lt", k, zero)]])


def _mix(ops: Ops, types: Types, args: Args, result: t.Type) -> list[Handle]:
    """e1 * (1 - e3) + e2 * e3"""
    kind = _kind(result)
    e1, e2, e3 = args
    rest = componentwise(ops, f"sub_{kind}", [[ops.const(kind, 1)], e3])
    parts = [componentwise(ops, f"mul_{kind}", pair) for pair in ([e1, rest], [e2, e3])]
    return componentwise(ops, f"add_{kind}", parts)


def _smoothstep(ops: Ops, types: Types, args: Args, result: t.Type) -> list[Handle]:
    """t * t * (3 - 2 * t), t = clamp((x - edge0) / (edge1 - edge0), 0, 1)"""
    kind = _kind(result)

    def op(name: str, *handles: Handle) -> Handle:
        return ops(f"{name}_{kind}", *handles)

    def one(edge0: Handle, edge1: Handle, x: Handle) -> Handle:
        s = op("saturate", op("div", op("sub", x, edge0), op("sub", edge1, edge0)))
        return op("mul", op("mul", s, s), op("sub", ops.const(kind, 3), op("mul", ops.const(kind, 2), s)))

    return [one(*scalars) for scalars in zip(*args, strict=True)]


def _all(ops: Ops, types: Types, args: Args, result: t.Type) -> list[Handle]:
    return [_fold(ops, "and_bool", args[0])]


def _any(ops: Ops, types: Types, args: Args, result: t.Type) -> list[Handle]:
    return [_fold(ops, "or_bool", args[0])]


# ---- matrices ------------------------------------------------------------------------------------------


def _columns(type_: t.Type, handles: list[Handle]) -> list[list[Handle]]:
    """Split a matrix into columns; a vector is one column."""
    rows = type_.rows if isinstance(type_, t.Mat) else len(handles)
    return [handles[i : i + rows] for i in range(0, len(handles), rows)]


def _rows(type_: t.Type, handles: list[Handle]) -> list[list[Handle]]:
    return [list(row) for row in zip(*_columns(type_, handles), strict=True)]


def _multiply(ops: Ops, types: Types, args: Args, result: t.Type) -> list[Handle]:
    """Multiply componentwise, or as linear algebra where a matrix meets a vector or a matrix."""
    kind = _kind(result)
    left, right = types
    if not (isinstance(left, t.Mat) or isinstance(right, t.Mat)) or t.Scalar in (type(left), type(right)):
        return componentwise(ops, f"mul_{kind}", args)
    rows = [args[0]] if isinstance(left, t.Vec) else _rows(left, args[0])
    return [_dot(ops, kind, row, column) for column in _columns(right, args[1]) for row in rows]


def _transpose(ops: Ops, types: Types, args: Args, result: t.Type) -> list[Handle]:
    return [handle for row in _rows(types[0], args[0]) for handle in row]


def _determinant(ops: Ops, types: Types, args: Args, result: t.Type) -> list[Handle]:
    kind = _kind(result)

    def expand(columns: list[list[Handle]]) -> Handle:
        """Expand along the first row (Laplace): for 2x2, m[0][0] * m[1][1] - m[1][0] * m[0][1]."""
        if len(columns) == 1:
            return columns[0][0]
        minors = [expand([c[1:] for j, c in enumerate(columns) if j != i]) for i in range(len(columns))]
        terms = [ops(f"mul_{kind}", column[0], minor) for column, minor in zip(columns, minors, strict=True)]
        total = terms[0]
        for i, term in enumerate(terms[1:], 1):
            total = ops(f"{'sub' if i % 2 else 'add'}_{kind}", total, term)
        return total

    return [expand(_columns(types[0], args[0]))]


# ---- parts and bits ------------------------------------------------------------------------------------


def _split(*stems: str) -> Callable[..., list[Handle]]:
    """Compose a struct of vectors: each stem gives one member."""

    def compose(ops: Ops, types: Types, args: Args, result: t.Type) -> list[Handle]:
        kind = _kind(types[0])
        return [handle for stem in stems for handle in componentwise(ops, f"{stem}_{kind}", args)]

    return compose


def _pack(name: str) -> Callable[..., list[Handle]]:
    """Compose one u32 of all components."""

    def compose(ops: Ops, types: Types, args: Args, result: t.Type) -> list[Handle]:
        return [ops(f"{name}_{_kind(types[0])}", *args[0])]

    return compose


def _unpack(name: str) -> Callable[..., list[Handle]]:
    """Compose a vector whose component i is `{name}_u32(word, i)`."""

    def compose(ops: Ops, types: Types, args: Args, result: t.Type) -> list[Handle]:
        return [ops(f"{name}_u32", args[0][0], ops.const("u32", i)) for i in range(t.components(result))]

    return compose


def _bitcast(ops: Ops, types: Types, args: Args, result: t.Type) -> list[Handle]:
    """Reinterpret the bits. f16 are packed in pairs, the first in the low half of the word."""
    src, dst = t.element_of(types[0]), t.element_of(result)
    if src == dst:
        return list(args[0])
    if t.ABSTRACT_INT in (src, dst):
        return componentwise(ops, "convert_ai_u32", args)
    if src == t.F16:
        halves = [ops("f16_to_bits_f16", half) for half in args[0]]
        words = [_joined(ops, *halves[i : i + 2]) for i in range(0, len(halves), 2)]
        return [_word(ops, word, t.U32, dst) for word in words]
    if dst == t.F16:
        words = [_word(ops, handle, src, t.U32) for handle in args[0]]
        return [ops("f16_from_bits_u32", half) for word in words for half in _halves(ops, word)]
    return [_word(ops, handle, src, dst) for handle in args[0]]


def _joined(ops: Ops, low: Handle, high: Handle) -> Handle:
    """Join two 16-bit numbers into one word."""
    return ops("or_u32", low, ops("shl_u32", high, ops.const("u32", 16)))


def _halves(ops: Ops, word: Handle) -> tuple[Handle, Handle]:
    """Return the low and the high 16 bits of a word."""
    return ops("and_u32", word, ops.const("u32", 0xFFFF)), ops("shr_u32", word, ops.const("u32", 16))


def _word(ops: Ops, handle: Handle, src: t.Scalar, dst: t.Scalar) -> Handle:
    return handle if src == dst else ops(f"bitcast_{t.KIND[src]}_{t.KIND[dst]}", handle)


_PACKS = (
    *("pack4x8snorm", "pack4x8unorm", "pack4xI8", "pack4xU8", "pack4xI8Clamp", "pack4xU8Clamp"),
    *("pack2x16snorm", "pack2x16unorm", "pack2x16float"),
)
_UNPACKS = (
    *("unpack4x8snorm", "unpack4x8unorm", "unpack4xI8", "unpack4xU8"),
    *("unpack2x16snorm", "unpack2x16unorm", "unpack2x16float"),
)

COMPOSE: dict[str, Callable[[Ops, Types, Args, t.Type], list[Handle]]] = {
    "*": _multiply,
    "all": _all,
    "any": _any,
    "bitcast": _bitcast,
    "cross": _cross,
    "determinant": _determinant,
    "distance": _distance,
    "dot": _dot_product,
    "faceForward": _face_forward,
    "frexp": _split("frexp_fract", "frexp_exp"),
    "length": _length_of,
    "mix": _mix,
    "modf": _split("modf_fract", "modf_whole"),
    "normalize": _normalize,
    "reflect": _reflect,
    "refract": _refract,
    "smoothstep": _smoothstep,
    "transpose": _transpose,
    **{name: _pack(name) for name in _PACKS},
    **{name: _unpack(name) for name in _UNPACKS},
}
