"""The lines that a calibration prints."""

from itertools import islice
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from bankshot.oracle.calibration.report import calibration_lines


def test_costs_stand_below_each_other() -> None:
    costs = {"l1": SimpleNamespace(value=2.5, spread=None), "latency_dram": SimpleNamespace(value=600.0, spread=1.5)}
    found = SimpleNamespace(costs=SimpleNamespace(adapter="A", driver="D", costs=costs), points=[], refused=())
    assert [*islice(calibration_lines(cast("Any", found)), 3)] == [
        "A (D), 0 micro-benchmarks",
        "  l1                     2.5  given",
        "  latency_dram           600  within a factor of 1.50",
    ]


def test_errors_are_medians_by_kind() -> None:
    costs = {"l1": SimpleNamespace(value=2.5, spread=None)}
    errors = {"fitted": [1.0, 9.0, 1.5, 2.0, 1.1], "left_out": [3.0, 7.0, 2.5, 2.0, 8.0]}
    found = SimpleNamespace(
        costs=SimpleNamespace(adapter="A", driver="D", costs=costs),
        points=[SimpleNamespace(kind=kind) for kind in ("loads", "stores", "loads", "loads", "stores")],
        fitted=SimpleNamespace(errors=np.array(errors["fitted"])),
        left_out=np.array(errors["left_out"]),
        error_90=1.25,
        refused=["atomics", "atomics", "f16"],
    )
    lines = [" ".join(line.split()) for line in calibration_lines(cast("Any", found))]
    assert lines[1] == "the adapter refused 3 more: atomics, f16"
    assert lines[-3:] == [
        "loads 1.50 2.50",  # of 1, 1.5, 2 and of 3, 2.5, 2
        "stores 5.05 7.50",  # of 9, 1.1 and of 7, 8
        "90% of predictions without the kind are within a factor of 1.25",
    ]
