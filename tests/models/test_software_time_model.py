"""The model of time of software adapters, on works whose times were worked out by hand."""

from dataclasses import replace
from typing import Any

import pytest

from bankshot.sim.models import Cost, MeasuredCosts, get
from bankshot.sim.models.software_time_model import COSTS, UNITS, predicted_us
from bankshot.sim.models.time_model import GPU, SOFTWARE, memory_levels, model_of, predict
from tests.models.test_time_model import IDLE

FREE = {**dict.fromkeys(COSTS, 0.0), "error_90": 2.0}
CORES = 8  # so that the busiest core has 3 of the 20 workgroups
SHARE = 3 / 20 / 1000  # of nanoseconds of all, in microseconds
KINDS = ("storage_load", "storage_store", "uniform_load", "workgroup_load", "workgroup_store", "storage_atomic",
         "workgroup_atomic")  # fmt: skip


def us(changes: dict[str, Any], **costs: float) -> float:
    return float(predicted_us(replace(IDLE, **changes), {**FREE, **costs}, CORES)[0])


# what is changed, costs, and the microseconds
CASES = [
    ({}, {"launch_us": 1.5}, 1.5),
    ({}, {"workgroup_start_ns": 100.0, "subgroup_start_ns": 10.0}, 3 * (100 + 2 * 10) / 1000),
    ({"software": {"fp16": 400.0}}, {"fp32_ns": 5.0}, 400 * 5 * SHARE),
    ({"software": {"workgroup_atomic_sum": 400.0}}, {"workgroup_atomic_ns": 5.0}, 400 * 5 * SHARE),
    ({"software_chain": {"alu": 400.0, "fp32": 100.0}}, {"wait_ns": 1.0, "wait_fp32_ns": 3.0}, 700 * SHARE),
    ({"missed_lines": 400.0}, {"missed_line_ns": 5.0}, 400 * 5 * SHARE),
    ({"store_lines": 400.0}, {"store_line_ns": 5.0}, 400 * 5 * SHARE),
    ({"shared_atomics": 400.0}, {"shared_atomic_ns": 5.0}, 400 * 5 * SHARE),
    *(({"software": {kind: 400.0}}, {f"{kind}_ns": 5.0}, 400 * 5 * SHARE) for kind in (
        *KINDS, "fp32", "fp32_divide", "integer", "comparison", "integer_multiply", "integer_divide", "bit_count",
        "conversion", "exp", "log", "sin", "sqrt", "branch", "loop", "subgroup", "barrier", "local",
        "local_scattered", "local_scattered_store")),
    *(({"lanes": {kind: 400.0}}, {f"{kind}_lane_ns": 5.0}, 400 * 5 * SHARE) for kind in KINDS),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "costs", "expected"), CASES)
def test_each_cost_is_charged_for_its_own_work(changes, costs, expected) -> None:
    assert us(changes, **costs) == pytest.approx(expected, rel=1e-6)


def test_every_cost_is_charged_for_something() -> None:
    assert {name for _, costs, _ in CASES for name in costs} == COSTS.keys() - {"error_90"}


def test_units_add_up_but_instructions_overlap_with_the_waits_for_their_results() -> None:
    work = {"software": {"integer": 400.0, "barrier": 400.0}, "software_chain": {"alu": 400.0}}
    assert us(work, integer_ns=5.0, barrier_ns=5.0) == pytest.approx(2 * 2000 * SHARE)
    assert us(work, integer_ns=5.0, wait_ns=5.0) == pytest.approx(2 ** (1 / 3) * 2000 * SHARE)


def test_the_names_of_costs_choose_the_model() -> None:
    assert model_of(COSTS) is SOFTWARE
    assert model_of(GPU.costs) is GPU
    assert model_of({}) is GPU


def test_a_device_with_the_costs_of_software_predicts_by_them() -> None:
    costs = MeasuredCosts({name: Cost(value, None, "by hand") for name, value in {**FREE, "barrier_ns": 5.0}.items()})
    device = get("lavapipe").with_(cores=CORES, costs=costs)
    work = replace(IDLE, software={"barrier": 400.0})
    found = predict(work, device)
    assert (found.us, found.limiter) == (pytest.approx(400 * 5 * SHARE), "barriers")
    assert found.calibrated
    assert memory_levels(work, device) == []


def test_parts_add_up() -> None:
    total, parts = predicted_us(
        replace(IDLE, software={"exp": 9.0}, lanes={"storage_load": 7.0}), SOFTWARE.begin, CORES
    )
    assert sum(parts.values()) == pytest.approx(total)
    assert parts.keys() == {*UNITS, "launch"}
