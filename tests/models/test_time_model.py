"""The model of time, on works whose times were worked out by hand."""

import math
from dataclasses import replace
from typing import Any

import pytest

from bankshot.sim.models import Cost, MeasuredCosts, MissingCost, get
from bankshot.sim.models.time_model import COSTS, completed, memory_levels, predict, predicted_us
from bankshot.sim.models.work import Work

IDLE = Work(
    workgroups=20,
    subgroups=2,
    registers=10,
    resident=4,
    unevenness=1.0,
    issued={},
    code={},
    chain={},
    longest={},
    wavefronts=0.0,
    ideal_wavefronts=0.0,
    load_lines=0.0,
    ideal_load_lines=0.0,
    load_wavefronts=0.0,
    ideal_load_wavefronts=0.0,
    store_lines=0.0,
    ideal_store_lines=0.0,
    missed_lines=0.0,
    load_sectors=0.0,
    ideal_load_sectors=0.0,
    page_turns=0.0,
    local_lines=0.0,
    missed_local_sectors=0.0,
    stored_lines=0.0,
    store_sectors=0.0,
    ideal_store_sectors=0.0,
    footprint=0.0,
    moved=0.0,
    moved_again=0.0,
    reach=0.0,
    missed=0.0,
    delayed=0.0,
    reloaded=0.0,
    atomic_sectors=0.0,
    atomic_turns=0.0,
    atomic_word_turns=0.0,
    workgroup_atomic_turns=0.0,
    software={},
    software_chain={},
    lanes={},
    shared_atomics=0.0,
)
FREE = {**dict.fromkeys(COSTS, 0.0), "clock_mhz": 1000.0, "l2_bytes": 1e6, "error_90": 2.0}
CORES = 8  # so that the busiest core has 3 of the 20 workgroups


def us(work: Work, **costs: float) -> float:
    return float(predicted_us(work, {**FREE, **costs}, CORES)[0])


@pytest.mark.parametrize(
    ("changes", "costs", "expected"),
    [
        ({}, {"launch_us": 1.5}, 1.5),
        ({"issued": {"fp32": 40_000.0}}, {"issue_fp32": 0.5}, 3 / 20 * 40_000 * 0.5 / 1000),
        ({"issued": {"fp32": 40_000.0}, "unevenness": 1.5}, {"issue_fp32": 0.5}, 1.5 * 3 / 20 * 40_000 * 0.5 / 1000),
        ({"load_sectors": 40_000.0, "unevenness": 1.5}, {"l2_load_sector": 0.5}, 3 / 20 * 40_000 * 0.5 / 1000),
        ({"issued": {"special": 40_000.0}}, {"issue_fp32": 0.5}, 3 / 20 * 40_000 * 0.5 / 1000),
        ({"issued": {"special": 40_000.0}}, {"issue_special": 2.0}, 3 / 20 * 40_000 * 2 / 1000),
        ({"wavefronts": 80_000.0}, {"wavefront": 2.0}, 3 / 20 * 80_000 * 2 / 1000),
        ({"workgroup_atomic_turns": 80_000.0}, {"workgroup_atomic_turn": 3.0}, 3 / 20 * 80_000 * 3 / 1000),
        ({"load_wavefronts": 4e4}, {"load_wavefront": 3.0}, 3 / 20 * 12e4 / 1000),
        ({"store_lines": 2e4}, {"store_line": 4.0}, 3 / 20 * 8e4 / 1000),
        ({"code": {"fp32": 600.0, "special": 400.0}}, {"fetch": 20.0, "issue_fp32": 0.25}, 1000 * 0.25 * 20 / 1000),
        ({"load_sectors": 4e4}, {"l2_load_sector": 2.0}, 3 / 20 * 8e4 / 1000),
        ({"load_sectors": 4e4, "missed_lines": 4e4}, {"l2_load_sector": 1.0, "l2_load_line": 3.0}, 3 / 20 * 120),
        ({"load_sectors": 4e4, "missed_lines": 1e4}, {"l2_load_sector": 1.0, "l2_load_line": 3.0}, 3 / 20 * 40),
        ({"store_sectors": 4e4, "stored_lines": 1e4}, {"l2_store_sector": 1.0, "l2_store_line": 2.0},
         3 / 20 * 6e4 / 1000),
        # a core that asks for more than twice its part
        ({"load_sectors": 4e4, "unevenness": 4.0}, {"l2_load_sector": 2.0}, 4 * 3 / 20 * 8e4 / 2 / 1000),
        ({"load_sectors": 4e4, "workgroups": 1}, {"l2_load_sector": 2.0}, 8e4 / 2 / 1000),
        ({"missed_local_sectors": 4e4}, {"l2_load_sector": 2.0}, 3 / 20 * 8e4 / 1000),
        ({"load_sectors": 4e4, "page_turns": 1e4}, {"l2_load_sector": 2.0, "page_turn": 4.0}, 3 / 20 * 12e4 / 1000),
        ({"issued": {"fp32_divide": 40_000.0}}, {"issue_fp32_divide": 2.0}, 3 / 20 * 40_000 * 2 / 1000),
        ({"issued": {"fp32_divide": 40_000.0}}, {"issue_fp32": 0.5}, 3 / 20 * 40_000 * 0.5 / 1000),
        ({"moved_again": 1e9, "reach": 1e9}, {"dram_byte": 0.8}, 1e9 * 0.8 / CORES / 1000),
        ({"footprint": 1e9, "moved": 1e9}, {"dram_byte": 0.8}, 1e9 * 0.8 / CORES / 1000),
        ({"chain": {"alu": 100.0, "barrier": 2.0}}, {"latency_alu": 4.0, "latency_barrier": 50.0}, 500 / 1000),
        ({"chain": {"barrier": 5.0}}, {"latency_barrier": 50.0, "issue_barrier": 8.0}, 5 * (50 + 8) / 1000),
        ({"chain": {"barrier": 5.0}, "subgroups": 4}, {"issue_barrier": 8.0}, 5 * 3 * 8 / 1000),
        ({"chain": {"alu": 100.0}, "resident": 2}, {"latency_alu": 4.0}, 1.5 * 400 / 1000),
        ({"chain": {"alu": 100.0}, "longest": {"alu": 500.0}, "resident": 2}, {"latency_alu": 4.0}, 2000 / 1000),
        ({"chain": {"storage_load": 10.0}, "delayed": 0.5}, {"latency_storage_load": 40.0, "latency_l2": 200.0},
         (10 * 40 + 10 * 0.5 * 200) / 1000),
        ({"chain": {"storage_load": 10.0}, "delayed": 0.5, "footprint": 1e12, "reloaded": 0.2}, {"latency_dram": 400.0},
         10 * 0.5 * 0.8 * 400 / 1000),
        ({"atomic_sectors": 800.0, "atomic_turns": 300.0}, {"atomic_sector": 10.0, "atomic_turn": 2.0},
         (800 * 10 / CORES + 300 * 2) / 1000),
        ({"atomic_turns": 300.0, "atomic_word_turns": 100.0}, {"atomic_turn": 2.0, "atomic_word_turn": 5.0},
         (200 * 2 + 100 * 5) / 1000),
        ({}, {"workgroup_start": 100.0, "subgroup_start": 10.0}, 20 * 100 / CORES / 1000),
        ({}, {"workgroup_start": 100.0, "subgroup_start": 80.0}, 40 * 80 / CORES / 1000),
    ],
)  # fmt: skip
def test_each_unit_charges_for_its_own_work(changes: dict[str, Any], costs: dict[str, float], expected: float) -> None:
    assert us(replace(IDLE, **changes), **costs) == pytest.approx(expected, rel=1e-6)


def test_the_longest_workgroup_runs_on_alone_for_half_of_its_time() -> None:
    """The cores issue for 75 us; the chains of workgroups take 0.4 us, one of them 3.6 us more."""
    busy = replace(IDLE, subgroups=32, issued={"fp32": 1e6}, chain={"alu": 100.0}, longest={"alu": 100.0})
    costs = {"issue_fp32": 0.5, "latency_alu": 4.0}
    longer = us(replace(busy, longest={"alu": 1000.0}), **costs) - us(busy, **costs)
    assert 0.9 * 3.6 / 2 < longer < 1.2 * 3.6 / 2
    assert us(busy, **costs) == pytest.approx(75 + 0.4 / 2, rel=1e-3)


def test_a_dispatch_ends_when_its_last_stores_have_arrived() -> None:
    stores = replace(IDLE, issued={"fp32": 20_000.0}, store_lines=20.0)
    assert us(stores, issue_fp32=1.0, last_store=400.0) == pytest.approx(3.0 + 0.4)
    assert us(replace(stores, store_lines=0.0), issue_fp32=1.0, last_store=400.0) == pytest.approx(3.0)


def test_stores_to_arrays_take_a_core_half_of_what_they_take_all() -> None:
    alone, all_cores = (replace(IDLE, workgroups=each, local_lines=10_000.0) for each in (1, 80))
    assert us(alone, l2_local_line=6.0) == pytest.approx(60 / 2, rel=0.02)
    assert us(all_cores, l2_local_line=6.0) == pytest.approx(60 / CORES, rel=0.06)


def test_stores_to_arrays_go_to_the_l2_cache_while_subgroups_wait() -> None:
    alone = replace(IDLE, workgroups=1, chain={"alu": 10_000.0}, local_lines=10_000.0)
    assert us(alone, latency_alu=3.0, l2_local_line=6.0) == pytest.approx(30 * 2 ** (1 / 6), rel=0.1)


def test_two_units_that_are_equally_busy_take_longer_than_one() -> None:
    work = replace(IDLE, issued={"fp32": 20_000.0}, wavefronts=20_000.0)
    p = 2.8 - 0.9 / 6  # 3 workgroups of 2 subgroups on the busiest core
    assert us(work, issue_fp32=1.0, wavefront=1.0) == pytest.approx(3.0 * 2 ** (1 / p))


@pytest.mark.parametrize(
    ("workgroups", "subgroups", "barriers", "groups"),
    [
        (1, 1, 0.0, 1),
        (1, 32, 0.0, 32),
        (1, 32, 8.0, 1),
        (1, 32, 100.0, 1),
        (1, 64, 4.0, 8),  # half of the way
        (16, 32, 8.0, 2),
    ],
)
def test_units_overlap_less_where_barriers_hold_few_groups_of_subgroups_together(
    workgroups: int, subgroups: int, barriers: float, groups: int
) -> None:
    work = replace(IDLE, workgroups=workgroups, subgroups=subgroups, chain={"barrier": barriers})
    work = replace(work, issued={"fp32": 3_000.0}, wavefronts=4_000.0)
    p, share = 2.8 - 0.9 / groups, -(-workgroups // CORES) / workgroups
    expected = share * (3.0**p + 4.0**p) ** (1 / p)
    assert us(work, issue_fp32=1.0, wavefront=1.0) == pytest.approx(expected)


def test_the_pipelines_of_a_core_hardly_wait_for_each_other() -> None:
    work = replace(IDLE, issued={"fp32": 20_000.0, "special": 10_000.0})
    equal = us(work, issue_fp32=1.0, issue_special=3.0)  # 30,000 cycles each
    assert equal == pytest.approx(4.5 * 2 ** (1 / 6))
    one_is_half_as_busy = us(work, issue_fp32=1.0, issue_special=1.5)
    assert one_is_half_as_busy == pytest.approx(4.5, rel=0.004)


def test_comparisons_run_at_half_rate_beside_other_instructions() -> None:
    alone = replace(IDLE, issued={"comparison": 20_000.0})
    rates = {"issue_fp32": 0.5, "issue_comparison": 1.0}
    assert us(alone, **rates) == pytest.approx(3.0, rel=0.01)  # their pipeline: 20,000 cycles on 20 workgroups
    beside = replace(IDLE, issued={"comparison": 20_000.0, "fp32": 20_000.0})
    assert us(beside, **rates) == pytest.approx(3.0 * 2 ** (1 / 6))  # 20,000 slots of half a cycle for either
    behind = replace(IDLE, issued={"comparison": 20_000.0, "fp32": 180_000.0})
    assert us(behind, **rates) == pytest.approx(15.0, rel=0.001)


def test_the_parts_of_pipelines_add_up_to_the_time() -> None:
    work = replace(IDLE, issued={"fp32": 20_000.0, "special": 10_000.0}, wavefronts=30_000.0)
    costs = {"issue_fp32": 1.0, "issue_special": 3.0, "wavefront": 1.0, "launch_us": 0.5}
    total, parts = predicted_us(work, {**FREE, **costs}, CORES)
    assert sum(parts.values()) == pytest.approx(total)
    assert parts["issue"] == pytest.approx(parts["special functions"])


def test_the_levels_of_memory_hardly_wait_for_each_other() -> None:
    work = replace(IDLE, load_wavefronts=20_000.0, load_sectors=10_000.0)
    assert us(work, load_wavefront=1.0, l2_load_sector=2.0) == pytest.approx(3.0 * 2 ** (1 / 6))


BUSY = replace(IDLE, subgroups=1_000_000, issued={"fp32": 20_000.0}, wavefronts=20_000.0)  # 3 us of either unit
COSTS_OF_BUSY = {"issue_fp32": 1.0, "wavefront": 1.0}
PHASES = replace(BUSY, wavefronts=0.0), replace(BUSY, issued={})


def test_the_phases_of_a_workgroup_that_is_alone_take_turns() -> None:
    alone = replace(BUSY, workgroups=CORES, resident=1, wavefronts=0.0)
    first, later = replace(alone, issued={"fp32": 24_000.0}), replace(alone, issued={}, wavefronts=32_000.0)
    both = replace(first, wavefronts=32_000.0)
    assert us(replace(both, phases=(first, later)), **COSTS_OF_BUSY) == pytest.approx(3.0 + 4.0)
    assert us(both, **COSTS_OF_BUSY) == pytest.approx((3.0**2.8 + 4.0**2.8) ** (1 / 2.8), rel=1e-3)


@pytest.mark.parametrize(
    ("workgroups", "resident", "in_turn"),
    [
        (20, 1, 1.0),  # one after the other
        (20, 3, 1 / 3 + 2 / 3 * 0.3),  # all at once
        (20, 4, 1 / 3 + 2 / 3 * 0.3),
        (8 * 12, 4, 1 / 4 + 3 / 4 * 0.3 / 3),  # in three waves
    ],
)
def test_the_phases_of_workgroups_side_by_side_take_turns_in_part(
    workgroups: int, resident: int, in_turn: float
) -> None:
    work = replace(BUSY, workgroups=workgroups, resident=resident, phases=PHASES)
    busiest = -(-workgroups // CORES) / workgroups * 20.0
    together = 2 ** (1 / 2.8)
    expected = busiest * ((1 - in_turn) * together + in_turn * 2)
    phases = tuple(replace(each, workgroups=workgroups, resident=resident) for each in PHASES)
    assert us(replace(work, phases=phases), **COSTS_OF_BUSY) == pytest.approx(expected, rel=1e-3)


def test_the_parts_of_phases_add_up_to_the_time() -> None:
    costs = {**FREE, **COSTS_OF_BUSY, "launch_us": 0.5, "subgroup_start": 1e-6}
    total, parts = predicted_us(replace(BUSY, phases=PHASES), costs, CORES)
    assert sum(parts.values()) == pytest.approx(total)
    assert parts["workgroup start"] > 0


def test_a_change_changes_each_phase() -> None:
    measured = {name: Cost(value, None, "by hand") for name, value in {**FREE, **COSTS_OF_BUSY}.items()}
    device = get("nvidia").with_(cores=CORES, costs=MeasuredCosts(measured))
    work = replace(BUSY, resident=1, phases=PHASES)
    assert predict(work, device).us == pytest.approx(6.0)
    assert predict(work, device).savings == {"no bank conflicts": pytest.approx(3.0)}


def test_an_idle_phase_takes_no_time() -> None:
    costs = {name: 1.0 for name in COSTS if name != "launch_us"}
    last = replace(BUSY, chain={"alu": 5.0}, atomic_turns=1.0, moved=1e6, local_lines=1.0).idle()
    assert us(replace(BUSY, phases=(BUSY, last)), **costs) == pytest.approx(us(BUSY, **costs))


def test_a_unit_that_is_hardly_busy_adds_nothing() -> None:
    work = replace(IDLE, issued={"fp32": 20_000.0}, wavefronts=0.02)
    assert us(work, issue_fp32=1.0, wavefront=1.0) == pytest.approx(3.0, rel=1e-6)


def test_a_footprint_within_the_cache_is_free_and_one_beyond_it_is_not() -> None:
    near, far = (us(replace(IDLE, footprint=each, moved=each), dram_byte=1.0) for each in (3e5, 3e6))
    assert near < 0.01 * far


def test_what_workgroups_share_stays_in_the_cache_if_they_are_near() -> None:
    near, far = (us(replace(IDLE, footprint=3e6, moved_again=3e6, reach=each), dram_byte=1.0) for each in (3e5, 3e6))
    assert near < 0.01 * far


def test_a_prediction_has_bounds_parts_and_savings() -> None:
    costs = {**FREE, "wavefront": 1.0, "launch_us": 1.0}
    measured = MeasuredCosts({name: Cost(value, None, "by hand") for name, value in costs.items()})
    device = get("nvidia").with_(cores=CORES, costs=measured)
    found = predict(replace(IDLE, wavefronts=80_000.0, ideal_wavefronts=20_000.0), device)
    assert found.us == pytest.approx(13.0)
    assert (found.low, found.high) == (pytest.approx(6.5), pytest.approx(26.0))
    assert found.parts == {"workgroup memory": pytest.approx(12.0), "launch": 1.0}
    assert found.limiter == "workgroup memory"
    assert found.savings == {"no bank conflicts": pytest.approx(9.0)}


def test_a_level_of_memory_takes_its_bytes_and_its_time_from_the_model() -> None:
    costs = {**FREE, "load_wavefront": 4.0, "store_line": 1.0, "l2_load_sector": 3.0, "dram_byte": 0.8}
    measured = MeasuredCosts({name: Cost(value, None, "by hand") for name, value in costs.items()})
    loads = {"load_lines": 200.0, "load_wavefronts": 100.0, "load_sectors": 400.0}
    work = replace(IDLE, **loads, store_lines=100.0, footprint=1e9, moved=1e6)
    levels = memory_levels(work, get("nvidia").with_(cores=CORES, costs=measured))
    assert [level.name for level in levels] == ["L1 cache", "L2 cache", "device memory"]
    assert [level.bytes for level in levels] == [300 * 128, 400 * 32, pytest.approx(1e6)]
    share = 3 / 20 / 1000  # of the busiest core, in microseconds
    assert [level.us for level in levels] == pytest.approx([500 * share, 1200 * share, 1e6 * 0.8 / CORES / 1000])


def test_parts_add_up() -> None:
    work = replace(IDLE, issued={"fp32": 9_000.0}, wavefronts=7_000.0, load_wavefronts=8_000.0)
    total, parts = predicted_us(work, {**FREE, "issue_fp32": 1.0, "wavefront": 1.0, "load_wavefront": 1.0}, CORES)
    assert math.isclose(sum(parts.values()), total)


def test_a_published_cost_ranks_beside_those_that_a_fit_begins_with() -> None:
    known = {"wavefront": Cost(3.0, None, "a paper")}
    published = MeasuredCosts(known, calibrated=False)
    assert {name: cost.value for name, cost in completed(published).costs.items()} == {
        **{name: begin for name, (_, begin) in COSTS.items()},
        "wavefront": 3.0,
    }
    assert completed(published).costs["wavefront"] == known["wavefront"]
    assert completed(published).costs["dram_byte"].source == "not published: the value that a fit begins with"
    found = predict(IDLE, get("nvidia").with_(cores=CORES, costs=published))
    assert (found.calibrated, found.parts["launch"]) == (False, 1.0)


@pytest.mark.parametrize("costs", [MeasuredCosts({"wavefront": Cost(3.0, None, "timed")}), MeasuredCosts({}, False)])
def test_measured_costs_and_those_of_nothing_are_not_completed(costs: MeasuredCosts) -> None:
    assert completed(costs) is costs
    with pytest.raises(MissingCost, match="clock_mhz"):
        predict(IDLE, get("nvidia").with_(cores=CORES, costs=costs))


def test_a_device_without_costs_or_cores_has_no_time() -> None:
    with pytest.raises(MissingCost, match="clock_mhz"):
        predict(IDLE, get("nvidia"))
    with pytest.raises(ValueError, match="number of cores"):
        predict(IDLE, get("lavapipe").with_(cores=None))
