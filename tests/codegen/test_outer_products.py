"""Instructions that are taken several at once: the same bits, counters and findings as one by one."""

import numpy as np
import pytest

import bankshot
from bankshot.sim.codegen.build import INSTRUCTION_PASSES
from bankshot.sim.ir import passes
from bankshot.sim.machine import instruction as field
from bankshot.sim.machine import opcodes as op
from tests.programs_made.random_products import WORDS, Maker

PROBES = (
    (),
    ("lanes", "banks", "sectors", "barriers", "flops", "bounds"),
    ("nan",),
    ("lanes", "banks", "sectors", "barriers", "flops", "bounds", "races", "uninit", "nan"),
)
TABLES = ("blocks", "tallies", "bounds", "checks", "unwritten", "races")
GROUPS = 3
ALONE = passes.ALL - frozenset(INSTRUCTION_PASSES)  # every instruction on its own


def simulated(wgsl, size, device="lavapipe", probes="none", **options):
    random = np.random.default_rng(5)
    x = random.standard_normal(WORDS).astype(np.float32)
    x[::97] = random.choice(np.array([np.inf, -np.inf, np.nan, -0.0, 1e-40, 3e38], np.float32), len(x[::97]))
    bindings = {
        "x": x,
        "v": x[::-1].copy(),
        "y": np.zeros(GROUPS * size * 64, np.float32),
        "same": np.array([1.5, 2, -3, 0.125], np.float32),
        "turns": np.uint32(7),
    }
    return bankshot.simulate(wgsl, grid=GROUPS, bindings=bindings, device=device, probes=probes, **options)


def tiles(program):
    return int((program.code[:, field.OP] == op.TILE).sum())


def bits(values):
    """Bits of f32, of which a NaN is one: which of two NaNs their sum is, the processor decides."""
    return np.where(np.isnan(values), np.float32(np.nan), values).tobytes()


@pytest.mark.parametrize("seed", range(60))
def test_marking_stores_changes_no_output(seed):
    maker = Maker(seed)
    wgsl = maker.program()
    device, probes = ("lavapipe", "nvidia")[seed % 2], PROBES[seed // 2 % len(PROBES)]
    workgroups_per_batch = simulated(wgsl, maker.size, device, probes or "none", replay=False)
    launch, outcome = workgroups_per_batch._dispatch.run(frozenset(probes), passes=ALONE)
    assert tiles(launch.program) == 0
    for name, values in launch.outputs().items():
        assert bits(workgroups_per_batch.outputs[name]) == bits(values), wgsl
    again = workgroups_per_batch._dispatch.run(frozenset(probes))[1]
    for table in TABLES:
        assert getattr(again, table).tolist() == getattr(outcome, table).tolist(), (table, wgsl)


HEAD = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> turns: u32;
"""
BODY = "@compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {"
FOUR = "var s0 = 0.0; var s1 = 1.0; var s2 = 2.0; var s3 = 3.0;"
STEP = "let a = x[i + k]; let b = x[i * 2u + k]; let c = x[k]; let d = x[k + 9u];"
SUMS = "s0 += a * c; s1 += a * d; s2 += b * c; s3 += b * d;"
OUT = "y[i * 4u] = s0; y[i * 4u + 1u] = s1; y[i * 4u + 2u] = s2; y[i * 4u + 3u] = s3;"
LOOP = "for (var k = 0u; k < turns; k++) {"
# body, the tiles that it has: rows, columns and whether they wait for each other's sums
CASES = {
    "a loop": (f"{FOUR} {LOOP} {STEP} {SUMS} }} {OUT}", [(2, 2, 1)]),
    "two steps a turn": (
        f"{FOUR} {LOOP} {{ {STEP} {SUMS} }} {{ {STEP.replace('+ k', '+ k * 3u')} {SUMS} }} }} {OUT}",
        [(2, 2, 1), (2, 2, 1)],
    ),
    "two shapes": (
        f"""{FOUR} {LOOP}
        {{ let a = x[i + k]; s0 += a * x[k]; s1 += a * x[k + 1u]; s2 += a * x[k + 2u]; s3 += a * x[k + 9u]; }}
        {{ let b = x[k + 5u]; s0 += x[i + k] * b; s1 += x[i * 3u] * b; s2 += x[i * 5u] * b; s3 += x[i ^ k] * b; }}
        }} {OUT}""",
        [(1, 4, 0), (4, 1, 0)],
    ),
    "seen in the loop": (f"{FOUR} {LOOP} {STEP} {SUMS} s1 *= 0.5; }} {OUT}", [(2, 2, 0)]),
    "seen in the loop around": (
        f"{FOUR} for (var j = 0u; j < 3u; j++) {{ {LOOP} {STEP} {SUMS} }} s1 *= 0.5; }} {OUT}",
        [(2, 2, 1)],
    ),
    "left early": (f"{FOUR} {LOOP} {STEP} {SUMS} if k == 3u {{ break; }} }} {OUT}", [(2, 2, 1)]),
    "returned from": (f"{FOUR} {LOOP} {STEP} {SUMS} if x[k] > 9.0 {{ return; }} }} {OUT}", [(2, 2, 0)]),
    "one sum": (f"var s = 0.0; {LOOP} s += x[i + k] * x[i * 2u + k]; }} y[i] = s;", [(1, 1, 1)]),
    "copied factors": (
        f"""{FOUR} {LOOP} let a = x[i + k] + 1.0; let b = x[i * 2u + k] - 2.0; let c = a * 3.0; let d = b * b;
        {SUMS} }} {OUT}""",
        [(2, 2, 1)],
    ),
    "not worth a copy": (f"var s = 0.0; {LOOP} s += (x[i + k] + 1.0) * x[k]; }} y[i] = s;", []),
    "a square": (f"var s = 0.0; {LOOP} let a = x[i + k]; s += a * a; }} y[i] = s;", []),
    "some lanes": (f"{FOUR} {LOOP} if i > k {{ {STEP} {SUMS} }} }} {OUT}", []),
    "a sum is a factor": (f"var s = 0.5; var r = 1.0; {LOOP} s += x[k] * r; r += x[i] * s; }} y[i] = s + r;", []),
    "a sum is an index": (f"var s = bitcast<f32>(i); {LOOP} s += x[bitcast<u32>(s)] * x[k]; }} y[i] = s;", []),
}


@pytest.mark.parametrize("name", CASES)
def test_sums_that_form_tiles(name):
    body, expected = CASES[name]
    random = np.random.default_rng(1)
    x = random.standard_normal(256).astype(np.float32)
    bindings = {"x": x, "y": np.zeros(128, np.float32), "turns": np.uint32(6)}
    run = bankshot.simulate(f"{HEAD} {BODY} {body} }}", grid=1, bindings=bindings, device="lavapipe", probes="none")
    rows = run.program.code[run.program.code[:, field.OP] == op.TILE]
    assert [(int(r[field.TILE_ROWS]), int(r[field.TILE_COLUMNS]), int(r[field.MAY_WAIT])) for r in rows] == expected
    alone = run._dispatch.run(frozenset(), passes=ALONE)[0].outputs()["y"]
    assert run.outputs["y"].tobytes() == alone.tobytes()


STAGED = f"""
var<workgroup> w: array<f32, 256>;
{BODY.replace("32", "64", 1)} {FOUR}
for (var j = 0u; j < 3u; j++) {{
    for (var n = i; n < 256u; n += 64u) {{ w[n] = x[n] + f32(j); }}
    workgroupBarrier();
    {LOOP} {STEP.replace("x[", "w[")} {SUMS} }}
    workgroupBarrier();
}}
"""


@pytest.mark.parametrize("schedule", ["lockstep", "subgroup-serial", "reversed"])
@pytest.mark.parametrize(("seen", "deferred"), [("", True), ("w[i] = s2; workgroupBarrier();", False)])
def test_sums_wait_across_the_barriers_of_a_loop_around(seen, deferred, schedule):
    """Of the loops in which nothing else touches the sums, the outermost one decides when they are added up."""
    x = np.random.default_rng(3).standard_normal(256).astype(np.float32)
    bindings = {"x": x, "y": np.zeros(256, np.float32), "turns": np.uint32(40)}
    text = f"{HEAD} {STAGED.strip()[:-1]} {seen} }} {OUT} }}"
    run = bankshot.simulate(text, grid=1, bindings=bindings, device="nvidia", probes="none", schedule=schedule)
    what = run.program.code[:, field.OP].tolist()
    (added,) = (at for at, each in enumerate(what) if each == op.ADD_UP)
    assert (added > max(at for at, each in enumerate(what) if each == op.BARRIER)) == deferred
    alone = run._dispatch.run(frozenset(), passes=ALONE)[0].outputs()["y"]
    assert run.outputs["y"].tobytes() == alone.tobytes()


def test_tiles_match_numpy():
    x = np.random.default_rng(2).standard_normal(256).astype(np.float32)
    bindings = {"x": x, "y": np.zeros(128, np.float32), "turns": np.uint32(6)}
    source = f"{HEAD} {BODY} {CASES['a loop'][0]} }}"
    run = bankshot.simulate(source, grid=1, bindings=bindings, device="lavapipe", probes="none")
    i, sums = np.arange(32), np.tile(np.arange(4, dtype=np.float32)[:, None], (1, 32))
    for k in range(6):
        for n, (a, b) in enumerate(((i + k, k), (i + k, k + 9), (i * 2 + k, k), (i * 2 + k, k + 9))):
            sums[n] += x[a] * x[b]
    assert run.outputs["y"].tolist() == sums.T.ravel().tolist()


@pytest.mark.parametrize("policy", ["clamp", "zero", "wrap"])
def test_tiles_past_the_end(policy):
    """Where an access that is out of bounds is not simply clamped, the rows do it one by one."""
    x = np.random.default_rng(2).standard_normal(40).astype(np.float32)
    bindings = {"x": x, "y": np.zeros(128, np.float32), "turns": np.uint32(6)}
    source = f"{HEAD} {BODY} {CASES['a loop'][0]} }}"
    run = bankshot.simulate(source, grid=1, bindings=bindings, device="nvidia", probes="none", out_of_bounds=policy)
    alone = run._dispatch.run(frozenset(), passes=ALONE)[0].outputs()["y"]
    assert run.outputs["y"].tobytes() == alone.tobytes()


@pytest.mark.parametrize("schedule", ["subgroup-serial", "reversed", "random(3)"])
def test_tiles_in_other_orders(schedule):
    maker = Maker(4)
    wgsl = maker.program()
    run = simulated(wgsl, maker.size)
    assert tiles(run.program)
    other = simulated(wgsl, maker.size, schedule=schedule)
    assert other.outputs["y"].tobytes() == run.outputs["y"].tobytes()


@pytest.mark.parametrize("kind", ["f32", "f16", "u32"])
@pytest.mark.parametrize("size", [1, 20, 64])
def test_four_units_at_once(kind, size):
    """Loads of whole vectors, some past the end, which are clamped."""
    dtype = {"f32": np.float32, "f16": np.float16, "u32": np.uint32}[kind]
    x = np.arange(4 * 50).astype(dtype).reshape(50, 4)
    source = f"""{"enable f16;" if kind == "f16" else ""}
        @group(0) @binding(0) var<storage, read> x: array<vec4<{kind}>>;
        @group(0) @binding(1) var<storage, read_write> y: array<vec4<{kind}>>;
        @compute @workgroup_size({size})
        fn main(@builtin(global_invocation_id) g: vec3u) {{ y[g.x] = x[(g.x * 7u) % 64u].wzyx; }}
        """
    run = bankshot.simulate(source, grid=2, bindings={"x": x, "y": np.zeros((2 * size, 4), dtype)}, probes="none")
    assert (run.program.code[:, field.MASK][run.program.code[:, field.OP] == op.LOAD] == field.FOUR).any()
    places = np.minimum(np.arange(2 * size) * 7 % 64, 49)
    assert run.outputs["y"].tolist() == x[places][:, ::-1].tolist()


FACTORS = """
@group(0) @binding(0) var<storage, read> x: array<f32, 64>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 256>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
    let a0 = x[i]; let a1 = x[(i + 1u) % 64u]; let b0 = x[(i + 2u) % 64u]; let b1 = x[(i + 3u) % 64u];
    var s00 = 1.0; var s01 = 1.0; var s10 = 1.0; var s11 = 1.0;
    for (var k = 0u; k < 3u; k++) {
"""
SUMS = ("s00 = a0 * b0 + s00;", "s01 = a0 * b1 + s01;", "s10 = a1 * b0 + s10;", "s11 = a1 * b1 + s11;")
FUSED = ("s00 = fma(a0, b0, s00);", "s01 = fma(a0, b1, s01);", "s10 = fma(a1, b0, s10);", "s11 = fma(a1, b1, s11);")
END = "} y[i * 4u] = s00; y[i * 4u + 1u] = s01; y[i * 4u + 2u] = s10; y[i * 4u + 3u] = s11; }"


@pytest.mark.parametrize("device", ["nvidia", "lavapipe"])
@pytest.mark.parametrize("fused", [(), (0,), (1, 2), (0, 1, 2, 3)])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 1, 2, 3, 0), (0, 0, 1, 1, 2, 3), (3, 0, 2, 1), (0, 1, 2)])
def test_sums_of_products_against_numpy(device, fused, order):
    """NVIDIA rounds a product and a sum once, lavapipe twice, in `a * b + c` as in `fma`."""
    body = " ".join((FUSED if at in fused else SUMS)[at] for at in order)
    x = np.random.default_rng(1).uniform(0.5, 1.5, 64).astype(np.float32)
    bindings = {"x": x, "y": np.zeros(256, np.float32)}
    text = FACTORS + body + END
    made = bankshot.simulate(text, grid=1, bindings=bindings, device=device, probes="none").outputs["y"]
    wide = x.astype(np.float64)
    a, b = [wide, np.roll(wide, -1)], [np.roll(wide, -2), np.roll(wide, -3)]
    for at in range(4):
        total, product = np.ones(64, np.float32), a[at // 2] * b[at % 2]
        for _ in range(3 * order.count(at)):
            total = (total + (product if device == "nvidia" else product.astype(np.float32))).astype(np.float32)
        assert made[at::4].tolist() == total.tolist(), at
