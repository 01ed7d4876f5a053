"""The notebooks: they import and never define, hold the outputs that they make, and are true where they say figures."""

import ast
import json
from base64 import b64decode
from functools import cache

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install 'bankshot[notebooks]'")

from bankshot.oracle.gpu_counters.timeline import sizes_of, timeline
from bankshot.oracle.reports.figures import Drawing
from bankshot.sim.run.executed_instructions import by_class
from tools import notebooks

NOTEBOOKS = notebooks.books()
LESSONS = ["000", "001", "002", "003", "004", "005"]  # one for each document, and one about your own kernel


def read(path):
    return json.loads(path.read_text("utf-8"))


def texts(path, kind):
    return ["".join(cell["source"]) for cell in notebooks.cells(read(path), kind)]


@cache
def executed(path):
    """The names that a notebook leaves, and what its cells show, run one after the other in one namespace."""
    return notebooks.run(read(path), str(path))


@pytest.fixture(scope="module", autouse=True)
def _leaves_nothing():
    """Of figures and runs, half a million objects, at which each search for garbage would look from then on."""
    yield
    executed.cache_clear()


def test_there_is_one_for_each_document_and_a_lesson():
    assert [path.name[:3] for path in NOTEBOOKS] == LESSONS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_it_is_a_notebook(path):
    book = read(path)
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in book["cells"]}) == len(book["cells"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_it_opens_with_a_question_and_ends_with_its_answer(path):
    first, *_, last = texts(path, "markdown")
    assert first.splitlines()[0].startswith("# ")
    assert first.splitlines()[0].endswith("?")
    assert last.startswith("## Answer\n\n")
    assert read(path)["cells"][-1]["cell_type"] == "markdown"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_its_outputs_are_those_that_it_makes(path):
    """By their texts and digests: pixels differ between versions of matplotlib and fonts."""
    _, shown = executed(path)
    for count, (cell, value) in enumerate(zip(notebooks.cells(read(path), "code"), shown, strict=True), 1):
        assert cell["execution_count"] == count
        made = [] if value is None else [repr(value)]
        stored = ["".join(output["data"]["text/plain"]) for output in cell["outputs"]]
        assert stored == made, f"cell {cell['id']} is out of date; run `python -m tools.notebooks`"
        for output in cell["outputs"]:
            assert b64decode(output["data"]["image/png"]).startswith(b"\x89PNG")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_it_imports_and_never_defines(path):
    defining = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
    for text in texts(path, "code"):
        assert not [node for node in ast.walk(ast.parse(text)) if isinstance(node, defining)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_every_figure_is_drawn(path):
    _, (imports, *shown) = executed(path)
    assert imports is None
    for figure in shown:
        assert isinstance(figure, Drawing)
        assert all(axis.has_data() for axis in figure.axes)


def test_outputs_are_stored_in_the_notebook(tmp_path):
    cells = ["from bankshot.oracle.reports.figures import Drawing", "figure = Drawing()\nfigure"]
    code = [{"cell_type": "code", "id": text[:4], "metadata": {}, "source": [text], "outputs": []} for text in cells]
    path = tmp_path / "book.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "id": "m", "source": ["# Why?"]}, *code]}))
    notebooks.store(path)
    _, first, second = read(path)["cells"]
    assert (first["execution_count"], first["outputs"]) == (1, [])
    (output,) = second["outputs"]
    assert (output["execution_count"], output["output_type"]) == (2, "execute_result")
    assert "".join(output["data"]["text/plain"]).startswith("drawn: ")


# ---- what the texts say ----


def names_of(document):
    return executed(NOTEBOOKS[LESSONS.index(document)])[0]


def answer_of(document):
    """The last cell, as one line."""
    return " ".join(texts(NOTEBOOKS[LESSONS.index(document)], "markdown")[-1].split())


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


def test_the_swizzle_of_b_frees_its_banks_and_takes_no_memory():
    written, swizzled = names_of("000")["layouts"].values()
    assert [counts(written, "b_tile", kind) for kind in ("store", "load")] == [4, 2]
    assert [counts(swizzled, "b_tile", kind) for kind in ("store", "load")] == [1, 1]
    memory = [one.run.counters["workgroup_memory_bytes"] for one in (written, swizzled)]
    assert memory == [16_896, 16_896]
    assert np.array_equal(*(np.asarray(one.run.outputs["Y"]) for one in (written, swizzled)))
    assert "stores take 4 wavefronts and whose loads 2; a swizzle brings both to 1, for no memory" in answer_of("000")
    assert "16,896 bytes instead of 8,448: 512 more than" in answer_of("000")
    assert names_of("000")["single"].run.counters["workgroup_memory_bytes"] == 8_448 == (16_384 + 512) / 2


def test_the_swap_saves_lines_and_no_sectors():
    found = {}
    for name, run in names_of("001")["runs"].items():
        loads = [s for s in run.sites if (s.name, s.kind) == ("X", "load")]
        requests = sum(s.global_requests for s in loads)
        found[name] = [sum(getattr(s, c) for s in loads) / requests for c in ("global_sectors", "global_lines")]
    assert found == {"swapped": [16, 4], "unswapped": [16, 16], "forward": [4, 4]}
    assert {counts(one, "a_tile", "store") for one in names_of("001")["swapped"].values()} == {16, 2}


def instructions_of(run):
    return sum(row.executions for row in run.instructions)


def test_the_answer_about_utilization_is_true():
    runs = names_of("002")["kernels"]
    kernels = {name: run.counters for name, run in runs.items()}
    assert kernels["q4_fused"]["working_invocations"] * 256 == 5
    issued = [f"{round(instructions_of(runs[name]) / 64):,}" for name in ("q4_fused_2d", "q4_fused")]
    assert "{} instructions an output with workgroups of 32 x 8 instead of {}".format(*issued) in answer_of("002")
    assert kernels["published"]["working_invocations"] == 1
    two, one = (names_of("002")[name].counters for name in ("project", "both"))
    assert one["barriers"] == two["barriers"]  # of one of the two passes
    assert f"{1 - one['global_bytes'] / 2 / two['global_bytes']:.0%} fewer bytes" in answer_of("002")


def test_the_answer_about_the_ideas_is_true():
    tiles = {name: run.counters for name, run in names_of("003")["tiles"].items()}
    tiled, plain, published = (f"{tiles[name]['global_sectors']:,}" for name in ("fp16_tiled", "fp16", "published"))
    assert f"{tiled} sectors instead of {plain}" in answer_of("003")
    assert f"touches {published}" in answer_of("003")
    assert f"{tiles['fp16_double']['barriers']} instead of {tiles['fp16_tiled']['barriers']}" in answer_of("003")
    unpacked = [instructions_of(run) for run in names_of("003")["unpacked"].values()]
    fewer = (f"{unpacked[0] / unpacked[1]:.1f}", f"{unpacked[2] / unpacked[3]:.1f}")
    assert "{} times fewer instructions with int8 and {} times fewer with nf4".format(*fewer) in answer_of("003")
    tokens = {name: run.counters for name, run in names_of("003")["tokens"].items()}
    assert tokens["fp16"]["barriers"] / tokens["fp16_subgroup"]["barriers"] == 7
    assert min(tokens, key=lambda name: tokens[name]["global_sectors"]) == "published"


def test_the_answer_about_the_ladder_is_true():
    runs = {name: run.counters for name, run in names_of("004")["runs"].items()}
    requests = [f"{runs[name]['global_requests']:,}" for name in ("row_from_y", "unrolled_8x8")]
    assert "{} with the row from y and {} with 8 x 8".format(*requests) in answer_of("004")
    asked = max(counters["flops"] / counters["global_bytes"] for counters in runs.values())
    assert f"the highest has {asked:.2f}" in answer_of("004")
    assert runs["flat"]["flops"] / names_of("004")["least"] == 16


def test_the_lesson_ends_with_right_kernels_without_conflicts():
    names = names_of("005")
    assert names["right"]
    runs = [names["after"][name] for name in ("as written", "padded", "swizzled")]
    written, padded, swizzled = (run.counters for run in runs)
    assert [each["shared_wavefronts"] for each in (written, padded, swizzled)] == [16_896, 1_024, 1_024]
    assert padded["shared_wavefronts"] == padded["shared_ideal_wavefronts"]
    assert "takes 1,024 instead of 16,896" in answer_of("005")
    more = padded["workgroup_memory_bytes"] - written["workgroup_memory_bytes"]
    assert f"The pad costs {more:.0f} bytes of workgroup memory and no instruction" in answer_of("005")
    assert swizzled["workgroup_memory_bytes"] == written["workgroup_memory_bytes"]
    integers = [by_class(run.instructions)["integer"][0] for run in runs]
    added = [each - integers[0] for each in integers]
    assert added == [0, 0, swizzled["shared_requests"]]  # an exclusive or for each access
    assert f"one instruction for each access: {added[2]:,} more, as many as the wavefronts that are left" in answer_of(
        "005"
    )
    assert added[2] == swizzled["shared_wavefronts"]


def test_every_rung_does_the_same_operations():
    assert {run.counters["flops"] for run in names_of("004")["runs"].values()} == {2_097_152}
