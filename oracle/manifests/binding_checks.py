"""Check that the bindings of a manifest are those of its shader, with errors in the manifest's terms."""

from __future__ import annotations

import numpy as np

from ...sim.bindings.binding import scalars
from ...sim.findings.memory_paths import path
from ...sim.models.device import near_miss
from ...sim.wgsl import typed
from ...sim.wgsl import types as t
from ...sim.wgsl.diagnostics import Crash
from ..errors import UsageError
from .manifest import Binding, Case
from .reflection import SCALARS, builtin_names, entry_point, floats_as_bits

_SIGN, _LEAST_NORMAL = 0x80000000, 0x00800000  # bits of an f32


def fit(case: Case, module: typed.Module) -> None:
    """Raise `UsageError` where the manifest binds what the shader lacks, lacks what it needs, or gives another type."""
    kernel = case.kernel
    if not kernel.bindings:  # no manifest; what the command line gives is checked by name
        return
    declared = {v.name: v for v in module.globals if v.binding is not None}
    entry = entry_point(module, kernel.entry)
    for binding in kernel.bindings:
        if binding.var not in declared:
            raise UsageError(f"{kernel.path}: {_stray(binding, list(declared))}")
        _fit_type(case, binding, declared[binding.var], entry)
        _fit_words(case, binding, declared[binding.var].type)
    bound = {binding.var for binding in kernel.bindings}
    for variable in entry.globals:
        if variable.binding is not None and variable.name not in bound:
            what = f"{variable.name}, a {variable.type}"
            raise UsageError(f"{kernel.path}: nothing is bound to {what}; the manifest needs a [bind.{variable.name}]")


def _stray(binding: Binding, declared: list[str]) -> str:
    """The error for a binding that the shader lacks."""
    close = near_miss(binding.var, declared)
    hint = close or f"; it has {', '.join(declared) or 'none'}"
    renamed = ", and `var` says what it calls a binding" if binding.var == binding.name and not close else ""
    return f"[bind.{binding.name}]: the shader has no binding {binding.var}{hint}{renamed}"


def _fit_type(case: Case, binding: Binding, variable: typed.Variable, entry: typed.Function) -> None:
    """Check the dtype of a variable of one scalar type; structs may hold any, and formats decide for textures."""
    type_ = variable.type
    if binding.packed:
        _fit_packed(case, binding, variable)
        return
    if binding.dtype not in SCALARS or isinstance(type_, t.Texture):
        return
    what = f"{case.kernel.path}: [bind.{binding.name}] is {binding.dtype}, and {binding.var} is {type_}"
    try:
        holds = str(t.element_of(type_))
    except Crash:
        kinds = scalars(type_)
        if binding.dtype == "f32" and kinds and kinds <= {t.U32, t.I32}:
            whole = " and ".join(sorted(map(str, kinds)))
            raise UsageError(f'{what}, which holds {whole} in a struct; it takes `dtype = "u32"`') from None
        return
    if binding.dtype == holds:
        return
    takes = f'it takes `dtype = "{holds}"`'
    if variable.space == "storage" and floats_as_bits(type_, np.dtype(np.float32)):
        if binding.dtype == "f32" and "bitcast" in builtin_names(entry):
            return
        if binding.dtype == "f32":
            takes += ": floats kept as bits are for kernels that call bitcast, and this one does not"
        elif binding.dtype == "f16":
            takes += ', or `dtype = "f32"` for 32-bit floats that are kept as their bits'
            takes += ", or `packed = true` for pairs" if variable.access == "read" else ""
    raise UsageError(f"{what}; {takes}")


def _fit_packed(case: Case, binding: Binding, variable: typed.Variable) -> None:
    """Refuse packed numbers for a variable that does not hold words, or that the shader writes."""
    what = f"{case.kernel.path}: [bind.{binding.name}] is packed, and {binding.var}"
    if scalars(variable.type) != {t.U32}:
        raise UsageError(f"{what} is {variable.type}; packed numbers are u32 words")
    if variable.access != "read" and variable.space == "storage":
        raise UsageError(f'{what} is read_write; only inputs are packed, so it takes `dtype = "u32"`')


def _fit_words(case: Case, binding: Binding, type_: t.Type) -> None:
    """Refuse integers listed for a struct where a member is a float: the bits of a small one are next to 0."""
    if binding.values is None or not isinstance(type_, t.Struct) or binding.dtype not in ("u32", "i32"):
        return
    words = case.arrays[binding.name].view(np.uint32)
    for place, word in enumerate(words.tolist()):
        name, scalar = path(type_, 4 * place)
        if scalar == t.F32 and 0 < word & ~_SIGN < _LEAST_NORMAL:
            given, means = words.view(binding.dtype[0] + "4")[place], words[place : place + 1].view(np.float32)[0]
            what = f"{binding.var}{name} is an f32, to which the {binding.dtype} {given} is {means:.2g}"
            raise UsageError(
                f"{case.kernel.path}: [bind.{binding.name}] {what}; give members by name, `struct = {{ … }}`"
            )
