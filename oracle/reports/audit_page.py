"""Audits as one HTML page that needs no other file: verdicts, the source with counters, conflicts, findings.

The layout is in `templates/report.html.j2` and, for one case, `case.html.j2`; this module computes what they show.
Jinja escapes all text. Counters beside the source are those of `source_listing`. The first case of a kernel shows all
of its source, the others only lines that were charged or that a finding names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from pygments import lexers
from pygments.token import Comment, Keyword, Number

from ...sim.fast_dataclass import frozen
from ..goldens.golden_store import STATES
from ..judge.counter_checks import with_derived
from ..judge.coverage import CaseOutcome
from .check_words import comparison_words
from .cost_places import CostPlace, cost_places
from .json_entries import SITE
from .source_listing import Line, against_ideal, compact, listings
from .tables import CHARGES, TOTALS, idle_words, tables, useful

if TYPE_CHECKING:
    from ...sim import Finding, Site
    from ...sim.wgsl.source import Span
    from ..comparison.mismatch_map import Patch
    from ..judge.verdict import Audit
    from .protocol import CaseFailure

    LineAnchor = Callable[[Span], str | None]

# The shares of a run's excess from which a line has heat 1, 2, 3 and 4.
HEAT = (0.0, 0.05, 0.2, 0.5)
CLASSES = ((Comment, "c"), (Keyword, "k"), (Number, "n"))  # of highlighted source


@frozen
class Cell:
    """What was charged on a line. `heat`: from 0, no excess, to 4."""

    text: str
    times: str
    heat: int


@frozen
class Row:
    """A line of source. `findings`: the numbers of the findings that name it."""

    line: Line
    anchor: str
    code: Markup
    cells: tuple[Cell, ...]
    findings: tuple[int, ...]


@frozen
class Place:
    """A labelled place of a finding. `anchor` is that of its line, if the page shows it."""

    label: str
    at: str
    anchor: str | None


@frozen
class Found:
    """A finding, numbered in its case. `how`: who allows it; empty if it counts against the kernel."""

    number: int
    finding: Finding
    how: str
    places: tuple[Place, ...]


@frozen
class CostLink:
    """A place where the cost is. `anchor` is that of its line, if the page shows it."""

    place: CostPlace
    anchor: str | None


@frozen
class Summary:
    """A case's row in the table at the top."""

    anchor: str
    kernel: str
    shape: str
    ok: bool
    outcome: CaseOutcome
    totals: dict[str, float]
    findings: int
    likely: str


@frozen
class Section:
    """A case on the page."""

    summary: Summary
    body: Markup


def page(sections: Sequence[Section], lines: Sequence[str] = ()) -> str:
    """The whole page. `lines`: the last words of the command."""
    cases, bodies = [each.summary for each in sections], [each.body for each in sections]
    return _template("report.html.j2").render(
        cases=cases, bodies=bodies, good=sum(case.ok for case in cases), lines=lines
    )


def section_of(audit: Audit, number: int, full: bool) -> Section:
    """The section of the `number`-th case, from 1. `full`: with all of its source. Accesses and the timeline are drawn
    if the audit recorded them."""
    kernel, anchor = audit.case.kernel, f"case{number}"
    sources, found = _sources(audit, anchor, full)
    shown = {(file, row.line.number): row.anchor for file, rows in sources.items() for row in rows}
    cost = [CostLink(each, shown.get((each.file, each.line))) for each in cost_places(audit.run)]
    held = sum(not item.ok for item in audit.findings)
    totals, likely = {**with_derived(audit.run.counters), **useful(audit.run)}, ", ".join(audit.likely)
    summary = Summary(anchor, kernel.name, str(audit.case.shape), audit.ok, audit.outcome, totals, held, likely)
    parts = {"audit": audit, "case": summary, "full": full, "cost": cost, "sources": sources, "found": found}
    case = _template("case.html.j2").module.case
    return Section(summary, case(**parts, recorded=audit.recordings))


def section_of_failure(case: CaseFailure) -> Section:
    """The section of a case that could not be run."""
    summary = Summary(
        f"case{case.number}", case.kernel, str(case.shape), False, CaseOutcome.ERROR, {}, 0, "could not be run"
    )
    return Section(summary, _template("case.html.j2").module.failure(summary, case.failure.reason))


@cache
def _template(name: str) -> Any:
    environment: Any = Environment(
        loader=PackageLoader("bankshot.oracle.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"amount": _amount, "compact": compact, "words": comparison_words, "number": _number}
    environment.globals |= {"TOTALS": TOTALS, "CHARGES": CHARGES, "SITE": SITE, "GOLDEN": STATES}
    environment.globals |= {"patch_words": patch_words, "in_use": _in_use}
    environment.globals |= {"tables": tables, "idle_words": idle_words}
    return environment.get_template(name)


# ---- source ------------------------------------------------------------------------------------------


def _sources(audit: Audit, anchor: str, full: bool) -> tuple[dict[str, list[Row]], list[Found]]:
    """The lines of each file to show, and the findings with their places in them."""
    source = audit.case.kernel.source
    files = listings(audit.run.sites, source, audit.subgroup_size)
    numbered = {file: number for number, file in enumerate(files)}

    def line_anchor(span: Span) -> str | None:
        file = Path(span.place.file)
        number = numbered.get(file if file.is_file() else source)
        return None if number is None else f"{anchor}-{number}-{span.line}"

    found = _findings(audit, line_anchor)
    named: dict[str | None, list[int]] = {}
    for item in found:
        for place in item.places:
            named.setdefault(place.anchor, []).append(item.number)
    lines = [line for file in files.values() for line in file]
    excess = [sum(_excess(line, actual, ideal) for line in lines) for actual, ideal, _ in CHARGES]
    shown: dict[str, list[Row]] = {}
    for file, number in numbered.items():
        codes = highlighted([line.text for line in files[file]])
        rows = [
            Row(line, at, code, _cells(line, excess), tuple(dict.fromkeys(named.get(at, ()))))
            for line, code in zip(files[file], codes, strict=True)
            for at in (f"{anchor}-{number}-{line.number}",)
        ]
        shown[str(file)] = [row for row in rows if full or row.line.counters or row.findings]
    return shown, found


def _findings(audit: Audit, line_anchor: LineAnchor) -> list[Found]:
    held = [(item.finding, "accepted by the manifest" if item.allowed else "") for item in audit.findings]
    silenced = [(finding, "allowed by a comment") for finding in audit.run.silenced]
    found: list[Found] = []
    for number, (finding, how) in enumerate(held + silenced, 1):
        places = [(finding.code, finding.span), *((note.message, note.span) for note in finding.notes)]
        found.append(Found(number, finding, how, tuple(_place(label, span, line_anchor) for label, span in places)))
    return found


def _place(label: str, span: Span | None, line_anchor: LineAnchor) -> Place:
    if span is None:
        return Place(label, "", None)
    place = span.place
    return Place(label, f"{place.file}:{place.line}:{place.column}", line_anchor(span))


def _excess(line: Line, actual: str, ideal: str) -> int:
    return line.counters[actual] - line.counters[ideal] if line.counters else 0


def _cells(line: Line, excess: Sequence[int]) -> tuple[Cell, ...]:
    """The wavefronts and sectors of a line. `excess`: that of the whole run, for each."""
    if line.counters is None:
        return ()
    cells: list[Cell] = []
    for (actual, ideal, _), whole in zip(CHARGES, excess, strict=True):
        charged, least, more = line.counters[actual], line.counters[ideal], _excess(line, actual, ideal)
        heat = sum(more >= share * whole for share in HEAT) if more > 0 else 0
        times = f"\u00d7{charged / least:.3g}" if heat and least else ""
        cells.append(Cell(against_ideal(charged, least), times, heat))
    return tuple(cells)


def highlighted(lines: Sequence[str]) -> list[Markup]:
    """The lines of a shader, escaped, with comments, keywords and numbers marked with `CLASSES`."""
    make: Any = getattr(lexers, "get_lexer_by_name")  # noqa: B009  # partially typed
    lexer = make("wgsl", stripnl=False, ensurenl=False)
    done: list[Markup] = []
    now = Markup()
    for token, text in lexer.get_tokens("\n".join(lines)):
        name = next((name for kind, name in CLASSES if token in kind), None)
        for number, part in enumerate(text.split("\n")):
            if number:
                done.append(now)
                now = Markup()
            if part:
                now += Markup('<i class="{}">{}</i>').format(name, part) if name else escape(part)
    return [*done, now]


# ---- numbers -----------------------------------------------------------------------------------------


def _amount(value: float, unit: str = "") -> str:
    """A number in full; shares as percentages."""
    if unit == "%":
        return f"{value:.1%}"
    return f"{_number(value)} {'' if unit == 'ratio' else unit}".rstrip()


def _number(value: float) -> str:
    return f"{value:.6g}" if isinstance(value, float) and not value.is_integer() else f"{value:,.0f}"


def _in_use(sites: Iterable[Site], names: Sequence[str]) -> list[str]:
    """The counters that are not zero at every site."""
    rows = list(sites)
    return [name for name in names if any(getattr(row, name) for row in rows)]


def patch_words(patch: Patch, measure: str) -> str:
    """The tooltip of a patch of a heat map."""
    (top, bottom), (left, right) = patch.rows, patch.columns
    where = f"rows {top} to {bottom - 1}, columns {left} to {right - 1}"
    worst = f"{patch.worst:.3g} {measure}" if patch.heat else "NaN or infinite"
    return f"{where}: {patch.count:,} of {(bottom - top) * (right - left):,} differ, the worst {worst}"
