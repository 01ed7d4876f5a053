"""The syntax tree of a WGSL module: one class for each production that carries meaning.

Every node has the `Span` of its text. The parser makes nodes, the printer turns them back into text, and the checker
reads them. Parentheses are nodes (`Paren`), so that printing preserves the author's grouping. Names and types are
`Ident`s: template-elaborated identifiers (`vec4<f32>`, `array<u32, N>`, `foo`). Spec: WGSL, "Appendix: the grammar".
"""

from __future__ import annotations

from ...fast_dataclass import entity
from ..source import Span


@entity(slots=True)
class Node:
    span: Span

    @property
    def op_span(self) -> Span:
        """What an error of its operator points at."""
        return self.span


# ---- expressions ---------------------------------------------------------------------------------------


@entity(slots=True)
class Expr(Node):
    pass


@entity(slots=True)
class Literal(Expr):
    """A literal. `kind` is one of bool, abstract-int, i32, u32, abstract-float, f32, f16."""

    kind: str
    text: str
    value: bool | int | float


@entity(slots=True)
class Ident(Expr):
    """`name` or `name<args>`. `args` is None without a template list; `name_span` covers the name alone."""

    name: str
    args: list[Expr] | None
    name_span: Span


@entity(slots=True)
class Call(Expr):
    """`callee(args)`: a call of a function, a builtin or a value constructor, which the checker tells apart."""

    callee: Ident
    args: list[Expr]


@entity(slots=True)
class Index(Expr):
    base: Expr
    index: Expr


@entity(slots=True)
class Member(Expr):
    """`base.name`: a struct member or a swizzle."""

    base: Expr
    name: str
    name_span: Span


@entity(slots=True)
class Unary(Expr):
    """A prefix operator: - ! ~ * &"""

    op: str
    operand: Expr


@entity(slots=True)
class Binary(Expr):
    """An infix operator: + - * / % & | ^ << >> && || == != < <= > >="""

    op: str
    left: Expr
    right: Expr
    op_start: int  # the offset of the operator

    @property
    def op_span(self) -> Span:
        return Span(self.span.source, self.op_start, self.op_start + len(self.op))


@entity(slots=True)
class Paren(Expr):
    inner: Expr


# ---- attributes and directives -------------------------------------------------------------------------


@entity
class Attribute(Node):
    """`@name` or `@name(args)`. The args of `@diagnostic(off, a.b)` are `Ident`s, `a.b` with one dotted name."""

    name: str
    args: list[Expr]


@entity
class Directive(Node):
    """A directive. `kind` is enable, requires or diagnostic, whose names are the severity and the rule."""

    kind: str
    names: list[tuple[str, Span]]


# ---- statements ----------------------------------------------------------------------------------------


@entity(slots=True)
class Stmt(Node):
    pass


@entity
class Block(Stmt):
    attributes: list[Attribute]
    body: list[Stmt]


@entity
class LocalDecl(Stmt):
    """`var<template> name: type = init`, `let` or `const` (`keyword`) inside a function."""

    keyword: str
    template: list[Expr] | None
    name: str
    name_span: Span
    type: Ident | None
    init: Expr | None


@entity(slots=True)
class Assign(Stmt):
    """`target op value`, with one of = += -= *= /= %= &= |= ^= <<= >>=. The target of `_ = value` is None."""

    target: Expr | None
    op: str
    value: Expr
    op_start: int  # the offset of the operator

    @property
    def op_span(self) -> Span:
        return Span(self.span.source, self.op_start, self.op_start + len(self.op))


@entity
class Increment(Stmt):
    """`target++` or `target--`."""

    target: Expr
    op: str


@entity
class CallStmt(Stmt):
    call: Call


@entity
class If(Stmt):
    """`orelse` is None, a Block, or another If (else if)."""

    attributes: list[Attribute]
    condition: Expr
    then: Block
    orelse: Block | If | None


@entity
class Case(Node):
    """A clause of a switch. A selector is an expression, or None for `default`."""

    selectors: list[Expr | None]
    body: Block


@entity
class Switch(Stmt):
    attributes: list[Attribute]
    selector: Expr
    body_attributes: list[Attribute]
    cases: list[Case]


@entity
class Loop(Stmt):
    """`loop { body continuing { … break if break_if; } }`; `continuing` and `break_if` are optional."""

    attributes: list[Attribute]
    body: Block
    continuing: Block | None
    break_if: Expr | None


@entity
class For(Stmt):
    attributes: list[Attribute]
    init: Stmt | None
    condition: Expr | None
    update: Stmt | None
    body: Block


@entity
class While(Stmt):
    attributes: list[Attribute]
    condition: Expr
    body: Block


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


@entity
class ConstAssert(Stmt):
    """A statement, and a declaration at module scope."""

    condition: Expr


# ---- declarations --------------------------------------------------------------------------------------


@entity
class Param(Node):
    attributes: list[Attribute]
    name: str
    name_span: Span
    type: Ident


@entity
class Function(Node):
    attributes: list[Attribute]
    name: str
    name_span: Span
    params: list[Param]
    result_attributes: list[Attribute]
    result: Ident | None
    body: Block


@entity
class GlobalDecl(Node):
    """`var<template>`, `const` or `override` (`keyword`) at module scope."""

    keyword: str
    attributes: list[Attribute]
    template: list[Expr] | None
    name: str
    name_span: Span
    type: Ident | None
    init: Expr | None


@entity
class Alias(Node):
    name: str
    name_span: Span
    type: Ident


@entity
class StructMember(Node):
    attributes: list[Attribute]
    name: str
    name_span: Span
    type: Ident


@entity
class Struct(Node):
    name: str
    name_span: Span
    members: list[StructMember]


Decl = Function | GlobalDecl | Alias | Struct | ConstAssert


@entity
class Module(Node):
    directives: list[Directive]
    decls: list[Decl]
