"""Struct declarations: members, layout attributes, and the limits on both.

Spec: WGSL, "Structure Types" and "Structure Member Layout".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import types as t
from ..diagnostics import fail
from ..source import Span
from ..syntax import tree
from .check_attributes import check_attributes
from .check_io import check_blending, io_attributes
from .check_types import check_fields, check_nesting
from .scopes import redeclared

if TYPE_CHECKING:
    from .check_expressions import Expressions

MAX_MEMBERS = 1023  # spec, "Limits"


def struct_type(e: Expressions, decl: tree.Struct) -> t.Struct:
    """Check a struct declaration, and lay it out in memory. Raises `WgslError`."""
    if len(decl.members) > MAX_MEMBERS:
        message = f"struct '{decl.name}' has {len(decl.members)} members, more than {MAX_MEMBERS}"
        raise fail("limit", message, decl.name_span)
    seen: dict[str, Span] = {}
    members: list[tuple[str, t.Type, t.MemberAttributes, Span]] = []
    for i, member in enumerate(decl.members):
        if member.name in seen:
            raise redeclared(member.name, member.name_span, seen[member.name])
        seen[member.name] = member.name_span
        type_ = e.type_of(member.type)
        _check_type(member, type_, last=i == len(decl.members) - 1)
        members.append((member.name, type_, _attributes(e, member, type_), member.name_span))
    check_blending(members)
    made = t.layout(decl.name, members)
    check_fields(made, decl.name_span)
    check_nesting(made, decl.name_span)
    return made


def _check_type(member: tree.StructMember, type_: t.Type, *, last: bool) -> None:
    if isinstance(type_, t.Array) and type_.count is None:
        if not last:
            message = f"member '{member.name}' is a runtime-sized array, so it must be the last member"
            raise fail("member-type", message, member.type.span)
    elif not (t.is_plain(type_) and t.has_creation_fixed_footprint(type_)):
        raise fail("member-type", f"member '{member.name}' cannot have type {type_}", member.type.span)


def _attributes(e: Expressions, member: tree.StructMember, type_: t.Type) -> t.MemberAttributes:
    found = check_attributes(member.attributes, "struct member", e.need_extension)
    attrs = t.MemberAttributes(**io_attributes(e, found, type_, f"member '{member.name}'"))
    if attribute := found.get("align"):
        attrs["align"] = e.const_integer(attribute.args[0], "@align")
        _check_align(attrs["align"], type_, attribute)
    if attribute := found.get("size"):
        attrs["size"] = e.const_integer(attribute.args[0], "@size")
        _check_size(attrs["size"], type_, attribute)
    return attrs


def _check_align(align: int, type_: t.Type, attribute: tree.Attribute) -> None:
    if align < 1 or align & (align - 1):
        enough = max(t.align_of(type_), 1 << max(align, 1).bit_length())
        message, hint = f"@align must be a power of two, not {align}", f"write @align({enough})"
        raise fail("attribute-value", message, attribute.args[0].span, hint=hint)
    least = t.align_of(type_)
    if align < least:  # both are powers of two
        message = f"@align must be at least {least}, the alignment of {type_}, not {align}"
        hint = f"write @align({least}), or leave it out"
        raise fail("attribute-value", message, attribute.args[0].span, hint=hint)


def _check_size(size: int, type_: t.Type, attribute: tree.Attribute) -> None:
    if not t.has_creation_fixed_footprint(type_):
        message = f"@size cannot be given to {type_}, whose size is not fixed"
        raise fail("misplaced-attribute", message, attribute.span, hint="leave it out")
    least = t.size_of(type_)
    if size < least:
        message = f"@size must be at least {least}, the size of {type_}, not {size}"
        hint = f"write @size({least}), or leave it out"
        raise fail("attribute-value", message, attribute.args[0].span, hint=hint)
