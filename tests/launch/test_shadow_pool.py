"""Shadow memory that one run leaves to the next: which one a run takes, how much is kept, and that it is empty."""

import pytest

from bankshot.sim.launch.shadow_pool import MOST, ROOM, ShadowPool, shadow_bytes
from bankshot.sim.machine import layout as at
from bankshot.sim.machine.probe_arrays import stamp_of_clock


def test_the_next_run_gets_the_shadow_without_accesses():
    pool = ShadowPool(1 << 20)
    first = pool.take(100)
    begun = first.begun
    first.arrays.starts[at.WRITER] = first.arrays.stamps[at.WRITER] = stamp_of_clock(begun + 4)
    pool.give_back(first, begun + 4)
    again = pool.take(60)
    assert again is first
    assert again.begun > begun + 4
    for earlier in (again.arrays.starts, again.arrays.stamps):
        assert (earlier < stamp_of_clock(again.begun)).all()


def test_two_runs_at_a_time_have_shadows_of_their_own():
    pool = ShadowPool(1 << 20)
    pool.give_back(pool.take(100), 1)
    assert pool.take(100) is not pool.take(100)


def test_a_run_gets_the_smallest_shadow_that_is_large_enough():
    pool = ShadowPool(1 << 20)
    small, large = pool.take(100), pool.take(1000)
    pool.give_back(large, 1)
    pool.give_back(small, 1)
    assert pool.take(101) is large
    assert pool.take(100) is small
    assert pool.take(5000).grains >= 5000


def test_idle_shadows_take_no_more_than_their_room():
    """The last ones stay; one that is larger than the room is not kept at all."""
    pool = ShadowPool(5 * shadow_bytes(100) // 2)
    taken = [pool.take(100) for _ in range(4)]
    for each in taken:
        pool.give_back(each, 1)
    pool.give_back(pool.take(1000), 1)
    assert {id(pool.take(100)) for _ in range(2)} == {id(each) for each in taken[-2:]}
    assert pool.take(100) not in taken


def test_few_shadows_are_idle_however_many_sizes_there_were():
    """Each run looks at all of them."""
    pool = ShadowPool(ROOM)
    for grains in range(100, 100 + 3 * MOST):  # none is large enough for the next
        pool.give_back(pool.take(grains), 1)
    assert len(pool._idle) == MOST
    assert pool.take(1).grains == 100 + 2 * MOST  # the last ones stay


@pytest.mark.parametrize(("clock", "kept"), [((1 << 30) - 1, True), (1 << 30, False)])
def test_a_shadow_whose_clocks_run_out_is_dropped(clock, kept):
    pool = ShadowPool(1 << 20)
    shadow = pool.take(100)
    pool.give_back(shadow, clock)
    assert (pool.take(100) is shadow) == kept
