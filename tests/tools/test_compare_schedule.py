"""`tools.compare_schedule` on pairs of kernels of two workgroups of 32, whose totals are worked out by hand."""

import pytest
from click.testing import CliRunner

from tools.compare_schedule import SCHEDULE, compare, kernel_of, main

# A workgroup reverses 32 numbers. Each access is 32 words in a row: one wavefront, or four sectors in one line.
SHADER = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> t: array<f32, 32>;
@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) i: u32, @builtin(global_invocation_id) id: vec3u) {
    t[i] = x[id.x];
    workgroupBarrier();
    y[id.x] = t[31u - i];
}
"""

MANIFEST = """
[kernel]
source = "{name}.wgsl"
dims = {{ N = 64 }}
dispatch = ["N / 32"]

[bind.x]
dtype = "f32"
shape = ["2 * N"]
init = "normal"

[bind.y]
dtype = "f32"
shape = ["N"]
init = "unwritten"
"""

# By the change of the text: the totals of a schedule that differ, before and after.
CHANGES = {
    "stride 2 in workgroup memory": (
        [("array<f32, 32>", "array<f32, 64>"), ("t[i]", "t[2u * i]"), ("t[31u - i]", "t[62u - 2u * i]")],
        {"wavefronts": (4, 8), "bytes of workgroup memory": (128, 256)},
    ),
    "stride 2 in global memory": ([("x[id.x]", "x[2u * id.x]")], {"sectors": (16, 24)}),
    "no barrier": ([("    workgroupBarrier();\n", "")], {"barriers": (2, 0), "lanes of barrier": (64, 0)}),
    # WebGPU rounds each variable up to 16 bytes.
    "a larger array": ([("array<f32, 32>", "array<f32, 33>")], {"bytes of workgroup memory": (128, 144)}),
    "half of the lanes store": (
        [("    y[", "    if i < 16u { y["), ("- i];", "- i]; }")],
        {"sectors": (16, 12), "lanes of workgroup_load": (64, 32), "lanes of storage_store": (64, 32)},
    ),
    "a subgroup operation": (
        [("@group(0) @binding(0)", "enable subgroups; @group(0) @binding(0)"), ("= x[id.x]", "= subgroupAdd(x[id.x])")],
        {"lanes of subgroup": (0, 64)},
    ),
    "more arithmetic": ([("t[31u - i];", "2.0 * t[31u - i] + 1.0;")], {}),
}


@pytest.fixture
def manifest(tmp_path):
    """`manifest(name, edits)`: the manifest of the shader above with these edits."""

    def write(name, edits=(), manifest_edits=()):
        text, table = SHADER, MANIFEST.format(name=name)
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        for old, new in manifest_edits:
            assert old in table
            table = table.replace(old, new)
        (tmp_path / f"{name}.wgsl").write_text(text, encoding="utf-8")
        (tmp_path / f"{name}.toml").write_text(table, encoding="utf-8")
        return f"{tmp_path}/{name}.toml:{name}"

    return write


def differences(one, other, **sizes):
    """The totals that differ, by name."""
    compared = compare(kernel_of(one), kernel_of(other), sizes)
    return {name: (compared.one[name], compared.other[name]) for name in compared.differing}


@pytest.mark.parametrize("change", CHANGES)
def test_the_totals_of_the_schedule_that_differ(manifest, change):
    edits, expected = CHANGES[change]
    found = differences(manifest("one"), manifest("other", edits))
    assert {name: pair for name, pair in found.items() if name in SCHEDULE} == expected


def test_other_totals_are_shown_without_deciding(manifest):
    edits, _ = CHANGES["more arithmetic"]
    done = CliRunner().invoke(main, [manifest("one"), manifest("other", edits)])
    assert done.exit_code == 0
    lines = [line.split() for line in done.output.splitlines()]
    assert ["FLOPs", "0", "128"] in lines  # 64 invocations multiply and add
    assert ["fp32", "instructions", "0", "4"] in lines  # in two subgroups
    assert done.output.endswith("the schedules are equal\n")


def test_a_different_schedule_is_exit_status_1(manifest):
    edits, _ = CHANGES["stride 2 in workgroup memory"]
    done = CliRunner().invoke(main, [manifest("one"), manifest("other", edits)])
    assert done.exit_code == 1
    assert done.output.endswith("the schedules differ in wavefronts, bytes of workgroup memory\n")
    assert "equal: grid, workgroup size, ideal wavefronts, sectors" in done.output


def test_equal_kernels_differ_in_nothing(manifest):
    assert differences(manifest("one"), manifest("other")) == {}


def test_both_run_with_the_sizes_of_the_first(manifest):
    other = manifest("other", manifest_edits=[("N = 64", "N = 32")])
    assert differences(manifest("one"), other) == {}
    edits = [("array<f32, 32>", "array<f32, 64>"), ("t[i]", "t[2u * i]")]
    found = differences(manifest("one"), manifest("wide", edits), N=320)
    assert found["wavefronts"] == (20, 30)  # ten workgroups: a store and a load, and the store in two


def test_the_shape_of_the_launch(manifest):
    edits = [("@workgroup_size(32)", "@workgroup_size(64)"), ("array<f32, 32>", "array<f32, 64>"), ("31u", "63u")]
    found = differences(manifest("one"), manifest("other", edits, [("N / 32", "N / 64")]))
    assert found["grid"] == ("2 x 1 x 1", "1 x 1 x 1")
    assert found["workgroup size"] == (32, 64)
    assert found["barriers"] == (2, 1)
    assert "sectors" not in found


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--set", "Q=3"], "no dimension is named Q; there are N"),
        (["--set", "N"], "N: write NAME=N, such as K=1152"),
        (["--set", "N=33"], "N / 32"),
    ],
)
def test_wrong_sizes_are_refused(manifest, extra, message):
    done = CliRunner().invoke(main, [manifest("one"), manifest("other"), *extra])
    assert done.exit_code == 2
    assert message in done.output


def test_a_kernel_that_is_not_there(manifest):
    one = manifest("one")
    done = CliRunner().invoke(main, [one, one.replace(":one", ":two")])
    assert done.exit_code == 2
    assert "no kernel is named two; there are one" in done.output
