"""Workgroups that wait for earlier ones: a right kernel ends in every order; one that forgets to signal does not."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot

HEAD = """
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<storage, read_write> state: array<atomic<u32>>;
@group(0) @binding(3) var<storage, read_write> ticket: atomic<u32>;
var<workgroup> tile: u32;
var<workgroup> before: u32;
var<workgroup> s: array<u32, {size}>;
@compute @workgroup_size({size})
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u, @builtin(num_workgroups) n: vec3u) {{
    _ = &x; _ = &y; _ = &state; _ = &ticket;
"""
SIZES = [1, 8, 32, 64, 128, 256]
GROUPS = 11
# An exclusive prefix sum; TAKE sets `tile`, LOOK_BACK sets `sum` to that of the tiles before.
SCAN = """
    if i == 0u { TAKE }
    let t = workgroupUniformLoad(&tile);
    let at = t * SIZEu + i;
    s[i] = x[at];
    workgroupBarrier();
    if i == 0u {
        var own = 0u;
        for (var k = 0u; k < SIZEu; k++) { let v = s[k]; s[k] = own; own += v; }
        var sum = 0u;
        LOOK_BACK
        before = sum;
    }
    workgroupBarrier();
    y[at] = s[i] + before;
"""
TAKES = {"by number": "tile = w.x;", "by ticket": "tile = atomicAdd(&ticket, 1u);"}
CHAINED = """
        if t > 0u { loop { let f = atomicLoad(&state[t - 1u]); if f != 0u { sum = f - 1u; break; } } }
        atomicStore(&state[t], sum + own + 1u);
"""
SILENT = CHAINED.replace("atomicStore(&state[t], sum + own + 1u);", "")
DECOUPLED = """
        atomicStore(&state[t], (own << 2u) | select(1u, 2u, t == 0u));
        if t > 0u {
            var k = t - 1u;
            loop {
                let f = atomicLoad(&state[k]);
                if (f & 3u) == 0u { WHEN_EMPTY }
                sum += f >> 2u;
                if (f & 3u) == 2u || k == 0u { break; }
                k -= 1u;
            }
            atomicStore(&state[t], ((sum + own) << 2u) | 2u);
        }
"""
LOOK_BACKS = {"chained": CHAINED, "decoupled": DECOUPLED.replace("WHEN_EMPTY", "continue;")}


def run(body: str, size: int, **options: object) -> bankshot.Run:
    text = HEAD.format(size=size) + body.replace("SIZE", str(size)) + "\n}"
    count = size * GROUPS
    bindings = {
        "x": np.arange(count, dtype=np.uint32) % 7,
        "y": np.zeros(count, np.uint32),
        "state": np.zeros(GROUPS + 1, np.uint32),
        "ticket": np.zeros(1, np.uint32),
    }
    module = bankshot.check(text, uniformity="off")
    return bankshot.simulate(module, grid=GROUPS, bindings=bindings, **options)  # pyright: ignore[reportArgumentType]


def expected(size: int) -> list[int]:
    numbers = np.arange(size * GROUPS) % 7
    return (np.cumsum(numbers) - numbers).tolist()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("take", TAKES)
@pytest.mark.parametrize("look_back", LOOK_BACKS)
def test_a_scan_that_looks_back(look_back: str, take: str, size: int) -> None:
    body = SCAN.replace("TAKE", TAKES[take]).replace("LOOK_BACK", LOOK_BACKS[look_back])
    done = run(body, size)
    assert [f.render() for f in done.findings] == []
    assert done.outputs["y"].tolist() == expected(size)


@pytest.mark.parametrize("order", ["mirrored", "reversed", "subgroup-serial", "turns(1)", "turns(2)", "random(3)"])
@pytest.mark.parametrize("look_back", LOOK_BACKS)
def test_every_order_ends(look_back: str, order: str) -> None:
    body = SCAN.replace("TAKE", TAKES["by ticket"]).replace("LOOK_BACK", LOOK_BACKS[look_back])
    done = run(body, 64, schedule=order, probes="none")
    assert done.findings == []
    assert done.outputs["y"].tolist() == expected(64)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("take", TAKES)
def test_a_look_back_that_does_not_wait(take: str, size: int) -> None:
    body = SCAN.replace("TAKE", TAKES[take]).replace("LOOK_BACK", DECOUPLED.replace("WHEN_EMPTY", ""))
    assert [f.code for f in run(body, size).findings] == ["atomic-order"]


@pytest.mark.parametrize("size", SIZES)
def test_a_scan_whose_tiles_are_never_stored(size: int) -> None:
    body = SCAN.replace("TAKE", TAKES["by number"]).replace("LOOK_BACK", SILENT)
    (finding,) = [f for f in run(body, size, budget=5000).findings if f.code == "endless-loop"]
    assert finding.workgroup == (1, 0, 0)
    assert "it waits for others, which have ended or wait, too" in finding.message
    assert finding.notes[0].message.startswith("invocation 0 of workgroup (1, 0, 0) waits for state[0] here")


LOCK = "if i == 0u { while atomicExchange(&state[0], 1u) == 1u {} y[0] += 1u; UNLOCK }"


@pytest.mark.parametrize("size", SIZES)
def test_a_lock_that_one_invocation_of_each_workgroup_takes(size: int) -> None:
    done = run(LOCK.replace("UNLOCK", "atomicStore(&state[0], 0u);"), size)
    assert done.outputs["y"][0] == GROUPS
    assert "endless-loop" not in {f.code for f in done.findings}
    (finding,) = [f for f in run(LOCK.replace("UNLOCK", ""), size, budget=5000).findings if f.code == "endless-loop"]
    assert finding.workgroup == (1, 0, 0)


def test_who_tries_again_shares_a_batch() -> None:
    """A loop that exchanges what it has read waits for none: its workgroups stay side by side, which is faster."""
    retry = """loop {
        let old = atomicLoad(&state[0]);
        if atomicCompareExchangeWeak(&state[0], old, old + 1u).exchanged { break; }
    }"""
    done = run(retry, 32)
    assert done.program.workgroups_per_batch > 1
    assert not done.program.waits
    assert [f.code for f in done.findings] == []


def test_a_workgroup_that_takes_its_turn_sees_its_own_memory() -> None:
    body = "s[i] = x[w.x * SIZEu + i]; workgroupBarrier(); y[w.x * SIZEu + i] = s[SIZEu - 1u - i] + w.x;"
    for size in SIZES:
        done = run(body, size, schedule="turns(5)", probes="none")
        rows = (np.arange(size * GROUPS) % 7).reshape(GROUPS, size)[:, ::-1] + np.arange(GROUPS)[:, None]
        assert done.outputs["y"].tolist() == rows.reshape(-1).tolist()


def test_subgroups_wait_at_a_barrier_for_one_that_spins() -> None:
    body = """
    if i == 0u { s[0] = 7u; }
    workgroupBarrier();
    if i < 32u { while atomicLoad(&state[0]) == 0u {} }
    else if i < 64u { while atomicLoad(&state[1]) == 0u {} atomicStore(&state[0], 1u); }
    else { atomicStore(&state[1], 1u); }
    let seen = s[0];
    workgroupBarrier();
    if i == 64u { s[0] = 9u; }
    workgroupBarrier();
    y[w.x * SIZEu + i] = seen * 10u + s[0];
"""
    done = run(body, 96, schedule="subgroup-serial", probes="none", budget=1000)
    assert done.outputs["y"].tolist() == [79] * 96 * GROUPS
