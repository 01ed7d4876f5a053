"""`--schedule`, `--schedules`, `--seed` and `--seconds`: what `run` and `audit` print, and as JSON."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main
from bankshot.sim.run.schedule_sweep import DRAWN, FIXED

TEXT = """
@group(0) @binding(0) var<storage, read_write> n: atomic<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1) fn main(@builtin(workgroup_id) w: vec3u) {
    y[atomicAdd(&n, 1u)] = w.x;
}
"""
RIGHT = TEXT.replace("y[atomicAdd(&n, 1u)] = w.x;", "y[w.x] = atomicMin(&n, 0u);")
MANIFEST = """
[kernel]
source = "append.wgsl"
dims = { W = 4 }
dispatch = ["W"]
[bind]
n = { dtype = "u32", shape = [1], init = "zeros" }
y = { dtype = "u32", shape = ["W"], init = "zeros" }
[[sweep]]
W = [4, 8]
[expect.unchecked]
n = "a test"
y = "a test"
"""
BINDINGS = ("--bind", "n=u32:0", "--bind", "y=zeros:u32:8")


@pytest.fixture
def path(tmp_path):
    (tmp_path / "append.wgsl").write_text(TEXT)
    return tmp_path / "append.wgsl"


def bankshot(command, *arguments):
    return CliRunner().invoke(main, [command, *map(str, arguments)])


def test_outputs_are_those_of_the_schedule(path):
    plain = bankshot("run", path, "--grid", 4, *BINDINGS)
    other = bankshot("run", path, "--grid", 4, *BINDINGS, "--schedule", "reversed")
    assert "y: uint32[8], 0 to 3; 0, 1, 2, 3, 0, 0, …" in plain.stdout
    assert "simulated as nvidia, outputs under reversed" in other.stdout
    assert "y: uint32[8], 0 to 3; 3, 2, 1, 0, 0, 0, …" in other.stdout


def test_an_unknown_schedule_is_an_error(path):
    result = bankshot("run", path, "--grid", 4, *BINDINGS, "--schedule", "sideways")
    assert result.exit_code == 2
    assert "schedule cannot be 'sideways'; it is one of lockstep, mirrored" in result.stderr


def test_one_schedule_is_none_to_compare(path):
    result = bankshot("run", path, "--grid", 4, *BINDINGS, "--schedules", 1)
    assert result.exit_code == 2
    assert "1 is not in the range 2<=x" in result.stderr


@pytest.mark.parametrize("command", [("run",), ("audit", "--no-gpu")], ids=["run", "audit"])
def test_a_line_says_how_many_agree_and_a_note_which_command_shows_it(command, path):
    result = bankshot(*command, path, "--grid", 4, *BINDINGS, "--schedules", 10, "--seed", 5)
    assert result.exit_code == 1
    assert re.search(
        r"\d of 10 schedules agree; \d with other outputs, the first is mirrored \(seed 5, \d+\.\d s\)", result.stdout
    )
    assert result.stdout.count("warning[atomic-order]") == 1
    (shown,) = re.findall(r"note: to see it: bankshot (.*)", result.stdout)
    words = shlex.split(shown)
    assert words[1:] == [str(path), *BINDINGS, "--grid", "2", "--schedule", "mirrored"]
    assert "y: uint32[8], 0 to 1; 1, 0, 0, 0, 0, 0, …" in bankshot(*words).stdout


@pytest.mark.parametrize("command", [("run",), ("audit", "--no-gpu")], ids=["run", "audit"])
def test_json_has_what_the_schedules_showed(command, path):
    result = bankshot(*command, path, "--grid", 4, *BINDINGS, "--schedules", 10, "--seed", 5, "--json")
    (case,) = json.loads(result.stdout)["cases"]
    seen = case["schedules"]
    assert (seen["asked"], seen["seen"], seen["seed"], seen["endless"]) == (10, 10, 5, [])
    assert seen["differing"][:2] == ["mirrored", "reversed"]
    assert seen["text"].startswith(f"{10 - len(seen['differing'])} of 10 schedules agree")
    assert [f["code"] for f in case["findings"]] == ["atomic-order"]
    (plain,) = json.loads(bankshot(*command, path, "--grid", 4, *BINDINGS, "--json").stdout)["cases"]
    assert plain["schedules"] is None


def test_all_agree_on_a_right_kernel(path):
    path.write_text(RIGHT)
    result = bankshot("run", path, "--grid", 4, *BINDINGS, "--schedules", 6)
    assert result.exit_code == 0
    assert "6 of 6 schedules agree (seed 0, " in result.stdout


def test_time_ends_it(path):
    path.write_text(RIGHT)
    result = bankshot("run", path, "--grid", 4, *BINDINGS, "--schedules", 1000, "--seconds", 1e-9)
    assert "stopped after 1 of 1,000 schedules; " in result.stdout


@pytest.mark.parametrize("option", ["--seed", "--seconds"])
def test_options_that_need_schedules_say_so(option, path):
    result = bankshot("run", path, "--grid", 4, *BINDINGS, option, 1)
    assert result.exit_code == 2
    assert f"{option} belongs to --schedules N, which is not given" in result.stderr


def test_the_command_repeats_sizes_and_settings(path):
    manifest = path.with_suffix(".toml")
    manifest.write_text(MANIFEST)
    result = bankshot("audit", "--no-gpu", manifest, "--device", "lavapipe", "--schedules", 3, "-D", "A=1", "-v")
    shown = [shlex.split(each) for each in re.findall(r"note: to see it: bankshot (.*)", result.stdout)]
    end = ["--device", "lavapipe", "-D", "A=1", "--grid", "2", "--schedule", "mirrored"]
    assert shown == [["run", str(manifest), *end], ["run", str(manifest), "--set", "W=8", *end]]
    assert bankshot(*shown[1]).exit_code == 1


@pytest.mark.parametrize("command", [("run",), ("audit", "--no-gpu", "-v")], ids=["run", "audit"])
def test_a_manifest_holds_a_kernel_to_many_schedules(command, path):
    manifest = path.with_suffix(".toml")

    def printed(keys, *options):
        manifest.write_text(MANIFEST.replace("[bind]", f"{keys}\n[bind]"))
        return bankshot(*command, manifest, *options).stdout

    assert "schedules agree" not in printed("")
    assert "of 7 schedules agree; " in printed("schedules = 7")
    assert "(seed 5, " in printed("schedules = 7\nseed = 5")
    assert "of 3 schedules agree; " in printed("schedules = 7", "--schedules", 3)


@pytest.mark.parametrize(("keys", "message"), [
    ("schedules = 1", "append.toml:6: `schedules` must be an integer of at least 2, not 1"),
    ("schedules = 9999999", "append.toml:6: `schedules` is 9999999, and the largest integer is 1,048,576"),
    ("seed = 3", "append.toml:6: `seed` belongs to `schedules`, which is not given"),
    ("schedules = 4\nseed = -3", "append.toml:7: `seed` must be a non-negative integer, not -3"),
])  # fmt: skip
def test_wrong_keys_of_a_manifest(keys, message, path):
    manifest = path.with_suffix(".toml")
    manifest.write_text(MANIFEST.replace("[bind]", f"{keys}\n[bind]"))
    result = bankshot("run", manifest)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize("command", [("run",), ("audit", "--no-gpu")], ids=["run", "audit"])
def test_thorough_runs_make_all_reruns(command, tmp_path):
    text = """
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read_write> z: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) g: vec3u) {
    var v = 0u;
    for (var k = 0u; k < 3000u; k++) { v = v * 3u + k; }
    var old = 0u;
    if g.x < 64u { old = y[0]; }
    if g.x == 70u { y[0] = 1u; }
    z[g.x] = v + min(old, 0u);
}
"""
    (tmp_path / "long.wgsl").write_text(text)
    arguments = (tmp_path / "long.wgsl", "--grid", 16, "--bind", "y=zeros:u32:1", "--bind", "z=zeros:u32:1024")
    assert "of 4 orders (2 more take too long without --thorough)" in bankshot(*command, *arguments).stdout
    assert "in any of 6 orders" in bankshot(*command, *arguments, "--thorough").stdout


def test_an_audit_finds_orders_that_only_weak_memory_has(tmp_path):
    text = """
@group(0) @binding(0) var<storage, read_write> m: array<atomic<u32>, 64>;
@group(0) @binding(1) var<storage, read_write> bad: array<u32, 1>;
@compute @workgroup_size(64) fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) i: u32) {
    if i > 0u { return; }
    if w.x == 0u { atomicStore(&m[0], 42u); atomicStore(&m[32], 1u); }
    else if atomicLoad(&m[32]) == 1u {
        if atomicLoad(&m[0]) != 42u { bad[0] = 1u; }  // %s
    }
}
"""
    (tmp_path / "guarded.wgsl").write_text(text % "")
    arguments = ("--no-gpu", tmp_path / "guarded.wgsl", "--grid", 300)
    result = bankshot("audit", *arguments)
    assert result.exit_code == 1
    assert "guarded.wgsl:8:12: warning[weak-order]: workgroup (1, 0, 0) may read 0 from m[0] after" in result.stdout
    report = tmp_path / "log.sarif"
    (case,) = json.loads(bankshot("audit", *arguments, "--json", "--sarif", report).stdout)["cases"]
    assert [(f["code"], f["verdict"]) for f in case["findings"]] == [("weak-order", "harmful")]
    assert '"weak-order"' in report.read_text()
    (tmp_path / "guarded.wgsl").write_text(text % "bankshot: allow(weak-order) because it is a test")
    assert "allowed by a comment: weak-order" in bankshot("audit", *arguments).stdout


DOCS = (Path(__file__).parents[2] / "docs" / "explore.md").read_text("utf-8").partition("## Large kernels")[2]


def test_the_page_shows_what_the_command_prints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text, expected = (re.findall(rf"```{kind}\n(.*?)```", DOCS, re.DOTALL)[0] for kind in ("wgsl", "text"))
    Path("list.wgsl").write_text(text)
    (command,) = re.findall(r"    bankshot (.*)", DOCS)
    printed = bankshot(*shlex.split(command)).stdout
    same = [re.sub(r"\d of 24|\d+ with|\d+\.\d s", "N", each) for each in (expected, printed)]
    assert same[0].strip() in same[1]


def test_the_page_lists_the_schedules_that_are_tried():
    listed = set(re.findall(r"^\| `([a-z-]+)", DOCS, re.MULTILINE))
    assert listed == {name.partition("(")[0] for name in (*FIXED, *DRAWN)}
