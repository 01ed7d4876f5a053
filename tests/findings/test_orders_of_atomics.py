"""Which other orders of unordered atomic operations are tried: how many, by which units, in which workgroups."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from bankshot.sim.findings import atomic_order
from bankshot.sim.findings.unordered_atomics import Unordered
from bankshot.sim.launch.launch import Launch
from bankshot.sim.launch.schedules import LOCKSTEP


def launch(workgroups: int, size: int, *, subgroup: int = 32, waits: bool = False, y: int = 0) -> Launch:
    """What the choice of orders reads of a launch; `y` is the content of its output."""
    of = {"count": workgroups, "invocations": workgroups * size, "views": lambda: {"y": np.full(4, y, np.uint32)}}
    device, program = SimpleNamespace(subgroup_size=subgroup), SimpleNamespace(waits=waits)
    return cast(Launch, SimpleNamespace(**of, device=device, program=program))


def names(orders: Any) -> list[str]:
    return [each.name for each in orders]


@pytest.mark.parametrize(
    ("workgroups", "size", "drawn"),
    [(1, 1, 24), (1, 170, 24), (1, 171, 23), (8, 64, 8), (16, 64, 4), (64, 64, 4)],
)
def test_small_dispatches_are_run_one_by_one_in_more_orders(workgroups: int, size: int, drawn: int) -> None:
    """4096 / invocations, from 4 to 24: every third by priorities."""
    found = names(atomic_order._serial(launch(workgroups, size)))
    assert found[:2] == ["reversed", "serial"]
    assert found[2:] == ["random(1)", "pct(2,3)", "random(3)", "random(4)", "pct(5,3)", *found[7:]][:drawn]
    assert len(found) == 2 + drawn


@pytest.mark.parametrize(
    ("workgroups", "size", "subgroup", "units"),
    [
        (2048, 64, 32, "subgroups"),  # two each: 4096 in all
        (2049, 64, 32, "workgroups"),
        (2048, 33, 32, "subgroups"),  # the second one has a single invocation
        (2049, 33, 32, "workgroups"),
        (4096, 32, 32, "subgroups"),
        (4096, 33, 32, "workgroups"),
        (4096, 64, 64, "subgroups"),
        (4097, 32, 32, None),
    ],
)
def test_larger_ones_by_the_smallest_units_that_are_few(
    workgroups: int, size: int, subgroup: int, units: str | None
) -> None:
    found = names(atomic_order._by_units(launch(workgroups, size, subgroup=subgroup)))
    expected = [f"random(1,{units})", f"pct(2,3,{units})", f"random(3,{units})", f"random(4,{units})"]
    assert found == (expected if units else [])


def pair(first: int, across: bool = False) -> Unordered:
    return cast(Unordered, SimpleNamespace(workgroups=(first, first + across), across=across))


@pytest.mark.parametrize(("size", "most"), [(64, 64), (1024, 4), (3000, 1), (4096, 1)])
def test_workgroups_whose_own_operations_are_unordered_are_run_alone(size: int, most: int) -> None:
    """4096 invocations of them at most."""
    found = [pair(n) for n in (*range(100, 0, -1), 7, 7)] + [pair(0, across=True)]
    assert atomic_order._workgroups_of(found, launch(200, size)) == [*range(1, 101)][:most]
    assert atomic_order._workgroups_of(found, launch(200, size, waits=True)) == []


def test_an_order_shows_a_change_only_where_it_ends() -> None:
    """Of runs that are stopped, outputs are those of a part of the workgroups."""
    again = {"mirrored": (1, 2), "reversed": (1, 1), "serial": (0, 2), "lockstep": (3, 2)}  # the output, and who finish

    def run(probes: frozenset[str], **changes: Any) -> Any:
        y, finished = again[changes["schedule"].name]
        return launch(2, 64, y=y), SimpleNamespace(finished=finished)

    orders = [atomic_order.schedule(name) for name in again]
    found = [*atomic_order._changes_in(cast(Any, run), {"budget": 5}, launch(2, 64), orders)]
    assert [(how.get("schedule", LOCKSTEP).name, how.get("budget")) for how, _ in found] == [
        ("mirrored", 5),
        ("lockstep", 5),
    ]
    assert [words["y"].partition(",")[0] for _, words in found] == ["run mirrored", "run lockstep"]


def test_without_operations_whose_order_can_show_nothing_is_rerun() -> None:
    program = SimpleNamespace(order_dependent_atomics=False)
    unused: Any = None  # to call it would raise TypeError
    assert (
        atomic_order.blame(unused, unused, cast(Launch, SimpleNamespace(program=program)), {"y": "run mirrored"}) == []
    )
