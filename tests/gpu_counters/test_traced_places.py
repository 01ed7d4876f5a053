"""What the probes of a shader's text record, without a GPU: each place as often as the simulator counts it, and at
addresses known by hand."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from bankshot.oracle.errors import UsageError
from bankshot.oracle.gpu_counters.access_trace import trace
from bankshot.oracle.gpu_counters.timeline import Timeline, record_timeline, timeline
from bankshot.oracle.judge.case_run import simulate
from bankshot.oracle.manifests.cases import Request, plans
from tests.gpu_counters.test_gpu_counters import BRANCHY, texels

HEAD = """\
enable f16, subgroups;
struct S { a: f32, b: vec3<f32>, c: array<u32, 2>, h: vec2<f16> }
@group(0) @binding(0) var<storage, read_write> y: array<f32, 64>;
@group(0) @binding(1) var<storage, read_write> v: array<vec4<f32>, 4>;
@group(0) @binding(2) var<storage, read_write> m: array<mat2x3<f32>, 2>;
@group(0) @binding(3) var<storage, read_write> s: array<S, 2>;
@group(0) @binding(4) var<storage, read_write> n: array<atomic<u32>, 4>;
var<workgroup> w: array<f32, 64>;
var<workgroup> u: u32;
fn half(x: f32) -> f32 { if x > 4.0 { return x * 0.5; } return x; }
fn bump(i: u32) { if i == 1u { return; } w[i] += 1.0; }
@compute @workgroup_size(40)
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3u) {
    _ = &y; _ = &v; _ = &m; _ = &s; _ = &n;
    BODY
}
"""
SIZES = {"y": 64, "v": 16, "m": 16, "s": 24, "n": 4}


def case_of(tmp_path, body, grid=(1, 1, 1)):
    file = tmp_path / "k.wgsl"
    file.write_text(HEAD.replace("BODY", body))
    arrays = {name: np.zeros(size, np.uint32 if name in "sn" else np.float32) for name, size in SIZES.items()}
    arrays["y"][:] = np.arange(64) / 4
    (plan,) = plans([file], Request(grid=grid, arrays=arrays))
    return plan.case(plan.shapes[0])


BODIES = {
    "a compound assignment": "y[i] += 2.0; var x = y[i]; x *= 3.0; x -= 1.0; y[i] /= x;",
    "integers": "var k = i; k *= 3u; k++; w[k % 64u] = 1.0;",
    "a swizzle": "if i < 4u { v[i].zx = v[i].xy * 2.0; v[i].w += 1.0; v[3u - i] *= 2.0; }",
    "a matrix": "if i < 2u { let x = m[i]; m[i][1] = x[0] + x[1]; m[1u - i] = x * 2.0; m[i][0][2] = 7.0; }",
    "a struct": "if i < 2u { let x = s[i]; s[i].b.y = x.a; s[i].c[i] = x.c[0]; s[i].h = x.h * 2.0; s[1u - i] = x; }",
    "pointers": "let p = &v[i % 4u]; (*p).y = (*p).x; let q = &s[i % 2u].b; (*q).z = 1.0; "
                "let f = &w[i]; *f = 1.0; y[i] = *f;",
    "calls": "y[i] = half(half(y[i])) + half(y[63u - i]); bump(i / 2u); bump(i);",
    "loops": "for (var k = 0u; k < i % 5u; k++) { if k == 3u { continue; } y[i] += 1.0; } "
             "while y[i] > 9.0 { y[i] -= 1.0; } "
             "loop { if i < 2u { break; } w[i] = 1.0; "
             "continuing { break if i < 9u || w[i] > 0.0; } }",
    "switches": "switch i % 3u { case 0u: { y[i] = 1.0; } "
                "case 1u, 2u: { if i > 7u { break; } w[i] = 2.0; } default: {} }",
    "atomics": "atomicAdd(&n[i % 4u], 1u); let a = atomicLoad(&n[0]); atomicStore(&n[1], a); "
               "let b = atomicCompareExchangeWeak(&n[2], 0u, i); if b.exchanged { w[0] = 1.0; }",
    "barriers": "w[i] = 1.0; workgroupBarrier(); y[i] = w[39u - i]; storageBarrier(); "
                "y[i + 1u] = f32(workgroupUniformLoad(&u));",
    "subgroups": "y[i] = subgroupAdd(y[i]) + subgroupBroadcast(y[i], 0u);",
    "builtins": "let f = frexp(y[i]); let d = modf(y[i] * 2.0); "
                "y[i] = fma(f.fract, d.whole, sqrt(y[i])) + fract(y[i]);",
    "a short circuit": "if y[i] > 3.0 && y[63u - i] > 1.0 { w[i] = 1.0; } "
                       "w[i] = select(y[i], 2.0, i > 3u || y[0] > 0.0);",
}  # fmt: skip


def assert_all_recorded(case):
    """Each place has as many requests as the simulator counts issues, with as many lanes. A request of
    `workgroupUniformLoad` stands for two barriers."""
    found = trace(case)
    issued, lanes = Counter(), Counter()
    for request in found.requests:
        times = 2 if (request.site.kind, request.site.name) == ("barrier", "workgroupUniformLoad") else 1
        issued[request.site] += times
        lanes[request.site] += times * int(request.active.sum())
    assert issued == {row.site: row.executions for row in found.run.sites if row.executions}
    assert lanes == {row.site: row.active_lanes for row in found.run.sites if row.executions}
    return found


@pytest.mark.parametrize("name", BODIES)
def test_every_place_is_recorded_as_often_as_it_is_counted(name, tmp_path):
    assert_all_recorded(case_of(tmp_path, BODIES[name]))


def test_every_place_of_a_branchy_kernel_and_of_textures_is_recorded(tmp_path):
    (tmp_path / "branchy.wgsl").write_text(BRANCHY)
    arrays = {"ps": np.arange(64, dtype=np.float32).view(np.uint32), "dims": np.array([2, 3, 0, 0], np.uint32),
              "hist": np.zeros(16, np.uint32), "out": np.zeros(48, np.float32)}  # fmt: skip
    (plan,) = plans([tmp_path / "branchy.wgsl"], Request(grid=(1, 1, 1), arrays=arrays, entry="main"))
    assert_all_recorded(plan.case(plan.shapes[0]))
    assert_all_recorded(replace(texels(tmp_path), grid=(1, 1, 1)))


# The addresses of lanes 0 and 1, in order. A struct S has 48 bytes, with b at 16, c at 28 and h at 36; a matrix 32.
ADDRESSES = {
    "y[i] = y[i + 3u];": [("load", "y", 12, 16), ("store", "y", 0, 4)],
    "y[i * 63u] = 1.0; w[64u * i] = 1.0;": [("store", "y", 0, 252), ("store", "w", 0, 252)],  # the last element
    "v[i].zx = vec2f();": [("store", "v", 8, 24), ("store", "v", 0, 16)],
    "v[i].w = 1.0; v[1u - i] = vec4f();": [("store", "v", 12, 28), ("store", "v", 16, 0)],
    "m[i][1] = vec3f(); m[1][i].y = 1.0; m[i][0][2] = 1.0;": [
        ("store", "m", 16, 48), ("store", "m", 36, 52), ("store", "m", 8, 40),
    ],
    "w[i] = m[i][0].y;": [("load", "m", 4, 36), ("store", "w", 0, 4)],
    "let x = m[i]; m[1] = x;": [
        ("load", "m", 0, 32), ("load", "m", 16, 48), ("store", "m", 32, 32), ("store", "m", 48, 48),
    ],
    "s[i].b.y = 1.0; s[i].c[i] = 1u; s[i].h.y = 1.0h;": [
        ("store", "s", 20, 68), ("store", "s", 28, 80), ("store", "s", 38, 86),
    ],
    "let p = &s[1u - i].c[1]; *p += 1u;": [("load", "s", 80, 32), ("store", "s", 80, 32)],
    "atomicAdd(&n[3u - i], 1u); atomicStore(&n[i], 1u);": [("atomic", "n", 12, 8), ("atomic", "n", 0, 4)],
    "y[u32(y[i])] = 2.0;": [("load", "y", 0, 4), ("store", "y", 0, 0)],
}  # fmt: skip


@pytest.mark.parametrize("body", ADDRESSES)
def test_addresses_are_bytes_from_the_start_of_the_variable(body, tmp_path):
    found = trace(case_of(tmp_path, f"if i < 2u {{ {body} }}")).requests
    memory = [r for r in found if r.site.variable]
    assert [(r.site.kind, r.site.variable, *r.addresses[:2].tolist()) for r in memory] == ADDRESSES[body]
    assert all(r.addresses[2:].tolist() == [-1] * 30 for r in memory)


def test_a_uniform_load_passes_two_barriers(tmp_path):
    found = trace(case_of(tmp_path, "w[i] = 1.0; let x = workgroupUniformLoad(&u); w[i] = f32(x);"))
    assert [(r.subgroup, r.epoch) for r in found.of("w", "store")] == [(0, 0), (1, 0), (0, 2), (1, 2)]


# ---- what cannot be recorded ---------------------------------------------------------------------------


@pytest.mark.parametrize("outside", [(2, 0, 0), (0, 3, 0), (0, 0, 1), (9, 9, 9)])
def test_a_workgroup_outside_the_grid_is_wrong_use(outside, tmp_path):
    case = case_of(tmp_path, "y[i] = f32(g.x + 2u * g.y); w[i] = 1.0;", grid=(2, 3, 1))
    run = simulate(case, "nvidia", "counters")
    for record in (lambda which: trace(case, which), lambda which: record_timeline(case, run, which)):
        record((1, 2, 0))
        with pytest.raises(UsageError) as caught:
            record(outside)
        assert str(caught.value) == f"workgroup {outside} is outside the grid (2, 3, 1)"


def test_the_workgroup_is_the_one_asked_for(tmp_path):
    case = case_of(tmp_path, "y[8u * g.x + g.y] = 1.0;", grid=(2, 3, 1))
    (request,) = trace(case, (1, 2, 0)).of("y", "store")[:1]
    assert set(request.addresses.tolist()) == {40}


def test_a_timeline_of_nothing_has_no_epochs(tmp_path, monkeypatch):
    assert timeline([], {"w": 256}) == Timeline({}, 0, (), ())
    case = case_of(tmp_path, "w[i] = 1.0; workgroupBarrier(); w[i] = 2.0;")
    monkeypatch.setattr("bankshot.oracle.gpu_counters.timeline.MOST_ROWS", 30)  # of 40 stores
    found = record_timeline(case, simulate(case, "nvidia", "counters"))
    assert found == Timeline({}, 0, (), (), cut=True)
