"""Type expressions: `vec3<f32>`, `array<T, N>`, `ptr<storage, S, read_write>`, struct names and aliases.

`TypeExpressions` turns syntax into a `types.Type`, or raises `WgslError`. It asks `Names` what a name denotes, and
`length` for the element count of an array. Spec: WGSL, "Types".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Protocol

from .. import types as t
from ..diagnostics import WgslError, counted, did_you_mean, fail
from ..enumerants import ENUMERANTS, TIER1_FORMATS
from ..source import Span
from ..syntax import tree
from .scopes import Entity, Enumerant, Generator, TypeName, declared, describe

MAX_NESTING_DEPTH = 15  # spec, "Limits"
# Limits of Bankshot, against programs that would take minutes or all memory.
MAX_FIELDS = 1 << 14  # members of a struct and of the structs inside
MAX_COMPONENTS = 1 << 16  # scalars of a value that is constructed or zero


class Names(Protocol):
    """What a type expression asks of its context."""

    def resolve(self, name: str, span: Span, *, types: bool = False) -> Entity: ...

    def need_extension(self, name: str, what: str, span: Span) -> None: ...

    def supports(self, feature: str) -> bool: ...

    def has_extension(self, name: str) -> bool: ...


_KIND_EXAMPLES = {
    "address space": "for example storage, read_write",
    "access mode": "one of read, write, read_write",
    "texel format": "for example rgba8unorm",
}
_LISTED = 10  # enumerants in a hint
_SCALARS = {s.name: s for s in (t.BOOL, t.I32, t.U32, t.F32, t.F16)}
_SUFFIXES = {"i": t.I32, "u": t.U32, "f": t.F32, "h": t.F16}
_SIZES = (2, 3, 4)

# Predeclared types that take no template arguments. Spec: "Predeclared Types and Type-Generators Summary".
PREDECLARED_TYPES: dict[str, t.Type] = {
    **_SCALARS,
    **{f"vec{n}{s}": t.Vec(n, e) for n in _SIZES for s, e in _SUFFIXES.items()},
    **{f"mat{c}x{r}{s}": t.Mat(c, r, _SUFFIXES[s]) for c in _SIZES for r in _SIZES for s in "fh"},
    "sampler": t.Sampler(),
    "sampler_comparison": t.Sampler(comparison=True),
    **{
        f"texture_{kind}": t.Texture(f"texture_{kind}")
        for kind in (
            "depth_2d",
            "depth_2d_array",
            "depth_cube",
            "depth_cube_array",
            "depth_multisampled_2d",
            "external",
        )
    },
}

_SAMPLED = ("1d", "2d", "2d_array", "3d", "cube", "cube_array", "multisampled_2d")
_STORAGE = ("1d", "2d", "2d_array", "3d")


class TypeExpressions:
    """Checks type expressions. `length` checks an array's element count: an int, or an `OverrideCount`."""

    def __init__(self, names: Names, length: Callable[[tree.Expr], int | t.OverrideCount]) -> None:
        self._names = names
        self._length = length

    def type_of(self, expr: tree.Expr) -> t.Type:
        """Return the type that an expression denotes. Raises `WgslError` where it denotes something else."""
        if not isinstance(expr, tree.Ident):
            raise fail("not-a-type", "a type is expected here", expr.span)
        entity = self._names.resolve(expr.name, expr.name_span, types=True)
        match entity:
            case TypeName():
                return self.named(entity, expr)
            case Generator():
                return self.generated(entity, expr)
            case _:
                hint = "a type belongs here, such as f32"
                if predeclared(expr.name):
                    hint = f"it hides the type '{expr.name}' here: give it another name"
                message = f"'{expr.name}' is {describe(entity)}, not a type"
                raise fail("not-a-type", message, expr.name_span, *declared(entity), hint=hint)

    def named(self, entity: TypeName, ident: tree.Ident) -> t.Type:
        """Return the type of a name that takes no template arguments."""
        if ident.args is not None:
            raise fail("unexpected-template", f"type '{ident.name}' takes no template arguments", ident.span)
        if entity.span is None and _mentions_f16(entity.type):
            self._names.need_extension("f16", f"type '{ident.name}'", ident.span)
        return entity.type

    def generated(self, generator: Generator, ident: tree.Ident) -> t.Type:
        """Return the type that a generator makes of its template arguments."""
        least, most, make = _GENERATORS[generator.name]
        count = len(ident.args or ())
        if not least <= count <= most:
            message = f"'{ident.name}' takes {counted(least, most, 'template argument')}, not {count}"
            raise fail("template-arguments", message, ident.span, hint=_EXAMPLES[ident.name])
        return make(self, ident.name, ident.args or [], ident.span)

    def enumerant(self, expr: tree.Expr, kind: str, hint: str | None = None) -> str:
        """Return the name of an enumerant of the given kind: `storage`, `read_write`, `rgba8unorm`. Raises `WgslError`,
        with `hint` or an example."""
        article = "an" if kind[0] in "aeiou" else "a"
        if not isinstance(expr, tree.Ident):
            message = f"{article} {kind} is expected here"
            raise fail("not-an-enumerant", message, expr.span, hint=hint or _KIND_EXAMPLES.get(kind))
        try:
            entity = self._names.resolve(expr.name, expr.name_span)
        except WgslError as error:
            if error.diagnostics[0].code != "unresolved-name":
                raise
            known = [name for name, of in ENUMERANTS.items() if of == kind]
            listed = f"one of {', '.join(known)}" if len(known) < _LISTED else None
            hint = did_you_mean(expr.name, known) or hint or listed
            raise fail(
                "not-an-enumerant", f"'{expr.name}' is not {article} {kind}", expr.name_span, hint=hint
            ) from None
        if not isinstance(entity, Enumerant) or entity.kind != kind:
            message = f"'{expr.name}' is {describe(entity)}, not {article} {kind}"
            raise fail("not-an-enumerant", message, expr.name_span, hint=hint or _KIND_EXAMPLES.get(kind))
        if expr.args is not None:
            raise fail("unexpected-template", f"'{expr.name}' takes no template arguments", expr.span)
        return expr.name

    # ---- generators: their name and template arguments to a type ---------------------------------------

    def _scalar(self, expr: tree.Expr, allowed: tuple[t.Scalar, ...], what: str) -> t.Scalar:
        type_ = self.type_of(expr)
        if isinstance(type_, t.Scalar) and type_ in allowed:
            return type_
        names = ", ".join(str(a) for a in allowed[:-1]) + f" or {allowed[-1]}"
        raise fail("template-arguments", f"{what} must be {names}, not {type_}", expr.span)

    def vector(self, name: str, args: list[tree.Expr], span: Span) -> t.Type:
        return t.Vec(int(name[3]), self._scalar(args[0], tuple(_SCALARS.values()), "the component type of a vector"))

    def matrix(self, name: str, args: list[tree.Expr], span: Span) -> t.Type:
        return t.Mat(int(name[3]), int(name[5]), self._scalar(args[0], (t.F32, t.F16), "the type of a matrix"))

    def buffer(self, name: str, args: list[tree.Expr], span: Span) -> t.Type:
        if not self._names.supports("buffer_view"):
            raise fail("unsupported-feature", "type 'buffer' needs the language feature 'buffer_view'", span)
        if not args:
            return t.buffer(None)
        size = self._length(args[0])
        if not isinstance(size, int):
            raise fail("unsupported", "a buffer whose size is an override is not supported yet", args[0].span)
        if size % 4 and (size % 2 or not self._names.has_extension("f16")):
            raise fail("buffer-size", f"the size of a buffer must be a multiple of 4, not {size}", args[0].span)
        return t.buffer(size)

    def atomic(self, name: str, args: list[tree.Expr], span: Span) -> t.Type:
        return t.Atomic(self._scalar(args[0], (t.I32, t.U32), "the type of an atomic"))

    def array(self, name: str, args: list[tree.Expr], span: Span) -> t.Type:
        elem = self.type_of(args[0])
        if not (t.is_plain(elem) and t.has_creation_fixed_footprint(elem)):
            raise fail("array-element-type", f"an array cannot have elements of type {elem}", args[0].span)
        made = t.Array(elem, self._length(args[1]) if len(args) == 2 else None)
        check_nesting(made, span)
        return made

    def pointer(self, name: str, args: list[tree.Expr], span: Span) -> t.Type:
        space = self.enumerant(args[0], "address space")
        store = self.type_of(args[1])
        if len(args) == 3 and space != "storage":
            message = f"a pointer into the {space} address space takes no access mode"
            raise fail("access-mode", message, args[2].span)
        access = self.enumerant(args[2], "access mode") if len(args) == 3 else DEFAULT_ACCESS[space]
        check_access(space, access, args[-1].span)
        check_store_type(space, access, store, args[1].span)
        return t.Pointer(space, store, access)

    def sampled_texture(self, name: str, args: list[tree.Expr], span: Span) -> t.Type:
        return t.Texture(name, self._scalar(args[0], (t.F32, t.I32, t.U32), "the sampled type of a texture"))

    def storage_texture(self, name: str, args: list[tree.Expr], span: Span) -> t.Type:
        texel, access = self.enumerant(args[0], "texel format"), self.enumerant(args[1], "access mode")
        if texel in TIER1_FORMATS and not self._names.supports("texture_formats_tier1"):
            raise fail("unsupported-feature", f"texel format '{texel}' is not supported", args[0].span)
        if access != "write" and not self._names.supports("readonly_and_readwrite_storage_textures"):
            raise fail("access-mode", f"a storage texture with access mode '{access}' is not supported", args[1].span)
        return t.Texture(name, format=texel, access=access)


# Each generator: fewest and most template arguments, and the method that makes the type.
_GENERATORS = {
    **{f"vec{n}": (1, 1, TypeExpressions.vector) for n in _SIZES},
    **{f"mat{c}x{r}": (1, 1, TypeExpressions.matrix) for c in _SIZES for r in _SIZES},
    "array": (1, 2, TypeExpressions.array),
    "atomic": (1, 1, TypeExpressions.atomic),
    "buffer": (0, 1, TypeExpressions.buffer),
    "ptr": (2, 3, TypeExpressions.pointer),
    **{f"texture_{k}": (1, 1, TypeExpressions.sampled_texture) for k in _SAMPLED},
    **{f"texture_storage_{k}": (2, 2, TypeExpressions.storage_texture) for k in _STORAGE},
}
_EXAMPLES = {
    **{name: f"for example {name}<f32>" for name in _GENERATORS if name.startswith(("vec", "mat"))},
    "array": "for example array<f32, 4>",
    "atomic": "for example atomic<u32>",
    "buffer": "for example buffer<1024>",
    "ptr": "for example ptr<function, f32>",
    **{f"texture_{k}": f"for example texture_{k}<f32>" for k in _SAMPLED},
    **{f"texture_storage_{k}": f"for example texture_storage_{k}<rgba8unorm, write>" for k in _STORAGE},
}
GENERATORS = _GENERATORS.keys()


# ---- address spaces ------------------------------------------------------------------------------------

# Spec: "Address Spaces".
DEFAULT_ACCESS = {
    "function": "read_write",
    "private": "read_write",
    "workgroup": "read_write",
    "uniform": "read",
    "storage": "read",
    "immediate": "read",
    "handle": "read",
}


def check_access(space: str, access: str, span: Span) -> None:
    """Check the access mode of the storage address space: `write` alone is for storage textures."""
    if space == "storage" and access not in ("read", "read_write"):
        raise fail("access-mode", f"the storage address space takes read or read_write, not {access}", span)


def check_store_type(space: str, access: str, store: t.Type, span: Span) -> None:
    """Check that an address space can hold a store type, else raise. Spec: "Variable and Value Declarations"."""
    rule, wanted = _STORE_RULES[space]
    if not rule(store):
        message = f"a variable in the {space} address space cannot have type {store}: it must be {wanted}"
        hint = "name it with 'let'" if isinstance(store, t.Pointer) else _store_hint(space, store)
        raise fail("store-type", message, span, hint=hint)
    if access == "read" and t.contains_atomic(store):
        raise fail("store-type", f"{store} holds an atomic, so its storage buffer must be read_write", span)


def _store_hint(space: str, store: t.Type) -> str | None:
    """Return what to write instead of a store type, or of its address space."""
    if isinstance(store, (t.Texture, t.Sampler)):
        return "name it with 'let'" if space == "function" else f"write it without an address space: var name: {store};"
    if isinstance(store, t.Buffer):
        return "give it a size in bytes: buffer<1024>" if space in ("workgroup", "uniform") else None
    if isinstance(store, t.Array) and store.count is None and space != "storage":
        return "an array without a size must be in var<storage>"
    if isinstance(store, t.Array) and isinstance(store.count, t.OverrideCount):
        return "an array whose size is an override must be in var<workgroup>"
    if isinstance(store, t.Atomic):
        return "atomics are in var<workgroup> and var<storage, read_write>"
    if _innermost(store) == t.BOOL and space in ("storage", "uniform", "immediate"):
        return "store it as u32, and compare: x != 0"
    return None


def _innermost(type_: t.Type) -> t.Type:
    while isinstance(type_, (t.Array, t.Vec)):
        type_ = type_.elem
    return type_


def is_shared(store: t.Type) -> bool:
    """Whether a store type fits a uniform buffer: host-shareable and constructible, or a buffer of fixed size."""
    if isinstance(store, t.Buffer):
        return store.size is not None
    return t.is_host_shareable(store) and t.is_constructible(store)


def _has_array(type_: t.Type) -> bool:
    if isinstance(type_, t.Struct):
        return any(_has_array(m.type) for m in type_.members)
    return isinstance(type_, t.Array)


_STORE_RULES: dict[str, tuple[Callable[[t.Type], bool], str]] = {
    "function": (t.is_constructible, "constructible"),
    "private": (t.is_constructible, "constructible"),
    "workgroup": (
        lambda s: (t.is_plain(s) or isinstance(s, t.Buffer)) and t.has_fixed_footprint(s),
        "a plain type of fixed size",
    ),
    "uniform": (is_shared, "host-shareable and constructible"),
    "storage": (t.is_host_shareable, "host-shareable"),
    "immediate": (lambda s: is_shared(s) and not _has_array(s), "host-shareable, constructible and without arrays"),
    "handle": (lambda s: isinstance(s, (t.Texture, t.Sampler)), "a texture or sampler"),
}


def nesting_depth(type_: t.Type) -> int:
    """Return the NestDepth of a type, 0 where it is not composite. Spec: "Composite Types"."""
    match type_:
        case t.Vec():
            return 1
        case t.Mat():
            return 2
        case t.Array():
            return 1 + nesting_depth(type_.elem)
        case t.Struct():
            return 1 + max((nesting_depth(m.type) for m in type_.members), default=0)
        case _:
            return 0


def check_nesting(type_: t.Type, span: Span) -> None:
    """Raise `WgslError` for a type that nests too deeply."""
    depth = nesting_depth(type_)
    if depth > MAX_NESTING_DEPTH:
        raise fail("limit", f"{type_} nests {depth} deep, more than {MAX_NESTING_DEPTH}", span)


def check_fields(struct: t.Struct, span: Span) -> None:
    """Raise `WgslError` for a struct with too many members, including those of the structs inside."""
    if next(islice(_fields(struct), MAX_FIELDS, None), None):
        raise fail("limit", f"{struct} has more than {MAX_FIELDS} members, with those of the structs inside", span)


def _fields(type_: t.Type) -> Iterator[t.Member]:
    match type_:
        case t.Array():
            yield from _fields(type_.elem)
        case t.Struct():
            for member in type_.members:
                yield member
                yield from _fields(member.type)
        case _:
            pass


def check_held(type_: t.Type, span: Span) -> None:
    """Raise `WgslError` for a constructible type whose values have too many scalars."""
    count = t.components(type_)
    if count > MAX_COMPONENTS:
        raise fail("limit", f"{type_} holds {count} scalars, more than the {MAX_COMPONENTS} of a value", span)


def _mentions_f16(type_: t.Type) -> bool:
    return isinstance(type_, (t.Scalar, t.Vec, t.Mat)) and t.element_of(type_) == t.F16


def predeclared(name: str) -> Entity | None:
    """Return the predeclared type, type generator or enumerant of this name, or None."""
    if name in PREDECLARED_TYPES:
        return TypeName(name, PREDECLARED_TYPES[name])
    if name in GENERATORS:
        return Generator(name)
    if name in ENUMERANTS:
        return Enumerant(name, ENUMERANTS[name])
    return None
