"""Why a run is not as its golden has it: what is wrong with an output, or what the change costs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import Any

import numpy as np

from ..diagnosis.causes import UNREAD, cost, diagnose, explain
from ..diagnosis.mismatch import Diagnosis, Mismatch
from ..diagnosis.time_limit import TimeLimit
from ..goldens import golden_store as goldens
from ..manifests.manifest import Case
from ..references import Reference


def golden_cause(
    case: Case, run: Any, reference: Reference | None, wrong: Collection[str], verdict: goldens.Verdict
) -> Diagnosis | None:
    """The likely class of a change; None where there is none. `wrong`: outputs of whose faults the audit has told."""
    old = goldens.read(verdict.path)
    for m in _mismatches(case, run, reference, old):
        if m.output not in wrong:
            return diagnose(m)
    if wrong:
        return None
    time_limit = TimeLimit()
    unread, late = _unread(case, run, reference, time_limit)
    found = unread or cost(old.counters, run.counters)
    return found and found.but(late, time_limit.seconds)


def _mismatches(case: Case, run: Any, reference: Reference | None, old: goldens.Golden) -> Iterator[Mismatch]:
    """Every output that has another digest than the golden; it is held against the elements, where those were kept."""
    for binding in case.kernel.bindings:
        before, now = old.outputs.get(binding.var), run.outputs.get(binding.var)
        if before is None or not isinstance(now, np.ndarray) or goldens.digest(now) == before:
            continue
        kept = old.arrays.get(binding.var)
        if kept is not None and kept.shape == now.shape and kept.dtype == now.dtype:
            yield Mismatch(case, run, binding.name, kept, reference=reference, golden=True)
        else:
            same = partial(_has_digest, before)
            yield Mismatch(case, run, binding.name, now, reference=reference, golden=True, same=same)


def _has_digest(digest: str, values: np.ndarray) -> bool:
    return goldens.digest(values) == digest


def _unread(
    case: Case, run: Any, reference: Reference | None, time_limit: TimeLimit
) -> tuple[Diagnosis | None, tuple[str, ...]]:
    """Of outputs that are right within their bounds: whether an input that hardly matters is no longer read; or that
    there was no time to see."""
    for binding in case.kernel.bindings:
        now = run.outputs.get(binding.var)
        if reference is None or not isinstance(now, np.ndarray):
            continue
        every = Mismatch(
            case, run, binding.name, now, reference=reference, same=lambda values: False, time_limit=time_limit
        )
        found, late = explain(every, [UNREAD])
        if found or late:
            return found, late
    return None, ()
