"""Checking a module: `check(source)` returns the typed module, or raises `WgslError`.

Module-scope declarations may be in any order: each is resolved when it is first mentioned, and one that needs itself is
an error. Function bodies come last, then the analyses of all of them.
Spec: WGSL, "Declaration and Scope", "Variable and Value Declarations", "Directives".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from .. import typed
from .. import types as t
from ..analysis.call_graph import analyse
from ..analysis.static_uses import Uses
from ..analysis.uniformity import check_uniformity
from ..builtins import BUILTINS
from ..diagnostics import Diagnostic, Note, WgslError, did_you_mean, fail, limits_are_errors
from ..layout_rules import layout_problem
from ..source import Source, Span
from ..syntax import tree
from ..syntax.parser import parse
from . import var_templates
from .check_attributes import check_attributes, filters, global_filters
from .check_expressions import Expressions, not_early
from .check_functions import declare_function
from .check_statements import Statements, check_assertion, declare_constant, initializer
from .check_structs import struct_type
from .check_types import DEFAULT_ACCESS, GENERATORS, PREDECLARED_TYPES, check_store_type, predeclared
from .fold import is_early
from .pipeline import create_pipeline, impossible_workgroups
from .scopes import Entity, Scope, TypeName, redeclared

# Spec: "Enable Extensions". Each with the extensions that it implies.
EXTENSIONS: dict[str, tuple[str, ...]] = {
    "f16": (),
    "clip_distances": (),
    "dual_source_blending": (),
    "subgroups": (),
    "primitive_index": (),
    "subgroup_size_control": ("subgroups",),
}

# The supported language features. Spec: "Language Extensions", and swizzle_assignment, a proposed one.
LANGUAGE_FEATURES = frozenset(
    (
        "readonly_and_readwrite_storage_textures",
        "packed_4x8_integer_dot_product",
        "unrestricted_pointer_parameters",
        "pointer_composite_access",
        "uniform_buffer_standard_layout",
        "subgroup_id",
        "subgroup_uniformity",
        "texture_and_sampler_let",
        "texture_formats_tier1",
        "linear_indexing",
        "immediate_address_space",
        "fragment_depth",
        "buffer_view",
        "swizzle_assignment",
    )
)


_MOST_HINTS = 50  # errors that may name a similar name


@limits_are_errors("checked")
def check(
    source: Source | tree.Module, *, features: frozenset[str] = LANGUAGE_FEATURES, uniformity: str = "error"
) -> typed.Module:
    """Check a module, from its text or its syntax tree.

    `features`: the language features to allow. `uniformity`: the severity of a barrier in divergent control flow, error
    as in the spec, or warning, info or off, since some implementations do not check. Raises `WgslError` with at most
    one error for each statement or module-scope declaration.
    """
    module = parse(source) if isinstance(source, Source) else source
    return ModuleScope(module, features).check(uniformity)


class ModuleScope:
    """The module-scope names of one module, and the typed module as it grows."""

    def __init__(self, module: tree.Module, features: frozenset[str]) -> None:
        self._module = module
        self._features = features
        self._decls = _by_name(module.decls)
        self._entities: dict[str, Entity] = {}
        self._pending: list[tuple[str, Span]] = []  # declarations being resolved, each with the span that mentions it
        self._errors: dict[WgslError, None] = {}
        self._failed: dict[str, WgslError] = {}  # invalid declarations, so that each is reported once
        self.uses: dict[typed.Variable | typed.Override | typed.Function, Uses] = {}
        self.made = typed.Module(module.span.source, {}, [], [], {}, create_pipeline)

    def check(self, uniformity: str) -> typed.Module:
        """Check everything, in an order in which each part relies on those before."""
        self._directives()
        for decl in self._module.decls:
            try:
                if isinstance(decl, tree.ConstAssert):
                    check_assertion(Expressions(self), decl)
                else:
                    self.lookup(decl.name, decl.name_span)
            except WgslError as error:
                self.report(error)
        for decl in self._module.decls:
            if isinstance(decl, tree.Function) and decl.name not in self._failed:
                try:
                    self._function_body(decl)
                except WgslError as error:
                    self.report(error)
        if self._errors:
            raise _all_of(self._errors)
        _in_source_order(self.made)
        order = analyse(self.made, self.uses)
        subgroup_scope = self.supports("subgroup_uniformity")
        self.made.warnings += check_uniformity(
            self.made, order, self.uses, subgroup_scope=subgroup_scope, severity=uniformity
        )
        self.made.warnings += impossible_workgroups(self.made)
        return self.made

    # ---- the protocol `ModuleContext` ------------------------------------------------------------------

    def report(self, error: WgslError) -> None:
        """Add an error to the module; the caller goes on with the next declaration or statement."""
        self._errors[error] = None

    def lookup(self, name: str, span: Span) -> Entity | None:
        """Return the entity that a name denotes at module scope, declared or predeclared, or None."""
        if name in self._failed:
            raise self._failed[name]
        entity = self._entities.get(name)
        if entity is None:
            decl = self._decls.get(name)
            entity = self._resolve(decl, span) if decl else predeclared(name) or BUILTINS.get(name)
            if entity is not None:
                self._entities[name] = entity
        return entity

    def names(self, *, types: bool = False) -> Iterator[str]:
        """Iterate over the module-scope and predeclared names, or those of types alone, for hints."""
        if types:
            named = (name for name, decl in self._decls.items() if isinstance(decl, (tree.Struct, tree.Alias)))
            return chain(named, PREDECLARED_TYPES, GENERATORS)
        return chain(self._decls, PREDECLARED_TYPES, GENERATORS, BUILTINS)

    def similar(self, name: str, candidates: Iterable[str]) -> str | None:
        """Return a hint that names a similar candidate. None after many errors, because each search takes long."""
        return did_you_mean(name, candidates) if len(self._errors) < _MOST_HINTS else None

    def supports(self, feature: str) -> bool:
        """Whether a language feature is allowed."""
        return feature in self._features

    def has_extension(self, name: str) -> bool:
        """Whether an extension is enabled."""
        return name in self.made.enables

    def need_extension(self, name: str, what: str, span: Span) -> None:
        """Raise `WgslError` where an extension is not enabled."""
        if name not in self.made.enables:
            hint = f"add 'enable {name};' at the top of the module"
            raise fail("extension-not-enabled", f"{what} needs the extension '{name}'", span, hint=hint)

    def need_feature(self, name: str, what: str, span: Span) -> None:
        """Raise `WgslError` where `name`, an extension or a language feature, is not enabled or allowed."""
        if name in EXTENSIONS:
            self.need_extension(name, what, span)
        elif not self.supports(name):
            raise fail("unsupported-feature", f"{what} needs the language feature '{name}'", span)

    def warn(self, diagnostic: Diagnostic) -> None:
        """Add a warning to the module."""
        self.made.warnings.append(diagnostic)

    # ---- directives ------------------------------------------------------------------------------------

    def _directives(self) -> None:
        by_kind: dict[str, list[tree.Directive]] = {"enable": [], "requires": [], "diagnostic": []}
        for directive in self._module.directives:
            by_kind[directive.kind].append(directive)
        for directive in by_kind["enable"]:
            for name, span in directive.names:
                if name not in EXTENSIONS:
                    raise fail("unknown-extension", f"'{name}' is not an extension", span, hint=_extension_hint(name))
                self.made.enables.update((name, *EXTENSIONS[name]))
        for directive in by_kind["requires"]:
            for name, span in directive.names:
                if not self.supports(name):
                    hint = did_you_mean(name, self._features) or f"one of {', '.join(sorted(self._features))}"
                    raise fail("unknown-feature", f"'{name}' is not a supported language feature", span, hint=hint)
                self.made.requires.add(name)
        self.made.diagnostics = global_filters(by_kind["diagnostic"], self.warn)

    # ---- declarations ----------------------------------------------------------------------------------

    def _resolve(self, decl: _Named, span: Span) -> Entity:
        if any(name == decl.name for name, _ in self._pending):
            raise self._recursion(decl, span)
        self._pending.append((decl.name, span))
        try:
            return self._declare(decl)
        except WgslError as error:
            self._failed[decl.name] = error
            raise
        finally:
            self._pending.pop()

    def _recursion(self, decl: _Named, span: Span) -> WgslError:
        names = [name for name, _ in self._pending]
        cycle = self._pending[names.index(decl.name) + 1 :]
        notes = [Note(f"which needs '{name}'", place) for name, place in cycle]
        if cycle:
            notes.append(Note(f"which needs '{decl.name}' again", span))
        message = f"the declaration of '{decl.name}' needs itself"
        return fail("recursive-declaration", message, decl.name_span if cycle else span, *notes)

    def _declare(self, decl: _Named) -> Entity:
        e = Expressions(self)
        match decl:
            case tree.Alias():
                return TypeName(decl.name, e.type_of(decl.type), decl.name_span)
            case tree.Struct():
                struct = self.made.structs[decl.name] = struct_type(e, decl)
                return TypeName(decl.name, struct, decl.name_span)
            case tree.Function():
                return self._function(e, decl)
            case tree.GlobalDecl(keyword="const"):
                check_attributes(decl.attributes, "const", self.need_extension)
                return declare_constant(e, decl)
            case tree.GlobalDecl(keyword="override"):
                return self._override(e, decl)
            case _:
                return self._variable(e, decl)

    def _function(self, e: Expressions, decl: tree.Function) -> typed.Function:
        function = declare_function(e, decl)
        function.diagnostics = filters(decl.attributes, self.warn)
        self.made.functions[decl.name] = function
        self.uses[function] = e.uses
        return function

    def _function_body(self, decl: tree.Function) -> None:
        function = self.made.functions[decl.name]
        scope = Scope()
        for param in function.params:
            scope.declare(param.name, param, param.span)
        statements = Statements(self, function, scope)
        statements.expressions.uses = self.uses[function]
        function.body = statements.body(decl.body)

    def _override(self, e: Expressions, decl: tree.GlobalDecl) -> typed.Override:
        found = check_attributes(decl.attributes, "override", self.need_extension)
        type_ = e.type_of(decl.type) if decl.type else None
        init = initializer(e, decl, type_) if decl.init else None
        type_ = type_ or (init.type if init else None)
        if type_ is None:
            raise fail("missing-type", f"override '{decl.name}' needs a type or an initializer", decl.name_span)
        if not isinstance(type_, t.Scalar):
            where = decl.type or decl.init
            message = f"override '{decl.name}' must be a scalar, not {type_}"
            raise fail("override-type", message, where.span if where else decl.span)
        if init is not None and not is_early(init):
            raise not_early(init, f"the initializer of override '{decl.name}'", "a const- or override-expression")
        override = typed.Override(decl.name, type_, decl.name_span, self._override_id(e, found.get("id")), init)
        self.made.overrides.append(override)
        return override

    def _override_id(self, e: Expressions, attribute: tree.Attribute | None) -> int | None:
        if attribute is None:
            return None
        value = e.const_integer(attribute.args[0], "@id")
        if not 0 <= value <= 65535:
            raise fail("attribute-value", f"@id must be from 0 to 65535, not {value}", attribute.args[0].span)
        for other in self.made.overrides:
            if other.id == value:
                first = Note(f"also the id of '{other.name}'", other.span)
                hint = "give one of them another number"
                raise fail("duplicate-id", f"@id({value}) is given twice", attribute.span, first, hint=hint)
        return value

    # ---- module-scope variables ------------------------------------------------------------------------

    def _variable(self, e: Expressions, decl: tree.GlobalDecl) -> typed.Variable:
        found = check_attributes(decl.attributes, "module-scope variable", self.need_extension)
        space, access = var_templates.module_scope(e.types, decl)
        if space == "immediate" and not self.supports("immediate_address_space"):
            span = decl.template[0].span if decl.template else decl.span
            raise fail("unsupported-feature", "the immediate address space is not supported", span)
        type_ = e.type_of(decl.type) if decl.type else None
        if space is None:
            space = self._handle_space(decl, type_)
        if decl.init is not None and space != "private":
            named = "a texture or sampler" if space == "handle" else f"a variable in the {space} address space"
            hint = "it starts as zero: assign to it in the entry point" if space == "workgroup" else None
            raise fail("no-initializer", f"{named} cannot have an initializer", decl.init.span, hint=hint)
        init = initializer(e, decl, type_) if decl.init else None
        if init is not None and not is_early(init):
            raise not_early(init, f"the initializer of '{decl.name}'", "a const- or override-expression")
        store = type_ or (init.type if init else None)
        if store is None:
            raise fail("missing-type", f"'{decl.name}' needs a type", decl.name_span)
        where = decl.type.span if decl.type else decl.span
        access = access or DEFAULT_ACCESS[space]
        check_store_type(space, access, store, where)
        self._check_layout(space, store, where)
        binding = self._binding(e, decl, found, space)
        variable = typed.Variable(decl.name, store, decl.name_span, space, access, binding)
        variable.init = init
        self.made.globals.append(variable)
        self.uses[variable] = e.uses
        return variable

    def _handle_space(self, decl: tree.GlobalDecl, store: t.Type | None) -> str:
        if isinstance(store, (t.Texture, t.Sampler)):
            return "handle"
        message = f"module-scope variable '{decl.name}' needs an address space"
        raise fail("address-space", message, decl.name_span, hint="write var<private>, var<workgroup> or var<storage>")

    def _check_layout(self, space: str, store: t.Type, span: Span) -> None:
        strict = space == "uniform" and not self.supports("uniform_buffer_standard_layout")
        shared = space in ("uniform", "storage", "immediate")
        problem = layout_problem(store, uniform=strict) if shared else None
        if problem:
            raise fail("layout", f"{store} cannot lie in the {space} address space: {problem}", span)

    def _binding(
        self, e: Expressions, decl: tree.GlobalDecl, found: dict[str, tree.Attribute], space: str
    ) -> tuple[int, int] | None:
        if space not in ("uniform", "storage", "handle"):
            for attribute in found.values():
                message = f"a variable in the {space} address space takes no @{attribute.name}"
                raise fail("misplaced-attribute", message, attribute.span, hint=f"leave out '@{attribute.name}'")
            return None
        missing = [f"@{name}" for name in ("group", "binding") if name not in found]
        if missing:
            hint = f"write {' '.join(f'{name}(0)' for name in missing)} before 'var'"
            message = f"resource '{decl.name}' needs {' and '.join(missing)}"
            raise fail("missing-binding", message, decl.name_span, hint=hint)
        numbers: list[int] = []
        for name in ("group", "binding"):
            span = found[name].args[0].span
            value = e.const_integer(found[name].args[0], f"@{name}")
            if value < 0:
                raise fail("attribute-value", f"@{name} must not be negative", span)
            numbers.append(value)
        return numbers[0], numbers[1]


_Named = tree.Function | tree.GlobalDecl | tree.Alias | tree.Struct


def _all_of(errors: Iterable[WgslError]) -> WgslError:
    """Combine errors into one, with their diagnostics in the order of the source."""
    diagnostics = [diagnostic for error in errors for diagnostic in error.diagnostics]
    return WgslError(*sorted(diagnostics, key=lambda d: d.span.start if d.span else -1))


def _by_name(decls: Sequence[tree.Decl]) -> dict[str, _Named]:
    found: dict[str, _Named] = {}
    for decl in decls:
        if isinstance(decl, tree.ConstAssert):
            continue
        if decl.name in found:
            raise redeclared(decl.name, decl.name_span, found[decl.name].name_span)
        found[decl.name] = decl
    return found


def _in_source_order(module: typed.Module) -> None:
    """Sort declarations, which were resolved on demand, into the order of the source."""
    module.globals.sort(key=lambda v: v.span.start)
    module.overrides.sort(key=lambda o: o.span.start)
    module.functions = dict(sorted(module.functions.items(), key=lambda item: item[1].span.start))


def _extension_hint(name: str) -> str | None:
    if name in LANGUAGE_FEATURES:
        return f"it is a language feature: write 'requires {name};'"
    return did_you_mean(name, EXTENSIONS)


__all__ = ["EXTENSIONS", "LANGUAGE_FEATURES", "check"]
