"""Floats that a kernel stores as the bits of integers, as WGSL has no float atomics: made, compared, printed and
diagnosed as the f32 that they are."""

import json
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from bankshot.oracle.audit import Options, audit
from bankshot.oracle.cli.main import main
from bankshot.oracle.manifests.manifest_loader import load
from bankshot.sim.bindings.binding import Bits

LOOP = """\
var old = atomicLoad(&y[row]);
loop {
    let swap = atomicCompareExchangeWeak(&y[row], old, bitcast<u32>(bitcast<f32>(old) + part));
    if swap.exchanged { break; }
    old = swap.old_value;
}
"""
# y += A x; each workgroup takes SPAN of the columns, and a lane of it a row.
SHADER = """\
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<atomic<u32>>;
@compute @workgroup_size(32)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) row: u32) {
    var part = 0.0;
    for (var k = 8 * group.x; k < 8 * group.x + SPAN; k++) { part += VALUE; }
    LOOP
}
"""
MANIFEST = """\
[kernel]
source = "split.wgsl"
dims = {{ M = 32, K = 32 }}
dispatch = ["K / 8"]
{kernel}

[bind]
a = {{ dtype = "f32", shape = ["M", "K"], init = "normal" }}
x = {{ dtype = "f32", shape = ["K"], init = "normal" }}
y = {{ {y} }}

[expect]
allow = ["atomic-order"]
{expect}
"""
REFERENCE = """\
import numpy as np
from bankshot.oracle.references import Expected
def product(arrays, dims):
    assert arrays["y"].dtype == np.float32
    return {"y": arrays["y"] + arrays["a"].astype(np.float64) @ arrays["x"]}
def bounded(arrays, dims):
    value = product(arrays, dims)["y"]
    size = abs(arrays["a"]).astype(np.float64) @ abs(arrays["x"]) + abs(arrays["y"])
    return {"y": Expected(value, dims["K"] * 2.0**-23 * size)}
"""
Y = 'dtype = "f32", shape = ["M"], init = "normal"'
CLOSE = 'y = { rule = "close", rtol = 1e-5, atol = 1e-5 }'
GIVE = 'y = { rule = "close", rtol = 1e-3, atol = 1e-3 }'


@pytest.fixture
def path(tmp_path):
    def write(reference="product", expect="", y=Y, span="8", value="a[32 * row + k] * x[k]", old="\0", new=""):
        text = SHADER.replace("LOOP\n", LOOP).replace("SPAN", span).replace("VALUE", value)
        (tmp_path / "split.wgsl").write_text(text.replace(old, new))
        (tmp_path / "refs.py").write_text(REFERENCE)
        kernel = f'reference = "refs.py:{reference}"' if reference else ""
        (tmp_path / "split.toml").write_text(MANIFEST.format(kernel=kernel, y=y, expect=expect))
        return tmp_path / "split.toml"

    return write


def audited(path, **options) -> Any:
    kernel = load(path)
    return audit(kernel.case(kernel.shapes[0]), Options(**{"gpu": False, **options}))


def called(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.mark.parametrize(("reference", "expect", "rule"), [("product", CLOSE, "close"), ("bounded", "", "bound")])
@pytest.mark.parametrize(("span", "ok"), [("8", True), ("7", False)])
def test_sums_are_compared_as_floats(path, reference, expect, rule, span, ok):
    result = audited(path(reference, expect, span=span))
    (check,) = result.outputs
    assert (check.ok, check.comparison.rule.name, check.comparison.elements) == (ok, rule, 32)
    assert [each.finding.code for each in result.findings] == ["atomic-order"]


def test_a_difference_is_printed_and_diagnosed_as_floats(path):
    result = audited(path("bounded", span="7"))
    (check,) = result.outputs
    (a, x, y), worst = (result.case.arrays[name] for name in "axy"), check.comparison.worst[0]
    kept = np.arange(32) % 8 < 7
    (row,) = worst.index
    assert worst.actual == pytest.approx(y[row] + a[row, kept].astype(np.float64) @ x[kept], rel=1e-4)
    assert worst.expected == pytest.approx(y[row] + a[row].astype(np.float64) @ x, rel=1e-9)
    assert worst.actual_bits == f"0x{np.float32(worst.actual).view(np.uint32):08x}"
    assert check.likely.name == "missing term"
    assert "without one in 8 along axis" in check.likely.evidence
    assert f"{worst.actual:.9g}" in called("audit", result.case.kernel.path, "--no-gpu").stdout


@pytest.mark.parametrize("word", ["u32", "i32"])
@pytest.mark.parametrize("atomic", [True, False])
def test_words_may_be_of_either_sign_and_need_not_be_atomic(path, word, atomic):
    file = path("bounded", span="select(0u, 32u, group.x == 0)")
    source = file.with_name("split.wgsl")
    text = source.read_text()
    if not atomic:
        plain = "if group.x == 0 { y[row] = bitcast<u32>(bitcast<f32>(y[row]) + part); }"
        text = text.replace(LOOP, plain).replace("atomic<u32>", "u32")
    text = text.replace("bitcast<u32>", f"bitcast<{word}>")
    source.write_text(text.replace("atomic<u32>", f"atomic<{word}>").replace("y: array<u32>", f"y: array<{word}>"))
    (check,) = audited(file).outputs
    assert check.ok


def test_values_and_files_are_given_as_floats(path, tmp_path):
    np.save(tmp_path / "y.npy", np.arange(32, dtype=np.float32) / 4)
    for y in ('dtype = "f32", values = [' + "0.25, " * 32 + "]", 'dtype = "f32", shape = ["M"], file = "y.npy"'):
        result = audited(path("bounded", y=y))
        assert result.outputs[0].ok
        assert result.case.arrays["y"].dtype == result.run.outputs["y"].dtype == np.float32


def test_run_prints_and_saves_floats(path, tmp_path):
    done = called("run", path(), "--save", f"y={tmp_path / 'y.npy'}", "--json")
    saved = np.load(tmp_path / "y.npy")
    assert saved.dtype == np.float32
    (case,) = json.loads(done.stdout)["cases"]
    assert case["outputs"]["y"]["dtype"] == "float32"


# ---- what is not derived -----------------------------------------------------------------------------


@pytest.mark.parametrize("expect", ["", 'y = "derived"'])
def test_derived_bounds_are_refused_with_an_alternative(path, expect):
    done = called("audit", path(expect=expect), "--no-gpu")
    assert done.exit_code == 1
    assert "UNCHECKED y against reference refs.py:product" in done.stdout
    advice = f"no bound is derived for floats kept as bits; give a tolerance in [expect]: {GIVE}, or let the reference"
    assert advice in " ".join(done.stdout.split())


def test_unwritten_words_prove_nothing_about_others(path):
    file = path(old=LOOP, new=f"if row < 16 {{ {LOOP} }}")
    (check,) = audited(file).outputs
    assert (check.ok, check.comparison.unbounded) == (False, 32)


# Each sum is added once, so that order does not matter; exp() is what no two implementations compute alike.
ONCE = {"value": "exp(a[32 * row + k])", "span": "select(0u, 8u, group.x == 0)"}


def test_diff_compares_floats_of_a_gpu(adapter, path):
    done = called("audit", path("", **ONCE), "--json")
    (output,) = json.loads(done.stdout)["cases"][0]["outputs"]
    assert (done.exit_code, output["held"]) == (1, False)
    text = " ".join(called("audit", path("", **ONCE)).stdout.split())
    assert f"no bound is derived for floats kept as bits; give a tolerance in [expect]: gpu = {{ {GIVE} }}" in text
    assert called("audit", path("", f"gpu = {{ {CLOSE} }}", **ONCE)).exit_code == 0


# ---- on a GPU ----------------------------------------------------------------------------------------


def test_sums_of_a_gpu_are_compared_as_floats(any_adapter, path):
    result = audited(path("bounded", f"gpu = {{ {CLOSE} }}"), gpu=True, adapter=any_adapter.name)
    assert [(check.output, check.by_gpu, check.ok) for check in result.outputs] == [
        ("y", False, True),
        ("y", True, True),
    ]


def test_unordered_sums_are_compared_with_the_reference(adapter, path):
    result = audited(path("bounded", 'free = ["y"]'), gpu=True)
    assert [(check.by_gpu, check.ok) for check in result.outputs] == [(False, True), (True, True)]
    assert {check.comparison.rule.name for check in result.outputs} == {"bound"}
    assert called("diff", path("bounded", 'free = ["y"]')).exit_code == 0


# ---- goldens -----------------------------------------------------------------------------------------


def test_goldens_keep_floats(path):
    file = path("bounded", 'golden = "outputs"')
    assert audited(file, update=True).golden.state == "written"
    (kept,) = (file.parent / "golden").glob("*.npz")
    assert np.load(kept)["y"].dtype == np.float32
    assert audited(file).golden.state == "held"
    path("bounded", 'golden = "outputs"', span="7")
    changed = audited(file).golden
    assert changed.state == "changed"
    assert isinstance(changed.outputs[0].comparison.worst[0].actual, float)


# ---- what does not fit -------------------------------------------------------------------------------

IN_STRUCTS = "struct Cell { sum: atomic<u32> }\n@group(0) @binding(2) var<storage, read_write> y: array<Cell>"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"y": Y.replace("f32", "f16")},
            'is f16, and y is array<atomic<u32>>; it takes `dtype = "u32"`, or `dtype = "f32"` for 32-bit floats '
            "that are kept as their bits",
        ),
        (
            {"old": "@group(0) @binding(2) var<storage, read_write> y: array<atomic<u32>>", "new": IN_STRUCTS},
            'is f32, and y is array<Cell>, which holds u32 in a struct; it takes `dtype = "u32"`',
        ),
        (
            {"old": "bitcast<u32>(bitcast<f32>(old) + part)", "new": "old + u32(part)"},
            'is f32, and y is array<atomic<u32>>; it takes `dtype = "u32"`: floats kept as bits are for kernels that '
            "call bitcast, and this one does not",
        ),
    ],
)
def test_types_that_do_not_fit_are_reported(path, changes, message):
    file = path(**changes)
    if "Cell" in message:
        source = file.with_name("split.wgsl")
        source.write_text(source.read_text().replace("y[row]", "y[row].sum"))
    done = called("audit", file, "--no-gpu")
    assert done.exit_code == 2
    assert f"error: {file}: [bind.y] {message}\n" in done.output


def test_a_uniform_of_whole_numbers_holds_no_floats(path):
    text = "var<uniform> n: vec4<u32>;\n@compute"
    file = path("bounded", old="@compute", new=f"@group(0) @binding(3) {text}")
    file.with_name("split.toml").write_text(
        file.read_text().replace("[expect]", 'n = { dtype = "f32", values = [8, 0, 0, 0] }\n[expect]')
    )
    done = called("audit", file, "--no-gpu")
    assert done.exit_code == 2
    assert 'is f32, and n is vec4<u32>; it takes `dtype = "u32"`\n' in done.output


@pytest.mark.parametrize("dtype", ["f32", "u32", "i32"])
def test_only_floats_may_be_kept_as_bits(path, dtype):
    """The others are plain arrays, which fit no variable of another type."""
    kernel = load(path(reference="", y=f'dtype = "{dtype}", shape = ["M"], init = "zeros"'))
    bindings = kernel.case(kernel.shapes[0]).bindings
    assert {name: type(array) for name, array in bindings.items()} == {
        "a": Bits, "x": Bits, "y": Bits if dtype == "f32" else np.ndarray,
    }  # fmt: skip
