"""Document 000: forward matmul in 64 x 64 tiles of 16 x 16 invocations, double-buffered, with vec4 loads."""

from __future__ import annotations

from collections import Counter
from math import ceil

from bankshot import Finding
from bankshot.sim.models import DEFAULT_LIMITS, devices
from bankshot.sim.models.occupancy import occupancy

from .bench import against_reference, case, only_output, run, run_case, same_bits, share, total
from .ledger import Decision, claim, judge

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
        (round(a / KIB, 1), round(b / KIB, 1)) == (4.4, 4.0),
        "A takes {a:,} bytes, {a_kib:g} KiB (4.4 counts A in thousands and B in 1024s), and B {b:,}, {b_kib:g} KiB",
        a=a,
        b=b,
        a_kib=a / KIB,
        b_kib=b / KIB,
    )


@claim("000.2c", shapes="M 64, N 64, K 16; independent of sizes")
def fits_the_limit() -> Decision:
    """The double-buffered tiles fit WebGPU's limit on workgroup memory, which is 32 KB."""
    limit = DEFAULT_LIMITS["maxComputeWorkgroupStorageSize"]
    double, single = (sum(_tile_bytes(kernel)) for kernel in ("matmul", "matmul_single"))
    return judge(
        double <= limit == 32 * KIB,
        "the limit that every WebGPU device has is {limit:,} bytes: {double:,} are {over:,} more, so that a program "
        "must ask for a higher one and some devices will refuse; the single-buffered twin fits with {single:,}",
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
        "workgroups that a core holds, single- to double-buffered: {words}; fewer on {lost_words}",
        words=words,
        lost_words=", ".join(lost) or "none",
        workgroups=held,
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


# ---- 6: banks ----------------------------------------------------------------------------------------

PADS = (16, 17, 18, 19, 20, 32, 33)
BANK_SITES = {
    "A store": ("store", "a_tile"),
    "B store": ("store", "b_tile"),
    "A read": ("load", "a_tile"),
    "B read": ("load", "b_tile"),
}


def _wavefronts(pad: int, edits=()) -> dict[str, float]:
    """Wavefronts per request at each of the four sites."""
    done = run("matmul", dict(M=64, N=64, K=32), overrides={"TK_PAD": pad}, probes=("banks",), edits=edits)
    return {
        site: share(done, kind, name, "shared_wavefronts", "shared_requests")
        for site, (kind, name) in BANK_SITES.items()
    }


@claim("000.6a", shapes="M 64, N 64, K 32, pads 16 to 20, 32 and 33; wavefronts per request are the same at every size")
def pads() -> Decision:
    """With accesses as written, TK_PAD = 17 prevents bank conflicts."""
    by_pad = {pad: _wavefronts(pad) for pad in PADS}
    rows = {site: [by_pad[pad][site] for pad in PADS] for site in BANK_SITES}
    words = "; ".join(f"{site} {', '.join(f'{value:g}' for value in values)}" for site, values in rows.items())
    return judge(
        all(value == 1 for value in by_pad[17].values()),
        "wavefronts a request (1 is none too many) at pads {pads}: {words}; 17 frees the reads of A only, whose stores "
        "keep {store:g}, and B, whose rows have no pad, is as before",
        pads=", ".join(map(str, PADS)),
        words=words,
        store=by_pad[17]["A store"],
        wavefronts=rows,
    )


def _merged(pad: int) -> dict[str, int]:
    """Wavefronts for four neighbouring words at each site, where a compiler merges as many as are aligned for it.

    Neighbours are the four that an invocation stages, the four of B that it reads, and of A those that it reads in four
    steps of the unrolled loop. A row of A begins at a multiple of `pad` words.
    """
    lanes = range(32)
    first_words = {
        "A store": [[lane // 4 * pad + lane % 4 * 4 for lane in lanes]],
        "B store": [[lane * 4 for lane in lanes]],
        "A read": [[(lane // 16 * 4 + row) * pad for lane in lanes] for row in range(4)],
        "B read": [[lane % 16 * 4 for lane in lanes]],
    }
    return {site: _four_words(groups, store="store" in site) for site, groups in first_words.items()}


def _four_words(groups: list[list[int]], store: bool) -> int:
    """Wavefronts of all `groups`, each the first words of a subgroup, as wide as all of them are aligned."""
    workgroups_per_batch = next(n for n in (4, 2, 1) if all(word % n == 0 for first in groups for word in first))
    return sum(
        devices.NVIDIA.shared_wavefronts([4 * (word + i) for word in first], 4 * workgroups_per_batch, store=store)
        for first in groups
        for i in range(0, 4, workgroups_per_batch)
    )


@claim("000.6b", shapes="one subgroup, pads 16 to 20, 32 and 33, by the rule of wide accesses; the same at every size")
def merged_pads() -> Decision:
    """With adjacent accesses merged into wide ones, TK_PAD = 17 has the fewest wavefronts."""
    by_pad = {pad: _merged(pad) for pad in PADS}
    # In a step an invocation stages four words of each tile once; it reads 4 x 4 of A 4 times, and 4 of B 16 times.
    weights = {"A store": 1, "B store": 1, "A read": 4, "B read": 16}
    costs = {pad: sum(weights[site] * n for site, n in row.items()) for pad, row in by_pad.items()}
    least = min(costs.values())
    return judge(
        costs[17] == least,
        "a subgroup takes {costs_words} wavefronts a step at pads {pads}: least at {best}, whose rows are aligned for "
        "loads of 16 bytes, where 17 forbids them; B, aligned, has no conflict left to prevent",
        costs_words=", ".join(map(str, costs.values())),
        pads=", ".join(map(str, PADS)),
        best=" and ".join(str(pad) for pad, cost in costs.items() if cost == least),
        costs=costs,
        wavefronts_of_four_words=by_pad,
    )


# Column c of row k goes to word c % 4 * 16 + c / 4 of the row, and odd rows are turned by half of the banks.
SWIZZLE = "fn place(k: u32, c: u32) -> u32 { return k * TN + (c % 4u * 16u + c / 4u + k % 2u * 16u) % TN; }\n"
SWIZZLED_B = [
    ("    let to = slot * TK * TN + k * TN + column;\n", "    let to = slot * TK * TN;\n"),
    ("fn put_b(", SWIZZLE + "fn put_b("),
    ("b_tile[to] =", "b_tile[to + place(k, column)] ="),
    *((f"b_tile[to + {skip}] =", f"b_tile[to + place(k, column + {i}u)] =")
      for i, skip in ((1, "next"), (2, "2u * next"), (3, "3u * next"))),
    ("let b_at = slot * TK * TN + local.x * 4u;", "let b_at = slot * TK * TN;"),
    ("b_tile[b_at + k * TN]", "b_tile[b_at + place(k, local.x * 4u)]"),
    *((f"b_tile[b_at + k * TN + {i}u]", f"b_tile[b_at + place(k, local.x * 4u + {i}u)]") for i in (1, 2, 3)),
]  # fmt: skip


@claim("000.6c", shapes="M 64, N 64, K 32; wavefronts per request are the same at every size")
def a_layout_for_b() -> Decision:
    """There is a layout of B that is free of conflicts as written (ours: the document leaves B as it is)."""
    sizes = {"M": 64, "N": 64, "K": 32}
    before, after = _wavefronts(17), _wavefronts(17, SWIZZLED_B)
    plain, swizzled = (run("matmul", sizes, edits=edits) for edits in ((), SWIZZLED_B))
    more = swizzled.counters["workgroup_memory_bytes"] - plain.counters["workgroup_memory_bytes"]
    return judge(
        after["B store"] == after["B read"] == 1 and same_bits(only_output(plain), only_output(swizzled)),
        "column c of row k at word (c % 4 * 16 + c / 4 + k % 2 * 16) % 64 of its row: stores of B fall from {store:g} "
        "to {new_store:g} wavefronts a request and reads from {read:g} to {new_read:g}, for {more} bytes more; the "
        "outputs are the same bits",
        store=before["B store"],
        new_store=after["B store"],
        read=before["B read"],
        new_read=after["B read"],
        more=more,
    )


# ---- 7: masks ----------------------------------------------------------------------------------------

POLICIES = ("clamp", "zero", "wrap")
EDGES = ((64, 64, 64), (65, 64, 64), (64, 68, 64), (64, 64, 68), (65, 68, 36))  # M, N, K


def _loads_outside(finding: Finding) -> str:
    variable = finding.message.partition(" of ")[2].partition("[")[0]
    return f"{finding.count:,} of {variable}, first by lane {finding.lanes[0]} of workgroup {finding.workgroup}"


@claim("000.7a", shapes="M 64 or 65, N 64 or 68, K 64, 68 or 36, under three policies of robust access")
def harmless_reads() -> Decision:
    """Reads out of bounds that are issued all the same do no harm: `select` masks them out."""
    outside, moved = {}, 0
    for m, n, k in EDGES:
        made = [run("matmul", dict(M=m, N=n, K=k), probes=("bounds",), out_of_bounds=policy) for policy in POLICIES]
        moved += sum(not same_bits(only_output(made[0]), only_output(other)) for other in made[1:])
        outside[f"{m} x {n} x {k}"] = list(map(_loads_outside, made[0].findings))
    words = "; ".join(f"{shape}: {' and '.join(loads) or 'none'}" for shape, loads in outside.items())
    return judge(
        moved == 0 and any(outside.values()),
        "loads past the end by invocations, at M x N x K, {words}; outputs that moved between clamped, zero and other "
        "elements: {moved}",
        words=words,
        moved=moved,
        outside=outside,
    )


UNMASKED = [("return select(vec4<f32>(), v, vec4<bool>(inside) & within);", "return v;")]


@claim("000.7b", shapes="M 64, N 64, K 64: wholly inside")
def masks_cost_nothing() -> Decision:
    """Where M, N and K are multiples of the tile, masking costs nothing."""
    masked, bare = (run("matmul", dict(M=64, N=64, K=64), edits=edits, probes="lanes") for edits in ((), UNMASKED))
    assert same_bits(only_output(masked), only_output(bare))
    with_masks, without = (sum(row.executions for row in done.instructions) for done in (masked, bare))
    return judge(
        with_masks == without,
        "the outputs are the same bits without any mask, and yet subgroups issue {more:,} instructions more with them "
        "({with_masks:,} against {without:,}), which no branch skips; what they cost in time, counts do not tell",
        more=with_masks - without,
        with_masks=with_masks,
        without=without,
    )


# ---- 8: fusion ---------------------------------------------------------------------------------------

FUSED = {"M": 64, "N": 768, "K": 64}
FUSED_SHAPES = "M 64, N 768, K 64; bytes and calls scale with M * K, and with the N / 64 = 12 tiles across"


def _fusion():
    """The pass that mixes, the multiplication of what it wrote, and both in one."""
    mixed = run("swiglu", dict(M=FUSED["M"], K=FUSED["K"]))
    apart = run("matmul_residual", FUSED, given={"X": only_output(mixed)})
    fused = run("matmul_residual_swiglu_a", FUSED)
    assert same_bits(only_output(apart), only_output(fused))
    return mixed, apart, fused


@claim("000.8a", shapes=FUSED_SHAPES)
def hidden_is_spared() -> Decision:
    """With SwiGLU fused into the load of A, the hidden [seq, d_ff] matrix is never written and never read."""
    mixed, apart, fused = _fusion()
    written = total(mixed, "global_bytes", "store", "H")
    read = total(apart, "global_bytes", "load", "X")
    left = total(fused, "global_bytes", "load", "X") + total(fused, "global_bytes", "store", "H")
    whole = 4 * 512 * 3072
    return judge(
        left == 0 < written,
        "{written:,} bytes written and {read:,} asked for again become {left}: at 512 x 3072 that is {whole:,} written "
        "once, and at least once read; the outputs are the same bits",
        written=written,
        read=read,
        left=left,
        whole=whole,
    )


@claim("000.8b", shapes=FUSED_SHAPES)
def bytes_are_saved() -> Decision:
    """The fusion saves memory bandwidth: the kernel asks for fewer bytes than the two passes do."""
    mixed, apart, fused = _fusion()
    mixing, again = mixed.counters["global_bytes"], total(apart, "global_bytes", "load", "X")
    at_once = total(fused, "global_bytes", "load", "GATE", "UP")
    of_a, tiles = 4 * FUSED["M"] * FUSED["K"], FUSED["N"] // 64
    return judge(
        at_once < mixing + again,
        "for A, the fused kernel asks for {fused:,} bytes ({fused_times:g} times those of A) and the two passes for "
        "{apart:,} ({apart_times:g} times): each of {tiles} tiles across reads GATE and UP instead of X, so the "
        "traffic falls only as far as caches answer, to {fused_once:g} times against {apart_once:g} if they answer "
        "all tiles but the first",
        fused=at_once,
        apart=mixing + again,
        tiles=tiles,
        fused_times=at_once / of_a,
        apart_times=(mixing + again) / of_a,
        fused_once=at_once / tiles / of_a,
        apart_once=(mixing + again / tiles) / of_a,
    )


@claim("000.8c", shapes=FUSED_SHAPES)
def exps_are_repeated() -> Decision:
    """The fusion computes no more of silu than the pass that it spares (the document does not say)."""
    mixed, _, fused = _fusion()
    once, now = (4 * total(done, "active_lanes", "op", "exp") for done in (mixed, fused))
    return judge(
        once == now,
        "{now:,} calls of exp() where the pass makes {once:,}: {times:g} times as many, once for every column of tiles",
        once=once,
        now=now,
        times=now / once,
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
    """K = 770 is reported (the document leaves it to the host)."""
    wrong, codes = _wrong(M=64, N=64, K=770)
    fine, same = _wrong(M=64, N=64, K=772)
    return judge(
        set(codes) - set(same),
        "the run at 770 reports {codes}, and so does that at 772, which is right: nothing tells the two apart but the "
        "reference, which {wrong:.0%} of the outputs miss (at 772 {fine:.0%})",
        codes=" and ".join(codes) or "nothing",
        same=same,
        wrong=wrong,
        fine=fine,
    )
