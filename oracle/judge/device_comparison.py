"""The cost of one dispatch on several device profiles.

The run is judged under the first profile. For each of the others the dispatch runs again, without looking for findings.
Where a profile has the subgroup size, rounding and texels of the first, the same lanes do the same things on it: only
its banks, sectors and lines are charged again, and every other counter is the first profile's. Otherwise lanes are
counted again, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from ...sim.device_files import find, is_file
from ...sim.fast_dataclass import frozen
from ...sim.models import Device
from ...sim.models.occupancy import Occupancy, occupancy
from ..errors import UsageError

if TYPE_CHECKING:
    from ...sim import Run

    Simulate: TypeAlias = Callable[[str, tuple[str, ...]], Run]  # (device, probes)

LANES = ("subgroup_size", "fma", "texel_f16", "texel_outside", "out_of_bounds")  # what decides which lanes do what
MEMORY = ("banks", "sectors")  # probes
CHARGED = ("shared_", "global_")  # how the names of what they count begin


@frozen
class Charged:
    """The cost of a run on one device. `counters`: totals by name. `anew`: the counters measured for the device: `all`,
    `lanes and memory` or `memory`; the others are the first device's."""

    device: Device
    counters: dict[str, float]
    occupancy: Occupancy
    anew: str

    @property
    def sector_bytes(self) -> int:
        """Bytes of the sectors accessed; unlike sectors, they are comparable between devices."""
        return int(self.counters["global_sectors"]) * self.device.sector_bytes


def parse_devices(text: str) -> tuple[str, ...]:
    """Parse `nvidia,amd,mine.toml` as names of profiles, and files, which stay as they are given.

    Raises `UsageError` for a profile that is unknown or named twice, `WgslError` for an invalid file.
    """
    found: dict[str, str] = {}
    for each in map(str.strip, text.split(",")):
        try:
            name = find(each).name
        except ValueError as error:
            raise UsageError(f"--device: {error}") from None
        if name in found:
            raise UsageError(f"--device {text}: {name} is named twice")
        found[name] = each if is_file(each) else name
    return tuple(found.values())


def lanes_of(device: Device) -> tuple[object, ...]:
    """The facts that decide what lanes do. Devices that share them differ only in the cost of memory."""
    return tuple(getattr(device, fact) for fact in LANES)


def charge(run: Run, others: tuple[str, ...], simulate: Simulate) -> tuple[Charged, ...]:
    """Charge a run with all probes for its own device, then for `others`; empty if `others` is."""
    if not others:
        return ()
    return (judged(run), *(_on(run, name, simulate) for name in others))


def judged(run: Run) -> Charged:
    """Return the cost of a run with all probes on its own device."""
    return _charged(run, run.device, run.counters, "all")


def _on(run: Run, name: str, simulate: Simulate) -> Charged:
    from ...sim.run.prepared import sized

    device = sized(find(name), run.pipeline)
    if lanes_of(run.device) != lanes_of(device):
        return _charged(run, device, simulate(name, ("lanes", *MEMORY)).counters, "lanes and memory")
    memory = {k: v for k, v in simulate(name, MEMORY).counters.items() if k.startswith(CHARGED)}
    return _charged(run, device, {**run.counters, **memory}, "memory")


def _charged(run: Run, device: Device, counters: Mapping[str, float], anew: str) -> Charged:
    resident = occupancy(device, run.pipeline.workgroup_size, run.pipeline.workgroup_bytes)
    return Charged(device, dict(counters), resident, anew)
