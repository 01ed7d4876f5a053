"""The tables of the race probes by hand: what is watched, how many shadows there is room for, and merged tables."""

from types import SimpleNamespace

import numpy as np
import pytest

import bankshot
from bankshot.sim.launch.race_tables import LaunchShadow, WatchedAccesses, merged_races, race_rows
from bankshot.sim.machine import layout as at

SOURCE = """
enable f16;
@group(0) @binding(0) var<storage, read> x: array<u32, 8>;
@group(0) @binding(1) var<storage, read_write> y: array<u32, 8>;
@group(0) @binding(2) var<storage, read_write> z: array<vec4u, 2>;
@group(0) @binding(3) var<uniform> n: u32;
@group(0) @binding(4) var<storage, read_write> both: array<u32, 8>;
@group(0) @binding(5) var<storage, read_write> only_read: array<u32, 8>;
var<workgroup> t: array<u32, 8>;
var<workgroup> h: array<f16, 8>;
@compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {
    t[i] = x[i] + n; workgroupBarrier();
    y[i] = t[7u - i] + only_read[i]; z[i % 2u].y = 1u; both[i] += 1u;
    HALVES
}
"""


def watched(halves=""):
    names = {"x": 8, "y": 8, "z": 8, "n": 1, "both": 8, "only_read": 8}
    bindings = {name: np.zeros(size, np.uint32) for name, size in names.items()}
    run = bankshot.simulate(SOURCE.replace("HALVES", halves), grid=1, bindings=bindings, probes="races", replay=False)
    return run.program, WatchedAccesses(run.program)


def test_storage_is_watched_where_something_is_stored():
    _, found = watched()
    assert found.storage == {"y", "z", "both"}


@pytest.mark.parametrize(("halves", "grain"), [("", 4), ("h[i] = 1h;", 2)])
def test_a_grain_is_as_wide_as_the_narrowest_access(halves, grain):
    program, found = watched(halves)
    assert found.grains["workgroup"] == grain
    assert found.grains["storage"] == 4
    rows = [(program.accesses[probe.access], row) for probe, row in
            zip(program.race_probes, found.table(np.zeros((999, 16), np.int64)), strict=True)]  # fmt: skip
    for access, row in rows:
        own = access.space == "workgroup"
        wide = 2 if access.variable.name == "h" else 4
        assert row[at.WATCHED_GRAIN] == (grain if own else 4)
        assert row[at.WATCHED_FACTOR] == wide // row[at.WATCHED_GRAIN]
        assert row[at.WATCHED_PITCH] == (program.shared_bytes // grain if own else 0)
    variables = {access.variable.name: row[at.WATCHED_VARIABLE] for access, row in rows}
    assert sorted(variables.values()) == list(range(len(variables)))
    read = {access.variable.name for access, row in rows if row[at.WATCHED_READ]}
    assert read == {"t", "both"}


def test_storage_is_not_watched_where_only_workgroup_memory_is_accessed():
    text = """var<workgroup> t: array<u32, 8>;
        @compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) { t[i] = i; t[7u - i] = 3u; }"""
    found = WatchedAccesses(bankshot.simulate(text, grid=1, probes="races", replay=False).program)
    assert found.storage == set()


# ---- threads -----------------------------------------------------------------------------------------

# Three bindings of 4, 3 and 5 words; only `y` and `z` are stored to.
PLACES = {"x": 0, "y": 16, "z": 28}


def shadow_of(grain=4, storage=("y", "z"), words=12):
    watched = SimpleNamespace(grains={"storage": grain}, storage=set(storage))
    return LaunchShadow(SimpleNamespace(), watched, PLACES, words)


def test_shadow_memory_ends_with_the_last_binding_with_stores():
    """7 grains of 40 bytes in a span of 32, which has four blocks of 32."""
    assert shadow_of(words=1 << 20, storage=("y",)).threads == (1 << 35) // (7 * 40 + 5 * 32)


def test_no_thread_has_more_shadow_than_there_is_room_for():
    """42.5 bytes to a grain, in 2^35 bytes; past 2^24 grains, 2.5."""
    assert shadow_of(words=1 << 20).threads == (1 << 35) // (85 << 19)
    assert shadow_of(words=1 << 20, grain=2).threads == (1 << 35) // (85 << 20)
    assert shadow_of(words=1 << 30).threads == (1 << 35) // ((5 << 29) + (40 << 24))
    assert shadow_of(words=1 << 34).threads == 1
    assert shadow_of(words=1 << 32, storage=()).threads == 1024
    assert shadow_of(words=100).shadow().grains >= 100
    assert shadow_of(words=100, storage=()).shadow().grains == 1


# ---- races -------------------------------------------------------------------------------------------


def table(*races, needed=0):
    """Of first, second, across, times, different and place."""
    made = at.RACES.new(len(races) + 3)  # with room for more
    made[at.HEADER, at.RECORDED], made[at.HEADER, at.BARRIER_NEEDED] = len(races), needed
    columns = [at.RACE_FIRST, at.RACE_SECOND, at.RACE_ACROSS, at.RACE_TIMES, at.RACE_DIFFERENT, at.RACE_PLACE]
    for number, race in enumerate(races, 1):
        made[number, columns] = race
    return made, columns


def told(made):
    _, columns = table()
    return race_rows(made)[:, columns].tolist()


def test_merged_tables_add_the_races_of_one_pair():
    """The place is that of the first occurrence; pairs within and across workgroups are two."""
    ours, _ = table((1, 2, 0, 5, 1, 70), (3, 3, 1, 1, 0, 71), needed=2)
    theirs, _ = table((3, 3, 0, 7, 7, 72), (1, 2, 0, 10, 4, 73), (2, 1, 0, 1, 1, 74), needed=5)
    merged = merged_races(ours, theirs)
    assert told(merged) == [[1, 2, 0, 15, 5, 70], [3, 3, 1, 1, 0, 71], [3, 3, 0, 7, 7, 72], [2, 1, 0, 1, 1, 74]]
    assert merged[at.HEADER, at.BARRIER_NEEDED] == 7
    assert len(merged) == 5


def test_merging_nothing_changes_nothing():
    nothing, some = table()[0], table((1, 2, 0, 5, 1, 70))[0]
    assert told(merged_races(nothing, nothing)) == []
    assert told(merged_races(nothing, some)) == told(merged_races(some, nothing)) == [[1, 2, 0, 5, 1, 70]]
