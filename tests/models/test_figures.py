"""Occupancy, roofline and limits against figures worked out by hand."""

from math import inf

import pytest

from bankshot.sim.models.devices import AMD_CDNA, NVIDIA
from bankshot.sim.models.limits import DEFAULT_LIMITS, check_dispatch
from bankshot.sim.models.occupancy import occupancy, registers_to_hold
from bankshot.sim.models.roofline import Level, Roof, place, roofs


@pytest.mark.parametrize(
    ("size", "memory", "registers", "workgroups", "fraction", "limited_by"),
    [
        (256, 0, None, 8, 1.0, ("subgroups", "threads")),
        (64, 0, None, 32, 1.0, ("workgroups", "subgroups", "threads")),
        (32, 0, None, 32, 0.5, ("workgroups",)),
        (1, 0, None, 32, 0.5, ("workgroups",)),
        (33, 0, None, 32, 1.0, ("workgroups", "subgroups", "threads")),
        (256, 6144, None, 8, 1.0, ("subgroups", "threads", "workgroup memory")),  # 49,152 / 6,144 = 8
        (256, 12288, None, 4, 0.5, ("workgroup memory",)),
        (256, 12416, None, 3, 0.375, ("workgroup memory",)),  # 49,152 / 12,416 = 3.96
        (256, 32768, None, 1, 0.125, ("workgroup memory",)),
        (256, 0, 64, 4, 0.5, ("registers",)),  # 65,536 / (64 x 256)
        (256, 0, 65, 3, 0.375, ("registers",)),  # 65 becomes 72: 65,536 / 18,432 = 3.6
        ((16, 16, 1), 0, 32, 8, 1.0, ("subgroups", "threads", "registers")),
        (256, 64 * 1024, None, 0, 0.0, ("workgroup memory",)),
        (256, 0, 256, 0, 0.0, ("registers",)),
    ],
)
def test_occupancy_of_an_h200(size, memory, registers, workgroups, fraction, limited_by):
    held = occupancy(NVIDIA, size, memory, registers)
    assert (held.workgroups, held.fraction, held.limited_by) == (workgroups, fraction, limited_by)


@pytest.mark.parametrize(
    ("size", "memory", "registers"),  # 65,536 / invocations of the workgroups that a core holds, in units of 8
    [(64, 0, 32), (32, 0, 64), (1024, 0, 32), (64, 2048, 40), (64, 4096, 80), (256, 16384, 80), (64, 48 << 10, 255)],
)
def test_an_invocation_of_an_h200_may_hold_what_costs_no_workgroup(size: int, memory: int, registers: int) -> None:
    assert registers_to_hold(NVIDIA, size, memory) == registers
    assert occupancy(NVIDIA, size, memory, registers).workgroups == occupancy(NVIDIA, size, memory).workgroups


def test_wide_subgroups_round_workgroups_up():
    assert occupancy(AMD_CDNA, 65).subgroups == 32
    assert occupancy(AMD_CDNA, 65).workgroups == 16


@pytest.mark.parametrize("wrong", [(0, 0, None), (64, -1, None), (64, 0, 0)])
def test_occupancy_refuses_what_is_no_workgroup(wrong):
    with pytest.raises(ValueError, match="at least one invocation"):
        occupancy(NVIDIA, *wrong)


def test_roofline():
    low = place(flops=1e9, bytes=1e9, peak_flops=40e12, peak_bandwidth=4e12)
    assert (low.intensity, low.ridge, low.bound, low.attainable) == (1.0, 10.0, "memory", 4e12)
    high = place(flops=2e10, bytes=1e9, peak_flops=40e12, peak_bandwidth=4e12)
    assert (high.intensity, high.bound, high.attainable) == (20.0, "compute", 40e12)
    assert place(1e10, 1e9, 40e12, 4e12).bound == "compute"
    assert place(1, 0, 40e12, 4e12).intensity == inf
    for wrong in [(0, 0, 1, 1), (-1, 1, 1, 1), (1, -1, 1, 1), (1, 1, 0, 1), (1, 1, 1, 0)]:
        with pytest.raises(ValueError, match="roofline"):
            place(*wrong)


def test_the_lowest_of_several_roofs_comes_first():
    levels = [Level("near", 4e6, 2.0), Level("far", 1e6, 5.0), Level("idle", 0.0, 0.0)]
    assert roofs(8e6, levels, 3e12) == [
        Roof("far", 8.0, 1.6e12),  # 8e6 operations in 5 us
        Roof("arithmetic", inf, 3e12),
        Roof("near", 2.0, 4e12),
    ]
    assert [roof.name for roof in roofs(8e6, levels, None)] == ["far", "near"]
    with pytest.raises(ValueError, match="without operations"):
        roofs(0, levels, 3e12)


def test_a_plain_dispatch_breaks_no_limit():
    assert check_dispatch((65535, 1, 1), (16, 16, 1), 16384, {"x": 128 << 20}, {"dims": 16}) == []


@pytest.mark.parametrize(
    ("dispatch", "broken"),
    [
        ({"grid": (1, 65536, 1)}, ("maxComputeWorkgroupsPerDimension", "workgroups along y", 65536, 65535)),
        ({"workgroup_size": (1, 1, 65)}, ("maxComputeWorkgroupSizeZ", "workgroup size along z", 65, 64)),
        ({"workgroup_size": (17, 16)}, ("maxComputeInvocationsPerWorkgroup", "invocations per workgroup", 272, 256)),
        ({"workgroup_bytes": 16400}, ("maxComputeWorkgroupStorageSize", "bytes of workgroup memory", 16400, 16384)),
        (
            {"storage_bindings": {"w": (128 << 20) + 4}},
            ("maxStorageBufferBindingSize", "bytes of storage binding w", 134217732, 134217728),
        ),
        (
            {"storage_bindings": dict.fromkeys("abcdefghi", 4)},
            ("maxStorageBuffersPerShaderStage", "storage buffers", 9, 8),
        ),
    ],
)
def test_a_broken_limit_is_named(dispatch, broken):
    (problem,) = check_dispatch(**{"grid": (1, 1, 1), "workgroup_size": (1, 1, 1), **dispatch})
    assert (problem.limit, problem.what, problem.value, problem.maximum) == broken
    assert problem.limit in str(problem)


def test_limits_of_a_device_can_be_better():
    assert check_dispatch((1,), (512,), limits={**DEFAULT_LIMITS, **dict.fromkeys(DEFAULT_LIMITS, 1024)}) == []
    assert [p.limit for p in check_dispatch((1,), (512,))] == [
        "maxComputeInvocationsPerWorkgroup",
        "maxComputeWorkgroupSizeX",
    ]
