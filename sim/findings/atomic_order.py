"""Outputs that depend on which invocation reaches an atomic operation first, found by running in another order.

Only operations that nothing orders can be to blame (see `unordered_atomics`): where there are none, nothing is rerun.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ..analysis.influence import Influence
from ..bindings.binding import Key
from ..fast_dataclass import entity, frozen
from ..ir.sites import SourceSite
from ..launch.launch import Launch
from ..launch.partition import Outcome
from ..launch.schedules import LOCKSTEP, MIRRORED, REVERSED, SERIAL, SIDE_BY_SIDE, Schedule, schedule
from ..wgsl.diagnostics import Note, listed
from .effort import Effort, work
from .finding import Finding
from .races import find_races
from .replay import differences, rerun_budget
from .runner import Changes, Runner
from .table import ATOMIC_ORDER, OUT_OF_BOUNDS, RACE
from .unordered_atomics import LOADS, Unordered, by_cause, find_unordered, results

_HARMLESS = ("same-value", "unseen")
_MOST_SERIAL = 1 << 12  # invocations that are also run one by one, which takes far longer than lockstep
_WIDE = (MIRRORED, SIDE_BY_SIDE, schedule("turns(1)"), schedule("turns(2)"))
_LEAST_FINE = 4  # drawn orders that are tried, and more in smaller dispatches
_MOST_FINE = 24
_MOST_UNITS = 1 << 12  # subgroups or workgroups that take turns in a dispatch of more invocations than `_MOST_SERIAL`


@frozen
class Found:
    """Findings, and how many orders of atomic operations were not tried, because they take too long. `untried`: 0 if
    outputs are known to depend on the order.
    """

    findings: list[Finding]
    untried: int = 0


def find_order_dependence(
    run: Runner, influence: Callable[[], Influence], launch: Launch, outcome: Outcome, others: Sequence[Finding]
) -> Found:
    """Return a finding for each set of outputs that changes, at the most telling operation that influences them, and
    the races that only the other order shows.

    `launch` has finished; `others` are its findings: where races or accesses out of bounds decide what outputs hold,
    the order of atomics is not to blame.
    """
    decided = any(each.code in (RACE.code, OUT_OF_BOUNDS.code) and each.verdict not in _HARMLESS for each in others)
    if not launch.program.order_dependent_atomics or decided:
        return Found([])
    pairs = find_unordered(run, influence())
    outputs = {launch.variable_of(key) for key in launch.views()}
    if not any(pair.influences & outputs for pair in pairs):
        return Found([])
    known = {each.race_places for each in others}
    orders = _Orders(launch, outcome)
    for how, changes in _changes(run, orders, pairs):
        groups = by_cause(pairs, frozenset(launch.variable_of(key) for key in changes))
        if groups:
            found = [_of_group(group, influence(), launch, changes) for group in groups]
            races = [race for race in _races(run, how) if race.race_places not in known]
            return Found([*found, *races])
    return Found([], orders.untried)


def blame(run: Runner, influence: Influence, launch: Launch, changes: dict[Key, str]) -> list[Finding]:
    """Return a finding for each set of outputs whose changes unordered atomic operations explain.

    `changes`: what another order changes in each output, in words.
    """
    if not launch.program.order_dependent_atomics:
        return []
    groups = by_cause(find_unordered(run, influence), frozenset(launch.variable_of(key) for key in changes))
    return [_of_group(group, influence, launch, changes) for group in groups]


@entity
class _Orders:
    """The orders in which a finished run is repeated. `untried`: how many take too long."""

    launch: Launch
    outcome: Outcome
    untried: int = 0

    def affordable(self, orders: Iterable[Schedule], workgroups: int | None = None) -> Iterator[Schedule]:
        """Yield the orders, from the first on, whose work fits the limit in all."""
        effort, fits = Effort.of(self.launch, self.outcome), True
        for order in orders:
            fits = fits and effort.take(work(self.launch, self.outcome, order, workgroups))
            if fits:
                yield order
            else:
                self.untried += 1


def _changes(run: Runner, orders: _Orders, pairs: list[Unordered]) -> Iterator[tuple[Changes, dict[Key, str]]]:
    """Yield the reruns in other orders in which outputs change, and how they do in words."""
    launch = orders.launch
    alike: Changes = {"budget": rerun_budget(launch, orders.outcome)}
    serial = launch.invocations <= _MOST_SERIAL
    yield from _changes_in(run, alike, launch, _WIDE)
    fine = _serial(launch) if serial else _by_units(launch)
    yield from _changes_in(run, alike, launch, orders.affordable(fine))
    if not serial and (few := _workgroups_of(pairs, launch)):
        alike["chosen"] = np.array(few, np.int64)
        alone, _ = run(frozenset(), **alike)
        yield from _changes_in(run, alike, alone, orders.affordable(_serial(alone), len(few)))


def _serial(launch: Launch) -> tuple[Schedule, ...]:
    """Return the orders in which invocations run one by one, or take turns at atomic operations."""
    return REVERSED, SERIAL, *_drawn(min(_MOST_FINE, max(_LEAST_FINE, _MOST_SERIAL // launch.invocations)))


def _by_units(launch: Launch) -> tuple[Schedule, ...]:
    """Return the orders in which the smallest units of which there are few enough take turns at atomic operations."""
    subgroups = launch.count * -(-launch.invocations // launch.count // launch.device.subgroup_size)
    units = {"subgroups": subgroups, "workgroups": launch.count}
    name = next((name for name, count in units.items() if count <= _MOST_UNITS), None)
    return _drawn(_LEAST_FINE, f",{name}") if name else ()


def _drawn(count: int, units: str = "") -> tuple[Schedule, ...]:
    """Return so many drawn orders: every third by priorities."""
    names = (f"pct({n},3{units})" if n % 3 == 2 else f"random({n}{units})" for n in range(1, count + 1))
    return tuple(map(schedule, names))


def _changes_in(
    run: Runner, alike: Changes, launch: Launch, orders: Iterable[Schedule]
) -> Iterator[tuple[Changes, dict[Key, str]]]:
    for order in orders:
        how: Changes = {**alike, "schedule": order}
        again, after = run(frozenset(), **how)
        changes = dict(differences(launch.views(), again.views()))
        if changes and after.finished == launch.count:
            yield how, {name: f"run {order.name}, {changed}" for name, changed in changes.items()}


def _races(run: Runner, how: Changes) -> list[Finding]:
    """Return the races of such a rerun: it may take branches that the first run did not."""
    order = how.get("schedule", LOCKSTEP)
    note = Note(f"the order of atomic operations decides whether this happens; here, run {order.name}")
    races = find_races(*run(frozenset(("races",)), **how))
    return [replace(race, notes=(*race.notes, note)) for race in races]


def _workgroups_of(pairs: list[Unordered], launch: Launch) -> list[int]:
    """Return workgroups in which operations are unordered, as few as may run one by one; none where a workgroup waits
    for others."""
    if launch.program.waits:
        return []
    inside = sorted({pair.workgroups[0] for pair in pairs if not pair.across})
    return inside[: _MOST_SERIAL * launch.count // launch.invocations]


def _of_group(group: list[Unordered], influence: Influence, launch: Launch, changes: dict[Key, str]) -> Finding:
    """Make the finding for pairs that influence some of the changed outputs."""
    influenced = frozenset[str]().union(*(pair.influences for pair in group))
    sites = dict.fromkeys(site for pair in group for site in pair.sites)
    first, *more = sorted(sites, key=partial(_rank, influence))
    partners = {site for pair in group if first in pair.sites for site in pair.sites}
    shown = {key: words for key, words in changes.items() if launch.variable_of(key) in influenced}
    names = listed([str(key) for key in shown])
    holds = f"the values of {names} depend" if len(shown) > 1 else f"the value of {names} depends"
    return ATOMIC_ORDER.make(
        first.span,
        workgroup=launch.workgroup(0),
        notes=(*(_note(site, site in partners) for site in more), *map(Note, shown.values())),
        verdict="harmful",
        outputs=tuple(shown),
        holds=holds,
        operation=first.name or "",
    )


def _rank(influence: Influence, site: SourceSite) -> tuple[int, int]:
    """Return a key that sorts updates whose results are needed first, then other updates, then loads."""
    rank = 2 if site.name in LOADS else 0 if influence.variables(results(influence, site)) else 1
    return rank, site.span.start


def _note(site: SourceSite, partner: bool) -> Note:
    return Note(f"nothing orders it and this {site.name}" if partner else f"or at this {site.name}", site.span)
