"""What many workgroups, and many runs, take: a bounded amount of memory, and work for each."""

import gc
import sys
import tracemalloc

import numpy as np
import pytest

import bankshot
from bankshot.sim.launch import partition, workspace

HEAD = """@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read_write> total: array<atomic<u32>>;
var<workgroup> s: array<u32, 8>;
@compute @workgroup_size(8) fn main(@builtin(workgroup_id) w: vec3u, @builtin(num_workgroups) n: vec3u,
    @builtin(local_invocation_index) l: u32) {
    let i = (w.x + w.y * n.x) * 8u + l;
"""
BODIES = {
    "some workgroups store": "if i < 4096u { y[i] = i; }",
    "stores that race": "y[i % 7u] = i;",
    "loads that race": "y[i % 4096u] = y[(i * 7u) % 4096u];",
    "stores out of bounds": "y[i] = i;",
    "atomic operations": "atomicAdd(&total[i % 64u], 1u);",
    "workgroup memory": "s[l] = i; y[i % 4096u] = s[7u - l];",
    "unwritten memory": "y[i % 4096u] = s[l];",
}


def bindings(body):
    return {name: np.zeros(4096, np.uint32) for name in ("y", "total") if f"{name}[" in body}


def peak(prepared, given):
    """The bytes that a run allocates at most, once others have filled the caches."""
    prepared.run(given)
    tracemalloc.start()
    try:
        prepared.run(given)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("probes", ["none", "all"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_workgroup_more_takes_at_most_64_bytes(body, probes):
    module = bankshot.check(f"{HEAD}{body}}}")
    few, many = (
        peak(bankshot.prepare(module, grid=(count, 10), probes=probes, cures=False), bindings(body))
        for count in (2000, 6000)
    )
    assert many - few < 64 * (60000 - 20000) + (1 << 20)


@pytest.mark.parametrize("probes", ["none", "counters", "all"])
def test_the_machine_is_called_as_often_for_many_workgroups_as_for_few(probes, monkeypatch):
    """A call takes a range of workgroups, so that Python costs nothing for each."""
    calls = 0
    run = workspace.Workspace.run

    def counted(self, first, last):
        nonlocal calls
        calls += 1
        return run(self, first, last)

    monkeypatch.setattr(workspace.Workspace, "run", counted)
    body = BODIES["some workgroups store"]
    bankshot.prepare(f"{HEAD}{body}}}", grid=(5000, 10), probes=probes).run(bindings(body))
    assert 1 <= calls <= 6 * partition._SMALLEST


@pytest.mark.parametrize("probes", ["none", "counters", "all"])
@pytest.mark.parametrize("simulated", [False, True], ids=["prepared", "simulated"])
def test_a_run_more_leaves_nothing_behind(probes, simulated):
    body = BODIES["some workgroups store"]
    given, module = bindings(body), bankshot.check(f"{HEAD}{body}}}")
    prepared = bankshot.prepare(module, grid=1, probes=probes)

    def some(runs):
        for _ in range(runs):
            if simulated:
                bankshot.simulate(module, grid=1, bindings=given, probes=probes)
            else:
                prepared.run(given)

    def held():
        """The objects that are alive; each array is one, whatever its size."""
        gc.collect()
        return sys.getallocatedblocks()

    some(200)  # caches fill
    before = held()
    some(1000)
    assert held() - before < 500  # no object for each run
