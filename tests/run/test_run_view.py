"""A run in one line and as HTML: figures, the most expensive lines, and what is left out, of runs made by hand."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

from bankshot.sim.run.run_view import excess, html, one_line
from bankshot.sim.wgsl.source import Source, Span

SOURCE = Source("\n".join(f"line {n}" for n in range(1, 20)), "folder/k.wgsl")


def site(line: int, wavefronts: int = 0, ideal: int = 0, requests: int = 1, sectors: int = 0) -> Any:
    start = SOURCE.line_start(line - 1)
    return SimpleNamespace(
        span=Span(SOURCE, start, start + 4), line=line, shared_wavefronts=wavefronts, shared_ideal_wavefronts=ideal,
        shared_requests=requests, global_sectors=sectors,
    )  # fmt: skip


def run(sites: Any = (), counters: Any = None, findings: Any = ()) -> Any:
    module = SimpleNamespace(source=SOURCE)
    given = {"counters": counters or {}, "findings": findings, "pipeline": SimpleNamespace(module=module)}
    return SimpleNamespace(sites=list(sites), **given)


def finding(severity: str, code: str = "race") -> Any:
    return SimpleNamespace(severity=severity, code=code, message=f"a {severity}", render=lambda: f"<{severity}>")


@pytest.mark.parametrize(
    ("key", "total", "text"),
    [
        ("workgroups", 1234567, "1,234,567"),
        ("flops", 3.0, "3"),
        ("flops", 1.0, "1"),
        ("intensity", 0.123456, "0.1235"),
        ("intensity", 2.5, "2.5"),
        ("intensity", 12345.678, "1.235e+04"),
        ("working_invocations", 0.2564, "25.6%"),
        ("simt_efficiency", 1.0, "100.0%"),
    ],
)
def test_figures(key, total, text):
    assert rows(html(run(counters={key: total, "barriers": 0})))[0][1:] == [text]  # one row, without what is 0


def rows(page: str) -> list[list[str]]:
    """The cells of a page."""
    return [re.findall("<td[^>]*>(.*?)</td>", row) for row in re.findall("<tr>(.*?)</tr>", page)]


def test_the_most_expensive_lines_come_first():
    sites = [site(n, wavefronts=n % 4, sectors=n if n > 3 else 0) for n in range(1, 8)]
    # by wavefronts and sectors together: 7 + 3, 6 + 2, 5 + 1, 4, 3
    assert rows(html(run([*sites, site(9)]))) == [
        [],
        ["7", "3", "7", "line 7"],
        ["6", "2", "6", "line 6"],
        ["5", "1", "5", "line 5"],
        ["4", "", "4", "line 4"],
        ["3", "3", "", "line 3"],
    ]
    assert "<table" not in html(run([site(9)]))


def test_findings_have_the_colour_of_their_severity():
    page = html(run(findings=[finding("error"), finding("warning"), finding("info")]))
    colours = re.findall('<pre style="text-align: left; color: (.*?)">(.*?)</pre>', page)
    assert [text for _, text in colours] == ["&lt;error&gt;", "&lt;warning&gt;", "&lt;info&gt;"]
    assert (len({colour for colour, _ in colours}), colours[2][0]) == (3, "inherit")


@pytest.mark.parametrize(
    ("sites", "findings", "line"),
    [
        ([], [], "<run of k.wgsl: no excess>"),
        ([site(3, 4, 4)], [finding("info")], "<run of k.wgsl: no excess>"),
        ([site(3, 9, 8), site(4, 9, 2, 4)], [],
         "<run of k.wgsl: most excess at k.wgsl:4, 2.25 wavefronts per request>"),
        ([], [finding("info"), finding("error")], "<run of k.wgsl: race, a error>"),
        ([], [finding("warning"), finding("error"), finding("error")],
         "<run of k.wgsl: race, a warning; 2 more findings>"),
        ([site(3, 4, 1)], [finding("error")],
         "<run of k.wgsl: most excess at k.wgsl:3, 4 wavefronts per request; race, a error>"),
    ],
)  # fmt: skip
def test_one_line(sites, findings, line):
    assert one_line(run(sites, findings=findings)) == line
    assert one_line(run(sites, findings=findings), "other.wgsl") == line.replace("run of k.wgsl", "run of other.wgsl")


def test_the_excess_of_a_place():
    assert excess(site(1, 9, 2)) == 7


def test_a_run_without_traffic_has_no_table_of_lines() -> None:
    assert "<th>line</th>" not in "".join(html(run([site(3)])))
    assert "<th>line</th>" in "".join(html(run([site(3, sectors=4)])))
