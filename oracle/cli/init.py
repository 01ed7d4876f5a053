"""`bankshot init`: write a manifest for a shader that has none."""

from __future__ import annotations

import keyword
import os
from pathlib import Path
from typing import Unpack

import click

from ..errors import UsageError, writing
from .options import INPUT, JSON, PreprocessingOptions, defines_of, preprocessing_options


@click.command()
@click.argument("file", type=INPUT, metavar="FILE.wgsl")
@click.option("--entry", metavar="NAME", help="Entry point, if the shader has several.")
@click.option(
    "-o", "out", type=click.Path(path_type=Path, dir_okay=False), metavar="OUT.toml",
    help="The manifest to write; by default beside the shader, with its name.",
)  # fmt: skip
@preprocessing_options
@JSON
def init(file: Path, entry: str | None, out: Path | None, as_json: bool, **more: Unpack[PreprocessingOptions]) -> None:
    """Write a manifest for a shader, and a stub of its reference.

    Sizes, dispatch and contents come from trial runs in the simulator. What these cannot tell is a question in the
    manifest, which `bankshot audit` repeats.
    """
    from ...sim.front_end import read
    from ..guesses.manifest_text import manifest_text, reference_text
    from ..guesses.new_manifest import draft
    from ..guesses.trial import with_edges_that_run
    from ..manifests.reflection import entry_point
    from ..manifests.rendering_stages import check_for_compute
    from ..reports.json_document import document

    defines = defines_of(more["defines"])
    if not file.is_file():
        raise UsageError(f"{file}: there is no such file")
    module = check_for_compute(
        read(file, defines=defines, include_dirs=more["include_dirs"], preprocess=more["preprocess"])
    )
    points = module.compute_entry_points
    function = entry_point(module, entry)
    target = out or file.with_name(f"{file.stem}.toml" if len(points) == 1 else f"{file.stem}_{function.name}.toml")
    stub = target.with_name(f"{target.stem}_reference.py")
    for each in (target, stub):
        if os.path.lexists(each):
            raise UsageError(f"{each}: exists already; choose another name with -o, or delete it")
    preprocessing = {
        "defines": defines,
        "include_dirs": [_relative(folder, target) for folder in more["include_dirs"]],
        "preprocess": more["preprocess"],
    }
    made = with_edges_that_run(draft(module, function.name))
    name = "expected" if keyword.iskeyword(function.name) else function.name
    _write(target, manifest_text(made, _relative(file, target), preprocessing, f"{stub.name}:{name}"))
    _write(stub, reference_text(made, target.name, name))
    if as_json:
        entry_written = {"manifest": str(target), "reference": str(stub), "questions": made.questions}
        click.echo(document("init", [entry_written], ok=True))
        return
    asked = len(made.questions)
    click.echo(f"{target}: written, with {asked} question{'' if asked == 1 else 's'} to answer")
    click.echo(f"{stub}: compute {', '.join(made.outputs) or 'the outputs'} there")
    click.echo(f"next: bankshot audit {target}")


def _relative(path: Path, target: Path) -> str:
    return Path(os.path.relpath(path, target.parent)).as_posix()


def _write(path: Path, text: str) -> None:
    with writing(path), path.open("x", encoding="utf-8") as file:
        file.write(text)
