"""The part of the parser for statements: the body of a function.

Each docstring has the spec's grammar rule. Spec: WGSL, "Statements Grammar Summary".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ...fast_dataclass import frozen
from ..diagnostics import WgslError, fail, first_words
from . import tree
from .lexer import END, IDENTIFIER, NUMBER, Token
from .other_languages import STATEMENTS, VALUE, array_type, declaration, is_type, parameter
from .parse_attributes import AttributeParser
from .token_cursor import shown

T = TypeVar("T")

_ASSIGNMENTS = frozenset(["=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="])
_NO_STATEMENT = frozenset(["}", END, "fn", "struct", "alias", "override"])
_STEPS = frozenset(["++", "--"])


class StatementParser(AttributeParser):
    """Parses statements at the cursor."""

    def statement(self) -> tree.Stmt | None:
        """statement : a row of `_COMPOUND` or `_SIMPLE`; None for the empty statement, ';'."""
        row = _SIMPLE.get(self.token.kind)
        if row is not None:
            node = row.parse(self)
            if not self.accept(";"):
                raise self.expected(shown(";"), f"after {row.what}", after_previous=True)
            return node
        if self.accept(";"):
            return None
        attributes = self.attributes() if self.token.kind == "@" else []
        kind = self.token.kind
        if compound := _COMPOUND.get(kind):
            return compound(self, attributes)
        if kind in _SIMPLE:
            raise fail("misplaced-attribute", "attributes cannot stand before this statement", attributes[0].span)
        raise self.expected("a statement", hint=VALUE if kind == NUMBER else STATEMENTS.get(kind))

    # ---- compound statements ---------------------------------------------------------------------------

    def block(self, what: str) -> tree.Block:
        """compound_statement : attribute * '{' statement * '}'"""
        return self.compound(self.attributes(), what)

    def compound(self, attributes: list[tree.Attribute], what: str = "the block") -> tree.Block:
        start = self.start_of(attributes)
        body, _ = self.braced(what)
        return tree.Block(self.span_from(start), attributes, body)

    def braced(self, what: str, tail: Callable[[], T | None] | None = None) -> tuple[list[tree.Stmt], T | None]:
        """'{' statement * tail ? '}', where `tail` parses what can only come last, or returns None."""
        opened = self.expect("{", f"before {what}")
        self.enter()
        body: list[tree.Stmt] = []
        ending = None
        while ending is None and not self.ends_body():
            ending = tail() if tail else None
            if ending is None and (statement := self.statement()) is not None:
                body.append(statement)
        self.leave()
        if ending is not None:
            hint = "nothing can follow 'continuing' or 'break if'"
        else:
            hint = "functions cannot be declared within functions" if self.token.kind in ("fn", "@") else None
        self.close_brace(opened, what, hint)
        return body, ending

    def ends_body(self) -> bool:
        """Whether no statement starts here: at a '}', or where a declaration shows that one is missing."""
        if self.token.kind != "@":
            return self.token.kind in _NO_STATEMENT
        at = self.index  # attributes may precede a statement
        while self.tokens[at].kind == "@":
            at = self._after_attribute(at)
        return self.tokens[at].kind == "fn"

    def _after_attribute(self, at: int) -> int:
        """Return the index of the token after the attribute at token `at`, if it is well-formed."""
        at += 2
        if self.tokens[min(at, len(self.tokens) - 1)].kind == "(":
            while self.tokens[at].kind not in (")", END):
                at += 1
            at += 1
        return min(at, len(self.tokens) - 1)

    def if_statement(self, attributes: list[tree.Attribute]) -> tree.If:
        """if_statement : attribute * 'if' expression compound_statement
        ( 'else' 'if' expression compound_statement ) * ( 'else' compound_statement ) ?
        """
        start = self.start_of(attributes)
        self.advance()
        condition = self.condition("'if'")
        then = self.block("the body of the 'if'")
        orelse = None
        if self.accept("else"):
            self.enter()
            orelse = self.if_statement([]) if self.token.kind == "if" else self.block("the body of the 'else'")
            self.leave()
        return tree.If(self.span_from(start), attributes, condition, then, orelse)

    def condition(self, of: str, what: str = "the condition") -> tree.Expr:
        """expression"""
        if self.token.kind == "{":
            raise self.expected(what, f"of the {of}")
        return self.expression()

    def switch_statement(self, attributes: list[tree.Attribute]) -> tree.Switch:
        """switch_statement : attribute * 'switch' expression attribute * '{' switch_clause + '}'"""
        start = self.start_of(attributes)
        self.advance()
        selector = self.condition("'switch'", "the value")
        body_attributes = self.attributes()
        opened = self.expect("{", "before the clauses of the 'switch'")
        cases: list[tree.Case] = []
        if self.token.kind == "}":
            raise self.expected("'case' or 'default'", hint="a switch needs a default: default: {}")
        while self.token.kind in ("case", "default"):
            cases.append(self.switch_clause())
        if self.token.kind != "}":
            raise self.expected("'case', 'default' or '}'" if cases else "'case' or 'default'")
        self.close_brace(opened, "the 'switch'", None)
        return tree.Switch(self.span_from(start), attributes, selector, body_attributes, cases)

    def switch_clause(self) -> tree.Case:
        """switch_clause : 'case' case_selectors ':' ? compound_statement | 'default' ':' ? compound_statement
        case_selectors : case_selector ( ',' case_selector ) * ',' ?
        """
        start = self.token.start
        selectors: list[tree.Expr | None] = [None]
        if self.accept("case"):
            selectors = [self.case_selector()]
            while self.accept(",") and self.token.kind not in (":", "{", "@"):
                selectors.append(self.case_selector())
        else:
            self.advance()  # 'default'
        self.accept(":")
        body = self.block("the body of the clause")
        return tree.Case(self.span_from(start), selectors, body)

    def case_selector(self) -> tree.Expr | None:
        """case_selector : 'default' | expression"""
        return None if self.accept("default") else self.expression()

    def loop_statement(self, attributes: list[tree.Attribute]) -> tree.Loop:
        """loop_statement : attribute * 'loop' attribute * '{' statement * continuing_statement ? '}'"""
        start = self.start_of(attributes)
        self.advance()
        body_attributes = self.attributes()
        body_start = self.start_of(body_attributes)
        body, ending = self.braced("the body of the loop", self.continuing_statement)
        block = tree.Block(self.span_from(body_start), body_attributes, body)
        continuing, break_if = ending or (None, None)
        return tree.Loop(self.span_from(start), attributes, block, continuing, break_if)

    def continuing_statement(self) -> tuple[tree.Block, tree.Expr | None] | None:
        """continuing_statement : 'continuing' attribute * '{' statement * break_if_statement ? '}'"""
        if not self.accept("continuing"):
            return None
        attributes = self.attributes()
        start = self.start_of(attributes)
        body, break_if = self.braced("the 'continuing' block", self.break_if_statement)
        return tree.Block(self.span_from(start), attributes, body), break_if

    def break_if_statement(self) -> tree.Expr | None:
        """break_if_statement : 'break' 'if' expression ';'"""
        if self.token.kind != "break" or self.tokens[self.index + 1].kind != "if":
            return None
        self.advance()
        self.advance()
        condition = self.expression()
        self.expect(";", "after the 'break if' condition")
        return condition

    def for_statement(self, attributes: list[tree.Attribute]) -> tree.For:
        """for_statement : attribute * 'for' '(' for_init ? ';' expression ? ';' for_update ? ')' compound_statement"""
        start = self.start_of(attributes)
        self.advance()
        if not self.accept("("):
            raise self.expected("'('", "after 'for'", hint="write for (var i = 0; i < n; i++) { … }")
        init = None if self.token.kind == ";" else self.for_part(_FOR_INIT, "initializer")
        self.end_for_part(";", "initializer", "declare the others before the loop")
        condition = None if self.token.kind == ";" else self.expression()
        self.expect(";", "after the condition of the loop")
        update = None if self.token.kind == ")" else self.for_part(_FOR_UPDATE, "update")
        self.end_for_part(
            ")", "update", "write the others at the end of the body, or in the continuing block of a 'loop'"
        )
        body = self.block("the body of the loop")
        return tree.For(self.span_from(start), attributes, init, condition, update, body)

    def for_part(self, allowed: frozenset[str], what: str) -> tree.Stmt:
        """for_init : variable_or_value_statement | variable_updating_statement | func_call_statement
        for_update : variable_updating_statement | func_call_statement
        """
        kind = self.token.kind
        if kind in allowed:
            return _SIMPLE[kind].parse(self)
        hint = None
        if kind in _FOR_INIT:
            hint = "declare it in the body of the loop, or before the loop"
        elif kind in _SIMPLE or kind in _COMPOUND:
            hint = "write this statement in the body of the loop, or before the loop"
        declaration = "a declaration, " if allowed is _FOR_INIT else ""
        raise self.expected(f"{declaration}an assignment, '++', '--' or a call as the {what} of the loop", hint=hint)

    def end_for_part(self, close: str, what: str, several: str) -> None:
        """Step over what ends a part of a `for`, or raise; `several` is the hint where another statement follows."""
        if self.token.kind == close:
            self.advance()
            return
        hint = f"the {what} is one statement: {several}" if self.token.kind == "," else None
        if self.token.kind == ";":
            hint = "leave out the ';': only the first two parts of a 'for' end with one"
        raise self.expected(shown(close), f"after the {what} of the loop", after_previous=True, hint=hint)

    def while_statement(self, attributes: list[tree.Attribute]) -> tree.While:
        """while_statement : attribute * 'while' expression compound_statement"""
        start = self.start_of(attributes)
        self.advance()
        condition = self.condition("'while'")
        body = self.block("the body of the loop")
        return tree.While(self.span_from(start), attributes, condition, body)

    # ---- statements that end in a semicolon ------------------------------------------------------------

    def local_declaration(self) -> tree.LocalDecl:
        """variable_or_value_statement : 'var' template_list ? optionally_typed_ident ( '=' expression ) ?
        | ( 'let' | 'const' ) optionally_typed_ident '=' expression
        optionally_typed_ident : ident ( ':' type_specifier ) ?
        """
        keyword = self.advance()
        template = self.template_list() if keyword.kind == "var" else None
        name = self.name(f"the '{keyword.kind}'")
        if self.token.kind == "[":
            raise self.expected("':', '=' or ';'", f"after '{name.text}'", hint=array_type(name.text))
        type_ = self.type_specifier(f"'{name.text}'") if self.accept(":") else None
        init = None
        if keyword.kind in ("let", "const") and self.token.kind != "=":
            hint = None
            if self.token.kind == IDENTIFIER and (type_name := parameter(name.text, self.token.text)):
                hint = type_name.replace("write", f"write {keyword.kind}")
            raise self.expected("'='", f"and a value for '{keyword.kind} {name.text}'", after_previous=True, hint=hint)
        if self.accept("="):
            init = self.expression()
        span = self.span_from(keyword.start)
        return tree.LocalDecl(span, keyword.kind, template, name.text, self.span_of(name), type_, init)

    def updating_or_call(self) -> tree.Stmt:
        """variable_updating_statement : lhs_expression ( '=' | compound_assignment_operator ) expression
        | lhs_expression '++' | lhs_expression '--'
        func_call_statement : call_phrase
        """
        start = self.token.start
        target = self.operand()
        operator = self.token
        if operator.kind in _ASSIGNMENTS:
            self.require_place(target)
            self.advance()
            value = self.expression()
            return tree.Assign(self.span_from(start), target, operator.kind, value, operator.start)
        if operator.kind in _STEPS:
            self.require_place(target)
            self.advance()
            return tree.Increment(self.span_from(start), target, operator.kind)
        if isinstance(target, tree.Call):
            return tree.CallStmt(target.span, target)
        hint = self.statement_habit(target)
        after = f"after '{target.span.text[:40]}'"
        raise self.expected("an assignment, '++' or '--'", after, after_previous=True, hint=hint)

    def statement_habit(self, target: tree.Expr) -> str | None:
        """Return a hint where a statement is that of another language."""
        word, name, after = target.span.text, self.token, self.tokens[min(self.index + 1, len(self.tokens) - 1)]
        if word in STATEMENTS:
            return STATEMENTS[word]
        if name.kind != IDENTIFIER:
            return self.value_habit(target, after)
        if is_type(name.text) and after.kind == IDENTIFIER:  # unsigned int x
            return declaration(word, after.text)
        call = f"a call has parentheses: {word}(…)" if isinstance(target, tree.Ident) else None
        return declaration(word, name.text, is_array=after.kind == "[") or call

    def value_habit(self, target: tree.Expr, after: Token) -> str:
        """Return the hint for a value alone, as a statement or as the update of a loop."""
        word, operator = target.span.text, self.token.kind
        next_ = self.tokens[min(self.index + 2, len(self.tokens) - 1)].kind
        if operator == ")":
            return f"{_NOTHING}: write {word}++ or {word} += 1"
        if operator == ";" and isinstance(target, tree.Ident):
            return f"a name alone does nothing: call it, {word}(), or assign to it"
        if operator == "==":
            return f"'==' compares; '=' assigns: {word} = …"
        if f"{operator}=" not in _ASSIGNMENTS:
            return VALUE
        value = after.text if next_ in (";", ")") else "…"
        named = "" if next_ == ")" else ", or name the value: let a = …;"
        return f"{_NOTHING}: write {word} {operator}= {value}{named}"

    def phony_assignment(self) -> tree.Assign:
        """assignment_statement : '_' '=' expression"""
        start = self.advance().start
        operator = self.expect("=", "after '_'")
        value = self.expression()
        return tree.Assign(self.span_from(start), None, "=", value, operator.start)

    def require_place(self, node: tree.Expr) -> None:
        """lhs_expression : core_lhs_expression component_or_swizzle_specifier ? | ( '*' | '&' ) lhs_expression
        core_lhs_expression : ident | '(' lhs_expression ')' | call_expression
        """
        whole = node
        while True:
            match node:
                case tree.Ident(args=None):
                    return
                case tree.Index(base=below) | tree.Member(base=below) | tree.Paren(inner=below):
                    node = below
                case tree.Unary(op="*" | "&", operand=below):
                    node = below
                case tree.Call() if node is not whole:  # a view of a buffer
                    return
                case _:
                    raise _no_place(whole)

    def simple(self, make: Callable[..., tree.Stmt]) -> tree.Stmt:
        return make(self.span_of(self.advance()))

    def break_statement(self) -> tree.Stmt:
        """break_statement : 'break'"""
        node = self.simple(tree.Break)
        if self.token.kind == "if":
            raise fail("misplaced-break-if", "'break if' can only end a 'continuing' block", self.span_of(self.token))
        return node

    def return_statement(self) -> tree.Return:
        """return_statement : 'return' expression ?"""
        start = self.advance().start
        value = None if self.token.kind in (";", "}") else self.expression()
        return tree.Return(self.span_from(start), value)

    def const_assert(self) -> tree.ConstAssert:
        """const_assert : 'const_assert' expression"""
        start = self.advance().start
        condition = self.expression()
        return tree.ConstAssert(self.span_from(start), condition)

    def misplaced_continuing(self) -> tree.Stmt:
        raise fail("misplaced-continuing", "'continuing' can only end a 'loop'", self.span_of(self.token))


_NOTHING = "a value alone does nothing"


def _no_place(target: tree.Expr) -> WgslError:
    """Return the error of an assignment to a value."""
    if isinstance(target, tree.Call):
        message = "the result of a call is no place to assign to"
        hint = f"keep it in a variable: var a = {first_words(target.span.text)};"
        return fail("not-assignable", message, target.span, hint=hint)
    hint = "assign to a variable, or to a part of one"
    return fail("not-assignable", "this expression is no place to assign to", target.span, hint=hint)


@frozen
class _Row:
    """A statement that ends in a semicolon: its name in messages, and the method that parses it."""

    what: str
    parse: Callable[[StatementParser], tree.Stmt]


_UPDATE = _Row("the statement", StatementParser.updating_or_call)

# By the first token of a statement. These take attributes and no semicolon.
_COMPOUND: dict[str, Callable[[StatementParser, list[tree.Attribute]], tree.Stmt]] = {
    "{": StatementParser.compound,
    "if": StatementParser.if_statement,
    "switch": StatementParser.switch_statement,
    "loop": StatementParser.loop_statement,
    "for": StatementParser.for_statement,
    "while": StatementParser.while_statement,
}

# These end in a semicolon and take no attributes.
_SIMPLE: dict[str, _Row] = {
    "var": _Row("the variable declaration", StatementParser.local_declaration),
    "let": _Row("the 'let' declaration", StatementParser.local_declaration),
    "const": _Row("the 'const' declaration", StatementParser.local_declaration),
    IDENTIFIER: _UPDATE,
    "*": _UPDATE,
    "&": _UPDATE,
    "&&": _UPDATE,
    "(": _UPDATE,
    "_": _Row("the assignment", StatementParser.phony_assignment),
    "break": _Row("'break'", StatementParser.break_statement),
    "continue": _Row("'continue'", lambda parser: parser.simple(tree.Continue)),
    "discard": _Row("'discard'", lambda parser: parser.simple(tree.Discard)),
    "return": _Row("'return'", StatementParser.return_statement),
    "const_assert": _Row("the assertion", StatementParser.const_assert),
    "continuing": _Row("", StatementParser.misplaced_continuing),
}

_FOR_UPDATE = frozenset(kind for kind, row in _SIMPLE.items() if row is _UPDATE) | {"_"}
_FOR_INIT = _FOR_UPDATE | {"var", "let", "const"}
