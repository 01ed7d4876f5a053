"""Reports of the commands that print each result as text, or all of them as one JSON document."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from .json_document import Entry, document
from .protocol import Outcome, Report
from .terminal import console

if TYPE_CHECKING:
    from rich.console import Console

R = TypeVar("R")


class TextReport(Report[R]):
    """Prints each result with `show`, and then the verdict."""

    def __init__(self, show: Callable[[Console, R], None]) -> None:
        self._show = show

    def add(self, result: R) -> None:
        self._show(console(), result)

    def finish(self, outcome: Outcome) -> None:
        for line in outcome.lines:
            click.echo(line)


class JsonReport(Report[R]):
    """Prints one JSON document when the command ends, with what `entry` makes of each result."""

    def __init__(self, entry: Callable[[R], Entry]) -> None:
        self._entry = entry
        self._entries: list[Entry] = []

    def add(self, result: R) -> None:
        self._entries.append(self._entry(result))

    def finish(self, outcome: Outcome) -> None:
        click.echo(document(outcome.verb, self._entries, outcome.ok, outcome.error, " ".join(outcome.lines)))

    def abort(self, verb: str, error: Exception) -> None:
        click.echo(document(verb, self._entries, False, str(error)))


def report_of(show: Callable[[Console, R], None], entry: Callable[[R], Entry], as_json: bool) -> Report[R]:
    return JsonReport(entry) if as_json else TextReport(show)
