"""Programs whose values share operands, or depend on thousands of others, take time in proportion to their length.

A function that visits the operands of an operand again each time would take years for `SHARED`: its last value has
2^60 paths to the first. Each test checks a result, so that what it runs cannot be left out.
"""

from __future__ import annotations

import inspect
import sys

import numpy as np
import pytest

import bankshot

SHARED = 60  # statements
LONG = 1000  # statements, each of which needs the one before: more than the call stack may be deep

KERNEL = """
@group(0) @binding(0) var<storage, read_write> y: array<{kind}>;
@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(workgroup_id) w: vec3u) {{
  var i = {i};
  var j = {j};
  {statements}
  {use}
}}
"""


def kernel(statement: str, count: int, use: str, kind: str = "u32", i: str = "id.x", j: str = "id.y + 1u") -> str:
    return KERNEL.format(kind=kind, i=i, j=j, statements="\n  ".join([statement] * count), use=use)


@pytest.mark.parametrize("statement", ["j = j + i; i = i + j;", "j = (j - i) << 1u; i = 4u * (i + j);"])
@pytest.mark.parametrize("use", ["y[i + id.x] = 1u;", "for (var k = 0u; k < 2u; k++) { y[i + id.x + k] = 1u; }"])
def test_an_index_of_shared_sums(statement: str, use: str) -> None:
    """The sums are 0, which only a run can tell."""
    text = kernel(statement, SHARED, use, i="id.y", j="w.y")
    run = bankshot.simulate(text, grid=1, bindings={"y": np.zeros(8, np.uint32)})
    written = 5 if "for" in use else 4
    assert run.outputs["y"].tolist() == [1] * written + [0] * (8 - written)


def test_a_vector_of_shared_sums_is_aligned() -> None:
    """Four stores from a multiple of 4 words on merge, where the device merges adjacent ones."""
    use = "\n".join(f"y[4u * (id.x + i) + {n}u] = {n}u;" for n in range(4))
    text = kernel("j = j + i; i = i + j;", SHARED, use, i="id.y", j="w.y")
    bindings = {"y": np.zeros(64, np.uint32)}
    run = bankshot.simulate(text, grid=1, bindings=bindings, device="nvidia+merged", probes="counters")
    assert sum(site.global_requests for site in run.sites) == 1


def test_a_branch_on_shared_conditions_is_the_same_in_every_workgroup_of_a_class() -> None:
    statement = "j = j && i; i = i || j;"
    text = kernel(statement, SHARED, "if i { y[id.x] = 1u; }", i="id.x + w.y < 6u", j="w.x + w.y < 9u")
    bindings = {"y": np.zeros(8, np.uint32)}
    every, classes = (
        bankshot.simulate(text, grid=2, bindings=bindings, workgroups=workgroups) for workgroups in ("all", "classes")
    )
    assert every.outputs["y"].tolist() == [1] * 6 + [0] * 2
    assert classes.counters == every.counters


def test_the_sign_of_shared_sums() -> None:
    """Whether it is never negative decides the bound of its root."""
    text = kernel("j = j + i; i = i + j;", SHARED, "y[id.x] = sqrt(i);", "f32", "abs(f32(id.x))", "1.0")
    run = bankshot.simulate(text, grid=1, bindings={"y": np.zeros(4, np.float32)}, probes="none")
    assert np.isfinite(run.bounds["y"]).all()


@pytest.mark.parametrize("statement", ["i = i + 1u;", "i = ~i + j;"])
def test_a_long_chain(statement: str) -> None:
    module = bankshot.check(kernel(statement, LONG, "if i % 2u == 1u { y[i % 16u] = i; }"))
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(len(inspect.stack(0)) + 300)
        run = bankshot.simulate(module, grid=2, bindings={"y": np.zeros(16, np.uint32)})
        assert run.utilization.exact
    finally:
        sys.setrecursionlimit(limit)
    expected = [0] * 16
    for i in range(1, 8, 2):
        last = i + LONG if "1u" in statement else i
        expected[last % 16] = last
    assert run.outputs["y"].tolist() == expected


def test_values_that_are_not_decided_yet() -> None:
    """Two invocations store what they load from each other: with weak memory, both may wait meanwhile."""
    text = """
    @group(0) @binding(0) var<storage, read_write> y: array<atomic<u32>, 2>;
    @compute @workgroup_size(2) fn main(@builtin(local_invocation_index) l: u32) {
      var i = atomicLoad(&y[1u - l]);
      var j = i;
    """ + "j = j + i; i = i + j;\n" * SHARED + "atomicStore(&y[l], i); }"  # fmt: skip
    found = bankshot.explore(text, grid=1, bindings={"y": np.zeros(2, np.uint32)})
    assert [outcome.outputs["y"].tolist() for outcome in found.outcomes] == [[0, 0]]
    assert repr(found).startswith("<Exploration: 1 outcome in all ")
