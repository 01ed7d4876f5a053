"""The lines that a calibration prints."""

from itertools import islice
from types import SimpleNamespace
from typing import Any, cast

from bankshot.oracle.calibration.report import calibration_lines


def test_costs_stand_below_each_other() -> None:
    costs = {"l1": SimpleNamespace(value=2.5, spread=None), "latency_dram": SimpleNamespace(value=600.0, spread=1.5)}
    found = SimpleNamespace(costs=SimpleNamespace(adapter="A", driver="D", costs=costs), points=[], refused=())
    assert [*islice(calibration_lines(cast("Any", found)), 3)] == [
        "A (D), 0 micro-benchmarks",
        "  l1                     2.5  given",
        "  latency_dram           600  within a factor of 1.50",
    ]
