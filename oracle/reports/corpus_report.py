"""The result of `bankshot corpus`: a line for each trial, and totals for each folder."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..corpus.corpus_survey import good
from ..corpus.trial import VERDICTS
from .json_document import Entry

if TYPE_CHECKING:
    from ..corpus.corpus_survey import Collection
    from ..corpus.trial import Trial

# Columns of the totals: heading, and the verdicts that it counts.
_MODULES = (
    ("not WGSL", ("not-wgsl",)),
    ("refused", ("refused",)),
)
_ENTRIES = (
    ("equal", ("equal",)),
    ("within", ("within",)),
    ("explained", ("explained",)),
    ("unchecked", ("unchecked",)),
    ("only here", ("only-here",)),
    ("endless", ("endless",)),
    ("neither", ("not-started", "wgpu-died")),
    ("no data", ("no-data",)),
    ("differs", ("differs",)),
    ("unsupported", ("unsupported",)),
    ("failed", ("crash", "too-slow")),
)


def show_corpus(out: Console, found: Sequence[Collection], *, everything: bool) -> None:
    """Print the trials that are not good, or `everything`, and then the totals."""
    for collection in found:
        for trial in collection.trials:
            if everything or not good(trial):
                _show(out, trial)
    out.print()
    out.print(_totals(found))
    for name in sorted({trial.verdict for c in found for trial in c.trials}):
        out.print(Text(f"  {name}: {VERDICTS[name].words}", "dim"), soft_wrap=True)


def _show(out: Console, trial: Trial) -> None:
    name = trial.shader if trial.entry is None else f"{trial.shader} {trial.entry}"
    style = "green" if good(trial) else "bold red"
    out.print(Text.assemble((f"{trial.verdict:12}", style), name), soft_wrap=True)
    if trial.why:
        out.print(Text(f"            {trial.why}", "dim"), soft_wrap=True)
    if trial.rerun:
        out.print(Text(f"            shown by a rerun of {trial.rerun}", "dim"), soft_wrap=True)


def _totals(found: Sequence[Collection]) -> Table:
    """A row for each folder; a column for each kind of verdict that occurs."""
    rows = [(c.folder.name or str(c.folder), _row([c])) for c in found]
    whole = _row(found)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("folder", overflow="fold")
    headings = ("modules", *(h for h, _ in _MODULES), "entries", *(h for h, _ in _ENTRIES))
    kept = [i for i, number in enumerate(whole) if number or headings[i] in ("modules", "entries")]
    for i in kept:
        table.add_column(headings[i], justify="right")
    for name, row in [*rows, *([("in all", whole)] if len(found) > 1 else [])]:
        table.add_row(name, *(f"{row[i]:,}" if row[i] else "" for i in kept))
    return table


def _row(found: Sequence[Collection]) -> list[int]:
    trials = [trial for collection in found for trial in collection.trials]

    def count(names: tuple[str, ...]) -> int:
        return sum(trial.verdict in names for trial in trials)

    modules = sum(len(collection.shaders) for collection in found)
    entries = sum(VERDICTS[trial.verdict].about == "entry" and trial.entry is not None for trial in trials)
    return [modules, *(count(v) for _, v in _MODULES), entries, *(count(v) for _, v in _ENTRIES)]


def corpus_json(found: Sequence[Collection], ok: bool) -> str:
    """One JSON document: the trials of each folder, and its counts by verdict."""
    folders: list[Entry] = [
        {
            "folder": str(collection.folder),
            "modules": len(collection.shaders),
            "verdicts": dict(collection.counts),
            "trials": [dataclasses.asdict(trial) for trial in collection.trials],
        }
        for collection in found
    ]
    return json.dumps({"tool": "bankshot", "schema": 1, "verb": "corpus", "ok": ok, "folders": folders}, indent=2)
