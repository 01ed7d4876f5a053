"""Document 001: backward matmul in the same tiles, with one operand transposed as it is staged."""

from __future__ import annotations

import numpy as np

from .bench import against_reference, bound_of, case, only_output, run, run_case, same_bits, share, total
from .ledger import Decision, claim, judge

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
        **lines,
        all_swapped=all_lines["swapped"],
        all_unswapped=all_lines["unswapped"],
        all_forward=all_lines["forward"],
        sectors_words=", ".join(f"{count:g}" for count in sectors.values()),
        sectors=sectors,
    )


@claim("001.3", shapes=MAPPED_SHAPES)
def transposed_store() -> Decision:
    """With the swap, A's tile is written transposed without bank conflicts."""
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
        "forward mapping (reads {read:g}); at pads {pads} the swapped one takes {pad_words}",
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
