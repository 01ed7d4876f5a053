"""Comments that suppress a finding."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot


def run(body: str, **options) -> bankshot.Run:
    text = f"""
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<workgroup> total: u32;
@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) i: u32) {{
{body}
}}"""
    return bankshot.simulate(text, grid=1, bindings={"y": np.zeros(8, np.uint32)}, **options)


REASON = "// bankshot: allow(race) because all store the same"
SILENT = {
    "on the line": f"total = 1u; {REASON}\nworkgroupBarrier();\ny[i] = total;",
    "on the line before": f"{REASON}\ntotal = 1u;\nworkgroupBarrier();\ny[i] = total;",
    "above another comment": f"{REASON}\n// and so on\ntotal = 1u;\nworkgroupBarrier();\ny[i] = total;",
    "at the other place": f"total = i;\ny[i] = total; {REASON}",
    "with others": "total = 1u; // bankshot: allow(uninit, race) because of this\nworkgroupBarrier();\ny[i] = total;",
}


@pytest.mark.parametrize("name", SILENT)
def test_a_comment_suppresses_a_finding(name):
    done = run(SILENT[name])
    assert "race" in [f.code for f in done.silenced]
    assert [f.code for f in done.findings if f.severity != "info" and f.code != "race"] == []


PLACES = {  # statements, a line each; the first two are the places of one finding
    "race": "total = i;\ny[i] = total;\ny[0] = 1u;",
    "component-race": "v[i & 1u].x = 1u;\ny[i] = v[i & 1u].y;\n_ = 1u;",
    "atomic-order": "atomicAdd(&a, i);\natomicMax(&a, 9u);\nworkgroupBarrier(); y[i] = atomicLoad(&a);",
}


def two_places(body: str) -> bankshot.Run:
    text = f"""
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<workgroup> total: u32;
var<workgroup> v: array<vec2u, 2>;
var<workgroup> a: atomic<u32>;
@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) i: u32) {{
{body}
}}"""
    module = bankshot.check(text, uniformity="off")
    return bankshot.simulate(module, grid=1, bindings={"y": np.zeros(8, np.uint32)}, probes=["races"])


@pytest.mark.parametrize("code", PLACES)
@pytest.mark.parametrize("line", [0, 1])
def test_a_comment_at_either_place_suppresses_a_finding(code, line):
    """Of stores that race with themselves, too, only the finding with both places is meant."""
    lines, comment = PLACES[code].splitlines(), f" // bankshot: allow({code}) because this is a test"
    plain = two_places("\n".join(lines))
    lines[line] += comment
    commented = two_places("\n".join(lines))
    both = [f for f in plain.findings if f.code == code and len({span.line for _, span in f.spans}) == 2]
    assert len(both) == 1
    left = [f.message for f in commented.findings if f.code == code]
    assert both[0].message not in left
    assert both[0].message in [f.message for f in commented.silenced]


def test_suppressed_findings_are_counted_and_kept():
    done = run(SILENT["on the line"])
    (finding,) = done.silenced
    assert (finding.code, finding.count, finding.verdict) == ("race", 7, "same-value")
    assert done.findings == []


COMPLAINTS = {
    "total = 1u; // bankshot: allow(race)": "this comment gives no reason, so it suppresses nothing",
    "total = 1u; // bankshot: allow(race) because": "this comment gives no reason, so it suppresses nothing",
    "total = 1u; // bankshot: allow because I say so": "this comment allows nothing, because it names no finding",
    "total = 1u; // bankshot: allow(races) because of this": "there is no finding called races",
    "y[i] = 1u; // bankshot: allow(race) because of this": "there is no race here to allow",
    "// bankshot: allow(race) because of this\ny[i] = 1u;\ntotal = 1u;": "there is no race here to allow",
}


@pytest.mark.parametrize("body", COMPLAINTS)
def test_a_comment_that_suppresses_nothing_is_a_finding(body):
    done = run(body)
    assert [f.message for f in done.findings if f.code == "allow"] == [COMPLAINTS[body]]
    assert [f.severity for f in done.findings if f.code == "allow"] == ["info"]
    assert done.silenced == []


def test_a_comment_for_a_probe_that_was_off_is_no_finding():
    assert run("y[i] = 1u; // bankshot: allow(race) because of this", probes=["bounds"]).findings == []


def test_other_findings_of_the_line_stay():
    done = run("y[i + total] = 1u; // bankshot: allow(race) because of this\ny[i + 1u] = 1u;", probes=["uninit"])
    assert [f.code for f in done.findings] == ["uninit"]
