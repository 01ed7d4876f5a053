"""Instructions by class against counts made by hand, of the shader as written."""

import numpy as np
import pytest

import bankshot
from bankshot.sim.ir.instruction_classes import CLASSES, class_of
from bankshot.sim.run.executed_instructions import by_class
from bankshot.sim.scalar import OPS

HEAD = """
enable f16;
enable subgroups;
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(0) @binding(1) var<uniform> p: vec4u;
override SIZE = 4u;
var<workgroup> tile: array<vec4f, 64>;
var<workgroup> sum: atomic<u32>;
"""


def run(body, size=64, grid=1, probes="all"):
    source = f"""{HEAD}
    @compute @workgroup_size({size}) fn main(@builtin(local_invocation_index) i: u32) {{
        let f = f32(i);
        {body}
    }}"""
    given = {"y": np.zeros(256, np.float32), "p": np.array([3, 0, 0, 0], np.uint32)}
    return bankshot.simulate(source, grid=grid, bindings=given, probes=probes)


CONVERT = {"conversion": 1}  # f


@pytest.mark.parametrize(
    ("body", "counts"),
    [
        ("y[i] = f + 1.0;", {"fp32": 1, "storage_store": 1}),
        ("y[i] = f * f + max(f, 2.0);", {"fp32": 3, "storage_store": 1}),
        ("y[i] = (vec4f(f) * 2.0).x;", {"fp32": 4, "storage_store": 1}),  # as written: all four
        ("y[i] = exp(f) + sqrt(f);", {"special": 2, "fp32": 1, "storage_store": 1}),
        ("y[i + 1u] = f;", {"integer": 1, "storage_store": 1}),
        ("y[i] = f32(f16(f) * 2.0h);", {"conversion": 2, "fp16": 1, "storage_store": 1}),
        ("y[i] = bitcast<f32>(i & 7u);", {"integer": 1, "storage_store": 1}),
        ("y[SIZE * 2u + 1u] = f;", {"storage_store": 1}),  # known before the shader runs
        ("tile[i] = vec4f(f); y[i] = tile[i].x + tile[0].y;", {"workgroup_store": 1, "workgroup_load": 2, "fp32": 1,
                                                               "storage_store": 1}),
        ("y[i] = y[p.x];", {"uniform_load": 1, "storage_load": 1, "storage_store": 1}),
        ("atomicAdd(&sum, 1u); workgroupBarrier();", {"atomic": 1, "barrier": 1}),
        ("y[i] = subgroupAdd(f);", {"subgroup": 1, "storage_store": 1}),
        # no branch, so that && is none
        ("y[i] = select(f, 1.0, i < 2u && i > 0u);", {"integer": 2, "fp32": 1, "storage_store": 1}),
        ("if p.x == 3u { y[i] = f; }", {"uniform_load": 1, "integer": 1, "control": 1, "storage_store": 1}),
    ],
)  # fmt: skip
def test_each_operation_is_of_one_class(body, counts):
    expected = {kind: counts.get(kind, 0) + CONVERT.get(kind, 0) for kind in counts | CONVERT}
    done = by_class(run(body, grid=3).instructions)
    assert done == {kind: (3 * 2 * n, 3 * 64 * n) for kind, n in expected.items()}


@pytest.mark.parametrize("right", ["frexp(f).exp > 3", "modf(f).whole > 2.0", "exp2(f) > 3.0"])
def test_the_right_side_with_a_float_result_is_executed_where_the_left_does_not_decide(right):
    """A result with a float among its members, too; whichever probes there are."""
    counted = [
        {row.kind: row.lanes for row in run(f"_ = i < 2u && {right};", probes=probes).instructions}
        for probes in ("all", ("lanes", "flops"))
    ]
    assert counted[0] == counted[1]
    assert 0 < counted[0]["fp32"] <= 2 * 2


def test_what_is_written_in_a_loop_counts_in_each_turn_although_the_program_moves_it_out():
    done = run("for (var k = 0u; k < 5u; k++) { y[i] = f * 2.0; }", size=32)
    # six times the condition, and its branch; five times the body and k++
    assert {kind: lanes // 32 for kind, (_, lanes) in by_class(done.instructions).items()} == {
        "conversion": 1,
        "fp32": 5,
        "integer": 6 + 5,
        "control": 6,
        "storage_store": 5,
    }


def test_branches_count_the_subgroups_that_issue_and_the_lanes_that_are_active():
    done = run("if i < 40u { y[i] = f + 1.0; } else { y[i] = f * 2.0 - 1.0; return; }")
    counts = by_class(done.instructions)
    assert counts["fp32"] == (2 * 1 + 1 * 2, 40 * 1 + 24 * 2)
    assert counts["control"] == (2 + 1, 64 + 24)
    assert counts["integer"] == (2, 64)


def test_each_place_has_its_line():
    done = run("let a = f + 1.0;\n        y[i] = a * 2.0 * 3.0;")
    fp32 = [(row.line, row.lanes) for row in done.instructions if row.kind == "fp32"]
    first = fp32[0][0]
    assert fp32 == [(first, 64), (first + 1, 64), (first + 1, 64)]


def test_calls_that_are_inlined_are_one_place():
    source = f"{HEAD} fn half(x: f32) -> f32 {{ return x * 0.5; }}"
    source += "@compute @workgroup_size(32) fn main() { y[0] = half(y[0]) + half(y[1]); }"
    given = {"y": np.zeros(4, np.float32), "p": np.zeros(4, np.uint32)}
    done = bankshot.simulate(source, grid=1, bindings=given)
    assert [row.lanes for row in done.instructions if row.kind == "fp32"] == [64, 32]


def test_without_the_probe_of_lanes_there_are_none():
    assert run("y[i] = f;", probes="none").instructions == []


def test_flops_are_instructions_of_their_classes():
    """Where each operation rounds one f32, their lanes are the FLOPs."""
    done = run("y[i] = (f + 1.0) * (f - 2.0) / 3.0;")
    assert by_class(done.instructions)["fp32"][1] == done.counters["flops"] == 64 * 4


def test_every_operation_has_a_class():
    concrete = [op for op, row in OPS.items() if not {"ai", "af"} & {row.result, *row.args}]
    assert len(concrete) > 200
    assert {class_of(op) for op in concrete} == {"fp32", "fp16", "special", "integer", "conversion", None}
    assert {class_of(op) for op in concrete} - {None} <= set(CLASSES)
