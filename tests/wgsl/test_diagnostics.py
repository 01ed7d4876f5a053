"""The small parts of messages: counts, quotations and suggestions."""

from __future__ import annotations

import pytest

from bankshot.sim.wgsl.diagnostics import counted, did_you_mean, first_words


@pytest.mark.parametrize(
    ("least", "most", "words"),
    [
        (0, 0, "0 arguments"),
        (1, 1, "1 argument"),
        (2, 2, "2 arguments"),
        (0, 1, "0 or 1 arguments"),
        (1, 2, "1 or 2 arguments"),
        (1, 3, "1 to 3 arguments"),
        (2, 9, "2 to 9 arguments"),
    ],
)
def test_counts(least, most, words):
    assert counted(least, most, "argument") == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("  a + b  ", "a + b"),
        ("a +\n b", "a +"),
        ("a\r\nb", "a"),
        ("", ""),
        ("x" * 40, "x" * 40),
        ("x" * 41, "x" * 39 + "…"),
    ],
)
def test_first_words(text, words):
    assert first_words(text) == words


LONG = "a" * 99
MANY = [f"name{i}" for i in range(1000)]


@pytest.mark.parametrize(
    ("name", "candidates", "suggested"),
    [
        ("lenght", ["width", "length"], "length"),
        ("LENGTH", ["lengths", "length"], "length"),
        ("sum", ["product", "rest"], None),
        ("sum", [], None),
        (f"{LONG}b", [f"{LONG}c"], f"{LONG}c"),
        (f"{LONG}bb", [f"{LONG}bc"], None),  # names of more than 100 characters are not compared
        ("scale", [*MANY, "scales"], None),  # nor more than 1000 candidates,
        ("scale", [*("x" * 40 for _ in MANY), "scales"], "scales"),  # of those with a similar length
        ("scale", [*MANY, "SCALE"], "SCALE"),
    ],
)
def test_suggestions(name, candidates, suggested):
    assert did_you_mean(name, iter(candidates)) == (suggested and f"did you mean '{suggested}'?")
