"""Audits as one HTML page that needs no other file: kernels and their cases, failures first and then by cost.

The layout is in `templates/report.html.j2` and, for one case, `case.html.j2`; this module computes what they show.
Jinja escapes all text. `page_source` has the source with counters, `page_maps` the drawings.

The cases that are open at first are HTML. The others are in `noscript` elements, which a browser with scripts reads as
text, so that a page of many cases opens at once; `page.js` makes a case HTML when it is opened.
"""

from __future__ import annotations

from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from ...sim.fast_dataclass import frozen
from ..errors import printable
from ..goldens.golden_store import STATES
from ..judge.counter_checks import with_derived
from ..judge.coverage import CaseOutcome
from ..judge.options import SEVERITIES
from .check_words import comparison_words, counted
from .cost_places import CostTotals, cost_places
from .json_entries import SITE
from .kernel_rows import HEADINGS, ORDER, WARNS, CaseRow, KernelRow, cells, kernel_rows, word_of
from .page_drawings import Drawing, Figures, drawings_of
from .page_maps import STEP, bank_cells, patch_words
from .page_source import Listing, Mark, files_of, listing_of
from .prediction import longest_lines, prediction_words, time_check_words
from .source_listing import compact
from .tables import CHARGES, TOTALS, idle_words, tables, useful
from .times_report import timing_words

if TYPE_CHECKING:
    from ...sim import Finding, Site
    from ...sim.wgsl.source import Span
    from ..judge.verdict import Audit
    from .page_changes import Since
    from .protocol import CaseFailure

MOST_OPEN = 5  # kernels that are open at first, of those that fail


@frozen
class Place:
    """A labelled place of a finding, and its line of code: before, inside and after the place. `anchor` is that of the
    line, if the page shows it."""

    label: str
    at: str
    anchor: str | None
    code: tuple[str, str, str] = ("", "", "")


@frozen
class Found:
    """A finding, numbered in its case. `how`: who accepts it; empty if it counts against the kernel."""

    number: int
    finding: Finding
    how: str
    places: tuple[Place, ...]

    @property
    def counts(self) -> bool:
        """Whether it is neither accepted nor a mere note."""
        return not self.how and self.finding.severity != "info"


@frozen
class Linked:
    """Something about a line: a place where the cost is, or a change of a golden. `anchor` is that of the line, if the
    page shows it."""

    it: Any
    anchor: str | None


@frozen
class Section(CaseRow):
    """A case on the page: its row, and its body in parts, of which `source` and `short_source` are alternatives: all
    lines, or the lines that matter. `likely`: the likely causes of what is wrong. `files`: those of `source`."""

    anchor: str = ""
    likely: str = ""
    head: Markup = Markup()
    source: Markup = Markup()
    short_source: Markup = Markup()
    tail: Markup = Markup()
    figures: Figures = ()
    files: tuple[str, ...] = ()


@frozen
class Shown:
    """A case as the page shows it. `full`: the anchor of the case of its kernel that has all of its source."""

    section: Section
    cells: tuple[str, ...]
    open: bool
    full: str
    drawings: Markup

    @property
    def body(self) -> Markup:
        each = self.section
        source = each.source if self.full == each.anchor else each.short_source
        return each.head + source + self.drawings + each.tail


@frozen
class Kernel:
    """A kernel on the page, with the case to look at first in front."""

    name: str
    row: KernelRow
    cells: tuple[str, ...]
    open: bool
    cases: tuple[Shown, ...]


def page(sections: Sequence[Section], lines: Sequence[str] = (), since: Since | None = None) -> str:
    """The whole page. `lines`: the last words of the command. `since`: what changed since an earlier audit."""
    rows = kernel_rows(sorted(sections, key=lambda each: -each.cost.excess))
    kernels = [_kernel(row, number < MOST_OPEN and row.word in ORDER[:3]) for number, row in enumerate(rows)]
    if len(rows) == 1:
        kernels = [_kernel(rows[0], True)]
    script = _source("page.js")
    text = _template("report.html.j2").render(
        kernels=kernels, total=len(sections), good=sum(each.word in (CaseOutcome.CLEAN, WARNS) for each in sections),
        lines=lines, since=since, headings=HEADINGS, style=_source("page.css"), script=script,
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
    )  # fmt: skip
    return printable(text, keep="\n\t")


def _kernel(row: KernelRow, open_: bool) -> Kernel:
    sections = cast("tuple[Section, ...]", row.cases)
    full = next((each.anchor for each in sections if each.source), "")
    alone = [KernelRow(each.kernel, (each,), each.cost) for each in sections]
    known: dict[Markup, Drawing] = {}
    shown = [
        Shown(each, cells(of_one), open_ and number == 0, full, _drawings(each, known))
        for number, (each, of_one) in enumerate(zip(sections, alone, strict=True))
    ]
    return Kernel(row.kernel, row, cells(row), open_, tuple(shown))


def _drawings(section: Section, known: dict[Markup, Drawing]) -> Markup:
    """The drawings of a case, of which those in `known` are links to an earlier case of the kernel."""
    groups = drawings_of(section.figures, section.anchor, f"{section.kernel} {section.shape}".strip(), known)
    return _template("drawings.html.j2").module.drawings(groups) if groups else Markup()


def section_of(audit: Audit, number: int) -> Section:
    """The section of the `number`-th case, from 1. Accesses and the timeline are drawn if the audit recorded them."""
    anchor = f"case{number}"
    listing = listing_of(audit, anchor)
    found = _findings(audit, listing)
    cost = [Linked(place, listing.anchor(place.file, place.line)) for place in cost_places(audit.run)]
    times = [Linked(line, listing.anchor(line.file, line.line)) for line in longest_lines(audit.run)]
    moved = _golden_changes(audit, listing)
    marks: dict[str, list[Mark]] = defaultdict(list)
    for item in found:
        for at in dict.fromkeys(place.anchor for place in item.places if place.anchor):
            marks[at].append(Mark(f"{anchor}-f{item.number}", item.finding.code, not item.counts))
    written = {check.output: listing.of(check.written) for check in audit.outputs if not check.ok and check.written}
    failing = [place.anchor for item in found if item.counts for place in item.places]
    files = files_of(listing, marks, [*failing, *written.values(), *(each.anchor for each in (*cost, *times, *moved))])
    parts = {
        "audit": audit, "anchor": anchor, "found": found, "cost": cost, "times": times, "moved": moved,
        "written": written, "totals": {**with_derived(audit.run.counters), **useful(audit.run)},
    }  # fmt: skip
    case = _template("case.html.j2").module
    return Section(
        audit.case.kernel.name, str(audit.case.shape), word_of(audit), CostTotals.of(audit.run), "",
        anchor=anchor, likely=", ".join(audit.likely), head=case.head(**parts), tail=case.tail(**parts),
        source=case.source(audit, files, full=True),
        short_source=case.source(audit, [file.short() for file in files], full=False),
        figures=_figures(audit), files=tuple(listing.rows),
    )  # fmt: skip


def _figures(audit: Audit) -> Figures:
    """What the audit recorded, drawn: by heading, the contents of each figure."""
    recorded, drawn = audit.recordings, _template("drawings.html.j2").module
    if recorded is None:
        return ()
    groups = [("Bank conflicts", tuple(drawn.bank_map(access) for access in recorded.accesses))]
    if recorded.timeline and recorded.timeline.slices:
        groups.append(("Between barriers", (drawn.timeline(recorded.timeline),)))
    return tuple((heading, figures) for heading, figures in groups if figures)


def section_of_failure(case: CaseFailure) -> Section:
    """The section of a case that could not be run."""
    head = _template("case.html.j2").module.failure(case.kernel, case.failure.reason)
    return Section(
        case.kernel, str(case.shape), CaseOutcome.ERROR, anchor=f"case{case.number}", likely="could not be run",
        head=head,
    )  # fmt: skip


@cache
def _template(name: str) -> Any:
    return _environment().get_template(name)


@cache
def _environment() -> Any:
    environment: Any = Environment(
        loader=PackageLoader("bankshot.oracle.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "amount": _amount,
        "compact": compact,
        "words": comparison_words,
        "number": _number,
        "coded": coded,
    }
    environment.globals |= {"TOTALS": TOTALS, "CHARGES": CHARGES, "SITE": SITE, "GOLDEN": STATES, "STEP": STEP}
    environment.globals |= {"patch_words": patch_words, "bank_cells": bank_cells, "in_use": _in_use}
    environment.globals |= {
        "tables": tables,
        "idle_words": idle_words,
        "counted": counted,
        "timing_words": timing_words,
        "prediction_words": prediction_words,
        "time_check_words": time_check_words,
    }
    return environment


@cache
def _source(name: str) -> Markup:
    """The text of a file beside the templates."""
    environment = _environment()
    return Markup(environment.loader.get_source(environment, name)[0])


# ---- findings and goldens ----------------------------------------------------------------------------


def _findings(audit: Audit, listing: Listing) -> list[Found]:
    """The findings: those that count against the kernel, the worst first, then those that are accepted."""
    held = [(item.finding, "accepted by the manifest" if item.allowed else "") for item in audit.findings]
    held += [(finding, "allowed by a comment") for finding in audit.run.silenced]
    held.sort(key=lambda item: (bool(item[1]), SEVERITIES.index(item[0].severity)))
    found: list[Found] = []
    for number, (finding, how) in enumerate(held, 1):
        places = [(finding.code, finding.span), *((note.message, note.span) for note in finding.notes)]
        found.append(Found(number, finding, how, tuple(_place(label, span, listing) for label, span in places)))
    return found


def _place(label: str, span: Span | None, listing: Listing) -> Place:
    if span is None:
        return Place(label, "", None)
    place, source = span.place, span.source
    index = source.line_index(span.start)
    line, begin = source.line_text(index), source.line_start(index)
    start, end = span.start - begin, max(span.end - begin, span.start - begin + 1)
    code = line[:start].lstrip(), line[start:end], line[end:]
    return Place(label, f"{place.file}:{place.line}:{place.column}", listing.of(span), code)


def _golden_changes(audit: Audit, listing: Listing) -> list[Linked]:
    """The counters that differ from the golden."""
    if audit.golden is None:
        return []
    folder = audit.case.kernel.path.parent
    return [
        Linked(change, listing.anchor(folder / change.file, change.line) if change.line else None)
        for change in audit.golden.changes
    ]


# ---- words and numbers -----------------------------------------------------------------------------------------


def coded(text: object) -> Markup:
    """The text, escaped, with what is between backticks as code."""
    parts = str(text).split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return Markup().join(Markup("<code>{}</code>").format(part) if at % 2 else part for at, part in enumerate(parts))


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
