"""By which rule, and with which truth, an output of a run through wgpu is compared; the GPU is a list of numbers."""

from types import SimpleNamespace

import numpy as np
import pytest

import bankshot
from bankshot.oracle.errors import UsageError
from bankshot.oracle.judge import case_run, output_checks
from bankshot.oracle.judge.output_checks import OutputCheck, gpu_checks, reference_check
from bankshot.oracle.manifests.manifest_loader import load
from bankshot.oracle.references import Expected
from bankshot.oracle.wgpu_client import AdapterInfo
from bankshot.oracle.wgpu_client.gpu_run import GpuRun

LLVMPIPE = AdapterInfo("llvmpipe", "CPU", "Vulkan", "llvmpipe", "1", "0")
SHADER = """\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<TYPE>;
@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if i != 7u { y[i] = VALUE; }
}
"""
MANIFEST = """\
[kernel]
source = "k.wgsl"
dispatch = [2]
reference = "refs.py:right"
[bind.x]
dtype = "f32"
values = [1, 2, 3, 4, 5, 6, 7, 8]
[bind.out]
var = "y"
dtype = "f32"
shape = [8]
init = "zeros"
[expect]
"""
X = np.arange(1, 9, dtype=np.float32)
RIGHT = np.where(X < 8, 2 * X, 0).astype(np.float32)
EXACT, INEXACT, BITS = "x[i] * 2.0", "exp(x[i])", "bitcast<u32>(x[i] * 2.0)"
MIX = "mix(x[i], 0.0, 0.5) * 4.0"
CLOSE = '{ rule = "close", rtol = 1e-3, atol = 1e-3 }'


@pytest.fixture
def simulated(tmp_path):
    """`simulated(value, expect)`: a case, and its run as llvmpipe rounds."""

    def run(value=EXACT, expect=""):
        type_ = "u32" if "bitcast" in value else "f32"
        (tmp_path / "k.wgsl").write_text(SHADER.replace("VALUE", value).replace("TYPE", type_))
        (tmp_path / "refs.py").write_text('def right(arrays, dims): return {"out": 2.0 * arrays["x"]}\n')
        (tmp_path / "k.toml").write_text(MANIFEST + expect)
        kernel = load(tmp_path / "k.toml")
        case = kernel.case(kernel.shapes[0])
        return case, case_run.simulate(case, "lavapipe", "none")

    return run


@pytest.fixture
def reruns(monkeypatch):
    """What reruns are made for; each finds a cause, and `proof` is what the driver's order of sums is proved by."""
    made = SimpleNamespace(proof=None, asked=[])
    monkeypatch.setattr(output_checks, "diagnose", lambda m: made.asked.append(("cause", m)) or "the cause")
    monkeypatch.setattr(
        output_checks, "reordering_within_bounds", lambda m: made.asked.append(("order", m)) or made.proof
    )
    return made


def off(run, element=0, steps=1):
    """The outputs of a run, one of them `steps` ULP further."""
    y = run.outputs["y"].copy()
    y.view(np.uint32)[element] += steps
    return GpuRun({"y": y}, LLVMPIPE, (1.0,), (0.0, 0.0, 0.0), took=1.0)


# Value, [expect], ULP off, whether an order of sums is proved; the rule, whether it accepts, and what is rerun.
RULES = {
    "equal": (EXACT, "", 0, None, "exact", True, []),
    "one ULP off": (EXACT, "", 1, None, "exact", False, ["order", "cause"]),
    "one ULP off, and proved": (EXACT, "", 1, "sums", "derived", None, ["order"]),
    "a rule for the reference": (EXACT, f"out = {CLOSE}", 1, None, "exact", False, ["order", "cause"]),
    "a rule for GPUs": (EXACT, f"gpu = {{ out = {CLOSE} }}", 1, "sums", "close", True, []),
    "a rule for GPUs that rejects": (EXACT, f"gpu = {{ out = {CLOSE} }}", 1 << 20, "sums", "close", False, ["cause"]),
    "derived by the manifest": (EXACT, 'out = "derived"', 0, None, "derived", True, []),
    "inexact": (INEXACT, "", 1, None, "derived", True, []),
    "inexact, far off": (INEXACT, "", 1 << 20, None, "derived", False, ["cause"]),
    "inexact, exact by name": (INEXACT, 'gpu = { out = "exact" }', 1, None, "exact", False, ["cause"]),
    "free, without a reference": (EXACT, 'free = ["out"]', 0, None, "derived", True, []),
    "a builtin that others compute otherwise, equal": (MIX, "", 0, None, "exact", True, []),
    "a builtin that others compute otherwise": (MIX, "", 1, "sums", "derived", None, []),
}


@pytest.mark.parametrize("name", RULES)
def test_the_rule_for_an_output_of_a_gpu(simulated, reruns, name):
    value, expect, steps, reruns.proof, rule, ok, asked = RULES[name]
    case, run = simulated(value, expect)
    (check,) = gpu_checks(case, run, off(run, steps=steps), None)
    assert check.comparison.rule.name == rule
    assert check.comparison.ok == ok or ok is None
    assert [what for what, _ in reruns.asked][: len(asked)] == asked
    assert ("cause" in [what for what, _ in reruns.asked]) == (not check.comparison.ok)
    assert check.likely == (None if check.comparison.ok else "the cause")
    assert check.allowed == (reruns.proof or "" if rule == "derived" and value is EXACT and steps else "")
    assert (check.output, check.against, check.truth, check.by_gpu) == ("out", *["wgpu on llvmpipe"] * 2, True)
    assert (check.bits, check.checked_elsewhere) == (False, False)


def test_an_output_kept_as_bits_has_no_bounds(simulated, reruns):
    case, run = simulated(BITS, 'gpu = { out = "derived" }')
    (check,) = gpu_checks(case, run, off(run, steps=1 << 20), None)
    assert (check.bits, check.comparison.ok, check.comparison.unbounded, check.comparison.vacuous) == (
        True,
        True,
        8,
        True,
    )
    assert check.advice == (
        "no bound is derived for floats kept as bits; give a tolerance in [expect]: "
        'gpu = { out = { rule = "close", rtol = 1e-3, atol = 1e-3 } }'
    )


@pytest.mark.parametrize(
    ("type_", "output", "bits"),
    [
        ("array<u32>", np.zeros(2, np.float32), True),
        ("array<atomic<i32>>", np.zeros(2, np.float32), True),
        ("array<f32>", np.zeros(2, np.float32), False),
        ("array<u32>", np.zeros(2, np.uint32), False),
        ("array<vec2<u32>>", np.zeros((2, 2), np.float32), True),
        ("S", np.zeros(1, [("a", np.float32), ("b", np.uint32)]), True),  # words of structs
        ("S", np.zeros(2, np.uint32), False),
        ("array<u32>", b"1234", False),
        ("array<u32>", [np.zeros(2, np.float32)], False),
    ],
)
def test_floats_may_be_kept_as_the_bits_of_integers(type_, output, bits):
    text = f"""struct S {{ a: f32, b: u32 }}
        @group(0) @binding(0) var<storage, read_write> y: {type_};
        @group(0) @binding(1) var<storage, read_write> other: array<u32>;
        @compute @workgroup_size(1) fn main() {{ _ = &y; _ = &other; }}"""
    run = SimpleNamespace(pipeline=bankshot.check(text).pipeline(), outputs={"y": output})
    assert output_checks._keeps_bits(run, "y") == bits


def test_reruns_on_the_gpu_take_its_case_and_adapter(simulated, reruns, monkeypatch):
    case, run = simulated()
    gpu_checks(case, run, off(run), None, adapter="llvm")
    (_, mismatch), (_, other) = reruns.asked
    ran = []
    monkeypatch.setattr(output_checks, "run_on_gpu", lambda *given, text: ran.append((*given, text)) or off(run))
    for each in (mismatch, other):
        assert each.on_gpu("a text").view(np.uint32)[0] == run.outputs["y"].view(np.uint32)[0] + 1
        assert (each.case, each.run, each.output) == (case, run, "out")
    assert ran == [(case, "llvm", "a text")] * 2


@pytest.mark.parametrize(("worst", "listed"), [(2, 2), (5, 4)])
def test_the_worst_elements_are_listed(simulated, reruns, worst, listed):
    case, run = simulated()
    theirs = off(run, slice(4), np.uint32([1, 3, 2, 4]))
    (check,) = gpu_checks(case, run, theirs, None, worst)
    assert [each.index for each in check.comparison.worst] == [(3,), (1,), (2,), (0,)][:listed]
    assert check.comparison.mismatches == 4
    (line,) = [n for n, line in enumerate(SHADER.splitlines(), 1) if "VALUE" in line]
    assert check.written.line == line
    assert check.comparison.worst[0].owner == "workgroup (0, 0, 0), lane 3, line 6"


def test_an_element_that_nothing_wrote_has_no_place(simulated, reruns):
    case, run = simulated()
    (check,) = gpu_checks(case, run, off(run, element=7), None)
    assert (check.written, check.comparison.worst[0].owner) == (None, "never written")


# Whether the output differs, whether it has a rule for GPUs; how many checks.
UNORDERED = [(0, "", 1), (1, "", 0), (0, f"gpu = {{ out = {CLOSE} }}", 1), (1, f"gpu = {{ out = {CLOSE} }}", 1)]


@pytest.mark.parametrize(("steps", "expect", "checks"), UNORDERED)
def test_outputs_in_any_order_are_compared_where_they_agree_or_have_a_rule(simulated, reruns, steps, expect, checks):
    case, run = simulated(expect=expect)
    assert len(gpu_checks(case, run, off(run, steps=steps), None, unordered={"y"})) == checks
    assert len(gpu_checks(case, run, off(run, steps=steps), None, unordered={"out"})) == 1


def test_elements_that_a_part_of_the_grid_leaves_are_unchecked(simulated, reruns):
    """The adapter runs 1 of 2 workgroups: elements 4 to 6 stay as they were, and 7 is never written."""
    case, run = simulated()
    part = SimpleNamespace(outputs={"y": np.where(np.arange(8) < 4, run.outputs["y"], 0).astype(np.float32)})
    part = SimpleNamespace(**{name: getattr(run, name) for name in ("loose", "pipeline", "bounds")}, **vars(part))
    on_gpu = GpuRun(dict(part.outputs), LLVMPIPE, (1.0,), (0.0, 0.0, 0.0), took=1.0)
    (check,) = gpu_checks(case, part, on_gpu, None, whole=run)
    assert check.comparison.unchecked.tolist() == [False] * 4 + [True] * 3 + [False]
    (check,) = gpu_checks(case, part, on_gpu, None)
    assert check.comparison.unchecked is None


@pytest.mark.parametrize("steps", [0, 1])
def test_free_outputs_are_compared_with_the_reference(simulated, reruns, steps):
    case, run = simulated(expect='free = ["out"]\nout = "exact"')
    truth = {"out": Expected(RIGHT.astype(np.float64))}
    (check,) = gpu_checks(case, run, off(run, steps=steps), truth)
    assert (check.against, check.truth) == ("reference refs.py:right by wgpu on llvmpipe", "wgpu on llvmpipe")
    assert (check.comparison.ok, check.by_gpu) == (steps == 0, True)
    assert (check.likely, reruns.asked) == (None, [])
    assert all(each.owner is None for each in check.comparison.worst)


# ---- against the reference -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expect", "bound", "add", "rule", "ok"),
    [
        ("", None, 0.0, "derived", True),
        ("", None, 1.0, "derived", False),
        ("", 0.5, 0.25, "bound", True),
        ("", 0.5, 1.0, "bound", False),
        (f"out = {CLOSE}", 0.5, 1e-4, "close", True),
        (f"out = {CLOSE}", 5.0, 1.0, "close", False),
        ('out = "derived"', 5.0, 1.0, "derived", False),
    ],
)
def test_the_rule_for_a_reference(simulated, reruns, expect, bound, add, rule, ok):
    case, run = simulated(expect=expect)
    bounds = None if bound is None else np.full(8, bound)
    truth = {"out": Expected(RIGHT.astype(np.float64) + add * (X < 8), bounds)}
    check = reference_check(case, truth, "out", run, run)
    assert (check.comparison.rule.name, check.comparison.ok) == (rule, ok)
    assert (check.against, check.truth, check.by_gpu) == ("reference refs.py:right", "reference", False)
    assert (check.likely, [what for what, _ in reruns.asked]) == ((None, []) if ok else ("the cause", ["cause"]))
    assert (check.written is None) == ok
    if not ok:
        mismatch = reruns.asked[0][1]
        assert (mismatch.truth, mismatch.output, mismatch.rule.name) == (True, "out", rule)


def test_a_reference_of_as_many_elements_is_no_reference_of_the_shape(simulated):
    case, run = simulated()
    with pytest.raises(UsageError, match=r"refs.py:right gives an array of \[2, 4\] for out, which is \[8\]; reshape"):
        reference_check(case, {"out": Expected(RIGHT.reshape(2, 4).astype(np.float64))}, "out", run, run)


@pytest.mark.parametrize(
    ("name", "message"),
    [("z", "gives z, which is no binding of the manifest"), ("x", "gives x, which the kernel does not write"),
     ("out", "`free` names out, which reference refs.py:right lacks")],
)  # fmt: skip
def test_a_manifest_and_a_reference_that_do_not_fit(simulated, name, message):
    case, run = simulated()
    with pytest.raises(UsageError, match=message):
        reference_check(case, {} if name == "out" else {name: None}, name, run, run)


def test_a_nan_that_has_not_stayed_has_no_cause_to_find(simulated, reruns):
    """The rule accepts any NaN for a NaN, and element 7, which nothing writes, holds 0 before."""
    case, run = simulated()
    nan = np.where(X < 8, RIGHT, np.nan).astype(np.float64)
    run.outputs["y"][7] = np.nan
    check = reference_check(case, {"out": Expected(nan)}, "out", run, run)
    assert check.likely is None
    assert [what for what, _ in reruns.asked] == []


# ---- advice --------------------------------------------------------------------------------------------

TOLERANCE = 'out = { rule = "close", rtol = 1e-3, atol = 1e-3 }'
FINDING = "where no finding says why, give a tolerance in [expect]: "
OF_BITS = "no bound is derived for floats kept as bits; give a tolerance in [expect]: "


@pytest.mark.parametrize(
    ("against", "bits", "unbounded", "advice"),
    [
        ("reference r", False, 0, "the rule accepts each element off by its own size; give out a smaller tolerance"),
        ("reference r", False, 3, FINDING + TOLERANCE),
        ("wgpu on a", False, 3, FINDING + f"gpu = {{ {TOLERANCE} }}"),
        ("reference r by wgpu on a", False, 3, FINDING + TOLERANCE),
        ("reference r", True, 3, OF_BITS + TOLERANCE + ", or let the reference give a bound"),
        ("wgpu on a", True, 3, OF_BITS + f"gpu = {{ {TOLERANCE} }}"),
    ],
)
def test_advice_for_a_check_that_could_not_fail(against, bits, unbounded, advice):
    compared = SimpleNamespace(ok=True, unchecked=np.ones(3, bool), vacuous=True, unbounded=unbounded, worst=())
    check = OutputCheck("out", against, compared, bits=bits)
    assert check.advice == advice
    compared.vacuous = False
    assert check.advice == ""
    compared.vacuous = True
    assert OutputCheck("out", against, compared, bits=bits, checked_elsewhere=True).advice == ""
