"""Remarks, annotations, summaries and SARIF, from entries made up here."""

import json

import pytest

from bankshot.oracle.errors import UsageError
from bankshot.oracle.reports.formats import github, sarif
from bankshot.oracle.reports.output_file import OutputFile
from bankshot.oracle.reports.remarks import ERROR, NOTE, Entry, Remark, entry_of_error, entry_of_plain, merged
from bankshot.sim.wgsl.diagnostics import Note, fail
from bankshot.sim.wgsl.source import Source, Span

RACE = Remark(ERROR, "race", "two lanes write a[0]", "k.wgsl", 7, 5, weight=3, also=[("the other", "k.wgsl", 9)])
FIGURES = {"excess_wavefronts": 1234, "excess_sectors": 0, "working_invocations": 0.5, "barriers": 2}


def entry(*remarks, title="k N=1", **given):
    return Entry(title, ok=not remarks, remarks=remarks, **{"figures": FIGURES} | given)


@pytest.fixture(autouse=True)
def _root(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)


def test_an_annotation_says_where_and_what():
    assert github.workflow_commands([entry(RACE)]) == [
        "::error file=k.wgsl,line=7,col=5,title=bankshot%3A race::k.wgsl:7: two lanes write a[0]%0Ak.wgsl:9: the other"
    ]
    note = Remark(NOTE, "counter", "50% of\r\nlanes", "odd,name:.wgsl")
    assert github.workflow_commands([entry(note)]) == [
        "::notice file=odd%2Cname%3A.wgsl,title=bankshot%3A counter::50%25 of%0D%0Alanes"
    ]


def test_files_are_named_from_the_root_of_the_repository(monkeypatch, tmp_path):
    inside = Remark(ERROR, "race", "x", str(tmp_path / "deep" / "k.wgsl"))
    outside = Remark(ERROR, "race", "x", "/elsewhere/k.wgsl")
    assert [github.workflow_commands([entry(r)])[0].split(",")[0] for r in (inside, outside)] == [
        "::error file=deep/k.wgsl", "::error file=/elsewhere/k.wgsl",
    ]  # fmt: skip
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path / "deep"))
    assert github.workflow_commands([entry(inside)])[0].startswith("::error file=k.wgsl,")


def test_the_worst_come_first_and_the_rest_is_counted():
    many = [Remark(ERROR, "race", "x", "k.wgsl", line, weight=line) for line in range(1, 15)]
    lines = github.workflow_commands([entry(Remark(NOTE, "race", "x", "k.wgsl", 99, weight=1_000), *many)])
    assert [line.split(",")[1] for line in lines[:10]] == [f"line={line}" for line in range(14, 4, -1)]
    assert lines[10:] == ["::notice title=bankshot::5 more not shown here; the job summary and the log have them"]
    assert github.workflow_commands([]) == []


def test_one_place_is_told_once_at_its_worst():
    worse = Remark(ERROR, "race", "three lanes", "k.wgsl", 7, weight=9)
    (only,) = merged([entry(RACE), entry(worse), entry(RACE)])
    assert (only.message, only.cases) == ("three lanes", 3)
    other = Remark(ERROR, "uninit", "x", "k.wgsl", 7)
    assert len(merged([entry(RACE, other)])) == 2


def test_entries_travel_as_plain_values():
    there = entry(RACE, adapter="llvmpipe")
    back = entry_of_plain(json.loads(json.dumps(there.plain())))
    assert (back.title, back.ok, back.figures, back.adapter) == ("k N=1", False, FIGURES, "llvmpipe")
    assert github.workflow_commands([back]) == github.workflow_commands([there])


def test_the_summary_has_a_row_for_each_case(monkeypatch, tmp_path):
    target = tmp_path / "summary.md"
    target.write_text("before\n")
    entries = [entry(title="fine | good", adapter="llvmpipe"), entry(RACE, title="bad")]
    github.write_summary(entries)
    assert target.read_text() == "before\n"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(target))
    github.write_summary(entries)
    assert target.read_text().splitlines() == [
        "before",
        "### bankshot: 1 of 2 cases failed",
        "",
        "|  | kernel | excess wavefronts | excess sectors | working invocations | barriers | GPU |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| **fails** | bad | 1,234 | 0 | 50.0% | 2 | not compared |",
        "| ok | fine \\| good | 1,234 | 0 | 50.0% | 2 | llvmpipe |",
        "",
        "- `race` k.wgsl:7: two lanes write a[0]; k.wgsl:9: the other",
        "",
    ]
    assert github.summary([entry()]).startswith("### bankshot: all clean, cases run: 1\n")


def test_a_summary_stays_below_its_limit():
    text = github.summary([entry(title=f"a kernel with a long name M={n} K=512 N=768") for n in range(9_000)])
    assert len(text.encode()) < 2**20
    assert "7,000 more cases not shown" in text


def test_sarif_is_what_the_standard_says():
    log = sarif.sarif([entry(RACE), entry(Remark(NOTE, "counter", "x", "k.toml"))], "1.2")
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("bankshot", "1.2")
    assert [rule["id"] for rule in driver["rules"]] == ["counter", "race"]
    race, counter = run["results"]
    assert race == {
        "ruleId": "race",
        "ruleIndex": 1,
        "level": "error",
        "message": {"text": "two lanes write a[0]"},
        "locations": [
            {"physicalLocation": {"artifactLocation": {"uri": "k.wgsl"}, "region": {"startLine": 7, "startColumn": 5}}}
        ],
        "relatedLocations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": "k.wgsl"}, "region": {"startLine": 9}},
                "message": {"text": "the other"},
            }
        ],
    }
    assert counter["level"] == "note"
    assert counter["locations"] == [{"physicalLocation": {"artifactLocation": {"uri": "k.toml"}}}]  # lines count from 1


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("a b/50%.wgsl", "a%20b/50%25.wgsl"),
        ("/elsewhere/k#1.wgsl", "file:///elsewhere/k%231.wgsl"),  # an absolute path is no relative reference
    ],
)
def test_sarif_names_files_by_uris(file, uri):
    (run,) = sarif.sarif([entry(Remark(NOTE, "race", "x", file))], "1.2")["runs"]
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": uri}


def test_severities_hints_and_regions_are_kept():
    beyond = Remark("warning", "out-of-bounds", "load of x[9]", "k.wgsl", 3, 5, hint="keep it inside", end_column=9)
    (run,) = sarif.sarif([entry(beyond)], "1.2")["runs"]
    (result,) = run["results"]
    assert result["level"] == "warning"
    assert result["message"]["text"] == "load of x[9]\nhint: keep it inside"
    region = result["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 3, "startColumn": 5, "endColumn": 9}
    (rule,) = run["tool"]["driver"]["rules"]
    assert rule["defaultConfiguration"] == {"level": "warning"}
    assert "allow(out-of-bounds)" in rule["help"]["text"]
    assert github.workflow_commands([entry(beyond)])[0].startswith("::warning file=k.wgsl,line=3,col=5,endColumn=9,")


def test_a_wrong_output_comes_before_findings_and_those_before_costs():
    golden = Remark(ERROR, "golden", "1 -> 2 wavefronts", "k.wgsl", 3, weight=1_000_000)
    output = Remark(ERROR, "output", "y differs", "k.wgsl", 9, weight=1)
    warned = Remark("warning", "out-of-bounds", "x", "k.wgsl", 1, weight=5_000_000)
    assert merged([entry(warned, golden, RACE, output)]) == [output, RACE, golden, warned]


def test_what_cannot_be_run_is_told_too(tmp_path):
    source = Source("one\ntwo three\n", "k.wgsl")
    error = fail("unresolved-name", "no three", Span(source, 8, 13), Note("see here", Span(source, 0, 3)))
    (remark,) = entry_of_error("k", error).remarks
    assert (remark.code, remark.message, remark.file, remark.line, remark.column) == (
        "unresolved-name", "no three", "k.wgsl", 2, 5,
    )  # fmt: skip
    assert remark.also == [("see here", "k.wgsl", 1)]
    (remark,) = entry_of_error("k", UsageError("a/k.toml:12: no such key")).remarks
    assert (remark.message, remark.file, remark.line) == ("no such key", "a/k.toml", 12)
    (remark,) = entry_of_error("k", UsageError("there is no adapter"), "k.toml").remarks
    assert (remark.message, remark.file, remark.line) == ("there is no adapter", "k.toml", 0)


def test_a_file_of_an_option_that_cannot_be_written_is_wrong_use(tmp_path):
    for path, why in ((tmp_path / "no" / "k.sarif", "there is no folder"), (tmp_path, "it is a folder")):
        with pytest.raises(UsageError, match=f"^--sarif {path}: cannot be written: {why}"):
            OutputFile("--sarif", path)
    file = OutputFile("--sarif", tmp_path / "k.sarif")
    file.write("é\n")
    assert (tmp_path / "k.sarif").read_bytes() == "é\n".encode()
    (tmp_path / "k.sarif").unlink()
    (tmp_path / "k.sarif").mkdir()
    with pytest.raises(UsageError, match=r"^--sarif .*k\.sarif: cannot be written: Is a directory$"):
        file.write("")
