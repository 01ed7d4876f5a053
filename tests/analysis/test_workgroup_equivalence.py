"""Classes of workgroups: the counts of one workgroup, multiplied, equal those of all workgroups of its class."""

import numpy as np
import pytest

import bankshot
from bankshot.sim.analysis.workgroup_equivalence import Unproven, find_equivalence
from bankshot.sim.codegen.build import draft
from bankshot.sim.ir.rounding import Rounding

HEAD = """
struct Dims { rows: u32, columns: u32, depth: u32 }
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> table: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
var<workgroup> tile: array<f32, 64>;
var<workgroup> chosen: u32;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wg: vec3u, @builtin(local_invocation_index) lane: u32,
        @builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) grid: vec3u) {
"""
DIMS = (100, 500, 24)


def run(body, grid=(64,), workgroups="check", probes="all", size=8192, table=None, **options):
    """`body` on `grid`, by classes, compared with a run of all."""
    bindings = {
        "dims": DIMS,
        "a": np.linspace(-1, 1, size, dtype=np.float32),
        "table": np.arange(256, dtype=np.uint32) ** 2 % 10007 if table is None else table,
        "y": np.zeros(size, np.float32),
    }
    used = {name: value for name, value in bindings.items() if name in body}
    return bankshot.simulate(
        HEAD + body + "}", grid=grid, bindings=used, probes=probes, workgroups=workgroups, **options
    )


# Body, grid, and the number of classes, worked out by hand.
PROVEN = {
    "all alike": ("y[id.x] = a[id.x] * 2.0;", (64,), 1),
    "a guard in the last": ("if id.x < 4000u { y[id.x] = a[id.x]; }", (64,), 3),
    "a signed guard in the last": ("if i32(id.x) < 4000 { y[id.x] = a[id.x]; }", (64,), 3),
    "one workgroup alone": ("if wg.x == 7u { y[id.x] = a[id.x]; }", (64,), 2),
    "every other one": ("y[lane + 64u * (wg.x ^ 1u)] = a[64u * (wg.x % 8u) + lane] * f32(wg.x & 1u);", (64,), 1),
    "lines that begin at four places": ("y[id.x] = a[lane + 8u * wg.x];", (64,), 4),
    "two axes": ("if wg.x < 3u && wg.y < 5u { y[(wg.y * 8u + wg.x) * 64u + lane] = 1.0; }", (8, 8), 4),
    "either of two axes": (
        "if (wg.x < 3u) | (wg.y < 5u) { y[(wg.y * 8u + wg.x) * 64u + lane] = 1.0; }",
        (8, 8),
        4,
    ),
    "three axes": ("if wg.z == 1u { y[((wg.z * 2u + wg.y) * 8u + wg.x) * 64u + lane] = 1.0; }", (8, 2, 4), 2),
    "lines that depend on z alone": (  # squares of z modulo 3 are 0, 1, 1, 0
        "y[((wg.z * 2u + wg.y) * 3u + wg.x) * 64u + lane] = a[(wg.z * wg.z % 3u) * 8u + lane];",
        (3, 2, 4),
        2,
    ),
    "a loop as long as an index says": (
        "var s = 0.0; for (var i = 0u; i < wg.x % 3u; i++) { s += a[i * 64u + lane]; } y[id.x] = s;",
        (64,),
        3,
    ),
    "a pointer that walks": (
        "var at = id.x; var s = 0.0; for (var i = 0u; i < 4u; i++) { s += a[at]; at += 32u; } y[id.x] = s;",
        (64,),
        1,
    ),
    "rows of a matrix": (
        "var s = 0.0; for (var k = 0u; k < dims.depth; k++) { s += a[(wg.x + k) * 64u + lane]; } y[id.x] = s;",
        (64,),
        1,
    ),
    "swizzled": ("let s = ((wg.x & 7u) << 3u) | (wg.x >> 3u); y[s * 64u + lane] = a[s * 64u + lane];", (64,), 1),
    "addresses that wrap around": (
        "y[(wg.x - 3u) * 64u + 192u + lane] = a[4294967232u * (wg.x + 1u) + 4096u + lane];",
        (63,),
        1,
    ),
    "workgroup memory": (
        "tile[lane] = a[id.x]; workgroupBarrier(); y[id.x] = tile[63u - lane] + tile[(lane * 5u) % 64u];",
        (64,),
        1,
    ),
    "up to the last element": ("y[64u * wg.x + lane] = a[64u * wg.x + 4096u + lane];", (64,), 1),
    "down to the first element": ("y[8191u - id.x] = a[id.x];", (128,), 1),
    "down to the first element, the first past the end": ("y[8192u - id.x] = 1.0;", (128,), 2),
    "one element past the end": ("y[id.x + 4097u] = 1.0;", (64,), 2),
    "signed": ("let at = i32(id.x) - 64 + 64; if at < 4000 { y[u32(at)] = a[u32(at)]; }", (64,), 3),
    "a table read by all at one place": ("if table[lane] < 32u { y[id.x] = a[id.x]; }", (64,), 1),
    "inputs decide": ("if a[id.x] > -0.5 { y[id.x] = 1.0; }", (64,), 2),
    "a table that says where": ("y[id.x] = a[table[wg.x / 32u] * 64u + lane];", (64,), 2),
    "a uniform loop bound from memory": (
        "var s = 0.0; for (var i = 0u; i < table[3]; i++) { s += a[id.x]; } y[id.x] = s;",
        (64,),
        1,
    ),
    "chosen by one, passed on by all": (
        "if lane == 0u { chosen = wg.x % 2u; } workgroupBarrier(); tile[lane] = f32(chosen); workgroupBarrier(); "
        "if tile[63u - lane] == 0.0 { y[id.x] = a[id.x]; }",
        (64,),
        2,
    ),
    "chosen by one, read by all": (
        "if lane == 0u { chosen = wg.x % 2u; } workgroupBarrier(); if chosen == 0u { y[id.x] = a[id.x]; }",
        (64,),
        2,
    ),
    "two remainders of one axis": (
        "if wg.x % 2u == 0u { y[id.x] = 1.0; } if wg.x % 3u == 0u { y[id.x] = 2.0; }",
        (64,),
        4,
    ),
    "a bit of two axes together": (
        "if ((wg.x ^ wg.y) & 1u) == 0u { y[(wg.y * 8u + wg.x) * 64u + lane] = 1.0; }",
        (8, 8),
        2,
    ),
    "a bit of each of two axes": (
        "let at = (wg.y * 8u + wg.x) * 64u + lane; if (wg.x & 1u) == 0u { y[at] = 1.0; } "
        "if (wg.y & 1u) == 0u { y[at] = 2.0; }",
        (8, 8),
        4,
    ),
    # Workgroups of a class agree in each of two tests of an axis, though the result would be enough.
    "within both of two bounds": (
        "if (wg.x < 3u) & (wg.y < 5u) { y[(wg.y * 8u + wg.x) * 64u + lane] = 1.0; }",
        (8, 8),
        4,
    ),
    "within one of two bounds": (
        "if (wg.x < 3u) | (wg.y < 5u) { y[(wg.y * 8u + wg.x) * 64u + lane] = 1.0; }",
        (8, 8),
        4,
    ),
    "beyond one of two bounds": (
        "if !((wg.x < 3u) & (wg.y < 5u)) { y[(wg.y * 8u + wg.x) * 64u + lane] = 1.0; }",
        (8, 8),
        4,
    ),
    "a bit of each of three axes": (
        "let at = ((wg.z * 4u + wg.y) * 4u + wg.x) * 64u + lane; if (wg.x & 1u) == 0u { y[at] = 1.0; } "
        "if (wg.y & 1u) == 0u { y[at] = 2.0; } if (wg.z & 1u) == 0u { y[at] = 3.0; }",
        (4, 4, 4),
        8,
    ),
    "a signed pointer that walks": (
        "var at = i32(id.x); var s = 0.0; for (var i = 0u; i < 4u; i++) { s += a[u32(at)]; at += 32; } y[id.x] = s;",
        (64,),
        1,
    ),
    "a pointer that walks, converted to signed": (
        "var at = id.x; var s = 0.0; for (var i = 0u; i < 4u; i++) { s += a[i32(at)]; at += 32u; } y[id.x] = s;",
        (64,),
        1,
    ),
    "a pointer that walks, by its bits": (
        "var at = id.x; var s = 0.0; for (var i = 0u; i < 4u; i++) { s += a[bitcast<i32>(at)]; at += 32u; } "
        "y[id.x] = s;",
        (64,),
        1,
    ),
    "a pointer that walks in a ring": (
        "var at = wg.x; var s = 0.0; for (var i = 0u; i < 4u; i++) { s += a[(at * 64u + lane) & 63u]; at += 1u; } "
        "y[id.x] = s;",
        (64,),
        1,
    ),
    "an array that is indexed": (
        "var s: array<f32, 4>; for (var i = 0u; i < 4u; i++) { s[i] = a[id.x] + f32(i); } y[id.x] = s[lane % 4u];",
        (64,),
        1,
    ),
}


# Addresses that move with a variable, which starts at the number of the workgroup and ends one higher, times 512.
# Sixteen workgroups are within 17 * 512 elements, up or down; four more are outside, and each may count otherwise.
LINEAR = {
    "a shift": "(n << 9u) + lane",
    "a shift by a number of a uniform": "(n << (dims.depth - 15u)) + lane",
    "a product with a number on the right": "n * 512u + lane",
    "a product with a number on the left": "512u * n + lane",
    "a product with a number of a uniform": "n * (dims.columns + 12u) + lane",
    "a product that wraps around": "n * 4294966784u + 8703u - lane",
    "a sum": "lane + (n << 8u) + (n << 8u)",
    "a difference": "8703u - lane - n * 512u",
    "a difference of what moves": "(n << 10u) - (n << 9u) + lane",
    "a negative": "u32(-(i32(n) * 512)) + 8703u - lane",
    "a signed product": "u32(i32(n) * 512) + lane",
    "low bits of what moves by more": "(n << 9u) + (((n << 9u) + lane) & 511u)",
    "low bits, by a uniform": "(n << 9u) + (((n << 9u) + lane) & (dims.columns + 11u))",
}


@pytest.mark.parametrize("rows", [4, 5])
@pytest.mark.parametrize("address", LINEAR.values(), ids=LINEAR)
def test_addresses_move_as_they_are_computed(address, rows):
    body = "var n = wg.y * 4u + wg.x; let to = n * 64u + lane; var s = 0.0; "
    body += f"for (var i = 0u; i < 2u; i++) {{ s += a[{address}]; n += 1u; }} y[to] = s;"
    done = run(body, (4, rows), size=17 * 512)
    assert done.coverage.how == "classes", str(done.coverage)
    sizes = [size for _, size in done.coverage.classes]
    assert (max(sizes), sum(sizes)) == (16, 4 * rows)


def test_a_product_of_two_axes_moves_as_a_whole():
    """All are in bounds but 3 * 3, where it reaches 4096 + 9 * 512."""
    done = run("y[(wg.y * 4u + wg.x) * 64u + lane] = a[wg.x * wg.y * 512u + 4096u + lane];", (4, 4))
    assert sorted(size for _, size in done.coverage.classes) == [1, 15]


# A variable that goes from 64 w to 64 w + 159 in workgroup w of 16, compared with a limit. Those below it are alike,
# and those above it, and each of the others is of a class of its own.
LIMITS = {608: [1, 1, 6, 8], 607: [1, 1, 1, 6, 7], 640: [1, 1, 6, 8], 641: [1, 1, 1, 5, 8]}
STARTS = {"u32": "id.x", "i32": "i32(id.x) - 512", "large u32": "id.x + 2147483136u"}
COMPARED = ["{at} < {limit}", "{at} <= {last}", "{limit} > {at}", "{last} >= {at}", "{at} >= {limit}", "{last} < {at}"]


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("condition", COMPARED)
def test_comparisons_of_what_moves(condition, start, limit):
    first, unit = {"u32": (0, "u"), "i32": (-512, ""), "large u32": (2147483136, "u")}[start]
    words = {"at": "at", "limit": f"{limit + first}{unit}", "last": f"{limit + first - 1}{unit}"}
    loop = f"if {condition.format(**words)} {{ s += a[id.x]; }} at += 32{unit};"
    done = run(f"var at = {STARTS[start]}; var s = 0.0; for (var i = 0u; i < 4u; i++) {{ {loop} }} y[id.x] = s;", (16,))
    assert done.coverage.how == "classes", str(done.coverage)
    assert sorted(size for _, size in done.coverage.classes) == LIMITS[limit]


def test_both_sides_of_a_comparison_may_move():
    loop = "if at < to { s += a[id.x]; } at += 32u; to += 8u;"
    start = "var at = id.x; var to = wg.x * 64u + 100u; var s = 0.0;"
    assert run(f"{start} for (var i = 0u; i < 4u; i++) {{ {loop} }} y[id.x] = s;", (16,)).coverage.ran == 1


# The variable n is 0 or 1, so that there are two classes of eight where it must be known.
PINNED = {
    "bits in the middle": "a[(((n << 5u) + lane) & 64u) * 4u + lane]",
    "low bits that it moves": "a[((n << 5u) + lane) & 63u]",
    "a remainder": "a[(n * 100u + lane) % 96u]",
    "a product of it and itself": "a[n * n * 100u + lane]",
    "a sum of floats": "a[u32(f32(n) * 2.0 + f32(n) * 2.0 + f32(n) * 2.0 + f32(n) * 2.0) + lane]",
    "an index of an array": "a[array(0u, 100u)[n] + lane]",
}


@pytest.mark.parametrize("loaded", PINNED.values(), ids=PINNED)
def test_what_does_not_move_must_be_equal(loaded):
    body = f"var n = wg.x % 2u; var s = 0.0; loop {{ s += {loaded}; n += 2u; if n > 1u {{ break; }} }} y[id.x] = s;"
    done = run(body, (16,))
    assert [size for _, size in done.coverage.classes] == [8, 8]


# The variable f differs between two workgroups, and so do the loads.
FLOATS = {
    "an address": ("f32(wg.x % 2u) * 0.5", "s += a[u32((f * 2.0 + f * 2.0) + (f * 2.0 + f * 2.0)) + lane]; f += 1.0;"),
    "a comparison": ("f32(wg.x % 2u)", "if f < 0.5 { s += a[id.x]; } f += 4.0;"),
    "a comparison of negative numbers": ("-1.0 - f32(wg.x % 2u)", "if f < -1.5 { s += a[id.x]; } f -= 4.0;"),
}


@pytest.mark.parametrize(("start", "loop"), FLOATS.values(), ids=FLOATS)
def test_floats_must_be_equal(start, loop):
    done = run(f"var f = {start}; var s = 0.0; for (var i = 0u; i < 2u; i++) {{ {loop} }} y[id.x] = s;", (16,))
    assert [size for _, size in done.coverage.classes] == [8, 8]


@pytest.mark.parametrize(("body", "grid", "classes"), PROVEN.values(), ids=PROVEN)
def test_workgroups_of_a_class_count_alike(body, grid, classes):
    done = run(body, grid)
    assert (done.coverage.how, done.coverage.ran) == ("classes", classes), str(done.coverage)
    assert sum(size for _, size in done.coverage.classes) == int(np.prod(grid))


# Variants of these in which data decides, or all workgroups differ.
UNPROVEN = {
    "data decides a branch": ("if y[id.x] == 0.0 { y[id.x] = a[id.x]; }", "a branch in line 13 depends on what the"),
    "data decides a loop": ("while y[id.x] < 3.0 { y[id.x] += 1.0; }", "depends on what the dispatch stores to y"),
    "data decides an address": ("y[u32(y[id.x])] = a[id.x];", "the address of the store of y in line 13 depends"),
    "data through workgroup memory": (
        "tile[lane] = y[id.x]; workgroupBarrier(); if tile[0] == 0.0 { y[id.x] = a[id.x]; }",
        "depends on what the dispatch stores to y",
    ),
    "data through an array": (
        "var s: array<u32, 4>; s[lane % 4u] = u32(y[id.x]); y[id.x] = a[s[lane % 3u]];",
        "depends on what the dispatch stores to y",
    ),
    "each has other indices in an array, stored after those of all": (
        "var at = array<u32, 2>(); at[lane & 1u] = lane; at[(lane + 1u) & 1u] = lane + 8u * wg.x; "
        "y[id.x] = a[at[(lane + 1u) & 1u]];",
        "of the 64 workgroups differ",
    ),
    "each has other rows": ("y[id.x] = a[table[wg.x * 2u + lane % 2u]];", "of the 64 workgroups differ"),
    "each goes on for longer": ("for (var i = 0u; i < wg.x; i++) { y[id.x] += 1.0; }", "of the 64 workgroups differ"),
}


@pytest.mark.parametrize(("body", "why"), UNPROVEN.values(), ids=UNPROVEN)
def test_without_a_proof_all_workgroups_run(body, why):
    done, whole = run(body, workgroups="classes"), run(body, workgroups="all")
    assert done.coverage.how == "all"
    assert why in str(done.coverage)
    assert done.counters == whole.counters
    assert [site.counts() for site in done.sites] == [site.counts() for site in whole.sites]


@pytest.mark.parametrize("first", range(5))
def test_of_several_reasons_the_first_is_told(first):
    numbers = range(5)
    buffers = [f"@group(0) @binding({n}) var<storage, read_write> y{n}: array<u32, 8>;" for n in numbers]
    tiles = [f"var<workgroup> tile{n}: array<u32, 8>;" for n in numbers]
    stores = [f"tile{n}[lane] = y{n}[lane];" for n in numbers]
    branches = [f"if tile{n}[0] == 0u {{ y{n}[lane] = 1u; }}" for n in (*numbers[first:], *numbers[:first])]
    main = "@compute @workgroup_size(8) fn main(@builtin(local_invocation_index) lane: u32)"
    pipeline = bankshot.check("\n".join((*buffers, *tiles, main, "{", *stores, *branches, "}"))).pipeline(None)
    rounding = Rounding(fused=False, contracts=False, cuts_f16=False)
    lowered = draft(pipeline, rounding=rounding, probes=frozenset(), policy="clamp").lowered
    with pytest.raises(Unproven, match=f"depends on what the dispatch stores to y{first}$"):
        find_equivalence(lowered, {})


def test_a_workgroup_out_of_bounds_is_of_another_class():
    done = run("y[id.x] = a[id.x + 64u * 3u];", size=64 * 62)
    assert done.coverage.how == "classes"
    counts = {finding.message.split("[")[0]: finding.count for finding in done.findings}
    assert counts == {"load of a": 64 * 5, "store of y": 64 * 2}


def test_findings_that_depend_on_data_need_all_workgroups():
    body = "y[id.x] = 1.0 / (a[id.x] - a[5000]);"
    done, whole = run(body, (128,), "classes"), run(body, (128,), "all")
    assert done.coverage.how == "classes"
    (ours,), (theirs,) = done.findings, whole.findings
    assert (ours.code, ours.count, ours.workgroup) == ("not-finite", 1, (78, 0, 0))
    assert (theirs.code, theirs.count, theirs.workgroup) == ("not-finite", 1, (78, 0, 0))


def test_workgroups_that_race_all_run():
    done = run("y[lane + 64u * (wg.x % 32u)] = f32(wg.x);", workgroups="classes")
    assert done.coverage.how == "all"
    assert [finding.code for finding in done.findings] == ["race"]


def test_a_redundant_barrier_is_found_by_classes():
    done = run("y[id.x] = a[id.x]; workgroupBarrier();", probes=("all", "redundant"))
    assert done.coverage.how == "classes"
    assert [finding.code for finding in done.findings] == ["redundant-barrier"]


def test_outputs_need_all_workgroups():
    body = "y[id.x] = a[id.x] * 3.0;"
    done, whole = (run(body, workgroups=which, probes="counters") for which in ("classes", "all"))
    assert done.coverage.ran == 1
    assert np.array_equal(done.outputs["y"], whole.outputs["y"])
    assert done.counters == whole.counters


def test_lines_of_other_devices():
    body = "y[id.x] = a[lane + 16u * wg.x];"
    for device in ("nvidia", "amd", "apple", "intel", "lavapipe"):
        assert run(body, device=device).coverage.how == "classes"


# ---- samples -----------------------------------------------------------------------------------------


def test_a_sample_is_spread_over_the_grid_and_reported():
    done = run("y[id.x] = 1.0;", workgroups=3)
    assert (done.coverage.how, done.coverage.ran, done.coverage.exact) == ("sample", 3, False)
    assert str(done.coverage).startswith("a sample: 3 of 64 workgroups ran")
    stored = np.flatnonzero(done.outputs["y"]) // 64
    assert sorted(set(stored.tolist())) == [0, 32, 63]
    assert (done.counters["workgroups"], done.counters["invocations"]) == (3, 192)


def test_findings_of_a_sample_name_its_workgroups():
    done = run("y[id.x] = 1.0;", workgroups=2, size=64 * 63)
    (finding,) = done.findings
    assert (finding.workgroup, finding.count) == ((63, 0, 0), 64)


def test_a_sample_larger_than_the_grid_is_all():
    assert run("y[id.x] = 1.0;", workgroups=100).coverage.how == "all"


@pytest.mark.parametrize("workgroups", ["some", 0, -1, 2.5])
def test_invalid_numbers_of_workgroups(workgroups):
    with pytest.raises(bankshot.WgslError, match=r"workgroups must be one of|a sample needs at least one"):
        run("y[id.x] = 1.0;", workgroups=workgroups)


# ---- the check ---------------------------------------------------------------------------------------


def test_the_check_finds_a_wrong_class(monkeypatch):
    from bankshot.sim.launch import workgroup_classes as classes

    assert "a run of all gives the same" in str(run("y[id.x] = 1.0;").coverage)
    monkeypatch.setattr(classes, "times", lambda outcome, count: outcome)
    with pytest.raises(bankshot.Crash, match="do not have the same counters"):
        run("y[id.x] = 1.0;")
