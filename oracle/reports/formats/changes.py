"""Changes: what differs from an earlier audit, as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

import click

from ...errors import printable
from ..case_entries import EntriesFormat
from ..json_document import document
from ..protocol import Before, Outcome, ReportOptions

if TYPE_CHECKING:
    from ...manifests.cases import Broken, Plan
    from ..changes import CaseChange


class Format(EntriesFormat):
    name = "changes"
    help = "what changed, with --against"
    output = "stdout"
    _layout: ClassVar[str] = "as_text"  # a function of `changes`

    def __init__(self, options: ReportOptions, work: Sequence[Plan], broken: Sequence[Broken]) -> None:
        super().__init__(options, work, broken)
        self._before = options.before

    @classmethod
    def enabled(cls, options: ReportOptions) -> bool:
        watched = options.before is not None and options.before.keep and cls.name == "changes"
        return watched or cls.name == options.stdout

    def finish(self, outcome: Outcome) -> None:
        before = self._before
        if before is None:
            return
        if before.document.exists():
            self._show(before)
        if before.keep:
            before.document.write_text(document(outcome.verb, self._entries, outcome.ok), encoding="utf-8")
        else:
            click.echo("\n".join(("", *outcome.lines)))

    def _show(self, before: Before) -> None:
        from .. import changes

        found = changes.changes(changes.read_document(before.document), self._entries)
        layout: Callable[[Sequence[CaseChange], str, int], list[str]] = getattr(changes, self._layout)
        for line in layout(found, before.name, len(self._entries)):
            click.echo(printable(line), err=before.keep)
