"""`bankshot check`: the front end's diagnostics for shaders."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import click

from ...sim import __version__
from ...sim.fast_dataclass import frozen
from ..errors import UsageError, on_github
from ..exit_codes import CLEAN, FOUND, WRONG_USE
from .options import INPUT, JSON, PreprocessingOptions, defines_of, preprocessing_options

if TYPE_CHECKING:
    from ...sim.wgsl.diagnostics import Diagnostic
    from ..reports.remarks import Entry

    Diagnostics = tuple[Path, Sequence[Diagnostic]]  # of a file


FORMATS = ("text", "json", "github", "sarif")


@click.command()
@click.argument("paths", nargs=-1, required=True, type=INPUT, metavar="PATH...")
@preprocessing_options
@click.option(
    "--portability", is_flag=True, help="Also note what other implementations reject, or support only on request."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="What stdout gets: text; json, as --json; github, text with annotations; or sarif, a SARIF 2.1.0 log.",
)
@JSON
def check(
    paths: tuple[Path, ...], as_json: bool, portability: bool, form: str, **preprocessing: Unpack[PreprocessingOptions]
) -> None:
    """Check shaders as a WebGPU implementation would, and list their entry points.

    PATHs are .wgsl files, and folders, in which every .wgsl file is checked.

    With --portability a warning (what wgpu rejects) makes the exit code 1; what a host must request is information.
    """
    tally = check_files(shaders_of(paths), "json" if as_json else form, preprocessing, portability)
    sys.exit(WRONG_USE if tally.wrong else FOUND if tally.noted else CLEAN)


def shaders_of(paths: Sequence[Path]) -> list[Path]:
    """The files, and the shaders of the folders. Raises `UsageError` for a folder without one."""
    found: list[Path] = []
    for path in paths:
        inside = sorted(path.rglob("*.wgsl")) if path.is_dir() else [path]
        if not inside:
            raise UsageError(f"{path}: holds no .wgsl file")
        found += inside
    return found


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
    files: Sequence[Path], form: str, preprocessing: PreprocessingOptions, portability: bool = False
) -> Tally:
    """Check each file and print the diagnostics, in one of `FORMATS`."""
    found: list[Diagnostics] = []
    entries = [_check(file, portability, preprocessing, found) for file in files]
    if form == "json":
        click.echo(json.dumps({"tool": "bankshot", "schema": 1, "verb": "check", "files": entries}, indent=2))
    elif form == "sarif":
        from ..reports.formats.sarif import sarif

        click.echo(json.dumps(sarif(_remarks(found), __version__), indent=2))
    else:
        for entry in entries:
            for text in (*entry["diagnostics"], *(note["text"] for note in entry["portability"])):
                click.echo(text, err=True)
            if entry["ok"]:
                click.echo(f"{entry['file']}: ok, {_points(entry['entry_points'])}")
        if form == "github" or on_github():
            from ..reports.formats.github import workflow_commands
            from ..reports.terminal import print_command

            for line in workflow_commands(_remarks(found)):
                print_command(line)
    noted = sum(any(note["severity"] == "warning" for note in entry["portability"]) for entry in entries)
    return Tally(sum(not entry["ok"] for entry in entries), noted)


def _remarks(found: Sequence[Diagnostics]) -> list[Entry]:
    """The diagnostics of each file, for annotations and SARIF."""
    from ..reports.remarks import entry_of_diagnostics

    return [entry_of_diagnostics(str(file), diagnostics) for file, diagnostics in found]


def _check(file: Path, portability: bool, preprocessing: PreprocessingOptions, kept: list[Diagnostics]) -> FileEntry:
    """Check a file, and keep its diagnostics."""
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
        kept.append((file, found))
        return {**entry, "ok": False, "diagnostics": [d.render() for d in found]}
    points = [EntryPointEntry(name=f.name, stage=f.stage or "") for f in module.entry_points]
    noted = list(sim.portability(module)) if portability else []
    kept.append((file, [*module.warnings, *noted]))
    notes = [_note(d) for d in noted]
    return {**entry, "entry_points": points, "diagnostics": [d.render() for d in module.warnings], "portability": notes}


def _note(note: Diagnostic) -> dict[str, Any]:
    place = note.span.place._asdict() if note.span else {}
    return {"code": note.code, "severity": note.severity, **place, "text": note.render()}


def _points(points: Sequence[EntryPointEntry]) -> str:
    if not points:
        return "no entry point"
    return ", ".join(f"{point['stage']} entry point {point['name']}" for point in points)
