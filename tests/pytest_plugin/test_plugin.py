"""The pytest plugin on small projects made for it: pytest within pytest."""

import json
import re
import xml.etree.ElementTree as ET

import pytest
from click.testing import CliRunner

import bankshot
import bankshot.oracle.cli.main
import bankshot.oracle.pytest_plugin.fixture
import bankshot.oracle.pytest_plugin.hooks
from bankshot.oracle import wgpu_client
from bankshot.oracle.errors import NoAdapter
from tests.pytest_plugin.small_kernel import CONFLICTS, PLAIN, REASON, SHADER, TEST

# ---- manifests ---------------------------------------------------------------------------------------


def test_a_manifest_is_a_test_for_each_kernel_and_quick_shape(project):
    (project.path / "k.toml").write_text(PLAIN)
    (project.path / "other.toml").write_text("[tool.kernel]\nx = 1\n# [kernel]\n")
    result = project("-v")
    result.assert_outcomes(passed=2, deselected=1)
    result.stdout.fnmatch_lines(["k.toml::k[[]N=32] PASSED*", "k.toml::k[[]N=64] PASSED*"])
    project("-v", "--bankshot-sweep").assert_outcomes(passed=3)
    project("k.toml::k[N=64]").assert_outcomes(passed=1)


def test_each_variant_is_a_kernel(project):
    variants = '[[variant]]\nkernel.name = "one"\n[[variant]]\nkernel.name = "two"\nexpect.bank_conflicts = 1\n'
    (project.path / "k.toml").write_text(PLAIN + variants)
    result = project("-v")
    result.assert_outcomes(passed=2, failed=2, deselected=2)
    result.stdout.fnmatch_lines(["k.toml::two[[]N=32] FAILED*", "*DIFFERS  bank_conflicts  0, the manifest expects 1"])


def test_a_failure_is_the_report(project):
    (project.path / "k.toml").write_text(PLAIN)
    project.edit("k.wgsl", *CONFLICTS)
    result = project("k.toml::k[N=32]")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([
        "*DIFFERS  bank_conflicts  62, the manifest expects 0",
        "*k.wgsl:5  store of t, 50% of the excess wavefronts: 32 wavefronts per request, where 1 would do",
    ])  # fmt: skip
    assert "Traceback" not in result.stdout.str()
    assert "def runtest" not in result.stdout.str()


@pytest.mark.parametrize(
    ("file", "edit", "words"),
    [
        ("k.toml", ("dispatch", "dispatsch"), "*k.toml*[[]kernel] lacks `dispatch`*"),
        ("k.wgsl", ("f32(i)", "f32(j)"), "*k.wgsl:5:22: error: *j*"),
        ("k.toml", ('"zeros"', '"zeros"\n[bind.z]\ndtype = "u32"\nvalues = [1]'), "*no *z*"),
        ("k.toml", ("golden = true", 'golden = "outpts"'), "*k.toml:15: `golden` must be true, false or 'outputs'*"),
    ],
    ids=["manifest", "shader", "binding", "golden"],
)
def test_wrong_use_is_told_without_a_traceback(project, file, edit, words):
    project.edit(file, *edit)
    result = project()
    assert result.ret != 0
    result.stdout.fnmatch_lines([words])
    assert "Traceback" not in result.stdout.str()


# ---- goldens -----------------------------------------------------------------------------------------


def test_what_is_broken_fails_alone(project):
    (project.path / "k.toml").write_text(PLAIN)
    (project.path / "manifest.toml").write_text("[kernel]\nsource = 3\n")
    (project.path / "shader.toml").write_text(PLAIN.replace("k.wgsl", "shader.wgsl"))
    (project.path / "shader.wgsl").write_text(SHADER.replace("workgroupBarrier()", "workgroupBarrier("))
    done = project("--bankshot-sarif", "a.sarif")
    done.assert_outcomes(passed=2, failed=3)
    done.stdout.fnmatch_lines(["*manifest.toml:2: `source` must be a string, not 3"])
    done.stdout.fnmatch_lines(["*shader.wgsl:6:22: error: expected*"])
    assert "Traceback" not in done.stdout.str()
    locations = [r["locations"][0] for r in json.loads((project.path / "a.sarif").read_text())["runs"][0]["results"]]
    lines = {each["physicalLocation"]["region"]["startLine"] for each in locations}
    assert lines == {2, 6}


def test_a_golden_is_missing_made_held_and_broken(project):
    result = project()
    result.assert_outcomes(failed=2, deselected=1)
    result.stdout.fnmatch_lines(["*golden k-N32.json: there is none", "*make it with pytest --bankshot-update, *"])
    assert not project.goldens.exists()
    project("--bankshot-update").assert_outcomes(passed=2, deselected=1)
    assert sorted(file.name for file in project.goldens.iterdir()) == ["k-N32.json", "k-N64.json"]
    project().assert_outcomes(passed=3, deselected=1)  # one of them: that no golden is left over
    project.edit("k.wgsl", "    t[i", "    // what was stored is read back\n\n    t[i")
    project().assert_outcomes(passed=3, deselected=1)
    project.edit("k.wgsl", *CONFLICTS)
    result = project()
    result.assert_outcomes(failed=2, passed=1, deselected=1)
    result.stdout.fnmatch_lines([
        "*k.wgsl:7: 1 -> 32 wavefronts per request, +0 barriers",
        "*k.wgsl:9: 1 -> 32 wavefronts per request, +0 barriers",
        "*in all: 4,224 -> 4,096 bytes of workgroup memory",
        "*if this is what you want, pytest --bankshot-update *",
    ])  # fmt: skip
    project("--bankshot-update").assert_outcomes(passed=3, deselected=1)
    project().assert_outcomes(passed=3, deselected=1)


def test_a_golden_records_what_made_it(project):
    project("--bankshot-update")
    data = json.loads((project.goldens / "k-N32.json").read_text())
    assert (data["simulator"], data["device"], data["adapter"]) == (bankshot.__version__, "nvidia", None)
    assert (data["owner"], data["title"]) == ("k.toml", "k N=32")
    assert data["counters"]["barriers"] == 1
    assert [(row["line"], row["text"]) for row in data["lines"]] == [
        (5, "t[i * 33u] = f32(i);"),
        (6, "workgroupBarrier();"),
        (7, "y[i] = 2.0 * t[(31u - i) * 33u];"),
    ]


def test_no_golden_is_written_of_a_run_that_is_wrong(project):
    project.edit("k.toml", "golden = true", "golden = true\nbank_conflicts = 1")
    project("--bankshot-update").assert_outcomes(failed=2, deselected=1)
    assert not project.goldens.exists()


def test_nothing_is_written_in_ci(project, monkeypatch):
    monkeypatch.setenv("CI", "true")
    result = project("--bankshot-update")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --bankshot-update: CI is set, and goldens are never written there*"])
    assert not project.goldens.exists()


def test_a_golden_that_nothing_uses(project):
    project("--bankshot-update")
    project.edit("k.toml", "N = [32, 64]", "N = 32")
    result = project()
    result.assert_outcomes(failed=1, passed=1, deselected=1)
    result.stdout.fnmatch_lines([
        "unused goldens:", "*golden?k-N64.json", "pytest --bankshot-update removes them",
    ])  # fmt: skip
    project("k.toml::k[N=32]").assert_outcomes(passed=1)
    project("--bankshot-update").assert_outcomes(passed=2, deselected=1)
    assert [file.name for file in project.goldens.iterdir()] == ["k-N32.json"]


def test_a_golden_of_another_device_fails(project):
    project("--bankshot-update")
    result = project("--bankshot-device", "lavapipe")
    result.assert_outcomes(failed=2, passed=1, deselected=1)
    result.stdout.fnmatch_lines(["*it was made for device nvidia, and this run is charged as lavapipe*"])
    (project.path / "pytest.ini").write_text("[pytest]\nbankshot_device = lavapipe\n")
    project("--bankshot-update").assert_outcomes(passed=3, deselected=1)
    project().assert_outcomes(passed=3, deselected=1)


def test_outputs_are_kept_where_they_are_asked_for(project):
    project.edit("k.toml", "golden = true", 'golden = "outputs"')
    project("--bankshot-update")
    assert (project.goldens / "k-N32.npz").exists()
    project.edit("k.wgsl", "2.0", "4.0")
    result = project("k.toml::k[N=32]")
    result.stdout.fnmatch_lines(
        ["*y: 31 of 32 elements differ from the golden*", " *[[]0] *124 *62 *0x42f80000 *0x42780000 *"]
    )


def test_the_command_line_holds_them_too(project, monkeypatch):
    def audit(*arguments):
        return CliRunner().invoke(bankshot.oracle.cli.main.main, ["audit", "k.toml", "--no-gpu", *arguments])

    assert "golden k-N32.json: there is none" in audit().stdout
    assert audit("--update-golden").exit_code == 0
    assert audit().exit_code == 0
    project("k.toml").assert_outcomes(passed=3, deselected=1)
    project.edit("k.wgsl", *CONFLICTS)
    result = audit()
    assert (result.exit_code, "k.wgsl:5: 1 -> 32 wavefronts per request, +0 barriers" in result.stdout) == (1, True)
    assert json.loads(audit("--json").stdout)["cases"][0]["golden"]["changes"][0]["line"] == 5
    assert "golden" not in audit("--bind", "y=ones:f32:32", "--set", "N=32").stdout  # other data than the manifest's
    monkeypatch.setenv("CI", "1")
    result = audit("--update-golden")
    assert (result.exit_code, "CI is set" in result.stderr) == (2, True)


# ---- the fixture -------------------------------------------------------------------------------------


def test_budgets_and_goldens_inside_tests(project):
    (project.path / "test_k.py").write_text(TEST)
    result = project("test_k.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["golden test_k-test_run.json: there is none"])
    project("test_k.py", "--bankshot-update").assert_outcomes(passed=1)
    assert sorted(file.name for file in project.goldens.iterdir()) == [
        "test_k-test_run-3.json", "test_k-test_run-again.json", "test_k-test_run-again.npz", "test_k-test_run.json",
    ]  # fmt: skip
    project("test_k.py").assert_outcomes(passed=2)
    project.edit("k.wgsl", "i * 33u] = f32(i)", "33u * i] = f32(i + 1u)")
    result = project("test_k.py")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["*y: differs from the golden"])


def test_a_budget_that_is_spent_names_the_line(project):
    (project.path / "test_k.py").write_text(TEST)
    project.edit("k.wgsl", *CONFLICTS)
    result = project("test_k.py")
    result.assert_outcomes(failed=1)
    words = "*<run of k.wgsl: most excess at k.wgsl:5, 32 wavefronts per request>.excess_wavefronts*"
    result.stdout.fnmatch_lines(["*assert 62 == 0*", words])


def test_a_golden_of_a_test_that_is_gone(project):
    (project.path / "test_k.py").write_text(TEST + TEST.replace("test_run", "test_more"))
    project("test_k.py", "--bankshot-update").assert_outcomes(passed=2)
    (project.path / "test_k.py").write_text(TEST)
    result = project("test_k.py")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["unused goldens:", "*test_k-test_more.json"])
    project("test_k.py::test_run").assert_outcomes(passed=1)
    project("test_k.py", "-k", "run").assert_outcomes(passed=1, deselected=1)
    project("test_k.py", "--bankshot-update").assert_outcomes(passed=2)
    assert not list(project.goldens.glob("*more*"))


def test_texts_paths_and_what_is_missing(project):
    (project.path / "test_k.py").write_text(f"""
import pytest
from bankshot.oracle.errors import UsageError
from pathlib import Path
from bankshot import WgslError

def test_run(bankshot):
    data = {{"y": bytes(128)}}
    for shader in (Path("k.wgsl"), {SHADER!r}):
        assert bankshot.run(shader, grid=1, bindings=data).excess_wavefronts == 0
    with pytest.raises(UsageError, match="no.wgsl: no such file"):
        bankshot.run("no.wgsl", grid=1)
    with pytest.raises(WgslError):
        bankshot.run("fn main() {{", grid=1)
    assert bankshot.run("k.wgsl", grid=1, bindings=data, probes="none").counters["flops"] == 0
""")
    project("test_k.py").assert_outcomes(passed=1)


# ---- what is reported --------------------------------------------------------------------------------


def test_outputs_are_compared_under_many_schedules(project):
    count = "@group(0) @binding(1) var<storage, read_write> n: atomic<u32>;\n"
    (project.path / "k.wgsl").write_text(count + SHADER.replace("y[i] =", "y[atomicAdd(&n, 1u)] ="))
    numbers = '[bind.n]\ndtype = "u32"\nshape = [1]\ninit = "zeros"\n[[sweep]]'
    (project.path / "k.toml").write_text(PLAIN.replace("[[sweep]]", numbers, 1))
    text = project("--bankshot-schedules", "6").stdout.str()
    assert "warning[atomic-order]" in text
    assert re.search(r"to see it: bankshot run \S*k.toml --schedule .mirrored.", text)


def test_github_is_told_beside_the_source_and_in_a_summary(project, monkeypatch):
    project("--bankshot-update")
    project.edit("k.wgsl", *CONFLICTS)
    summary = project.path / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.path.parent))
    result = project()
    folder = project.path.name
    lines = [line for line in result.outlines if line.startswith("::")]
    assert lines[0] == (
        f"::error file={folder}/k.wgsl,line=5,title=bankshot%3A golden::"
        "k.wgsl:5: 1 -> 32 wavefronts per request, +0 barriers (in 2 cases)"
    )
    assert [line.partition(",line=")[2][:1] for line in lines] == ["5", "7", ""]
    text = summary.read_text()
    assert "### bankshot: 2 of 2 cases failed" in text
    assert re.search(r"\| \*\*fails\*\* \| k N=32 \| 62 \| 0 \| 100.0% \| 1 \| not compared \|", text)
    assert "- `golden` k.wgsl:5: 1 -> 32 wavefronts per request" in text


def test_findings_inside_tests_are_told_where_these_fail(project, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    (project.path / "k.wgsl").write_text(SHADER.replace("y[i] =", "y[i + 32u] ="))
    (project.path / "test_k.py").write_text(TEST)
    lines = [line for line in project("test_k.py").outlines if line.startswith("::warning file=k.wgsl,line=7,")]
    assert len(lines) == 1
    assert "title=bankshot%3A out-of-bounds::k.wgsl:7: " in lines[0]
    (project.path / "test_k.py").write_text(TEST.partition("    assert")[0])
    assert not [line for line in project("test_k.py").outlines if line.startswith("::")]


def test_the_headline_is_what_is_held_against_the_kernel(project):
    """The load of unwritten memory comes first in the text, and is information."""
    project.edit("k.wgsl", "2.0 * t[(31u - i) * 33u]", "select(t[1], 2.0, true); y[i + 64u] = 1.0")
    project.edit("k.toml", "golden = true\n", "")
    summary = [line for line in project("-rf").outlines if line.startswith("FAILED")]
    assert summary
    assert all("store of y[" in line for line in summary)


def test_figures_are_junit_properties_and_sarif_is_written(project):
    (project.path / "k.toml").write_text(PLAIN)
    project.edit("k.wgsl", *CONFLICTS)
    project("k.toml", "--junit-xml", "k.xml", "--bankshot-sarif", "k.sarif")
    cases = ET.parse(project.path / "k.xml").getroot().iter("testcase")
    for n, case in zip((32, 64), cases, strict=True):
        properties = {item.get("name"): item.get("value") for item in case.iter("property")}
        assert properties == {
            "bankshot.excess_wavefronts": "62", "bankshot.excess_sectors": "0",
            "bankshot.working_invocations": "1.0", "bankshot.barriers": "1", "bankshot.outcome": "failed",
            "bankshot.compared": f"y: {n} of {n} elements unchecked (nothing compared), {REASON}",
        }  # fmt: skip
    (run,) = json.loads((project.path / "k.sarif").read_text())["runs"]
    assert [result["ruleId"] for result in run["results"]] == ["counter"]


# ---- wgpu ---------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("adapter")
def test_wgpu_is_asked_where_the_option_says_so(project, adapter):
    (project.path / "k.toml").write_text(PLAIN)
    project("--bankshot-gpu", "--junit-xml", "k.xml").assert_outcomes(passed=2, deselected=1)
    named = [
        item.get("value")
        for item in ET.parse(project.path / "k.xml").getroot().iter("property")
        if item.get("name") == "bankshot.adapter"
    ]
    assert named == [adapter.name] * 2


def test_a_missing_adapter_is_a_failure_where_one_is_required(project, monkeypatch):
    def nothing(wanted=None):
        raise NoAdapter("wgpu finds no adapter; apt-get install it")

    monkeypatch.setattr(wgpu_client, "require_adapter", nothing)
    (project.path / "k.toml").write_text(PLAIN)
    project("--bankshot-gpu").assert_outcomes(passed=2, deselected=1)
    monkeypatch.setenv("BANKSHOT_REQUIRE_GPU", "1")
    result = project()
    result.assert_outcomes(failed=2, deselected=1)
    result.stdout.fnmatch_lines(["wgpu finds no adapter; apt-get install it"])
