"""What a calibration writes: the work of a dispatch as it is timed, and where costs come from."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bankshot
from bankshot.oracle.calibration import measure
from bankshot.oracle.calibration.fit import Fit
from bankshot.oracle.calibration.measure import costs_of, timed_work
from bankshot.sim.models.time_model import COSTS, GPU, SOFTWARE

COPY = """\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  y[id.x] = x[id.x];
}
"""


def test_a_timed_dispatch_also_touches_the_copies_of_its_writable_buffers() -> None:
    data = {"x": np.ones(1024, np.float32), "y": np.zeros(2048, np.float32)}
    run = bankshot.simulate(COPY, grid=16, bindings=data)
    assert run.work.footprint == 2 * 4096
    assert timed_work(run).footprint == 2 * 4096 + 8192


@pytest.mark.parametrize(("model", "us"), [(GPU, [("long", 9.0), ("short", 3.0)]), (SOFTWARE, [("long", 8.0)])])
def test_dispatches_that_take_no_time_are_left_out(monkeypatch, model, us) -> None:
    """Clocks of some adapters are that coarse. Of a software adapter the least time counts, if it exceeds a launch."""
    times = {"long": (9e-6, 8e-6), "short": (3e-6, 1e-6), "none": (0.0, 0.0)}

    def timed(plan, group, refused):
        return [
            (SimpleNamespace(constant=name), SimpleNamespace(median=median, least=least, launch=2e-6))
            for name, (median, least) in times.items()
        ]

    done = []
    monkeypatch.setattr(measure, "micro_benchmarks", lambda cores, scale, software: [software])
    monkeypatch.setattr(measure, "groups", lambda found, size: [[*found]])
    monkeypatch.setattr(measure, "_timed", timed)
    monkeypatch.setattr(measure, "_run", lambda each, device: each.constant)
    monkeypatch.setattr(measure, "timed_work", lambda run: run)
    plan: Any = SimpleNamespace(scale=1.0, device=None)
    points = [*measure._points(plan, 1, model, done.append, [])]
    assert [(point.kind, point.work, pytest.approx(point.us)) for point in points] == [
        (kind, kind, n) for kind, n in us
    ]
    assert done == [1]


def test_a_cost_that_no_fit_changes_does_not_claim_one() -> None:
    values = {name: value for name, (_, value) in COSTS.items()}
    costs = costs_of(Fit(values, dict.fromkeys(COSTS, 1.1), np.ones(2)), 1.5, "fitted to 2 times", "command")
    assert {name for name, cost in costs.items() if cost.source != "fitted to 2 times"} == set(GPU.assumed)
    assert costs["error_90"].value == 1.5
