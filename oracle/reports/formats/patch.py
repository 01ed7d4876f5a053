"""A unified diff with the cures of all races."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from ..output_file import OutputFile
from ..protocol import AuditedCase, AuditFormat, CaseResult, Outcome, ReportOptions

if TYPE_CHECKING:
    from ....sim.cures.patches import Patch
    from ...manifests.cases import Broken, Plan


class Format(AuditFormat):
    name = "patch"
    help = "Write a unified diff with cures of races, each of which was tried."
    output = "file"

    def __init__(self, options: ReportOptions, work: Sequence[Plan], broken: Sequence[Broken]) -> None:
        self._file = OutputFile("--patch", options.files[self.name])
        self._patches: list[Patch] = []

    @classmethod
    def part(cls, case: CaseResult, options: ReportOptions) -> Patch:
        from ....sim.cures.patches import patch_of

        return patch_of(case.audit.run.pipeline.module.source, case.audit.run.cures)

    def add(self, result: AuditedCase) -> None:
        part = result.parts.get(self.name)
        if part is not None:
            self._patches.append(cast("Patch", part))

    def finish(self, outcome: Outcome) -> None:
        from ....sim.cures.patches import Patch, unified

        whole = Patch({})
        for patch in self._patches:
            whole |= patch
        comments = "".join(f"# not in this diff: {words}\n" for words in whole.unmapped)
        self._file.write(comments + unified(whole))
