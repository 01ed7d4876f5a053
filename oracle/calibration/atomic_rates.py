"""Atomic operations: by kind, with and without use of their results, on one word or on many.

`sharing` is the number of lanes of a subgroup on one word: 32 or 1. In storage, the words of a `spread` of 0 belong to
the whole grid, those of 1 to a workgroup. `uniform` is 1 where all lanes bring the same operand, which compilers may
add up before, and `used` where the result is used. An exchange changes the word each time; a compare-exchange mostly
fails, as its comparand is old.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .kernel_text import SUBGROUP, WORD_BYTES, MicroBenchmark, benchmark, per_core

_UNROLLED = 8
_SIZE = 256
_CALLS = {
    "add": "atomicAdd(&words[at], {operand})",
    "max": "atomicMax(&words[at], {operand})",
    "exchange": "atomicExchange(&words[at], {operand})",
    "compare_exchange": "atomicCompareExchangeWeak(&words[at], {operand}, trip).old_value",
}


class _Case(NamedTuple):
    kind: str
    used: int
    sharing: int
    spread: int
    uniform: int

    @property
    def parameters(self) -> dict[str, float]:
        return {"used": self.used, "sharing": self.sharing, "spread": self.spread, "uniform": self.uniform}

    @property
    def serial(self) -> bool:
        """Whether lanes on one word take turns; compilers and GPUs sum up what is added without use."""
        return self.sharing > 1 and (self.used == 1 or self.kind in ("exchange", "compare_exchange"))


def atomic_rates(cores: int, scale: float) -> Iterator[MicroBenchmark]:
    """Make the benchmarks of atomic operations."""
    for kind in _CALLS:
        for used in (0, 1):
            for sharing, spread in ((SUBGROUP, 0), (SUBGROUP, 1), (1, 0), (1, 1)):
                yield _storage(_Case(kind, used, sharing, spread, 0), cores, scale)
            for sharing in (SUBGROUP, 1):
                yield _workgroup(_Case(kind, used, sharing, 1, 0), cores, scale)
    for used in (0, 1):
        yield _storage(_Case("add", used, SUBGROUP, 0, 1), cores, scale)
        yield _workgroup(_Case("add", used, SUBGROUP, 1, 1), cores, scale)


def _body(case: _Case) -> list[str]:
    """Return the operations of one iteration; no two have the same operand."""
    operands = [f"{n + 1}u" if case.uniform else f"(mine + {n}u)" for n in range(_UNROLLED)]
    calls = [_CALLS[case.kind].format(operand=operand) for operand in operands]
    return ["mine += params.step;", *(f"sum += {call};" if case.used else f"_ = {call};" for call in calls)]


def _storage_trips(case: _Case) -> int:
    """Return the iterations: few where the lanes of the whole grid take turns on one word."""
    if case.sharing == 1:
        return 64 if case.spread else 32
    if case.spread:
        return 16
    return 2 if case.serial else 8


def _storage(case: _Case, cores: int, scale: float) -> MicroBenchmark:
    launch = per_core(cores, scale, _SIZE, 2)
    trips = launch.shortened(_storage_trips(case))
    words = (launch.workgroups if case.spread else 1) * (_SIZE if case.sharing == 1 else 1)
    first = "workgroup.x * params.stride" if case.spread else "params.zero"
    requests = launch.subgroups * trips * _UNROLLED
    return benchmark(
        f"storage_atomic_{case.kind}",
        case.parameters,
        launch,
        trips=trips,
        declarations="@group(0) @binding(2) var<storage, read_write> words: array<atomic<u32>>;",
        setup=[
            f"let at = {first}{' + lane' if case.sharing == 1 else ''};",
            "var mine = lane;",
            "var sum = params.zero;",
        ],
        body=_body(case),
        result="sum",
        values={"step": 7, "stride": _SIZE if case.sharing == 1 else 1},
        arrays={"words": np.zeros(words, np.uint32)},
        work={
            "global_requests": requests,
            "global_bytes": requests * SUBGROUP * WORD_BYTES,
            "atomics": requests * SUBGROUP,
            "atomic_turns": requests * case.sharing,
            "operations": requests * SUBGROUP,
            "chain": 0,
        },
    )


def _workgroup(case: _Case, cores: int, scale: float) -> MicroBenchmark:
    launch = per_core(cores, scale, _SIZE, 8)
    trips = launch.shortened(8 if case.serial else 64)
    requests = launch.subgroups * trips * _UNROLLED
    return benchmark(
        f"workgroup_atomic_{case.kind}",
        case.parameters,
        launch,
        trips=trips,
        declarations=f"var<workgroup> words: array<atomic<u32>, {_SIZE}>;",
        setup=[
            f"let at = {'lane' if case.sharing == 1 else 'params.zero'};",
            "var mine = lane;",
            "var sum = params.zero;",
        ],
        body=_body(case),
        finish=["workgroupBarrier();", "sum += atomicLoad(&words[lane]);"],
        result="sum",
        values={"step": 7},
        work={
            "shared_requests": requests + launch.subgroups,
            "atomics": requests * SUBGROUP + launch.invocations,
            "atomic_turns": requests * case.sharing,
            "barriers": launch.workgroups,
            "operations": requests * SUBGROUP,
            "chain": 0,
        },
    )
