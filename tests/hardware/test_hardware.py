"""Bank and sector rules against the counters of a real GPU: one warp, one instruction a row, no mismatch allowed.

Tables of shared memory have the columns access, bytes_per_lane, wavefronts and lane_word_addresses (32 words, `-` for
an inactive lane), and may have bank_conflicts. `h200_partial_masks.csv` is ours; others are read from the folder
`hardware` beside the conformance data, where there is one. `h200_accesses.csv` has shared and global memory, in byte
addresses, as `measure_accesses.py` says, and so has `h200_scattered_atomics.csv`: atomic operations on the words of one
line, of which one lane goes to another line.
"""

import csv
import os
from pathlib import Path

import pytest

from bankshot.sim.models.devices import NVIDIA

ROOT = Path(__file__).parents[2]
CONFORMANCE = Path(os.environ.get("BANKSHOT_CONFORMANCE", ROOT.parent / "shared" / "conformance"))
FOLDER = CONFORMANCE.parent / "hardware"
OURS = Path(__file__).with_name("h200_partial_masks.csv")
TABLES = [OURS, *(sorted(FOLDER.glob("h200_shared_memory*.csv")) or [None])]


@pytest.fixture(params=TABLES, ids=lambda table: table.stem if table else "none")
def rows(request):
    if request.param is None:
        pytest.skip(f"no h200_shared_memory*.csv in {FOLDER}: set BANKSHOT_CONFORMANCE to the folder beside it")
    with request.param.open() as file:
        return list(csv.DictReader(file))


def access(row):
    words = row["lane_word_addresses"].split()
    active = [word != "-" for word in words]
    addresses = [4 * int(word) if on else 0 for word, on in zip(words, active, strict=True)]
    return addresses, int(row["bytes_per_lane"]), active, row["access"] == "store"


def test_the_table_is_worth_testing_with(rows):
    assert {(row["access"], row["bytes_per_lane"]) for row in rows} == {
        (access, width) for access in ("load", "store") for width in ("4", "8", "16")
    }
    assert len(rows) > 500


def test_wavefronts_are_what_the_gpu_counted(rows):
    wrong = [row for row in rows if NVIDIA.shared_wavefronts(*access(row)) != int(row["wavefronts"])]
    assert not wrong


def test_wavefronts_past_the_ideal_are_the_bank_conflicts_that_the_gpu_counted(rows):
    counted = [(access(row), int(row["bank_conflicts"])) for row in rows if "bank_conflicts" in row]
    wrong = [
        (lanes, conflicts)
        for lanes, conflicts in counted
        if NVIDIA.shared_wavefronts(*lanes) - NVIDIA.ideal_shared_wavefronts(*lanes) != conflicts
    ]
    assert not wrong


# ---- both memories, all widths -----------------------------------------------------------------------

with Path(__file__).with_name("h200_accesses.csv").open() as opened:
    ACCESSES = list(csv.DictReader(opened))


def lanes(row):
    words = row["lane_byte_addresses"].split()
    active = [word != "-" for word in words]
    return [int(word) if on else 0 for word, on in zip(words, active, strict=True)], active


@pytest.mark.parametrize("memory", ["shared", "global"])
@pytest.mark.parametrize("access", ["load", "store"])
@pytest.mark.parametrize("width", [2, 4, 8, 16])
def test_loads_and_stores_cost_what_the_gpu_counted(memory, access, width):
    kind = (memory, access, str(width))
    rows = [row for row in ACCESSES if (row["memory"], row["access"], row["bytes_per_lane"]) == kind]
    wrong = []
    for row in rows:
        addresses, active = lanes(row)
        if memory == "shared":
            cost, counted = NVIDIA.shared_wavefronts(addresses, width, active, access == "store"), row["wavefronts"]
        else:
            cost, counted = NVIDIA.global_sectors(addresses, width, active), row["sectors"]
        if cost != int(counted):
            wrong.append((cost, row))
    assert len(rows) >= 90
    assert not wrong


# ---- atomic operations -------------------------------------------------------------------------------

SCATTERED = list(csv.DictReader(Path(__file__).with_name("h200_scattered_atomics.csv").open()))
LINE = 128


def same_word_of_another_line(addresses, active):
    """Whether two active lanes ask for one word of different lines."""
    asked = {address for address, on in zip(addresses, active, strict=True) if on}
    return len({address % LINE for address in asked}) < len(asked)


def test_shared_atomics_cost_what_the_gpu_counted():
    rows = [row for row in ACCESSES if (row["memory"], row["access"]) == ("shared", "atomic")]
    assert len(rows) == 205
    assert [row for row in rows if NVIDIA.shared_atomic_wavefronts(*lanes(row)) != int(row["wavefronts"])] == []


def test_global_atomics_cost_what_the_gpu_counted_where_no_lanes_share_a_word_of_different_lines():
    rows = [row for row in ACCESSES if (row["memory"], row["access"]) == ("global", "atomic")]
    more = {True: [], False: []}
    for row in rows:
        addresses, active = lanes(row)
        over = int(row["sectors"]) - NVIDIA.global_atomic_sectors(addresses, active)
        more[same_word_of_another_line(addresses, active)].append(over)
    assert len(more[False]) > 100
    assert set(more[False]) == {0}
    assert sorted(over for over in more[True] if over) == [1] * 6 + [2]  # a hash of where the buffer lies parts these


def test_a_lane_elsewhere_makes_the_gpu_pass_one_sector_more_at_times_and_only_before_the_lane_that_it_meets():
    divergent = 0
    for row in SCATTERED:
        addresses, active = lanes(row)
        over = int(row["sectors"]) - NVIDIA.global_atomic_sectors(addresses, active)
        away = addresses.index(max(addresses))
        met = [lane for lane in range(away + 1, 32) if addresses[lane] == addresses[away] % LINE]
        assert over in ((0, 1) if met else (0,))
        divergent += over
    assert (divergent, len(SCATTERED)) == (19, 155)
