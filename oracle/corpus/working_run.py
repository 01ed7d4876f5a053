"""The first generated inputs with which an entry point works: it stays in bounds, ends and changes an output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...sim.run.simulate import simulate
from ...sim.wgsl import typed
from ...sim.wgsl.check.pipeline import GRANTED
from ..guesses import invented_inputs
from ..guesses.invented_inputs import RECIPES, Recipe
from .candidate import Run

_BUDGET = 1 << 18  # loop iterations, so that the search does not wait for an endless loop


class NoInputs(Exception):
    """The reason why an entry point works with no generated inputs."""


def working_run(
    module: typed.Module,
    function: typed.Function,
    grid: tuple[int, int, int],
    overrides: Mapping[Any, Any],
    device: str = "nvidia",
    recipes: Sequence[Recipe] = RECIPES,
) -> Run:
    """Return the first run that works, by the recipes in order.

    Raises `NoInputs` where there is none, `UsageError` where no inputs can be generated for its bindings, and
    `WgslError` where the simulator refuses them.
    """
    pipeline = module.pipeline(function.name, {**overrides}, GRANTED)
    reason = "no output changed"
    for recipe in recipes:
        given = invented_inputs.bindings(pipeline, recipe)
        result = simulate(
            module,
            entry=function.name,
            grid=grid,
            bindings=given,
            overrides=overrides,
            device=device,
            probes=("bounds",),
            budget=_BUDGET,
            replay=False,
        )
        run = Run(recipe, given, result)
        if result.findings:
            reason = "every input leaves its bounds or does not end"
        elif run.busy:
            return run
    raise NoInputs(reason)
