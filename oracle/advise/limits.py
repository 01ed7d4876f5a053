"""What limits a kernel where layouts do not: how far apart lanes access memory, and how much a device has in flight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from ...sim.fast_dataclass import frozen
from ...sim.models.occupancy import occupancy
from ...sim.utilization.utilization import grid_fill
from ..gpu_counters.access_trace import Request

if TYPE_CHECKING:
    from ...sim.ir.sites import SourceSite
    from ...sim.run.result import Run

MOST_PLACES = 3  # whose strides are shown


@frozen
class Stride:
    """How far apart adjacent lanes access memory at a place: `bytes`, None where no distance is that of most of them.
    `mostly`: it is not the same for all."""

    site: SourceSite
    bytes: int | None
    mostly: bool = False

    @property
    def words(self) -> str:
        place = f"{self.site.kind} of {self.site.variable} in line {self.site.line}"
        if self.bytes is None:
            return f"{place}: the distance between the addresses of adjacent lanes varies"
        lanes = f"{'most ' if self.mostly else ''}adjacent lanes"
        if self.bytes == 0:
            return f"{place}: {lanes} access the same address"
        if self.bytes == self.site.bytes_per_lane and self.mostly:
            return f"{place}: {lanes} access adjacent elements, and some do not"
        if self.bytes == self.site.bytes_per_lane:  # yet more sectors than these bytes fill
            return f"{place}: {lanes} access adjacent elements, which start or end within a sector"
        return f"{place}: {lanes} access addresses that are {self.bytes:,} bytes apart"


@frozen
class Residency:
    """The workgroups that a core holds, as a share of its subgroups, by what they are limited; and how full the grid
    leaves the device, 1 for all of it, None where the cores are not known. `tail` says so in words. `registers`: how
    many a lane may take before they limit it; WGSL does not determine how many it takes."""

    workgroups: int
    fraction: float
    limited_by: tuple[str, ...]
    fill: float | None
    tail: str
    registers: int


def residency(run: Run, workgroup_bytes: int) -> Residency:
    """Return the residency of a run's grid if its workgroups took so many bytes."""
    size, most = run.pipeline.workgroup_size, run.device.registers_per_lane_max
    fits = occupancy(run.device, size, workgroup_bytes)
    given = (occupancy(run.device, size, workgroup_bytes, registers) for registers in range(1, most + 1))
    registers = sum(each.workgroups == fits.workgroups for each in given)
    fill, tail = grid_fill(int(run.counters["workgroups"]), run.device, fits)
    return Residency(fits.workgroups, fits.fraction, fits.limited_by, fill, tail, registers)


def scattered(run: Run) -> list[int]:
    """Return the numbers of the places whose accesses touch most sectors more than they would side by side."""
    numbers = {id(site): number for number, site in enumerate(run.program.sites)}
    excess = [(site.global_sectors - site.global_ideal_sectors, numbers[id(site.site)]) for site in run.sites]
    return [number for beyond, number in sorted(excess, reverse=True)[:MOST_PLACES] if beyond > 0]


def strides(requests: Iterable[Request]) -> tuple[Stride, ...]:
    """Return the stride of each place of these requests."""
    found: dict[int, tuple[SourceSite, Counter[int]]] = {}
    for each in requests:
        both = each.active[1:] & each.active[:-1]
        apart = np.diff(each.addresses)[both]
        found.setdefault(id(each.site), (each.site, Counter()))[1].update(map(int, np.abs(apart)))
    return tuple(_stride(site, apart) for site, apart in found.values() if apart)


def _stride(site: SourceSite, apart: Counter[int]) -> Stride:
    (commonest, count), *_ = apart.most_common(1)
    return Stride(site, commonest if 2 * count > apart.total() else None, len(apart) > 1)
