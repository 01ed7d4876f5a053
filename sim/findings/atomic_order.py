"""Outputs that depend on which invocation is first at an atomic operation: the dispatch run in another order tells."""

from __future__ import annotations

from collections.abc import Iterable

from ..bindings.binding import Key
from ..ir.sites import SourceSite
from ..launch.launch import Launch
from ..launch.partition import Outcome
from ..launch.schedules import MIRRORED, REVERSED
from ..wgsl.diagnostics import Note
from .finding import Finding
from .replay import Runner, differences

_HARMLESS = ("same-value", "unseen")
_FEW = 1 << 12  # invocations that are run one by one as well, which takes far longer than in step


def find_arrivals(run: Runner, launch: Launch, outcome: Outcome, others: Iterable[Finding]) -> list[Finding]:
    """One finding for a dispatch, at the most telling operation. `launch` has run to its end; `others` were found
    there: where races or accesses out of bounds decide what outputs hold, the order of atomics is not to blame."""
    sites = [launch.program.sites[number] for number in launch.program.order_dependent_atomics]
    decided = any(each.code in ("race", "out-of-bounds") and each.verdict not in _HARMLESS for each in others)
    if not sites or decided:
        return []
    for order in (MIRRORED, REVERSED) if launch.invocations <= _FEW else (MIRRORED,):
        again, after = run(frozenset(), budget=launch.how.budget, schedule=order)
        changes = dict(differences(launch.outputs(), again.outputs()))
        if changes and after.finished == outcome.finished:
            return [_finding(sites, launch, {name: f"run {order.name}, {changes[name]}" for name in changes})]
    return []


def _finding(sites: list[SourceSite], launch: Launch, changes: dict[Key, str]) -> Finding:
    """`changes`: what another order makes of outputs, in words."""
    first, *more = sites
    holds = " and ".join([", ".join(map(str, list(changes)[:-1]))] * (len(changes) > 1) + [str(list(changes)[-1])])
    return Finding(
        "atomic-order",
        "warning",
        f"what {holds} hold{'s'[: len(changes) == 1]} depends on which invocation comes first at this {first.name}",
        first.span,
        1,
        launch.workgroup(0),
        (),
        notes=(*(Note(f"or at this {site.name}", site.span) for site in more), *map(Note, changes.values())),
        hint="a GPU may take another order each time; where any will do, allow(atomic-order) says so",
        verdict="harmful",
        outputs=tuple(changes),
    )
