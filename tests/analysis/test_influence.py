"""What a variable influences, checked on texts where it is plain to see."""

from __future__ import annotations

import pytest

import bankshot
from bankshot.sim.analysis.influence import Influence, find_influence
from bankshot.sim.ir.rounding import Rounding
from bankshot.sim.lowering.lower import lower

HEAD = """
@group(0) @binding(0) var<storage, read> a: array<u32, 64>;
@group(0) @binding(1) var<storage, read_write> b: array<u32, 64>;
@group(0) @binding(2) var<storage, read_write> c: array<u32, 64>;
@group(0) @binding(3) var<storage, read_write> n: atomic<u32>;
var<workgroup> t: array<u32, 64>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
    _ = &a; _ = &b; _ = &c; _ = &n; _ = &t;
"""


def influence(body: str) -> Influence:
    pipeline = bankshot.check(HEAD + body + "\n}", uniformity="off").pipeline()
    rounding = Rounding(fused=False, contracts=False, cuts_f16=False)
    return find_influence(lower(pipeline, rounding, checks=False, inspects=False, policy="clamp"))


@pytest.mark.parametrize(
    ("body", "reached"),
    [
        ("b[i] = a[i];", "ab"),
        ("b[i] = a[i]; c[i] = 1u;", "ab"),
        ("t[i] = a[i]; workgroupBarrier(); c[i] = t[63u - i];", "atc"),
        ("if a[i] > 1u { b[i] = 1u; }", "ab"),
        ("b[a[i] & 63u] = 1u;", "ab"),
        ("if a[i] > 1u { return; } c[i] = 1u;", "ac"),
        ("var k = 0u; for (var j = 0u; j < a[i]; j++) { k += 1u; } b[i] = k;", "ab"),
        ("loop { if a[i] > 1u { break; } c[i] = 1u; } b[i] = 1u;", "ac"),
        ("var p = array<u32, 4>(); p[a[i] & 3u] = 1u; b[i] = p[0];", "ab"),
        *((f"var p = array<u32, 3>(); p[i % 3u] = a[i]; b[i] = p[{n}];", "ab") for n in range(3)),
        *((f"var p = array<u32, 3>(); p[{n}] = a[i]; b[i] = p[i % 3u];", "ab") for n in range(3)),
        ("if atomicAdd(&n, a[i]) == 0u { b[i] = 1u; }", "anb"),
        ("let v = a[i]; b[i] = i;", "a"),
    ],
)
def test_what_a_buffer_influences(body: str, reached: str) -> None:
    assert influence(body).variables(["a"]) == set(reached)


@pytest.mark.parametrize(
    ("body", "only_data"),
    [
        ("b[i] = a[i] * 2u;", True),
        ("if a[i] > 0u { b[i] = 1u; }", False),
        ("b[a[i]] = 1u;", False),
        ("t[i] = a[i]; workgroupBarrier(); b[t[i]] = 1u;", False),
        ("b[i] = 1u;", False),  # never loaded
        ("for (var j = 0u; j < a[0]; j++) { b[i] += 1u; }", False),
        ("b[i] = select(1u, 2u, a[i] > 3u);", True),
    ],
)
def test_data_that_decide_nothing(body: str, only_data: bool) -> None:
    assert influence(body).only_data("a") == only_data
