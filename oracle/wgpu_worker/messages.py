"""What the process that runs wgpu is asked, and what it answers: plain values, that get from one process to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...sim.fast_dataclass import frozen
from .device_resources import Content, Resource

TIMESTAMPS = "timestamp-query"  # a feature that we need ourselves: how long a kernel takes

# The device profile whose rounding is that of an adapter, by a part of the adapter's name.
PROFILES = {
    "llvmpipe": "lavapipe",
    "swiftshader": "swiftshader",
    "nvidia": "nvidia",
    "geforce": "nvidia",
    "tesla": "nvidia",
}


@frozen
class AdapterInfo:
    """One adapter, in its driver's words. `profile` names the simulator's device that rounds as it does, if known."""

    name: str
    kind: str  # DiscreteGPU, IntegratedGPU, VirtualGPU, CPU, Unknown
    backend: str  # Vulkan, Metal, D3D12
    driver: str
    version: str  # empty where the driver tells none
    wgpu: str  # version of wgpu-py

    def __str__(self) -> str:
        driver = f"{self.driver} {self.version or '(tells no version)'}"
        return f"{self.name} ({self.kind}, {self.backend}), driver {driver}, wgpu {self.wgpu}"

    @property
    def profile(self) -> str | None:
        name = f"{self.name} {self.driver}".lower()
        return next((profile for part, profile in PROFILES.items() if part in name), None)

    def matches(self, wanted: str) -> bool:
        """Whether `wanted` (any case) is part of the name, kind, backend or driver, or is the profile's name."""
        facts = (self.name, self.kind, self.backend, self.driver, self.profile or "")
        return any(wanted.lower() in fact.lower() for fact in facts)


@frozen
class Offer:
    """What an adapter has. `features`: of those that kernels and Bankshot use; `limits` by wgpu-py's names;
    `subgroup_sizes`: the smallest and the largest that it tells of."""

    info: AdapterInfo
    features: tuple[str, ...]
    subgroup_sizes: tuple[int, int]
    limits: Mapping[str, int]


@frozen
class Abilities:
    """What a device has been granted. `limits` by wgpu-py's names."""

    features: frozenset[str]
    limits: Mapping[str, int]


@frozen
class Order:
    """A dispatch of `grid` workgroups of an entry point, `repeats` times over, each time on fresh contents. `adapter`:
    its number, see `library.offers`; `constants`: overrides by name."""

    adapter: int
    wgsl: str
    entry: str | None
    grid: tuple[int, ...]
    resources: Sequence[Resource]
    constants: tuple[tuple[str, float], ...] = ()
    repeats: int = 1


@frozen
class Done:
    """`contents` of each resource afterwards, None of what a shader cannot write. Of each repetition the `seconds` from
    submission to completion, and those of the dispatch alone, where the adapter has a clock. `took`: all in all."""

    contents: list[Content | None]
    seconds: tuple[float, ...]
    kernel_seconds: tuple[float, ...]
    took: float
