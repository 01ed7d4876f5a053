"""Text to tokens: one compiled regular expression, and template list discovery in the same pass.

`lex` returns every token of the source in order, ending with one `END` token. Only blankspace and comments separate
tokens, so that texts and gaps concatenate to the input. Tokens carry offsets; spans are made on demand.
Spec: WGSL, "Textual Structure" (blankspace, comments, tokens, literals, identifiers, template lists).
"""

from __future__ import annotations

import re
import unicodedata

from ...fast_dataclass import entity
from ..diagnostics import WgslError, fail
from ..source import LINE_BREAKS, Source, Span
from .other_languages import CHARACTERS, HABITS, number

# Kinds of tokens; the kind of a keyword or syntactic token is its text.
IDENTIFIER = "identifier"
NUMBER = "number"
END = "end of file"
TEMPLATE_START = "template <"
TEMPLATE_END = "template >"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


KEYWORDS = _words(
    """
    alias break case const const_assert continue continuing default diagnostic discard else enable false fn for if
    let loop override requires return struct switch true var while
    """
)

# Spec, "Reserved Words": a module must not contain any of them.
RESERVED_WORDS = _words(
    """
    NULL Self abstract active alignas alignof as asm asm_fragment async attribute auto await become cast catch class
    co_await co_return co_yield coherent column_major common compile compile_fragment concept const_cast consteval
    constexpr constinit crate debugger decltype delete demote demote_to_helper do dynamic_cast enum explicit export
    extends extern external fallthrough filter final finally friend from fxgroup get goto groupshared highp impl
    implements import inline instanceof interface layout lowp macro macro_rules match mediump meta mod module move mut
    mutable namespace new nil noexcept noinline nointerpolation non_coherent noncoherent noperspective null nullptr of
    operator package packoffset partition pass patch pixelfragment precise precision premerge priv protected pub public
    readonly ref regardless register reinterpret_cast require resource restrict self set shared sizeof smooth snorm
    static static_assert static_cast std subroutine super target template this thread_local throw trait try type
    typedef typeid typename typeof union unless unorm unsafe unsized use using varying virtual volatile wgsl where with
    writeonly yield
    """
)

_BLANKS = " \t\u200e\u200f" + LINE_BREAKS

# The pattern accepts every non-ASCII character but blanks in a name; `_word_kind` validates it. A pattern of the
# characters that a name does not have compiles ten times faster.
_NO_LETTER = r"\x00-/:-@\[-^`{-\x7f\x85\u200e\u200f\u2028\u2029"
WORD = rf"[^0-9{_NO_LETTER}][^{_NO_LETTER}]*+"

_TOKEN = re.compile(
    rf"""
    [{_BLANKS}]*+
    (?:
      (?P<word>{WORD})
    | (?P<symbol>
        [@\[\]{{}}:,;()~] | [=!*%^]=? | <<?=? | >>?=? | &[&=]? | \|[|=]? | \+[+=]? | -[-=>]?
      | \.(?![0-9])
      | /(?![/*])=?
      )
    | (?P<integer>(?:0|[1-9][0-9]*)[iufh]?(?![\w.]))
    | (?P<number>
        0[xX](?:[0-9a-fA-F]*\.[0-9a-fA-F]+|[0-9a-fA-F]+\.[0-9a-fA-F]*)(?:[pP][+-]?[0-9]+[fh]?)?
      | 0[xX][0-9a-fA-F]+[pP][+-]?[0-9]+[fh]?
      | (?:[0-9]*\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][+-]?[0-9]+)?[fh]?
      | [0-9]+[eE][+-]?[0-9]+[fh]?
      | 0[xX][0-9a-fA-F]+[iu]?
      | (?:0|[1-9][0-9]*)[iufh]?
      )
    | (?P<line_comment>//[^{LINE_BREAKS}]*+)
    | (?P<comment>/\*)
    | (?P<end>\Z)
    | (?P<illegal>.)
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_MARK = re.compile(r"/\*|\*/")
_GLUED = re.compile(r"[\w.]+")


_MOST_ERRORS = 100  # a file of something else has an illegal character in every line
BYTE_ORDER_MARK = "\ufeff"


@entity(slots=True)
class Token:
    """A token. `kind` is a name above, or the text of a keyword or symbol; offsets count characters."""

    kind: str
    text: str
    start: int
    end: int


def lex(source: Source) -> list[Token]:
    """Split `source` into tokens, the last of kind `END`. Raises `WgslError` for text that is no WGSL token."""
    tokens, errors = lex_all(source)
    if errors:
        raise errors[0]
    return tokens


def lex_all(source: Source) -> tuple[list[Token], list[WgslError]]:
    """Split `source` like `lex`, and list the errors. Wrong names and numbers remain tokens, other wrong text does not.

    Raises `WgslError` for a forbidden character, and for too many errors.
    """
    text = source.text
    _refuse_forbidden(source)
    errors: list[WgslError] = []
    tokens: list[Token] = []
    lists = _TemplateLists(tokens)
    pending = lists.pending
    kinds: dict[str, str] = {}  # of the words and symbols seen so far
    position = 0
    while True:
        for found in _TOKEN.finditer(text, position):  # the pattern matches any character
            word, position = found[found.lastindex or 0], found.end()
            start = position - len(word)
            kind = kinds.get(word)
            if kind is None:
                group = found.lastgroup
                if group == "integer":
                    kind = NUMBER
                elif group == "number":
                    kind = NUMBER
                    if glued := _GLUED.match(text, position):
                        position = _not_a_number(source, start, glued.end(), errors)
                        tokens.append(Token(NUMBER, "0", start, position))
                        break  # go on there
                elif group == "word":
                    before = tokens[-1].kind if tokens else ""
                    if before == "@" and word in RESERVED_WORDS:  # the parser knows the attributes
                        kind = IDENTIFIER
                    else:
                        kind = kinds[word] = _word_kind(word, Span(source, start, position), errors, before)
                elif group == "symbol":
                    kind = kinds[word] = word
                elif group == "line_comment":
                    continue
                elif group == "comment":
                    position = _comment_end(source, start, errors)
                    break
                elif group == "end":
                    tokens.append(Token(END, "", start, start))
                    return tokens, errors
                else:
                    errors.append(_illegal(source, start))
                    if len(errors) >= _MOST_ERRORS:
                        raise WgslError(*(diagnostic for error in errors for diagnostic in error.diagnostics))
                    continue
            if (pending or kind == "<") and kind in _LIST_SYMBOLS and lists.ends_at(kind):
                position = start + 1
                tokens.append(Token(TEMPLATE_END, ">", start, position))
                if word != ">":
                    break
                continue
            tokens.append(Token(kind, word, start, position))


class _TemplateLists:
    """The spec's template list discovery: finds the `<` and `>` that delimit template lists.

    `pending` has the unclosed candidates, as (index of the `<` token, nesting depth there). Depths count from anywhere,
    since they are only compared with each other: where no candidate is open, only a `<` needs processing. The spec
    reads code points; reading whole tokens instead keeps the `=` of a `<=` from counting as an assignment.
    """

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.pending: list[tuple[int, int]] = []
        self.depth = 0

    def ends_at(self, symbol: str) -> bool:
        """Process the next symbol; return whether its `>` ends a template list, after marking the start of that."""
        if symbol == "<":
            if self.tokens and self._can_be_parameterized(self.tokens[-1]):
                self.pending.append((len(self.tokens), self.depth))
        elif symbol[0] == ">" and self.pending and self.pending[-1][1] == self.depth:
            opener = self.pending.pop()[0]
            self.tokens[opener].kind = TEMPLATE_START
            return True
        elif symbol in _NEVER_IN_EXPRESSIONS:
            self.pending.clear()
            self.depth = 0
        elif symbol in ("(", "["):
            self.depth += 1
        elif symbol in (")", "]"):
            self._reject_open_candidates()
            self.depth = max(0, self.depth - 1)
        elif symbol in ("&&", "||"):
            self._reject_open_candidates()
        return False

    @staticmethod
    def _can_be_parameterized(token: Token) -> bool:
        return token.kind == IDENTIFIER or (token.kind in KEYWORDS and token.kind not in ("true", "false"))

    def _reject_open_candidates(self) -> None:
        while self.pending and self.pending[-1][1] >= self.depth:
            self.pending.pop()


_NEVER_IN_EXPRESSIONS = frozenset([*"={;:", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="])
_LIST_SYMBOLS = _NEVER_IN_EXPRESSIONS | frozenset([*"<>()[]", ">=", ">>", "&&", "||"])


_NAMING = frozenset(["let", "var", "const", "fn", "struct", "alias", "override", "."])


def _word_kind(word: str, span: Span, errors: list[WgslError], before: str) -> str:
    """Return the kind of a word, with an error where it is neither a name nor a keyword.

    `before` is the kind of the token before: after `let`, a reserved word is meant as a name.
    """
    if word in KEYWORDS or word == "_":
        return word
    if word in RESERVED_WORDS:
        is_name = before in _NAMING and word != "mut"
        hint = "give it another name" if is_name else HABITS.get(word, "give it another name")
        errors.append(fail("reserved-word", f"'{word}' is a reserved word", span, hint=hint))
    elif not word.isidentifier():  # Python's identifiers are WGSL's: XID_Start or '_', then XID_Continue
        end = next(i for i in range(1, len(word) + 1) if not word[:i].isidentifier())
        errors.append(_illegal(span.source, span.start + end - 1))
    elif word.startswith("__"):
        message = f"the name '{word}' starts with two underscores, which no name may"
        errors.append(fail("reserved-name", message, span, hint=HABITS.get(word, "give it another name")))
    return IDENTIFIER


def _not_a_number(source: Source, start: int, end: int, errors: list[WgslError]) -> int:
    """Add the error of a number that goes on in a wrong way; return where it ends."""
    written = Span(source, start, end)
    shown = written.text[:40]
    errors.append(fail("malformed-number", f"'{shown}' is not a number", written, hint=number(shown)))
    return end


def _comment_end(source: Source, start: int, errors: list[WgslError]) -> int:
    """Return the offset after the block comment at `start`; comments nest."""
    depth = 0
    for mark in _COMMENT_MARK.finditer(source.text, start):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    errors.append(fail("unterminated-comment", "block comment has no end", Span(source, start, start + 2)))
    return len(source.text)


def _refuse_forbidden(source: Source) -> None:
    """Raise `WgslError` for characters that cannot be anywhere, even in a comment."""
    at = source.text.find("\0")
    if at >= 0:
        raise fail("illegal-character", "null character (U+0000) in the program text", Span(source, at, at + 1))
    if source.text.startswith(BYTE_ORDER_MARK):
        hint = "save the file as UTF-8 without it"
        raise fail("byte-order-mark", "the text starts with a byte order mark", Span(source, 0, 1), hint=hint)


def _illegal(source: Source, at: int) -> WgslError:
    character = source.text[at]
    shown = f"'{character}' " if character.isprintable() else ""
    name = unicodedata.name(character, "unnamed").lower()
    message = f"character {shown}(U+{ord(character):04X}, {name}) cannot stand here"
    hint = CHARACTERS.get(character)
    return fail("illegal-character", message, Span(source, at, at + 1), hint=hint)
