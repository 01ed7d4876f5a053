"""Texts that a diagnosis runs instead of the kernel's: with other values in lanes that are not active, and with zeroed
workgroup memory."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot
from bankshot.oracle.diagnosis.absent_lanes import with_other_lanes
from bankshot.oracle.diagnosis.adapter_reruns import filling, zeroing, zeroing_statements
from bankshot.sim.models.devices import NVIDIA

Y = "@group(0) @binding(0) var<storage, read_write> y: array<f32>;"
SHUFFLES = f"""\
enable subgroups; {Y} override SIZE = 4u; override ACTIVE = 3u;
fn same(x: u32) -> u32 {{ return x; }}
@compute @workgroup_size(SIZE) fn main(@builtin(subgroup_invocation_id) i: u32) {{
    if i < ACTIVE {{ let v = f32(i) + 10; y[i] = SHUFFLE; }}
}}"""


def other_lanes(shuffle: str) -> str | None:
    return with_other_lanes(bankshot.check(SHUFFLES.replace("SHUFFLE", shuffle), uniformity="off").pipeline("main", {}))


def simulated(text: str, size: int, active: int, subgroup_size: int) -> list[float]:
    given = {"y": np.zeros(size, np.float32)}
    run = bankshot.simulate(
        bankshot.check(text, uniformity="off"),
        grid=1,
        bindings=given,
        overrides={"SIZE": size, "ACTIVE": active},
        device=NVIDIA.with_(subgroup_size=subgroup_size),
        probes="none",
    )
    return run.output("y").tolist()


@pytest.mark.parametrize(
    ("shuffle", "expected"),
    [
        ("subgroupShuffle(v, i + 1u)", [11, 12, 1234, 0]),
        ("subgroupShuffle(v, 2u - i)", [12, 11, 10, 0]),
        ("subgroupShuffle(v, i * 31u)", [10, 1234, 1234, 0]),  # lanes 31, and 62 of 32
        ("subgroupShuffle(v, 1u + i * 128u)", [11, 1234, 1234, 0]),
        ("subgroupShuffleXor(v, 1u)", [11, 10, 1234, 0]),
        ("subgroupShuffleXor(v, 2u)", [12, 1234, 10, 0]),
        ("subgroupShuffleUp(v, 2u)", [1234, 1234, 10, 0]),
        ("subgroupShuffleDown(v, 2u)", [12, 1234, 1234, 0]),
        ("subgroupBroadcast(v, 2)", [12, 12, 12, 0]),
        ("subgroupBroadcast(v, 3)", [1234, 1234, 1234, 0]),
        ("v + subgroupBroadcastFirst(v)", [20, 21, 22, 0]),
    ],
)
def test_lanes_that_are_not_active_give_1234(shuffle: str, expected: list[float]) -> None:
    """Lanes 0 to 2 of 4 are active, and hold 10, 11 and 12."""
    text = other_lanes(shuffle)
    if "First" in shuffle:  # reads an active lane
        assert text is None
        return
    assert text is not None
    assert simulated(text, 4, 3, 32) == expected


@pytest.mark.parametrize(("size", "active"), [(64, 40), (128, 70)])
def test_lanes_of_large_subgroups_are_looked_up_in_their_word_of_the_ballot(size: int, active: int) -> None:
    text = other_lanes(f"subgroupShuffle(v, {size - 1}u - i)")
    assert text is not None
    lanes = np.arange(size)
    read = size - 1 - lanes
    expected = np.where(lanes < active, np.where(read < active, read + 10, 1234), 0)
    assert simulated(text, size, active, size) == expected.tolist()


@pytest.mark.parametrize(
    "shuffle", ["subgroupShuffle(v + f32(same(1u)), i + 1u)", "subgroupShuffle(v, same(i) + 1u)",
                "subgroupShuffle(v, same(i)) + subgroupShuffle(v, 1u)"]
)  # fmt: skip
def test_a_call_in_an_argument_is_not_made_twice(shuffle: str) -> None:
    assert other_lanes(shuffle) is None


@pytest.mark.parametrize(
    ("declared", "statements"),
    [
        ("w: f32", "w = f32();"),
        ("w: array<vec2f, 4>", "w = array<vec2<f32>, 4>();"),
        ("w: atomic<u32>", "atomicStore(&w, 0);"),
        ("w: Plain", "w = Plain();"),
        ("w: Counted", "atomicStore(&w.c, 0); w.d = vec2<f32>();"),
        ("w: array<f32, n>", "for (var zeroed_0 = 0u; zeroed_0 < 6u; zeroed_0++) { w[zeroed_0] = f32(); }"),
        (
            "w: array<array<atomic<u32>, 2>, 3>",
            "for (var zeroed_0 = 0u; zeroed_0 < 3u; zeroed_0++) { for (var zeroed_1 = 0u; zeroed_1 < 2u; zeroed_1++) "
            "{ atomicStore(&w[zeroed_0][zeroed_1], 0); } }",
        ),
        (
            "w: array<Counted, 2>",
            "for (var zeroed_0 = 0u; zeroed_0 < 2u; zeroed_0++) { atomicStore(&w[zeroed_0].c, 0); "
            "w[zeroed_0].d = vec2<f32>(); }",
        ),
    ],
)
def test_workgroup_memory_is_zeroed_by_assignments_that_wgsl_allows(declared: str, statements: str) -> None:
    text = f"""override n = 6u; struct Plain {{ c: u32, d: vec2f }} struct Counted {{ c: atomic<u32>, d: vec2f }}
        var<workgroup> {declared}; var<workgroup> unused: u32; var<private> other: u32;
        @compute @workgroup_size(1) fn main() {{ other = 1; _ = &w; }}"""
    module = bankshot.check(text)
    pipeline = module.pipeline()
    assert zeroing_statements(pipeline) == statements
    zeroed, control = zeroing(text, pipeline), zeroing(text, pipeline, zero=False)
    assert zeroed == text.replace("{ other", f"{{ {statements} workgroupBarrier();  other")
    assert control == text.replace("{ other", "{  workgroupBarrier();  other")
    bankshot.check(zeroed)


def test_a_kernel_without_workgroup_memory_has_nothing_to_zero() -> None:
    text = "var<workgroup> unused: u32; var<private> p: u32; @compute @workgroup_size(1) fn main() { p = 1; }"
    pipeline = bankshot.check(text).pipeline()
    assert zeroing_statements(pipeline) == ""
    assert zeroing(text, pipeline) is None


def test_the_text_that_fills_workgroup_memory_leaves_no_word_as_it_was() -> None:
    """Its last word reaches the buffer: the pattern of a NaN with a payload."""
    run = bankshot.simulate(filling("fill"), grid=1, bindings={"bankshot_zero": np.zeros(4, np.uint32)})
    assert run.output("bankshot_zero").tolist() == [0x7FC07FC0, 0, 0, 0]
