"""The report of an audit, which dispatches to its formats: `formats` lists them.

Each case becomes an `AuditedCase`, whose plain values pass from the process that audited it to the one that reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..exit_codes import Failure
from ..judge.coverage import CaseOutcome
from .formats import enabled
from .protocol import AuditedCase, CaseFailure, CaseResult, Outcome, Report, ReportOptions
from .remarks import entry_of, entry_of_error

if TYPE_CHECKING:
    from pathlib import Path

    from ..judge.verdict import Audit
    from ..manifests.cases import Broken, Plan
    from ..manifests.manifest import Shape


def audited_case(audit: Audit, options: ReportOptions, number: int, first: bool) -> AuditedCase:
    """Format the `number`-th case, from 1. `first`: whether it is the first of its kernel."""
    case = CaseResult(audit, number, first)
    parts = {each.name: each.part(case, options) for each in enabled(options)}
    remarks = entry_of(audit)
    return AuditedCase(audit.case.kernel.name, audit.ok, remarks, parts, None, audit.outcome, audit.compared)


def failed_case(
    kernel: str, source: Path, path: Path, shape: Shape, error: Exception, options: ReportOptions, number: int
) -> AuditedCase:
    """Format the `number`-th case, which could not be run. `path` is its manifest."""
    failure = Failure.of(error)
    remarks = entry_of_error(f"{kernel} {shape}".strip(), error, str(path))
    case = CaseFailure(kernel, source, shape, number, failure, remarks)
    parts = {each.name: each.failed_part(case, options) for each in enabled(options)}
    return AuditedCase(kernel, False, remarks, parts, failure, CaseOutcome.ERROR)


class AuditReport(Report[AuditedCase]):
    """All reports of an audit of `work`, and of manifests that are `broken`. Raises `UsageError`."""

    def __init__(self, options: ReportOptions, work: Sequence[Plan], broken: Sequence[Broken] = ()) -> None:
        self._reports = [each(options, work, broken) for each in enabled(options)]

    def add(self, result: AuditedCase) -> None:
        for report in self._reports:
            report.add(result)

    def finish(self, outcome: Outcome) -> None:
        for report in self._reports:
            report.finish(outcome)

    def abort(self, verb: str, error: Exception) -> None:
        for report in self._reports:
            report.abort(verb, error)
