"""The parser's position in the token list.

The cursor has the current token, makes spans, and reports what is missing. An error for missing punctuation points just
after the previous token, where the author would type it; any other error points at the token found.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

from ..diagnostics import Note, WgslError, fail
from ..source import Source, Span
from .lexer import END, IDENTIFIER, KEYWORDS, NUMBER, TEMPLATE_END, TEMPLATE_START, Token, lex_all
from .other_languages import OPERATORS, STEP, SYMBOLS, TERNARY

T = TypeVar("T")

# The deepest tree: levels of braces and `else if`, plus levels of an expression. Deeper is `nesting-too-deep`. The spec
# requires 127 levels of braces. Passes may recurse after `make_room_to_recurse`.
MAX_NESTING = 512
_FRAMES_PER_LEVEL = 24

_SHOWN = {TEMPLATE_START: "'<'", TEMPLATE_END: "'>'", END: "the end of the file", IDENTIFIER: "a name"}
_DECLARING = ("var", "let", "const")
_AFTER_LIST = frozenset([";", "{", "}", "->", END])  # none of them starts an item
_NAMES = "a name starts with a letter or '_'"
_PARAMETERS = {
    ",": "leave out one ','",
    "&": "a pointer is a type: name: ptr<function, T>",
    "*": "a pointer is a type: name: ptr<function, T>",
}
_CLOSING = frozenset([";", ",", ")", "]", "}", TEMPLATE_END])


def make_room_to_recurse() -> None:
    """Raise Python's recursion limit to what a recursive pass over a tree of `MAX_NESTING` levels needs.

    The limit is never lowered again: another thread may be deep in a tree.
    """
    sys.setrecursionlimit(max(sys.getrecursionlimit(), MAX_NESTING * _FRAMES_PER_LEVEL))


def shown(kind: str) -> str:
    """Return the name of a kind of token for messages."""
    return _SHOWN.get(kind, f"'{kind}'")


class Cursor:
    """The tokens of one source, and the current one (`token`)."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens, self.errors = lex_all(source)
        self.index = 0
        self.token = self.tokens[0]
        self.depth = 0

    # ---- moving ----------------------------------------------------------------------------------------

    def advance(self) -> Token:
        """Step over the current token and return it; stay at the end of the file."""
        token = self.token
        if token.kind != END:
            self.index += 1
            self.token = self.tokens[self.index]
        return token

    def accept(self, kind: str) -> bool:
        """Step over the current token if it is of this kind."""
        if self.token.kind != kind:
            return False
        self.index += 1  # nothing accepts the end of the file
        self.token = self.tokens[self.index]
        return True

    def expect(self, kind: str, context: str) -> Token:
        """Step over a token of this kind, or raise; `context` says where it belongs: `after the condition`."""
        if self.token.kind == kind:
            return self.advance()
        raise self.expected(shown(kind), context, after_previous=kind in _CLOSING)

    def name(self, what: str) -> Token:
        """ident: step over a declared name, which is no keyword and not `_`."""
        if self.token.kind == IDENTIFIER:
            return self.advance()
        if self.token.kind == "_":
            hint = "to drop a value, assign it without a keyword: _ = …;"
            raise fail("expected", f"'_' cannot be the name of {what}", self.span_of(self.token), hint=hint)
        if self.token.kind in KEYWORDS:
            message = f"'{self.token.text}' is a keyword, which cannot be the name of {what}"
            declares = self.token.kind in _DECLARING and self.tokens[self.index + 1].kind == IDENTIFIER
            hint = f"leave out '{self.token.text}'" if declares else "give it another name"
            raise fail("expected", message, self.span_of(self.token), hint=hint)
        hint = _NAMES if self.token.kind == NUMBER else None
        if what == "the parameter":
            hint = _PARAMETERS.get(self.token.kind, hint)
        keyword = self.tokens[self.index - 1].kind
        if self.token.kind in ("<", TEMPLATE_START) and keyword in _DECLARING and self.index:
            hint = f"the type follows the name: {keyword} name: T = …"
        raise self.expected(f"the name of {what}", hint=hint)

    def split(self) -> None:
        """Split a two-character symbol: the spec's longest token *that is valid here* (`a--b` is `a - -b`)."""
        kind, start, end = self.token.kind, self.token.start, self.token.end
        halves = [Token(kind[0], kind[0], start, start + 1), Token(kind[1], kind[1], start + 1, end)]
        self.tokens[self.index : self.index + 1] = halves
        self.token = halves[0]

    def comma_list(self, item: Callable[[], T], close: str, what: str, least: int = 0) -> list[T]:
        """item ( ',' item ) * ',' ?   of `least` items or more, up to and including the closing token."""
        items: list[T] = []
        opened = self.tokens[self.index - 1]
        while len(items) < least or self.token.kind != close:
            if close == ")" and self.token.kind in _AFTER_LIST:
                raise self._list_error(close, what, opened)
            items.append(item())
            if self.token.kind != close and not self.accept(","):
                raise self._list_error(close, what, opened)
        self.advance()
        return items

    def _list_error(self, close: str, what: str, opened: Token) -> WgslError:
        """Return the error of a list that neither goes on nor ends; what cannot follow ',' shows that it should end."""
        declares = what in ("the member", "the parameter")
        hint = "the separator here is ','" if self.token.kind == ";" and declares else None
        if close == ")" and self.token.kind in _AFTER_LIST and not hint:
            note = Note("opened here", self.span_of(opened))
            after = f"after {what}" if self.tokens[self.index - 1] != opened else "after '('"
            return self.expected(shown(close), after, note, after_previous=True)
        return self.expected(f"',' or {shown(close)}", f"after {what}", after_previous=True, hint=hint)

    # ---- nesting ---------------------------------------------------------------------------------------

    def enter(self) -> None:
        """Go one level down; raise past `MAX_NESTING`. Every `enter` needs a `leave`."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise self.too_deep(self.span_of(self.token))

    def leave(self) -> None:
        self.depth -= 1

    def too_deep(self, span: Span) -> WgslError:
        return fail("nesting-too-deep", f"nested deeper than {MAX_NESTING} levels", span, hint="name a part of it")

    # ---- spans and errors ------------------------------------------------------------------------------

    def span_of(self, token: Token) -> Span:
        return Span(self.source, token.start, token.end)

    def span_from(self, start: int) -> Span:
        """Return the span from character `start` to the end of the previous token."""
        return Span(self.source, start, self.tokens[self.index - 1].end if self.index else start)

    def found(self) -> str:
        """Return the name of the current token for messages."""
        return shown(END) if self.token.kind == END else f"'{self.token.text}'"

    def _habit(self, what: str, context: str) -> str | None:
        """Return a hint for a token that other languages have here."""
        if self.token.kind in ("++", "--"):
            return STEP
        symbol = self._foreign_symbol()
        if symbol and not (symbol == "->" and what == "'('"):
            return SYMBOLS[symbol]
        if self.token.kind == "if" and what == "';'":
            return TERNARY
        for word in (self.token.text, self.tokens[self.index - 1].text):
            if word in OPERATORS and self.index:
                return OPERATORS[word]
        if self.token.kind == "<" and self.tokens[self.index - 1].kind == IDENTIFIER:
            return "a '<' after a type needs its '>'"
        if self.token.kind == "=" and what in ("')'", "'{'", "';'"):
            return "'=' assigns; '==' compares"
        if what == "'{'" and context.startswith("before the body"):
            if self.token.kind == ")":
                return "there are more ')' than '('"
            if self.token.text in ("then", "do", ":"):
                return "the body follows the condition: if condition { … }"
            return "a body needs braces, even if it is one statement"
        if self.token.kind == "{" and what == "';'" and self.tokens[self.index - 1].kind == IDENTIFIER:
            return f"a value is written like a call of its type: {self.tokens[self.index - 1].text}(…)"
        return None

    def _foreign_symbol(self) -> str | None:
        """Return the symbol of another language of which the current token is a part."""
        start = self.token.start
        parts = ((symbol, start - shift) for symbol in SYMBOLS for shift in range(len(symbol)))
        found = [symbol for symbol, at in parts if at > 0 and self.source.text.startswith(symbol, at)]
        if "<>" in found and not self.source.text[start - 2].isspace():
            found.remove("<>")  # an empty template list
        return max(found, key=len, default=None)

    def expected(
        self, what: str, context: str = "", *notes: Note, after_previous: bool = False, hint: str | None = None
    ) -> WgslError:
        """Return the error that `what` is missing here, or just after the previous token."""
        message = f"expected {what}" + (f" {context}" if context else "")
        if not after_previous:
            message += f", found {self.found()}"
        hint = hint or self._habit(what, context)
        if (after_previous or self.token.kind == END) and self.index:
            end = self.tokens[self.index - 1].end
            return fail("expected", message, Span(self.source, end, end), *notes, hint=hint)
        return fail("expected", message, self.span_of(self.token), *notes, hint=hint)
