"""Lines of source beside counters, on the terminal and on the page."""

import io
from types import SimpleNamespace

import pytest

from bankshot.oracle.reports import page_source
from bankshot.oracle.reports.listing_text import COLOURS, _highlighted, show_listing
from bankshot.oracle.reports.page_source import Block, Row
from bankshot.oracle.reports.source_listing import Line, against_ideal, compact, listing
from bankshot.oracle.reports.terminal import console
from bankshot.sim.run.counters import NAMES
from bankshot.sim.wgsl.source import Source
from tests.reports.test_reports import site


def line(number=1, text="let a = 1;", lanes=1.0, issued=32, **counters):
    return Line(number, text, dict.fromkeys(NAMES, 0) | counters, lanes, issued)


# ---- charges -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("charged", "least", "cell"),
    [
        (0, 0, ("", "")),
        (5, 5, ("5", "")),
        (5, 0, ("5", "")),
        (30, 10, ("30/10", "\u00d73")),
        (22, 16, ("22/16", "\u00d71.38")),
        (11, 10, ("11/10", "\u00d71.1")),
    ],
)
def test_what_was_charged_beside_its_ideal(charged, least, cell):
    wavefronts = line(shared_wavefronts=charged, shared_ideal_wavefronts=least)
    sectors = line(global_sectors=charged, global_ideal_sectors=least)
    empty = ("", "")
    assert [(each.text, each.times) for each in page_source._cells(wavefronts)] == [cell, empty]
    assert [(each.text, each.times) for each in page_source._cells(sectors)] == [empty, cell]


def test_a_line_that_was_not_executed_has_no_cells():
    assert page_source._cells(Line(1, "}")) == ()


# ---- the page ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("share", "heat"),
    [(0.0, 0), (0.0099, 0), (0.01, 1), (0.049, 1), (0.05, 2), (0.149, 2), (0.15, 3), (0.39, 3), (0.4, 4), (1.0, 4)],
)
def test_the_heat_of_a_line(share, heat):
    assert page_source._row(line(), "a", "code", share, frozenset()).heat == heat


@pytest.mark.parametrize(
    ("text", "code"),
    [("a = 1;", True), ("  a;", True), ("", False), ("   ", False), ("#endif", False), ("  #if A", False),
     ("// a", False), ("  // a", False), ("/ 2", True), ("a // b", True)],
)  # fmt: skip
def test_code_that_the_preprocessor_dropped_is_inactive(text, code):
    assert page_source._row(Line(4, text), "a", "", 0.0, frozenset({4})).inactive == code
    assert not page_source._row(Line(4, text), "a", "", 0.0, frozenset({3, 5})).inactive


def test_the_lines_that_the_preprocessor_dropped():
    origin = (("a", 1), ("a", 2), ("b", 1), ("b", 3), ("a", 5))
    source = Source("x\n\ny\nz\nw", "a", origin)
    assert page_source._inactive(source) == {"a": {2, 3, 4}, "b": {2}}
    assert page_source._inactive(Source("x", "a")) == {}


def row(number, heat=0, executions=None):
    counters = None if executions is None else {"executions": executions}
    return Row(Line(number, "", counters), f"L{number}", "", (), 0.0, heat, False)


def folded(rows, marks=None, shown=()):
    """The blocks of a file: the first line and the last, and whether they are folded."""
    listing = SimpleNamespace(rows={"k.wgsl": rows})
    (file,) = page_source.files_of(listing, marks or {}, shown)
    assert sum(block.count for block in file.blocks) == len(rows)
    return [(block.rows[0].line.number, block.rows[-1].line.number, block.folded) for block in file.blocks]


def lines(count, hot=(), **executions):
    return [row(number, 2 if number in hot else 0, executions.get(f"at{number}")) for number in range(1, count + 1)]


def test_a_short_file_is_not_folded():
    assert folded(lines(24, hot=[3])) == [(1, 24, False)]
    assert folded(lines(25, hot=[3])) == [(1, 6, False), (7, 25, True)]


def test_hot_lines_and_those_that_something_names_are_shown_with_three_around_them():
    assert folded(lines(40, hot=[20])) == [(1, 16, True), (17, 23, False), (24, 40, True)]
    assert folded(lines(40), shown=["L20"]) == [(1, 16, True), (17, 23, False), (24, 40, True)]
    assert folded(lines(40, hot=[4]), {"L30": ["a mark"]}) == [
        (1, 7, False), (8, 29, True), (30, 30, False), (31, 40, True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("second", "blocks"),
    [
        (15, [(1, 18, False), (19, 40, True)]),
        (16, [(1, 8, False), (9, 12, True), (13, 19, False), (20, 40, True)]),
    ],
)
def test_a_fold_has_at_least_four_lines(second, blocks):
    assert folded(lines(40, hot=[5, second])) == blocks


def test_without_a_hot_line_the_busiest_is_shown():
    assert folded(lines(40, at12=3, at30=7)) == [(1, 26, True), (27, 33, False), (34, 40, True)]
    assert folded(lines(40, hot=[12], at30=7)) == [(1, 8, True), (9, 15, False), (16, 40, True)]
    cool = lines(40, at30=7)
    cool[11] = row(12, heat=1)
    assert folded(cool) == [(1, 26, True), (27, 33, False), (34, 40, True)]


def test_links_and_marks_of_a_line():
    listing = SimpleNamespace(rows={"k.wgsl": lines(3)})
    (file,) = page_source.files_of(listing, {"L1": ["a"]}, ["L3", None])
    assert [(row.marks, row.linked) for row in file.blocks[0].rows] == [(("a",), True), ((), False), ((), True)]


@pytest.mark.parametrize(
    ("block", "label", "short"),
    [
        (Block((row(1), row(2)), True, 2), "\u2026 2 lines", []),
        (Block((row(1, executions=1),), True, 1), "\u2026 1 line", [1]),
        (Block((row(1), row(2, executions=1), row(3)), True, 3), "\u2026 3 lines", [2]),
        (Block((row(1), row(2, executions=1)), False, 2), "\u2026 2 lines", [1, 2]),
    ],
)
def test_a_fold_without_lines_that_were_not_charged(block, label, short):
    assert block.label == label
    assert [row.line.number for row in block.short().rows] == short
    if 0 < len(short) < block.count:
        assert block.short().label == f"{label}, {len(short)} of them charged"


def test_source_is_escaped_and_highlighted():
    found = page_source.highlighted(("let a = 1u; // <b>", "/* two", "", "lines */ b < a"))
    assert [each.replace('</i><i class="c">', "") for each in found] == [
        '<i class="k">let</i> a = <i class="n">1u</i>; <i class="c">// &lt;b&gt;</i>',
        '<i class="c">/* two</i>', "", '<i class="c">lines */</i> b &lt; a',
    ]  # fmt: skip


# ---- the terminal ------------------------------------------------------------------------------------


def printed(*lines, width=160):
    stream = io.StringIO()
    out = console(stream)
    out.width = width
    show_listing(out, lines)
    return stream.getvalue().splitlines()


def test_the_gutter_has_what_lines_were_charged():
    charged = line(
        7, "\ta = x[i];", executions=12_345, shared_wavefronts=30, shared_ideal_wavefronts=10, global_sectors=8
    )
    found = printed(charged, Line(8, "}"))
    assert found[1] == " line issued lanes  wavefronts     sectors  source  (subgroups that issued; charged/ideal)"
    assert found[2] == "    7  12.3k  100%       30/10           8      a = x[i];"
    assert found[3] == f"{8:>5}{'':39}}}"
    assert len(found) == 5


def test_idle_lanes_have_a_column():
    found = printed(line(1, "a", lanes=0.25, issued=64, idle_guard=32, idle_overhang=16), line(2), Line(3, ""))
    assert found[1].startswith(" line issued lanes        idle  wavefronts")
    assert found[2].split()[:5] == ["1", "0", "25%", "50g", "25o"]
    assert not [line for line in found if line.endswith(" ")]
    assert found[5].strip() == "idle, in percent: g behind a guard, o past the workgroup, d diverged"


def test_a_line_is_as_long_as_the_terminal_is_wide():
    assert max(map(len, printed(Line(1, "x" * 300), width=90))) == 90


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("let a = 0x1Fu;", {(0, 3): "bright_blue", (8, 13): "blue"}),
        ("a1 = 1.5e-3f + 2;", {(5, 12): "blue", (15, 16): "blue"}),
        ("x; // return 1", {(3, 14): "bright_black"}),
        ("letter = lets;", {}),
    ],
)
def test_colours_of_source(text, spans):
    found = _highlighted(text)
    last = {(span.start, span.end): str(span.style) for span in found.spans}
    assert {place: last[place] for place in spans} == spans
    if "//" not in text:
        assert len(last) == len(spans)
    assert [style for style, _ in COLOURS] == ["bright_blue", "blue", "bright_black"]


def test_tabs_are_four_columns():
    assert _highlighted("\ta;\tb").plain == "    a;  b"


# ---- sites ----------------------------------------------------------------------------------------------


def test_a_line_adds_its_sites_up():
    lines = listing("a\nb\nc", [], 32)
    assert [(line.number, line.text, line.counters) for line in lines] == [
        (1, "a", None),
        (2, "b", None),
        (3, "c", None),
    ]
    sites = [
        site("load", 0, 2, executions=10, active_lanes=320, shared_wavefronts=10, shared_ideal_wavefronts=10),
        site("load", 1, 2, executions=6, active_lanes=64, shared_wavefronts=12, shared_ideal_wavefronts=6),
    ]
    line = listing("a\nb\nc", sites, 32)[1]
    assert (line.counters["executions"], line.counters["shared_wavefronts"], line.lanes) == (10, 22, 384 / 512)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (9999, "9999"), (10_000, "10.0k"), (999_499, "999k"), (999_500, "1.00M"), (25_769_803_776, "25.8G")],
)
def test_compact(count, text):
    assert compact(count) == text


def test_against_ideal():
    assert (against_ideal(0, 0), against_ideal(5, 5), against_ideal(30, 10)) == ("", "5", "30/10")
