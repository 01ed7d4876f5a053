"""Derived bounds against a real implementation and against float64, for every row of the accuracy table."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

import bankshot
from bankshot.oracle import wgpu_client as runner
from bankshot.oracle.cli.main import main
from bankshot.oracle.comparison.compare import compare
from bankshot.oracle.comparison.rules import DERIVED
from bankshot.oracle.errors import UsageError
from bankshot.oracle.judge import output_checks
from bankshot.sim.scalar import OPS
from bankshot.sim.wgsl.builtins import BUILTINS
from tests.scaling import manifest

DTYPES = {"f32": np.float32, "f16": np.float16}
TRUTHS = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atan2": np.arctan2, "atanh": np.arctanh, "clamp": lambda x, y, z: np.minimum(np.maximum(x, y), z),
    "fma": lambda x, y, z: x * y + z, "fract": lambda x: x - np.floor(x), "inverseSqrt": lambda x: 1 / np.sqrt(x),
    "max": np.maximum, "min": np.minimum, "pow": np.power, "quantizeToF16": lambda x: x, "round": np.rint,
    "saturate": lambda x: np.clip(x, 0, 1), "step": lambda x, y: np.where(x <= y, 1.0, 0.0),
}  # fmt: skip
NAMES = sorted(
    row.name
    for row in BUILTINS.values()
    if row.kind == "op"
    and f"{row.op}_f32" in OPS
    and {*OPS[f"{row.op}_f32"].args, OPS[f"{row.op}_f32"].result} == {"f32"}
)
OPERATORS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "%": np.fmod}
SOURCE = """
@group(0) @binding(0) var<storage, read> p: array<{kind}>;
@group(0) @binding(1) var<storage, read_write> y: array<{kind}>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {{
    let n = arrayLength(&y);
    let a = p[id.x];
    let b = p[id.x + n];
    let c = p[id.x + 2u * n];
    y[id.x] = {expression};
}}
"""


def samples(kind, count, decades=10):
    """Around zero, around one, and over so many decades, of either sign."""
    make = np.random.default_rng(11)
    wide = 10 ** make.uniform(-decades / 2, decades / 2, count) * make.choice([-1, 1], count)
    parts = np.concatenate([make.normal(size=count), make.uniform(0, 1.2, size=count), wide])
    return np.clip(make.permutation(parts), -6e4, 6e4).astype(DTYPES[kind])


def simulated(expression, kind, points):
    source = "enable f16;\n" * (kind == "f16") + SOURCE.format(kind=kind, expression=expression)
    bindings = {"p": points, "y": np.zeros(points.size // 3, points.dtype)}
    grid = (bindings["y"].size // 64, 1, 1)
    return (
        bankshot.simulate(source, grid=grid, bindings=bindings, probes="none", device="lavapipe"),
        source,
        grid,
        bindings,
    )


def assert_holds(done, other):
    comparison = compare(done.outputs["y"], other, DERIVED, bound=done.bounds["y"])
    assert comparison.ok, comparison.worst
    assert comparison.unbounded < 0.9 * comparison.elements


CASES = [*((f"{name}({', '.join('abc'[: len(OPS[f'{BUILTINS[name].op}_f32'].args)])})", name) for name in NAMES)]
CASES += [(f"a {symbol} b", symbol) for symbol in OPERATORS]


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize(("expression", "name"), CASES, ids=[name for _, name in CASES])
def test_each_row_of_the_accuracy_table(adapter, expression, name, kind):
    if name == "quantizeToF16" and kind == "f16":
        expression = "a"  # only f32 has it
    done, source, grid, bindings = simulated(expression, kind, samples(kind, 2048))
    arguments = bindings["p"].astype(np.float64).reshape(3, -1)
    function = OPERATORS.get(name) or TRUTHS.get(name) or getattr(np, name)
    with np.errstate(all="ignore"):
        truth = function(*arguments[: getattr(function, "nin", 0) or function.__code__.co_argcount])
    assert_holds(done, truth)
    assert_holds(done, runner.run(source, "main", grid, bindings).outputs["y"])


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize(
    "expression",
    [
        "exp(a * b) / (exp(a) + exp(b) + exp(c))",
        "tanh(a * 0.8 * (1.0 + 0.04 * a * a)) * a",
        "inverseSqrt(a * a + b * b + c * c + 0.001) * a",
        "mix(a, b, smoothstep(0.0, 1.0, c)) * a - b * c",
        "sqrt(abs(a * b - c)) + log(1.0 + abs(b)) * pow(abs(a) + 0.1, 1.5)",
        "a / (1.0 + exp(-a)) * b + c",
        "dot(vec4(a, b, c, 1.0), vec4(b, c, a, a))",
        "length(vec3(a, b, c)) + distance(vec2(a, b), vec2(b, c))",
        "normalize(vec3(a, b, c)).x * determinant(mat2x2(a, b, c, a))",
        "reflect(vec2(a, b), vec2(b, c)).y",
    ],
)
def test_whole_expressions(adapter, expression, kind):
    # Mesa computes 2 * (a * b + a * c) as (2 * a) * (b + c), which may overflow where none of the terms does.
    done, source, grid, bindings = simulated(expression, kind, samples(kind, 2048, decades=3 if kind == "f16" else 10))
    assert_holds(done, runner.run(source, "main", grid, bindings).outputs["y"])


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_large_angles_are_bounded(adapter, name):
    angles = np.random.default_rng(0).uniform(-1, 1, (2048, 3)) * np.array([4.0, 400.0, 40_000.0])
    done, source, grid, bindings = simulated(f"{name}(a)", "f32", angles.reshape(-1).astype(np.float32))
    bound = done.bounds["y"]
    assert np.isfinite(bound).all()
    assert bound.max() < 0.02
    assert_holds(done, runner.run(source, "main", grid, bindings).outputs["y"])


# ---- as a rule -----------------------------------------------------------------------------------------------


def test_the_rule_reports_bound_and_share():
    ours, theirs = np.array([1.0, 2.0], np.float32), np.array([1.25, 2.0], np.float32)
    result = compare(ours, theirs, DERIVED, bound=np.array([0.125, np.inf]))
    (worst,) = result.worst
    assert (result.mismatches, result.unbounded, result.score) == (1, 1, 2.0)
    assert (worst.index, worst.bound, worst.used, worst.actual_bits) == ((0,), 0.125, 2.0, "0x3f800000")
    with pytest.raises(UsageError, match="rule derived needs the error bounds of a simulated run"):
        compare(ours, theirs, DERIVED)


WGSL = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] = exp(x[id.x]) * 2.0; }
"""
MANIFEST = manifest(source="grow.wgsl", kernel='entry = "main"\n', n=128, lanes=64, y="unwritten")


@pytest.fixture
def kernel(tmp_path):
    (tmp_path / "grow.wgsl").write_text(WGSL)
    (tmp_path / "grow.toml").write_text(MANIFEST)
    return tmp_path / "grow.toml"


def diff(kernel):
    result = CliRunner().invoke(main, ["diff", str(kernel), "--json"])
    (case,) = json.loads(result.stdout)["cases"]
    return result.exit_code, case["outputs"][0]


def test_inexact_operations_are_compared_within_bounds(adapter, kernel):
    code, output = diff(kernel)
    assert (code, output["rule"], output["unbounded"]) == (0, {"name": "derived"}, 0)
    assert 0 < output["max_ulp"] < 20


def test_an_implementation_beyond_its_bounds_is_reported(adapter, kernel, monkeypatch):
    honest = runner.begin

    def wrong(*args, **options):
        done = honest(*args, **options).done()
        done.outputs["y"][70] *= np.float32(1 + 1e-4)
        return SimpleNamespace(done=lambda: done)

    monkeypatch.setattr(runner, "begin", wrong)
    code, output = diff(kernel)
    (worst,) = output["worst"]
    assert (code, output["mismatches"], worst["index"], worst["owner"]) == (
        1,
        1,
        [70],
        "workgroup (1, 0, 0), lane 6, line 4",
    )
    assert worst["used"] > 10


def test_decisions_that_depend_on_rounding_are_reported(adapter, kernel):
    wgsl = kernel.with_suffix(".wgsl")
    wgsl.write_text(
        WGSL.replace("y[id.x] =", "if exp(x[id.x]) > exp(x[(id.x + 64u) % 128u] * 0.0) { return; }\n  y[id.x] =")
    )
    code, output = diff(kernel)
    assert code == 0
    assert output["doubts"] == []
    wgsl.write_text(WGSL.replace("y[id.x] =", "if exp(x[id.x]) >= exp(x[id.x] * 1.0) { return; }\n  y[id.x] ="))
    code, output = diff(kernel)
    (doubt,) = output["doubts"]
    assert (code, output["unbounded"], doubt["code"], doubt["count"]) == (1, 128, "rounding", 128)  # nothing was held
    assert (output["ok"], output["held"], output["mismatches"]) == (False, False, 0)


@pytest.mark.parametrize(
    ("body", "theirs", "recomposed"),
    [
        ("y[0] = mix(y[0], y[1], 0.5);", [1, 2], False),
        ("y[0] = mix(y[0], y[1], 0.5);", [1, 3], True),
        ("y[0] = y[0] + y[1];", [1, 3], False),
    ],
)
def test_bits_that_differ_in_one_element_may_come_from_another_expression(body, theirs, recomposed):
    declared = "@group(0) @binding(0) var<storage, read_write> y: array<f32, 2>;"
    pipeline = bankshot.check(f"{declared} @compute @workgroup_size(1) fn main() {{ {body} }}").pipeline()
    ours, theirs = np.array([1, 2], np.float32), np.array(theirs, np.float32)
    assert output_checks._recomposed(SimpleNamespace(pipeline=pipeline), ours, theirs) == recomposed
