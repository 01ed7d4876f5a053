"""References of one's own: functions in a Python file beside the manifest."""

import json

import pytest
from click.testing import CliRunner

from oracle.cli import main
from tests.scaling import manifest

SHADER = """\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(32)
fn twice(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&x) { y[id.x] = 2 * x[id.x]; }
}
"""
REFERENCES = """\
import numpy as np
from oracle.references import Expected

def twice(arrays, dims):
    return {"y": 2 * arrays["x"].astype(np.float64)}

def thrice(arrays, dims):
    return {"y": 3 * arrays["x"]}

def bounded(arrays, dims):
    return {"y": Expected(2 * arrays["x"].astype(np.float64), np.full(dims["N"], 1e-6))}

def short(arrays, dims):
    return {"y": np.zeros(7)}

def raising(arrays, dims):
    return {"y": arrays["z"]}

def alone(arrays, dims):
    return arrays["x"]
"""


@pytest.fixture
def audit(tmp_path):
    def run(reference):
        (tmp_path / "twice.wgsl").write_text(SHADER)
        (tmp_path / "mine").mkdir(exist_ok=True)
        (tmp_path / "mine" / "refs.py").write_text(REFERENCES)
        (tmp_path / "mine" / "broken.py").write_text("def twice(:\n")
        (tmp_path / "twice.toml").write_text(manifest(source="twice.wgsl", kernel=f'reference = "{reference}"\n'))
        return CliRunner().invoke(main, ["audit", str(tmp_path / "twice.toml"), "--no-gpu", "--json"])

    return run


@pytest.mark.parametrize(("function", "rule"), [("twice", "derived"), ("bounded", "bound")])
def test_a_function_beside_the_manifest_is_a_reference(audit, function, rule):
    done = audit(f"mine/refs.py:{function}")
    (case,) = json.loads(done.stdout)["cases"]
    (output,) = case["outputs"]
    assert (done.exit_code, output["rule"]["name"], output["ok"]) == (0, rule, True)


def test_it_is_held_against_the_output(audit):
    done = audit("mine/refs.py:thrice")
    assert (done.exit_code, json.loads(done.stdout)["cases"][0]["outputs"][0]["ok"]) == (1, False)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("mine/none.py:twice", "mine/none.py: there is no such file"),
        ("mine/refs:twice", "a reference of your own lies in a Python file, `file.py:function`"),
        ("mine/refs.py:half", "there is no function half; there are Expected, twice, thrice, bounded"),
        ("mine/refs.py:raising", "raising fails: KeyError: 'z'"),
        ("mine/refs.py:alone", "alone is to return a dict of arrays by output, not ndarray"),
        ("mine/refs.py:short", "gives an array of (7,) for y, which is (40,)"),
        ("mine/broken.py:twice", "mine/broken.py: cannot be run: SyntaxError"),
        ("twice", "no reference is named twice; there are dequant_q4_k, "),
    ],
)
def test_what_is_wrong_with_it_is_said_in_a_sentence(audit, reference, message):
    done = audit(reference)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.output
