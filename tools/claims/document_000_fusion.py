"""Document 000: SwiGLU fused into the load of A."""

from __future__ import annotations

from .bench import only_output, run, same_bits, total
from .ledger import Decision, claim, judge, remark
from .timing import Pair, at, decide, faster, once, timings

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
    """The fusion saves memory bandwidth."""
    mixed, apart, fused = _fusion()
    mixing, again = mixed.counters["global_bytes"], total(apart, "global_bytes", "load", "X")
    at_once = total(fused, "global_bytes", "load", "GATE", "UP")
    of_a, tiles = 4 * FUSED["M"] * FUSED["K"], FUSED["N"] // 64
    from_memory = {"fused": at_once / tiles, "apart": mixing + again / tiles}
    return judge(
        from_memory["fused"] < from_memory["apart"],
        "where a cache answers all columns of tiles but the first, memory moves {fused_once:g} times the bytes of A "
        "instead of {apart_once:g}; without a cache it would be more, {fused_times:g} times those of A instead of "
        "{apart_times:g}, for each of {tiles} columns reads GATE and UP instead of X",
        fused=at_once,
        apart=mixing + again,
        tiles=tiles,
        fused_times=at_once / of_a,
        apart_times=(mixing + again) / of_a,
        fused_once=from_memory["fused"] / of_a,
        apart_once=from_memory["apart"] / of_a,
    )


@claim("000.8c", shapes=FUSED_SHAPES)
def exps_are_repeated() -> Decision:
    """How often the fusion computes silu."""
    mixed, _, fused = _fusion()
    once_, now = (4 * total(done, "active_lanes", "op", "exp") for done in (mixed, fused))
    return remark(
        "{now:,} calls of exp() where the pass makes {once:,}: {times:g} times as many, once for every column of tiles",
        once=once_,
        now=now,
        times=now / once_,
    )


DOWN = {"M": 512, "N": 768, "K": 3072}
FUSION = [
    Pair(
        "fused",
        once(at("swiglu", {"M": 512, "K": 3072}), at("matmul_residual", DOWN)),
        once(at("matmul_residual_swiglu_a", DOWN)),
    )
]


@claim("000.8d", shapes="M 512, N 768, K 3072; calls at M 64, N 768, K 64", times=timings(FUSION))
def fusion_saves_time() -> Decision:
    """One fused kernel takes less time than the two passes."""
    mixed, _, fused = _fusion()
    calls, now = (4 * total(done, "active_lanes", "op", "exp") for done in (mixed, fused))
    return decide(
        FUSION,
        faster,
        "{now:,} calls of exp() instead of {calls:,} are paid for a pass and its bytes",
        "000.8d",
        calls=calls,
        now=now,
    )
