"""Questions to the worker process that runs wgpu, and its answers: plain values that can be pickled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...sim.fast_dataclass import frozen
from .device_resources import Content, Resource

TIMESTAMPS = "timestamp-query"  # the feature that times a kernel on the adapter's clock

# The device profile that rounds as an adapter does, by part of the adapter's name.
PROFILES = {
    "llvmpipe": "lavapipe",
    "swiftshader": "swiftshader",
    "nvidia": "nvidia",
    "geforce": "nvidia",
    "tesla": "nvidia",
}


@frozen
class AdapterInfo:
    """An adapter, as its driver describes it."""

    name: str
    kind: str  # DiscreteGPU, IntegratedGPU, VirtualGPU, CPU, Unknown
    backend: str  # Vulkan, Metal, D3D12
    driver: str
    version: str  # empty if the driver reports none
    wgpu: str  # version of wgpu-py

    def __str__(self) -> str:
        driver = f"{self.driver} {self.version or '(version not reported)'}"
        return f"{self.name} ({self.kind}, {self.backend}), driver {driver}, wgpu {self.wgpu}"

    @property
    def profile(self) -> str | None:
        """The simulator's device that rounds as the adapter does, None if unknown."""
        name = f"{self.name} {self.driver}".lower()
        return next((profile for part, profile in PROFILES.items() if part in name), None)

    def matches(self, wanted: str) -> bool:
        """Return whether `wanted` (any case) is part of the name, kind, backend, driver or profile."""
        facts = (self.name, self.kind, self.backend, self.driver, self.profile or "")
        return any(wanted.lower() in fact.lower() for fact in facts)


@frozen
class Offer:
    """An adapter with its features and limits.

    `features` are those that kernels and Bankshot use, `limits` go by wgpu-py's names, and `subgroup_sizes` are the
    smallest and the largest that the adapter reports.
    """

    info: AdapterInfo
    features: tuple[str, ...]
    subgroup_sizes: tuple[int, int]
    limits: Mapping[str, int]


@frozen
class Abilities:
    """The features and limits that a device was granted. `limits` go by wgpu-py's names."""

    features: frozenset[str]
    limits: Mapping[str, int]


@frozen
class DispatchRequest:
    """A dispatch of `grid` workgroups of an entry point, `repeats` times, each time on fresh contents.

    `adapter` is a number, see `wgpu_library.offers`. `constants` are overrides by name.
    """

    adapter: int
    wgsl: str
    entry: str | None
    grid: tuple[int, ...]
    resources: Sequence[Resource]
    constants: tuple[tuple[str, float], ...] = ()
    repeats: int = 1


@frozen
class DispatchResult:
    """The result of a dispatch.

    `contents` has those of each resource afterwards, None if a shader cannot write it. `seconds` has one time for each
    repetition, from submission to completion; `kernel_seconds` that of the dispatch alone, if the adapter has a clock.
    `took` is the total time in seconds.
    """

    contents: list[Content | None]
    seconds: tuple[float, ...]
    kernel_seconds: tuple[float, ...]
    took: float


@frozen
class TimesRequest:
    """Dispatches to time side by side: in each of at most `rounds`, every one of them runs in its turn.

    Each pass starts with the given contents; with `cold`, a clear of more memory than caches hold comes before it. All
    requests name one adapter, and their `repeats` do not count. `warm_up`: the clocks are at full speed once they have
    got no faster in so many seconds of work; on a software adapter, seconds of work before the first round.
    """

    requests: Sequence[DispatchRequest]
    rounds: int
    cold: bool
    warm_up: float


@frozen
class TimesResult:
    """Seconds by the adapter's clock of every timed pass of each dispatch, and of a dispatch that does nothing.

    `slowdown`: how many times as long a kernel bound by arithmetic took, beside the slowest round, as it takes at the
    fastest clocks that this process has seen; 1 for software adapters.
    """

    seconds: tuple[tuple[float, ...], ...]
    launch: tuple[float, ...]
    slowdown: float
