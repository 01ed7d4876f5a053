"""What a run says of the workgroups that ran, and which sites it lists."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot
from bankshot.sim.run.workgroup_coverage import Coverage


@pytest.mark.parametrize(
    ("coverage", "words", "exact"),
    [
        (Coverage("all", 1, 1), "the only workgroup ran", True),
        (Coverage("all", 2, 2), "all 2 workgroups ran", True),
        (Coverage("all", 1200, 1200, why="they meet"), "all 1,200 workgroups ran: they meet", True),
        (Coverage("classes", 24, 2), "24 workgroups, 2 representatives simulated", True),
        (Coverage("classes", 24, 1), "24 workgroups, 1 representative simulated", True),
        (Coverage("sample", 2400, 8), "a sample: 8 of 2,400 workgroups ran", False),
        (
            Coverage("all", 2, 2, unwatched=1000),
            "all 2 workgroups ran; watched in part: races were not looked for in 1,000 accesses, which are irregular "
            "and past the first 16,777,216 elements of the bindings",
            True,
        ),
    ],
)
def test_which_workgroups_ran(coverage: Coverage, words: str, exact: bool) -> None:
    assert (str(coverage), coverage.exact) == (words, exact)


TWO = """@group(0) @binding(0) var<storage, read_write> y: array<u32, 4>;
@group(0) @binding(1) var<storage, read_write> z: array<u32, 4>;
@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {
    var a = array<u32, 4>(1, 2, 3, 4);
    a[i ^ 1u] = i;
    y[i] = a[i];
    z[i] = 2u;
    if i == 3u { y[3] = 7u; }
}"""


def run() -> bankshot.Run:
    return bankshot.simulate(TWO, grid=1, bindings={name: np.zeros(4, np.uint32) for name in "yz"})


def test_an_element_was_stored_where_its_own_buffer_was() -> None:
    done = run()
    found = {}
    for bound in done.dispatch.bound:
        spans = [done.dispatch.span_of_store(bound, 4 * element) for element in range(4)]
        found[bound.key] = [span and span.line for span in spans]
    assert found == {"y": [6, 6, 6, 8], "z": [7, 7, 7, 7]}


def test_an_element_that_nothing_stored_to_has_no_writer() -> None:
    text = TWO.replace("z[i] = 2u;", "if i > 1u { z[i] = 2u; }")
    done = bankshot.simulate(text, grid=1, bindings={name: np.zeros(4, np.uint32) for name in "yz"})
    assert [done.writer("z", element) is None for element in range(4)] == [True, True, False, False]
    last = done.writer("z", 3)
    assert last is not None
    assert (last.workgroup, last.lane, last.span and last.span.line) == ((0, 0, 0), 3, 7)


def test_sites_are_accesses_of_memory_that_others_see() -> None:
    done = run()
    assert [(row.site.kind, row.site.variable, row.line) for row in done.sites] == [
        ("store", "y", 6), ("store", "z", 7), ("store", "y", 8),
    ]  # fmt: skip
    assert "index" in {site.kind for site in done.program.sites}  # of the array, checked against its length
