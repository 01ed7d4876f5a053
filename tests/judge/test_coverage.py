"""A case is clean only if something could have failed for each element of each output."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main
from bankshot.oracle.judge import coverage
from tests.scaling import PARAMS, SHADER, manifest

ROOT = Path(__file__).parents[2]
WRONG = SHADER.replace("params.factor * x[id.x]", "params.factor * x[id.x] + 7.0")
IDLE = SHADER.replace("id.x < params.n", "id.x < params.n && params.n == 0u")
ENDLESS = SHADER.replace(
    "    if id.x", "    for (var k = 0u; k < 2u; k *= 1u) { if x[0] == 1e9 { break; } }\n    if id.x"
)
INTEGERS = """\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<TYPE>;
@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3<u32>) { if x[id.x] < 1e30 { y[id.x] = VALUE; } }
"""
REFERENCE = """\
import numpy as np
from bankshot.oracle.references import Expected
def right(a): return 2.5 * a["x"].astype(np.float64)
def reference(arrays, dims):
    RETURN
"""
RIGHT = 'return {"y": right(arrays)}'


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Run a command on a kernel: its text, the last line of its reference, and lines for [expect]."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, text=WRONG, returns=RIGHT, expect="", y="zeros", kernel="", rest=PARAMS):
        (tmp_path / "scale.wgsl").write_text(text)
        named = f'reference = "refs.py:reference"\n{kernel}' if returns else kernel
        (tmp_path / "refs.py").write_text(REFERENCE.replace("RETURN", returns))
        (tmp_path / "scale.toml").write_text(manifest(rest, f"\n[expect]\n{expect}\n", kernel=named, n=64, y=y))
        verb, *more = arguments
        return CliRunner().invoke(main, [verb, "scale.toml", *more])

    return run


def last(done):
    return done.stdout.splitlines()[-1].partition("; took")[0]


BOUND = 'return {"y": Expected(right(arrays), np.full(64, VALUE))}'
SOME = 'return {"y": Expected(right(arrays), np.where(np.arange(64) < 63, np.inf, 1e9))}'
UNCHECKED = {  # the last line of a reference, lines for [expect], and what `y` holds at first
    "huge rtol": (RIGHT, 'y = { rule = "close", rtol = 1e300, atol = 0 }', "zeros"),
    "huge rtol, unwritten": (RIGHT, 'y = { rule = "close", rtol = 1e300, atol = 0 }', "unwritten"),
    "huge atol": (RIGHT, 'y = { rule = "close", rtol = 0, atol = 1e9 }', "normal"),
    "infinite rtol": (RIGHT, 'y = { rule = "close", rtol = inf, atol = 0 }', "zeros"),
    "a tolerance of the size of the results": (RIGHT, 'y = { rule = "close", rtol = 2, atol = 9 }', "zeros"),
    "ulp": (RIGHT, 'y = { rule = "ulp", max = 4294967296 }', "zeros"),
    "ulp, infinite": (RIGHT, 'y = { rule = "ulp", max = inf }', "zeros"),
    "nmse": (RIGHT, 'y = { rule = "nmse", max = 1e300 }', "zeros"),
    "nmse, infinite": (RIGHT, 'y = { rule = "nmse", max = inf }', "unwritten"),
    "nmse that accepts zeros": (RIGHT, 'y = { rule = "nmse", max = 999 }', "zeros"),
    "infinite bounds": (BOUND.replace("VALUE", "np.inf"), "", "zeros"),
    "huge bounds": (BOUND.replace("VALUE", "1e300"), "", "unwritten"),
    "63 of 64 elements without a bound": (SOME, "", "zeros"),
    "another output": ('return {"x2": right(arrays)}', "", "zeros"),
    "no reference": ("", "", "zeros"),
    "a rule, and no reference": ("", 'y = "exact"', "zeros"),
}


@pytest.mark.parametrize("name", UNCHECKED)
def test_a_rule_that_accepts_everything_checks_nothing(command, name):
    returns, expect, y = UNCHECKED[name]
    if name == "another output":
        rest = PARAMS + '\n[bind.x2]\ndtype = "f32"\nshape = ["N"]\ninit = "zeros"\n'
        two = WRONG.replace("@compute", "@group(0) @binding(3) var<storage, read_write> x2: array<f32>;\n@compute")
        text = two.replace("        y[id.x]", "        x2[id.x] = params.factor * x[id.x];\n        y[id.x]")
        done = command("audit", "--no-gpu", text=text, returns=returns, expect=expect, y=y, rest=rest)
    else:
        done = command("audit", "--no-gpu", returns=returns, expect=expect, y=y)
    assert done.exit_code == 1, done.output
    assert "unchecked" in last(done)
    assert "UNCHECKED" in done.stdout
    assert "audit: 0 of 1 cases clean; 1 unchecked" in last(done)


@pytest.mark.parametrize("value", ["np.nan", "-1.0"])
def test_bounds_that_are_no_bounds_are_errors(command, value):
    done = command("audit", "--no-gpu", returns=BOUND.replace("VALUE", value))
    assert done.exit_code == 2
    assert "for y[0], and bounds are 0 or more" in done.output


@pytest.mark.parametrize("shape", ["(8, 8)", "(32, 2)", "(63,)"])
def test_a_reference_of_another_shape_is_an_error(command, shape):
    done = command("audit", "--no-gpu", text=SHADER, returns=f'return {{"y": np.zeros({shape})}}')
    assert done.exit_code == 2
    assert "for y, which is [64]; reshape it there" in done.output


def test_a_nan_that_nothing_writes_checks_nothing(command):
    nan = 'return {"y": np.full(64, np.nan)}'
    close = 'y = "close"'
    done = command("audit", "--no-gpu", text=IDLE, returns=nan, expect=close, y="unwritten")
    assert (done.exit_code, "64 of 64 elements unchecked" in done.stdout) == (1, True)
    done = command("audit", "--no-gpu", text=IDLE, returns=nan, expect=close, y="zeros")
    assert done.exit_code == 1, done.output
    kept = 'return {"y": arrays["y"]}'
    done = command("audit", "--no-gpu", text=IDLE, returns=kept, expect=close, y="unwritten")
    assert (done.exit_code, "no output is expected to change" in done.stdout) == (1, True)
    writes = SHADER.replace("params.factor * x[id.x]", "bitcast<f32>(0x7fc00000u | params.n)")
    assert command("audit", "--no-gpu", text=writes, returns=kept, expect=close, y="unwritten").exit_code == 1


def test_a_rule_that_accepts_the_untouched_buffer_shows_no_change(command):
    """The change is 1e-5 of the contents."""
    text = SHADER.replace("y[id.x] = params.factor * x[id.x]", "y[id.x] += 1e-5 * params.factor * x[id.x]")
    returns = 'return {"y": arrays["y"].astype(np.float64) + 1e-5 * right(arrays)}'
    loose = 'y = { rule = "close", rtol = 1e-3, atol = 1e-3 }'
    for each in (text, IDLE):
        done = command("audit", "--no-gpu", text=each, returns=returns, expect=loose, y="normal")
        assert (done.exit_code, "1 unchecked" in last(done)) == (1, True), done.stdout
    tight = 'y = { rule = "close", rtol = 1e-6, atol = 1e-7 }'
    assert command("audit", "--no-gpu", text=text, returns=returns, expect=tight, y="normal").exit_code == 0


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("u32", "2u", "2.9"),
        ("i32", "0i", "-0.5"),
        ("u32", "0u", "np.inf"),
        ("u32", "0xffffffffu", "-1.0"),
        ("i32", "-1i", "4294967295.0"),
        ("u32", "0u", "4294967296.0"),
        ("u32", "0u", "np.nan"),
    ],
)
@pytest.mark.parametrize("rule", ["exact", "ulp", "close", "derived"])
def test_integers_are_compared_by_value(command, tmp_path, kind, value, expected, rule):
    text = INTEGERS.replace("TYPE", kind).replace("VALUE", value)
    (tmp_path / "scale.wgsl").write_text(text)
    (tmp_path / "refs.py").write_text(REFERENCE.replace("RETURN", f'return {{"y": np.full(64, {expected})}}'))
    toml = manifest(f'\n[expect]\ny = "{rule}"\n', kernel='reference = "refs.py:reference"', n=64, y="uniform")
    (tmp_path / "scale.toml").write_text(toml.replace('[bind.y]\ndtype = "f32"', f'[bind.y]\ndtype = "{kind}"'))
    done = CliRunner().invoke(main, ["audit", "scale.toml", "--no-gpu"])
    assert done.exit_code == 1, done.output
    assert "bit for bit" not in done.stdout
    assert "64 of 64 elements" in done.stdout
    (tmp_path / "refs.py").write_text(
        REFERENCE.replace("RETURN", f'return {{"y": np.full(64, {int(value.rstrip("ui"), 0)})}}')
    )
    done = CliRunner().invoke(main, ["audit", "scale.toml", "--no-gpu"])
    assert done.exit_code == 0, done.output
    assert "bit for bit" not in done.stdout


@pytest.mark.parametrize("verb", ["audit", "run"])
def test_a_run_that_was_stopped_is_never_clean(command, verb):
    reason = 'unchecked = { y = "scratch" }\nallow = ["endless-loop"]'
    budget = "budget = 1000\n"
    for expect in ('allow = ["endless-loop"]', reason):
        done = command(verb, text=ENDLESS, returns=RIGHT, expect=expect, kernel=budget)
        assert done.exit_code == 1, done.output
    if verb == "audit":
        assert "the run was stopped, so that it has no outputs to compare" in done.stdout


@pytest.mark.parametrize("device", ["lavapipe", "nonsense"])
def test_a_golden_of_another_device_checks_nothing(command, tmp_path, device):
    done = command("audit", "--no-gpu", "--update-golden", text=SHADER, expect="golden = true")
    assert done.exit_code == 0, done.output
    (golden,) = (tmp_path / "golden").glob("*.json")
    golden.write_text(golden.read_text().replace('"device": "nvidia"', f'"device": "{device}"'))
    done = command("audit", "--no-gpu", text=SHADER, expect="golden = true")
    assert done.exit_code == 1
    assert "UNCHECKED golden" in done.stdout
    hint = "use --device lavapipe" if device == "lavapipe" else "use --device with its file"
    assert hint in done.stdout


def test_a_golden_alone_checks_outputs(command):
    command("audit", "--no-gpu", "--update-golden", text=SHADER, returns="", expect="golden = true")
    done = command("audit", "--no-gpu", text=SHADER, returns="", expect="golden = true")
    assert (done.exit_code, "compared with golden (1)" in last(done)) == (0, True), done.stdout


def test_a_reason_in_the_manifest_makes_the_case_clean(command):
    expect = 'unchecked = { y = "scratch space, never read" }'
    done = command("audit", "--no-gpu", returns="", expect=expect)
    assert done.exit_code == 0, done.stdout
    assert (
        "64 of 64 elements unchecked (nothing compared), as the manifest says: scratch space, never read" in done.stdout
    )
    assert "1 outputs unchecked, with a reason in the manifest" in last(done)
    done = command("audit", "--no-gpu", text=SHADER, expect=expect)
    assert "y is checked in full; [expect] unchecked need not name it" in done.stdout


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ('unchecked = { z = "scratch" }', "z"),
        ('unchecked = { y = "" }', "`unchecked` needs the reason why nothing checks y"),
        ('unchecked = { y = " " }', "`unchecked` needs the reason why nothing checks y"),
        ("unchecked = { y = true }", "`y` must be a string"),
        ("unchecked = true", "unchecked"),
    ],
)
def test_reasons_are_words_for_outputs(command, key, message):
    done = command("audit", "--no-gpu", returns="", expect=key)
    assert done.exit_code == 2
    assert message in done.output


def test_a_sample_is_unchecked(command):
    done = command("audit", "--no-gpu", "--sample", "1")
    assert (done.exit_code, "1 unchecked" in last(done)) == (1, True), done.stdout


def test_a_bare_shader_may_end_clean_and_says_that_nothing_was_compared(command):
    command("audit", "--no-gpu")
    given = ["--bind", "x=normal:f32:64", "--bind", "y=zeros:f32:64", "--bind", "params=u32:64,0"]
    with open("bare.wgsl", "w") as file:
        file.write(WRONG)
    done = CliRunner().invoke(main, ["audit", "bare.wgsl", "--no-gpu", *given])
    assert done.exit_code == 0, done.output
    assert last(done) == "audit: 1 of 1 cases clean; nothing compared; 1 not compared with wgpu: not asked for"


def test_a_run_says_that_it_compares_nothing(command):
    done = command("run")
    assert (done.exit_code, last(done)) == (0, "run: 1 of 1 cases without findings; nothing compared")
    (case,) = json.loads(command("run", "--json").stdout)["cases"]
    assert (case["outcome"], case["compared"]) == ("unchecked", [])


def test_buffers_that_are_only_read_are_no_outputs(command):
    text = SHADER.replace("read> x", "read_write> x").replace("if id.x", "if id.x < arrayLength(&x) && id.x")
    done = command("audit", "--no-gpu", text=text)
    assert done.exit_code == 0, done.output
    through = text.replace("y[id.x] =", "let p = &x[0]; *p = x[0]; y[id.x] =")
    assert "x: 64 of 64 elements unchecked" in command("audit", "--no-gpu", text=through).stdout


# ---- other commands and reports ----------------------------------------------------------------------


def test_a_sweep_is_unchecked_where_nothing_is_compared(command):
    done = command("sweep", "--out", "t.csv", "--jobs", "1", returns="")
    assert done.exit_code == 1, done.output
    assert "sweep: 0 of 1 cases clean, 1 unchecked; written to t.csv; nothing compared" in done.stdout


@pytest.mark.usefixtures("adapter")
def test_diff_compares_free_outputs_of_the_simulator_with_the_reference(command, monkeypatch):
    """The simulator alone is wrong, by 1e-3."""
    from bankshot.oracle.judge import diff

    true = diff.simulate
    expect = 'free = ["y"]\ny = { rule = "close", rtol = 1e-5, atol = 1e-6 }'
    assert command("diff", text=SHADER, expect=expect).exit_code == 0

    def wrong(*arguments):
        run = true(*arguments)
        run.outputs["y"] *= 1.001
        return run

    monkeypatch.setattr(diff, "simulate", wrong)
    done = command("diff", text=SHADER, expect=expect)
    assert done.exit_code == 1, done.output
    assert "DIFFERS  y against reference refs.py:reference: " in done.stdout


@pytest.mark.usefixtures("adapter")
def test_diff_refuses_a_reference_without_a_free_output(command):
    done = command("diff", text=SHADER, expect='free = ["y"]', returns="return NotImplemented")
    assert done.exit_code == 2, done.output
    assert "`free` names y, which reference refs.py:reference lacks" in done.output


def test_a_manifest_without_a_reference_is_said(command):
    assert "no reference to compare with: the manifest names none" in command("audit", "--no-gpu", returns="").output


def test_an_annotation_is_at_the_line_that_wrote_the_wrong_element(command):
    """Line 8 stores; the entry point begins on line 6."""
    done = command("audit", "--no-gpu", "--format", "github", text=SHADER.replace("params.factor *", "3.5 *"))
    assert "::error file=scale.wgsl,line=8," in done.output


def test_each_report_says_unchecked(command, tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    files = ["--html", "a.html", "--sarif", "a.sarif", "--format", "github"]
    text = command("audit", "--no-gpu", *files, returns="").stdout
    assert "::error file=" in text
    assert "bankshot%3A unchecked::" in text
    assert "| **unchecked** | scale N=64 |" in (tmp_path / "summary.md").read_text()
    (run,) = json.loads((tmp_path / "a.sarif").read_text())["runs"]
    assert [(result["ruleId"], result["level"]) for result in run["results"]] == [("unchecked", "error")]
    assert run["properties"]["cases"][0]["outcome"] == "unchecked"
    page = (tmp_path / "a.html").read_text()
    assert '<span class="v warn">unchecked</span>' in page
    assert "audit: 0 of 1 cases clean; 1 unchecked" in page
    whole = json.loads(command("audit", "--no-gpu", "--json", returns="").stdout)
    assert (whole["ok"], whole["cases"][0]["outcome"]) == (False, "unchecked")
    assert whole["cases"][0]["compared"] == [
        {"output": "y", "elements": 64, "truths": {}, "unchecked": 64, "reason": None}
    ]
    assert whole["summary"].startswith("audit: 0 of 1 cases clean; 1 unchecked; nothing compared")
    assert "UNCHECKED scale" in command("audit", "--no-gpu", "--format", "table", returns="").stdout


def test_pytest_fails_for_what_is_unchecked(command, tmp_path):
    command("audit", "--no-gpu", returns="")
    junit = tmp_path / "k.xml"
    words = ["-p", "bankshot.oracle.pytest_plugin.hooks", "-p", "no:cacheprovider", f"--junit-xml={junit}"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "BANKSHOT_REQUIRE_GPU": "0"}
    whole = [sys.executable, "-m", "pytest", *words, str(tmp_path / "scale.toml")]
    done = subprocess.run(whole, capture_output=True, text=True, env=environment, cwd=ROOT)
    assert done.returncode == 1
    assert "y: 64 of 64 elements unchecked (nothing compared)" in done.stdout
    assert "bankshot: 0 of 1 cases clean; 1 unchecked; nothing compared" in done.stdout
    assert '<property name="bankshot.outcome" value="unchecked"' in junit.read_text()


LOST = SHADER.replace("y[id.x] = params.factor * x[id.x];", "")


@pytest.mark.parametrize(("expect", "y"), [("", "zeros"), ("", "unwritten"), ('y = "exact"', "zeros")])
@pytest.mark.parametrize("verb", ["audit", "diff"])
def test_a_kernel_that_lost_its_only_store_is_not_clean(command, verb, expect, y):
    """Nothing in its text is an output, but the manifest still describes one, or there is nothing to judge."""
    assert LOST != SHADER
    options = ["--no-gpu"] if verb == "audit" else []
    done = command(verb, *options, text=LOST, returns="", expect=expect, y=y)
    assert done.exit_code == 1
    assert "unchecked" in last(done)


@pytest.mark.parametrize("y", ["zeros", "unwritten", "normal"])
@pytest.mark.parametrize(
    "text", [IDLE, LOST.replace("id.x < params.n", "id.x < arrayLength(&y)")], ids=["idle", "lost"]
)
def test_a_reference_that_returns_the_untouched_buffer_checks_nothing(command, text, y):
    done = command("audit", "--no-gpu", text=text, returns='return {"y": arrays["y"]}', y=y)
    assert done.exit_code == 1
    assert "unchecked" in last(done)


def test_a_free_output_that_lost_its_store_and_has_no_reference_is_unchecked(command):
    """Another output is right, and `free` alone says that this one is an output."""
    declared = "@group(0) @binding(3) var<storage, read_write> z: array<f32>;\n@compute"
    text = LOST.replace("@compute", declared).replace("< params.n {", "< params.n { z[id.x] = params.factor * x[id.x];")
    rest = PARAMS + '\n[bind.z]\ndtype = "f32"\nshape = ["N"]\ninit = "zeros"\n'
    returns = 'return {"z": right(arrays)}'
    assert command("audit", "--no-gpu", text=text, returns=returns, y="normal", rest=rest).exit_code == 0
    done = command("audit", "--no-gpu", text=text, returns=returns, y="normal", rest=rest, expect='free = ["y"]')
    assert done.exit_code == 1
    assert "y: 64 of 64 elements unchecked" in done.stdout


# What truths leave unchecked, by name; the elements that none checks, and how many each checks.
UNITED = {
    "none": ([], 4, {}),
    "all": ([("reference", None)], 0, {"reference": 4}),
    "some": ([("reference", [0, 1, 1, 0])], 2, {"reference": 2}),
    "others": ([("reference", [0, 1, 1, 0]), ("wgpu", [1, 1, 0, 0])], 1, {"reference": 2, "wgpu": 2}),
    "the rest": ([("reference", [1, 1, 0, 0]), ("wgpu", [0, 0, 1, 1])], 0, {"reference": 2, "wgpu": 2}),
    "all, and some": ([("reference", None), ("wgpu", [1, 1, 1, 0])], 0, {"reference": 4, "wgpu": 1}),
    "some, and all": ([("wgpu", [1, 1, 1, 0]), ("reference", None)], 0, {"reference": 4, "wgpu": 1}),
    "the same truth twice": ([("wgpu", [1, 1, 1, 0]), ("wgpu", [1, 1, 0, 0])], 2, {"wgpu": 2}),
    "the same truth, worse": ([("wgpu", [1, 1, 0, 0]), ("wgpu", [1, 1, 1, 0])], 2, {"wgpu": 2}),
}


@pytest.mark.parametrize("name", UNITED)
def test_an_element_is_unchecked_if_no_truth_checks_it(name):
    added, unchecked, truths = UNITED[name]
    ledger = coverage._Ledger(4)
    for truth, left in added:
        ledger.add(truth, None if left is None else np.array(left, bool).reshape(2, 2))
    assert (ledger.unchecked, ledger.truths) == (unchecked, truths)
