"""Times by the adapter's clock, in the worker process."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from bankshot.oracle import wgpu_client
from bankshot.oracle.errors import GpuError, Lacking
from bankshot.oracle.wgpu_worker import device_times
from bankshot.oracle.wgpu_worker.device_clock import Clock
from bankshot.oracle.wgpu_worker.messages import TIMESTAMPS, DispatchRequest, TimesRequest

# Adds one to each word, so that words tell how often a pass ran since the contents were restored.
COUNT = """
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64) fn f(@builtin(global_invocation_id) id: vec3u) { y[id.x] += 1; }
"""
LOOP = """
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64) fn f(@builtin(global_invocation_id) id: vec3u) {
    var x = y[id.x];
    for (var i = 0u; i < TURNSu; i++) { x = x * 1664525u + 1013904223u; }
    y[id.x] = x;
}
"""


class Recorded:
    """A device that records the commands it is given, in order; every submission ends at once."""

    features = (TIMESTAMPS,)

    def __init__(self):
        self.log = []
        self.queue = self

    def __getattr__(self, name):
        def call(*args, **_):
            if name not in ("create_buffer", "create_query_set", "create_command_encoder", "destroy"):
                self.log.append(name)
            return self

        return call

    def read_buffer(self, _):
        return np.arange(2 * self.passes, dtype=np.uint64).tobytes()


class Pass:
    """A dispatch whose passes are recorded with the number of their clock, None if they are not timed."""

    def __init__(self, device):
        self.device, self.resources = device, [Kept(device)]

    def encode(self, _, timestamps=None):
        self.device.log.append(timestamps and timestamps["beginning_of_pass_write_index"] // 2)


class Kept:
    def __init__(self, device):
        self.log = device.log

    def upload(self):
        self.log.append("upload")

    def keep(self, _):
        self.log.append("keep")

    def restore(self, _):
        self.log.append("restore")


@pytest.fixture
def device(monkeypatch):
    made = Recorded()
    monkeypatch.setattr("bankshot.oracle.wgpu_worker.device_clock.tick", lambda _: 1e-9)
    monkeypatch.setattr(device_times, "wait", lambda _: made.log.append("wait"))
    return made


def submitted(device, evicted, passes):
    timer = device_times._Timer(device, Pass(device), evicted)
    assert device.log == ["upload", "keep"]
    device.log.clear()
    device.passes = passes
    assert timer.submit(passes) == [1e-9] * passes
    return [each for each in device.log if each not in ("finish", "destroy")]


def test_each_pass_of_a_submission_starts_from_the_given_contents(device):
    assert submitted(device, None, 2) == [
        *("restore", None),
        *("restore", 0),
        *("restore", 1),
        *("resolve_query_set", "submit"),
    ]


def test_cold_passes_wait_for_the_clear_and_only_the_last_resolves_the_clock(device):
    before = ["restore", "clear_buffer", "submit", "wait"]
    assert submitted(device, device, 2) == [
        *(*before, None, "submit"),
        *(*before, 0, "submit"),
        *(*before, 1, "resolve_query_set", "submit"),
    ]


@pytest.mark.parametrize(("seconds", "passes"), [(1.0, 1), (2e-3, 1), (0.9e-3, 2), (0.4e-3, 5), (1e-6, 5), (0.0, 5)])
def test_short_kernels_are_timed_several_times_in_a_submission(device, monkeypatch, seconds, passes):
    timer = device_times._Timer(device, Pass(device), None)
    monkeypatch.setattr(timer, "submit", lambda _: [seconds])
    timer.warm()
    asked = []
    monkeypatch.setattr(timer, "submit", lambda passes: asked.append(passes) or [])
    timer.take()
    assert asked == [passes]


class Timed:
    """A timer whose rounds are numbered from 1."""

    def __init__(self):
        self.taken = 0

    def take(self):
        self.taken += 1
        return [float(self.taken)]


class Speed:
    """Clocks whose slowdowns are given; `waited`: after how many of them something waited for full clocks."""

    def __init__(self, *slowdowns):
        self.left, self.waited, self.asked = [*slowdowns], [], 0

    def slowdown(self):
        self.asked += 1
        return self.left.pop(0)

    def reach_full(self, seconds):
        assert seconds == 1.5
        self.waited.append(self.asked)


@pytest.mark.parametrize(
    ("slowdowns", "kept", "waited"),
    [
        ([1, 1, 1, 1], [1, 2, 3], [0]),
        ([1, 1.02, 1, 1], [1, 2, 3], [0]),
        ([1.3, 1.2, 1, 1, 1, 1], [2, 3, 4], [0, 2]),  # full clocks come after the first round
        ([1, 1, 1.1, 1, 1, 1], [1, 3, 4], [0, 3]),  # they were slow after round 2
        # Never full: the fastest of twice as many.
        ([1.5, 1.4, 1.4, 1.3, 1.3, 1.3, 1.4, 1.4, 1.2, 1.2, 1.1, 1.1, 1.1], [6, 5, 3], [0, 2, 4, 6, 8, 10, 12]),
    ],
)
def test_rounds_at_slow_clocks_do_not_count(slowdowns, kept, waited):
    timers = cast("Any", [Timed(), Timed()])
    speed = Speed(*slowdowns, 1)
    rounds = device_times._rounds(timers, 3, cast("Any", speed), 1.5)
    assert [each.seconds for each in rounds] == [[[number], [number]] for number in kept]
    assert speed.waited == waited


def test_after_the_longest_time_no_other_round_begins(monkeypatch):
    now = iter([0.0, 59.0, 61.0])
    monkeypatch.setattr(device_times.time, "perf_counter", lambda: next(now))
    assert [*device_times._taken(cast("Any", [Timed()]), 9)] == [[[1.0]], [[2.0]]]


def test_the_clock_pairs_timestamps_and_counts_in_its_unit(monkeypatch):
    monkeypatch.setattr("bankshot.oracle.wgpu_worker.device_clock.tick", lambda _: 0.5)
    device = Recorded()
    device.read_buffer = lambda _: np.array([10, 14, 20, 30], np.uint64).tobytes()
    assert Clock(device, 2).seconds() == [2.0, 5.0]


@pytest.mark.usefixtures("adapter")
def test_longer_kernels_take_longer():
    info = wgpu_client.require_adapter(None)
    data = {"y": np.arange(65536, dtype=np.uint32)}
    short, long = (
        wgpu_client.dispatch_request(LOOP.replace("TURNS", str(turns)), "f", (1024, 1, 1), data, adapter=info.name)
        for turns in (10, 10_000)
    )
    times = wgpu_client.time_dispatches([short, long, short], rounds=3, warm_up=0.0)
    assert len(times) == 3
    assert all(3 <= len(each.passes) <= 3 * device_times.PASSES for each in times)
    assert times[1].median > 20 * max(times[0].median, times[2].median)
    assert len({each.launch for each in times}) == 1
    assert 0 < times[0].launch < times[1].least


@pytest.mark.usefixtures("adapter")
def test_a_dispatch_that_wgpu_refuses_is_an_error():
    good = wgpu_client.dispatch_request(COUNT, "f", (1, 1, 1), {"y": np.zeros(64, np.uint32)})
    bad = DispatchRequest(good.adapter, "fn", "f", (1, 1, 1), ())
    with pytest.raises(GpuError, match="refused the shader"):
        wgpu_client.time_dispatches([good, bad], rounds=1, warm_up=0.0)


def test_without_a_clock_nothing_is_timed(monkeypatch):
    device = Recorded()
    device.features = ()
    monkeypatch.setattr(device_times, "device_of", lambda _: device)
    with pytest.raises(Lacking, match=r"^the adapter has no timestamp-query: it cannot time kernels$"):
        device_times.times(TimesRequest([DispatchRequest(0, COUNT, None, (1, 1, 1), ())], 1, False, 0.0))


def test_medians_and_quartiles_leave_out_the_launch():
    times = wgpu_client.KernelTimes((5.0, 3.0, 4.0, 6.0, 7.0), 2.0)
    assert (times.median, times.quartiles, times.least) == (3.0, (2.0, 4.0), 1.0)
    assert wgpu_client.KernelTimes((1.0,), 2.0).median == 0.0
