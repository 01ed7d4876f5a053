"""What the command says of findings: both places, exit codes, JSON."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main

RACY = """@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<workgroup> t: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
    t[i] = i;{comment}
    {barrier}
    y[i] = t[63u - i];
    {second}
}
"""


@pytest.fixture
def audit(tmp_path):
    def command(*options: str, comment: str = "", barrier: str = "", second: str = ""):
        path = tmp_path / "racy.wgsl"
        text = RACY
        for name, value in (("comment", comment), ("barrier", barrier), ("second", second)):
            text = text.replace(f"{{{name}}}", value)
        path.write_text(text)
        given = ["audit", str(path), "--grid", "1", "--bind", "y=zeros:u32:64", "--no-gpu"]
        return CliRunner().invoke(main, [*given, *options])

    return command


def test_a_race_is_shown_with_both_places_and_ends_in_1(audit):
    done = audit()
    assert done.exit_code == 1
    assert "racy.wgsl:7:12: error[race]: invocation 0 loads t[63], and invocation 63 stores to it" in done.output
    assert "racy.wgsl:5:5: note: the store of 63 is here" in done.output
    assert "64 times in all" in done.output
    assert "hint: a workgroupBarrier() after line 5 removes this race" in done.output


def test_a_kernel_in_order_ends_in_0(audit):
    done = audit(barrier="workgroupBarrier();")
    assert (done.exit_code, "no findings" in done.output) == (0, True)


def test_a_redundant_barrier_is_information(audit):
    done = audit(barrier="workgroupBarrier();", second="storageBarrier();")
    assert done.exit_code == 0
    assert "racy.wgsl:8:5: info[redundant-barrier]: this storageBarrier orders nothing in this run" in done.output


def test_an_allowed_race_is_shown_and_ends_in_0(audit):
    done = audit(comment=" // bankshot: allow(race) because it is a test")
    assert done.exit_code == 0
    assert "allowed by a comment: race" in done.output


def test_json_has_the_places_the_verdict_and_what_was_silenced(audit):
    (case,) = json.loads(audit("--json").stdout)["cases"]
    (finding,) = case["findings"]
    assert (finding["code"], finding["verdict"], finding["count"]) == ("race", "harmful", 64)
    assert [place.get("line") for place in finding["places"]][:2] == [7, 5]
    (case,) = json.loads(audit("--json", comment=" // bankshot: allow(race) because it is a test").stdout)["cases"]
    assert (case["findings"], [f["code"] for f in case["silenced"]]) == ([], ["race"])
