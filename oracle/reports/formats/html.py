"""HTML: one page that needs no other file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ....sim.disk_cache import write
from ...errors import UsageError
from ..protocol import AuditedCase, AuditFormat, CaseFailure, CaseResult, Outcome, ReportOptions

if TYPE_CHECKING:
    from ...manifests.cases import Broken, Plan
    from ..audit_page import Section


class Format(AuditFormat):
    name = "html"
    help = "Write an HTML page to this file."
    output = "file"
    records = True

    def __init__(self, options: ReportOptions, work: Sequence[Plan], broken: Sequence[Broken]) -> None:
        self._file: Path = options.files[self.name]
        self._sections: list[Section] = []
        if not self._file.parent.is_dir():
            raise UsageError(f"--html {self._file}: no folder {self._file.parent}")

    @classmethod
    def part(cls, case: CaseResult, options: ReportOptions) -> Section:
        from ..audit_page import section_of

        return section_of(case.audit, case.number)

    @classmethod
    def failed_part(cls, case: CaseFailure, options: ReportOptions) -> Section:
        from ..audit_page import section_of_failure

        return section_of_failure(case)

    def add(self, result: AuditedCase) -> None:
        self._sections.append(cast("Section", result.parts[self.name]))

    def finish(self, outcome: Outcome) -> None:
        from ..audit_page import page

        try:
            write(self._file, page(self._sections, outcome.lines).encode())
        except OSError as error:
            raise UsageError(f"--html {self._file}: {error.strerror}") from None
