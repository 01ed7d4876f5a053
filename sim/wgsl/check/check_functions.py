"""Function declarations: parameters, result and attributes, without the body.

Spec: WGSL, "Functions" and "Entry Points".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import typed
from .. import types as t
from ..diagnostics import fail
from ..syntax import tree
from . import fold
from .check_attributes import check_attributes
from .check_expressions import not_early
from .check_io import check_interface, io_attributes

if TYPE_CHECKING:
    from .check_expressions import Expressions

MAX_PARAMETERS = 255  # spec, "Limits"
STAGES = ("compute", "vertex", "fragment")
_POINTER_SPACES = ("function", "private")  # without unrestricted_pointer_parameters


def declare_function(e: Expressions, decl: tree.Function) -> typed.Function:
    """Check the declaration of a function, without its body. Raises `WgslError`."""
    found = check_attributes(decl.attributes, "function", e.need_extension)
    stages = [stage for stage in STAGES if stage in found]
    if len(stages) > 1:
        message = f"function '{decl.name}' is both a {stages[0]} and a {stages[1]} entry point"
        raise fail("duplicate-attribute", message, found[stages[1]].span)
    stage = stages[0] if stages else None
    if len(decl.params) > MAX_PARAMETERS:
        message = f"function '{decl.name}' has {len(decl.params)} parameters, more than {MAX_PARAMETERS}"
        raise fail("limit", message, decl.name_span)
    params = [_parameter(e, param, stage) for param in decl.params]
    result = e.type_of(decl.result) if decl.result else None
    function = typed.Function(decl.name, params, result, decl.name_span, stage=stage)
    function.result_attrs = _result_attributes(e, decl, result, stage)
    function.must_use = _must_use(decl, found)
    _stage_attributes(e, function, found)
    if stage:
        check_interface(function, decl.result.span if decl.result else None)
    return function


def _parameter(e: Expressions, param: tree.Param, stage: str | None) -> typed.Variable:
    type_ = e.type_of(param.type)
    found = check_attributes(param.attributes, "parameter", e.need_extension)
    if found and stage is None:
        first = next(iter(found.values()))
        message = f"@{first.name} is only for a parameter of an entry point"
        raise fail("misplaced-attribute", message, first.span)
    if isinstance(type_, t.Pointer):
        _check_pointer(e, param, type_)
    elif not (t.is_constructible(type_) or isinstance(type_, (t.Texture, t.Sampler))):
        message = f"parameter '{param.name}' cannot have type {type_}: a value of it cannot be copied"
        space = "storage" if t.contains_atomic(type_) or not t.has_fixed_footprint(type_) else "function"
        access = ", read_write" if space == "storage" else ""
        hint = f"pass a pointer: {param.name}: ptr<{space}, {type_}{access}>"
        raise fail("parameter-type", message, param.type.span, hint=hint)
    variable = typed.Variable(param.name, type_, param.name_span)
    variable.attrs = io_attributes(e, found, type_, f"parameter '{param.name}'")
    variable.builtin = variable.attrs.get("builtin")
    return variable


def _check_pointer(e: Expressions, param: tree.Param, pointer: t.Pointer) -> None:
    if pointer.space not in _POINTER_SPACES and not e.supports("unrestricted_pointer_parameters"):
        message = f"parameter '{param.name}' cannot point into the {pointer.space} address space"
        raise fail("unsupported-feature", message, param.type.span)


def _result_attributes(e: Expressions, decl: tree.Function, result: t.Type | None, stage: str | None) -> t.IoAttributes:
    found = check_attributes(decl.result_attributes, "return type", e.need_extension)
    if result is None:
        return {}
    assert decl.result is not None
    if not t.is_constructible(result):
        message = f"function '{decl.name}' cannot return a value of type {result}, which cannot be copied"
        hint = "write the result through a pointer that is a parameter"
        if isinstance(result, t.Array):
            hint = "give the array a length, or let the caller read the variable"
        raise fail("return-type", message, decl.result.span, hint=hint)
    if found and stage is None:
        first = next(iter(found.values()))
        message = f"@{first.name} is only for the return type of an entry point"
        raise fail("misplaced-attribute", message, first.span)
    return io_attributes(e, found, result, "the return value")


def _must_use(decl: tree.Function, found: dict[str, tree.Attribute]) -> bool:
    if "must_use" in found and decl.result is None:
        message = f"function '{decl.name}' returns nothing that must be used"
        raise fail("misplaced-attribute", message, found["must_use"].span, hint="leave out '@must_use'")
    return "must_use" in found


def _stage_attributes(e: Expressions, function: typed.Function, found: dict[str, tree.Attribute]) -> None:
    for name in ("workgroup_size", "subgroup_size"):
        if name in found and function.stage != "compute":
            message = f"@{name} is only for a compute entry point"
            hint = None if function.stage else "write @compute beside it"
            raise fail("misplaced-attribute", message, found[name].span, hint=hint)
    if function.stage == "compute":
        if "workgroup_size" not in found:
            message = f"compute entry point '{function.name}' needs a @workgroup_size"
            raise fail("missing-workgroup-size", message, function.span, hint="for example @workgroup_size(64)")
        function.workgroup_size = _workgroup_size(e, found["workgroup_size"])
    if "subgroup_size" in found:
        function.subgroup_size = _sizes(e, found["subgroup_size"])[0]


def _workgroup_size(e: Expressions, attribute: tree.Attribute) -> tuple[typed.Expr, typed.Expr, typed.Expr]:
    sizes = _sizes(e, attribute)
    while len(sizes) < 3:
        sizes.append(typed.Const(sizes[0].type, attribute.span, 1))
    return sizes[0], sizes[1], sizes[2]


def _sizes(e: Expressions, attribute: tree.Attribute) -> list[typed.Expr]:
    """Check the arguments of @workgroup_size or @subgroup_size: const- or override-expressions, all i32 or all u32, at
    least 1 where known."""
    what = f"@{attribute.name}"
    made = [e.value(arg) for arg in attribute.args]
    type_ = next((one.type for one in made if t.is_concrete(one.type)), t.I32)
    for one in made:
        if type_ not in (t.I32, t.U32) or not fold.convertible(one.type, type_):
            message = f"the arguments of {what} must all be i32 or all u32"
            if len(made) == 1:
                message = f"{what} must be an i32 or u32, not {one.type}"
            raise fail("type-mismatch", message, one.span)
        if not fold.is_early(one):
            raise not_early(one, what, "a const- or override-expression")
    sizes = [fold.convert(one, type_) for one in made]
    for size in sizes:
        if isinstance(size, typed.Const) and size.value < 1:
            raise fail("attribute-value", f"{what} must be at least 1, not {size.value}", size.span)
    return sizes
