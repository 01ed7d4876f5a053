"""Where the cost of a run is: the few places in the source with the most excess, why, and what helps.

*Excess* is what a place was charged beyond its ideal: wavefronts that bank conflicts add, sectors that a scattered
access adds, issue slots whose lanes idle, turns that atomic operations wait for. Where the costs of the device are
known, places are ranked by the predicted time that the kernel would save without their excess. Elsewhere they are
ranked by their part of all passes of the run: an issued subgroup, a wavefront and a sector count as one pass each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...sim.fast_dataclass import frozen
from ...sim.run.counters import IDLE_CAUSES
from .check_words import counted

if TYPE_CHECKING:
    from ...sim import Run, Site

MOST = 5  # places of a report
CONFLICTS = "excess wavefronts"  # the resource that bank conflicts take
LEAST = 0.01  # of all passes, for a place to be listed


@frozen
class CostPlace:
    """A place with excess. `code`: the text of its line. `what`: the access, or what its lanes do. `resource`: the unit
    of `excess`. `share`: of the excess of this resource in the run; `weight`: of all passes. `why` says how the excess
    arises, `help` what removes it. `lines`: how many lines of the file it stands for, of which this is the worst.
    `saved_us`: the predicted time without the excess is shorter by this; None where the device's costs are not known.
    `weight` is then its part of the predicted time. `claimed`: the device was calibrated."""

    file: str
    line: int
    code: str
    what: str
    resource: str
    excess: int
    share: float
    weight: float
    why: str
    help: str
    lines: int = 1
    saved_us: float | None = None
    claimed: bool = True

    @property
    def at(self) -> str:
        """The file without its folders, and the line."""
        return f"{Path(self.file).name}:{self.line}"

    @property
    def reason(self) -> str:
        """`why`, and on how many other lines."""
        return self.why + (f" (and on {counted(self.lines - 1, 'more line')})" if self.lines > 1 else "")

    @property
    def part(self) -> str:
        """How much of the excess it is, in words."""
        return f"{self.share:.0%} of the {self.resource}"

    def entry(self) -> dict[str, Any]:
        """The place as JSON-like values, with microseconds only where they are a claim."""
        entry = asdict(self)
        if not entry.pop("claimed"):
            entry["saved_us"] = None
        return entry


def cost_places(run: Run, most: int = MOST) -> tuple[CostPlace, ...]:
    """The places with the most excess, the worst first; empty where no place has much."""
    passes = passes_of(run.counters)
    found = _timed(run, [*_merged(_accesses(run.sites, passes)), *_idle(run, passes)])
    worth = [place for place in found if place.weight >= LEAST]
    return tuple(sorted(worth, key=lambda place: (-place.weight, place.file, place.line))[:most])


def _timed(run: Run, places: Iterable[CostPlace]) -> Iterator[CostPlace]:
    """Weigh places by the time that they cost, where the costs of the device are known."""
    if not run.predicts_time:
        yield from places
        return
    from ...sim.run.what_if import saving

    for place in places:
        us = saving(run, _CHANGES[place.resource], place.share)
        yield replace(place, saved_us=us, weight=us / run.predicted_time.us, claimed=run.device.calibrated)


def line_shares(run: Run) -> dict[tuple[str, int], float]:
    """The share of all excess of a run that each line has, by file and line; empty where there is hardly any excess."""
    passes = passes_of(run.counters)
    excess: dict[tuple[str, int], float] = defaultdict(float)
    for place in _accesses(run.sites, passes):
        excess[place.file, place.line] += place.excess
    for site in run.sites:
        if idle := sum(getattr(site, row.key) for row in IDLE_CAUSES):
            excess[site.span.place.file, site.line] += idle / run.device.subgroup_size
    whole = sum(excess.values())
    return {at: beyond / whole for at, beyond in excess.items()} if whole >= LEAST * passes else {}


def _merged(places: Iterable[CostPlace]) -> Iterator[CostPlace]:
    """One place for all lines of a file that access the same memory in the same way: they have one cause."""
    alike: dict[tuple[str, ...], list[CostPlace]] = defaultdict(list)
    for place in places:
        alike[place.file, place.what, place.resource, place.why].append(place)
    for group in alike.values():
        worst = max(group, key=lambda place: (place.excess, -place.line))
        excess, share, weight = (sum(getattr(place, name) for place in group) for name in ("excess", "share", "weight"))
        yield replace(worst, excess=excess, share=share, weight=weight, lines=len(group))


def passes_of(counters: Mapping[str, float]) -> float:
    """All passes of a run; at least 1."""
    return max(1, sum(counters[name] for name in ("executions", "shared_wavefronts", "global_sectors")))


# ---- accesses ----------------------------------------------------------------------------------------


@frozen
class _Resource:
    """A resource that accesses are charged for: its counter, and functions of the sums over one place."""

    unit: str
    charged: str
    ideal: str
    why: Callable[[Mapping[str, int]], str]
    help: Callable[[Mapping[str, int], str], str]


def _conflict(sums: Mapping[str, int]) -> str:
    rate, least = _each(sums, "shared_wavefronts"), _each(sums, "shared_ideal_wavefronts")
    return f"{rate:.3g} wavefronts per request, where {least:.3g} would do"


def _scatter(sums: Mapping[str, int]) -> str:
    rate, least = _each(sums, "global_sectors", "global"), _each(sums, "global_ideal_sectors", "global")
    return f"{rate:.3g} sectors per request, where {least:.3g} would do"


def _waiting(sums: Mapping[str, int]) -> str:
    turns = sums["atomic_turns"] / max(sums["executions"], 1)
    return f"{turns:.3g} turns per request, as lanes wait for each other on one word"


def _gather(sums: Mapping[str, int], name: str) -> str:
    adjacent = f"let adjacent lanes access adjacent elements of {name}"
    if sums["global_sectors"] - sums["global_ideal_sectors"] > sums["global_requests"]:
        return adjacent
    if sums["global_ideal_sectors"] < 2 * sums["global_requests"]:  # two elements apart, or a row that is not aligned
        return f"{adjacent}, in rows that start at multiples of 32 bytes"
    return f"start the rows of {name} at multiples of 32 bytes"


def _each(sums: Mapping[str, int], counter: str, space: str = "shared") -> float:
    return sums[counter] / max(sums[f"{space}_requests"], 1)


_RESOURCES = (
    _Resource(
        CONFLICTS, "shared_wavefronts", "shared_ideal_wavefronts", _conflict,
        lambda _, name: f"pad or reorder {name} against bank conflicts; `bankshot advise` tries layouts",
    ),
    _Resource("excess sectors", "global_sectors", "global_ideal_sectors", _scatter, _gather),
    _Resource(
        "serialized atomic turns", "atomic_turns", "executions", _waiting,
        lambda _, name: "combine the lanes of a subgroup first, or give each workgroup a copy in workgroup memory",
    ),
)  # fmt: skip

# The change that ends the excess of each resource, by its name in `sim.run.what_if.CHANGES`.
_CHANGES = {
    CONFLICTS: "no bank conflicts",
    "excess sectors": "coalesced accesses",
    "serialized atomic turns": "atomic operations that never wait",
    "idle lanes": "no idle lanes",
}

_SUMMED = ("executions", "shared_requests", "shared_wavefronts", "shared_ideal_wavefronts", "global_requests",
           "global_sectors", "global_ideal_sectors", "atomic_turns")  # fmt: skip


def _accesses(sites: Iterable[Site], passes: float) -> Iterator[CostPlace]:
    """A place for each line, access and resource with excess."""
    grouped: dict[tuple[str, int, str, str | None], list[Site]] = defaultdict(list)
    for site in sites:
        if site.space is not None:
            grouped[site.span.place.file, site.line, site.kind, site.name].append(site)
    sums = {
        key: {name: sum(getattr(site, name) for site in group) for name in _SUMMED} for key, group in grouped.items()
    }
    for resource in _RESOURCES:
        excess = {key: _excess(resource, each) for key, each in sums.items()}
        whole = sum(excess.values())
        for key, beyond in excess.items():
            if beyond > 0:
                file, line, kind, name = key
                yield CostPlace(
                    file, line, grouped[key][0].span.line_text.strip(), f"{kind} of {name}", resource.unit, beyond,
                    beyond / whole, beyond / passes, resource.why(sums[key]), resource.help(sums[key], name or "it"),
                )  # fmt: skip


def _excess(resource: _Resource, sums: Mapping[str, int]) -> int:
    return max(sums[resource.charged] - sums[resource.ideal], 0) if sums[resource.charged] else 0


# ---- idle lanes --------------------------------------------------------------------------------------

_IDLE_HELP = {
    "idle_guard": "fit the grid to the data, so that fewer invocations end at the guard",
    "idle_overhang": "make the workgroup size a multiple of {size}, the size of a subgroup",
    "idle_divergence": "give the lanes of a subgroup the same branch and the same number of iterations",
}
_ALONE_HELP = "share this work among the lanes of the subgroup: one does it alone"


def _idle(run: Run, passes: float) -> Iterator[CostPlace]:
    """A place for each cause of idle lanes: the line where most lanes idle for it."""
    size = run.device.subgroup_size
    whole = sum(run.counters[row.key] for row in IDLE_CAUSES)
    for row in IDLE_CAUSES:
        lines: dict[tuple[str, int], list[Site]] = defaultdict(list)
        for site in run.sites:
            if getattr(site, row.key):
                lines[site.span.place.file, site.line].append(site)
        if not lines:
            continue
        sums = {at: sum(getattr(site, row.key) for site in sites) for at, sites in lines.items()}
        (file, line), idle = max(sums.items(), key=lambda item: (item[1], item[0]))
        issued = size * sum(site.executions for site in lines[file, line])
        alone = row.key == "idle_divergence" and size * (issued - idle) <= issued
        total = sum(sums.values())
        yield CostPlace(
            file, line, lines[file, line][0].span.line_text.strip(), f"lanes {row.cause[0]}", "idle lanes", total,
            total / whole, total / size / passes, f"{idle / max(issued, 1):.0%} of the lanes are idle, {row.cause[0]}",
            _ALONE_HELP if alone else _IDLE_HELP[row.key].format(size=size), len(lines),
        )  # fmt: skip


# ---- a kernel in all its cases -----------------------------------------------------------------------


@frozen
class CostTotals:
    """What ranks kernels by cost: sums over cases, and the place with the most excess in any. `passes`: see
    `passes_of`, or microseconds where the costs of the device are known; `excess`: those that the costliest places
    add."""

    active_lanes: int = 0
    issued_lanes: int = 0
    excess_wavefronts: int = 0
    sectors: int = 0
    ideal_sectors: int = 0
    passes: float = 0
    excess: float = 0
    worst: CostPlace | None = None
    worst_excess: float = 0

    @property
    def weight(self) -> float:
        """The part of all passes that is excess."""
        return self.excess / max(self.passes, 1)

    @classmethod
    def of(cls, run: Run) -> CostTotals:
        """The totals of one run."""
        counters, places = run.counters, cost_places(run)
        passes = run.predicted_time.us if run.predicts_time else passes_of(counters)
        worst = places[0] if places else None
        active = int(counters["active_lanes"])
        idle = sum(int(counters[row.key]) for row in IDLE_CAUSES)
        return cls(
            active,
            active + idle,
            int(counters["shared_wavefronts"] - counters["shared_ideal_wavefronts"]),
            int(counters["global_sectors"]),
            int(counters["global_ideal_sectors"]),
            passes,
            passes * sum(place.weight for place in places),
            worst,
            passes * worst.weight if worst else 0,
        )

    @classmethod
    def together(cls, parts: Sequence[CostTotals]) -> CostTotals:
        """The totals of several runs."""
        worst = max(parts, key=lambda part: part.worst_excess)
        sums = {name: sum(getattr(part, name) for part in parts) for name in _ADDED}
        return cls(**sums, worst=worst.worst, worst_excess=worst.worst_excess)


_ADDED = ("active_lanes", "issued_lanes", "excess_wavefronts", "sectors", "ideal_sectors", "passes", "excess")
