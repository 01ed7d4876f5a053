"""Time cases on an adapter, side by side.

A case that the adapter cannot time has a reason, and is unchecked. No output is judged: `audit` and `diff` do that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from ..sim.fast_dataclass import frozen
from . import wgpu_client as gpu
from .errors import Lacking, TooLarge
from .judge.case_run import Say, request_on_gpu
from .judge.coverage import CaseOutcome, Compared
from .manifests.manifest import Case
from .wgpu_worker.messages import DispatchRequest

T = TypeVar("T")

_TOGETHER = 16  # cases that are timed side by side, at most
_BYTES = 1 << 30  # of their bindings together


@frozen
class Options:
    """`rounds`: how often each case runs in its turn. `cold`: caches hold none of its data."""

    rounds: int = gpu.ROUNDS
    cold: bool = False


@frozen
class CaseTime:
    """The times of a case on an adapter, None where `not_timed` says why."""

    case: Case
    adapter: gpu.AdapterInfo
    cold: bool
    times: gpu.KernelTimes | None
    not_timed: str | None = None

    @property
    def outcome(self) -> CaseOutcome:
        return CaseOutcome.CLEAN if self.times else CaseOutcome.UNCHECKED

    @property
    def ok(self) -> bool:
        return self.times is not None

    @property
    def compared(self) -> Compared:
        """What the last line of the command says: nothing is compared."""
        return Compared()


def time_cases(cases: Iterable[Case], adapter: str | None, options: Options, say: Say) -> Iterator[CaseTime]:
    """Time cases in their order. Raises `NoAdapter`, `UsageError`, and `GpuError` where wgpu refuses a shader."""
    info = gpu.require_adapter(adapter)
    for group in groups(cases, _size):
        requests: list[DispatchRequest | str] = [_request(case, adapter) for case in group]
        ready = [each for each in requests if not isinstance(each, str)]
        say(f"timing {len(ready)} case{'s' * (len(ready) > 1)} on {info.name}")
        try:
            times = iter(gpu.time_dispatches(ready, rounds=options.rounds, cold=options.cold))
        except Lacking as error:
            requests = [str(error)] * len(group)
            times = iter(())
        for case, request in zip(group, requests, strict=True):
            if isinstance(request, str):
                yield CaseTime(case, info, options.cold, None, request)
            else:
                yield CaseTime(case, info, options.cold, next(times))


def groups(items: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """What is timed side by side, in order: as many as fit into an adapter's memory. `size`: the bytes of an item."""
    group: list[T] = []
    held = 0
    for item in items:
        taken = size(item)
        if group and (held + taken > _BYTES or len(group) == _TOGETHER):
            yield group
            group, held = [], 0
        group.append(item)
        held += taken
    if group:
        yield group


def _size(case: Case) -> int:
    return sum(len(data) if isinstance(data, bytes) else getattr(data, "nbytes", 0) for data in case.bindings.values())


def _request(case: Case, adapter: str | None) -> DispatchRequest | str:
    """Describe the dispatch of a case, or say why the adapter cannot run it."""
    try:
        return request_on_gpu(case, adapter)
    except (Lacking, TooLarge) as error:
        return str(error)
