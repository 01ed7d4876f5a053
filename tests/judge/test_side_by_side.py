"""One dispatch charged for several devices: every figure by hand from bank, sector and subgroup sizes."""

import json
import re

import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main
from bankshot.oracle.errors import UsageError
from bankshot.oracle.judge.device_comparison import lanes_of, parse_devices
from bankshot.sim.models import get

# Two workgroups of 64: a store to every second word of workgroup memory, a load of storage and a store to it.
STRIDED = """\
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
var<workgroup> tile: array<u32, 128>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) i: u32) {
    tile[2u * i] = x[id.x];
    workgroupBarrier();
    y[id.x] = i;
}
"""


@pytest.fixture
def shader(tmp_path):
    path = tmp_path / "strided.wgsl"
    path.write_text(STRIDED)
    return path


def bankshot(verb, shader, devices, *more):
    data = ["--grid", "2,1,1", "--bind", "x=zeros:u32:128"]
    if not any("y=" in each for each in more):
        data += ["--bind", "y=zeros:u32:128"]
    no_gpu = ("--no-gpu",) if verb == "audit" else ()
    return CliRunner().invoke(main, [verb, str(shader), "--device", devices, *data, *no_gpu, *more])


def charged(verb, shader, devices):
    result = bankshot(verb, shader, devices, "--json")
    assert result.exit_code == 0, result.output
    (case,) = json.loads(result.stdout)["cases"]
    return case, {entry["device"]: entry for entry in case["devices"]}


@pytest.mark.parametrize("verb", ["audit", "run"])
def test_each_device_is_charged_by_its_own_sizes(shader, verb):
    case, devices = charged(verb, shader, "nvidia,amd,intel")
    assert case["device"] == "nvidia"
    assert list(devices) == ["nvidia", "amd-rdna", "intel"]
    # Two accesses of 128 invocations, 4 bytes each; NVIDIA's sectors have 32 bytes, the others' 64.
    assert [d["counters"]["global_sectors"] for d in devices.values()] == [32, 16, 16]
    assert [d["sector_bytes"] for d in devices.values()] == [1024, 1024, 1024]
    assert [d["counters"]["global_lines"] for d in devices.values()] == [8, 8, 16]
    # Stride 2: two to a bank, in 4 subgroups of 32 on 32 banks or in 8 of 16 on 16.
    assert [d["counters"]["shared_wavefronts"] for d in devices.values()] == [8, 8, 16]
    assert [d["counters"]["shared_ideal_wavefronts"] for d in devices.values()] == [4, 4, 8]
    assert [d["counters"]["barriers"] for d in devices.values()] == [2, 2, 2]
    issued = [d["counters"]["executions"] for d in devices.values()]
    assert (issued[1], issued[2]) == (issued[0], 2 * issued[0])


OTHER = {"subgroup_size": 16, "fma": "contracted", "texel_f16": "zero", "texel_outside": "nearest"}


@pytest.mark.parametrize("fact", OTHER)
def test_devices_that_compute_otherwise_do_not_share_counts_of_lanes(fact):
    intel = get("intel").with_(subgroup_size=32, fma="fused", texel_f16="nearest", texel_outside="zero")
    assert lanes_of(intel) == lanes_of(intel.with_(banks=16, sector_bytes=64, line_bytes=128))
    assert lanes_of(intel) != lanes_of(intel.with_(**{fact: OTHER[fact]}))


def test_equal_counts_are_not_repeated(shader):
    """RDNA and Apple have subgroups of 32 and round alike; Adreno has subgroups of 64, NVIDIA contracts products."""
    _, devices = charged("run", shader, "amd,apple,adreno,nvidia")
    assert [d["counted_anew"] for d in devices.values()] == ["all", "memory", "lanes and memory", "lanes and memory"]
    for name in ("apple", "nvidia"):
        assert devices[name]["counters"]["executions"] == devices["amd-rdna"]["counters"]["executions"]
    assert devices["adreno"]["counters"]["executions"] * 2 == devices["amd-rdna"]["counters"]["executions"]
    assert [d["counters"]["global_sectors"] for d in devices.values()] == [16, 32, 16, 32]


def test_occupancy_is_that_of_each_device(shader):
    """512 bytes a workgroup. NVIDIA: 2,048 threads, but 32 workgroups at most; Intel: 32 too, of 128 x 16 threads."""
    _, devices = charged("run", shader, "nvidia,intel")
    held = {name: d["occupancy"] for name, d in devices.items()}
    assert [held[name]["workgroups"] for name in held] == [32, 32]
    assert [held[name]["fraction"] for name in held] == [1.0, 1.0]
    assert "workgroups" in held["nvidia"]["limited_by"]


def test_the_table_has_a_column_for_each_device(shader):
    out = bankshot("audit", shader, "nvidia, intel", "--listing", "none").stdout
    heading = next(line.split() for line in out.splitlines() if "on each device" in line)
    assert heading[-2:] == ["nvidia", "intel"]
    row = next(line for line in out.splitlines() if "bytes of these sectors" in line)
    assert row.split()[-2:] == ["1,024", "1,024"]
    row = next(line for line in out.splitlines() if "lanes of a subgroup" in line)
    assert row.split()[-2:] == ["32", "16"]
    assert "on each device" not in bankshot("audit", shader, "nvidia", "--listing", "none").stdout


def test_unknown_device_names():
    with pytest.raises(UsageError, match="the devices are nvidia, amd-rdna, amd-cdna"):
        parse_devices("nvidia,aple")
    with pytest.raises(UsageError, match="amd-rdna is named twice"):
        parse_devices("amd,amd-rdna")


def test_devices_side_by_side_take_all_probes(shader):
    result = bankshot("run", shader, "nvidia,amd", "--probes", "none")
    assert (result.exit_code, "several devices need all probes" in result.stderr) == (2, True)


def test_accesses_as_written_and_merged(shader):
    """Each invocation stores a pair of words: 128 x 8 bytes, of which both stores as written touch every sector."""
    text = STRIDED.replace("y[id.x] = i;", "y[2u * id.x] = i; y[2u * id.x + 1u] = i;")
    shader.write_text(text)
    result = bankshot("run", shader, "nvidia,nvidia+merged", "--json", "--bind", "y=zeros:u32:256")
    assert result.exit_code == 0, result.output
    written, merged = json.loads(result.stdout)["cases"][0]["devices"]
    assert (written["merge_adjacent"], merged["merge_adjacent"]) == (False, True)
    assert merged["counted_anew"] == "memory"
    assert written["counters"]["global_sectors"] == 16 + 2 * 32
    assert merged["counters"]["global_sectors"] == 16 + 32
    assert merged["counters"]["executions"] == written["counters"]["executions"]


def test_idle_lanes_are_reported_by_cause(shader):
    """Of 2 x 64 invocations 40 of each workgroup pass: 24 of the 64 lanes that issue are behind the guard."""
    shader.write_text(STRIDED.replace("workgroupBarrier();", "if i >= 40u { return; }"))
    out = bankshot("audit", shader, "nvidia", "--listing", "none").stdout
    assert re.search(r"idle lanes, of those issued +([0-9.]+%): \1 behind a guard *\n", out)
    (case,) = json.loads(bankshot("audit", shader, "nvidia", "--json").stdout)["cases"]
    store = next(s for s in case["sites"] if (s["kind"], s["name"]) == ("store", "y"))
    assert [store[name] for name in ("active_lanes", "idle_guard", "idle_overhang")] == [80, 48, 0]
    assert [store[name] for name in ("idle_divergence", "idle_skipped")] == [0, 0]


def test_lanes_on_one_word_are_reported_by_place(shader):
    """32 lanes of a subgroup add to one word: 32-way; 2 x 2 subgroups of 2 workgroups issue it."""
    shader.write_text(
        STRIDED.replace("workgroupBarrier();", "atomicAdd(&total, i);").replace(
            "@compute", "var<workgroup> total: atomic<u32>;\n@compute", 1
        )
    )
    out = bankshot("audit", shader, "nvidia", "--listing", "none").stdout
    assert re.search(r"strided\.wgsl:\d+ total +4 +128 +32-way", out)
