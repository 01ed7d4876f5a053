"""How evenly workgroups load cores, for schedules that were made by hand."""

from heapq import heapify, heapreplace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bankshot
from bankshot.sim.machine.compile.loader import machine
from bankshot.sim.models import get
from bankshot.sim.run.workgroup_schedule import differing, middle_of_work, unevenness


@pytest.mark.parametrize(
    ("works", "cores", "resident", "expected"),
    [
        ([5, 5, 5, 5, 5], 2, 1, 1.0),  # all alike: how many a core has is no unevenness
        ([3, 1, 3, 1], 2, 2, 6 / 4),  # all begin at once; one core has both long ones
        ([3, 1, 1, 3], 2, 2, 1.0),
        ([1, 1, 1, 1, 4], 2, 1, 6 / (3 * 8 / 5)),  # the long one begins when both others of a core have ended
        ([4, 1, 1, 1, 1], 2, 1, 1.0),  # it begins first, and the other core takes all others meanwhile
        ([1, 1, 1, 1, 4], 2, 2, 6 / (3 * 8 / 5)),
        ([1, 3, 2], 1, 2, 1.0),  # a core that has work wastes no time
        ([6, 1, 1, 1, 1, 1, 1], 2, 2, 8 / (4 * 12 / 7)),  # 0 and 2, 1 and 3; then 4 and 6 beside 0, and 5
    ],
)
def test_the_last_core_ends_when_a_schedule_by_hand_does(
    works: list[int], cores: int, resident: int, expected: float
) -> None:
    assert unevenness(np.array(works), len(works), cores, resident) == pytest.approx(expected)


def test_neighbours_that_are_counted_together_are_scheduled_together() -> None:
    """Of 8 workgroups, 2 of which a core holds: so it holds one pair, and takes the next when that ends."""
    assert unevenness(np.array([3, 1, 3, 1]), 8, 2, 2) == 1.0
    assert unevenness(np.array([1, 1, 1, 3]), 8, 2, 2) == pytest.approx(4 / 3)


@pytest.mark.parametrize(
    ("works", "grid", "middle"),
    [
        ([5, 5, 5, 5], 4, 2),
        ([5, 5, 5, 5, 5], 5, 2),
        ([9, 5, 5, 5], 4, 0),  # what all execute does not count
        ([5, 6, 5, 8], 4, 3),
        ([5, 7, 7, 5], 4, 2),
        ([0, 0, 0, 0], 4, 2),
        ([1, 1, 1, 4], 8, 6),  # two in each place
        ([1, 1, 1, 1], 8, 4),
    ],
)
def test_others_execute_as_much_before_the_middle_as_after_it(works: list[int], grid: int, middle: int) -> None:
    assert middle_of_work(np.array(works), grid) == middle


@pytest.mark.parametrize("grid", [1, 2, 3, 4096, 4097, 5000, 8192])
def test_works_that_are_all_the_same_count_as_none(grid: int) -> None:
    works = np.zeros(4096, np.int64)
    works[:grid] = 7
    assert middle_of_work(works, grid) == middle_of_work(differing(works, grid), grid)
    assert unevenness(works, grid, 4, 2) == unevenness(differing(works, grid), grid, 4, 2) == 1.0


def test_works_that_differ_count() -> None:
    works = np.array([7, 7, 9, 7], np.int64)
    assert differing(works, 4) is works
    assert differing(works, 2) is None


def test_nothing_executed_is_even() -> None:
    assert unevenness(np.zeros(4, np.int64), 4, 2, 1) == unevenness(np.zeros(4, np.int64), 0, 2, 1) == 1.0


LOOP = """
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size({size})
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {{
  var sum = lane;
  for (var k = 0u; k < w.x * 500u; k++) {{ {body} }}
  y[w.x * {size}u + lane] = sum;
}}
"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [1, 32, 48, 256])
@pytest.mark.parametrize("body", ["sum += k;", "if lane < k { sum += k; }", "workgroupBarrier(); sum += k;"])
def test_what_each_workgroup_executes_decides(
    monkeypatch: pytest.MonkeyPatch, body: str, size: int, threads: int
) -> None:
    """4 cores have workgroups 0 and 4, to 3 and 7: the last one has 10 of 28 parts of the work."""
    monkeypatch.setenv("BANKSHOT_THREADS", str(threads))
    bindings = {"y": np.zeros(8 * size, np.uint32)}
    device = get("nvidia").with_(cores=4)
    run = bankshot.simulate(
        LOOP.format(size=size, body=body), grid=8, bindings=bindings, device=device, probes="counters"
    )
    assert run.work.unevenness == pytest.approx(10 / 7, rel=0.01)


def test_workgroups_of_a_large_grid_share_their_counts() -> None:
    """The last 64 of 8,192 workgroups execute much more than the others, and 16 cores take 4 of them each."""
    text = LOOP.format(size=1, body="sum += k;").replace("w.x * 500u", "select(0u, 2000u, w.x >= 8128u)")
    run = bankshot.simulate(
        text,
        grid=8192,
        bindings={"y": np.zeros(8192, np.uint32)},
        device=get("nvidia").with_(cores=16),
        probes="counters",
    )
    assert run.work.unevenness == pytest.approx(1.0, rel=0.1)
    assert run.work.longest["alu"] > 1000


def test_cores_that_are_free_at_the_same_time_take_workgroups_in_turn() -> None:
    works = np.array([1] * 16 + [9] * 4)
    assert unevenness(works, 20, 4, 2) == pytest.approx(1.0)


def test_classes_of_workgroups_are_even() -> None:
    text = LOOP.format(size=32, body="sum += k;").replace("w.x * 500u", "500u")
    run = bankshot.simulate(
        text, grid=8, bindings={"y": np.zeros(256, np.uint32)}, probes="counters", workgroups="classes"
    )
    assert run.work.unevenness == 1.0


@given(works=st.lists(st.integers(0, 9), min_size=1, max_size=40), cores=st.integers(1, 5), resident=st.integers(1, 4))
def test_the_last_core_ends_when_a_queue_of_free_places_says(works: list[int], cores: int, resident: int) -> None:
    places = min(cores * resident, len(works))
    free = [(work, place) for place, work in enumerate(works[:places])]
    heapify(free)
    done = [sum(works[core:places:cores]) for core in range(cores)]
    for work in works[places:]:
        end, place = free[0]
        heapreplace(free, (end + work, place))
        done[place % cores] += work
    assert machine().schedule(np.array(works), places, cores) == max(done)
