"""Document 004: how fast the rungs of the ladder are, and the limit that their workgroups keep to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bankshot.sim.models import DEFAULT_LIMITS, check_dispatch

from . import timing as clock
from .bench import run
from .document_004 import LARGE, PEAK_BANDWIDTH, SQUARE, loads_of
from .ledger import Decision, Verdict, claim, judge
from .timing import Pair, Spread, Timing, at, decide, timings

SMALL = {"M": 128, "K": 128, "N": 128}  # the largest that the document runs kernel 1 at

# ---- 6: the figures of speed -------------------------------------------------------------------------


@claim("004.6a", shapes="workgroups of 256 and 257 invocations")
def limit_of_256() -> Decision:
    """A workgroup has at most 256 invocations by WebGPU's default limits."""
    refused = {size: bool(check_dispatch((1,), (size,))) for size in (256, 257)}
    return judge(
        refused == {256: False, 257: True},
        "the limit, maxComputeInvocationsPerWorkgroup, is {limit}; a device may offer more to those that ask",
        limit=DEFAULT_LIMITS["maxComputeInvocationsPerWorkgroup"],
    )


def _flops(sizes: dict[str, int]) -> float:
    return 2.0 * sizes["M"] * sizes["N"] * sizes["K"]


def _rate(timing: Timing) -> str:
    """The rate of a dispatch on every adapter that has a time of it, in words."""
    flops = _flops(dict(timing.sizes))
    found = {adapter.name: times.get((timing.kernel, timing.case)) for adapter, times in clock.measured().items()}
    words = [f"{flops / each.median / 1e3:,.3g} GFLOP/s on {name}" for name, each in found.items() if each]
    return ", ".join(words) or "no time of it is here"


ONE, FLAT, BEST = at("ladder_one_thread", SMALL), at("ladder_flat", LARGE), at("ladder_unrolled_8x8", LARGE)


@claim("004.6b", shapes="M, K, N 128", times=(ONE,))
def rate_of_one_thread() -> Decision:
    """Kernel 1 comes to 1.64 GFLOP/s on an M2 Pro."""
    done = run("ladder_one_thread", SMALL, probes=("lanes",))
    return judge(
        None,
        "{lanes:.0%} of the lanes that it issues are active, one of each subgroup; {rate}",
        "a time on the author's device",
        lanes=done.counters["simt_efficiency"],
        rate=_rate(ONE),
    )


def _per_flop(before: Timing, after: Timing) -> list[Pair]:
    """The rates of two dispatches of different sizes."""
    return [Pair("rates", [(1 / _flops(dict(before.sizes)), before)], [(1 / _flops(dict(after.sizes)), after)])]


def _factor(said: int) -> Callable[[Sequence[Spread]], Verdict]:
    """Confirmed where the first digit and the order of magnitude are as said, partly where it is faster at all."""

    def rule(found: Sequence[Spread]) -> Verdict:
        if float(f"{found[0].median:.1g}") == said:
            return Verdict.CONFIRMED
        return Verdict.PARTLY if found[0].low > 1 else Verdict.REFUTED

    return rule


THREADS = _per_flop(ONE, FLAT)


@claim("004.6c", shapes="M, K, N 128 and 4092; lanes at 128", times=timings(THREADS))
def threads_gain_200_times() -> Decision:
    """256 threads a workgroup make it 200 times as fast as one."""
    lanes = [run(k, SMALL, probes=("lanes",)).counters["simt_efficiency"] for k in ("ladder_one_thread", "ladder_flat")]
    return decide(
        THREADS,
        _factor(200),
        "active lanes of those issued are {after:.0%} instead of {before:.0%}: of the 200, {share:.0f} are lanes",
        "004.6c",
        before=lanes[0],
        after=lanes[1],
        share=lanes[1] / lanes[0],
    )


WHOLE = _per_flop(ONE, BEST)


@claim("004.6d", shapes="M, K, N 128 and 4092; loads at M 128, K 64, N 128", times=timings(WHOLE))
def ladder_gains_1000_times() -> Decision:
    """The last kernel is 1000 times as fast as the first."""
    first, last = loads_of("ladder_one_thread"), loads_of("ladder_unrolled_8x8")
    return decide(
        WHOLE,
        _factor(1000),
        "{lanes} lanes of a subgroup instead of 1, and {times:g} times fewer loads a product, make {product:g}",
        "004.6d",
        lanes=32,
        times=first / last,
        product=32 * first / last,
    )


@claim("004.6e", shapes="M, K, N 4092", times=(BEST,))
def more_than_a_teraflop() -> Decision:
    """Unrolled 8x8 comes to more than 1 TFLOP/s on an M2 Pro."""
    last = run("ladder_unrolled_8x8", SQUARE).counters
    asked = last["flops"] / last["global_bytes"]
    return judge(
        None,
        "at {asked:.2f} FLOP a byte asked for, 200 GB/s would be {least:.0f} GFLOP/s, so that caches must answer "
        "{share:.0%} of it; {rate}",
        "a time on the author's device",
        asked=asked,
        least=asked * PEAK_BANDWIDTH / 1e9,
        share=1 - asked * PEAK_BANDWIDTH / 1e12,
        rate=_rate(BEST),
    )
