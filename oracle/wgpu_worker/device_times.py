"""Times of dispatches by the adapter's clock, in the worker process.

Every dispatch is timed in a compute pass of its own, between two timestamps. In a submission the first pass is not
timed: it loads the instructions, and the data where caches may hold them. Rounds of all dispatches are interleaved, so
that a change of the clocks meets them all. A round with slow clocks does not count where others have faster ones.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ..errors import Lacking
from .clock_speed import BUSY, FULL, WORKGROUPS, ClockSpeed
from .device_clock import Clock
from .device_dispatch import Made, made, refusals, wait
from .device_resources import Buffer
from .messages import TIMESTAMPS, DispatchRequest, TimesRequest, TimesResult
from .wgpu_library import device_of, is_software

PASSES = 5  # timed passes of one submission, at most
ENOUGH = 2e-3  # seconds of passes in a submission that suffice
LONGEST = 60.0  # seconds after which no other round begins
_EVICTED = 256 << 20  # bytes: more than the caches of any adapter hold
_NOTHING = "@compute @workgroup_size(1) fn nothing() {}"
_SETTLED = 0.35  # seconds of work after which a processor that takes the place of a GPU is warm


def times(request: TimesRequest) -> TimesResult:
    """Time dispatches. Raises `Lacking` if the adapter has no clock, and `GpuError` if wgpu refuses a dispatch."""
    number = request.requests[0].adapter
    device = device_of(number)
    if TIMESTAMPS not in device.features:
        raise Lacking(f"the adapter has no {TIMESTAMPS}: it cannot time kernels")
    nothing = DispatchRequest(number, _NOTHING, None, (1, 1, 1), ())
    busy = DispatchRequest(number, BUSY, None, (WORKGROUPS, 1, 1), [Buffer(0, 0, "storage", bytes(4))])
    with refusals(), ExitStack() as stack:
        evicted = device.create_buffer(size=_EVICTED, usage="COPY_DST") if request.cold else None
        if evicted is not None:
            stack.callback(evicted.destroy)
        timers = [
            _Timer(device, stack.enter_context(made(device, each)), evicted) for each in (*request.requests, nothing)
        ]
        work = _Timer(device, stack.enter_context(made(device, busy)), None)
        stack.callback(lambda: [timer.destroy() for timer in (*timers, work)])
        for timer in timers:
            timer.warm()
        speed = ClockSpeed(number, work.submit)
        if is_software(number):
            speed.reach_full(min(request.warm_up, _SETTLED))
            rounds = [_Round(1.0, taken) for taken in _taken(timers, request.rounds)]
        else:
            rounds = _rounds(timers, request.rounds, speed, request.warm_up)
    by_timer = zip(*(each.seconds for each in rounds), strict=True)
    *seconds, launch = (tuple(chain.from_iterable(taken)) for taken in by_timer)
    return TimesResult(tuple(seconds), launch, max(each.slowdown for each in rounds))


@dataclass(frozen=True, slots=True)
class _Round:
    """The seconds of each timer's passes in a round. `slowdown`: of the clocks, before it or after it."""

    slowdown: float
    seconds: list[list[float]]


def _taken(timers: Sequence[_Timer], count: int) -> Iterator[list[list[float]]]:
    """Yield the seconds of each timer's passes, at most so many times."""
    end = time.perf_counter() + LONGEST
    for number in range(count):
        if number and time.perf_counter() > end:
            return
        yield [timer.take() for timer in timers]


def _rounds(timers: Sequence[_Timer], count: int, speed: ClockSpeed, warm_up: float) -> list[_Round]:
    """Time at most so many rounds at full clocks. If twice as many rounds have fewer, those with the fastest clocks
    count."""
    found: list[_Round] = []
    speed.reach_full(warm_up)
    before = speed.slowdown()
    for seconds in _taken(timers, 2 * count):
        after = speed.slowdown()
        found.append(_Round(max(before, after), seconds))
        if sum(each.slowdown <= FULL for each in found) == count:
            break
        if after > FULL:
            speed.reach_full(warm_up)
            after = speed.slowdown()
        before = after
    return sorted(found, key=lambda each: max(each.slowdown, FULL))[:count]


class _Timer:
    """A dispatch and the times of its passes. `evicted`: a buffer to clear before each pass, if caches must be cold."""

    def __init__(self, device: Any, dispatch: Made, evicted: Any) -> None:
        self._device, self._dispatch, self._evicted = device, dispatch, evicted
        self._clock = Clock(device, 1)
        self._passes = 1
        for resource in dispatch.resources:
            resource.upload()
            resource.keep(device)

    def warm(self) -> None:
        """Run without recording, and choose how many passes each later submission times."""
        (seconds,) = self.submit(1)
        self._passes = max(1, min(PASSES, int(ENOUGH / max(seconds, 1e-9))))

    def take(self) -> list[float]:
        """Return the times of one submission."""
        return self.submit(self._passes)

    def destroy(self) -> None:
        self._clock.destroy()

    def submit(self, passes: int) -> list[float]:
        """Run so many timed passes in one submission, after one that is not timed. Returns their seconds."""
        if self._clock.passes != passes:
            self._clock.destroy()
            self._clock = Clock(self._device, passes)
        if self._evicted is None:
            self._run(range(-1, passes))
        else:
            for number in range(-1, passes):
                self._evict()
                self._run([number])
        return self._clock.seconds()

    def _run(self, numbers: Iterable[int]) -> None:
        """Submit these passes; pass -1 is not timed. Drivers wait for each timestamp that is resolved, so that only
        the last pass resolves them."""
        encoder = self._device.create_command_encoder()
        for number in numbers:
            if self._evicted is None:
                self._restore(encoder)
            self._dispatch.encode(encoder, None if number < 0 else self._clock.writes(number))
            if number == self._clock.passes - 1:
                self._clock.resolve(encoder)
        self._device.queue.submit([encoder.finish()])

    def _evict(self) -> None:
        """Replace what caches hold, and wait: a pass must not start while memory is still being written."""
        encoder = self._device.create_command_encoder()
        self._restore(encoder)
        encoder.clear_buffer(self._evicted)
        self._device.queue.submit([encoder.finish()])
        wait(self._device)

    def _restore(self, encoder: Any) -> None:
        for resource in self._dispatch.resources:
            resource.restore(encoder)
