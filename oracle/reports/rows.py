"""Audits as a table, a row for each case as it comes: what its outputs were held against, and how that came out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from ..audit import Audit, OutputCheck
    from ..kernels.cases import Plan

NOTHING = "-"  # was compared


def _outputs(checks: Iterable[OutputCheck]) -> str:
    """The rules that outputs were held to, with the worst score of each: `exact`, `bound 0.21`."""
    worst: dict[str, float] = {}
    for check in checks:
        if not check.ok:
            return f"DIFFERS {check.output}"
        rule = check.comparison.rule.name
        worst[rule] = max(worst.get(rule, 0.0), check.comparison.score)
    return ", ".join(rule if rule == "exact" else f"{rule} {score:.2g}" for rule, score in worst.items()) or NOTHING


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


class Rows:
    """A table of the cases of `work`, printed row by row: a run that is stopped leaves what it has found."""

    def __init__(self, work: Iterable[Plan]) -> None:
        cases = [(plan.kernel.name, str(shape)) for plan in work for shape in plan.shapes]
        self._widths = [max(map(len, column)) for column in zip(("kernel", "shape"), *cases, strict=True)]
        self._widths += [width for _, width, _ in COLUMNS]
        self._begun = False

    def show(self, out: Console, audit: Audit) -> None:
        """The next row, below the headings if it is the first."""
        if not self._begun:
            self._say(out, ["        ", "kernel", "shape", *(name for name, _, _ in COLUMNS)])
        self._begun = True
        cells = [audit.case.kernel.name, str(audit.case.shape), *(tell(audit) for _, _, tell in COLUMNS)]
        self._say(out, ["ok      " if audit.ok else "NOT OK  ", *cells])

    def _say(self, out: Console, cells: list[str]) -> None:
        padded = (cell.ljust(width) for cell, width in zip(cells[1:], self._widths, strict=True))
        out.print(cells[0] + "  ".join(padded).rstrip(), markup=False, highlight=False, soft_wrap=True)
