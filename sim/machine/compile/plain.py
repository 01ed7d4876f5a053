"""The plain path: the machine by what Numba and llvmlite document, with Numba's own arrays.

A unit is a C callback (`cfunc`) of numbers, an array being the address of where its caller keeps it. Numba gives its
LLVM IR, unoptimized; LLVM optimizes that as a whole. It takes twice as long as the fast path, and half as long as if
Numba optimized each function alone as well.
"""

# Numba and llvmlite have no types, so strict checks would find only unknowns.
# pyright: basic

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import cfunc, njit, types
from numba.core import cgutils
from numba.extending import intrinsic, register_jitable

from .by_address import borrower

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_I64 = ir.IntType(64)
# What Numba's code calls where it counts references, or raises. Here no array is counted, and nothing raises.
_COUNTING = ("NRT_incref", "NRT_decref")
_RAISING = re.compile("numba_|NRT_|Py")


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function of the machine into each function that calls it, or that calls the plain one."""
    register_jitable(**_OPTIONS)(function)
    return njit(**_OPTIONS)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a small function, which LLVM inlines."""
    return njit(**_OPTIONS)(function)


# ---- arrays ------------------------------------------------------------------------------------------


def array(dtype: Any, ndim: int) -> Any:
    """The type of a contiguous array."""
    return types.Array(dtype, ndim, "C")


def _fields(context: Any, builder: Any, kind: Any, value: Any = None) -> Any:
    return cgutils.create_struct_proxy(kind)(context, builder, value=value)


def start_of(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """The address of an array."""
    return _fields(context, builder, kind, value).data


def length_of(context: Any, builder: Any, kind: Any, value: Any, dimension: int) -> Any:
    return builder.extract_value(_fields(context, builder, kind, value).shape, dimension)


def _made(context: Any, builder: Any, kind: Any, start: Any, lengths: list[Any]) -> Any:
    """A contiguous array of these lengths, from an address on, whose memory is the caller's."""
    fields, strides, size = _fields(context, builder, kind), list[Any](), _I64(kind.dtype.bitwidth // 8)
    count: Any = _I64(1)
    for length in reversed(lengths):
        strides.insert(0, builder.mul(count, size))
        count = builder.mul(count, length)
    fields.meminfo = fields.parent = cgutils.voidptr_t(None)
    fields.data, fields.nitems, fields.itemsize = start, count, size
    fields.shape, fields.strides = (cgutils.pack_array(builder, each) for each in (lengths, strides))
    return fields._getvalue()


def recorded(kind: Any) -> Any:
    """A function that makes the arrays of a tuple type from headers at an address: of each, address and lengths."""

    @intrinsic
    def arrays(typingctx, address):  # type: ignore[no-untyped-def]
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            words, taken = builder.inttoptr(args[0], _I64.as_pointer()), iter(range(1 << 20))

            def word() -> Any:
                return builder.load(builder.gep(words, [_I64(next(taken))]))

            def value(kind: Any) -> Any:
                members: Any = kind
                if isinstance(kind, types.BaseTuple):
                    return context.make_tuple(builder, kind, [value(each) for each in members])
                start = builder.inttoptr(word(), context.get_value_type(types.CPointer(kind.dtype)))
                return _made(context, builder, kind, start, [word() for _ in range(kind.ndim)])

            return value(kind)

        return kind(types.int64), codegen

    return arrays


# ---- units -------------------------------------------------------------------------------------------


def caller(symbol: str, signature: Any) -> Callable[..., Any]:
    """What writes a call of the C function with this symbol. Arrays go by address."""
    _declared(symbol)

    def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
        def passed(kind: Any, value: Any) -> Any:
            by_address = isinstance(kind, types.Array)
            return builder.ptrtoint(cgutils.alloca_once_value(builder, value), _I64) if by_address else value

        given = [passed(kind, value) for kind, value in zip(signature.args, values, strict=True)]
        nothing = signature.return_type == types.void
        returns = ir.VoidType() if nothing else context.get_value_type(signature.return_type)
        kind = ir.FunctionType(returns, [each.type for each in given])
        result = builder.call(cgutils.get_or_insert_function(builder.module, kind, symbol), given)
        return context.get_dummy_value() if nothing else result

    return generate


@cache
def _anywhere() -> int:
    return ctypes.addressof(ctypes.create_string_buffer(1))


def _declared(symbol: str) -> None:
    """Numba makes a callback ready to be called, so what it calls must be somewhere. Here it is never called."""
    llvm.add_symbol(symbol, _anywhere())


def _callback(function: Callable[..., Any], signature: Any) -> Any:
    """A function as one of numbers that C can call."""
    space: dict[str, Any] = {"function": inlined(function)}
    names, passed, given = [], [], []
    for i, kind in enumerate(signature.args):
        names.append(f"a{i}")
        if isinstance(kind, types.Array):
            space[f"at{i}"] = borrower(kind)
        given.append(f"at{i}(a{i})" if isinstance(kind, types.Array) else f"a{i}")
        passed.append(types.int64 if isinstance(kind, types.Array) else kind)
    name = function.__name__
    exec(f"def {name}({', '.join(names)}):\n    return function({', '.join(given)})", space)
    return cfunc(signature.return_type(*passed), **_OPTIONS)(space[name])


def object_code(function: Callable[..., Any], signature: Any, symbol: str) -> bytes:
    """An object file of a function, by this symbol."""
    callback = _callback(function, signature)
    module = _without_runtime(llvm.parse_assembly(callback.inspect_llvm()))
    for each in (*module.functions, *module.global_variables):
        if not each.is_declaration:
            each.linkage = "internal"
    entry = module.get_function(callback.native_name)
    entry.linkage, entry.name = "external", symbol
    target = _target()
    passes = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=3))
    passes.getModulePassManager().run(module, passes)
    return target.emit_object(module)


def _without_runtime(module: Any) -> Any:
    """A module that counts no references, and ends the process where Numba would raise an error: it needs nothing of
    Numba's then."""
    bodies = []
    for each in module.functions:
        returns, _, rest = str(each.global_value_type).partition(" (")
        if each.name in _COUNTING:
            bodies.append(f"define {returns} @{each.name}({rest} alwaysinline {{ ret void }}")
        elif each.is_declaration and _RAISING.match(each.name):
            bodies.append(f"define {returns} @{each.name}({rest} {{ call void @llvm.trap() unreachable }}")
    made = llvm.parse_assembly("\n".join([*bodies, "declare void @llvm.trap()"]))
    made.triple, made.data_layout = module.triple, module.data_layout
    made.link_in(module)
    return made


@cache
def _target() -> Any:
    """This processor, for code that may be anywhere in memory."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(llvm.get_host_cpu_name(), features, opt=3, codemodel="jitdefault", jit=True)
