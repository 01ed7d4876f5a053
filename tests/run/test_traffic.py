"""Bytes asked for, moved and touched of each buffer, against numbers worked out by hand."""

import numpy as np
import pytest

import bankshot
from bankshot.sim.run.traffic import intensities

HEAD = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> p: vec4u;
"""


def traffic(body, grid=1, x=1024, y=1024, probes="all", head=HEAD):
    source = f"{head} @compute @workgroup_size(32) fn main(@builtin(global_invocation_id) id: vec3u) {{ {body} }}"
    given = {
        "x": np.zeros(x, np.float16 if "f16" in head else np.float32),
        "y": np.zeros(y, np.float32),
        "p": np.zeros(4, np.uint32),
    }
    run = bankshot.simulate(source, grid=grid, bindings=given, probes=probes)
    return run, {each.buffer: each for each in run.traffic}


def test_what_every_lane_reads_is_asked_for_again_and_again_and_touched_once():
    run, found = traffic("let i = id.x; y[i] = x[i % 8u] + x[3] + f32(p.x);", grid=4)
    assert list(found) == ["x", "y"]
    x, y = found["x"], found["y"]
    # x[i % 8]: one sector of 32 bytes for each of 4 subgroups; so has x[3]
    assert (x.asked, x.moved, x.distinct, x.size) == (4 * 32 * 4 * 2, 4 * 2 * 32, 32, 4096)
    assert (x.reuse, x.again) == (32.0, 8.0)
    assert (y.asked, y.moved, y.distinct, y.reuse, y.again) == (512, 512, 512, 1.0, 1.0)
    assert run.counters["global_bytes"] == x.asked + y.asked


@pytest.mark.parametrize(
    ("index", "distinct", "moved"), [("id.x", 128, 128), ("id.x * 8u", 128, 1024), ("0u", 4, 32), ("id.x / 2u", 64, 64)]
)
def test_sectors_hold_more_than_is_touched(index, distinct, moved):
    _, found = traffic(f"y[id.x] = x[{index}];")
    assert (found["x"].asked, found["x"].distinct, found["x"].moved) == (128, distinct, moved)
    assert found["x"].again == moved / distinct


def test_a_word_that_is_read_and_written_is_touched_once():
    _, found = traffic("y[id.x] += 1.0; y[id.x] *= 2.0;")
    assert (found["y"].asked, found["y"].distinct) == (4 * 128, 128)


def test_only_lanes_that_are_active_and_inside_touch():
    _, found = traffic("if id.x < 5u { y[id.x + 1022u] = x[id.x * 3u]; }")
    assert (found["x"].distinct, found["y"].distinct) == (5 * 4, 2 * 4)


def test_a_buffer_that_nobody_touches_has_no_reuse():
    _, found = traffic("if p.x == 1u { y[0] = x[0]; } y[id.x] = 1.0;")
    assert (found["x"].asked, found["x"].distinct, found["x"].reuse, found["x"].again) == (0, 0, 0.0, 0.0)


def test_halves_are_touched_by_whole_words():
    head = "enable f16; @group(0) @binding(0) var<storage, read> x: array<f16>;" + HEAD.split(";", 1)[1]
    _, found = traffic("if id.x < 3u { y[id.x] = f32(x[id.x]); }", head=head)
    assert (found["x"].asked, found["x"].distinct) == (6, 8)


def test_a_tile_moves_what_it_shares_once_for_each_workgroup():
    """An 8 x 8 matmul of 8 rows and columns by 4 workgroups of 16 outputs, each with half the rows and columns."""
    body = """
        let tile = id.x / 32u; let lane = id.x % 32u;
        let row = tile / 2u * 4u + lane % 16u / 4u; let column = tile % 2u * 4u + lane % 4u;
        var sum = 0.0;
        if lane < 16u {
            for (var k = 0u; k < 8u; k++) { sum = sum + x[row * 8u + k] * x[64u + k * 8u + column]; }
            y[row * 8u + column] = sum;
        }
    """
    run, found = traffic(body, grid=4, x=128, y=64)
    x = found["x"]
    assert (x.asked, x.distinct, x.reuse) == (4 * 16 * 8 * 2 * 4, 512, 8.0)  # each element serves 8 outputs
    # a column of 4 rows is 4 sectors, a row of 4 columns is half a sector
    assert x.moved == 4 * 8 * (4 + 1) * 32
    flops = run.counters["flops"]
    assert flops == 64 * 8 * 2
    assert intensities(flops, found.values()) == {
        "asked": 1024 / (4096 + 256),
        "moved": 1024 / (5120 + found["y"].moved),
        "distinct": 1024 / (512 + 256),
    }


def test_without_charges_nothing_is_known_to_be_asked_for():
    _, found = traffic("y[id.x] = x[id.x];", probes="none")
    assert (found["x"].asked, found["x"].moved, found["x"].distinct) == (0, 0, 128)


INDICES = {
    "neighbours": np.arange(64),
    "one for each vector": np.arange(64) // 16,
    "backwards": 63 - np.arange(64),
    "every other": 2 * np.arange(64),
    "past the end": 230 + np.arange(64),
    "scattered": np.random.default_rng(3).integers(0, 300, 64),
}


@pytest.mark.parametrize("kind", ["f32", "vec2f", "vec4f", "f16", "vec4h"])
@pytest.mark.parametrize("pattern", INDICES)
@pytest.mark.parametrize("active", [64, 21])
def test_the_words_that_lanes_ask_for_are_those_that_are_touched(kind, pattern, active):
    size = {"f32": 4, "vec2f": 8, "vec4f": 16, "f16": 2, "vec4h": 8}[kind]
    source = f"""
        {"enable f16;" if kind in ("f16", "vec4h") else ""}
        @group(0) @binding(0) var<storage, read> x: array<{kind}>;
        @group(0) @binding(1) var<storage, read_write> y: array<{kind}>;
        @group(0) @binding(2) var<storage, read> at: array<u32>;
        @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {{
            if i < {active}u {{ y[i] = x[at[i]]; }}
        }}"""
    given = {
        "x": np.zeros(256 * size, np.uint8),
        "y": np.zeros(64 * size, np.uint8),
        "at": INDICES[pattern].astype(np.uint32),
    }
    inside = INDICES[pattern][:active]
    inside = inside[inside < 256]
    words = {byte // 4 for index in inside.tolist() for byte in range(index * size, (index + 1) * size)}
    for probes in ("counters", ("all", "touched")):  # in a run of its own, and in the one that looks for races
        run = bankshot.simulate(source, grid=1, bindings=given, probes=probes)
        found = {each.buffer: each.distinct for each in run.traffic}
        assert found == {"x": 4 * len(words), "y": -(-active * size // 4) * 4, "at": 4 * active}


@pytest.mark.parametrize(
    ("kind", "size", "index", "elements"),
    [
        ("f32", 4, "64u * k + i", 3 * 64),
        ("f32", 4, "200u + 64u * k + i", 256 - 200),
        ("f32", 4, "8u * (i / 16u) + k", 4 * 3),
        ("vec2f", 8, "8u * (i / 16u) + k", 4 * 3),
        ("f16", 2, "64u * k + i", 3 * 64),
        ("f16", 2, "1u + k + 0u * i", 4),  # two halves to a word: elements 0 to 3
    ],
)
@pytest.mark.parametrize("last", [64, 60])
def test_what_a_loop_touches_again_and_again(kind, size, index, elements, last):
    source = f"""
        {"enable f16;" if kind == "f16" else ""}
        @group(0) @binding(0) var<storage, read> x: array<{kind}>;
        @group(0) @binding(1) var<storage, read_write> y: array<{kind}>;
        @group(0) @binding(2) var<uniform> turns: u32;
        @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {{
            var sum = {kind}();
            if i < {last}u {{ for (var k = 0u; k < turns; k++) {{ sum += x[{index}]; }} }}
            y[i] = sum;
        }}"""
    given = {"x": np.zeros(256 * size, np.uint8), "y": np.zeros(64 * size, np.uint8), "turns": np.uint32(3)}
    run = bankshot.simulate(source, grid=1, bindings=given, probes=("sectors", "touched"))
    found = {each.buffer: each.distinct for each in run.traffic}
    lost = {"64u * k + i": 3 * (64 - last)}.get(index, 0)
    assert found["x"] == (elements - lost) * size
