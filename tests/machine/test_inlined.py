"""What is compiled, with pieces in their places, does what Python does with the same text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled_here import compiled_here, is_fast
from numba import njit

from bankshot.sim.machine import layout as at
from bankshot.sim.machine.compile.units import inlined

NUMBERS = range(-4, 9)


def both_ways(function: Any, *pieces: str) -> tuple[Any, Any]:
    """A function compiled, and as Python has it: with pieces that are functions."""
    names = dict(function.__globals__)
    plain = type(function)(function.__code__, names | {name: _python(globals()[name]) for name in pieces})
    return compiled_here(function), plain


def _python(piece: Any) -> Any:
    return piece.function if is_fast() else piece.py_func


@inlined
def clipped(x, low, high):
    if x < low:
        return low
    if x > high:
        return high
    return x


@inlined
def collatz(n, most):
    steps = 0
    while n > 1 and steps < most:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@inlined
def swapped(a, b):
    return b, a


@inlined
def nothing(x):
    x = x + at.CLAMP


def test_a_piece_returns_from_several_places():
    def function(x, y):
        x = clipped(x, 0, 5) + clipped(y, clipped(x, 1, 2), 4)
        return x

    compiled, plain = both_ways(function, "clipped")
    assert [compiled(x, y) for x in NUMBERS for y in NUMBERS] == [plain(x, y) for x in NUMBERS for y in NUMBERS]


def test_a_piece_that_changes_its_parameter_leaves_the_argument_alone():
    def function(n):
        return n, collatz(n, 30) if n != 3 else collatz(n + 1, n), n

    compiled, plain = both_ways(function, "collatz")
    assert [compiled(n) for n in NUMBERS] == [plain(n) for n in NUMBERS]


def test_a_piece_stands_in_a_loop_and_its_result_goes_where_its_arguments_come_from():
    def function(n):
        a, b = 1, 2
        for i in range(n):
            a, b = swapped(a, b)
            nothing(a)
            if i == 3:
                continue
            b = b + i
        return a, b

    compiled, plain = both_ways(function, "swapped", "nothing")
    assert [compiled(n) for n in NUMBERS] == [plain(n) for n in NUMBERS]


def test_a_branch_asks_for_the_truth_of_any_number():
    def function(x, y):
        return (1 if x else 2), (3 if x * 0.5 else 4), bool(x), not y, x and y

    compiled, plain = both_ways(function)
    assert [compiled(x, y) for x in NUMBERS for y in (0, 1)] == [plain(x, y) for x in NUMBERS for y in (0, 1)]


@pytest.mark.skipif(not is_fast(), reason="the plain path leaves calls to Numba, which knows keywords")
def test_a_piece_takes_its_arguments_by_position():
    def function(x):
        return clipped(x, low=0, high=1)

    with pytest.raises(TypeError, match="clipped takes 3 arguments, by position"):
        compiled_here(function)(1)


def test_what_an_operator_means_depends_on_the_types():
    def function(i, u, big, x):
        return i + i, i + u, u * u, u - big, i < u, i == x, (i >> 1) + x, i // 2, u % 7, -i, big & u, i + True

    given = np.int32(-5), np.uint32(4_000_000_000), np.uint64(1 << 40), np.float32(0.1)
    ours, numbas = compiled_here(function)(*given), njit(function)(*given)
    assert ours == numbas
    assert [type(each) for each in ours] == [type(each) for each in numbas]
    assert compiled_here(function)(*map(int, given[:3]), 0.1) == njit(function)(*map(int, given[:3]), 0.1)
