"""What rows of a log say: requests in order, the worst access of a site, and the words of its lanes. By hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from bankshot.oracle.gpu_counters.access_trace import Request, Trace, requests
from bankshot.oracle.gpu_counters.bank_conflicts import Access, WordAccess, _costliest, _words
from bankshot.oracle.gpu_counters.wgsl_probes import Probe
from bankshot.sim.models import DEVICES

LOAD, STORE, BARRIER = (SimpleNamespace(kind=kind, variable=name, line=line) for kind, name, line in
                        (("load", "x", 3), ("store", "y", 4), ("barrier", None, 5)))  # fmt: skip
SITES = [LOAD, STORE, BARRIER]


def rows(*given):
    """Of probe, lane, two words of path, and address."""
    made = [(probe | lane << 12, *path, address) for probe, lane, path, address in given]
    return np.array(made, np.uint32).reshape(-1, 4)


def read(table, probes, size=4):
    return [(SITES.index(each.site), each.subgroup, each.epoch, each.addresses.tolist())
            for each in requests(table, probes, SITES, size)]  # fmt: skip


A, B, C = (0, 1), (0, 2), (1, 1)  # paths


def test_rows_of_one_probe_path_and_subgroup_are_a_request():
    table = rows((0, 0, A, 40), (0, 2, A, 48), (0, 5, A, 60), (0, 1, B, 44), (0, 3, C, 4), (0, 3, A, 52))
    probes = [Probe(((0, 0),))]
    assert read(table, probes) == [
        (0, 0, 0, [40, -1, 48, 52]),
        (0, 1, 0, [-1, 60, -1, -1]),
        (0, 0, 0, [-1, 44, -1, -1]),
        (0, 0, 0, [-1, -1, -1, 4]),
    ]


def test_requests_come_in_the_order_of_their_first_rows():
    table = rows((1, 0, A, 8), (0, 0, A, 4), (1, 1, A, 12))
    assert read(table, [Probe(((0, 0),)), Probe(((1, 0),))]) == [(1, 0, 0, [8, 12, -1, -1]), (0, 0, 0, [4, -1, -1, -1])]


def test_a_probe_of_several_sites_adds_their_offsets():
    table = rows((0, 1, A, 16))
    assert read(table, [Probe(((0, 0), (1, 4)))]) == [(0, 0, 0, [-1, 16, -1, -1]), (1, 0, 0, [-1, 20, -1, -1])]


@pytest.mark.parametrize("times", [1, 2])
def test_barriers_begin_epochs_of_their_subgroup(times):
    table = rows((0, 0, A, 4), (1, 0, A, 0), (0, 0, B, 8), (0, 4, B, 8), (1, 0, B, 0), (0, 0, C, 12))
    probes = [Probe(((0, 0),)), Probe(((2, 0),), times)]
    assert [(site, subgroup, epoch) for site, subgroup, epoch, _ in read(table, probes)] == [
        (0, 0, 0), (2, 0, 0), (0, 0, times), (0, 1, 0), (2, 0, times), (0, 0, 2 * times)
    ]  # fmt: skip


def test_nothing_is_recorded_of_no_rows():
    assert read(rows(), [Probe(((0, 0),))]) == []


def test_a_trace_lists_requests_by_variable_kind_and_line():
    made = [Request(site, 0, epoch, np.array([4, -1])) for epoch, site in enumerate((LOAD, STORE, BARRIER, LOAD))]
    later = SimpleNamespace(kind="load", variable="x", line=9)
    made.append(Request(later, 0, 4, np.array([-1, -1])))
    run = SimpleNamespace(pipeline=SimpleNamespace(workgroup_size=(4, 3, 2)))
    trace = Trace(None, run, (0, 0, 0), tuple(made))
    assert trace.of("x") == [made[0], made[3], made[4]]
    assert trace.of("x", "store") == []
    assert trace.of("x", line=3) == [made[0], made[3]]
    assert trace.of("x", "load", 9) == [made[4]]
    assert (trace.lines("x", "load"), trace.lines("y", "load"), trace.lines("y", "store")) == ([3, 9], [], [4])
    assert (trace.lanes, trace.epochs) == (24, 5)
    assert Trace(None, run, (0, 0, 0), ()).epochs == 1
    assert made[0].active.tolist() == [True, False]


# ---- the worst conflicts -----------------------------------------------------------------------------

NVIDIA = DEVICES["nvidia"]


def site(kind="load", width=4, atomic=False):
    return SimpleNamespace(kind=kind, space="workgroup", bytes_per_lane=width, takes_turns=atomic)


def words(addresses, **of):
    found = _words(np.array(addresses, np.int64), site(**of), NVIDIA)
    return [(each.lane, each.bank, each.word, each.turn) for each in found]


WORDS = {
    "neighbours": ([0, 4, 8], {}, [(0, 0, 0, 0), (1, 1, 1, 0), (2, 2, 2, 0)]),
    "one word": ([8, 8, 8], {}, [(0, 2, 2, 0), (1, 2, 2, 0), (2, 2, 2, 0)]),
    "one bank": ([0, 128, 256, 128], {}, [(0, 0, 0, 0), (1, 0, 32, 1), (2, 0, 64, 2), (3, 0, 32, 1)]),
    "inactive lanes": ([-1, 128, -1, 0], {}, [(1, 0, 32, 0), (3, 0, 0, 1)]),
    "two words each": ([0, 8], {"width": 8}, [(0, 0, 0, 0), (0, 1, 1, 0), (1, 2, 2, 0), (1, 3, 3, 0)]),
    "half a word": ([0, 2, 4], {"width": 2}, [(0, 0, 0, 0), (1, 0, 0, 0), (2, 1, 1, 0)]),
    "across the last bank": ([124], {"width": 8}, [(0, 31, 31, 0), (0, 0, 32, 0)]),
    "atomics take turns on one word": ([4, 4, 4], {"atomic": True}, [(0, 1, 1, 0), (1, 1, 1, 1), (2, 1, 1, 2)]),
}  # fmt: skip


@pytest.mark.parametrize("name", WORDS)
def test_the_words_of_an_access(name):
    addresses, of, expected = WORDS[name]
    assert words(addresses, **of) == expected


def access(*touches, wavefronts=2):
    return Access(None, 32, 4, wavefronts, 1, tuple(WordAccess(*each) for each in touches))


def test_the_busiest_banks():
    one = access((0, 0, 0, 0), (1, 0, 32, 1), (2, 3, 3, 0), (3, 0, 64, 2))
    assert one.busiest == [(0, 3, [0, 1, 3])]
    two = access((0, 7, 7, 0), (1, 7, 39, 1), (2, 3, 3, 0), (3, 3, 35, 1), (0, 9, 9, 0))
    assert two.busiest == [(3, 2, [2, 3]), (7, 2, [0, 1])]


def test_the_costliest_access_is_furthest_from_its_ideal():
    lanes = np.arange(32)
    ideal, pairs, fours = (np.array(4 * lanes * step, np.int64) for step in (1, 2, 4))
    found = _costliest(site(), [ideal, pairs, fours, pairs], NVIDIA)
    assert (found.wavefronts, found.ideal, found.lanes, found.banks) == (4, 1, 32, 32)
    assert [each.word for each in found.touches] == (4 * lanes).tolist()
    assert _costliest(site(), [ideal, np.zeros(32, np.int64)], NVIDIA) is None
    assert _costliest(site(), [], NVIDIA) is None
    some = np.where(lanes < 3, 128 * lanes, -1)
    assert _costliest(site(), [some], NVIDIA).wavefronts == 3


# 32 lanes on one of 32 banks, two lanes a word. Of accesses of 8 bytes, 16 lanes are a group; loads of pairs merge two.
COSTS = {
    "a wide load": ({"width": 8}, 128 * (np.arange(32) // 2), (16, 1)),
    "a wide store": ({"width": 8, "kind": "store"}, 128 * (np.arange(32) // 2), (16, 2)),
    "an atomic on one bank": ({"kind": "atomic", "atomic": True}, 128 * (np.arange(32) // 2), (32, 1)),
    "an atomic on one word": ({"kind": "atomic", "atomic": True}, np.full(32, 8), (32, 1)),
    "an atomic of few lanes": ({"kind": "atomic", "atomic": True}, np.where(np.arange(32) < 3, 8, -1), (3, 1)),
    "an atomic load": ({"kind": "atomic"}, 128 * (np.arange(32) // 4), (8, 1)),
}


@pytest.mark.parametrize("name", COSTS)
def test_an_access_costs_what_its_kind_costs(name):
    of, addresses, expected = COSTS[name]
    found = _costliest(site(**of), [addresses.astype(np.int64)], NVIDIA)
    assert (found.wavefronts, found.ideal) == expected
