"""The template list of a `var`: its address space and access mode.

Spec: WGSL, "Variable and Value Declarations". The hint of each error is the declaration, written correctly.
"""

from __future__ import annotations

from ..diagnostics import fail, first_words
from ..enumerants import ENUMERANTS
from ..syntax import tree
from .check_types import TypeExpressions, check_access


def module_scope(types: TypeExpressions, decl: tree.GlobalDecl) -> tuple[str | None, str | None]:
    """Return the address space and access mode of a module-scope `var`, None where not given. Raises `WgslError`."""
    if not decl.template:
        return None, None
    bound = any(attribute.name in ("group", "binding") for attribute in decl.attributes)
    names = _enumerants(decl.template)
    space = names.get("address space", "storage" if bound else "private")
    space = "private" if space == "function" else space
    access = names.get("access mode", "read_write") if space == "storage" else None
    hint = _written(decl, f"var<{space}, {access}>" if access else f"var<{space}>")

    space = types.enumerant(decl.template[0], "address space", hint)
    if space == "function":
        message = "a module-scope variable cannot be in the function address space"
        raise fail("address-space", message, decl.template[0].span, hint=hint)
    if len(decl.template) == 1:
        return space, None
    if len(decl.template) > 2:
        raise fail("template-arguments", _TOO_MANY, decl.template[2].span, hint=hint)
    access = types.enumerant(decl.template[1], "access mode", hint)
    if space != "storage":
        message = f"a variable in the {space} address space takes no access mode"
        raise fail("access-mode", message, decl.template[1].span, hint=hint)
    check_access(space, access, decl.template[1].span)
    return space, access


def function_scope(types: TypeExpressions, decl: tree.LocalDecl) -> None:
    """Check the template list of a `var` in a function. Raises `WgslError`."""
    if not decl.template:
        return
    hint = _written(decl, "var")
    space = types.enumerant(decl.template[0], "address space", hint)
    if space != "function":
        message = f"a variable in the {space} address space must be declared at module scope"
        raise fail("address-space", message, decl.template[0].span)
    if len(decl.template) > 2:
        raise fail("template-arguments", _TOO_MANY, decl.template[2].span, hint=hint)
    if len(decl.template) == 2:
        raise fail("access-mode", "a function-scope variable takes no access mode", decl.template[1].span, hint=hint)


_TOO_MANY = "the '<…>' of a var takes an address space and an access mode, and nothing else"


def _enumerants(template: list[tree.Expr]) -> dict[str, str]:
    """Return the first address space and access mode among template arguments, by kind."""
    names = [arg.name for arg in template if isinstance(arg, tree.Ident) and arg.name in ENUMERANTS]
    return {ENUMERANTS[name]: name for name in reversed(names)}


def _written(decl: tree.GlobalDecl | tree.LocalDecl, keyword: str) -> str:
    """Return a hint with the whole declaration. A type in the template list is taken for that of the variable."""
    types = [a for a in decl.template or () if isinstance(a, tree.Ident) and a.name not in ENUMERANTS]
    shown = decl.type or (types[-1] if types else None)
    type_ = f": {first_words(shown.span.text)}" if shown else "" if decl.init else ": T"
    return f"write {keyword} {decl.name}{type_}{' = …' if decl.init else ''}"
