"""Fits find the costs that times were made with, and say how far off they are without a kind of dispatch."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from bankshot.oracle.calibration.fit import NoSciPy, Point, bound_of, fit, left_out
from bankshot.sim.models.time_model import GPU, SOFTWARE
from tests.models.test_time_model import CORES, FREE, IDLE

pytest.importorskip("scipy", reason="the fit needs SciPy: pip install 'bankshot[calibrate]'")

TRUE = {**FREE, "wavefront": 3.0, "load_wavefront": 0.5, "launch_us": 2.0}


def points() -> list[Point]:
    """Times by `TRUE`, of works that ask of one unit each."""
    found: list[Point] = []
    for size in np.geomspace(1e5, 1e8, 12).tolist():
        for kind, work in (
            ("conflicts", replace(IDLE, wavefronts=size)),
            ("lines", replace(IDLE, load_wavefronts=size)),
            ("launch", IDLE),
        ):
            found.append(Point(kind, work, float(GPU.predicted_us(work, TRUE, CORES)[0])))
    return found


def test_a_fit_finds_the_costs_that_made_the_times() -> None:
    free = {"workgroup_start": 1e-6, "subgroup_start": 1e-6}  # these times cannot tell them from the launch
    found = fit(points(), CORES, {"clock_mhz": 1000.0, **free})
    assert found.costs["wavefront"] == pytest.approx(3.0, rel=0.1)
    assert found.costs["load_wavefront"] == pytest.approx(0.5, rel=0.1)
    assert found.costs["launch_us"] == pytest.approx(2.0, rel=0.1)
    assert bound_of(found.errors) < 1.1


def test_works_of_different_numbers_of_phases_are_predicted_together_as_alone() -> None:
    one = replace(IDLE, wavefronts=1e6, load_wavefronts=1e6)
    two = replace(one, phases=(replace(one, load_wavefronts=0.0), replace(one, wavefronts=0.0)))
    three = replace(two, phases=(*two.phases, replace(IDLE, chain={"alu": 9.0})))
    found = fit([Point("", work, 1.0) for work in (one, two, three)], CORES, {"clock_mhz": 1000.0})
    alone = [GPU.predicted_us(work, found.costs, CORES)[0] for work in (one, two, three)]
    assert found.errors.tolist() == pytest.approx(alone, rel=1e-6)
    assert alone[0] < alone[1]  # whose phases take turns


def test_the_spread_of_a_cost_follows_from_the_deviations_of_times() -> None:
    """Of a mean of n times with deviations d, the variance is d * d / n. The 12 times of a kind all depend on its cost,
    the larger half of them on nothing else."""
    deviation = 0.05
    start = {"clock_mhz": 1000.0, "workgroup_start": 1e-6, "subgroup_start": 1e-6}
    exact = points()
    moved = [
        replace(each, us=each.us * np.exp(deviation if number // 3 % 2 else -deviation))
        for number, each in enumerate(exact)
    ]
    before, after = fit(exact, CORES, start).spreads, fit(moved, CORES, start).spreads
    for cost in ("wavefront", "load_wavefront"):
        added = np.log(after[cost]) ** 2 - np.log(before[cost]) ** 2
        assert deviation**2 / 12 < added < deviation**2 / 6


def test_a_cost_that_nothing_asks_for_stays_where_it_began() -> None:
    found = fit(points(), CORES, {"clock_mhz": 1000.0, "issue_fp32": 0.7})
    assert found.costs["issue_fp32"] == pytest.approx(0.7)
    assert found.spreads["issue_fp32"] > found.spreads["wavefront"]


def test_a_kind_that_was_left_out_is_predicted_by_the_others_alone() -> None:
    errors = left_out(points(), CORES, begin={"clock_mhz": 1000.0})
    conflicts = [error for error, point in zip(errors, points(), strict=True) if point.kind == "conflicts"]
    # without conflicts, a wavefront costs what the fit began with, 1 instead of 3
    assert np.median(conflicts) == pytest.approx(1 / 3, rel=0.1)


def test_a_bound_holds_the_share_that_it_says() -> None:
    errors = np.array([1.0, 1.1, 1 / 1.2, 1.3, 4.0])
    assert bound_of(errors, 0.75) == pytest.approx(1.3)


def test_without_scipy_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(NoSciPy, match="pip install"):
        fit(points(), CORES)


def test_one_point_is_no_fit() -> None:
    with pytest.raises(ValueError, match="at least two"):
        fit(points()[:1], CORES)


def test_a_fit_to_a_software_adapter_finds_its_costs() -> None:
    true = {**SOFTWARE.begin, "workgroup_load_lane_ns": 7.0, "barrier_ns": 40.0, "launch_us": 2.0}
    works = [
        replace(IDLE, **{name: {kind: float(size)}})
        for size in np.geomspace(1e5, 1e8, 8)
        for name, kind in (("lanes", "workgroup_load"), ("software", "barrier"))
    ]
    known = [Point("", each, float(SOFTWARE.predicted_us(each, true, CORES)[0])) for each in works]
    found = fit(known, CORES, model=SOFTWARE)
    assert found.costs["workgroup_load_lane_ns"] == pytest.approx(7.0, rel=0.1)
    assert found.costs["barrier_ns"] == pytest.approx(40.0, rel=0.1)
    assert found.costs.keys() == SOFTWARE.costs.keys()
