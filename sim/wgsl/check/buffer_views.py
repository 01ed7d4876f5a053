"""Buffer views: `bufferView`, `bufferArrayView` and `bufferLength`, which read the bytes of a buffer as other types.

Their results depend on types and byte offsets as no signature of the builtin table says. Spec: WGSL, "Buffer View
Built-in Functions".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import typed
from .. import types as t
from ..builtins import Builtin
from ..diagnostics import counted, fail, first_words
from ..layout_rules import layout_problem, required_align
from ..source import Span
from ..syntax import tree
from . import fold

if TYPE_CHECKING:
    from .check_expressions import Expressions

_USES = {
    "bufferLength": "bufferLength(&name)",
    "bufferView": "bufferView<Type>(&name, offset)",
    "bufferArrayView": "bufferArrayView<array<Type>>(&name, offset, size)",
}
BUFFER_BUILTINS = frozenset(_USES)


def check_call(e: Expressions, row: Builtin, expr: tree.Call) -> typed.Expr:
    """Check a call of a builtin that takes a pointer to a buffer. Raises `WgslError`."""
    name, templates = row.name, expr.callee.args or []
    e.module.need_feature("buffer_view", f"'{name}'", expr.callee.name_span)
    wanted = _USES[name].count(",") + 1
    if len(expr.args) != wanted:
        message = f"'{name}' takes {counted(wanted, wanted, 'argument')}, not {len(expr.args)}"
        raise fail("wrong-argument-count", message, expr.span, hint=f"write {_USES[name]}")
    if len(templates) != (0 if name == "bufferLength" else 1):
        takes = "takes no template argument" if name == "bufferLength" else "needs one template argument, a type"
        raise fail("template-arguments", f"'{name}' {takes}", expr.callee.span, hint=f"write {_USES[name]}")
    pointer, buffer, made = _pointer(e, name, expr.args[0])
    e.uses.builtins.setdefault(name, expr.span)
    if name == "bufferLength":
        return typed.BuiltinCall(t.U32, expr.span, row, [made])
    viewed = _viewed(e, name, pointer.space, templates[0])
    numbers = [_number(e, name, what, arg) for what, arg in zip(("offset", "size"), expr.args[1:], strict=False)]
    _check_offset(e, viewed, pointer.space, numbers[0])
    if name == "bufferArrayView":
        _check_size(viewed, numbers[1])
    _check_inside(viewed, buffer, numbers, expr.span)
    return typed.BuiltinCall(t.Pointer(pointer.space, viewed, pointer.access), expr.span, row, [made, *numbers])


def _pointer(e: Expressions, name: str, arg: tree.Expr) -> tuple[t.Pointer, t.Buffer, typed.Expr]:
    made = e.check(arg)
    type_ = made.type
    if isinstance(type_, t.Reference):
        if isinstance(type_.store, t.Buffer):
            message = f"argument 1 of '{name}' must be a pointer, not a variable"
            raise fail("type-mismatch", message, arg.span, hint=f"write &{first_words(arg.span.text)}")
        type_ = type_.store
    if not isinstance(type_, t.Pointer) or not isinstance(type_.store, t.Buffer):
        hint = "declare the variable as a buffer: var<storage> name: buffer;"
        raise fail("type-mismatch", f"'{name}' takes a pointer to a buffer, not {type_}", arg.span, hint=hint)
    return type_, type_.store, made


def _viewed(e: Expressions, name: str, space: str, template: tree.Expr) -> t.Type:
    """Check the type that a buffer is viewed as."""
    type_ = e.type_of(template)
    if isinstance(type_, t.Buffer) or not t.is_host_shareable(type_) or t.contains_atomic(type_):
        message = f"a buffer cannot be viewed as {type_}: it must be host-shareable and without atomics"
        raise fail("view-type", message, template.span)
    if name == "bufferArrayView" and t.has_fixed_footprint(type_):
        message = f"'bufferArrayView' views a runtime-sized array, not {type_}"
        raise fail("view-type", message, template.span, hint=f"write bufferView<{type_}>(…)")
    if problem := layout_problem(type_, uniform=_is_strict(e, space)):
        raise fail("layout", f"{type_} cannot lie in the {space} address space: {problem}", template.span)
    return type_


def _is_strict(e: Expressions, space: str) -> bool:
    return space == "uniform" and not e.supports("uniform_buffer_standard_layout")


def _number(e: Expressions, name: str, what: str, arg: tree.Expr) -> typed.Expr:
    """Check an offset or size in bytes."""
    made = fold.concrete(e.value(arg))
    if made.type not in (t.I32, t.U32):
        hint = fold.conversion_hint(made, t.U32)
        raise fail("type-mismatch", f"the {what} of '{name}' must be i32 or u32, not {made.type}", arg.span, hint=hint)
    if (known := _known(made)) is not None and known < 0:
        raise fail("view-bounds", f"the {what} of '{name}' must not be negative", arg.span)
    return made


def _known(made: typed.Expr) -> int | None:
    return made.value if isinstance(made, typed.Const) else None


def _check_offset(e: Expressions, viewed: t.Type, space: str, offset: typed.Expr) -> None:
    known, align = _known(offset), required_align(viewed, uniform=_is_strict(e, space))
    if known is not None and known % align:
        hint = f"for example {known // align * align}"
        message = f"offset {known} is not a multiple of {align}, the alignment of {viewed}"
        raise fail("view-alignment", message, offset.span, hint=hint)


def _check_size(viewed: t.Type, size: typed.Expr) -> None:
    before, stride = t.tail_of(viewed) or (0, 1)
    known = _known(size)
    if known is not None and (known < before + stride or known % stride != before % stride):
        wanted = f"{before} and a multiple of {stride}" if before else f"a multiple of {stride}"
        raise fail("view-bounds", f"the size of a view as {viewed} must be {wanted}, not {known}", size.span)


def _check_inside(viewed: t.Type, buffer: t.Buffer, numbers: list[typed.Expr], span: Span) -> None:
    """Check that a view is within a buffer of known size, as far as its offset and size are known."""
    if buffer.size is None:
        return
    offset, size = _known(numbers[0]) or 0, t.least_size(viewed)
    if len(numbers) > 1:
        size = _known(numbers[1]) or size
    if offset + size > buffer.size:
        message = f"a view of {size} bytes at offset {offset} is not within {buffer}"
        raise fail("view-bounds", message, span)
