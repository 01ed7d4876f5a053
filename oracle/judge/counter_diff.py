"""Compare the simulator's counters with an account of what a GPU recorded.

An instrumented shader records which invocations come where, and what they access. `gpu_account` charges these records
by rules and weights of its own, so that a wrong rule, weight, mask or probe in the simulator shows as a difference.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...sim.fast_dataclass import frozen
from ...sim.models import Device
from ...sim.models.devices import get
from ...sim.wgsl import types as t
from .. import wgpu_client
from ..diagnosis.adapter_reruns import zeroing, zeroing_statements
from ..errors import UsageError
from ..gpu_account.account import COUNTERS, Account
from ..gpu_account.hardware import Hardware
from ..gpu_account.idle_lanes import Shape
from ..gpu_account.regions import Place
from ..gpu_counters.wgsl_probes import MOST_LANES
from ..manifests.manifest import Case
from ..manifests.reflection import check_module
from .case_run import Say, silent, simulate
from .counter_recording import Plan, charge, on_gpu, passes, plan, probes_of, record
from .grid_cap import halved

if TYPE_CHECKING:
    from ...sim import Run
    from ...sim.bindings.binding import Key, Output
    from ...sim.run.output_bounds import Bounds

    Outputs: TypeAlias = dict[Key, Output]

ROWS_IN_ALL = 1 << 24

# Counters of a run that the account does not have, each with the reason.
NOT_COMPARED: Mapping[str, str] = MappingProxyType(
    {
        "workgroup_memory_bytes": "declared, not executed",
        "padding_flops": "a GPU does not show which results are used",
    }
)

_NOTHING: Mapping[str, int] = MappingProxyType({})


@frozen
class CounterDifference:
    """A counter of one place in the source, or of the run (`site` None), on which the two disagree."""

    site: Place | None
    counter: str
    simulated: float
    counted: float


@frozen
class CounterDiff:
    """The comparison of the counters of a simulated run with those recorded on a GPU.

    `grid`: what both ran; where `cut`, smaller than the case's, whose log would be too long. `rows`: recorded on the
    GPU, in so many `passes`. `compared`: the number of counters compared, `places` and `instructions` those of what.
    `changed`: the outputs, with probes, that differ from those without. `not_compared`: other counters, with the
    reason. Probes may change which products are fused into
    sums, so floats count as changed only where they differ by more than two conforming results may (`run.bounds`).
    Bytes count as changed if any differs. `zeroed`: the driver does not zero workgroup memory, and the counters are
    those of a shader that does.
    """

    adapter: wgpu_client.AdapterInfo
    device: str
    grid: tuple[int, int, int]
    cut: bool
    rows: int
    passes: int
    places: int
    instructions: int
    compared: int
    differences: tuple[CounterDifference, ...]
    changed: Outputs
    not_compared: Mapping[str, str] = field(default_factory=lambda: NOT_COMPARED)
    zeroed: bool = False

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
    planned = plan(run)
    _check_subgroups(run, planned, info)
    found = _counted(case, run, planned, info, cut, adapter, say)
    statements = zeroing_statements(run.pipeline)
    if found.ok or not statements:
        return found
    first = f"{statements} workgroupBarrier();"
    again = _counted(case, run, planned, info, cut, adapter, say, first)
    return replace(again, zeroed=True) if again.ok else found


def _counted(
    case: Case,
    run: Run,
    planned: Plan,
    info: wgpu_client.AdapterInfo,
    cut: bool,
    adapter: str | None,
    say: Say,
    first: str = "",
) -> CounterDiff:
    """Count a simulated run on an adapter. `first`: the statements that zero workgroup memory,
    to execute there before the entry point's own."""
    say(f"counting on {info.name}")
    account = open_account(run)
    account.open(planned.regions)
    text = check_module(case.kernel).source.text
    if first:
        text = zeroing(text, run.pipeline) or text
    plain = on_gpu(case, run, text, [], {}, adapter)
    rows, done, invocations = 0, 0, 0
    changed: Outputs = {}
    for part in passes(planned):
        instrumented = probes_of(planned, part, run, first)
        came = 0
        for recorded, left in record(case, run, instrumented, part.rows, adapter, say):
            came += charge(account, planned, instrumented, recorded)
            rows, done = rows + len(recorded), done + 1
            changed |= {key: data for key, data in left.items() if not _alike(data, plain[key], key, run.bounds)}
        invocations = max(invocations, came)
    differences, compared = compare(run, account, invocations)
    return CounterDiff(
        *(info, run.device.name, run.grid, cut, rows, done, len(account.counters), len(account.instructions)),
        *(compared, tuple(differences), changed),
    )


_OF_SUBGROUPS = ("subgroup_size", "subgroup_id", "subgroup_invocation_id", "num_subgroups")


def _check_subgroups(run: Run, planned: Plan, info: wgpu_client.AdapterInfo) -> None:
    """Raise `UsageError` if what the kernel does depends on the size of subgroups, and the adapter's is another."""
    theirs = get(info.profile).subgroup_size if info.profile else run.device.subgroup_size
    if theirs == run.device.subgroup_size:
        return
    inputs = [parameter.builtin for parameter in run.pipeline.entry.params] + [
        member.attrs.get("builtin")
        for parameter in run.pipeline.entry.params
        if isinstance(parameter.type, t.Struct)
        for member in parameter.type.members
    ]
    exchanges = any(place.kind == "subgroup" for region in planned.regions for place in region.places)
    if exchanges or any(name in _OF_SUBGROUPS for name in inputs):
        ours = run.device.subgroup_size
        raise UsageError(f"--counters: the kernel uses subgroups, of {ours} on {run.device.name} and {theirs} here")


def open_account(run: Run) -> Account:
    """Return an account with the figures of the device of a run."""
    return Account(hardware_of(run.device), Shape(_lanes(run), run.device.subgroup_size))


def hardware_of(device: Device) -> Hardware:
    return Hardware(
        subgroup_size=device.subgroup_size,
        banks=device.banks,
        bank_width=device.bank_width,
        pair_merge=device.pair_merge,
        lane_order=device.lane_order,
        sector_bytes=device.sector_bytes,
        line_bytes=device.line_bytes,
        fused=device.fma != "separate",
    )


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


# ---- comparison --------------------------------------------------------------------------------------


def compare(run: Run, account: Account, invocations: int) -> tuple[list[CounterDifference], int]:
    """Return the counters that differ, in the order of the source, and how many were compared.

    `invocations`: those that were recorded on the GPU.
    """
    found = [*_sites(run, account), *_instructions(run, account), *_totals(run, account, invocations)]
    differences = [each for each in found if each.simulated != each.counted]
    return sorted(differences, key=lambda each: each.site.span.start if each.site else math.inf), len(found)


def _sites(run: Run, account: Account) -> list[CounterDifference]:
    places = dict(account.places)
    simulated: dict[tuple[str, int, int, int], dict[str, int]] = {}
    for row in run.sites:
        site = row.site
        place = Place(site.kind, site.span, site.space, site.variable, site.bytes_per_lane, site.part, name=site.name)
        places.setdefault(place.key, place)
        simulated[place.key] = row.counts()
    found: list[CounterDifference] = []
    for key, place in places.items():
        ours, theirs = simulated.get(key, _NOTHING), account.counters.get(key, _NOTHING)
        found += [CounterDifference(place, name, ours.get(name, 0), theirs.get(name, 0)) for name in COUNTERS]
    return found


def _instructions(run: Run, account: Account) -> list[CounterDifference]:
    simulated = {(row.kind, row.span): [row.executions, row.lanes] for row in run.instructions}
    return [
        CounterDifference(Place("instruction", key[1], name=key[0]), what, ours, theirs)
        for key in dict.fromkeys([*account.instructions, *simulated])
        for what, ours, theirs in zip(
            ("instructions_issued", "instruction_lanes"),
            simulated.get(key, [0, 0]),
            account.instructions.get(key, [0, 0]),
            strict=True,
        )
    ]


def _totals(run: Run, account: Account, invocations: int) -> list[CounterDifference]:
    counted = [sum(row[name] for row in account.counters.values()) for name in ("executions", "active_lanes")]
    issued = counted[0] * account.shape.subgroup_size
    totals = {
        "workgroups": invocations / account.shape.lanes,
        "invocations": invocations,
        "simt_efficiency": counted[1] / issued if issued else 0.0,
        "working_invocations": len(account.working) / invocations if invocations else 0.0,
    }
    return [CounterDifference(None, name, run.counters[name], value) for name, value in totals.items()]
