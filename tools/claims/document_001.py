"""Document 001: backward matmul in the same tiles, with one operand transposed as it is staged."""

from __future__ import annotations

import numpy as np

from bankshot.oracle.gpu_counters.access_trace import trace

from .bench import against_reference, bound_of, case, only_output, run, run_case, same_bits, share, total
from .ledger import Decision, claim, judge
from .timing import Pair, at, decide, faster, once, timings

# ---- 1: order of the sizes ---------------------------------------------------------------------------


@claim("001.1", shapes="K 128, N 192, M 48; a tile is the same at every size")
def order_of_sizes() -> Decision:
    """`matmul_at` takes its sizes as (K, N, M) and writes [K x N] on a grid of ceil(N/64), ceil(K/64)."""
    sizes = {"K": 128, "N": 192, "M": 48}
    made = case("matmul_at", sizes)
    done = run_case(made)
    compared = against_reference(made, only_output(done))
    shape, dims = list(only_output(done).shape), made.arrays["dims"].tolist()
    return judge(
        compared.ok and shape == [128, 192] and list(done.grid) == [3, 2, 1] and dims[:3] == [128, 192, 48],
        "given {dims}, a grid of {grid} fills {shape}, with {wrong:.0%} of it outside of the error bound of X^T @ B",
        dims=dims[:3],
        grid=list(done.grid),
        shape=shape,
        wrong=compared.share,
    )


# ---- 2, 3: the swapped mapping -----------------------------------------------------------------------

# The mapping of the forward kernel: an invocation takes four rows of X in one column, a load each.
FORWARD = [
    ("X: array<vec4<f32>>", "X: array<f32>"),
    ("let m = tid * 4u / TM;", "let row = tid * 4u / TK;"),
    ("let row = tid * 4u % TM;", "let m = tid * 4u % TK;"),
    ("let at = from_m * (dims.x / 4u) + k / 4u;", "let at = from_m * dims.x + k;"),
    ("let v = X[at];", "let v = vec4<f32>(X[at], X[at + dims.x], X[at + 2u * dims.x], X[at + 3u * dims.x]);"),
    ("put_a(slot, row, m, TK_PAD, masked(v, from_m < dims.z, k, dims.x));", "put_a(slot, row, m, 1u, v);"),
]
MAPPINGS = {"swapped": ("matmul_at", ()), "unswapped": ("matmul_at_unswapped", ()), "forward": ("matmul_at", FORWARD)}
MAPPED = {"K": 128, "N": 64, "M": 32}
MAPPED_SHAPES = "K 128, N 64, M 32, whole tiles; figures per request are the same at every size"


def _mapped():
    """A run of each mapping; all write the same bits."""
    runs = {name: run(kernel, MAPPED, edits=edits) for name, (kernel, edits) in MAPPINGS.items()}
    outputs = [only_output(done) for done in runs.values()]
    assert all(same_bits(outputs[0], other) for other in outputs[1:])
    return runs


@claim("001.2a", shapes=MAPPED_SHAPES)
def lines_swapped() -> Decision:
    """The swapped mapping of loads of A touches 2 to 4 cache lines a subgroup."""
    swapped = _mapped()["swapped"]
    lines = share(swapped, "load", "X", "global_lines", "global_requests")
    sectors = share(swapped, "load", "X", "global_sectors", "global_requests")
    return judge(
        2 <= lines <= 4,
        "{lines:g} lines of 128 bytes and {sectors:g} sectors of 32 a load: two rows of 256 bytes",
        lines=lines,
        sectors=sectors,
    )


@claim("001.2b", shapes=MAPPED_SHAPES)
def lines_unswapped() -> Decision:
    """Without the swap a load touches 32 cache lines."""
    runs = _mapped()
    lines = {name: share(done, "load", "X", "global_lines", "global_requests") for name, done in runs.items()}
    sectors = {name: share(done, "load", "X", "global_sectors", "global_requests") for name, done in runs.items()}
    all_lines = {name: total(done, "global_lines", "load", "X") for name, done in runs.items()}
    return judge(
        max(lines["unswapped"], lines["forward"]) == 32,
        "{unswapped:g} where neighbours load vec4s down a column, as a tile is only 16 rows deep, and {forward:g} "
        "where each takes four words down a column as in the forward kernel, but then in four times the loads: "
        "lines of all loads {all_swapped} swapped, {all_unswapped} and {all_forward} not; sectors a load "
        "{sectors_words}",
        partly=all_lines["swapped"] < min(all_lines["unswapped"], all_lines["forward"]),
        **lines,
        all_swapped=all_lines["swapped"],
        all_unswapped=all_lines["unswapped"],
        all_forward=all_lines["forward"],
        sectors_words=", ".join(f"{count:g}" for count in sectors.values()),
        sectors=sectors,
    )


@claim("001.2c", shapes="the first load of X at K 128, N 64, M 32")
def order_of_neighbours() -> Decision:
    """With the swap neighbouring threads load neighbouring M at one K: they read along a row, four values each."""
    first = trace(case("matmul_at", MAPPED)).of("X", "load")[0]
    values = first.addresses // 4  # X is M x K
    m, k = values // MAPPED["K"], values % MAPPED["K"]
    along_m, along_k = ([int(step) for step in sorted(set(np.diff(each[:16])))] for each in (m, k))
    return judge(
        along_m == [1] and along_k == [0],
        "from one thread to the next M moves by {along_m} and K by {along_k}: they read along a row, four values "
        "each, as the text in brackets and the code say, but a row is one M, along which K runs; the sentence has "
        "them the other way round",
        partly=along_m == [0] and along_k == [4],
        along_m=along_m[0],
        along_k=along_k[0],
    )


@claim("001.3", shapes=MAPPED_SHAPES)
def transposed_store() -> Decision:
    """Addressing is free of conflicts: with the swap, A's tile is written transposed without bank conflicts."""
    store = {
        name: share(done, "store", "a_tile", "shared_wavefronts", "shared_requests") for name, done in _mapped().items()
    }
    read = share(run("matmul_at", MAPPED), "load", "a_tile", "shared_wavefronts", "shared_requests")
    by_pad = {
        pad: share(
            run("matmul_at", MAPPED, overrides={"TK_PAD": pad}),
            "store", "a_tile", "shared_wavefronts", "shared_requests",
        )
        for pad in (16, 17, 20, 33)
    }  # fmt: skip
    return judge(
        store["swapped"] == 1,
        "a store of the tile takes {swapped:g} wavefronts swapped, {unswapped:g} unswapped and {forward:g} with the "
        "forward mapping; reads take {read:g}; at pads {pads} the swapped store takes {pad_words}",
        partly=read == 1,
        **store,
        read=read,
        pads=", ".join(map(str, by_pad)),
        pad_words=", ".join(f"{count:g}" for count in by_pad.values()),
        by_pad=by_pad,
    )


# ---- 4: accumulation ---------------------------------------------------------------------------------


@claim("001.4a", shapes="M 70, K 36, N 68")
def accumulates() -> Decision:
    """The kernels named `_acc` add to what the output holds."""
    sizes = {"M": 70, "K": 36, "N": 68}
    differing = 0
    accumulating = ("matmul_t_acc", "matmul_t_acc_w16", "matmul_at_acc", "matmul_at_acc_swiglu_a")
    for kernel in accumulating:
        made = case(kernel, sizes)
        plain = kernel.replace("_acc", "")
        expected = made.arrays["Y"] + only_output(run(plain, sizes))
        differing += int((only_output(run_case(made)) != expected).sum())
    return judge(
        differing == 0,
        "of {kernels} kernels {differing} outputs differ from what was there plus the product, bit for bit",
        kernels=len(accumulating),
        differing=differing,
    )


BATCHES = 16


def _errors_of_accumulation() -> dict[str, float]:
    """Relative errors (Frobenius) of a weight gradient summed over batches, kept in f32, and in f16 between batches."""
    sizes = {"K": 64, "N": 64, "M": 64}
    rng = np.random.default_rng(1)
    truth = np.zeros((sizes["K"], sizes["N"]))
    kept = {"f32": truth.astype(np.float32), "f16": truth.astype(np.float32)}
    for _ in range(BATCHES):
        x, g = (rng.standard_normal((sizes["M"], 64)).astype(np.float32) for _ in range(2))
        truth += x.T.astype(np.float64) @ g
        for name in kept:
            made = only_output(run("matmul_at_acc", sizes, given={"X": x, "B": g, "Y": kept[name]}, probes="none"))
            kept[name] = made.astype(np.float16).astype(np.float32) if name == "f16" else made
    return {name: float(np.linalg.norm(made - truth) / np.linalg.norm(truth)) for name, made in kept.items()}


@claim("001.4b", shapes="dW of K 64, N 64 summed over 16 batches of M 64, normal data")
def f16_gradients_are_noisy() -> Decision:
    """Gradients in f16 would accumulate noise."""
    errors = _errors_of_accumulation()
    return judge(
        errors["f16"] > 100 * errors["f32"],
        "kept in f16 between batches the sum is off by {f16:.1e} of its size, in f32 by {f32:.1e}, {ratio:,.0f} times "
        "less",
        ratio=round(errors["f16"] / errors["f32"], -2),
        **errors,
    )


@claim("001.4c", shapes="as 001.4b, with gradients scaled down")
def f16_gradients_break_training() -> Decision:
    """Gradients in f16 would break the stability of training."""
    gradient = only_output(run("matmul_at", dict(K=64, N=64, M=64), probes="none"))
    lost = {scale: float((np.float16(gradient * np.float32(2.0**-scale)) == 0).mean()) for scale in (20, 24, 28)}
    return judge(
        None,
        "of a gradient f16 turns into zeros {words}; what that does to the moments of an optimizer over thousands "
        "of steps is not in one run",
        "training runs of the model with f16 and with f32 gradients, and their losses",
        words=", ".join(f"{part:.1%} where it is scaled by 2^-{scale}" for scale, part in lost.items()),
        lost=lost,
    )


# ---- 5: gradients ------------------------------------------------------------------------------------

LAYER = {"M": 70, "K": 36, "N": 68}


def _difference_quotient(array: str, gradient: np.ndarray, error: np.ndarray, g: np.ndarray) -> tuple[float, float]:
    """How far the forward kernel's loss sum(G * Y) moves from what `gradient`, which may be off by `error`, says, and
    how far roundings allow it to.

    The layer is linear in each array, so the quotient is exact whatever the step.
    """
    start = case("matmul", LAYER).arrays[array]
    direction = np.random.default_rng(3).choice([-1.0, 1.0], start.shape)
    ends = [(start + sign * direction).astype(np.float32) for sign in (1, -1)]
    losses, allowed = [], 0.0
    for end in ends:
        made = case("matmul", LAYER, {array: end})
        losses.append(np.sum(g * only_output(run_case(made, probes="none")).astype(np.float64)))
        allowed += float(np.sum(np.abs(g) * bound_of(made)))
    step = ends[0].astype(np.float64) - ends[1]
    off = abs(losses[0] - losses[1] - np.sum(gradient * step))
    return float(off), allowed + float(np.sum(error * np.abs(step)))


@claim("001.5", shapes="M 70, K 36, N 68: more than a tile, and no multiple of one")
def gradients() -> Decision:
    """The gradients are right: of X against NumPy and the forward kernel's differences, and of W too."""
    g = np.random.default_rng(2).standard_normal((LAYER["M"], LAYER["N"])).astype(np.float32)
    layer = case("matmul", LAYER).arrays
    kernels = {
        "X": case("matmul_t", dict(M=LAYER["M"], N=LAYER["K"], K=LAYER["N"]), {"X": g, "W": layer["W"]}),
        "W": case("matmul_at", dict(K=LAYER["K"], N=LAYER["N"], M=LAYER["M"]), {"X": layer["X"], "B": g}),
    }
    holds, figures = True, {}
    for array, made in kernels.items():
        gradient = only_output(run_case(made, probes="none"))
        compared = against_reference(made, gradient)
        off, allowed = _difference_quotient(array, gradient.astype(np.float64), bound_of(made), g)
        holds = holds and compared.ok and off <= allowed
        figures |= {f"outside_{array}": compared.share, f"off_{array}": off, f"allowed_{array}": allowed}
    return judge(
        holds,
        "outside of the bound against float64 are {outside_X:.0%} of dX and {outside_W:.0%} of dW; the loss "
        "moves along a direction as they say, but for {off_X:.1g} (roundings may make {allowed_X:.1g}) and "
        "{off_W:.1g} (may make {allowed_W:.1g})",
        **figures,
    )


# ---- 6: constraints ----------------------------------------------------------------------------------


def _wrong(kernel: str, **sizes: int) -> float:
    """The share of the outputs that are outside of the error bound."""
    made = case(kernel, sizes)
    return against_reference(made, only_output(run_case(made, probes="none"))).share


@claim("001.6", shapes="M, N, K 64, with one of them 2 more")
def multiples_of_4() -> Decision:
    """K and N must be multiples of 4."""
    whole = {"M": 64, "N": 64, "K": 64}
    wrong = {
        kernel: {name: _wrong(kernel, **{**whole, name: 66}) for name in "KNM"} for kernel in ("matmul_t", "matmul_at")
    }
    needed = {kernel: [name for name, share_ in by.items() if share_] for kernel, by in wrong.items()}
    return judge(
        needed == {"matmul_t": ["K", "N"], "matmul_at": ["K", "N"]},
        "outputs that are wrong with one size 66: {words}; matmul_t needs {t}, matmul_at {at}",
        partly=all("K" in names for names in needed.values()),
        words=", ".join(f"{kernel} {name} {share_:.0%}" for kernel, by in wrong.items() for name, share_ in by.items()),
        t=" and ".join(needed["matmul_t"]),
        at=" and ".join(needed["matmul_at"]),
        wrong=wrong,
    )


# ---- 7: precision, fusion and time -------------------------------------------------------------------


@claim("001.7", shapes="M 70, K 36, N 68")
def backward_is_f32() -> Decision:
    """The backward pass is pure f32."""
    sizes = {"M": 70, "N": 68, "K": 36}
    made = case("matmul_t", sizes)
    rounded = made.arrays["W"].astype(np.float16)
    w16 = only_output(run("matmul_t_w16", sizes, given={"X": made.arrays["X"], "W": rounded}, probes="none"))
    widened = only_output(run("matmul_t", sizes, given={"W": rounded.astype(np.float32)}, probes="none"))
    plain = only_output(run_case(made, probes="none"))
    error = float(np.linalg.norm(w16 - plain) / np.linalg.norm(plain))
    sums = same_bits(w16, widened)
    return judge(
        sums and error == 0,
        "the kernels named _w16 add up in f32 (the bits are those of matmul_t on the rounded weights), but the weights "
        "that they read are f16: the gradient is off by {error:.1e} of its size",
        partly=sums,
        error=error,
    )


FUSED = {"K": 64, "N": 768, "M": 64}


@claim("001.8a", shapes="K 64, N 768, M 64; bytes scale with M * K, and with the N / 64 = 12 tiles across")
def fusion_spares_hidden() -> Decision:
    """Fused, `matmul_at_swiglu_a` never writes or reads the hidden matrix, and so moves less."""
    mixed = run("swiglu", dict(M=FUSED["M"], K=FUSED["K"]))
    apart = run("matmul_at", FUSED, given={"X": only_output(mixed)})
    fused = run("matmul_at_swiglu_a", FUSED)
    of_a, tiles = 4 * FUSED["M"] * FUSED["K"], FUSED["N"] // 64
    again, at_once = total(apart, "global_bytes", "load", "X"), total(fused, "global_bytes", "load", "GATE", "UP")
    mixing = mixed.counters["global_bytes"]
    hidden = total(fused, "global_bytes", "load", "X") + total(fused, "global_bytes", "store", "H")
    from_memory = {"fused": at_once / tiles / of_a, "apart": (mixing + again / tiles) / of_a}
    return judge(
        hidden == 0 and from_memory["fused"] < from_memory["apart"],
        "{written:,} bytes of it written become {hidden}; where a cache answers all columns of tiles but the first, "
        "memory moves {fused:g} times the bytes of A instead of {apart:g}; what tiles ask for is {asked_fused:g} times "
        "instead of {asked_apart:g}, and exp() is called {exps:g} times as often",
        written=total(mixed, "global_bytes", "store", "H"),
        hidden=hidden,
        asked_fused=at_once / of_a,
        asked_apart=(mixing + again) / of_a,
        exps=total(fused, "active_lanes", "op", "exp") / total(mixed, "active_lanes", "op", "exp"),
        **from_memory,
    )


DOWN = {"K": 3072, "N": 768, "M": 512}
FUSION = [
    Pair(
        "fused",
        once(at("swiglu", {"M": 512, "K": 3072}), at("matmul_at", DOWN)),
        once(at("matmul_at_swiglu_a", DOWN)),
    )
]


@claim("001.8b", shapes="K 3072, N 768, M 512; calls at K 64, N 768, M 64", times=timings(FUSION))
def fusion_saves_time() -> Decision:
    """The fusion makes the gradient of the down projection much cheaper."""
    calls = [
        4 * total(run(*what), "active_lanes", "op", "exp")
        for what in (("swiglu", dict(M=64, K=64)), ("matmul_at_swiglu_a", FUSED))
    ]
    return decide(
        FUSION,
        faster,
        "{now:,} calls of exp() instead of {before:,} are paid for a pass and its bytes",
        "001.8b",
        before=calls[0],
        now=calls[1],
    )


@claim("001.9", shapes="K 64, N 64, M 64; FLOPs scale with M * N * K")
def shares_of_time() -> Decision:
    """The backward kernels take 35% of a backward step, `matmul_at` alone 18.4%."""
    flops = {kernel: run(kernel, dict(K=64, N=64, M=64)).counters["flops"] for kernel in ("matmul_t", "matmul_at")}
    share_ = flops["matmul_at"] / sum(flops.values())
    return judge(
        None,
        "each product of the forward pass takes one of both, with as many FLOPs ({share:.0%} are those of matmul_at; "
        "18.4 of 35 are {said:.0%}); what the other passes of a step take is not in the document",
        "timestamps of every pass of the author's program, on the author's device",
        share=share_,
        said=18.4 / 35,
        **flops,
    )
