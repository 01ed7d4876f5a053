"""An entry point that can run again, and what a run of it gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from ...sim.fast_dataclass import frozen
from ...sim.wgsl import typed
from ..guesses.invented_inputs import Recipe
from .difference import Array, Difference, Mask

if TYPE_CHECKING:
    from ...sim.findings.finding import Finding
    from ...sim.run.result import Run as SimulatorRun

Outputs = Mapping[str, Array]


def outputs_of(run: SimulatorRun) -> Outputs:
    """Return the outputs of a run on generated inputs, which are given by name and as arrays."""
    return cast(Outputs, run.outputs)


@frozen
class Run:
    """A run of the simulator: the recipe for its inputs, the inputs, and the result."""

    recipe: Recipe
    given: Mapping[str, Any]
    result: SimulatorRun

    def findings(self, code: str) -> list[Finding]:
        """Return the findings with a code."""
        return [f for f in self.result.findings if f.code == code]

    @property
    def clean(self) -> bool:
        """Whether every access was in bounds and every loop ended."""
        return not (self.findings("out-of-bounds") or self.findings("endless-loop"))

    @property
    def busy(self) -> bool:
        """Whether an output changed."""
        return any(after.tobytes() != self.given[name].tobytes() for name, after in self.outputs.items())

    @property
    def outputs(self) -> Outputs:
        """The outputs by name; those of generated inputs are all arrays."""
        return outputs_of(self.result)


class Candidate(Protocol):
    """An entry point that can run again."""

    function: typed.Function
    exact: bool  # its arithmetic is the same on every implementation: derived bounds allow nothing

    @property
    def text(self) -> str: ...

    @property
    def pipeline(self) -> typed.Pipeline: ...

    def simulate(self, given: Mapping[str, Any], text: str | None = None, **options: Any) -> SimulatorRun:
        """Run in the simulator, optionally another text; `options` are those of `bankshot.simulate`."""
        ...

    def on_wgpu(
        self, given: Mapping[str, Any], text: str | None = None, grid: tuple[int, int, int] | None = None
    ) -> dict[str, Array]:
        """Run on wgpu, optionally with another text or grid. Raises `GpuError`."""
        ...

    def with_exact_arithmetic(self) -> tuple[Candidate, list[str]] | None:
        """Return the entry point with exact arithmetic, and in place of which functions.

        See `diagnosis.exact_arithmetic`. None where there is no such text.
        """
        ...

    def differing(self, recipe: Recipe, ours: Outputs, theirs: Outputs) -> dict[str, Mask]:
        """Tell for each output which of its words differ, or channels of a texture."""
        ...

    def errors(self, recipe: Recipe, ours: Outputs, theirs: Outputs) -> dict[str, NDArray[np.float64]]:
        """Return for each output how far its words are off, or channels of a texture."""
        ...

    def floats(self, recipe: Recipe) -> dict[str, Mask]:
        """Tell for each output which of its words hold floats, or channels of a texture."""
        ...

    def differences(self, recipe: Recipe, ours: Outputs, theirs: Outputs) -> list[Difference]:
        """Compare the outputs of two runs on inputs made by `recipe`."""
        ...
