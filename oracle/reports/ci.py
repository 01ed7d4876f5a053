"""Audits for machines that check changes: GitHub's annotations and job summary, and SARIF.

GitHub shows ten annotations of a kind for each step, so the worst come first and what was cut is counted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...sim.run.counters import COUNTERS
from ..errors import UsageError
from .remarks import CODES, ERROR, FIGURES, Entry, Remark, merged

MOST_ANNOTATIONS = 10
MOST_ROWS = 2_000  # of a summary, which may have 1 MiB
MOST_REMARKS = 50  # below the table
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"error": "error", "warning": "warning", "note": "notice"}  # as annotations call them


def on_github() -> bool:
    return os.environ.get("GITHUB_ACTIONS") == "true"


def github_lines(entries: Iterable[Entry], most: int = MOST_ANNOTATIONS) -> list[str]:
    """Lines that GitHub turns into notes beside the source."""
    remarks = merged(entries)
    lines = [_annotation(remark) for remark in remarks[:most]]
    cut = len(remarks) - most
    if cut > 0:
        lines.append(f"::notice title=bankshot::{cut} more not shown here; the job summary and the log have them")
    return lines


def _annotation(remark: Remark) -> str:
    at = {"file": _from_root(remark.file), "line": remark.line, "col": remark.column}
    facts = {**{key: value for key, value in at.items() if value}, "title": f"bankshot: {remark.code}"}
    properties = ",".join(f"{key}={_escaped(str(value), ',:')}" for key, value in facts.items())
    return f"::{LEVELS[remark.level]} {properties}::{_escaped(words(remark))}"


def _escaped(text: str, more: str = "") -> str:
    """As workflow commands have it: % and line breaks, and in properties , and : too."""
    for character in "%\r\n" + more:
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def words(remark: Remark) -> str:
    """The message, with the line it is about: a log shows nothing else."""
    at = f"{Path(remark.file).name}:{remark.line}: " if remark.line else ""
    more = f" (in {remark.cases} cases)" if remark.cases > 1 else ""
    also = "".join(f"\n{Path(file).name}:{line}: {message}" for message, file, line in remark.also)
    return f"{at}{remark.message}{more}{also}"


def _from_root(file: str) -> str:
    """As seen from the repository's root, where that holds the file."""
    root = Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd()).resolve()
    path = Path(file).resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else Path(file).as_posix()


# ---- the job summary ---------------------------------------------------------------------------------


def write_summary(entries: Sequence[Entry]) -> None:
    """Add to the job summary, where there is one."""
    target = os.environ.get("GITHUB_STEP_SUMMARY")
    if target and entries:
        with open(target, "a", encoding="utf-8") as file:
            file.write(summary(entries))


def summary(entries: Sequence[Entry]) -> str:
    """Markdown: a verdict, a row for each case (those that failed first), and the remarks, worst first."""
    bad = sum(not entry.ok for entry in entries)
    verdict = f"{bad} of {len(entries)} cases failed" if bad else f"all clean, cases run: {len(entries)}"
    rows = [_row(entry) for entry in sorted(entries, key=lambda entry: entry.ok)]
    headings = ("", "kernel", *(COUNTERS[name].label for name in FIGURES), "GPU")
    lines = [f"### bankshot: {verdict}", "", _cells(headings), _cells(["---"] * len(headings)), *rows[:MOST_ROWS]]
    lines += [f"\n{len(rows) - MOST_ROWS:,} more cases not shown"] if len(rows) > MOST_ROWS else []
    remarks = merged(entries)
    lines += ["", *(f"- `{remark.code}` {_inline(words(remark))}" for remark in remarks[:MOST_REMARKS])]
    lines += [f"- {len(remarks) - MOST_REMARKS:,} more"] if len(remarks) > MOST_REMARKS else []
    return "\n".join(lines) + "\n\n"


def _row(entry: Entry) -> str:
    figures = [_figure(name, entry.figures.get(name)) for name in FIGURES]
    return _cells(["ok" if entry.ok else "**fails**", entry.title, *figures, entry.adapter or "not compared"])


def _figure(name: str, value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.1%}" if name == "thread_utilization" else f"{value:,}"


def _cells(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _inline(text: str) -> str:
    return text.replace("\n", "; ").replace("<", "&lt;")


# ---- SARIF -------------------------------------------------------------------------------------------


def sarif(entries: Iterable[Entry], version: str) -> dict[str, Any]:
    """A SARIF 2.1.0 log of one run, as code scanning reads it."""
    remarks = merged(entries)
    codes = sorted({remark.code for remark in remarks})
    driver = {
        "name": "bankshot",
        "version": version,
        "rules": [
            {"id": code, "shortDescription": {"text": CODES.get(code, code.replace("-", " "))}} for code in codes
        ],
    }
    results = [_result(remark, codes.index(remark.code)) for remark in remarks]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def write_sarif(path: Path, entries: Iterable[Entry]) -> None:
    """Raises `UsageError` where that cannot be."""
    from ... import sim

    try:
        path.write_text(json.dumps(sarif(entries, sim.__version__), indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error}") from None


def _result(remark: Remark, rule: int) -> dict[str, Any]:
    more = f" (in {remark.cases} cases)" if remark.cases > 1 else ""
    result = {
        "ruleId": remark.code,
        "ruleIndex": rule,
        "level": "error" if remark.level == ERROR else remark.level,
        "message": {"text": remark.message + more},
        "locations": [_location(remark.file, remark.line, remark.column)],
    }
    if remark.also:
        result["relatedLocations"] = [
            {**_location(file, line, 0), "message": {"text": message}} for message, file, line in remark.also
        ]
    return result


def _location(file: str, line: int, column: int) -> dict[str, Any]:
    region: Mapping[str, int] = {"startLine": line, **({"startColumn": column} if column else {})}
    physical: dict[str, Any] = {"artifactLocation": {"uri": _from_root(file)}}
    return {"physicalLocation": {**physical, **({"region": region} if line else {})}}
