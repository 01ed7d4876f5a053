"""Outputs that depend on which invocation reaches an atomic operation first, found by running in another order."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..analysis.influence import Influence
from ..bindings.binding import Key
from ..ir.sites import SourceSite
from ..launch.launch import Launch
from ..launch.partition import Outcome
from ..launch.schedules import MIRRORED, REVERSED, schedule
from ..wgsl.diagnostics import Note
from .finding import Finding
from .replay import differences, rerun_budget
from .runner import Runner
from .table import ATOMIC_ORDER, OUT_OF_BOUNDS, RACE

_HARMLESS = ("same-value", "unseen")
_MOST_SERIAL = 1 << 12  # invocations that are also run one by one, which takes far longer than lockstep


def find_order_dependence(
    run: Runner, influence: Callable[[], Influence], launch: Launch, outcome: Outcome, others: Iterable[Finding]
) -> list[Finding]:
    """Return at most one finding for a dispatch, at the most telling operation that influences an output that changes.

    `launch` has finished; `others` are its findings: where races or accesses out of bounds decide what outputs hold,
    the order of atomics is not to blame.
    """
    sites = [launch.program.sites[number] for number in launch.program.order_dependent_atomics]
    decided = any(each.code in (RACE.code, OUT_OF_BOUNDS.code) and each.verdict not in _HARMLESS for each in others)
    if not sites or decided:
        return []
    orders = [MIRRORED, schedule("turns(1)"), schedule("turns(2)")]
    if launch.invocations <= _MOST_SERIAL:
        orders.insert(1, REVERSED)
    for order in orders:
        again, after = run(frozenset(), budget=rerun_budget(launch, outcome), schedule=order)
        changes = dict(differences(launch.outputs(), again.outputs()))
        if changes and after.finished == outcome.finished:
            to_blame = _influencing(sites, influence(), {launch.variable_of(key) for key in changes})
            return [_finding(to_blame, launch, {name: f"run {order.name}, {changes[name]}" for name in changes})]
    return []


def _influencing(sites: list[SourceSite], influence: Influence, changed: set[str]) -> list[SourceSite]:
    """Return the atomic operations that influence any of these variables; all if none is known to."""
    found = [site for site in sites if influence.variables(influence.results.get(site.span, ())) & changed]
    return found or sites


def _finding(sites: list[SourceSite], launch: Launch, changes: dict[Key, str]) -> Finding:
    """Make the finding. `changes`: what another order changes in each output, in words."""
    first, *more = sites
    *names, last = map(str, changes)
    holds = f"the values of {', '.join(names)} and {last} depend" if names else f"the value of {last} depends"
    return ATOMIC_ORDER.make(
        first.span,
        workgroup=launch.workgroup(0),
        notes=(*(Note(f"or at this {site.name}", site.span) for site in more), *map(Note, changes.values())),
        verdict="harmful",
        outputs=tuple(changes),
        holds=holds,
        operation=first.name or "",
    )
