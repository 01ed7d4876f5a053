"""Annotations, job summaries and SARIF of a few entries, each in full."""

import pytest

from bankshot.oracle.reports.formats import github, sarif
from bankshot.oracle.reports.remarks import ERROR, NOTE, WARNING, Entry, Remark
from bankshot.sim.findings.table import KINDS

RACE = Remark(ERROR, "race", "it races", "a/k.wgsl", 3, 5, also=[("with", "a/b.wgsl", 7)], hint="wait", end_column=9)
WRONG = Remark(ERROR, "output", "y is wrong: 100%, really", "a,b/k:1.wgsl")
CASES = [
    Entry("k N=4", ok=False, figures={"excess_wavefronts": 1_234, "working_invocations": 0.5}, adapter="llvmpipe",
          remarks=(RACE, WRONG), outcome="failed", compared=("y: all",)),
    Entry("k N=8", ok=False, remarks=(RACE,), outcome="unchecked"),
    Entry("m", ok=True, outcome="clean"),
]  # fmt: skip


# ---- GitHub --------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))


def test_annotations_are_escaped_commands():
    assert github.workflow_commands(CASES) == [
        "::error file=a%2Cb/k%3A1.wgsl,title=bankshot%3A output::y is wrong: 100%25, really",
        "::error file=a/k.wgsl,line=3,col=5,endColumn=9,title=bankshot%3A race::k.wgsl:3: it races (in 2 cases)"
        "%0Ab.wgsl:7: with%0Ahint: wait",
    ]


@pytest.mark.parametrize(("level", "word"), [(ERROR, "error"), (WARNING, "warning"), (NOTE, "notice")])
def test_levels_of_annotations(level, word):
    (line,) = github.workflow_commands([Entry("k", ok=False, remarks=(Remark(level, "race", "a", "k.wgsl"),))])
    assert line == f"::{word} file=k.wgsl,title=bankshot%3A race::a"


@pytest.mark.parametrize(("many", "more"), [(10, None), (11, 1), (30, 20)])
def test_at_most_ten_annotations(many, more):
    remarks = tuple(Remark(ERROR, "race", "a", "k.wgsl", line) for line in range(1, many + 1))
    lines = github.workflow_commands([Entry("k", ok=False, remarks=remarks)])
    assert len(lines) == 10 + (more is not None)
    last = f"::notice title=bankshot::{more} more not shown here; the job summary and the log have them"
    assert (lines[-1] == last) == (more is not None)


def test_a_job_summary():
    lines = github.summary(CASES).split("\n")
    assert lines[0] == "### bankshot: 1 of 3 cases failed, 1 of 3 cases unchecked"
    assert lines[3] == "| --- | --- | --- | --- | --- | --- | --- |"
    assert lines[4:7] == [
        "| **fails** | k N=4 | 1,234 |  | 50.0% |  | llvmpipe |",
        "| **unchecked** | k N=8 |  |  |  |  | not compared |",
        "| ok | m |  |  |  |  | not compared |",
    ]
    assert lines[7:9] == ["", "- `output` y is wrong: 100%, really"]
    assert lines[9].startswith("- `race` k.wgsl:3: it races (in 2 cases)")
    assert github.summary(CASES).endswith("\n\n")
    assert github.summary(CASES[2:]).startswith("### bankshot: all clean, cases run: 1\n")
    assert github.summary(CASES[1:2]).startswith("### bankshot: 1 of 1 cases unchecked\n")


def test_failures_come_first_in_a_job_summary():
    rows = [line.split("|")[2].strip() for line in github.summary(CASES[::-1]).split("\n")[4:7]]
    assert rows == ["k N=8", "k N=4", "m"]


def test_a_job_summary_is_limited(monkeypatch):
    monkeypatch.setattr(github, "MOST_ROWS", 3)
    monkeypatch.setattr(github, "MOST_REMARKS", 2)
    remarks = tuple(Remark(ERROR, "race", "a", "k.wgsl", line) for line in range(1, 4))
    text = github.summary([Entry(f"k{n}", ok=False, remarks=remarks if n == 0 else ()) for n in range(5)])
    assert "\n\n2 more cases not shown\n" in text
    assert text.count("- `race`") == 2
    assert "\n- 1 more\n" in text
    whole = github.summary([Entry(f"k{n}", ok=False, remarks=remarks[: 2 * (n == 0)]) for n in range(3)])
    assert "more" not in whole


def test_a_job_summary_is_appended_where_one_is_asked_for(tmp_path, monkeypatch):
    target = tmp_path / "summary.md"
    target.write_text("before\n")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    github.write_summary(CASES)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(target))
    github.write_summary([])
    assert target.read_text() == "before\n"
    github.write_summary(CASES)
    assert target.read_text() == "before\n" + github.summary(CASES)


# ---- SARIF ---------------------------------------------------------------------------------------------


def test_a_log_of_results(monkeypatch):
    monkeypatch.setattr(sarif, "documentation", lambda: "")
    whole = sarif.sarif(iter(CASES), "1.2.3")
    (run,) = whole["runs"]
    driver = run["tool"]["driver"]
    assert (whole["version"], driver["name"], driver["version"], "informationUri" in driver) == (
        "2.1.0", "bankshot", "1.2.3", False,
    )  # fmt: skip
    assert [rule["id"] for rule in driver["rules"]] == ["output", "race"]
    assert run["columnKind"] == "unicodeCodePoints"
    assert run["properties"]["cases"] == [
        {"case": "k N=4", "outcome": "failed", "compared": ["y: all"]},
        {"case": "k N=8", "outcome": "unchecked", "compared": []},
        {"case": "m", "outcome": "clean", "compared": []},
    ]
    output, race = run["results"]
    assert (output["ruleId"], output["ruleIndex"], output["level"]) == ("output", 0, "error")
    assert "relatedLocations" not in output
    assert (race["ruleId"], race["ruleIndex"]) == ("race", 1)
    assert race["message"] == {"text": "it races (in 2 cases)\nhint: wait"}
    (place,) = race["locations"]
    assert place["physicalLocation"]["region"] == {"startLine": 3, "startColumn": 5, "endColumn": 9}
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "a/k.wgsl"
    (other,) = race["relatedLocations"]
    assert other["message"] == {"text": "with"}
    assert other["physicalLocation"]["region"] == {"startLine": 7}


def test_a_log_of_files_that_were_checked_has_no_cases(monkeypatch):
    monkeypatch.setattr(sarif, "documentation", lambda: "https://docs.example/")
    (run,) = sarif.sarif([Entry("k.wgsl", ok=True)], "1")["runs"]
    assert "properties" not in run
    assert run["tool"]["driver"]["informationUri"] == "https://docs.example/"


@pytest.mark.parametrize("page", ["", "https://docs.example/", "https://docs.example"])
def test_the_rule_of_a_finding_says_how_to_accept_it(monkeypatch, page):
    monkeypatch.setattr(sarif, "documentation", lambda: page)
    for code, kind in KINDS.items():
        rule = sarif._rule(code)
        assert rule["shortDescription"] == {"text": kind.title}
        assert (f"allow({code}) because" in rule["help"]["text"]) == kind.suppressible
        assert rule["help"]["text"].startswith(f"{kind.title}. Evidence: {kind.evidence}.")
        assert (
            rule["defaultConfiguration"]["level"] == {"error": ERROR, "warning": WARNING, "info": NOTE}[kind.severity]
        )
        assert rule.get("helpUri") == (f"https://docs.example/findings.html#{code}" if page else None)


def test_the_rules_of_other_codes():
    assert sarif._rule("output") == {
        "id": "output", "shortDescription": {"text": "an output differs from what is expected"},
    }  # fmt: skip
    assert sarif._rule("unknown-name")["shortDescription"] == {"text": "unknown name"}
