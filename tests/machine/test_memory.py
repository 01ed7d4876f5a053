"""Loads and stores with every pattern of addresses, compared with NumPy."""

import numpy as np
import pytest
from compiled_here import as_python, compiled_here

import bankshot
from bankshot.sim.machine import memory

LANES = 48  # three runs of the 16 lanes that are moved at once
N = 256
PATTERNS = {
    "one address": ("7u", lambda i: 0 * i + 7),
    "runs of 16": ("i / 16u * 5u", lambda i: i // 16 * 5),
    "period 16": ("i % 16u * 3u", lambda i: i % 16 * 3),
    "period 32": ("i % 32u", lambda i: i % 32),
    "consecutive": ("i", lambda i: i),
    "consecutive, not from 0": ("i + 3u", lambda i: i + 3),
    "backwards": ("100u - i", lambda i: 100 - i),
    "strided": ("i * 2u", lambda i: i * 2),
    "scattered": ("(i * 37u) % 101u", lambda i: i * 37 % 101),
    "pairs": ("i / 2u", lambda i: i // 2),
    "consecutive after a pause": ("i - u32(i > 20u)", lambda i: i - (i > 20)),
    "nearly consecutive": ("select(i, 0u, i == 47u)", lambda i: np.where(i == 47, 0, i)),
}
TYPES = {
    "u32": ("u32", np.uint32, ""),
    "f32": ("f32", np.float32, ""),
    "f16": ("f16", np.float16, "enable f16;"),
    "vec2": ("vec2<u32>", np.uint32, ""),
    "vec4": ("vec4<f32>", np.float32, ""),
    "vec4h": ("vec4<f16>", np.float16, "enable f16;"),
}
WIDTH = {"vec2": 2, "vec4": 4, "vec4h": 4}
BUFFERS = """{enable}
@group(0) @binding(0) var<storage, read> x: array<{type}>;
@group(0) @binding(1) var<storage, read_write> y: array<{type}>;
"""
GATHER = (
    BUFFERS
    + """
@compute @workgroup_size({lanes})
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) group: vec3u) {{
    let from_ = {pattern};
    for (var turn = 0u; turn < 3u; turn++) {{
        y[(group.x * 3u + turn) * {lanes}u + i] = x[from_ + turn];
    }}
}}
"""
)
SCATTER = (
    BUFFERS
    + """
@compute @workgroup_size({lanes})
fn main(@builtin(local_invocation_index) i: u32) {{
    let to = {pattern};
    for (var turn = 0u; turn < 3u; turn++) {{
        y[to + turn * 200u] = x[i];
    }}
}}
"""
)
SHARED = (
    BUFFERS
    + """
var<workgroup> tile: array<{type}, 256>;
@compute @workgroup_size({lanes})
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) group: vec3u) {{
    for (var k = i; k < 256u; k += {lanes}u) {{ tile[k] = x[k]; }}
    workgroupBarrier();
    let from_ = {pattern};
    for (var turn = 0u; turn < 3u; turn++) {{
        y[(group.x * 3u + turn) * {lanes}u + i] = tile[from_ + turn];
    }}
}}
"""
)


def source(text, kind, pattern, lanes=LANES):
    name, _, enable = TYPES[kind]
    return text.format(type=name, enable=enable, pattern=PATTERNS[pattern][0], lanes=lanes)


def elements(kind, count=N):
    """`count` distinct elements, one row each."""
    width = WIDTH.get(kind, 1)
    return (np.arange(count * width) % 2048).astype(TYPES[kind][1]).reshape(count, width)


@pytest.mark.parametrize("text", [GATHER, SHARED], ids=["storage", "workgroup"])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_loads(pattern, kind, text):
    x = elements(kind)
    y = np.zeros((2 * 3 * LANES, x.shape[1]), x.dtype)
    run = bankshot.simulate(source(text, kind, pattern), grid=2, bindings={"x": x, "y": y})
    addresses = PATTERNS[pattern][1](np.arange(LANES))
    expected = np.concatenate([x[addresses + turn] for turn in range(3)] * 2)
    np.testing.assert_array_equal(run.outputs["y"], expected)
    assert run.findings == []


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_stores(pattern, kind):
    x = elements(kind) + 1
    y = np.zeros((700, x.shape[1]), x.dtype)
    run = bankshot.simulate(source(SCATTER, kind, pattern), grid=1, bindings={"x": x, "y": y})
    expected = y.copy()
    for lane, address in enumerate(PATTERNS[pattern][1](np.arange(LANES))):  # the highest lane stores last
        for turn in range(3):
            expected[address + turn * 200] = x[lane]
    np.testing.assert_array_equal(run.outputs["y"], expected)


@pytest.mark.parametrize("kind", ["u32", "f16", "vec4", "vec4h"])
@pytest.mark.parametrize(
    ("policy", "lane"),
    [
        ("clamp", lambda x, at: x[min(at, 39)]),
        ("zero", lambda x, at: x[at] if at < 40 else 0 * x[0]),
        ("wrap", lambda x, at: x[at % 40]),
    ],
    ids=["clamp", "zero", "wrap"],
)
def test_loads_past_the_end(policy, lane, kind):
    x = elements(kind, 40)
    y = np.zeros((3 * LANES, x.shape[1]), x.dtype)
    text = source(GATHER, kind, "consecutive")
    run = bankshot.simulate(text, grid=1, bindings={"x": x, "y": y}, out_of_bounds=policy)
    expected = [lane(x, i + turn) for turn in range(3) for i in range(LANES)]
    np.testing.assert_array_equal(run.outputs["y"], np.array(expected))
    (finding,) = run.findings
    assert finding.code == "out-of-bounds"
    assert finding.message == "load of x[40], which has 40 elements"
    assert finding.count == 8 + 9 + 10
    assert finding.lanes == (40,)
    assert finding.workgroup == (0, 0, 0)


@pytest.mark.parametrize(
    ("policy", "places"),
    [("clamp", [1, 2, 3, 6]), ("zero", [1, 2, 3, 4]), ("wrap", [5, 6, 3, 4])],
    ids=["clamp", "zero", "wrap"],
)
def test_stores_past_the_end(policy, places):
    text = """
    @group(0) @binding(0) var<storage, read_write> y: array<u32, 4>;
    @group(0) @binding(1) var<storage, read_write> next: array<u32, 4>;
    @compute @workgroup_size(6) fn main(@builtin(local_invocation_index) i: u32) {
        y[i] = i + 1u;
        next[3] = 9u;
    }
    """
    given = {"y": np.zeros(4, np.uint32), "next": np.zeros(4, np.uint32)}
    run = bankshot.simulate(text, grid=1, bindings=given, out_of_bounds=policy)
    assert run.outputs["y"].tolist() == places
    assert run.outputs["next"].tolist() == [0, 0, 0, 9]


@pytest.mark.parametrize("policy", ["clamp", "zero", "wrap"])
@pytest.mark.parametrize("index", ["i - 1u", "0xffffffffu - i", "0x80000000u + i", "1000000u * i"])
def test_nothing_leaves_its_binding(index, policy):
    text = f"""
    @group(0) @binding(0) var<storage, read_write> before: array<u32, 64>;
    @group(0) @binding(1) var<storage, read_write> y: array<vec3<u32>>;
    @group(0) @binding(2) var<storage, read_write> after: array<u32, 64>;
    @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {{
        y[{index}].z = 7u;
        before[0] = 0u;
        after[0] = 0u;
    }}
    """
    given = {"before": np.zeros(64, np.uint32), "y": np.zeros(16, np.uint32), "after": np.zeros(64, np.uint32)}
    run = bankshot.simulate(text, grid=1, bindings=given, out_of_bounds=policy)
    assert not run.outputs["before"].any()
    assert not run.outputs["after"].any()
    assert set(np.flatnonzero(run.outputs["y"]) % 4) <= {2}


def test_an_index_below_zero_is_named():
    text = """
    @group(0) @binding(0) var<storage, read_write> y: array<vec4<u32>>;
    @compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) { y[i32(i) - 3] = vec4u(i); }
    """
    (finding,) = bankshot.simulate(text, grid=1, bindings={"y": np.zeros(32, np.uint32)}).findings
    assert finding.message == "store of y[-3], which has 8 elements"
    assert (finding.count, finding.lanes) == (3, (0,))


def test_workgroup_memory_starts_as_zero_in_every_workgroup():
    text = """
    @group(0) @binding(0) var<storage, read_write> y: array<u32>;
    var<workgroup> tile: array<u32, 40>;
    var<workgroup> flags: array<vec2<bool>, 3>;
    @compute @workgroup_size(40)
    fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) group: vec3u) {
        y[group.x * 40u + i] = tile[i] + u32(flags[i % 3u].y);
        tile[i] = 1u;
        flags[i % 3u].y = true;
    }
    """
    run = bankshot.simulate(text, grid=50, bindings={"y": np.ones(2000, np.uint32)})
    assert not run.outputs["y"].any()


@pytest.mark.parametrize("kind", ["vec4", "vec4h"])
@pytest.mark.parametrize("policy", ["clamp", "zero"])
@pytest.mark.parametrize("lanes", [16, 24, 50])
def test_stores_of_vectors_by_some_lanes(lanes, policy, kind):
    """With inactive lanes, lanes past the last, addresses out of bounds, and several lanes on one address."""
    text = (
        BUFFERS
        + """
@compute @workgroup_size({lanes})
fn main(@builtin(global_invocation_id) id: vec3u) {{
    let i = id.x;
    if i % 5u != 2u {{ y[{pattern}] = x[i]; }}
    if i < 20u {{ y[60u + i] = x[i] + x[i]; }}
}}
"""
    )
    name, _, enable = TYPES[kind]
    x = elements(kind, 2 * lanes) + 1
    for pattern, places in (("i / 2u", np.arange(2 * lanes) // 2), ("i * 7u % 59u", np.arange(2 * lanes) * 7 % 59)):
        y = np.zeros((70, 4), x.dtype)
        source = text.format(type=name, enable=enable, pattern=pattern, lanes=lanes)
        run = bankshot.simulate(source, grid=2, bindings={"x": x, "y": y}, out_of_bounds=policy, probes="none")
        expected = y.copy()
        for first in (0, lanes):  # the highest lane stores last
            lane = np.arange(first, first + lanes)
            on = lane[lane % 5 != 2]
            for i in on:
                expected[places[i]] = x[i]
            for i in lane[lane < 20]:
                if 60 + i < 70 or policy == "clamp":
                    expected[min(60 + i, 69)] = x[i] + x[i]
        np.testing.assert_array_equal(run.outputs["y"], expected)


def overlap(one, other):
    """Whether four words from one address on overlap those from another in part."""
    return one != other and (min((one - other) % 2**32, (other - one) % 2**32) < 4)


@pytest.mark.parametrize(
    ("row", "apart"),
    [
        ([0, 4, 8, 12, 17, 21], True),
        ([5, 5, 1, 9], True),
        ([0, 4, 7], False),
        ([0, 5, 8], False),
        ([0, 5, 5], False),  # told apart only by address modulo four, or by ascending
        ([2**32 - 5, 0, 5], False),
        ([0, 5, 2**32 - 3], False),
        ([1, 6, 2**32 - 3], True),
        ([7], True),
    ],
)
def test_stores_that_go_at_once_are_apart(row, apart):
    found = compiled_here(as_python(memory.are_apart))(np.array(row, np.uint32), len(row))
    assert found == apart
    assert not found or not any(overlap(a, b) for a in row for b in row)
