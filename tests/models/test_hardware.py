"""The bank rule against the counters of a real GPU: one warp, one instruction a row, no mismatch allowed."""

import csv
import os
from pathlib import Path

import pytest

from sim.models.devices import NVIDIA

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("BANKSHOT_HARDWARE", ROOT.parent / "shared" / "hardware"))
COUNTERS = FOLDER / "h200_shared_memory.csv"


@pytest.fixture(scope="module")
def measured():
    if not COUNTERS.exists():
        pytest.skip(f"hardware counters not found at {COUNTERS}: set BANKSHOT_HARDWARE to the folder that holds them")
    with COUNTERS.open() as file:
        return list(csv.DictReader(file))


def access(row):
    bytes_ = [4 * int(word) for word in row["lane_word_addresses"].split()]
    return bytes_, int(row["bytes_per_lane"]), None, row["access"] == "store"


def test_the_table_is_worth_testing_with(measured):
    assert {(row["access"], row["bytes_per_lane"]) for row in measured} == {
        (access, width) for access in ("load", "store") for width in ("4", "8", "16")
    }
    assert len(measured) > 500


def test_wavefronts_are_what_the_gpu_counted(measured):
    wrong = [row for row in measured if NVIDIA.shared_wavefronts(*access(row)) != int(row["wavefronts"])]
    assert not wrong


def test_wavefronts_past_the_ideal_are_the_bank_conflicts_that_the_gpu_counted(measured):
    wrong = [
        row
        for row in measured
        if NVIDIA.shared_wavefronts(*access(row)) - NVIDIA.ideal_shared_wavefronts(*access(row))
        != int(row["bank_conflicts"])
    ]
    assert not wrong
