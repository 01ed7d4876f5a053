"""Every rendered error of the reading room: `tests/files/errors/<case>.wgsl` beside `<case>.err`."""

import pickle
from pathlib import Path

import pytest

from bankshot.sim.wgsl.diagnostics import WgslError
from bankshot.sim.wgsl.preprocess.preprocessor import preprocess
from bankshot.sim.wgsl.source import Source
from bankshot.sim.wgsl.syntax.parser import parse

FOLDER = Path(__file__).parent.parent / "files" / "errors"
CASES = sorted(FOLDER.glob("*.wgsl"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_rendered_error(case, golden, monkeypatch):
    monkeypatch.chdir(FOLDER)  # messages name included files as they were found: from here
    with pytest.raises(WgslError) as caught:
        parse(preprocess(case.read_text(encoding="utf-8"), case.name, base_dir="."))
    golden(f"{caught.value}\n", case.with_suffix(".err"))


def test_every_snapshot_has_its_case():
    assert {path.stem for path in FOLDER.glob("*.err")} == {case.stem for case in CASES}


def test_an_error_gets_from_one_process_to_another():
    with pytest.raises(WgslError) as caught:
        parse(preprocess("fn f( {}", "a.wgsl"))
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert [d.message for d in again.diagnostics] == [d.message for d in caught.value.diagnostics]


SEVERAL = """fn a() { let x = ; let y = ; }
struct S { a b }
#
fn b() { if true { }
@compute @workgroup_size(1) fn c() { let 'q' = 1; }
var<private> v: = 3;
const ok = 1;
@compte fn d() { let z = ; }
alias T = ;
"""


def test_the_first_syntax_error_of_each_declaration_is_reported() -> None:
    with pytest.raises(WgslError) as refused:
        parse(Source(SEVERAL))
    places = [error.span.place[1:] for error in refused.value.diagnostics if error.span]
    assert places == [(1, 18), (2, 14), (3, 1), (5, 42), (6, 17), (8, 2), (8, 26), (9, 11)]


# Texts, and the lines with an error. A declaration after an error starts with a keyword in the first column, after a
# '}' or ';' outside of braces, or with one that functions do not have.
RECOVERED = {
    "a var in braces": ("fn f() {\n let = 1;\nvar x = 1;\n let = 2; }\nfn g() { let = 3; }", [2, 5]),
    "a var in the braces of braces": ("fn f() { let = 1; { let x = 1;\nvar y = 1; }\nvar z = 1; }\nvar = 3;", [1, 4]),
    "a var after a missing brace": ("fn f()\n let x = 1; }\nvar = 3;", [2, 3]),
    "a var after one too many": ("fn f() { let = 1; } }\nvar = 3;", [1, 2]),
    "a var after a semicolon": ("const = 1;\nvar = 3;", [1, 2]),
    "a var that is not in the first column": ("const = 1;\n var = 3;\nvar = 4;", [1, 3]),
    "a var that follows neither": ("const a 1 +\nvar = 3;\nconst b = ;", [1, 3]),
    "a name in the first column": ("const = 1;\nx = 3;\nvar = 4;", [1, 3]),
    "an attribute": ("const = 1;\n@group(0) var = 3;", [1, 2]),
    "an attribute in braces": ("fn f() { let = 1;\n@diagnostic(off, a) if x { let = 2; } }\nvar = 3;", [1, 3]),
    "a function in braces": ("fn f() { let = 1;\n fn g() { let = 2; }", [1, 2]),
    "a struct in braces": ("fn f() { let = 1;\n struct { }\n", [1, 2]),
    "an assertion": ("const = 1;\nconst_assert ;\n", [1, 2]),
    "braces before the error": ("fn f() { { } { let = 1; }\nvar x = 1; }\nvar = 3;", [1, 3]),
}


@pytest.mark.parametrize(("text", "lines"), RECOVERED.values(), ids=RECOVERED)
def test_after_an_error_the_next_declaration_is_read(text: str, lines: list[int]) -> None:
    with pytest.raises(WgslError) as refused:
        parse(Source(text))
    assert [error.span.line for error in refused.value.diagnostics if error.span] == lines


SHADERS = sorted((Path(__file__).parents[2] / "shaders").glob("**/*.wgsl"))
PLAIN = [path for path in SHADERS if "#" not in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("dropped", [*";(){}[],:="])
def test_one_token_that_is_missing_is_one_error(dropped: str) -> None:
    """At most: some shaders remain valid."""
    counts = [_errors(path.read_text(encoding="utf-8"), dropped) for path in PLAIN]
    assert set(counts) <= {0, 1}
    assert counts.count(1) > len(counts) // 2


def _errors(text: str, dropped: str) -> int:
    """Count the errors of a text without one of its tokens."""
    at = text.find(dropped, len(text) // 3)
    try:
        parse(Source(text[:at] + text[at + 1 :]))
    except WgslError as error:
        return len(error.diagnostics)
    return 0
