"""Time dispatches on an adapter by its own clock, side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...sim.fast_dataclass import frozen
from ..wgpu_worker import worker_process
from ..wgpu_worker.messages import AdapterInfo, DispatchRequest, TimesRequest, TimesResult

ROUNDS = 10
WARM_UP = 1.5  # seconds of work without faster clocks: those of an H200 rise in steps of up to a second


@frozen
class KernelTimes:
    """The times of a dispatch, in seconds.

    `passes` has one for each timed pass, as the clock told it. `launch` is the median of a dispatch that does nothing.
    `slowdown`: of arithmetic by clocks that were slower than the fastest ones seen; 1 if they were not.
    """

    passes: tuple[float, ...]
    launch: float
    slowdown: float = 1.0

    @property
    def median(self) -> float:
        """The median time of the kernel, without its launch; 0 if the clock does not tell it from the launch."""
        return self.quantile(0.5)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The first and the third quartile, without the launch."""
        return self.quantile(0.25), self.quantile(0.75)

    @property
    def least(self) -> float:
        """The shortest time, without the launch."""
        return self.quantile(0.0)

    def quantile(self, part: float) -> float:
        """A quantile of the passes, without the launch; 0 is the shortest."""
        return max(0.0, float(np.quantile(self.passes, part)) - self.launch)


@frozen
class Timing:
    """The times of a dispatch on an adapter, beside its other figures; `not_timed` says why there are none.

    `adapter`: None where this machine has none. `cold`: caches held none of the dispatch's data.
    """

    adapter: AdapterInfo | None
    cold: bool
    times: KernelTimes | None
    not_timed: str | None = None


def time_dispatches(
    requests: Sequence[DispatchRequest], *, rounds: int = ROUNDS, cold: bool = False, warm_up: float = WARM_UP
) -> list[KernelTimes]:
    """Time dispatches in interleaved rounds at the adapter's fastest clocks; all name one adapter.

    The clocks are taken to be that fast once they have got no faster in `warm_up` seconds of work. Each pass starts
    with the given contents in its buffers; with `cold`, caches hold none of them. Raises `Lacking` if the adapter has
    no clock, and `GpuError` if wgpu refuses a dispatch.
    """
    if not requests:
        return []
    result: TimesResult = worker_process.ask("times", TimesRequest(requests, rounds, cold, warm_up))
    launch = float(np.median(result.launch))
    return [KernelTimes(passes, launch, result.slowdown) for passes in result.seconds]
