"""Text: each case in full, as it comes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ..protocol import AuditedCase, AuditFormat, CaseFailure, CaseResult, Outcome, ReportOptions

if TYPE_CHECKING:
    from ...manifests.cases import Broken, Plan


class Format(AuditFormat):
    name = "text"
    help = "each case in full"
    output = "stdout"

    def __init__(self, options: ReportOptions, work: Sequence[Plan], broken: Sequence[Broken]) -> None:
        self._terminal = options.terminal

    @classmethod
    def enabled(cls, options: ReportOptions) -> bool:
        return options.stdout in ("text", "github")

    @classmethod
    def part(cls, case: CaseResult, options: ReportOptions) -> str:
        from ..audit_text import audit_text

        return audit_text(case.audit, options, options.listing_of(case.first))

    @classmethod
    def failed_part(cls, case: CaseFailure, options: ReportOptions) -> str:
        title = click.style(f"{case.kernel}  {case.shape}".rstrip(), bold=True)
        error = click.style("  ERROR    ", fg="red", bold=True)
        return f"{title}\n{error}{case.failure.reason.splitlines()[0]}\n\n"

    def add(self, result: AuditedCase) -> None:
        click.echo(str(result.parts[self.name]), nl=False, color=self._terminal)

    def finish(self, outcome: Outcome) -> None:
        for line in outcome.lines:
            click.echo(line)
