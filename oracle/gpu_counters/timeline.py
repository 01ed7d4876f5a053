"""Who writes and who reads each part of workgroup memory, between which barriers: the schedule of a double buffer.

Time is counted in epochs, which end at barriers: how long one takes nobody says. The accesses are those of one
workgroup as it ran (see `trace`), so a timeline tells of the text that is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

from ...sim.fast_dataclass import frozen
from ...sim.ir.sites import SourceSite
from ...sim.wgsl import types as t
from ..errors import UsageError
from ..manifests.manifest import Case
from .access_trace import Request, record, requests
from .wgsl_probes import MOST_LANES

KINDS = {"store": "write", "load": "read", "atomic": "update"}  # of accesses, and how they are called
MOST_REGIONS = 4  # that an array is looked at for
MOST_ROWS = 1 << 18  # accesses by single lanes that are recorded


@frozen
class Slice:
    """Accesses of one kind to one region of an array within one epoch. `lanes`: how many make them; `places`: where,
    as `file:line`, in the order in which they come; `requests`: of subgroups."""

    array: str
    region: int
    kind: str
    epoch: int
    lanes: int
    places: tuple[str, ...]
    requests: int


@frozen
class Barrier:
    """The end of an epoch: `name` is the builtin, `place` is `file:line`."""

    epoch: int
    name: str
    place: str


@frozen
class Timeline:
    """`regions`: into how many equal parts each array falls. `slices` of an epoch and region come in the order in which
    they began. `cut`: the workgroup went on, and its later accesses were not recorded."""

    regions: Mapping[str, int]
    epochs: int
    slices: tuple[Slice, ...]
    barriers: tuple[Barrier, ...]
    cut: bool = False

    def of(self, array: str, region: int, kind: str | None = None) -> list[Slice]:
        """The slices of one region, of one kind where that is given."""
        found = [each for each in self.slices if (each.array, each.region) == (array, region)]
        return [each for each in found if kind in (None, each.kind)]


def record_timeline(case: Case, run: Any, workgroup: tuple[int, int, int] = (0, 0, 0)) -> Timeline:
    """The timeline of one workgroup of a run of `case`, in the smallest grid that has it. Of a long one, the whole
    epochs that fit into `MOST_ROWS` accesses.

    Raises `UsageError` where the kernel takes no probes, or the grid has no such workgroup.
    """
    if any(at >= size for at, size in zip(workgroup, run.grid, strict=True)):
        raise UsageError(f"there is no workgroup {workgroup} in a grid of {run.grid}")
    if prod(run.pipeline.workgroup_size) > MOST_LANES:
        raise UsageError(f"workgroups over {MOST_LANES} invocations cannot be recorded")
    sites = run.program.sites
    wanted = [number for number, site in enumerate(sites) if site.kind == "barrier" or site.space == "workgroup"]
    log = record(case, run, wanted, workgroup, tuple(at + 1 for at in workgroup), MOST_ROWS)
    asked = list(requests(log.rows, log.probes, sites, run.device.subgroup_size))
    last = max((each.epoch for each in asked), default=0)
    whole = [each for each in asked if not log.missed or each.epoch < last]
    return timeline(whole, sizes_of(run.pipeline), cut=log.missed > 0)


def sizes_of(pipeline: Any) -> dict[str, int]:
    """Bytes of each workgroup variable."""
    held = pipeline.store_types.items()
    return {var.name: t.size_of(type_) for var, type_ in held if var.space == "workgroup"}


def timeline(
    asked: Sequence[Request], sizes: Mapping[str, int], regions: Mapping[str, int] | None = None, cut: bool = False
) -> Timeline:
    """The timeline of requests in the order of the run. `sizes`: bytes of each array; `regions`: how many parts it has,
    looked for where that is not given."""
    parts = {
        name: regions[name] if regions else find_regions([r for r in asked if r.site.variable == name], size)
        for name, size in sizes.items()
        if (regions is None or name in regions) and any(r.site.variable == name for r in asked)
    }
    found: dict[tuple[str, int, str, int], list[tuple[Request, Any]]] = {}
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


def _slice(array: str, region: int, kind: str, epoch: int, here: list[tuple[Request, Any]]) -> Slice:
    lanes = {(request.subgroup, lane) for request, on in here for lane in on.nonzero()[0].tolist()}
    places = tuple(dict.fromkeys(_place(request.site) for request, _ in here))
    return Slice(array, region, kind, epoch, len(lanes), places, len(here))


def _place(site: SourceSite) -> str:
    place = site.span.place
    return f"{Path(place.file).name}:{place.line}"


def _barriers(asked: Iterable[Request]) -> list[Barrier]:
    """Each barrier once, as the first subgroup came to it."""
    found: dict[int, Barrier] = {}
    for request in asked:
        if request.site.kind == "barrier" and request.epoch not in found:
            found[request.epoch] = Barrier(request.epoch, request.site.name or "barrier", _place(request.site))
    return [found[epoch] for epoch in sorted(found)]


def find_regions(asked: Iterable[Request], size: int) -> int:
    """How many slots an array has: the fewest equal parts, all of them used, of which no epoch writes more than one,
    nor reads more than one; 1 where no number of parts up to `MOST_REGIONS` is so."""
    rows = [(r.epoch, r.site.kind, r.addresses[r.active]) for r in asked if r.active.any()]
    for count in range(2, MOST_REGIONS + 1):
        if size % count:
            continue
        touched: dict[tuple[int, str], set[int]] = {}
        for epoch, kind, addresses in rows:
            touched.setdefault((epoch, kind), set()).update((addresses // (size // count)).tolist())
        if all(len(each) == 1 for each in touched.values()) and len(set().union(*touched.values())) == count:
            return count
    return 1
