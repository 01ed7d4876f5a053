"""Adjacent scalar accesses charged as one wide access: counted by hand for 32 lanes, 128 bytes to a wavefront."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot

SHADER = """
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
var<workgroup> tile: array<u32, 512>;
@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) i: u32) {{
{body}
}}
"""


def charged(body: str, device: str) -> dict[str, float]:
    bindings = {"x": np.arange(512, dtype=np.uint32), "y": np.zeros(512, np.uint32)}
    return bankshot.simulate(SHADER.format(body=body), grid=1, bindings=bindings, device=device, probes="all").counters


def sectors(body: str, device: str) -> tuple[float, ...]:
    counters = charged(body, device)
    return counters["global_requests"], counters["global_sectors"], counters["global_bytes"]


FOUR = "let a = x[4u * i] + x[4u * i + 1u] + x[4u * i + 2u] + x[4u * i + 3u]; y[i] = a;"


def test_four_loads_are_one_of_16_bytes() -> None:
    """512 bytes: each load as written touches all 16 sectors, together they do so once; the store touches 4."""
    assert sectors(FOUR, "nvidia") == (5, 4 * 16 + 4, 640)
    assert sectors(FOUR, "nvidia+merged") == (2, 16 + 4, 640)


def test_workgroup_memory_is_free_of_the_conflicts_of_the_stride() -> None:
    """As written, stride 4 puts 4 lanes on a bank, four times; 16 bytes a lane are 4 wavefronts with no conflict."""
    stores = "".join(f"tile[4u * i + {k}u] = i; " for k in range(4))
    body = stores + "workgroupBarrier(); y[i] = tile[i];"
    written, merged = (charged(body, name) for name in ("nvidia", "nvidia+merged"))
    assert (written["shared_requests"], written["shared_wavefronts"]) == (5, 16 + 1)
    assert (merged["shared_requests"], merged["shared_wavefronts"]) == (2, 4 + 1)
    assert written["executions"] == merged["executions"]
    assert written["global_sectors"] == merged["global_sectors"]


@pytest.mark.parametrize(
    ("body", "requests"),
    [
        ("let a = x[2u * i] + x[2u * i + 1u]; y[i] = a;", 1 + 1),  # a pair
        ("let a = x[4u * i + 1u] + x[4u * i + 2u] + x[4u * i + 3u]; y[i] = a;", 1 + 1 + 1),  # one, and a pair
        ("let a = x[4u * i + 1u] + x[4u * i + 2u]; y[i] = a;", 2 + 1),  # not aligned
        ("let a = x[4u * i] + x[4u * i + 1u] + x[4u * i + 3u]; y[i] = a;", 1 + 1 + 1),  # a pair, and one
        ("let a = x[4u * i] + x[4u * i + 2u]; y[i] = a;", 2 + 1),
        ("if i < 9u { y[i] = x[2u * i] + x[2u * i + 1u]; } else { y[i] = x[2u * i + 6u] + x[2u * i + 7u]; }", 2 + 2),
        ("if i < 9u { y[i] = 1u; } let a = x[2u * i] + x[2u * i + 1u]; y[i] = a;", 1 + 1 + 1),
        (
            "var a = 0u; for (var k = 0u; k < 3u; k++) { a += x[2u * (i + k)] * x[2u * (i + k) + 1u]; } y[i] = a;",
            3 + 1,
        ),
        ("for (var k = 0u; k < 3u; k++) { y[2u * i] = k; y[2u * i + 1u] = k; }", 3),
        ("let a = x[i] + x[i + 1u]; y[i] = a;", 2 + 1),  # aligned for every second lane only
        ("let a = x[2u * i]; workgroupBarrier(); let b = x[2u * i + 1u]; y[i] = a + b;", 2 + 1),
        ("let a = x[2u * i]; if a > 3u { y[i] = x[2u * i + 1u]; }", 2 + 1),  # another run of code
        ("y[2u * i] = 1u; let a = y[2u * i]; y[2u * i + 1u] = a;", 3),  # a load of it between
        ("y[2u * i + 1u] = 1u; y[2u * i] = 2u;", 1),  # in either order
        ("let s = x[0]; let a = x[s * i] + x[s * i + 1u]; y[i] = a;", 3 + 1),  # a stride known when it runs
    ],
)
def test_accesses_that_are_merged(body: str, requests: int) -> None:
    assert charged(body, "nvidia+merged")["global_requests"] == requests


# How far apart invocations are, as an address says it, and the requests of four loads in a row: 4 words that are known
# to begin at a multiple of 4 are one, of 2 are two, and else four.
STRIDES = {
    "4u * i": 1, "i * 4u": 1, "8u * i": 1, "12u * i": 1, "16u * i": 1, "2u * i": 2, "6u * i": 2, "10u * i": 2,
    "i": 4, "1u * i": 4, "3u * i": 4, "5u * i": 4, "7u * i": 4,
    "i << 2u": 1, "i << 3u": 1, "i << 1u": 2, "(i * 2u) << 1u": 1, "(i * 3u) << 2u": 1, "i << (i & 3u)": 4,
    "(2u * i) * (2u * i)": 1, "(2u * i) * i": 2, "i * (6u * i)": 2, "i * i": 4,
    "4u * i + 8u * (i & 1u)": 1, "4u * i + 2u * (i & 1u)": 2, "2u * i + 4u * (i & 1u)": 2, "4u * i + (i & 1u)": 4,
    "(i << 2u) + ((i & 1u) << 3u)": 1, "(i << 2u) + ((i & 1u) << 1u)": 2, "(i << 1u) + ((i & 1u) << 2u)": 2,
    "((2u * i) << 1u) + ((i & 1u) << 2u)": 1, "((i & 1u) << 2u) + i": 4, "(i << (i & 3u)) + ((i & 1u) << 2u)": 4,
    "bitcast<u32>((i32(i) << 2u) + (i32(i & 1u) << 4u))": 1, "bitcast<u32>((i32(i) << 2u) + (i32(i & 1u) << 1u))": 2,
    "(3u * i) * (4u * i)": 1, "(4u * i) * (3u * i)": 1, "(3u * i) * (i * 5u)": 4, "(4u * i) * (4u * (i & 3u))": 1,
    "bitcast<u32>(4 * i32(i))": 1, "bitcast<u32>(i32(i) << 2u)": 1, "bitcast<u32>(4 * i32(i) + 2 * i32(i & 1u))": 2,
    "4u * i + 4u * group.x": 1, "4u * i + 2u * group.x": 2, "4u * i + group.x": 4, "2u * i + 4u * group.x": 2,
}  # fmt: skip


@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize("shift", [0, 2])
def test_alignment_follows_from_the_address(stride: str, shift: int) -> None:
    """Two words further, four that would be one request are two pairs."""
    loads = " + ".join(f"x[({stride}) + {k + shift}u]" for k in range(4))
    source = SHADER.replace("i: u32", "i: u32, @builtin(workgroup_id) group: vec3u")
    bindings = {"x": np.arange(5000, dtype=np.uint32), "y": np.zeros(512, np.uint32)}
    body = f"let a = {loads}; y[i] = a;"
    done = bankshot.simulate(source.format(body=body), grid=1, bindings=bindings, device="nvidia+merged", probes="all")
    assert done.counters["global_requests"] == max(STRIDES[stride], shift) + 1


def test_members_of_a_struct_are_adjacent() -> None:
    source = """
    struct Pair { a: f32, b: f32 }
    @group(0) @binding(0) var<storage, read> x: array<Pair>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(32)
    fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] = x[id.x].a * x[id.x].b; }
    """
    bindings = {"x": np.ones(128, np.float32), "y": np.zeros(64, np.float32)}
    done = bankshot.simulate(source, grid=2, bindings=bindings, device="nvidia+merged")
    assert done.counters["global_requests"] == 2 * (1 + 1)
    assert done.device.name == "nvidia+merged"


def test_outputs_and_findings_are_those_of_the_accesses_as_written() -> None:
    body = "let a = x[4u * i + 508u] + x[4u * i + 509u] + x[4u * i + 510u] + x[4u * i + 511u]; y[i] = a;"
    bindings = {"x": np.arange(512, dtype=np.uint32), "y": np.zeros(512, np.uint32)}
    runs = [
        bankshot.simulate(SHADER.format(body=body), grid=1, bindings=bindings, device=name)
        for name in ("nvidia", "nvidia+merged")
    ]
    np.testing.assert_array_equal(runs[0].outputs["y"], runs[1].outputs["y"])
    places = [[(f.code, f.span.start, f.count) for f in done.findings if f.span] for done in runs]
    assert places[0] == places[1] != []
