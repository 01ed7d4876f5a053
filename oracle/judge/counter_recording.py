"""Record a run on a GPU: which invocations come to each region of the shader, and each address that they access.

The log has a limited size. So probes are spread over several passes, and each pass is run for some workgroups at a
time. The simulated run only suggests how many rows to expect; where that is wrong, fewer workgroups are recorded at a
time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...sim.fast_dataclass import frozen
from .. import wgpu_client
from ..comparison.bits import as_array
from ..errors import UsageError
from ..gpu_account.account import Account
from ..gpu_account.guards import find_stages
from ..gpu_account.idle_lanes import Passage, begun
from ..gpu_account.regions import Anchor, Place, Region, find_regions
from ..gpu_counters.wgsl_probes import (
    HEADER_WORDS,
    LOG,
    MOST_PROBES,
    ROW_WORDS,
    STAGE_SHIFT,
    Instrumented,
    instrument,
    workgroup_shift,
)
from ..manifests.manifest import Case
from .case_run import Say

if TYPE_CHECKING:
    from ...sim import Run
    from ...sim.bindings.binding import Key, Output, Value

    Outputs: TypeAlias = dict[Key, Output]

ROWS_PER_PASS = (1 << 23) - 1  # with their header, what WebGPU lets a storage buffer bind by default: 128 MiB
ROWS_PLANNED = ROWS_PER_PASS // 2  # workgroups are not all alike
SITES_PER_PASS = MOST_PROBES // 4  # a store to a swizzle is one place, and a probe for each component

Rows = NDArray[np.uint32]


@frozen
class Plan:
    """What is recorded of a pipeline: regions, stages, and accesses, each with the rows that a workgroup may make."""

    regions: Sequence[Region]
    stages: Sequence[Anchor]
    accesses: Sequence[Place]
    rows_of_region: Sequence[int]
    rows_of_access: Sequence[int]


@frozen
class Pass:
    """The regions and accesses, by number, that are recorded together."""

    regions: list[int]
    accesses: list[int]
    rows: int


def plan(run: Run) -> Plan:
    """Plan the recording of the kernel of a simulated run."""
    texels = {s.variable: s.bytes_per_lane for s in run.program.sites if s.space == "texture" and s.variable}
    regions = find_regions(run.pipeline, texels, run.device.fma != "separate")
    places = {p.key: p for region in regions for p in region.places}
    accesses = [p for p in places.values() if p.space in ("workgroup", "storage", "texture") and p.bytes_per_lane]
    active = Counter({(r.site.kind, r.span.start, r.span.end, r.site.part): r.active_lanes for r in run.sites})
    lanes = Counter({(i.kind, i.span): i.lanes for i in run.instructions})
    workgroups, least = math.prod(run.grid), math.prod(run.pipeline.workgroup_size)
    by_region = [
        max([least * workgroups]
            + [active[p.key] for p in r.places]
            + [lanes[key] // times for key, times in r.instructions.items()])
        for r in regions
    ]  # fmt: skip
    by_access = [max(least * workgroups, active[p.key]) for p in accesses]
    stages = find_stages(run.pipeline)
    return Plan(
        regions, stages, accesses, [-(-n // workgroups) for n in by_region], [-(-n // workgroups) for n in by_access]
    )


def passes(planned: Plan) -> list[Pass]:
    """Spread the probes over few passes, in each of which the log of one workgroup fits and probes can be numbered."""
    parts = [Pass([], [], 0)]
    for number, rows in enumerate(planned.rows_of_region):
        _room(parts, rows).regions.append(number)
        parts[-1] = Pass(parts[-1].regions, parts[-1].accesses, parts[-1].rows + rows)
    for number, rows in enumerate(planned.rows_of_access):
        _room(parts, rows).accesses.append(number)
        parts[-1] = Pass(parts[-1].regions, parts[-1].accesses, parts[-1].rows + rows)
    return parts


def _room(parts: list[Pass], rows: int) -> Pass:
    """Return the last pass, or a new one where it has no room."""
    probes = len(parts[-1].regions) + len(parts[-1].accesses)
    if probes and (parts[-1].rows + rows > ROWS_PLANNED or probes >= SITES_PER_PASS):
        parts.append(Pass([], [], 0))
    return parts[-1]


def probes_of(planned: Plan, part: Pass, run: Run, first: str = "") -> Instrumented:
    regions = {number: planned.regions[number].anchor for number in part.regions}
    stages = planned.stages if regions else ()
    return instrument(run.pipeline, planned.accesses, part.accesses, regions, stages, first)


def record(
    case: Case, run: Run, instrumented: Instrumented, rows: int, adapter: str | None, say: Say
) -> Iterator[tuple[Rows, Outputs]]:
    """Yield rows of some workgroups at a time, `[rows, 5]` (workgroup, then the words of a row), and the outputs.

    `rows`: how many a workgroup is expected to make.
    """
    lanes, workgroups = math.prod(run.pipeline.workgroup_size), math.prod(run.grid)
    shift = workgroup_shift(lanes)
    each = min(workgroups, 1 << (32 - shift), max(1, ROWS_PLANNED // max(1, rows)))
    first = 0
    while first < workgroups:
        say(f"counting on the GPU, {100 * first // workgroups}%")
        room = min(ROWS_PER_PASS, 4 * rows * each + 1024)
        log = np.zeros(HEADER_WORDS + ROW_WORDS * room, np.uint32)
        log[1:4] = first, each, room
        outputs = on_gpu(case, run, instrumented.text, [instrumented], {LOG: log}, adapter)
        log = as_array(outputs.pop(LOG))
        used = int(log[0])
        if used > room:
            if room == ROWS_PER_PASS and each == 1:
                title = f"{case.kernel.name} {case.shape}"
                raise UsageError(f"{title}: the GPU made {used:,} rows where {room:,} fit; choose a smaller shape")
            rows = -(-used // each)
            each = min(each, max(1, ROWS_PLANNED // rows))
            continue
        body = log[HEADER_WORDS:][: used * ROW_WORDS].reshape(used, ROW_WORDS)
        yield np.column_stack([(body[:, 0] >> shift) + np.uint32(first), body]), outputs
        first += each


def on_gpu(
    case: Case, run: Run, text: str, logs: list[Instrumented], more: Mapping[str, Value], adapter: str | None
) -> Outputs:
    """Run a text that binds what the kernel of `run` does, and logs. Returns its outputs."""
    slots = wgpu_client.slots_of(run.pipeline.entry)
    slots += [wgpu_client.Slot(LOG, log.group, log.binding, "storage-write") for log in logs]
    entry, overrides = run.pipeline.entry.name, case.overrides
    bindings = {**case.bindings, **more}
    return wgpu_client.run(text, entry, case.grid, bindings, slots=slots, overrides=overrides, adapter=adapter).outputs


def charge(account: Account, planned: Plan, instrumented: Instrumented, rows: Rows) -> int:
    """Add what rows say (see `record`) to an account. Returns the invocations that came to the entry point.

    All rows of a workgroup must be charged together; otherwise an access that a subgroup issued once counts twice.
    """
    shift = workgroup_shift(account.shape.lanes)
    numbers = rows[:, 1] & np.uint32(MOST_PROBES - 1)
    parts = {number: _passage(rows[which], shift) for number, which in _grouped(numbers)}
    addresses = {number: rows[which, 4].astype(np.int64) for number, which in _grouped(numbers)}
    stages = {}
    invocations = 0
    for number, passage in parts.items():
        probe = instrumented.probes[number]
        if probe.region is None and not probe.parts:
            stages = begun(passage, account.shape)
            invocations = int((passage.stage == 0).sum())
    for number, passage in parts.items():
        probe = instrumented.probes[number]
        if probe.region is not None:
            account.entered(planned.regions[probe.region], passage, stages)
        for place, offset in probe.parts:
            account.accessed(planned.accesses[place], passage, addresses[number] + offset)
    return invocations


def _passage(rows: Rows, shift: int) -> Passage:
    wide = rows.astype(np.int64)
    lane = (wide[:, 1] & ((1 << shift) - 1)) >> 12
    path = rows[:, 2].astype(np.int64) << 32 | wide[:, 3]
    return Passage(wide[:, 0], lane, path, wide[:, 3] >> STAGE_SHIFT)


def _grouped(numbers: Rows) -> list[tuple[int, NDArray[np.int64]]]:
    """Group equal numbers: each number that occurs, with its indices."""
    order = np.argsort(numbers, kind="stable")
    found, starts = np.unique(numbers[order], return_index=True)
    return list(zip(map(int, found), np.split(order, starts)[1:], strict=True))
