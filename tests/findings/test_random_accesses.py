"""Random accesses against a plain detector: no race is missed and none is made up.

A program is a list of steps that every invocation takes: a load or a store at a place that data decides, under a
condition that data decides, or a barrier. The plain detector remembers every access of every word.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import bankshot
from bankshot.sim.run import dispatch

WORDS = 40


@dataclass(frozen=True)
class Step:
    """`kind` is load, store or a barrier's kind; `where[g][i]` the place that an invocation touches, -1 for none."""

    kind: str
    memory: str = ""
    where: tuple[tuple[int, ...], ...] = ()


def make(seed: int, size: int, groups: int) -> list[Step]:
    """A program with few races: most steps have each invocation keep to places of its own."""
    rng = random.Random(seed)
    steps = []
    for _ in range(rng.choice((2, 3, 4, 8))):
        if rng.random() < 0.35:
            steps.append(Step(rng.choice(("workgroup", "storage"))))
            continue
        kind, memory = rng.choice(("load", "store")), rng.choice(("workgroup", "storage"))
        shift, density, stray = (
            rng.choice((0, 1, 2, rng.randrange(WORDS))),
            rng.choice((0.2, 0.6, 1.0)),
            rng.choice((0.0, 0.0, 0.02)),
        )
        narrow, where = rng.choice(("", "one word" if kind == "load" else "one invocation")), []
        for g in range(groups):
            start = g * size if memory == "storage" and rng.random() < 0.97 else 0
            row = [(start + (i + shift) % size) if rng.random() < density else -1 for i in range(size)]
            if narrow == "one word":
                row = [start + shift % size if w >= 0 else -1 for w in row]
            elif narrow == "one invocation":
                row = [row[i] if i == shift % 3 else -1 for i in range(size)]
            where.append(tuple(rng.randrange(WORDS) if w >= 0 and rng.random() < stray else w for w in row))
        steps.append(Step(kind, memory, tuple(where)))
    return steps


def make_on_one_word(seed: int, size: int, groups: int) -> list[Step]:
    """A program in which workgroups load one word of storage, and few invocations store to it."""
    rng = random.Random(seed)
    steps = []
    for _ in range(rng.choice((2, 3, 4))):
        steps.append(Step("storage"))
        kind = rng.choice(("load", "load", "store"))
        chosen = set(rng.sample(range(groups), rng.choice((1, groups))))
        lanes = set(rng.sample(range(size), 1 if kind == "store" else rng.choice((1, size))))
        row = [tuple(0 if g in chosen and i in lanes else -1 for i in range(size)) for g in range(groups)]
        steps.append(Step(kind, "storage", tuple(row)))
    return steps


def render(steps: list[Step], size: int, wait: str) -> str:
    """The program as WGSL; `at` holds the places, and words past those of all invocations are never used."""
    flag = "@group(0) @binding(3) var<storage, read_write> flag: atomic<u32>;" if wait else ""
    lines = []
    for k, step in enumerate(steps):
        if not step.where:
            lines.append(f"    {step.kind}Barrier();")
            continue
        name = "t" if step.memory == "workgroup" else "y"
        touch = f"{name}[w{k}] = i;" if step.kind == "store" else f"sum += {name}[w{k}];"
        lines.append(f"    let w{k} = at[{k}u * count + me]; if w{k} >= 0 {{ {touch} }}")
    body = "\n".join(lines)
    return f"""
@group(0) @binding(0) var<storage, read> at: array<i32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<storage, read_write> out: array<u32>;
var<workgroup> t: array<u32, 100>; {flag}
@compute @workgroup_size({size})
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3u, @builtin(num_workgroups) n: vec3u) {{
    let me = g.x * {size}u + i; let count = n.x * {size}u; var sum = 0u; _ = &y;{wait}
{body}
    out[me] = sum;
}}"""


def truth(steps: list[Step], size: int, groups: int) -> set[frozenset[int]]:
    """Pairs of steps that race, from all pairs of accesses of one word."""
    seen: dict[tuple[str, int, int], list[tuple[int, int, int, int, bool]]] = {}
    passed = {"workgroup": 0, "storage": 0}
    for k, step in enumerate(steps):
        if not step.where:
            passed[step.kind] += 1
            continue
        for g, row in enumerate(step.where):
            for i, word in enumerate(row):
                if word >= 0:
                    own = g if step.memory == "workgroup" else -1
                    entry = (k, g, i, passed[step.memory], step.kind == "store")
                    seen.setdefault((step.memory, own, word), []).append(entry)
    found = set()
    for accesses in seen.values():
        for n, (k, g, i, epoch, stores) in enumerate(accesses):
            for k2, g2, i2, epoch2, stores2 in accesses[n + 1 :]:
                unordered = g != g2 or (epoch == epoch2 and i != i2)
                if unordered and (stores or stores2):
                    found.add(frozenset((k, k2)))
    return found


@pytest.mark.parametrize("batch", [512, 1], ids=["side by side", "one by one"])
@pytest.mark.parametrize("seed", range(120))
def test_races_are_those_of_the_plain_detector(seed: int, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "_LANES_PER_BATCH", batch)
    size, groups = random.Random(-seed).choice(((8, 1), (13, 3), (32, 2), (40, 1)))
    check(make(seed, size, groups), size, groups)


@pytest.mark.parametrize("batch", [512, 1], ids=["side by side", "one by one"])
@pytest.mark.parametrize("seed", range(40))
def test_races_on_one_word_are_those_of_the_plain_detector(
    seed: int, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "_LANES_PER_BATCH", batch)
    size, groups = random.Random(-seed).choice(((2, 7), (32, 4), (64, 3), (1, 5)))
    check(make_on_one_word(seed, size, groups), size, groups)


# Lane 0 of the workgroup that WAITER names waits for a lane of the workgroup that SETTER names.
WAIT = """
    if g.x == WAITER && i == 0u { while atomicLoad(&flag) == 0u {} }
    if g.x == SETTER && i == SIZEu - 1u { atomicStore(&flag, 1u); }
"""
WAITS = {
    "for a lane of its subgroup": ("0u", "0u", (8, 13)),
    "for another subgroup": ("0u", "0u", (40, 64)),
    "for a later workgroup": ("0u", "n.x - 1u", (1, 8, 32)),
}


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("waits", WAITS)
def test_races_are_those_of_the_plain_detector_where_units_take_turns(waits: str, seed: int) -> None:
    waiter, setter, sizes = WAITS[waits]
    size = random.Random(-seed).choice(sizes)
    groups = random.Random(seed).choice((2, 3))
    wait = WAIT.replace("WAITER", waiter).replace("SETTER", setter).replace("SIZE", str(size))
    make_some = make if seed % 2 else make_on_one_word
    check(make_some(seed, size, groups), size, groups, wait)


def ordered(seed: int, size: int, groups: int) -> list[Step]:
    """A program without races."""
    return next(steps for n in range(500) if not truth(steps := make(1000 * n + seed, size, groups), size, groups))


@pytest.mark.parametrize("seed", range(12))
def test_a_program_without_races_gives_the_same_outputs_in_every_order(seed: int) -> None:
    size, groups = random.Random(-seed).choice(((8, 1), (13, 3), (40, 2)))
    steps = ordered(seed, size, groups)
    orders = ("lockstep", "mirrored", "subgroup-serial", "reversed", "turns(3)", "side-by-side(0,1)")
    drawn = (f"random({seed})", f"random({seed + 1})", *(f"pct({seed},{depth})" for depth in (1, 2, 5)))
    found = {order: run(steps, size, groups, schedule=order, probes="none").outputs for order in (*orders, *drawn)}
    for outputs in found.values():
        assert {name: each.tolist() for name, each in outputs.items()} == {
            name: each.tolist() for name, each in found["lockstep"].items()
        }


def check(steps: list[Step], size: int, groups: int, wait: str = "") -> None:
    text = render(steps, size, wait)
    done = run(steps, size, groups, wait, probes=["races"], replay=False)
    first = next(n for n, line in enumerate(text.splitlines(), 1) if "let me" in line) + 1 + wait.count("\n")
    found = {frozenset((f.span.line - first, *(n.span.line - first for n in f.notes[:1]))) for f in done.findings}
    expected = truth(steps, size, groups)
    assert found <= expected  # none is made up
    assert bool(found) == bool(expected)  # and where there is one, one is found


def run(steps: list[Step], size: int, groups: int, wait: str = "", **options: Any) -> bankshot.Run:
    text = render(steps, size, wait)
    at = np.full((len(steps), groups, size), -1, np.int32)
    for k, step in enumerate(steps):
        if step.where:
            at[k] = step.where
    count = groups * size
    bindings = {"at": at.ravel(), "y": np.zeros(max(WORDS, count), np.uint32), "out": np.zeros(count, np.uint32)}
    if wait:
        bindings["flag"] = np.zeros(1, np.uint32)
    done = bankshot.simulate(text, grid=groups, bindings=bindings, **options)
    assert done.finished == groups
    return done
