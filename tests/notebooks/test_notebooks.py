"""The notebooks: they import and never define, hold no outputs, run to the end, and are true where they say figures."""

import ast
import json
from functools import cache

import pytest

from tests.conftest import ROOT

pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install 'bankshot[notebooks]'")

from bankshot.oracle.gpu_counters.timeline import sizes_of, timeline
from bankshot.oracle.reports.figures import Drawing

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
DOCUMENTS = ["000", "001", "002", "003", "004"]


def cells(path, kind):
    return ["".join(c["source"]) for c in json.loads(path.read_text("utf-8"))["cells"] if c["cell_type"] == kind]


@cache
def executed(path):
    """The names that a notebook leaves, and what its cells show, run one after the other in one namespace."""
    names, shown = {}, []
    for text in cells(path, "code"):
        tree = ast.parse(text)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, str(path), "exec"), names)
        if last is not None:
            shown.append(eval(compile(ast.Expression(last.value), str(path), "eval"), names))
    return names, shown


def test_there_is_one_for_each_document():
    assert [path.name[:3] for path in NOTEBOOKS] == DOCUMENTS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_it_is_a_notebook_without_outputs(path):
    book = json.loads(path.read_text("utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in book["cells"]}) == len(book["cells"])
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_it_imports_and_never_defines(path):
    defining = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
    for text in cells(path, "code"):
        assert not [node for node in ast.walk(ast.parse(text)) if isinstance(node, defining)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_every_figure_is_drawn(path):
    _, shown = executed(path)
    assert len(shown) == len(cells(path, "code")) - 1  # all but the imports
    for figure in shown:
        assert isinstance(figure, Drawing)
        assert figure._repr_png_().startswith(b"\x89PNG")
        assert all(axis.has_data() for axis in figure.axes)


# ---- what the texts say ----


def names_of(document):
    return executed(NOTEBOOKS[DOCUMENTS.index(document)])[0]


def counts(trace, variable, kind):
    sites = [s for s in trace.run.sites if s.name == variable and s.kind == kind]
    return sum(s.shared_wavefronts for s in sites) // sum(s.shared_requests for s in sites)


def test_two_slots_are_never_written_and_read_between_the_same_barriers():
    double, single = names_of("000")["double"], names_of("000")["single"]
    line = timeline(double.requests, sizes_of(double.run.pipeline))
    assert line.regions == {"a_tile": 2, "b_tile": 2}
    for array in ("a_tile", "b_tile"):
        for slot in range(2):
            written, read = ({each.epoch for each in line.of(array, slot, kind)} for kind in ("write", "read"))
            assert written
            assert read
            assert not written & read
    assert (double.epochs, single.epochs) == (1 + 7, 1 + 12)


def test_each_slice_is_loaded_a_barrier_ahead_of_its_use():
    double = names_of("000")["double"]
    assert {r.epoch for r in double.of("X", "load")} == set(range(6))  # 96 / 16 slices
    assert {r.epoch for r in double.of("a_tile", "load")} == set(range(1, 7))


def test_padding_halves_what_a_store_and_a_load_take():
    padded = names_of("000")["padded"]
    assert {pitch: (counts(t, "a_tile", "store"), counts(t, "a_tile", "load")) for pitch, t in padded.items()} == {
        16: (4, 2),
        17: (2, 1),
    }


def test_the_swap_saves_lines_and_no_sectors():
    from bankshot.oracle.notebook_runs import ran

    found = {}
    for name in names_of("001")["twins"]:
        loads = [s for s in ran("matmul_at.toml", name, K=128, N=128, M=96).sites if (s.name, s.kind) == ("X", "load")]
        requests = sum(s.global_requests for s in loads)
        found[name] = [sum(getattr(s, c) for s in loads) / requests for c in ("global_sectors", "global_lines")]
    assert found == {"matmul_at": [16, 4], "matmul_at_unswapped": [16, 16]}


def test_every_rung_does_the_same_operations():
    assert {run.counters["flops"] for run in names_of("004")["runs"].values()} == {2_097_152}
