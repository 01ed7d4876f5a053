"""Edits of a text at many places: what is inserted where, and where a changed character was before."""

from __future__ import annotations

import pytest

from bankshot.sim.wgsl.source import Source, Span
from bankshot.sim.wgsl.text_edits import Edits, Replacement, original_offset, replaced

TEXT = "abcdef"
REPLACED = {
    "nothing": ([], "abcdef", [0, 1, 2, 3, 4, 5, 6]),
    "an insertion": ([(2, 2, "XY")], "abXYcdef", [0, 1, 2, 2, 2, 3, 4, 5, 6]),
    "at the start": ([(0, 0, "XY")], "XYabcdef", [0, 0, 0, 1, 2, 3, 4, 5, 6]),
    "at the end": ([(6, 6, "XY")], "abcdefXY", [0, 1, 2, 3, 4, 5, 6, 6]),
    "as long as before": ([(1, 3, "XY")], "aXYdef", [0, 1, 1, 3, 4, 5, 6]),
    "longer": ([(1, 3, "XYZ")], "aXYZdef", [0, 1, 1, 1, 3, 4, 5, 6]),
    "shorter": ([(1, 4, "X")], "aXef", [0, 1, 4, 5, 6]),
    "a deletion": ([(1, 4, "")], "aef", [0, 4, 5, 6]),
    "two": ([(1, 2, "X"), (4, 5, "YZ")], "aXcdYZf", [0, 1, 2, 3, 4, 4, 5, 6]),
    "two, the later first": ([(4, 5, "YZ"), (1, 2, "X")], "aXcdYZf", [0, 1, 2, 3, 4, 4, 5, 6]),
    "beside each other": ([(1, 2, "XY"), (2, 4, "Z")], "aXYZef", [0, 1, 1, 2, 4, 5, 6]),
    "two insertions at one place": ([(2, 2, "X"), (2, 2, "Y")], "abXYcdef", [0, 1, 2, 2, 2, 3, 4, 5, 6]),
    "all": ([(0, 6, "X")], "X", [0, 6]),
}


@pytest.mark.parametrize("name", REPLACED)
def test_replaced_text_and_where_its_characters_were(name):
    changes, text, offsets = REPLACED[name]
    replacements = [Replacement(*each) for each in changes]
    assert replaced(TEXT, replacements) == text
    assert [original_offset(replacements, offset) for offset in range(len(offsets))] == offsets


def edited(text: str, *edits: tuple[str, str, str, str]) -> str:
    """`text` after edits: the name of a method, the piece that it concerns, and the texts."""
    source, made = Source(text, "k.wgsl"), Edits()
    for kind, piece, before, after in edits:
        start = text.index(piece)
        span = Span(source, start, start + len(piece))
        match kind:
            case "around":
                made.around(span, before, after)
            case "after":
                made.after(span, after)
            case "before":
                made.before(span, before)
            case _:
                made.at(start, before)
    return made.apply(text)


EDITED = {
    "x = a + b;": {
        "x = f(a) + b;": [("around", "a", "f(", ")")],
        "x = g(f(a) + b);": [("around", "a", "f(", ")"), ("around", "a + b", "g(", ")")],
        "x = g(a + f(b));": [("around", "a + b", "g(", ")"), ("around", "b", "f(", ")")],
        "y; x = a + b; z;": [("after", "x = a + b", "", "; z"), ("before", "x = a + b", "y; ", "")],
        "y; f(x) = a + b;": [("around", "x", "f(", ")"), ("before", "x = a + b", "y; ", "")],
        "x = a + f(b); z;": [("after", "x = a + b", "", "; z"), ("around", "b", "f(", ")")],
        "x = a !f(+ b);": [("around", "+ b", "f(", ")"), ("at", "+", "!", "")],
        "x = {f(a)}[g( + b)];": [("around", " + b", "[g(", ")]"), ("around", "a", "{f(", ")}")],
    },
    "return(a);": {"return f((a));": [("around", "(a)", "f(", ")")], "return[(a)];": [("around", "(a)", "[", "]")]},
    "if(a){}": {"if f((a)){}": [("around", "(a)", "f(", ")")]},
    "1+(a);": {"1+f((a));": [("around", "(a)", "f(", ")")]},
}
CASES = [(text, made, edits) for text, rows in EDITED.items() for made, edits in rows.items()]


@pytest.mark.parametrize(("text", "made", "edits"), CASES, ids=[made for _, made, _ in CASES])
def test_insertions_around_nested_spans(text, made, edits):
    assert edited(text, *edits) == made
    assert edited(text, *reversed(edits)) == made
