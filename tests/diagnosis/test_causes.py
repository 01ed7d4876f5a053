"""Classes that no fault in shaders/ shows: one small kernel each, and the words of what decides it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import bankshot
from bankshot.oracle.audit import Audit, Options, audit
from bankshot.oracle.comparison.rules import BOUND, DERIVED
from bankshot.oracle.diagnosis.adapter_reruns import zeroing
from bankshot.oracle.diagnosis.causes import CLASSES, OF_FINDINGS, cost, diagnose
from bankshot.oracle.diagnosis.displaced_outputs import wrong_factor
from bankshot.oracle.diagnosis.mismatch import UNKNOWN, Diagnosis, Mismatch
from bankshot.oracle.diagnosis.time_limit import OutOfTime, TimeLimit
from bankshot.oracle.judge.case_run import simulate
from bankshot.oracle.manifests.manifest import Case
from bankshot.oracle.manifests.manifest_loader import load
from bankshot.oracle.manifests.reflection import check_module
from bankshot.oracle.references import find
from tests.scaling import manifest

BINDINGS = """\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> w: array<f32, 32>;
@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) i: u32) {
"""
MANIFEST = manifest(
    '\n[expect]\ny = { rule = "ulp", max = 4 }\n',
    source="k.wgsl",
    kernel='reference = "k.py:doubled"\n',
    n=256,
    y="unwritten",
)
REFERENCE = "def doubled(arrays, dims):\n    return {'y': 2.0 * arrays['x'].astype('f8')}\n"


@pytest.fixture
def case(tmp_path: Path) -> Callable[..., Case]:
    """The case of a body that should double x."""

    def make(body: str, reference: str = REFERENCE, manifest: str = MANIFEST) -> Case:
        (tmp_path / "k.wgsl").write_text(f"{BINDINGS}{body}\n}}\n")
        (tmp_path / "k.py").write_text(reference)
        (tmp_path / "k.toml").write_text(manifest)
        kernel = load(tmp_path / "k.toml")
        return kernel.case(kernel.shapes[0])

    return make


def judged(case: Case) -> Audit:
    return audit(case, Options(gpu=False))


@pytest.mark.parametrize(
    ("body", "name", "evidence"),
    [
        (
            "let at = select(id.x, 4096u, id.x == 7u); y[id.x] = 2.0 * x[id.x]; if id.x == 7u { y[at] = 9.0; }",
            "out-of-bounds policy",
            "with accesses out of bounds left out, all 256 elements agree; out-of-bounds, line 6: "
            "store of y[4096], which has 256 elements",
        ),
        ("if id.x % 2u == 0u { y[id.x] = 2.0 * x[id.x]; }", "unwritten output",
         "the 128 elements that differ are unchanged by the run; no invocation wrote them"),
        ("y[id.x] = 2.0 * x[id.x] / (x[id.x] - x[id.x]);", "number out of range", None),
        ("y[id.x] = 3.0 * x[id.x];", "wrong factor",
         "all elements are the expected ones times one number, 1.5 for the first element"),
        ("y[id.x] = f32(id.x);", "missing term", "the 256 elements that differ stay as they are when x changes"),
        ("y[id.x] = -2.0 * x[id.x];", "wrong sign",
         "the 256 elements that differ are minus what reference k.py:doubled gives"),
        ("y[id.x] = 2.0 * x[min(id.x + 1u, 255u)];", "off by one index",
         "255 of the 255 elements that differ are those expected an element after"),
        # Another order changes all elements, and makes none right; that they do not depend on x is a consequence.
        ("w[0] = f32(i); workgroupBarrier(); y[id.x] = w[0] - 99.0;", "race", None),
        ("y[id.x] = x[id.x] * x[id.x];", UNKNOWN, None),
    ],
)  # fmt: skip
def test_a_class_is_decided(case, body: str, name: str, evidence: str | None) -> None:
    (check,) = judged(case(body)).outputs
    assert check.likely is not None
    assert check.likely.name == name
    assert evidence in (None, check.likely.evidence)


SHORT_MANIFEST = manifest(
    '\n[expect]\ny = { rule = "ulp", max = 4 }\n',
    source="k.wgsl",
    kernel='reference = "k.py:doubled"\n',
    n=250,
    y="unwritten",
).replace("ceil(", "floor(")


def test_a_dispatch_without_ceil_is_named(case) -> None:
    made = case("if id.x < arrayLength(&y) { y[id.x] = 2.0 * x[id.x]; }", manifest=SHORT_MANIFEST)
    (check,) = judged(made).outputs
    assert check.likely is not None
    assert str(check.likely) == (
        "likely small grid: no invocation wrote the 26 elements that differ; "
        "with a grid of 8 x 1 x 1, not 7 x 1 x 1, all 250 elements agree"
    )


SUMS = """\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < 12u && id.y < arrayLength(&x) / 12u { y[12u * id.y + id.x] += 0.5 * x[12u * id.y + id.x]; }
}
"""
SUMS_MANIFEST = """\
[kernel]
source = "k.wgsl"
reference = "k.py:doubled"
dims = { M = 10 }
dispatch = [2, "ceil(M / 8)", 4]
[bind.x]
dtype = "f32"
shape = ["M", 12]
init = "normal"
[bind.y]
dtype = "f32"
shape = ["M", 12]
init = "zeros"
"""


# Lanes 16 to 31 load what lanes 0 to 15 store, and come first.
UNORDERED = "if i >= 16u { y[id.x] = w[i - 16u]; } else { w[i] = x[id.x]; y[id.x] = 1.0; }"


def test_a_race_comes_before_the_unwritten_memory_that_it_causes(case) -> None:
    """All elements differ, and other orders change some of them: too few for a race that explains all."""
    made = case(UNORDERED)
    run = simulate(made, "nvidia", ("races", "uninit", "bounds", "nan"))
    assert {finding.code for finding in run.findings} == {"race", "uninit"}
    found = diagnose(Mismatch(made, run, "y", np.full(256, 99, np.float32)))
    assert found.name == "race"
    assert "of the 256 elements that differ change; race, line" in found.evidence


def test_a_race_elsewhere_does_not_hide_unwritten_memory(case) -> None:
    made = case("if i >= 16u { y[id.x] = w[i]; } else { w[i - i] = x[id.x]; y[id.x] = 1.0; }")
    run = simulate(made, "nvidia", ("races", "uninit", "bounds", "nan"))
    assert {finding.code for finding in run.findings} == {"race", "uninit"}
    assert diagnose(Mismatch(made, run, "y", np.full(256, 99, np.float32))).name == "uninitialised memory"


def test_racing_sums_are_no_tail(case, tmp_path: Path) -> None:
    made = case("", manifest=SUMS_MANIFEST)
    (tmp_path / "k.wgsl").write_text(SUMS)  # of large grids, not all workgroups run at once
    (check,) = judged(made).outputs
    assert check.likely is not None
    assert check.likely.name == "race"
    assert check.likely.evidence.startswith("run subgroup-serial, all 120 elements agree")


SWITCH_MANIFEST = """\
[kernel]
source = "k.wgsl"
reference = "k.py:masked"
dims = { N = 100, CAUSAL = 1 }
dispatch = ["ceil(N / 32)"]
[bind.x]
dtype = "f32"
shape = ["N"]
init = "normal"
[bind.y]
dtype = "f32"
shape = ["N"]
init = "unwritten"
[bind.causal]
dtype = "u32"
values = ["CAUSAL"]
"""
SWITCHED = """\
import numpy as np

def masked(arrays, dims):
    x = arrays["x"].astype("f8")
    return {"y": np.where((np.arange(x.size) % 7 > 3) | (dims["CAUSAL"] != 1), x * x, 0)}
"""


def test_a_dim_that_is_no_size_has_no_tail(case, tmp_path: Path) -> None:
    """The mask is one off and used where CAUSAL is 1; at 64, CAUSAL would be a multiple of tiles."""
    made = case("", SWITCHED, SWITCH_MANIFEST)
    masked = "let v = x[id.x]; if id.x < 100u { y[id.x] = select(0.0, v * v, id.x % 7u > 4u || causal != 1u); }"
    binding = "@group(0) @binding(2) var<storage, read> causal: u32;\n"
    (tmp_path / "k.wgsl").write_text(f"{binding}{BINDINGS}{masked}\n}}\n")
    (check,) = judged(made).outputs
    assert not check.ok
    assert check.likely is not None
    assert "CAUSAL" not in check.likely.evidence


def test_numbers_out_of_range_explain_only_what_they_reach(case) -> None:
    manifest = MANIFEST.replace('rule = "ulp", max = 4', 'rule = "derived"')
    body = "y[id.x] = select(x[id.x] * x[id.x], 2.0 * x[id.x] / (x[id.x] - x[id.x]), id.x == 3u);"
    (check,) = judged(case(body, manifest=manifest)).outputs
    assert check.comparison.unbounded == 1
    assert check.likely is not None
    assert check.likely.name == UNKNOWN


def test_a_factor_of_zero_is_called_zero(case) -> None:
    made = case("y[id.x] = 0.0;")
    m = Mismatch(made, simulate(made, "nvidia", "none"), "y", made.arrays["x"])
    assert wrong_factor(m) == "all elements are 0"


def test_nothing_is_rerun_after_an_endless_loop(case) -> None:
    made = case("y[id.x] = x[id.x]; loop { y[id.x] += 1.0; if y[id.x] == 1e30 { break; } }")
    run = bankshot.simulate(check_module(made.kernel), **made.launch, budget=1000)
    m = Mismatch(made, run, "y", made.arrays["x"])
    assert diagnose(m).name == "endless loop"


def test_another_reference_is_a_wrong_kernel(case) -> None:
    manifest = MANIFEST.replace("bind.x", "bind.X").replace("bind.y", "bind.Y").replace("y = {", "Y = {")
    manifest = manifest.replace('init = "normal"', 'init = "normal"\nvar = "x"')
    manifest = manifest.replace('init = "unwritten"', 'init = "unwritten"\nvar = "y"')
    reference = "def doubled(arrays, dims):\n    return {'Y': 2.0 * arrays['X'].astype('f8')}\n"
    (check,) = judged(case("y[id.x] = x[id.x] / (1.0 + exp(-x[id.x]));", reference, manifest)).outputs
    assert str(check.likely) == "likely wrong kernel: the 256 elements that differ are what reference silu gives"


# ---- patience -------------------------------------------------------------------------------------------


class Clock:
    """Returns the given seconds in turn, then always the last."""

    def __init__(self, *seconds: float) -> None:
        self.seconds = list(seconds)

    def __call__(self) -> float:
        return self.seconds.pop(0) if len(self.seconds) > 1 else self.seconds[0]


def impatient(case: Case, *seconds: float) -> Diagnosis:
    """The diagnosis of all elements of y, with a clock that begins at 0."""
    run = simulate(case, "nvidia", ("races", "uninit", "bounds", "nan"))
    reference = find("k.py:doubled", case.kernel.path.parent)
    truth = reference(case.arrays, case.shape.dims)["y"]
    rule, time_limit = case.kernel.rules["y"], TimeLimit(10, Clock(0, *seconds))
    return diagnose(Mismatch(case, run, "y", truth.value, rule, None, reference, truth=True, time_limit=time_limit))


def test_classes_skipped_for_time_are_named(case) -> None:
    """A square is unknown; how many classes are tried depends on how often the clock is read before ten seconds."""
    made = case("y[id.x] = x[id.x] * x[id.x];")
    everything, nothing = impatient(made, 10), impatient(made, 11)
    assert "not tried" not in everything.evidence
    assert nothing.name == everything.name == UNKNOWN
    tried, late = _tried(nothing)
    assert "; not tried within 10 s: " in nothing.evidence
    assert {"missing term", "wrong sign", "wrong kernel"} <= late
    assert {"wrong factor", "unwritten output"}.isdisjoint(late)  # which take no run
    some, less_late = _tried(impatient(made, *[0] * 12, 11))
    assert tried < some < _tried(everything)[0]
    assert set() < less_late < late


def test_classes_without_reruns_need_no_time(case) -> None:
    found = impatient(case("y[id.x] = 3.0 * x[id.x];"), 11)
    assert found.name == "wrong factor"
    assert found.evidence.startswith(
        "all elements are the expected ones times one number, 1.5 for the first element; not tried"
    )
    assert impatient(case("y[id.x] = 3.0 * x[id.x];"), 0) == Diagnosis(
        "wrong factor", "all elements are the expected ones times one number, 1.5 for the first element"
    )


def test_a_long_run_is_aborted(case) -> None:
    """With the clock at its end only once the run has begun, the run is what finds out."""
    made = case("y[id.x] = x[id.x];")
    run = simulate(made, "nvidia", "none")
    clock = Clock(0, 0, 11)
    m = Mismatch(made, run, "y", made.arrays["x"], time_limit=TimeLimit(10, clock))
    with pytest.raises(OutOfTime):
        m.rerun_output()
    assert clock.seconds == [11]


def _tried(found: Diagnosis) -> tuple[int, set[str]]:
    count = re.search(r"of (\d+) classes", found.evidence)
    assert count is not None
    return int(count[1]), set(found.evidence.partition(" s: ")[2].split(", ")) - {""}


# ---- against a GPU, which is made up here ---------------------------------------------------------------


def against(case: Case, gpu: Callable[[str | None], np.ndarray]) -> Mismatch:
    return Mismatch(case, simulate(case, "nvidia", "none"), "y", gpu(None), on_gpu=gpu)


def test_a_gpu_with_varying_results_races(case) -> None:
    made = case("y[id.x] = x[id.x];")
    times = iter(range(9))
    found = diagnose(against(made, lambda text: made.arrays["x"] + np.float32(next(times) + 1)))
    assert str(found) == "likely race: wgpu gives different results from run to run: 256 elements differ"


def test_a_gpu_that_races_is_not_blamed_for_memory(case) -> None:
    """Zeroing the memory makes it agree, because the load comes before the store that it races with."""
    made = case(UNORDERED)
    ours = simulate(made, "nvidia", "none").outputs["y"]

    def gpu(text: str | None) -> np.ndarray:
        return ours if text and "w = array" in text else np.full(256, 7, np.float32)

    run = simulate(made, "nvidia", ("races",))  # without the probe for unwritten memory
    found = diagnose(Mismatch(made, run, "y", gpu(None), on_gpu=gpu))
    assert found.name == "race"
    assert "elements that differ change; race, line" in found.evidence


def test_a_gpu_that_does_not_zero_workgroup_memory(case) -> None:
    made = case("y[id.x] = w[i];")

    def gpu(text: str | None) -> np.ndarray:
        return np.full(256, 0 if text and "w = array" in text else 7, np.float32)

    found = diagnose(against(made, gpu))
    assert found.name == "uninitialised memory"
    pipeline = simulate(made, "nvidia", "none").pipeline
    text = zeroing(pipeline.module.source.text, pipeline)
    assert text is not None
    assert "w = array<f32, 32>(); workgroupBarrier();" in text


@pytest.mark.parametrize(("cured", "name"), [(True, "uninitialised memory"), (False, UNKNOWN)])
def test_a_text_that_zeroes_memory_must_agree_with_the_simulator(case, cured: bool, name: str) -> None:
    """The simulator finds no load of unwritten memory here, and repeatable results of a GPU prove nothing."""
    made = case("w[i] = x[id.x]; workgroupBarrier(); y[id.x] = w[i];")
    poisoned = np.full(256, 7, np.float32)

    def gpu(text: str | None) -> np.ndarray:
        return made.arrays["x"] if text and "w = array" in text and cured else poisoned

    found = diagnose(against(made, gpu))
    assert found.name == name


def test_a_barrier_that_cures_is_no_memory_that_is_not_zeroed(case) -> None:
    made = case("w[i] = x[id.x]; workgroupBarrier(); y[id.x] = w[i];")
    poisoned = np.full(256, 7, np.float32)
    assert diagnose(against(made, lambda text: made.arrays["x"] if text else poisoned)).name == UNKNOWN


def test_a_gpu_that_gives_another_value_for_an_inactive_lane(case, tmp_path: Path) -> None:
    made = case("")
    (tmp_path / "k.wgsl").write_text(f"enable subgroups;\n{BINDINGS} y[id.x] = subgroupShuffleUp(x[id.x], 1u); }}\n")
    ours = simulate(made, "nvidia", "none").outputs["y"]
    found = diagnose(against(made, lambda text: np.where(np.arange(256) % 32 == 0, np.float32(7), ours)))
    assert found.name == "inactive lane"
    assert "with other values there, 8 of 256 elements of y differ" in found.evidence


# ---- against a golden -----------------------------------------------------------------------------------


def test_a_digest_is_enough_to_detect_contraction(case) -> None:
    def made(body: str) -> Case:
        one = case(body, manifest=MANIFEST.replace("[expect]", "[expect]\ngolden = true"))
        return replace(one, kernel=replace(one.kernel, reference=None))

    options = Options(device="amd", gpu=False)
    audit(made("y[id.x] = x[id.x] * x[id.x] + x[id.x];"), replace(options, update=True))
    result = audit(made("y[id.x] = fma(x[id.x], x[id.x], x[id.x]);"), options)
    assert result.golden is not None
    assert str(result.golden.likely) == (
        "likely fma contraction: with fma separate instead of fused, all 256 elements agree"
    )
    assert result.likely == ("fma contraction",)


def test_costs_are_classified() -> None:
    names = ["shared_wavefronts", "shared_ideal_wavefronts", "global_sectors", "global_ideal_sectors", "barriers",
             "flops", "global_bytes", "active_lanes", "workgroup_memory_bytes"]  # fmt: skip
    before = dict.fromkeys(names, 10.0)
    assert cost(before, before) is None
    for name, words in [
        ("shared_wavefronts", "performance: conflicts"),
        ("global_sectors", "performance: sectors"),
        ("barriers", "performance: barriers"),
        ("flops", "performance: work"),
        ("workgroup_memory_bytes", "performance: workgroup memory"),
    ]:
        found = cost(before, {**before, name: 12.0})
        assert found is not None
        assert found.name == words


def test_every_class_describes_its_rerun() -> None:
    assert all(row.rerun for row in CLASSES)
    assert set(OF_FINDINGS.values()) <= {row.name for row in CLASSES} | {"endless loop"}
    assert set(OF_FINDINGS) == {
        "atomic-order", "uninit", "out-of-bounds", "inactive-lane", "not-finite", "endless-loop",
    }  # fmt: skip


def test_the_class_of_a_finding_that_fails(case) -> None:
    """Codes that have no class are one, and a class is listed once."""
    classes = {
        "atomic-order": "order of atomics", "uninit": "uninitialised memory", "out-of-bounds": "out-of-bounds policy",
        "inactive-lane": "inactive lane", "not-finite": "number out of range", "endless-loop": "endless loop",
        "race": "race", "new-code": "new-code",
    }  # fmt: skip
    plain = judged(case("y[id.x] = 2.0 * x[id.x];"))
    assert plain.likely == ()
    failed = [SimpleNamespace(ok=False, finding=SimpleNamespace(code=code)) for code in (*classes, *classes)]
    accepted = SimpleNamespace(ok=True, finding=SimpleNamespace(code="divergent"))
    assert replace(plain, findings=(accepted, *failed)).likely == tuple(classes.values())


def test_a_golden_names_classes_skipped_for_time(case, monkeypatch) -> None:
    manifest = MANIFEST.replace("[expect]", "[expect]\ngolden = true")
    options = Options(gpu=False)
    audit(case("y[id.x] = 2.0 * x[id.x];", manifest=manifest), replace(options, update=True))
    changed = case("w[i] = x[id.x]; y[id.x] = 2.0 * w[i];", manifest=manifest)
    for seconds, late in ((60, ""), (-1, "; not tried within -1 s: missing term")):
        monkeypatch.setattr("bankshot.oracle.judge.golden_check.TimeLimit", lambda seconds=seconds: TimeLimit(seconds))
        golden = audit(changed, options).golden
        assert golden is not None
        assert golden.likely is not None
        assert golden.likely.name.startswith("performance: ")
        assert golden.likely.evidence.partition(", and no output is wrong")[2] == late


@pytest.mark.parametrize(
    ("rule", "bound", "own", "explained"),
    [
        (BOUND, 0.25, None, True),  # the bound of the comparison
        (BOUND, 0.0, None, False),
        (BOUND, 0.0, 0.25, True),  # that of the value itself
        (BOUND, 0.25, 0.0, False),
        (DERIVED, 0.25, 0.0, True),  # the simulator's bounds are those of the output, whatever the value
        (DERIVED, 0.0, 0.25, False),
    ],
)
def test_a_value_explains_what_is_within_its_bound(case, rule, bound, own, explained) -> None:
    made = case("y[id.x] = 3.0 * x[id.x];")
    ours = simulate(made, "nvidia", "none").outputs["y"].astype(np.float64)
    mismatch = Mismatch(made, simulate(made, "nvidia", "none"), "y", ours + 9.0, rule, np.full(ours.shape, bound))
    near = ours + 0.125
    assert mismatch.explained(near, None if own is None else np.full(ours.shape, own)) == explained
    assert not mismatch.explained(near[:3])


ZEROED = """override n = 3;
struct Both { count: atomic<u32>, plain: f32 }
var<workgroup> a: array<atomic<u32>, 4>;
var<workgroup> b: array<f32, n>;
var<workgroup> c: array<f32, 4>;
var<workgroup> d: array<Both, 2>;
var<workgroup> e: u32;
@compute @workgroup_size(1) fn main() { _ = &a; _ = &b; _ = &c; _ = &d; _ = &e; }
"""


def test_workgroup_memory_of_each_type_is_zeroed() -> None:
    """As a whole, but for atomics and for arrays whose size is an override."""
    made = zeroing(ZEROED, bankshot.check(ZEROED).pipeline())
    bankshot.check(made)
    for statement in (
        "for (var zeroed_0 = 0u; zeroed_0 < 4u; zeroed_0++) { atomicStore(&a[zeroed_0], 0); }",
        "for (var zeroed_0 = 0u; zeroed_0 < 3u; zeroed_0++) { b[zeroed_0] = f32(); }",
        "{ atomicStore(&d[zeroed_0].count, 0); d[zeroed_0].plain = f32(); }",
        " c = array<f32, 4>(); ",
        " e = u32(); workgroupBarrier();",
    ):
        assert statement in made
