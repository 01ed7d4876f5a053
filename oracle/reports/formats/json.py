"""JSON: one document when the audit ends."""

from __future__ import annotations

import click

from ..case_entries import EntriesFormat
from ..json_document import document
from ..protocol import Outcome


class Format(EntriesFormat):
    name = "json"
    help = "one JSON document, as --json"
    output = "stdout"

    def finish(self, outcome: Outcome) -> None:
        click.echo(document(outcome.verb, self._entries, outcome.ok, outcome.error, " ".join(outcome.lines)))

    def abort(self, verb: str, error: Exception) -> None:
        click.echo(document(verb, self._entries, False, str(error)))
