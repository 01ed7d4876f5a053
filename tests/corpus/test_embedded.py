"""Template literals of JavaScript: where they end, whatever is substituted in them."""

import pytest

from bankshot.oracle.corpus import corpus_survey
from bankshot.oracle.corpus.corpus_survey import collect
from bankshot.oracle.corpus.embedded import _templates, files, filled, shaders
from bankshot.oracle.errors import Died, UsageError

ENTRY = "@compute @workgroup_size(1) fn main() {}"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`a` + `b`", [(1, "a"), (7, "b")]),
        ("`a ${ {x: {y: 1}}.x } b` `c`", [(1, "a ${ {x: {y: 1}}.x } b"), (26, "c")]),
        ("`a ${ f({}) } b`;`c`", [(1, "a ${ f({}) } b"), (18, "c")]),
        ("`a ${ `b ${ c } d` } e` `f`", [(1, "a ${ `b ${ c } d` } e"), (25, "f")]),
        ("`a } { b` `c`", [(1, "a } { b"), (11, "c")]),
        ("`a $ {b` `c`", [(1, "a $ {b"), (10, "c")]),
        (r"`a \` b` `c`", [(1, "a ` b"), (10, "c")]),
        (r"`a\`` `c`", [(1, "a`"), (7, "c")]),
        (r"`a\\` `c`", [(1, "a\\"), (7, "c")]),
        ("// `\n`a`", [(6, "a")]),
        ("/* ` */ `a`", [(9, "a")]),
        ("'`' + \"`\" + `a`", [(13, "a")]),
        (r"'\'`' + `a`", [(9, "a")]),
        ("`a", [(1, "a")]),
        ("`${a", [(1, "${a")]),
        ("a", []),
    ],
)
def test_a_template_ends_at_its_own_backtick(text, found):
    assert [*_templates(text)] == found


def test_modules_of_a_file_are_in_the_order_of_their_lines(tmp_path):
    file = tmp_path / "a.html"
    file.write_text(
        f"<script>x = `{ENTRY} // 1`;\n\ny = `{ENTRY} // 3`;</script>\n<script type='wgsl'>{ENTRY}</script>"
    )
    found = shaders(file)
    assert [shader.line for shader in found] == [1, 3, 4]
    assert [shader.name for shader in found] == [f"{file}:{line}" for line in (1, 3, 4)]
    assert filled(found[0], {"x": "1"}).text == found[0].text


def test_names_of_files_of_wgsl_have_no_line(tmp_path):
    (tmp_path / "a.WGSL").write_text(ENTRY)
    (tmp_path / "b.wgsl").write_text(ENTRY)
    (tmp_path / "c.wgsl").mkdir()
    found = [shader.name for file in files(tmp_path, embedded=False) for shader in shaders(file)]
    assert found == [f"{tmp_path / 'a.WGSL'}:1", str(tmp_path / "b.wgsl")]


# ---- surveys -----------------------------------------------------------------------------------------


def test_a_file_is_searched_as_a_folder_is(tmp_path):
    (tmp_path / "a.wgsl").write_text(ENTRY)
    assert [shader.text for shader in collect([tmp_path / "a.wgsl"], embedded=False)[0].shaders] == [ENTRY]


def test_a_folder_without_shaders_is_wrong_use_if_none_has_any(tmp_path):
    for name in ("full", "empty"):
        (tmp_path / name).mkdir()
    (tmp_path / "full" / "a.wgsl").write_text(ENTRY)
    found = collect([tmp_path / "full", tmp_path / "empty"], embedded=False)
    assert [len(each.shaders) for each in found] == [1, 0]
    with pytest.raises(UsageError, match=r"empty: no WGSL found; --embedded also searches the string literals"):
        collect([tmp_path / "empty"], embedded=False)
    with pytest.raises(UsageError, match=r"empty: no WGSL found$"):
        collect([tmp_path / "empty"], embedded=True)
    with pytest.raises(UsageError, match=r"none: no such file or folder"):
        collect([tmp_path / "full", tmp_path / "none"], embedded=False)


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [
        ("a\nthread 'x' panicked at /wgpu/lib.rs:3:5:\nno such thing\nnote", "panic, no such thing (lib.rs:3:5)"),
        ("one\ntwo\nthree", "three"),
        ("only", "only"),
        ("", "it died of SIGSEGV"),
    ],
)  # fmt: skip
def test_why_a_process_died(stderr, reason):
    assert corpus_survey._reason(Died("it died of SIGSEGV", stderr)) == reason
    assert Died("it died").stderr_tail == ""
