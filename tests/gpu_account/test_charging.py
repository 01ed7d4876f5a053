"""What an account charges for records, from addresses and lanes that are known by hand."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from bankshot.oracle.gpu_account import global_memory, shared_memory
from bankshot.oracle.gpu_account.account import COUNTERS, Account, _patterns
from bankshot.oracle.gpu_account.hardware import Hardware
from bankshot.oracle.gpu_account.idle_lanes import Passage, Shape, begun, executions
from bankshot.oracle.gpu_account.regions import Anchor, Place, Region
from bankshot.sim.wgsl.source import Source, Span

SOURCE = Source("a b c d e f", "k.wgsl")
SMALL = Hardware(subgroup_size=4, banks=4, bank_width=4, pair_merge=False, lane_order={}, sector_bytes=8, line_bytes=16,
                 fused=True)  # fmt: skip


def place(number, kind, space=None, width=0, **given):
    return Place(kind, Span(SOURCE, 2 * number, 2 * number + 1), space, "y" if space else None, width, **given)


def passage(*rows):
    """Arrivals of workgroup, lane and path, in stage 0."""
    return Passage(*np.array([(*row, 0) for row in rows], np.int64).reshape(-1, 4).T)


def account(*places, instructions=None, shape=Shape(8, 4), hardware=SMALL):  # noqa: B008  # never changed
    made = Account(hardware, shape)
    region = Region(Anchor("open", Span(SOURCE, 0, 1)), list(places), Counter(instructions or {}))
    made.open([region])
    return made, region


def nonzero(made, of):
    return {name: count for name, count in made.counters[of.key].items() if count}


# ---- regions -----------------------------------------------------------------------------------------

WHOLE = [(0, lane, 5) for lane in range(8)]


def test_a_place_that_nothing_comes_to_has_a_row_of_zeros():
    load, span = place(1, "load", "storage", 4), Span(SOURCE, 4, 5)
    made, _ = account(load, instructions={("integer", span): 2})
    assert made.places == {load.key: load}
    assert (dict(made.counters), made.instructions) == ({load.key: Counter()}, {("integer", span): [0, 0]})
    assert {name: made.counters[load.key][name] for name in COUNTERS} == dict.fromkeys(COUNTERS, 0)


def test_arrivals_are_charged_to_all_that_is_in_a_region():
    """Workgroup 0 comes whole, in 2 subgroups; then lanes 0, 1 and 4 come again."""
    store, op, atomic = place(1, "store", "storage", 4), place(2, "op", flops=3), place(3, "atomic", "workgroup", 4)
    barrier, span = place(4, "barrier"), Span(SOURCE, 0, 1)
    made, region = account(store, op, atomic, barrier, instructions={("fp32", span): 2})
    arrivals = passage(*WHOLE, (0, 0, 6), (0, 1, 6), (0, 4, 6))
    made.entered(region, arrivals, begun(passage(*WHOLE), made.shape))
    common = {"executions": 4, "active_lanes": 11, "idle_divergence": 5}
    assert nonzero(made, store) == common
    assert nonzero(made, op) == {**common, "flops": 33}
    assert nonzero(made, atomic) == {**common, "atomics": 11}
    assert nonzero(made, barrier) == {**common, "barriers": 2}
    assert made.instructions["fp32", span] == [8, 22]
    made.entered(region, passage(*[(1, lane, 5) for lane in range(8)]), {(0, 1, 0): 4, (0, 1, 1): 4})
    assert made.instructions["fp32", span] == [12, 38]
    assert nonzero(made, barrier)["barriers"] == 3


@pytest.mark.parametrize(
    ("kind", "space", "works"),
    [
        ("load", "workgroup", True), ("store", "storage", True), ("atomic", "storage", True), ("load", "texture", True),
        ("load", "uniform", False), ("load", "immediate", False), ("op", None, False), ("barrier", None, False),
        ("subgroup", None, False),
    ],
)  # fmt: skip
def test_invocations_that_access_memory_that_others_see_work(kind, space, works):
    made, region = account(place(1, "op", flops=1), place(2, kind, space, 4))
    made.entered(region, passage((3, 1, 0), (3, 6, 0)), {(0, 3, 0): 1, (0, 3, 1): 1})
    assert made.working == ({(3, 1), (3, 6)} if works else set())


def test_subgroups_of_which_the_last_is_part():
    """6 invocations in subgroups of 4: 2 in the second."""
    shape = Shape(6, 4)
    assert (shape.subgroups, shape.present(np.array([0, 1])).tolist()) == (2, [4, 2])
    assert (Shape(8, 4).subgroups, Shape(1, 32).subgroups) == (2, 1)
    whole = passage(*[(0, lane, 0) for lane in range(6)])
    assert executions(whole, shape, begun(whole, shape)) == {
        "executions": 2, "active_lanes": 6, "idle_guard": 0, "idle_overhang": 2, "idle_divergence": 0,
        "idle_skipped": 0, "visits": 1,
    }  # fmt: skip


def test_stages_are_begun_by_subgroup():
    rows = Passage(*np.array([(0, 0, 0, 0), (0, 3, 0, 0), (0, 4, 0, 0), (2, 0, 0, 1)]).T)
    assert begun(rows, Shape(8, 4)) == {(0, 0, 0): 2, (0, 0, 1): 1, (1, 2, 0): 1}


# ---- accesses ----------------------------------------------------------------------------------------


def charged(kind, space, addresses, width=4, name=None, hardware=SMALL, rows=None):
    at = place(1, kind, space, width, name=name)
    made, _ = account(at, hardware=hardware)
    made.accessed(at, rows or passage(*[(0, lane, 0) for lane in range(len(addresses))]), np.array(addresses))
    return nonzero(made, at)


def test_a_load_of_workgroup_memory():
    """4 banks: lanes 0 and 2 share a bank, and lanes 4 to 7 have one each."""
    assert charged("load", "workgroup", [0, 4, 16, 12, 0, 4, 8, 12]) == {
        "shared_requests": 2, "shared_wavefronts": 3, "shared_ideal_wavefronts": 2,
    }  # fmt: skip


def test_a_load_of_storage():
    """Sectors of 8 bytes and lines of 16: bytes 0 to 7, 16 to 19 and 40 to 43, by 4 lanes of which 2 share a word."""
    assert charged("load", "storage", [0, 4, 16, 40]) == {
        "global_requests": 1, "global_sectors": 3, "global_ideal_sectors": 2, "global_lines": 3, "global_bytes": 16,
    }  # fmt: skip
    assert charged("load", "texture", [0, 0, 0, 0], 8) == {
        "global_requests": 1, "global_sectors": 1, "global_ideal_sectors": 1, "global_lines": 1, "global_bytes": 32,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("space", "name", "expected"),
    [
        ("storage", "atomicAdd", {"global_requests": 1, "global_sectors": 4, "global_ideal_sectors": 1,
                                  "global_lines": 2, "global_bytes": 16, "atomic_turns": 3}),
        ("storage", "atomicLoad", {"global_requests": 1, "global_sectors": 2, "global_ideal_sectors": 1,
                                   "global_lines": 2, "global_bytes": 16}),
        ("workgroup", "atomicAdd", {"shared_requests": 1, "shared_wavefronts": 4, "shared_ideal_wavefronts": 1,
                                    "atomic_turns": 3}),
        ("workgroup", "atomicStore", {"shared_requests": 1, "shared_wavefronts": 2, "shared_ideal_wavefronts": 1}),
    ],
)  # fmt: skip
def test_atomics_take_turns(space, name, expected):
    """Three lanes on word 0, and one on word 4, which the same bank holds."""
    assert charged("atomic", space, [0, 0, 0, 16], name=name) == expected


def test_what_is_no_memory_of_these_costs_nothing():
    assert charged("load", "uniform", [0, 4, 8, 12]) == {}


def test_accesses_are_charged_by_subgroup_turn_and_workgroup():
    """Lanes 0 and 1 twice, lane 5 once, and lane 0 of another workgroup: 4 requests, in any order of the rows."""
    rows = [(0, 0, 1), (0, 1, 1), (0, 0, 2), (0, 1, 2), (0, 5, 1), (1, 0, 1)]
    for order in (range(6), [5, 3, 0, 4, 1, 2]):
        found = charged("load", "workgroup", [0] * 6, rows=passage(*(rows[n] for n in order)))
        assert found == {"shared_requests": 4, "shared_wavefronts": 4, "shared_ideal_wavefronts": 4}


def test_patterns_repeat_after_whole_periods():
    asked = np.array([[0, 4, -1], [64, 68, -1], [16, 20, -1], [0, 4, 8], [130, 134, -1]])
    found = {tuple(pattern.tolist()): count for pattern, count in _patterns(asked, 64)}
    assert found == {(0, 4, -1): 2, (16, 20, -1): 1, (0, 4, 8): 1, (2, 6, -1): 1}


@pytest.mark.parametrize(
    ("facts", "period"),
    [({}, 16), ({"banks": 32}, 128), ({"banks": 32, "bank_width": 8}, 256), ({"line_bytes": 64}, 64),
     ({"sector_bytes": 512}, 512), ({"banks": 1, "line_bytes": 8}, 16)],
)  # fmt: skip
def test_the_bytes_after_which_costs_repeat(facts, period):
    assert Account(replace(SMALL, **facts), Shape(4, 4))._period == period


# ---- banks -------------------------------------------------------------------------------------------

ALL = np.ones(8, bool)


@pytest.mark.parametrize(("width", "served"), [(1, 4), (2, 4), (4, 4), (6, 8), (8, 8), (12, 16), (16, 16)])
def test_accesses_are_served_as_words_pairs_or_fours(width, served):
    """16 bytes at once: 4 lanes of a word, 2 of a pair, 1 of four."""
    assert shared_memory.access(SMALL, served * np.arange(8), ALL, width, True) == (served // 2, served // 2)


def test_lanes_that_ask_for_one_place_are_served_together():
    """Lanes 0 to 3 ask for words 0, 4, 0 and 8, of one bank; lanes 4 to 7 for one word each of other banks."""
    addresses = np.array([0, 16, 0, 32, 4, 8, 12, 0])
    assert shared_memory.access(SMALL, addresses, ALL, 4, True) == (4, 2)
    some = np.array([1, 0, 1, 0, 0, 0, 0, 0], bool)
    assert shared_memory.access(SMALL, addresses, some, 4, True) == (1, 1)
    assert shared_memory.access(SMALL, addresses, np.zeros(8, bool), 4, True) == (0, 0)


def test_pairs_of_lanes_on_one_address_merge_groups():
    """Loads of 8 bytes, 2 lanes to a group; lanes 0 and 1 ask for one place, and so on: groups merge in pairs."""
    merging = replace(SMALL, pair_merge=True)
    pairs = 8 * (np.arange(8) // 2)
    assert shared_memory.access(merging, pairs, ALL, 8, True) == (2, 2)
    assert shared_memory.access(merging, pairs, ALL, 8, False) == (4, 4)
    assert shared_memory.access(merging, 4 * (np.arange(8) // 2), ALL, 4, True) == (2, 2)
    crossed = 8 * np.array([0, 1, 0, 1, 2, 3, 2, 3])  # lanes l and l ^ 2 agree
    assert shared_memory.access(merging, crossed, ALL, 8, True) == (2, 2)
    other = 8 * np.array([0, 1, 0, 1, 2, 3, 4, 3])
    assert shared_memory.access(merging, other, ALL, 8, True) == (4, 4)
    seldom = np.array([1, 1, 1, 1, 1, 1, 0, 1], bool)
    assert shared_memory.access(merging, other, seldom, 8, True) == (2, 2)  # of lanes that do not ask, none disagrees


def test_lanes_may_be_served_in_another_order():
    """In the order 0, 2, 1, 3 of a load of 8 bytes, lanes 0 and 2 are one group, which share a bank."""
    swapped = replace(SMALL, lane_order={8: (0, 2, 1, 3, 4, 5, 6, 7, 8)})
    addresses = 8 * np.array([0, 1, 2, 3, 0, 1, 2, 3])
    assert shared_memory.access(swapped, addresses, ALL, 8, True) == (6, 4)
    assert shared_memory.access(swapped, addresses, ALL, 8, False) == (4, 4)
    assert shared_memory.access(SMALL, addresses, ALL, 8, True) == (4, 4)


def test_lanes_that_a_small_subgroup_lacks_are_left_out_of_the_order():
    """Of the order 3, 2, 1, 0, 5, 4 of six lanes, three lanes have 2, 1 and 0: a group of two, and one."""
    swapped = replace(SMALL, lane_order={8: (3, 2, 1, 0, 5, 4)})
    assert shared_memory.access(swapped, 16 * np.arange(3), ALL[:3], 8, True) == (2 + 1, 2)
    assert shared_memory.access(SMALL, 16 * np.arange(3), ALL[:3], 8, True) == (2 + 1, 2)


def test_atomics_collide_in_banks():
    on = np.array([1, 1, 1, 0, 1, 0, 0, 0], bool)
    addresses = np.array([0, 16, 4, 0, 8, 8, 8, 8])
    assert shared_memory.atomic(SMALL, addresses, on) == (3, 2)
    assert shared_memory.atomic(SMALL, addresses, np.zeros(8, bool)) == (0, 0)
    wide = replace(SMALL, banks=2, bank_width=8)
    assert shared_memory.atomic(wide, np.array([0, 4, 8, 16, 0, 8, 16, 24]), ALL) == (2 + 1 + 1 + 1, 4)


def test_sectors_of_atomics_pass_once_for_each_lane_on_their_busiest_word():
    """Words 0 and 1 share a sector of 8 bytes: 3 and 2 lanes. Word 2 has 1 lane."""
    addresses = np.array([0, 0, 4, 4, 0, 8, 8, 8])
    on = np.array([1, 1, 1, 1, 1, 1, 0, 0], bool)
    assert global_memory.atomic_sectors(SMALL, addresses, on) == 3 + 1
    assert (global_memory.turns(addresses, on), global_memory.turns(addresses, ~ALL)) == (3, 0)
