"""The plain and the compiled form of every scalar operation agree."""

import subprocess
import sys

import numpy as np
import pytest
from numba import njit

from bankshot.sim.machine.compile.scalar_functions import jitted
from bankshot.sim.machine.compile.scalar_ir import FASTER
from bankshot.sim.scalar import OPS
from bankshot.sim.scalar.registry import ScalarOp, define
from tests.scalar.scalar_values import (
    CONCRETE,
    DTYPE,
    anything,
    assert_same,
    beside_midpoints,
    inputs,
    looped,
    over_arrays,
    plainly,
)


@pytest.mark.parametrize("name", CONCRETE)
def test_plain_and_compiled_agree(name):
    arrays = inputs(name, 300)
    rows = np.random.default_rng(0).permutation(len(arrays[0]))[:600]
    picked = [a[rows] for a in arrays]
    assert_same(over_arrays(name, *picked), plainly(name, *picked), *picked)


def test_faster_fma_is_the_plain_one(monkeypatch):
    with monkeypatch.context() as patch:
        patch.delitem(FASTER, "fma_f32")
        plain = looped.__wrapped__("fma_f32")
    rng = np.random.default_rng(1)
    count = 1_000_000
    a, b, c = (anything("f32", count, rng) for _ in range(3))
    with np.errstate(all="ignore"):
        close = -(a * b) * (1 + rng.integers(-3, 4, count).astype(np.float32) * np.float32(2**-24))
        addends = (c, close, close * np.float32(2**-24), close * np.float32(2**24))
    for arrays in (*((a, b, addend) for addend in addends), beside_midpoints("f32", rng, count)):
        assert_same(over_arrays("fma_f32", *arrays), plain(*arrays), *arrays)


def test_compiled_multiply_and_add_are_not_fused():
    add, mul = jitted("add_f32"), jitted("mul_f32")

    @njit
    def chained(out, a, b, c):
        for i in range(out.size):
            out[i] = add(mul(a[i], b[i]), c[i])

    a, b, c = (np.random.default_rng(i).normal(size=1000).astype(np.float32) for i in range(3))
    out = np.empty_like(a)
    chained(out, a, b, c)
    assert_same(out, a * b + c, a, b, c)


def test_an_operation_that_returns_another_kind_is_not_compiled(monkeypatch):
    monkeypatch.setitem(OPS, "wide_u32", ScalarOp("wide_u32", _widened, ("u32",), "u32"))
    with pytest.raises(TypeError, match="wide_u32 returns uint64, not uint32"):
        over_arrays("wide_u32", np.ones(1, np.uint32))


def _widened(a):
    return np.uint64(a)


def test_an_operation_without_an_instruction_is_not_compiled(monkeypatch):
    monkeypatch.setitem(OPS, "cbrt_f32", ScalarOp("cbrt_f32", _cube_root, ("f32",), "f32"))
    with pytest.raises(TypeError, match="no instruction is known for cbrt of float32"):
        over_arrays("cbrt_f32", np.ones(1, np.float32))


def _cube_root(a):
    return np.cbrt(a)


def test_every_row_is_named_by_its_kinds():
    for name, row in OPS.items():
        assert row.name == name
        assert {*row.args, row.result} <= {*DTYPE, "af", "ai"}
        if not name.startswith(("convert_", "bitcast_")):
            assert name.rpartition("_")[2] == row.args[0]
        else:
            assert name.split("_")[1:] == [*row.args, row.result]


def test_one_name_has_one_meaning():
    with pytest.raises(ValueError, match="add_f32 is defined twice"):
        define("add", lambda a, b: a, "T T -> T", "f32")


@pytest.mark.parametrize(("stem", "flops"), [("add", 1), ("fma", 2), ("sqrt", 1), ("sin", 1), ("max", 0), ("floor", 0)])
def test_flops_are_rounded_results(stem, flops):
    assert OPS[f"{stem}_f32"].flops == OPS[f"{stem}_f16"].flops == flops


def test_importing_the_table_does_not_import_numba():
    check = "import sys, bankshot.sim.scalar; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
