"""What compilers load once where a text loads it again."""

import numpy as np
import pytest

import bankshot
from tests.performance.test_chains import costs


def loads(body: str, kind: str = "storage_load") -> int:
    return sum(each.issued[kind] for each in costs(body))


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("y[i] = x[i] + x[i + 1u] * x[i];", 2),
        ("y[i] = x[i]; y[i + 1u] = x[i] ^ 5u;", 1),
        ("let v = y[i]; y[i + 1u] = v; y[i + 2u] = y[i];", 2),  # another element that may be the same
        ("let v = x[i]; if (v > 7u) { y[i] = x[i] * 3u; } else { y[i] = x[i] ^ 3u; }", 1),
        ("if (i > 7u) { y[i] = x[i]; } y[i + 1u] = x[i];", 2),
        ("let v = y[i]; if (v > 7u) { y[i + 1u] = 1u; } y[i + 2u] = y[i] ^ v;", 2),
        ("let v = y[i]; for (var k = 0u; k < 9u; k++) { y[k] = 1u; } y[i + 9u] = y[i] ^ v;", 2),
        ("var v = x[i]; for (var k = 0u; k < 9u; k++) { v ^= x[i] + k; } y[i] = v;", 2),
    ],
)
def test_a_load_serves_what_it_precedes_until_the_variable_is_stored_to(body: str, count: int) -> None:
    assert loads(body) == count


@pytest.mark.parametrize(
    ("between", "count"), [("", 1), ("workgroupBarrier();", 2), ("y[i] = 3u;", 1), ("t[i] = 3u;", 2)]
)
def test_workgroup_memory_is_loaded_again_after_a_barrier_or_a_store(between: str, count: int) -> None:
    assert loads(f"var v = t[i]; {between} v ^= t[i] * 3u; y[i + 1u] = v;", "workgroup_load") == count


def test_an_atomic_operation_changes_its_own_variable_alone() -> None:
    frame = """
    @group(0) @binding(0) var<storage, read> x: array<u32>;
    @group(0) @binding(1) var<storage, read_write> y: array<u32>;
    var<workgroup> n: atomic<u32>;
    @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) { BODY }"""
    (whole,) = costs("let v = x[i]; y[i] = atomicAdd(&n, v) ^ x[i];", frame=frame)
    assert whole.issued["storage_load"] == 1


def test_a_load_whose_results_nothing_needs_costs_nothing() -> None:
    assert loads("let unused = x[i] * 5u; y[i] = i;") == 0


def test_the_work_of_a_dispatch_has_no_load_that_a_compiler_leaves_out() -> None:
    frame = """
    @group(0) @binding(0) var<storage, read> x: array<u32>;
    @group(0) @binding(1) var<storage, read_write> y: array<u32>;
    @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { let i = id.x; BODY }"""
    once, twice = (
        bankshot.simulate(
            frame.replace("BODY", body),
            grid=4,
            bindings={"x": np.arange(512, dtype=np.uint32), "y": np.zeros(512, np.uint32)},
            device="nvidia-h200",
        )
        for body in ("let v = x[i]; y[i] = v ^ (v * 3u);", "y[i] = x[i] ^ (x[i] * 3u);")
    )
    assert twice.counters["global_sectors"] == once.counters["global_sectors"] + 4 * 2 * 4  # as written
    assert (twice.work.load_lines, twice.work.load_sectors) == (once.work.load_lines, once.work.load_sectors)
    assert twice.predicted_time.us == once.predicted_time.us
