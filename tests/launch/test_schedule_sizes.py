"""Which units take turns in a schedule, how many workgroups run side by side in it, and who begins."""

from __future__ import annotations

import pytest

from bankshot.sim.launch.schedules import (
    LOCKSTEP,
    MIRRORED,
    REVERSED,
    SERIAL,
    SIDE_BY_SIDE,
    Schedule,
    schedule,
    side_by_side,
)

TURNS, SUBGROUPS = Schedule("", "turns", beside=0), Schedule("", "subgroup", beside=0)
INVOCATIONS = Schedule("", "invocation", beside=0)


@pytest.mark.parametrize(
    ("order", "lanes", "workgroups", "beside"),
    [
        # In lockstep, 65,536 lanes, of which a vector has at least 16.
        (SIDE_BY_SIDE, 64, 3, 3),
        (SIDE_BY_SIDE, 64, 1024, 1024),
        (SIDE_BY_SIDE, 64, 1025, 1024),
        (SIDE_BY_SIDE, 1, 5000, 4096),  # 4,096 groups
        (SIDE_BY_SIDE, 16, 5000, 4096),
        (SIDE_BY_SIDE, 17, 5000, 3855),
        (SIDE_BY_SIDE, 1024, 5000, 64),
        # In turns, 4,096 units and 262,144 lanes.
        (TURNS, 64, 5000, 4096),
        (TURNS, 128, 5000, 2048),
        (SUBGROUPS, 256, 5000, 512),  # 8 units each
        (SUBGROUPS, 100, 5000, 1024),  # 4, one of them smaller
        (SUBGROUPS, 8, 5000, 4096),  # one of 8 lanes, in a vector of 16
        (SUBGROUPS, 1024, 5000, 128),
        (INVOCATIONS, 1, 5000, 4096),
        (INVOCATIONS, 64, 5000, 64),
        (INVOCATIONS, 1024, 5000, 4),
        (INVOCATIONS, 8192, 5000, 1),
        (LOCKSTEP, 64, 5000, 1),
        (MIRRORED, 64, 5000, 4),
        (SERIAL, 64, 5000, 1),
    ],
)
def test_how_many_workgroups_run_side_by_side(order: Schedule, lanes: int, workgroups: int, beside: int) -> None:
    sized = order.sized(lanes, workgroups, 32)
    assert (sized.beside, sized.granularity) == (beside, order.granularity)


@pytest.mark.parametrize(
    ("lanes", "workgroups", "units"),
    [
        (64, 1 << 10, "invocation"),
        (64, (1 << 10) + 1, "subgroup"),
        (64, 1 << 16, "subgroup"),
        (64, (1 << 16) + 1, "turns"),
    ],
)
def test_the_units_of_a_drawn_order_suit_the_size_of_the_dispatch(lanes: int, workgroups: int, units: str) -> None:
    assert schedule("random(3)").sized(lanes, workgroups, 32).granularity == units
    assert schedule("random(3,workgroups)").sized(lanes, workgroups, 32).granularity == "turns"


@pytest.mark.parametrize(
    ("order", "lanes", "workgroups", "finer"),
    [
        (LOCKSTEP, 64, 2, [("turns", 2), ("subgroup", 2), ("invocation", 2)]),
        (LOCKSTEP, 64, 1, [("subgroup", 1), ("invocation", 1)]),  # one workgroup takes no turns
        (LOCKSTEP, 32, 1, [("invocation", 1)]),
        (LOCKSTEP, 33, 1, [("subgroup", 1), ("invocation", 1)]),
        (LOCKSTEP, 8, 1, [("invocation", 1)]),
        (LOCKSTEP, 1, 1, []),
        (LOCKSTEP, 1, 2, [("turns", 2), ("subgroup", 2), ("invocation", 2)]),
        (schedule("subgroup-serial"), 64, 2, [("subgroup", 2), ("invocation", 2)]),
        (SUBGROUPS, 64, 2, [("invocation", 2)]),  # it has all of them side by side already
        (REVERSED, 64, 2, [("invocation", 2)]),
        (INVOCATIONS, 64, 2, []),
        (TURNS, 64, 2, [("subgroup", 2), ("invocation", 2)]),
    ],
)
def test_smaller_units_of_the_same_order(
    order: Schedule, lanes: int, workgroups: int, finer: list[tuple[str, int]]
) -> None:
    found = order.finer(lanes, workgroups, 32)
    assert [(each.granularity, each.beside) for each in found] == finer
    assert {(each.name, each.seed, each.pick) for each in found} <= {(order.name, order.seed, order.pick)}


@pytest.mark.parametrize(
    ("order", "numbers"),
    [
        (LOCKSTEP, []),  # ascending
        (SERIAL, []),
        (MIRRORED, [4, 3, 2, 1, 0]),
        (REVERSED, [4, 3, 2, 1, 0]),
        (side_by_side([3, 1]), [3, 1, 0, 2, 4]),
        (side_by_side([4, 7]), [4, 0, 1, 2, 3]),  # 7 is not in the grid
        (side_by_side([5, 0]), [0, 1, 2, 3, 4]),
    ],
)
def test_the_order_of_five_workgroups(order: Schedule, numbers: list[int]) -> None:
    assert order.order(5).tolist() == numbers


def test_a_drawn_order_has_each_workgroup_once() -> None:
    one, other = schedule("turns(1)").order(50).tolist(), schedule("turns(2)").order(50).tolist()
    assert sorted(one) == sorted(other) == [*range(50)]
    assert one != other
    assert one == schedule("turns(1)").order(50).tolist()


def test_what_lets_others_go_on() -> None:
    patient = [each.name for each in (LOCKSTEP, MIRRORED, SERIAL, REVERSED, SIDE_BY_SIDE) if each.patience]
    assert patient == ["mirrored", "reversed"]
    drawn = [name for name in ("turns(1)", "random(1)", "pct(1,3)") if schedule(name).patience]
    assert drawn == ["pct(1,3)"]


def test_which_orders_mirror_the_lanes() -> None:
    orders = (LOCKSTEP, MIRRORED, SERIAL, REVERSED, SIDE_BY_SIDE, schedule("turns(1)"), schedule("random(1)"))
    assert [each.name for each in orders if each.mirrors] == ["mirrored"]
    assert [each.name for each in orders if each.takes_turns] == ["serial", "reversed", "turns(1)", "random(1)"]
    assert [each.name for each in orders if each.switches] == ["random(1)"]


def test_orders_that_need_the_same_memory_have_one_layout() -> None:
    assert REVERSED.layout == SERIAL.layout
    assert schedule("turns(1)").layout == schedule("turns(2)").layout
    assert MIRRORED.layout != Schedule("", beside=4).layout  # its lanes are from the last to the first
    assert schedule("random(1)").layout == schedule("pct(2,3)").layout
    assert schedule("random(1,subgroups)").layout != schedule("random(1,workgroups)").layout


@pytest.mark.parametrize("name", ["random({})", "turns({})", "pct({},2)"])
def test_seeds_have_32_bits_and_none_is_0(name):
    drawn = [schedule(name.format(seed)).seed for seed in (0, 5, (1 << 32) - 1, 1 << 32, (1 << 32) + 5)]
    assert drawn[0] == drawn[3]
    assert drawn[1] == drawn[4]
    assert 0 not in drawn
    assert len({*drawn}) == 3
