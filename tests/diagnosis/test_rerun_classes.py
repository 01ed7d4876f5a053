"""Which reruns a class makes, in their order, and which results of them are evidence."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import bankshot
from bankshot.oracle.comparison.rules import EXACT
from bankshot.oracle.diagnosis import adapter_reruns, simulator_reruns
from bankshot.oracle.diagnosis.causes import ALL
from bankshot.oracle.diagnosis.mismatch import MOST, Mismatch
from bankshot.oracle.errors import GpuError
from bankshot.sim.models.devices import NVIDIA

FOUND = SimpleNamespace(code="race", span=None, message="two stores", spans=(), verdict="harmful", notes=())
AGREES = "all 20 elements agree"


TEXT = """\
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
var<workgroup> w: f32;
@compute @workgroup_size(1) fn main() { y[0] = w * 3.0 + 1.0; }
"""


class MadeUp:
    """Twenty elements, all wrong. `results`: by what the reruns are given, in words, how many elements change; None
    where all agree. Any other rerun changes nothing."""

    def __init__(self, results: dict[str, int | None] | None = None, *codes: str, kind: str = "subgroup") -> None:
        self.results, self.codes = results or {}, codes
        self.reruns: list[str] = []
        self.run = SimpleNamespace(device=NVIDIA, program=SimpleNamespace(sites=[SimpleNamespace(kind=kind)]))
        self.wrong, self.wrong_elements, self.all_elements_agree = np.ones(20, bool), "the 20 elements", AGREES

    def find(self, code: str) -> Any:
        return FOUND if code in self.codes else None

    def rerun_output(self, **options: Any) -> str:
        ((name, value),) = options.items()
        words = f"{value.subgroup_size} {value.fma}" if name == "device" else f"{name} {value}"
        self.reruns.append(words)
        return words

    def agrees(self, values: str) -> bool:
        return self.results.get(values, 0) is None

    def count_changed(self, values: str) -> int:
        return self.results.get(values, 0) or 0


def m(made: MadeUp) -> Mismatch:
    return cast(Mismatch, made)


ORDERS = ["schedule subgroup-serial", "schedule reversed", "schedule random(1)"]
POLICIES = [f"out_of_bounds {policy}" for policy in ("zero", "zero-buffers", "clamp", "wrap")]


@pytest.mark.parametrize(
    ("code", "reruns"),
    [("race", ORDERS), ("atomic-order", ["schedule mirrored", *ORDERS]), ("out-of-bounds", POLICIES)],
)
def test_every_other_choice_is_tried(code: str, reruns: list[str]) -> None:
    made = MadeUp({}, code)
    assert simulator_reruns.decides(code, 0)(m(made)) is None
    assert made.reruns == reruns


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("zero", "left out"),
        ("zero-buffers", "left out in buffers"),
        ("clamp", "clamped"),
        ("wrap", "wrapped around"),
    ],
)
def test_a_policy_that_agrees_is_named_and_is_the_last(option: str, words: str) -> None:
    made = MadeUp({f"out_of_bounds {option}": None}, "out-of-bounds")
    found = simulator_reruns.decides("out-of-bounds", ALL)(m(made))
    assert found == f"with accesses out of bounds {words}, {AGREES}; race, two stores"
    assert made.reruns == POLICIES[: POLICIES.index(f"out_of_bounds {option}") + 1]


@pytest.mark.parametrize(
    ("least", "changed", "enough"),
    [(0, 0, False), (0, 1, True), (MOST, 17, False), (MOST, 18, True), (ALL, 20, False), (0.5, 10, True)],
)
def test_enough_of_the_wrong_elements_must_change(least: float, changed: int, enough: bool) -> None:
    """The order that changes the most elements is the evidence."""
    made = MadeUp({"schedule reversed": changed, "schedule random(1)": changed // 2}, "race")
    words = f"run reversed, {changed} of the 20 elements change; race, two stores"
    assert simulator_reruns.decides("race", least)(m(made)) == (words if enough else None)
    assert made.reruns == ORDERS


def test_nothing_is_rerun_without_the_finding_or_with_one_that_causes_it() -> None:
    for codes in ((), ("atomic-order",), ("race", "out-of-bounds")):
        made = MadeUp({"schedule reversed": 20}, *codes)
        assert simulator_reruns.decides("race", 0, "out-of-bounds")(m(made)) is None
        assert made.reruns == []


def test_every_other_subgroup_size_is_tried() -> None:
    """WGSL allows the powers of two from 4 to 128; the run had 32."""
    made = MadeUp()
    assert simulator_reruns.subgroup_size(m(made)) is None
    assert made.reruns == [f"{size} contracted" for size in (4, 8, 16, 64, 128)]


def test_a_subgroup_size_that_agrees_is_named_and_is_the_last() -> None:
    made = MadeUp({"16 contracted": None, "64 contracted": None})
    assert simulator_reruns.subgroup_size(m(made)) == f"with subgroups of 16 instead of 32, {AGREES}"
    assert len(made.reruns) == 3


def test_a_kernel_without_operations_of_subgroups_does_not_depend_on_their_size() -> None:
    made = MadeUp({"16 contracted": None}, kind="global")
    assert simulator_reruns.subgroup_size(m(made)) is None
    assert made.reruns == []


@pytest.mark.parametrize(
    ("results", "found", "reruns"),
    [
        ({}, None, ["separate", "fused"]),
        ({"32 separate": None}, "separate", ["separate"]),
        ({"32 fused": None}, "fused", ["separate", "fused"]),
    ],
)
def test_every_other_contraction_is_tried(results: dict, found: str | None, reruns: list[str]) -> None:
    made = MadeUp(results)
    words = found and f"with fma {found} instead of contracted, {AGREES}"
    assert simulator_reruns.contraction(m(made)) == words
    assert made.reruns == [f"32 {each}" for each in reruns]


@pytest.mark.parametrize(
    ("text", "wider"),
    [
        ("enable f16;", ""),
        ("enable f16 ; x", " x"),
        ("enable f16, subgroups;", "enable subgroups;"),
        ("enable subgroups, f16;", "enable subgroups;"),
        ("enable a, f16, b;", "enable a, b;"),
        ("vec2h vec3h vec4h vec5h myvec4h", "vec2f vec3f vec4f vec5h myvec4h"),
        ("mat2x3h mat4x4h", "mat2x3f mat4x4f"),
        ("array<f16, 4> af16", "array<f32, 4> af16"),
        ("1h 1.h .5h 2.5h 1e3h 1.5E-3h 2e+3h", "1f 1.f .5f 2.5f 1e3f 1.5E-3f 2e+3f"),
        ("x1h a.b2h 0h", "x1h a.b2h 0f"),
    ],
)
def test_f16_becomes_f32_in_types_literals_and_directives(text: str, wider: str) -> None:
    assert simulator_reruns.widened(text) == wider


@pytest.mark.parametrize(
    ("values", "wrong", "found"),
    [
        ([1.0, 2.0], [1, 0], True),  # nothing that is not finite is in the output: it may have decided a branch
        ([np.inf, 2.0], [1, 0], True),
        ([np.nan, 2.0], [0, 1], False),
        ([np.nan, np.inf], [0, 1], True),
        ([np.nan, 2.0], [1, 1], True),
        ([1, 2], [0, 1], True),
    ],
)
def test_numbers_out_of_range_must_reach_an_element_that_differs(values: list, wrong: list, found: bool) -> None:
    made = MadeUp({}, "not-finite")
    vars(made).update(ours=np.array(values), wrong=np.array(wrong, bool))
    assert simulator_reruns.out_of_range(m(made)) == ("race, two stores" if found else None)
    vars(made).update(codes=())
    assert simulator_reruns.out_of_range(m(made)) is None


# ---- on a GPU, which is made up here ---------------------------------------------------------------------


class OnGpu:
    """Two elements, of which the simulator computes 1 and 2. `results`: of the GPU, in turn; an error is raised."""

    def __init__(self, *results: list[float] | Exception, text: str = TEXT, fma: str = "fused") -> None:
        self.results, self.texts = [*results], list[str | None]()
        pipeline = bankshot.check(text).pipeline()
        self.run = SimpleNamespace(device=NVIDIA.with_(fma=fma), pipeline=pipeline)
        self.ours, self.rule, self.bound = np.float32([1, 2]), EXACT, None
        self.expected, self.on_gpu = np.float32([1, 7]), object()
        self.reruns: list[str] = []

    def run_on_gpu(self, text: str | None = None) -> Any:
        self.texts.append(text)
        result = self.results.pop(0)
        if isinstance(result, Exception):
            raise result
        return np.float32(result)

    def rerun_output(self, device: Any) -> Any:
        self.reruns.append(device.fma)
        return np.float32([5, 6])


def gpu(made: OnGpu) -> Mismatch:
    return cast(Mismatch, made)


@pytest.mark.parametrize(
    ("result", "fma", "found"),
    [
        ([1, 2], "fused", True),
        ([1, 7], "fused", False),  # one element stays wrong
        ([9, 7], "fused", False),
        (GpuError("refused"), "fused", False),
        ([5, 6], "contracted", True),  # what is fused depends on the text, so that both run as fused
        ([1, 2], "contracted", False),
    ],
)
def test_a_driver_reorders_if_all_elements_agree_where_it_cannot(result: Any, fma: str, found: bool) -> None:
    made = OnGpu(result, fma=fma)
    assert (adapter_reruns.reorders_floats(gpu(made)) is not None) == found
    assert made.reruns == (["fused"] if fma == "contracted" else [])
    (text,) = made.texts
    assert "bankshot_kept_f32" in str(text)


@pytest.mark.parametrize(
    ("results", "found"),
    [
        ([[1, 7], [1, 7]], None),
        ([[1, 7], [2, 8]], "wgpu gives different results from run to run: 2 elements differ"),
        ([[3, 8]], "wgpu gives different results from run to run: 2 elements differ"),
    ],
)
def test_two_reruns_must_give_the_same_bits(results: list, found: str | None) -> None:
    made = OnGpu(*results)
    assert adapter_reruns.unsteady(gpu(made)) == found
    assert made.results == []


@pytest.mark.parametrize(
    ("results", "found"),
    [
        ([[1, 2], [1, 7]], True),
        ([[1, 7]], False),  # zeros do not make all elements agree
        ([[1, 2], [1, 2]], False),  # nor are they needed: a barrier does
        ([GpuError("refused")], False),
        ([[1, 2], GpuError("refused")], False),
    ],
)
def test_zeros_alone_must_make_all_elements_agree(results: list, found: bool) -> None:
    made = OnGpu(*results)
    assert (adapter_reruns.not_zeroed(gpu(made)) is not None) == found
    assert made.results == []
    assert ["w = f32();" in str(text) for text in made.texts] == [True, False][: len(results)]


def test_nothing_is_rerun_on_a_gpu_where_the_text_or_the_comparison_has_none() -> None:
    without, simulated = OnGpu(text=TEXT.replace("w * 3.0 + ", "")), OnGpu()
    simulated.on_gpu = cast(Any, None)
    for made in (without, simulated):
        assert adapter_reruns.reorders_floats(gpu(made)) is None
        assert adapter_reruns.not_zeroed(gpu(made)) is None
    for reason in (adapter_reruns.unsteady, adapter_reruns.loops_left, adapter_reruns.racing_memory):
        assert reason(gpu(simulated)) is None
    assert (without.texts, simulated.texts) == ([], [])
