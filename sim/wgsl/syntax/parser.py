"""WGSL text to syntax tree, by recursive descent over the spec's grammar.

`parse(source)` returns a `tree.Module`, or raises a `WgslError` with file, line and column. The parser is one object in
layers of classes, one for each chapter of the grammar: `Cursor` (tokens), expressions, attributes, statements, and here
declarations. It resolves no names and no types. Spec: WGSL, "Parsing".
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from ..diagnostics import Diagnostic, WgslError, fail
from ..source import Source, Span
from . import tree
from .lexer import END, IDENTIFIER, Token
from .other_languages import DECLARATIONS, RESULT, STATEMENT, TYPES, is_type, parameter
from .parse_statements import StatementParser
from .token_cursor import make_room_to_recurse

_DIRECTIVES = ("enable", "requires", "diagnostic")
_STATEMENTS = frozenset(
    ["if", "for", "while", "loop", "switch", "return", "break", "continue", "discard", "{", "_", "*"]
)
_UPDATES = frozenset(["=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"])
_NO_RESULT = frozenset([":", "=", "-"])  # in other languages they precede the type of the result, or the body
_PARTS = frozenset(["(", "[", "."])
_OUTERMOST = frozenset(("fn", "struct", "alias", "override", END))  # never inside a declaration
_OUTER = frozenset(("var", "const", "const_assert", "@", *_DIRECTIVES))


def parse(source: Source) -> tree.Module:
    """Parse a module. Raises `WgslError` at the first place where the text violates the grammar."""
    make_room_to_recurse()
    return _Parser(source).module()


def _first_of_each(errors: Iterable[WgslError], starts: list[int]) -> WgslError:
    """Combine the first error of each declaration into one; `starts` has the offset where each may start."""
    first: dict[int, Diagnostic] = {}
    for error in errors:
        (diagnostic,) = error.diagnostics
        first.setdefault(bisect_right(starts, _start(diagnostic)), diagnostic)
    return WgslError(*sorted(first.values(), key=_start))


def _start(diagnostic: Diagnostic) -> int:
    return diagnostic.span.start if diagnostic.span else 0


class _Parser(StatementParser):
    def module(self) -> tree.Module:
        """translation_unit : global_directive * ( global_decl | global_assert | ';' ) *"""
        directives: list[tree.Directive] = []
        while self.token.kind in _DIRECTIVES:
            directives.append(self.directive())
        decls: list[tree.Decl] = []
        wrong: list[WgslError] = []
        starts: list[int] = []
        while self.token.kind != END:
            if self.accept(";"):
                continue
            begin = self.index
            starts.append(self.tokens[begin - 1].end if begin else 0)
            try:
                decls.append(self.declaration())
            except WgslError as error:
                if not (wrong and self.token.kind == "}"):  # left over from the declaration before
                    wrong.append(error)
                self.recover(begin)
        if wrong or self.errors:
            raise _first_of_each([*self.errors, *wrong], starts)  # wrong tokens cause wrong syntax
        return tree.Module(Span(self.source, 0, len(self.source.text)), directives, decls)

    def recover(self, begin: int) -> None:
        """Move from an error to the next declaration, after that at token `begin`.

        It starts with a keyword that functions do not have, or in the first column after a '}' or ';' outside of
        braces: where a '{' is missing, the braces alone mislead.
        """
        self.depth, self.in_expression = 0, False
        while self.index <= begin and self.token.kind != END:
            self.advance()
        kinds = [token.kind for token in self.tokens[begin : self.index]]
        depth = kinds.count("{") - kinds.count("}")
        while self.token.kind not in _OUTERMOST:
            follows = self.token.kind in _OUTER and self.tokens[self.index - 1].kind in (";", "}")
            if depth <= 0 and follows and self.source.place(self.token.start).column == 1:
                return
            depth += (self.token.kind == "{") - (self.token.kind == "}")
            self.advance()

    def directive(self) -> tree.Directive:
        """global_directive : 'diagnostic' diagnostic_control ';'
        | ( 'enable' | 'requires' ) ident_pattern_token ( ',' ident_pattern_token ) * ',' ? ';'
        """
        keyword = self.advance()
        if keyword.kind == "diagnostic":
            names = self.diagnostic_control("'diagnostic'")
            self.expect(";", "after the 'diagnostic' directive")
        else:
            names = self.comma_list(self.extension_name, ";", f"the name in '{keyword.kind}'", least=1)
        return tree.Directive(self.span_from(keyword.start), keyword.kind, names)

    def extension_name(self) -> tuple[str, Span]:
        name = self.name("an extension")
        return name.text, self.span_of(name)

    def declaration(self) -> tree.Decl:
        """global_decl : global_variable_decl ';' | global_value_decl ';' | type_alias_decl ';'
        | struct_decl | function_decl
        global_assert : const_assert ';'
        """
        attributes = self.attributes()
        kind = self.token.kind
        if kind == "fn":
            return self.function(attributes)
        if kind in ("var", "override"):
            return self.global_declaration(attributes)
        if attributes:
            raise self.expected("'fn', 'var' or 'override'", "after attributes")
        if kind == "const":
            return self.global_declaration([])
        if kind == "struct":
            return self.struct()
        if kind == "alias":
            return self.alias()
        if kind == "const_assert":
            assertion = self.const_assert()
            self.expect(";", "after the assertion")
            return assertion
        if kind in _DIRECTIVES:
            message = f"the directive '{kind}' must come before all declarations"
            raise fail("misplaced-directive", message, self.span_of(self.token))
        raise self.expected("a declaration", hint=self.declaration_habit())

    def declaration_habit(self) -> str | None:
        """Return a hint where a declaration is that of another language."""
        word, name = self.token, self.tokens[min(self.index + 1, len(self.tokens) - 1)]
        if is_type(word.text) and name.kind == IDENTIFIER:
            return f"write const {name.text} = …; or var<private> {name.text}: {TYPES.get(word.text, word.text)} = …;"
        if word.text in DECLARATIONS:
            return DECLARATIONS[word.text]
        acts = word.kind == IDENTIFIER and (name.kind in _UPDATES or name.kind in _PARTS)
        return STATEMENT if acts or word.kind in _STATEMENTS else None

    def global_declaration(self, attributes: list[tree.Attribute]) -> tree.GlobalDecl:
        """global_variable_decl : attribute * 'var' template_list ? optionally_typed_ident ( '=' expression ) ?
        global_value_decl : 'const' optionally_typed_ident '=' expression
        | attribute * 'override' optionally_typed_ident ( '=' expression ) ?
        """
        start = self.start_of(attributes)
        local = self.local_declaration()
        span = self.span_from(start)
        self.expect(";", f"after the '{local.keyword}' declaration")
        return tree.GlobalDecl(
            span, local.keyword, attributes, local.template, local.name, local.name_span, local.type, local.init
        )

    def alias(self) -> tree.Alias:
        """type_alias_decl : 'alias' ident '=' type_specifier"""
        start = self.advance().start
        name = self.name("the alias")
        self.expect("=", "after the name of the alias")
        type_ = self.type_specifier(f"'{name.text}'")
        span = self.span_from(start)
        self.expect(";", "after the alias")
        return tree.Alias(span, name.text, self.span_of(name), type_)

    def struct(self) -> tree.Struct:
        """struct_decl : 'struct' ident '{' struct_member ( ',' struct_member ) * ',' ? '}'"""
        start = self.advance().start
        name = self.name("the structure")
        self.expect("{", f"after 'struct {name.text}'")
        if self.token.kind == "}":
            raise self.expected("a member", f"in struct '{name.text}'", hint="a struct has at least one member")
        members = self.comma_list(self.struct_member, "}", "the member", least=1)
        return tree.Struct(self.span_from(start), name.text, self.span_of(name), members)

    def struct_member(self) -> tree.StructMember:
        """struct_member : attribute * member_ident ':' type_specifier"""
        attributes = self.attributes()
        start = self.start_of(attributes)
        name, type_ = self.typed_name("the member")
        return tree.StructMember(self.span_from(start), attributes, name.text, self.span_of(name), type_)

    def function(self, attributes: list[tree.Attribute]) -> tree.Function:
        """function_decl : attribute * 'fn' ident '(' param_list ? ')' ( '->' attribute * type_specifier ) ?
        compound_statement
        """
        start = self.start_of(attributes)
        self.advance()
        name = self.name("the function")
        self.expect("(", f"after 'fn {name.text}'")
        params = self.comma_list(self.param, ")", "the parameter")
        result_attributes, result = [], None
        if self.accept("->"):
            result_attributes = self.attributes()
            result = self.type_specifier("the result")
        if self.token.kind in _NO_RESULT and result is None:
            arrow = self.token.kind != "=" or self.tokens[self.index + 1].text == ">"
            hint = RESULT if arrow else "a function has a body: { return …; }"
            raise self.expected("'->' or '{'", f"after the parameters of '{name.text}'", hint=hint)
        if self.token.kind == ";":
            hint = "a function is declared once, with its body, and may be called before that"
            raise self.expected("'{'", "before the body of the function", hint=hint)
        body = self.block("the body of the function")
        return tree.Function(
            self.span_from(start), attributes, name.text, self.span_of(name), params, result_attributes, result, body
        )

    def param(self) -> tree.Param:
        """param : attribute * ident ':' type_specifier"""
        attributes = self.attributes()
        start = self.start_of(attributes)
        name, type_ = self.typed_name("the parameter")
        return tree.Param(self.span_from(start), attributes, name.text, self.span_of(name), type_)

    def typed_name(self, what: str) -> tuple[Token, tree.Ident]:
        """ident ':' type_specifier"""
        name = self.name(what)
        if not self.accept(":"):
            hint = parameter(name.text, self.token.text) if self.token.kind == IDENTIFIER else None
            raise self.expected("':'", f"and a type after {what} '{name.text}'", hint=hint)
        return name, self.type_specifier(f"{what} '{name.text}'")
