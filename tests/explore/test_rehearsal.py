"""The schedule that runs ahead of a search, to find most of the words that units share."""

import numpy as np
import pytest

from bankshot.sim.explore.search import System
from bankshot.sim.run.prepared import dispatch_of

AHEAD = """
@group(0) @binding(0) var<storage, read_write> m: array<atomic<u32>, 4>;
@group(0) @binding(1) var<storage, read_write> y: array<u32, 128>;
@compute @workgroup_size(1) fn main(@builtin(workgroup_id) w: vec3u) { %s }
"""
WAITING = "while atomicLoad(&m[w.x]) == 0u {} y[w.x] = 1u;"
COUNTING = "for (var k = 0u; k < 100u; k++) { y[k] = w.x; atomicStore(&m[0], 7u); }"


def rehearsed(body: str, memory: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, set[str]]:
    """The steps of the schedule, and the words that units share by it."""
    given = {"m": np.zeros(4, np.uint32), "y": np.zeros(128, np.uint32)}
    given = {name: data for name, data in given.items() if f"{name}[" in body}
    system, steps = System(dispatch_of(AHEAD % body, grid=2, bindings=given), memory), []
    system.limit(float("inf"))
    moved = System._moved
    monkeypatch.setattr(System, "_moved", lambda *args: steps.append(1) or moved(*args))
    system.rehearse()
    return len(steps), {system.words.name(word) for word in system._accesses.shared}


@pytest.mark.parametrize("memory", ["sc", "weak"])
def test_it_ends_where_it_comes_round(memory, monkeypatch):
    steps, shared = rehearsed(WAITING, memory, monkeypatch)
    assert steps < 100
    assert shared == set()


@pytest.mark.parametrize("memory", ["sc", "weak"])
def test_it_goes_on_while_it_finds_what_is_new(memory, monkeypatch):
    steps, shared = rehearsed(COUNTING, memory, monkeypatch)
    assert steps >= 200
    assert shared == {"m[0]", *(f"y[{k}]" for k in range(100))}
