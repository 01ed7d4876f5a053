"""Text: one case, or with -v each, in full as it comes; of several a row for each kernel, and what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import click

from ..protocol import AuditedCase, AuditFormat, CaseFailure, CaseResult, Outcome, ReportOptions
from ..summary_line import last_lines

if TYPE_CHECKING:
    from ...manifests.cases import Broken, Plan
    from ..kernel_rows import CaseRow


class Format(AuditFormat):
    name = "text"
    help = "one case in full; of several a row for each kernel, and what is wrong"
    output = "stdout"

    def __init__(self, options: ReportOptions, work: Sequence[Plan], broken: Sequence[Broken]) -> None:
        self._options = options
        self._rows: list[CaseRow] = []

    @classmethod
    def enabled(cls, options: ReportOptions) -> bool:
        return options.stdout in ("text", "github")

    @classmethod
    def part(cls, case: CaseResult, options: ReportOptions) -> str | CaseRow:
        if options.detail == "none":
            return ""
        from ..audit_text import audit_text, failure_text

        if options.detail == "full":
            return audit_text(case.audit, options, options.listing_of(case.first))
        from ..kernel_rows import CaseOutcome, case_row, word_of

        clean = word_of(case.audit) == CaseOutcome.CLEAN
        return case_row(case.audit, "" if clean else failure_text(case.audit, options))

    @classmethod
    def failed_part(cls, case: CaseFailure, options: ReportOptions) -> str | CaseRow:
        title = click.style(f"{case.kernel}  {case.shape}".rstrip(), bold=True)
        error = click.style("  ERROR    ", fg="red", bold=True)
        reason = case.failure.reason.splitlines()[0]
        text = f"{title}\n{error}{reason}\n\n"
        if options.detail == "none":
            return ""
        if options.detail == "full":
            return text
        from ..kernel_rows import CaseOutcome, CaseRow

        return CaseRow(case.kernel, str(case.shape), CaseOutcome.ERROR, text=text, reason=reason)

    def add(self, result: AuditedCase) -> None:
        part = result.parts[self.name]
        if isinstance(part, str):
            click.echo(part, nl=False, color=self._options.terminal)
        else:
            self._rows.append(cast("CaseRow", part))

    def finish(self, outcome: Outcome) -> None:
        if self._rows:
            self._show_rows()
        for line in last_lines(outcome, self._options.more):
            click.echo(line)

    def _show_rows(self) -> None:
        from ..kernel_rows import CaseOutcome, failures, kernel_rows, show_kernels
        from ..terminal import console
        from ..times_report import show_times

        rows = kernel_rows(self._rows)
        if any(row.word != CaseOutcome.ERROR for row in rows):
            show_kernels(console(), rows)
            click.echo()
        show_times(console(), self._rows)
        for text in failures(rows):
            click.echo(text, nl=False, color=self._options.terminal)
