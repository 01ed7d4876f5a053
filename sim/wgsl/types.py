"""WGSL types, and their memory layout.

Types are immutable values: equal types compare equal (structs by identity of declaration). Sizes and alignments are in
bytes. Spec: WGSL, "Types" and "Memory Layout".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from functools import cache
from typing import Any, TypedDict, cast

from ..fast_dataclass import frozen
from .diagnostics import Crash
from .source import Span


@frozen(eq=False)
class Scalar:
    """bool, i32, u32, f32, f16, abstract-int or abstract-float: the objects below, each equal only to itself."""

    name: str

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[[str], Scalar], tuple[str]]:
        return scalar, (self.name,)  # a copy is the same object


@cache
def scalar(name: str) -> Scalar:
    """Return the one scalar type of a name."""
    return Scalar(name)


BOOL, I32, U32, F32, F16 = map(scalar, ("bool", "i32", "u32", "f32", "f16"))
ABSTRACT_INT, ABSTRACT_FLOAT = scalar("abstract-int"), scalar("abstract-float")


@frozen
class Vec:
    size: int
    elem: Scalar

    def __str__(self) -> str:
        return f"vec{self.size}<{self.elem}>"


@frozen
class Mat:
    """`cols` columns of `rows` components each: WGSL's matCxR."""

    cols: int
    rows: int
    elem: Scalar

    def __str__(self) -> str:
        return f"mat{self.cols}x{self.rows}<{self.elem}>"


@frozen
class Atomic:
    elem: Scalar

    def __str__(self) -> str:
        return f"atomic<{self.elem}>"


@frozen
class OverrideCount:
    """An array length that pipeline creation determines; `expr` is the override-expression, a `typed.Expr`.

    `key` decides equality, as in the spec: the override where the expression is its bare name, else the expression.
    """

    key: object
    expr: Any  # `typed` is above this file

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OverrideCount) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@frozen
class Array:
    """An array; runtime-sized where `count` is None."""

    elem: Type
    count: int | OverrideCount | None

    def __str__(self) -> str:
        if self.count is None:
            return f"array<{self.elem}>"
        count = self.count if isinstance(self.count, int) else "override"
        return f"array<{self.elem}, {count}>"


@frozen
class Buffer(Array):
    """Opaque memory of `size` bytes, or as large as what is bound where `size` is None. It is laid out as an array."""

    size: int | None

    def __str__(self) -> str:
        return "buffer" if self.size is None else f"buffer<{self.size}>"


def narrows_buffer(given: Type, wanted: Type) -> bool:
    """Whether a pointer to a buffer may be an argument for one to a buffer of less or unknown size.

    Spec: "Conversion Rank".
    """
    if not (isinstance(given, Pointer) and isinstance(wanted, Pointer)):
        return False
    one, other = given.store, wanted.store
    if (given.space, given.access) != (wanted.space, wanted.access) or not isinstance(one, Buffer):
        return False
    return isinstance(other, Buffer) and one.size is not None and (other.size is None or other.size < one.size)


def buffer(size: int | None) -> Buffer:
    """Make a buffer type."""
    return Buffer(U32, None if size is None else -(-size // 4), size)


class IoAttributes(TypedDict, total=False):
    """The attributes of an input or output of an entry point."""

    builtin: str
    location: int
    blend_src: int
    interpolate: tuple[str, str | None]  # type, sampling


class MemberAttributes(IoAttributes, total=False):
    """The attributes of a struct member; `align` and `size` in bytes."""

    align: int
    size: int


@frozen
class Member:
    """A struct member with its offset in bytes, and its io attributes."""

    name: str
    type: Type
    offset: int
    size: int
    align: int
    span: Span | None = None
    attrs: IoAttributes = field(default_factory=IoAttributes, hash=False)


@frozen(eq=False)
class Struct:
    """A struct, equal only to itself. `size` and `align` follow the layout rules; a runtime-sized tail counts 0."""

    name: str
    members: tuple[Member, ...]
    size: int
    align: int

    def __str__(self) -> str:
        return self.name

    def index(self, name: str) -> int | None:
        """Return the index of the member called `name`, or None."""
        return next((i for i, m in enumerate(self.members) if m.name == name), None)


@frozen
class Pointer:
    """A pointer. `space`: function, private, workgroup, uniform, storage, handle, immediate. `access`: read, write,
    read_write."""

    space: str
    store: Type
    access: str

    def __str__(self) -> str:
        tail = f", {self.access}" if self.space == "storage" else ""
        return f"ptr<{self.space}, {self.store}{tail}>"


@frozen
class Reference:
    """A memory view: the type of a variable's name before the load rule applies."""

    space: str
    store: Type
    access: str

    def __str__(self) -> str:
        return f"ref<{self.space}, {self.store}, {self.access}>"


@frozen
class Texture:
    """A texture: its `kind` as spelled (texture_2d, texture_storage_2d, …) and its template arguments."""

    kind: str
    sampled: Scalar | None = None
    format: str | None = None
    access: str | None = None

    def __str__(self) -> str:
        inner = ", ".join(str(x) for x in (self.sampled, self.format, self.access) if x is not None)
        return f"{self.kind}<{inner}>" if inner else self.kind


@frozen
class Sampler:
    comparison: bool = False

    def __str__(self) -> str:
        return "sampler_comparison" if self.comparison else "sampler"


Type = Scalar | Vec | Mat | Atomic | Array | Struct | Pointer | Reference | Texture | Sampler


# ---- predicates ----------------------------------------------------------------------------------------

INTEGERS = (ABSTRACT_INT, I32, U32)
FLOATS = (ABSTRACT_FLOAT, F32, F16)
ABSTRACTS = (ABSTRACT_INT, ABSTRACT_FLOAT)

# The short name of a scalar type, as the scalar operations spell it: `add_f32`, `convert_ai_af`.
KIND = {BOOL: "bool", I32: "i32", U32: "u32", F32: "f32", F16: "f16", ABSTRACT_INT: "ai", ABSTRACT_FLOAT: "af"}


def is_float(t: Type) -> bool:
    """Whether a type is f32, f16 or abstract-float (a scalar)."""
    return t in FLOATS


def is_concrete(t: Type) -> bool:
    """Whether a type contains no abstract numeric type. Spec: "Abstract Numeric Types"."""
    match t:
        case Struct():
            return all(is_concrete(m.type) for m in t.members)
        case Vec() | Mat() | Array():
            return is_concrete(t.elem)
        case _:
            return t not in ABSTRACTS


def is_constructible(t: Type) -> bool:
    """Whether values of a type can be created, loaded, passed and returned. Spec: "Constructible Types"."""
    match t:
        case Scalar() | Vec() | Mat():
            return True
        case Buffer():  # an array
            return False
        case Array():
            return isinstance(t.count, int) and is_constructible(t.elem)
        case Struct():
            return all(is_constructible(m.type) for m in t.members)
        case _:
            return False


def is_host_shareable(t: Type) -> bool:
    """Whether a type may be used in storage and uniform buffers. Spec: "Host-shareable Types"."""
    match t:
        case Scalar() | Vec() | Mat():
            return element_of(t) != BOOL and is_concrete(t)
        case Atomic():
            return True
        case Array():
            return not isinstance(t.count, OverrideCount) and is_host_shareable(t.elem)
        case Struct():
            return all(is_host_shareable(m.type) for m in t.members)
        case _:
            return False


def has_creation_fixed_footprint(t: Type) -> bool:
    """Whether the size of a type is known at module creation. Spec: "Fixed-Footprint Types"."""
    return has_fixed_footprint(t) and not _any_array(t, lambda a: isinstance(a.count, OverrideCount))


def has_fixed_footprint(t: Type) -> bool:
    """Whether the size of a type is known by pipeline creation. Spec: "Fixed-Footprint Types"."""
    return isinstance(t, (Scalar, Vec, Mat, Atomic, Array, Struct)) and not _any_array(t, lambda a: a.count is None)


def is_plain(t: Type) -> bool:
    """Whether a type is a scalar, atomic or composite type. Spec: "Plain Types"."""
    return isinstance(t, (Scalar, Vec, Mat, Atomic, Array, Struct)) and not isinstance(t, Buffer)


def contains_atomic(t: Type) -> bool:
    """Whether a type is an atomic or contains one."""
    match t:
        case Array():
            return contains_atomic(t.elem)
        case Struct():
            return any(contains_atomic(m.type) for m in t.members)
        case _:
            return isinstance(t, Atomic)


def _any_array(t: Type, test: Callable[[Array], bool]) -> bool:
    match t:
        case Array():
            return test(t) or _any_array(t.elem, test)
        case Struct():
            return any(_any_array(m.type, test) for m in t.members)
        case _:
            return False


# ---- components ----------------------------------------------------------------------------------------


def element_of(t: Type) -> Scalar:
    """Return the scalar type of a scalar, vector, matrix or atomic, or of an array of them."""
    while not isinstance(t, Scalar):
        if not isinstance(t, (Vec, Mat, Atomic, Array)):
            raise Crash(f"{t} has no single scalar type")
        t = t.elem
    return t


def with_element(t: Type, elem: Scalar) -> Type:
    """Return the type of the same shape with another scalar type."""
    match t:
        case Scalar():
            return elem
        case Vec():
            return Vec(t.size, elem)
        case Mat():
            return Mat(t.cols, t.rows, elem)
        case Atomic():
            return Atomic(elem)
        case Array():
            return Array(with_element(t.elem, elem), t.count)
        case _:
            raise Crash(f"{t} has no single scalar type")


def children(t: Type) -> tuple[Type, ...]:
    """List the types of the direct parts of a constructible type: none for a scalar, the columns of a matrix."""
    match t:
        case Vec():
            return (t.elem,) * t.size
        case Mat():
            return (Vec(t.rows, t.elem),) * t.cols
        case Array() if isinstance(t.count, int):
            return (t.elem,) * t.count
        case Struct():
            return tuple(m.type for m in t.members)
        case Scalar():
            return ()
        case _:
            raise Crash(f"{t} has no fixed parts")


def components(t: Type) -> int:
    """Count the scalars in a value of a constructible type."""
    match t:
        case Scalar() | Atomic():
            return 1
        case Vec():
            return t.size
        case Array() if isinstance(t.count, int):
            return t.count * components(t.elem)
        case _:
            return sum(components(child) for child in children(t))


def flatten(t: Type) -> list[Scalar]:
    """List the scalar types of a constructible type in order: matrices by column, structs by member."""
    match t:
        case Scalar():
            return [t]
        case Vec():
            return [t.elem] * t.size
        case Atomic():
            return [t.elem]
        case Array() if isinstance(t.count, int):
            return flatten(t.elem) * t.count
        case _:
            return [scalar for child in children(t) for scalar in flatten(child)]


def kinds(t: Type) -> list[str]:
    """List the short names of the scalars of a constructible type, in the same order."""
    return [KIND[scalar] for scalar in flatten(t)]


# ---- memory layout -------------------------------------------------------------------------------------


def round_up(multiple: int, n: int) -> int:
    """Return the smallest multiple of `multiple` that is at least `n`."""
    return -(-n // multiple) * multiple


def align_of(t: Type) -> int:
    """Return AlignOf, in bytes. Spec: "Alignment and Size"."""
    match t:
        case Scalar():
            return 2 if t == F16 else 4
        case Vec():
            return align_of(t.elem) * (2 if t.size == 2 else 4)
        case Mat():
            return align_of(Vec(t.rows, t.elem))
        case Atomic():
            return 4
        case Array():
            return align_of(t.elem)
        case Struct():
            return t.align
        case _:
            raise Crash(f"{t} has no alignment")


def size_of(t: Type) -> int:
    """Return SizeOf, in bytes; a runtime-sized array counts 0. Spec: "Alignment and Size"."""
    match t:
        case Scalar():
            return 2 if t == F16 else 4
        case Vec():
            return t.size * size_of(t.elem)
        case Mat():
            return t.cols * stride_of(t)
        case Atomic():
            return 4
        case Array():
            if isinstance(t.count, OverrideCount):
                raise Crash(f"the size of {t} is not known before pipeline creation")
            return (t.count or 0) * stride_of(t)
        case Struct():
            return t.size
        case _:
            raise Crash(f"{t} has no size")


def stride_of(t: Array | Mat | Vec) -> int:
    """Return the bytes from one element (or matrix column) to the next. Spec: "Internal Layout of Values"."""
    elem = Vec(t.rows, t.elem) if isinstance(t, Mat) else t.elem
    return round_up(align_of(elem), size_of(elem)) if not isinstance(t, Vec) else size_of(elem)


def min_binding_size(t: Type) -> int:
    """Return the bytes that a buffer bound as `t` needs at least, with one element of a runtime-sized tail."""
    match t:
        case Array(count=None):
            return stride_of(t)
        case Struct() if t.members and not has_fixed_footprint(t):
            last = t.members[-1]
            return round_up(t.align, last.offset + min_binding_size(last.type))
        case _:
            return size_of(t)


def tail_of(t: Type) -> tuple[int, int] | None:
    """Return the byte offset and stride of the runtime-sized array at the end of a type, if it has one."""
    offset = 0
    while isinstance(t, Struct):
        offset += t.members[-1].offset
        t = t.members[-1].type
    return (offset, stride_of(t)) if isinstance(t, Array) and t.count is None else None


def least_size(t: Type) -> int:
    """Return the bytes of a type, with one element of a runtime-sized array. Spec: "MinTypeSize"."""
    tail = tail_of(t)
    return sum(tail) if tail else size_of(t)


def layout(name: str, members: Iterable[tuple[str, Type, MemberAttributes, Span | None]]) -> Struct:
    """Lay out a struct: each member is (name, type, attributes, span).

    The attributes `align` and `size` (ints) apply unchecked (the checker has validated them); the member keeps the
    others. Spec: "Structure Member Layout".
    """
    placed: list[Member] = []
    end, struct_align = 0, 1
    for member_name, type_, attrs, span in members:
        align = attrs.get("align") or align_of(type_)
        size = attrs.get("size") or size_of(type_)
        offset = round_up(align, end)
        kept = cast(IoAttributes, {key: value for key, value in attrs.items() if key not in ("align", "size")})
        placed.append(Member(member_name, type_, offset, size, align, span, kept))
        end, struct_align = offset + size, max(struct_align, align)
    return Struct(name, tuple(placed), round_up(struct_align, end), struct_align)
