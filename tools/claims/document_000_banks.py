"""Document 000: bank conflicts of the tiles, and the masks at their edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bankshot import Finding
from bankshot.sim.models import devices

from .bench import only_output, run, same_bits, share
from .document_000 import PROJECTION
from .ledger import Decision, Verdict, claim, judge, remark
from .timing import Pair, Spread, at, decide, faster, once, timings

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
    """With accesses as written, TK_PAD = 17 prevents the bank conflicts of A's tile."""
    by_pad = {pad: _wavefronts(pad) for pad in PADS}
    of_a = [site for site in BANK_SITES if site.startswith("A")]
    rows = {site: [by_pad[pad][site] for pad in PADS] for site in BANK_SITES}
    words = "; ".join(f"{site} {', '.join(f'{value:g}' for value in values)}" for site, values in rows.items())
    return judge(
        all(by_pad[17][site] == 1 for site in of_a),
        "wavefronts a request (1 is none too many) at pads {pads}: {words}; 17 frees the reads of A only, whose stores "
        "keep {store:g}; B, whose rows have no pad, has conflicts of its own",
        partly=all(by_pad[17][site] < by_pad[16][site] for site in of_a),
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
    """What pads cost where a compiler merges adjacent accesses into wide ones."""
    by_pad = {pad: _merged(pad) for pad in PADS}
    # In a step an invocation stages four words of each tile once; it reads 4 x 4 of A 4 times, and 4 of B 16 times.
    weights = {"A store": 1, "B store": 1, "A read": 4, "B read": 16}
    costs = {pad: sum(weights[site] * n for site, n in row.items()) for pad, row in by_pad.items()}
    least = min(costs.values())
    return remark(
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
    """A layout of B without conflicts; the document leaves B as it is."""
    sizes = {"M": 64, "N": 64, "K": 32}
    before, after = _wavefronts(17), _wavefronts(17, SWIZZLED_B)
    plain, swizzled = (run("matmul", sizes, edits=edits) for edits in ((), SWIZZLED_B))
    more = swizzled.counters["workgroup_memory_bytes"] - plain.counters["workgroup_memory_bytes"]
    assert same_bits(only_output(plain), only_output(swizzled))
    return remark(
        "column c of row k at word (c % 4 * 16 + c / 4 + k % 2 * 16) % 64 of its row: stores of B fall from {store:g} "
        "to {new_store:g} wavefronts a request and reads from {read:g} to {new_read:g}, for {more} bytes more; the "
        "outputs are the same bits",
        store=before["B store"],
        new_store=after["B store"],
        read=before["B read"],
        new_read=after["B read"],
        more=more,
    )


LARGE = {"M": 2048, "N": 4096, "K": 1024}


def _against(shape: Mapping[str, int], pads: Sequence[int]) -> list[Pair]:
    """A pitch of 17 against each of `pads` at one shape."""
    dispatches = {pad: once(at("matmul", shape, {"TK_PAD": pad})) for pad in (17, *pads)}
    return [Pair(f"M {shape['M']}, 17 against {pad}:", dispatches[pad], dispatches[17]) for pad in pads]


PADDED = [*_against(PROJECTION, (16, 18, 19, 20, 32, 33)), *_against(LARGE, (16, 18, 20, 32, 33))]


def _faster_than_16(found: Sequence[Spread]) -> Verdict:
    """Only the pitch without padding decides, at each shape; the others are shown."""
    return faster([each for pair, each in zip(PADDED, found, strict=True) if pair.name.endswith(" 16:")])


@claim(
    "000.6d",
    shapes="M 512, N 3072, K 768, pads 16 to 20, 32 and 33; M 2048, N 4096, K 1024, the same but for 19",
    times=timings(PADDED),
)
def pad_saves_time() -> Decision:
    """TK_PAD = 17 makes the kernel faster than rows without a pad."""
    costs = {pad: sum(_wavefronts(pad).values()) for pad in PADS}
    return decide(
        PADDED,
        _faster_than_16,
        "wavefronts of one request at each of the four sites, as written, {words}",
        "000.6d",
        words=", ".join(f"{cost:g} at {pad}" for pad, cost in costs.items()),
        costs=costs,
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


MASKS = [
    Pair(
        "without masks",
        once(at("matmul", PROJECTION)),
        once(at("matmul", PROJECTION, change="unmasked", edits=UNMASKED)),
    )
]


def _no_difference(found: Sequence[Spread]) -> Verdict:
    """Confirmed within the spread, or where the difference rounds to nothing."""
    return Verdict.CONFIRMED if all(each.low <= 1 or round(each.median, 2) == 1 for each in found) else Verdict.REFUTED


@claim("000.7b", shapes="M 64, N 64, K 64, wholly inside; times at M 512, N 3072, K 768", times=timings(MASKS))
def masks_cost_nothing() -> Decision:
    """Where M, N and K are multiples of the tile, masking costs no time."""
    masked, bare = (run("matmul", dict(M=64, N=64, K=64), edits=edits, probes="lanes") for edits in ((), UNMASKED))
    assert same_bits(only_output(masked), only_output(bare))
    with_masks, without = (sum(row.executions for row in done.instructions) for done in (masked, bare))
    return decide(
        MASKS,
        _no_difference,
        "the outputs are the same bits without any mask; with them subgroups issue {more:,} instructions more "
        "({with_masks:,} against {without:,}, {share:.1%}), which no branch skips",
        "000.7b",
        more=with_masks - without,
        share=with_masks / without - 1,
        with_masks=with_masks,
        without=without,
    )
