"""Document 003: what each idea is estimated to gain, and the advice that follows.

Where times were measured, they decide. Where not, counts do, as far as they can: a time that is a sum of costs is as
many times shorter as some number between the least and the greatest of their ratios, whatever each takes. Costs that
are all equal decide nothing. An idea is compared with the kernel that the author has published, and its gain as the
author thought of it with the kernel that lacks what the idea brings.
"""

from __future__ import annotations

from collections.abc import Sequence

from bankshot.sim.models import roofline

from .bench import case, run, run_case, total
from .document_003 import BATCH, BATCH_SHAPES, MAT, TOKEN, TOKEN_SHAPES, VEC, issued, pair
from .ledger import Decision, Verdict, claim, judge
from .timing import Pair, at, between, decide, once, timings

COSTS = {
    "operations issued": issued,
    "sectors": lambda done: done.counters["global_sectors"],
    # What moves 128 bytes to or from lanes: a wavefront of workgroup memory, or four sectors.
    "passes of 128 bytes": lambda done: done.counters["global_sectors"] / 4 + done.counters["shared_wavefronts"],
    "barriers": lambda done: done.counters["barriers"],
}

LARGE = {"N": 2048, "K": 2048}  # what is timed
Kernels = Sequence[tuple[str, str, dict[str, int]]]
"""Kernels before and after, and the sizes of the counts."""


def _timed(kernels: Kernels) -> list[Pair]:
    """What measures these kernels in a layer of a model."""
    sized = [(before, after, {"M": sizes["M"], **LARGE}) for before, after, sizes in kernels]
    return [Pair(f"{b} to {a}:", once(at(b, sizes)), once(at(a, sizes))) for b, a, sizes in sized]


def _ratios(before: str, after: str, sizes: dict[str, int]) -> dict[str, float]:
    """Each cost before per after; infinite where the idea does away with it, 0 where the idea brings it."""
    runs = pair(before, after, sizes)
    found = {}
    for name, cost in COSTS.items():
        more, less = map(cost, runs)
        if more or less:
            found[name] = more / less if less else float("inf")
    return found


def by_counts(least: float, most: float, ratios: Sequence[dict[str, float]]) -> Verdict:
    """A verdict only where it is the same whatever each cost takes."""
    low, high = (bound(bound(each.values()) for each in ratios) for bound in (min, max))
    if round(low, 2) >= least and round(high, 2) <= most:
        return Verdict.CONFIRMED
    if round(high, 2) <= 1 and round(low, 2) < 1:
        return Verdict.REFUTED
    return Verdict.PARTLY if low > most else Verdict.UNDECIDABLE


def _estimate(id: str, least: float, most: float, kernels: Kernels) -> Decision:
    """Decide an estimate of `least` to `most` times as fast."""
    ratios = [_ratios(*each) for each in kernels]
    words = "; ".join(
        f"{before} to {after}: {', '.join(f'{name} {ratio:.2f}' for name, ratio in found.items())}"
        for (before, after, _), found in zip(kernels, ratios, strict=True)
    )
    said = "costs before per after, above 1 a gain: {words}"
    timed = decide(_timed(kernels), between(least, most), said, id, words=words, costs=ratios)
    if timed.verdict is not Verdict.UNDECIDABLE:
        return timed
    verdict = by_counts(least, most, ratios)
    if verdict is Verdict.UNDECIDABLE:
        return timed
    return Decision(verdict, f"{timed.finding}, so {SAID[verdict]}", timed.figures)


SAID = {
    Verdict.CONFIRMED: "whatever each of them takes, the gain is such",
    Verdict.PARTLY: "whatever each of them takes, the gain is larger",
    Verdict.REFUTED: "whatever each of them takes, there is no gain",
}


PLAIN_MAT, PLAIN_VEC = "matmul_mat_fp16", "matmul_vec_fp16"  # without tiles; with a row a workgroup

TILED: Kernels = [(MAT, "matmul_mat_fp16_tiled", BATCH), (PLAIN_MAT, MAT, BATCH)]
TILED_TOKEN: Kernels = [(VEC, "matmul_mat_fp16_tiled", TOKEN)]
UNPACKED: Kernels = [(k, f"{k}_vector", BATCH) for k in ("matmul_mat_int8", "matmul_mat_nf4")]
UNPACKED_TOKEN: Kernels = [(k, f"{k}_vector", TOKEN) for k in ("matmul_vec_int8", "matmul_vec_nf4")]
SUBGROUPS: Kernels = [(k, "matmul_vec_fp16_subgroup", TOKEN) for k in (VEC, PLAIN_VEC)]
TEXTURES: Kernels = [(f"matmul_mat_{f}_vector", f"matmul_mat_{f}_texture", BATCH) for f in ("int8", "nf4")]
TEXTURES_TOKEN: Kernels = [(f"matmul_vec_{f}_vector", f"matmul_vec_{f}_texture", TOKEN) for f in ("int8", "nf4")]
DOUBLE_TOKEN: Kernels = [("matmul_mat_fp16_tiled", "matmul_mat_fp16_double", TOKEN)]
DOUBLE: Kernels = [("matmul_mat_fp16_tiled", "matmul_mat_fp16_double", BATCH)]
SINGLE: Kernels = [(k, "matmul_vec_fp16_single", TOKEN) for k in (VEC, PLAIN_VEC)]


@claim("003.4a", shapes=BATCH_SHAPES, times=timings(_timed(TILED)))
def tiles_for_a_batch() -> Decision:
    """Tiles gain 50 to 100% for a batch."""
    return _estimate("003.4a", 1.5, 2, TILED)


@claim("003.4b", shapes=TOKEN_SHAPES, times=timings(_timed(TILED_TOKEN)))
def tiles_for_a_token() -> Decision:
    """Tiles gain 5% for one token."""
    return _estimate("003.4b", 1.05, 1.05, TILED_TOKEN)


@claim("003.4c", shapes=f"{BATCH_SHAPES}; INT8 and NF4", times=timings(_timed(UNPACKED)))
def unpacking_for_a_batch() -> Decision:
    """Unpacking several weights at a time gains 10 to 20% for a batch."""
    return _estimate("003.4c", 1.1, 1.2, UNPACKED)


@claim("003.4d", shapes=f"{TOKEN_SHAPES}; INT8 and NF4", times=timings(_timed(UNPACKED_TOKEN)))
def unpacking_for_a_token() -> Decision:
    """Unpacking several weights at a time gains 10 to 20% for one token."""
    return _estimate("003.4d", 1.1, 1.2, UNPACKED_TOKEN)


@claim("003.4e", shapes=TOKEN_SHAPES, times=timings(_timed(SUBGROUPS)))
def subgroups_for_a_token() -> Decision:
    """Sums within subgroups gain 10 to 15% for one token."""
    return _estimate("003.4e", 1.1, 1.15, SUBGROUPS)


@claim("003.4f", shapes=BATCH_SHAPES)
def subgroups_for_a_batch() -> Decision:
    """Sums within subgroups gain 5% for a batch."""
    flops = run(MAT, BATCH).counters["flops"]
    products = 2 * BATCH["M"] * BATCH["N"] * BATCH["K"]
    return judge(
        flops > products,
        "the kernel as published does {flops:,} FLOPs, 2 * M * N * K = {products:,}: each thread has outputs of its "
        "own, and there is no sum across threads to speed up",
        flops=flops,
        products=products,
    )


@claim("003.4g", shapes=f"{BATCH_SHAPES}; INT8 and NF4", times=timings(_timed(TEXTURES)))
def textures_for_a_batch() -> Decision:
    """Weights in textures gain 10 to 20% for a batch."""
    return _estimate("003.4g", 1.1, 1.2, TEXTURES)


@claim("003.4h", shapes=BATCH_SHAPES, times=timings(_timed(DOUBLE)))
def two_slots() -> Decision:
    """Two slots of tiles gain 10 to 15% for a batch."""
    return _estimate("003.4h", 1.1, 1.15, DOUBLE)


@claim("003.4i", shapes=TOKEN_SHAPES, times=timings(_timed(SINGLE)))
def one_token() -> Decision:
    """A kernel for one token gains 20 to 30%."""
    return _estimate("003.4i", 1.2, 1.3, SINGLE)


@claim("003.4j", shapes=BATCH_SHAPES, times=timings(_timed(TILED)))
def two_to_four_times() -> Decision:
    """Tiles make a batch 2 to 4 times as fast; the table of the same document says 50 to 100%, with 2 in common."""
    return _estimate("003.4j", 2, 4, TILED)


@claim("003.4k", shapes=f"{TOKEN_SHAPES}; INT8 and NF4", times=timings(_timed(TEXTURES_TOKEN)))
def textures_for_a_token() -> Decision:
    """Weights in textures gain 5 to 10% for one token."""
    return _estimate("003.4k", 1.05, 1.1, TEXTURES_TOKEN)


@claim("003.4l", shapes=TOKEN_SHAPES, times=timings(_timed(DOUBLE_TOKEN)))
def two_slots_for_a_token() -> Decision:
    """Two slots of tiles gain 5% for one token."""
    return _estimate("003.4l", 1.05, 1.05, DOUBLE_TOKEN)


# ---- 5: the advice -----------------------------------------------------------------------------------


@claim("003.5", shapes=f"{BATCH_SHAPES}, and {TOKEN_SHAPES}; under the roofline of an H200")
def advice() -> Decision:
    """Where a kernel is bound by memory, tiles help; where it is bound by computing, unpacking several weights does."""
    device = run(MAT, BATCH).device
    assert device.peak_flops is not None
    assert device.peak_bandwidth is not None
    figures = {}
    for name, kernel, sizes in (("batch", MAT, BATCH), ("token", VEC, TOKEN)):
        made = case(kernel, sizes)
        done = run_case(made)
        least = sum(made.arrays[array].nbytes for array in ("W", "X", "Y"))
        place = roofline.place(done.counters["flops"], least, device.peak_flops, device.peak_bandwidth)
        again = total(done, "global_bytes", "load", "W") / made.arrays["W"].nbytes
        figures |= {f"{name}_bound": place.bound, f"{name}_intensity": place.intensity, f"{name}_again": again}
    return judge(
        figures["token_bound"] == "compute",
        "one token is bound by {token_bound} ({token_intensity:.2g} FLOP a byte), and each weight is asked for "
        "{token_again:g} time: there is nothing that tiles could spare, and smaller weights are what helps; a batch "
        "({batch_intensity:.2g} FLOP a byte, each weight {batch_again:g} times) is where tiles do",
        partly=figures["token_again"] == 1 < figures["batch_again"],
        **figures,
    )
