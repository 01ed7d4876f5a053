"""Many cases on the terminal: a row for each kernel, the costliest first, and what is wrong with each below."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from ...sim.fast_dataclass import frozen
from ..judge.coverage import CaseOutcome
from .check_words import counted
from .cost_places import CostTotals
from .source_listing import compact
from .terminal import say

if TYPE_CHECKING:
    from ..judge.verdict import Audit
    from ..wgpu_client import Timing

MOST_ROWS = 40  # of clean kernels
MOST_TEXTS = 10  # of kernels that are not clean
MOST_SHAPES = 6  # that a line names
WORD = 11  # columns of the outcome
WARNS = "warns"  # a clean case with findings that do not fail it
ORDER = (CaseOutcome.ERROR, CaseOutcome.FAILED, CaseOutcome.UNCHECKED, WARNS, CaseOutcome.CLEAN)
STYLES = {WARNS: "yellow"} | {outcome: outcome.style for outcome in CaseOutcome}
NOTHING = "-"
IN = {CaseOutcome.ERROR: "could not be run in", WARNS: "warns in"} | {
    outcome: f"{outcome} in" for outcome in (CaseOutcome.FAILED, CaseOutcome.UNCHECKED)
}


@frozen
class CaseRow:
    """What a case adds to the row of its kernel. `word`: one of `ORDER`. `text`: what is wrong, if something is;
    `reason`: why it could not be run, in a line. `times`: on adapters, where they were asked for."""

    kernel: str
    shape: str
    word: str
    cost: CostTotals = CostTotals()
    text: str = ""
    reason: str = ""
    times: tuple[Timing, ...] = ()


def case_row(audit: Audit, text: str) -> CaseRow:
    """The row of an audited case."""
    return CaseRow(
        audit.case.kernel.name,
        str(audit.case.shape),
        word_of(audit),
        CostTotals.of(audit.run),
        text=text,
        times=audit.times,
    )


def word_of(audit: Audit) -> str:
    """The outcome, or `WARNS`."""
    noted = any(not item.allowed and item.finding.severity != "info" for item in audit.findings)
    return WARNS if audit.outcome is CaseOutcome.CLEAN and noted else audit.outcome.value


@frozen
class KernelRow:
    """All cases of a kernel: the worst outcome, the cases with it first, and their costs together."""

    kernel: str
    cases: tuple[CaseRow, ...]
    cost: CostTotals

    @property
    def word(self) -> str:
        return self.cases[0].word

    @property
    def bad(self) -> tuple[CaseRow, ...]:
        """The cases with the worst outcome, if that is not clean."""
        return tuple(case for case in self.cases if case.word == self.word != CaseOutcome.CLEAN)

    @property
    def rank(self) -> tuple[int, float, str]:
        return ORDER.index(self.word), -self.cost.weight, self.kernel


def kernel_rows(cases: Iterable[CaseRow]) -> list[KernelRow]:
    """A row for each kernel: errors, failures, unchecked kernels, warnings, then by cost."""
    grouped: dict[str, list[CaseRow]] = defaultdict(list)
    for case in cases:
        grouped[case.kernel].append(case)
    rows = [
        KernelRow(kernel, tuple(sorted(group, key=lambda case: ORDER.index(case.word))),
                  CostTotals.together([case.cost for case in group]))
        for kernel, group in grouped.items()
    ]  # fmt: skip
    return sorted(rows, key=lambda row: row.rank)


# ---- the table ---------------------------------------------------------------------------------------

HEADINGS = ("kernel", "cases", "lanes", "excess wavefronts", "sectors/ideal", "worst line")


# On terminals of fewer columns, headings take two lines, so that the worst line has room.
NARROW = 100
NARROW_HEADINGS = (
    ("", "", "", "excess", "sectors", ""),
    ("kernel", "cases", "lanes", "wavefronts", "/ideal", "worst line"),
)


def show_kernels(out: Console, rows: Sequence[KernelRow]) -> None:
    """Print the table. Clean kernels beyond `MOST_ROWS` are counted."""
    clean = [row for row in rows if row.word == CaseOutcome.CLEAN]
    shown = [*(row for row in rows if row.word != CaseOutcome.CLEAN), *clean[:MOST_ROWS]]
    headings = NARROW_HEADINGS if out.width < NARROW else (HEADINGS,)
    lines = [(row, cells(row)) for row in shown]
    texts = [*headings, *(each for _, each in lines)]
    widths = [max(len(each[column]) for each in texts) for column in range(len(HEADINGS) - 1)]
    rendered = [Text(f"{'':{WORD}}{_padded(heading, widths)}", "dim") for heading in headings]
    for row, each in lines:
        word = (f"{row.word:{WORD}}", STYLES.get(row.word, "dim"))
        rendered.append(Text.assemble(word, _row(row, each, widths)))
    for line in rendered:
        line.truncate(out.width, overflow="ellipsis")
        say(out, line)
    if len(clean) > MOST_ROWS:
        say(out, f"{'':{WORD}}{counted(len(clean) - MOST_ROWS, 'more kernel')}, clean, with less excess", "dim")


def _row(row: KernelRow, texts: Sequence[str], widths: Sequence[int]) -> str:
    """The cells of a kernel; of one that could not be run, the reason in place of figures."""
    if row.word != CaseOutcome.ERROR:
        return _padded(texts, widths)
    reason = f": {row.cases[0].reason}" if row.cases[0].reason else ""
    return f"{_padded(texts[:2], widths)}  could not be run{reason}"


def _padded(texts: Sequence[str], widths: Sequence[int]) -> str:
    """The texts in columns: the first and the worst line to the left, figures to the right."""
    (name, *numbers), worst = texts[: len(widths)], texts[len(widths) :]
    padded = [f"{name:{widths[0]}}", *(f"{cell:>{width}}" for cell, width in zip(numbers, widths[1:], strict=False))]
    return "  ".join([*padded, *worst]).rstrip()


def cells(row: KernelRow) -> tuple[str, ...]:
    """A text for each of `HEADINGS`."""
    cost, bad = row.cost, len(row.bad)
    lanes = f"{cost.active_lanes / cost.issued_lanes:.0%}" if cost.issued_lanes else NOTHING
    wavefronts = compact(cost.excess_wavefronts) if cost.excess_wavefronts else NOTHING
    sectors = f"x{cost.sectors / cost.ideal_sectors:.2f}" if cost.sectors and cost.ideal_sectors else NOTHING
    cases = f"{bad} of {len(row.cases)}" if 0 < bad < len(row.cases) else str(len(row.cases))
    worst = "" if cost.worst is None else f"{cost.worst.at}  {cost.worst.why}"
    return row.kernel, cases, lanes, wavefronts, sectors, worst


# ---- what is wrong -----------------------------------------------------------------------------------


def failures(rows: Sequence[KernelRow]) -> Iterator[str]:
    """For each outcome that is not clean and each kernel with it, the text of its first case, and the other shapes."""
    found = ((word, row, [case for case in row.cases if case.word == word]) for word in ORDER[:-1] for row in rows)
    bad = [(word, row, cases) for word, row, cases in found if cases]
    for word, row, (first, *others) in bad[:MOST_TEXTS]:
        yield first.text
        if others:
            shapes = ", ".join(case.shape or case.kernel for case in others[:MOST_SHAPES])
            more = f" and {len(others) - MOST_SHAPES} more" if len(others) > MOST_SHAPES else ""
            yield f"  {IN[word]} {counted(len(others), 'more case')} of {row.kernel}: {shapes}{more}\n\n"
    if len(bad) > MOST_TEXTS:
        yield f"{counted(len(bad) - MOST_TEXTS, 'more kernel')} not shown here\n\n"
