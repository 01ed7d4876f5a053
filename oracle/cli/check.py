"""`bankshot check`: what the front end says of shaders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ...sim.fast_dataclass import frozen
from ...sim.wgsl.analysis.portability import with_acceptance
from ...sim.wgsl.diagnostics import Diagnostic, WgslError


@frozen
class Tally:
    """How many files are wrong, and how many more have portability warnings."""

    wrong: int
    noted: int


def check_files(files: Sequence[Path], as_json: bool, portability: bool = False, **preprocessing: Any) -> Tally:
    """Check every file and report. `portability`: with notes; `preprocessing`: see `bankshot.check`."""
    entries = [_check(file, portability, preprocessing) for file in files]
    if as_json:
        click.echo(json.dumps({"tool": "bankshot", "schema": 1, "verb": "check", "files": entries}, indent=2))
    else:
        for entry in entries:
            for text in (*entry["diagnostics"], *(note["text"] for note in entry["portability"])):
                click.echo(text, err=True)
            if entry["ok"]:
                click.echo(f"{entry['file']}: ok, {_points(entry['entry_points'])}")
    noted = sum(any(note["severity"] == "warning" for note in entry["portability"]) for entry in entries)
    return Tally(sum(not entry["ok"] for entry in entries), noted)


def _check(file: Path, portability: bool, preprocessing: dict[str, Any]) -> dict[str, Any]:
    from ... import sim

    entry: dict[str, Any] = {"file": str(file), "ok": True, "entry_points": [], "diagnostics": [], "portability": []}
    try:
        module = sim.check(file, **preprocessing)
    except WgslError as error:
        found = [with_acceptance(d) if portability else d for d in error.diagnostics]
        return {**entry, "ok": False, "diagnostics": [d.render() for d in found]}
    points = [{"name": f.name, "stage": f.stage} for f in module.entry_points]
    notes = [_note(d) for d in sim.portability(module)] if portability else []
    return {**entry, "entry_points": points, "diagnostics": [d.render() for d in module.warnings], "portability": notes}


def _note(note: Diagnostic) -> dict[str, Any]:
    place = note.span.place._asdict() if note.span else {}
    return {"code": note.code, "severity": note.severity, **place, "text": note.render()}


def _points(points: Sequence[dict[str, str]]) -> str:
    if not points:
        return "no entry point"
    return ", ".join(f"{point['stage']} entry point {point['name']}" for point in points)
