"""Document 004: a ladder of matmuls without workgroup memory, from a thread a workgroup to 8 x 8 outputs a thread.

Its figures of speed are in `document_004_speed`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, pairwise

import numpy as np

from bankshot.oracle.manifests import kernel_selection
from bankshot.sim.models import DEFAULT_LIMITS, check_dispatch, roofline

from .bench import case, kernels, only_output, run, run_case, same_bits, share, total
from .ledger import Decision, Verdict, claim, judge, remark
from .timing import Pair, Spread, at, decide, faster, once, timings

# In the order of the document.
LADDER = (
    "ladder_one_thread",
    "ladder_flat",
    "ladder_row_from_x",
    "ladder_row_from_y",
    "ladder_1x4",
    "ladder_4x4",
    "ladder_unrolled_4x4",
    "ladder_unrolled_8x8",
)

SQUARE = {"M": 128, "K": 64, "N": 128}
SQUARE_SHAPES = (
    "M 128, K 64, N 128, where every thread of every kernel has work; figures per output and step are the same"
)


LARGE = {"M": 4092, "K": 4092, "N": 4092}


def _short(kernel: str) -> str:
    return kernel.removeprefix("ladder_")


# ---- 1: limits of a dispatch -------------------------------------------------------------------------


def _largest_square(kernel: str) -> int:
    """The largest N x N by N x N whose grid WebGPU allows by default."""

    def allowed(size: int) -> bool:
        grid = kernel_selection.grid_of(kernels()[kernel], {"M": size, "N": size, "K": size})
        return not check_dispatch(grid, (1,))

    low, high = 1, 1 << 20
    assert allowed(low)
    assert not allowed(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return low


@claim("004.1a", shapes="grids of squares, by bisection")
def largest_of_one_thread() -> Decision:
    """The largest square that kernel 1, a thread a workgroup, can be dispatched for is 128."""
    largest = _largest_square("ladder_one_thread")
    return judge(
        largest == 128,
        "it is {largest}: {used:,} workgroups, of {limit:,} that are allowed; {next} x {next} would take {over:,}, so "
        "that 128 is the largest power of two, and 256, as the document says, too large",
        partly=128 <= largest < 256,
        largest=largest,
        used=largest**2,
        limit=DEFAULT_LIMITS["maxComputeWorkgroupsPerDimension"],
        next=largest + 1,
        over=(largest + 1) ** 2,
    )


@claim("004.1b", shapes="grids of squares, by bisection")
def largest_of_256_threads() -> Decision:
    """With 256 threads in one dimension (kernel 2) 4096 x 4096 is still out of reach."""
    largest = _largest_square("ladder_flat")
    return judge(
        largest < 4096,
        "the largest square is {largest:,}: one more row and column take {over:,} workgroups, {limit:,} being allowed",
        largest=largest,
        over=-(-((largest + 1) ** 2) // 256),
        limit=DEFAULT_LIMITS["maxComputeWorkgroupsPerDimension"],
    )


@claim("004.1c", shapes="grids of squares, by bisection, and one binding of 128 MiB")
def largest_of_8_by_8() -> Decision:
    """In two dimensions (kernel 3) 4096 x 4096 can be dispatched."""
    largest = _largest_square("ladder_row_from_y")
    bound = int((DEFAULT_LIMITS["maxStorageBufferBindingSize"] // 4) ** 0.5)
    return judge(
        largest >= 4096 and bound >= 4096,
        "grids go up to {largest:,}; what comes first is the default size of a binding, {bound:,} x {bound:,} in f32",
        largest=largest,
        bound=bound,
    )


@claim("004.1d", shapes="M 64, K 4, N 64; the share is the same at every multiple of 16")
def grid_for_16_by_16() -> Decision:
    """The printed dispatch, ceil(size / 16) workgroups each way, fits the printed workgroup of 8 x 8."""
    made = case("ladder_row_from_y", dict(M=64, K=4, N=64))
    whole, part = run_case(made), run_case(replace(made, grid=(64 // 16, 64 // 16, 1)))
    left = float(np.isnan(only_output(part)).mean())
    return judge(
        left == 0,
        "{left:.0%} of the outputs are never written: {given} workgroups run where {needed} are needed",
        left=left,
        given=int(part.counters["workgroups"]),
        needed=int(whole.counters["workgroups"]),
    )


@claim("004.1e", shapes="M 4092, K 1, N 4092")
def grid_without_ceil() -> Decision:
    """Kernel 2 is dispatched as (M * N) / 256 workgroups, without rounding up."""
    done = run("ladder_flat_published", {"M": 4092, "K": 1, "N": 4092}, probes="none")
    output = only_output(done)
    return remark(
        "a browser drops the fraction, so that where M * N is no multiple of 256 the last outputs are never written: "
        "at 4092 x 4092, the size that the document computes its bounds for, {left} of {outputs:,}",
        left=int(np.isnan(output).sum()),
        outputs=output.size,
    )


# ---- 2: which coordinate is the row ------------------------------------------------------------------


@claim("004.2a", shapes=SQUARE_SHAPES)
def row_from_y() -> Decision:
    """With the row from y instead of x the threads of a subgroup share more of A, and memory is asked for less."""
    figures = {}
    for kernel in ("ladder_row_from_x", "ladder_row_from_y"):
        done = run(kernel, SQUARE)
        for kind, name in (("load", "A"), ("load", "B"), ("store", "C")):
            sectors, lines = (
                share(done, kind, name, counter, "global_requests") for counter in ("global_sectors", "global_lines")
            )
            figures[f"{kernel[-1]}_{name}"] = [sectors, lines]
    words = {
        axis: ", ".join(f"{name} {{{axis}_{name}[0]:g}}/{{{axis}_{name}[1]:g}}" for name in "ABC").format(**figures)
        for axis in "xy"
    }
    fewer = all(figures[f"y_{n}"][0] <= figures[f"x_{n}"][0] for n in "ABC")
    return judge(
        fewer and figures["y_A"][0] < figures["x_A"][0],
        "sectors/lines a request with the row from x: {from_x}; from y: {from_y}",
        from_x=words["x"],
        from_y=words["y"],
        **figures,
    )


FROM_X = [
    Pair("256 threads:", once(at("ladder_row_from_x", LARGE)), once(at("ladder_flat", LARGE))),
    Pair("row from y:", once(at("ladder_row_from_x", LARGE)), once(at("ladder_row_from_y", LARGE))),
]


@claim("004.2b", shapes=f"{SQUARE_SHAPES}; times at 4092", times=timings(FROM_X))
def row_from_x_is_slower() -> Decision:
    """With the row from x, kernel 3 is slower than with 256 threads in one dimension, and than with the row from y."""
    rungs = ("flat", "row_from_x", "row_from_y")
    sectors = {rung: run(f"ladder_{rung}", SQUARE).counters["global_sectors"] for rung in rungs}
    return decide(
        FROM_X,
        faster,
        "sectors that are asked for: {row_from_x:,} with the row from x, {flat:,} with 256 threads, and {row_from_y:,} "
        "with the row from y",
        "004.2b",
        **sectors,
    )


# ---- 3: the roofline ---------------------------------------------------------------------------------

SIZE = 4092
PEAK_FLOPS, PEAK_BANDWIDTH = 6e12, 200e9  # of the document's machine, as it says
ROOF_SHAPES = "M, K, N 64 with a residual; FLOPs scale as 2 MNK + MN, bytes as the sizes of the matrices, to 4092"


def _of_4092() -> dict[str, float]:
    """FLOPs and bytes of Y = X @ W + R at the document's size, each matrix read once or written once."""
    made = case("matmul_residual", dict(M=64, K=64, N=64))
    done = run_case(made)
    products, sums = total(done, "flops", "op", "fma"), total(done, "flops", "op", "+")
    assert (products, sums) == (2 * 64**3, 64**2)
    grown = SIZE / 64
    return {
        "flops": products * grown**3 + sums * grown**2,
        "read": sum(made.arrays[name].nbytes for name in "XWR") * grown**2,
        "written": made.arrays["Y"].nbytes * grown**2,
    }


@claim("004.3a", shapes=ROOF_SHAPES)
def work_of_4092() -> Decision:
    """4092 x 4092 with an addition is 137 GFLOP, 201 MB to read and 67 MB to write."""
    work = _of_4092()
    return judge(
        [round(work["flops"] / 1e9), round(work["read"] / 1e6), round(work["written"] / 1e6)] == [137, 201, 67],
        "{flops:,.0f} FLOPs, {read:,.0f} bytes read and {written:,.0f} written, where each matrix is moved once",
        **work,
    )


@claim("004.3b", shapes=ROOF_SHAPES)
def compute_time() -> Decision:
    """At 6 TFLOP/s that takes 22 ms."""
    took = _of_4092()["flops"] / PEAK_FLOPS * 1000
    return judge(int(took) == 22, "it takes {took:.2f} ms, of which 22 are whole", took=took)


@claim("004.3c", shapes=ROOF_SHAPES)
def memory_time() -> Decision:
    """At 200 GB/s moving it takes 1.34 ms."""
    work = _of_4092()
    took = (work["read"] + work["written"]) / PEAK_BANDWIDTH * 1000
    return judge(round(took, 2) == 1.34, "it takes {took:.3f} ms", took=took)


@claim("004.3d", shapes=ROOF_SHAPES)
def bound_by_compute() -> Decision:
    """So it is bound by compute, by a factor of about 16."""
    work = _of_4092()
    moved = work["read"] + work["written"]
    place = roofline.place(work["flops"], moved, PEAK_FLOPS, PEAK_BANDWIDTH)
    factor = place.intensity / place.ridge
    whole = int(work["flops"] / PEAK_FLOPS * 1000) / round(moved / PEAK_BANDWIDTH * 1000, 2)
    return judge(
        place.bound == "compute" and round(whole) == 16,
        "it is bound by {bound}, by {factor:.1f}: {intensity:.0f} FLOP a byte over a ridge of {ridge:g}; with 22 ms "
        "for 22.8 it is {whole:.1f}",
        whole=whole,
        bound=place.bound,
        factor=factor,
        intensity=place.intensity,
        ridge=place.ridge,
    )


@claim("004.3e", shapes=SQUARE_SHAPES)
def roofline_of_rungs() -> Decision:
    """Where the kernels stand under that roofline, by the bytes that they ask for; the document places the work."""
    places = {}
    for kernel in LADDER:
        counters = run(kernel, SQUARE).counters
        places[_short(kernel)] = roofline.place(counters["flops"], counters["global_bytes"], PEAK_FLOPS, PEAK_BANDWIDTH)
    return remark(
        "computing takes {ridge:g} FLOP a byte, and they have {words}; only as far as caches answer are they more than "
        "{most:,.0f} GFLOP/s",
        ridge=PEAK_FLOPS / PEAK_BANDWIDTH,
        words=", ".join(f"{name} {place.intensity:.2f} ({place.bound})" for name, place in places.items()),
        most=max(place.attainable for place in places.values()) / 1e9,
        attainable={name: place.attainable for name, place in places.items()},
    )


# ---- 4: loops ----------------------------------------------------------------------------------------


def loads_of(kernel: str) -> float:
    """Loads of a thread for each product that it adds."""
    done = run(kernel, SQUARE)
    return total(done, "active_lanes", "load", "A", "B") / (SQUARE["M"] * SQUARE["N"] * SQUARE["K"])


def _rungs_at_4092(before: str, *after: str) -> list[Pair]:
    return [Pair(f"{rung}:", once(at(f"ladder_{before}", LARGE)), once(at(f"ladder_{rung}", LARGE))) for rung in after]


UNROLLED = _rungs_at_4092("4x4", "unrolled_4x4")


@claim("004.4a", shapes=SQUARE_SHAPES)
def loop_is_all() -> Decision:
    """What makes the looped 4x4 slower than the unrolled one is the loop: its counter, its branch, its order."""
    kernels_ = ("ladder_4x4", "ladder_unrolled_4x4")
    looped, unrolled = map(loads_of, kernels_)
    runs = [run(kernel, SQUARE, probes="lanes") for kernel in kernels_]
    same = same_bits(*map(only_output, runs))
    branches = [sum(row.executions for row in done.instructions if row.kind == "control") for done in runs]
    return judge(
        same and looped == unrolled,
        "for the same bits it branches more ({looped_control:,} control instructions of subgroups against "
        "{unrolled_control:,}), and it makes {looped:g} loads a product instead of {unrolled:g}, {times:g} times as "
        "many: inside the loop over rows each thread loads its four of B for every row again",
        partly=same and branches[1] < branches[0],
        looped=looped,
        unrolled=unrolled,
        looped_control=branches[0],
        unrolled_control=branches[1],
        times=looped / unrolled,
    )


SINGLE = _rungs_at_4092("4x4", "row_from_y")


@claim("004.4b", shapes=f"{SQUARE_SHAPES}; times at 4092", times=timings(SINGLE))
def looped_is_slower_than_one() -> Decision:
    """The looped 4x4 is slower than one output a thread, though each thread does more."""
    loads = {_short(kernel): loads_of(kernel) for kernel in ("ladder_row_from_y", "ladder_4x4")}
    return decide(
        SINGLE,
        faster,
        "it makes {looped:g} loads a product where one output a thread takes {single:g}: the loads alone would make it "
        "faster, and what the loops cost is not in the text",
        "004.4b",
        looped=loads["4x4"],
        single=loads["row_from_y"],
    )


EIGHT = _rungs_at_4092("4x4", "unrolled_8x8")


def _three(found: Sequence[Spread]) -> Verdict:
    """Confirmed at 3 rounded to a whole, partly where it is faster at all."""
    if round(found[0].median) == 3:
        return Verdict.CONFIRMED
    return Verdict.PARTLY if found[0].low > 1 else Verdict.REFUTED


@claim("004.4c", shapes=f"{SQUARE_SHAPES}; times at 4092", times=timings(EIGHT))
def unrolled_8x8() -> Decision:
    """Unrolled 8x8 is 3 times as fast as the looped 4x4."""
    looped, unrolled = loads_of("ladder_4x4"), loads_of("ladder_unrolled_8x8")
    return decide(
        EIGHT,
        _three,
        "it makes {unrolled:g} loads a product instead of {looped:g}, {times:g} times fewer",
        "004.4c",
        looped=looped,
        unrolled=unrolled,
        times=looped / unrolled,
    )


@claim("004.4d", shapes=f"{SQUARE_SHAPES}; times at 4092", times=timings(UNROLLED))
def unrolled_is_faster() -> Decision:
    """Unrolled, 4x4 is faster than looped."""
    looped, unrolled = loads_of("ladder_4x4"), loads_of("ladder_unrolled_4x4")
    return decide(
        UNROLLED,
        faster,
        "it makes {unrolled:g} loads a product instead of {looped:g}",
        "004.4d",
        looped=looped,
        unrolled=unrolled,
    )


@claim("004.4e", shapes="M 20, K 8, N 66")
def past_the_row() -> Decision:
    """The 1 x 4 kernel looks at the first of its four columns only."""
    sizes = {"M": 20, "K": 8, "N": 66}
    done = run("ladder_1x4_published", sizes, probes=("races", "bounds"))
    wrong = only_output(done) != only_output(run("ladder_row_from_y", sizes, probes="none"))
    codes = sorted({finding.code for finding in done.findings})
    return remark(
        "where N is no multiple of 4 the last tile of a row stores into the next row, which another thread stores, "
        "too: at N 66, {wrong} of {outputs:,} outputs are wrong, and the run reports {codes}; 4092 is a multiple",
        wrong=int(wrong.sum()),
        outputs=wrong.size,
        codes=" and ".join(codes),
    )


# ---- 5: intensity ------------------------------------------------------------------------------------


def _rising(values: list[float]) -> bool:
    return all(before <= after for before, after in pairwise(values)) and values[0] < values[-1]


def _rungs(values: dict[str, float]) -> str:
    """The neighbours that have one value."""
    groups = [[name for name, _ in group] for _, group in groupby(values.items(), key=lambda item: item[1])]
    return ", and ".join(" and ".join(group) for group in groups if len(group) > 1) or "none"


@claim("004.5a", shapes=SQUARE_SHAPES)
def intensity_rises() -> Decision:
    """Arithmetic intensity up the ladder: FLOP a byte asked for, and FLOP a load."""
    runs = {_short(kernel): run(kernel, SQUARE) for kernel in LADDER}
    per_byte = {name: done.counters["flops"] / done.counters["global_bytes"] for name, done in runs.items()}
    per_load = {
        name: done.counters["flops"] / total(done, "active_lanes", "load", "A", "B") for name, done in runs.items()
    }
    return remark(
        "FLOP a byte / a load of a thread: {words}; it {rises}, and on one rung stand {rungs}",
        rises="never falls" if _rising([*per_byte.values()]) and _rising([*per_load.values()]) else "falls somewhere",
        words=", ".join(f"{name} {per_byte[name]:.2f} / {per_load[name]:.1f}" for name in runs),
        rungs=_rungs(per_load),
        per_byte=per_byte,
        per_load=per_load,
    )


@claim("004.5b", shapes=SQUARE_SHAPES)
def sectors_rise() -> Decision:
    """Arithmetic intensity by what subgroups ask of memory: FLOP a byte of the sectors touched."""
    per_byte = {}
    for kernel in LADDER:
        counters = run(kernel, SQUARE).counters
        per_byte[_short(kernel)] = counters["flops"] / (32 * counters["global_sectors"])
    falls = [after for (_, a), (after, b) in pairwise(per_byte.items()) if b < a]
    return remark(
        "FLOP a byte of sectors: {words}; it falls at {falls}, for threads that are neighbours no longer load "
        "neighbours",
        words=", ".join(f"{name} {value:.2f}" for name, value in per_byte.items()),
        falls=" and ".join(falls) or "no rung",
        per_byte=per_byte,
    )
