"""What the formats share that need all cases as entries of a JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from .json_document import Entry
from .protocol import AuditedCase, AuditFormat, CaseFailure, CaseResult, ReportOptions

if TYPE_CHECKING:
    from ..manifests.cases import Broken, Plan


class EntriesFormat(AuditFormat):
    """A format that collects an entry for each case, and reports them when the audit ends."""

    def __init__(self, options: ReportOptions, work: Sequence[Plan], broken: Sequence[Broken]) -> None:
        self._entries: list[Entry] = []

    @classmethod
    def part(cls, case: CaseResult, options: ReportOptions) -> Entry:
        from .audit_json import audit_entry

        return audit_entry(case.audit)

    @classmethod
    def failed_part(cls, case: CaseFailure, options: ReportOptions) -> Entry:
        from .audit_json import failure_entry

        return failure_entry(case)

    def add(self, result: AuditedCase) -> None:
        self._entries.append(cast(Entry, result.parts[self.name]))
