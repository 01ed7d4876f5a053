"""Which barriers matter: verdicts worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot

FLAG = """
@group(0) @binding(0) var<storage, read_write> y: array<u32, 4>;
var<workgroup> data: atomic<u32>;
var<workgroup> flag: atomic<u32>;
@compute @workgroup_size(2) fn main(@builtin(local_invocation_index) i: u32) {
    if i == 0u { atomicStore(&data, 42u); }
    FIRST
    if i == 0u { atomicStore(&flag, 1u); }
    SECOND
    if i == 1u { y[0] = atomicLoad(&flag); y[1] = atomicLoad(&data); }
}"""


def judged(text: str, memory: str = "weak", **limits: int) -> list[tuple[int, bool | None, int]]:
    bindings = {"y": np.zeros(4, np.uint32)}
    found = bankshot.explore(text, grid=1, bindings=bindings, memory=memory, barriers=True, **limits)
    return [(each.span.line, each.matters, each.outcomes) for each in found.barriers]


@pytest.mark.parametrize(
    ("first", "second", "memory", "expected"),
    [
        # either lets the load see 42; without the second, the flag may be 0
        ("workgroupBarrier();", "workgroupBarrier();", "weak", [(7, False, 0), (9, True, 1)]),
        # the second orders no workgroup memory: the flag may be 0 with it and without; without the first, so may data
        ("workgroupBarrier();", "storageBarrier();", "weak", [(7, True, 2), (9, False, 0)]),
        # interleaved, it holds back the load all the same
        ("workgroupBarrier();", "storageBarrier();", "sc", [(7, False, 0), (9, True, 1)]),
        ("", "workgroupBarrier(); workgroupBarrier();", "weak", [(9, False, 0), (9, False, 0)]),
        ("", "", "weak", []),
    ],
)
def test_barriers_matter_where_the_outcomes_depend_on_them(first, second, memory, expected):
    assert judged(FLAG.replace("FIRST", first).replace("SECOND", second), memory) == expected


def test_a_barrier_that_keeps_a_dispatch_from_waiting_forever_matters():
    text = """
    @group(0) @binding(0) var<storage, read_write> y: array<atomic<u32>, 4>;
    @compute @workgroup_size(2) fn main(@builtin(local_invocation_index) i: u32) {
        if i == 0u { atomicStore(&y[0], 1u); }
        storageBarrier();
        if i == 1u { while atomicAdd(&y[0], 0u) != 1u { atomicStore(&y[0], 2u); } }
    }"""
    assert judged(text, "sc")[0][1] is True


def test_a_search_that_ends_early_decides_nothing():
    both = FLAG.replace("FIRST", "workgroupBarrier();").replace("SECOND", "workgroupBarrier();")
    assert [matters for _, matters, _ in judged(both, states=2)] == [None, None]
    found = bankshot.explore(both, grid=1, bindings={"y": np.zeros(4, np.uint32)}, barriers=True, states=2)
    assert found.barriers[0].sentence == "the barrier at line 7: undecided, without it there are too many states"
