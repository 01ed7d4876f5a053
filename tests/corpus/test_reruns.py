"""Which reruns prove which reason why outputs differ. A function with a known fault stands for wgpu."""

from math import prod
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import bankshot
from bankshot.oracle.corpus import cover, evidence, trial
from bankshot.oracle.corpus.candidate import Run
from bankshot.oracle.corpus.embedded import Shader
from bankshot.oracle.corpus.trial import trials
from bankshot.oracle.diagnosis.kept_floats import ZERO
from bankshot.sim.models import get

RECIPE = trial.Recipe("", (4,), 16, 64)
LAVAPIPE = get("lavapipe")


def tried(monkeypatch, text, wgpu=None, device=LAVAPIPE, **given):
    """An entry point whose runs on wgpu call `wgpu`, and its run in the simulator."""
    monkeypatch.setattr(trial.wgpu_client, "require_adapter", lambda adapter: SimpleNamespace(profile=device))
    owner = trial._Module(Shader(Path("a.wgsl"), 1, text), None, lambda *words: None, None)
    module = bankshot.check(text)
    entry = trial._Entry(owner, module, module.compute_entry_points[0])
    entry.grid = (1, 1, 1)
    entry.on_wgpu = wgpu
    given = trial.invented_inputs.bindings(entry.pipeline, RECIPE) | given
    return entry, Run(RECIPE, given, entry.simulate(given))


# ---- workgroup memory --------------------------------------------------------------------------------

SHARED = """
@group(0) @binding(0) var<storage, read_write> y: array<u32, 2>;
var<workgroup> w: array<u32, 2>;
@compute @workgroup_size(2)
fn main(@builtin(local_invocation_index) i: u32) { y[i] = w[i] + 5u; }
"""
BARRIER, RIGHT = "workgroupBarrier();", [5, 5]


class Driver:
    """A driver of two workers: the y of `SHARED` is what a worker's memory holds. `zeroed` and `alone`: what the texts
    give that zero it, and that have the barrier alone; None: as the shader's own."""

    def __init__(self, zeroes=False, zeroed=RIGHT, alone=None, varies=False):
        self.zeroes, self.zeroed, self.alone, self.varies = zeroes, zeroed, alone, varies
        self.left, self.filled, self.runs = 0, 0, 0

    def __call__(self, given, text=None, grid=None):
        if text is not None and ZERO in text:
            self.left = int(given[ZERO][0]) if prod(grid) >= 1000 else 0
            self.filled += 1
            return {}
        if text is not None and "w = array<u32, 2>()" in text:
            assert BARRIER in text
            return {"y": np.array(self.zeroed, np.uint32)}
        if text is not None and self.alone is not None:
            assert text.count(BARRIER) == 1
            return {"y": np.array(self.alone, np.uint32)}
        self.runs += self.varies
        return {"y": np.array([5, 5 if self.zeroes else 6 + self.left + self.runs], np.uint32)}


NOT_ZEROED = "wgpu did not zero workgroup memory; it agrees if the shader does"


@pytest.mark.parametrize(
    ("driver", "reason"),
    [
        (Driver(), NOT_ZEROED),
        (Driver(alone=RIGHT), NOT_ZEROED),  # the fillings show it
        (Driver(zeroes=True, alone=[5, 9]), NOT_ZEROED),  # the barrier alone shows it
        (Driver(zeroes=True, alone=RIGHT), None),  # the barrier cures it
        (Driver(varies=True, alone=RIGHT), None),  # it varies, whatever was filled
        (Driver(varies=True, alone=[5, 9]), NOT_ZEROED),
        (Driver(zeroed=[5, 6]), None),
    ],
    ids=["all", "fillings", "barrier", "cured", "varies", "varies with the barrier", "zeroed as well"],
)
def test_memory_that_is_not_zeroed(monkeypatch, driver, reason):
    entry, ours = tried(monkeypatch, SHARED, driver)
    assert ours.outputs["y"].view(np.uint32).tolist() == RIGHT
    theirs = {"y": np.array([5, 6], np.uint32)}
    assert evidence._not_zeroed(entry, ours, theirs) == reason


def test_without_workgroup_memory_nothing_is_zeroed(monkeypatch):
    entry, ours = tried(monkeypatch, SHARED.replace("w[i] + ", ""), Driver())
    assert evidence._not_zeroed(entry, ours, {"y": np.array([5, 6], np.uint32)}) is None


# ---- the simulator, with something else --------------------------------------------------------------

ONE = """
@group(0) @binding(0) var<storage, read_write> y: array<{type}, 1>;
@group(0) @binding(1) var<storage, read> x: array<{type}, 3>;
@compute @workgroup_size(1)
fn main() {{ {body} }}
"""


def looked(look, monkeypatch, body, theirs, type_="u32", wgpu=None, device=LAVAPIPE, x=(1, 2, 3)):
    dtype = np.float32 if type_ == "f32" else np.uint32
    data = np.array(x, dtype).view(np.uint8)
    zero = np.zeros(4, np.uint8)
    entry, ours = tried(monkeypatch, ONE.format(type=type_, body=body), wgpu, device, x=data, y=zero)
    return look(entry, ours, {"y": np.array([theirs], dtype)})


FAR = "var i = x[2] + 4u; y[0] = x[i] + 10u;"  # the last element, with indices clamped, is 3


@pytest.mark.parametrize(
    ("own", "theirs", "words"),
    [("zero", 13, "clamped"), ("clamp", 10, "left out"), ("clamp", 77, None)],
    ids=["clamped", "left out", "other"],
)
def test_accesses_out_of_bounds(monkeypatch, own, theirs, words):
    reason = looked(evidence._out_of_bounds, monkeypatch, FAR, theirs, device=LAVAPIPE.with_(out_of_bounds=own))
    expected = f"with accesses out of bounds {words}, all outputs agree; out-of-bounds, line 5: load of x[7]"
    assert reason is None if words is None else reason.startswith(expected)


def test_without_an_access_out_of_bounds_none_explains(monkeypatch):
    assert looked(evidence._out_of_bounds, monkeypatch, "y[0] = x[1];", 2) is None


LOOP = "for (var i = 0u; i < x[2]; i++) { y[0] += x[0]; }"
LEFT = "the driver leaves loops after 4 turns; under that limit, all outputs agree"


@pytest.mark.parametrize(
    ("turns", "limit", "theirs", "reason"),
    [(9, 4, 4, LEFT), (9, 4, 8, None), (9, None, 4, None), (2, 4, 2, None), (2, 4, 1, None)],
    ids=["left", "another number", "no limit", "a short loop", "a short loop left"],
)
def test_loops_that_a_driver_leaves(monkeypatch, turns, limit, theirs, reason):
    """Each turn adds 1."""
    device = LAVAPIPE.with_(loop_turns=limit)
    assert looked(evidence._loops_left, monkeypatch, LOOP, theirs, device=device, x=(1, 0, turns)) == reason


# (2**24 + 1) - 2**24 is 0 in f32, and 1 where the driver cancels first.
SUM = "y[0] = (x[0] + x[1]) - x[0];"
LARGE = (2.0**24, 1.0, 0.0)
REORDERS = "the driver reorders floats; wgpu agrees bit for bit where each operation keeps its own result"


def floats(kept, own):
    """wgpu, for the text that keeps each result and for the shader's own."""

    def run(given, text=None, grid=None):
        return {"y": np.array([own if text is None else kept], np.float32)}

    return run


@pytest.mark.parametrize(
    ("kept", "own", "reason"), [(0, 1, REORDERS), (1, 1, None), (0, 2, None), (1, 2, None)],
    ids=["reorders", "differs all the same", "varies", "both"],
)  # fmt: skip
@pytest.mark.parametrize("fma", ["separate", "fused", "contracted"])
def test_floats_that_a_driver_reorders(monkeypatch, kept, own, reason, fma):
    made = looked(evidence._reordered, monkeypatch, SUM, 1, "f32", floats(kept, own), LAVAPIPE.with_(fma=fma), LARGE)
    assert made == reason


def test_contraction_alone_is_no_difference_of_the_kept_text(monkeypatch):
    """The simulator contracts; wgpu's text that keeps each result does not, which is no fault of either."""
    square, less = 1 + 2.0**-12, 1 + 2.0**-11  # the square is `less` and 2**-24, which rounding drops
    body, device = "y[0] = x[0] * x[0] - x[1];", LAVAPIPE.with_(fma="contracted")
    x = (square, less, 0)
    for kept, reason in ((0, REORDERS), (2.0**-24, None)):
        assert looked(evidence._reordered, monkeypatch, body, 3, "f32", floats(kept, 3), device, x) == reason


@pytest.mark.parametrize(("fma", "kept"), [("separate", 0), ("fused", 2.0**-24), ("contracted", 2.0**-24)])
def test_the_kept_text_is_compared_with_an_fma_of_the_device(monkeypatch, fma, kept):
    x = (1 + 2.0**-12, 1 + 2.0**-11, 0)
    body, device = "y[0] = fma(x[0], x[0], -x[1]);", LAVAPIPE.with_(fma=fma)
    assert looked(evidence._reordered, monkeypatch, body, 3, "f32", floats(kept, 3), device, x) == REORDERS
    assert looked(evidence._reordered, monkeypatch, body, 3, "f32", floats(9, 3), device, x) is None


def test_whole_numbers_are_not_reordered(monkeypatch):
    assert looked(evidence._reordered, monkeypatch, "y[0] = x[0];", 7, wgpu=floats(0, 0)) is None


TEXTURE = """
@group(0) @binding(0) var<storage, read_write> y: array<f32, 1>;
@group(0) @binding(1) var t: texture_2d<f32>;
@compute @workgroup_size(1)
fn main() { y[0] = textureLoad(t, vec2(0), 0).x; }
"""


def test_texels_times_the_reciprocal(monkeypatch):
    texels = np.full((1, 1, 4), 223, np.uint8)
    entry, ours = tried(monkeypatch, TEXTURE, t=texels)
    divided, multiplied = np.float32(223) / np.float32(255), np.float32(223) * np.float32(1 / 255)
    assert ours.outputs["y"].view(np.float32)[0] == divided != multiplied
    reason = "wgpu computes texels of t as n * (1 / 255), not n / 255"
    assert evidence._reciprocal(entry, ours, {"y": np.array([multiplied])}) == reason
    assert evidence._reciprocal(entry, ours, {"y": np.array([multiplied * 2])}) is None
    assert looked(evidence._reciprocal, monkeypatch, "y[0] = 1u;", 2) is None
    whole = TEXTURE.replace("texture_2d<f32>", "texture_2d<u32>").replace("textureLoad(t", "f32(textureLoad(t")
    entry, ours = tried(monkeypatch, whole.replace(").x", ").x)"), t=texels.astype(np.uint32))
    assert evidence._reciprocal(entry, ours, {"y": np.array([1], np.float32)}) is None


# ---- exact arithmetic --------------------------------------------------------------------------------


def test_exact_arithmetic_is_for_buffers(monkeypatch):
    inexact = "y[0] = exp(x[0]);"
    entry, _ = tried(monkeypatch, ONE.format(type="f32", body=inexact))
    other, names = entry.with_exact_arithmetic()
    assert (names, other.exact, other.grid, other.overrides) == (["exp"], True, entry.grid, entry.overrides)
    assert "= exp(x[0])" not in other.text
    whole, _ = tried(monkeypatch, ONE.format(type="u32", body="y[0] = x[0];"))
    assert whole.with_exact_arithmetic() is None  # there is nothing to replace
    textured, _ = tried(monkeypatch, TEXTURE.replace("y[0] = ", "y[0] = exp(y[0]) + "))
    assert textured.with_exact_arithmetic() is None


INEXACT = ONE.format(type="f32", body="y[0] = exp(x[0]);")


def both(own, exact):
    """wgpu, for the shader's own text and for that with exact arithmetic. None: as the simulator."""

    def run(entry, given, text=None, grid=None):
        chosen = exact if entry.exact else own
        return dict(entry.simulate(given).outputs) if chosen is None else {"y": np.array([chosen], np.float32)}

    return run


def judged(monkeypatch, text, own, exact=None, **given):
    """The verdict on what wgpu computes, its words and its rerun."""
    entry, ours = tried(monkeypatch, text, **given)
    del entry.on_wgpu
    monkeypatch.setattr(trial._Entry, "on_wgpu", both(own, exact))
    theirs = entry.on_wgpu(ours.given)
    return entry._judged(ours, theirs, entry.differences(RECIPE, ours.outputs, theirs))


HALF = np.array([0.5, 0.5, 0.5], np.float32).view(np.uint8)
NEAR = float(np.nextafter(np.float32(np.exp(np.float32(0.5))), np.float32(9)))
AGREE = ", and with exact arithmetic in place of exp, all outputs agree bit for bit; y: 1 of 1"


def test_a_verdict_within_bounds_is_stronger_where_exact_arithmetic_agrees(monkeypatch):
    verdict, words, rerun = judged(monkeypatch, INEXACT, NEAR, x=HALF)
    assert (verdict, rerun) == ("within", "the simulator, with error bounds")
    assert words.startswith(f"the error bounds of what it computes allow it{AGREE}")


def test_a_difference_with_exact_arithmetic_is_a_fault_whatever_the_bounds(monkeypatch):
    verdict, words, rerun = judged(monkeypatch, INEXACT, NEAR, 7.0, x=HALF)
    assert (verdict, rerun) == ("differs", "")
    assert "; with exact arithmetic in place of exp, outputs differ, too: y: 1 of 1" in words


def test_what_has_no_bound_is_unchecked(monkeypatch):
    text = INEXACT.replace("exp(x[0])", "tan(1.5e6 * exp(x[0]))")
    verdict, words, _ = judged(monkeypatch, text, 12345.0, x=HALF)
    assert verdict == "unchecked"
    assert words.startswith(
        "WGSL bounds no error of 1 of the elements that differ, so that they show nothing, and with"
    )


def test_a_cause_that_makes_outputs_agree_says_nothing_of_exact_arithmetic(monkeypatch):
    text = ONE.format(type="f32", body="y[0] = exp(x[0]) * 0.0 + x[u32(x[0]) + 7u];")
    x = np.array([0.5, 8.0, 0.25], np.float32).view(np.uint8)
    verdict, words, rerun = judged(monkeypatch, text, 0.25, 0.25, x=x)  # the last element; lavapipe leaves it out
    assert (verdict, rerun) == ("explained", "the simulator, with other accesses out of bounds")
    assert "with exact arithmetic" not in words


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (evidence.ExactComparison(["exp", "tan"], agree=True),
         "with exact arithmetic in place of exp, tan, all outputs agree bit for bit"),
        (evidence.ExactComparison([], agree=True), "without reordering, all outputs agree bit for bit"),
        (evidence.ExactComparison(["exp"], differ="y"),
         "with exact arithmetic in place of exp, outputs differ, too: y"),
        (evidence.ExactComparison(["exp"]), ""),
    ],
)  # fmt: skip
def test_a_comparison_with_exact_arithmetic_in_words(made, words):
    assert made.words == words


@pytest.mark.parametrize(
    ("body", "exact", "expected"),
    [
        ("y[0] = exp(x[0]);", None, (["exp"], True, "")),
        ("y[0] = exp(x[0]);", 7.0, (["exp"], False, "y: 1 of 1")),
        ("y[0] = exp(x[0]) + x[u32(x[0]) + 7u];", "clamped", (["exp"], False, "")),  # another policy explains it
    ],
    ids=["agree", "differ", "explained"],
)
def test_both_sides_with_exact_arithmetic(monkeypatch, body, exact, expected):
    entry, ours = tried(monkeypatch, ONE.format(type="f32", body=body), x=HALF)
    if exact == "clamped":
        other, _ = entry.with_exact_arithmetic()
        given = {**ours.given, **evidence.DATA}
        (exact,) = other.simulate(given, out_of_bounds="clamp").outputs["y"].view(np.float32)
    monkeypatch.setattr(trial._Entry, "on_wgpu", both(None, exact))
    found = evidence.compare_exactly(entry, ours)
    assert (found.names, found.agree, found.differ.partition(",")[0]) == expected


def test_the_first_two_outputs_that_differ_with_exact_arithmetic_are_named(monkeypatch):
    outputs = "".join(f"@group(0) @binding({n}) var<storage, read_write> y{n}: array<f32, 1>;" for n in range(3))
    body = "".join(f"y{n}[0] = exp(y{n}[0]);" for n in range(3))
    entry, ours = tried(monkeypatch, f"{outputs} @compute @workgroup_size(1) fn main() {{ {body} }}")
    theirs = {f"y{n}": np.array([7.0], np.float32) for n in range(3)}
    monkeypatch.setattr(trial._Entry, "on_wgpu", lambda *given: theirs)
    differ = evidence.compare_exactly(entry, ours).differ
    assert [name for name in theirs if f"{name}: 1 of 1" in differ] == ["y0", "y1"]


def test_without_a_text_of_exact_arithmetic_nothing_is_compared(monkeypatch):
    entry, ours = tried(monkeypatch, ONE.format(type="u32", body="y[0] = x[0];"))
    assert evidence.compare_exactly(entry, ours) is None


# ---- entry points ------------------------------------------------------------------------------------

STAGES = """
@vertex fn corner() -> @builtin(position) vec4<f32> { return vec4(0.0); }
@compute @workgroup_size(1) fn one() {}
@fragment fn colour() {}
@compute @workgroup_size(1) fn two() {}
"""


@pytest.mark.parametrize(("skip", "names"), [(0, ["one", "two"]), (1, ["two"]), (2, [])])
def test_compute_entry_points_are_tried(monkeypatch, skip, names):
    monkeypatch.setattr(trial._Entry, "run", lambda entry: entry._trial("equal"))
    assert [made.entry for made in trials(Shader(Path("a.wgsl"), 1, STAGES), None, skip)] == names


def test_a_module_without_a_compute_stage_is_one_trial():
    text = STAGES.replace("@compute @workgroup_size(1)", "@fragment")
    assert [(made.entry, made.verdict) for made in trials(Shader(Path("a.wgsl"), 1, text), None)] == [
        (None, "no-compute")
    ]


# ---- rounding ----------------------------------------------------------------------------------------

# The last two bits of a result change, so that it moves by up to 3 units in the last place; of functions that WGSL lets
# be far off, bit 6 as well.
NO_FLOATS = "y[0] = x[0];"
AS_BITS = "y[0] = bitcast<u32>(bitcast<f32>(x[0]));"  # one float result


@pytest.mark.parametrize(("flipped", "covered"), [(1, True), (2, True), (3, True), (4, False), (5, False)])
def test_rounding_covers_bits_that_become_those_of_the_other_side(monkeypatch, flipped, covered):
    """An output of integers is covered only where a change of the last bits gives just what wgpu gives."""
    x = np.array([1, 2, 3], np.float32).view(np.uint8)
    entry, ours = tried(monkeypatch, ONE.format(type="u32", body=AS_BITS), x=x, y=np.zeros(4, np.uint8))
    theirs = {"y": (ours.outputs["y"].view(np.uint32) ^ np.uint32(flipped)).view(np.uint8)}
    assert any(mask["y"].all() for mask in cover._rounding(entry, ours, theirs)) == covered


@pytest.mark.parametrize(
    ("body", "units", "covered"),
    [
        ("y[0] = x[0] + x[1];", 1, True),
        ("y[0] = x[0] + x[1];", 3, True),
        ("y[0] = x[0] + x[1];", 4, False),
        ("y[0] = sin(x[0]);", 64, True),
        ("y[0] = sin(x[0]);", 65, False),
        ("y[0] = tanh(x[0]);", 64, True),
        ("y[0] = sqrt(x[0]);", 64, False),
        (NO_FLOATS, 1, False),
    ],
)
def test_rounding_covers_what_moves_as_far(monkeypatch, body, units, covered):
    x = np.array([1, 2, 3], np.float32).view(np.uint8)
    entry, ours = tried(monkeypatch, ONE.format(type="f32", body=body), x=x, y=np.zeros(4, np.uint8))
    bits = ours.outputs["y"].view(np.uint32)
    theirs = {"y": (bits + np.uint32(units)).view(np.float32)}
    masks = list(cover._rounding(entry, ours, theirs))
    assert any(mask["y"].all() for mask in masks) == covered
    assert bool(masks) == (body != NO_FLOATS)


def test_loops_that_a_driver_leaves_explain_a_difference(monkeypatch):
    text = ONE.format(type="f32", body="for (var i = 0u; i < u32(x[2]); i++) { y[0] += x[0]; }")
    given = {"x": np.array([1, 0, 9], np.float32).view(np.uint8), "y": np.zeros(4, np.uint8)}
    verdict, words, rerun = judged(monkeypatch, text, 4.0, 4.0, device=LAVAPIPE.with_(loop_turns=4), **given)
    assert (verdict, rerun) == ("explained", "the simulator, with loops that end after the driver's limit")
    assert words.startswith(LEFT)


LOST = """
@group(0) @binding(0) var<storage, read_write> y: array<u32, 1>;
@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) i: u32) { if i == 0u { let v = y[0]; storageBarrier(); y[0] = v + 1u; } }
"""


@pytest.mark.parametrize(("theirs", "explained"), [(1, True), (2, True), (4, False)])
def test_orders_of_workgroups_that_lose_updates(monkeypatch, theirs, explained):
    """One by one, four workgroups add 4, in every order by invocation or subgroup; side by side, they add less."""
    entry, _ = tried(monkeypatch, LOST.replace("storageBarrier();", ""), y=np.zeros(4, np.uint8))
    entry.grid = (4, 1, 1)
    given = {"y": np.zeros(4, np.uint8)}
    ours = Run(RECIPE, given, entry.simulate(given))
    assert ours.outputs["y"].view(np.uint32).tolist() == [4]
    reason = cover.explained_by(cover.WAYS[0])(entry, ours, {"y": np.array([theirs], np.uint32)})
    assert ("the order of invocations decides the elements that differ" in (reason or "")) == explained


@pytest.mark.parametrize(
    ("body", "code"), [("y[0] = i;", "race"), ("y[atomicAdd(&c, 1)] = i;", "atomic-order")], ids=["race", "atomic"]
)
def test_the_place_where_the_order_decides_is_named(monkeypatch, body, code):
    text = f"""@group(0) @binding(0) var<storage, read_write> y: array<u32, 2>;
@group(0) @binding(1) var<storage, read_write> c: atomic<u32>;
@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {{ if i < 2 {{ {body} }} }}"""
    entry, ours = tried(monkeypatch, text, y=np.zeros(8, np.uint8), c=np.zeros(4, np.uint8))
    assert cover._unordered(entry, ours).startswith(f" ({code}, line 4: ")


def test_the_place_of_a_shuffle_from_an_inactive_lane_is_named(monkeypatch):
    text = """enable subgroups; @group(0) @binding(0) var<storage, read_write> y: array<u32, 4>;
@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) { y[i + 9] = 1; y[i] = subgroupShuffleXor(i, 16); }"""
    entry, ours = tried(monkeypatch, text, y=np.zeros(16, np.uint8))
    assert cover._shuffle(entry, ours).startswith(" (inactive-lane, line 3: ")


def test_bounds_allow_nothing_where_arithmetic_is_exact(monkeypatch):
    entry, ours = tried(monkeypatch, INEXACT, x=HALF, y=np.zeros(4, np.uint8))
    theirs = {"y": np.array([NEAR], np.float32)}
    assert cover.within_bounds(entry, ours, theirs)["y"].tolist() == [True]
    entry.exact = True
    assert cover.within_bounds(entry, ours, theirs) == {}
