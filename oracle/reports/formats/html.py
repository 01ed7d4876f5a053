"""HTML: one page that needs no other file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from ..output_file import OutputFile
from ..protocol import AuditedCase, AuditFormat, CaseFailure, CaseResult, Outcome, ReportOptions

if TYPE_CHECKING:
    from ...manifests.cases import Broken, Plan
    from ..audit_page import Section
    from ..json_document import Entry
    from ..page_changes import Since

    Part = tuple[Section, Entry | None]  # the entry only where it is compared with an earlier audit


class Format(AuditFormat):
    name = "html"
    help = "Write an HTML page to this file."
    output = "file"
    records = True

    def __init__(self, options: ReportOptions, work: Sequence[Plan], broken: Sequence[Broken]) -> None:
        self._file = OutputFile("--html", options.files[self.name])
        self._before = options.before
        self._parts: list[Part] = []

    @classmethod
    def part(cls, case: CaseResult, options: ReportOptions) -> Part:
        from ..audit_json import audit_entry
        from ..audit_page import section_of

        return section_of(case.audit, case.number), audit_entry(case.audit) if options.before else None

    @classmethod
    def failed_part(cls, case: CaseFailure, options: ReportOptions) -> Part:
        from ..audit_json import failure_entry
        from ..audit_page import section_of_failure

        return section_of_failure(case), failure_entry(case) if options.before else None

    def add(self, result: AuditedCase) -> None:
        self._parts.append(cast("Part", result.parts[self.name]))

    def finish(self, outcome: Outcome) -> None:
        from ..audit_page import page

        text = page([section for section, _ in self._parts], outcome.lines, self._since())
        self._file.write(text)

    def _since(self) -> Since | None:
        """What changed since the earlier audit, if there is one."""
        from ..page_changes import since

        if self._before is None or not self._before.document.exists():
            return None
        cases = [(section.anchor, section.files, entry) for section, entry in self._parts if entry is not None]
        return since(self._before, cases)
