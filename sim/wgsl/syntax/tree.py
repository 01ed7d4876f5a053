"""The syntax tree of a WGSL module: what was written, nothing decided yet.

One class per production that carries meaning; every node keeps the `Span` of the text it came from.
The parser makes these, the printer turns them back into text, and the checker reads them. Parentheses are kept
(`Paren`), so that printing gives back the author's grouping. Spec: WGSL, "Appendix: the grammar".

Names: `Ident` is a template-elaborated identifier (`vec4<f32>`, `array<u32, N>`, `foo`); types are `Ident`s too.
"""

from __future__ import annotations

from dataclasses import field

from ...fast_dataclass import entity
from ..source import Span


@entity
class Node:
    span: Span


# ---- expressions ---------------------------------------------------------------------------------


@entity
class Expr(Node):
    pass


@entity
class Literal(Expr):
    """`text` as written; `kind` is one of bool, abstract-int, i32, u32, abstract-float, f32, f16."""

    kind: str
    text: str
    value: bool | int | float


@entity
class Ident(Expr):
    """`name` or `name<args>`; `args` is None without a template list. `name_span` covers the bare name."""

    name: str
    args: list[Expr] | None
    name_span: Span


@entity
class Call(Expr):
    """`callee(args)`: a function, a builtin or a value constructor; told apart by the checker."""

    callee: Ident
    args: list[Expr]


@entity
class Index(Expr):
    base: Expr
    index: Expr


@entity
class Member(Expr):
    """`base.name`: a struct member or a swizzle."""

    base: Expr
    name: str
    name_span: Span


@entity
class Unary(Expr):
    """op is one of - ! ~ * &"""

    op: str
    operand: Expr


@entity
class Binary(Expr):
    """op is one of + - * / % & | ^ << >> && || == != < <= > >="""

    op: str
    left: Expr
    right: Expr
    op_span: Span


@entity
class Paren(Expr):
    inner: Expr


# ---- attributes and directives ---------------------------------------------------------------------


@entity
class Attribute(Node):
    """`@name` or `@name(args)`; `@diagnostic(off, a.b)` keeps its names as `Ident`s (`a.b` as one dotted name)."""

    name: str
    args: list[Expr]


@entity
class Directive(Node):
    """kind is enable, requires or diagnostic; names as written (diagnostic: severity, then rule)."""

    kind: str
    names: list[tuple[str, Span]]


# ---- statements ------------------------------------------------------------------------------------


@entity
class Stmt(Node):
    pass


@entity
class Block(Stmt):
    attributes: list[Attribute]
    body: list[Stmt]


@entity
class LocalDecl(Stmt):
    """`var<template> name: type = init`, `let`, `const` inside a function. `keyword` says which."""

    keyword: str
    template: list[Expr] | None
    name: str
    name_span: Span
    type: Ident | None
    init: Expr | None


@entity
class Assign(Stmt):
    """`target op value`, op one of = += -= *= /= %= &= |= ^= <<= >>=; `_ = value` has target None."""

    target: Expr | None
    op: str
    value: Expr
    op_span: Span


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
    """`selectors` holds expressions, and None for the word `default`; `default: {}` alone is [None]."""

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
    """`loop { body continuing { … break if break_if; } }`; `continuing` None where there is none."""

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


# ---- declarations ----------------------------------------------------------------------------------


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
    """Module-scope `var<template>`, `const` or `override`; `keyword` says which."""

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
    directives: list[Directive] = field(default_factory=list)
    decls: list[Decl] = field(default_factory=list)
