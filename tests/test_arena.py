"""The memory of a launch: what is copied into it, by however many threads, and that it stays as it was then."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from bankshot.sim.bindings.buffers import bind
from bankshot.sim.front_end import check
from bankshot.sim.launch.device_memory import make_arena, take
from bankshot.sim.launch.threads import THREADS, workgroups_per_batch

import bankshot

SHADER = """
@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read> b: array<u32>;
@group(0) @binding(2) var<storage, read_write> c: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { c[id.x] += a[id.x] ^ b[id.x]; }
"""
SIZES = [(1, 1, 1), (5, 70_000, 3), (1_000_000, 300_001, 800_000)]  # words of a, b and c


def given(sizes):
    generator = np.random.default_rng(len(sizes))
    return {name: generator.integers(0, 1 << 32, n, np.uint32) for name, n in zip("abc", sizes, strict=True)}


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("sizes", SIZES)
def test_bindings_lie_in_the_arena(sizes, threads, monkeypatch):
    monkeypatch.setenv(THREADS, str(threads))
    arrays = given(sizes)
    bound = bind(check(SHADER).pipeline("main", {}), arrays)
    device_memory = make_arena(bound)
    left = device_memory.words.view(np.uint8).copy()
    for each in bound:
        assert np.array_equal(device_memory.part(each).view(np.uint32), arrays[each.key])
        start = device_memory.places[each.variable.name]
        left[start : start + len(each.data)] = 0
    assert not left.any()  # nothing but zeros in between


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("sizes", SIZES)
def test_what_is_taken_stays(sizes, threads, monkeypatch):
    monkeypatch.setenv(THREADS, str(threads))
    arrays = given(sizes)
    before = {name: array.copy() for name, array in arrays.items()}
    kept, _ = take(bind(check(SHADER).pipeline("main", {}), arrays))
    for array in arrays.values():
        array[:] = 7
    assert all(np.array_equal(each.data.view(np.uint32), before[each.key]) for each in kept)


def test_a_run_is_of_what_was_given():
    """However large: outputs, and what is run again for them, know nothing of what the arrays are made afterwards."""
    arrays = given((640_000, 640_000, 640_000))
    run = bankshot.simulate(SHADER, grid=10_000, bindings=arrays, probes="none")
    wanted = arrays["c"] + (arrays["a"] ^ arrays["b"])
    for array in arrays.values():
        array[:] = 7
    assert np.array_equal(run.outputs["c"], wanted)
    assert run.writer("c", 639_999).workgroup == (9_999, 0, 0)


def test_work_is_shared():
    """This thread and another: both have to be there at once."""
    both, who = threading.Barrier(2, timeout=30), set()

    def work():
        who.add(threading.current_thread())
        both.wait()

    workgroups_per_batch(work, 2)
    assert threading.current_thread() in who
    assert len(who) == 2


@pytest.mark.parametrize("here", [True, False])
def test_what_fails_in_a_thread_is_told(here):
    both = threading.Barrier(2, timeout=30)

    def work():
        both.wait()
        if (threading.current_thread() is threading.main_thread()) == here:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        workgroups_per_batch(work, 2)
