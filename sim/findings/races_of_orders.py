"""Races that only another order of atomic operations shows: where their results decide, lockstep may take one branch.

Lockstep goes through atomic operations together, so that all invocations may see a count that is complete already. A
dispatch in which it shows no race, and where results of atomics whose order matters decide branches or addresses, runs
again one invocation after another, and in a drawn order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..analysis.influence import Influence
from ..launch.launch import Launch
from ..launch.partition import Outcome
from ..launch.schedules import REVERSED, schedule
from ..wgsl.diagnostics import Note
from .finding import Finding
from .grouping import group_races
from .races import find_races
from .replay import rerun_budget
from .runner import Changes, Runner

_ORDERS = (REVERSED, schedule("random(1)"))
_MOST = 1 << 12  # invocations that run one by one


def find_races_of_orders(
    run: Runner, influence: Callable[[], Influence], launch: Launch, outcome: Outcome
) -> list[Finding]:
    """Return the races of the first order that shows some. `launch` has finished, in lockstep, without a race."""
    changes: Changes = {"threads": 1, "budget": rerun_budget(launch, outcome)}
    if not _decides(launch, influence) or not _choose(launch, changes):
        return []
    for order in _ORDERS:
        changes["schedule"] = order
        again, after = run(frozenset(("races",)), **changes)
        found = find_races(again, after) if after.finished == again.count else []
        if found:
            note = Note(f"seen if run {order.name}; in lockstep, no results of atomics lead here")
            return group_races(replace(each, notes=(*each.notes, note)) for each in found)
    return []


def _decides(launch: Launch, influence: Callable[[], Influence]) -> bool:
    """Whether results of atomics whose order matters decide a branch or an address."""
    numbers = launch.program.order_dependent_atomics
    if not numbers:
        return False
    known = influence()
    nodes = {node for number in numbers for node in known.results.get(launch.program.sites[number].span, ())}
    return bool(known.of(nodes) & known.deciding)


def _choose(launch: Launch, changes: Changes) -> bool:
    """Choose as many workgroups as may run one by one. Returns False where a few cannot run alone."""
    if launch.invocations <= _MOST:
        return True
    few = _MOST * launch.count // launch.invocations
    changes["chosen"] = np.arange(few, dtype=np.int64)
    return bool(few) and not launch.program.waits
