"""Every rendered error of the reading room: `tests/files/errors/<case>.wgsl` beside `<case>.err`."""

import pickle
from pathlib import Path

import pytest

from bankshot.sim.wgsl.diagnostics import WgslError
from bankshot.sim.wgsl.preprocess.preprocessor import preprocess
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
