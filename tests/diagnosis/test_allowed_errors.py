"""Differences no larger than what WGSL allows: whether builtins or the rounding of sums and products are the cause."""

from types import SimpleNamespace

import numpy as np
import pytest

from bankshot.oracle.diagnosis import simulator_reruns


def mismatch(loose=(), on_gpu=None, rule="close", within=True, golden=False):
    """Of three elements one is exact, and the others are off by 1 of 4 and by 1 of 2."""
    errors = np.array([0.0, 1.0, 1.0]), np.array([0.0, 4.0, 2.0])
    return SimpleNamespace(
        run=SimpleNamespace(loose=frozenset(loose)), on_gpu=on_gpu, rule=SimpleNamespace(name=rule),
        within_bounds=within, golden=golden, errors=errors, wrong_elements="2 elements",
    )  # fmt: skip


OFF = "2 elements are off by at most 0.5 of the error that WGSL allows this kernel"


@pytest.mark.parametrize(
    ("given", "rounding", "builtins"),
    [
        ({}, OFF, None),
        ({"loose": ("exp_f32", "sin_f32")}, None, f"{OFF}, which uses exp, sin"),
        ({"on_gpu": object()}, None, None),  # the simulator and a GPU may round in other places
        ({"within": False}, None, None),
        ({"rule": "derived"}, None, None),  # the rule is that bound already
        ({"loose": ("exp_f32",), "within": False}, None, None),
        ({"golden": True}, OFF.replace("the error that", "twice the error that"), None),
    ],
)
def test_what_an_error_within_the_bounds_says(given, rounding, builtins):
    made = mismatch(**given)
    assert simulator_reruns.rounding(made) == rounding
    assert simulator_reruns.builtin_accuracy(made) == builtins
