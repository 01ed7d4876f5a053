"""The passes that a function of the machine goes through: of Numba's those that it needs, and `Fill`.

It has no closures, generators, exceptions, lists or parallel loops, and nothing that references are counted of: so no
variable has to be deleted, which takes Numba a load and a store for each, and LLVM the time to see that they are idle.
"""

from __future__ import annotations

from typing import Any

from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import FunctionPass, PassManager, register_pass
from numba.core.ssa import reconstruct_ssa
from numba.core.typed_passes import NativeLowering, NoPythonBackend, NopythonTypeInference, PreLowerStripPhis
from numba.core.untyped_passes import FixupArgs, TranslateByteCode

from .emission import library
from .pieces import fill


@register_pass(mutates_CFG=True, analysis_only=False)
class Fill(FunctionPass):
    """Put the pieces of a function in their places."""

    _name = "bankshot_fill"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> Any:
        fill(state.func_ir)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class Versions(FunctionPass):
    """A variable for each assignment, so that it may have another type after another."""

    _name = "bankshot_versions"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> Any:
        state.func_ir = reconstruct_ssa(state.func_ir)
        state.func_ir.generator_info = None
        return True


_PASSES = (
    *(TranslateByteCode, FixupArgs, Fill, Versions),
    *(NopythonTypeInference, PreLowerStripPhis, NativeLowering, NoPythonBackend),
)


class Pipeline(CompilerBase):
    """These passes, into a `Library`."""

    def define_pipelines(self) -> Any:
        self.state.library = library(self.state.func_id.func_qualname)
        manager = PassManager("bankshot")
        for each in _PASSES:
            manager.add_pass(each, each.__name__)
        manager.finalize()
        return [manager]
