"""Error bounds of what passes through memory: structs, uniforms, textures, and exchange within subgroups."""

import numpy as np
import pytest

import bankshot
from tests.instrument.bounded_programs import ENTRY, HEAD, LIMIT, NEAR, assert_holds, f32, unbounded
from tests.programs_made.legal_arithmetic import SHARES, Legal


def test_structs_of_several_kinds_private_arrays_and_functions():
    source = """
        enable f16;
        struct S { a: f32, n: u32, h: vec2<f16>, v: vec3f }
        @group(0) @binding(0) var<storage, read_write> s: array<S>;
        var<private> p: array<S, 2>;
        fn triple(v: ptr<private, S>) -> S { var t = *v; t.a = t.a * 3.0; t.v.y += 0.1; return t; }
        @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {
            p[i % 2u] = s[i];
            p[i % 2u].h.y = p[i % 2u].h.y * 1.1h;
            s[i] = triple(&p[1]);
        }
    """
    words = np.zeros((4, 8), np.uint32)
    words[:, 0] = np.array([1.1, 1.2, 1.3, 1.4], f32).view(np.uint32)
    words[:, 1] = 7
    words[:, 2] = np.array([1.5, 2.5], np.float16).view(np.uint32)[0]
    done = bankshot.simulate(source, grid=1, bindings={"s": words}, probes="none")
    bounds = done.bounds["s"].reshape(4, 8)
    assert (bounds[[0, 2]] > 0).sum() == 4  # of p[1], which stayed zero: 0 * 3 may be off by a flush, 0 + 0.1 too
    assert bounds[1].tolist() == pytest.approx([3 * 2.0**-23, 0, 1.5 * 2.0**-9, 0, 0, 1.5 * 2.0**-27, 0, 0], rel=1e-3)


def test_a_uniform_and_an_exact_buffer_cost_nothing():
    source = """
        @group(0) @binding(0) var<uniform> f: vec4f;
        @group(0) @binding(1) var<storage, read_write> y: array<vec4f>;
        @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) { y[i] = f * 0.3; }
    """
    done = bankshot.simulate(source, grid=1, bindings={"f": (1.0, 2.0, 3.0, 4.0), "y": np.zeros((4, 4), f32)})
    assert done.bounds["y"].shape == (4, 4)
    assert done.bounds["y"][0] / np.spacing(done.outputs["y"][0]) == pytest.approx([1.5] * 4, rel=1e-5)


def test_the_bound_of_an_integer_made_of_floats_is_0_or_infinite():
    source = """
        @group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> n: array<atomic<u32>>;
        @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {
            atomicAdd(&n[i / 2u], u32(x[i] * 1.1));
        }
    """
    x = np.array([1.0, 2.0, 1.5, 100 / 1.1], f32)
    done = bankshot.simulate(source, grid=1, bindings={"x": x, "n": np.zeros(2, np.uint32)})
    assert done.bounds["n"].tolist() == [0.0, np.inf]


def test_integers_beside_floats_in_a_struct_have_bounds_of_their_own():
    source = """
        struct S { n: vec2i, f: f32, m: array<u32, 3> }
        @group(0) @binding(0) var<storage, read_write> s: array<S>;
        @compute @workgroup_size(2) fn main(@builtin(local_invocation_index) i: u32) {
            s[i].f = s[i].f * 0.1;
            s[i].n.y = bitcast<i32>(s[i].f);
            s[i].m[1]++;
        }
    """
    given = np.tile(np.array([0, 0, np.array(3, f32).view(np.uint32), 7, 7, 7], np.uint32), (2, 1))
    for row in bankshot.simulate(source, grid=1, bindings={"s": given}, probes="none").bounds["s"]:
        assert (row == np.inf).tolist() == [False, True, False, False, False, False]
        _, _, bound_of_f, *_ = row
        assert 0 < bound_of_f < 1e-7


def test_bytes_and_structured_arrays_have_a_bound_for_each_word():
    source = """
        @group(0) @binding(0) var<storage, read_write> y: array<vec2f>;
        @compute @workgroup_size(2) fn main(@builtin(local_invocation_index) i: u32) { y[i].y = y[i].x * 0.1; }
    """
    given = np.array([1, 0, 2, 0], f32)
    pairs = given.view([("a", f32), ("b", f32)])
    for form in (given.tobytes(), pairs):
        bounds = bankshot.simulate(source, grid=1, bindings={"y": form}).bounds["y"]
        assert (bounds > 0).tolist() == [False, True, False, True]


# ---- subgroups -----------------------------------------------------------------------------------------------

SUBGROUPS = "enable subgroups;\n"


def in_subgroups(body, a):
    source = SUBGROUPS + HEAD.format(kind="f32") + ENTRY.format(body=body)
    bindings = {"x": a, "z": a, "y": np.zeros(len(a), f32)}
    return bankshot.simulate(source, grid=len(a) // 64, bindings=bindings, probes="none")


@pytest.mark.parametrize(
    ("call", "combine"),
    [
        ("subgroupAdd", lambda legal, a, b: legal.add(a, b)),
        ("subgroupMul", lambda legal, a, b: legal.mul(a, b)),
        ("subgroupMax", lambda legal, a, b: np.maximum(a, b)),
    ],
)
def test_a_reduction_over_a_subgroup_holds_any_order(call, combine):
    a = np.random.default_rng(8).uniform(-2, 2, size=64).astype(f32)
    done = in_subgroups(f"y[i] = {call}(a * 1.1);", a)
    for seed, share in enumerate(SHARES * 3):
        legal = Legal("f32", share, seed)
        rows = legal.mul(a.astype(float), np.full(64, float(f32(1.1)))).reshape(2, 32)
        order = np.random.default_rng(seed).permutation(32)
        total = rows[:, order[0]]
        for lane in order[1:]:
            total = combine(legal, total, rows[:, lane])
        assert_holds(done, np.repeat(total, 32), share)
    assert (done.bounds["y"] < 1e-4 * np.maximum(1, np.abs(done.outputs["y"]))).all()


@pytest.mark.parametrize(("call", "rounds"), [("subgroupAdd", True), ("subgroupMul", True), ("subgroupMax", False)])
def test_a_reduction_of_exact_values_is_exact_where_it_does_not_round(call, rounds):
    done = in_subgroups(f"y[i] = {call}(a);", np.random.default_rng(9).uniform(1, 2, size=64).astype(f32))
    assert ((done.bounds["y"] > 0) == rounds).all()


def test_shuffles_and_ballots_carry_bounds():
    a = NEAR
    shuffled = in_subgroups("y[i] = subgroupShuffleXor(a * 1.1, 1u);", a)
    straight = in_subgroups("y[i] = a * 1.1;", a)
    assert shuffled.bounds["y"].tolist() == straight.bounds["y"].reshape(-1, 2)[:, ::-1].reshape(-1).tolist()
    ballot = in_subgroups(f"y[i] = f32(subgroupBallot(a * 1.1f > {LIMIT}).x);", a)
    assert unbounded(ballot) == list(range(32))  # lane 5's whole subgroup


# ---- textures ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "worst"),
    [("textureLoad(t, vec2u(i, 0u), 0)", 0.0), ("textureSampleLevel(t, s, vec2f(f32(i) * 0.25, 0.5), 0.0)", np.inf)],
)
def test_texels_are_exact_and_filtered_samples_are_unbounded(call, worst):
    source = f"""
        @group(0) @binding(0) var t: texture_2d<f32>;
        @group(0) @binding(1) var s: sampler;
        @group(0) @binding(2) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {{
            y[i] = {call}.x;
        }}
    """
    bindings = {"t": np.ones((1, 4), f32), "s": {}, "y": np.zeros(4, f32)}
    used = {k: v for k, v in bindings.items() if k != "s" or "Sample" in call}
    done = bankshot.simulate(source, grid=1, bindings=used)
    assert (done.bounds["y"].max(), done.bounds.findings) == (worst, ())
