"""Counters recorded by a real run agree with the simulator's: control flow, calls, pointers, odd shapes."""

import json
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bankshot
from bankshot.oracle import wgpu_client
from bankshot.oracle.cli.main import main
from bankshot.oracle.diagnosis.adapter_reruns import filling, zeroing_statements
from bankshot.oracle.diagnosis.kept_floats import ZERO
from bankshot.oracle.errors import Lacking, UsageError
from bankshot.oracle.gpu_counters.wgsl_probes import instrument
from bankshot.oracle.judge import counter_diff as gpu_counters
from bankshot.oracle.judge import counter_recording
from bankshot.oracle.judge.counter_diff import diff_counters
from bankshot.oracle.manifests import cases
from bankshot.oracle.manifests.manifest_files import is_manifest

SHADERS = Path(__file__).parents[2] / "shaders"
MANIFESTS = sorted(path for path in SHADERS.rglob("*.toml") if is_manifest(path))

# Every way in which control can part, and every kind of access: subgroups issue the same things at the same time only
# where the path to them is the same.
BRANCHY = """\
struct P { n: u32, m: array<vec2<f32>, 5>, v: vec3<f32> }
@group(1) @binding(3) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<storage, read> ps: array<P>;
@group(0) @binding(0) var<uniform> dims: vec4<u32>;
@group(1) @binding(4) var<storage, read_write> hist: array<atomic<u32>>;
override SIZE = 48u;
var<workgroup> tile: array<vec4<f32>, SIZE>;
var<workgroup> count: atomic<u32>;
var<workgroup> total: f32;
var<workgroup> grid: array<array<f32, 3>, 7>;
var<private> seen: u32;

fn weight(i: u32, scale: f32) -> f32 {
    if i % 3u == 0u { return scale * 2.0; }
    var sum = 0.0;
    for (var k = 0u; k < i % 4u; k++) {
        sum += ps[(i + k) % 3u].m[k % 5u].y;
        if sum > 100.0 { return sum; }
    }
    return sum + fract(scale);
}

fn note(i: u32) {
    if i > 20u { return; }
    atomicAdd(&hist[i % 7u], 1u);
}

@compute @workgroup_size(1)
fn unused() {
    note(u32(weight(1u, 2.0)));
}

@compute @workgroup_size(SIZE)
fn main(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) wg: vec3<u32>) {
    let p = &tile[(lane * 5u) % SIZE];
    *p = vec4<f32>(f32(lane), 1.0, 2.0, f32(wg.x));
    (*p).y = f32(wg.y);
    if lane == 0u { total = 0.0; atomicStore(&count, 0u); }
    grid[lane % 7u][lane % 3u] = 1.0;
    workgroupBarrier();
    var acc = 0.0;
    var i = lane;
    while i < 60u && weight(i, acc) < 1e6 {
        i += 7u + lane % 5u;
        if i % 11u == 0u { continue; }
        acc += tile[i % SIZE].x * weight(i, acc);
    }
    loop {
        seen += 1u;
        if seen > lane % 6u { break; }
        switch seen % 3u {
            case 0u: { acc += grid[seen % 7u][1]; }
            case 1u: { note(lane + seen); }
            default: { if lane % 2u == 0u { break; } acc *= 1.5; }
        }
        continuing { acc += tile[seen].z; }
    }
    let was = atomicAdd(&count, 1u);
    atomicMax(&hist[8], was);
    let swap = atomicCompareExchangeWeak(&hist[9], 0u, 5u);
    workgroupBarrier();
    let n = atomicLoad(&count);
    let whole = workgroupUniformLoad(&total);
    if dims.x > 3u || weight(lane, 0.5) > 0.1 {
        tile[lane].w += acc + whole;
    }
    let t = tile[lane];
    let at = (wg.y * dims.y + wg.x) * SIZE + lane;
    out[at] = acc + f32(n) + t.w + ps[lane % 4u].v.z;
    note(lane / 2u);
}
"""


def case_of(tmp_path, source, arrays, grid, overrides=None):
    path = tmp_path / "kernel.wgsl"
    path.write_text(source)
    request = cases.Request(arrays=arrays, grid=grid, overrides=overrides or {}, entry="main")
    (plan,) = cases.plans([path], request)
    (case,) = plan.cases()
    return case


@pytest.fixture
def branchy(tmp_path):
    arrays = {
        "ps": np.random.default_rng(0).random(64).astype(np.float32).view(np.uint32),
        "dims": np.array([2, 3, 0, 0], np.uint32),
        "hist": np.zeros(16, np.uint32),
        "out": np.zeros(3 * 2 * 48, np.float32),
    }
    return case_of(tmp_path, BRANCHY, arrays, (3, 2, 1))


def told(diff):
    return [
        (d.site and d.site.span.line, d.site and (d.site.variable or d.site.name), d.counter, d.simulated, d.counted)
        for d in diff.differences
    ]


def test_keywords_need_no_space_after_them(adapter, tmp_path):
    source = """\
    @group(0) @binding(0) var<storage, read_write> y: array<f32>;
    fn half(x: f32) -> f32 { if(x*2.0 > 9.0) { return(x*0.5); } else if(x < 1.0) { return(0.0); } return(x); }
    @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {
        var k = 0u;
        while(y[i] > f32(k)) { switch(u32(y[i]*2.0)) { case(4) { y[i] -= 1.0; } default { k++; } } }
        for(;;) { if(half(y[i]) >= y[i]) { break; } y[i] = half(y[i]); }
    }
    """
    case = case_of(tmp_path, source, {"y": np.arange(32, dtype=np.float32)}, (1, 1, 1))
    assert told(diff_counters(case, "nvidia", None)) == []


@pytest.mark.parametrize("device", ["lavapipe", "nvidia", "amd-cdna"])  # subgroups of 8, 32 and 64
def test_a_real_run_counts_what_the_simulator_counts(any_adapter, branchy, device):
    diff = diff_counters(branchy, device, any_adapter.name)
    assert told(diff) == []
    assert diff.outputs_equal
    assert diff.compared > 400
    assert diff.rows > 20_000


@pytest.mark.parametrize(("planned", "least"), [(8_000, 3), (1_000, 6 * 4)])  # parted by workgroups; by sites as well
def test_many_passes_count_the_same_as_one(adapter, branchy, monkeypatch, planned, least):
    monkeypatch.setattr(counter_recording, "ROWS_PLANNED", planned)
    diff = diff_counters(branchy, "nvidia", None)
    assert diff.passes >= least
    assert told(diff) == []


def test_small_workgroups_by_the_thousand_are_counted_in_one_pass(any_adapter, tmp_path):
    """The bits of a row's first word that lanes and probes leave number the workgroups: 2^18 with 3 lanes."""
    source = """\
    @group(0) @binding(0) var<storage, read_write> y: array<u32>;
    @compute @workgroup_size(3) fn main(@builtin(global_invocation_id) id: vec3u) {
        if id.x % 7u != 0u { y[id.x] = id.x; }
    }
    """
    case = case_of(tmp_path, source, {"y": np.zeros(15_000, np.uint32)}, (5_000, 1, 1))
    diff = diff_counters(case, any_adapter.profile or "nvidia", any_adapter.name)
    assert (diff.passes, diff.cut) == (1, False)
    assert told(diff) == []
    _, run, _ = gpu_counters._fitting(case, "nvidia", lambda stage: None)
    assert run.coverage.how == "all"  # also where a part of the workgroups tells how long the log is


def test_an_output_is_alike_where_bits_or_bounds_agree():
    one, nan, key = np.array([1.0], np.float32), np.array([np.nan], np.float32), ("y", 0)
    bounds = {key: np.array([0.125])}
    for ours, theirs, alike in (
        (one, one, True), (one, one + 0.25, True), (one, one + 0.5, False), (nan, -nan, True), (one, nan, False),
        (nan, one, False), (b"1", b"1", True), (b"1", b"2", False),
    ):  # fmt: skip
        assert gpu_counters._alike(ours, theirs, key, bounds) == alike, (ours, theirs)
    assert gpu_counters._alike(one, 9 * one, key, {key: np.array([np.inf])})


@pytest.mark.parametrize(("rows", "grid"), [(12_000, (1, 2, 1)), (1, (1, 1, 1))])
def test_a_grid_whose_log_would_be_too_long_is_reduced(adapter, branchy, monkeypatch, rows, grid):
    """3 x 2 workgroups have about 23,000 rows; the longest axis is halved until they fit, or one workgroup remains."""
    monkeypatch.setattr(gpu_counters, "ROWS_IN_ALL", rows)
    diff = diff_counters(branchy, "nvidia", None)
    assert diff.cut
    assert diff.grid == grid
    assert told(diff) == []


def test_a_shader_with_too_many_probes_is_counted_in_parts(adapter, branchy, monkeypatch):
    monkeypatch.setattr(counter_recording, "SITES_PER_PASS", 10)
    diff = diff_counters(branchy, "nvidia", None)
    assert diff.passes >= diff.places // 10 > 1
    assert told(diff) == []


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_the_first_kernel_of_every_manifest_has_equal_counters(any_adapter, path):
    """`bankshot diff --counters shaders` checks all kernels, at their default sizes."""
    plan, *_ = cases.plans([path], cases.Request(quick=True))
    case = plan.case(min(plan.shapes, key=lambda shape: prod(shape.dims.values())))
    try:
        diff = diff_counters(case, any_adapter.profile or "nvidia", any_adapter.name)
    except Lacking as error:
        pytest.skip(str(error))
    assert told(diff) == []
    assert diff.outputs_equal


CANCELS = """\
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) { y[i] = (y[i] - y[i]) - 0.1; }
"""


def test_rounding_that_probes_change_is_not_a_change_of_outputs(adapter, tmp_path):
    """Without probes, lavapipe simplifies y - (y + 0.1); with probes, it computes the expression as written."""
    diff = diff_counters(case_of(tmp_path, CANCELS, {"y": np.full(8, 1e6, np.float32)}, (1, 1, 1)), "lavapipe", None)
    assert diff.outputs_equal


@pytest.mark.parametrize(
    ("left", "changed"),
    [
        (np.float32([1, 2]), False),
        (np.float32([1.25, 99]), False),  # of the second nothing is known
        (np.float32([1.5, 2]), True),
        (np.float32([np.nan, 2]), True),
        (np.uint32([1, 2]), True),
    ],
)
def test_what_the_probes_change(left, changed):
    bounds = {"y": np.array([0.125, np.inf])}
    plain = np.float32([1, 2]) if left.dtype == np.float32 else np.uint32([1, 3])
    assert gpu_counters._alike(left, plain, "y", bounds) != changed
    assert gpu_counters._alike(plain, left, "y", bounds) != changed


def test_nans_agree_with_nans_alone():
    """Payloads do not count: WGSL prescribes none."""
    bounds = {"y": np.array([0.125])}
    quiet, other = (np.array([bits], np.uint32).view(np.float32) for bits in (0x7FC00000, 0x7FC00001))
    assert gpu_counters._alike(quiet, other, "y", bounds)
    assert not gpu_counters._alike(quiet, np.float32([1]), "y", bounds)
    assert not gpu_counters._alike(np.float32([1]), quiet, "y", bounds)


PAD = """\
override PAD: u32 = 33;
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
var<workgroup> tile: array<f32, 32u * PAD>;
struct Where { @builtin(local_invocation_id) at: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32> }
@compute @workgroup_size(32, 8)
fn main(in: Where) {
    let at = in.at;
    for (var row = at.y; row < 32u; row += 8u) { tile[row * PAD + at.x] = y[row * 32u + at.x]; }
    workgroupBarrier();
    for (var row = at.y; row < 32u; row += 8u) { y[row * 32u + at.x] = tile[at.x * PAD + row]; }
}
"""


def test_a_pass_without_records_costs_nothing(branchy):
    _, run, _ = gpu_counters._fitting(branchy, "lavapipe", lambda stage: None)
    planned, account = counter_recording.plan(run), gpu_counters.open_account(run)
    account.open(planned.regions)
    (part,) = counter_recording.passes(planned)
    probes = counter_recording.probes_of(planned, part, run)
    assert counter_recording.charge(account, planned, probes, np.zeros((0, 5), np.uint32)) == 0
    assert sum(sum(row.values()) for row in account.counters.values()) == 0


def test_a_schedule_that_differs_from_the_simulation_is_reported(adapter, tmp_path):
    y = {"y": np.arange(1024, dtype=np.float32)}
    padded = case_of(tmp_path, PAD, y, (1, 1, 1))
    bare = replace(padded, kernel=replace(padded.kernel, overrides={"PAD": 32}))
    _, run, _ = gpu_counters._fitting(padded, "nvidia", lambda stage: None)
    _, other, _ = gpu_counters._fitting(bare, "nvidia", lambda stage: None)
    planned, account = counter_recording.plan(other), gpu_counters.open_account(run)
    account.open(planned.regions)
    (part,) = counter_recording.passes(planned)
    probes = counter_recording.probes_of(planned, part, other)
    ((rows, _),) = counter_recording.record(bare, other, probes, part.rows, None, lambda stage: None)
    came = counter_recording.charge(account, planned, probes, rows)
    differences, _ = gpu_counters.compare(run, account, came)
    # The transposed read is the one access that the padding is for: 32 requests of 1 wavefront, or of 32.
    assert [(d.site.span.line, d.counter, d.simulated, d.counted) for d in differences] == [
        (10, "shared_wavefronts", 32, 1024)
    ]


UNWRITTEN = """\
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<workgroup> w: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) i: u32) {
    if w[i] > 10u { y[id.x] = 1u; }
}
"""


def test_counters_of_memory_that_a_driver_does_not_zero(adapter, tmp_path, monkeypatch):
    def fill():
        wgpu_client.run(filling("main"), "main", (256, 1, 1), {ZERO: np.zeros(4, np.uint32)})

    right = counter_recording.on_gpu

    def after_filling(*arguments):
        fill()
        return right(*arguments)

    case = case_of(tmp_path, UNWRITTEN, {"y": np.zeros(384, np.uint32)}, (6, 1, 1))
    fill()
    dirty = wgpu_client.run(UNWRITTEN, "main", (6, 1, 1), case.arrays).outputs["y"].any()
    monkeypatch.setattr(gpu_counters, "on_gpu", after_filling)
    found = diff_counters(case, "lavapipe", None)
    assert found.ok
    assert found.zeroed == dirty


def test_statements_before_the_kernel_have_no_probes(adapter, tmp_path):
    case = case_of(tmp_path, UNWRITTEN, {"y": np.zeros(384, np.uint32)}, (6, 1, 1))
    _, run, cut = gpu_counters._fitting(case, "lavapipe", lambda stage: None)
    zeroing = f"{zeroing_statements(run.pipeline)} workgroupBarrier();"
    info = wgpu_client.require_adapter(None)
    found = gpu_counters._counted(case, run, counter_recording.plan(run), info, cut, None, lambda stage: None, zeroing)
    assert found.ok


def test_probes_keep_lines_where_they_are(branchy):
    _, run, _ = gpu_counters._fitting(branchy, "nvidia", lambda stage: None)
    text = instrument(run.pipeline, run.program.sites).text.splitlines()
    for written, line in zip(BRANCHY.splitlines(), text, strict=False):
        rest = iter(line)
        assert all(character in rest for character in written), (written, line)


def test_a_store_in_the_header_of_a_loop_is_refused_with_its_line(tmp_path):
    source = """\
    @group(0) @binding(0) var<storage, read_write> y: array<u32>;
    @compute @workgroup_size(1)
    fn main() {
        for (y[0] = 0u; y[0] < 3u; y[0]++) { y[1] += 1u; }
    }
    """
    case = case_of(tmp_path, source, {"y": np.zeros(2, np.uint32)}, (1, 1, 1))
    _, run, _ = gpu_counters._fitting(case, "nvidia", lambda stage: None)
    with pytest.raises(UsageError, match=r"kernel.wgsl:4: no probe fits into the header"):
        instrument(run.pipeline, run.program.sites)


def test_the_command_reports_the_counters(adapter, tmp_path):
    (tmp_path / "pad.wgsl").write_text(PAD)
    arguments = ["diff", str(tmp_path / "pad.wgsl"), "--bind", "y=zeros:f32:1024", "--counters"]
    out = CliRunner().invoke(main, arguments)
    assert out.exit_code == 0, out.output
    assert "all equal" in out.output
    entry = json.loads(CliRunner().invoke(main, [*arguments, "--json"]).stdout)["cases"][0]
    assert entry["counters"]["ok"]
    assert entry["counters"]["differences"] == []
    assert entry["counters"]["compared"] > 50


TEXELS = """\
@group(0) @binding(0) var flat: texture_2d<f32>;
@group(0) @binding(1) var deep: texture_3d<u32>;
@group(0) @binding(2) var stack: texture_2d_array<i32>;
@group(0) @binding(3) var shadow: texture_depth_2d;
@group(0) @binding(4) var line: texture_storage_2d_array<rgba8unorm, write>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
fn of_flat(at: vec2<i32>, level: i32) -> f32 { return textureLoad(flat, at, level).y; }
@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let i = id.x;
    var sum = of_flat(vec2(i32(i % 11u) - 1, i32(i / 7u)), i32(i % 4u));  // beyond each edge, and the last level
    for (var z = 0u; z < 4u; z += 1u) { sum += f32(textureLoad(deep, vec3(i % 5u, i / 8u, z), 0).x); }
    if i % 3u == 0u { sum += f32(textureLoad(stack, vec2(i % 4u, i / 16u), i % 2u, 0).x); }
    sum += textureLoad(shadow, vec2(u32(textureLoad(deep, vec3(i % 5u, 0u, 0u), 0).x % 6u), 3u), 0);
    if sum > 2.0 { textureStore(line, vec2(i % 9u, i / 9u), i % 3u, vec4(sum)); }
    y[i] = sum;
}
"""


def texels(tmp_path):
    make = np.random.default_rng(7)
    arrays = {
        "flat": [make.random((8 >> level, 8 >> level)).astype(np.float32) for level in range(3)],
        "deep": make.integers(0, 9, (4, 8, 4, 4), np.uint8),
        "stack": make.integers(-9, 9, (2, 4, 4, 2), np.int32),
        "shadow": make.integers(0, 65536, (6, 6), np.uint16),
        "line": np.zeros((2, 8, 8, 4), np.uint8),
        "y": np.zeros(64, np.float32),
    }
    return case_of(tmp_path, TEXELS, arrays, (2, 1, 1))


def test_loaded_and_stored_texels_are_counted(any_adapter, tmp_path):
    diff = diff_counters(texels(tmp_path), any_adapter.profile or "nvidia", any_adapter.name)
    assert told(diff) == []
    assert diff.outputs_equal


def test_sampled_texels_are_not_counted_on_a_gpu(tmp_path):
    source = """\
    @group(0) @binding(0) var t: texture_2d<f32>;
    @group(0) @binding(1) var s: sampler;
    @group(0) @binding(2) var<storage, read_write> y: f32;
    @compute @workgroup_size(1) fn main() { y = textureSampleLevel(t, s, vec2(0.5, 0.5), 0.0).x; }
    """
    given = {"t": np.zeros((2, 2), np.float32), "s": bankshot.Sampler(), "y": np.zeros(1, np.float32)}
    case = case_of(tmp_path, source, given, (1, 1, 1))
    _, run, _ = gpu_counters._fitting(case, "nvidia", lambda stage: None)
    with pytest.raises(UsageError, match=r"kernel.wgsl:4: textureSampleLevel cannot be counted on a GPU"):
        instrument(run.pipeline, run.program.sites)
