"""Sums over regions that were put together by hand."""

import numpy as np

from bankshot.sim.machine import layout as at
from bankshot.sim.performance.chains import RegionCosts
from bankshot.sim.run.region_sums import ExecutedPhase, region_sums


def blocks(**columns: list[int]) -> np.ndarray:
    """Return what basic blocks counted, by the names of fields."""
    found = np.zeros((len(columns["executions"]), at.BLOCKS_RUN.size), np.int64)
    for name, column in columns.items():
        found[:, getattr(at, name.upper())] = column
    return found


def test_a_region_is_executed_as_often_as_its_blocks_or_else_as_the_one_around_it() -> None:
    body = RegionCosts(None, blocks=[0])
    branch = RegionCosts(body, blocks=[1, 2])
    part = RegionCosts(branch)  # without basic blocks
    for each, count in ((body, 1), (branch, 10), (part, 100)):
        each.issued["fp32"] = each.software["fp32"] = count
        each.chain["alu"] = float(count)
    sums = region_sums([body, branch, part])
    counted = blocks(executions=[12, 3, 4], launched=[12 * 64, 64, 96], longest=[128, 64, 32])
    found = sums.of(counted, 6, 2, 64)
    (phase,) = found.phases
    assert phase.issued == {"fp32": 12 + 110 * 4}
    assert phase.chain == {"alu": 2 + 110 * 96 / (6 * 64)}
    assert phase.longest == {"alu": 2 + 110 * 1.0}
    assert found.software == {"fp32": 12 + 110 * 12}  # both sides of each branch: all 12 subgroups
    assert found.software_chain == {"alu": 12 + 110 * 12}


def test_instructions_are_those_of_the_workgroups_that_others_stand_for() -> None:
    body = RegionCosts(None, blocks=[0])
    body.issued["fp32"] = body.software["fp32"] = 1
    body.chain["alu"] = 3.0
    found = region_sums([body]).of(blocks(executions=[12], launched=[6 * 64], longest=[64]), 6, 2, 64, scale=2.5)
    assert found.phases[0].issued == found.software == {"fp32": 30}
    assert found.phases[0].chain == found.phases[0].longest == {"alu": 3}
    assert found.software_chain == {"alu": 3 * 30}


def test_a_part_of_a_loop_may_be_counted_by_another() -> None:
    body = RegionCosts(None, blocks=[0])
    loop = RegionCosts(body, blocks=[1], repeats=True)
    continuing = RegionCosts(body, counted_by=loop, repeats=True)
    continuing.software["integer"] = continuing.issued["integer"] = 1
    sums = region_sums([body, loop, continuing])
    found = sums.of(blocks(executions=[2, 30]), 1, 2, 64)
    assert found.phases[0].issued == found.software == {"integer": 30}


def test_a_program_without_basic_blocks_is_executed_by_every_subgroup() -> None:
    region = RegionCosts(None)
    region.issued["fp32"] = 3
    sums = region_sums([region])
    found = sums.of(blocks(executions=[]), 5, 2, 64)
    assert found.phases[0].issued == {"fp32": 3 * 5 * 2}
    assert found.phases[0].chain == {}


def test_a_program_without_costs_executes_nothing() -> None:
    found = region_sums([RegionCosts(None, blocks=[0])]).of(blocks(executions=[10]), 5, 2, 64)
    assert (found.phases, found.software) == ([ExecutedPhase({}, {}, {}, {}, {})], {})


def test_a_region_in_two_phases_adds_to_the_sums_of_either() -> None:
    body = RegionCosts(None, blocks=[0])
    later = RegionCosts(None, counted_by=body, phase=1)
    for each, count in ((body, 3), (later, 5)):
        each.issued["fp32"] = count
        each.chain["alu"] = float(count)
    found = region_sums([body, later]).of(blocks(executions=[12], launched=[6 * 64], longest=[64]), 6, 2, 64)
    assert [phase.issued["fp32"] for phase in found.phases] == [3 * 12, 5 * 12]
    assert ExecutedPhase.sum(found.phases) == ExecutedPhase(
        {"fp32": 8 * 12}, {"fp32": 8}, {"alu": 8.0}, {"alu": 8.0}, {"alu": 8.0 * 12}
    )


def test_a_site_in_two_phases_is_divided_by_how_often_each_executes_it() -> None:
    """A function is called before a loop with a barrier, and in each of its 4 iterations."""
    body = RegionCosts(None, blocks=[0], sites=[7, 8])
    loop = RegionCosts(body, blocks=[1], phase=1, repeats=True, sites=[7])
    found = region_sums([body, loop]).of(blocks(executions=[12, 48]), 6, 2, 64)
    assert found.shares == [{7: 12 / 60}, {7: 48 / 60}]


def test_two_copies_in_a_phase_count_twice() -> None:
    body = RegionCosts(None, blocks=[0], sites=[7, 7])
    later = RegionCosts(None, counted_by=body, phase=1, sites=[7])
    found = region_sums([body, later]).of(blocks(executions=[12]), 6, 2, 64)
    assert found.shares == [{7: 2 / 3}, {7: 1 / 3}]


def test_a_site_that_is_not_executed_has_no_share() -> None:
    body = RegionCosts(None, blocks=[0])
    first = RegionCosts(body, blocks=[1], sites=[7])
    later = RegionCosts(body, blocks=[2], phase=1, sites=[7])
    found = region_sums([body, first, later]).of(blocks(executions=[12, 0, 0]), 6, 2, 64)
    assert found.shares == [{7: 0.0}, {7: 0.0}]
