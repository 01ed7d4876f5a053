"""Workgroups beyond the 256 invocations that WebGPU grants by default: they run, and reports say that they must be
requested explicitly."""

from dataclasses import replace

import numpy as np
import pytest

import bankshot
from bankshot.oracle.audit import Options, audit
from bankshot.oracle.judge.coverage import CaseOutcome
from bankshot.oracle.manifests.manifest_loader import load
from bankshot.oracle.wgpu_client import adapter_choice, gpu_run

REVERSE = """
var<workgroup> t: array<u32, LANES>;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(LANES)
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) group: vec3u) {
    t[i] = i;
    workgroupBarrier();
    y[group.x * LANES + i] = t[LANES - 1 - i];
}
"""
MANIFEST = """
[kernel]
source = "reverse.wgsl"
dispatch = [3]
[bind.y]
dtype = "u32"
shape = [3072]
init = "zeros"
"""


@pytest.mark.parametrize("lanes", [257, 512, 1000, 1024])
def test_they_run_with_all_probes(lanes):
    text = REVERSE.replace("LANES", str(lanes))
    done = bankshot.simulate(text, grid=3, bindings={"y": np.zeros(3 * lanes, np.uint32)})
    assert (done.outputs["y"] == np.tile(np.arange(lanes)[::-1], 3)).all()
    assert done.findings == []
    torn = text.replace("workgroupBarrier();", "")
    found = bankshot.simulate(torn, grid=3, bindings={"y": np.zeros(3 * lanes, np.uint32)}).findings
    assert [f.code for f in found] == ["race"]
    assert found[0].lanes == (lanes - 1, 0)


@pytest.mark.parametrize("size", ["1025", "2, 1024", "1, 1, 65"])
def test_larger_ones_are_refused(size):
    text = REVERSE.replace("@workgroup_size(LANES)", f"@workgroup_size({size})").replace("LANES", "1024")
    with pytest.raises(bankshot.WgslError, match=r"limit of (1024|64)"):
        bankshot.simulate(text, grid=1, bindings={"y": np.zeros(3072, np.uint32)})


@pytest.fixture
def case(tmp_path):
    (tmp_path / "reverse.wgsl").write_text(REVERSE.replace("LANES", "1024"))
    (tmp_path / "reverse.toml").write_text(MANIFEST)
    kernel = load(tmp_path / "reverse.toml")
    return kernel.case(kernel.shapes[0])


def test_an_audit_says_that_they_must_be_requested(case):
    result = audit(case, Options(gpu=False))
    asked = {str(check.exceeded) for check in result.limits}
    assert "invocations per workgroup: 1,024 is over maxComputeInvocationsPerWorkgroup, which is 256" in asked
    assert not result.differs


@pytest.mark.usefixtures("adapter")
def test_they_are_compared_with_a_gpu_that_grants_them(case):
    if adapter_choice.abilities(adapter_choice.number_of(None)).limits["max-compute-invocations-per-workgroup"] < 1024:
        pytest.skip("the adapter has no workgroups of 1,024")
    result = audit(case, Options())
    assert [(check.output, check.ok) for check in result.outputs] == [("y", True)]


@pytest.mark.usefixtures("adapter")
def test_a_gpu_that_does_not_grant_them_is_skipped(case, monkeypatch):
    has = adapter_choice.abilities(adapter_choice.number_of(None))
    limits = {**has.limits, "max-compute-invocations-per-workgroup": 256}
    monkeypatch.setattr(gpu_run, "abilities", lambda number: replace(has, limits=limits))
    result = audit(case, Options())
    assert result.outputs == ()
    words = "not compared with wgpu: invocations per workgroup: 1,024 is over maxComputeInvocationsPerWorkgroup"
    assert any(note.startswith(words) for note in result.notes)
    assert result.outcome is CaseOutcome.UNCHECKED
