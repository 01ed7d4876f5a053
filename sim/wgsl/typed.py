"""The typed module: what the checker decided, and all that the rest of the house needs to know.

Names are resolved, overloads chosen, implicit conversions and the load rule written out, constants folded,
`for` and `while` turned into `Loop`. The lowerer and the uniformity analysis read this tree and never the syntax.

A constant's `value` is plain Python: bool, int (i32, u32, abstract-int), float (exactly representable in the type),
and tuples of those for vectors, matrices (of columns), arrays and structs (of members).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ..fast_dataclass import entity, recall
from . import types as t
from .source import Source, Span

if TYPE_CHECKING:
    from .builtins import Builtin
    from .diagnostics import Diagnostic

Value = Any
_MOST_PIPELINES = 64  # that a module knows, with other overrides

# The type of a call without a value. No expression can ask for it.
NOTHING = t.Scalar("nothing")

# ---- what names stand for ----------------------------------------------------------------------------


@entity
class Variable:
    """A `var` (in any address space), `let`, or formal parameter.

    `space` is None for let and parameters (they are values). `builtin` is set on an entry point's parameters.
    """

    name: str
    type: t.Type  # store type of a var, type of a value
    span: Span
    space: str | None = None
    access: str | None = None
    binding: tuple[int, int] | None = None
    builtin: str | None = None
    attrs: dict[str, Any] = field(default_factory=dict)  # an entry point's parameter: io attributes, as in `t.Member`
    init: Expr | None = None  # module-scope private vars


@entity
class Override:
    """`@id(n) override name: type = init`. `init` None: must be given at pipeline creation."""

    name: str
    type: t.Scalar
    span: Span
    id: int | None = None
    init: Expr | None = None


@entity
class Function:
    name: str
    params: list[Variable]
    result: t.Type | None
    span: Span
    body: Block | None = None
    stage: str | None = None  # compute, vertex, fragment, or None
    workgroup_size: tuple[Expr, Expr, Expr] | None = None
    result_attrs: dict[str, Any] = field(default_factory=dict)
    must_use: bool = False
    subgroup_size: Expr | None = None
    diagnostics: dict[str, str] = field(default_factory=dict)  # rule -> severity, from @diagnostic
    calls: list[Function] = field(default_factory=list)  # directly
    globals: list[Variable] = field(default_factory=list)  # statically accessed, through calls too
    overrides: list[Override] = field(default_factory=list)  # likewise


# ---- expressions -------------------------------------------------------------------------------------


@entity
class Expr:
    """`type` is a `Reference` where the expression is a memory view."""

    type: t.Type
    span: Span


@entity
class Const(Expr):
    """A folded const-expression."""

    value: Value


@entity
class OverrideRef(Expr):
    override: Override


@entity
class VarRef(Expr):
    """The name of a `var`: a Reference (for handles, textures and samplers: the handle itself)."""

    var: Variable


@entity
class ValueRef(Expr):
    """The name of a `let` or a parameter: its value."""

    var: Variable


@entity
class Load(Expr):
    """The load rule: the value in memory at `ref`."""

    ref: Expr


@entity
class AddressOf(Expr):
    ref: Expr


@entity
class Deref(Expr):
    pointer: Expr


@entity
class Index(Expr):
    """Element of an array, vector or matrix (a column). A reference where `base` is one. `index` is i32 or u32."""

    base: Expr
    index: Expr


@entity
class Member(Expr):
    """Member `index` of a struct. A reference where `base` is one."""

    base: Expr
    index: int


@entity
class Swizzle(Expr):
    """`v.x` or `v.xyz`. On a reference, one component gives a reference; several give one only as assignment target."""

    base: Expr
    components: tuple[int, ...]


@entity
class ShortCircuit(Expr):
    """`&&` and `||` on bool."""

    op: str
    left: Expr
    right: Expr


@entity
class BuiltinCall(Expr):
    """A builtin function or an operator (`builtin.name` is then the operator's row), args already converted.

    For `bitcast<T>` and the like, T is `type`; it is `NOTHING` where the builtin returns nothing (a barrier).
    """

    builtin: Builtin
    args: list[Expr]


@entity
class Convert(Expr):
    """A value conversion, componentwise: scalar to scalar, vector to vector, matrix to matrix of equal shape.

    Implicit (abstract to concrete, of what is not constant: does not occur) and explicit (`f32(i)`) alike.
    """

    arg: Expr


@entity
class Construct(Expr):
    """A composite from its parts. No args: the zero value. Vector: one scalar (splat), or scalars and vectors in order;
    matrix: columns or all scalars; array and struct: one arg per element or member."""

    args: list[Expr]


@entity
class Call(Expr):
    """A user function. `type` is `NOTHING` where the function returns nothing."""

    function: Function
    args: list[Expr]


# ---- statements --------------------------------------------------------------------------------------


@entity
class Stmt:
    span: Span


@entity
class Block(Stmt):
    body: list[Stmt]
    diagnostics: dict[str, str] = field(default_factory=dict)  # rule -> severity, from @diagnostic


@entity
class VarDecl(Stmt):
    """`init` None: the zero value."""

    var: Variable
    init: Expr | None


@entity
class LetDecl(Stmt):
    var: Variable
    init: Expr


@entity
class Assign(Stmt):
    """`target` is a reference (or a several-component Swizzle of one)."""

    target: Expr
    value: Expr


@entity
class CompoundAssign(Stmt):
    """`target op= value`, also `++` and `--`: the target is evaluated once, then `builtin(load, value)` is stored."""

    target: Expr
    builtin: Builtin
    value: Expr
    result: t.Type


@entity
class Eval(Stmt):
    """A call statement or a phony assignment: evaluated for its effects."""

    expr: Expr


@entity
class If(Stmt):
    condition: Expr
    then: Block
    orelse: Block | None
    diagnostics: dict[str, str] = field(default_factory=dict)


@entity
class Case:
    """`values` as ints of the selector's type."""

    values: list[int]
    default: bool
    body: Block


@entity
class Switch(Stmt):
    selector: Expr
    cases: list[Case]
    diagnostics: dict[str, str] = field(default_factory=dict)


@entity
class Loop(Stmt):
    """Each turn: leave where `condition` is false, run `body`, then `continuing` (a `continue` jumps there), then leave
    where `break_if` is true. `for` is a Block of its init and a Loop."""

    condition: Expr | None
    body: Block
    continuing: Block | None
    break_if: Expr | None
    diagnostics: dict[str, str] = field(default_factory=dict)


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


# ---- walking the tree -------------------------------------------------------------------------------


def children(expr: Expr) -> tuple[Expr, ...]:
    """The operands of an expression, in the order of evaluation."""
    match expr:
        case Load() | AddressOf():
            return (expr.ref,)
        case Deref():
            return (expr.pointer,)
        case Index():
            return (expr.base, expr.index)
        case Member() | Swizzle():
            return (expr.base,)
        case ShortCircuit():
            return (expr.left, expr.right)
        case Convert():
            return (expr.arg,)
        case BuiltinCall() | Construct() | Call():
            return tuple(expr.args)
        case _:
            return ()


def operands(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions of a statement itself, not those of the blocks within it."""
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
    """The blocks directly within a statement."""
    match stmt:
        case If():
            return (stmt.then,) if stmt.orelse is None else (stmt.then, stmt.orelse)
        case Switch():
            return tuple(case.body for case in stmt.cases)
        case Loop():
            return (stmt.body,) if stmt.continuing is None else (stmt.body, stmt.continuing)
        case _:
            return ()


def statements(block: Block) -> Iterator[Stmt]:
    """Every statement of a block, at any depth, outer ones first."""
    for stmt in block.body:
        yield stmt
        for inner in (stmt,) if isinstance(stmt, Block) else blocks(stmt):
            yield from statements(inner)


def reached(function: Function) -> list[Function]:
    """A function and all that it calls, directly or not, in the order in which one comes upon them."""
    found = {function: None}
    for one in (todo := [function]):
        todo += [callee for callee in one.calls if callee not in found]
        found.update(dict.fromkeys(one.calls))
    return list(found)


def expressions(expr: Expr) -> Iterator[Expr]:
    """An expression and everything in it, operands first."""
    for child in children(expr):
        yield from expressions(child)
    yield expr


def every_expression(function: Function) -> Iterator[Expr]:
    """Every expression in the body of a function."""
    assert function.body is not None
    for stmt in statements(function.body):
        for operand in operands(stmt):
            yield from expressions(operand)


# ---- the module --------------------------------------------------------------------------------------


@entity
class Module:
    """A checked module. `pipeline()` does what pipeline creation does."""

    source: Source
    functions: dict[str, Function]
    globals: list[Variable]
    overrides: list[Override]
    structs: dict[str, t.Struct]
    _create_pipeline: Callable[[Module, str | None, Mapping[str | int, Any], Mapping[str, int] | None], Pipeline]
    enables: set[str] = field(default_factory=set)
    requires: set[str] = field(default_factory=set)
    diagnostics: dict[str, str] = field(default_factory=dict)  # module-wide rule -> severity
    warnings: list[Diagnostic] = field(default_factory=list)
    _pipelines: dict[str, Pipeline] = field(default_factory=dict, repr=False)

    @property
    def entry_points(self) -> list[Function]:
        return [f for f in self.functions.values() if f.stage]

    def pipeline(
        self,
        entry: str | None = None,
        overrides: Mapping[str | int, Any] | None = None,
        limits: Mapping[str, int] | None = None,
    ) -> Pipeline:
        """Choose an entry point and fix every override; see `check.pipeline.create_pipeline`. Raises `WgslError`.

        What was made lately is not made again: a pipeline is not changed once it is there.
        """
        asked = repr((entry, sorted((overrides or {}).items(), key=repr), limits))
        return recall(
            self._pipelines,
            asked,
            lambda: self._create_pipeline(self, entry, overrides or {}, limits),
            _MOST_PIPELINES,
        )


@entity
class Pipeline:
    """One compute entry point with all its constants known.

    `values` maps each override that is used to its value; `globals` are the statically used variables, and
    `store_types` what they hold with override-sized arrays counted. `resolve(type)` counts the array in any type of the
    module, `fold(expr)` is an expression with every override replaced by its value, folded as far as it goes.
    """

    module: Module
    entry: Function
    values: dict[Override, Value]
    workgroup_size: tuple[int, int, int]
    globals: list[Variable]
    store_types: dict[Variable, t.Type]  # concrete store type of each of `globals`
    workgroup_bytes: int
    resolve: Callable[[t.Type], t.Type]
    fold: Callable[[Expr], Expr]
    subgroup_size: int | None = None
    warnings: list[Diagnostic] = field(default_factory=list)
