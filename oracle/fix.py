"""Cures of a case's races: audited before and after, with the cures applied to a copy of the text."""

from __future__ import annotations

from dataclasses import field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from ..sim.cures.patches import Patch, patch_of
from ..sim.fast_dataclass import frozen
from ..sim.wgsl.text_edits import replaced
from .judge.audit import audit
from .judge.case_run import Say, silent
from .judge.coverage import CaseOutcome, Compared
from .judge.options import Options
from .judge.verdict import Audit
from .manifests.manifest import Case
from .patch_files import write_patch


@frozen
class Fixed:
    """The result of one case. `after` is None where no cure was found. `written`: the files that were changed."""

    before: Audit
    after: Audit | None = None
    patch: Patch = field(default_factory=lambda: Patch({}))
    written: tuple[str, ...] = ()

    @property
    def case(self) -> Case:
        return self.before.case

    @property
    def ok(self) -> bool:
        """Whether the files have no races, at the end."""
        last = self.after if self.written and self.after is not None else self.before
        return not (self.written and self.patch.unmapped) and not races(last)

    @property
    def outcome(self) -> CaseOutcome:
        return CaseOutcome.CLEAN if self.ok else CaseOutcome.FAILED

    @property
    def compared(self) -> Compared:
        """Nothing: the command is about races alone."""
        return Compared()


def races(audit: Audit) -> int:
    """Return how many races an audit found that the manifest does not allow."""
    return sum(check.finding.code == "race" and not check.allowed for check in audit.findings)


def fix(case: Case, options: Options, *, apply: bool = False, say: Say = silent) -> Fixed:
    """Audit a case, and its text with the cures that its run found. `apply`: change the files, if these are better.

    Raises `WgslError`, `UsageError`.
    """
    before = audit(case, options, say)
    cures = () if "race" in case.kernel.allow else before.run.cures
    if not cures:
        return Fixed(before)
    source = before.run.pipeline.module.source
    text = replaced(source.text, (each for cure in cures for each in cure.replacements))
    with TemporaryDirectory() as folder:
        copy = Path(folder) / case.kernel.source.name
        copy.write_bytes(text.encode())
        kernel = replace(case.kernel, source=copy, defines={}, include_dirs=(), preprocess=None)
        after = audit(replace(case, kernel=kernel), replace(options, golden=False), say)
    patch = patch_of(source, cures)
    return Fixed(before, after, patch, write_patch(patch) if apply else ())
