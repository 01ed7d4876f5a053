"""Which parts of workgroup memory are written and read between which barriers: the schedule of a double buffer.

Time is counted in epochs, which end at barriers; their durations are unknown. The accesses are those that one workgroup
made in a run (see `access_trace`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...sim.fast_dataclass import frozen
from ...sim.ir.sites import SourceSite
from ...sim.wgsl import types as t
from ..errors import UsageError
from ..manifests.manifest import Case
from .access_trace import Request, record, requests, require_inside
from .wgsl_probes import MOST_LANES

if TYPE_CHECKING:
    from ...sim.run.result import Run
    from ...sim.wgsl.typed import Pipeline

KINDS = {"store": "write", "load": "read", "atomic": "update"}  # a site's kind, and its name in a timeline
MOST_REGIONS = 4  # the largest number of regions that an array is split into
MOST_ROWS = 1 << 18  # the most accesses by single lanes that are recorded


@frozen
class Slice:
    """The accesses of one kind to one region of an array within one epoch.

    `lanes` is the number of different lanes, `requests` that of accesses by a subgroup. `places` are the accessing
    lines as `file:line`, in execution order.
    """

    array: str
    region: int
    kind: str
    epoch: int
    lanes: int
    places: tuple[str, ...]
    requests: int


@frozen
class Barrier:
    """The barrier that ends an epoch: `name` is the builtin, `place` is `file:line`."""

    epoch: int
    name: str
    place: str


@frozen
class Timeline:
    """The schedule of one workgroup.

    `regions` is the number of equal parts of each array. The `slices` of an epoch and region are sorted by their first
    access. `cut`: the workgroup made later accesses, which were not recorded.
    """

    regions: Mapping[str, int]
    epochs: int
    slices: tuple[Slice, ...]
    barriers: tuple[Barrier, ...]
    cut: bool = False

    def of(self, array: str, region: int, kind: str | None = None) -> list[Slice]:
        """Return the slices of one region, optionally of one kind."""
        found = [each for each in self.slices if (each.array, each.region) == (array, region)]
        return [each for each in found if kind in (None, each.kind)]


def record_timeline(case: Case, run: Run, workgroup: tuple[int, int, int] = (0, 0, 0)) -> Timeline:
    """Record the timeline of one workgroup of `run`, a run of `case`, in the smallest grid that contains it.

    A timeline of more than `MOST_ROWS` accesses ends with the last epoch that is complete. Raises `UsageError` if a
    probe cannot be inserted, or if the workgroup is outside the grid.
    """
    require_inside(run, workgroup)
    if prod(run.pipeline.workgroup_size) > MOST_LANES:
        raise UsageError(f"workgroups of more than {MOST_LANES} invocations cannot be recorded")
    sites = run.program.sites
    wanted = [number for number, site in enumerate(sites) if site.kind == "barrier" or site.space == "workgroup"]
    log = record(case, run, wanted, workgroup, tuple(at + 1 for at in workgroup), MOST_ROWS)
    asked = list(requests(log.rows, log.probes, sites, run.device.subgroup_size))
    last = max((each.epoch for each in asked), default=0)
    whole = [each for each in asked if not log.missed or each.epoch < last]
    return timeline(whole, sizes_of(run.pipeline), cut=log.missed > 0)


def sizes_of(pipeline: Pipeline) -> dict[str, int]:
    """Return the size in bytes of each workgroup variable."""
    held = pipeline.store_types.items()
    return {var.name: t.size_of(type_) for var, type_ in held if var.space == "workgroup"}


def timeline(
    asked: Sequence[Request], sizes: Mapping[str, int], regions: Mapping[str, int] | None = None, cut: bool = False
) -> Timeline:
    """Build a timeline from requests in execution order.

    `sizes`: bytes of each array. `regions`: the number of parts of each array; without it, `find_regions` decides.
    """
    parts = {
        name: regions[name] if regions else find_regions([r for r in asked if r.site.variable == name], size)
        for name, size in sizes.items()
        if (regions is None or name in regions) and any(r.site.variable == name for r in asked)
    }
    found: dict[tuple[str, int, str, int], list[_Part]] = {}
    for request in asked:
        name = request.site.variable
        if name in parts and request.site.kind in KINDS:
            at = request.addresses // (sizes[name] // parts[name])
            for region in sorted(set(at[request.active].tolist())):
                key = (name, region, KINDS[request.site.kind], request.epoch)
                found.setdefault(key, []).append((request, request.active & (at == region)))
    epochs = max((request.epoch for request in asked), default=-1) + 1
    slices = (_slice(*key, here) for key, here in found.items())
    return Timeline(parts, epochs, tuple(slices), tuple(_barriers(asked)), cut)


_Part = tuple[Request, NDArray[np.bool_]]  # a request, and which of its lanes access one region


def _slice(array: str, region: int, kind: str, epoch: int, here: list[_Part]) -> Slice:
    lanes = {(request.subgroup, lane) for request, on in here for lane in on.nonzero()[0].tolist()}
    places = tuple(dict.fromkeys(_place(request.site) for request, _ in here))
    return Slice(array, region, kind, epoch, len(lanes), places, len(here))


def _place(site: SourceSite) -> str:
    place = site.span.place
    return f"{Path(place.file).name}:{place.line}"


def _barriers(asked: Iterable[Request]) -> list[Barrier]:
    """Return each barrier once, as the first subgroup reached it."""
    found: dict[int, Barrier] = {}
    for request in asked:
        if request.site.kind == "barrier" and request.epoch not in found:
            found[request.epoch] = Barrier(request.epoch, request.site.name or "barrier", _place(request.site))
    return [found[epoch] for epoch in sorted(found)]


def find_regions(asked: Iterable[Request], size: int) -> int:
    """Return the number of buffers that an array consists of, 1 if it is not a multiple buffer.

    That is the smallest number of equal parts, all of them used, such that no epoch writes more than one and none reads
    more than one. Numbers up to `MOST_REGIONS` are tried.
    """
    rows = [(r.epoch, r.site.kind, r.addresses[r.active]) for r in asked if r.active.any()]
    for count in range(2, MOST_REGIONS + 1):
        if size % count:
            continue
        touched: dict[tuple[int, str], set[int]] = {}
        for epoch, kind, addresses in rows:
            touched.setdefault((epoch, kind), set()).update((addresses // (size // count)).tolist())
        used = {part for each in touched.values() for part in each}
        if all(len(each) == 1 for each in touched.values()) and len(used) == count:
            return count
    return 1
