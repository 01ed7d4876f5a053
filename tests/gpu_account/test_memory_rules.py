"""The account's own bank and sector rules against the profiler counters of an H200: one warp, one instruction a row.

The tables are those of `tests/hardware`, and where there are any, those beside the conformance data.
"""

import csv
import os
from pathlib import Path

import numpy as np
import pytest

from bankshot.oracle.gpu_account import global_memory, shared_memory
from bankshot.oracle.gpu_account.hardware import Hardware

ROOT = Path(__file__).parents[2]
CONFORMANCE = Path(os.environ.get("BANKSHOT_CONFORMANCE", ROOT.parent / "shared" / "conformance"))
FOLDER = CONFORMANCE.parent / "hardware"
OURS = ROOT / "tests" / "hardware"
WORDS = [OURS / "h200_partial_masks.csv", *(sorted(FOLDER.glob("h200_shared_memory*.csv")) or [None])]

H200 = Hardware()  # 32 lanes, 32 banks of 4 bytes, sectors of 32 bytes, lines of 128
AMD = Hardware(subgroup_size=64, pair_merge=False, sector_bytes=64)


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def lanes(words, unit=1):
    given = words.split()
    return np.array([unit * int(w) if w != "-" else 0 for w in given]), np.array([w != "-" for w in given])


@pytest.mark.parametrize("path", WORDS, ids=lambda path: path.stem if path else "none")
def test_wavefronts_and_conflicts_are_what_the_gpu_counted(path):
    if path is None:
        pytest.skip(f"no h200_shared_memory*.csv in {FOLDER}: set BANKSHOT_CONFORMANCE to the folder beside it")
    rows = rows_of(path)
    assert len(rows) > 500
    for row in rows:
        at, on = lanes(row["lane_word_addresses"], 4)
        cost, ideal = shared_memory.access(H200, at, on, int(row["bytes_per_lane"]), row["access"] == "load")
        assert cost == int(row["wavefronts"]), row
        assert "bank_conflicts" not in row or cost - ideal == int(row["bank_conflicts"]), row


ACCESSES = rows_of(OURS / "h200_accesses.csv")


@pytest.mark.parametrize("memory", ["shared", "global"])
@pytest.mark.parametrize("access", ["load", "store", "atomic"])
def test_accesses_of_all_widths_cost_what_the_gpu_counted(memory, access):
    rows = [row for row in ACCESSES if (row["memory"], row["access"]) == (memory, access)]
    assert len(rows) >= 205
    for row in rows:
        (at, on), width = lanes(row["lane_byte_addresses"]), int(row["bytes_per_lane"])
        if memory == "shared" and access == "atomic":
            assert shared_memory.atomic(H200, at, on)[0] == int(row["wavefronts"]), row
        elif memory == "shared":
            assert shared_memory.access(H200, at, on, width, access == "load")[0] == int(row["wavefronts"]), row
        elif access != "atomic":
            assert global_memory.sectors(H200, at, on, width) == int(row["sectors"]), row
        elif len(set(at[on] % 128)) == len(set(at[on])):  # else the hardware's hash of the buffer's address decides
            assert global_memory.atomic_sectors(H200, at, on) == int(row["sectors"]), row


ALL = np.ones(32, bool)
LANES = np.arange(32)


@pytest.mark.parametrize(
    ("addresses", "width", "load", "cost"),
    [
        (4 * LANES, 4, True, (1, 1)),
        (8 * LANES, 4, True, (2, 1)),  # every second bank: two words of each
        (128 * LANES, 4, True, (32, 1)),
        (0 * LANES, 4, True, (1, 1)),  # one word for all
        (16 * LANES, 16, True, (4, 4)),  # wide accesses: ideal takes four
        (128 * LANES, 16, True, (32, 4)),
        (16 * (LANES // 2), 16, True, (2, 2)),  # pairs on one address: groups merge
        (16 * (LANES // 2), 16, False, (4, 4)),  # stores do not
        (16 * LANES, 12, True, (4, 4)),  # three components like four
    ],
)
def test_bank_conflicts_by_hand(addresses, width, load, cost):
    assert shared_memory.access(H200, addresses, ALL, width, load) == cost


def test_other_devices_have_other_figures():
    lanes64, all64 = np.arange(64), np.ones(64, bool)
    assert shared_memory.access(AMD, 4 * lanes64, all64, 4, True) == (2, 2)  # 32 lanes at a time
    sixteen = Hardware(subgroup_size=16, banks=16, pair_merge=False)
    assert shared_memory.access(sixteen, 64 * LANES[:16], ALL[:16], 4, True) == (16, 1)
    wide = Hardware(banks=32, bank_width=8)
    assert shared_memory.access(wide, 4 * LANES, ALL, 4, True) == (1, 1)
    swapped = Hardware(pair_merge=False, lane_order={16: tuple(LANES ^ 16)})
    assert shared_memory.access(swapped, 16 * LANES, ALL, 16, True) == (4, 4)


@pytest.mark.parametrize(
    ("addresses", "width", "counts"),
    [
        (4 * LANES, 4, (4, 4, 1)),  # sectors, ideal, lines
        (8 * LANES, 4, (8, 4, 2)),
        (32 * LANES, 4, (32, 4, 8)),
        (0 * LANES, 4, (1, 1, 1)),
        (4 * LANES + 16, 4, (5, 4, 2)),
        (16 * LANES, 12, (16, 12, 4)),
        (2 * LANES, 2, (2, 2, 1)),
    ],
)
def test_sectors_by_hand(addresses, width, counts):
    how = (H200, addresses, ALL, width)
    assert (global_memory.sectors(*how), global_memory.ideal_sectors(*how), global_memory.lines(*how)) == counts


def test_atomics_take_turns_on_a_word():
    on = LANES < 20
    assert global_memory.turns(0 * LANES, on) == 20
    assert global_memory.atomic_sectors(H200, 0 * LANES, on) == 20
    assert global_memory.atomic_sectors(H200, 4 * (LANES % 4), on) == 5
    assert global_memory.atomic_sectors(H200, 32 * (LANES % 2), on) == 20  # two sectors, ten passes each
    assert shared_memory.atomic(H200, 128 * LANES, on) == (20, 1)  # one bank, other words


def test_lanes_without_a_partner_share_with_none():
    """Three lanes that load eight bytes: two of one place and one of the next, which other banks hold."""
    on = np.ones(3, np.bool_)
    assert shared_memory.access(H200, np.array([0, 0, 8]), on, 8, is_load=True) == (1, 1)
    assert shared_memory.access(H200, np.array([0, 128, 256]), on, 8, is_load=True) == (3, 1)
