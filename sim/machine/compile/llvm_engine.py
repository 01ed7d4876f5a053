"""Native code in this process, by LLVM's loader: object files that refer to each other by symbols."""

# Numba and llvmlite have no types, so strict checks would find only unknowns.
# pyright: basic

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import llvmlite.binding as llvm


def load(objects: Iterable[bytes], needs_numba: bool) -> Any:
    """Load object files; `get_function_address(symbol)` of the result is where a function is, as long as it lives."""
    if needs_numba:
        from numba import cfunc, types

        cfunc(types.void())(lambda: None)  # Numba makes its helpers, and Intel's vector functions, known to LLVM
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    for code in objects:
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


def verify(engine: Any) -> None:
    """End the process if a symbol that the code refers to is missing: LLVM says so when it is given more code."""
    engine.add_module(llvm.parse_assembly("define void @bankshot.verify() { ret void }"))
    engine.finalize_object()
