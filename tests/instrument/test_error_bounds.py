"""Error bounds: no legal implementation goes beyond them, and they are small enough to be of use."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bankshot
from tests.instrument.bounded_programs import DTYPES, LIMIT, NEAR, SLOW, assert_holds, f32, run, unbounded
from tests.programs_made import random_programs as integers
from tests.programs_made.legal_arithmetic import SHARES, WRITTEN, Legal, computed, random_tree, written
from tests.programs_made.random_floats import Maker, Renderer

# ---- no result is beyond --------------------------------------------------------------------------------------


def samples(seed, count, scale):
    make = np.random.default_rng(seed)
    a, b = make.normal(size=count) * scale, make.uniform(-2, 2, size=count)
    return (np.abs(a), np.abs(b)) if seed % 3 == 0 else (np.rint(a), b) if seed % 3 == 1 else (a, b)


@pytest.mark.parametrize("kind", DTYPES)
@SLOW
@given(st.integers(0, 10**6))
def test_random_expressions_on_whatever_the_spec_allows(kind, seed):
    choice = random.Random(seed)
    tree = random_tree(choice, choice.choice((2, 3, 4)))
    a, b = samples(seed, 256, choice.choice((1, 1, 4, 0.1, 100, 1e-3 if kind == "f16" else 1e-20)))
    done = run(f"y[i] = {written(tree)};", a, b, kind=kind, device=choice.choice(("nvidia", "lavapipe")))
    a, b = (v.astype(DTYPES[kind]).astype(float) for v in (a, b))
    for round_, share in enumerate(SHARES * 2):
        legal = Legal(kind, share, seed + round_, reorders=round_ >= len(SHARES))
        assert_holds(done, computed(tree, legal, a=a, b=b), (written(tree), share))


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("name", WRITTEN)
def test_each_operation_on_what_is_exact_and_what_is_not(name, kind):
    operands = 1 + max(i for i in range(3) if f"{{{i}}}" in WRITTEN[name])
    for parts in ((("a",), ("b",), ("a",)), (("mul", ("a",), ("b",)), ("add", ("a",), ("b",)), ("b",))):
        tree = (name, *parts[:operands])
        a, b = samples(2, 2048, 2.0)
        done = run(f"y[i] = {written(tree)};", a, b, kind=kind)
        assert np.isfinite(done.bounds["y"]).mean() > 0.15  # half of the domain of a root of a product, and so on
        a, b = (v.astype(DTYPES[kind]).astype(float) for v in (a, b))
        for share in SHARES:
            assert_holds(done, computed(tree, Legal(kind, share, 1), a=a, b=b), (written(tree), share))


@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_random_control_flow_that_another_rounding_may_take_another_way(seed):
    body = Maker(seed).program()
    x = np.random.default_rng(seed).integers(-20, 20, 64).astype(f32) * f32(0.1)
    bindings = {"x": x, "y": np.zeros(64 + 256, f32), "tenth": f32(0.1)}
    options = {"grid": 2, "probes": "none", "device": "lavapipe"}
    done = bankshot.simulate(Renderer(False).source(body), bindings=bindings, **options)
    for choice in (1, 2, 3, 7, 403):
        more = {**bindings, "seed": np.uint32(choice)}
        other = bankshot.simulate(Renderer(True).source(body), bindings=more, **options)
        assert_holds(done, other.outputs["y"].astype(float), choice)


@pytest.mark.parametrize("seed", range(5))
def test_programs_without_floats_have_no_bounds(seed):
    given = np.arange(16, dtype=np.uint32)
    bindings = {"out": np.zeros(16 * integers.LOGGED, np.uint32), "given": given, "same": 2}
    source = integers.render(integers.Maker(seed).program(), 8)
    done = bankshot.simulate(source, grid=2, bindings=bindings, probes="none", budget=100_000)
    assert (done.bounds["out"].max(), done.bounds.findings) == (0.0, ())


def test_fused_and_separate_hold_each_other():
    a, b = samples(5, 640, 1.0)
    body = "var s = 0.0; for (var k = 0u; k < 50u; k++) { s = fma(a, x[(i + k) % 640u], s); s = s * b; } y[i] = s;"
    fused, separate = run(body, a, b, device="nvidia"), run(body, a, b, device="lavapipe")
    assert (fused.outputs["y"] != separate.outputs["y"]).any()
    assert_holds(fused, separate.outputs["y"])
    assert_holds(separate, fused.outputs["y"])


MATMUL = """
    var sum = 0.0;
    for (var k = 0u; k < 768u; k++) { sum += x[(i * 768u + k) % 4096u] * z[(k * 64u + i) % 4096u]; }
    y[i] = sum;
"""


def test_a_long_sum_is_held_and_an_error_of_a_ten_thousandth_is_not():
    make = np.random.default_rng(3)
    a, b = make.uniform(0.5, 1.5, size=(2, 4096)).astype(f32)
    done = run(MATMUL, a, b)
    i, k = np.arange(4096)[:, None], np.arange(768)
    truth = np.sum(a[(i * 768 + k) % 4096].astype(float) * b[(k * 64 + i) % 4096], axis=1)
    assert_holds(done, truth)
    planted = truth * (1 + 1e-4)
    assert (np.abs(planted - done.outputs["y"]) > done.bounds["y"]).all()


def test_a_softmax_by_way_of_workgroup_memory():
    before = "var<workgroup> m: array<f32, 64>;"
    fold = "for (var k = 32u; k > 0u; k /= 2u) {{ if lane < k {{ m[lane] = {}; }} workgroupBarrier(); }}"
    body = f"""
        m[lane] = a; workgroupBarrier();
        {fold.format("max(m[lane], m[lane + k])")}
        let top = m[0]; workgroupBarrier();
        let e = exp(a - top);
        m[lane] = e; workgroupBarrier();
        {fold.format("m[lane] + m[lane + k]")}
        y[i] = e / m[0];
    """
    a = np.random.default_rng(4).normal(size=128).astype(f32) * 3
    done = run(body, a, before=before)
    rows = a.astype(float).reshape(2, 64)
    for share in SHARES:
        legal = Legal("f32", share, 6)
        e = legal.exp(legal.sub(rows, rows.max(axis=1, keepdims=True)))
        total = e
        while total.shape[1] > 1:
            total = legal.add(total[:, : total.shape[1] // 2], total[:, total.shape[1] // 2 :])
        assert_holds(done, legal.div(e, total).reshape(-1), share)
    assert (done.bounds["y"] < 2e-4 * done.outputs["y"]).all()


# ---- what is exact -------------------------------------------------------------------------------------------

TENTHS = np.arange(64) * f32(0.1)


@pytest.mark.parametrize(
    "body",
    [
        "y[i] = a;",
        "y[i] = -abs(max(a, b)) * 2.0;",
        "y[i] = select(a, b, a > 3.0);",
        "y[i] = f32(i) * 0.5 + 3.0; if y[i] > 7.0 { y[i] = 1.0; }",
        "var s = 0.0; for (var t = 0.0; t < 1.0; t += 0.25) { s = t; } y[i] = s;",
        "y[i] = f32(i32(f32(i) * 2.0));",
        "y[i] = bitcast<f32>(bitcast<u32>(a) ^ 0x80000000u);",
        "y[i] = f32(i % 7u) + floor(a);",
    ],
)
def test_exact_results_have_bounds_of_a_rounding_at_most(body):
    done = run(body, np.abs(TENTHS) + 1)
    worst = done.bounds["y"].max()
    # Products and sums that no branch depends on are not looked at; these are exact all the same.
    assert worst <= 2 * np.spacing(np.abs(done.outputs["y"]).max())
    assert done.bounds.findings == ()


def test_copies_are_exact():
    for a in (TENTHS, np.zeros(64)):
        done = run("var t: array<f32, 4>; t[i % 4u] = a; y[i] = t[i % 4u];", a)
        assert done.bounds["y"].max() == 0
        assert run("y[i] = f32(bitcast<u32>(a) >> 8u);", a).bounds["y"].max() == 0


def test_subnormal_numbers_may_be_flushed():
    a = np.full(64, f32(1e-40))
    assert run("y[i] = a * 1e30;", a).bounds["y"].min() >= float(a[0]) * 1e30
    assert run("y[i] = select(1.0, 2.0, a == 0.0);", a).bounds["y"].min() >= 1.0
    halves = run("y[i] = a * 1024.0h;", np.full(64, 2.0**-20), kind="f16")
    assert halves.bounds["y"].min() >= 2.0**-10


@pytest.mark.parametrize("bits", ["bitcast<u32>(a * b)", "pack2x16float(vec2(1.0, a * b))"])
def test_the_sign_of_a_computed_zero_may_be_ignored(bits):
    done = run(f"y[i] = f32({bits} >> 31u);", [-0.0] * 16 + [0.0] * 16 + [-2.0] * 32, np.full(64, 0.5))
    assert unbounded(done) == list(range(32))


def test_an_element_that_is_used_twice_may_be_a_term_of_another_sum():
    a = np.full(64, f32(2**24))
    done = run("let s = 16777216.0 - a; let all = vec2(s * 10.0, s * -1.0 - 0.375); y[i] = all[i % 2u];", a)
    assert done.outputs["y"][1] == -0.375
    assert_holds(done, np.tile([0, float(a[0] + f32(f32(-0.375) - a[0]))], 32))
    kept = run("var s = 16777216.0 - a; y[i] = s; y[i + 64u] = s * -1.0 - 0.375;", a, out=128)
    assert kept.bounds["y"][64] < 1e-6


def test_the_length_of_a_scalar_may_be_the_root_of_its_square():
    a = np.full(64, f32(1e-30))
    assert run("y[i] = length(a);", a).bounds["y"].min() >= float(a[0])
    assert run("y[i] = distance(a, 0.0);", a).bounds["y"].min() >= float(a[0])
    assert run("y[i] = length(a);", a * f32(-1e30)).bounds["y"].max() < 1e-6


def test_results_that_may_overflow_are_unbounded():
    assert unbounded(run("y[i] = a * 3e38;", [1.0] * 32 + [1.2] * 32)) == list(range(32, 64))
    assert unbounded(run("y[i] = a * 2.0h;", [32000.0] * 32 + [33000.0] * 32, kind="f16")) == list(range(32, 64))


@pytest.mark.parametrize("device", ["nvidia", "lavapipe"])
@pytest.mark.parametrize(
    "body",
    [
        "y[i] = (a * b) * a;",
        "y[i] = (a * b) * a + b;",  # the last multiplication becomes an fma
        "y[i] = fma(a * b, a, b);",
        "y[i] = (a * b) * a + b + b;",  # the product is a term of a longer sum
        "let s = a * b; y[i] = s * a + s;",  # a partial product has a second use
        "y[i] = floor((a * b) * a);",  # the product is exact here
        "y[i] = floor(fma(a * b, a, b));",
        "y[i] = exp(fma(a * b, a, x[64]));",  # an infinite term decides the sum, unless it meets another
    ],
)
def test_a_product_that_may_overflow_in_another_order_is_unbounded(body, device):
    """(a * b) * a is at most 512, but a * a overflows where a is 512."""
    a = np.array([512.0] * 32 + [4.0] * 32 + [1.0] * 64)
    a[64] = -np.inf
    b = np.full(128, 2.0**-9)
    done = run(f"if i < 64u {{ {body} }}", a, b, kind="f16", device=device)
    assert unbounded(done) == list(range(32))


def test_a_partial_product_may_overflow_by_its_rounding():
    """a * a * b is 65471.7; a * a rounds up to 1027, and 1027 * b to infinity."""
    a, b = np.full(64, 32.03125), np.full(64, 63.8125)
    assert len(unbounded(run("y[i] = 0.00390625h * a * a * b;", a, b, kind="f16"))) == 64
    assert unbounded(run("y[i] = 0.00390625h * a * a * b;", a, b * 0.9, kind="f16")) == []


def test_a_partial_product_may_be_flushed_or_round_up():
    """a * a is 2^-26, which is 0 or rounds up to 2^-24."""
    a, b = np.full(64, 2.0**-13), np.full(64, 2.0**15)
    for body in ("y[i] = (a * b) * a;", "y[i] = fma(a * b, a, 0.0h);", "let s = a * b; y[i] = s * a + s * 0.0h;"):
        done = run(body, a, b, kind="f16")
        assert done.outputs["y"][0] == 2.0**-11
        for other in (0.0, 2.0**-9):
            assert_holds(done, np.full(64, other), body)
        assert done.bounds["y"].max() < 2.0**-6


@pytest.mark.parametrize("kind", DTYPES)
def test_an_exact_product_with_a_zero_is_exact_in_any_order(kind):
    done = run(f"y[i] = floor({kind}(i) * a * b);", np.full(64, 2.0), np.full(64, 0.5), kind=kind)
    assert done.bounds["y"].max() == 0
    assert done.bounds.findings == ()


# ---- branches ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "lanes"),
    [
        (f"var v = a; if a * b > {LIMIT} {{ v = a * 3.0; }} y[i] = v;", [5]),
        (f"if a * b > {LIMIT} {{ y[i] = a; }}", [5]),
        (f"if a * b <= {LIMIT} {{ return; }} y[i] = a;", [5]),
        (f"var s = 0.0; loop {{ s += 1.0; if s > 3.0 || a * b > {LIMIT} {{ break; }} }} y[i] = s;", [5]),
        (f"while a * b > {LIMIT} && y[i] < 2.0 {{ y[i] += 1.0; }}", [5]),
        (f"switch u32(a * b > {LIMIT}) {{ case 0u: {{ y[i] = 1.0; }} default: {{ y[i] = 2.0; }} }}", [5]),
        (f"y[i] = f32(u32(a * b - {LIMIT} + 1.0)) * 0.0;", [5]),
        (f"y[i] = select(1.0, 2.0, a * b > {LIMIT});", []),
        (f"if a * b > {LIMIT} {{ y[u32(a * 64.0) % 64u] = 1.0; }}", list(range(64))),  # who knows which
        (f"if a * b > {LIMIT} && i == 4u {{ y[i] = 1.0; }}", []),  # lane 5 is out, whatever the product
    ],
)
def test_a_branch_that_rounding_decides(body, lanes):
    done = run(body, NEAR, np.full(64, 1.1))
    assert unbounded(done) == lanes
    assert bool(done.bounds.findings) == bool(lanes)


def test_the_finding_names_branch_count_and_first_invocation():
    done = run(f"if a * b > {LIMIT} {{ y[i] = a; }}", np.tile(NEAR, 2), np.full(128, 1.1))
    (finding,) = done.bounds.findings
    assert (finding.code, finding.severity, finding.count) == ("rounding", "info", 2)
    assert (finding.workgroup, finding.lanes) == ((0, 0, 0), (5,))
    assert finding.span is not None
    assert finding.span.text == f"a * b > {LIMIT}"


def test_a_select_that_rounding_decides_is_off_by_the_distance_of_its_operands():
    done = run(f"y[i] = select(1.0, 4.0, a * b > {LIMIT});", NEAR, np.full(64, 1.1))
    assert done.bounds["y"].tolist() == [0.0] * 5 + [3.0] + [0.0] * 58


def test_indices_that_rounding_decides():
    gather = run(f"y[i] = x[u32(a * b > {LIMIT})];", NEAR, np.full(64, 1.1))
    assert unbounded(gather) == [5]
    scatter = run(f"y[i + u32(a * b > {LIMIT})] = 1.0;", NEAR, np.full(64, 1.1))
    assert unbounded(scatter) == list(range(64))
    local = f"var t: array<f32, 4>; t[u32(a * b > {LIMIT})] = 1.0; y[i] = t[2];"
    assert unbounded(run(local, NEAR, np.full(64, 1.1))) == [5]


def test_an_array_has_exact_elements_beside_one_that_is_not():
    source = """
        @group(0) @binding(0) var<storage, read_write> y: array<f32, 2>;
        @group(0) @binding(1) var<storage, read_write> x: array<f32, 2>;
        @group(0) @binding(2) var<storage, read_write> n: array<u32, 2>;
        @compute @workgroup_size(1) fn main() {
            var t = array<f32, 2>(x[0], x[0] * 1.3);
            y[0] = t[n[0]];
            y[1] = t[n[1]];
        }
    """
    given = {"x": np.array([0.7, 0.3], f32), "n": np.array([0, 1], np.uint32), "y": np.zeros(2, f32)}
    exact, rounded = bankshot.simulate(source, grid=1, bindings=given, probes="none").bounds["y"]
    assert exact == 0 < rounded < 1e-6


def test_bits_that_are_a_subnormal_number_may_be_flushed():
    bits = 3 + np.arange(64)
    done = run("y[i] = bitcast<f32>(i + 3u);", np.zeros(64))
    assert (done.bounds["y"] >= bits * 2.0**-149).all()


def test_constants_that_an_inexact_index_picks_are_exact():
    before = "const T = array<f32, 4>(3.0, 5.0, 7.0, 0.5);"
    picked = f"let sum = a * b; y[i] = T[u32(sum > {LIMIT})] + T[u32(sum > 0.5) + 1];"
    done = run(picked, NEAR, np.full(64, 1.1), before=before)
    assert unbounded(done) == [5]
    assert np.delete(done.bounds["y"], 5).max() < 1e-5


# ---- softmax, from minus infinity on -----------------------------------------------------------------

ONLINE = """
var m = {start}; var sum = 0.0;
for (var k = 0u; k < 4u; k++) {{
    let v = z[(i + 7u * k) % 64u] * 1.25;
    let next = max(m, v);
    sum = sum * exp(m - next) + exp(v - next);
    m = next;
}}
y[i] = m + log(sum);"""
# The literal bits would be an error of the shader: WGSL has no infinite constants.
STARTS = ["bitcast<f32>(0xff800000u + min(i, 0u))", "-3.4028234e38", "-3.0e38", "-1e30"]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("device", ["nvidia", "lavapipe"])
def test_a_softmax_that_starts_at_a_lowest_value_is_bounded(start, device):
    z = np.random.default_rng(0).normal(size=64)
    done = run(ONLINE.format(start=start), z, z, device=device)
    assert unbounded(done) == []
    terms = 1.25 * z.astype(f32).astype(float)[(np.arange(64)[:, None] + 7 * np.arange(4)) % 64]
    assert_holds(done, np.log(np.exp(terms).sum(1)))
    assert done.bounds["y"].max() < 1e-4


def test_scores_under_a_mask_of_minus_infinities_are_bounded():
    scores, mask = samples(1, 64, 1.0)[0], np.where(np.arange(64) % 3 == 0, -np.inf, 0.0)
    done = run("y[i] = exp(a * 0.5 + b);", scores, mask)
    assert unbounded(done) == []
    assert (done.bounds["y"][::3] == 0).all()
    assert_holds(done, np.exp(scores.astype(f32).astype(float) * 0.5 + mask))


def test_infinities_that_may_be_finite_are_unbounded():
    big = np.full(64, 3e38)
    assert (
        len(unbounded(run("let s = a + b * exp(0.0 * a); y[i] = exp(-s);", big, big))) == 64
    )  # it may overflow, or not
    assert len(unbounded(run("y[i] = a - a * exp(0.0 * b);", np.full(64, np.inf), big))) == 64


def test_what_an_atomic_returns_from_an_address_that_may_differ_has_no_bound():
    source = """
        @group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> n: array<atomic<u32>>;
        @group(0) @binding(2) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(2) fn main(@builtin(local_invocation_index) i: u32) {
            y[i] = f32(atomicAdd(&n[u32(x[i] * 1.1)], 1u));
        }
    """
    x = np.array([1.0, 100 / 1.1], f32)
    given = {"x": x, "n": np.zeros(128, np.uint32), "y": np.zeros(2, f32)}
    assert bankshot.simulate(source, grid=1, bindings=given, probes="none").bounds["y"].tolist() == [0.0, np.inf]


@pytest.mark.parametrize("factor", ["", " * b"], ids=["as it is", "as a factor"])
@pytest.mark.parametrize("term", ["a", "-1.1", "b"])
def test_an_fma_may_be_fused_or_not(term, factor):
    """The bound of an ordinary one covers both, whatever an infinite operand beside an exponential would decide."""
    a, b = np.random.default_rng(3).uniform(0.5, 2, size=(2, 256)).astype(f32)
    done = run(f"y[i] = fma(a, b, {term}){factor}; if a > 9.0 {{ y[i] = exp(a); }}", a, b)
    c = {"a": a, "b": b, "-1.1": f32(-1.1)}[term]
    fused, apart = (a.astype(float) * b + c).astype(f32), a * b + c
    first, second = (fused * b, apart * b) if factor else (fused, apart)
    assert (first != second).any()
    for other in (first, second):
        assert_holds(done, other.astype(float))
    assert np.isfinite(done.bounds["y"]).all()


@pytest.mark.parametrize(
    ("x", "z", "term", "alone"),
    [
        (1.0, 2.0, -np.inf, True),
        (1e30, 1e30, -np.inf, False),  # the product may overflow to inf, and inf - inf is no number
        (np.inf, 2.0, -np.inf, False),
        (2.0, np.inf, -np.inf, False),
    ],
)
def test_an_infinite_term_decides_an_fma_alone(x, z, term, alone):
    """As where a softmax masks: where the kernel has an exponential."""
    done = run("y[i] = exp(fma(a, b, x[64u + i % 64u]));", [*[x] * 64, *[term] * 64], [*[z] * 64, *[z] * 64])
    bound = done.bounds["y"][:64]
    assert (bound == 0).all() if alone else (~np.isfinite(bound)).all()


SLOPES = {"exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "inverseSqrt": lambda x: x**-0.5,
          "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "atan": np.arctan, "tan": np.tan}  # fmt: skip


@pytest.mark.parametrize("name", SLOPES)
def test_an_inexact_argument_widens_the_bound_by_the_slope(name):
    """The argument may be off by what a sine may; the bound covers that, and is no more than twice as large."""
    a, b = np.random.default_rng(5).uniform((0.5, 0.2), (0.9, 0.5), size=(128, 2)).T.astype(f32)
    inner = run("y[i] = sin(a) + b;", a, b)
    x, off, function = inner.outputs["y"].astype(float), inner.bounds["y"], SLOPES[name]
    assert (off > 2**-11).all()
    done, own = run(f"y[i] = {name}(sin(a) + b);", a, b), run(f"y[i] = {name}(a);", inner.outputs["y"], b)
    shifted = np.abs(np.array([function(x + off), function(x - off)]) - function(x)).max(axis=0)
    assert (done.bounds["y"] >= shifted).all()
    assert (done.bounds["y"] <= 2 * (shifted + own.bounds["y"])).all()


def test_a_loop_whose_turns_rounding_decides_has_no_bound():
    """0.1 + 0.1 + 0.1 is just above 0.3 in f32: whether a fourth turn follows, its rounding decides."""
    text = "var f = 0.0; var n = 0.0; for (; f < {0}; f += a) {{ n += 1.0; }} y[i] = n;"
    steps = np.full(64, 0.1)
    near = run(text.format("0.3f"), steps)
    assert np.isinf(near.bounds["y"]).all()
    far = run(text.format("0.25f"), steps)
    assert far.outputs["y"].tolist() == [3] * 64
    assert np.isfinite(far.bounds["y"]).all()
    text = "var f = 0.0; var n = 0.0; loop {{ n += 1.0; f += a; continuing {{ break if f > {}; }} }} y[i] = n;"
    late = run(text.format("0.3f"), steps)
    assert np.isinf(late.bounds["y"]).all()
    early = run(text.format("0.25f"), steps)
    assert early.outputs["y"].tolist() == [3] * 64
    assert np.isfinite(early.bounds["y"]).all()


def test_each_of_several_branches_that_rounding_decides_is_found():
    """Invocations of which each is within rounding of one branch: 1 of the first, 2 of the second, 3 of the third."""
    a = np.full(64, 10.0)
    a[5], a[[8, 9]], a[[20, 21, 22]] = 1.0, 2.0, 3.0
    body = "let v = a + sin(b); var s = 0.0;\n" + "\n".join(f"if v > {n}.0 {{ s += {n}.0; }}" for n in (1, 2, 3))
    found = run(f"{body}\ny[i] = s;", a, np.zeros(64)).bounds.findings
    assert [(each.count, each.lanes[0]) for each in sorted(found, key=lambda each: each.span.start)] == [
        (1, 5), (2, 8), (3, 20)
    ]  # fmt: skip
