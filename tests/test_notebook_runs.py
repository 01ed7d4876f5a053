"""The cases that notebooks and figures run."""

import numpy as np
import pytest

from bankshot.oracle import notebook_runs
from bankshot.oracle.errors import UsageError


def test_a_case_has_the_sizes_and_overrides_that_it_is_given():
    case = notebook_runs.case("matmul.toml", "matmul", M=64, overrides={"TK_PAD": 16})
    assert (case.overrides["TK_PAD"], case.shape.dims["M"]) == (16, 64)
    usual = notebook_runs.case("matmul.toml", "matmul")
    assert {**usual.overrides, "TK_PAD": 16} == case.overrides != usual.overrides


DOUBLE = """\
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) { y[id.x] *= 2u; }
"""


def test_your_own_kernel_runs_on_the_arrays_that_it_is_given():
    mine = notebook_runs.own(DOUBLE, (2,), y=np.arange(8, dtype=np.uint32))
    assert mine.grid == (2, 1, 1)
    assert notebook_runs.counted(mine).outputs["y"].tolist() == [0, 2, 4, 6, 8, 10, 12, 14]


def test_an_edit_changes_the_text_that_is_run_and_no_file():
    mine = notebook_runs.own(DOUBLE, (2,), y=np.arange(8, dtype=np.uint32))
    tripled = notebook_runs.edited(mine, [("*= 2u", "*= 3u")])
    assert notebook_runs.counted(tripled).outputs["y"].tolist() == [0, 3, 6, 9, 12, 15, 18, 21]
    assert notebook_runs.counted(mine).outputs["y"].tolist() == [0, 2, 4, 6, 8, 10, 12, 14]


def test_an_edit_of_a_text_that_is_not_there_is_wrong_use():
    mine = notebook_runs.own(DOUBLE, (2,), y=np.arange(8, dtype=np.uint32))
    with pytest.raises(UsageError, match=r"own has no text `\*= 4u`"):
        notebook_runs.edited(mine, [("*= 4u", "*= 3u")])


def test_a_text_is_edited_after_preprocessing():
    one = notebook_runs.case("matmul.toml", "matmul_single", M=4, K=4, N=4)  # SINGLE is defined
    other = notebook_runs.edited(one, [("const SLOTS = 1u;", "const SLOTS = 2u;")])
    before, after = (notebook_runs.counted(each).counters["workgroup_memory_bytes"] for each in (one, other))
    assert after == 2 * before


def test_rates_come_from_the_tables_of_one_device_and_case(tmp_path, monkeypatch):
    monkeypatch.setattr(notebook_runs, "SHADERS", tmp_path / "shaders")
    rows = ["device,kernel,case,median_us", "A GPU,a,M=1,2.0", "A GPU,b,M=1,4.0", "A GPU,c,M=2,4.0", "other,d,M=1,4.0"]
    (tmp_path / "times_x.csv").write_text("\n".join(rows))
    assert notebook_runs.rates("times_*.csv", "gpu", "M=1", 8.0) == {"a": pytest.approx(4e6), "b": pytest.approx(2e6)}
    assert notebook_runs.rates("none_*.csv", "gpu", "M=1", 8.0) == {}
