"""WebGPU's limits for compute kernels: the defaults, and a check of a dispatch against them.

Source: WebGPU, section "Limits" (#limits), and the validation of compute pipelines and `dispatchWorkgroups`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from types import MappingProxyType

from ..fast_dataclass import sealed

DEFAULT_LIMITS: Mapping[str, int] = MappingProxyType(
    {
        "maxBindGroups": 4,
        "maxBindingsPerBindGroup": 1000,
        "maxDynamicUniformBuffersPerPipelineLayout": 8,
        "maxDynamicStorageBuffersPerPipelineLayout": 4,
        "maxStorageBuffersPerShaderStage": 8,
        "maxUniformBuffersPerShaderStage": 12,
        "maxUniformBufferBindingSize": 65536,
        "maxStorageBufferBindingSize": 134217728,
        "minUniformBufferOffsetAlignment": 256,
        "minStorageBufferOffsetAlignment": 256,
        "maxBufferSize": 268435456,
        "maxComputeWorkgroupStorageSize": 16384,
        "maxComputeInvocationsPerWorkgroup": 256,
        "maxComputeWorkgroupSizeX": 256,
        "maxComputeWorkgroupSizeY": 256,
        "maxComputeWorkgroupSizeZ": 64,
        "maxComputeWorkgroupsPerDimension": 65535,
    }
)
"""What every adapter supports; bytes and counts."""


@sealed
class Exceeded:
    """One limit that a kernel exceeds: WebGPU would reject the kernel on a device with this maximum."""

    limit: str
    what: str  # a noun phrase: "workgroups along y"
    value: int
    maximum: int

    def __str__(self) -> str:
        return f"{self.what}: {self.value:,} is over {self.limit}, which is {self.maximum:,}"


def check_dispatch(
    grid: Sequence[int],
    workgroup_size: Sequence[int],
    workgroup_bytes: int = 0,
    storage_bindings: Mapping[str, int] | None = None,
    uniform_bindings: Mapping[str, int] | None = None,
    limits: Mapping[str, int] = DEFAULT_LIMITS,
) -> list[Exceeded]:
    """List the limits that a dispatch exceeds, in the order of the WebGPU table.

    `grid` is in workgroups and `workgroup_size` in invocations, each of one to three sizes. `workgroup_bytes` is the
    sum of the workgroup variables, each rounded up to 16 bytes. Bindings are sizes in bytes by name.
    """
    storage, uniform = storage_bindings or {}, uniform_bindings or {}
    asked = [
        ("maxStorageBuffersPerShaderStage", "storage buffers", len(storage)),
        ("maxUniformBuffersPerShaderStage", "uniform buffers", len(uniform)),
        *(("maxUniformBufferBindingSize", f"bytes of uniform binding {name}", size) for name, size in uniform.items()),
        *(("maxStorageBufferBindingSize", f"bytes of storage binding {name}", size) for name, size in storage.items()),
        ("maxComputeWorkgroupStorageSize", "bytes of workgroup memory", workgroup_bytes),
        ("maxComputeInvocationsPerWorkgroup", "invocations per workgroup", prod(workgroup_size)),
        *(
            (f"maxComputeWorkgroupSize{axis.upper()}", f"workgroup size along {axis}", size)
            for axis, size in zip("xyz", workgroup_size, strict=False)
        ),
        *(
            ("maxComputeWorkgroupsPerDimension", f"workgroups along {axis}", count)
            for axis, count in zip("xyz", grid, strict=False)
        ),
    ]
    return [Exceeded(limit, what, value, limits[limit]) for limit, what, value in asked if value > limits[limit]]
