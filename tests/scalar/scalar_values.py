"""Inputs for the tests of scalar operations, and operations run over arrays as compiled code."""

from ctypes import CFUNCTYPE, c_int64, c_void_p
from functools import cache
from itertools import product

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from bankshot.sim.machine.compile.llvm_engine import load
from bankshot.sim.machine.compile.scalar_ir import emitted
from bankshot.sim.machine.lanes import KINDS, lane_loop
from bankshot.sim.scalar import OPS

DTYPE = {"f32": np.float32, "f16": np.float32, "i32": np.int32, "u32": np.uint32, "bool": np.uint32}
CONCRETE = [name for name, row in OPS.items() if not {"af", "ai"} & {*row.args, row.result}]

_INTEGERS = [0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 64, 127, 128, 255, 256, 65535, 2**24 + 1, 2**31 - 1, 2**31]
_INTEGERS += [2**32 - x for x in (1, 2, 3, 128, 129, 32768)] + [0x80000001, 0x12345678, 0xF0F0F0F0]
_FLOATS = [0.0, 1e-45, 1.1754942e-38, 2.0**-126, 2.0**-25, 2.0**-24, 2.0**-15, 2.0**-14, 0.25, 0.5, 0.75, 1.0, 1.5]
_FLOATS += [2.5, 3.0, 3.5, 127.5, 2047.0, 65504.0, 65519.99, 65520.0, 2.0**31, 2.0**32, 1e10, 3.4028235e38, np.inf]
_MAX_ROWS = 30_000


@cache
def edges(kind):
    """The values of a kind at which something changes."""
    if kind == "bool":
        return np.array([0, 1], np.uint32)
    if kind in ("i32", "u32"):
        return np.array(_INTEGERS, np.uint32).view(DTYPE[kind])
    values = np.array([*_FLOATS, *(-x for x in _FLOATS), np.nan], np.float32)
    return as_half(values) if kind == "f16" else values


def as_half(values):
    with np.errstate(over="ignore"):
        return values.astype(np.float16).astype(np.float32)


def anything(kind, count, rng):
    """Random bit patterns of a kind; of floats, half of them of ordinary size."""
    bits = rng.integers(0, 2**32, count, dtype=np.uint32)
    if kind == "bool":
        return bits & np.uint32(1)
    if kind in ("i32", "u32"):
        return np.where(rng.random(count) < 0.2, bits & np.uint32(63), bits).view(DTYPE[kind])
    if kind == "f16":
        bits = as_half((bits & np.uint32(0xFFFF)).astype(np.uint16).view(np.float16).astype(np.float32))
    ordinary = rng.normal(scale=4, size=count).astype(np.float32)
    values = np.where(rng.random(count) < 0.5, bits.view(np.float32), ordinary)
    return as_half(values) if kind == "f16" else values


def inputs(name, count=4000):
    """One array for each argument: all combinations of edges (a sample of them, where they are many), then anything."""
    kinds = OPS[name].args
    rng = np.random.default_rng(len(name))
    choices = product(*(range(len(edges(k))) for k in kinds))
    rows = np.array(list(choices) if len(edges(kinds[0])) ** len(kinds) < _MAX_ROWS else _sample(kinds, rng))
    at_edges = [edges(k)[column] for k, column in zip(kinds, rows.T, strict=True)]
    return [np.concatenate([e, anything(k, count, rng)]) for e, k in zip(at_edges, kinds, strict=True)]


def _sample(kinds, rng):
    return np.stack([rng.integers(0, len(edges(k)), _MAX_ROWS // 3) for k in kinds], axis=1)


def beside_midpoints(kind, rng, count=20_000):
    """Arguments of fma whose product is a midpoint of the kind and whose addend is too small for float32 or float64."""
    bits = {"f32": 25, "f16": 12}[kind]
    a, b = (rng.integers(2 ** ((bits - 1) // 2), 2 ** ((bits + 1) // 2), count) | 1 for _ in range(2))
    fits = (a * b >= 2 ** (bits - 1)) & (a * b < 2**bits)
    sign = rng.choice([-1.0, 1.0], count)
    tiny = sign * 2.0 ** rng.integers(*{"f32": (-100, -10), "f16": (-24, -20)}[kind], count)
    return [x[fits].astype(np.float32) for x in (a, b, tiny)]


def over_arrays(name, *arrays):
    """The compiled operation, looped over arrays as the machine does it."""
    return looped(name)(*arrays)


def plainly(name, *arrays):
    """The plain function, value by value; it has to return exactly the type of its kind."""
    row = OPS[name]
    with np.errstate(all="ignore"):
        results = [row.fn(*values) for values in zip(*arrays, strict=True)]
    assert {type(r) for r in results} == {DTYPE[row.result]}
    return np.array(results)


def same(a, b):
    """Where two arrays have equal bits, or both a NaN."""
    equal = a.view(np.uint32) == b.view(np.uint32)
    return equal | ((a != a) & (b != b)) if a.dtype == np.float32 else equal


def assert_same(actual, expected, *arrays):
    """Equal bits; the message shows the first inputs that differ."""
    wrong = np.flatnonzero(~same(actual, np.ascontiguousarray(expected, actual.dtype)))
    shown = [(*(a[i] for a in arrays), "gives", actual[i], "not", expected[i]) for i in wrong[:3]]
    assert not len(wrong), f"{len(wrong)} of {len(actual)} differ: {shown}"


@cache
def looped(name):
    """A function of arrays: the compiled operation, alone, in the machine's loop over lanes. Numba would take ten times
    as long to compile it."""
    row, module = OPS[name], ir.Module()
    pointers = [KINDS[kind].as_pointer() for kind in (row.result, *row.args)]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [ir.IntType(64), *pointers]), "run")
    builder = ir.IRBuilder(function.append_basic_block())
    lanes, output, *inputs = function.args

    def body(lane, note):
        values = [note(builder.load(builder.gep(each, [lane]))) for each in inputs]
        note(builder.store(emitted(builder, row, values), builder.gep(output, [lane])))

    lane_loop(builder, lanes, body)
    builder.ret_void()
    engine = load([_object_code(str(module))], needs_numba=False)

    def run(*arrays):
        assert [a.dtype for a in arrays] == [DTYPE[kind] for kind in row.args]
        out = np.empty(arrays[0].shape, DTYPE[row.result])
        whole = [out, *map(np.ascontiguousarray, arrays)]
        native = CFUNCTYPE(None, c_int64, *(c_void_p for _ in whole))(engine.get_function_address("run"))
        native(out.size, *(a.ctypes.data for a in whole))
        return out

    return run


def _object_code(text):
    """Optimized for this processor, as the machine is."""
    target = _target()
    module = llvm.parse_assembly(text)
    passes = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=3))
    passes.getModulePassManager().run(module, passes)
    return target.emit_object(module)


@cache
def _target():
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    return llvm.Target.from_default_triple().create_target_machine(llvm.get_host_cpu_name(), features, opt=3, jit=True)
