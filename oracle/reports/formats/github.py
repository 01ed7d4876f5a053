"""GitHub Actions: annotations beside the source, and the job summary.

GitHub shows ten annotations of a kind for each step, so the worst come first and the others are counted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ....sim.run.counters import COUNTERS
from ...errors import on_github, printable, writing
from ..protocol import AuditedCase, AuditFormat, Outcome, ReportOptions
from ..remarks import FIGURES, Entry, Remark, from_root, merged, remark_words
from ..terminal import print_command

if TYPE_CHECKING:
    from ...manifests.cases import Broken, Plan

MOST_ANNOTATIONS = 10
MOST_ROWS = 2_000  # of a summary, which may have 1 MiB
MOST_REMARKS = 50  # below the table
_MARKUP = re.compile(r"[\\`|]|\](?=[(\[])")  # of code, links and cells
WORDS = {"failed": "**fails**"}  # of outcomes, in the table
LEVELS = {"error": "error", "warning": "warning", "note": "notice"}  # as annotations call them


class Format(AuditFormat):
    name = "github"
    help = "text with annotations beside the source, which other formats but json add if GITHUB_ACTIONS is set"
    output = "annotations"

    def __init__(self, options: ReportOptions, work: Sequence[Plan], broken: Sequence[Broken]) -> None:
        self._annotates = options.stdout != "json" and (options.stdout == self.name or on_github())
        self._entries: list[Entry] = []

    @classmethod
    def enabled(cls, options: ReportOptions) -> bool:
        return True  # for the job summary

    def add(self, result: AuditedCase) -> None:
        self._entries.append(result.remarks)

    def finish(self, outcome: Outcome) -> None:
        write_summary(self._entries)
        for line in workflow_commands(self._entries) if self._annotates else ():
            print_command(line)


def workflow_commands(entries: Iterable[Entry], most: int = MOST_ANNOTATIONS) -> list[str]:
    """Lines that GitHub turns into annotations beside the source, worst first."""
    remarks = merged(entries)
    lines = [_annotation(remark) for remark in remarks[:most]]
    cut = len(remarks) - most
    if cut > 0:
        lines.append(f"::notice title=bankshot::{cut} more not shown here; the job summary and the log have them")
    return lines


def _annotation(remark: Remark) -> str:
    at = {"file": from_root(remark.file), "line": remark.line, "col": remark.column, "endColumn": remark.end_column}
    facts = {**{key: value for key, value in at.items() if value}, "title": f"bankshot: {remark.code}"}
    properties = ",".join(f"{key}={_escaped(str(value), ',:')}" for key, value in facts.items())
    return f"::{LEVELS[remark.level]} {properties}::{_escaped(remark_words(remark))}"


def _escaped(text: str, more: str = "") -> str:
    """Escape `%` and line breaks as workflow commands do, and the characters of `more`."""
    for character in "%\r\n" + more:
        text = text.replace(character, f"%{ord(character):02X}")
    return printable(text)


# ---- the job summary ---------------------------------------------------------------------------------


def write_summary(entries: Sequence[Entry]) -> None:
    """Append to the job summary, if GITHUB_STEP_SUMMARY names one."""
    target = os.environ.get("GITHUB_STEP_SUMMARY")
    if target and entries:
        with writing(f"GITHUB_STEP_SUMMARY {target}"), open(target, "a", encoding="utf-8") as file:
            file.write(summary(entries))


def summary(entries: Sequence[Entry]) -> str:
    """Markdown: the verdict, a row for each case (failures first), and the remarks, worst first."""
    unchecked = sum(entry.word == "unchecked" for entry in entries)
    failed, of = sum(not entry.ok for entry in entries) - unchecked, f"of {len(entries)} cases"
    words = [f"{count} {of} {word}" for count, word in ((failed, "failed"), (unchecked, "unchecked")) if count]
    verdict = ", ".join(words) or f"all clean, cases run: {len(entries)}"
    rows = [_row(entry) for entry in sorted(entries, key=lambda entry: entry.ok)]
    headings = ("", "kernel", *(COUNTERS[name].label for name in FIGURES), "GPU")
    lines = [f"### bankshot: {verdict}", "", _cells(headings), _cells(["---"] * len(headings)), *rows[:MOST_ROWS]]
    lines += [f"\n{len(rows) - MOST_ROWS:,} more cases not shown"] if len(rows) > MOST_ROWS else []
    remarks = merged(entries)
    lines += ["", *(f"- `{remark.code}` {_inline(remark_words(remark))}" for remark in remarks[:MOST_REMARKS])]
    lines += [f"- {len(remarks) - MOST_REMARKS:,} more"] if len(remarks) > MOST_REMARKS else []
    return "\n".join(lines) + "\n\n"


def _row(entry: Entry) -> str:
    figures = [_figure(name, entry.figures.get(name)) for name in FIGURES]
    return _cells(
        [
            "ok" if entry.ok else WORDS.get(entry.word, f"**{entry.word}**"),
            entry.title,
            *figures,
            entry.adapter or "not compared",
        ]
    )


def _figure(name: str, value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.1%}" if name == "working_invocations" else f"{value:,}"


def _cells(cells: Iterable[str]) -> str:
    return "| " + " | ".join(map(_inline, cells)) + " |"


def _inline(text: str) -> str:
    """Text as Markdown on one line, without links, code or HTML of its own."""
    return _MARKUP.sub(r"\\\g<0>", printable(text.replace("\n", "; "))).replace("&", "&amp;").replace("<", "&lt;")
