"""The cost of an access in a loop, which a probe remembers, is that of the accesses one by one."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot

TEXT = """
TYPE
var<workgroup> t: array<T, 8192>;
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {
    t[i] = T(i);
    workgroupBarrier();
    var sum = 0f;
    LOADS
    y[i] = sum;
}"""


def wavefronts(kind: str, stride: int, loads: str) -> int:
    enable = "enable f16; alias T = f16;" if kind == "f16" else "alias T = f32;"
    text = TEXT.replace("TYPE", enable).replace("LOADS", loads).replace("STRIDE", str(stride))
    run = bankshot.simulate(text, grid=1, bindings={"y": np.zeros(32, np.float32)}, probes="banks", device="nvidia")
    return run.counters["shared_wavefronts"]


@pytest.mark.parametrize("first", [256, 7900, 8160])  # the last two get out of bounds, or come from there
@pytest.mark.parametrize("step", [1, 32, -1, -32])
@pytest.mark.parametrize("stride", [1, 2, 3, 31, 33, 65])
@pytest.mark.parametrize("kind", ["f32", "f16"])
def test_a_loop_costs_what_its_accesses_do(kind: str, stride: int, step: int, first: int) -> None:
    places = [first + step * turn for turn in range(9)]
    loop = f"for (var place = {places[0]}; place != {places[-1] + step}; place += {step}) {{ LOAD }}"
    load = "sum += f32(t[i * STRIDEu + u32(place)]);"
    one_by_one = "".join(load.replace("u32(place)", f"{place}u") for place in places)
    assert wavefronts(kind, stride, loop.replace("LOAD", load)) == wavefronts(kind, stride, one_by_one)
