"""Who stored an element last, and on which line."""

import numpy as np

import bankshot

SOURCE = """
enable f16;
struct S { h: f16, n: atomic<u32>, v: vec2f }
@group(0) @binding(0) var<storage, read_write> s: array<S>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
fn put(i: u32, v: f32) {
    y[i] = v;
}
@compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) {
    let i = id.x;
    put(i, 1.0);
    if i == 2u {
        y[i] = 2.0;
    }
    if i == 3u {
        put(0u, 3.0);
    }
    s[i].h = 1.0h;
    atomicAdd(&s[0].n, 1u);
    if i > 4u { s[i].v.y = 1.0; }
}
"""


def test_the_line_and_the_lane_of_the_last_store():
    bindings = {"s": np.zeros((8, 4), np.uint32), "y": np.zeros(16, np.float32)}
    done = bankshot.simulate(SOURCE, grid=2, bindings=bindings)
    assert str(done.writer("y", 1)) == "workgroup (0, 0, 0), lane 1, line 7"
    assert str(done.writer("y", 0)) == "workgroup (0, 0, 0), lane 3, line 7"
    assert str(done.writer("y", 2)) == "workgroup (0, 0, 0), lane 2, line 13"
    assert str(done.writer("y", 6)) == "workgroup (1, 0, 0), lane 2, line 7"
    assert done.writer("y", 8) is None
    words = [done.writer("s", word) for word in range(32)]
    assert [w and (w.lane, w.span.line) for w in words[:4]] == [(0, 18), (3, 19), None, None]
    assert [w and (w.lane, w.span.line) for w in words[20:24]] == [(1, 18), None, None, (1, 20)]
