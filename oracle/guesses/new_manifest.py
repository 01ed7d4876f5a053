"""A manifest for a shader that has none, found by running the shader.

`draft` tries sizes and contents until the shader stays in bounds, ends, and changes an output. What no run can tell is
a question in the manifest, which every audit repeats.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from math import ceil, prod
from typing import Any

from ...sim.bindings.binding import scalars
from ...sim.fast_dataclass import entity, frozen
from ...sim.wgsl import types as t
from ...sim.wgsl.check.pipeline import GRANTED
from ...sim.wgsl.typed import Module, Pipeline, Variable
from ..errors import UsageError
from ..manifests.id_axes import id_axes
from ..manifests.reflection import may_write
from . import invented_inputs
from .array_sizes import CONTENTS, FRACTION, Contents, Extent, Measured, extent, measure
from .index_forms import number_of
from .size_uses import AXES, SizeUses, member_name, numbers_of, size_uses

MOST_DIMS = 8
MOST_GROUPS = 65_535  # along an axis, in WebGPU
MOST_INVOCATIONS = 1 << 20  # of a trial run
PATIENCE = 8.0  # seconds for trial runs
_LOOSE = 16  # the step of a size that is compared with no id
_SMALL = 4  # that step where there are many sizes
_GROUPS = 3  # workgroups along an axis whose ids are compared with nothing


@frozen
class Sizes:
    """How to choose sizes. `of(step, number)`: that of the `number`-th dim, of which a workgroup covers `step`, and
    another one. `words`: what these sizes have in common, where it limits them."""

    words: str
    of: Callable[[int, int], tuple[int, int]]


# From those that reveal most: unequal sizes that are no multiples of anything; last, those that cannot go wrong.
SIZES = (
    Sizes("", lambda step, number: (2 * step + 3 + 2 * number, 3 * step + 5 + 2 * number)),
    Sizes("multiples of the tiles", lambda step, number: ((2 + number) * step, (4 + 2 * number) * step)),
    Sizes("multiples of 64", lambda step, number: (64 * (1 + number), 64 * (2 + 2 * number))),
    Sizes("equal multiples of 64", lambda step, number: (64, 128)),
    Sizes("multiples of 256", lambda step, number: (256, 512)),
    Sizes("small", lambda step, number: (4, 8)),
    Sizes("1", lambda step, number: (1, 2)),
)


@entity
class Draft:
    """What a manifest needs. `dims`: default sizes; `extents`: of the runtime-sized arrays; `edges`: by dim, sizes to
    add; `questions`: what no run can tell."""

    pipeline: Pipeline
    uses: SizeUses
    contents: Contents
    overrides: dict[str, Any]
    dims: dict[str, int]
    dispatch: list[str | int]
    extents: dict[Variable, Extent]
    guarded: dict[str, int] = field(default_factory=dict[str, int])
    edges: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    questions: list[str] = field(default_factory=list[str])

    @property
    def outputs(self) -> list[str]:
        """The bindings that the kernel may write."""
        return may_write(self.pipeline)


def draft(module: Module, entry: str) -> Draft:
    """Find sizes, a dispatch and contents for an entry point. Raises `WgslError`, `UsageError`."""
    overrides = invented_inputs.override_values(module)
    pipeline = module.pipeline(entry, {**overrides}, GRANTED)
    uses = size_uses(pipeline)
    dispatch, steps = _dispatch(pipeline, uses)
    names = [*uses.names.values(), *(name for name in dispatch if str(name).startswith("groups_"))]
    best, contents, words = _search(pipeline, uses, dispatch, steps, [str(name) for name in names], overrides)
    if not best[0].elements.keys() >= _sized(pipeline, uses):
        raise UsageError(f"{module.source.name}: {entry} does not end with any sizes tried; write its manifest by hand")
    extents = {variable: extent(best, variable, steps, uses.strides.get(variable, {})) for variable in best[0].elements}
    made = Draft(pipeline, uses, contents, overrides, dict(best[0].dims), dispatch, extents, steps)
    made.edges = {name: _edges(name, best[0].dims[name], steps) for name in uses.names.values()}
    made.questions += _questions(made, best[0], words)
    return made


def _sized(pipeline: Pipeline, uses: SizeUses) -> set[Variable]:
    """The variables whose sizes a run must tell."""
    types = {v: each for v, each in pipeline.store_types.items() if not isinstance(each, t.Texture | t.Sampler)}
    return {v for v, type_ in types.items() if not t.has_fixed_footprint(type_)} - uses.lengths


def _dispatch(pipeline: Pipeline, uses: SizeUses) -> tuple[list[str | int], dict[str, int]]:
    """The workgroups of each axis, and how many elements of a dim a workgroup covers."""
    dispatch: list[str | int] = []
    steps: dict[str, int] = {}
    used = id_axes(pipeline.entry)
    for axis in range(3):
        bound = uses.bounds.get(axis)
        text = None if bound is None else uses.text(bound.form, bound.step)
        constant = None if bound is None else number_of(bound.form)
        if bound is not None and text is not None:
            dispatch.append(text)
            if len(names := uses.dims_of(bound.form)) == 1:
                factor = max(bound.form.values())
                steps[names[0]] = max(1, ceil(bound.step / factor))
        elif bound is not None and constant is not None and constant > 1:
            dispatch.append(max(1, ceil(constant / bound.step)))
        else:
            dispatch.append(f"groups_{AXES[axis]}" if axis in used and axis not in uses.flat else 1)
    return dispatch, steps


def _search(
    pipeline: Pipeline,
    uses: SizeUses,
    dispatch: list[str | int],
    steps: Mapping[str, int],
    names: list[str],
    overrides: Mapping[str, Any],
) -> tuple[list[Measured], Contents, str]:
    """Measure with sizes and contents until a run has no fault; return the best, with one run more for each dim."""
    found: tuple[Measured, Sizes, Contents] | None = None
    start = time.monotonic()
    for contents in CONTENTS:
        for sizes in SIZES:
            if found and time.monotonic() - start > PATIENCE:
                break
            run = _measured(pipeline, uses, dispatch, _chosen(names, steps, sizes, None), contents, overrides)
            if found is None or run.faults < found[0].faults:
                found = run, sizes, contents
            if not run.faults or not names:
                break
        if found and not found[0].faults:
            break
    assert found is not None
    first, sizes, contents = found
    others = [
        _measured(pipeline, uses, dispatch, _chosen(names, steps, sizes, name), contents, overrides)
        for name in names[:MOST_DIMS]
        if first.ends
    ]
    agreeing = [run for run in others if run.faults <= first.faults]
    return [first, *agreeing], contents, sizes.words if names else ""


def _measured(
    pipeline: Pipeline,
    uses: SizeUses,
    dispatch: list[str | int],
    dims: Mapping[str, int],
    contents: Contents,
    overrides: Mapping[str, Any],
) -> Measured:
    from ..manifests.dimension_arithmetic import evaluate

    grid = tuple(max(1, evaluate(each, dims)) for each in dispatch)
    if max(grid) > MOST_GROUPS or prod(grid) * prod(pipeline.workgroup_size) > MOST_INVOCATIONS:
        return Measured(dims, {}, inside=False, ends=False, divides=False, changes=False)
    return measure(pipeline, uses, grid, dims, contents, {"overrides": overrides})


def _chosen(names: list[str], steps: Mapping[str, int], sizes: Sizes, changed: str | None) -> dict[str, int]:
    """Sizes for all dims; the dim `changed` has its other size."""
    loose = _LOOSE if len(names) < 4 else _SMALL
    made: dict[str, int] = {}
    for number, name in enumerate(names):
        which = int(name == changed)
        if name.startswith("groups_"):
            made[name] = (_GROUPS, _GROUPS + 2)[which] if number == 0 else (2, 4)[which]
        else:
            made[name] = sizes.of(steps.get(name, loose), number)[which]
    return made


def _edges(name: str, default: int, steps: Mapping[str, int]) -> list[int]:
    """Sizes at which kernels fail: one, and around a whole workgroup."""
    step = steps.get(name)
    wanted = [1, default + 1] if step is None else [1, step - 1, step, step + 1]
    return sorted({size for size in wanted if size >= 1} - {default})


# ---- questions ----


def _questions(made: Draft, run: Measured, words: str) -> Iterator[str]:
    if not run.ends:
        yield "no sizes were found with which every loop ends: which sizes does the host pass?"
    elif not run.inside:
        yield "no sizes were found with which every access is in bounds: which sizes and contents does the host pass?"
    elif words:
        yield f"sizes are {words} here, because the kernel fails with others: which sizes may the host pass?"
    for axis, name in enumerate(made.dispatch):
        if str(name).startswith("groups_"):
            yield (
                f"ids along {AXES[axis]} are compared with no size: how many workgroups does the host dispatch? "
                f"{name} stands for that number"
            )
    for variable, found in made.extents.items():
        shape = " * ".join(found.factors)
        if found.beyond is None:
            yield (
                f"the kernel accesses more elements of {variable.name} than {shape}, a number that varies with the "
                "sizes: which shape does it have, or is an index wrong?"
            )
        elif found.beyond:
            yield (
                f"the kernel accesses {found.beyond} more than {shape} elements of {variable.name}: "
                "is it larger, or is an index out of bounds?"
            )
        elif not found.exact:
            yield f"how many elements does {variable.name} have? {shape} holds all that the kernel accesses"
    yield from _questions_on_data(made)
    yield from _of_numbers(made)


def _questions_on_data(made: Draft) -> Iterator[str]:
    invented = ", ".join(f"{name} = {value}" for name, value in made.overrides.items())
    if invented:
        yield f"which values do overrides without a default have? {invented} is invented"
    if made.contents.init != "uniform":
        yield f"what do integers in storage hold? `{made.contents.init}` keeps every access in bounds"
    mixed = [v.name for v, type_ in made.pipeline.store_types.items() if _is_mixed(v, type_)]
    if mixed:
        yield f"what do the structs in {', '.join(mixed)} hold? they are zeros here; `file` takes their bytes"


def _of_numbers(made: Draft) -> Iterator[str]:
    floats: list[str] = []
    zeros: list[str] = []
    for key, scalar in numbers_of(made.pipeline):
        variable, path = key
        inner = member_name(made.pipeline.store_types[variable], path)
        if key not in made.uses.names and key not in made.uses.unread:
            (floats if t.is_float(scalar) else zeros).append(f"{variable.name}.{inner}".rstrip("."))
    if floats:
        yield f"which values does the host pass for {_listed(floats)}? {FRACTION} is invented"
    if zeros:
        yield f"which values does the host pass for {_listed(zeros)}? 0 is invented"


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:6])
    return shown if len(names) <= 6 else f"{shown} and {len(names) - 6} more"


def _is_mixed(variable: Variable, type_: t.Type) -> bool:
    return variable.space == "storage" and len(scalars(type_)) > 1
