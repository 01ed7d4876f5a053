"""Valid WGSL that wgpu refuses: an audit continues without wgpu, and says so."""

import json

import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main
from tests.scaling import manifest

SHADER = """\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(32)
fn twice(@builtin(global_invocation_id) id: vec3<u32>, @builtin(workgroup_index) group: u32) {
    if id.x < arrayLength(&x) { y[id.x] = 2.0 * x[32 * group + id.x % 32]; }
}
"""
REFERENCE = "def twice(arrays, dims):\n    return {'y': 2.0 * arrays['x'].astype('f8')}\n"


@pytest.fixture
def audit(tmp_path, monkeypatch, adapter):
    monkeypatch.delenv("BANKSHOT_REQUIRE_GPU", raising=False)
    (tmp_path / "twice.wgsl").write_text(SHADER)
    (tmp_path / "refs.py").write_text(REFERENCE)
    (tmp_path / "twice.toml").write_text(manifest(source="twice.wgsl", kernel='reference = "refs.py:twice"\n'))
    return lambda *more: CliRunner().invoke(main, ["audit", str(tmp_path / "twice.toml"), *more])


def test_the_simulators_run_is_judged_anyway(audit):
    done = audit("--json")
    (case,) = json.loads(done.stdout)["cases"]
    assert (done.exit_code, [check["against"] for check in case["outputs"]]) == (0, ["reference refs.py:twice"])
    assert case["counters"]["invocations"] == 64
    (note,) = case["notes"]
    assert note.startswith("not compared with wgpu: wgpu ")
    assert "unknown builtin: `workgroup_index`" in note


def test_with_an_adapter_requested_it_is_an_error(audit, adapter, monkeypatch):
    done = audit("--adapter", adapter.name)
    assert (done.exit_code, "unknown builtin: `workgroup_index`" in done.stderr) == (2, True)
    monkeypatch.setenv("BANKSHOT_REQUIRE_GPU", "1")
    assert audit().exit_code == 2
