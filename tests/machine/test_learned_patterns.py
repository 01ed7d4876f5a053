"""The pattern of a row of addresses that has only moved is that which a look at every lane finds."""

from __future__ import annotations

import random

import numpy as np
import pytest
from compiled_here import as_python
from numpy.typing import NDArray

from bankshot.sim.machine import instruction as field
from bankshot.sim.machine import layout as at
from bankshot.sim.machine import memory

LANES, REGISTERS, INSTRUCTIONS = 48, 2, 3
FORMS = (
    lambda i: i // 16 * 5,
    lambda i: i % 16 * 3,
    lambda i: i % 32,
    lambda i: i,
    lambda i: 100 - i,
    lambda i: i * 37 % 101,
)
learn = as_python(memory.learn)


class Learned:
    """Register rows, and what the machine knows about their addresses."""

    def __init__(self) -> None:
        self.registers = np.zeros((REGISTERS, LANES), np.uint32)
        self.patterns = at.PATTERNS.new(REGISTERS)
        self.kept = np.zeros((INSTRUCTIONS, LANES), np.uint32)

    def learn(self, addresses: NDArray[np.uint32], register: int, instruction: int, lanes: int) -> NDArray[np.int64]:
        """Learn new contents of a register; its pattern."""
        self.registers[register] = addresses
        row = np.zeros(field.SIZE, np.int32)
        row[field.ADDRESS], row[field.KEEPS] = register, instruction
        with np.errstate(over="ignore"):
            learn(self.registers, row, self.patterns, self.kept, lanes)
        return self.patterns[register].copy()


def what(pattern: NDArray[np.int64]) -> list[int]:
    shape = pattern[at.SHAPE]
    return [shape, pattern[at.PERIOD] if shape == at.PERIODIC else 0, pattern[at.LOWEST], pattern[at.HIGHEST]]


@pytest.mark.parametrize("seed", range(20))
def test_a_pattern_moves_with_its_addresses(seed: int) -> None:
    rng, learned = random.Random(seed), Learned()
    by_stamp: dict[tuple[int, int], list[int]] = {}
    by_form: dict[tuple[int, int], NDArray[np.uint32]] = {}
    for _ in range(60):
        instruction, lanes = rng.choice((0, 0, 0, 1, 2)), rng.choice((48, 48, 48, 32))
        register = int(instruction == 2)  # the first two have the same
        start, form = (
            rng.choice((0, 64, 100, 2**32 - 20, 2**32 - 200, 2**31)),
            rng.choice(FORMS[: rng.choice((1, 2, 6))]),
        )
        addresses = (form(np.arange(LANES)) + start).astype(np.uint32)
        pattern = learned.learn(addresses, register, instruction, lanes)
        assert what(pattern) == what(Learned().learn(addresses, 0, 0, lanes))
        seen = addresses[:lanes].tolist()
        before = by_stamp.setdefault((register, int(pattern[at.STAMP])), seen)
        assert before[:lanes] == seen[: len(before)]
        first = (addresses - np.uint32(pattern[at.MOVED]))[:lanes]
        assert np.array_equal(by_form.setdefault((register, int(pattern[at.FORM])), first)[:lanes], first)


def test_a_row_that_moves_keeps_its_form() -> None:
    learned = Learned()
    patterns = [learned.learn(np.arange(LANES, dtype=np.uint32) + np.uint32(n), 0, 0, LANES) for n in (5, 9, 2, 2)]
    assert [pattern[at.FORM] for pattern in patterns] == [1] * 4
    assert [pattern[at.MOVED] for pattern in patterns] == [0, 4, 2**32 - 3, 2**32 - 3]
    assert [pattern[at.STAMP] for pattern in patterns] == [1, 2, 3, 3]
