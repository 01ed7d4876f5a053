"""Check counters against the manifest's figures, and a dispatch against WebGPU's and the device's limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ...sim.bindings.binding import is_array
from ...sim.fast_dataclass import frozen
from ...sim.models import Device, Exceeded, check_dispatch
from ...sim.models.device import near_miss
from ...sim.run.counters import derived
from ..errors import UsageError
from ..manifests.cases import expected_counters
from ..manifests.manifest import Case

if TYPE_CHECKING:
    from ...sim.wgsl.typed import Pipeline


@frozen
class CounterCheck:
    """The comparison of a counter with the manifest's figure."""

    counter: str
    expected: float
    actual: float

    @property
    def ok(self) -> bool:
        return self.actual == self.expected


@frozen
class LimitCheck:
    """A WebGPU limit that the dispatch exceeds. `device`: it exceeds the device's own maximum, too."""

    exceeded: Exceeded
    device: bool

    @property
    def ok(self) -> bool:
        """Whether a program can request the limit: more than the default, but not more than the device has."""
        return not self.device


def with_derived(counters: Mapping[str, float]) -> dict[str, float]:
    """Add `bank_conflicts` (excess wavefronts) and `intensity` (FLOP per byte) to the totals of a run."""
    return {**counters, **derived(counters, ("bank_conflicts", "intensity"))}


def counter_checks(case: Case, counters: Mapping[str, float]) -> tuple[CounterCheck, ...]:
    """Check every figure of the manifest. Raises `UsageError` on a name that is no counter."""
    checks: list[CounterCheck] = []
    for name, expected in expected_counters(case).items():
        totals = with_derived(counters)
        if name not in totals:
            close = near_miss(name, [*totals, *(binding.name for binding in case.kernel.bindings)])
            raise UsageError(f"{case.kernel.path}: [expect] names {name}, which is no output and no counter{close}")
        checks.append(CounterCheck(name, expected, totals[name]))
    return tuple(checks)


def limit_checks(case: Case, pipeline: Pipeline, device: Device) -> tuple[LimitCheck, ...]:
    """Return each default limit of WebGPU that the dispatch exceeds."""
    sizes: dict[str, dict[str, int]] = {"storage": {}, "uniform": {}}
    for variable in pipeline.globals:
        if variable.space in sizes:
            data = case.bindings[variable.name]
            assert is_array(data)
            sizes[variable.space][variable.name] = data.nbytes
    asked = (case.grid, pipeline.workgroup_size, pipeline.workgroup_bytes, sizes["storage"], sizes["uniform"])
    return tuple(_limit_check(exceeded, device) for exceeded in check_dispatch(*asked))


def _limit_check(exceeded: Exceeded, device: Device) -> LimitCheck:
    """Check an exceeded limit against the device; profiles have a maximum for workgroup memory only."""
    most = device.workgroup_bytes_max
    beyond = exceeded.limit == "maxComputeWorkgroupStorageSize" and exceeded.value > most
    return LimitCheck(replace(exceeded, maximum=most) if beyond else exceeded, beyond)
