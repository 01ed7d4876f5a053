"""How many threads a run takes: as many as asked for, and one where their timing could show."""

import os

import numpy as np
import pytest

import bankshot
from bankshot.sim.launch import partition
from bankshot.sim.launch.threads import THREADS, processors
from bankshot.sim.mechanisms import without
from bankshot.sim.run.prepared import dispatch_of
from tests.launch.test_thread_accesses import in_order

HEAD = """
@group(0) @binding(0) var<storage, read> x: array<u32, 64>;
@group(0) @binding(1) var<storage, read_write> y: array<u32, 64>;
@compute @workgroup_size(8) fn main(@builtin(global_invocation_id) id: vec3u) { let i = id.x;
"""


@pytest.mark.parametrize("setting", ["0", "-1", "two", "1.5", " "])
def test_a_number_of_threads_that_is_none_is_refused(setting, monkeypatch):
    monkeypatch.setenv(THREADS, setting)
    with pytest.raises(bankshot.WgslError, match="must be a positive integer"):
        processors()


def test_the_number_of_threads_is_that_asked_for(monkeypatch):
    for setting in ("1", "7"):
        monkeypatch.setenv(THREADS, setting)
        assert processors() == int(setting)
    monkeypatch.setenv(THREADS, "")
    assert 1 <= processors() <= (os.cpu_count() or 1)


@pytest.mark.parametrize(
    ("body", "policy", "threads"),
    [
        ("y[i] = x[i];", "clamp", [3]),
        ("y[i] = x[i + 8u];", "clamp", [3]),  # loads outside: each thread reads the same
        ("y[i + 8u] = x[i];", "clamp", [3, 1]),  # stores outside: all to the last element
        ("y[i + 8u] = x[i];", "zero", [3]),  # not stored at all
        ("y[i] = 3u * y[i];", "clamp", [3]),
        ("y[i] = y[i + 8u];", "clamp", [3, 1]),
    ],
)
def test_a_run_is_repeated_on_one_thread_where_several_may_store_to_a_word(body, policy, threads, monkeypatch):
    given = []

    def noted(piece, pieces, threads, *rest):
        given.append(threads)
        return run_parts(piece, pieces, threads, *rest)

    run_parts = in_order([*range(8)])
    monkeypatch.setattr(partition, "_WORTH", 1)
    monkeypatch.setenv(THREADS, "3")
    monkeypatch.setattr("bankshot.sim.launch.launch.run_parts", noted)
    bindings = {"x": np.arange(64, dtype=np.uint32), "y": np.zeros(64, np.uint32)}
    dispatch = dispatch_of(bankshot.check(f"{HEAD}{body} }}"), grid=8, bindings=bindings, out_of_bounds=policy)
    with without("side by side"):
        _, outcome = dispatch.run(frozenset({"bounds"}))
    assert given == threads
    assert outcome.stopped is None
