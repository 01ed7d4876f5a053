"""`pct(seed,depth)`: the unit of the highest priority goes on, and loses it at no more than `depth - 1` steps.

Burckhardt, Kothari, Musuvathi and Nagarakatte, "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs",
ASPLOS 2010.
"""

import numpy as np
import pytest

import bankshot

TICKS = """
@group(0) @binding(0) var<storage, read_write> who: array<u32, 800>;
@group(0) @binding(1) var<storage, read_write> next: atomic<u32>;
@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) i: u32) {
    for (var k = 0u; k < 100u; k++) { who[atomicAdd(&next, 1u)] = i; }
}"""


def changes(seed: int, depth: int) -> int:
    """How often another of eight invocations goes on, of which each takes a hundred steps."""
    bindings = {"who": np.full(800, 9, np.uint32), "next": np.zeros(1, np.uint32)}
    order = f"pct({seed},{depth},invocations)"
    who = bankshot.simulate(TICKS, grid=1, bindings=bindings, schedule=order, probes="none").outputs["who"]
    assert np.bincount(who).tolist() == [100] * 8
    return int(np.count_nonzero(np.diff(who.astype(np.int64))))


def test_without_a_loss_each_runs_to_its_end() -> None:
    assert {changes(seed, 1) for seed in range(1, 9)} == {7}


@pytest.mark.parametrize("depth", [2, 3, 6])
def test_a_priority_is_lost_at_so_many_steps(depth: int) -> None:
    """Some losses come after the last step, or to the only one that is left."""
    found = [changes(seed, depth) for seed in range(1, 17)]
    assert max(found) <= 7 + depth - 1
    assert max(found) > 7
