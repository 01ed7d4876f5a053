"""Statements: scopes, declarations, assignments and control flow of one function body.

`for` and `while` become `Loop`. `analysis/behavior.py` checks how control leaves statements. Spec: WGSL, "Statements".
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import field, replace
from typing import TYPE_CHECKING, TypedDict, Unpack

from ...fast_dataclass import entity, frozen
from .. import typed
from .. import types as t
from ..diagnostics import Crash, Note, WgslError, fail, first_words
from ..source import Span
from ..syntax import tree
from . import check_calls, fold, var_templates
from .check_attributes import check_attributes, filters
from .check_expressions import Expressions
from .check_targets import check_update, read_only, refuse_value
from .check_types import check_store_type
from .scopes import Bypassed, Constant, Entity, ModuleContext, Scope

if TYPE_CHECKING:
    from collections.abc import Generator

MAX_BRACE_DEPTH = 127  # spec, "Limits"
MAX_CASE_SELECTORS = 1023


@entity
class _Loop:
    """The loop around a statement: the scope of its body, and its first `continue` with the names declared before."""

    scope: Scope = field(default_factory=Scope)
    first_continue: Span | None = None
    names_then: frozenset[str] = frozenset()


@frozen
class _Place:
    """The context of a statement: whether `break` and `continue` are valid, and the nearest loop."""

    breakable: bool = False
    loop: _Loop | None = None
    continuing: bool = False  # in a continuing block, where a return is invalid
    depth: int = 0


class _Changes(TypedDict, total=False):
    """Fields of `_Place`."""

    breakable: bool
    loop: _Loop | None
    continuing: bool
    depth: int


class Statements:
    """Checks the body of one function; `scope` has its parameters."""

    def __init__(self, module: ModuleContext, function: typed.Function, scope: Scope) -> None:
        self.module = module
        self.function = function
        self.expressions = Expressions(module, scope)
        self.place = _Place()

    @property
    def scope(self) -> Scope:
        assert self.expressions.scope is not None
        return self.expressions.scope

    def body(self, block: tree.Block) -> typed.Block:
        """Check the function body, which shares the scope of the parameters."""
        return typed.Block(block.span, self._list(block.body), self._filters(block.attributes, "block"))

    # ---- blocks and scopes -----------------------------------------------------------------------------

    def _list(self, body: list[tree.Stmt]) -> list[typed.Stmt]:
        """Check statement by statement; an invalid one is reported and left out."""
        made: list[typed.Stmt] = []
        for stmt in body:
            try:
                checked = self._statement(stmt)
            except WgslError as error:
                self.module.report(error)
                continue
            if checked is not None:
                made.append(checked)
        return made

    def _statement(self, stmt: tree.Stmt) -> typed.Stmt | None:
        """Check one statement; None for a declaration without code."""
        match stmt:
            case tree.LocalDecl():
                return self._declaration(stmt)
            case tree.Assign():
                return self._assign(stmt)
            case tree.CallStmt():
                return self._call(stmt)
            case tree.Increment():
                return self._increment(stmt)
            case tree.Discard():
                return self._discard(stmt)
            case tree.ConstAssert():
                return check_assertion(self.expressions, stmt)
            case _:
                return self._control_flow(stmt)

    def _control_flow(self, stmt: tree.Stmt) -> typed.Stmt:
        match stmt:
            case tree.If():
                return self._if(stmt)
            case tree.For():
                return self._for(stmt)
            case tree.Return():
                return self._return(stmt)
            case tree.Block():
                return self.block(stmt)
            case tree.Switch():
                return self._switch(stmt)
            case tree.Loop():
                return self._loop(stmt)
            case tree.While():
                return self._while(stmt)
            case tree.Break():
                return self._break(stmt)
            case tree.Continue():
                return self._continue(stmt)
            case _:
                raise Crash(f"the checker does not know {type(stmt).__name__}", stmt.span)

    def _filters(self, attributes: list[tree.Attribute], place: str) -> dict[str, str]:
        check_attributes(attributes, place, self.module.need_extension)
        return filters(attributes, self.module.warn)

    @contextmanager
    def _within(self, **changes: Unpack[_Changes]) -> Generator[None]:
        """Open a nested scope, with these changes to the context of statements."""
        before = self.expressions.scope, self.place
        self.expressions.scope, self.place = Scope(self.scope), replace(self.place, **changes)
        try:
            yield
        finally:
            self.expressions.scope, self.place = before

    def block(self, block: tree.Block, **changes: Unpack[_Changes]) -> typed.Block:
        """Check a block in its own scope, with these changes to the context of its statements."""
        depth = self.place.depth + 1
        if depth > MAX_BRACE_DEPTH:
            raise fail("limit", f"statements are nested more than {MAX_BRACE_DEPTH} deep", block.span)
        changes["depth"] = depth
        with self._within(**changes):
            return typed.Block(block.span, self._list(block.body), self._filters(block.attributes, "block"))

    # ---- declarations ----------------------------------------------------------------------------------

    def _declaration(self, stmt: tree.LocalDecl) -> typed.Stmt | None:
        try:
            made, entity = self._declared(stmt)
            self.scope.declare(stmt.name, entity, stmt.name_span)
        except WgslError as error:
            self.scope.fail(stmt.name, error, stmt.name_span)
            raise
        return made

    def _declared(self, stmt: tree.LocalDecl) -> tuple[typed.Stmt | None, Entity]:
        match stmt.keyword:
            case "const":
                return None, declare_constant(self.expressions, stmt)
            case "let":
                return self._let(stmt)
            case _:
                return self._var(stmt)

    def _let(self, stmt: tree.LocalDecl) -> tuple[typed.Stmt, typed.Variable]:
        assert stmt.init is not None
        type_ = self.expressions.type_of(stmt.type) if stmt.type else None
        init = initializer(self.expressions, stmt, type_)
        handle = isinstance(init.type, (t.Texture, t.Sampler)) and self.module.supports("texture_and_sampler_let")
        if not (t.is_constructible(init.type) or isinstance(init.type, t.Pointer) or handle):
            raise fail("not-constructible", f"a let cannot hold a value of type {init.type}", stmt.init.span)
        variable = typed.Variable(stmt.name, init.type, stmt.name_span)
        if isinstance(init.type, t.Pointer) and self.expressions.is_part(init):
            self.expressions.pointers_to_parts.add(variable)
        return typed.LetDecl(stmt.span, variable, init), variable

    def _var(self, stmt: tree.LocalDecl) -> tuple[typed.Stmt, typed.Variable]:
        var_templates.function_scope(self.expressions.types, stmt)
        type_ = self.expressions.type_of(stmt.type) if stmt.type else None
        init = initializer(self.expressions, stmt, type_) if stmt.init else None
        store = type_ or (init.type if init else None)
        if store is None:
            raise fail("missing-type", f"'{stmt.name}' needs a type or an initializer", stmt.name_span)
        where = stmt.type or stmt.init
        check_store_type("function", "read_write", store, where.span if where else stmt.span)
        variable = typed.Variable(stmt.name, store, stmt.name_span, "function", "read_write")
        return typed.VarDecl(stmt.span, variable, init), variable

    # ---- assignments -----------------------------------------------------------------------------------

    def _assign(self, stmt: tree.Assign) -> typed.Stmt:
        if stmt.target is None:
            return self._phony(stmt)
        target = self._target(stmt.target, stmt.op)
        assert isinstance(target.type, t.Reference)
        store = target.type.store
        if stmt.op == "=":
            value = self.expressions.converted(stmt.value, store, "the assigned value")
            return typed.Assign(stmt.span, target, value)
        value = self.expressions.value(stmt.value)
        return self._update(target, stmt.op[:-1], value, stmt)

    def _phony(self, stmt: tree.Assign) -> typed.Stmt:
        value = self.expressions.value(stmt.value)
        if not isinstance(value, typed.Const):  # a constant may stay abstract: no value is made of it
            value = fold.concrete(value) if t.is_constructible(value.type) else value
        if not (t.is_constructible(value.type) or isinstance(value.type, (t.Pointer, t.Texture, t.Sampler))):
            raise fail("not-constructible", f"a value of type {value.type} cannot be evaluated here", stmt.value.span)
        return typed.Eval(stmt.span, value)

    def _target(self, expr: tree.Expr, op: str) -> typed.Expr:
        """Check the target of an assignment, or of the update `op`: `+=`, `++`."""
        update = op != "="
        if not isinstance(expr, tree.Ident):  # checking a mere name finds no other error
            refuse_value(self.expressions, self.function, expr)
        target = self.expressions.target(expr)
        if not isinstance(target.type, t.Reference):
            refuse_value(self.expressions, self.function, expr)
            hint = "write '*' before it to assign to what it points to" if isinstance(target.type, t.Pointer) else None
            raise fail("not-assignable", "only a variable, or a part of one, can be assigned to", expr.span, hint=hint)
        if isinstance(target, typed.Swizzle) and len(target.components) > 1:
            self._check_swizzle_target(target, expr, update)
        if target.type.access == "read" or (update and target.type.access != "read_write"):
            raise read_only(target, expr.span)
        if not t.is_constructible(target.type.store):
            hint = _part_hint(expr, op, target.type.store)
            raise fail(
                "not-assignable", f"a value of type {target.type.store} cannot be assigned", expr.span, hint=hint
            )
        return target

    def _check_swizzle_target(self, target: typed.Swizzle, expr: tree.Expr, update: bool) -> None:
        if not self.module.supports("swizzle_assignment"):
            raise fail("not-assignable", "several components of a vector cannot be assigned at once", expr.span)
        if len(set(target.components)) != len(target.components):
            hint = "name each component once"
            raise fail("not-assignable", "a component is assigned twice", expr.span, hint=hint)

    def _update(self, target: typed.Expr, op: str, value: typed.Expr, stmt: tree.Stmt) -> typed.Stmt:
        """Check `target op= value`: the operator applied to the loaded target gives the target's type."""
        assert isinstance(target.type, t.Reference)
        store = target.type.store
        check_update(store, op, value)
        loaded = typed.Load(store, target.span, target)
        made = check_calls.operator(self.expressions, op, [loaded, value], stmt)
        if made.type != store:
            message = f"'{op}=' gives a value of type {made.type}, which cannot be stored in {store}"
            raise fail("type-mismatch", message, stmt.op_span)
        assert isinstance(made, typed.BuiltinCall)
        return typed.CompoundAssign(stmt.span, target, made.builtin, made.args[1], made.type)

    def _increment(self, stmt: tree.Increment) -> typed.Stmt:
        target = self._target(stmt.target, stmt.op)
        assert isinstance(target.type, t.Reference)
        store = target.type.store
        if store not in (t.I32, t.U32):
            hint = f"write {first_words(stmt.target.span.text)} {stmt.op[0]}= 1"
            raise fail("type-mismatch", f"'{stmt.op}' needs an i32 or u32, not {store}", stmt.target.span, hint=hint)
        one = typed.Const(store, stmt.span, 1)
        return self._update(target, stmt.op[0], one, stmt)

    # ---- calls -----------------------------------------------------------------------------------------

    def _call(self, stmt: tree.CallStmt) -> typed.Stmt:
        called = check_calls.call(self.expressions, stmt.call)
        if called.must_use:
            message = f"the result of '{stmt.call.callee.name}' must be used"
            raise fail("unused-value", message, stmt.span, hint="to drop it on purpose, assign it: '_ = …'")
        return typed.Eval(stmt.span, called.expr)

    # ---- control flow ----------------------------------------------------------------------------------

    def _if(self, stmt: tree.If) -> typed.If:
        diagnostics = self._filters(stmt.attributes, "if")
        condition = self.expressions.condition(stmt.condition, "the condition of an if")
        then = self.block(stmt.then)
        orelse = stmt.orelse
        if isinstance(orelse, tree.If):
            # An `else if` counts as one more level, like the block that it abbreviates.
            other = typed.Block(orelse.span, [self._if(orelse)])
        else:
            other = self.block(orelse) if orelse else None
        return typed.If(stmt.span, condition, then, other, diagnostics)

    def _switch(self, stmt: tree.Switch) -> typed.Stmt:
        diagnostics = self._filters(stmt.attributes, "switch")
        diagnostics_body = self._filters(stmt.body_attributes, "switch body")
        selector = self.expressions.value(stmt.selector)
        choices = [self.expressions.constant(c, "a case selector") for case in stmt.cases for c in case.selectors if c]
        type_ = _selector_type(selector, choices)
        selector = fold.convert(selector, type_)
        seen: dict[int | None, Span] = {}
        converted = iter([fold.convert(choice, type_) for choice in choices])
        cases: list[typed.Case] = []
        for case in stmt.cases:
            values = [None if c is None else next(converted) for c in case.selectors]
            for value in values:
                _check_selector(value, case, seen)
            body = self.block(case.body, breakable=True)
            body.diagnostics = {**diagnostics_body, **body.diagnostics}
            known = [v.value for v in values if isinstance(v, typed.Const)]
            cases.append(typed.Case(known, None in values, body))
        if None not in seen:
            raise fail("missing-default", "a switch needs a default", stmt.span, hint="add 'default: {}'")
        if len(seen) > MAX_CASE_SELECTORS:
            raise fail("limit", f"a switch has {len(seen)} case selectors, more than {MAX_CASE_SELECTORS}", stmt.span)
        return typed.Switch(stmt.span, selector, cases, diagnostics)

    def _loop(self, stmt: tree.Loop) -> typed.Stmt:
        diagnostics = self._filters(stmt.attributes, "loop")
        loop = _Loop()
        with self._within(breakable=True, loop=loop, depth=self.place.depth + 1):
            loop.scope = self.scope
            body = typed.Block(stmt.body.span, self._list(stmt.body.body), self._filters(stmt.body.attributes, "block"))
            # The declarations of the body are in scope in the continuing block.
            continuing, break_if = None, None
            if stmt.continuing is not None:
                with self._bypassing(loop), self._within(breakable=False, loop=None, continuing=True):
                    inside = stmt.continuing
                    filters_ = self._filters(inside.attributes, "block")
                    continuing = typed.Block(inside.span, self._list(inside.body), filters_)
                    if stmt.break_if is not None:
                        break_if = self.expressions.condition(stmt.break_if, "the condition of a break if")
        return typed.Loop(stmt.span, None, body, continuing, break_if, diagnostics)

    @contextmanager
    def _bypassing(self, loop: _Loop) -> Generator[None]:
        """Within this context, names that a `continue` of the loop may have jumped over are errors."""
        with self._within():
            if loop.first_continue is not None:
                for name, (_, span) in loop.scope.entities.items():
                    if name not in loop.names_then:
                        self.scope.declare(name, Bypassed(name, loop.first_continue), span)
            yield

    def _for(self, stmt: tree.For) -> typed.Stmt:
        diagnostics = self._filters(stmt.attributes, "for")
        with self._within(depth=self.place.depth + 1):
            init = self._list([stmt.init] if stmt.init else [])
            condition = self.expressions.condition(stmt.condition, "the condition of a for") if stmt.condition else None
            update = None
            if stmt.update is not None:
                with self._within(breakable=False, loop=None, continuing=True):
                    update = typed.Block(stmt.update.span, self._list([stmt.update]))
            # The body has its own scope: the conformance suite shadows the names of the header in it.
            body = self.block(stmt.body, breakable=True, loop=_Loop())
        loop = typed.Loop(stmt.span, condition, body, update, None, diagnostics)
        return typed.Block(stmt.span, [*init, loop], diagnostics) if init else loop

    def _while(self, stmt: tree.While) -> typed.Stmt:
        diagnostics = self._filters(stmt.attributes, "while")
        condition = self.expressions.condition(stmt.condition, "the condition of a while")
        body = self.block(stmt.body, breakable=True, loop=_Loop())
        return typed.Loop(stmt.span, condition, body, None, None, diagnostics)

    def _break(self, stmt: tree.Break) -> typed.Stmt:
        if not self.place.breakable:
            where = "cannot leave a continuing block" if self.place.continuing else "must be in a loop or a switch"
            hint = "end the continuing block with break if …;" if self.place.continuing else None
            raise fail("misplaced-break", f"a break {where}", stmt.span, hint=hint)
        return typed.Break(stmt.span)

    def _continue(self, stmt: tree.Continue) -> typed.Stmt:
        loop = self.place.loop
        if loop is None:
            where = "cannot be in a continuing block" if self.place.continuing else "must be in a loop"
            hint = "enclose what it skips with 'if'" if self.place.continuing else None
            raise fail("misplaced-continue", f"a continue {where}", stmt.span, hint=hint)
        if loop.first_continue is None:
            loop.first_continue, loop.names_then = stmt.span, frozenset(loop.scope.entities)
        return typed.Continue(stmt.span)

    def _discard(self, stmt: tree.Discard) -> typed.Stmt:
        uses = self.expressions.uses
        uses.discard = uses.discard or stmt.span
        return typed.Discard(stmt.span)

    def _return(self, stmt: tree.Return) -> typed.Stmt:
        name, result = self.function.name, self.function.result
        if self.place.continuing:
            hint = "return from the body of the loop; 'break if …;' ends the loop"
            raise fail("misplaced-return", "a return cannot be in a continuing block", stmt.span, hint=hint)
        if result is None:
            if stmt.value is not None:
                hint = "write return;"
                if not self.function.stage:
                    given = fold.concrete(self.expressions.value(stmt.value)).type
                    hint = f"declare the type of the result: fn {name}(…) -> {given}"
                raise fail("return-type", f"function '{name}' returns nothing", stmt.value.span, hint=hint)
            return typed.Return(stmt.span, None)
        if stmt.value is None:
            raise fail("return-type", f"function '{name}' must return a value of type {result}", stmt.span)
        value = self.expressions.converted(stmt.value, result, f"the value that '{name}' returns")
        return typed.Return(stmt.span, value)


# ---- shared with module scope --------------------------------------------------------------------------


def initializer(expressions: Expressions, decl: tree.LocalDecl | tree.GlobalDecl, type_: t.Type | None) -> typed.Expr:
    """Check an initializer: convert it to the declared type, or else make it concrete."""
    assert decl.init is not None
    value = expressions.value(decl.init)
    if type_ is None:
        return fold.concrete(value)
    return expressions.convert(value, type_, f"the initializer of '{decl.name}'")


def declare_constant(expressions: Expressions, decl: tree.LocalDecl | tree.GlobalDecl) -> Constant:
    """Check a `const`, at module scope or in a function; without a written type it may stay abstract."""
    type_ = expressions.type_of(decl.type) if decl.type else None
    assert decl.init is not None
    made = expressions.constant(decl.init, f"the initializer of '{decl.name}'", instead="let")
    if type_ is not None:
        if not t.is_constructible(type_):
            raise fail("not-constructible", f"a const cannot have type {type_}", decl.type.span if decl.type else None)
        made = expressions.convert(made, type_, f"the initializer of '{decl.name}'")
    assert isinstance(made, typed.Const)
    return Constant(decl.name, made.type, made.value, decl.name_span)


def check_assertion(expressions: Expressions, stmt: tree.ConstAssert) -> None:
    """Check that a const_assert is true. Raises `WgslError`. Spec: "Const Assertion Statement"."""
    made = expressions.convert(expressions.constant(stmt.condition, "a const_assert"), t.BOOL, "a const_assert")
    assert isinstance(made, typed.Const)
    if not made.value:
        raise fail("const-assert", "this const_assert is false", stmt.condition.span)


_ATOMIC_UPDATES = {"+": "atomicAdd", "-": "atomicSub", "&": "atomicAnd", "|": "atomicOr", "^": "atomicXor"}


def _part_hint(expr: tree.Expr, op: str, store: t.Type) -> str | None:
    """Return the hint for an assignment to a variable whose type no value has."""
    update, name = _ATOMIC_UPDATES.get(op[0]), first_words(expr.span.text)
    if isinstance(store, t.Array):
        return f"assign its elements one by one, in a loop: {name}[i] = …"
    if isinstance(store, t.Struct):
        return f"assign its members one by one: {name}.{store.members[0].name} = …"
    if not isinstance(store, t.Atomic):
        return None
    if op == "=" or update is None:
        return f"write atomicStore(&{name}, …)"
    return f"write {update}(&{name}, {'1' if op in ('++', '--') else '…'})"


# ---- parts of switch and assignment --------------------------------------------------------------------


def _selector_type(selector: typed.Expr, choices: list[typed.Const]) -> t.Type:
    """Return the concrete integer type that a switch's selector and all its cases share. Raises `WgslError`."""
    parts = [selector, *choices]
    type_ = next((part.type for part in parts if t.is_concrete(part.type)), t.I32)
    for part in parts:
        if type_ not in (t.I32, t.U32) or not fold.convertible(part.type, type_):
            what = "a switch selector" if part is selector else "a case selector"
            wanted = type_ if type_ in (t.I32, t.U32) else "i32 or u32"
            hint = fold.conversion_hint(part, t.I32 if type_ not in (t.I32, t.U32) else type_)
            if part.type == t.BOOL:
                hint = "write an 'if'"
            raise fail("type-mismatch", f"{what} must be {wanted}, not {part.type}", part.span, hint=hint)
    return type_


def _check_selector(value: typed.Expr | None, case: tree.Case, seen: dict[int | None, Span]) -> None:
    """Check that a value, or `default`, occurs once in a switch. Raises `WgslError`."""
    key = value.value if isinstance(value, typed.Const) else None
    span = case.span if value is None else value.span
    if key in seen:
        what = "default" if value is None else f"case {key}"
        hint = "a switch has one default" if value is None else "a value selects one case"
        raise fail("duplicate-case", f"{what} is given twice", span, Note("first given here", seen[key]), hint=hint)
    seen[key] = span
