"""Directives, macros and the line map; the rendered errors are among the snapshots of `test_errors.py`."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankshot.sim.wgsl.diagnostics import WgslError
from bankshot.sim.wgsl.preprocess.conditions import evaluate
from bankshot.sim.wgsl.preprocess.preprocessor import preprocess
from bankshot.sim.wgsl.source import Source, Span
from bankshot.sim.wgsl.syntax.lexer import lex


def lines(text: str, **defines) -> list[str]:
    """The lines that come out, empty ones left away."""
    return [line for line in preprocess(text, "m.wgsl", defines=defines).text.split("\n") if line.strip()]


def code_of(text: str, **defines) -> str:
    with pytest.raises(WgslError) as caught:
        preprocess(text, "m.wgsl", defines=defines)
    return caught.value.diagnostics[0].code


@given(st.text(alphabet="ab/*\n\r\u2028 1;").filter(lambda text: "#" not in text))
def test_text_without_directives_is_untouched(text):
    source = preprocess(text, "m.wgsl")
    assert (source.text, source.origin) == (text, None)


@pytest.mark.parametrize(
    ("value", "text"),
    [(4, "4"), (-1, "-1"), (True, "true"), (False, "false"), (1.5, "1.5"), (1e-7, "1e-07"), ("a<b>", "a<b>")],
)
def test_python_values(value, text):
    assert preprocess("x = N;", "m.wgsl", defines={"N": value}).text == f"x = {text};"


def test_macros_replace_whole_names_only():
    assert lines("#define N 4\nN NN N1 aN _N 0xN 1N x.N N") == ["4 NN N1 aN _N 0xN 1N x.4 4"]


def test_macros_leave_comments_alone():
    text = "N // N\nN /* N\nN /* N */\nN */ N /* N */ N\nx *// N /* N\nN"
    expanded = "4 // N\n4 /* N\nN /* N */\nN */ 4 /* N */ 4\nx *// N /* N\n4"
    assert preprocess(text, "m.wgsl", defines={"N": 4}).text == expanded


def test_macros_expand_again_but_never_themselves():
    assert lines("#define A B + 1\n#define B A * C\n#define C 3\nA") == ["A * 3 + 1"]


def test_define_undef_and_redefine():
    assert lines("#define A 1\nA\n#undef A\nA\n#define A 2 // two\nA\n#define A 2\n#define E\n[E]") == [
        "1",
        "A",
        "2",
        "[]",
    ]
    assert lines("#define A (4)\nA") == ["(4)"]
    assert code_of("#define A 1\n#define A 2") == "macro-redefined"
    assert lines("#ifndef A\n#define A 2\n#endif\nA", A=1) == ["1"]


def test_what_the_caller_defines_goes_over_the_text():
    """Which may hold default values: the `#define` of another value, and `#undef`, are without effect."""
    text = "#define A 2\nA\n#undef A\nA\n#if A == 1\nB\n#endif"
    assert lines(text, A=1) == ["1", "1", "B"]
    assert lines("#define A 2\nA\n#undef A\nA") == ["2", "A"]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("#if 1\na\n#else\nb\n#endif", ["a"]),
        ("#if 0\na\n#elif 1\nb\n#elif 1\nc\n#else\nd\n#endif", ["b"]),
        ("#if 0\na\n#elif 0\nb\n#else\nc\n#endif\nd", ["c", "d"]),
        ("#ifdef X\na\n#else\nb\n#endif", ["b"]),
        ("#ifndef X\na\n#endif", ["a"]),
        ("#define X\n#ifdef X\na\n#endif", ["a"]),
        ("#if 0\n#if 1\na\n#else\nb\n#endif\n#elif 1\nc\n#endif", ["c"]),
        ("#if 1\n#if 0\na\n#endif\nb\n#endif", ["b"]),
        ("#if 0\n#error no\n#define A 1\n#nonsense\n#if ???\n#endif\n#endif\nA", ["A"]),
        ("#if 1\na\n#elif ???\nb\n#endif", ["a"]),
        ("  #  if  defined(X) || !defined Y\na\n\t#endif", ["a"]),
        ("/*\n#if 0\n*/\na", ["/*", "#if 0", "*/", "a"]),
        ("#define X 1 /* goes\n#if 0\non */\nX", ["/* goes", "#if 0", "on */", "1"]),
    ],
)
def test_conditionals(text, kept):
    assert lines(text) == kept


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 4 - 3", 3),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("7 / -2", -3),
        ("1 << 2 + 1", 8),
        ("1 | 2 ^ 3 & 1", 3),
        ("12 & 10", 8),
        ("12 | 10", 14),
        ("12 ^ 10", 6),
        ("3 << 4", 48),
        ("48 >> 4", 3),
        ("7 - 9", -2),
        ("7 * -9", -63),
        ("3 <= 3", 1),
        ("3 < 3", 0),
        ("3 >= 4", 0),
        ("4 > 4", 0),
        ("1 < 2 == 1", 1),
        ("0 && 1 / 0", 0),
        ("1 || nothing", 1),
        ("nothing", 0),
        ("(nothing) || 1 && !nothing", 1),
        ("nothing && 1 / 0", 0),
        ("0 || 0 && 1", 0),
        ("!0 + ~0", 0),
        ("- -3", 3),
        ("0x10u >= 16", 1),
        ("true && !false", 1),
        ("2 != 2", 0),
        ("1 != 2", 1),
        (" + ".join(["-(1)"] * 40), -40),
        ("2 * (0 || 3)", 2),
        ("2 == 2", 1),
        ("1 == 2", 0),
        ("3 > 2", 1),
        ("2 > 3", 0),
        ("2 < 3", 1),
        ("4 <= 3", 0),
        ("2 >= 2", 1),
        ("-7 / -2", 3),
        ("0 / -3", 0),
        ("-7 % 3", -1),
        ("7 % -3", 1),
        ("-7 % -3", -1),
        ("-6 % 3", 0),
        ("+5", 5),
        ("~5", -6),
        ("!5", 0),
        ("5 && 0", 0),
        ("0 || 0", 0),
        ("5 && 7", 1),
        ("5 || 0", 1),
        ("false", 0),
        ("0XfFi", 255),
        ("1 << 0", 1),
        ("1 << 63", 2**63),
        ("1 >> 63", 0),
        ("8 - 4 - 2", 2),
        ("64 / 4 / 2", 8),
        ("9" * 20, 10**20 - 1),
        (f"0x{'f' * 16}", 2**64 - 1),
        ("!" * 31 + "1", 0),
        ("(" * 31 + "1" + ")" * 31, 1),
        # Numbers of 128 bits.
        ("(1 << 63) * (1 << 63) * 2", 2**127),
        ("-((1 << 63) * (1 << 63) * 2)", -(2**127)),
        ("(1 << 63) * (1 << 63) * 2 - 1 + (1 << 63) * (1 << 63) * 2", 2**128 - 1),
    ],
)
def test_conditions_have_the_precedence_of_c(text, value):
    assert evaluate(text, Span(Source(text), 0, len(text))) == value


@pytest.mark.parametrize(
    "text", ["", "1 +", "(1", "1)", "1 2", "1 / 0", "1 % 0", "1 << 64", "1 << -1", "1.5", "?", "0xg", "9" * 21,
             f"0x{'f' * 17}", "0x", "1 >> 64", "1 >> -1", "!" * 32 + "1", "(" * 32 + "1" + ")" * 32, "1 +* 2", "(1]",
             "(1 << 63) * (1 << 63) * 4", "(1 << 63) * (1 << 63) * -4", "(1 << 63) * (1 << 63) * 4 - 1"]
)  # fmt: skip
def test_bad_conditions(text):
    assert refuses(text).code == "bad-condition"


@pytest.mark.parametrize("text", ["x == 0", "0 + (x)", "-x", "1 && ~x", "1 < !x + x"])
def test_a_name_that_is_not_defined_is_no_number(text):
    assert refuses(text).message == "'x' is not defined"


def refuses(text):
    with pytest.raises(WgslError) as caught:
        evaluate(text, Span(Source(text), 0, len(text)))
    assert caught.value.diagnostics[0].code == "bad-condition"
    return caught.value.diagnostics[0]


@pytest.mark.parametrize("text", ["{}", "1 << ({})", "-({})"])
def test_a_number_that_grows_without_end_is_refused_at_once(text):
    assert refuses(text.format("*".join(["9" * 20] * 20000))).code == "bad-condition"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("#define 1", "bad-directive"),
        ("#define", "bad-directive"),
        ("#undef A B", "bad-directive"),
        ("#ifdef\n#endif", "bad-directive"),
        ("#if\n#endif", "bad-directive"),
        ("#include x", "bad-directive"),
        ("#if defined\n#endif", "bad-condition"),
        ("#endif", "unmatched-directive"),
        ("#if 1\n#else\n#elif 1\n#endif", "unmatched-directive"),
        ("#", "unknown-directive"),
        ("#line", "bad-directive"),
        ("#line seven", "bad-directive"),
        ("#line 7 x", "bad-directive"),
        ("# 7 x", "unknown-directive"),
        ("#define F(x) x", "unsupported-macro"),
        ("\n".join(f"#define A{i} A{i + 1} A{i + 1}" for i in range(60)) + "\nA0", "too-large"),
        ("\n".join(f"#define A{i} A{i + 1} A{i + 1}" for i in range(60)) + "\n#define A60\nA0", "too-large"),
        ("\n".join(f"#define A{i} A{i + 1}" for i in range(2000)) + "\nA0", "too-large"),
        (f"#if {'(' * 9999}\n#endif", "bad-condition"),
        (f"#if {'!' * 9999}1\n#endif", "bad-condition"),
    ],
)
def test_errors(text, code):
    assert code_of(text) == code


@pytest.mark.parametrize("indent", [0, 1, 7])
@pytest.mark.parametrize(
    "directive",
    ["#error no", "#endif", "#else", "#elif 1", "#include x", "#define 1", "#undef A B", "#if 1 +", "#bogus"],
)
def test_errors_are_at_the_directive(directive, indent):
    with pytest.raises(WgslError) as caught:
        preprocess(f"\n// before\n{' ' * indent}{directive}\n#endif", "m.wgsl")
    span = caught.value.diagnostics[0].span
    file, line, column = span.source.place(span.start)
    assert (file, line) == ("m.wgsl", 3)
    assert column == indent + 1
    assert span.end - span.start <= len(directive)


@pytest.mark.parametrize("defines", [{"1a": 1}, {"A": float("nan")}, {"A": "1\n2"}])
def test_bad_defines(defines):
    assert code_of("", **defines) == "bad-define"


def places(text: str, **options) -> dict[str, tuple[str, int]]:
    """The original file and line of each token."""
    source = preprocess(text, "m.wgsl", **options)
    assert source.origin is None or len(source.origin) == source.line_count
    return {token.text: source.place(token.start)[:2] for token in lex(source)[:-1]}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\u2028"])
def test_directives_go_on_after_a_backslash(end):
    text = end.join(["#define A 1 + \\", "  2 \\ ", "  + 3", "x A", "// \\", "y"])
    assert [line.split() for line in lines(text.replace(end, "\n"))] == [
        ["x", "1", "+", "2", "+", "3"],
        ["//", "\\"],
        ["y"],
    ]
    assert places(text)["x"] == ("m.wgsl", 4)
    assert places(text)["y"] == ("m.wgsl", 6)


def test_a_condition_on_two_lines():
    assert lines("#if 1 && \\\n 0\na\n#else\nb\n#endif") == ["b"]


def test_an_error_in_a_continued_directive_names_its_first_line():
    with pytest.raises(WgslError) as caught:
        preprocess("x\n#error one \\\n  two\n", "m.wgsl")
    assert str(caught.value).splitlines()[:2] == ["m.wgsl:2:1: error: one     two", "#error one \\"]


def test_line_markers_say_where_lines_come_from():
    text = 'a\n# 7 "x.tmpl" 2 3\nb\n\nc\n#line 3\nd\n# 1 "<stdin>"\ne\n#line 2 "dir//y \\"1\\".z"\nf'
    assert places(text) == {
        "a": ("m.wgsl", 1),
        "b": ("x.tmpl", 7),
        "c": ("x.tmpl", 9),
        "d": ("x.tmpl", 3),
        "e": ("m.wgsl", 1),
        "f": ('dir//y "1".z', 2),
    }


def test_line_markers_that_are_not_kept_or_in_comments_are_none():
    assert places('#if 0\n# 7 "x"\n#endif\na\n/*\n# 9 "x"\n*/ b') == {"a": ("m.wgsl", 4), "b": ("m.wgsl", 7)}


def test_errors_after_a_line_marker_name_the_original():
    with pytest.raises(WgslError) as caught:
        preprocess('\n\n# 7 "x.tmpl"\n\n#error here', "m.wgsl")
    assert str(caught.value).startswith("x.tmpl:8:1: error: here\n#error here\n")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "a.inc").write_text('a1\n#include "sub/b.inc"\na3')
    (tmp_path / "sub" / "b.inc").write_text('b1\n#include "c.inc"\n')
    (tmp_path / "sub" / "c.inc").write_text("#define C 1\nc2\n")
    (tmp_path / "lib" / "d.inc").write_text("d1")
    (tmp_path / "lib" / "open.inc").write_text("#if 1\n")
    (tmp_path / "lib" / "comment.inc").write_text("x /* y\n")
    (tmp_path / "lib" / "itself.inc").write_text('#include "itself.inc"\n')
    (tmp_path / "lib" / "twice.inc").write_bytes(b"\xff\xfe")
    return tmp_path


def test_includes_and_where_their_lines_come_from(folder):
    text = '#define A 1\n#include "a.inc"\nm3 C\n#include "d.inc"'
    assert places(text, include_dirs=[folder / "lib"], base_dir=folder) == {
        "a1": (str(folder / "a.inc"), 1),
        "b1": (str(folder / "sub" / "b.inc"), 1),
        "c2": (str(folder / "sub" / "c.inc"), 2),
        "a3": (str(folder / "a.inc"), 3),
        "m3": ("m.wgsl", 3),
        "1": ("m.wgsl", 3),
        "d1": (str(folder / "lib" / "d.inc"), 1),
    }


def test_a_marker_in_an_included_file_ends_with_it(folder):
    (folder / "made.inc").write_text('#line 40 "made.tmpl"\nx\n')
    assert places('#include "made.inc"\ny', base_dir=folder) == {"x": ("made.tmpl", 40), "y": ("m.wgsl", 2)}


def test_without_includes_line_numbers_stay():
    text = "#define A 1\nx\n#if 0\ny\n#endif\nz\n"
    source = preprocess(text, "m.wgsl")
    assert source.line_count == Source(text).line_count
    assert [source.text.split("\n").index(word) for word in "xz"] == [1, 5]


def test_a_comment_that_begins_after_an_include_ends_on_its_line(folder):
    assert places('#include "sub/c.inc" /* all of it */\nx', base_dir=folder).keys() == {"c2", "x"}
    with pytest.raises(WgslError) as caught:
        preprocess('#include "sub/c.inc" /* and\nmore */\nx', "m.wgsl", base_dir=folder)
    assert "the comment after '#include' must end on its line" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("comment.inc", "unterminated-comment"),
        ("itself.inc", "include-cycle"),
        ("open.inc", "unterminated-if"),
        ("twice.inc", "include-unreadable"),
        ("e.inc", "include-not-found"),
    ],
)
def test_bad_includes(folder, name, code):
    with pytest.raises(WgslError) as caught:
        preprocess(f'#include "{name}"', "m.wgsl", include_dirs=[folder / "lib"])
    assert caught.value.diagnostics[0].code == code


@given(
    st.lists(
        st.sampled_from(["#if 1", "#else", "#endif", "#define A B", "#undef A", "A", "/*", "*/", "// x", "#elif A", ""])
    )
)
def test_anything_is_preprocessed_or_refused(pieces):
    text = "\n".join(pieces)
    with suppress(WgslError):
        assert preprocess(text, "m.wgsl").line_count == Source(text).line_count


def test_each_line_of_a_directive_keeps_its_own_line():
    source = preprocess("#define SUM 1u + \\\n    2u + \\\n    3u + \\\n    4u\nconst all = SUM;\n", "m.wgsl")
    assert [source.place(source.line_start(n)).line for n in range(5)] == [1, 2, 3, 4, 5]
    assert source.line_text(4).split() == ["const", "all", "=", "1u", "+", "2u", "+", "3u", "+", "4u;"]


@pytest.mark.parametrize(("files", "fails"), [(64, False), (65, True)])
def test_so_many_files_may_include_each_other(tmp_path, files, fails):
    for number in range(1, files):
        (tmp_path / f"{number}.inc").write_text(f'#include "{number + 1}.inc"\n')
    (tmp_path / f"{files}.inc").write_text("last\n")
    if fails:
        with pytest.raises(WgslError) as caught:
            preprocess('#include "1.inc"', "m.wgsl", base_dir=tmp_path)
        assert caught.value.diagnostics[0].code == "include-too-deep"
    else:
        assert preprocess('#include "1.inc"', "m.wgsl", base_dir=tmp_path).text.strip() == "last"
