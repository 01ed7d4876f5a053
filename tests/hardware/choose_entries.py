"""Choose entry points of other repositories, and inputs with which they can be timed.

`python -m tests.hardware.choose_entries FILE.json FOLDER=OWNER/NAME@COMMIT…` tries compute entry points with invented
inputs, in a grid of thousands of workgroups. It keeps those that stay in bounds, end and change an output in the
simulator: on a GPU, a loop without end may hang the machine. `measure_times --entries` reads the file, which has the
shaders' texts; tables do not.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import bankshot
from bankshot.oracle.corpus.corpus_survey import collect
from bankshot.oracle.corpus.embedded import Shader
from bankshot.oracle.corpus.working_run import NoInputs, working_run
from bankshot.oracle.errors import UsageError
from bankshot.oracle.guesses import invented_inputs
from bankshot.sim.wgsl import types as t
from bankshot.sim.wgsl.check.pipeline import GRANTED
from bankshot.sim.wgsl.diagnostics import WgslError
from bankshot.sim.wgsl.typed import Function, Module

LARGE = {0: (), 1: (2048,), 2: (64, 32), 3: (16, 16, 8)}  # workgroups, by the number of axes that the shader reads
SMALL = {0: (), 1: (128,), 2: (16, 8), 3: (8, 4, 4)}
LONG = 1 << 20  # elements of runtime-sized arrays beside a large grid


def choices(shader: Shader) -> Iterator[dict[str, Any]]:
    """Yield what `measure_times` needs of each entry point that can be timed."""
    try:
        module = bankshot.check(shader.text, uniformity="warning")
    except WgslError:
        return
    for function in module.compute_entry_points:
        try:
            chosen = choice(module, function)
        except (UsageError, WgslError) as error:
            print(f"{shader.name}:{function.name}: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        if chosen is not None:
            yield {**chosen, "path": shader.name, "entry": function.name, "text": shader.text}


def choice(module: Module, function: Function) -> dict[str, Any] | None:
    """The first grid and recipe that work, large ones first; None if none does, or if there are textures."""
    overrides = invented_inputs.override_values(module)
    pipeline = module.pipeline(function.name, {**overrides}, GRANTED)
    if any(isinstance(type_, t.Texture | t.Sampler) for type_ in pipeline.store_types.values()):
        return None
    for grids, tail in ((LARGE, LONG), (SMALL, None)):
        grid = invented_inputs.grid(function, grids)
        recipes = [each if tail is None else replace(each, tail=tail) for each in invented_inputs.RECIPES]
        try:
            recipe = working_run(module, function, grid, overrides, recipes=recipes).recipe
        except NoInputs:
            continue
        return {"grid": grid, "recipe": recipes.index(recipe), "tail": recipe.tail, "overrides": overrides}
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("folders", nargs="+", metavar="FOLDER=OWNER/NAME@COMMIT")
    parser.add_argument("--every", type=int, default=1, help="only every N-th shader of a folder")
    parser.add_argument("--embedded", action="store_true", help="also search the string literals of other languages")
    args = parser.parse_args()
    found: list[dict[str, Any]] = []
    for text in args.folders:
        folder, _, repo = text.partition("=")
        for collection in collect([Path(folder)], args.embedded):
            for shader in collection.shaders[:: args.every]:
                for chosen in choices(shader):
                    path = Path(chosen["path"]).relative_to(folder).as_posix()
                    found.append({**chosen, "path": path, "repo": repo})
    args.file.write_text(json.dumps(found), encoding="utf-8")
    print(f"{args.file}: {len(found)} entry points")


if __name__ == "__main__":
    main()
