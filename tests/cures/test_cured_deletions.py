"""Barriers of kernels in shaders/ are deleted: one finding, and its cure restores every output."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot
from bankshot.oracle.manifests.reflection import check_module
from bankshot.sim.wgsl.text_edits import replaced
from tests.findings.test_deleted_barriers import CASES, PLANS

ENOUGH = 6  # deletions that race; all of them take minutes


def cured(name: str, at: int) -> bool:
    """Whether a deletion races at the first shape; if it does, its cure is right."""
    kernel, case = PLANS[name].kernel, next(iter(PLANS[name].cases()))
    text = check_module(kernel).source.text
    without = text[:at] + "_ = 0" + text[text.index(")", at) + 1 :]
    given = {"entry": kernel.entry, "grid": case.grid, "bindings": case.bindings, "overrides": kernel.overrides}
    module = bankshot.check(without, uniformity="off")
    run = bankshot.simulate(module, probes=["races"], replay=False, cures=True, **given)
    races = [f for f in run.findings if f.code == "race"]
    if not races:
        return False
    assert (len(races), len(run.cures)) == (1, 1)
    new = replaced(without, run.cures[0].replacements)
    after, right = (bankshot.simulate(each, probes=["races"], replay=False, **given) for each in (new, text))
    assert not [f for f in after.findings if f.code == "race"]
    for key, expected in right.outputs.items():
        np.testing.assert_array_equal(after.outputs[key], expected)
    return True


def test_a_cure_restores_the_outputs() -> None:
    done = 0
    for name, at in CASES:
        done += cured(name, at)
        if done == ENOUGH:
            return
    pytest.fail(f"only {done} deletions race")
