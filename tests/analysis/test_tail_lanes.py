"""Leaving out the lanes past the last active one changes no outputs, counters or findings.

A register row holds vectors of 16 lanes, so workgroups here are larger than that, and the lanes at their end have less
to do than those at their start.
"""

from __future__ import annotations

import numpy as np
import pytest

import bankshot
from bankshot.sim.ir.passes import ALL
from bankshot.sim.launch.launch import RunOptions
from bankshot.sim.machine import instruction as field
from bankshot.sim.machine import opcodes as op
from bankshot.sim.run import prepared as running
from tests.ir.test_passes import told
from tests.programs_made import random_programs as rp
from tests.programs_made.dispatch import ENTRY, HEAD

HEAD_OF_ALL = """
@group(0) @binding(1) var<storage, read> x: array<u32>;
@group(0) @binding(2) var<storage, read> f: array<f32>;
@group(0) @binding(3) var<storage, read_write> sums: array<f32>;
@group(0) @binding(4) var<storage, read_write> count: atomic<u32>;
var<workgroup> shared_: array<u32, 256>;
"""
WORDS = 512
X = (np.arange(WORDS, dtype=np.uint32) * 7919) % 101
F = (X.astype(np.float32) - 50) / 8


def simulate(module, size, groups=1, *, passes=ALL, **options):
    used = {v.name for v in module.pipeline(None).globals}
    given = {
        "y": np.zeros(size * groups, np.uint32),
        "x": X,
        "f": F,
        "sums": np.zeros(size * groups, np.float32),
        "count": np.zeros(1, np.uint32),
    }
    bindings = {name: value for name, value in given.items() if name in used}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "RunOptions", lambda **how: RunOptions(**{**how, "passes": passes}))
        return bankshot.simulate(module, grid=groups, bindings=bindings, **options)


def checked(source):
    return bankshot.check(source, uniformity="off")  # lanes may part wherever they like


def source_of(body, size, before=""):
    return before + HEAD_OF_ALL + HEAD + ENTRY.format(size=size, body=body)


def opcodes(body, size=64, before=""):
    return simulate(checked(source_of(body, size, before)), size, probes="none").program.code[:, field.OP].tolist()


# ---- what is computed --------------------------------------------------------------------------------

# By name: the body, and what y[i] is in lane i of a workgroup; `s` lanes, workgroup `g`.
KERNELS = {
    "an if": (
        "if i < 5u { var t = 1u; for (var k = 0u; k < i; k++) { t = t * 3u + k; } y[at] = t; }",
        lambda i, g: [1, 3, 10, 32, 99][i] if i < 5 else 0,
    ),
    "both arms": (
        """var t = i; if i < 20u { t = t * 3u; t ^= 5u; t += i; t *= 7u; }
        else { t = t + 1u; t ^= 9u; t *= 3u; t -= 2u; }
        y[at] = t;""",
        lambda i, g: ((i * 3 ^ 5) + i) * 7 if i < 20 else ((i + 1) ^ 9) * 3 - 2,
    ),
    "a variable of all that some set": (
        "var t = i + 100u; if i < 3u { var u = i; u *= 2u; u += 5u; u ^= 1u; t = u; } y[at] = t + 1u;",
        lambda i, g: ((i * 2 + 5) ^ 1) + 1 if i < 3 else i + 101,
    ),
    "a return": (
        "if i >= 18u { return; } var t = i * i; t += 3u; t ^= 7u; t *= 5u; y[at] = t;",
        lambda i, g: ((i * i + 3) ^ 7) * 5 if i < 18 else 0,
    ),
    "a return in an if": (
        """var t = i; if i < 40u { if i >= 17u { y[at] = 9u; return; } t = t * 2u; t ^= 3u; t += 4u; t *= 3u; }
        t += 1u; t ^= 2u; t *= 3u; t += 1u; y[at] = t;""",
        lambda i, g: 9 if 17 <= i < 40 else ((((((i * 2) ^ 3) + 4) * 3 if i < 17 else i) + 1) ^ 2) * 3 + 1,
    ),
    "turns of a loop": (
        "var t = 0u; for (var k = i; k < 50u; k += 20u) { t = t * 3u + k; } y[at] = t;",
        lambda i, g: turns(range(i, 50, 20)),
    ),
    "continue and break": (
        """var t = 0u; for (var k = 0u; k < 9u; k++) { if i > 16u + k { continue; } if k > i { break; }
        t = t * 3u + k; t ^= i; t += 1u; } y[at] = t;""",
        lambda i, g: broken(i),
    ),
    "break if": (
        "var t = 0u; var k = i; loop { t = t * 5u + k; continuing { k += 9u; t += 1u; break if k > 30u; } } y[at] = t;",
        lambda i, g: at_least_once(i),
    ),
    "an array by index": (
        """var a = array<u32, 4>(1u, 2u, 3u, 4u); if i < 6u { for (var k = 0u; k < 3u; k++) { a[(i + k) % 4u] += i; } }
        y[at] = a[i % 4u] * 10u + a[(i + 1u) % 4u];""",
        lambda i, g: (1 + i % 4 + i * (i < 6)) * 10 + 1 + (i + 1) % 4 + i * (i < 6),
    ),
    "a sum in a tree": (
        """shared_[i] = x[i]; for (var w = 32u; w > 0u; w /= 2u) { workgroupBarrier(); if i < w {
        shared_[i] += shared_[i + w]; } } if i == 0u { var t = shared_[0]; t ^= 5u; t *= 3u; y[at] = t; }""",
        lambda i, g: (int(X[:64].sum()) ^ 5) * 3 if i == 0 else 0,
    ),
    "atomics": (
        """if i < 19u { for (var k = 0u; k <= i; k++) { atomicAdd(&count, k); } y[at] = i; }""",
        lambda i, g: i if i < 19 else 0,
    ),
}


def turns(numbers):
    t = 0
    for k in numbers:
        t = t * 3 + k
    return t


def broken(i):
    t = 0
    for k in range(9):
        if i > 16 + k:
            continue
        if k > i:
            break
        t = ((t * 3 + k) ^ i) + 1
    return t


def at_least_once(i):
    t, k = 0, i
    while True:
        t, k = t * 5 + k, k + 9
        t += 1
        if k > 30:
            return t


@pytest.mark.parametrize("name", KERNELS)
def test_active_lanes_compute_the_expected_values(name: str) -> None:
    body, wanted = KERNELS[name]
    module = checked(source_of(f"let at = group.x * 64u + i; {body}", 64))
    done = simulate(module, 64, 3)
    assert {op.NARROW, op.RESTORE} <= set(done.program.code[:, field.OP].tolist())
    assert done.outputs["y"].tolist() == [wanted(i, g) & 0xFFFFFFFF for g in range(3) for i in range(64)]
    assert done.findings == []


@pytest.mark.parametrize("seed", range(300, 340))
@pytest.mark.parametrize("size", [20, 40])
def test_random_control_flow(seed: int, size: int) -> None:
    """As a plain interpreter has it, for each invocation alone: side by side two workgroups of 20 are 40 lanes."""
    given = np.array([(i * 7 + i // 5) % 11 if i < 13 else 0 for i in range(40)], np.uint32)
    program = rp.Maker(seed).program()
    bindings = {"out": np.zeros(40 * rp.LOGGED, np.uint32), "given": given, "same": 2}
    done = bankshot.simulate(
        rp.render(program, size), grid=40 // size, bindings=bindings, probes="none", budget=100_000
    )
    got = done.outputs["out"].reshape(40, rp.LOGGED).tolist()
    assert got == [rp.interpret(program, int(given[i]), 2, i) for i in range(40)]


# ---- what is seen, with and without ------------------------------------------------------------------

SEEN = {
    **{name: body for name, (body, _) in KERNELS.items()},
    "a barrier that some do not reach": "if i < 20u { shared_[i] = i; workgroupBarrier(); y[at] = shared_[i ^ 1u]; }",
    "a race": """if i < 20u { for (var k = 0u; k < 2u; k++) {
        shared_[i / 2u] = i + k; y[at] = shared_[(i + 1u) / 2u]; } }""",
    "out of bounds": "if i < 9u { for (var k = i; k < 12u; k += 4u) { y[at] = x[k * 70u] + x[k]; } }",
    "unwritten memory": """if i < 17u { shared_[i] = i; } if i < 40u { for (var k = 0u; k < 2u; k++) {
        y[at] += shared_[i + k]; } }""",
    "numbers that are none": "if i < 7u { for (var k = 0u; k < 3u; k++) { sums[at] += 1.0 / (f32(i) - f32(k)); } }",
    "sums of products": """var s = 0.0; for (var k = 0u; k < 8u; k++) { s = fma(f[k * 64u + i], f[k], s); }
        if i < 5u { var t = s; for (var k = 0u; k < 6u; k++) { t = fma(f[k * 64u + i], f[k], t); } s = t; }
        sums[at] = s;""",
    "a table of products": """if i < 18u { var a = 0.0; var b = 0.0; var c = 0.0; var d = 0.0;
        for (var k = 0u; k < 5u; k++) {
        let p = f[k + i]; let q = f[k * 3u + i]; let r = f[k * 2u]; let t = f[k * 4u + 1u];
        a = fma(p, r, a); b = fma(p, t, b); c = fma(q, r, c); d = fma(q, t, d); } sums[at] = a * b - c * d; }""",
    "addresses that come again": """let m = i % 32u; var t = x[m];
        if i < 3u { for (var k = 0u; k < 9u; k++) { t += x[m + k]; } }
        y[at] = t;""",
    "a switch in a function": "y[at] = chosen(i) + 1u;",
    "a function that some call": "if i < 30u { y[at] = chosen(i) + 1u; }",
    "loops in an if": """if i < 5u { var t = 1u; for (var k = 0u; k < 6u; k++) { if k > i {
        for (var l = k; l < 7u + i; l++) { if l == 6u + i { break; } t = t * 3u + l; t ^= k; y[at] = t; } } } }""",
    "votes": """if i < 21u { for (var k = 0u; k < 3u; k++) {
        y[at] += subgroupAdd(i + k) + subgroupBallot(i % 3u == k).x; } }""",
    "a shuffle": "var t = i * 3u; if i < 5u { t += 7u; t ^= 2u; t *= 5u; y[at] = subgroupShuffle(t, 30u - i) + t; }",
}
BEFORE = """enable subgroups;
fn chosen(i: u32) -> u32 { var t = i; switch i / 20u {
    case 0u: { if i > 3u { return 8u; } t += 2u; t ^= 5u; t *= 3u; }
    case 1u: { t *= 2u; t ^= i; t += 2u; return t; } default: { t ^= 1u; } }
    t += i; t *= 3u; t ^= 9u; t += 1u; return t; }
"""
# What rows have held before they are masks.
NUMBERS = f"""{" ".join(f"let n{k} = i * {k + 3}u + 2u;" for k in range(12))}
    y[at] = {" ^ ".join(f"n{k}" for k in range(12))};"""
ORDERS = (("nvidia", "lockstep"), ("amd", "subgroup-serial"), ("lavapipe", "reversed"))


@pytest.mark.parametrize(("device", "schedule"), ORDERS)
@pytest.mark.parametrize("name", SEEN)
def test_results_are_the_same(name: str, device: str, schedule: str) -> None:
    for size, groups in ((128, 2), (40, 7)):  # alone, and some side by side
        module = checked(source_of(f"let at = group.x * {size}u + i; {NUMBERS} {SEEN[name]}", size, BEFORE))
        with_it, without = (
            simulate(module, size, groups, passes=passes, device=device, schedule=schedule)
            for passes in (ALL, ALL - {"tail_lanes"})
        )
        assert told(with_it) == told(without)
        assert with_it.instructions == without.instructions


# ---- where it pays -----------------------------------------------------------------------------------


def test_short_code_runs_on_all_lanes() -> None:
    assert op.NARROW not in opcodes("if i < 5u { y[i] = i; }")
    assert op.NARROW in opcodes("if i < 5u { var t = i * 3u; t ^= 7u; t += i * i; t *= 5u; y[i] = t; }")


def test_code_narrows_after_a_statement_only_where_lanes_may_leave_in_it() -> None:
    long = "var t = i * 3u; t ^= 7u; t += i * i; t *= 5u; y[i] = t;"
    counts = [
        opcodes(f"if i < 9u {{ if i < 5u {{ {each} }} {long} }}").count(op.NARROW) for each in ("y[i] = 1u;", "return;")
    ]
    assert counts == [1, 2]  # for the outer arm, and after the return


def test_a_shuffle_may_read_inactive_lanes() -> None:
    long = "var t = i * 3u; t ^= 7u; t += i * i; t *= 5u; y[i] = {};"
    before = "enable subgroups;"
    assert op.NARROW not in opcodes(f"if i < 5u {{ {long.format('subgroupShuffle(t, 9u)')} }}", before=before)
    assert op.NARROW in opcodes(f"if i < 5u {{ {long.format('subgroupAdd(t)')} }}", before=before)


def test_each_construct_restores_once() -> None:
    """A loop in a loop in an if: all three narrow, the loops again in each iteration."""
    body = """if i < 5u { for (var k = 0u; k < i; k++) { for (var l = 0u; l < k; l++) { y[i] += l * k; } y[i] ^= k; }
        y[i] *= 3u; }"""
    code = opcodes(body)
    assert (code.count(op.NARROW), code.count(op.RESTORE)) == (5, 3)
