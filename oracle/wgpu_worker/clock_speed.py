"""How fast an adapter's clocks run, by the time of a kernel that is bound by arithmetic.

A GPU that idles slows down, for example while buffers are uploaded. An H200 took 2.7 s of work to come back from 375 to
1980 MHz, one of them at 1425 MHz, so that neither a fixed time of work nor a short one without progress is enough. The
least time of the kernel in this process is what its time is compared with.
"""

from __future__ import annotations

import time
from collections.abc import Callable

# 2^18 invocations of a chain of multiplications: a tenth of a millisecond on a fast GPU.
BUSY = """
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(256) fn busy(@builtin(global_invocation_id) id: vec3u) {
    var x = id.x;
    for (var i = 0u; i < 256u; i++) { x = x * 1664525u + 1013904223u; }
    if x == 12345u { y[0] = x; }
}
"""
WORKGROUPS = 1024
FULL = 1.02  # times the least time: clocks are as fast as they get
_FASTER = 0.99  # times the least time: clocks still get faster
_STEP, _MOST_PASSES = 0.02, 64  # seconds of one submission, and passes in it, at most
_PASSES = 5  # of a submission between rounds
_PATIENCE = 10  # times the seconds of a warm-up, after which it ends

_least: dict[int, float] = {}  # seconds of the kernel, by adapter


class ClockSpeed:
    """The speed of an adapter's clocks. `submit` runs passes of the kernel and returns the seconds of each."""

    def __init__(self, adapter: int, submit: Callable[[int], list[float]]) -> None:
        self._adapter, self._submit = adapter, submit

    def reach_full(self, seconds: float) -> None:
        """Keep the device busy until its clocks are known to be at full speed, or get no faster for so long."""
        known, local = self._adapter in _least, float("inf")
        busy, passes = 0.0, 1
        end = time.perf_counter() + _PATIENCE * seconds
        while busy < seconds and time.perf_counter() < end:
            taken = self._submit(passes)
            passes = max(1, min(_MOST_PASSES, int(_STEP / max(max(taken), 1e-9))))
            least = min(taken)
            if known and self._slowdown(least) <= FULL:
                return
            busy = 0.0 if least < _FASTER * local else busy + sum(taken)
            local = min(local, least)
            self._note(local)

    def slowdown(self) -> float:
        """Return how many times as long the kernel takes now as at the fastest clocks seen."""
        least = min(self._submit(_PASSES))
        self._note(least)
        return self._slowdown(least)

    def _slowdown(self, seconds: float) -> float:
        least = _least.get(self._adapter, 0.0)
        return seconds / least if least > 0 else 1.0

    def _note(self, seconds: float) -> None:
        _least[self._adapter] = min(seconds, _least.get(self._adapter, seconds))
