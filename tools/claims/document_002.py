"""Document 002: who works in kernels of Q4_K weights and in GEMVs, a language model's head, and an FFN's passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

import numpy as np

from bankshot import WgslError
from bankshot.oracle.manifests import kernel_selection
from bankshot.sim.models import DEFAULT_LIMITS, check_dispatch

from .bench import SHADERS, case, idlest, kernels, only_output, run, run_case, same_bits, sites, total
from .ledger import Decision, Verdict, claim, judge, remark
from .timing import Pair, Spread, Work, at, between, decide, faster, once, timings

ROW = 1152  # weights in a row of the document's model
Q4_K_BYTES = 144  # of a block of 256 weights

# ---- 1: the table of utilization ---------------------------------------------------------------------


def _utilization(kernel: str, said: float, **sizes: int) -> Decision:
    """Whether as large a share of the invocations works as the document says, to the percent."""
    done = run(kernel, sizes)
    used, issued = done.counters["working_invocations"], done.counters["simt_efficiency"]
    return judge(
        round(used, 2) == said,
        "{used:.1%} of the invocations do any work; of the lanes of subgroups that issue {issued:.1%} are active{idle}",
        used=used,
        issued=issued,
        idle=idlest(done),
    )


@claim("002.1a", shapes="M 1, N 64, K 1152; a workgroup is the same at every N")
def q4_fused() -> Decision:
    """`q4_fused` has 5 of 256 invocations at work, 2%, and 251 idle, which a guard sends away."""
    done = run("q4_fused_published", dict(M=1, N=64, K=ROW))
    groups = done.counters["workgroups"]
    (wait,) = (site for site in done.sites if site.kind == "barrier")
    # A line unpacks whole blocks, and another the last one; each loads all words of a block.
    unpacking = {site.line: site.active_lanes / groups for site in sites(done, "load", "W")}
    working, waiting = sum(unpacking.values()), wait.active_lanes / groups
    return judge(
        (working, waiting, round(working / waiting, 2)) == (5, 256, 0.02),
        "{working:g} of {waiting:g} invocations unpack weights ({share:.2%}); {idle:g} have no block, yet take part in "
        "subgroupAdd and wait at the barrier; with those that store the sums of subgroups {any:.1%} do any work{where}",
        working=working,
        waiting=waiting,
        share=working / waiting,
        idle=waiting - working,
        any=done.counters["working_invocations"],
        where=idlest(done),
    )


@claim("002.1b", shapes="M 1, N 64, K 1152; N a multiple of 32")
def q4_fused_multicol() -> Decision:
    """`q4_fused_multicol` has 32 x 8 of 256 invocations at work, 100%."""
    made = run("q4_fused_multicol_published", dict(M=1, N=64, K=ROW))
    blocks = total(made, "global_bytes", "load", "W") / 64 / Q4_K_BYTES
    used, lanes = made.counters["working_invocations"], made.counters["simt_efficiency"]
    return judge(
        used == 1 and blocks == 8,
        "as published, {used:.0%} store a sum, but of the 8 of a column {blocks:g} have a block, which is how the "
        "document counts those of q4_fused, and of the lanes of subgroups that issue {lanes:.1%} are active{idle}",
        partly=used == 1,
        used=used,
        blocks=blocks,
        lanes=lanes,
        idle=idlest(made),
    )


@claim("002.1c", shapes="M 1 to 16, N 64, K 256")
def q4_fused_batched() -> Decision:
    """The utilization of `q4_fused_batched` varies, with 64 x M invocations at work."""
    used = {m: run("q4_fused_batched", dict(M=m, N=64, K=256)).counters["working_invocations"] for m in range(1, 17)}
    return judge(
        all(share == 64 * m / (256 * ceil(m / 4)) for m, share in used.items()) and len(set(used.values())) > 1,
        "64 x M of 256 for each four rows begun, at M 1 to 16 {words}: below half only at M = 1, and the cause is the "
        "guard at the last rows",
        words=", ".join(f"{100 * share:.3g}%" for share in used.values()),
        used=used,
    )


@claim("002.1d", shapes="N 64, K 1152; N a multiple of 4")
def gemv_subgroup() -> Decision:
    """`gemv_subgroup` is used to 100%."""
    return _utilization("gemv_subgroup_published", 1, N=64, K=ROW)


@claim("002.1e", shapes="N 64, K 1152; N a multiple of 32")
def gemv_subgroup_multicol() -> Decision:
    """`gemv_subgroup_multicol` is used to 100%."""
    return _utilization("gemv_subgroup_multicol_published", 1, N=64, K=ROW)


@claim("002.1f", shapes="N 64, K 1152, and N 13: an invocation a block")
def dequant_q4k() -> Decision:
    """`dequant_q4k` has N * K / 256 invocations at work, which is 100%."""
    whole, part = run("dequant_q4k", dict(N=64, K=ROW)), run("dequant_q4k", dict(N=13, K=ROW))
    working = [done.counters["working_invocations"] * done.counters["invocations"] for done in (whole, part)]
    return judge(
        working == [64 * ROW / 256, 13 * ROW / 256],
        "{working:g} invocations work where N * K / 256 is {said:g}, as a row ends with a part of a block, N * "
        "ceil(K / 256): {used:.0%} where that is a multiple of 64, and {less:.0%} at N = 13{where}",
        working=working[0],
        said=64 * ROW / 256,
        used=whole.counters["working_invocations"],
        less=part.counters["working_invocations"],
        where=idlest(whole),
        partly=whole.counters["working_invocations"] == 1,
    )


@claim("002.1g", shapes="M 4, N 1152")
def rmsnorm() -> Decision:
    """`rmsnorm` is used to 100%."""
    return _utilization("rmsnorm", 1, M=4, N=ROW)


@claim("002.1h", shapes="N 6912, as in the document's model")
def silu() -> Decision:
    """`silu` is used to 100%."""
    return _utilization("silu", 1, N=6912)


# ---- 2: remedies -------------------------------------------------------------------------------------


def _remedy(kernel: str, **sizes: int) -> dict[str, float]:
    """Utilization before, as published, and after; and what subgroups issue for an output: as published, by a kernel
    that deals blocks as it does and unpacks them as the remedies do, and after."""
    published, dealt, after = (run(each, sizes).counters for each in ("q4_fused_published", "q4_fused", kernel))
    outputs = sizes["M"] * sizes["N"]
    return {
        "before": published["working_invocations"],
        "after": after["working_invocations"],
        "issued_published": published["executions"] / outputs,
        "issued_dealt": dealt["executions"] / outputs,
        "issued_after": after["executions"] / outputs,
    }


_ISSUED = (
    "operations an output; where whole blocks are dealt it is {issued_dealt:,.0f} with the same unpacking, and "
    "{issued_published:,.0f} as published"
)


@claim("002.2a", shapes="M 1, N 64, K 1152; a workgroup is the same at every N")
def loop_over_blocks() -> Decision:
    """First remedy: with a loop over blocks in each invocation utilization is no longer poor."""
    sizes = {"M": 1, "N": 64, "K": ROW}
    figures = _remedy("q4_fused_loop", **sizes)
    split = _remedy("q4_fused_split", **sizes)
    return judge(
        figures["after"] >= 0.5,
        "taken literally it is {after:.1%} ({before:.1%} before), as there are 5 blocks and no loop makes more; "
        "looping over parts of blocks makes it {split:.0%}, and subgroups issue {split_issued:,.0f} " + _ISSUED,
        partly=split["after"] >= 0.5,
        split=split["after"],
        split_issued=split["issued_after"],
        **figures,
    )


@claim("002.2b", shapes="M 1, N 64, K 1152; N a multiple of 8")
def two_dimensions() -> Decision:
    """Second remedy: a workgroup of 32 x 8 is well used."""
    return judge(
        (figures := _remedy("q4_fused_2d", M=1, N=64, K=ROW))["after"] >= 0.5,
        "{after:.0%} of the invocations work instead of {before:.1%}, and subgroups issue {issued_after:,.0f} "
        + _ISSUED,
        **figures,
    )


@claim("002.2c", shapes="M 1, N 256 and 64, K 1152")
def another_kernel() -> Decision:
    """Third remedy: where K is small, another kernel is well used."""
    figures = _remedy("q4_fused_small_k", M=1, N=256, K=ROW)
    few = run("q4_fused_small_k", dict(M=1, N=64, K=ROW)).counters["working_invocations"]
    rules = kernel_selection.load(SHADERS / "selection.toml")
    traits = {"weights": "q4_k", "layout": "NxK"}
    chosen = kernel_selection.choose(rules, kernels().values(), {"M": 1, "N": 256, "K": ROW}, traits).kernel.name
    return judge(
        figures["after"] >= 0.5,
        "a kernel with an invocation a column has {after:.0%} at work at N = 256 and {few:.0%} at N = 64; our rules "
        "choose {chosen}; subgroups issue {issued_after:,.0f} " + _ISSUED,
        few=few,
        chosen=chosen,
        **figures,
    )


# ---- 3: the head -------------------------------------------------------------------------------------

VOCABULARY = 262_144


@claim("002.3a", shapes="N 256, K 1152; workgroups scale with N")
def workgroups_of_the_head() -> Decision:
    """A head for 262,144 words takes 65,536 workgroups of 4 columns, or 8,192 of 32, 87% fewer."""
    four, many = (
        run(kernel, dict(N=256, K=ROW)).counters["workgroups"] * VOCABULARY // 256
        for kernel in ("gemv_subgroup_published", "gemv_subgroup_multicol_published")
    )
    return judge(
        (four, many) == (65_536, 8_192) and int(100 * (1 - many / four)) == 87,
        "{four:,} and {many:,}, {less:.1%} fewer",
        four=four,
        many=many,
        less=1 - many / four,
    )


@claim("002.3b", shapes="grids of 65,536 and 8,192 workgroups along x")
def dispatches_are_legal() -> Decision:
    """Whether both dispatches can be made along one dimension."""
    refused = {}
    made = case("gemv_subgroup_published", dict(N=4, K=4))
    for groups in (65_536, 8_192):
        try:
            run_case(replace(made, grid=(groups, 1, 1)), probes="none")
        except WgslError as error:
            refused[groups] = error.diagnostics[0].message
    folded = kernel_selection.grid_of(kernels()["gemv_subgroup_published"], {"M": 1, "N": VOCABULARY, "K": ROW})
    return remark(
        "{words}; 8,192 workgroups {fine}, and so is a grid of {folded}",
        words=" and ".join(refused.values()) or "neither is over a limit",
        fine="are over it too" if 8_192 in refused else "are legal",
        folded=" x ".join(map(str, folded)),
        refused=refused,
    )


def _weight_bytes(columns: int, row: int) -> int:
    """Bytes of f16 weights that a product with one token asks for, from a run with 32 columns."""
    done = run("gemv_subgroup_published", dict(N=32, K=row), probes=("sectors",))
    return total(done, "global_bytes", "load", "W") * columns // 32


@claim("002.3c", shapes="N 32, K 1152; bytes scale with N")
def weights_of_the_head() -> Decision:
    """The head reads 603 MB of weights a token."""
    read = _weight_bytes(VOCABULARY, ROW)
    return judge(read // 10**6 == 603, "{read:,} bytes, each asked for once", read=read)


@claim("002.3d", shapes="one binding of N 262,144, K 1152 in f16")
def weights_can_be_bound() -> Decision:
    """Whether the head's weights fit in one binding."""
    bytes_ = _weight_bytes(VOCABULARY, ROW)
    exceeded = check_dispatch((1,), (256,), storage_bindings={"W": bytes_})
    limits = [DEFAULT_LIMITS[name] for name in ("maxStorageBufferBindingSize", "maxBufferSize")]
    return remark(
        "{words}; with default limits it takes {parts} bindings, in {buffers} buffers",
        words="; ".join(map(str, exceeded)) or "nothing is over a limit",
        parts=ceil(bytes_ / limits[0]),
        buffers=ceil(bytes_ / limits[1]),
    )


BOUND = {"N": 58_254, "K": ROW}  # as much of the vocabulary as a binding of 128 MiB holds
GROWN = VOCABULARY / BOUND["N"]
COLUMNS = [
    Pair(
        "32 columns a workgroup",
        [(GROWN, at("gemv_subgroup_published", BOUND))],
        [(GROWN, at("gemv_subgroup_multicol_published", BOUND))],
    )
]


TOKEN_MS = 140.0  # of the document, on its author's device
GB, TERA = 10**9, 10**12


def _least_ms(bytes_: int) -> float:
    """The milliseconds that reading takes at 200 GB/s, the document's rate."""
    return bytes_ / (200 * GB) * 1000


def _no_gain(found: Sequence[Spread]) -> Verdict:
    """Confirmed where the head is not faster; else partly, as it is a small part of the document's token."""
    return Verdict.PARTLY if faster(found) == Verdict.CONFIRMED else Verdict.CONFIRMED


@claim("002.3e", shapes="counts at N 256, times at N 58,254; K 1152", times=timings(COLUMNS))
def fewer_workgroups_gain_nothing() -> Decision:
    """With 32 columns a workgroup instead of 4 a token takes 140 ms as before: the head is not what limits it."""
    four, many = (
        run(kernel, dict(N=256, K=ROW)).counters
        for kernel in ("gemv_subgroup_published", "gemv_subgroup_multicol_published")
    )
    return decide(
        COLUMNS,
        _no_gain,
        "at 200 GB/s the head is {least:.2f} ms of the 140, {share:.1%}, so that a token gains next to nothing from a "
        "faster head; the head itself, as published, asks for {many_sectors:,} sectors, not {four_sectors:,}, for "
        "the same weights",
        "002.3e",
        least=_least_ms(_weight_bytes(VOCABULARY, ROW)),
        share=_least_ms(_weight_bytes(VOCABULARY, ROW)) / TOKEN_MS,
        four_sectors=four["global_sectors"],
        many_sectors=many["global_sectors"],
    )


# ---- 4: the head among the layers --------------------------------------------------------------------

LAYERS = 26
# Gemma 3 1B as it is published: columns and rows of what a layer multiplies by, in the order of the passes.
ATTENTION = {"q": (1024, ROW), "k": (256, ROW), "v": (256, ROW), "o": (ROW, 1024)}
FEED_FORWARD = {"gate": (6912, ROW), "up": (6912, ROW), "down": (ROW, 6912)}


@claim("002.4a", shapes="M 1, D 96, F 160 for the passes of the FFN")
def matmuls_of_a_token() -> Decision:
    """26 layers with 4 matmuls of attention and 2 of the FFN make 156 a token."""
    three, two, same = _passes(M=1, D=96, F=160)
    fused, unfused = (LAYERS * (len(ATTENTION) + len(passes)) for passes in (two, three))
    return judge(
        same and fused == 156,
        "{fused}, where gate and up are one pass (the outputs are the same bits); where they are two, as in the "
        "document's own 'before', {unfused}",
        fused=fused,
        unfused=unfused,
    )


def _work() -> dict[str, tuple[int, int]]:
    """Bytes of weights and FLOPs of a token: of the head, and of all layers."""

    def of(columns: int, row: int) -> np.ndarray:
        done = run("gemv_subgroup_published", dict(N=32, K=row))
        # Products and their sums; those of partial sums are few and not of the matmul itself.
        products = sum(site.flops for site in done.sites if site.kind == "op" and "W[" in site.span.text)
        return np.array([total(done, "global_bytes", "load", "W"), products]) * columns // 32

    layer = np.sum([of(*sizes) for sizes in (ATTENTION | FEED_FORWARD).values()], axis=0)
    return {"head": tuple(of(VOCABULARY, ROW).tolist()), "layers": tuple((LAYERS * layer).tolist())}


def layer(kernel: str) -> Work:
    """The products of a layer by one kernel."""
    return [(1.0, at(kernel, {"N": columns, "K": row})) for columns, row in (ATTENTION | FEED_FORWARD).values()]


HEAD: Work = [(GROWN, at("gemv_subgroup_multicol_published", BOUND))]
LAYERS_BY_HEAD = [
    Pair("head per layers", HEAD, [(LAYERS * count, each) for count, each in layer("gemv_subgroup_published")])
]


def _below_5_percent(found: Sequence[Spread]) -> Verdict:
    """The share of the head is that of its time in all products, so at most as large in all of the time. Where it is
    larger, it is smaller all the same of the document's token, if the head is read at 200 GB/s."""
    part, of_token = found[0].median, _least_ms(_weight_bytes(VOCABULARY, ROW)) / TOKEN_MS
    holds = part / (1 + part) < 0.05
    return Verdict.CONFIRMED if holds else Verdict.PARTLY if of_token < 0.05 else Verdict.REFUTED


@claim(
    "002.4b",
    shapes="each product of the model at N 32 and its own K; bytes and FLOPs scale with N; times at N 58,254",
    times=timings(LAYERS_BY_HEAD),
)
def share_of_the_head() -> Decision:
    """The head takes less than 5% of a token's time."""
    work = _work()
    shares = [head / (head + layers) for head, layers in zip(work["head"], work["layers"], strict=True)]
    return decide(
        LAYERS_BY_HEAD,
        _below_5_percent,
        "it is one of 157 products, but {bytes_share:.0%} of the bytes of weights and {flops_share:.0%} of the FLOPs: "
        "{head:,} of {all:,} bytes in f16, so it takes less only where something else takes most of the time, as in "
        "the document's 140 ms, of which its {least:.2f} ms at 200 GB/s are {of_token:.1%}",
        "002.4b",
        least=_least_ms(work["head"][0]),
        of_token=_least_ms(work["head"][0]) / TOKEN_MS,
        bytes_share=shares[0],
        flops_share=shares[1],
        head=work["head"][0],
        all=work["head"][0] + work["layers"][0],
    )


@claim("002.4c", shapes="N 32, K 1152; bytes scale with N")
def milliseconds_of_the_head() -> Decision:
    """At 200 GB/s the head takes at least 3 ms."""
    least = _least_ms(_weight_bytes(VOCABULARY, ROW))
    return judge(round(least) == 3, "{least:.2f} ms for its weights alone", least=least)


@claim("002.4d", shapes="as 002.4b")
def what_takes_the_rest() -> Decision:
    """That a token takes 140 ms suggests that computing or other overheads dominate."""
    work = _work()
    bytes_, flops = (sum(parts) for parts in zip(*work.values(), strict=True))
    memory, compute = _least_ms(bytes_), flops / (6 * TERA) * 1000
    return judge(
        memory < 70 < compute,
        "all weights at 200 GB/s take {memory:.1f} ms of the 140, and all products {compute:.2f} ms at 6 TFLOP/s, the "
        "rate of document 004: memory does not dominate, nor does computing at that rate, so that overheads are left",
        partly=memory < 70,
        memory=memory,
        compute=compute,
    )


# ---- 5: gate and up ----------------------------------------------------------------------------------


def _passes(**sizes: int):
    """Passes of a feed-forward layer, before gate and up are fused and after, and whether both make the same bits."""
    both, down = case("ffn_gate_up", sizes), case("ffn_down", sizes)
    gate = run("ffn_project", sizes, given={"X": both.arrays["X"], "W": both.arrays["W"]})
    up = run("ffn_project", sizes, given={"X": both.arrays["X"], "W": both.arrays["C"]})
    last = run("ffn_down", sizes, given={"GATE": only_output(gate), "UP": only_output(up)})
    fused = run_case(both)
    split = run("ffn_down_split", sizes, given={"GATE_UP": only_output(fused), "W": down.arrays["W"]})
    return (gate, up, last), (fused, split), same_bits(only_output(last), only_output(split))


QUARTER = {"M": 1, "D": 288, "F": 1728}


@claim(
    "002.5a", shapes="M 1, D 288, F 1728: a quarter of the document's 1152 and 6912; bytes of X and weights scale by 16"
)
def three_passes_to_two() -> Decision:
    """With gate and up fused an FFN takes 2 passes instead of 3, and fewer bytes."""
    three, two, same = _passes(**QUARTER)
    before, after = (sum(done.counters["global_bytes"] for done in passes) for passes in (three, two))
    of_x = sum(total(done, "global_bytes", "load", "X") for done in three) - total(two[0], "global_bytes", "load", "X")
    return judge(
        same and len(two) == 2 and after < before,
        "{passes} passes and {after:,} bytes asked for instead of {before:,}: {less:,} fewer ({share:.1%}), all of "
        "them of X ({of_x:,}); the outputs are the same bits",
        passes=len(two),
        before=before,
        after=after,
        less=before - after,
        share=1 - after / before,
        of_x=of_x,
    )


FFN = {"M": 1, "D": ROW, "F": 6912}
FUSED = [
    Pair(
        "two passes",
        [(2.0, at("ffn_project", FFN)), (1.0, at("ffn_down", FFN))],
        once(at("ffn_gate_up", FFN), at("ffn_down_split", FFN)),
    )
]


@claim("002.5b", shapes="counts as 002.5a, times at M 1, D 1152, F 6912", times=timings(FUSED))
def faster_ffn() -> Decision:
    """Fusing gate and up makes the FFN 1.2 to 1.3 times as fast."""
    three, two, _ = _passes(**QUARTER)
    per = {
        name: sum(done.counters[name] for done in three) / sum(done.counters[name] for done in two)
        for name in ("global_bytes", "global_sectors", "barriers", "workgroups", "flops")
    }
    return decide(
        FUSED,
        between(1.2, 1.3),
        "before per after: bytes {global_bytes:.2f}, sectors {global_sectors:.2f}, barriers {barriers:.2f}, workgroups "
        "{workgroups:.2f}, FLOPs {flops:.2f}: what is spared is a launch and its barriers",
        "002.5b",
        **per,
    )
