"""Texts whose float operations keep their results: what they compute, and what they prove about a driver."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bankshot
from bankshot.oracle import wgpu_client
from bankshot.oracle.diagnosis.adapter_reruns import reorders_floats
from bankshot.oracle.diagnosis.causes import diagnose
from bankshot.oracle.diagnosis.kept_floats import DATA, kept
from bankshot.oracle.diagnosis.mismatch import Mismatch
from bankshot.oracle.judge.case_run import simulate
from bankshot.oracle.judge.diff import Options, diff
from bankshot.oracle.manifests.manifest import Case
from bankshot.oracle.manifests.manifest_loader import load

X = np.random.default_rng(5).normal(size=192).astype(np.float32)
HEAD = """\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
fn square(a: f32) -> f32 { return a * a - a; }
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let a = x[id.x]; let b = x[id.x + 64]; let c = x[id.x + 128];
"""
REORDERED = ("(a + b) - a", "a * 3.3 * 5.1", "a + 1.1 + 2.2", "a * b + a * c")
OTHERS = (
    "dot(vec3f(a, b, c), vec3f(b, c, 1.1)) + dot(vec2f(a, b), vec2f(c))",
    "(vec2f(a, b) * 3.3 * 5.1).y",
    "square(a * b) * 2.2 - fma(a, b, c)",
)


def text_of(*statements: str, head: str = HEAD) -> str:
    return head + "\n".join(f"    {s}" for s in statements) + "\n}\n"


def kept_text(text: str) -> str:
    made = kept(bankshot.check(text).pipeline())
    assert made is not None
    return made


@pytest.mark.parametrize("body", [
    *(f"y[id.x] = {value};" for value in (*REORDERED, *OTHERS)),
    "var s = a; s += b; s -= a; y[id.x] = s;",
    "var s = vec2f(a); for (var i = 0.0; i < 2.5; i += 1.0) { s *= b; s.x += i; } y[id.x] = s.x + s.y;",
    "let p = &y[id.x]; *p += a; *p *= 3.3;",
])  # fmt: skip
def test_a_kept_text_computes_the_same(body: str) -> None:
    text, given = text_of(body), {"x": X, "y": np.ones(64, np.float32)}
    plain = bankshot.simulate(text, grid=1, bindings=given, device="lavapipe", probes="none")
    again = bankshot.simulate(kept_text(text), grid=1, bindings={**given, **DATA}, device="lavapipe", probes="none")
    assert again.outputs["y"].tobytes() == plain.outputs["y"].tobytes()


@pytest.mark.parametrize("value", REORDERED)
def test_lavapipe_reorders_unless_results_are_kept(value: str) -> None:
    text, given = text_of(f"y[id.x] = {value};"), {"x": X, "y": np.ones(64, np.float32)}
    ours = bankshot.simulate(text, grid=1, bindings=given, device="lavapipe", probes="none").outputs["y"]
    on_gpu = wgpu_client.run(kept_text(text), None, (1, 1, 1), {**given, **DATA}, adapter="llvmpipe")
    assert on_gpu.outputs["y"].tobytes() == ours.tobytes()
    reordered = wgpu_client.run(text, None, (1, 1, 1), given, adapter="llvmpipe").outputs["y"]
    assert reordered.tobytes() != ours.tobytes()


def test_half_precision_is_kept_too() -> None:
    text = "enable f16;\n" + text_of(
        "let h = vec3h(f16(a), f16(b), f16(c)); y[id.x] = f32(dot(h, h.yzx) - h.x * 3.3h);"
    )
    given = {"x": X, "y": np.ones(64, np.float32)}
    ours = bankshot.simulate(text, grid=1, bindings=given, device="lavapipe", probes="none").outputs["y"]
    again = bankshot.simulate(kept_text(text), grid=1, bindings={**given, **DATA}, device="lavapipe", probes="none")
    assert again.outputs["y"].tobytes() == ours.tobytes()
    on_gpu = wgpu_client.run(kept_text(text), None, (1, 1, 1), {**given, **DATA}, adapter="llvmpipe").outputs["y"]
    assert on_gpu.tobytes() == ours.tobytes()


def test_integers_need_no_kept_text() -> None:
    head = HEAD.replace("array<f32>", "array<u32>").replace("a * a - a", "a")
    text = text_of("y[id.x] = (a + b) * c;", head=head)
    assert kept(bankshot.check(text).pipeline()) is None


# ---- verdicts -------------------------------------------------------------------------------------------

MANIFEST = """\
[kernel]
source = "k.wgsl"
dispatch = [1]
[bind.x]
dtype = "f32"
shape = [192]
init = "normal"
[bind.y]
dtype = "f32"
shape = [64]
init = "zeros"
"""


@pytest.fixture
def case(tmp_path: Path) -> Callable[..., Case]:
    def make(value: str, expect: str = "") -> Case:
        (tmp_path / "k.wgsl").write_text(text_of(f"y[id.x] = {value};"))
        (tmp_path / "k.toml").write_text(f"{MANIFEST}{expect}")
        kernel = load(tmp_path / "k.toml")
        return kernel.case(kernel.shapes[0])

    return make


HALVES = """\
enable f16;
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> h: array<f16>;
@compute @workgroup_size(1)
fn main() {
    let a = vec2h(h[0], h[1]) * 3.3h;
    h[0] = dot(a, a.yx) + a.x;
    y[0] = y[1] * 3.3 + f32(a.y);
    y[1] = dot(vec3f(y[0]), vec3f(y[1]));
}
"""


def test_each_type_of_float_has_its_functions() -> None:
    made = kept_text(HALVES)
    declared = re.findall(r"(?m)^fn (bankshot_\w+)", made)
    assert sorted(declared) == ["bankshot_dot2_f16", "bankshot_dot3_f32", "bankshot_kept_f16", "bankshot_kept_f32",
                                "bankshot_kept_vec2_f16", "bankshot_kept_vec3_f32"]  # fmt: skip
    assert "@group(0) @binding(3) var<storage, read> bankshot_zero" in made
    given = {"y": np.array([0.7, 1.3], np.float32), "h": np.array([0.3, 2.5], np.float16)}
    runs = [bankshot.simulate(text, grid=1, bindings=given | more) for text, more in ((HALVES, {}), (made, DATA))]
    for name in ("y", "h"):
        assert runs[0].outputs[name].tobytes() == runs[1].outputs[name].tobytes()


@pytest.mark.parametrize("value", REORDERED)
def test_a_driver_that_reorders_is_within_bounds(case, value: str) -> None:
    done = diff(case(value), "llvmpipe", Options())
    (check,) = done.outputs
    assert done.ok
    assert check.comparison.rule.name == "derived"
    assert check.allowed.startswith("the driver reorders floats; wgpu agrees bit for bit")


def test_exact_stays_available_by_name(case) -> None:
    done = diff(case(REORDERED[0], '[expect]\ngpu.y = { rule = "exact" }\n'), "llvmpipe", Options())
    (check,) = done.outputs
    assert not done.ok
    assert check.comparison.rule.name == "exact"
    assert check.likely is not None
    assert check.likely.name == "order of operations"
    assert "the driver reorders floats" in check.likely.evidence


def against(case: Case, theirs: np.ndarray, again: Callable[[str | None], np.ndarray]) -> Mismatch:
    return Mismatch(case, simulate(case, "lavapipe", "none"), "y", theirs, on_gpu=again)


def test_a_small_difference_that_stays_is_no_reordering(case) -> None:
    """Within bounds, but the driver computes it again where it cannot reorder."""
    made = case(REORDERED[3])
    theirs = np.nextafter(simulate(made, "lavapipe", "none").outputs["y"], np.float32(9))
    m = against(made, theirs, lambda text: theirs)
    assert m.within_bounds
    assert reorders_floats(m) is None
    assert diagnose(m).name == "unknown"


def test_a_large_difference_is_not_within_bounds(case) -> None:
    made = case(REORDERED[3])
    ours = simulate(made, "lavapipe", "none").outputs["y"]
    m = against(made, ours * np.float32(1.001), lambda text: ours)
    assert not m.within_bounds
