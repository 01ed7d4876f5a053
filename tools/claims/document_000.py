"""Document 000: forward matmul in 64 x 64 tiles of 16 x 16 invocations, double-buffered, with vec4 loads.

Its claims about banks and masks are in `document_000_banks`, those about fusion in `document_000_fusion`.
"""

from __future__ import annotations

from collections import Counter
from math import ceil

from bankshot.oracle.gpu_counters.access_trace import trace
from bankshot.sim.models import DEFAULT_LIMITS, devices
from bankshot.sim.models.occupancy import occupancy

from .bench import against_reference, case, only_output, run, run_case, same_bits, total
from .ledger import Decision, claim, judge, remark
from .timing import Pair, at, decide, faster, once, timings

# ---- 1: the tile -------------------------------------------------------------------------------------


@claim("000.1", shapes="M 128, N 192, K 64; a tile is the same at every size")
def tile() -> Decision:
    """A workgroup of 16 x 16 makes a 64 x 64 tile, an invocation a 4 x 4 patch of it, in steps of 16 along K, on a grid
    of ceil(N/64), ceil(M/64)."""
    m, n, k = 128, 192, 64
    done = run("matmul", dict(M=m, N=n, K=k))
    writers = [done.writer("Y", element) for element in range(m * n)]
    groups = Counter(writer.workgroup for writer in writers if writer)
    patches = Counter((w.workgroup, w.lane, i // n // 4, i % n // 4) for i, w in enumerate(writers) if w)
    steps = done.counters["barriers"] / done.counters["workgroups"] - 1
    figures = {
        "workgroup": list(done.pipeline.workgroup_size),
        "grid": list(done.grid),
        "outputs_of_workgroup": sorted(set(groups.values())),
        "outputs_of_patch": sorted(set(patches.values())),
        "step": k / steps,
    }
    holds = figures == {
        "workgroup": [16, 16, 1],
        "grid": [ceil(n / 64), ceil(m / 64), 1],
        "outputs_of_workgroup": [64 * 64],
        "outputs_of_patch": [4 * 4],
        "step": 16,
    }
    return judge(
        holds,
        "a workgroup of {workgroup} writes {outputs_of_workgroup} outputs, each invocation a patch of "
        "{outputs_of_patch}, in steps of {step:g} along K, on a grid of {grid}",
        **figures,
    )


# ---- 2: memory ---------------------------------------------------------------------------------------

KIB = 1024


def _tile_bytes(kernel: str) -> tuple[int, int]:
    """Bytes of the tile of A, and of that of B."""
    done = run(kernel, dict(M=64, N=64, K=16), probes="none")
    a, b = (done.program.shared_offsets[name] for name in ("a_tile", "b_tile"))
    assert a < b
    return b - a, int(done.counters["workgroup_memory_bytes"]) - b


@claim("000.2a", shapes="M 64, N 64, K 16; independent of sizes")
def bytes_of_two_slots() -> Decision:
    """Double-buffered, the tiles take 8.5 KB for A and 8 KB for B."""
    a, b = _tile_bytes("matmul")
    return judge(
        (a / KIB, b / KIB) == (8.5, 8),
        "A takes {a:,} bytes and B {b:,}, {sum:,} in all ({kib:g} KiB)",
        a=a,
        b=b,
        sum=a + b,
        kib=(a + b) / KIB,
    )


@claim("000.2b", shapes="M 64, N 64, K 16; independent of sizes")
def bytes_of_one_slot() -> Decision:
    """Single-buffered, the tiles take 4.4 KB for A and 4 KB for B."""
    a, b = _tile_bytes("matmul_single")
    return judge(
        round(a / 1000, 1) == 4.4 and b / KIB == 4,
        "A takes {a:,} bytes, which is 4.4 thousand ({a_kib:g} KiB), and B {b:,} ({b_kib:g} KiB)",
        a=a,
        b=b,
        a_kib=a / KIB,
        b_kib=b / KIB,
    )


@claim("000.2c", shapes="M 64, N 64, K 16; independent of sizes")
def fits_the_limit() -> Decision:
    """The double-buffered tiles fit the limit on workgroup memory, which is 32 KB on Apple's GPUs and in WebGPU."""
    limit = DEFAULT_LIMITS["maxComputeWorkgroupStorageSize"]
    apple = devices.DEVICES["apple"].workgroup_bytes_max
    double, single = (sum(_tile_bytes(kernel)) for kernel in ("matmul", "matmul_single"))
    return judge(
        double <= limit == 32 * KIB,
        "an Apple GPU has {apple:,} bytes and holds the {double:,}; WebGPU's own limit is {limit:,}, {over:,} fewer, "
        "so that a program must ask for a higher one, and some devices will refuse; the single-buffered twin fits with "
        "{single:,}",
        partly=double <= apple == 32 * KIB,
        apple=apple,
        limit=limit,
        double=double,
        over=double - limit,
        single=single,
    )


@claim("000.2d", shapes="M 64, N 64, K 16, on every profile of a GPU; registers are not counted")
def no_occupancy_lost() -> Decision:
    """Double-buffering costs no occupancy."""
    held = {}
    for name, device in devices.DEVICES.items():
        if device.workgroup_bytes_max >= sum(_tile_bytes("matmul")) and device.subgroup_size > 8:
            held[name] = [
                occupancy(device, (16, 16), sum(_tile_bytes(kernel))).workgroups
                for kernel in ("matmul_single", "matmul")
            ]
    lost = sorted(name for name, (single, double) in held.items() if double < single)
    words = ", ".join(f"{name} {single} to {double}" for name, (single, double) in held.items())
    return judge(
        not lost,
        "workgroups that a core holds, single- to double-buffered, by the profiles: {words}; fewer on {lost_words}",
        partly=len(lost) < len(held),
        words=words,
        lost_words=", ".join(lost) or "none",
        workgroups=held,
    )


PROJECTION = {"M": 512, "N": 3072, "K": 768}
LAYER_SIZES = (  # of the document
    {"M": 512, "N": 768, "K": 768},
    PROJECTION,
    {"M": 512, "N": 768, "K": 3072},
    {"M": 512, "N": 16384, "K": 768},
)
TWO_SLOTS = [
    Pair(f"N {sizes['N']}, K {sizes['K']}:", once(at("matmul_single", sizes)), once(at("matmul", sizes)))
    for sizes in LAYER_SIZES
]


@claim("000.2e", shapes="M 512 with N and K of the document; barriers at M 64, N 64, K 768", times=timings(TWO_SLOTS))
def two_slots_are_faster() -> Decision:
    """Double-buffering makes the kernel faster."""
    single, double = (run(kernel, dict(M=64, N=64, K=768)).counters for kernel in ("matmul_single", "matmul"))
    return decide(
        TWO_SLOTS,
        faster,
        "{double:g} barriers instead of {single:g}, and as many sectors ({sectors:,})",
        "000.2e",
        double=double["barriers"],
        single=single["barriers"],
        sectors=double["global_sectors"],
    )


# ---- 3: vec4 loads -----------------------------------------------------------------------------------

# Four loads of a word in place of one of four words.
SCALAR_LOADS = [
    ("X: array<vec4<f32>>", "X: array<f32>"),
    ("W: array<vec4<f32>>", "W: array<f32>"),
    ("let v = X[at];", "let v = vec4<f32>(X[4u * at], X[4u * at + 1u], X[4u * at + 2u], X[4u * at + 3u]);"),
    (
        "let v = vec4<f32>(W[from_k * (dims.y / 4u) + n / 4u]);",
        "let w = from_k * dims.y + n; let v = vec4<f32>(W[w], W[w + 1u], W[w + 2u], W[w + 3u]);",
    ),
]


@claim("000.3a", shapes="M 64, N 64, K 64; requests scale with the number of tiles and steps")
def vec4_load_instructions() -> Decision:
    """Loads of vec4 are 75% fewer load instructions than loads of scalars."""
    wide, narrow = (run("matmul", dict(M=64, N=64, K=64), edits=edits) for edits in ((), SCALAR_LOADS))
    assert same_bits(only_output(wide), only_output(narrow))
    fours, ones = (total(done, "global_requests", "load", "X", "W") for done in (wide, narrow))
    shared = total(wide, "shared_requests", "load", "a_tile", "b_tile")
    return judge(
        4 * fours == ones,
        "{fours} loads from storage by subgroups where the scalar twin needs {ones}, {less:.0%} fewer; the {shared:,} "
        "loads from workgroup memory, scalar in both, are untouched",
        fours=fours,
        ones=ones,
        less=1 - fours / ones,
        shared=shared,
    )


@claim("000.3b", shapes="M 64, N 64, K 64; bytes scale with the number of tiles and steps")
def vec4_bus() -> Decision:
    """Loads of vec4 lighten the load on the memory bus by 75%."""
    wide, narrow = (run("matmul", dict(M=64, N=64, K=64), edits=edits) for edits in ((), SCALAR_LOADS))
    bytes_wide, bytes_narrow = (total(done, "global_bytes", "load", "X", "W") for done in (wide, narrow))
    sectors_wide, sectors_narrow = (total(done, "global_sectors", "load", "X", "W") for done in (wide, narrow))
    return judge(
        4 * bytes_wide == bytes_narrow,
        "the bytes asked for are {bytes_wide:,} with vec4 and {bytes_narrow:,} without: what falls to a quarter is the "
        "times that a sector is asked for ({sectors_wide:,} against {sectors_narrow:,}), which a cache answers",
        bytes_wide=bytes_wide,
        bytes_narrow=bytes_narrow,
        sectors_wide=sectors_wide,
        sectors_narrow=sectors_narrow,
    )


# ---- 4, 5: barriers ----------------------------------------------------------------------------------


@claim("000.4", shapes="M 64, N 64, K 768; barriers scale with the number of tiles")
def barriers() -> Decision:
    """Double-buffering halves the barriers in the loop, against a single-buffered twin."""
    done = [run("matmul", dict(M=64, N=64, K=768)), run("matmul_single", dict(M=64, N=64, K=768))]
    (prologue, in_loop), in_twin = ([site.barriers for site in d.sites if site.kind == "barrier"] for d in done)
    return judge(
        2 * in_loop == sum(in_twin) and same_bits(*map(only_output, done)),
        "{in_loop} barriers in the loop against {twin}, and {prologue} before it; the outputs are the same bits",
        in_loop=in_loop,
        twin=sum(in_twin),
        prologue=prologue,
    )


FORWARD = (
    "matmul",
    "matmul_residual",
    "matmul_residual_swiglu_a",
    "matmul_w16",
    "matmul_residual_w16",
    "matmul_residual_swiglu_a_w16",
)
WITHOUT_BARRIER = [("        }\n        workgroupBarrier();\n", "        }\n")]  # the one at the end of a step


@claim("000.5", shapes="M 64, N 64, K 48: three steps, so that each slot is filled again")
def race_free() -> Decision:
    """The prefetch is free of races with its one barrier a step, and without it is not."""
    kept, without = (
        [
            sum(f.code == "race" for f in run(kernel, dict(M=64, N=64, K=48), edits=edits, probes="races").findings)
            for kernel in FORWARD
        ]
        for edits in ((), WITHOUT_BARRIER)
    )
    return judge(
        sum(kept) == 0 < min(without),
        "{kept} races in {kernels} kernels as written, and at least {without} in each without the barrier of the loop",
        kept=sum(kept),
        kernels=len(FORWARD),
        without=min(without),
    )


# ---- 9: multiples of 4 -------------------------------------------------------------------------------


def _wrong(**sizes: int):
    """How much of the output is wrong, and the codes of what the run reports."""
    made = case("matmul", sizes)
    done = run_case(made, probes="all")
    return against_reference(made, only_output(done)).share, sorted({f.code for f in done.findings})


@claim("000.9a", shapes="M 64, N 64 and K 64, with K or N made 2 more")
def multiples_of_4() -> Decision:
    """K and N must be multiples of 4."""
    (fine, _), (k_wrong, _), (n_wrong, _) = _wrong(M=64, N=64, K=64), _wrong(M=64, N=64, K=66), _wrong(M=64, N=66, K=64)
    return judge(
        fine == 0 < min(k_wrong, n_wrong),
        "outputs outside of the error bound: {fine:.0%} at multiples of 4, {k_wrong:.0%} with K = 66 and {n_wrong:.0%} "
        "with N = 66",
        fine=fine,
        k_wrong=k_wrong,
        n_wrong=n_wrong,
    )


@claim("000.9b", shapes="M 64, N 64, K 770, beside K 772")
def reported() -> Decision:
    """What a run at K = 770 reports; the document leaves the check to the host."""
    wrong, codes = _wrong(M=64, N=64, K=770)
    fine, same = _wrong(M=64, N=64, K=772)
    return remark(
        "the run at 770 reports {codes}, and that at 772, which is right, {same}: {wrong:.0%} of the outputs miss the "
        "reference at 770, and {fine:.0%} at 772",
        codes=" and ".join(codes) or "nothing",
        same=" and ".join(same) or "nothing",
        wrong=wrong,
        fine=fine,
    )


# ---- 10, 11, 12: prefetch, fma, share of time --------------------------------------------------------


@claim("000.10a", shapes="the first subgroup at M 64, N 64, K 48: three steps")
def prefetch_is_ahead() -> Decision:
    """While a tile is multiplied, the next one is fetched from memory, asynchronously."""
    traced = trace(case("matmul", dict(M=64, N=64, K=48)))
    order = {id(each): index for index, each in enumerate(traced.requests)}

    def at_first_step(variable: str, kind: str) -> list[int]:
        found = [each for each in traced.of(variable, kind) if (each.subgroup, each.epoch) == (0, 1)]
        return [order[id(each)] for each in found]

    loads, stores, products = (
        at_first_step(*what) for what in (("X", "load"), ("a_tile", "store"), ("a_tile", "load"))
    )
    return judge(
        False,
        "between two barriers a subgroup loads its part of the next tile of A ({loads} load of 16 bytes a lane), "
        "stores it in {stores}, and then reads this one in {products} loads to multiply it: a tile is fetched a "
        "barrier ahead of its use, but the stores wait for the load before the first product, for WGSL has no "
        "asynchronous copy; only other subgroups, or a compiler that moves the stores, overlap the two",
        partly=max(loads) < min(stores) and max(stores) < min(products),
        loads=len(loads),
        stores=len(stores),
        products=len(products),
    )


@claim("000.10b", shapes="M 64, N 64, K 768")
def latency_is_hidden() -> Decision:
    """Double-buffering hides the latency of memory behind the products."""
    done = run("matmul", dict(M=64, N=64, K=768))
    products, loads = total(done, "executions", "op", "fma"), total(done, "global_requests", "load", "X", "W")
    return judge(
        None,
        "a subgroup has {products:g} operations of fma() on vectors to issue for each load of 16 bytes a lane; how "
        "long a load takes, and who else has work meanwhile, is not in the text",
        "the stall reasons of a profiler, and 000.2e for the gain",
        products=products / loads,
    )


@claim("000.11", shapes="M 64, N 64, K 64, on every profile whose rounding was measured")
def fma_is_fused() -> Decision:
    """`fma()` runs on the GPU's fused multiply-add."""
    kinds = {name: device.fma for name, device in devices.DEVICES.items() if device.sources["fma"].mark == "measured"}
    made = case("matmul", dict(M=64, N=64, K=64))
    fused, separate = (only_output(run_case(made, device=name, probes="none")) for name in ("nvidia", "lavapipe"))
    differing = int((fused != separate).sum())
    gpus = {name for name in kinds if devices.DEVICES[name].subgroup_size > 8}
    return judge(
        all(kinds[name] != "separate" for name in kinds),
        "measured outputs of {fused} equal one rounding for a product and its sum, those of {separate}, on the CPU, "
        "two ({differing:,} of {all:,} outputs differ): GPUs that were measured fuse, and WGSL leaves it open",
        partly=gpus and all(kinds[name] != "separate" for name in gpus),
        fused=" and ".join(name for name, kind in kinds.items() if kind != "separate"),
        separate=" and ".join(name for name, kind in kinds.items() if kind == "separate"),
        differing=differing,
        all=fused.size,
        kinds=kinds,
    )


@claim("000.12", shapes="M 64, N 64, K 64; FLOPs scale with M * N * K")
def share_of_time() -> Decision:
    """Over half of the model's time goes to these kernels."""
    flops = run("matmul", dict(M=64, N=64, K=64)).counters["flops"] / 64**3
    layer = sum(times * n * k for times, n, k in ((4, 768, 768), (2, 3072, 768), (1, 768, 3072)))
    work = {"layer": flops * 512 * layer, "head": flops * 512 * 16384 * 768}
    return judge(
        None,
        "the products of a layer are {layer:.3g} FLOPs and those of the head {head:.3g}; what the rest of the model "
        "takes is not in the document",
        "timestamps of every pass of the author's program, on the author's device",
        **work,
    )
