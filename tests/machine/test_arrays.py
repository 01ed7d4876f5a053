"""The machine's arrays: compiled functions see in them what NumPy does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from compiled_here import compiled_here, is_fast
from numba import types

from bankshot.sim.machine.compile.loader import address_of, flat, header
from bankshot.sim.machine.compile.units import kind_of, recorded
from bankshot.sim.machine.lanes import address_of_first, pitch_of

ROOT = Path(__file__).parents[2]
DTYPES = (np.uint8, np.uint16, np.int32, np.uint32, np.int64, np.float32)


def run(function: Any, *arrays: Any) -> Any:
    """What a function, compiled, makes of arrays or records of them."""
    given, plain = recorded(types.Tuple([kind_of(each) for each in arrays])), compiled_here(function)

    @compiled_here
    def compiled(address):
        return plain(*given(address))

    record = np.array([number for each in flat(arrays) for number in header(each)], np.int64)
    return compiled(record.ctypes.data)


def counted(dtype: Any, *shape: int) -> Any:
    return np.arange(100, 100 + np.prod(shape)).reshape(shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_address_of_an_array_is_numpys(dtype):
    array = counted(dtype, 3, 4)
    assert address_of(array) == array.ctypes.data
    array.flags.writeable = False
    assert address_of(array[1:]) == array[1:].ctypes.data
    assert address_of(array[:0]) == 0
    assert header(array[:, :0]) == (0, 3, 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_items(dtype):
    def function(a, b, c):
        return a[3], b[1, 2], b[2][np.uint32(0)], c[1, 2, 3], c[1][2][3], c[np.int32(1), 2][0], c[0, 0][2]

    arrays = counted(dtype, 5), counted(dtype, 3, 4), counted(dtype, 2, 3, 4)
    assert run(function, *arrays) == function(*arrays)


@pytest.mark.parametrize("dtype", DTYPES)
def test_items_are_assigned_as_numpy_converts_them(dtype):
    def function(a, b, c):
        a[1] = np.int64(0x1_0000_0007)
        a[np.uint64(2)] = True
        b[1, 2] = np.uint32(9)
        b[0][3] += b[1][2]
        c[1, 0][2] = 5.0
        c[1][2, 3] = b[1, 2]

    ours, theirs = ((counted(dtype, 5), counted(dtype, 3, 4), counted(dtype, 2, 3, 4)) for _ in range(2))
    run(function, *ours)
    theirs[0][1] = np.array(0x1_0000_0007).astype(dtype)
    theirs[0][2] = 1
    theirs[1][1, 2] = 9
    theirs[1][0, 3] += 9
    theirs[2][1, 0, 2], theirs[2][1, 2, 3] = 5, 9
    for mine, other in zip(ours, theirs, strict=True):
        assert np.array_equal(mine, other)


@pytest.mark.parametrize(("start", "stop"), [(0, 3), (2, 9), (4, 2), (5, 7), (9, 12)])
def test_slices_end_with_the_array(start, stop):
    def function(a):
        total, part = 0, a[start:stop]
        for i in range(len(part)):
            total += part[i]
        return total, part.size, a[start:].size, a[:stop].size

    assert run(function, counted(np.int64, 5)) == function(counted(np.int64, 5))


def test_a_view_has_the_same_bits():
    def function(a):
        return a.view(np.float32)[1], a.view(np.uint16)[3], len(a.view(np.uint16)), a.view(np.int64).size

    numbers = np.array([1.5, -2.5, 3.5, 4.5], np.float32).view(np.uint32)
    assert run(function, numbers) == (-2.5, numbers.view(np.uint16)[3], 8, 2)


def test_lengths_types_and_addresses():
    def function(a, b, c):
        return len(a), a.size, len(b), b.size, len(c[1]), c.size, b.dtype.type(-1.5)

    arrays = counted(np.uint8, 5), counted(np.int32, 3, 4), counted(np.float32, 2, 3, 4)
    assert run(function, *arrays) == (5, 5, 3, 12, 3, 24, -1)
    assert run(lambda b: (pitch_of(b), address_of_first(b)), arrays[1]) == (16, arrays[1].ctypes.data)


class Pair(NamedTuple):
    one: Any
    two: Any


def test_records():
    pair = Pair(counted(np.int32, 3), Pair(counted(np.uint16, 2, 2), counted(np.float32, 1)))
    assert run(lambda p: (p.one[2], p.two.one[1, 0], p.two.two[0]), pair) == (102, 102, 100)


def test_a_choice_of_two():
    def function(a, b):
        total = 0
        for i in range(4):
            chosen = a if i % 2 == 0 else b[1]
            total += chosen[i]
        return total

    assert run(function, counted(np.int32, 4), counted(np.int32, 2, 4)) == 100 + 105 + 102 + 107


AT_AN_INDEX = """
import numpy as np
from compiled_here import compiled_here, is_fast
from test_arrays import run
for index in INDICES:
    print(run(lambda a, b: a[b[0]], np.arange(5), np.array([index])), flush=True)
"""
EVERYWHERE = """
import numpy as np, bankshot
from bankshot.oracle.audit import Options, audit
from everything import EVERYTHING, GUARDS
from tests.programs_made.project_kernels import project_kernels
given = {"x": np.linspace(0.01, 0.99, 256, dtype=np.float32), "y": np.zeros(256, np.float32), "sum": np.zeros(1, "u4")}
for probes in ("none", "all"):
    bankshot.simulate(EVERYTHING, grid=4, bindings=given, probes=probes)
for limit in (1, 3, 1000):
    bankshot.simulate(EVERYTHING, grid=1, bindings=given, trace=bankshot.Trace("r", (0, 0, 0), (0, 5), limit))
bankshot.simulate(GUARDS, grid=16, bindings={"y": np.zeros(64, np.uint32)}, workgroups="classes")
for number, plan in enumerate(project_kernels()):
    done = audit(plan.kernel.case(plan.shapes[number % len(plan.shapes)]), Options(gpu=False))
    assert done.ok, done
"""


def checked(program: str) -> subprocess.CompletedProcess[str]:
    """A program in a process that ends at an index that is out of bounds. LLVM takes half as long where it does not
    optimize, which moves no index. The machine that it compiles is kept, beside those by other settings."""
    paths = os.pathsep.join((str(ROOT), str(ROOT / "tests" / "machine")))
    more = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "0", "PYTHONPATH": paths}
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **more}, cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip


fast_only = pytest.mark.skipif(not is_fast(), reason="an index of Numba's arrays may count from the end")


@pytest.mark.parametrize("index", [5, pytest.param(-1, marks=fast_only)])
def test_a_process_ends_at_the_first_index_out_of_bounds_if_numba_is_to_check(index):
    done = checked(AT_AN_INDEX.replace("INDICES", str([0, 4, index])))
    assert done.stdout.split() == ["0", "4"], done.stderr
    assert done.returncode < 0 or "IndexError" in done.stderr


def test_no_index_of_the_machine_is_out_of_bounds():
    done = checked(EVERYWHERE)
    assert done.returncode == 0, done.stdout + done.stderr
