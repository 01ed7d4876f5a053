"""The audit as one page: it needs no other file, says what the JSON says, and shows hostile text as text."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main

SHADERS = Path(__file__).parents[2] / "shaders"
VOID = {"meta", "link", "br", "hr", "img", "input", "col", "wbr", "source", "path", "rect", "line", "circle", "use"}


class Page(HTMLParser):
    """Text, links and anchors of a page; every tag that is opened must be closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.words, self.links, self.ids, self.loads = [], [], [], set(), []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if "id" in given:
            assert given["id"] not in self.ids, f"two elements are called {given['id']}"
            self.ids.add(given["id"])
        if tag == "a":
            self.links.append(given["href"])
        self.loads += [given[name] for name in ("src", "data", "action") if name in given] if tag != "a" else []

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def audit(*arguments, page):
    return CliRunner().invoke(main, ["audit", *map(str, arguments), "--no-gpu", "--html", str(page)])


@pytest.fixture(scope="module")
def matmul(tmp_path_factory):
    page = tmp_path_factory.mktemp("page") / "matmul.html"
    given = [SHADERS / "matmul.toml", "--kernel", "matmul", "--set", "M=63", "--set", "K=20", "--set", "N=68"]
    result = audit(*given, "--json", page=page)
    assert result.exit_code == 0, result.output
    return page.read_text(encoding="utf-8"), json.loads(result.stdout)


def test_it_needs_nothing_but_itself(matmul):
    text, _ = matmul
    page = Page(text)
    assert page.loads == []
    assert all(link.startswith("#") for link in page.links)
    assert "http://" not in text
    assert "https://" not in text
    assert "@import" not in text
    assert "url(" not in text
    assert len(text) < 200_000


def test_only_its_own_script_may_run_and_nothing_may_be_loaded(matmul):
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', matmul[0])
    (script,) = re.findall(r"<script>(.*?)</script>", matmul[0], re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.split("; ") == ["default-src 'none'", "style-src 'unsafe-inline'", f"script-src 'sha256-{digest}'"]


def test_every_link_leads_somewhere(matmul):
    page = Page(matmul[0])
    assert {link[1:] for link in page.links} <= page.ids
    assert len(page.links) > 2


def test_it_says_what_the_json_says(matmul):
    text, report = matmul
    words = " ".join(" ".join(Page(text).words).split())
    (case,) = report["cases"]
    for name in ("shared_wavefronts", "global_sectors", "flops", "barriers", "global_bytes"):
        assert f"{case['counters'][name]:,}" in words
    for finding in case["findings"]:
        assert finding["message"] in words
    assert "charged as nvidia" in words


DOUBLED = """\
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3<u32>) { if id.x < arrayLength(&y) { y[id.x] *= 2.0; } }
"""


@pytest.mark.parametrize(
    ("size", "options", "words"),
    [
        (3000, (), "94 workgroups, 2 representatives simulated"),
        (3000, ("--sample", "5"), "a sample: 5 of 94 workgroups ran"),
        (20, (), "the only workgroup ran"),
    ],
)
def test_it_says_which_workgroups_ran(tmp_path, size, options, words):
    (tmp_path / "doubled.wgsl").write_text(DOUBLED)
    page, grid = tmp_path / "page.html", -(-size // 32)
    given = [tmp_path / "doubled.wgsl", "--bind", f"y=zeros:f32:{size}", "--grid", grid, *options, "--json"]
    (case,) = json.loads(audit(*given, page=page).stdout)["cases"]
    shown = " ".join(" ".join(Page(page.read_text(encoding="utf-8")).words).split())
    assert words in shown
    classes = case["coverage"]["classes"]
    assert len(classes) == (2 if "representatives" in words else 0)
    for each in classes:
        assert f"({', '.join(map(str, each['workgroup']))}) {each['stands_for']}" in shown
        assert case["coverage"]["why"] in shown


HOSTILE = """\
@group(0) @binding(0) var<storage, read_write> y: array<u32, 4>; // </script><script>alert(1)</script><b id=x>
@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) { y[i & 1u] = i; }
"""


def test_a_hostile_shader_is_text(tmp_path):
    shader = tmp_path / "<img src=x onerror=alert(1)>.wgsl"
    shader.write_text(HOSTILE)
    page = tmp_path / "page.html"
    assert audit(shader, "--bind", "y=zeros:u32:4", page=page).exit_code == 1  # it races
    text = page.read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert "<img" not in text
    assert "alert(1)" in "".join(Page(text).words)
    assert "race" in "".join(Page(text).words)


WRONG = """\
@group(0) @binding(0) var<storage, read> X: array<f32>;
@group(0) @binding(1) var<storage, read_write> Y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x > 8u && id.x < arrayLength(&Y) { Y[id.x] = -X[id.x] / (1.0 + exp(-X[id.x])); }
}
"""
MANIFEST = """\
[kernel]
source = "wrong.wgsl"
reference = "silu"
dims = { N = 100 }
dispatch = ["ceil(N / 64)"]
bind = 0
"""


def test_a_differing_output_is_drawn_with_its_likely_cause(tmp_path):
    """The first nine elements are never written, the others have the wrong sign."""
    (tmp_path / "wrong.wgsl").write_text(WRONG)
    arrays = "".join(
        f'[bind.{name}]\ndtype = "f32"\nshape = ["N"]\ninit = "{init}"\n'
        for name, init in (("X", "normal"), ("Y", "unwritten"))
    )
    (tmp_path / "wrong.toml").write_text(MANIFEST.replace("bind = 0\n", arrays))
    page = tmp_path / "page.html"
    assert audit(tmp_path, page=page).exit_code == 1
    words = " ".join(" ".join(Page(page.read_text(encoding="utf-8")).words).split())
    assert "likely wrong sign: the 100 elements that differ are minus what reference silu gives" in words
    assert "a patch is 1 \u00d7 2 elements. Its worst element, times the bound: from" in words
    assert "rows 0 to 0, columns 8 to 9: 2 of 2 differ, the worst NaN or infinite" in words
    assert "never written" in words


def test_a_page_that_cannot_be_written_is_said_so(tmp_path):
    result = audit(SHADERS / "ffn" / "silu.toml", page=tmp_path / "none" / "page.html")
    assert result.exit_code == 2
    assert "Traceback" not in result.output
