"""The inputs and outputs of entry points: built-in values, locations, and their attributes.

One row of `BUILTIN_VALUES` is one built-in value. Spec: WGSL, "Inter-stage Input and Output Interface".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from ...fast_dataclass import entity, frozen
from .. import typed
from .. import types as t
from ..diagnostics import Note, fail
from ..source import Span
from ..syntax import tree
from .check_attributes import word

if TYPE_CHECKING:
    from .check_expressions import Expressions

K = TypeVar("K")

_U32, _VEC3U, _VEC4F = t.U32, t.Vec(3, t.U32), t.Vec(4, t.F32)


@frozen
class BuiltinValue:
    """A built-in value: its type (None for clip_distances), the stages that may read and write it, and the extension or
    language feature that provides it."""

    type: t.Type | None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    extension: str | None = None
    feature: str | None = None


_COMPUTE, _FRAGMENT, _VERTEX = ("compute",), ("fragment",), ("vertex",)
_SUBGROUP = ("compute", "fragment")

BUILTIN_VALUES = {
    "vertex_index": BuiltinValue(_U32, _VERTEX),
    "instance_index": BuiltinValue(_U32, _VERTEX),
    "clip_distances": BuiltinValue(None, (), _VERTEX, "clip_distances"),
    "position": BuiltinValue(_VEC4F, _FRAGMENT, _VERTEX),
    "front_facing": BuiltinValue(t.BOOL, _FRAGMENT),
    "frag_depth": BuiltinValue(t.F32, (), _FRAGMENT),
    "primitive_index": BuiltinValue(_U32, _FRAGMENT, (), "primitive_index"),
    "sample_index": BuiltinValue(_U32, _FRAGMENT),
    "sample_mask": BuiltinValue(_U32, _FRAGMENT, _FRAGMENT),
    "local_invocation_id": BuiltinValue(_VEC3U, _COMPUTE),
    "local_invocation_index": BuiltinValue(_U32, _COMPUTE),
    "global_invocation_id": BuiltinValue(_VEC3U, _COMPUTE),
    "global_invocation_index": BuiltinValue(_U32, _COMPUTE, feature="linear_indexing"),
    "workgroup_id": BuiltinValue(_VEC3U, _COMPUTE),
    "workgroup_index": BuiltinValue(_U32, _COMPUTE, feature="linear_indexing"),
    "num_workgroups": BuiltinValue(_VEC3U, _COMPUTE),
    "subgroup_invocation_id": BuiltinValue(_U32, _SUBGROUP, extension="subgroups"),
    "subgroup_size": BuiltinValue(_U32, _SUBGROUP, extension="subgroups"),
    "subgroup_id": BuiltinValue(_U32, _COMPUTE, extension="subgroups", feature="subgroup_id"),
    "num_subgroups": BuiltinValue(_U32, _COMPUTE, extension="subgroups", feature="subgroup_id"),
}

_EXAMPLES = ((_VEC3U, "global_invocation_id"), (_U32, "local_invocation_index"))
_COMPUTE_INPUTS = [name for name, row in BUILTIN_VALUES.items() if "compute" in row.inputs]

# Interpolation types, each with its valid samplings. Spec: "Interpolation".
INTERPOLATION = {
    "perspective": ("center", "centroid", "sample"),
    "linear": ("center", "centroid", "sample"),
    "flat": ("first", "either"),
}
_DEPTH_MODES = ("less", "greater")  # spec: "Depth Mode Names"
_SAMPLINGS = ("center", "centroid", "sample", "first", "either")


# ---- the attributes of one parameter, member or result -------------------------------------------------


def io_attributes(e: Expressions, found: dict[str, tree.Attribute], type_: t.Type, what: str) -> t.IoAttributes:
    """Check the io attributes of a parameter, member or result of type `type_`, regardless of the stage:
    {"builtin": name, "location": n, "blend_src": n, "interpolate": (type, sampling)}."""
    attrs = t.IoAttributes()
    if attribute := found.get("builtin"):
        attrs["builtin"] = _builtin_value(e, attribute, type_)
    if attribute := found.get("location"):
        attrs["location"] = _slot(e, attribute, type_, what)
    if attribute := found.get("blend_src"):
        attrs["blend_src"] = _slot(e, attribute, type_, what)
    if attribute := found.get("interpolate"):
        attrs["interpolate"] = _interpolation(attribute)
        _need(attrs, "location", attribute, "only for something with a @location")
    if attribute := found.get("blend_src"):
        _need(attrs, "location", attribute, "only for something with a @location")
        if attrs.get("blend_src", 0) > 1:
            raise fail("attribute-value", f"@blend_src must be 0 or 1, not {attrs.get('blend_src')}", attribute.span)
    if (attribute := found.get("invariant")) and attrs.get("builtin") != "position":
        raise fail("misplaced-attribute", "@invariant is only for @builtin(position)", attribute.span)
    if "builtin" in attrs and "location" in attrs:
        raise fail(
            "misplaced-attribute", f"{what} cannot be a built-in value and have a location", found["location"].span
        )
    return attrs


def _need(attrs: t.IoAttributes, other: str, attribute: tree.Attribute, why: str) -> None:
    if other not in attrs:
        raise fail("misplaced-attribute", f"@{attribute.name} is {why}", attribute.span)


def _builtin_value(e: Expressions, attribute: tree.Attribute, type_: t.Type) -> str:
    hint = f"those of a compute shader are {', '.join(_COMPUTE_INPUTS)}"
    name = word(attribute.args[0], tuple(BUILTIN_VALUES), "a built-in value", hint)
    row = BUILTIN_VALUES[name]
    what = f"built-in value '{name}'"
    if len(attribute.args) > 1:
        mode = attribute.args[1]
        if name != "frag_depth":
            raise fail("attribute-arguments", f"{what} has no depth mode", mode.span, hint="only 'frag_depth' has one")
        e.module.need_feature("fragment_depth", "a depth mode", mode.span)
        word(mode, _DEPTH_MODES, "a depth mode", f"one of {', '.join(_DEPTH_MODES)}")
    if row.extension:
        e.module.need_extension(row.extension, what, attribute.span)
    if row.feature:
        e.module.need_feature(row.feature, what, attribute.span)
    if row.type is not None and type_ != row.type:
        raise fail("builtin-type", f"{what} has type {row.type}, not {type_}", attribute.span)
    if row.type is None and not _is_clip_distances(type_):
        raise fail("builtin-type", f"{what} is an array of up to 8 f32, not {type_}", attribute.span)
    return name


def _is_clip_distances(type_: t.Type) -> bool:
    return isinstance(type_, t.Array) and type_.elem == t.F32 and isinstance(type_.count, int) and type_.count <= 8


def _slot(e: Expressions, attribute: tree.Attribute, type_: t.Type, what: str) -> int:
    value = e.const_integer(attribute.args[0], f"@{attribute.name}")
    if value < 0:
        raise fail("attribute-value", f"@{attribute.name} must not be negative", attribute.args[0].span)
    if not _is_location_type(type_):
        message = f"{what} has type {type_}: only a number or a vector of numbers has a @{attribute.name}"
        raise fail("location-type", message, attribute.span)
    return value


def _is_location_type(type_: t.Type) -> bool:
    return isinstance(type_, (t.Scalar, t.Vec)) and t.element_of(type_) != t.BOOL


def _interpolation(attribute: tree.Attribute) -> tuple[str, str | None]:
    kind = word(attribute.args[0], tuple(INTERPOLATION), "an interpolation type")
    if len(attribute.args) == 1:
        return kind, None
    sampling = word(attribute.args[1], _SAMPLINGS, "an interpolation sampling")
    if sampling not in INTERPOLATION[kind]:
        raise fail("attribute-value", f"'{kind}' interpolation cannot be sampled '{sampling}'", attribute.args[1].span)
    return kind, sampling


# ---- the interface of one entry point ------------------------------------------------------------------


@entity
class _Datum:
    """One input or output: its type, its attributes, where it is declared, and its name for messages."""

    type: t.Type
    attrs: t.IoAttributes
    span: Span
    what: str


def check_interface(function: typed.Function, result_span: Span | None) -> None:
    """Check that the inputs and outputs of an entry point fit its stage. Raises `WgslError`."""
    stage = function.stage
    assert stage is not None
    inputs = [
        datum
        for param in function.params
        for datum in _data(param.type, param.attrs, param.span, f"parameter '{param.name}'")
    ]
    _check_data(stage, "input", inputs)
    outputs: list[_Datum] = []
    if function.result is not None:
        where = result_span or function.span
        if stage == "compute":
            message = f"compute entry point '{function.name}' cannot return a value"
            raise fail("entry-point-result", message, where, hint="write it to a var<storage, read_write>")
        outputs = _data(function.result, function.result_attrs, where, "the return value")
        _check_data(stage, "output", outputs)
    if stage == "vertex" and not any(d.attrs.get("builtin") == "position" for d in outputs):
        message = f"vertex entry point '{function.name}' must return @builtin(position)"
        raise fail("missing-position", message, result_span or function.span)


def _data(type_: t.Type, attrs: t.IoAttributes, span: Span, what: str) -> list[_Datum]:
    """List an input or output, or the members of a struct that is one."""
    if attrs or not isinstance(type_, t.Struct):
        return [_Datum(type_, attrs, span, what)]
    return [_Datum(m.type, m.attrs, m.span or span, f"member '{m.name}' of {type_}") for m in type_.members]


def _check_data(stage: str, direction: str, data: list[_Datum]) -> None:
    builtins: dict[str, Span] = {}
    locations: dict[tuple[int, int], Span] = {}
    for datum in data:
        if "builtin" in datum.attrs:
            name = datum.attrs["builtin"]
            _check_builtin(stage, direction, name, datum.span)
            _once(builtins, name, f"built-in value '{name}'", datum.span)
        elif "location" in datum.attrs:
            _check_location(stage, direction, datum)
            slot = (datum.attrs["location"], datum.attrs.get("blend_src", 0))
            _once(locations, slot, f"location {slot[0]}", datum.span)
        else:
            message = f"{datum.what} of an entry point needs a @builtin"
            hint = None
            if stage == "compute":
                example = next((name for of, name in _EXAMPLES if of == datum.type), None)
                hint = f"for example @builtin({example})" if example else None
            else:
                message, hint = f"{message} or a @location", "for example @location(0)"
            raise fail("missing-io-attribute", message, datum.span, hint=hint)


def _once(seen: dict[K, Span], key: K, what: str, span: Span) -> None:
    if key in seen:
        raise fail("duplicate-io", f"{what} is given twice", span, Note("first given here", seen[key]))
    seen[key] = span


def _check_builtin(stage: str, direction: str, name: str, span: Span) -> None:
    row = BUILTIN_VALUES[name]
    if stage not in (row.inputs if direction == "input" else row.outputs):
        raise fail("builtin-stage", f"built-in value '{name}' is not an {direction} of a {stage} entry point", span)


def _check_location(stage: str, direction: str, datum: _Datum) -> None:
    if stage == "compute":
        raise fail("location-stage", "a compute entry point takes only built-in values", datum.span)
    if "blend_src" in datum.attrs and (stage, direction) != ("fragment", "output"):
        raise fail("location-stage", "@blend_src is only for the output of a fragment entry point", datum.span)
    between = (stage, direction) in (("vertex", "output"), ("fragment", "input"))
    flat = datum.attrs.get("interpolate", ("", None))[0] == "flat"
    if between and t.element_of(datum.type) in (t.I32, t.U32) and not flat:
        raise fail("interpolation", f"{datum.what} is of integers, so it needs @interpolate(flat)", datum.span)


def check_blending(members: Sequence[tuple[str, t.Type, t.IoAttributes, Span]]) -> None:
    """Check that the locations of a struct's members differ, or form dual source blending. Raises `WgslError`."""
    located = [(type_, attrs, span) for _, type_, attrs, span in members if "location" in attrs]
    if not any("blend_src" in attrs for _, attrs, _ in located):
        seen: dict[int, Span] = {}
        for _, attrs, span in located:
            _once(seen, attrs["location"], f"location {attrs['location']}", span)
        return
    slots = sorted((attrs["location"], attrs.get("blend_src", -1)) for _, attrs, _ in located)
    if slots != [(0, 0), (0, 1)] or located[0][0] != located[1][0]:
        message = "dual source blending takes two members of one type, at @location(0) with @blend_src(0) and (1)"
        raise fail("blend-src", message, located[0][2])
