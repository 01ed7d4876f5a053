"""How findings run a dispatch again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from ..ir.sites import SourceSite
from ..launch.launch import Filling, Launch
from ..launch.partition import Outcome
from ..launch.schedules import Schedule
from ..launch.tracing import Trace


class Changes(TypedDict, total=False):
    """The members of `RunOptions` that a rerun may change."""

    policy: str
    budget: int
    schedule: Schedule
    filling: Filling
    ignored: SourceSite | None
    threads: int | None
    trace: Trace | None
    poisoned: frozenset[int]
    racing: frozenset[str]
    chosen: NDArray[np.int64] | None


class Runner(Protocol):
    """Runs the dispatch again, with these probes and changes."""

    def __call__(
        self, probes: frozenset[str], progress: Callable[[int, int], None] | None = None, /, **changes: Unpack[Changes]
    ) -> tuple[Launch, Outcome]: ...
