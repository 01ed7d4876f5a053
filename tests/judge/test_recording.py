"""How a recording on a GPU is spread over passes and runs; the GPU is a function here."""

from types import SimpleNamespace

import numpy as np
import pytest

import bankshot
from bankshot.oracle.errors import UsageError
from bankshot.oracle.gpu_counters.wgsl_probes import HEADER_WORDS, LOG, ROW_WORDS
from bankshot.oracle.judge import counter_recording
from bankshot.oracle.judge.counter_recording import Pass, Plan, passes, record

PLANNED, SITES = counter_recording.ROWS_PLANNED, counter_recording.SITES_PER_PASS

# Rows of regions and of accesses; the passes with their regions, accesses and rows.
SPREAD = {
    "nothing": ([], [], [([], [], 0)]),
    "all in one": ([3, 4], [5, 6], [([0, 1], [0, 1], 18)]),
    "just full": ([PLANNED - 1], [1], [([0], [0], PLANNED)]),
    "one row too many": ([PLANNED], [1], [([0], [], PLANNED), ([], [0], 1)]),
    "more than a pass has": ([PLANNED + 5], [], [([0], [], PLANNED + 5)]),
    "each alone": ([PLANNED, PLANNED], [PLANNED],
                   [([0], [], PLANNED), ([1], [], PLANNED), ([], [0], PLANNED)]),
    "filled in order": ([PLANNED // 2, PLANNED // 2, 9], [7],
                        [([0, 1], [], PLANNED // 2 * 2), ([2], [0], 16)]),
    "as many probes as a pass has": ([1] * SITES, [], [(list(range(SITES)), [], SITES)]),
    "an access too long for a pass with both": ([3], [4, PLANNED], [([0], [0], 7), ([], [1], PLANNED)]),
    "as many accesses as a pass has": ([1], [1] * SITES, [([0], list(range(SITES - 1)), SITES), ([], [SITES - 1], 1)]),
    "a probe too many": ([1] * SITES, [2], [(list(range(SITES)), [], SITES), ([], [0], 2)]),
}  # fmt: skip


@pytest.mark.parametrize("name", SPREAD)
def test_probes_are_spread_over_passes(name):
    regions, accesses, expected = SPREAD[name]
    planned = Plan([None] * len(regions), [], [None] * len(accesses), regions, accesses)
    assert passes(planned) == [Pass(*each) for each in expected]


@pytest.fixture
def recorded(monkeypatch):
    """`recorded(groups, lanes, made, rows)`: the workgroups of the rows, in runs, and each run's first workgroup,
    number of workgroups and capacity, where each workgroup makes `made` rows."""

    def run(groups, lanes, made, rows):
        runs, said = [], []

        def on_gpu(case, run, text, logs, more, adapter):
            log = more[LOG].copy()
            _, first, count, room = map(int, log[:HEADER_WORDS])
            assert len(log) == HEADER_WORDS + ROW_WORDS * room
            runs.append((first, count, room))
            count = min(count, groups - first)
            log[0] = count * made
            words = np.zeros((count * made, ROW_WORDS), np.uint32)
            words[:, 0] = np.repeat(np.arange(count, dtype=np.uint32), made) << np.uint32(shift)
            words[:, 1] = np.arange(count * made)
            kept = words.reshape(-1)[: ROW_WORDS * room]
            log[HEADER_WORDS : HEADER_WORDS + len(kept)] = kept
            return {LOG: log, "y": "output"}

        shift = counter_recording.workgroup_shift(lanes)
        monkeypatch.setattr(counter_recording, "on_gpu", on_gpu)
        case = SimpleNamespace(kernel=SimpleNamespace(name="k"), shape="N=1")
        made_up = SimpleNamespace(pipeline=SimpleNamespace(workgroup_size=(lanes, 1, 1)), grid=(groups, 1, 1))
        found = list(record(case, made_up, SimpleNamespace(text=""), rows, None, said.append))
        assert all(outputs == {"y": "output"} for _, outputs in found)
        assert all(table[:, 2].tolist() == list(range(len(table))) for table, _ in found)
        return [np.unique(table[:, 0]).tolist() for table, _ in found], runs, said

    return run


def test_all_workgroups_in_one_run(recorded):
    assert recorded(6, 32, 5, 5) == ([[0, 1, 2, 3, 4, 5]], [(0, 6, 4 * 5 * 6 + 1024)], ["counting on the GPU, 0%"])


def test_a_guess_that_is_too_low_is_corrected(recorded):
    """6 workgroups of 1000 rows, 2 expected: 1072 fit where 6000 come; each is then taken to make 1000."""
    groups, runs, said = recorded(6, 32, 1000, 2)
    assert groups == [[0, 1, 2, 3, 4, 5]]
    assert runs == [(0, 6, 4 * 2 * 6 + 1024), (0, 6, 4 * 1000 * 6 + 1024)]
    assert said == ["counting on the GPU, 0%"] * 2


def test_no_more_workgroups_than_fit_are_recorded_at_a_time(recorded, monkeypatch):
    monkeypatch.setattr(counter_recording, "ROWS_PER_PASS", 100)
    monkeypatch.setattr(counter_recording, "ROWS_PLANNED", 50)
    groups, runs, said = recorded(7, 32, 15, 15)
    assert groups == [[0, 1, 2], [3, 4, 5], [6]]
    assert runs == [(0, 3, 100), (3, 3, 100), (6, 3, 100)]
    assert said == [f"counting on the GPU, {percent}%" for percent in (0, 42, 85)]


def test_fewer_are_recorded_at_a_time_after_a_guess_too_low(recorded, monkeypatch):
    """12 workgroups of 1 row are expected, and 120 rows come: 10 of each, so that 50 rows are of 5 workgroups."""
    monkeypatch.setattr(counter_recording, "ROWS_PER_PASS", 100)
    monkeypatch.setattr(counter_recording, "ROWS_PLANNED", 50)
    groups, runs, _ = recorded(12, 32, 10, 1)
    assert runs[0] == (0, 12, 100)
    assert runs[1:] == [(0, 5, 100), (5, 5, 100), (10, 5, 100)]
    assert groups == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11]]


def test_a_log_that_is_just_full_is_complete(recorded, monkeypatch):
    monkeypatch.setattr(counter_recording, "ROWS_PER_PASS", 100)
    monkeypatch.setattr(counter_recording, "ROWS_PLANNED", 50)
    assert recorded(1, 32, 100, 100)[0] == [[0]]
    message = r"^k N=1: the GPU made 101 rows where 100 fit; choose a smaller shape$"
    with pytest.raises(UsageError, match=message):
        recorded(1, 32, 101, 101)
    with pytest.raises(UsageError, match=message):
        recorded(3, 32, 101, 1)


def test_rows_number_as_many_workgroups_as_their_bits_can(recorded):
    """A workgroup of 1024 invocations leaves 10 of the 32 bits of a row's first word, where a probe takes 12."""
    bits = 10
    groups, runs, _ = recorded((1 << bits) + 3, 1024, 1, 1)
    assert [len(each) for each in groups] == [1 << bits, 3]
    assert [first for first, _, _ in runs] == [0, 1 << bits]


ACCESSES = """
@group(0) @binding(0) var<storage, read_write> once: array<f32>;
@group(0) @binding(1) var<storage, read_write> thrice: array<f32>;
@group(0) @binding(2) var<storage, read_write> alone: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3u) {
    once[i] = 1.0;
    for (var k = 0u; k < 3u; k++) { thrice[i] = f32(k); }
    if i == 0u { alone[g.x] = 1.0; }
}
"""


@pytest.mark.parametrize("grid", [1, 4])
def test_a_workgroup_has_room_for_its_rows_and_for_one_of_each_invocation(grid):
    bindings = {name: np.zeros(64, np.float32) for name in ("once", "thrice", "alone")}
    planned = counter_recording.plan(bankshot.simulate(ACCESSES, grid=grid, bindings=bindings, probes="counters"))
    rows = {place.variable: rows for place, rows in zip(planned.accesses, planned.rows_of_access, strict=True)}
    assert rows == {"once": 64, "thrice": 192, "alone": 64}
    assert max(planned.rows_of_region) >= 192
    assert min(planned.rows_of_region) >= 64
