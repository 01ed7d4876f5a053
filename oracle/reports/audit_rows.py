"""Audits as a table, a row for each case as it comes: what its outputs were held against, and how that came out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..judge.output_checks import OutputCheck
    from ..judge.verdict import Audit
    from ..manifests.cases import Plan

NOTHING = "-"  # was compared


def _outputs(checks: Iterable[OutputCheck]) -> str:
    """The rules that outputs were held to, with the worst score of each: `exact`, `bound 0.21`."""
    worst: dict[str, float] = {}
    bitwise: set[str] = set()
    for check in checks:
        if not check.ok:
            return f"{'NOT HELD' if check.comparison.vacuous else 'DIFFERS'} {check.output}"
        if check.comparison.vacuous:
            continue
        rule = check.comparison.rule.name
        bitwise |= {rule} if check.comparison.rule.row.bitwise else set()
        worst[rule] = max(worst.get(rule, 0.0), check.comparison.score)
    return ", ".join(rule if rule in bitwise else f"{rule} {score:.2g}" for rule, score in worst.items()) or NOTHING


def _against_reference(audit: Audit) -> str:
    return _outputs(check for check in audit.outputs if not check.by_gpu)


def _against_gpu(audit: Audit) -> str:
    return _outputs(check for check in audit.outputs if check.by_gpu)


def _counters(audit: Audit) -> str:
    wrong = sum(not check.ok for check in audit.counters)
    return f"DIFFER {wrong}" if wrong else f"{len(audit.counters)} ok" if audit.counters else NOTHING


def _findings(audit: Audit) -> str:
    bad = sorted({check.finding.code for check in audit.findings if not check.ok})
    allowed = sum(check.allowed for check in audit.findings)
    return f"FOUND {', '.join(bad)}" if bad else f"{allowed} accepted" if allowed else "none"


def _ran(audit: Audit) -> str:
    coverage = audit.run.coverage
    return f"{coverage.workgroups:,}" if coverage.how == "all" else f"{coverage.ran:,} for {coverage.workgroups:,}"


# Heading, how wide the column is at least, and what stands there.
COLUMNS: tuple[tuple[str, int, Callable[[Audit], str]], ...] = (
    ("workgroups", 15, _ran),
    ("reference", 13, _against_reference),
    ("wgpu", 13, _against_gpu),
    ("counters", 8, _counters),
    ("findings", 11, _findings),
    ("notes", 5, lambda audit: str(len(audit.notes) or NOTHING)),
    ("seconds", 7, lambda audit: f"{sum(audit.seconds.values()):.2f}"),
)


def cells_of(audit: Audit) -> tuple[str, ...]:
    """The row of a case."""
    verdict = "ok" if audit.ok else "NOT OK"
    return verdict, audit.case.kernel.name, str(audit.case.shape), *(tell(audit) for _, _, tell in COLUMNS)


class Rows:
    """A table of the cases of `work`, and of `more` kernels, made row by row: a run that is stopped leaves what it has
    found. A row with fewer cells ends in words."""

    def __init__(self, work: Iterable[Plan], more: Iterable[str] = ()) -> None:
        cases = [(name, "") for name in more]
        cases += [(plan.kernel.name, str(shape)) for plan in work for shape in plan.shapes]
        self._widths = [max(map(len, column)) for column in zip(("kernel", "shape"), *cases, strict=True)]
        self._widths += [width for _, width, _ in COLUMNS]
        self._begun = False

    def next(self, cells: Sequence[str]) -> str:
        """The next row, below the headings if it is the first."""
        rows = [cells] if self._begun else [("", "kernel", "shape", *(name for name, _, _ in COLUMNS)), cells]
        self._begun = True
        return "\n".join(self._padded(*row) for row in rows)

    def _padded(self, verdict: str, *cells: str) -> str:
        padded = (cell.ljust(width) for cell, width in zip(cells, self._widths, strict=False))
        return f"{verdict:8}{'  '.join(padded)}".rstrip()
