"""An access out of bounds that moves no output is a note in every format, and fails a kernel only if asked for."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main
from bankshot.oracle.reports.remarks import NOTE, WARNING, Entry, Remark, merged

# Invocations past the end of x load from it, all of them, or only those whose value is used.
SHADER = """\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let v = x[id.x];
    if id.x < arrayLength(&y) { y[id.x] = VALUE; }
}
"""
VALUES = {"masked": "select(0.0, v, id.x < arrayLength(&x))", "moved": "v + 1.0"}
MANIFEST = """\
[kernel]
source = "{name}.wgsl"
dispatch = [1]
[bind.x]
dtype = "f32"
shape = [60]
init = "normal"
[bind.y]
dtype = "f32"
shape = [64]
init = "zeros"
[expect]
unchecked = {{ y = "its findings matter" }}
barriers = 0
"""
LINE = 5


@pytest.fixture(params=VALUES)
def name(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    write_kernel(request.param)
    return request.param


def write_kernel(name):
    Path(f"{name}.wgsl").write_text(SHADER.replace("VALUE", VALUES[name]))
    Path(f"{name}.toml").write_text(MANIFEST.format(name=name))


def audit(name, *options):
    return CliRunner().invoke(main, ["audit", f"{name}.toml", "--no-gpu", *options])


def test_every_format_has_the_severity_that_the_replay_proved(name):
    severity, level, command = {"masked": ("info", "note", "notice"), "moved": ("warning",) * 3}[name]
    done = audit(name, "--format", "github", "--sarif", "log.sarif", "--html", "page.html")
    assert done.exit_code == (name == "moved"), done.output
    assert f"{name}.wgsl:{LINE}:13: {severity}[out-of-bounds]: load of x[60]" in done.stdout
    assert re.findall(r"^::(\w+) ", done.stdout, re.MULTILINE) == [command]
    (found,) = json.loads(Path("log.sarif").read_text())["runs"][0]["results"]
    assert (found["ruleId"], found["level"]) == ("out-of-bounds", level)
    assert f'<section class="finding {severity}"' in Path("page.html").read_text()


def test_the_json_document_has_the_severity_and_the_verdict(name):
    done = audit(name, "--json")
    (case,) = json.loads(done.stdout)["cases"]
    (found,) = case["findings"]
    expected = {"masked": ("info", "unseen", "clean"), "moved": ("warning", "harmful", "failed")}[name]
    assert (found["severity"], found["verdict"], case["outcome"]) == expected
    assert done.exit_code == (name == "moved")


@pytest.mark.parametrize("least", ["error", "warning", "info"])
def test_the_least_severity_that_fails_decides(name, least):
    fails = {"masked": {"info"}, "moved": {"info", "warning"}}[name]
    done = audit(name, "-q", "--fail-on", least)
    assert done.exit_code == (least in fails)
    assert ("1 failed" in done.stdout) == (least in fails)


def test_junit_counts_what_fails(name, pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    write_kernel(name)  # where pytester has changed to
    pytester.runpytest_inprocess(
        "-p", "bankshot.oracle.pytest_plugin.hooks", "-p", "no:cacheprovider", "-W", "ignore", "--junitxml=junit.xml",
        f"{name}.toml",
    )  # fmt: skip
    junit = Path("junit.xml").read_text()
    assert 'tests="1"' in junit
    assert f'failures="{int(name == "moved")}"' in junit


def test_of_one_place_the_worst_level_of_all_cases_is_kept():
    def case(level, weight):
        remark = Remark(level, "out-of-bounds", level, "k.wgsl", 3, weight=weight)
        return Entry("k", ok=False, remarks=[remark])

    (kept,) = merged([case(NOTE, 99), case(WARNING, 1), case(NOTE, 5)])
    assert (kept.level, kept.message, kept.cases) == (WARNING, "warning", 3)
