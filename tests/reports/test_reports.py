"""Audits, differences and their reports over a run that is made up here, so that every figure is known by hand."""

import json
import re
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

import bankshot
from bankshot.oracle import wgpu_client  # all before one is patched, which others import from
from bankshot.oracle.cli.main import main
from bankshot.oracle.diagnosis.mismatch import Diagnosis
from bankshot.oracle.errors import NoAdapter, TooLarge
from bankshot.oracle.judge import (  # all before one is patched, which others import from
    audit,
    case_run,
    diff,
    output_checks,
)
from bankshot.oracle.judge.case_run import EVERYTHING
from bankshot.oracle.references import Expected, reference_registry
from bankshot.oracle.reports.source_listing import ADDED
from bankshot.oracle.workers import progress
from bankshot.sim.run.counters import NAMES
from bankshot.sim.run.result import Writer
from bankshot.sim.run.workgroup_coverage import Coverage
from bankshot.sim.utilization.utilization import Headline, Utilization
from bankshot.sim.wgsl.diagnostics import Crash
from bankshot.sim.wgsl.source import Source, Span
from tests.scaling import manifest

WGSL = """\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let a = x[id.x]; // loads
    y[id.x] = a * 2.0;
}
"""

KERNEL = 'entry = "main"\nreference = "twice"\n'
SHAPES = '\n[[sweep]]\nN = [32, 64]\n\n[[sweep]]\nN = 96\ncost = "heavy"\n'
MANIFEST = manifest(
    SHAPES, '\n[expect]\nbarriers = 0\nflops = "N"\n', source="twice.wgsl", kernel=KERNEL, n=64, y="unwritten"
)

ADAPTER = wgpu_client.AdapterInfo("llvmpipe (LLVM 15)", "CPU", "Vulkan", "llvmpipe", "Mesa 22.3.6", "0.32.0")


def site(kind, start, line, file="twice.wgsl", **counters):
    source = Source(WGSL, str(file))
    offset = source.line_start(line - 1) + start
    zero = dict.fromkeys((*ADDED, "executions", "active_lanes"), 0)
    facts = {"kind": kind, "space": "storage", "name": "x", "bytes_per_lane": 4, "line": line}
    return SimpleNamespace(**zero | facts | counters, span=Span(source, offset, offset + 3))


USED = Utilization(1.0, 0.75, 0.5, None, (), Headline("workgroup_balance", 0.5, "one waits", None), 2, 2, True, "")


@dataclass
class Run:
    outputs: dict
    counters: dict
    sites: list
    findings: list = field(default_factory=list)
    silenced: list = field(default_factory=list)
    device: SimpleNamespace = field(
        default_factory=lambda: SimpleNamespace(subgroup_size=32, workgroup_bytes_max=20_000)
    )
    predicts_time: bool = False
    pipeline: SimpleNamespace | None = None
    loose: frozenset = frozenset()
    coverage: Coverage = field(default_factory=lambda: Coverage("all", 2, 2))
    instructions: tuple = ()
    traffic: tuple = ()
    padding_flops: int = 0
    utilization: Utilization = field(default_factory=lambda: USED)
    agreement: None = None
    program: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(order_dependent_atomics=()))

    def writer(self, name, element):
        return Writer((element // 32, 0, 0), element % 32, None)


@dataclass
class Finding:
    code: str = "out-of-bounds"
    severity: str = "warning"
    message: str = "reads past the end of x"
    span: None = None
    count: int = 7
    lanes: tuple = (3,)
    workgroup: tuple = (0, 0, 0)
    epoch: int = 0
    verdict: str | None = None
    notes: tuple = ()
    hint: str | None = None

    def render(self):
        return f"twice.wgsl:5:13: {self.severity}: {self.message}"


@pytest.fixture
def world(monkeypatch, tmp_path):
    """A folder with one kernel, a simulator and a GPU that double numbers, and knobs to make them fail."""
    knobs = SimpleNamespace(folder=tmp_path, findings=[], gpu_error=0.0, sim_error=0.0, devices=[], no_adapter=False)
    knobs.workgroup_bytes = knobs.unwatched = 0
    # A run that is made up cannot be made once more.
    monkeypatch.setattr(output_checks, "reordering_within_bounds", lambda mismatch: None)
    monkeypatch.setattr(
        output_checks, "diagnose", lambda mismatch: Diagnosis("fma contraction", "with fma fused, all agree")
    )
    (tmp_path / "twice.wgsl").write_text(WGSL)
    checked = bankshot.check(tmp_path / "twice.wgsl")
    (function,) = checked.entry_points
    (tmp_path / "twice.toml").write_text(MANIFEST)

    def simulate(module, *, entry, grid, bindings, overrides, device, probes, trace, workgroups, progress, **order):
        assert order == {"schedule": "lockstep", "schedules": 1, "replay": True}
        knobs.devices.append((device, probes))
        y = bindings["x"] * np.float32(2)
        y[-1] += np.float32(knobs.sim_error)
        groups = grid[0]
        counters = dict.fromkeys(("executions", "active_lanes", *ADDED), 0)
        counters |= {
            "workgroups": groups, "invocations": 32 * groups, "workgroup_memory_bytes": 0, "simt_efficiency": 1.0,
            "working_invocations": 1.0, "flops": 32 * groups, "global_bytes": 256 * groups,
            "global_sectors": 12 * groups, "global_ideal_sectors": 8 * groups, "shared_wavefronts": 6 * groups,
            "shared_ideal_wavefronts": 2 * groups,
        }  # fmt: skip
        sites = [
            site("load", 12, 5, tmp_path / "twice.wgsl", executions=groups, active_lanes=16 * groups,
                 global_sectors=8 * groups, global_ideal_sectors=4 * groups),
            site("store", 4, 6, tmp_path / "twice.wgsl", executions=groups, active_lanes=32 * groups,
                 global_sectors=4 * groups, global_ideal_sectors=4 * groups),
        ]  # fmt: skip
        progress(groups, groups)
        size, memory = (32, 1, 1), knobs.workgroup_bytes
        pipeline = SimpleNamespace(
            entry=function, globals=function.globals, workgroup_size=size, workgroup_bytes=memory, module=checked
        )
        coverage = Coverage("all", 2, 2, unwatched=knobs.unwatched)
        return Run({"y": y}, counters, sites, knobs.findings, pipeline=pipeline, coverage=coverage)

    def begin_on_gpu(case, adapter, repeats=1, text=None):
        y = case.bindings["x"] * np.float32(2)
        y[0] += np.float32(knobs.gpu_error)
        return SimpleNamespace(done=lambda: wgpu_client.GpuRun({"y": y}, ADAPTER, (0.001,)))

    def require_adapter(wanted=None):
        if knobs.no_adapter:
            raise NoAdapter("wgpu finds no adapter; apt-get install it")
        return ADAPTER

    def twice(arrays, dims):
        value = arrays["x"].astype(np.float64) * 2
        return {"y": Expected(value, np.zeros_like(value))}

    monkeypatch.setattr(bankshot.sim, "simulate", simulate)
    monkeypatch.setattr(case_run, "check_module", lambda kernel: None)
    monkeypatch.setattr(case_run, "fit", lambda case, module: None)
    monkeypatch.setattr(audit, "prepare_on_gpu", lambda case, adapter: None)
    monkeypatch.setattr(case_run, "begin_on_gpu", begin_on_gpu)
    monkeypatch.setattr(wgpu_client, "require_adapter", require_adapter)
    monkeypatch.setattr(diff, "require_adapter", require_adapter)
    monkeypatch.setitem(reference_registry._references, "twice", twice)
    monkeypatch.delenv("BANKSHOT_REQUIRE_GPU", raising=False)
    return knobs


def command(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


# ---- audit -------------------------------------------------------------------------------------------


def test_the_last_line_says_which_case_was_watched_in_part(world):
    world.unwatched = 7
    last = "2 not compared in full for races: some irregular accesses to large buffers are not watched"
    assert last in command("audit", world.folder).stdout.splitlines()[-1]
    world.unwatched = 0
    assert "watched" not in command("audit", world.folder).stdout


def test_a_clean_audit(world, monkeypatch):
    monkeypatch.setattr(progress, "PERIOD", 0.0)
    result = command("audit", world.folder, "--sweep", "-v")
    assert result.exit_code == 0, result.output
    assert "audit: 3 of 3 cases clean" in result.stdout
    assert "y against reference twice: 32 elements, rule bound, share of the bound used 0 (limit 1)" in result.stdout
    assert "y against wgpu on llvmpipe (LLVM 15): bit for bit, 96 elements" in result.stdout
    assert "Mesa 22.3.6" in result.stdout
    assert "flops  64 as expected" in result.stdout
    assert "workgroup memory wavefronts" in result.stdout
    assert "6, ideal 2 (x3)" in result.stdout
    assert "no findings" in result.stdout
    assert "[2/3] twice N=64: simulating as nvidia with all counters" in result.stderr
    assert max(len(line) for line in result.stdout.splitlines() if str(world.folder) not in line) <= 120


def test_bits_are_compared_under_the_profile_of_the_adapter(world):
    command("audit", world.folder, "--set", "N=32")
    assert world.devices == [("nvidia", EVERYTHING), ("lavapipe", "none")]
    world.devices.clear()
    command("audit", world.folder, "--set", "N=32", "--device", "lavapipe")
    assert world.devices == [("lavapipe", EVERYTHING)]


def test_the_listing_stands_beside_the_source(world):
    out = command("audit", world.folder / "twice.wgsl", "--set", "N=64").stdout
    row = next(line for line in out.splitlines() if "     let a = x[id.x]" in line)
    assert row.split()[:5] == ["5", "2", "50%", "16/8", "let"]
    row = next(line for line in out.splitlines() if "     y[id.x] = a" in line)
    assert row.split()[:4] == ["6", "2", "100%", "8"]
    assert "@workgroup_size" in out
    assert "     let a" in out  # indented as written
    counted = command("audit", world.folder, "--set", "N=64", "--listing", "counted").stdout
    assert "@workgroup_size" not in counted
    assert "let a = x[id.x]" in counted
    assert "      let a" not in command("audit", world.folder, "--set", "N=64", "--listing", "none").stdout


def test_heavy_shapes_are_left_out_unless_asked_for(world):
    assert "2 of 2 cases clean; 1 heavy left out, --sweep runs all" in command("audit", world.folder).stdout
    last = command("audit", world.folder, "--sweep").stdout.splitlines()[-1].partition("; took")[0]
    assert last == "audit: 3 of 3 cases clean; compared with reference (3), wgpu (3), expected counters (3)"


def test_a_gpu_that_disagrees(world):
    world.gpu_error = 1.0
    result = command("audit", world.folder, "--set", "N=64")
    assert result.exit_code == 1
    assert "1 of 64 elements (1.56%), rule exact, up to " in result.stdout
    assert re.search(r"\[0\] .* 0x[0-9a-f]{8} +0x[0-9a-f]{8} .* workgroup \(0, 0, 0\), lane 0", result.stdout)
    assert "likely fma contraction: with fma fused, all agree" in result.stdout
    assert "audit: 0 of 1 cases clean" in result.stdout


def test_a_likely_cause_is_in_every_report(world):
    world.sim_error = 1.0
    cause = "likely fma contraction: with fma fused, all agree"
    page = world.folder / "page.html"
    told = command("audit", world.folder, "--set", "N=64", "--format", "github", "--html", page).stdout
    assert [line for line in told.splitlines() if line.startswith("::error") and cause in line]
    assert cause in page.read_text()
    (case,) = json.loads(command("audit", world.folder, "--set", "N=64", "--json").stdout)["cases"]
    assert case["likely"] == ["fma contraction"]
    assert case["outputs"][0]["likely"] == {"class": "fma contraction", "evidence": "with fma fused, all agree"}
    assert command("audit", world.folder, "--set", "N=64").stdout.count(cause) == 2  # reference, GPU
    world.sim_error = 0.0
    (case,) = json.loads(command("audit", world.folder, "--set", "N=64", "--json").stdout)["cases"]
    assert (case["likely"], case["outputs"][0]["likely"]) == ([], None)


def test_free_outputs_of_a_gpu_are_held_against_the_reference(world):
    """One bit off is no matter; a wrong number is."""
    (world.folder / "twice.toml").write_text(MANIFEST + 'y = { rule = "ulp", max = 4 }\nfree = ["y"]\n')
    world.gpu_error = 1e-7
    for verb in ("audit", "diff"):
        result = command(verb, world.folder, "--set", "N=64")
        assert result.exit_code == 0, result.output
        assert (
            "ok       y against reference twice by wgpu on llvmpipe (LLVM 15): 64 elements, rule ulp" in result.stdout
        )
    world.gpu_error = 1.0
    for verb in ("audit", "diff"):
        result = command(verb, world.folder, "--set", "N=64")
        assert result.exit_code == 1
        assert "y against reference twice by wgpu on llvmpipe (LLVM 15): 1 of 64 elements" in result.stdout


def test_one_kernel_of_a_family(world):
    family = MANIFEST + '[[variant]]\nkernel.name = "one"\n[[variant]]\nkernel.name = "two"\n'
    (world.folder / "twice.toml").write_text(family)
    assert "audit: 2 of 2 cases clean" in command("audit", world.folder, "--set", "N=64").stdout
    result = command("audit", world.folder, "--set", "N=64", "--kernel", "two")
    assert "two  N=64" in result.stdout
    assert "audit: 1 of 1 cases clean" in result.stdout
    result = command("audit", world.folder, "--kernel", "three")
    assert (result.exit_code, "no kernel is named three; there are one, two" in result.stderr) == (2, True)
    target = world.folder / "y.npy"
    result = command("run", world.folder, "--save", f"y={target}")
    assert (result.exit_code, "choose one with --kernel: one, two" in result.stderr) == (2, True)
    assert command("run", world.folder, "--kernel", "one", "--save", f"y={target}").exit_code == 0
    assert target.exists()


def test_a_simulator_that_misses_the_reference(world):
    world.sim_error = 1.0
    result = command("audit", world.folder, "--set", "N=64", "--no-gpu")
    assert result.exit_code == 1
    assert "y against reference twice: 1 of 64 elements" in result.stdout
    assert "workgroup (1, 0, 0), lane 31" in result.stdout


def test_a_counter_that_misses_the_manifest(world):
    text = (world.folder / "twice.toml").read_text()
    (world.folder / "twice.toml").write_text(text.replace('flops = "N"', 'bank_conflicts = "N"'))
    result = command("audit", world.folder, "--set", "N=64")
    assert result.exit_code == 1
    assert "bank_conflicts  8, the manifest expects 64" in result.stdout
    (world.folder / "twice.toml").write_text(text.replace('flops = "N"', 'flps = "N"'))
    result = command("audit", world.folder)
    assert result.exit_code == 2
    assert "[expect] names flps, which is no output and no counter" in result.stderr


def test_findings_fail_an_audit_unless_the_manifest_accepts_them(world):
    world.findings = [Finding()]
    result = command("audit", world.folder, "-v")
    assert result.exit_code == 1
    assert "twice.wgsl:5:13: warning: reads past the end of x" in result.stdout
    (world.folder / "twice.toml").write_text(MANIFEST + 'allow = ["out-of-bounds"]\n')
    result = command("audit", world.folder, "-v")
    assert result.exit_code == 0
    assert "accepted by the manifest: out-of-bounds, 7 times: reads past" in result.stdout
    world.findings = [Finding(code="other", severity="info")]
    assert command("audit", world.folder, "-v").exit_code == 0


def test_limits_of_webgpu_and_of_the_device(world):
    world.workgroup_bytes = 16_896
    result = command("audit", world.folder, "-v")
    assert result.exit_code == 0
    words = "bytes of workgroup memory: 16,896 is over maxComputeWorkgroupStorageSize, which is 16,384"
    assert f"note: beyond WebGPU's defaults, {words}" in result.stdout
    world.workgroup_bytes = 20_001
    result = command("audit", world.folder, "--set", "N=64")
    assert result.exit_code == 1
    words = "bytes of workgroup memory: 20,001 is over maxComputeWorkgroupStorageSize, which is 20,000"
    assert f"EXCEEDS  what nvidia allows, {words}" in result.stdout
    (case,) = json.loads(command("audit", world.folder, "--set", "N=64", "--json").stdout)["cases"]
    assert [(entry["of"], entry["value"], entry["ok"]) for entry in case["limits"]] == [("device", 20_001, False)]


def test_without_an_adapter_the_report_says_so(world, monkeypatch):
    world.no_adapter = True
    result = command("audit", world.folder, "-v")
    assert result.exit_code == 0
    assert "note: not compared with wgpu: wgpu finds no adapter; apt-get install it" in result.stdout
    monkeypatch.setenv("BANKSHOT_REQUIRE_GPU", "1")
    result = command("audit", world.folder, "-v")
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (
        2,
        "error: wgpu finds no adapter; apt-get install it",
    )


def test_what_the_adapter_cannot_bind_is_noted(world, monkeypatch):
    def too_large(case, adapter, repeats=1):
        raise TooLarge("binding x holds 5 bytes, and llvmpipe binds 4 at most")

    monkeypatch.setattr("bankshot.oracle.judge.case_run.begin_on_gpu", too_large)
    result = command("audit", world.folder, "-v")
    assert result.exit_code == 0
    assert "note: not compared with wgpu: binding x holds 5 bytes, and llvmpipe binds 4 at most" in result.stdout


def test_json_has_all_of_it(world):
    world.findings = [Finding()]
    world.gpu_error = float("nan")
    result = command("audit", world.folder, "--set", "N=64", "--json")
    assert result.exit_code == 1
    whole = json.loads(result.stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert (whole["tool"], whole["schema"], whole["verb"], whole["ok"]) == ("bankshot", 1, "audit", False)
    (case,) = whole["cases"]
    assert (case["kernel"], case["dims"], case["grid"]) == ("twice", {"N": 64}, [2, 1, 1])
    assert case["counters"]["global_sectors"] == 24
    assert [(s["line"], s["column"], s["kind"], s["global_sectors"]) for s in case["sites"]] == [
        (5, 13, "load", 16),
        (6, 5, "store", 8),
    ]
    assert [(each["executions"], each["active_lanes"]) for each in case["sites"]] == [(2, 32), (2, 64)]
    assert all(each.keys() >= set(NAMES) for each in case["sites"])
    against_gpu = next(o for o in case["outputs"] if o["against"].startswith("wgpu"))
    assert (against_gpu["mismatches"], against_gpu["worst"][0]["expected"]) == (1, "nan")
    assert case["findings"][0]["code"] == "out-of-bounds"
    assert case["gpu"]["version"] == "Mesa 22.3.6"


# ---- diff and run ------------------------------------------------------------------------------------


def test_diff_names_the_adapter_and_every_bit(world):
    result = command("diff", world.folder)
    assert result.exit_code == 0
    assert world.devices == [("lavapipe", "none")]
    assert "GPU: llvmpipe (LLVM 15) (CPU, Vulkan), driver llvmpipe Mesa 22.3.6, wgpu 0.32.0" in result.stdout
    world.gpu_error = 0.5
    result = command("diff", world.folder, "--sweep")
    assert result.exit_code == 1
    assert "diff: 0 of 3 cases clean" in result.stdout
    whole = json.loads(command("diff", world.folder, "--json").stdout)
    assert whole["cases"][0]["outputs"][0]["mismatches"] == 1


def test_run_summarizes_and_saves(world):
    target = world.folder / "out.npy"
    result = command("run", world.folder, "--bind", "x=ones:f32:64", "--save", f"y={target}")
    assert result.exit_code == 0, result.output
    assert "y: float32[64], 2 to 2; 2, 2, 2, 2, 2, 2, …" in result.stdout
    assert "x: float32" not in result.stdout
    assert np.load(target).tolist() == [2.0] * 64
    whole = json.loads(command("run", world.folder, "--bind", "x=ones:f32:64", "--json").stdout)
    assert whole["cases"][0]["outputs"]["y"]["max"] == 2.0
    result = command("run", world.folder, "--save", "z=a.npy")
    assert (result.exit_code, "no output is named z; the outputs are y" in result.stderr) == (2, True)


# ---- failures ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["audit", "FOLDER/none.toml"], "none.toml: there is no such file or folder"),
        (["audit", "FOLDER/empty"], "holds no manifest"),
        (["audit", "FOLDER", "--set", "Q=1"], "no dimension is named Q; there are N"),
        (["audit", "FOLDER", "--set", "N"], "--set N: write NAME=VALUE"),
        (["audit", "FOLDER", "--set", "N=x"], "`x` is not a list of integers"),
        (["audit", "FOLDER", "--bind", "z=ones:f32:4"], "no binding is named z; there are x, y"),
        (["audit", "FOLDER", "--bind", "x=ones:f32:4"], "float32[4] does not fit the manifest's float32[32]"),
        (["audit", "FOLDER", "--override", "WG=big"], "`big` is neither a number nor true or false"),
        (["audit", "FOLDER", "--grid", "0,1,1"], "a number below 1"),
        (["audit", "FOLDER", "--listing", "some"], "Invalid value for '--listing'"),
        (["audit"], "Missing argument"),
        (["check", "FOLDER/none.wgsl"], "there is no such file"),
        (["frobnicate"], "No such command"),
    ],
)
def test_wrong_use_is_explained_and_exits_2(world, arguments, message):
    (world.folder / "empty").mkdir()
    result = command(*(a.replace("FOLDER", str(world.folder)) for a in arguments))
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize("error", [Crash("the machine met opcode 999"), ZeroDivisionError("division by zero")])
def test_our_own_fault_is_called_that(world, monkeypatch, error):
    def simulate(*args, **kwargs):
        raise error

    monkeypatch.setattr(bankshot.sim, "simulate", simulate)
    result = command("audit", world.folder)
    assert result.exit_code == 70
    assert "internal error" in result.stderr
    assert "bug in bankshot" in result.stderr
    assert "Traceback" not in result.output


# ---- for machines that check changes -----------------------------------------------------------------


def test_an_audit_annotates_where_github_listens(world, monkeypatch):
    world.findings = [Finding()]
    arguments = ("audit", world.folder, "--set", "N=64")
    assert "::warning" not in command(*arguments).stdout
    told = f"::warning file={world.folder}/twice.wgsl,title=bankshot%3A out-of-bounds::reads past the end of x\n"
    assert told in command(*arguments, "--format", "github").stdout
    summary = world.folder / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert told in command(*arguments).stdout
    assert "| **fails** | twice N=64 | 8 | 8 | 100.0% | 0 | llvmpipe (LLVM 15) |" in summary.read_text()
    for form in (["--json"], ["--format", "json"]):
        assert json.loads(command(*arguments, *form).stdout)["ok"] is False
    result = command("audit", world.folder / "no.toml")
    assert f"::error file={world.folder}/no.toml,title=bankshot%3A wrong-use::there is no such file" in result.stderr


def test_outputs_and_counters_have_their_places(world):
    world.gpu_error = 1.0
    (world.folder / "twice.toml").write_text(MANIFEST.replace('flops = "N"', 'flops = "N + 1"'))
    file = world.folder / "twice.sarif"
    command("audit", world.folder, "--set", "N=64", "--sarif", file)
    results = json.loads(file.read_text())["runs"][0]["results"]
    places = {
        r["ruleId"]: (
            r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].rpartition("/")[2],
            r["locations"][0]["physicalLocation"].get("region", {}).get("startLine"),
        )
        for r in results
    }
    (output,) = [r["message"]["text"] for r in results if r["ruleId"] == "output"]
    assert output.startswith("y against wgpu on llvmpipe (LLVM 15): 1 of 64 elements (1.56%), rule exact, up to ")
    assert re.search(r"; worst \[0\]: \S+ for \S+, written by workgroup \(0, 0, 0\), lane 0; likely .*$", output)
    line = 1 + MANIFEST.splitlines().index('flops = "N"')
    assert places == {"output": ("twice.wgsl", 4), "counter": ("twice.toml", line)}
