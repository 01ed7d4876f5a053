"""A run as a Python object: its one line, HTML, copies, typed totals, and what can be bound."""

import array
import copy
import ctypes
import pickle
import re

import numpy as np
import pytest

import bankshot

SHADER = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> tile: array<f32, 1024>;
@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) i: u32) {
    tile[i * 32u] = x[i];
    workgroupBarrier();
    y[i] = 2.0 * tile[i * 32u];
}
"""
X = np.arange(32, dtype=np.float32)


def made(x=X, text=SHADER, **options):
    return bankshot.simulate(text, grid=1, bindings={"x": x, "y": np.zeros(32, np.float32)}, **options)


def test_a_run_is_one_line():
    assert repr(made()) == "<run of shader.wgsl: most excess at shader.wgsl:7, 32 wavefronts per request>"
    racy = repr(made(text=SHADER.replace("workgroupBarrier();", "").replace("tile[i * 32u];", "tile[0];")))
    assert "race, " in racy
    assert "\n" not in racy


def test_html_has_totals_lines_and_findings_escaped_and_in_both_themes():
    shown = made(text=SHADER.replace("workgroupBarrier();", "if i < 40u { }").replace("tile[i * 32u];", "tile[0];"))
    page = shown._repr_html_()
    assert "color-scheme: light dark" in page
    assert "race" in page
    assert "tile[i * 32u] = x[i];" in page
    assert "<script" not in page
    assert not re.search(r"https?://", page)
    tags = re.findall(r"<(/?)(\w+)", page)
    assert {tag for _, tag in tags} <= {"div", "p", "code", "pre", "table", "tr", "td", "th"}
    assert sum(not close for close, _ in tags) == sum(bool(close) for close, _ in tags)


@pytest.mark.parametrize("workgroups", ["all", "classes"])
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda run: pickle.loads(pickle.dumps(run))])
def test_a_copy_has_the_same_results_and_can_be_asked_for_more(duplicate, workgroups):
    run = made(workgroups=workgroups)
    other = duplicate(run)
    np.testing.assert_array_equal(other.outputs["y"], 2 * X)
    assert other.counters == run.counters
    assert [site.counts() for site in other.sites] == [site.counts() for site in run.sites]
    assert other.coverage == run.coverage
    assert str(other.writer("y", 3)) == str(run.writer("y", 3))
    np.testing.assert_array_equal(other.bounds["y"], run.bounds["y"])
    assert other.reach == {"x": 128, "y": 128}
    assert repr(other) == repr(run)


def test_a_copy_keeps_findings_and_the_outputs_of_its_schedule():
    text = SHADER.replace("workgroupBarrier();", "").replace("tile[i * 32u];", "tile[31 * 32];")
    run = made(text=text, schedule="subgroup-serial")
    other = pickle.loads(pickle.dumps(run))
    np.testing.assert_array_equal(other.outputs["y"], run.outputs["y"])
    assert [finding.render() for finding in other.findings] == [finding.render() for finding in run.findings] != []


def test_totals_are_typed_attributes():
    run = made()
    assert (run.total.shared_wavefronts, run.total.shared_ideal_wavefronts, run.excess_wavefronts) == (64, 2, 62)
    assert (run.total.barriers, run.excess_sectors, run.utilization.lane_efficiency) == (1, 0, 1.0)


def test_outputs_as_arrays():
    bound = {"x": X, "y": bytes(128)}
    run = bankshot.simulate(SHADER, grid=1, bindings=bound)
    np.testing.assert_array_equal(run.output("y").view(np.float32), 2 * X)
    np.testing.assert_array_equal(made().output("y"), 2 * X)
    with pytest.raises(KeyError):
        run.output("x")


class HasArray:
    def __array__(self, dtype=None, copy=None):
        return X


class HasDlpack:
    def __dlpack__(self, **options):
        return X.__dlpack__(**options)

    def __dlpack_device__(self):
        return X.__dlpack_device__()


class Elsewhere:
    def __array__(self, dtype=None, copy=None):
        raise TypeError("this tensor is on cuda:0")


@pytest.mark.parametrize(
    "value",
    [HasArray(), HasDlpack(), array.array("f", X.tolist()), (ctypes.c_float * 32)(*X.tolist()), X.tolist(), tuple(X)],
    ids=["__array__", "DLPack", "array", "ctypes", "list", "tuple"],
)
def test_arrays_of_other_libraries_and_lists_can_be_bound(value):
    np.testing.assert_array_equal(made(value).outputs["y"], 2 * X)


def test_an_array_that_cannot_be_read_is_an_error_of_its_binding():
    with pytest.raises(bankshot.WgslError, match=r"x is a Elsewhere that cannot be read: this tensor is on cuda:0"):
        made(Elsewhere())


def test_a_list_that_fills_no_whole_element_is_an_error():
    text = SHADER.replace("x: array<f32>", "x: array<vec2<f32>>").replace("x[i]", "x[i].x")
    with pytest.raises(bankshot.WgslError, match="x has 3 values"):
        made([1.0, 2.0, 3.0], text)
