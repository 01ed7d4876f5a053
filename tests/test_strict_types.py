"""Which files the strict type checks leave out. The list may only shrink."""

import re

from tools.import_graph import FILES, module_of

# Numba compiles the functions of these files, or they build LLVM IR. Neither Numba nor llvmlite has types, so a strict
# check would find only unknowns; pyright checks them with its basic rules.
BASIC = {
    *(
        f"sim.machine.{name}"
        for name in (
            "address_extents",
            "alu",
            "atomics",
            "barriers",
            "checks",
            "core",
            "endless",
            "grains",
            "lanes",
            "list_scheduling",
            "loads_and_stores",
            "memory",
        )
    ),
    *(
        f"sim.machine.{name}"
        for name in (
            "ordering",
            "probes",
            "sample_notes",
            "shadow",
            "shadow_blocks",
            "shadow_lanes",
            "subgroups",
            "thread_accesses",
            "tiles",
            "trace",
            "turns",
        )
    ),
    "sim.machine.vector_math.functions",
    *(f"sim.machine.compile.{name}" for name in ("by_address", "fast", "inlining", "llvm_engine", "loader")),
    *(f"sim.machine.compile.{name}" for name in ("numba_codegen", "numba_passes", "packed_arrays", "plain")),
    *(f"sim.machine.compile.{name}" for name in ("scalar_ir", "units")),
}


def test_only_files_of_compiled_code_are_exempt_from_strict_checks():
    exempt = {module_of(path) for path in FILES if re.search(r"^# pyright: basic", path.read_text(), re.MULTILINE)}
    assert exempt == BASIC
