"""Document 002: why the fused kernel for Q4_K weights is slower than f16 weights, and how to find such kernels."""

from __future__ import annotations

from collections.abc import Sequence

from .bench import case, run
from .document_002 import ROW, layer
from .ledger import Decision, Verdict, claim, judge
from .timing import Pair, Spread, decide, timings

# ---- 6: the headline ---------------------------------------------------------------------------------

HEADLINE = [Pair("f16", layer("q4_fused_published"), layer("gemv_subgroup_published"))]


def _slower_by_2_7(found: Sequence[Spread]) -> Verdict:
    """Confirmed at 2.7 to one decimal, partly where it is slower at all."""
    if round(found[0].median, 1) == 2.7:
        return Verdict.CONFIRMED
    return Verdict.PARTLY if found[0].low > 1 else Verdict.REFUTED


@claim("002.6a", shapes="M 1, N 64, K 1152; times of the products of a layer", times=timings(HEADLINE))
def fused_is_slower() -> Decision:
    """The fused kernel for Q4_K weights is 2.7 times slower than f16 weights, unpacked before."""
    sizes = {"M": 1, "N": 64, "K": ROW}
    fused, plain = (run(kernel, sizes).counters for kernel in ("q4_fused_published", "gemv_subgroup_published"))
    return decide(
        HEADLINE,
        _slower_by_2_7,
        "for a product it asks for {bytes:.2f} times the bytes and {sectors:.2f} times the sectors, and issues "
        "{issued:.1f} times the operations",
        "002.6a",
        bytes=fused["global_bytes"] / plain["global_bytes"],
        sectors=fused["global_sectors"] / plain["global_sectors"],
        issued=fused["executions"] / plain["executions"],
    )


# Each beside a kernel that unpacks weights as it does, so that the two differ in who works.
REMEDIES = {
    "q4_fused_multicol_published": "q4_fused_published",
    "q4_fused_split": "q4_fused",
    "q4_fused_2d": "q4_fused",
}
CAUSE = [Pair(f"{kernel}:", layer(before), layer(kernel)) for kernel, before in REMEDIES.items()]


def _cause(found: Sequence[Spread]) -> Verdict:
    """Idle threads are the cause as far as kernels that differ in who works are faster."""
    wins = [each.low > 1 for each in found]
    return Verdict.CONFIRMED if all(wins) else Verdict.PARTLY if any(wins) else Verdict.REFUTED


@claim("002.6b", shapes="M 1, N 64, K 1152; times of the products of a layer", times=timings(CAUSE))
def utilization_is_the_cause() -> Decision:
    """The cause is poor thread utilization: kernels that give the threads work are faster."""
    figures = {}
    for kernel in dict.fromkeys(name for pair in REMEDIES.items() for name in reversed(pair)):
        counters = run(kernel, dict(M=1, N=64, K=ROW)).counters
        figures[kernel] = [counters["working_invocations"], counters["simt_efficiency"], counters["executions"] / 64]
    return decide(
        CAUSE,
        _cause,
        "invocations at work / active lanes / operations issued an output: {words}",
        "002.6b",
        words=", ".join(
            f"{name} {work:.0%} / {lanes:.0%} / {issued:,.0f}" for name, (work, lanes, issued) in figures.items()
        ),
        figures=figures,
    )


@claim("002.6c", shapes="a row of 1152 weights; bytes scale with the number of rows")
def layouts() -> Decision:
    """Of three layouts of the weights, columns unpacked to f16 are the fastest, then flat ones, then packed rows."""
    made = case("q4_fused_published", dict(M=1, N=64, K=ROW))
    rows = made.arrays["W"].nbytes // 64
    flat = ROW // 256 * 144 + ROW % 256 * 144 // 256
    return judge(
        None,
        "packed by rows, {row:,} weights take {rows} bytes, for a row ends in the middle of a block; packed flat they "
        "would take {flat}, {less:.0%} fewer; what a layout does once weights are unpacked is not in the document",
        "the loader's layouts as code, and timestamps of a token with each",
        row=ROW,
        rows=rows,
        flat=flat,
        less=1 - flat / rows,
    )


# ---- 7: the recipe -----------------------------------------------------------------------------------


@claim("002.7", shapes="M 1, N 64, K 1152")
def recipe() -> Decision:
    """Counting the threads that exit early finds the kernels to fix: those that are used to less than 50%."""
    sizes = {"M": 1, "N": 64, "K": ROW}
    figures = {}
    for kernel in (
        "q4_fused_published",
        "q4_fused_loop",
        "q4_fused_multicol_published",
        "q4_fused_split",
        "q4_fused_2d",
    ):
        done = run(kernel, sizes, probes="lanes")
        useful = done.utilization.useful_lane_efficiency
        figures[kernel] = [done.counters["working_invocations"], useful]
    missed = [kernel for kernel, (recipe_, useful) in figures.items() if recipe_ >= 0.5 > useful]
    return judge(
        not missed,
        "invocations at work / useful lanes: {words}; it finds q4_fused_published, and misses {missed}, whose threads "
        "stay and have nothing to add",
        partly=figures["q4_fused_published"][0] < 0.5,
        words=", ".join(f"{name} {used:.0%} / {useful:.0%}" for name, (used, useful) in figures.items()),
        missed=" and ".join(missed) or "none",
        figures=figures,
    )
