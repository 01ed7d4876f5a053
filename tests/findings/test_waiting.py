"""Loops that do not end: whether that depends on other invocations, which may wait for ever, or on none."""

import numpy as np
import pytest

import bankshot

SHADER = """\
enable subgroups; diagnostic(off, subgroup_uniformity);
@group(0) @binding(0) var<storage, read_write> lock: atomic<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 32>;
fn try_lock() -> bool { return atomicCompareExchangeWeak(&lock, 0u, 1u).exchanged; }
fn acquire() { loop { let r = atomicExchange(&lock, 1u); if r == 0u { return; } } }
@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) i: u32) {
    BODY
}
"""
LOCKED = " y[0] += 1.0; atomicStore(&lock, 0u);"
KEPT = " y[0] += 1.0;"


def endless(body, **options):
    bindings = {"lock": np.zeros(1, np.uint32), "y": np.zeros(32, np.float32)}
    run = bankshot.simulate(SHADER.replace("BODY", body), grid=1, bindings=bindings, **options)
    return [finding for finding in run.findings if finding.code == "endless-loop"]


@pytest.mark.parametrize(
    ("body", "line", "name"),
    [
        ("loop { if atomicCompareExchangeWeak(&lock, 0u, 1u).exchanged { break; } }", 8, "atomicCompareExchangeWeak"),
        ("while !try_lock() {}", 4, "atomicCompareExchangeWeak"),
        ("acquire();", 5, "atomicExchange"),
        ("var done = false; while !done { if atomicExchange(&lock, 1u) == 0u { done = true; } }", 8, "atomicExchange"),
        ("loop { if i == 0u { break; } continuing { break if atomicLoad(&lock) == 1u; } }", 8, "atomicLoad"),
        ("var seen = array<u32, 2>(); while seen[i & 1u] == 0u { seen[i & 1u] = atomicLoad(&lock); }", 8, "atomicLoad"),
    ],
)
def test_who_spins_waits_for_others(body, line, name):
    (finding,) = endless(body + KEPT)
    assert "it waits for others, which have ended or wait, too, and the state of all repeats" in finding.message
    first, *_ = finding.notes
    assert first.span.line == line
    assert SHADER.replace("BODY", body + KEPT)[first.span.start :].startswith(name)
    assert " for lock here; " in first.message


@pytest.mark.parametrize(
    "body",
    [
        "for (var k = 0u; k < 9u; ) { atomicAdd(&lock, 1u); }",
        "for (var k = 0u; k < 9u; ) { y[i] = f32(atomicLoad(&lock)); }",
        "let taken = atomicLoad(&lock); while taken == 0u {}",
        "while y[i] < 1.0 { if atomicLoad(&lock) == 1u { y[i] = -1.0; } }",
        "loop { loop { if atomicAdd(&lock, 1u) < 0xffffffffu { break; } } if y[i] < 0.0 { break; } }",
    ],
)
def test_who_turns_for_ever_without_them_does_not(body):
    (finding,) = endless(body, budget=5000)
    assert finding.message.endswith("exceeded 5,000 loop iterations; the run was stopped")
    assert (finding.notes, finding.hint.startswith("if it ends later, raise the budget")) == ((), True)


def test_a_subgroup_that_waits_for_itself_does_not_end():
    (finding,) = endless("while subgroupAny(atomicLoad(&lock) == 0u) {}" + KEPT)
    assert finding.message == "this loop does not end: its state repeats every iteration; the run was stopped"
    assert [note.message for note in finding.notes] == ["the result of this atomicLoad of lock decides whether it ends"]


@pytest.mark.parametrize("acquire", ["loop { if try_lock() { break; } }", "while !try_lock() {}", "acquire();"])
def test_lanes_of_a_subgroup_that_wait_for_each_other_end(acquire):
    assert endless(acquire + LOCKED) == []


def test_who_only_tries_again_ends():
    retry = (
        "loop { let old = atomicLoad(&lock); if atomicCompareExchangeWeak(&lock, old, old + 1u).exchanged { break; } }"
    )
    assert endless(retry) == []
