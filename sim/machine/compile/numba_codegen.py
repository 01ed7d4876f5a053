"""How Numba compiles the machine: only what becomes an object file is optimized, and none of it is loaded.

Numba makes every function that another calls ready to run by itself: optimized, as machine code, in memory. Here such
a function is only ever linked into its callers, which are optimized with it. That takes half of the time.
"""

# Numba and llvmlite have no types, so strict checks would find only unknowns.
# pyright: basic

from __future__ import annotations

from functools import cache
from typing import Any

from numba.core.codegen import CPUCodeLibrary, JITCPUCodegen


class Library(CPUCodeLibrary):
    """The code of one function, and of all that it calls."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Nothing yet: `emit` optimizes the whole."""

    def _optimize_final_module(self) -> None:
        """Nothing yet: `emit` optimizes the whole."""

    def _finalize_specific(self) -> None:
        """Nothing is loaded."""

    def get_pointer_to_function(self, name: str) -> int:
        """No function of it can be called."""
        self._ensure_finalized()
        return 0

    def emit(self, name: str, symbol: str) -> bytes:
        """Its object file, in which the function of this name has this symbol."""
        self._ensure_finalized()
        self._final_module.get_function(name).name = symbol
        super()._optimize_final_module()
        return self.codegen._tm.emit_object(self._final_module)


class _Codegen(JITCPUCodegen):
    """Code for this processor, for wherever in memory it will be; it does not get there."""

    _library_class = Library

    def _add_module(self, module: Any) -> None:
        """Not to what can be called."""

    def set_env(self, env_name: str, env: Any) -> None:
        """There is none: nothing here calls Python."""


@cache
def _codegen() -> _Codegen:
    return _Codegen("bankshot")


def library(name: str) -> Library:
    """Create an empty library."""
    return _codegen().create_library(name)
