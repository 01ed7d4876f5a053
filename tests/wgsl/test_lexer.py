"""Tokens: their kinds, their places, and what is no token."""

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankshot.sim.wgsl.diagnostics import WgslError
from bankshot.sim.wgsl.source import Source
from bankshot.sim.wgsl.syntax.lexer import (
    END,
    IDENTIFIER,
    KEYWORDS,
    NUMBER,
    RESERVED_WORDS,
    TEMPLATE_END,
    TEMPLATE_START,
    lex,
)


def texts(text: str) -> list[str]:
    return [token.text for token in lex(Source(text))][:-1]


def with_lists_marked(text: str) -> str:
    """The tokens with template list delimiters shown as ⟨ and ⟩."""
    marks = {TEMPLATE_START: "⟨", TEMPLATE_END: "⟩"}
    return " ".join(marks.get(token.kind, token.text) for token in lex(Source(text))[:-1])


def code_of(text: str) -> str:
    with pytest.raises(WgslError) as caught:
        lex(Source(text))
    return caught.value.diagnostics[0].code


SYMBOLS = """
    & && -> @ / ! [ ] { } : , = == != > >= >> < <= << % - -- . + ++ | || ( ) ; * ~ _ ^
    += -= *= /= %= &= |= ^= >>= <<=
"""
NUMBERS = """
    0 1u 123i 0x1F 0Xabu 0f 1h 1. .5 00012. 1.5e-3f 1e5 2.E+4h 0x.8 0x1. 0xa.fp+2 0x1P+4f 0X1.fp-4h 0x3p2
"""
NAMES_OF_THE_SPEC = "Δέλτα réflexion Кызыл 𐰓𐰏𐰇 朝焼け سلام 검정 שָׁלוֹם गुलाबी փիրուզ"


@pytest.mark.parametrize("text", SYMBOLS.split())
def test_every_syntactic_token_stands_alone(text):
    assert [token.kind for token in lex(Source(text))] == [text, END]


@pytest.mark.parametrize("text", NUMBERS.split())
def test_numbers(text):
    assert [(token.kind, token.text) for token in lex(Source(text))] == [(NUMBER, text), (END, "")]


@pytest.mark.parametrize(
    "text", ["012", "1abc", "1.5.2", "0x", "0x.p2", "0x1p", "1.1eh", "0xgg", "1u2", "0x3h", "1.e+f"]
)
def test_malformed_numbers(text):
    assert code_of(text) == "malformed-number"


@pytest.mark.parametrize("name", [*NAMES_OF_THE_SPEC.split(), "_a", "a_", "a__b", "x1"])
def test_names(name):
    assert [token.kind for token in lex(Source(name))] == [IDENTIFIER, END]


def test_keywords_and_reserved_words():
    assert len(KEYWORDS) == 26
    assert all(lex(Source(word))[0].kind == word for word in KEYWORDS)
    assert {code_of(word) for word in RESERVED_WORDS} == {"reserved-word"}
    assert code_of("__a") == "reserved-name"


@pytest.mark.parametrize("text", ["a$", "😀", "a😀", "'x'", '"', "#", "`", "\\", "a\0", "/* \0 */", "\x01", "\u0301a"])
def test_illegal_characters(text):
    assert code_of(text) == "illegal-character"


def test_comments_nest_and_end():
    assert texts("a/* x /* y */ z */b//c\nd") == ["a", "b", "d"]
    assert texts("a//") == ["a"]
    assert texts("/*/ */a") == ["a"]
    assert code_of("/* /* */") == "unterminated-comment"


@pytest.mark.parametrize("line_break", ["\n", "\v", "\f", "\r", "\r\n", "\x85", "\u2028", "\u2029"])
def test_every_line_break_ends_a_comment_and_a_line(line_break):
    source = Source(f"// x{line_break}b")
    (name, _) = lex(source)
    assert name.text == "b"
    assert source.place(name.start)[1:] == (2, 1)


@pytest.mark.parametrize("blank", " \t\n\v\f\r\x85\u200e\u200f\u2028\u2029")
def test_blanks_separate(blank):
    assert texts(f"a{blank}b") == ["a", "b"]


def test_a_byte_order_mark_is_an_error_that_names_it():
    assert code_of("\ufeffa") == "byte-order-mark"
    assert code_of("a \ufeff") == "illegal-character"


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        # From the text and the notes of the spec's section "Template Lists".
        ("vec3<f32>", "vec3 ⟨ f32 ⟩"),
        ("var<storage,read_write>", "var ⟨ storage , read_write ⟩"),
        ("array<vec4<f32>>", "array ⟨ vec4 ⟨ f32 ⟩ ⟩"),
        ("A ( B < C, D > ( E ) )", "A ( B ⟨ C , D ⟩ ( E ) )"),
        ("array<i32,select(2,3,a>b)>", "array ⟨ i32 , select ( 2 , 3 , a > b ) ⟩"),
        ("a[b<d]>()", "a [ b < d ] > ( )"),
        ("A<B<<C>", "A ⟨ B << C ⟩"),
        ("A<B<=C>", "A ⟨ B <= C ⟩"),
        ("A<(B>=C)>", "A ⟨ ( B >= C ) ⟩"),
        ("A<(B!=C)>", "A ⟨ ( B != C ) ⟩"),
        ("A<(B==C)>", "A ⟨ ( B == C ) ⟩"),
        ("a<b || c>d", "a < b || c > d"),
        ("a<b && c>d", "a < b && c > d"),
        # Splitting, clearing, and what cannot start a list.
        ("a<b>>=c", "a ⟨ b ⟩ >= c"),
        ("a<b>==c", "a ⟨ b ⟩ == c"),
        ("a<b<c>>=d", "a ⟨ b ⟨ c ⟩ ⟩ = d"),
        ("var<a>x:b<c>=d", "var ⟨ a ⟩ x : b ⟨ c ⟩ = d"),
        ("a<b<c>>>d", "a ⟨ b ⟨ c ⟩ ⟩ > d"),
        ("a>>b>>=c", "a >> b >>= c"),
        ("a<b=c>", "a < b = c >"),
        ("a<b;c>", "a < b ; c >"),
        ("a<b{c>", "a < b { c >"),
        ("a<b:c>", "a < b : c >"),
        ("a<b+=c>", "a < b += c >"),
        ("1<b>c", "1 < b > c"),
        ("1f<b>c", "1f < b > c"),
        (")<b>c", ") < b > c"),
        ("true<b>c", "true < b > c"),
        ("_<b>c", "_ < b > c"),
        ("a /* x */ < /* > */ b >", "a ⟨ b ⟩"),
        ("f(a<b, c)>d", "f ( a < b , c ) > d"),
        ("a<(b||c)>", "a ⟨ ( b || c ) ⟩"),
        ("array<i32,3<=(4)>", "array ⟨ i32 , 3 <= ( 4 ) ⟩"),
    ],
)
def test_template_lists(text, marked):
    assert with_lists_marked(text) == marked


_PIECES = [
    "a",
    "vec",
    "<",
    ">",
    ">=",
    ">>",
    "=",
    "==",
    "1.5f",
    "0x3",
    "(",
    ")",
    "//x\n",
    "/*y/*z*/*/",
    " ",
    "\n",
    ";",
    "&&",
]
_GAP = re.compile(r"(?:\s|[\u200e\u200f]|//[^\n]*|/\*.*\*/)*", re.DOTALL)


@given(st.lists(st.sampled_from(_PIECES)).map(" ".join))
def test_tokens_and_gaps_are_the_text(text):
    end, rebuilt = 0, ""
    for token in lex(Source(text)):
        assert token.text == text[token.start : token.end]
        gap = text[end : token.start]
        assert _GAP.fullmatch(gap)
        rebuilt += gap + token.text
        end = token.end
    assert rebuilt == text


@given(st.text())
def test_any_text_is_lexed_or_refused(text):
    with suppress(WgslError):
        assert lex(Source(text))[-1].kind == END
