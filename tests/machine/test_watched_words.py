"""Which accesses of a word race: every short sequence of accesses by three invocations, against the definition.

Each sequence has a word of its own in every workgroup. Two accesses race if different invocations make them, at least
one is a store, and no barrier is between them. Bankshot must report the first access that races with an earlier one.
"""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

import bankshot

Access = tuple[int, str]  # invocation and kind
ACCESSES: tuple[Access, ...] = tuple(product((0, 1, 2), ("load", "store")))
GROUPS = 3
CHUNK = 40  # sequences in a kernel: the machine keeps up to 256 pairs of accesses
MEMORIES = {
    "workgroup": ("var<workgroup> w: array<u32, 64>;", "w[{}]"),
    "storage": ("@group(0) @binding(1) var<storage, read_write> w: array<u32>;", "w[g.x * 64u + {}u]"),
}


def rendered(sequences: list[tuple[Access, ...]], memory: str, barrier: int) -> str:
    """Step by step, each sequence in a line; before step `barrier` a barrier."""
    declaration, word = MEMORIES[memory]
    lines = []
    for step in range(len(sequences[0])):
        lines.append(f"{memory}Barrier();" if step == barrier else "")
        for number, sequence in enumerate(sequences):
            (lane, kind), place = sequence[step], word.format(number)
            lines.append(f"if i == {lane}u {{ {f'{place} = i;' if kind == 'store' else f'sum += {place};'} }}")
    body = "\n".join(lines)
    return f"""@group(0) @binding(0) var<storage, read_write> y: array<u32>; {declaration}
        @compute @workgroup_size(5) fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3u) {{
        var sum = 0u; {"_ = &w;" if memory == "storage" else ""}
        {body}
        y[g.x * 5u + i] = sum; }}"""


def racing(sequence: tuple[Access, ...], barrier: int) -> set[tuple[int, int]]:
    """The pairs of steps that race."""
    pairs = set()
    for later, (lane, kind) in enumerate(sequence):
        for earlier, (other, before) in enumerate(sequence[:later]):
            ordered = earlier < barrier <= later
            if lane != other and "store" in (kind, before) and not ordered:
                pairs.add((earlier, later))
    return pairs


def assert_found(sequences: list[tuple[Access, ...]], memory: str, barrier: int) -> None:
    text = rendered(sequences, memory, barrier)
    given = {"y": np.zeros(5 * GROUPS, np.uint32), "w": np.zeros(64 * GROUPS, np.uint32)}
    bindings = {name: value for name, value in given.items() if memory == "storage" or name == "y"}
    run = bankshot.simulate(text, grid=GROUPS, bindings=bindings, probes=["races"], replay=False)
    found: dict[int, set[tuple[int, int]]] = {}
    for finding in run.findings:
        lines = sorted(span.line - 4 for _, span in finding.spans[:2])  # of the earlier and the later access
        (earlier, number), (later, same) = (divmod(line, len(sequences) + 1) for line in lines)
        assert (number, finding.count) == (same, GROUPS)
        found.setdefault(number - 1, set()).add((earlier, later))
    for number, sequence in enumerate(sequences):
        expected, seen = racing(sequence, barrier), found.get(number, set())
        assert seen <= expected, sequence
        first = min((later for _, later in expected), default=None)
        assert min((later for _, later in seen), default=None) == first, sequence


@pytest.mark.parametrize("barrier", [9, 1, 2], ids=["no barrier", "after one", "after two"])
@pytest.mark.parametrize("memory", MEMORIES)
def test_three_accesses(memory: str, barrier: int) -> None:
    sequences = list(product(ACCESSES, repeat=3))
    for start in range(0, len(sequences), CHUNK):
        assert_found(sequences[start : start + CHUNK], memory, barrier)


@pytest.mark.parametrize("barrier", [9, 2, 3])
@pytest.mark.parametrize("memory", MEMORIES)
def test_five_accesses_that_are_mostly_loads(memory: str, barrier: int) -> None:
    rng = random.Random(barrier)
    mostly = [(lane, kind) for lane, kind in ACCESSES for _ in range(5 if kind == "load" else 1)]
    sequences = [tuple(rng.choice(mostly) for _ in range(5)) for _ in range(3 * CHUNK)]
    for start in range(0, len(sequences), CHUNK):
        assert_found(sequences[start : start + CHUNK], memory, barrier)


# ---- two workgroups --------------------------------------------------------------------------------------

L, S = "load", "store"
SHARED = [  # workgroup, invocation and kind
    [(1, 0, L), (1, 1, L), (1, 1, L), (2, 0, L), (1, 1, S)],
    [(1, 1, L), (1, 0, L), (2, 1, L), (1, 0, S), (2, 1, S)],
    [(2, 0, S), (2, 1, L), (2, 0, L), (1, 0, L), (1, 1, L)],
    [(1, 0, L), (2, 0, L), (1, 0, L), (2, 0, S), (2, 0, L)],
    [(1, 0, L), (1, 1, L), (2, 0, L), (1, 0, S), (1, 0, S)],
    [(1, 0, L), (2, 1, L), (1, 1, L), (1, 0, S), (1, 0, S)],
]


def test_words_that_workgroups_share() -> None:
    """They run side by side, step by step; the barrier before step 2 orders nothing between them."""
    rng = random.Random(1)
    which = list(product((1, 2), (0, 1), (L, L, L, S)))
    sequences = SHARED + [[rng.choice(which) for _ in range(5)] for _ in range(CHUNK - len(SHARED))]
    lines = []
    for step in range(5):
        lines.append("storageBarrier();" if step == 2 else "")
        for number, sequence in enumerate(sequences):
            group, lane, kind = sequence[step]
            access = f"w[{number}] = i;" if kind == S else f"sum += w[{number}];"
            lines.append(f"if g.x == {group}u && i == {lane}u {{ {access} }}")
    body = "\n".join(lines)
    text = f"""@group(0) @binding(0) var<storage, read_write> y: array<u32>; {MEMORIES["storage"][0]}
        @compute @workgroup_size(5) fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3u) {{
        var sum = 0u;
        {body}
        y[g.x * 5u + i] = sum; }}"""
    bindings = {"y": np.zeros(15, np.uint32), "w": np.zeros(64, np.uint32)}
    run = bankshot.simulate(text, grid=3, bindings=bindings, probes=["races"], replay=False)
    found: dict[int, set[tuple[int, int]]] = {}
    for finding in run.findings:
        (earlier, number), (later, _) = (divmod(line, len(sequences) + 1) for line in
                                         sorted(span.line - 4 for _, span in finding.spans[:2]))  # fmt: skip
        found.setdefault(number - 1, set()).add((earlier, later))
    for number, sequence in enumerate(sequences):
        pairs = set()
        for later, (group, lane, kind) in enumerate(sequence):
            for earlier, (other, before_lane, before) in enumerate(sequence[:later]):
                unordered = group != other or (lane != before_lane and not earlier < 2 <= later)
                if unordered and S in (kind, before):
                    pairs.add((earlier, later))
        seen = found.get(number, set())
        assert seen <= pairs, sequence
        assert min((later for _, later in seen), default=None) == min((later for _, later in pairs), default=None)
