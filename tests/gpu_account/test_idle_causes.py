"""The causes of idle lanes: by hand, and as the simulator counts them, whatever statements make the guards."""

import numpy as np
import pytest

import bankshot
from bankshot.oracle.gpu_account.idle_lanes import Passage, Shape, begun, executions
from bankshot.oracle.judge.counter_diff import diff_counters
from bankshot.oracle.manifests import cases


def passage(rows):
    return Passage(*np.array(rows, np.int64).reshape(-1, 4).T)


def test_idle_lanes_by_hand():
    """A workgroup of 40 invocations in subgroups of 32. Stage 1 is begun by lanes 0 to 19, and by lane 33."""
    shape = Shape(40, 32)
    stages = begun(passage([(0, lane, 0, 1) for lane in (*range(20), 33)]), shape)
    arrivals = passage([(0, lane, 7, 1) for lane in (0, 1, 2, 33)] + [(0, 4, 8, 1)])  # two turns of a loop
    assert executions(arrivals, shape, stages) == {
        "executions": 3,  # both subgroups, and the first again
        "active_lanes": 5,
        "idle_guard": 12 + 7 + 12,
        "idle_overhang": 24,  # in the second subgroup, of 8 invocations
        "idle_divergence": 17 + 0 + 19,
        "idle_skipped": 8,  # those of the second subgroup, the second time
        "visits": 2,
    }


HEAD = """
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
fn work(i: u32) { if i > 50u { return; } for (var k = 0u; k < i % 3u; k++) { y[i] += sqrt(f32(k)); } }
fn double(x: f32) -> f32 { if x > 9.0 { return x; } return x + x; }
"""
BODIES = {
    "return": "if i % 40u > 12u { return; } y[i] = 1.0; if i % 2u == 0u { y[i] = double(y[i]); }",
    "two returns": "if i > 60u { return; } y[i] = 1.0; if i % 4u == 0u { return; } if i % 2u == 0u { y[i] += 1.5; }",
    "if around all": "let f = f32(i); if i % 3u == 0u { y[i] = f * 2.0; if i % 2u == 0u { y[i] -= f; } }",
    "else if around all": "if i > 60u { } else if i > 40u { let f = f32(i) / 2.0; } else { if i "
    "> 3u { y[i] += 2.0; } }",
    "else with work": "if i % 5u == 0u { var f = sqrt(f32(i)); } else { y[i] = f32(i); if i "
    "% 3u == 0u { y[i] += 1.0; } }",
    "both arms": "if i % 5u == 0u { y[i] += 1.0; } else { y[i] -= 1.0; if i % 3u == 0u { y[i] += 1.0; } }",
    "call": "let f = f32(i); if i > 55u { return; } work(i);",
    "call in if": "if i % 7u != 0u { work(i); }",
    "two calls": "work(i); work(i + 1u);",
    "call with a value": "let v = double(f32(i) + 1.0); y[i] = v; if i > 20u { y[i] = double(v) + double(v * 2.0); }",
    "switch around all": "switch i % 4u { case 1u: { y[i] += 1.0; if i > 9u { break; } y[i] += 2.0; } default: { } }",
    "switch in two arms": "switch i % 4u { case 1u: { y[i] += 1.0; if i > 9u { break; } y[i] += 2.0; } "
    "case 2u: { if i > 20u { y[i] -= 2.0; } } default: { } }",
    "loop around all": "for (var k = 0u; k < i % 5u; k++) { y[i] += 1.0; if k > 2u { break; } y[i] += 2.0; }",
    "return in loop": "for (var k = 0u; k < 5u; k++) { y[i] += 1.0; if k > i % 7u { return; "
    "} } if i > 3u { y[i] += 2.0; }",
    "block": "{ if i > 40u { return; } y[i] = 1.0; } if i > 30u { y[i] = 2.5 + y[i]; }",
    "constant if": "if SIZE > 3u { if i > 40u { return; } y[i] = 1.0; if i > 30u { y[i] = 2.5 + y[i]; } }",
    "condition with work": "if y[i] > 3.0 { y[i] = 1.0; if i > 9u { y[i] += 2.0; } }",
    "work right of and": "if i > 3u && y[i] > 3.0 { y[i] = 1.0; } if i > 40u || double(f32(i)) > 20.0 { y[i] += 3.0; }",
}


def test_only_lanes_that_access_shared_memory_or_textures_work(adapter, tmp_path):
    """Of 2 x 40 invocations, 20 load a texel and 10 others store; all load a uniform, and a barrier is no work."""
    path = tmp_path / "kernel.wgsl"
    path.write_text("""
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(0) @binding(1) var<uniform> p: vec4u;
@group(0) @binding(2) var t: texture_2d<f32>;
@compute @workgroup_size(40) fn main(@builtin(global_invocation_id) id: vec3u) {
    workgroupBarrier();
    if id.x < p.x { let texel = textureLoad(t, vec2(0), 0); }
    if id.x >= 70u { y[id.x] = 1.0; }
}""")
    arrays = {"y": np.zeros(80, np.float32), "p": np.full(4, 20, np.uint32), "t": np.zeros((1, 1, 4), np.uint8)}
    (plan,) = cases.plans([path], cases.Request(arrays=arrays, grid=(2, 1, 1)))
    (case,) = plan.cases()
    run = bankshot.simulate(path, grid=2, bindings=arrays, probes="counters", device="nvidia")
    assert run.counters["working_invocations"] == 30 / 80
    assert diff_counters(case, "nvidia", None).differences == ()


@pytest.mark.parametrize("name", BODIES)
def test_the_simulator_finds_the_same_guards(adapter, tmp_path, name):
    main = "override SIZE = 4u;\n@compute @workgroup_size(40) fn main(@builtin(global_invocation_id) id: vec3u) {"
    path = tmp_path / "kernel.wgsl"
    path.write_text(f"{HEAD}{main} let i = id.x; {BODIES[name]} }}")
    request = cases.Request(arrays={"y": np.arange(100, dtype=np.float32) % 7}, grid=(2, 1, 1))
    (plan,) = cases.plans([path], request)
    (case,) = plan.cases()
    for device in ("nvidia", "lavapipe"):
        diff = diff_counters(case, device, None)
        assert [(d.site.span.text, d.counter, d.simulated, d.counted) for d in diff.differences] == []
