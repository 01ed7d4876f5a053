"""Which reruns decide a verdict: the runs that differ in what a finding leaves open, the cheapest first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..fast_dataclass import frozen
from ..launch.launch import Filling, Launch
from ..launch.partition import Outcome
from ..launch.race_tables import race_rows
from ..launch.schedules import MIRRORED, MOST_ONE_BY_ONE, Schedule, schedule, side_by_side
from ..machine import layout as at
from ..machine.probe_arrays import MOST_RACES
from ..mechanisms import is_on
from .effort import work
from .runner import Changes
from .unwritten_memory import FILLINGS, filled

_MOST_BESIDE = 8  # colliding workgroups that a rerun begins with, side by side
_POLICY_WORDS = {"clamp": "clamped to the last element", "zero": "discarded", "wrap": "wrapped around"}


@frozen
class Rerun:
    """One way to run again, in words, as changes to `RunOptions`, and its work. `proven`: it changes no output."""

    words: str
    changes: Changes
    work: int
    proven: bool = False


def _schedules(launch: Launch, outcome: Outcome, _: Filling) -> list[Rerun]:
    """Return the orders, the cheapest first. If workgroups do not meet, only those that race run in smaller units."""
    wide, fine = [MIRRORED], [schedule(name) for name in ("subgroup-serial", "reversed", "random(1)")]
    across = _racing_workgroups(launch, outcome, across=True)
    if across:
        wide.append(side_by_side(across))
    changes: Changes = {"racing": launch.racing(outcome)}
    few = [] if across else _racing_workgroups(launch, outcome, across=False)
    if few and len(few) < launch.count and not _meet(launch):
        changes["chosen"] = np.array(few, np.int64)
    else:
        few = list(range(launch.count))
    if len(few) * launch.invocations // launch.count > MOST_ONE_BY_ONE:
        fine = [replace(each, granularity="subgroup") if each.granularity == "invocation" else each for each in fine]
    alike: Changes = {"racing": changes["racing"]}
    proven = is_on("proofs") and same_if_mirrored(launch, outcome)
    made = [_in_order(launch, outcome, order, alike, launch.count, proven=proven) for order in wide]
    return made + [_in_order(launch, outcome, order, changes, len(few)) for order in fine]


def _in_order(
    launch: Launch, outcome: Outcome, order: Schedule, changes: Changes, count: int, *, proven: bool = False
) -> Rerun:
    words = f"run {order.name}" + (", by subgroups" if order.granularity == "subgroup" and order.seed else "")
    return Rerun(words, {"schedule": order, **changes}, work(launch, outcome, order, count), proven)


def _racing_workgroups(launch: Launch, outcome: Outcome, *, across: bool) -> list[int]:
    """Return the workgroups of the first races between workgroups, or within one, by number in the grid."""
    rows = [row for row in race_rows(outcome.races) if bool(row[at.RACE_ACROSS]) == across][: _MOST_BESIDE // 2]
    places = [int(row[which]) for row in rows for which in (at.RACE_FIRST_WORKGROUP, at.RACE_SECOND_WORKGROUP)]
    return list(dict.fromkeys(launch.number(place) for place in places))


def _meet(launch: Launch) -> bool:
    """Whether workgroups that do not race may still see each other, or are a part of the dispatch already."""
    atomics = any(site.kind == "atomic" and site.space == "storage" for site in launch.program.sites)
    return atomics or launch.program.waits or launch.options.chosen is not None


def same_if_mirrored(launch: Launch, outcome: Outcome) -> bool:
    """Whether a finished run proves that lockstep from the last invocation to the first gives the same outputs.

    Both orders execute the same operations one after the other, each for all invocations of a workgroup. So they differ
    only where one operation stores to a word for several invocations, workgroups meet, or atomic operations return what
    others have left. Races show the first two, if all accesses are watched: those out of bounds are not.
    """
    program = launch.program
    watched = {"races", "bounds"} <= program.probe_names and not outcome.bounds[:, at.OUTSIDE].any()
    rows = race_rows(outcome.races)
    special = program.exchanges_values or program.waits or any(site.kind == "atomic" for site in program.sites)
    if not watched or special or len(rows) >= MOST_RACES:
        return False
    sites = np.array([each.site for each in program.race_probes], np.int64)
    return not (
        rows[:, at.RACE_ACROSS].any() or (sites[rows[:, at.RACE_FIRST]] == sites[rows[:, at.RACE_SECOND]]).any()
    )


def _poison(launch: Launch, outcome: Outcome, part: Filling) -> list[Rerun]:
    words, each = "with {} in memory that was never written", work(launch, outcome)
    return [Rerun(words.format(name), {"filling": filling}, each) for name, filling in filled(part)]


def _policies(launch: Launch, outcome: Outcome, _: Filling) -> list[Rerun]:
    words, each = "with accesses out of bounds {}", work(launch, outcome)
    others = [policy for policy in _POLICY_WORDS if policy != launch.options.policy]
    return [Rerun(words.format(_POLICY_WORDS[policy]), {"policy": policy}, each) for policy in others]


# By `Kind.replay`: the reruns, and how to say that none changes an output.
REPLAYS: dict[str, tuple[Callable[[Launch, Outcome, Filling], list[Rerun]], str]] = {
    "schedules": (_schedules, "in any of {orders} orders"),
    "poison": (_poison, f"with {', '.join(FILLINGS)} there"),
    "policies": (_policies, "under any permitted policy"),
}
