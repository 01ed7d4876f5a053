"""Occupancy: how many workgroups of a kernel are resident on a core, and which resource limits them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..fast_dataclass import sealed
from .device import Device


@sealed
class Occupancy:
    """Resident workgroups per core. `limits` has those that each resource alone allows; `workgroups` is the least."""

    workgroups: int  # per core; 0 where not even one fits
    subgroups: int  # per core
    fraction: float  # resident subgroups, as a fraction of the core's maximum
    limited_by: tuple[str, ...]  # the resources that run out first
    limits: dict[str, int]


def occupancy(
    device: Device,
    workgroup_size: int | Sequence[int],
    workgroup_bytes: int = 0,
    registers_per_lane: int | None = None,
) -> Occupancy:
    """Compute the occupancy of a kernel on a device.

    `workgroup_size` is in invocations (or one to three sizes), `workgroup_bytes` is the memory of one workgroup.
    Registers do not count where `registers_per_lane` is None: WGSL does not determine how many a compiler uses.
    Raises ValueError for sizes that are not positive and for negative bytes.
    """
    invocations = workgroup_size if isinstance(workgroup_size, int) else prod(workgroup_size)
    if invocations < 1 or workgroup_bytes < 0 or (registers_per_lane is not None and registers_per_lane < 1):
        raise ValueError("a workgroup has at least one invocation, and no negative memory or registers")
    subgroups = _up(invocations, device.subgroup_size) // device.subgroup_size
    lanes = subgroups * device.subgroup_size
    limits = {
        "workgroups": device.workgroups_per_core,
        "subgroups": device.subgroups_per_core // subgroups,
        "threads": device.threads_per_core // lanes,
    }
    if workgroup_bytes:
        fits = workgroup_bytes <= device.workgroup_bytes_max
        held = _up(workgroup_bytes, device.workgroup_bytes_unit) + device.workgroup_bytes_reserved
        limits["workgroup memory"] = device.workgroup_bytes_per_core // held if fits else 0
    if registers_per_lane is not None:
        fits = registers_per_lane <= device.registers_per_lane_max
        held = _up(registers_per_lane, device.register_unit) * lanes
        limits["registers"] = device.registers_per_core // held if fits else 0
    workgroups = min(limits.values())
    return Occupancy(
        workgroups=workgroups,
        subgroups=workgroups * subgroups,
        fraction=workgroups * subgroups / device.subgroups_per_core,
        limited_by=tuple(name for name, most in limits.items() if most == workgroups),
        limits=limits,
    )


def registers_to_hold(device: Device, workgroup_size: int, workgroup_bytes: int = 0) -> int:
    """Return the registers that each invocation may hold without an effect on how many workgroups are resident.

    `workgroup_size` is in invocations. Raises as `occupancy` does.
    """
    resident = occupancy(device, workgroup_size, workgroup_bytes)
    lanes = max(1, resident.subgroups) * device.subgroup_size
    return min(
        device.registers_per_lane_max, device.registers_per_core // lanes // device.register_unit * device.register_unit
    )


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
