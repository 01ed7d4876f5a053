"""Functions compiled as those of the machine are, but so that Python can call them."""

from __future__ import annotations

from typing import Any

from bankshot.sim.machine.compile.numba_passes import Pipeline
from numba import njit


class Loaded(Pipeline):
    """The same passes, into Numba's own library."""

    def define_pipelines(self) -> Any:
        passes = super().define_pipelines()
        self.state.library = None
        return passes


def compiled_here(function: Any) -> Any:
    return njit(pipeline_class=Loaded, no_rewrites=True)(function)
