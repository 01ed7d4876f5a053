"""A table: a row for each case as it comes, and all of each case that is not clean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, cast

import click

from ....sim.fast_dataclass import frozen
from ...judge.coverage import CaseOutcome
from ..protocol import AuditedCase, AuditFormat, CaseFailure, CaseResult, Outcome, ReportOptions
from ..summary_line import last_lines
from ..terminal import duration

if TYPE_CHECKING:
    from ...judge.output_checks import OutputCheck
    from ...judge.verdict import Audit
    from ...manifests.cases import Broken, Plan

NOTHING = "-"


def _outputs(checks: Iterable[OutputCheck]) -> str:
    """The rules that outputs satisfy, with the worst score of each: `exact`, `bound 0.21`; else what is wrong."""
    worst: dict[str, float] = {}
    for check in checks:
        if not check.ok:
            return f"{'UNCHECKED' if check.outcome is CaseOutcome.UNCHECKED else 'DIFFERS'} {check.output}"
        if check.comparison.vacuous:
            continue
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


# The columns after the kernel and its shape: heading, least width, and the text of a case.
COLUMNS: tuple[tuple[str, int, Callable[[Audit], str]], ...] = (
    ("workgroups", 15, _ran),
    ("reference", 13, _against_reference),
    ("wgpu", 13, _against_gpu),
    ("counters", 8, _counters),
    ("findings", 11, _findings),
    ("notes", 5, lambda audit: str(len(audit.notes) or NOTHING)),
    ("seconds", 7, lambda audit: f"{sum(audit.seconds.values()):.2f}"),
)


def _time(audit: Audit) -> str:
    """The median time on the first adapter."""
    times = audit.times[0].times if audit.times else None
    return duration(times.median) if times else NOTHING


TIME = ("time", 10, _time)  # where times are asked for


def columns(timed: bool) -> tuple[tuple[str, int, Callable[[Audit], str]], ...]:
    """The columns of a table, `timed` or not."""
    return (*COLUMNS, TIME) if timed else COLUMNS


def cells_of(audit: Audit, timed: bool = False) -> tuple[str, ...]:
    """The cells of a case: verdict, kernel, shape, and `columns`."""
    verdict = VERDICTS[audit.outcome]
    return verdict, audit.case.kernel.name, str(audit.case.shape), *(text(audit) for _, _, text in columns(timed))


VERDICTS = {CaseOutcome.CLEAN: "ok", CaseOutcome.FAILED: "NOT OK", CaseOutcome.UNCHECKED: "UNCHECKED"}


class Rows:
    """Pads rows, so that the table can be printed as it is made.

    Columns are as wide as the cases of `work` need, and the kernels of `more`. A row may have fewer cells; the last one
    may then be any text.
    """

    def __init__(self, work: Iterable[Plan], more: Iterable[str] = (), timed: bool = False) -> None:
        cases = [(name, "") for name in more]
        cases += [(plan.kernel.name, str(shape)) for plan in work for shape in plan.shapes]
        self._widths = [max(map(len, column)) for column in zip(("kernel", "shape"), *cases, strict=True)]
        self._columns = columns(timed)
        self._widths += [width for _, width, _ in self._columns]
        self._begun = False

    def next(self, cells: Sequence[str]) -> str:
        """The next row; the first comes with the headings."""
        rows = [cells] if self._begun else [("", "kernel", "shape", *(name for name, _, _ in self._columns)), cells]
        self._begun = True
        return "\n".join(self._padded(*row) for row in rows)

    def _padded(self, verdict: str, *cells: str) -> str:
        padded = (cell.ljust(width) for cell, width in zip(cells, self._widths, strict=False))
        return f"{verdict:10}{'  '.join(padded)}".rstrip()


@frozen
class Part:
    """A case: the cells of its row and, if it is not clean, its text in each listing that may be shown."""

    cells: tuple[str, ...]
    texts: dict[str, str]


class Format(AuditFormat):
    name = "table"
    help = "a row for each case, and all of each case that is not clean"
    output = "stdout"

    def __init__(self, options: ReportOptions, work: Sequence[Plan], broken: Sequence[Broken]) -> None:
        self._options = options
        self._rows = Rows(work, [each.path.stem for each in broken], options.timed)
        self._listed: set[str] = set()

    @classmethod
    def part(cls, case: CaseResult, options: ReportOptions) -> Part:
        from ..audit_text import audit_text

        # Which case of a kernel is the first to be shown depends on the cases before it, which run elsewhere.
        listings = () if case.audit.ok else ("full", "counted") if options.listing == "auto" else (options.listing,)
        return Part(
            cells_of(case.audit, options.timed), {each: audit_text(case.audit, options, each) for each in listings}
        )

    @classmethod
    def failed_part(cls, case: CaseFailure, options: ReportOptions) -> Part:
        return Part(("ERROR", case.kernel, str(case.shape), case.failure.reason.splitlines()[0]), {})

    def add(self, result: AuditedCase) -> None:
        part = cast(Part, result.parts[self.name])
        if self._options.detail == "none":
            return
        click.echo(self._rows.next(part.cells))
        if part.texts:
            listing = self._options.listing_of(first=result.kernel not in self._listed)
            click.echo(part.texts[listing], nl=False, color=self._options.terminal)
            self._listed.add(result.kernel)

    def finish(self, outcome: Outcome) -> None:
        for line in last_lines(outcome, self._options.more):
            click.echo(line)
