"""What a shader declares: the checked module of a kernel, memory layouts as NumPy dtypes, the builtins in use."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ...sim.bindings.texture_arrays import level_shape
from ...sim.front_end import read
from ...sim.wgsl import typed
from ...sim.wgsl import types as t
from ...sim.wgsl.diagnostics import Crash
from ...sim.wgsl.source import Source
from ..errors import UsageError

if TYPE_CHECKING:
    from ...sim.wgsl.builtins import Builtin
    from .manifest import Kernel

SCALARS = {"f32": np.float32, "f16": np.float16, "i32": np.int32, "u32": np.uint32}


def source_of(kernel: Kernel) -> Source:
    """Preprocess the kernel's text. Raises `WgslError`."""
    return read(kernel.source, defines=kernel.defines, include_dirs=kernel.include_dirs, preprocess=kernel.preprocess)


def check_module(kernel: Kernel) -> typed.Module:
    """Check the kernel's WGSL, without vertex and fragment stages if these are wrong. Raises `WgslError`.

    Reads its files each time. While they preprocess to the same text it returns the same module, whose programs the
    simulator keeps: do not change it.
    """
    source = source_of(kernel)
    return _checked(source.text, source.name, None if source.origin is None else tuple(source.origin))


@lru_cache(maxsize=16)
def _checked(text: str, name: str, origin: tuple[tuple[str, int], ...] | None) -> typed.Module:
    from .rendering_stages import check_for_compute

    return check_for_compute(Source(text, name, None if origin is None else list(origin)))


def entry_point(module: typed.Module, name: str | None) -> typed.Function:
    """Find the compute entry point called `name`, or the only one. Raises `UsageError`, which lists the names."""
    points = module.compute_entry_points
    chosen = [f for f in points if name in (None, f.name)]
    if len(chosen) == 1:
        return chosen[0]
    file, names = module.source.name, ", ".join(f.name for f in points)
    if not points:
        raise UsageError(f"{file}: the shader has no compute entry point")
    if name is None:
        raise UsageError(f"{file}: the shader has several compute entry points; choose one of {names}")
    raise UsageError(f"{file}: no compute entry point is named {name}; there are {names}")


def binding_dtype(kernel: Kernel, name: str) -> np.dtype[Any]:
    """Return the layout of the module-scope variable `name`. Raises `UsageError` where there is none."""
    return dtype_of(_binding_type(kernel, name))


def words_of_element(kernel: Kernel, name: str) -> int:
    """Return the u32 words of an element of the array `name`: 1, or those of a vector."""
    type_ = _binding_type(kernel, name)
    while isinstance(type_, t.Array):
        type_ = type_.elem
    return type_.size if isinstance(type_, t.Vec) else 1


def level_shapes(kernel: Kernel, name: str, shape: tuple[int, ...], levels: int) -> list[tuple[int, ...]]:
    """Return the shapes of the mip levels of the texture `name`, whose first level has `shape`."""
    type_ = _binding_type(kernel, name)
    if not isinstance(type_, t.Texture):
        raise UsageError(f"binding {name} is a {type_}, and only textures have levels")
    return [level_shape(type_, shape, number) for number in range(levels)]


def _binding_type(kernel: Kernel, name: str) -> t.Type:
    variables = {v.name: v for v in check_module(kernel).globals if v.binding is not None}
    if name not in variables:
        raise UsageError(f"{kernel.source} has no binding named {name}; it has {', '.join(variables) or 'none'}")
    return variables[name].type


def dtype_of(type_: t.Type) -> np.dtype[Any]:
    """Return the layout of a type of fixed size, with padding. Raises `UsageError` where NumPy has none for it."""
    match type_:
        case t.Scalar() | t.Atomic():
            return np.dtype(SCALARS[str(t.element_of(type_))])
        case t.Vec():
            return np.dtype((dtype_of(type_.elem), (type_.size,)))
        case t.Array(count=int(count)) if t.stride_of(type_) == t.size_of(type_.elem):
            return np.dtype((dtype_of(type_.elem), (count,)))
        case t.Struct():
            members = type_.members
            return np.dtype(
                {
                    "names": [m.name for m in members],
                    "formats": [dtype_of(m.type) for m in members],
                    "offsets": [m.offset for m in members],
                    "itemsize": type_.size,
                }
            )
        case _:
            raise UsageError(f"a {type_} has no NumPy layout; give its bytes as u32 words")


def inexact_builtins(entry: typed.Function) -> list[str]:
    """Return the names of the builtins and operators, reached from a function, with inexact floating point results."""
    from ...sim.wgsl.builtins.accuracy import CORRECT

    return sorted({row.name for row in _float_builtins(entry) if row.accuracy not in (None, CORRECT)})


def has_float_arithmetic(entry: typed.Function) -> bool:
    """Whether a function adds or multiplies floats, which implementations may fuse and reorder."""
    return any(row.name in ("+", "-", "*") for row in _float_builtins(entry))


# Builtins that Mesa's software adapter or SwiftShader computes by another expression than the specification's, or with
# another rounding, though each step rounds to nearest. SwiftShader multiplies by 1 / 255, for example.
RECOMPOSED = frozenset(
    """
    mix smoothstep normalize determinant % quantizeToF16 unpack4x8snorm unpack4x8unorm unpack2x16snorm unpack2x16unorm
    """.split()  # noqa: SIM905
)


def recomposed(entry: typed.Function) -> bool:
    """Whether a function reaches `RECOMPOSED` builtins on floats, or products of matrices."""
    calls = [
        part
        for function in typed.reached(entry)
        for part in typed.every_expression(function)
        if isinstance(part, typed.BuiltinCall) and _holds_float(part.type)
    ]
    products = (arg.type for call in calls if call.builtin.name == "*" for arg in call.args)
    return any(call.builtin.name in RECOMPOSED for call in calls) or any(isinstance(each, t.Mat) for each in products)


def builtin_names(entry: typed.Function) -> set[str]:
    """Return the names of the builtins and operators in expressions reached from a function."""
    calls = (part for function in typed.reached(entry) for part in typed.every_expression(function))
    return {call.builtin.name for call in calls if isinstance(call, typed.BuiltinCall)}


def may_write(pipeline: typed.Pipeline) -> list[str]:
    """Return the names of the storage buffers and textures that a pipeline may write, in the order of declaration.

    A buffer that is declared `read_write` and only read is not among them.
    """
    written: set[typed.Variable] = set()
    for function in typed.reached(pipeline.entry):
        assert function.body is not None
        for statement in typed.statements(function.body):
            if isinstance(statement, typed.Assign | typed.CompoundAssign):
                written |= _roots(statement.target)
            for operand in typed.operands(statement):
                written |= _handed_out(operand)
    return [v.name for v in pipeline.globals if (v in written and _is_writable(v)) or _is_written_texture(v)]


def declared_writable(module: typed.Module) -> list[str]:
    """Return the names of the storage buffers and textures that a module declares as writable."""
    return [v.name for v in module.globals if _is_writable(v) or _is_written_texture(v)]


def _is_writable(variable: typed.Variable) -> bool:
    """Whether a variable is a storage buffer that is declared as writable; pointers may also be to those that are
    not."""
    return (variable.space, variable.access) == ("storage", "read_write")


_READS = ("arrayLength", "atomicLoad")  # builtins that take a pointer and store nothing


def _handed_out(expr: typed.Expr) -> set[typed.Variable]:
    """The variables whose addresses an expression takes, other than to read them at once."""
    if isinstance(expr, typed.AddressOf):
        return _roots(expr.ref)
    reads = isinstance(expr, typed.BuiltinCall) and expr.builtin.name in _READS
    parts = [part for child in typed.children(expr) for part in (typed.children(child) if reads else (child,))]
    return {variable for part in parts for variable in _handed_out(part)}


def _roots(ref: typed.Expr) -> set[typed.Variable]:
    return {part.var for part in _bases(ref) if isinstance(part, typed.VarRef)}


def _bases(ref: typed.Expr) -> Iterator[typed.Expr]:
    """A reference and what it is a part of, without indices."""
    yield ref
    if isinstance(ref, typed.Index | typed.Member | typed.Swizzle):
        yield from _bases(ref.base)
    elif isinstance(ref, typed.Deref):
        yield from _bases(ref.pointer)
    elif isinstance(ref, typed.AddressOf | typed.Load):
        yield from _bases(ref.ref)


def _is_written_texture(variable: typed.Variable) -> bool:
    return isinstance(variable.type, t.Texture) and variable.type.access not in (None, "read")


def floats_as_bits(type_: t.Type, dtype: np.dtype[Any]) -> bool:
    """Whether f32 numbers can only be stored as the bits of integers: u32 or i32, atomic or not, in no struct."""
    try:
        return dtype == np.float32 and t.element_of(type_) in (t.U32, t.I32)
    except Crash:  # a struct, a texture
        return False


def _float_builtins(entry: typed.Function) -> Iterator[Builtin]:
    """Yield the builtins and operators, reached from a function, that return floating point numbers."""
    for function in typed.reached(entry):
        assert function.body is not None
        for part in typed.every_expression(function):
            if isinstance(part, typed.BuiltinCall) and _holds_float(part.type):
                yield part.builtin
        for statement in typed.statements(function.body):
            if isinstance(statement, typed.CompoundAssign) and _holds_float(statement.result):
                yield statement.builtin


def _holds_float(type_: t.Type) -> bool:
    return isinstance(type_, t.Struct) or (
        isinstance(type_, t.Scalar | t.Vec | t.Mat) and t.is_float(t.element_of(type_))
    )
