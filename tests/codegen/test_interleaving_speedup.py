"""The estimate of what interleaving saves, worked out by hand from the costs that `codegen.interleaved` documents.

To dispatch an instruction costs 8. An instruction on one vector of 16 lanes costs 1, but one after the other a load or
store costs 3, and interleaved a load costs 8 and a store 64.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from bankshot.sim.codegen.interleaved import interleaving_speedup, narrows_in_loops
from bankshot.sim.machine import instruction as field
from bankshot.sim.machine import opcodes as op

ADD = op.scalar_opcodes()["add_u32"]
SPACES = "storage", "workgroup"  # of the accesses 0 and 1, each of which has four rows in the machine


def row(opcode: int, **fields: int) -> list[int]:
    made = [-1] * 8
    made[field.OP] = opcode
    for name, value in fields.items():
        made[getattr(field, name)] = value
    return made


def program(*rows: list[int], loops: bool = True, size: tuple[int, ...] = (256, 1, 1), batch: int = 1):
    return SimpleNamespace(
        code=np.array(rows, np.int32),
        accesses=[SimpleNamespace(space=space) for space in SPACES],
        loops=[("a loop", ())] if loops else [],
        workgroup_size=size,
        workgroups_per_batch=batch,
    )


def loop(*inside: list[int]) -> tuple[list[int], ...]:
    """Rows between others that are in no loop: one before, and a jump forward and one that it skips after."""
    back = row(op.JUMP, TARGET=1)
    return (row(ADD), *inside, back, row(op.JUMP, TARGET=len(inside) + 4), row(op.STORE, ACCESS=0), row(op.HALT))


PLAIN = loop(row(ADD))
# Rows, (cost on one vector one after the other, interleaved, dispatched instructions).
COSTS = {
    "an operation": (PLAIN, (2, 2, 2)),
    "a load": (loop(row(op.LOAD)), (4, 9, 2)),
    "a load at a known place": (loop(row(op.LOAD_KNOWN)), (4, 9, 2)),
    "a load for one lane": (loop(row(op.LOAD, MASK=field.ONE_LANE)), (2, 2, 2)),
    "a store": (loop(row(op.STORE, ACCESS=3)), (4, 65, 2)),
    "a store at a known place": (loop(row(op.STORE_KNOWN, ACCESS=0)), (4, 65, 2)),
    "a store of four": (loop(row(op.STORE_FOUR, ACCESS=0)), (4, 65, 2)),
    "a store to workgroup memory": (loop(row(op.STORE, ACCESS=4)), (2, 2, 2)),
    "several": (loop(row(op.LOAD), row(ADD), row(op.STORE, ACCESS=0)), (3 + 1 + 3 + 1, 8 + 1 + 64 + 1, 4)),
}


@pytest.mark.parametrize(("rows", "costs"), COSTS.values(), ids=COSTS)
def test_instructions_in_loops_have_their_costs(rows, costs):
    """Of 256 lanes 32 are needed: 2 vectors. Sixteen interleaved workgroups share each dispatch."""
    now, interleaved, count = costs
    expected = (8 * count + 2 * now) / (8 * count / 16 + 2 * interleaved)
    assert interleaving_speedup(program(*rows), 16, 32 / 256) == pytest.approx(expected, rel=1e-12)


# (workgroup size, workgroups in a batch, interleaved workgroups, share of lanes needed), cost now, interleaved
SHAPES = {
    "one lane takes a whole vector": ((256, 1, 1), 1, 16, 1 / 256, 16 + 1 * 2, 1 + 2 / 16),
    "17 lanes take two vectors": ((256, 1, 1), 1, 16, 17 / 256, 16 + 2 * 2, 1 + 17 / 16 * 2),
    "all three axes count": ((8, 4, 2), 1, 16, 1 / 64, 16 + 1 * 2, 1 + 2 / 16),
    "32 interleaved": ((256, 1, 1), 1, 32, 1 / 256, 16 + 1 * 2, 0.5 + 2 / 16),
    "batches of four, of which all lanes are computed": ((64, 1, 1), 4, 16, 1 / 64, 16 / 4 + 4 * 2, 1 + 2 / 16),
    "half of the lanes": ((256, 1, 1), 1, 16, 0.5, 16 + 8 * 2, 1 + 8 * 2),
}


@pytest.mark.parametrize(("size", "batch", "several", "needed", "now", "then"), SHAPES.values(), ids=SHAPES)
def test_the_shape_decides(size, batch, several, needed, now, then):
    made = program(*PLAIN, size=size, batch=batch)
    assert interleaving_speedup(made, several, needed) == pytest.approx(now / then, rel=1e-12)


def test_it_never_pays_where_more_than_half_of_the_lanes_are_needed():
    """In batches of four, 33 of 64 lanes would be estimated to gain."""
    made = program(*PLAIN, size=(64, 1, 1), batch=4)
    assert interleaving_speedup(made, 64, 32 / 64) == pytest.approx((16 / 4 + 4 * 2) / (16 / 64 + 2 * 2), rel=1e-12)
    assert interleaving_speedup(made, 64, 33 / 64) == 1.0


@pytest.mark.parametrize(
    ("rows", "loops", "narrows"),
    [
        ((row(op.NARROW), row(ADD)), True, True),
        ((row(op.NARROW), row(ADD)), False, False),
        ((row(ADD),), True, False),
        ((row(op.NARROW), row(op.TILE)), True, False),
    ],
)
def test_programs_that_narrow_in_loops(rows, loops, narrows):
    assert narrows_in_loops(program(*rows, loops=loops)) is narrows
