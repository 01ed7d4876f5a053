"""A run that was stopped has done a part of its work: nothing is predicted from it."""

import numpy as np
import pytest

import bankshot

TEXT = """
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
    for (var k = 0u; k < 1000u; k++) { y[i] += k; }
}"""


def run(budget: int) -> bankshot.Run:
    arrays = {"y": np.zeros(64, np.uint32)}
    return bankshot.simulate(TEXT, grid=1, bindings=arrays, device="nvidia-h200", probes="counters", budget=budget)


def test_no_time_is_predicted_from_a_part_of_a_dispatch() -> None:
    whole, part = run(1000), run(999)
    assert [finding.code for finding in part.findings] == ["endless-loop"]
    assert whole.predicts_time
    assert not part.predicts_time
    with pytest.raises(ValueError, match="the run was stopped before its end"):
        _ = part.predicted_time
    assert whole.predicted_time.us > 0
