"""The HTML page: failures first, the cost near the top, folds around what matters, and many cases on demand."""

import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main
from bankshot.oracle.judge.audit import audit
from bankshot.oracle.judge.options import Options
from bankshot.oracle.manifests.cases import Request, plans
from bankshot.oracle.manifests.manifest import Shape
from bankshot.oracle.reports.audit_page import coded, page, section_of

SHADERS = Path(__file__).parents[2] / "shaders"
VOID = {"meta", "path", "rect", "line"}


class Outline(HTMLParser):
    """The ids and links of a page, also of closed cases; every element must end."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.open = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if "href" in given else []

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag


def audited(path, record=False, **dims):
    request = Request(kernel=dims.pop("kernel", None))
    (plan,) = plans([path], request)
    return audit(plan.case(Shape(dims) if dims else plan.shapes[0]), Options(gpu=False, record=record))


def renamed(one, name):
    return replace(one, case=replace(one.case, kernel=replace(one.case.kernel, name=name)))


@pytest.fixture(scope="module")
def matmul():
    return audited(SHADERS / "matmul.toml", record=True, kernel="matmul", M=64, K=64, N=128)


@pytest.fixture(scope="module")
def text(matmul):
    return page([section_of(matmul, 1)])


HOT = """\
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
var<workgroup> tile: array<f32, 1024>;

#ifdef DOUBLED
const FACTOR = 2.0;
#else
const FACTOR = 1.0;
#endif

// One of many
// lines of
// a comment
// that says
// nothing
// about
// the
// kernel
// below
// it
// at
// all

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) i: u32) {
    tile[i * 32u] = f32(i) * FACTOR;
    workgroupBarrier();
    y[i + 32u] = f32(i) + tile[0];
    y[i] = tile[32];
}
"""
MANIFEST = """\
[kernel]
source = "hot.wgsl"
dispatch = [1]
dims = { N = 64 }
{more}
[bind.y]
dtype = "f32"
shape = ["N"]
init = "zeros"
"""


@pytest.fixture
def hot(tmp_path):
    """A kernel with bank conflicts on one line. With 48 elements, y is too small for another line."""

    def write(more="", n=64):
        (tmp_path / "hot.wgsl").write_text(HOT)
        (tmp_path / "hot.toml").write_text(MANIFEST.replace("{more}", more))
        return audited(tmp_path / "hot.toml", N=n)

    return write


def at(code):
    """The number of the line of `HOT` that contains `code`."""
    (line,) = (number for number, text in enumerate(HOT.splitlines(), 1) if code in text)
    return line


def listing(audit):
    """The classes of each line of the source, and whether it is folded."""
    text = page([section_of(audit, 1)])
    table = text[text.index('<table class="source">') :]
    table = table[: table.index("</table>")]
    found, folded = {}, False
    for part in re.split(r"(?=<tbody)", table)[1:]:
        if part.startswith('<tbody class="fold"'):
            folded = True
            continue
        for row in re.findall(r"<tr.*?</tr>", part, re.DOTALL):
            classes = re.match(r'<tr(?: id="[^"]*")?(?: class="([^"]*)")?', row)[1] or ""
            found[int(re.search(r"(\d+)</th>", row)[1])] = (set(classes.split()), folded)
        folded = False
    return found


def test_the_hottest_line_is_tinted_most_and_shown_with_its_neighbours(hot):
    found = listing(hot())
    heats = {line: {each for each in classes if re.fullmatch(r"h\d", each)} for line, (classes, _) in found.items()}
    hottest = at("tile[i * 32u]")
    assert heats.pop(hottest) == {"h4"}  # 31 of its 32 wavefronts are excess, and nothing else has any
    assert set().union(*heats.values()) == set()
    assert sorted(found) == list(range(1, len(HOT.splitlines()) + 1))
    assert [line for line, (_, folded) in found.items() if folded] == list(range(1, hottest - 3))


def test_a_fold_says_how_many_lines_it_has(hot):
    text = page([section_of(hot(), 1)])
    assert f"<summary>\u2026 {at('tile[i * 32u]') - 4} lines</summary>" in text


def test_branches_that_the_preprocessor_drops_are_dimmed(hot):
    def off(more):
        return {line for line, (classes, _) in listing(hot(more)).items() if "off" in classes}

    assert off("") == {at("FACTOR = 2.0")}
    assert off("defines = { DOUBLED = 1 }") == {at("FACTOR = 1.0")}
    if shutil.which("cpp"):  # leaves comments out as well, and says where lines are from
        assert off('preprocess = "cpp -w {includes} {defines}"') == {at("FACTOR = 2.0")}


def test_a_finding_comes_before_the_cost_and_its_line_is_marked(hot):
    text = page([section_of(hot(n=48), 1)])
    assert text.index("store of y[") < text.index("Where the cost is") < text.index("<h4>Source")
    found = listing(hot(n=48))
    assert [line for line, (classes, _) in found.items() if "found" in classes] == [at("y[i + 32u]")]
    assert '<section class="finding warning" id="case1-f1"' in text or '<section class="finding error"' in text


def test_an_accepted_finding_is_muted_and_comes_last(hot):
    one = hot('[expect]\nallow = ["out-of-bounds"]', n=48)
    text = page([section_of(one, 1)])
    assert text.index("<h4>What passed") < text.index("1 accepted finding") < text.index("store of y[")
    assert '<section class="finding accepted"' in text
    assert not any("found" in classes for classes, _ in listing(one).values())
    assert "\u25cb" in text
    assert "\u25cf" not in text


def test_the_cost_list_links_to_the_lines(text):
    costs = text[text.index('<ol class="costs">') : text.index("</ol>")]
    outline = Outline(text)
    links = re.findall(r'href="#([^"]+)"', costs)
    assert len(links) == 3
    assert set(links) <= set(outline.ids)
    assert "let b0 = b_tile[b_at + k * TN];" in costs


def test_the_hot_line_is_near_the_top(text):
    """No more than the rows of the kernel and the case, and the first heading, come before it."""
    body = text[text.index("<main") :]
    before = body[: body.index("let b0 = b_tile")]
    assert before.count("<summary") == 1  # it is in the row of the kernel
    assert body.index("Where the cost is") < body.index("<table")


def test_bank_maps_number_the_wavefront_of_each_lane(text, matmul):
    drawn = re.findall(r'<svg class="banks".*?</svg>', text, re.DOTALL)
    assert len(drawn) == len(matmul.recordings.accesses) == 3
    for picture, access in zip(drawn, matmul.recordings.accesses, strict=True):
        numbers = "".join(re.findall(r'<g class="w\d">.*?</g>', picture))
        digits = "".join(re.findall(r">(\d+)</text>", numbers))
        assert len(digits) == access.lanes  # one word each
        assert set(digits) == set(map(str, range(1, access.wavefronts + 1)))
        assert re.search(r'<text x="[\d ]+" y="[\d ]+">1{16}</text>', numbers)  # half of the lanes are served first


def test_a_double_buffer_is_drawn_by_slot(text):
    timeline = text[text.index("Between barriers") :]
    for name in ("a_tile", "b_tile"):
        assert f"{name}, slot 0</text>" in timeline
        assert f"{name}, slot 1</text>" in timeline
    picture = timeline[timeline.index("<svg") : timeline.index("</svg>")]
    assert picture.count(">W</text>") == picture.count(">R</text>") == 2 * 4  # 64 of k in tiles of 16, two arrays
    assert picture.count("workgroupBarrier") == picture.count("<line ")


def test_ids_are_unique_and_links_resolve_also_in_closed_cases(matmul):
    sections = [section_of(renamed(matmul, f"k{number % 2}"), number) for number in range(1, 6)]
    outline = Outline(page(sections))
    assert len(outline.ids) == len(set(outline.ids))
    assert {link.removeprefix("#") for link in outline.links} <= set(outline.ids)
    assert len(outline.links) >= 19


def test_failures_come_first_and_open(matmul, hot):
    bad = renamed(hot(n=48), "bad")
    text = page([section_of(renamed(matmul, "good"), 1), section_of(bad, 2), section_of(renamed(matmul, "good"), 3)])
    assert text.index('id="case2" open') < text.index(">good</span>")
    assert text.count(" open>") == 1
    assert re.search(r"<h1>.*Not all clean", text)
    row = text[text.index('id="case2"') : text.index("</summary>", text.index('id="case2"'))]
    assert f"<b>{', '.join(bad.likely)}</b>" in row


def test_five_kernels_that_fail_are_open(matmul, hot):
    bad = hot(n=48)
    text = page([section_of(renamed(bad, f"bad{number}"), number) for number in range(1, 8)])
    assert text.count(" open>") == 5


def test_500_cases_are_small_and_only_those_that_are_open_are_parsed(matmul):
    """Closed cases are in `noscript`, which browsers with scripts take for text. Nothing may end that text early."""
    first, second = section_of(matmul, 1), section_of(matmul, 2)
    sections = [first, *(replace(second, anchor=f"case{number}") for number in range(2, 501))]
    text = page(sections)
    assert len(text) < 10_000_000
    assert text.count("<noscript>") == text.count("</noscript>") == 499
    parsed = re.sub(r"<noscript>.*?</noscript>", "", text, flags=re.DOTALL)
    assert len(parsed) < 700_000
    assert parsed.count("<h4>Where the cost is") == 1
    assert text.count('<svg class="banks"') == 3  # of the case that has all lines


def test_every_case_has_its_drawings_and_equal_ones_are_on_the_page_once(matmul):
    shorter = audited(SHADERS / "matmul.toml", record=True, kernel="matmul", M=64, K=32, N=128)
    text = page([section_of(matmul, 1), section_of(matmul, 2), section_of(shorter, 3)])
    cases = re.split(r'(?=<details class="case )', text)[1:]
    assert len(cases) == 3
    ids = [set(re.findall(r'<figure id="([\w-]+)"', case)) for case in cases]
    copies = [re.findall(r'data-as="([\w-]+)"', case) for case in cases]
    assert [len(a) + len(b) for a, b in zip(ids, copies, strict=True)] == [4, 4, 4]  # three bank maps, one timeline
    assert (len(ids[0]), len(ids[1])) == (4, 0)
    assert set(copies[1]) == ids[0]
    assert len(ids[2]) >= 1  # the timeline of half the depth
    assert "timeline" in cases[2]


def test_backticks_in_advice_are_code(text):
    advice = text[text.index('<ol class="costs">') : text.index("</ol>")]
    assert "<code>bankshot advise</code>" in advice
    others = re.sub('<script.*?</script>|<style.*?</style>|<table class="source".*?</table>', "", text, flags=re.DOTALL)
    assert "`" not in others


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("try `a < b` & `c`", "try <code>a &lt; b</code> &amp; <code>c</code>"),
        ("no `end & <b>", "no `end &amp; &lt;b&gt;"),
        ("plain", "plain"),
    ],
)
def test_code_in_words_is_escaped(given, expected):
    assert coded(given) == expected


def test_text_of_others_cannot_leave_a_closed_case(matmul):
    evil = "</noscript><script>alert(1)</script>\u202e\x1b"
    text = page([section_of(renamed(matmul, evil), number) for number in (1, 2)], [evil])
    assert text.count("</noscript>") == 1
    assert "<script>alert" not in text
    assert not {"\u202e", "\x1b"} & set(text)
    assert "\\u202e\\x1b" in text


def test_changes_of_a_golden_link_to_their_lines(hot, tmp_path):
    more = "[expect]\ngolden = true"
    (tmp_path / "hot.wgsl").write_text(HOT)
    (tmp_path / "hot.toml").write_text(MANIFEST.replace("{more}", more))
    (plan,) = plans([tmp_path / "hot.toml"], Request())
    assert audit(plan.case(plan.shapes[0]), Options(gpu=False, update=True)).golden.state == "written"
    (tmp_path / "hot.wgsl").write_text(HOT.replace("tile[i * 32u] =", "tile[i * 31u] ="))
    (plan,) = plans([tmp_path / "hot.toml"], Request())
    text = page([section_of(audit(plan.case(plan.shapes[0]), Options(gpu=False)), 1)])
    wrong = text[text.index("What is wrong") : text.index("Where the cost is")]
    line = at("tile[i * 32u]")
    link = re.search(rf'<a href="#([\w-]+)">hot.wgsl:{line}</a>', wrong)
    assert link
    assert f'<tr id="{link[1]}"' in text


def test_changes_since_an_earlier_audit_are_side_by_side(tmp_path):
    """The store of column 0 by all lanes takes 32 wavefronts; a row takes one."""
    (tmp_path / "hot.wgsl").write_text(HOT)
    (tmp_path / "hot.toml").write_text(MANIFEST.replace("{more}", ""))
    manifest, before, after = (str(tmp_path / name) for name in ("hot.toml", "before.json", "after.html"))
    Path(before).write_text(CliRunner().invoke(main, ["audit", manifest, "--no-gpu", "--json"]).stdout)
    (tmp_path / "hot.wgsl").write_text(HOT.replace("tile[i * 32u] =", "tile[i] ="))
    CliRunner().invoke(main, ["audit", manifest, "--no-gpu", "--against", before, "--html", after])
    text = Path(after).read_text(encoding="utf-8")
    part = text[text.index("Changed since ") : text.index("</section>")]
    assert "1 of 1 cases changed" in part
    (row,) = re.findall(rf"<tr>(?:(?!</tr>).)*hot.wgsl:{at('tile[i * 32u]')} wavefronts.*?</tr>", part)
    cells = [re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<t[dh].*?</t[dh]>", row)]
    assert cells[0] == "better"
    assert cells[2:] == ["32", "1", "tile[i] = f32(i) * FACTOR;"]
    outline = Outline(text)
    assert {link.removeprefix("#") for link in outline.links} <= set(outline.ids)
    (link,) = re.findall(r'<a href="#([\w-]+)">hot.wgsl:', row)
    linked = text[text.index(f'<tr id="{link}"') :]
    assert "tile" in linked[: linked.index("</tr>")]
    assert re.search(r'<a href="#case1">hot', part)
    assert "Changed since" not in page([section_of(audited(tmp_path / "hot.toml"), 1)])
