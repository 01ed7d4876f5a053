"""Derived bounds on adapters, for every kernel in shaders/ that has them: no finding for correct outputs, and one if a
single element of one output is off by a part in ten thousand."""

from math import prod
from pathlib import Path

import numpy as np
import pytest

from bankshot.oracle.comparison.compare import compare
from bankshot.oracle.comparison.rules import DERIVED
from bankshot.oracle.errors import Lacking
from bankshot.oracle.judge.case_run import run_on_gpu, simulate
from bankshot.oracle.manifests.cases import Request, plans
from bankshot.oracle.wgpu_client import FALLBACK

PLANTED = 1e-4
EVERY = plans([Path(__file__).parents[2] / "shaders"], Request(quick=True))
# Floats that are kept in atomic integers have no derived bound, nor has what several invocations store to.
PLANS = [plan for plan in EVERY if not plan.kernel.allow & {"atomic-order", "race"}]


def middle(plan):
    """Return the quick shape of median size."""
    shapes = sorted(plan.shapes, key=lambda shape: prod(shape.dims.values()))
    return plan.case(shapes[len(shapes) // 2])


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.kernel.name)
def test_bounds_hold_and_catch_an_error_in_one_element(any_adapter, plan):
    case = middle(plan)
    try:
        theirs = run_on_gpu(case, any_adapter.name).outputs
    except Lacking as error:
        pytest.skip(str(error))
    run = simulate(case, any_adapter.profile or FALLBACK, "none")
    for name, output in theirs.items():
        ours, bound = run.outputs[name], run.bounds[name]
        honest = compare(ours, output, DERIVED, bound=bound)
        assert (honest.ok, honest.unbounded) == (True, 0), honest.worst
        with np.errstate(divide="ignore"):
            relative = bound / np.abs(output.astype(np.float64))
        at = np.unravel_index(np.nanargmin(relative), output.shape)  # of what is written
        allows = relative[at] < PLANTED
        # A format that rounds off more than what is planted cannot hold it, and a bound allows for what a format does.
        assert allows == (np.finfo(output.dtype).eps / 2 < PLANTED), f"{name} is bound within {relative[at]:.3g}"
        if allows:
            away = 1 if output[at] >= ours[at] else -1
            wrong = output.copy()
            wrong[at] += away * PLANTED * abs(output[at])
            caught = compare(ours, wrong, DERIVED, bound=bound)
            assert (caught.mismatches, caught.worst[0].index) == (1, at)
