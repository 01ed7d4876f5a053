"""The cases of a review of goldens: audits, of which only what changed in the golden is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..reports.golden_review import to_review
from ..reports.protocol import AuditedCase
from .audit_cases import Audits

if TYPE_CHECKING:
    from ..judge.verdict import Audit

GOLDEN = "golden"  # among the parts of a case: its `ReviewedGolden`


class GoldenCases(Audits):
    """Audits whose one part is the golden to review."""

    def reported(self, result: Audit, number: int, first: bool) -> AuditedCase:
        return replace(super().reported(result, number, first), parts={GOLDEN: to_review(result)})
