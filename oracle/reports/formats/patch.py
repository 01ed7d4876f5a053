"""A unified diff with the cures of all races."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ....sim.disk_cache import write
from ...errors import UsageError
from ..protocol import AuditedCase, AuditFormat, CaseResult, Outcome, ReportOptions

if TYPE_CHECKING:
    from ....sim.cures.patches import Patch
    from ...manifests.cases import Broken, Plan


class Format(AuditFormat):
    name = "patch"
    help = "Write a unified diff with cures of races, each of which was tried."
    output = "file"

    def __init__(self, options: ReportOptions, work: Sequence[Plan], broken: Sequence[Broken]) -> None:
        self._file: Path = options.files[self.name]
        self._patches: list[Patch] = []
        if not self._file.parent.is_dir():
            raise UsageError(f"--patch {self._file}: no folder {self._file.parent}")

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
        try:
            write(self._file, (comments + unified(whole)).encode())
        except OSError as error:
            raise UsageError(f"--patch {self._file}: {error.strerror}") from None
