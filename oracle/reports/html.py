"""Audits as one HTML page that needs nothing but itself: verdicts, the source with counters, conflicts, findings.

`templates/report.html.j2` and, of one case, `case.html.j2` say how it looks; here is what they ask for. Every text goes
through Jinja's escaping. Counters beside the source are those of `listing`; the first case of a kernel shows all
of its source, the others the lines that were charged, or that a finding names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Number

from ...sim.fast_dataclass import frozen
from ..comparison.mismatch_map import Patch
from ..errors import UsageError
from ..goldens.golden_store import STATES
from ..gpu_counters.bank_conflicts import Access, worst_accesses
from ..gpu_counters.timeline import Timeline, record_timeline
from ..judge.counter_checks import with_derived
from ..judge.verdict import Audit
from .json_report import SITE
from .source_listing import Line, against_ideal, compact, listings
from .tables import idle_words, tables, useful
from .text import CHARGES, TOTALS, comparison_words

# From which share of a run's excess on a line is as hot as 1, 2, 3, 4.
HEAT = (0.0, 0.05, 0.2, 0.5)
CLASSES = ((Comment, "c"), (Keyword, "k"), (Number, "n"))  # of highlighted source


@frozen
class Cell:
    """What was charged on a line. `heat`: 0, where nothing is in excess, to 4."""

    text: str
    times: str
    heat: int


@frozen
class Row:
    """A line of source as it is shown. `findings`: numbers of those that name it."""

    line: Line
    anchor: str
    code: Markup
    cells: tuple[Cell, ...]
    findings: tuple[int, ...]


@frozen
class Place:
    """A labelled place of a finding; `anchor` is that of its line, where that is shown."""

    label: str
    at: str
    anchor: str | None


@frozen
class Found:
    """A finding, numbered in its case. `how`: held against the kernel, accepted, or silenced."""

    number: int
    finding: Any
    how: str
    places: tuple[Place, ...]


@frozen
class Summary:
    """A case's row in the table at the top."""

    anchor: str
    kernel: str
    shape: str
    ok: bool
    totals: dict[str, float]
    findings: int
    likely: str


@frozen
class Section:
    """A case on the page."""

    summary: Summary
    body: Markup


@dataclass
class Page:
    """Gathers sections; `write` makes the file."""

    file: Path
    sections: list[Section] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.file.parent.is_dir():
            raise UsageError(f"--html {self.file}: there is no folder {self.file.parent}")

    def add(self, section: Section) -> None:
        self.sections.append(section)

    def write(self) -> None:
        """Raises `UsageError` where the file cannot be written."""
        cases, bodies = [each.summary for each in self.sections], [each.body for each in self.sections]
        text = _template("report.html.j2").render(cases=cases, bodies=bodies, good=sum(case.ok for case in cases))
        try:
            self.file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"--html {self.file}: {error.strerror}") from None


def section_of(audit: Audit, number: int, full: bool) -> Section:
    """Of the `number`-th case, from 1; `full`: with all of its source."""
    kernel, anchor = audit.case.kernel, f"case{number}"
    accesses, reason = _accesses(audit)
    schedule = _schedule(audit)
    sources, found = _sources(audit, anchor, full)
    held = sum(not item.ok for item in audit.findings)
    totals, likely = {**with_derived(audit.run.counters), **useful(audit.run)}, ", ".join(audit.likely)
    summary = Summary(anchor, kernel.name, str(audit.case.shape), audit.ok, totals, held, likely)
    parts = {"audit": audit, "case": summary, "full": full, "sources": sources, "found": found}
    case = _template("case.html.j2").module.case
    return Section(summary, case(**parts, accesses=accesses, reason=reason, schedule=schedule))


def section_of_error(kernel: str, shape: str, text: str, number: int) -> Section:
    """Of the `number`-th case, which could not be run."""
    summary = Summary(f"case{number}", kernel, shape, False, {}, 0, "could not be run")
    return Section(summary, _template("case.html.j2").module.failure(summary, text))


@cache
def _template(name: str) -> Any:
    environment = Environment(
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


def _accesses(audit: Audit) -> tuple[Sequence[Access], str]:
    """The accesses that are drawn, or why there are none."""
    try:
        return worst_accesses(audit.case, audit.run), ""
    except UsageError as error:
        return (), str(error)


def _schedule(audit: Audit) -> Timeline | None:
    """The timeline of the first workgroup, where it has barriers to tell of, and takes probes."""
    if not any(site.kind == "barrier" for site in audit.run.sites):
        return None
    try:
        return record_timeline(audit.case, audit.run)
    except UsageError:
        return None


# ---- source ------------------------------------------------------------------------------------------


def _sources(audit: Audit, anchor: str, full: bool) -> tuple[dict[str, list[Row]], list[Found]]:
    """The lines to show of each file, and the findings with their places among them."""
    source = audit.case.kernel.source
    files = listings(audit.run.sites, source, audit.subgroup_size)
    numbered = {file: number for number, file in enumerate(files)}

    def line_anchor(span: Any) -> str | None:
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


def _findings(audit: Audit, line_anchor: Any) -> list[Found]:
    held = [(item.finding, "accepted by the manifest" if item.allowed else "") for item in audit.findings]
    silenced = [(finding, "allowed by a comment") for finding in audit.run.silenced]
    found = []
    for number, (finding, how) in enumerate(held + silenced, 1):
        places = [(finding.code, finding.span), *((note.message, note.span) for note in finding.notes)]
        found.append(Found(number, finding, how, tuple(_place(label, span, line_anchor) for label, span in places)))
    return found


def _place(label: str, span: Any, line_anchor: Any) -> Place:
    if span is None:
        return Place(label, "", None)
    place = span.place
    return Place(label, f"{place.file}:{place.line}:{place.column}", line_anchor(span))


def _excess(line: Line, actual: str, ideal: str) -> int:
    return line.counters[actual] - line.counters[ideal] if line.counters else 0


def _cells(line: Line, excess: Sequence[int]) -> tuple[Cell, ...]:
    """Wavefronts and sectors of a line. `excess`: of each, that of the whole run."""
    if line.counters is None:
        return ()
    cells = []
    for (actual, ideal, _), whole in zip(CHARGES, excess, strict=True):
        charged, least, more = line.counters[actual], line.counters[ideal], _excess(line, actual, ideal)
        heat = sum(more >= share * whole for share in HEAT) if more > 0 else 0
        times = f"\u00d7{charged / least:.3g}" if heat and least else ""
        cells.append(Cell(against_ideal(charged, least), times, heat))
    return tuple(cells)


def highlighted(lines: Sequence[str]) -> list[Markup]:
    """Each line of a shader, escaped, with spans of `CLASSES` around what is a comment, a keyword or a number."""
    lexer = get_lexer_by_name("wgsl", stripnl=False, ensurenl=False)
    done, now = [], Markup()
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


def _in_use(sites: Iterable[Any], names: Sequence[str]) -> list[str]:
    """The counters that are not zero everywhere."""
    rows = list(sites)
    return [name for name in names if any(getattr(row, name) for row in rows)]


def patch_words(patch: Patch, measure: str) -> str:
    """A patch of a heat map, for who points there."""
    (top, bottom), (left, right) = patch.rows, patch.columns
    where = f"rows {top} to {bottom - 1}, columns {left} to {right - 1}"
    worst = f"{patch.worst:.3g} {measure}" if patch.heat else "not a number, or infinite"
    return f"{where}: {patch.count:,} of {(bottom - top) * (right - left):,} differ, the worst {worst}"
