"""Time cases on an adapter, side by side.

A case that the adapter cannot time has a reason, and is unchecked. No output is judged: `audit` and `diff` do that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from ..sim.fast_dataclass import frozen
from ..sim.wgsl.diagnostics import WgslError
from . import wgpu_client as gpu
from .errors import Lacking, NoAdapter, TooLarge, UsageError
from .judge.case_run import Say, request_on_gpu
from .judge.coverage import CaseOutcome, Compared
from .manifests.cases import Plan
from .manifests.manifest import Case, Shape
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
    def timing(self) -> gpu.Timing:
        """The times without the case, which may hold much data."""
        return gpu.Timing(self.adapter, self.cold, self.times, self.not_timed)

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


def time_beside(
    work: Sequence[tuple[Plan, Shape]], adapters: str | None, options: Options, say: Say, *, insist: bool = False
) -> list[tuple[gpu.Timing, ...]]:
    """Time cases on each of the `adapters`, as figures beside other results, in their order.

    A case that cannot be timed has the reason instead; so has each where there is no adapter, unless `insist`: then
    this raises `NoAdapter`.
    """
    found: list[list[gpu.Timing]] = [[] for _ in work]
    try:
        infos = {name: gpu.require_adapter(name) for name in gpu.parse_adapters(adapters)}
    except NoAdapter as error:
        if insist:
            raise
        return [(gpu.Timing(None, options.cold, None, str(error)),)] * len(work)
    for name, info in infos.items():
        prepared = groups((_prepared(plan, shape, name) for plan, shape in work), lambda each: each[1])
        numbers = iter(range(len(work)))
        for group in prepared:
            say(f"timing {len(group)} case{'s' * (len(group) > 1)} on {info.name}")
            requests = [request for request, _ in group]
            for timed in _times([each for each in requests if not isinstance(each, str)], requests, options):
                times, reason = (None, timed) if isinstance(timed, str) else (timed, None)
                found[next(numbers)].append(gpu.Timing(info, options.cold, times, reason))
    return [*map(tuple, found)]


def _prepared(plan: Plan, shape: Shape, adapter: str | None) -> tuple[DispatchRequest | str, int]:
    """The dispatch of a case, or why it cannot run, and the bytes of its bindings."""
    try:
        case = plan.case(shape)
        return _request(case, adapter), _size(case)
    except (UsageError, WgslError) as error:
        return _line(error), 0


def _times(
    ready: list[DispatchRequest], requests: list[DispatchRequest | str], options: Options
) -> Iterator[gpu.KernelTimes | str]:
    """The times of those requests that are `ready`, and the reasons of the others. Where wgpu refuses one of them, each
    is timed alone, so that it does not keep the others from being timed."""
    try:
        timed: list[gpu.KernelTimes | str] = [*gpu.time_dispatches(ready, rounds=options.rounds, cold=options.cold)]
    except Lacking as error:
        timed = [_line(error)] * len(ready)
    except UsageError as error:
        alone = len(ready) == 1
        timed = [_line(error)] if alone else [t for each in ready for t in _times([each], [each], options)]
    times = iter(timed)
    for request in requests:
        yield request if isinstance(request, str) else next(times)


def _line(error: Exception) -> str:
    return str(error).splitlines()[0]


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
