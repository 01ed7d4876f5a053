"""Memory traffic without arithmetic: copies by stride and width, gathers and scatters by order of indices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tests.hardware.timed.dispatch import Timed, buffers, constants, counts, seeded, shrink, words

# The permutation that reads `stride` apart: element i comes from i * stride, wrapped round N.
STRIDED = """\
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let at = id.x % (N / STRIDE) * STRIDE + id.x / (N / STRIDE);
    y[TO] = x[FROM];
}
"""
SEVERAL = """\
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    for (var i = 0u; i < PER; i += 1u) {
        let at = AT;
        y[at] = x[at];
    }
}
"""
FOUR = {"neighbours": "(group.x * 256u + lane) * PER + i", "rows": "(group.x * PER + i) * 256u + lane"}
WIDTHS = {1: "u32", 2: "vec2u", 4: "vec4u"}


def copies(scale: int) -> Iterator[Timed]:
    """`shape` is the number of words; a stride counts elements, which have 1, 2 or 4 words."""
    for size in (1 << 22, 1 << 23):
        n = shrink(size, scale, 8192)
        for width, element in WIDTHS.items():
            head = constants(N=n // width) + buffers({"x": element}, {"y": element})
            groups = n // width // 256
            variants: dict[str, tuple[str, int]] = {}
            for stride in (1, 2, 4, 8, 16, 32, 64):
                text = constants(STRIDE=stride) + head + STRIDED
                variants[f"{element} read by stride {stride}"] = (
                    text.replace("TO", "id.x").replace("FROM", "at"),
                    groups,
                )
                if stride in (4, 32):
                    text = text.replace("TO", "at").replace("FROM", "id.x")
                    variants[f"{element} written by stride {stride}"] = text, groups
            for name, at in (
                ("neighbours", "(group.x * 256u + lane) * PER + i"),
                ("rows", "(group.x * PER + i) * 256u + lane"),
            ):
                variants[f"{element}, 4 {name} per thread"] = (
                    constants(PER=4) + head + SEVERAL.replace("AT", at),
                    groups // 4,
                )
            for kernel, (text, grid) in variants.items():
                bindings = {"x": words(seeded("copy", n), n // width, width), "y": counts(n // width, width)}
                yield Timed("copy", kernel, str(n), text, (grid, 1, 1), bindings)


MOVES = {
    "gather": """\
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u) {
    y[id.x] = x[indices[id.x]];
}
""",
    "scatter": """\
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u) {
    y[indices[id.x]] = x[id.x];
}
""",
}
ORDERS = ("in order", "reversed", "by 32s", "near", "random")


def indices(rng: np.random.Generator, n: int, order: str) -> NDArray[np.uint32]:
    """A permutation of 0..n: in order, reversed, 32 apart, shuffled in runs of 1,024, or shuffled."""
    plain = np.arange(n, dtype=np.uint32)
    if order == "in order":
        return plain
    if order == "reversed":
        return plain[::-1].copy()
    if order == "by 32s":
        return plain.reshape(-1, 32).T.reshape(-1).copy()
    if order == "near":
        return rng.permuted(plain.reshape(-1, 1024), axis=1).reshape(-1)
    return rng.permutation(plain)


def gathers(scale: int) -> Iterator[Timed]:
    for move, text in MOVES.items():
        for size in (1 << 20, 1 << 21, 1 << 23):
            n = shrink(size, scale, 8192)
            for width, element in ((1, "u32"), (4, "vec4u")):
                if n * width > 1 << 23:
                    continue
                for order in ORDERS:
                    rng = seeded("gather", n, order)
                    bindings = {
                        "x": words(rng, n, width),
                        "indices": indices(rng, n, order),
                        "y": counts(n, width),
                    }
                    head = buffers({"x": element, "indices": "u32"}, {"y": element})
                    yield Timed(move, order, f"{n} of {element}", head + text, (n // 256, 1, 1), bindings)
