"""What all reports of an audit are made of: each case becomes an `Audited`, whose plain values get from the process
that audits to the one that reports; `Reports` shows them, and writes files when all cases are there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...sim.fast_dataclass import frozen
from ..exit_codes import Failure
from . import ci
from .audit_rows import Rows, cells_of
from .remarks import Entry, entry_of, entry_of_error

if TYPE_CHECKING:
    from ..judge.verdict import Audit
    from ..manifests.cases import Broken, Plan
    from ..manifests.manifest import Shape
    from .html import Section


@frozen
class Wanted:
    """The reports that are asked for. `form`: text, table, github or json. `listing`: auto, full, counted or none, of
    the source beside counters. `page` and `sarif`: files to write. `width` and `terminal`: of what text goes to."""

    form: str
    listing: str
    page: Path | None
    sarif: Path | None
    width: int
    terminal: bool

    def listings(self, first: bool, ok: bool) -> tuple[str, ...]:
        """The listings in which a case may be shown, as text; `first`: of its kernel. Of a table, only what comes of
        the cases before says which it is."""
        if self.form == "json" or (self.form == "table" and ok):
            return ()
        if self.listing != "auto":
            return (self.listing,)
        return ("full", "counted") if self.form == "table" else ("full" if first else "counted",)


@frozen
class Audited:
    """A case that was audited; `failure`: why it could not be. `texts`: by `Wanted.listings`. `cells` of a table,
    `entry` of a JSON document and `section` of a page: where these are wanted."""

    kernel: str
    ok: bool
    remarks: Entry
    texts: dict[str, str]
    cells: tuple[str, ...] = ()
    entry: dict[str, Any] | None = None
    section: Section | None = None
    failure: Failure | None = None


def audited(audit: Audit, wanted: Wanted, number: int, first: bool, say: Callable[[str], None]) -> Audited:
    """What reports need of an audit, the `number`-th of all, and perhaps the `first` of its kernel."""
    section, entry = None, None
    if wanted.page is not None:
        from .html import section_of

        say("drawing")
        section = section_of(audit, number, first)
    if wanted.form == "json":
        from .json_report import audit_entry

        entry = audit_entry(audit)
    return Audited(
        kernel=audit.case.kernel.name,
        ok=audit.ok,
        remarks=entry_of(audit),
        texts={listing: _text(audit, wanted, listing) for listing in wanted.listings(first, audit.ok)},
        cells=cells_of(audit) if wanted.form == "table" else (),
        entry=entry,
        section=section,
    )


def failed(
    kernel: str, source: Path, path: Path, shape: Shape, error: Exception, wanted: Wanted, number: int
) -> Audited:
    """What reports need of a case, the `number`-th of all, that could not be run. `path`: its manifest."""
    failure = Failure.of(error)
    remarks = entry_of_error(f"{kernel} {shape}".strip(), error, str(path))
    section, entry = None, None
    if wanted.page is not None:
        from .html import section_of_error

        section = section_of_error(kernel, str(shape), failure.reason, number)
    if wanted.form == "json":
        from .json_report import error_entry

        entry = error_entry(kernel, source, shape.dims, failure.reason, remarks)
    first = failure.reason.splitlines()[0]
    title = click.style(f"{kernel}  {shape}".rstrip(), bold=True)
    text = f"{title}\n{click.style('  ERROR    ', fg='red', bold=True)}{first}\n\n"
    return Audited(
        kernel=kernel,
        ok=False,
        remarks=remarks,
        texts={wanted.listing: text} if wanted.form in ("text", "github") else {},
        cells=("ERROR", kernel, str(shape), first) if wanted.form == "table" else (),
        entry=entry,
        section=section,
        failure=failure,
    )


def _text(audit: Audit, wanted: Wanted, listing: str) -> str:
    from rich.console import Console

    from .text import show_audit

    text = StringIO()
    out = Console(file=text, width=wanted.width, force_terminal=wanted.terminal, highlight=False, emoji=False)
    show_audit(out, audit, listing)
    return text.getvalue()


class Reports:
    """Those of an audit of `work`, and of what could not be planned."""

    def __init__(self, work: Sequence[Plan], wanted: Wanted, broken: Sequence[Broken] = ()) -> None:
        self._wanted = wanted
        self._rows = Rows(work, [each.path.stem for each in broken])
        self._listed: set[str] = set()
        self._entries: list[Entry] = []
        self._page = None
        if wanted.page is not None:
            from .html import Page

            self._page = Page(wanted.page)

    def show(self, case: Audited) -> None:
        """The next case, on stdout."""
        if case.cells:
            click.echo(self._rows.next(case.cells))
        if case.texts:
            again = "counted" if case.kernel in self._listed else "full"
            text = case.texts.get(again) or next(iter(case.texts.values()))
            click.echo(text, nl=False, color=self._wanted.terminal)
            self._listed |= {case.kernel} if case.failure is None else set()

    def kept(self, case: Audited) -> Audited:
        """The same; what files need of it is kept."""
        self._entries.append(case.remarks)
        if self._page is not None and case.section is not None:
            self._page.add(case.section)
        return case

    def finish(self) -> None:
        """Write the files, and what GitHub is to hear."""
        if self._page is not None:
            self._page.write()
        ci.write_summary(self._entries)
        if self._wanted.sarif is not None:
            ci.write_sarif(self._wanted.sarif, self._entries)
        if self._wanted.form != "json" and (self._wanted.form == "github" or ci.on_github()):
            for line in ci.github_lines(self._entries):
                click.echo(line)
