"""Uniform values under lane divergence: a pass refutes what it relied on, and stops only at a fixed point."""

from __future__ import annotations

import pytest

import bankshot
from bankshot.sim.analysis import lane_uniformity
from bankshot.sim.codegen.build import draft
from bankshot.sim.ir import ir
from bankshot.sim.ir.rounding import Rounding
from tests.programs_made import random_programs as rp

EXACT = Rounding(fused=False, contracts=False, cuts_f16=False)


def lowered(text):
    pipeline = bankshot.check(text, uniformity="off").pipeline(None)
    return draft(pipeline, rounding=EXACT, probes=frozenset(), policy="clamp").lowered


def marks(body, slots):
    values = [item for item in ir.items_of(body) if isinstance(item, ir.Value)]
    return [each.uniform for each in values], [each.uniform for each in slots]


def is_fixed(text, one_workgroup):
    """Whether another pass, under the assumptions that are left, finds the same."""
    found = lowered(text)
    body, accesses, slots = found.body, found.accesses, found.builder.slots
    uniformity = lane_uniformity.find_uniformity(body, accesses, slots, one_workgroup=one_workgroup)
    before = marks(body, slots)
    again = lane_uniformity._Walk(accesses, one_workgroup, set(uniformity.divergent), enabled=True)
    again.region(body)
    sets = [(each.divergent, each.whole, each.leaving, each.skipping) for each in (uniformity, again.found)]
    return marks(body, slots) == before and sets[0] == sets[1]


@pytest.mark.parametrize("chunk", range(4))
def test_another_pass_over_a_random_program_finds_the_same(chunk):
    for seed in range(chunk * 25, chunk * 25 + 25):
        text = rp.render(rp.Maker(seed).program(), 64)
        assert is_fixed(text, one_workgroup=bool(seed % 2)), seed


LOOP = """
    @group(0) @binding(0) var<storage, read_write> y: array<u32>;
    @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {{
        var a = 0u; var b = 0u;
        for (var i = 0u; i < 4u; i++) {{ {body} }}
        y[l] = a + b;
    }}"""


@pytest.mark.parametrize(
    ("body", "divergent"),
    [
        ("a = b; b = i;", False),
        ("if a > 2 { b = i; } a = l;", True),  # `a` is refuted after it was read
        ("if b > 2 { a = i; } b = a; a = l;", True),  # and `b` one pass later
        ("a = l; if i > 2 { b = 1; }", False),
        ("a = l; if a > 2 { b = 1; }", True),
    ],
)
def test_a_branch_on_a_variable_diverges_where_lanes_may_differ_in_it(body, divergent):
    text = LOOP.format(body=body)
    assert is_fixed(text, one_workgroup=True)
    found = lowered(text)
    uniformity = lane_uniformity.find_uniformity(found.body, found.accesses, found.builder.slots, one_workgroup=True)
    branches = {id(item) for item in ir.items_of(found.body) if isinstance(item, ir.If)}
    assert bool(branches & uniformity.divergent) == divergent
