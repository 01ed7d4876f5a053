"""Compare a run with its golden, and diagnose the difference: a wrong output, or a change of cost."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...sim.bindings.binding import is_array
from ..comparison.bits import Array
from ..diagnosis.causes import UNREAD, cost, diagnose, explain
from ..diagnosis.mismatch import Diagnosis, Mismatch
from ..diagnosis.time_limit import TimeLimit
from ..goldens import golden_files
from ..goldens import golden_store as goldens
from ..manifests.manifest import Case, Kernel, Shape
from ..references import Reference
from .case_run import find_reference
from .options import Options
from .verdict import Audit

if TYPE_CHECKING:
    from ...sim import Run


def golden_place(kernel: Kernel, shape: Shape) -> Path:
    """Return the path of a shape's golden."""
    return golden_files.place(kernel.path.parent, kernel.name, str(shape))


def golden_check(audit: Audit, options: Options) -> goldens.Verdict | None:
    """Compare an audited run with its golden, or write the golden if the options request it and every other check has
    passed. None where the options or the manifest disable goldens."""
    case, kernel = audit.case, audit.case.kernel
    if not (options.golden and case.shape.golden):
        return None
    new = goldens.of_run(
        audit.run,
        folder=kernel.path.parent,
        owner=kernel.path.name,
        title=f"{kernel.name} {case.shape}".strip(),
        adapter=audit.adapter,
        arrays=case.shape.golden == "outputs",
        source=kernel.source,
        free=[binding.var for binding in kernel.bindings if binding.name in kernel.free],
    )
    verdict = goldens.check(golden_place(kernel, case.shape), new, options.update and not audit.differs, options.how)
    if verdict.state != goldens.CHANGED:
        return verdict
    wrong = {check.output for check in audit.outputs if not check.ok}
    reference = None if kernel.reference is None else find_reference(case)
    return replace(verdict, likely=golden_cause(case, audit.run, reference, wrong, verdict))


def golden_cause(
    case: Case, run: Run, reference: Reference | None, wrong: Collection[str], verdict: goldens.Verdict
) -> Diagnosis | None:
    """Return the likely cause of a change, or None. `wrong`: outputs that the audit has already diagnosed."""
    old = goldens.read(verdict.path)
    for m in _mismatches(case, run, reference, old):
        if m.output not in wrong:
            return diagnose(m)
    if wrong:
        return None
    time_limit = TimeLimit()
    unread, late = _unread(case, run, reference, time_limit)
    found = unread or cost(old.counters, run.counters)
    return found and found.with_skipped(late, time_limit.seconds)


def _mismatches(case: Case, run: Run, reference: Reference | None, old: goldens.Golden) -> Iterator[Mismatch]:
    """Yield each output whose digest differs from the golden's, with the golden's elements if they are stored."""
    for binding in case.kernel.bindings:
        before, now = old.outputs.get(binding.var), run.outputs.get(binding.var)
        if before is None or not is_array(now) or goldens.digest(now) == before:
            continue
        kept = old.arrays.get(binding.var)
        if kept is not None and kept.shape == now.shape and kept.dtype == now.dtype:
            yield Mismatch(case, run, binding.name, kept, reference=reference, golden=True)
        else:
            same = partial(_has_digest, before)
            yield Mismatch(case, run, binding.name, now, reference=reference, golden=True, same=same)


def _has_digest(digest: str, values: Array) -> bool:
    return goldens.digest(values) == digest


def _unread(
    case: Case, run: Run, reference: Reference | None, time_limit: TimeLimit
) -> tuple[Diagnosis | None, tuple[str, ...]]:
    """For outputs within their bounds: detect that the kernel no longer reads an input of little effect. Returns that
    diagnosis, if any, and the classes that the time limit skipped."""
    for binding in case.kernel.bindings:
        now = run.outputs.get(binding.var)
        if reference is None or not is_array(now):
            continue
        every = Mismatch(
            case, run, binding.name, now, reference=reference, same=lambda values: False, time_limit=time_limit
        )
        found, late = explain(every, [UNREAD])
        if found or late:
            return found, late
    return None, ()
