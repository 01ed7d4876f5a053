"""Checks that no value could have failed: they are no proof, and every report says so."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main
from tests.scaling import manifest

# Which way a lane goes depends on roundings where `x` is at least LEAST, so that nothing is derived for it.
SHADER = """\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(32)
fn twice(@builtin(global_invocation_id) id: vec3<u32>) {
    let v = x[id.x];
    if id.x >= FIRST && exp(v) >= exp(v * 1.0) { y[id.x] = v; } else { y[id.x] = 2 * v; }
}
"""
REFERENCE = """\
import numpy as np
def wrong(arrays, dims):
    return {"y": np.full(dims["N"], 1e9)}
def right(arrays, dims):
    n = np.arange(dims["N"])
    return {"y": np.where(n >= FIRST, 1, 2) * arrays["x"].astype(np.float64)}
"""
GIVE = 'where no finding says why, give a tolerance in [expect]: y = { rule = "close", rtol = 1e-3, atol = 1e-3 }'


@pytest.fixture
def kernel(tmp_path):
    def write(first, reference="", rule=""):
        (tmp_path / "twice.wgsl").write_text(SHADER.replace("FIRST", f"{first}u"))
        (tmp_path / "refs.py").write_text(REFERENCE.replace("FIRST", str(first)))
        named = f'reference = "refs.py:{reference}"\n' if reference else ""
        expect = f"\n[expect]\n{rule}\n" if rule else ""
        (tmp_path / "twice.toml").write_text(manifest("", expect, source="twice.wgsl", kernel=named, n=64))
        return tmp_path / "twice.toml"

    return write


def audit(path, *more):
    return CliRunner().invoke(main, ["audit", str(path), *more])


def output_of(done, number=0):
    (case,) = json.loads(done.stdout)["cases"]
    output = case["outputs"][number]
    return done.exit_code, {name: output[name] for name in ("ok", "held", "unbounded", "mismatches")}


def test_a_reference_without_bounds_proves_nothing(kernel):
    path = kernel(0, "wrong")
    done = audit(path, "--no-gpu", "--json")
    assert output_of(done) == (1, {"ok": False, "held": False, "unbounded": 64, "mismatches": 0})
    text = audit(path, "--no-gpu").stdout
    assert "  UNCHECKED y against reference refs.py:wrong: 64 elements, rule derived: no element has a bound" in text
    assert GIVE in text
    assert "UNCHECKED y" in audit(path, "--no-gpu", "--format", "table").stdout


def test_report_files_say_unchecked(kernel, tmp_path):
    audit(kernel(0, "right"), "--no-gpu", "--html", str(tmp_path / "a.html"), "--sarif", str(tmp_path / "a.sarif"))
    (result,) = [
        r for r in json.loads((tmp_path / "a.sarif").read_text())["runs"][0]["results"] if r["level"] == "error"
    ]
    assert result["ruleId"] == "output"
    assert GIVE in result["message"]["text"]
    assert ">unchecked</span> <b>y</b>" in (tmp_path / "a.html").read_text()


def test_tests_fail_on_unchecked_outputs(kernel):
    words = ["-p", "bankshot.oracle.pytest_plugin.hooks", "-p", "no:cacheprovider", str(kernel(0, "right"))]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "BANKSHOT_REQUIRE_GPU": "0"}
    done = subprocess.run([sys.executable, "-m", "pytest", *words], capture_output=True, text=True, env=environment)
    assert done.returncode == 1
    assert f"no element has a bound, so any value passes\n           {GIVE}\n" in done.stdout


@pytest.mark.parametrize(("reference", "code"), [("right", 0), ("wrong", 1)])
def test_a_tolerance_makes_the_check_count(kernel, reference, code):
    done = audit(kernel(0, reference, 'y = { rule = "close", rtol = 1e-3, atol = 1e-3 }'), "--no-gpu", "--json")
    assert done.exit_code == code
    assert output_of(done)[1]["held"]


def test_elements_without_a_bound_are_unchecked(kernel, tmp_path):
    path = kernel(40, "right")
    done = audit(path, "--no-gpu", "--json", "--sarif", str(tmp_path / "a.sarif"))
    assert output_of(done) == (1, {"ok": False, "held": True, "unbounded": 24, "mismatches": 0})
    assert "24 without a bound, where any value passes" in audit(path, "--no-gpu").stdout
    results = json.loads((tmp_path / "a.sarif").read_text())["runs"][0]["results"]
    unchecked = next(each for each in results if each["ruleId"] == "unchecked")
    assert unchecked["level"] == "error"
    assert "y: 24 of 64 elements unchecked (reference checks 40)" in unchecked["message"]["text"]


def test_a_gpu_alone_proves_nothing_either(adapter, kernel):
    done = audit(kernel(0), "--json")
    assert output_of(done) == (1, {"ok": False, "held": False, "unbounded": 64, "mismatches": 0})
    assert "gpu = { y = { rule" in audit(kernel(0)).stdout


def test_an_unbounded_gpu_check_beside_a_reference_is_reported_but_passes(adapter, kernel):
    path = kernel(0, "right", 'y = "close"')
    done = audit(path, "--json")
    assert output_of(done, 1) == (0, {"ok": True, "held": False, "unbounded": 64, "mismatches": 0})
    assert "  -        y against wgpu" in audit(path).stdout


def test_a_difference_without_bounds_is_not_compared(adapter, kernel):
    done = CliRunner().invoke(main, ["diff", str(kernel(0))])
    assert done.exit_code == 1
    assert "y: 64 of 64 elements unchecked" in done.stdout
    assert "diff: 0 of 1 cases clean; 1 unchecked; nothing compared" in done.stdout
