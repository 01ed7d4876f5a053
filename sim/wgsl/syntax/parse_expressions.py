"""The part of the parser for expressions: operators, operands and template lists.

Each docstring has the spec's grammar rule. WGSL's operators have no linear precedence: bitwise and short-circuit
operators combine only with themselves, shifts take unary operands, comparisons do not chain. So an operator left over
at the end of an expression needs parentheses. Spec: WGSL, "Expression Grammar Summary".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from ..diagnostics import Note, WgslError, fail, first_words
from ..source import Source, Span
from . import tree
from .lexer import IDENTIFIER, NUMBER, TEMPLATE_END, TEMPLATE_START, Token
from .literals import read_number
from .other_languages import EXPRESSIONS, FOREIGN_TYPES, METHODS, TYPES, is_type
from .token_cursor import MAX_NESTING, Cursor

_BITWISE = frozenset("&|^")
_SHORT_CIRCUIT = frozenset(["&&", "||"])
_COMPARISONS = frozenset(["==", "!=", "<", "<=", ">", ">="])
_SHIFTS = frozenset(["<<", ">>"])
_ADDITIVE = frozenset(["+", "-", "--"])  # `a--b` is `a - -b`
_MULTIPLICATIVE = frozenset("*/%")
_INFIX = _BITWISE | _SHORT_CIRCUIT | _COMPARISONS | _SHIFTS | _ADDITIVE | _MULTIPLICATIVE
_LOOSE = _SHORT_CIRCUIT | _COMPARISONS | _BITWISE
_PREFIX = frozenset(["-", "!", "~", "*", "&", "--", "&&"])
_POSTFIX = frozenset("[.")


class ExpressionParser(Cursor):
    """Parses expressions at the cursor."""

    in_expression = False

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.numbers: dict[str, tuple[str, int | float]] = {}  # kind and value of the literals so far

    def expression(self) -> tree.Expr:
        """expression :
          relational_expression
        | short_circuit_or_expression '||' relational_expression
        | short_circuit_and_expression '&&' relational_expression
        | binary_and_expression '&' unary_expression
        | binary_or_expression '|' unary_expression
        | binary_xor_expression '^' unary_expression
        """
        begin, outermost = self.index, not self.in_expression
        self.in_expression = True
        self.enter()
        node = self.operand()
        if self.token.kind in _BITWISE:
            node = self.chain(node, self.operand)
        elif self.token.kind in _INFIX:
            node = self.relational(node)
            if self.token.kind in _SHORT_CIRCUIT:
                node = self.chain(node, self.relational)
        if self.token.kind in _INFIX:
            raise self.needs_parentheses(cast(tree.Binary, node))
        self.leave()
        if outermost:
            self.in_expression = False
            # A tree is no deeper than it has tokens: only a long one needs measuring.
            if self.index - begin > MAX_NESTING and _height(node) + self.depth > MAX_NESTING:
                raise self.too_deep(node.span)
        return node

    def chain(self, left: tree.Expr, operand: Callable[[], tree.Expr]) -> tree.Expr:
        """Parse a chain of one operator, grouped from the left."""
        operator = self.token.kind
        while self.token.kind == operator:
            left = self.binary(left, operand)
        return left

    def relational(self, left: tree.Expr | None = None) -> tree.Expr:
        """relational_expression : shift_expression ( comparison_operator shift_expression ) ?"""
        left = self.shift(left)
        return self.binary(left, self.shift) if self.token.kind in _COMPARISONS else left

    def shift(self, left: tree.Expr | None = None) -> tree.Expr:
        """shift_expression : additive_expression | unary_expression shift_operator unary_expression
        additive_expression : multiplicative_expression ( ( '+' | '-' ) multiplicative_expression ) *
        """
        left = left or self.operand()
        if self.token.kind in _SHIFTS:
            return self.binary(left, self.operand)
        while self.token.kind in _MULTIPLICATIVE:
            left = self.binary(left, self.operand)
        while self.token.kind in _ADDITIVE:
            if self.token.kind == "--":
                self.split()
            left = self.binary(left, self.multiplicative)
        return left

    def multiplicative(self) -> tree.Expr:
        """multiplicative_expression : unary_expression ( ( '*' | '/' | '%' ) unary_expression ) *"""
        left = self.operand()
        while self.token.kind in _MULTIPLICATIVE:
            left = self.binary(left, self.operand)
        return left

    def binary(self, left: tree.Expr, operand: Callable[[], tree.Expr]) -> tree.Binary:
        operator = self.advance()
        right = operand()
        span = Span(self.source, left.span.start, right.span.end)
        return tree.Binary(span, operator.kind, left, right, operator.start)

    def operand(self) -> tree.Expr:
        """unary_expression : ( '-' | '!' | '~' | '*' | '&' ) * singular_expression"""
        if self.token.kind in _PREFIX:
            return self.prefixed()
        node = self.primary()
        return self.part_of(node) if self.token.kind in _POSTFIX else node

    def prefixed(self) -> tree.Expr:
        """( '-' | '!' | '~' | '*' | '&' ) + singular_expression"""
        prefixes: list[Token] = []
        while self.token.kind in _PREFIX:
            if len(self.token.kind) == 2:
                self.split()
            prefixes.append(self.advance())
        node = self.operand()
        for prefix in reversed(prefixes):
            node = tree.Unary(self.span_from(prefix.start), prefix.kind, node)
        return node

    def part_of(self, node: tree.Expr) -> tree.Expr:
        """singular_expression : primary_expression ( '[' expression ']' | '.' member_ident ) *, after the primary"""
        start = node.span.start
        while self.token.kind in _POSTFIX:
            if self.advance().kind == "[":
                index = self.expression()
                self.expect("]", "after the index")
                node = tree.Index(self.span_from(start), node, index)
            else:
                name = self.name("a member or swizzle")
                if self.token.kind == "(":
                    raise self._method(node, name)
                node = tree.Member(self.span_from(start), node, name.text, self.span_of(name))
        return node

    def primary(self) -> tree.Expr:
        """primary_expression : template_elaborated_ident | call_phrase | literal | '(' expression ')'"""
        token = self.token
        if token.kind == IDENTIFIER:
            name = self.elaborated_name()
            if self.token.kind != "(":
                return name
            self.advance()
            arguments = self.comma_list(self.expression, ")", "the argument")
            return tree.Call(self.span_from(token.start), name, arguments)
        if token.kind == NUMBER:
            self.advance()
            span = Span(self.source, token.start, token.end)
            read = self.numbers.get(token.text)
            if read is None:
                read = self.numbers[token.text] = read_number(token.text, span)
            return tree.Literal(span, read[0], token.text, read[1])
        if token.kind in ("true", "false"):
            self.advance()
            return tree.Literal(self.span_of(token), "bool", token.text, token.kind == "true")
        if token.kind == "(":
            self.advance()
            inner = self.expression()
            if not self.accept(")"):
                opened = Note("opened here", self.span_of(token))
                raise self.expected("')'", "after the expression in parentheses", opened, after_previous=True)
            self._refuse_cast(token, inner)
            return tree.Paren(self.span_from(token.start), inner)
        raise self.expected("an expression", hint=EXPRESSIONS.get(token.kind))

    def _method(self, base: tree.Expr, name: Token) -> WgslError:
        """Return the error of `x.abs()`."""
        more = "" if self.tokens[self.index + 1].kind == ")" else ", …"
        value = first_words(base.span.text)
        call = METHODS.get(name.text, name.text + "({}{})").format(value, more)
        return fail("method-call", "WGSL has no methods", self.span_of(name), hint=f"write {call}")

    def _refuse_cast(self, opening: Token, inner: tree.Expr) -> None:
        """Raise `WgslError` for `(f32)x`, now that the cursor is behind the parentheses."""
        value = self.token
        if isinstance(inner, tree.Ident) and value.kind in (IDENTIFIER, NUMBER, "(") and is_type(inner.name):
            shown = "…" if value.kind == "(" else value.text
            hint = f"write {TYPES.get(inner.name, first_words(inner.span.text))}({shown})"
            message = "a conversion is written like a call of its type"
            raise fail("cast", message, self.span_from(opening.start), hint=hint)

    def elaborated_name(self) -> tree.Ident:
        """template_elaborated_ident : ident template_list ?, at the ident"""
        name = self.advance()
        span = Span(self.source, name.start, name.end)
        if self.token.kind != TEMPLATE_START:
            return tree.Ident(span, name.text, None, span)
        arguments = self.template_list()
        return tree.Ident(self.span_from(name.start), name.text, arguments, span)

    def template_list(self) -> list[tree.Expr] | None:
        """template_list : '<' expression ( ',' expression ) * ',' ? '>'"""
        if not self.accept(TEMPLATE_START):
            return None
        if self.token.kind == TEMPLATE_END:
            declares = self.tokens[self.index - 2].kind == "var"
            raise self.expected(
                "a template argument", hint="for example var<storage, read_write>" if declares else None
            )
        return self.comma_list(self.expression, TEMPLATE_END, "the template argument", least=1)

    def type_specifier(self, what: str) -> tree.Ident:
        """type_specifier : template_elaborated_ident"""
        kind = self.token.kind
        if kind != IDENTIFIER:
            raise self.expected(f"the type of {what}", hint=FOREIGN_TYPES.get(kind))
        name = self.elaborated_name()
        after = self.token.kind
        if after in ("[", "*"):
            hint = f"write array<{name.span.text}, 4>" if after == "[" else FOREIGN_TYPES["*"]
            raise self.expected(f"the end of the type of {what}", hint=hint)
        return name

    def needs_parentheses(self, left: tree.Binary) -> WgslError:
        """The error for an operator that cannot follow `left`, which ends in an operation that is not its operand."""
        last = left
        while last.op in _LOOSE and isinstance(last.right, tree.Binary):
            last = last.right
        here = self.span_of(self.token)
        if last.op in _COMPARISONS and self.token.kind in _COMPARISONS:
            both = f"{first_words(last.span.text)} && {first_words(last.right.span.text)} {self.token.text} …"
            return fail("mixed-operators", "comparisons cannot be chained", here, hint=f"write {both}")
        message = f"'{last.op}' and '{self.token.text}' cannot be mixed without parentheses"
        hint = f"write ({first_words(last.span.text)}) {self.token.text} …"
        return fail("mixed-operators", message, here, hint=hint)


def _parts(node: tree.Expr) -> Sequence[tree.Expr]:
    """List the direct operands of an expression."""
    match node:
        case tree.Binary(left=left, right=right):
            return left, right
        case tree.Call(callee=callee, args=args):
            return callee, *args
        case tree.Ident(args=args):
            return args or ()
        case tree.Index(base=base, index=index):
            return base, index
        case tree.Member(base=below) | tree.Unary(operand=below) | tree.Paren(inner=below):
            return (below,)
        case _:
            return ()


def _height(node: tree.Expr) -> int:
    """Count the levels of a tree, without recursion."""
    height, level = 0, [node]
    while level:
        height += 1
        level = [part for above in level for part in _parts(above)]
    return height
