"""Time cases on an adapter, side by side.

A case that the adapter cannot time has a reason, and is unchecked. No output is judged: `audit` and `diff` do that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from ..sim.fast_dataclass import frozen
from ..sim.wgsl.check.pipeline import GRANTED
from . import wgpu_client as gpu
from .errors import Lacking, TooLarge
from .judge.coverage import CaseOutcome, Compared
from .manifests.manifest import Case
from .manifests.reflection import check_module
from .wgpu_worker.messages import DispatchRequest

Say = Callable[[str], None]  # takes a description of the step that begins

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
    for group in _groups(cases):
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


def _groups(cases: Iterable[Case]) -> Iterator[Sequence[Case]]:
    """Cases that are timed side by side: as many as fit into an adapter's memory."""
    group: list[Case] = []
    held = 0
    for case in cases:
        size = sum(_bytes(data) for data in case.bindings.values())
        if group and (held + size > _BYTES or len(group) == _TOGETHER):
            yield group
            group, held = [], 0
        group.append(case)
        held += size
    if group:
        yield group


def _bytes(data: object) -> int:
    return memoryview(data).nbytes if isinstance(data, bytes) else getattr(data, "nbytes", 0)


def _request(case: Case, adapter: str | None) -> DispatchRequest | str:
    """Describe the dispatch of a case, or say why the adapter cannot run it."""
    module = check_module(case.kernel)
    pipeline = module.pipeline(case.kernel.entry, {**case.overrides}, GRANTED)
    try:
        return gpu.dispatch_request(
            module.source.text,
            pipeline.entry.name,
            case.grid,
            case.bindings,
            slots=gpu.slots_of(pipeline.entry),
            overrides=case.overrides,
            adapter=adapter,
            module=module,
        )
    except (Lacking, TooLarge) as error:
        return str(error)
