"""Cures as a unified diff: of files, through the preprocessor, and where there is no line to change."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import bankshot
from bankshot.sim.cures.patches import Patch, changed_files, patch_of, unified
from bankshot.sim.cures.search import Cure
from bankshot.sim.wgsl.source import Source
from bankshot.sim.wgsl.text_edits import Replacement

BODY = """    t[i] = i;
    y[i] = t[63u - i];
"""
SHADER = """@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<workgroup> t: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {{
{body}}}
"""


def patch(path: Path):
    module = bankshot.check(path)
    run = bankshot.simulate(module, grid=1, bindings={"y": np.zeros(64, np.uint32)}, cures=True)
    assert run.cures
    return patch_of(module.source, run.cures)


def races(path: Path) -> list[bankshot.Finding]:
    run = bankshot.simulate(bankshot.check(path), grid=1, bindings={"y": np.zeros(64, np.uint32)})
    return [f for f in run.findings if f.code == "race"]


@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
def test_a_diff_applies_with_git(tmp_path, monkeypatch, line_break) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "k.wgsl"
    file.write_bytes(SHADER.format(body=BODY).replace("\n", line_break).encode())
    (tmp_path / "cure.diff").write_bytes(unified(patch(file)).encode())
    subprocess.run(["git", "apply", "cure.diff"], check=True, cwd=tmp_path)
    lines = file.read_bytes().decode().split(line_break)
    assert lines[5] == "    workgroupBarrier();"
    assert "\n" not in "".join(lines)
    assert races(file) == []


def test_a_line_of_an_included_file_is_changed_there(tmp_path) -> None:
    (tmp_path / "k.wgsl").write_text('#define N 64u\n#include "body.wgsl"\n', encoding="utf-8")
    (tmp_path / "body.wgsl").write_text(SHADER.format(body=BODY), encoding="utf-8")
    found = patch(tmp_path / "k.wgsl")
    ((name, (before, after)),) = changed_files(found).items()
    assert Path(name) == tmp_path / "body.wgsl"
    assert before == SHADER.format(body=BODY)
    assert after == SHADER.format(body=BODY.replace("i;\n", "i;\n    workgroupBarrier();\n", 1))
    assert found.unmapped == ()


@pytest.mark.parametrize(
    ("files", "why"),
    [
        (
            {"k.wgsl": "#define BOTH t[i] = i; y[i] = t[63u - i];\n" + SHADER.format(body="    BOTH\n")},
            "the preprocessor makes another line of",
        ),
        (
            {
                "k.wgsl": SHADER.format(body='#include "part.wgsl"\nworkgroupBarrier();\n#include "part.wgsl"\n'),
                "part.wgsl": BODY,
            },
            "is included more than once",
        ),
    ],
)
def test_a_line_that_is_no_line_of_a_file_is_said(tmp_path, files, why) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = patch(tmp_path / "k.wgsl")
    assert unified(found) == ""
    assert found.unmapped
    assert all(why in each for each in found.unmapped)


def test_patches_of_several_cases_are_united(tmp_path) -> None:
    file = tmp_path / "k.wgsl"
    file.write_text(SHADER.format(body=BODY), encoding="utf-8")
    one = patch(file)
    assert one | one == one


# ---- one change -----------------------------------------------------------------------------------------

ROOT = """#define N 64u
// the first of two files
#include "body.wgsl"
@compute @workgroup_size(1) fn main() {
    first();
    second(N);
}
"""
INCLUDED = """fn first() {
    let a =
        1u;
}
fn second(n: u32) {
    let b = n +
        2u;
}
"""


def edited(folder: Path, old: str, new: str, line_break: str = "\n") -> tuple[Patch, dict[str, str]]:
    """The patch for a change of the preprocessed text, and the files that it changes, by name."""
    for name, text in (("root.wgsl", ROOT), ("body.wgsl", INCLUDED)):
        (folder / name).write_bytes(text.replace("\n", line_break).encode())
    source = bankshot.check(folder / "root.wgsl").source
    start = source.text.index(old)
    change = Replacement(start, start + len(old), new)
    patch = patch_of(source, [Cure("a change", (change,), ())])
    return patch, {Path(name).name: after for name, (_, after) in changed_files(patch).items()}


@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("body.wgsl", "let a =\n        1u;", "let a = 3u;"),
        ("body.wgsl", "let b = n +\n        2u;", "let c = n;\n    let b = c;"),
        ("body.wgsl", "2u;\n}", "4u;\n}"),  # up to the end of the last line
        ("body.wgsl", "fn first() {", "fn first() { // the first"),
        ("root.wgsl", "first();", "first();\nfirst();"),
        ("root.wgsl", "// the first of two files", ""),
    ],
)
def test_a_change_of_several_lines_is_one_of_their_file(tmp_path, name, old, new, line_break) -> None:
    patch, files = edited(tmp_path, old, new, line_break)
    text = {"root.wgsl": ROOT, "body.wgsl": INCLUDED}[name].replace(old, new)
    assert files == {name: text.replace("\n", line_break)}
    assert patch.unmapped == ()


def test_all_changes_of_a_cure_are_in_its_patch(tmp_path) -> None:
    (tmp_path / "k.wgsl").write_text("fn f() {}\nfn g() {}\n", encoding="utf-8")
    source = bankshot.check(tmp_path / "k.wgsl").source
    changes = (Replacement(3, 4, "one"), Replacement(13, 14, "two"))
    patch = patch_of(source, [Cure("two changes", changes, ())])
    assert [after for _, after in changed_files(patch).values()] == ["fn one() {}\nfn two() {}\n"]


def test_a_diff_of_two_files(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).write_text(f"{name}\n", encoding="utf-8")
    both = unified(Patch({"a": (Replacement(0, 1, "c"),), "b": (Replacement(0, 1, "d"),)}))
    assert both == "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+c\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-b\n+d\n"


@pytest.mark.parametrize(
    ("old", "why"),
    [
        ("}\n@compute", "body.wgsl:8 and the next lines of the preprocessed text are not together in a file"),
        ("files\nfn first", "root.wgsl:2 and the next lines of the preprocessed text are not together in a file"),
        ("second(64u)", "the preprocessor makes another line of"),
    ],
)
def test_what_no_file_has(tmp_path, old, why) -> None:
    patch, files = edited(tmp_path, old, "")
    assert files == {}
    (reason,) = patch.unmapped
    assert reason.startswith("a change: ")
    assert why in reason


def test_a_text_that_is_no_file_has_no_patch(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    cure = Cure("a change", (Replacement(0, 1, ""),), ())
    patch = patch_of(Source("fn f() {}", "shader.wgsl"), [cure, cure])
    assert patch == Patch({}, ("a change: shader.wgsl:1 is no line of a file",))


CHANGES = {
    "the same": ((3, 5, "a"), (3, 5, "a"), 1),
    "at one place, the same": ((3, 3, "a"), (3, 3, "a"), 1),
    "at one place, more than the known": ((3, 3, "ab"), (3, 3, "a"), 1),
    "at one place, others": ((3, 3, "a"), (3, 3, "b"), 2),
    "the same text elsewhere": ((3, 3, "a"), (4, 4, "a"), 2),
    "beside each other": ((3, 5, "a"), (5, 7, "b"), 2),
    "beside each other, the later first": ((5, 7, "a"), (3, 5, "b"), 2),
    "over each other": ((3, 6, "a"), (5, 7, "b"), 1),
    "over each other, the later first": ((5, 7, "a"), (3, 6, "b"), 1),
    "inside": ((3, 9, "a"), (5, 7, "b"), 1),
    "around": ((5, 7, "a"), (3, 9, "b"), 1),
}


@pytest.mark.parametrize("name", CHANGES)
def test_of_two_changes_of_the_same_characters_the_first_stays(name) -> None:
    known, added, left = CHANGES[name]
    one, two = Replacement(*known), Replacement(*added)
    both = Patch({"k.wgsl": (one,)}, ("why",)) | Patch({"k.wgsl": (two,)}, ("why", "why not"))
    assert both == Patch({"k.wgsl": (one, two)[:left]}, ("why", "why not"))
    assert Patch({"k.wgsl": (one,)}) | Patch({"l.wgsl": (two,)}) == Patch({"k.wgsl": (one,), "l.wgsl": (two,)})


def test_a_diff_of_a_file_elsewhere_and_without_a_last_line_break(tmp_path, monkeypatch) -> None:
    file = tmp_path / "k.wgsl"
    file.write_bytes(b"a\nb")
    monkeypatch.chdir(tmp_path)
    changes = "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"
    assert unified(Patch({"k.wgsl": (Replacement(2, 3, "c"),)})) == f"--- a/k.wgsl\n+++ b/k.wgsl\n{changes}"
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    shown = file.as_posix().lstrip("/")
    assert unified(Patch({str(file): (Replacement(2, 3, "c"),)})) == f"--- a/{shown}\n+++ b/{shown}\n{changes}"


class Changed:
    """A proposal of several changes."""

    words = "the change"

    def __init__(self, *replacements: Replacement) -> None:
        self.replacements = replacements


def test_insertions_of_one_proposal_at_one_place_all_stay(tmp_path) -> None:
    """Two calls around one index end at one place."""
    file = tmp_path / "k.wgsl"
    file.write_text("a = t[i];")
    calls = [Replacement(6, 6, "f("), Replacement(6, 6, "g("), Replacement(7, 7, ")"), Replacement(7, 7, ")")]
    found = patch_of(Source(file.read_text(), str(file)), [Changed(*calls)])
    assert changed_files(found) == {str(file): ("a = t[i];", "a = t[f(g(i))];")}


def test_a_proposal_is_made_as_a_whole_or_not_at_all(tmp_path) -> None:
    """The second of its lines is in no file."""
    file = tmp_path / "k.wgsl"
    file.write_text("a = b;\n")
    source = Source("a = b;\nc = d;\n", str(file))
    found = patch_of(source, [Changed(Replacement(4, 5, "e"), Replacement(11, 12, "f"))])
    assert dict(found.files) == {}
    assert len(found.unmapped) == 1
