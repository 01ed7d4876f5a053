"""Functions of the machine that decide how it runs, not what it computes: as Python has them, on tables by hand."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_here import as_python

from bankshot.sim.machine import endless
from bankshot.sim.machine import layout as at
from bankshot.sim.machine.compile import units

# ---- the comparison of states ------------------------------------------------------------------------------

(still_differs,) = (as_python(part) for part in units.PARTS if part.symbol.endswith(".still_differs"))
WIDTH, REGISTERS, SHARED, STORAGE = 3, 5, 4, 6  # lanes, rows, and words


def compared(change: str = "", with_storage: bool = True, left: int = 2) -> tuple[int, int, int, int]:
    """Compare a state with its snapshot, of which one thing is changed; the result, and what the progress then has."""
    progress = np.zeros(at.PROGRESS.size, np.int64)
    progress[at.TO_COMPARE], progress[at.AT_LOOP], progress[at.DIFFERED] = left, 7, 1
    progress[at.WIDTHS : at.WIDTHS + at.LEVELS] = progress[at.AT_WIDTHS : at.AT_WIDTHS + at.LEVELS] = 3
    regs = np.arange(REGISTERS * WIDTH, dtype=np.uint32).reshape(REGISTERS, WIDTH)
    shared, storage = np.arange(100, 100 + SHARED, dtype=np.uint32), np.arange(200, 200 + STORAGE, dtype=np.uint32)
    snapshot = np.concatenate([regs.ravel(), shared, storage] if with_storage else [regs.ravel(), shared])
    kind, _, number = change.partition(" ")
    arrays = {"register": regs.ravel(), "shared": shared, "storage": storage}
    if kind in arrays:
        arrays[kind][int(number)] ^= 1 << 31
    if kind == "level":
        progress[at.WIDTHS + int(number)] = 2
    result = still_differs(regs, shared, storage, snapshot, 8 if kind == "loop" else 7, progress)
    return int(result), int(progress[at.TO_COMPARE]), int(progress[at.REPEATED]), int(progress[at.DIFFERED])


def test_the_same_state_is_the_end():
    assert compared() == (0, 1, 1, 1)
    assert compared(with_storage=False) == (0, 1, 1, 1)
    assert compared("storage 0", with_storage=False) == (0, 1, 1, 1)  # storage that does not matter


@pytest.mark.parametrize("change", [
    "loop", *(f"level {n}" for n in range(at.LEVELS)), *(f"shared {n}" for n in range(SHARED)),
    *(f"storage {n}" for n in range(STORAGE)),
])  # fmt: skip
def test_another_state_goes_on_until_the_last_comparison(change):
    assert compared(change) == (1, 1, 0, 1)
    assert compared(change, left=1) == (0, 0, 0, 1)


@pytest.mark.parametrize("word", range(REGISTERS * WIDTH))
def test_the_row_that_differs_is_noted_and_compared_first(word):
    assert compared(f"register {word}") == (1, 1, 0, word // WIDTH)


@pytest.mark.parametrize("left", [0, -1])
def test_no_comparison_is_left(left):
    assert compared(left=left) == (0, left, 0, 1)


@pytest.mark.parametrize("size", [1, 4095, 4096, 4097, 9000])
def test_memory_is_compared_to_its_last_word(size):
    differs = as_python(endless.memory_differs)
    memory = np.arange(size, dtype=np.uint32)
    for word in {0, size // 2, size - 1}:
        snapshot = np.concatenate([np.zeros(3, np.uint32), memory])
        assert not differs(memory, snapshot, 3)
        snapshot[3 + word] ^= 1
        assert differs(memory, snapshot, 3)
