"""What a change of a kernel would save by the model of time: the work with the change, predicted again.

A change here is a change of the work alone. `bankshot advise` runs changed texts instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, cast

from ..models import time_model
from ..models.occupancy import occupancy
from ..models.time_model import WORTH, predict
from ..models.work import Work
from .counters import IDLE_CAUSES

if TYPE_CHECKING:
    from .result import Run


def savings(run: Run) -> dict[str, float]:
    """Return the microseconds that each change would save, the most first; without those that save next to nothing."""
    us = run.predicted_time.us
    saved = {name: saving(run, name) for name in CHANGES}
    worth = {name: each for name, each in saved.items() if each > WORTH * us}
    return dict(sorted(worth.items(), key=lambda item: -item[1]))


def saving(run: Run, change: str, share: float = 1.0) -> float:
    """Return the microseconds that a change would save, or a share of it, such as that of one line."""
    work = _between(run.work, CHANGES[change](run), share)
    return max(0.0, run.predicted_time.us - predict(work, run.device).us)


def _between(work: Work, changed: Work, share: float) -> Work:
    """Return the work that is `share` of the way to the changed work, in each phase."""
    phases = (_between(old, new, share) for old, new in zip(work.phases, changed.phases, strict=True))
    between: dict[str, Any] = {"phases": tuple(phases)}
    for each in (each for each in fields(Work) if each.name not in between):
        old, new = getattr(work, each.name), getattr(changed, each.name)
        if isinstance(old, Mapping):
            from_, to = cast("Mapping[str, float]", old), cast("Mapping[str, float]", new)
            between[each.name] = {key: n + share * (to.get(key, 0.0) - n) for key, n in from_.items()}
        else:
            between[each.name] = old if old == new else old + share * (new - old)
    return replace(work, **between)


# ---- the changes -------------------------------------------------------------------------------------


def _single_buffered(run: Run) -> Work:
    """Half the workgroup memory, so that more workgroups may be resident. Nothing else changes."""
    pipeline, work = run.pipeline, run.work
    half = -(-pipeline.workgroup_bytes // 2)
    resident = max(work.resident, occupancy(run.device, pipeline.workgroup_size, half, work.registers).workgroups)
    return work.in_each_phase(lambda each: replace(each, resident=resident))


def _without_waiting(run: Run) -> Work:
    """Each atomic operation of a subgroup takes one turn."""
    own, storage = _least_turns(run, "workgroup"), _least_turns(run, "storage")
    return run.work.in_each_phase(
        lambda work: replace(
            work,
            workgroup_atomic_turns=work.workgroup_atomic_turns * own,
            atomic_turns=work.atomic_turns * storage,
            atomic_word_turns=work.atomic_word_turns * storage,
        )
    )


def _least_turns(run: Run, space: str) -> float:
    """The turns of the atomic operations in an address space if each takes one, as a share of those that they take."""
    sites = [site for site in run.sites if site.space == space and site.atomic_turns]
    turns = sum(site.atomic_turns for site in sites)
    return min(1.0, sum(site.executions for site in sites) / turns) if turns else 1.0


def _without_idle_lanes(run: Run) -> Work:
    """As many subgroups issue as the active lanes would fill."""
    active = run.counters["active_lanes"]
    idle = sum(run.counters[row.key] for row in IDLE_CAUSES)
    full = active / (active + idle) if active else 1.0
    return run.work.in_each_phase(
        lambda work: replace(work, issued={kind: count * full for kind, count in work.issued.items()})
    )


CHANGES: Mapping[str, Callable[[Run], Work]] = {
    **{name: lambda run, change=change: change(run.work) for name, change in time_model.CHANGES.items()},
    "half the workgroup memory (a single buffer)": _single_buffered,
    "atomic operations that never wait": _without_waiting,
    "no idle lanes": _without_idle_lanes,
}
