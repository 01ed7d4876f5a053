"""The four utilizations of a dispatch, and the least flattering of them, with its cause.

All are shares from 0 to 1. The first three count *issue slots*: an instruction that a subgroup issues takes one slot
for each of its lanes, active or not. Instructions are those of `docs/counting-rules.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil

from ..fast_dataclass import frozen, sealed
from ..models import Device
from ..models.occupancy import Occupancy
from ..wgsl.source import Span
from .slices import Slice
from .tallies import Place, Tally


@frozen
class Definition:
    """A utilization, in one sentence."""

    key: str
    label: str
    definition: str


DEFINITIONS = (
    Definition("lane_efficiency", "lane efficiency", "Active lanes, of the issue slots."),
    Definition(
        "useful_lane_efficiency",
        "useful lane efficiency",
        "Active lanes in whose execution a store or an atomic operation that the host can see depends on the "
        "instruction, of the issue slots; stores of padding zeros over zeros do not count.",
    ),
    Definition(
        "workgroup_balance",
        "workgroup balance",
        "Instructions that subgroups issue between two barriers, of those that they would issue if each issued as many "
        "as the busiest of its workgroup.",
    ),
    Definition(
        "grid_fill",
        "grid fill",
        "Workgroups, of those that the cores hold at a time, in as many waves as they take.",
    ),
)
LABELS = {row.key: row.label for row in DEFINITIONS}


@sealed
class LineUse:
    """The issue slots of a line of the source: all, those of active lanes, and those of useful ones."""

    span: Span  # of the first instruction of the line
    issued: float
    active: float
    useful: float

    @property
    def line(self) -> int:
        """1-based line in its original file."""
        return self.span.line


@sealed
class Headline:
    """The least of the utilizations. `cause` is a clause; `span`, where most of the loss is."""

    key: str
    value: float
    cause: str
    span: Span | None

    @property
    def label(self) -> str:
        return LABELS[self.key]


@sealed
class Utilization:
    """How well a dispatch uses its lanes, its subgroups and the cores of its device (see `DEFINITIONS`).

    None where a figure is not known: `missing` says why. `measured`: the workgroups that were sliced, of `workgroups`.
    `exact`: they are of all classes of workgroups, else a sample. Issue slots of `lines` are those of all workgroups
    that the sliced ones stand for.
    """

    lane_efficiency: float | None
    useful_lane_efficiency: float | None
    workgroup_balance: float | None
    grid_fill: float | None
    lines: tuple[LineUse, ...]
    headline: Headline | None
    measured: int
    workgroups: int
    exact: bool
    missing: str


def utilization_of(
    slices: Sequence[tuple[Slice, int]],
    lanes: tuple[int, int],
    idle: Mapping[str, int],
    device: Device,
    fits: Occupancy,
    workgroups: int,
    *,
    exact: bool,
    missing: str,
) -> Utilization:
    """Compute the utilizations from slices of workgroups, each with how many workgroups it stands for.

    `lanes`: issue slots of the dispatch, and those of active lanes; for where there are no slices. `idle`: idle lanes
    of the dispatch by cause, in words. `fits`: how many workgroups a core holds.
    """
    lines = _lines(slices)
    issued, active, useful = (sum(getattr(row, key) for row in lines) for key in ("issued", "active", "useful"))
    balance, waits = _balance(slices)
    fill, waves = grid_fill(workgroups, device, fits)
    shares = {
        "lane_efficiency": active / issued if issued else lanes[1] / lanes[0] if lanes[0] else None,
        "useful_lane_efficiency": useful / issued if issued else None,
        "workgroup_balance": balance,
        "grid_fill": fill,
    }
    known = {key: value for key, value in shares.items() if value is not None}
    headline = None
    if known:
        key = min(known, key=lambda each: known[each])
        cause, span = _cause(key, lines, idle, waits, waves)
        headline = Headline(key, known[key], cause, span)
    return Utilization(
        **shares,
        lines=lines,
        headline=headline,
        measured=len(slices),
        workgroups=workgroups,
        exact=exact,
        missing=missing,
    )


def _lines(slices: Iterable[tuple[Slice, int]]) -> tuple[LineUse, ...]:
    found: dict[tuple[str, int], tuple[Span, Tally]] = {}
    for each, times in slices:
        for (_, span), tally in sorted(each.tallies.items(), key=_position):
            _, total = found.setdefault((span.place.file, span.place.line), (span, Tally()))
            total.issued += times * tally.issued
            total.active += times * tally.active
            total.useful += times * tally.useful
    return tuple(LineUse(span, row.issued, row.active, row.useful) for span, row in found.values())


def _position(item: tuple[Place, Tally]) -> tuple[str, int, int]:
    place = item[0][1].place
    return place.file, place.line, place.column


def _balance(slices: Iterable[tuple[Slice, int]]) -> tuple[float | None, dict[Span | None, int]]:
    """Return the balance, and the slots of subgroups that wait, by the barrier that they wait at (None: the end)."""
    issued = possible = 0
    waits: dict[Span | None, int] = {}
    for each, times in slices:
        for interval in each.intervals:
            capacity = max(interval.issued) * len(interval.issued)
            issued += times * sum(interval.issued)
            possible += times * capacity
            waits[interval.barrier] = waits.get(interval.barrier, 0) + times * (capacity - sum(interval.issued))
    return issued / possible if possible else None, waits


def grid_fill(workgroups: int, device: Device, fits: Occupancy) -> tuple[float | None, str]:
    """Return the share of the places that workgroups take, in as many waves as they need, and how many of the last
    wave, in words; None where a device's cores are not known, or no workgroup fits."""
    if device.cores is None or not fits.workgroups:
        return None, ""
    places = device.cores * fits.workgroups
    waves = ceil(workgroups / places)
    last = workgroups - (waves - 1) * places
    of_wave = "" if waves == 1 else f" in the last of {waves:,} waves"
    return workgroups / (waves * places), f"workgroups take {last:,} of {places:,} places{of_wave}"


def _cause(
    key: str, lines: Sequence[LineUse], idle: Mapping[str, int], waits: Mapping[Span | None, int], waves: str
) -> tuple[str, Span | None]:
    if key == "grid_fill":
        return waves, None
    if key == "workgroup_balance":
        barrier = max(waits, key=lambda each: waits[each])
        return ("subgroups wait at this barrier" if barrier else "subgroups wait for the others to end"), barrier
    most = max(idle, key=lambda each: idle[each]) if any(idle.values()) else "idle"
    if not lines:
        return f"lanes are {most}", None
    idle_lanes = sum(row.issued - row.active for row in lines)
    in_vain = sum(row.active - row.useful for row in lines)
    if key == "useful_lane_efficiency" and in_vain > idle_lanes:
        worst = max(lines, key=lambda row: row.active - row.useful)
        return "nothing that is stored depends on what most of its lanes do", worst.span
    worst = max(lines, key=lambda row: row.issued - row.active)
    return f"lanes are {most}", worst.span
