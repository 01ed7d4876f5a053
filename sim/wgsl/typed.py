"""The typed module: the result of checking, and the input of lowering and of every analysis.

Names are resolved, overloads chosen, implicit conversions and loads explicit, constants folded, and `for` and `while`
are `Loop`s. The lowerer and the analyses read this tree, not the syntax.

The `value` of a constant is plain Python: bool, int (i32, u32, abstract-int), float (exactly representable in its
type), and tuples of those for vectors, matrices (of columns), arrays and structs (of members).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ..bounded_cache import remember
from ..fast_dataclass import entity
from . import types as t
from .source import Source, Span

if TYPE_CHECKING:
    import numpy as np

    from .builtins import Builtin
    from .diagnostics import Diagnostic

    OverrideValue = float | np.number[Any] | np.bool_  # a bool or a number, of Python or of NumPy

Value = Any  # a recursive type would need a cast at each use
_MOST_PIPELINES = 64  # cached by a module

# The type of a call without a value. It has no spelling in WGSL.
NOTHING = t.scalar("nothing")

# ---- declarations --------------------------------------------------------------------------------------


@entity
class Variable:
    """A `var` (in any address space), `let`, or formal parameter.

    `space` is None for a let and a parameter, which are values. `builtin` is set on an entry point's parameters.
    """

    name: str
    type: t.Type  # store type of a var, value type of the others
    span: Span
    space: str | None = None
    access: str | None = None
    binding: tuple[int, int] | None = None
    builtin: str | None = None
    attrs: t.IoAttributes = field(default_factory=t.IoAttributes)  # of an entry point's parameter
    init: Expr | None = None  # of a private var at module scope


@entity
class Override:
    """`@id(n) override name: type = init`. Without `init`, pipeline creation needs a value for it."""

    name: str
    type: t.Scalar
    span: Span
    id: int | None = None
    init: Expr | None = None


@entity
class Function:
    """A function. `body` is None until the checker has checked it."""

    name: str
    params: list[Variable]
    result: t.Type | None
    span: Span
    body: Block | None = None
    stage: str | None = None  # compute, vertex, fragment, or None
    workgroup_size: tuple[Expr, Expr, Expr] | None = None
    result_attrs: t.IoAttributes = field(default_factory=t.IoAttributes)
    must_use: bool = False
    subgroup_size: Expr | None = None
    diagnostics: dict[str, str] = field(default_factory=dict[str, str])  # rule -> severity, from @diagnostic
    calls: list[Function] = field(default_factory=list["Function"])  # called directly
    globals: list[Variable] = field(default_factory=list[Variable])  # statically accessed, also through calls
    overrides: list[Override] = field(default_factory=list[Override])  # statically accessed, also through calls


# ---- expressions ---------------------------------------------------------------------------------------


@entity(slots=True)
class Expr:
    """An expression. Its `type` is a `Reference` where it is a memory view."""

    type: t.Type
    span: Span


@entity(slots=True)
class Const(Expr):
    """A folded const-expression; `value` is None where it is not evaluated (right of a decided `&&` or `||`)."""

    value: Value


@entity
class OverrideRef(Expr):
    override: Override


@entity(slots=True)
class VarRef(Expr):
    """The name of a `var`: a Reference, or the handle itself for a texture or sampler."""

    var: Variable


@entity(slots=True)
class ValueRef(Expr):
    """The name of a `let` or a parameter: its value."""

    var: Variable


@entity(slots=True)
class Load(Expr):
    """The value in memory at `ref`: the load rule, made explicit."""

    ref: Expr


@entity
class AddressOf(Expr):
    ref: Expr


@entity
class Deref(Expr):
    pointer: Expr


@entity(slots=True)
class Index(Expr):
    """An element of an array or vector, or a column of a matrix; a reference where `base` is one. `index` is i32 or
    u32."""

    base: Expr
    index: Expr


@entity(slots=True)
class Member(Expr):
    """Member number `index` of a struct; a reference where `base` is one."""

    base: Expr
    index: int


@entity(slots=True)
class Swizzle(Expr):
    """`v.x` or `v.xyz`. Of a reference, one component is a reference; several are one only as assignment target."""

    base: Expr
    components: tuple[int, ...]


@entity
class ShortCircuit(Expr):
    """`&&` and `||` on bool."""

    op: str
    left: Expr
    right: Expr


@entity(slots=True)
class BuiltinCall(Expr):
    """A call of a builtin function or operator, with `args` converted to the parameters of the chosen overload.

    `type` is the T of a `bitcast<T>`, and `NOTHING` where the builtin returns nothing (a barrier).
    """

    builtin: Builtin
    args: list[Expr]


@entity(slots=True)
class Convert(Expr):
    """A value conversion, componentwise: scalar to scalar, vector to vector, matrix to matrix of equal shape.

    Written in the source (`f32(i)`): implicit conversions apply to constants only, and are folded.
    """

    arg: Expr


@entity(slots=True)
class Construct(Expr):
    """A composite from its parts; the zero value without args. A vector has one scalar (splat) or scalars and vectors
    in order, a matrix its columns or all scalars, an array or struct one arg for each element or member."""

    args: list[Expr]


@entity(slots=True)
class Call(Expr):
    """A call of a user function. `type` is `NOTHING` where the function returns nothing."""

    function: Function
    args: list[Expr]


# ---- statements ----------------------------------------------------------------------------------------


@entity(slots=True)
class Stmt:
    span: Span


@entity(slots=True)
class Block(Stmt):
    body: list[Stmt]
    diagnostics: dict[str, str] = field(default_factory=dict[str, str])  # rule -> severity, from @diagnostic


@entity(slots=True)
class VarDecl(Stmt):
    """`var` in a function; the zero value where `init` is None."""

    var: Variable
    init: Expr | None


@entity(slots=True)
class LetDecl(Stmt):
    var: Variable
    init: Expr


@entity(slots=True)
class Assign(Stmt):
    """`target` is a reference, or a Swizzle of several components of one."""

    target: Expr
    value: Expr


@entity(slots=True)
class CompoundAssign(Stmt):
    """`target op= value`, `target++` or `target--`: evaluates the target once, then stores `builtin(load, value)`."""

    target: Expr
    builtin: Builtin
    value: Expr
    result: t.Type


@entity(slots=True)
class Eval(Stmt):
    """A call statement or a phony assignment: evaluates an expression for its effects."""

    expr: Expr


@entity(slots=True)
class If(Stmt):
    condition: Expr
    then: Block
    orelse: Block | None
    diagnostics: dict[str, str] = field(default_factory=dict[str, str])


@entity
class Case:
    """A clause of a switch; `values` are ints of the selector's type."""

    values: list[int]
    default: bool
    body: Block


@entity
class Switch(Stmt):
    selector: Expr
    cases: list[Case]
    diagnostics: dict[str, str] = field(default_factory=dict[str, str])


@entity
class Loop(Stmt):
    """A loop. Each iteration leaves where `condition` is false, runs `body`, then `continuing` (the target of
    `continue`), then leaves where `break_if` is true. A `for` with an initializer is a Block of that and a Loop."""

    condition: Expr | None
    body: Block
    continuing: Block | None
    break_if: Expr | None
    diagnostics: dict[str, str] = field(default_factory=dict[str, str])


@entity
class Break(Stmt):
    pass


@entity
class Continue(Stmt):
    pass


@entity
class Discard(Stmt):
    pass


@entity
class Return(Stmt):
    value: Expr | None


# ---- walking the tree ----------------------------------------------------------------------------------


def children(expr: Expr) -> tuple[Expr, ...]:
    """List the operands of an expression, in the order of evaluation."""
    listed = _CHILDREN.get(type(expr))
    return () if listed is None else listed(expr)


_CHILDREN: dict[type[Expr], Callable[[Any], tuple[Expr, ...]]] = {
    Load: lambda expr: (expr.ref,),
    AddressOf: lambda expr: (expr.ref,),
    Deref: lambda expr: (expr.pointer,),
    Index: lambda expr: (expr.base, expr.index),
    Member: lambda expr: (expr.base,),
    Swizzle: lambda expr: (expr.base,),
    ShortCircuit: lambda expr: (expr.left, expr.right),
    Convert: lambda expr: (expr.arg,),
    BuiltinCall: lambda expr: tuple(expr.args),
    Construct: lambda expr: tuple(expr.args),
    Call: lambda expr: tuple(expr.args),
}


def operands(stmt: Stmt) -> tuple[Expr, ...]:
    """List the expressions of a statement itself, without those of its nested blocks."""
    match stmt:
        case VarDecl() | Return():
            only = stmt.init if isinstance(stmt, VarDecl) else stmt.value
            return () if only is None else (only,)
        case LetDecl():
            return (stmt.init,)
        case Assign() | CompoundAssign():
            return (stmt.target, stmt.value)
        case Eval():
            return (stmt.expr,)
        case If():
            return (stmt.condition,)
        case Switch():
            return (stmt.selector,)
        case Loop():
            return tuple(e for e in (stmt.condition, stmt.break_if) if e is not None)
        case _:
            return ()


def blocks(stmt: Stmt) -> tuple[Block, ...]:
    """List the blocks directly within a statement; a block is within itself."""
    listed = _BLOCKS.get(type(stmt))
    return () if listed is None else listed(stmt)


_BLOCKS: dict[type[Stmt], Callable[[Any], tuple[Block, ...]]] = {
    Block: lambda stmt: (stmt,),
    If: lambda stmt: (stmt.then,) if stmt.orelse is None else (stmt.then, stmt.orelse),
    Switch: lambda stmt: tuple(case.body for case in stmt.cases),
    Loop: lambda stmt: (stmt.body,) if stmt.continuing is None else (stmt.body, stmt.continuing),
}


def statements(block: Block) -> Iterator[Stmt]:
    """Iterate over the statements of a block, at any depth, outer ones first."""
    for stmt in block.body:
        yield stmt
        for inner in blocks(stmt):
            yield from statements(inner)


def reached(function: Function) -> list[Function]:
    """List a function and all that it calls, directly or indirectly, in breadth-first order."""
    found = {function: None}
    for one in (todo := [function]):
        todo += [callee for callee in one.calls if callee not in found]
        found.update(dict.fromkeys(one.calls))
    return list(found)


def concerned(functions: Sequence[Function], marked: set[Function]) -> list[Function]:
    """List the functions that reach a marked one, and all that those reach. In and out, callees come first."""
    reaching = set(marked)
    for function in functions:
        if not reaching.isdisjoint(function.calls):
            reaching.add(function)
    for function in reversed(functions):
        if function in reaching:
            reaching.update(function.calls)
    return [function for function in functions if function in reaching]


def expressions(expr: Expr) -> Iterator[Expr]:
    """Iterate over an expression and its operands at any depth, operands first."""
    for child in children(expr):
        yield from expressions(child)
    yield expr


def every_expression(function: Function) -> Iterator[Expr]:
    """Iterate over the expressions in the body of a function, operands first."""
    assert function.body is not None
    for stmt in statements(function.body):
        for operand in operands(stmt):
            yield from expressions(operand)


# ---- the module ----------------------------------------------------------------------------------------


@entity
class Module:
    """A checked module; `pipeline()` creates a pipeline of it."""

    source: Source
    functions: dict[str, Function]
    globals: list[Variable]
    overrides: list[Override]
    structs: dict[str, t.Struct]
    _create_pipeline: Callable[
        [Module, str | None, Mapping[str | int, OverrideValue], Mapping[str, int] | None], Pipeline
    ]
    enables: set[str] = field(default_factory=set[str])
    requires: set[str] = field(default_factory=set[str])
    diagnostics: dict[str, str] = field(default_factory=dict[str, str])  # module-wide rule -> severity
    warnings: list[Diagnostic] = field(default_factory=list["Diagnostic"])
    _pipelines: dict[str, Pipeline] = field(default_factory=dict[str, "Pipeline"], repr=False)

    @property
    def entry_points(self) -> list[Function]:
        """The functions with a stage attribute, in the order of the source."""
        return [f for f in self.functions.values() if f.stage]

    @property
    def compute_entry_points(self) -> list[Function]:
        """The entry points of the compute stage, in the order of the source."""
        return [f for f in self.entry_points if f.stage == "compute"]

    def pipeline(
        self,
        entry: str | None = None,
        overrides: Mapping[str | int, OverrideValue] | None = None,
        limits: Mapping[str, int] | None = None,
    ) -> Pipeline:
        """Create a pipeline: see `check.pipeline.create_pipeline`. Raises `WgslError`.

        The pipelines used last are cached, since a pipeline never changes.
        """
        asked = repr((entry, sorted((overrides or {}).items(), key=repr), limits))
        return remember(
            self._pipelines,
            asked,
            lambda: self._create_pipeline(self, entry, overrides or {}, limits),
            _MOST_PIPELINES,
        )


@entity
class Pipeline:
    """A compute entry point with a value for every override.

    `values` maps the overrides used to their values. `globals` are the variables statically accessed, and `store_types`
    their types with override-sized arrays resolved. `resolve(type)` resolves such arrays in any type of the module;
    `fold(expr)` replaces overrides in an expression by their values and folds it as far as possible. `kept`: what later
    stages derive from it and use again.
    """

    module: Module
    entry: Function
    values: dict[Override, Value]
    workgroup_size: tuple[int, int, int]
    globals: list[Variable]
    store_types: dict[Variable, t.Type]  # of each of `globals`
    workgroup_bytes: int
    resolve: Callable[[t.Type], t.Type]
    fold: Callable[[Expr], Expr]
    subgroup_size: int | None = None
    warnings: list[Diagnostic] = field(default_factory=list["Diagnostic"])
    kept: dict[tuple[Any, ...], Any] = field(default_factory=lambda: dict[tuple[Any, ...], Any](), repr=False)
