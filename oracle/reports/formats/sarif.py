"""SARIF 2.1.0: a file for code scanning."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ....sim import __version__
from ....sim.findings.table import KINDS
from ..output_file import OutputFile
from ..protocol import AuditedCase, AuditFormat, Outcome, ReportOptions
from ..remarks import CODES, LEVEL_OF, Entry, Remark, from_root, merged

if TYPE_CHECKING:
    from ...manifests.cases import Broken, Plan

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


class Format(AuditFormat):
    name = "sarif"
    help = "Write a SARIF 2.1.0 log to this file."
    output = "file"

    def __init__(self, options: ReportOptions, work: Sequence[Plan], broken: Sequence[Broken]) -> None:
        self._file = OutputFile("--sarif", options.files[self.name])
        self._entries: list[Entry] = []

    def add(self, result: AuditedCase) -> None:
        self._entries.append(result.remarks)

    def finish(self, outcome: Outcome) -> None:
        self._file.write(sarif_text(self._entries))


def sarif(entries: Iterable[Entry], version: str) -> dict[str, Any]:
    """A SARIF 2.1.0 log of one run, as code scanning services read it."""
    found = list(entries)
    remarks = merged(found)
    codes = sorted({remark.code for remark in remarks})
    driver: dict[str, Any] = {"name": "bankshot", "version": version, "rules": [_rule(code) for code in codes]}
    if page := documentation():
        driver["informationUri"] = page
    results = [_result(remark, codes.index(remark.code)) for remark in remarks]
    run: dict[str, Any] = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    if cases := [_case(entry) for entry in found if entry.outcome]:
        run["properties"] = {"cases": cases}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: str) -> dict[str, Any]:
    """What a code means, and how to allow it if it is that of a finding."""
    kind = KINDS.get(code)
    short = kind.title if kind else CODES.get(code, code.replace("-", " "))
    rule: dict[str, Any] = {"id": code, "shortDescription": {"text": short}}
    if kind is None:
        return rule
    allowed = f"To accept it, put `// bankshot: allow({code}) because …` on its line or the line before."
    words = f"{kind.title}. Evidence: {kind.evidence}." + (f" {allowed}" if kind.suppressible else "")
    rule |= {"fullDescription": {"text": f"{kind.title}."}, "help": {"text": words, "markdown": words}}
    rule["defaultConfiguration"] = {"level": LEVEL_OF[kind.severity]}
    if page := documentation():
        rule["helpUri"] = f"{page.rstrip('/')}/findings.html#{code}"
    return rule


def documentation() -> str:
    """The address of the documentation, if the package names one."""
    with suppress(PackageNotFoundError):
        for url in metadata("bankshot").get_all("Project-URL") or ():
            label, _, address = url.partition(", ")
            if label == "Documentation":
                return address
    return ""


def _case(entry: Entry) -> dict[str, Any]:
    return {"case": entry.title, "outcome": entry.outcome, "compared": list(entry.compared)}


def sarif_text(entries: Iterable[Entry]) -> str:
    """The text of a SARIF file."""
    return f"{json.dumps(sarif(entries, __version__), indent=2)}\n"


def _result(remark: Remark, rule: int) -> dict[str, Any]:
    more = f" (in {remark.cases} cases)" if remark.cases > 1 else ""
    result: dict[str, Any] = {
        "ruleId": remark.code,
        "ruleIndex": rule,
        "level": remark.level,
        "message": {"text": remark.message + more + (f"\nhint: {remark.hint}" if remark.hint else "")},
        "locations": [_location(remark.file, remark.line, remark.column, remark.end_column)],
    }
    if remark.also:
        result["relatedLocations"] = [
            {**_location(file, line, 0), "message": {"text": message}} for message, file, line in remark.also
        ]
    return result


def _location(file: str, line: int, column: int, end: int = 0) -> dict[str, Any]:
    region: Mapping[str, int] = {
        "startLine": line, **({"startColumn": column} if column else {}), **({"endColumn": end} if end else {})
    }  # fmt: skip
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(file)}}
    return {"physicalLocation": {**physical, **({"region": region} if line else {})}}


def _uri(file: str) -> str:
    """A reference relative to the root of the repository, or the whole address of a file outside it."""
    path = from_root(file)
    return Path(path).as_uri() if Path(path).is_absolute() else quote(path)
