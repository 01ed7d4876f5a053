"""Values that share operands are visited once, and long chains need no deep stack."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bankshot.sim.ir.bottom_up import bottom_up

DEPTH = 20_000  # more than Python's stack has room for


def fibonacci(n: int) -> list[int]:
    return [n - 1, n - 2] if n > 1 else []


def test_each_value_is_combined_once_and_after_its_operands() -> None:
    order = list[int]()

    def combine(n: int, operands: Sequence[int]) -> int:
        order.append(n)
        return sum(operands) if operands else n

    known = dict[int, int]()
    assert bottom_up(50, known, fibonacci, combine) == 12_586_269_025
    assert sorted(order) == list(range(51))
    assert all(order.index(operand) < order.index(n) for n in order for operand in fibonacci(n))
    assert bottom_up(50, known, fibonacci, combine) == known[50]
    assert len(order) == 51


def test_a_long_chain() -> None:
    def combine(n: int, operands: Sequence[int]) -> int:
        return 1 + sum(operands)

    assert bottom_up(DEPTH, {}, lambda n: [n - 1] if n else [], combine) == DEPTH + 1


@pytest.mark.parametrize("first", [1, 2])
def test_results_that_are_known_are_taken(first: int) -> None:
    assert bottom_up(3, {2: 10, 1: first}, fibonacci, lambda _, operands: sum(operands)) == 10 + first
