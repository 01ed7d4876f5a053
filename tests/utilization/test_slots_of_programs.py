"""The issue slots that slices count, against the counters of the machine, which are counted another way."""

from math import prod

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bankshot
from bankshot.sim.models.devices import DEVICES
from bankshot.sim.run.sliced_workgroups import MOST_WORKGROUPS
from tests.programs_made.checked_programs import float_program, integer_program

SETTINGS = settings(deadline=None, max_examples=8, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("make", [integer_program, float_program])
@given(seed=st.integers(0, 10_000), size=st.sampled_from([4, 32]))
@SETTINGS
def test_slots_of_each_line_equal_the_counters(make, seed, size):
    module, how = make(seed)
    device = DEVICES["nvidia"].with_(subgroup_size=size, subgroup_sizes=(size,))
    done = bankshot.simulate(module, probes=("lanes",), device=device, **how)
    used = done.utilization
    assert used.measured <= MOST_WORKGROUPS
    assert used.workgroups == prod(done.grid)
    expected: dict[int, list[int]] = {}
    for row in done.instructions:
        sums = expected.setdefault(row.line, [0, 0])
        sums[0] += size * row.executions
        sums[1] += row.lanes
    assert {row.line: [row.issued, row.active] for row in used.lines} == expected
    assert all(0 <= row.useful <= row.active <= row.issued for row in used.lines)


LEFT = {
    "break": "for (var k = 0u; k < 4u; k++) { if k == i { break; } y[i] += x[k]; }",
    "continue": "for (var k = 0u; k < 4u; k++) { if k == i { continue; } y[i] += x[k]; }",
    "return": "for (var k = 0u; k < 4u; k++) { if k == i { return; } y[i] += x[k]; }",
    "switch": "switch i & 3u { case 0u { y[i] = x[0]; } case 1u, 2u { if i > 8u { break; } y[i] = x[1]; } default {} }",
    "function": "y[i] = first(i);",
    "nested": "for (var a = 0u; a < 3u; a++) { for (var b = 0u; b < i; b++) { if b == 5u { break; } y[i] += x[a]; } }",
    "break if": "var k = 0u; loop { y[i] += x[k]; continuing { k++; break if k >= i; } }",
    "while": "var k = i; while k > 2u { k = k / 2u; y[k] = 1.0; }",
    "short circuit": "if i > 3u && x[i] > 5.0 { y[i] = 1.0; }",
}


@pytest.mark.parametrize("body", LEFT.values(), ids=LEFT)
def test_slots_where_lanes_leave(body):
    wgsl = f"""@group(0) @binding(0) var<storage> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        fn first(i: u32) -> f32 {{
            for (var k = i; k < 40u; k++) {{ if x[k] > 20.0 {{ return x[k]; }} }}
            return 1.0;
        }}
        @compute @workgroup_size(40)
        fn main(@builtin(local_invocation_index) i: u32) {{ {body} }}"""
    given = {"x": np.arange(1, 65, dtype=np.float32), "y": np.zeros(64, np.float32)}
    done = bankshot.simulate(wgsl, bindings=given, grid=1, probes=("lanes",))
    used = done.utilization
    assert sum(row.issued for row in used.lines) == 32 * sum(row.executions for row in done.instructions)
    assert sum(row.active for row in used.lines) == sum(row.lanes for row in done.instructions)
    # Every lane that stores does so with a number that came from its own way through the body.
    stores = sum(row.lanes for row in done.instructions if row.kind == "storage_store")
    assert 0 < stores <= sum(row.useful for row in used.lines)
