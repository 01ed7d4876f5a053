"""What `bankshot advise` names where layouts are not the cause: strides, atomics, idle lanes, tail waves, residency."""

import json

import numpy as np
import pytest

import bankshot
from bankshot.oracle.advise.limits import MOST_PLACES, residency, scattered, strides
from bankshot.oracle.gpu_counters.access_trace import Request
from tests.advise.test_advise import FORMS, command

HEAD = """\
@group(0) @binding(0) var<storage, read> x: array<f32, 8192>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 64>;
@group(0) @binding(2) var<storage, read_write> counts: array<atomic<u32>, 64>;
"""
MAIN = "@compute @workgroup_size({size}) fn main(@builtin(local_invocation_index) i: u32) {{ {body} }}\n"


def text(body, size=64, declared=""):
    return HEAD + declared + MAIN.format(size=size, body=body)


def shown(tmp_path, body, size=64, grid="1", declared=""):
    file = tmp_path / "kernel.wgsl"
    file.write_text(text(body, size, declared))
    return command("advise", file, "--grid", grid).stdout


# The body of a kernel, and the line that says what is the cause.
CAUSES = {
    "a stride": ("y[i] = x[i * 128u];",
                 "stride: load of x in line 4: adjacent lanes access addresses that are 512 bytes apart"),
    "a stride downward": ("y[i] = x[8191u - i * 2u];",
                          "stride: load of x in line 4: adjacent lanes access addresses that are 8 bytes apart"),
    "no stride": ("y[i] = x[i * i];",
                  "stride: load of x in line 4: the distance between the addresses of adjacent lanes varies"),
    "rows that start within a sector": ("y[i] = x[i + 13u];",
        "stride: load of x in line 4: adjacent lanes access adjacent elements, which start or end within a sector"),
    "a stride of most": ("y[i] = x[i * 4u + i / 16u];",
                         "stride: load of x in line 4: most adjacent lanes access addresses that are 16 bytes apart"),
    "rows of adjacent elements": ("y[i] = x[i / 7u * 128u + i % 7u];",
        "stride: load of x in line 4: most adjacent lanes access adjacent elements, and some do not"),
    "pairs on one address": ("y[i] = x[i / 4u * 64u];",
                             "stride: load of x in line 4: most adjacent lanes access the same address"),
    "one lane that works alone": ("var s = 0.0; if i == 0u { for (var k = 0u; k < 64u; k++) { s += x[k]; } } y[i] = s;",
        "help: share this work among the lanes of the subgroup: one does it alone"),
    "lanes of two": ("var s = 0.0; if i % 32u < 2u { for (var k = 0u; k < 64u; k++) { s += x[k]; } } y[i] = s;",
                     "help: give the lanes of a subgroup the same branch and the same number of iterations"),
    "an array that is not accessed": ("if x[0] > 1e9 { unused[i] = 1.0; } y[i] = x[i];",
        "note: unused is not accessed with these data, so that its layout makes no difference"),
    "lines that are not coalesced": ("y[i] = x[i * 128u];", "32 sectors per request, where 4 would do"),
    "atomics": ("atomicAdd(&counts[0], i);", "turns per request, as lanes wait for each other on one word"),
    "a guard": ("if i >= 5u { return; } y[i] = x[i] * 2.0;", "lanes behind a guard"),
    "divergence": ("var s = 0.0; for (var k = 0u; k < i; k++) { s += x[k]; } y[i] = s;", "lanes diverged"),
}  # fmt: skip


@pytest.mark.parametrize("name", CAUSES)
def test_the_cause_is_named(name, tmp_path):
    body, words = CAUSES[name]
    assert words in shown(
        tmp_path, body, declared="var<workgroup> unused: array<f32, 64>;\n" if "unused" in body else ""
    )


def test_lanes_past_the_workgroup_are_named(tmp_path):
    assert "lanes past the workgroup" in shown(tmp_path, "y[i] = x[i];", size=40)


def test_adjacent_accesses_have_no_stride(tmp_path):
    """They touch no sector more than they must."""
    assert "stride" not in shown(tmp_path, "y[i] = x[i];")


def test_one_workgroup_leaves_most_of_the_device_idle(tmp_path):
    """An H200 has 132 cores; each holds 32 workgroups of two subgroups."""
    told = shown(tmp_path, "y[i] = x[i];")
    assert "limits: 32 resident workgroups per core (100% of its subgroups)" in told
    assert "tail: workgroups take 1 of 4,224 places (0.0% of those in all waves)" in told


def test_workgroup_memory_limits_residency(tmp_path):
    """A core of an H200 has 48 KiB: 3 workgroups of 16 KiB are resident, 6 of its 64 subgroups."""
    declared = "var<workgroup> tile: array<f32, 4096>;\n"
    told = shown(tmp_path, "tile[i] = x[i]; workgroupBarrier(); y[i] = tile[63u - i];", declared=declared)
    assert "limits: 3 resident workgroups per core (9% of its subgroups), limited by workgroup memory" in told


def test_registers_limit_residency_from_some_number_on():
    """A core of an H200 has 65,536 registers: 32 for each lane of 32 workgroups of 64. With 16 KiB of memory 3 are
    resident, whose lanes may take as many as there are, 255."""
    run = run_of("y[i] = x[i];")
    assert [residency(run, size).registers for size in (0, 16_384)] == [32, 255]


def test_the_limit_by_registers_is_shown(tmp_path):
    assert "registers: no limit up to 32 a lane; how many" in shown(tmp_path, "y[i] = x[i];")


def run_of(body):
    bindings = {"x": np.zeros(8192, np.float32), "y": np.zeros(64, np.float32), "counts": np.zeros(64, np.uint32)}
    return bankshot.simulate(text(body), grid=1, bindings=bindings)


def test_less_memory_makes_room_for_more_workgroups():
    """3 of 16 KiB are 48; 4 of 12 KiB are 48, too."""
    run = run_of("y[i] = x[i];")
    assert [residency(run, size).workgroups for size in (16_384, 12 * 1024, 0)] == [3, 4, 32]


def test_the_places_that_touch_most_more_sectors_come_first():
    body = " ".join(f"y[i] += x[i * {step}u];" for step in (1, 2, 4, 8, 16))
    run = run_of(body)
    found = [run.program.sites[number] for number in scattered(run)]
    steps = [site.span.text for site in found]
    assert (len(steps), MOST_PLACES) == (3, 3)
    assert set(steps[:2]) == {"x[i * 8u]", "x[i * 16u]"}
    assert steps[2] == "x[i * 4u]"


def test_json_has_strides_and_residency(tmp_path):
    file = tmp_path / "kernel.wgsl"
    file.write_text(FORMS["const"].replace("group.x * TILE + at.x]", "(group.x * TILE + at.x) % 64u * 2u % 64u]", 1))
    told = command("advise", file, "--grid", "2,2", "--pads", "33..33", "--json")
    (case,) = json.loads(told.stdout)["cases"]
    assert all(each.keys() == {"line", "name", "bytes"} for each in case["strides"])
    now, then = case["residency"]
    assert (now["workgroups"], then["workgroups"], now["fill"]) == (8, 8, 4 / (8 * 132))


def test_a_stride_is_the_distance_of_active_lanes_that_are_adjacent():
    run = run_of("y[i] = x[i];")
    (site,) = [each.site for each in run.sites if each.kind == "load"]
    (stride,) = strides([Request(site, 0, 0, np.array([0, 4, -1, 100, 104, -1], np.int64))])
    assert (stride.site, stride.bytes) == (site, 4)
