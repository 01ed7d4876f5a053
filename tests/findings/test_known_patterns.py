"""Loads in loops, whose address patterns the machine knows, against a plain detector: the short cuts miss nothing.

A program stores to every word, most of the time, and runs its steps once or twice. A step loads a row of places that
moves along, stores to one, or is a barrier; places are `pattern(i) + turn * far`, so that two turns meet in the same
words or keep apart, as two slots of a tile do.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest

import bankshot
from bankshot.sim.run import dispatch

SIZE, WORDS, GROUPS = 32, 704, 2
VARIABLES = {"workgroup": "var<workgroup>", "storage": "@group(0) @binding(1) var<storage, read_write>"}
PATTERNS = {  # as WGSL, and as Python
    "i": lambda i: i,
    "i / 8u * 8u": lambda i: i // 8 * 8,
    "i % 4u": lambda i: i % 4,
    "(i * 5u) % 32u": lambda i: i * 5 % 32,
    "i * 3u": lambda i: i * 3,
    "31u - i": lambda i: 31 - i,
}


@dataclass(frozen=True)
class Step:
    """`count` places, `stride` apart, from `pattern(i) + start + turn * far` on; invocations below `least` do it."""

    kind: str
    pattern: str = "i"
    start: int = 0
    far: int = 0
    count: int = 1
    stride: int = 1
    below: int = SIZE


@dataclass(frozen=True)
class Program:
    steps: list[Step]
    turns: int
    filled: bool


def make(seed: int) -> Program:
    rng = random.Random(seed)
    steps = []
    for _ in range(rng.choice((2, 2, 3, 5))):
        kind = rng.choice(("load", "load", "store", "workgroup", "storage"))
        start, far = rng.choice((0, 0, 32, 100, 130)), rng.choice((0, 0, 100, 200))
        loops = (rng.randrange(2, 6), rng.choice((1, 4, 32))) if kind == "load" else (1, 1)
        below = rng.choice((SIZE, SIZE, 7))
        steps.append(Step(kind, rng.choice(list(PATTERNS)), start, far, *loops, below))
    return Program(steps, rng.choice((1, 1, 2)), rng.random() < 0.8)


def render(program: Program, memory: str = "workgroup", idle: int = 0) -> str:
    """As WGSL, with so many invocations more, which do none of the steps."""
    steps, everyone = program.steps, SIZE + idle
    lines = [f"    let p{k} = {step.pattern};" for k, step in enumerate(steps)]
    lines.append(f"    for (var turn = 0u; turn < {program.turns}u; turn++) {{")
    for k, s in enumerate(steps):
        place = f"p{k} + turn * {s.far}u + {s.start}u"
        guard = "" if s.below == everyone else f"if i < {s.below}u "
        if s.kind == "load":
            lines.append(
                f"{guard}{{ for (var n = 0u; n < {s.count}u; n++) {{ sum += t[{place} + n * {s.stride}u]; }} }}"
            )
        elif s.kind == "store":
            lines.append(f"{guard}{{ t[{place}] = i; }}")
        else:
            lines.append(f"{s.kind}Barrier();")
    body = "\n".join([*lines, "    }"])
    fill = f"for (var n = i; n < {WORDS}u; n += {SIZE}u) {{ t[n] = 0u; }} workgroupBarrier();" if program.filled else ""
    return f"""
@group(0) @binding(0) var<storage, read_write> out: array<u32>;
{VARIABLES[memory]} t: array<u32, {WORDS}>;
@compute @workgroup_size({everyone})
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3u) {{
    var sum = 0u;
    {fill}
{body}
    if i < {SIZE}u {{ out[g.x * {SIZE}u + i] = sum; }}
}}"""


def truth(program: Program) -> tuple[set[frozenset[int]], set[int]]:
    """Pairs of steps that race, and steps that load unwritten memory."""
    seen: dict[int, list[tuple[int, int, bool]]] = {}
    written: set[int] = set(range(WORDS)) if program.filled else set()
    races, unwritten = set(), set()
    for turn in range(program.turns):
        for k, s in enumerate(program.steps):
            if s.kind == "workgroup":
                seen.clear()
            if s.kind not in ("load", "store"):
                continue
            for i in range(s.below):
                first = PATTERNS[s.pattern](i) + turn * s.far + s.start
                for word in range(first, first + s.count * s.stride, s.stride):
                    stores = s.kind == "store"
                    for other, lane, stored in seen.setdefault(word, []):
                        if lane != i and (stores or stored):
                            races.add(frozenset((k, other)))
                    seen[word].append((k, i, stores))
                    if not stores and word not in written:
                        unwritten.add(k)
            if s.kind == "store":
                written |= {PATTERNS[s.pattern](i) + turn * s.far + s.start for i in range(s.below)}
    return races, unwritten


@pytest.mark.parametrize("batch", [512, 1], ids=["side by side", "one by one"])
@pytest.mark.parametrize("seed", range(150))
def test_what_is_found_is_what_the_plain_detector_finds(seed: int, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "_LANES_PER_BATCH", batch)
    program = make(seed)
    text = render(program)
    out = np.zeros(SIZE * GROUPS, np.uint32)
    run = bankshot.simulate(text, grid=GROUPS, bindings={"out": out}, probes=["races", "uninit"], replay=False)
    first = next(n for n, line in enumerate(text.splitlines(), 1) if "var turn" in line) + 1
    pairs = [(f.span.line - first, f.notes[0].span.line - first) for f in run.findings if f.code == "race"]
    races, unwritten = truth(program)
    assert {frozenset(pair) for pair in pairs} <= races
    assert bool(pairs) == bool(races)
    assert {f.span.line - first for f in run.findings if f.code == "uninit"} == unwritten


# ---- stores of all lanes, which are not looked at one by one ------------------------------------------


def make_stores(seed: int) -> Program:
    """A program that stores by known patterns again and again, and loads in some lanes only."""
    rng = random.Random(seed)
    steps = []
    for _ in range(rng.choice((2, 3, 4, 6))):
        kind = rng.choice(("load", "store", "store", "store", "workgroup", "storage"))
        start, far = rng.choice((0, 0, 1, 32, 100)), rng.choice((0, 1, 32, 100))
        below = 7 if kind == "load" else SIZE
        steps.append(Step(kind, rng.choice(list(PATTERNS)), start, far, below=below))
    return Program(steps, rng.choice((2, 4, 6)), filled=False)


@pytest.mark.parametrize("batch", [512, 1], ids=["side by side", "one by one"])
@pytest.mark.parametrize("memory", ["workgroup", "storage"])
@pytest.mark.parametrize("seed", range(60))
def test_stores_of_all_lanes_are_found_as_those_of_some(
    seed: int, memory: str, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some lanes of the workgroup never store, so that its stores are examined lane by lane."""
    monkeypatch.setattr(dispatch, "_LANES_PER_BATCH", batch)
    program, found = make_stores(seed), []
    given = {"out": np.zeros(SIZE * GROUPS, np.uint32)}
    if memory == "storage":
        given["t"] = np.zeros(WORDS, np.uint32)
    for idle in (0, 8):
        text = render(program, memory, idle)
        run = bankshot.simulate(text, grid=GROUPS, bindings=given, probes=["races", "uninit"], replay=False)
        found.append([(f.code, f.count, f.lanes, f.workgroup, f.message) for f in run.findings])
    assert found[0] == found[1]


RACING = """
@group(0) @binding(0) var<storage, read_write> out: array<u32>;
var<workgroup> t: array<u32, 64>;
@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) i: u32) {{
    for (var turn = 0u; turn < 4u; turn++) {{
        t[select(i, {}, turn == {}u)] = i;
        workgroupBarrier();
    }}
    out[i] = t[i];
}}
"""


@pytest.mark.parametrize("turn", range(4))
@pytest.mark.parametrize(
    ("place", "races"),
    [("i + 32u", False), ("31u - i", False), ("i / 2u", True), ("min(i, 30u)", True), ("7u", True)],
)
def test_a_store_whose_places_change_is_examined_again(place, races, turn):
    bindings = {"out": np.zeros(32, np.uint32)}
    run = bankshot.simulate(RACING.format(place, turn), grid=1, bindings=bindings, probes=["races"], replay=False)
    assert bool([f for f in run.findings if f.code == "race"]) == races
