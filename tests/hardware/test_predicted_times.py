"""The profile `nvidia-h200` against the times of an H200."""

import re
from pathlib import Path

import numpy as np

from bankshot.sim.device_files import find
from bankshot.sim.models.time_model import COSTS, predicted_us
from tests.hardware.measure_times import CORES, Item
from tests.hardware.predict_times import pairs, points, table
from tests.hardware.timed.chains import workgroup_strides
from tests.hardware.timed.transposes import transposes

PAGE = Path(__file__).parents[2] / "docs" / "time-model.md"
ROW = re.compile(
    r"^\| ([\w ]+) \| (\d+) \| (\d+) of (\d+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", re.MULTILINE
)


def rows() -> dict[str, tuple[float, ...]]:
    """The rows of the page's table by family: dispatches, pairs in order, pairs, and the errors."""
    table = PAGE.read_text(encoding="utf-8").partition("<!-- families -->")[2].partition("<!-- end of families -->")[0]
    return {name: tuple(map(float, figures)) for name, *figures in ROW.findall(table)}


def test_the_page_has_what_the_shipped_profile_predicts() -> None:
    costs = find("nvidia-h200").costs
    assert costs is not None
    values = {name: costs.value(name) for name in COSTS}
    timed = [*transposes(1), *workgroup_strides(1)]
    items = (
        Item("families", t.family, t.kernel, t.shape, t.wgsl, t.entry, t.grid, dict(t.bindings), {}) for t in timed
    )
    found = list(points("families", items))
    predicted = [float(predicted_us(point.work, values, CORES)[0]) for _, point in found]
    ordered = pairs(found, predicted)
    for family in {point.kind for _, point in found}:
        mine = [i for i, (_, point) in enumerate(found) if point.kind == family]
        off = np.exp(np.abs(np.log([predicted[i] / found[i][1].us for i in mine])))
        right = [ok for its, ok, _ in ordered if its == family]
        ratio = np.exp(np.median([each for its, _, each in ordered if its == family]))
        known = rows()[family]
        assert known[:3] == (len(mine), sum(right), len(right))
        assert np.allclose(known[3:6], [ratio, np.median(off), np.quantile(off, 0.9)], atol=0.006)


def test_the_costs_name_the_adapter_of_the_times() -> None:
    costs = find("nvidia-h200").costs
    assert costs is not None
    header = table("calibration")[0]
    assert costs.adapter in header
    assert costs.driver in header
    assert costs.date in header


def test_a_measured_rate_is_what_the_fit_found() -> None:
    # one wavefront a clock: 0.995 by the micro-benchmark alone
    costs = find("nvidia-h200").costs
    assert costs is not None
    assert abs(costs.value("wavefront") - 1) < 0.1
