"""`bankshot check`: the front end's diagnostics for shaders."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import click

from ...sim.fast_dataclass import frozen
from ..exit_codes import CLEAN, FOUND, WRONG_USE
from .options import INPUT, JSON, PreprocessingOptions, defines_of, preprocessing_options

if TYPE_CHECKING:
    from ...sim.wgsl.diagnostics import Diagnostic


@click.command()
@click.argument("files", nargs=-1, required=True, type=INPUT, metavar="FILE.wgsl...")
@preprocessing_options
@click.option(
    "--portability", is_flag=True, help="Also note what other implementations reject, or support only on request."
)
@JSON
def check(
    files: tuple[Path, ...], as_json: bool, portability: bool, **preprocessing: Unpack[PreprocessingOptions]
) -> None:
    """Check shaders as a WebGPU implementation would, and list their entry points.

    With --portability a warning (what wgpu rejects) makes the exit code 1; what a host must request is information.
    """
    tally = check_files(files, as_json, preprocessing, portability)
    sys.exit(WRONG_USE if tally.wrong else FOUND if tally.noted else CLEAN)


class EntryPointEntry(TypedDict):
    """An entry point in the JSON document."""

    name: str
    stage: str


class FileEntry(TypedDict):
    """A file in the JSON document."""

    file: str
    ok: bool
    entry_points: list[EntryPointEntry]
    diagnostics: list[str]
    portability: list[dict[str, Any]]


@frozen
class Tally:
    """How many files are wrong, and how many files have portability warnings."""

    wrong: int
    noted: int


def check_files(
    files: Sequence[Path], as_json: bool, preprocessing: PreprocessingOptions, portability: bool = False
) -> Tally:
    """Check each file and print the diagnostics, as one JSON document if `as_json`."""
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


def _check(file: Path, portability: bool, preprocessing: PreprocessingOptions) -> FileEntry:
    from ... import sim
    from ...sim.wgsl.analysis.portability import with_acceptance
    from ...sim.wgsl.diagnostics import WgslError

    entry = FileEntry(file=str(file), ok=True, entry_points=[], diagnostics=[], portability=[])
    try:
        module = sim.check(
            file,
            defines=defines_of(preprocessing["defines"]),
            include_dirs=preprocessing["include_dirs"],
            preprocess=preprocessing["preprocess"],
        )
    except WgslError as error:
        found = [with_acceptance(d) if portability else d for d in error.diagnostics]
        return {**entry, "ok": False, "diagnostics": [d.render() for d in found]}
    points = [EntryPointEntry(name=f.name, stage=f.stage or "") for f in module.entry_points]
    notes = [_note(d) for d in sim.portability(module)] if portability else []
    return {**entry, "entry_points": points, "diagnostics": [d.render() for d in module.warnings], "portability": notes}


def _note(note: Diagnostic) -> dict[str, Any]:
    place = note.span.place._asdict() if note.span else {}
    return {"code": note.code, "severity": note.severity, **place, "text": note.render()}


def _points(points: Sequence[EntryPointEntry]) -> str:
    if not points:
        return "no entry point"
    return ", ".join(f"{point['stage']} entry point {point['name']}" for point in points)
