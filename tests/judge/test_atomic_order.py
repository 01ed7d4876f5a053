"""Outputs that depend on the order of atomic operations are not mismatches with a GPU, and are reported."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import bankshot
from bankshot.oracle.audit import Audit, Options, audit
from bankshot.oracle.judge import case_run
from bankshot.oracle.manifests.manifest import Case
from bankshot.oracle.manifests.manifest_loader import load

SHADER = """\
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> count: atomic<u32>;
@group(0) @binding(2) var<storage, read_write> odd: array<u32>;
@compute @workgroup_size(64)
fn compact(@builtin(global_invocation_id) id: vec3<u32>) {
    if x[id.x] % 2u == 1u {
        odd[atomicAdd(&count, 1u)] = x[id.x];
    }
}
"""
MANIFEST = """\
[kernel]
source = "compact.wgsl"
dispatch = [4]
{reference}

[bind]
x = {{ dtype = "u32", shape = [256], init = "arange" }}
count = {{ dtype = "u32", shape = [1], init = "zeros" }}
odd = {{ dtype = "u32", shape = [256], init = "zeros" }}

[expect]
allow = [{allowed}]
"""


@pytest.fixture
def case(tmp_path):
    def make(allowed="", reference="") -> Case:
        (tmp_path / "compact.wgsl").write_text(SHADER)
        (tmp_path / "r.py").write_text(
            "import numpy as np\n"
            "def backwards(arrays, dims):\n"
            "    return {'odd': np.append(np.arange(255, 0, -2), np.zeros(128)).astype('u4')}\n"
        )
        (tmp_path / "compact.toml").write_text(MANIFEST.format(allowed=allowed, reference=reference))
        kernel = load(tmp_path / "compact.toml")
        return kernel.case(kernel.shapes[0])

    return make


@pytest.fixture
def another_order(monkeypatch):
    """A GPU that stores the odd numbers in reverse order."""
    begin = case_run.begin_on_gpu

    def backwards(*arguments, **options):
        done = begin(*arguments, **options).done()
        outputs = dict(done.outputs)
        outputs["odd"] = np.append(np.sort(done.outputs["odd"][:128])[::-1], done.outputs["odd"][128:])
        return SimpleNamespace(done=lambda: replace(done, outputs=outputs))

    monkeypatch.setattr(case_run, "begin_on_gpu", backwards)


def told(result: Audit) -> list[str]:
    return [check.finding.code for check in result.findings]


@pytest.mark.usefixtures("adapter", "another_order")
@pytest.mark.parametrize("allowed", ["", '"atomic-order"'])
def test_another_order_is_no_mismatch(case, allowed):
    result = audit(case(allowed), Options())
    assert told(result) == ["atomic-order"]
    assert [(check.output, check.ok) for check in result.outputs] == [("count", True)]
    assert any(note.startswith("odd is not compared with wgpu") for note in result.notes)
    assert result.outcome == ("unchecked" if allowed else "failed")


@pytest.mark.usefixtures("adapter", "another_order")
def test_outputs_that_depend_on_no_order_are_compared_with_the_gpu(case, monkeypatch):
    monkeypatch.setattr(f"{__name__}.SHADER", SHADER.replace("odd[atomicAdd(&count, 1u)]", "odd[id.x / 2u]"))
    result = audit(case(), Options())
    assert told(result) == []
    assert [check.output for check in result.outputs if not check.ok] == ["odd"]


def test_a_mismatch_with_a_reference_is_named(case):
    result = audit(case(reference='reference = "r.py:backwards"'), Options(gpu=False))
    (check,) = result.outputs
    assert check.likely is not None
    assert check.likely.name == "order of atomics"
    assert "run mirrored, all 256 elements agree" in check.likely.evidence


def test_the_order_is_reported_at_the_operation_whose_result_is_used(tmp_path):
    """Not at the earlier one, whose result is not."""
    text = """\
@group(0) @binding(0) var<storage, read_write> n: atomic<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
    atomicMax(&n, i);
    y[i] = atomicAdd(&n, 1u);
}
"""
    run = bankshot.simulate(text, grid=1, bindings={"n": np.zeros(1, np.uint32), "y": np.zeros(64, np.uint32)})
    (finding,) = [each for each in run.findings if each.code == "atomic-order"]
    assert finding.span.text == "atomicAdd(&n, 1u)"
