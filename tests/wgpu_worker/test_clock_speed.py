"""When the clocks of an adapter are at full speed, by the time of a kernel."""

from __future__ import annotations

import pytest

from bankshot.oracle.wgpu_worker import clock_speed
from bankshot.oracle.wgpu_worker.clock_speed import ClockSpeed

ADAPTER = 7


class Clocks:
    """An adapter on which a pass takes the seconds of the next step, and those of the last one from then on."""

    def __init__(self, *steps):
        self.steps, self.asked = list(steps), []

    def submit(self, passes):
        self.asked.append(passes)
        seconds = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        return [seconds] * passes

    @property
    def speed(self):
        return ClockSpeed(ADAPTER, self.submit)


@pytest.fixture(autouse=True)
def unknown(monkeypatch):
    monkeypatch.setattr(clock_speed, "_least", {})


@pytest.mark.parametrize(("seconds", "passes"), [(0.0, []), (0.35, [1, *[64] * 55]), (0.0001, [1])])
def test_clocks_that_do_not_rise_are_full_after_some_work(seconds, passes):
    """Of passes of 0.1 ms, 64 fit a submission. The first one counts as a rise, so that 55 * 64 are 0.35 s."""
    clocks = Clocks(1e-4)
    clocks.speed.reach_full(seconds)
    assert clocks.asked == (passes if seconds != 0.0001 else [1, 64])


def test_each_rise_begins_the_wait_anew():
    """Steps of 20 ms: three of 0.4 ms, two of 0.3 ms, and then 0.2 ms for 50 ms."""
    clocks = Clocks(4e-4, 4e-4, 4e-4, 3e-4, 3e-4, 2e-4)
    clocks.speed.reach_full(0.05)
    assert sum(clocks.asked[6:]) * 2e-4 >= 0.05
    assert sum(clocks.asked[6:-1]) * 2e-4 < 0.05


def test_clocks_known_to_be_full_need_no_more_work():
    Clocks(1e-4).speed.reach_full(0.05)
    again = Clocks(1.01e-4)
    again.speed.reach_full(0.05)
    assert again.asked == [1]


def test_clocks_known_to_rise_further_are_waited_for():
    Clocks(1e-4).speed.reach_full(0.05)
    again = Clocks(1.5e-4, 1.4e-4, 1.2e-4, 1e-4)
    again.speed.reach_full(0.05)
    assert len(again.asked) == 4


def test_clocks_that_never_get_as_fast_again_are_not_waited_for_forever():
    Clocks(1e-4).speed.reach_full(0.05)
    again = Clocks(1.5e-4)
    again.speed.reach_full(0.05)
    assert 0.05 <= sum(again.asked[1:]) * 1.5e-4 < 0.1


def test_the_wait_ends_if_the_clock_stands_still(monkeypatch):
    now = iter(range(100))
    monkeypatch.setattr(clock_speed.time, "perf_counter", lambda: next(now))
    clocks = Clocks(0.0)
    clocks.speed.reach_full(0.35)
    assert clocks.asked == [1, 64, 64]  # at 1, 2 and 3 of the 3.5 seconds


def test_the_slowest_pass_decides_how_many_fit_a_submission():
    """Of passes of up to 1 ms, 20 fit."""
    asked = []
    speed = ClockSpeed(ADAPTER, lambda passes: asked.append(passes) or [1e-4] * (passes - 1) + [1e-3])
    speed.reach_full(0.006)
    assert asked[:2] == [1, 20]


def test_a_slowdown_is_measured_against_the_fastest_clocks_of_the_adapter():
    assert Clocks(2e-4).speed.slowdown() == 1.0
    assert Clocks(3e-4).speed.slowdown() == pytest.approx(1.5)
    assert Clocks(1e-4).speed.slowdown() == 1.0
    assert Clocks(3e-4).speed.slowdown() == pytest.approx(3.0)
    assert ClockSpeed(ADAPTER + 1, Clocks(3e-4).submit).slowdown() == 1.0
