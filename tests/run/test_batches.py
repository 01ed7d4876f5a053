"""How many workgroups run side by side in one batch, by schedule and size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bankshot
from bankshot.sim.launch.schedules import schedule
from bankshot.sim.run.prepared import dispatch_of

TEXT = """@group(0) @binding(0) var<storage, read_write> y: array<u32, 64>;
@compute @workgroup_size({}) fn main() {{ _ = &y; }}
"""


@pytest.mark.parametrize(
    ("order", "size", "grid", "workgroups"),
    [
        ("lockstep", 1, 3, 3),  # no more than there are
        ("mirrored", 256, 9, 4),  # four at least
        ("mirrored", 256, 3, 3),
        ("side-by-side(0,5)", 256, 9, 2),
        ("side-by-side(0,5,6)", 256, 9, 3),
        ("turns(1)", 256, 9, 8),  # eight take turns
        ("turns(1)", 256, 5, 5),
        ("turns(1)", 1, 64, 8),
        ("subgroup-serial", 1, 9, 1),  # one after another
        ("reversed", 1, 9, 1),
        ("random(1)", 1, 9, 9),  # all invocations take turns
        ("pct(1,3)", 256, 64, 16),  # 4,096 of them at most
    ],
)
def test_workgroups_per_batch(order, size, grid, workgroups):
    module = bankshot.check(TEXT.format(size))
    dispatch = dispatch_of(module, grid=grid, bindings={"y": np.zeros(64, np.uint32)})
    assert (
        dispatch.workgroups_per_batch(replace(dispatch.how, schedule=schedule(order).sized(size, grid, 32)))
        == workgroups
    )
