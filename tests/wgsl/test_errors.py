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
