"""What a dispatch asks of a software adapter, for kernels whose work was worked out by hand."""

import numpy as np
import pytest

import bankshot
from bankshot.sim.models.work import Work
from bankshot.sim.run import line_times
from bankshot.sim.run.software_line_times import SOFTWARE_WEIGHTS

HEAD = """\
@group(0) @binding(0) var<storage, read> x: array<VEC>;
@group(0) @binding(1) var<storage, read_write> y: array<VEC>;
@group(0) @binding(2) var<storage, read_write> n: array<atomic<u32>>;
@compute @workgroup_size(16)
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u) {
  let g = w.x * 16u + i;
"""
GRID, SUBGROUPS = 4, 4 * 2  # of 8 lanes


def run(body: str, type_: str = "f32", device: str = "lavapipe-epyc") -> bankshot.Run:
    width = 4 if type_ == "vec4f" else 1
    data = {"x": np.ones(64 * width, np.float32), "y": np.zeros(64 * width, np.float32), "n": np.zeros(64, np.uint32)}
    used = {name: each for name, each in data.items() if f"{name}[" in body}
    return bankshot.simulate(HEAD.replace("VEC", type_) + body + "}", grid=GRID, bindings=used, device=device)


def work(body: str, type_: str = "f32") -> Work:
    return run(body, type_).work


@pytest.mark.parametrize(("type_", "words"), [("f32", 1), ("vec4f", 4)])
def test_accesses_count_by_words_and_by_active_lanes(type_: str, words: int) -> None:
    found = work("if (i < 4u) { y[g] = x[g]; }", type_)
    assert found.software["storage_load"] == found.software["storage_store"] == SUBGROUPS * words
    assert found.lanes["storage_load"] == found.lanes["storage_store"] == GRID * 4 * words


def test_both_sides_of_a_branch_are_executed() -> None:
    long = "y[g + 512u] = 1.0; y[g + 1024u] = 1.0; y[g + 1536u] = 1.0;"  # so that a GPU branches
    found = work(f"if (i < 8u) {{ y[g] = sin(x[g]); {long} }} else {{ y[g] = exp(x[g]); {long} }}")
    assert found.software["sin"] == found.software["exp"] == SUBGROUPS
    assert found.software["branch"] == SUBGROUPS
    assert found.issued["special"] == SUBGROUPS  # a GPU skips a side that no lane takes


def test_a_loop_is_executed_as_long_as_a_lane_is_in_it() -> None:
    found = work("var s = x[g]; for (var k = 0u; k < select(2u, 6u, i == 0u); k++) { s = sqrt(s); } y[g] = s;")
    assert found.software["sqrt"] == GRID * (6 + 2)
    assert found.software["loop"] == GRID * (6 + 2)


def test_steps_of_floats_are_counted_apart() -> None:
    found = work("let v = x[g]; y[g] = (v + 1.0) * v;")
    assert found.software_chain["fp32"] == 2 * SUBGROUPS
    assert "fp32" not in found.chain


@pytest.mark.parametrize(("at", "share"), [("0u", 1.0), ("i * 4u", 1 / 4), ("w.x * 16u", 0.0)])
def test_atomic_operations_share_lines_with_the_next_workgroup(at: str, share: float) -> None:
    found = work(f"atomicAdd(&n[{at}], i);")
    assert found.shared_atomics == pytest.approx(64 * share)


@pytest.mark.parametrize(
    ("function", "parts"),
    [("inverseSqrt(v)", {"sqrt": 1, "fp32_divide": 1}), ("pow(v, v)", {"exp": 1, "log": 1}), ("cos(v)", {"sin": 1}),
     ("tan(v)", {"sin": 2, "fp32_divide": 1}), ("tanh(v)", {"exp": 2, "fp32_divide": 1})],
)  # fmt: skip
def test_functions_are_charged_by_what_they_are_made_of(function: str, parts: dict[str, int]) -> None:
    found = work(f"let v = x[g]; y[g] = {function};").software
    assert {kind: found[kind] / SUBGROUPS for kind in parts} == parts


def test_lines_share_the_units_of_a_software_adapter() -> None:
    found = run("let v = x[g];\ny[g] = exp(v);\natomicAdd(&n[0u], i);")
    units = {unit for line in found.line_times for unit in line.parts}
    assert units == {"instructions", "storage", "atomics"} <= SOFTWARE_WEIGHTS.keys()
    parts = found.predicted_time.parts
    of_none = sum(parts.get(unit, 0.0) for unit in line_times.NO_LINE)
    assert sum(line.us for line in found.line_times) + of_none == pytest.approx(found.predicted_time.us)
    assert found.roofs == []
