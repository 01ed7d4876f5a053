"""SARIF 2.1.0: a file for code scanning."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....sim import __version__
from ....sim.disk_cache import write
from ...errors import UsageError
from ..protocol import AuditedCase, AuditFormat, Outcome, ReportOptions
from ..remarks import CODES, ERROR, Entry, Remark, from_root, merged

if TYPE_CHECKING:
    from ...manifests.cases import Broken, Plan

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


class Format(AuditFormat):
    name = "sarif"
    help = "Write a SARIF 2.1.0 log to this file."
    output = "file"

    def __init__(self, options: ReportOptions, work: Sequence[Plan], broken: Sequence[Broken]) -> None:
        self._file: Path = options.files[self.name]
        self._entries: list[Entry] = []

    def add(self, result: AuditedCase) -> None:
        self._entries.append(result.remarks)

    def finish(self, outcome: Outcome) -> None:
        write_sarif(self._file, self._entries)


def sarif(entries: Iterable[Entry], version: str) -> dict[str, Any]:
    """A SARIF 2.1.0 log of one run, as code scanning services read it."""
    found = list(entries)
    remarks = merged(found)
    codes = sorted({remark.code for remark in remarks})
    driver = {
        "name": "bankshot",
        "version": version,
        "rules": [
            {"id": code, "shortDescription": {"text": CODES.get(code, code.replace("-", " "))}} for code in codes
        ],
    }
    results = [_result(remark, codes.index(remark.code)) for remark in remarks]
    run: dict[str, Any] = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    if cases := [_case(entry) for entry in found if entry.outcome]:
        run["properties"] = {"cases": cases}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _case(entry: Entry) -> dict[str, Any]:
    return {"case": entry.title, "outcome": entry.outcome, "compared": list(entry.compared)}


def write_sarif(path: Path, entries: Iterable[Entry]) -> None:
    """Write a SARIF file. Raises `UsageError` if that fails."""
    try:
        write(path, f"{json.dumps(sarif(entries, __version__), indent=2)}\n".encode())
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


def _result(remark: Remark, rule: int) -> dict[str, Any]:
    more = f" (in {remark.cases} cases)" if remark.cases > 1 else ""
    result: dict[str, Any] = {
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
    physical: dict[str, Any] = {"artifactLocation": {"uri": from_root(file)}}
    return {"physicalLocation": {**physical, **({"region": region} if line else {})}}
