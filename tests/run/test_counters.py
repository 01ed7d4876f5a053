"""Counters against numbers worked out by hand, and against a slow recount from the addresses themselves."""

import numpy as np
import pytest

import bankshot

HEAD = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;\n"
DEVICES = ("nvidia", "apple", "intel")


def run(source, grid=1, size=4096, device="nvidia", **bindings):
    given = {"y": np.zeros(size, np.uint32), **bindings}
    return bankshot.simulate(HEAD + source, grid=grid, bindings=given, device=device)


def site(done, kind, name):
    """The one site of this kind and name."""
    (row,) = [s for s in done.sites if s.kind == kind and s.name == name]
    return row


def entry(body, size=32):
    return f"""
    @compute @workgroup_size({size})
    fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) group: vec3u) {{ {body} }}
    """


def test_a_site_counts_subgroups_that_issue_it_and_their_active_lanes():
    done = run(entry("if i < 40u { y[i] = 1u; } else { y[i + 200u] = 2u; }", size=128), grid=3)
    first, second = (s for s in done.sites if s.kind == "store")
    assert (first.executions, first.active_lanes) == (3 * 2, 3 * 40)
    assert (second.executions, second.active_lanes) == (3 * 3, 3 * 88)
    assert done.counters["simt_efficiency"] == 128 / (5 * 32)


def test_a_partial_subgroup():
    done = run(entry("y[i] = 1u;", size=40))
    row = site(done, "store", "y")
    assert (row.executions, row.active_lanes, row.global_bytes) == (2, 40, 160)
    assert done.counters["simt_efficiency"] == 40 / 64


def test_many_small_workgroups_are_subgroups_of_their_own():
    done = run(entry("y[group.x * 5u + i] = 1u;", size=5), grid=300)
    row = site(done, "store", "y")
    assert (row.executions, row.active_lanes, row.global_requests) == (300, 1500, 300)


def test_workgroups_of_one_invocation_are_subgroups_of_one():
    body = "if group.x >= 200u { return; } y[300] = 1u; if group.x % 3u == 0u { y[group.x] = 1u; }"
    done = run(entry(body, size=1), grid=300)
    all_that_stay, third = (s for s in done.sites if s.kind == "store")
    assert (all_that_stay.executions, all_that_stay.active_lanes, all_that_stay.global_requests) == (200, 200, 200)
    assert (third.executions, third.active_lanes, third.global_requests) == (67, 67, 67)
    assert done.counters["simt_efficiency"] == 1 / 32  # a lane of a subgroup
    assert done.counters["working_invocations"] == 200 / 300


@pytest.mark.parametrize("early", ["if i >= 5u { return; } y[i] = 1u;", "if i < 5u { y[i] = 1u; }"])
def test_a_guard_leaves_most_invocations_without_work(early):
    assert run(entry(early, size=256)).counters["working_invocations"] == 5 / 256


def test_to_wait_at_a_barrier_is_no_work():
    body = "if i < 5u { part[i] = i; } workgroupBarrier(); if i == 0u { y[0] = part[4]; }"
    source = f"var<workgroup> part: array<u32, 8>; {entry(body, size=256)}"
    assert run(source).counters["working_invocations"] == 5 / 256


def test_a_loop_counts_every_turn_of_every_lane():
    done = run(entry("for (var k = 0u; k < i; k++) { y[i] += 1u; }", size=32))
    loads, stores = site(done, "load", "y"), site(done, "store", "y")
    assert (loads.executions, loads.active_lanes) == (31, 31 * 32 // 2)
    assert (stores.executions, stores.active_lanes) == (31, 31 * 32 // 2)


@pytest.mark.parametrize(
    ("index", "wavefronts"),
    [("i", 1), ("i * 2u", 2), ("i * 17u", 1), ("i * 32u", 32), ("i * 33u", 1), ("0u", 1), ("i / 2u * 32u", 16)],
)
def test_wavefronts_of_words(index, wavefronts):
    source = f"var<workgroup> tile: array<u32, 2048>; {entry(f'tile[{index}] = i; y[i] = tile[{index}];')}"
    done = run(source, grid=2)
    for kind in ("load", "store"):
        row = site(done, kind, "tile")
        assert (row.shared_requests, row.shared_ideal_wavefronts) == (2, 2)
        assert row.shared_wavefronts == 2 * wavefronts
    assert done.counters["workgroup_memory_bytes"] == 8192


@pytest.mark.parametrize(
    ("index", "wavefronts"),
    # A vec4 goes in four quarters of eight lanes; two where neighbours ask for the same; one bank group of 16 bytes.
    [("i", 4), ("i / 2u", 2), ("0u", 2), ("i * 2u", 8), ("i * 8u", 32)],
)
def test_wavefronts_of_vectors(index, wavefronts):
    source = (
        f"var<workgroup> tile: array<vec4u, 256>; {entry(f'y[i] = tile[{index}].x + dot(tile[{index}], vec4u(1));')}"
    )
    whole = [s for s in run(source).sites if s.space == "workgroup" and s.bytes_per_lane == 16]
    assert [s.shared_wavefronts for s in whole] == [wavefronts]
    assert [s.shared_ideal_wavefronts for s in whole] == [2 if wavefronts == 2 else 4]


@pytest.mark.parametrize(
    ("kind", "index", "sectors", "ideal", "lines", "asked"),
    [
        ("u32", "i", 4, 4, 1, 128),
        ("u32", "i + 1u", 5, 4, 2, 128),
        ("u32", "i * 2u", 8, 4, 2, 128),
        ("u32", "i * 32u", 32, 4, 32, 128),
        ("u32", "0u", 1, 1, 1, 128),
        ("u32", "31u - i", 4, 4, 1, 128),
        ("vec4<f32>", "i", 16, 16, 4, 512),
        ("vec3<f32>", "i", 16, 12, 4, 384),
        ("f16", "i", 2, 2, 1, 64),
        ("f16", "i * 16u", 32, 2, 8, 64),
        ("vec2<f16>", "i", 4, 4, 1, 128),
        ("vec3<f16>", "i", 8, 6, 2, 192),
        ("vec4<f16>", "i", 8, 8, 2, 256),
    ],
)
def test_sectors(kind, index, sectors, ideal, lines, asked):
    source = f"""enable f16;
    @group(0) @binding(1) var<storage, read> x: array<{kind}>;
    {HEAD}{entry(f"let v = x[{index}]; y[i] = u32(v{'' if '<' not in kind else '.x'});")}
    """
    given = {"x": np.zeros(32768, np.uint8), "y": np.zeros(32, np.uint32)}
    row = site(bankshot.simulate(source, grid=1, bindings=given), "load", "x")
    assert (row.global_requests, row.global_sectors, row.global_ideal_sectors) == (1, sectors, ideal)
    assert (row.global_lines, row.global_bytes) == (lines, asked)


def test_only_active_lanes_are_charged():
    row = site(run(entry("if i % 8u == 0u { y[i * 8u] = 1u; }")), "store", "y")
    assert (row.global_sectors, row.global_ideal_sectors, row.global_lines, row.global_bytes) == (4, 1, 4, 16)


def test_uniform_buffers_are_not_storage():
    source = "@group(0) @binding(1) var<uniform> p: array<vec4u, 4>;" + entry("y[i] = p[i % 4u].x;")
    done = run(source, p=np.zeros(16, np.uint32))
    assert done.counters["global_requests"] == 1


def test_a_barrier_counts_workgroups():
    done = run("var<workgroup> t: u32;" + entry("t = i; workgroupBarrier(); y[0] = t; storageBarrier();", 100), grid=7)
    assert [s.barriers for s in done.sites if s.kind == "barrier"] == [7, 7]
    assert done.counters["barriers"] == 14


def test_barriers_in_a_loop():
    done = run(entry("for (var k = 0u; k < 3u; k++) { workgroupBarrier(); } y[i] = 1u;", 64), grid=9)
    assert done.counters["barriers"] == 27


@pytest.mark.parametrize(
    ("expression", "flops"),
    [
        ("f * 2.0", 1),
        ("f * 2.0 + 1.0", 2),
        ("fma(f, 2.0, 1.0)", 2),
        ("dot(vec4f(f), vec4f(f, 1, 2, 3))", 7),
        ("(vec3f(f) * vec3f(f, 1, 2)).y", 3),
        ("max(f, 3.0)", 0),
        ("f32(i * 3u + 1u)", 0),
    ],
)
def test_flops(expression, flops):
    done = run(entry(f"let f = f32(i); if i < 7u {{ y[i] = u32({expression}); }}"))
    assert done.counters["flops"] == 7 * flops


def test_atomics_count_lanes():
    source = "var<workgroup> sum: atomic<u32>;" + entry("if i < 9u { atomicAdd(&sum, i); } y[i] = atomicLoad(&sum);")
    first, second = (s for s in run(source).sites if s.kind == "atomic")
    assert (first.atomics, second.atomics) == (9, 32)
    assert (first.shared_requests, first.shared_wavefronts, first.shared_ideal_wavefronts) == (1, 9, 1)
    assert (second.shared_wavefronts, second.atomic_turns) == (1, 0)  # a load costs what other loads do


@pytest.mark.parametrize(
    ("index", "turns", "wavefronts", "sectors"),
    [("0u", 32, 32, 32), ("i", 1, 1, 4), ("i / 4u", 4, 4, 4), ("i * 32u", 1, 32, 32), ("i % 2u * 32u", 16, 32, 32)],
)
def test_lanes_on_one_word_take_turns(index, turns, wavefronts, sectors):
    source = f"""@group(0) @binding(1) var<storage, read_write> z: array<atomic<u32>>;
    var<workgroup> bins: array<atomic<u32>, 1024>;
    {entry(f"atomicAdd(&bins[{index}], 1u); atomicMax(&z[{index}], i);")}"""
    done = run(source, grid=3, z=np.zeros(1024, np.uint32))
    shared, stored = site(done, "atomic", "bins"), site(done, "atomic", "z")
    assert (shared.atomic_turns, shared.shared_wavefronts) == (3 * turns, 3 * wavefronts)
    assert (stored.atomic_turns, stored.global_sectors, stored.global_bytes) == (3 * turns, 3 * sectors, 3 * 128)
    assert shared.turns_per_request == stored.turns_per_request == turns
    assert done.counters["atomic_turns"] == 6 * turns


def test_turns_are_of_active_lanes_and_anew_where_the_pattern_moves():
    body = "for (var k = 0u; k < 4u; k++) { if i < 8u * k { atomicAdd(&bins[i / 8u * k], 1u); } } y[i] = 0u;"
    source = f"var<workgroup> bins: array<atomic<u32>, 64>; {entry(body)}"
    row = site(run(source), "atomic", "bins")
    assert (row.executions, row.shared_requests, row.atomic_turns) == (3, 3, 3 * 8)


def test_probes_that_are_not_asked_for_count_nothing():
    source = HEAD + entry("y[i] = u32(f32(i) * 2.0);")
    done = bankshot.simulate(source, grid=1, bindings={"y": np.zeros(32, np.uint32)}, probes="none")
    assert not any(v for name, v in done.counters.items() if name not in ("workgroups", "invocations"))
    done = bankshot.simulate(source, grid=1, bindings={"y": np.zeros(32, np.uint32)}, probes=["sectors"])
    assert (done.counters["global_sectors"], done.counters["flops"]) == (4, 0)


# ---- the slow recount --------------------------------------------------------------------------------

TURNS, LANES = 6, 80
LOGGED = """
@group(0) @binding(1) var<storage, read> x: array<u32>;
@group(0) @binding(2) var<storage, read_write> log: array<u32>;
var<workgroup> tile: array<u32, 512>;
@compute @workgroup_size(80)
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) group: vec3u) {{
    for (var turn = 0u; turn < 6u; turn++) {{
        let at = ({pattern}) % 512u;
        if {condition} {{
            y[(group.x * 6u + turn) * 80u + i] = tile[at] + x[at];
            log[(group.x * 6u + turn) * 80u + i] = at + 1u;
        }}
    }}
}}
"""
PATTERNS = (
    "i + turn",  # alike, moved by a word: the count for banks stands
    "i + turn * 32u",  # moved by a line
    "i * 3u + turn % 2u * 5u",  # moved back and forth: what each place in a line counts is remembered
    "i * (turn + 1u)",  # another pattern in every turn
    "i * 7u + group.x * 3u",
    "select(i, i * 32u, turn % 2u == 0u)",
    "(i * i * 13u + turn * 101u)",
)
CONDITIONS = ("true", "i % 3u != turn % 3u", "i < 20u * turn", "(i + group.x) % 2u == 0u")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_counters_are_those_of_a_recount(pattern, condition, device):
    groups = 3
    words = groups * TURNS * LANES
    given = {"x": np.zeros(512, np.uint32), "log": np.zeros(words, np.uint32)}
    done = run(LOGGED.format(pattern=pattern, condition=condition), groups, words, device, **given)
    log = done.outputs["log"].reshape(groups, TURNS, LANES).astype(np.int64)
    profile = done.device
    expected = dict.fromkeys(("executions", "wavefronts", "ideal", "sectors", "ideal sectors", "lines"), 0)
    for turns in log.reshape(-1, LANES):
        for start in range(0, LANES, profile.subgroup_size):
            lanes = turns[start : start + profile.subgroup_size]
            active = lanes > 0
            if active.any():
                addresses = np.where(active, lanes - 1, 0) * 4
                expected["executions"] += 1
                expected["wavefronts"] += profile.shared_wavefronts(addresses, 4, active)
                expected["ideal"] += profile.ideal_shared_wavefronts(addresses, 4, active)
                expected["sectors"] += profile.global_sectors(addresses, 4, active)
                expected["ideal sectors"] += profile.ideal_global_sectors(addresses, 4, active)
                expected["lines"] += profile.global_lines(addresses, 4, active)
    tile, x = site(done, "load", "tile"), site(done, "load", "x")
    assert tile.executions == x.executions == tile.shared_requests == x.global_requests == expected["executions"]
    assert tile.active_lanes == np.count_nonzero(log)
    assert (tile.shared_wavefronts, tile.shared_ideal_wavefronts) == (expected["wavefronts"], expected["ideal"])
    assert (x.global_sectors, x.global_ideal_sectors) == (expected["sectors"], expected["ideal sectors"])
    assert (x.global_lines, x.global_bytes) == (expected["lines"], 4 * np.count_nonzero(log))


@pytest.mark.parametrize("line", [128, 2048])
def test_places_in_a_line_that_are_remembered_are_not_mixed_up(line):
    """Accesses that begin 320 words apart: in lines of 512 words too, where some cross into the next."""
    profile = bankshot.devices.NVIDIA.with_(line_bytes=line)
    body = "for (var k = 0u; k < 12u; k++) { y[i] += x[i * 3u + k % 4u * 320u]; }"
    source = f"@group(0) @binding(1) var<storage, read> x: array<u32>;{entry(body)}"
    row = site(run(source, 1, 32, profile, x=np.zeros(2048, np.uint32)), "load", "x")
    turns = [4 * (np.arange(32) * 3 + k % 4 * 320) for k in range(12)]
    assert row.global_lines == sum(profile.global_lines(each, 4, np.ones(32, bool)) for each in turns)
    assert row.global_sectors == sum(profile.global_sectors(each, 4, np.ones(32, bool)) for each in turns)
