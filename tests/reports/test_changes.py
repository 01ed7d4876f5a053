"""`bankshot audit --against`: what changed since a git revision, a folder, or a saved audit."""

import json
import subprocess

import pytest
from click.testing import CliRunner

from bankshot.oracle.cli import against
from bankshot.oracle.cli.main import main
from bankshot.oracle.errors import UsageError
from bankshot.oracle.reports.changes import as_markdown, changes

SHADER = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> tile: array<f32, 1024>;
@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) i: u32) {
    tile[i * 32u] = x[i];
    workgroupBarrier();
    y[i] = 2.0 * tile[i * 32u];
}
"""
MANIFEST = """
[kernel]
source = "k.wgsl"
reference = "reference.py:double"
dispatch = [1]

[bind.x]
dtype = "f32"
shape = [32]
init = "normal"

[bind.y]
dtype = "f32"
shape = [32]
init = "unwritten"
"""
REFERENCE = 'def double(arrays, dims):\n    return {"y": 2 * arrays["x"].astype(float)}\n'


def git(folder, *arguments):
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A repository with one commit of a kernel, in a folder below its root."""
    kernels = tmp_path / "repository" / "kernels"
    kernels.mkdir(parents=True)
    for name, text in (("k.wgsl", SHADER), ("k.toml", MANIFEST), ("reference.py", REFERENCE)):
        (kernels / name).write_text(text)
    git(tmp_path / "repository", "init", "-q")
    git(kernels, "add", ".")
    git(kernels, "commit", "-qm", "first")
    monkeypatch.chdir(kernels)
    return kernels


def audit(*arguments):
    return CliRunner().invoke(main, ["audit", "k.toml", "--no-gpu", *(str(each) for each in arguments)])


def edit(folder, before, after):
    text = (folder / "k.wgsl").read_text()
    assert before in text
    (folder / "k.wgsl").write_text(text.replace(before, after))


def test_without_a_change_it_says_so(folder):
    done = audit("--against", "HEAD")
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, "against HEAD: no change in 1 case")


def test_a_fix_is_better_in_total_and_on_its_lines_though_they_moved(folder):
    edit(folder, "i * 32u", "i")
    edit(folder, "    tile[", "    // no conflicts\n    tile[")
    done = audit("--against", "HEAD")
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["wavefronts", "64", "->", "2", "(x0.0312)", "better"] in rows
    (stored,) = (row for row in rows if row[:1] == ["k.wgsl:8"])
    assert stored[1:6] == ["wavefronts", "32", "->", "1", "better"]
    assert stored[6:] == ["tile[i]", "=", "x[i];"]
    assert "against HEAD: 1 of 1 cases changed, 0 of them for the worse" in done.stdout
    assert done.exit_code == 0


def test_a_wrong_output_is_worse_and_comes_first(folder):
    edit(folder, "2.0 * tile[i * 32u]", "2.0 * tile[i]")
    done = audit("--against", "HEAD")
    assert done.exit_code == 1
    rows = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert rows[1] == "outcome clean -> failed worse"
    assert rows[2].startswith("y against reference reference.py:double clean -> failed, ")
    assert rows[2].endswith(" wrong worse")
    assert any(row.startswith("finding uninit none -> 1 place worse") for row in rows)
    assert any(row.startswith("wavefronts ") and row.endswith(" better") for row in rows)


def test_a_folder_and_a_saved_audit_give_the_same_changes(folder, tmp_path):
    (tmp_path / "saved.json").write_text(audit("--json").stdout)
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in folder.glob("*.*"):
        (copy / file.name).write_text(file.read_text())
    edit(folder, "i * 32u", "i")
    shown = [audit("--against", name).stdout for name in ("HEAD", copy, tmp_path / "saved.json")]
    assert "wavefronts" in shown[0]
    tables = [text[: text.index("against ")] for text in shown]
    assert tables[0] == tables[1] == tables[2]


def test_markdown_is_a_comment_on_a_pull_request(folder):
    edit(folder, "2.0 * tile[i * 32u]", "2.0 * tile[i]")
    done = audit("--against", "HEAD", "--format", "markdown")
    lines = done.stdout.splitlines()
    assert lines[0] == "### Bankshot against HEAD: 1 of 1 cases changed, 1 of them for the worse"
    assert lines[2:7] == ["**k**", "", "| what | before | after | | line |", "|---|--:|--:|---|---|", lines[6]]
    assert lines[6] == "| outcome | clean | failed | **worse** |  |"
    assert all(line.count("|") - line.count("\\|") == 6 for line in lines[4:] if line.startswith("|"))


def test_markdown_escapes_names_and_code():
    site = {"file": "k.wgsl", "line": 1, "text": "a | b `c`", "barriers": 1}
    entry = {"kernel": "<b>|", "dims": {}, "outcome": "clean", "outputs": [], "findings": [], "counters": {}}
    found = changes([{**entry, "sites": [site]}], [{**entry, "sites": [{**site, "barriers": 2}]}])
    lines = as_markdown(found, "a_b", 1)
    assert "**\\<b\\>\\|**" in lines
    assert "| k.wgsl:1 barriers | 1 | 2 | **worse** | `` a \\| b `c` `` |" in lines


def test_the_working_tree_stays_as_it_is(folder):
    edit(folder, "2.0", "3.0")
    git(folder, "add", ".")
    before = {file: file.read_bytes() for file in folder.parent.rglob("*") if file.is_file()}
    assert audit("--against", "HEAD").exit_code == 1
    kept = {file: file.read_bytes() for file in folder.parent.rglob("*") if file.is_file()}
    assert {f: d for f, d in kept.items() if "__pycache__" not in f.parts} == before


def test_no_code_of_a_revision_runs_with_no_code(folder, tmp_path):
    trace = tmp_path / "ran"
    (folder / "reference.py").write_text(f"open({str(trace)!r}, 'w').close()\n{REFERENCE}")
    git(folder, "commit", "-qam", "second")
    assert audit("--against", "HEAD", "--no-code").exit_code == 2
    assert not trace.exists()
    assert audit("--against", "HEAD").exit_code == 0
    assert trace.exists()


def test_a_case_that_is_new_or_gone(folder):
    git(folder, "mv", "k.toml", "old.toml")
    git(folder, "commit", "-qm", "renamed")
    (folder / "k.toml").write_text(MANIFEST)
    done = audit("--against", "HEAD")
    assert " ".join(done.stdout.split()).startswith("k case absent -> clean against HEAD: 1 of 1 cases changed, 0 of")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--against", "none"], "--against none: is no .json file, no folder and no git revision"),
        (["--against=--all"], "--against --all: this is no git revision"),
        (["--against", "x.json"], "x.json: cannot be read"),
        (["--against", "k.json"], "k.json: is no document of `bankshot audit --json`"),
        (["--format", "markdown"], "name it with --against REV"),
        (["--against", "HEAD", "--json"], "--against prints what changed"),
        (["--against", "HEAD", "--watch"], "leave out --against, or --watch"),
    ],
)
def test_wrong_options(folder, arguments, words):
    (folder / "k.json").write_text(json.dumps([1]))
    done = audit(*arguments)
    assert done.exit_code == 2
    assert words in done.stderr
    assert "Traceback" not in done.output


def test_the_counterparts_of_several_paths_in_a_revision(folder, tmp_path):
    """The first path determines the repository, be it a file or a folder."""
    root, file, unpacked = folder.parent, folder / "k.toml", tmp_path / "files"
    found = against._of_revision("HEAD", [file, folder, root], unpacked)
    assert found == [unpacked / "kernels" / "k.toml", unpacked / "kernels", unpacked]
    assert found[0].read_text() == MANIFEST
    assert against._of_revision("HEAD", [root, file], unpacked) == [unpacked, unpacked / "kernels" / "k.toml"]
    with pytest.raises(UsageError, match=rf"^--against HEAD: {tmp_path} is not in the repository {root}$"):
        against._of_revision("HEAD", [root, tmp_path, file], unpacked)
