"""The machine by LLVM, which links its object files at every start: where there is no `image` of them."""

from __future__ import annotations

from collections.abc import Iterable

import llvmlite.binding as llvm


def load(units: Iterable[tuple[str, str, bytes]], needs_numba: bool) -> tuple[int, object]:
    """Load units, as `image.link` has them: the address of the last one, and what it lives as long as."""
    if needs_numba:
        from numba.core.registry import cpu_target

        _ = cpu_target.target_context  # Numba's own helpers, and Intel's vector functions, become known to LLVM
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    address = 0
    for symbol, function, code in units:
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        address = engine.get_function_address(function)
        llvm.add_symbol(symbol, address)
    return address, engine
