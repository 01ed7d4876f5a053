"""Values that a thread needs before weak memory has decided them: an index, an address, a condition, an operand.

Load buffering: workgroup 0 loads x and then stores to y what depends on it; workgroup 1 loads y and then stores to x.
A load may wait for a later store of its thread, but not for one that depends on it: no value comes out of thin air.
"""

from __future__ import annotations

import numpy as np
import pytest

import bankshot

TEXT = """{enable}
@group(0) @binding(0) var<storage, read_write> m: array<atomic<u32>, 2>;
@group(0) @binding(1) var<storage, read_write> r: array<u32, 2>;
@group(0) @binding(2) var<storage, read_write> own: array<atomic<u32>, 2>;
@group(0) @binding(3) var<storage> same: array<u32, 2>;
@group(0) @binding(4) var<storage, read_write> pairs: array<vec4u, 2>;
@compute @workgroup_size(1) fn main(@builtin(workgroup_id) w: vec3u) {{
    _ = &own; _ = &same; _ = &r; _ = &pairs;
    let a = atomicLoad(&m[w.x]);
    {body}
    r[w.x] = a;
}}
"""
# Statements that make the value of `a`, which is 0 or 1, into `b`.
DEPENDENT = {
    "operand": "let b = a * 2u - a;",
    "condition": "var b = 0u; if a == 1u { b = 1u; }",
    "element of a small array": "var t = array(0u, 1u); let b = t[a];",
    "element of a large array": "var t: array<u32, 40>; t[1] = 1u; let b = t[a];",
    "place in a small array": "var t = array(7u, 7u); t[1u - a] = 1u - a; t[a] = a; let b = t[a];",
    "place in a large array": "var t: array<u32, 40>; t[a] = a; let b = t[1];",
    "in a large array": "var t: array<u32, 40>; t[w.x] = a; let b = t[w.x];",
    "component": "let b = vec4u(0, 1, 7, 7)[a];",
    "address": "let b = same[a];",
    "atomic operation on a word that no other accesses": "atomicAdd(&own[w.x], a); let b = atomicLoad(&own[w.x]);",
    "store to a word that no other accesses": "atomicStore(&own[w.x], a); let b = atomicLoad(&own[w.x]);",
    "exchange on a word that no other accesses": "let z = atomicExchange(&own[w.x], a); let b = atomicLoad(&own[w.x]);",
    "compare-exchange on a word that no other accesses": "atomicStore(&own[w.x], a);"
    "let b = select(0u, 1u, atomicCompareExchangeWeak(&own[w.x], 1u, 5u).exchanged);",
    "vector": "var p = vec4u(7, a, 7, 7); let q = p.yxyx; let b = q.z;",
    "vector in memory that no other accesses": "pairs[w.x] = vec4u(7, 7, a, 7); let b = pairs[w.x].z;",
    "subgroup operation": "let b = subgroupAdd(a);",
    "loop": "var b = 0u; for (var k = 0u; k < a; k++) { b++; }",
}


def results(body: str, memory: str) -> set[tuple[int, ...]]:
    text = TEXT.format(enable="enable subgroups;" if "subgroup" in body else "", body=body)
    bindings = {"m": np.zeros(2, np.uint32), "r": np.zeros(2, np.uint32), "own": np.zeros(2, np.uint32)}
    bindings |= {"same": np.array([0, 1], np.uint32), "pairs": np.zeros((2, 4), np.uint32)}
    found = bankshot.explore(text, grid=2, bindings=bindings, memory=memory)
    assert found.complete
    assert not found.deadlocks
    return {tuple(outcome.outputs["r"].tolist()) for outcome in found.outcomes}


@pytest.mark.parametrize("memory", ["sc", "weak"])
@pytest.mark.parametrize("dependent", DEPENDENT.values(), ids=DEPENDENT.keys())
def test_no_value_comes_out_of_thin_air(dependent, memory):
    assert results(f"{dependent} atomicStore(&m[1u - w.x], b);", memory) == {(0, 0)}


@pytest.mark.parametrize("dependent", DEPENDENT.values(), ids=DEPENDENT.keys())
def test_a_load_may_wait_for_the_store_of_a_constant(dependent):
    """Workgroup 1 stores 1 whatever it loads; workgroup 0 hands on what it loads."""
    body = f"if w.x == 1u {{ atomicStore(&m[0], 1u); }} else {{ {dependent} atomicStore(&m[1], b); }}"
    assert results(body, "sc") == {(0, 0), (1, 0)}
    assert results(body, "weak") == {(0, 0), (1, 0), (1, 1)}
