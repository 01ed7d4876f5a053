"""`bankshot check`: what the front end says of shaders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from sim.wgsl.diagnostics import WgslError


def check_files(files: Sequence[Path], as_json: bool, **preprocessing: Any) -> int:
    """Check every file and report; the number of those that are wrong. `preprocessing`: see `sim.check`."""
    entries = [_check(file, preprocessing) for file in files]
    if as_json:
        click.echo(json.dumps({"tool": "bankshot", "schema": 1, "verb": "check", "files": entries}, indent=2))
    else:
        for entry in entries:
            for text in entry["diagnostics"]:
                click.echo(text, err=True)
            if entry["ok"]:
                click.echo(f"{entry['file']}: ok, {_points(entry['entry_points'])}")
    return sum(not entry["ok"] for entry in entries)


def _check(file: Path, preprocessing: dict[str, Any]) -> dict[str, Any]:
    import sim

    entry: dict[str, Any] = {"file": str(file), "ok": True, "entry_points": [], "diagnostics": []}
    try:
        module = sim.check(file, **preprocessing)
    except WgslError as error:
        return {**entry, "ok": False, "diagnostics": [d.render() for d in error.diagnostics]}
    points = [{"name": f.name, "stage": f.stage} for f in module.entry_points]
    return {**entry, "entry_points": points, "diagnostics": [d.render() for d in module.warnings]}


def _points(points: Sequence[dict[str, str]]) -> str:
    if not points:
        return "no entry point"
    return ", ".join(f"{point['stage']} entry point {point['name']}" for point in points)
