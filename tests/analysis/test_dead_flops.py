"""Dead FLOPs, compared with counts made by hand."""

import numpy as np
import pytest

import bankshot

HEAD = """
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(0) @binding(1) var<uniform> n: u32;
var<workgroup> tile: array<f32, 64>;
var<workgroup> sum: atomic<u32>;
"""


def dead_flops(body, n=40, grid=1, size=64, **options):
    """Return the dead FLOPs of a run, and all of them."""
    source = f"""{HEAD} @compute @workgroup_size({size})
    fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) lane: u32) {{
        let i = id.x;
        let f = f32(i);
        {body}
    }}"""
    given = {"y": np.zeros(256, np.float32), "n": np.uint32(n)}
    run = bankshot.simulate(source, grid=grid, bindings=given, **options)
    return run.padding_flops, run.counters["flops"]


@pytest.mark.parametrize(
    ("body", "wasted", "flops"),
    [
        ("y[i] = f * 2.0 + 1.0;", 0, 64 * 2),
        ("let v = f * 2.0; if i < n { y[i] = v; }", 24, 64),
        ("let v = f * 2.0; let w = f + 1.0; if i < n { y[i] = v; } y[i + 64u] = w;", 24, 128),
        ("let v = f * 2.0;", 64, 64),  # never used
        ("if i >= n { return; } y[i] = f * 2.0;", 0, 40),  # lanes that returned compute nothing
        ("var s = 0.0; for (var k = 0u; k < 5u; k++) { s += f; } if i < n { y[i] = s; }", 24 * 5, 64 * 5),
        ("let v = f * 2.0; if v < 10.0 { y[i] = 1.0; }", 0, 64),  # it decides a branch
        ("let v = f * 2.0; if i < n { y[u32(v)] = 1.0; }", 24, 64),  # and here where the store goes
        ("let v = f * 2.0; if i < n { tile[lane] = v; } workgroupBarrier(); y[i] = tile[lane];", 24, 64),
        ("let v = f * 2.0; if i < n { atomicAdd(&sum, u32(v)); }", 24, 64),
        ("var a: array<f32, 2>; a[i % 2u] = f * 2.0; if i < n { y[i] = a[0]; }", 24, 64),
        ("let v = f * 2.0; if i < n { y[i] = v; } else if i < n + 4u { y[i] = v + 1.0; }", 20, 64 + 4),
    ],
)
def test_flops_that_reach_no_store_are_dead(body, wasted, flops):
    assert dead_flops(body) == (wasted, flops)


def test_each_output_of_a_lane_counts_by_itself():
    """Each lane makes two outputs, of which those below `n` are stored: 40 of 128."""
    body = """
        var s = f; var t = f;
        for (var k = 0u; k < 3u; k++) { s += 2.0 * f; t += 3.0 * f; }
        if 2u * i < n { y[2u * i] = s; }
        if 2u * i + 1u < n { y[2u * i + 1u] = t; }
    """
    assert dead_flops(body, n=39) == (3 * 2 * (128 - 39), 3 * 2 * 128)


def test_the_edge_of_a_tiled_matmul():
    """A tile of 8 x 8 outputs over a matrix of 5 x 6: 34 of 64 invocations compute what lies past the edge."""
    body = """
        let row = lane / 8u; let column = lane % 8u;
        var sum = 0.0;
        for (var k = 0u; k < 16u; k++) {
            tile[lane] = f;
            workgroupBarrier();
            sum = fma(tile[row * 8u + k % 8u], tile[k % 8u * 8u + column], sum);
            workgroupBarrier();
        }
        if row < 5u && column < 6u { y[row * 6u + column] = sum; }
    """
    assert dead_flops(body, grid=2) == (2 * 34 * 16 * 2, 2 * 64 * 16 * 2)


def test_flops_that_a_subgroup_exchanges_are_used():
    body = "let v = f * 2.0; let all = subgroupAdd(v); if lane == 0u { y[0] = all; }"
    source = (
        "enable subgroups;"
        + HEAD
        + f"""
    @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) lane: u32) {{
        let f = f32(lane); {body} }}"""
    )
    run = bankshot.simulate(source, grid=1, bindings={"y": np.zeros(4, np.float32)})
    assert (run.padding_flops, run.counters["flops"]) == (0, 32)


@pytest.mark.parametrize("device", ["nvidia", "lavapipe"])
def test_a_multiplication_that_is_fused_counts_with_its_sum(device):
    assert dead_flops("let v = f * 2.0 + 1.0; if i < n { y[i] = v; }", device=device) == (48, 128)


def test_workgroups_side_by_side_and_in_three_dimensions():
    source = (
        HEAD
        + """
    @compute @workgroup_size(2, 3, 1)
    fn main(@builtin(global_invocation_id) id: vec3u) {
        let v = f32(id.x) * 2.0;
        if id.z == 1u && id.x + id.y < n { y[id.y * 8u + id.x] = v; }
    }"""
    )
    run = bankshot.simulate(source, grid=(4, 2, 2), bindings={"y": np.zeros(64, np.float32), "n": np.uint32(3)})
    assert (run.padding_flops, run.counters["flops"]) == (2 * 48 - 6, 2 * 48)
