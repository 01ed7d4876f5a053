"""Which probes names stand for, by what the run then counts and finds."""

import numpy as np
import pytest

import bankshot
from bankshot.sim.run import prepared
from bankshot.sim.run.prepared import PROBES

SHADER = """@group(0) @binding(0) var<storage, read_write> y: array<f32, 32>;
var<workgroup> t: array<f32, 64>;
@compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {
    t[2u * i] = y[i] + 1.0;
    workgroupBarrier();
    y[i] = t[2u * i];
}"""
# Each counts something of the kernel above, which two lanes in each bank make wait.
COUNTED = {
    "lanes": ("active_lanes", 0),
    "banks": ("shared_wavefronts", 4),  # a store and a load, two wavefronts each
    "sectors": ("global_sectors", 8),  # 128 bytes loaded, and as many stored
    "barriers": ("barriers", 1),
    "flops": ("flops", 32),
}
FINDING = {"bounds", "races", "uninit", "nan"}


def counters(probes: str | list[str]) -> dict[str, float]:
    done = bankshot.simulate(SHADER, grid=1, bindings={"y": np.ones(32, np.float32)}, probes=probes)
    return dict(done.counters)


@pytest.mark.parametrize("probe", COUNTED)
@pytest.mark.parametrize("asked", ["counters", "all", "alone"])
def test_a_probe_counts(probe: str, asked: str) -> None:
    name, number = COUNTED[probe]
    assert counters([probe] if asked == "alone" else asked)[name] >= max(number, 1)
    if number:
        assert counters([probe] if asked == "alone" else asked)[name] == number


def test_what_names_of_several_probes_stand_for() -> None:
    assert prepared._probes("none") == frozenset()
    assert prepared._probes("counters") == set(COUNTED)
    assert prepared._probes("all") == set(COUNTED) | FINDING
    assert prepared._probes(["counters", "touched"]) == set(COUNTED) | {"touched"}
    assert prepared._probes(["all", "redundant"]) == set(PROBES) - {"touched"}


@pytest.mark.parametrize("probe", PROBES)
def test_a_probe_alone_and_what_is_counted_with_it(probe: str) -> None:
    """The instruction that counts barriers and FLOPs counts lanes as well."""
    assert prepared._probes(probe) == ({probe, "lanes"} if probe in ("barriers", "flops") else {probe})
