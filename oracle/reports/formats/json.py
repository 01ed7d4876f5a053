"""JSON: one document when the audit ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import click

from ..json_document import Entry, document
from ..protocol import AuditedCase, AuditFormat, CaseFailure, CaseResult, Outcome, ReportOptions

if TYPE_CHECKING:
    from ...manifests.cases import Broken, Plan


class Format(AuditFormat):
    name = "json"
    help = "one JSON document, as --json"
    output = "stdout"

    def __init__(self, options: ReportOptions, work: Sequence[Plan], broken: Sequence[Broken]) -> None:
        self._entries: list[Entry] = []

    @classmethod
    def part(cls, case: CaseResult, options: ReportOptions) -> Entry:
        from ..audit_json import audit_entry

        return audit_entry(case.audit)

    @classmethod
    def failed_part(cls, case: CaseFailure, options: ReportOptions) -> Entry:
        from ..audit_json import failure_entry

        return failure_entry(case)

    def add(self, result: AuditedCase) -> None:
        self._entries.append(cast(Entry, result.parts[self.name]))

    def finish(self, outcome: Outcome) -> None:
        click.echo(document(outcome.verb, self._entries, outcome.ok, outcome.error, " ".join(outcome.lines)))

    def abort(self, verb: str, error: Exception) -> None:
        click.echo(document(verb, self._entries, False, str(error)))
