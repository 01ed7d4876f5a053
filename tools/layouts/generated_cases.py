"""The compute entry points of any shader that use workgroup memory, with generated inputs."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import bankshot
from bankshot import WgslError
from bankshot.oracle.corpus.embedded import Shader
from bankshot.oracle.corpus.working_run import NoInputs, working_run
from bankshot.oracle.errors import UsageError
from bankshot.oracle.guesses import invented_inputs
from bankshot.oracle.manifests.cases import Request, plans
from bankshot.oracle.manifests.manifest import Case
from bankshot.sim.wgsl.check.pipeline import GRANTED
from bankshot.sim.wgsl.typed import Function, Module

GRIDS = {0: (), 1: (2,), 2: (2, 2), 3: (2, 2, 1)}  # workgroups, by the number of axes whose ids a shader reads


class LeftOut(Exception):
    """The reason why an entry point is not compared."""


def cases(
    shader: Shader, folder: Path, left_out: Counter[str], defines: Mapping[str, str] | None = None
) -> Iterator[tuple[str, Case]]:
    """Yield the entry points by name; those without inputs are counted by reason. `folder`: for files."""
    try:
        module = _checked(shader.text, defines or {})
    except WgslError:
        left_out["not valid"] += 1
        return
    file = Path(tempfile.mkdtemp(dir=folder)) / "shader.wgsl"
    file.write_text(module.source.text, encoding="utf-8")
    for function in module.compute_entry_points:
        try:
            yield f"{shader.name}:{function.name}", _case(module, function, file)
        except (LeftOut, NoInputs) as reason:
            left_out[str(reason)] += 1
        except UsageError:
            left_out["no inputs can be generated"] += 1
        except WgslError as error:
            left_out[error.diagnostics[0].code] += 1


def _checked(text: str, defines: Mapping[str, str]) -> Module:
    """Check a text, with the extensions that it needs, as hosts prepend them."""
    try:
        return bankshot.check(text, uniformity="warning", defines=defines)
    except WgslError as error:
        needed = re.search(r"needs the extension '(\w+)'", error.diagnostics[0].message)
        if needed is None:
            raise
        return _checked(f"enable {needed[1]};\n{text}", defines)


def _case(module: Module, function: Function, file: Path) -> Case:
    """An entry point with inputs with which it works. Raises `LeftOut` and `NoInputs`."""
    overrides = invented_inputs.override_values(module)
    pipeline = module.pipeline(function.name, {**overrides}, GRANTED)
    if not any(variable.space == "workgroup" for variable in pipeline.store_types):
        raise LeftOut("no workgroup memory")
    grid = invented_inputs.grid(function, GRIDS)
    given = working_run(module, function, grid, overrides).given
    (plan,) = plans([file], Request(grid=grid, entry=function.name, arrays=given, overrides=overrides))
    return plan.case(plan.shapes[0])
