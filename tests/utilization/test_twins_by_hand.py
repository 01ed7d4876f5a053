"""Utilization of small kernels whose issue slots are worked out by hand, instruction by instruction.

Subgroups have 32 lanes. Each row of `slots` is a line: issued, active, useful.
"""

import numpy as np
import pytest

import bankshot

HEAD = """@group(0) @binding(0) var<storage> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> tile: array<f32, 64>;
@compute @workgroup_size({size})
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u, @builtin(num_workgroups) n: vec3u) {{
"""
FIRST = 6  # line of the body


def run(body, size=64, grid=1, y=0.0, words=256):
    given = {"x": np.arange(1, words + 1, dtype=np.float32), "y": np.full(words, y, np.float32)}
    return bankshot.simulate(HEAD.format(size=size) + body + "\n}", bindings=given, grid=grid, probes=("lanes",))


def slots(found):
    return {row.line - FIRST: (row.issued, row.active, row.useful) for row in found.lines}


def totals(found):
    return tuple(sum(row[i] for row in slots(found).values()) for i in range(3))


def test_a_guard_by_if():
    found = run("if i < 5u {\ny[i] = x[i] + 1.0;\n}")
    used = found.utilization
    # Both subgroups compare and branch; the first one loads, adds and stores.
    assert slots(used) == {0: (2 * 64, 2 * 64, 2 * 5), 1: (3 * 32, 3 * 5, 3 * 5)}
    assert used.lane_efficiency == 143 / 224
    assert used.useful_lane_efficiency == 25 / 224
    assert used.workgroup_balance == (5 + 2) / (5 + 5)
    assert used.exact
    assert used.missing == ""


def test_a_guard_by_return():
    found = run("if i >= 5u {\nreturn;\n}\ny[i] = x[i] + 1.0;")
    used = found.utilization
    # The lanes that return do nothing else, so their `return` is of no use.
    assert slots(used) == {0: (2 * 64, 2 * 64, 2 * 5), 1: (64, 59, 0), 3: (3 * 32, 3 * 5, 3 * 5)}
    assert used.workgroup_balance == (6 + 3) / (6 + 6)


@pytest.mark.parametrize("body", ["if i < 5u { y[i] = x[i] + 1.0; }", "if i >= 5u { return; } y[i] = x[i] + 1.0;"])
def test_both_guards_have_the_same_cause(body):
    idle = run(body).total
    assert (idle.idle_guard > 0, idle.idle_divergence, idle.idle_overhang) == (True, 0, 0)


ZEROS = "var sum = 0.0;\nif i < 5u {\nsum = x[i];\n}\ny[i] = sum;"


def test_five_lanes_of_64_that_all_store():
    used = run(ZEROS).utilization
    assert slots(used) == {1: (128, 128, 10), 2: (32, 5, 5), 4: (64, 64, 5)}
    assert used.headline.key == "grid_fill"  # one workgroup on a whole GPU
    assert used.useful_lane_efficiency == 20 / 224


def test_a_zero_over_another_number_is_of_use():
    assert slots(run(ZEROS, y=7.0).utilization)[4] == (64, 64, 64)


def test_a_ragged_tile():
    body = """var v = 0.0;
        if i < 40u { v = x[i]; }
        tile[i] = v;
        workgroupBarrier();
        if i < 40u {
            let other = tile[63u - i];
            y[i] = tile[i] + other;
        }"""
    used = slots(run(body).utilization)
    # Lanes 0 to 23 add a padding zero, which lanes 40 to 63 have stored: only lanes 24 to 39 add numbers.
    assert used[1] == (3 * 64, 64 + 64 + 40, 3 * 40)
    assert used[2] == (64, 64, 40)
    assert used[3] == (64, 64, 40)
    assert used[4] == (2 * 64, 2 * 64, 2 * 40)
    assert used[5] == (2 * 64, 2 * 40, 2 * 16)  # 63 - i, and the load
    assert used[6] == (3 * 64, 3 * 40, 40 + 16 + 40)  # load, sum, store


def test_a_loop_that_diverges():
    body = "var sum = 0.0;\nfor (var k = 0u; k < i; k++) {\nsum += x[k];\n}\ny[i] = sum;"
    used = slots(run(body, size=32).utilization)
    # Lane i checks i + 1 times and adds i times. Lane 0 stores a padding zero; the first sum of the others is a copy.
    checks, turns = sum(range(1, 33)), sum(range(32))
    assert used[1] == (2 * 32 * 32 + 31 * 32, 2 * checks + turns, 2 * (checks - 1) + turns)
    assert used[2] == (2 * 31 * 32, 2 * turns, turns + turns - 31)
    assert used[4] == (32, 32, 31)


def test_a_persistent_loop_uses_every_slot():
    body = "for (var b = w.x; b < 3u; b += n.x) {\nlet at = b * 32u + i;\ny[at] = x[at] * 2.0;\n}"
    used = run(body, size=32, grid=2).utilization
    assert (used.lane_efficiency, used.useful_lane_efficiency, used.workgroup_balance) == (1, 1, 1)
    assert used.workgroups == 2
    # A workgroup takes two turns and three checks, the other one turn and two checks.
    assert totals(used)[0] == 32 * (5 * 2 + 3 * 6)


def test_results_that_are_overwritten_are_of_no_use():
    used = slots(run("y[i] = x[i] * 2.0;\ny[i] = x[i] * 3.0;").utilization)
    assert used == {0: (192, 192, 0), 1: (192, 192, 192)}


def test_what_a_barrier_passes_on_is_of_use():
    used = slots(run("tile[i] = x[i];\nworkgroupBarrier();\nif i == 0u { y[0] = tile[9]; }").utilization)
    assert used[0] == (128, 128, 2)  # load and store by lane 9
    assert used[1] == (64, 64, 2)  # by lanes 0 and 9
    assert used[2] == (2 * 64 + 2 * 32, 2 * 64 + 2, 2 + 2)


def test_waiting_at_a_barrier():
    body = """if i < 32u {
            for (var k = 0u; k < 9u; k++) { tile[i] += x[k]; }
        }
        workgroupBarrier();
        y[i] = tile[i & 31u];"""
    used = run(body).utilization
    # First: 2, and of one subgroup 10 checks of 2 and 9 turns of 5; then 1 barrier, which ends it, and 3.
    first, other = 2 + 10 * 2 + 9 * 5 + 1, 2 + 1
    assert used.workgroup_balance == (first + other + 3 + 3) / (2 * first + 2 * 3)


def test_a_shuffle_needs_only_the_lane_that_it_reads():
    wgsl = (
        "enable subgroups;\n"
        + HEAD.format(size=32)
        + "let v = x[i];\nlet s = subgroupShuffle(v, 3u);\nif i == 7u { y[0] = s; }\n}"
    )
    given = {"x": np.ones(32, np.float32), "y": np.zeros(4, np.float32)}
    used = bankshot.simulate(wgsl, bindings=given, grid=1, probes=("lanes",)).utilization
    # One line more than in the others. Lane 3 loads and gives, lane 7 takes.
    assert slots(used)[1] == (32, 32, 1)
    assert slots(used)[2] == (32, 32, 2)


@pytest.mark.parametrize(("call", "lanes"), [("atomicAdd(&c, 1u)", 32), ("atomicLoad(&c)", 1)])
def test_atomics(call, lanes):
    wgsl = f"""@group(0) @binding(0) var<storage, read_write> c: atomic<u32>;
        @group(0) @binding(1) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {{
            let old = {call};
            if i == 7u {{ y[0] = old; }}
        }}"""
    given = {"c": np.zeros(1, np.uint32), "y": np.zeros(4, np.uint32)}
    used = bankshot.simulate(wgsl, bindings=given, grid=1, probes=("lanes",)).utilization
    assert {row.line: row.useful for row in used.lines}[4] == lanes


@pytest.mark.parametrize(("index", "useful"), [("i & 3u", 32), ("2u", 8)])
def test_elements_of_an_array_that_are_read(index, useful):
    """Lanes write element i & 3 and read another: only what is read is of use."""
    body = f"var a: array<f32, 4>;\na[i & 3u] = x[i];\ny[i] = a[{index}];"
    assert slots(run(body, size=32).utilization)[1] == (64, 64, 2 * useful)


def test_a_select_needs_the_operand_that_it_takes():
    used = slots(run("let a = x[i];\nlet b = x[i + 1u];\ny[i] = select(a, b, i < 10u);", size=32).utilization)
    assert used[0] == (32, 32, 22)
    assert used[1] == (64, 64, 20)
    assert used[2] == (96, 96, 96)


def test_products_with_padding_zeros():
    body = "var a = 0.0;\nif i < 8u { a = x[i]; }\nlet b = x[i + 1u];\ny[i] = a * b + 1.0;"
    used = slots(run(body, size=32).utilization)
    assert used[2] == (64, 64, 16)  # b, and its index, are needed where a is no padding zero
    assert used[3] == (96, 96, 8 + 8 + 32)  # product, sum with a number, store


def test_an_address_that_is_known_before_is_not_that_of_the_access_before_it():
    used = slots(run("let v = x[i];\ntile[7] = 2.0;\nworkgroupBarrier();\ny[i] = v + tile[7];").utilization)
    # One of the lanes that store to the same word counts, the last.
    assert used[1][:2] == (64, 64)
    assert used[1][2] >= 1
    assert slots(run("let v = x[i];\ntile[7] = v;\nworkgroupBarrier();\ny[i] = tile[6];").utilization)[1] == (64, 64, 0)


@pytest.mark.parametrize(("kind", "dtype"), [("f32", np.float32), ("u32", np.uint32), ("i32", np.int32)])
def test_a_reduction_over_five_lanes(kind, dtype):
    wgsl = f"""@group(0) @binding(0) var<storage> x: array<{kind}>;
        @group(0) @binding(1) var<storage, read_write> y: array<{kind}>;
        var<workgroup> s: array<{kind}, 8>;
        @compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {{
            var sum = {kind}(0);
            if i < 5u {{ sum = x[i]; }}
            s[i] = sum;
            workgroupBarrier();
            if i < 4u {{ s[i] += s[i + 4u]; }}
            workgroupBarrier();
            if i < 2u {{ s[i] += s[i + 2u]; }}
            workgroupBarrier();
            if i == 0u {{ y[0] = s[0] + s[1]; }}
        }}"""
    given = {"x": np.arange(1, 9, dtype=dtype), "y": np.zeros(1, dtype)}
    used = bankshot.simulate(wgsl, bindings=given, grid=1, probes=("lanes",)).utilization
    rows = {row.line: (row.issued, row.active, row.useful) for row in used.lines}
    assert rows[7] == (32, 8, 5)  # s[i] = sum
    # compare, branch, i + 4, load, load, sum, store: lanes 0 to 3 have a number each, and lane 0 adds another
    assert rows[9] == (7 * 32, 2 * 8 + 5 * 4, 2 * 4 + 1 + 1 + 4 + 1 + 4)
    assert rows[11] == (7 * 32, 2 * 8 + 5 * 2, 2 * 2 + 5 * 2)
    assert rows[13] == (6 * 32, 2 * 8 + 4, 2 + 4)


def test_a_counter_that_starts_at_zero_is_needed_for_addresses():
    body = "var sum = 1.0;\nfor (var k = 0u; k < 3u; k++) {\nsum += x[k * 4u + i];\n}\ny[i] = sum;"
    used = run(body, size=32).utilization
    assert slots(used)[2] == (3 * 4 * 32,) * 3  # product, sum, load, sum of numbers
    assert used.useful_lane_efficiency == 1


def test_products_and_masks_of_integers():
    wgsl = """@group(0) @binding(0) var<storage> x: array<u32>;
        @group(0) @binding(1) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {
            var a = 0u;
            if i < 8u { a = x[i]; }
            let b = x[i + 1u];
            y[i] = (a * b) | 1u;
            y[i + 32u] = (a & b) ^ 2u;
            y[i + 64u] = a << b;
        }"""
    given = {"x": np.arange(1, 65, dtype=np.uint32), "y": np.zeros(96, np.uint32)}
    used = bankshot.simulate(wgsl, bindings=given, grid=1, probes=("lanes",)).utilization
    rows = {row.line: (row.issued, row.active, row.useful) for row in used.lines}
    assert rows[6] == (64, 64, 16)  # b, and its index
    assert rows[7] == (96, 96, 8 + 8 + 32)  # product, `|` with a number, store
    assert rows[8] == (128, 128, 8 + 8 + 32 + 32)  # and the index
    assert rows[9] == (96, 96, 8 + 8 + 8)  # a zero over a zero elsewhere, with its index
