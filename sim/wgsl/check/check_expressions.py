"""Expressions: syntax to typed trees, with overloads resolved, loads and conversions explicit.

One `Expressions` checks one module-scope declaration or function, and collects what that mentions in `uses`. Calls are
in `check_calls`, construction and folding in `fold`. Spec: WGSL, "Expressions".
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

from .. import typed
from .. import types as t
from ..analysis.static_uses import Uses
from ..builtins import Builtin
from ..diagnostics import Note, WgslError, fail, first_words
from ..source import Span
from ..syntax import tree
from ..syntax.other_languages import HABITS
from . import check_calls, fold
from .check_types import TypeExpressions
from .scopes import (
    Bypassed,
    Constant,
    Entity,
    Generator,
    InvalidName,
    ModuleContext,
    Scope,
    TypeName,
    declared,
    describe,
)

if TYPE_CHECKING:
    from collections.abc import Generator as Yields

_LITERALS: dict[str, t.Scalar] = {
    s.name: s for s in (t.BOOL, t.I32, t.U32, t.F32, t.F16, t.ABSTRACT_INT, t.ABSTRACT_FLOAT)
}
_MOST_LISTED = 8  # names in a hint
_LENGTHS = ("length", "len", "size", "count")  # members of arrays in other languages
_SWIZZLES = ("xyzw", "rgba")


class Expressions:
    """Checks the expressions of one declaration. `scope` is None at module scope."""

    def __init__(self, module: ModuleContext, scope: Scope | None = None) -> None:
        self.module = module
        self.scope = scope
        self.uses = Uses()
        self.pointers_to_parts: set[typed.Variable] = set()  # lets
        self.views: dict[typed.Variable, t.Reference] = {}  # the types of those mentioned
        self.live = True  # False right of a decided && or ||: check types, evaluate nothing

    @property
    def types(self) -> TypeExpressions:
        """What checks type expressions here. It is made anew, since a cycle would keep the syntax tree in memory."""
        return TypeExpressions(self, self.length)

    # ---- names (the protocol `Names`) ------------------------------------------------------------------

    def resolve(self, name: str, span: Span, *, types: bool = False) -> Entity:
        """Return the entity that a name denotes here. Raises `WgslError` where it is not declared.

        `types`: only a type is meant, so that the error proposes no other names.
        """
        local = self.scope.lookup(name) if self.scope else None
        if type(local) is typed.Variable:  # the most frequent
            return local
        if isinstance(local, Bypassed):
            jump = Note("the continue that may jump over it", local.jump)
            raise fail("bypassed-declaration", f"'{name}' is declared after a continue", span, jump)
        if isinstance(local, InvalidName):
            raise local.error
        if local is not None:
            return local
        entity = self.module.lookup(name, span)
        if entity is None:
            raise self._unresolved(name, span, types)
        match entity:
            case typed.Variable():
                self.uses.globals.setdefault(entity, span)
            case typed.Override():
                self.uses.overrides.setdefault(entity, span)
            case _:
                pass
        return entity

    def _unresolved(self, name: str, span: Span, types: bool) -> WgslError:
        local = self.scope.names() if self.scope and not types else ()
        nearby = chain(local, self.module.names(types=types))
        hint = HABITS.get(name) or self.module.similar(name, nearby)
        error = fail("unresolved-name", f"'{name}' is not declared", span, hint=hint)
        if self.scope:
            self.scope.root().fail(name, error, span)
        return error

    def is_part(self, pointer: typed.Expr) -> bool:
        """Whether a pointer, or a reference, is to a part of its root variable."""
        match pointer:
            case typed.AddressOf(ref=inner) | typed.Deref(pointer=inner):
                return self.is_part(inner)
            case typed.ValueRef(var=variable):
                return variable in self.pointers_to_parts
            case _:
                return isinstance(pointer, (typed.Index, typed.Member, typed.Swizzle))

    def need_extension(self, name: str, what: str, span: Span) -> None:
        """Raise `WgslError` where an extension is not enabled."""
        self.module.need_extension(name, what, span)

    def has_extension(self, name: str) -> bool:
        """Whether an extension is enabled."""
        return self.module.has_extension(name)

    def supports(self, feature: str) -> bool:
        """Whether a language feature is allowed."""
        return self.module.supports(feature)

    def type_of(self, expr: tree.Expr) -> t.Type:
        """Return the type that a type expression denotes. Raises `WgslError`."""
        return self.types.type_of(expr)

    def length(self, expr: tree.Expr) -> int | t.OverrideCount:
        """Check an array's element count. Raises `WgslError`."""
        with self.evaluating(True):
            count = fold.concrete(self.value(expr))
        if count.type not in (t.I32, t.U32):
            raise fail("array-length", f"an array length must be an i32 or u32, not {count.type}", expr.span)
        if isinstance(count, typed.Const):
            if count.value < 1:
                raise fail("array-length", f"an array length must be at least 1, not {count.value}", expr.span)
            return count.value
        if not fold.is_early(count):
            raise not_early(count, "an array length", "a const- or override-expression")
        # Only the bare name of an override makes two types equal; any other expression equals itself alone.
        if isinstance(expr, tree.Ident) and isinstance(count, typed.OverrideRef):
            return t.OverrideCount(count.override, count)
        return t.OverrideCount(count, count)

    # ---- entry points ----------------------------------------------------------------------------------

    def value(self, expr: tree.Expr) -> typed.Expr:
        """Check an expression and apply the load rule; a call must return a value. Raises `WgslError`."""
        made = self.check(expr)
        return self.load(made) if isinstance(made.type, t.Reference) else made

    def load(self, made: typed.Expr) -> typed.Expr:
        """Apply the load rule: a reference becomes the value in memory. Spec: "Reference and Pointer Types"."""
        if not isinstance(made.type, t.Reference):
            return made
        store = made.type.store
        if made.type.access == "write":
            raise fail("access-mode", "this memory can only be written", made.span)
        if not t.is_constructible(store):
            hint = "read it with atomicLoad" if isinstance(store, t.Atomic) else None
            if isinstance(store, t.Buffer):
                hint = f"read it as another type: bufferView<Type>(&{first_words(made.span.text)}, offset)"
            elif isinstance(store, t.Array):
                hint = f"read one element: {first_words(made.span.text)}[i]"
            raise fail("not-loadable", f"a value of type {store} cannot be read as a whole", made.span, hint=hint)
        return typed.Load(store, made.span, made)

    def converted(self, expr: tree.Expr, to: t.Type, what: str) -> typed.Expr:
        """Check an expression and convert it to a required type; `what` names it in the error."""
        return self.convert(self.value(expr), to, what)

    def convert(self, made: typed.Expr, to: t.Type, what: str) -> typed.Expr:
        """Convert a value to a required type; `what` names it in the error. Raises `WgslError`."""
        if made.type is to:
            return made
        if not fold.convertible(made.type, to):
            hint = fold.conversion_hint(made, to)
            raise fail("type-mismatch", f"{what} must be {to}, not {made.type}", made.span, hint=hint)
        return fold.convert(made, to)

    def condition(self, expr: tree.Expr, what: str) -> typed.Expr:
        """Check the condition of an `if`, a loop or an assertion: a bool."""
        return self.converted(expr, t.BOOL, what)

    def constant(self, expr: tree.Expr, what: str, *, instead: str | None = None) -> typed.Const:
        """Check a const-expression; `what` names it in the error, `instead` is what a function declares otherwise.
        Raises `WgslError`."""
        made = self.value(expr)
        if not isinstance(made, typed.Const):
            hint = f"declare it with '{instead}'" if instead and self.scope else None
            raise not_early(made, what, "a const-expression", const=True, hint=hint)
        return made

    def const_integer(self, expr: tree.Expr, what: str) -> int:
        """Return the value of a const-expression of type i32 or u32. Raises `WgslError`."""
        made = fold.concrete(self.constant(expr, what))
        if made.type not in (t.I32, t.U32):
            raise fail("type-mismatch", f"{what} must be an i32 or u32, not {made.type}", expr.span)
        assert isinstance(made, typed.Const)
        return made.value

    @contextmanager
    def evaluating(self, live: bool) -> Yields[None]:
        """Evaluate const-expressions, or not, within this context."""
        before, self.live = self.live, live
        try:
            yield
        finally:
            self.live = before

    # ---- kinds of expressions --------------------------------------------------------------------------

    def check(self, expr: tree.Expr) -> typed.Expr:
        """Check an expression; its type is a `Reference` where it is a memory view."""
        made = self._checks[type(expr)](self, expr)
        return made if self.live or not isinstance(made, typed.Const) else typed.Const(made.type, made.span, None)

    def target(self, expr: tree.Expr) -> typed.Expr:
        """Check what is assigned to, which may be several components of a vector."""
        if isinstance(expr, tree.Paren):
            return self.target(expr.inner)
        return self._member(expr, target=True) if isinstance(expr, tree.Member) else self.check(expr)

    def _paren(self, expr: tree.Paren) -> typed.Expr:
        return self.check(expr.inner)

    def _literal(self, expr: tree.Literal) -> typed.Expr:
        if expr.kind == "f16":
            self.need_extension("f16", "an f16 literal", expr.span)
        return typed.Const(_LITERALS[expr.kind], expr.span, expr.value)

    def _ident(self, expr: tree.Ident) -> typed.Expr:
        entity = self.resolve(expr.name, expr.name_span)
        if expr.args is not None and isinstance(entity, (Constant, typed.Override, typed.Variable, typed.Function)):
            message = f"'{expr.name}' is {describe(entity)} and takes no template arguments"
            raise fail("unexpected-template", message, expr.span)
        match entity:
            case typed.Variable():
                return self._variable(entity, expr.span)
            case Constant():
                return typed.Const(entity.type, expr.span, entity.value)
            case typed.Override():
                return typed.OverrideRef(entity.type, expr.span, entity)
            case _:
                message = f"'{expr.name}' is {describe(entity)}, not a value"
                raise fail("not-a-value", message, expr.name_span, *declared(entity), hint=_call_hint(entity))

    def _variable(self, variable: typed.Variable, span: Span) -> typed.Expr:
        if variable.space is None:
            return typed.ValueRef(variable.type, span, variable)
        if variable.space == "handle":
            return typed.VarRef(variable.type, span, variable)
        view = self.views.get(variable)
        if view is None:
            assert variable.access is not None
            view = self.views[variable] = t.Reference(variable.space, variable.type, variable.access)
        return typed.VarRef(view, span, variable)

    def _call(self, expr: tree.Call) -> typed.Expr:
        called = check_calls.call(self, expr)
        if not called.has_value:
            message = f"'{expr.callee.name}' returns nothing, so it cannot be used as a value"
            hint = f"call it in a statement of its own: {expr.callee.name}(…);"
            raise fail("no-value", message, expr.span, hint=hint)
        return called.expr

    def _unary(self, expr: tree.Unary) -> typed.Expr:
        if expr.op == "&":
            return self._address_of(expr)
        if expr.op == "*":
            return self._indirection(expr)
        return check_calls.operator(self, expr.op, [self.value(expr.operand)], expr)

    def _binary(self, expr: tree.Binary) -> typed.Expr:
        if expr.op in ("&&", "||"):
            return self._short_circuit(expr)
        return check_calls.operator(self, expr.op, [self.value(expr.left), self.value(expr.right)], expr)

    def _short_circuit(self, expr: tree.Binary) -> typed.Expr:
        left = self.condition(expr.left, f"the left side of '{expr.op}'")
        with self.evaluating(self.live and not fold.decides(expr.op, left)):
            right = self.condition(expr.right, f"the right side of '{expr.op}'")
        if fold.decides(expr.op, left) and not isinstance(right, typed.Const):
            return typed.ShortCircuit(t.BOOL, expr.span, expr.op, left, right)
        return fold.short_circuit(expr.op, left, right, expr.span)

    # ---- memory views ----------------------------------------------------------------------------------

    def _address_of(self, expr: tree.Unary) -> typed.Expr:
        ref = self.check(expr.operand)
        if not isinstance(ref.type, t.Reference):
            if isinstance(ref, typed.VarRef):
                message = f"'{ref.var.name}' is a {ref.var.type}, which has no address"
                hint = f"write {ref.var.name} without '&'"
                raise fail("not-a-reference", message, expr.operand.span, *declared(ref.var), hint=hint)
            message = "only a variable, or a part of one, has an address"
            hint = f"only a 'var' has an address: var copy = {first_words(expr.operand.span.text)};"
            raise fail("not-a-reference", message, expr.operand.span, hint=hint)
        if _is_vector_component(ref):
            hint = f"copy it: var copy = {first_words(expr.operand.span.text)};"
            raise fail("address-of-component", "a component of a vector has no address", expr.operand.span, hint=hint)
        pointer = t.Pointer(ref.type.space, ref.type.store, ref.type.access)
        return typed.AddressOf(pointer, expr.span, ref)

    def _indirection(self, expr: tree.Unary) -> typed.Expr:
        return self._deref(self.value(expr.operand), expr.span)

    def _deref(self, pointer: typed.Expr, span: Span) -> typed.Expr:
        if not isinstance(pointer.type, t.Pointer):
            doubled = span.source.text[span.start - 1 : span.start + 1] == "**"
            hint = "a power is written pow(x, y)" if doubled else "leave out '*'"
            message = f"only a pointer can be dereferenced, not {pointer.type}"
            raise fail("not-a-pointer", message, pointer.span, hint=hint)
        p = pointer.type
        return typed.Deref(t.Reference(p.space, p.store, p.access), span, pointer)

    def _base(self, expr: tree.Expr) -> tuple[typed.Expr, t.Type]:
        """Check what precedes `.` or `[`, dereferencing pointers. Return it with its store type or value type."""
        base = self.check(expr)
        if isinstance(base.type, t.Reference) and isinstance(base.type.store, t.Pointer):
            base = self.load(base)
        if isinstance(base.type, t.Pointer):
            if not self.supports("pointer_composite_access"):
                raise fail("unsupported-feature", "parts of a pointer need pointer_composite_access", expr.span)
            base = self._deref(base, base.span)
        return base, base.type.store if isinstance(base.type, t.Reference) else base.type

    def _index(self, expr: tree.Index) -> typed.Expr:
        base, whole = self._base(expr.base)
        if isinstance(whole, t.Buffer):
            hint = f"read it as another type: bufferView<Type>(&{first_words(expr.base.span.text)}, offset)"
            raise fail("not-indexable", f"a {whole} cannot be indexed", expr.base.span, hint=hint)
        if not isinstance(whole, (t.Vec, t.Mat, t.Array)):
            hint = "read a texel with textureLoad" if isinstance(whole, t.Texture) else None
            raise fail("not-indexable", f"a value of type {whole} cannot be indexed", expr.base.span, hint=hint)
        at = fold.concrete(self.value(expr.index))
        if at.type not in (t.I32, t.U32):
            hint = fold.conversion_hint(at, t.U32)
            raise fail("type-mismatch", f"an index must be an i32 or u32, not {at.type}", expr.index.span, hint=hint)
        return fold.index(base, at, expr.span)

    def _member(self, expr: tree.Member, target: bool = False) -> typed.Expr:
        base, whole = self._base(expr.base)
        if isinstance(whole, t.Struct):
            position = whole.index(expr.name)
            if position is None:
                names = [m.name for m in whole.members]
                hint = self.module.similar(expr.name, names)
                if hint is None and len(names) <= _MOST_LISTED:
                    hint = f"it has {', '.join(names)}"
                message = f"struct {whole} has no member '{expr.name}'"
                raise fail("no-such-member", message, expr.name_span, hint=hint)
            return fold.member(base, position, expr.span)
        if not isinstance(whole, t.Vec):
            length = isinstance(whole, t.Array) and whole.count is None and expr.name in _LENGTHS
            hint = f"write arrayLength(&{first_words(expr.base.span.text)})" if length else None
            raise fail("no-such-member", f"a value of type {whole} has no members", expr.name_span, hint=hint)
        components = _swizzle(expr, whole)
        if len(components) > 1 and not target:
            base = self.load(base)
        return fold.swizzle(base, components, expr.span)

    _checks: ClassVar[dict[type[tree.Expr], Callable[[Expressions, Any], typed.Expr]]] = {
        tree.Ident: _ident,
        tree.Literal: _literal,
        tree.Binary: _binary,
        tree.Index: _index,
        tree.Member: _member,
        tree.Call: _call,
        tree.Unary: _unary,
        tree.Paren: _paren,
    }


def _swizzle(expr: tree.Member, vector: t.Vec) -> tuple[int, ...]:
    """Return the component numbers of a swizzle. Raises `WgslError` for mixed letters or a missing component."""
    letters = next((s for s in _SWIZZLES if expr.name and all(c in s for c in expr.name)), None)
    if letters is None or len(expr.name) > 4:
        message = f"'{expr.name}' is not a swizzle of {vector}"
        raise fail("no-such-member", message, expr.name_span, hint="use up to four letters, all of xyzw or all of rgba")
    components = tuple(letters.index(c) for c in expr.name)
    if max(components) >= vector.size:
        worst = expr.name[components.index(max(components))]
        hint = f"it has {', '.join(letters[: vector.size])}"
        raise fail("no-such-member", f"{vector} has no component '{worst}'", expr.name_span, hint=hint)
    return components


def _call_hint(entity: Entity) -> str | None:
    """Return the hint for a function or type where a value is expected."""
    match entity:
        case typed.Function() | Builtin():
            return f"write {entity.name}(…) to call it"
        case TypeName() | Generator():
            return f"write {entity.name}(…) to make a value of it"
        case _:
            return None


def _is_vector_component(ref: typed.Expr) -> bool:
    if isinstance(ref, typed.Swizzle):
        return True
    base = ref.base.type if isinstance(ref, typed.Index) else None
    return isinstance(base, t.Reference) and isinstance(base.store, t.Vec)


def not_early(made: typed.Expr, what: str, wanted: str, *, const: bool = False, hint: str | None = None) -> WgslError:
    """Return the error of an expression that is evaluated too late, with a note at the part that is."""
    late = _late_part(made, const)
    message, reason = f"{what} must be {wanted}", _lateness(late)
    if late.span == made.span:
        return fail("not-constant", f"{message}, but {reason}", made.span, hint=hint)
    return fail("not-constant", message, made.span, Note(reason, late.span), hint=hint)


def _late_part(made: typed.Expr, const: bool) -> typed.Expr:
    for part in typed.children(made):
        if not (isinstance(part, typed.Const) if const else fold.is_early(part)):
            return _late_part(part, const)
    return made


def _lateness(part: typed.Expr) -> str:
    match part:
        case typed.VarRef() | typed.ValueRef():
            return f"'{part.var.name}' is {describe(part.var)}, known only when the shader runs"
        case typed.OverrideRef():
            return f"'{part.override.name}' is an override, known only when the pipeline is made"
        case typed.Call():
            return f"'{part.function.name}' is a function, called only when the shader runs"
        case _:
            return "this is known only when the shader runs"
