"""Trial runs of a draft at the sizes around its default ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..manifests.dimension_arithmetic import evaluate
from .array_sizes import measure
from .new_manifest import MOST_GROUPS, Draft


def with_edges_that_run(made: Draft) -> Draft:
    """Leave out the sizes at which an access is out of bounds though no id is compared with the size, with a question:
    the host may never pass them. Where ids are compared with it, such an access is a fault of the kernel, and stays."""
    edges: dict[str, list[int]] = {}
    questions = list(made.questions)
    for name, sizes in made.edges.items():
        good = [size for size in sizes if name in made.guarded or _runs(made, {**made.dims, name: size})]
        edges[name] = good
        if left := [str(size) for size in sizes if size not in good]:
            questions.append(f"may {name} be {' or '.join(left)}? the kernel then accesses elements out of bounds")
    return replace(made, edges=edges, questions=questions)


def _runs(made: Draft, dims: Mapping[str, int]) -> bool:
    """Whether every access stays within the arrays that the manifest gives these sizes."""
    grid = tuple(evaluate(each, dims) for each in made.dispatch)
    if min(grid) < 1 or max(grid) > MOST_GROUPS:
        return False
    run = measure(made.pipeline, made.uses, grid, dims, made.contents, {"overrides": made.overrides})
    sizes = {variable: 1 for variable in run.elements}
    for variable, extent in made.extents.items():
        for factor in extent.factors:
            sizes[variable] *= evaluate(factor, dims)
    inside = all(count <= sizes[variable] for variable, count in run.elements.items())
    return run.ends and run.inside and inside
