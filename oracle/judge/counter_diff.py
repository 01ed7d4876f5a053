"""Counters from a run on a GPU: an instrumented shader records accesses, and the host charges them.

Rows of each probe are grouped into subgroups by the control-flow path that led to them, and every access is charged by
the rules of a device profile, as the simulator charges its own. So each place in the source has two rows of counters
that were derived independently from the WGSL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...sim.fast_dataclass import frozen
from ...sim.ir.sites import SourceSite
from ...sim.models import Device
from ...sim.run.counters import SITE_COUNTERS
from ...sim.run.site import Site
from .. import wgpu_client
from ..comparison.bits import as_array
from ..errors import UsageError
from ..gpu_counters.charges import banks, sectors
from ..gpu_counters.wgsl_probes import (
    HEADER_WORDS,
    LOG,
    MOST_LANES,
    MOST_PROBES,
    ROW_WORDS,
    Instrumented,
    Probe,
    instrument,
    workgroup_shift,
)
from ..manifests.manifest import Case
from ..manifests.reflection import check_module
from .case_run import Say, silent, simulate
from .grid_cap import halved

if TYPE_CHECKING:
    from ...sim import Run
    from ...sim.bindings.binding import Key, Output, Value
    from ...sim.run.output_bounds import Bounds

    Outputs: TypeAlias = dict[Key, Output]

# Charges one access: byte addresses of the lanes, and which of them are active -> costs by counter.
Cost = Callable[[NDArray[np.int64], NDArray[np.bool_]], dict[str, int]]

ROWS_PER_PASS = (1 << 23) - 1  # with their header, what WebGPU lets a storage buffer bind by default: 128 MiB
ROWS_PLANNED = ROWS_PER_PASS // 2  # workgroups are not all alike
ROWS_IN_ALL = 1 << 24
SITES_PER_PASS = MOST_PROBES // 4  # a store to a swizzle is one site, and a probe for each component

RECORDED = tuple(row.key for row in SITE_COUNTERS if row.recorded)


@frozen
class SiteDifference:
    """A counter of one place in the source on which the two runs disagree."""

    site: SourceSite
    counter: str
    simulated: int
    counted: int


@frozen
class CounterDiff:
    """The comparison of the counters of a simulated run with those recorded on a GPU.

    `grid`: what both ran; where `cut`, smaller than the case's, whose log would be too long. `rows`: recorded on the
    GPU, in so many `passes`. `compared`: the number of counters compared. `changed`: the outputs, with probes, that
    differ from those without. Probes may change which products are fused into sums, so floats count as changed only
    where they differ by more than two conforming results may (`run.bounds`). Bytes count as changed if any differs.
    """

    adapter: wgpu_client.AdapterInfo
    device: str
    grid: tuple[int, int, int]
    cut: bool
    rows: int
    passes: int
    compared: int
    differences: tuple[SiteDifference, ...]
    changed: Outputs

    @property
    def outputs_equal(self) -> bool:
        return not self.changed

    @property
    def ok(self) -> bool:
        return not self.differences and self.outputs_equal


def diff_counters(case: Case, device: str, adapter: str | None, say: Say = silent) -> CounterDiff:
    """Count `case` in the simulator as `device` and on an adapter. Raises `UsageError`, `GpuError`, `NoAdapter`."""
    info = wgpu_client.require_adapter(adapter)
    case, run, cut = _fitting(case, device, say)
    say(f"counting on {info.name}")
    counted = [Site(site=site) for site in run.program.sites]
    plain = _on_gpu(case, run, check_module(case.kernel).source.text, [], {}, adapter)
    rows, passes = 0, 0
    changed: Outputs = {}
    for wanted in _parts(run):
        instrumented = instrument(run.pipeline, run.program.sites, wanted)
        for recorded, left in _record(case, run, instrumented, wanted, adapter, say):
            charge(counted, instrumented.probes, recorded, run.device, _lanes(run))
            rows, passes = rows + len(recorded), passes + 1
            changed |= {key: data for key, data in left.items() if not _alike(data, plain[key], key, run.bounds)}
    differences, compared = compare(run.sites, counted)
    return CounterDiff(info, device, run.grid, cut, rows, passes, compared, tuple(differences), changed)


def _lanes(run: Run) -> int:
    return math.prod(run.pipeline.workgroup_size)


def _fitting(case: Case, device: str, say: Say) -> tuple[Case, Run, bool]:
    """Return the case on a part of its grid whose log is not too long, its simulated run, and whether the grid was cut.

    The longest axis is halved until the log fits, as if all workgroups recorded equally many rows; a single one is
    always counted. One workgroup of each class suffices to estimate the log; for the comparison all of them run.
    """
    cut = False
    while True:
        run = simulate(case, device, "counters", say, workgroups="classes")
        if run.device.merge_adjacent:
            raise UsageError(f"--counters: accesses are recorded as written, and {device} merges adjacent ones")
        rows = sum(row.active_lanes for row in run.sites)
        if _lanes(run) > MOST_LANES:
            raise UsageError(f"{case.kernel.name}: workgroups of more than {MOST_LANES} invocations cannot be recorded")
        workgroups = math.prod(run.grid)
        if rows <= ROWS_IN_ALL or workgroups == 1:
            return case, run if run.coverage.how == "all" else simulate(case, device, "counters", say), cut
        case, cut = replace(case, grid=halved(run.grid, workgroups * ROWS_IN_ALL // rows)), True


# ---- recording ---------------------------------------------------------------------------------------


def _parts(run: Run) -> list[list[int]]:
    """Split the sites into few parts, in each of which the log of one workgroup fits and probes can be numbered."""
    workgroups = math.prod(run.grid)
    parts: list[list[int]] = [[]]
    filled = 0
    for number, row in enumerate(run.sites):
        rows = -(-row.active_lanes // workgroups)
        if parts[-1] and (filled + rows > ROWS_PLANNED or len(parts[-1]) == SITES_PER_PASS):
            parts.append([])
            filled = 0
        parts[-1].append(number)
        filled += rows
    return parts


def _record(
    case: Case, run: Run, instrumented: Instrumented, wanted: list[int], adapter: str | None, say: Say
) -> Iterator[tuple[NDArray[np.uint32], Outputs]]:
    """Yield rows of some workgroups at a time, `[rows, 5]` (workgroup, then the words of a row), and the outputs."""
    workgroups, shift = math.prod(run.grid), workgroup_shift(_lanes(run))
    rows = max(1, sum(run.sites[number].active_lanes for number in wanted))
    each = min(workgroups, 1 << (32 - shift), max(1, ROWS_PLANNED * workgroups // rows))
    for first in range(0, workgroups, each):
        say(f"counting on the GPU, {100 * first // workgroups}%")
        room = min(ROWS_PER_PASS, 4 * rows * each // workgroups + 1024)
        log = np.zeros(HEADER_WORDS + ROW_WORDS * room, np.uint32)
        log[1:4] = first, each, room
        outputs = _on_gpu(case, run, instrumented.text, [instrumented], {LOG: log}, adapter)
        log = as_array(outputs.pop(LOG))
        used = int(log[0])
        if used > room:
            title = f"{case.kernel.name} {case.shape}"
            raise UsageError(f"{title}: the GPU made {used:,} rows where {room:,} fit; choose a smaller shape")
        body = log[HEADER_WORDS:][: used * ROW_WORDS].reshape(used, ROW_WORDS)
        yield np.column_stack([(body[:, 0] >> shift) + np.uint32(first), body]), outputs


def _on_gpu(
    case: Case, run: Run, text: str, logs: list[Instrumented], more: dict[str, Value], adapter: str | None
) -> Outputs:
    slots = wgpu_client.slots_of(run.pipeline.entry)
    slots += [wgpu_client.Slot(LOG, log.group, log.binding, "storage-write") for log in logs]
    entry, overrides = run.pipeline.entry.name, case.overrides
    bindings = {**case.bindings, **more}
    return wgpu_client.run(text, entry, case.grid, bindings, slots=slots, overrides=overrides, adapter=adapter).outputs


def _alike(one: Output, other: Output, key: Key, bounds: Bounds) -> bool:
    """Whether two outputs are equal, or floats that two conforming implementations may give."""
    if _bytes(one) == _bytes(other):
        return True
    if isinstance(one, bytes) or isinstance(other, bytes) or one.dtype.kind != "f":
        return False
    with np.errstate(invalid="ignore"):
        away = np.abs(one.astype(np.float64) - other)
    return bool(np.all((away <= 2 * bounds[key]) | np.isinf(bounds[key]) | (np.isnan(one) & np.isnan(other))))


def _bytes(data: Output) -> bytes:
    return data if isinstance(data, bytes) else data.tobytes()


# ---- charging ----------------------------------------------------------------------------------------


def charge(
    counted: list[Site], probes: tuple[Probe, ...], rows: NDArray[np.uint32], device: Device, lanes: int
) -> None:
    """Add the cost of recorded rows (as `_record` yields them) by the rules of `device` to the counters of each site.

    All rows of a workgroup must be charged together; otherwise an access that a subgroup issued once counts twice.
    """
    size = device.subgroup_size
    subgroups = -(-lanes // size)
    lane = (rows[:, 1] & np.uint32((1 << workgroup_shift(lanes)) - 1)) >> 12
    subgroup = rows[:, 0].astype(np.uint64) * subgroups + lane // size
    path = rows[:, 2].astype(np.uint64) << np.uint64(32) | rows[:, 3]
    for number, part in _grouped(rows[:, 1] & np.uint32(MOST_PROBES - 1)):
        order = part[np.lexsort((path[part], subgroup[part]))]
        same = (path[order][1:] == path[order][:-1]) & (subgroup[order][1:] == subgroup[order][:-1])
        issue = np.concatenate([[0], np.cumsum(~same)])
        addresses = np.full((int(issue[-1]) + 1, size), -1, np.int64)
        addresses[issue, lane[order] % size] = rows[order, 4]
        for site, offset in probes[number].parts:
            _add(counted[site], addresses, offset, probes[number].times, device, subgroups)


def _grouped(numbers: NDArray[np.uint32]) -> list[tuple[int, NDArray[np.int64]]]:
    """Group equal numbers: each number that occurs, with its indices."""
    order = np.argsort(numbers, kind="stable")
    found, starts = np.unique(numbers[order], return_index=True)
    return list(zip(map(int, found), np.split(order, starts)[1:], strict=True))


def _add(row: Site, addresses: NDArray[np.int64], offset: int, times: int, device: Device, subgroups: int) -> None:
    """Charge accesses `[issues, lanes]`, -1 for lanes that are not active, to a site."""
    site = row.site
    active = addresses >= 0
    row.executions += times * len(addresses)
    row.active_lanes += times * int(active.sum())
    row.flops += times * int(active.sum()) * site.flops
    if site.kind == "atomic":
        row.atomics += int(active.sum())
    if site.kind == "barrier":
        row.barriers += times * len(addresses) // subgroups
    if site.space == "workgroup" and site.bytes_per_lane:
        row.shared_requests += len(addresses)
        _each(row, addresses, active, offset, partial(banks, device, site))
    elif site.space in ("storage", "texture") and site.bytes_per_lane:
        row.global_requests += len(addresses)
        row.global_bytes += int(active.sum()) * site.bytes_per_lane
        _each(row, addresses, active, offset, partial(sectors, device, site))


def _each(row: Site, addresses: NDArray[np.int64], active: NDArray[np.bool_], offset: int, cost: Cost) -> None:
    """Add the cost of each access. Patterns that lie a multiple of `step` bytes apart cost the same."""
    step = 512
    lowest = np.where(active, addresses, np.iinfo(np.int64).max).min(axis=1, keepdims=True) // step * step
    relative = np.where(active, addresses - lowest, -1)
    patterns, counts = np.unique(relative, axis=0, return_counts=True)
    for pattern, count in zip(patterns, counts, strict=True):
        on = pattern >= 0
        for name, number in cost(np.where(on, pattern + offset, 0), on).items():
            setattr(row, name, getattr(row, name) + int(count) * number)


def compare(simulated: list[Site], counted: list[Site]) -> tuple[list[SiteDifference], int]:
    """Return the counters of sites that differ, and how many were compared."""
    differences = [
        SiteDifference(ours.site, name, getattr(ours, name), getattr(theirs, name))
        for ours, theirs in zip(simulated, counted, strict=True)
        for name in RECORDED
        if getattr(ours, name) != getattr(theirs, name)
    ]
    return differences, len(simulated) * len(RECORDED)
