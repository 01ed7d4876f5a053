"""Device memory: bindings are copied into it, on any number of threads, and later changes do not show."""

from __future__ import annotations

import resource
import threading
from pathlib import Path

import numpy as np
import pytest

import bankshot
from bankshot.sim.bindings.buffers import bind
from bankshot.sim.front_end import check
from bankshot.sim.launch import device_memory
from bankshot.sim.launch.device_memory import make_device_memory, snapshot
from bankshot.sim.launch.threads import THREADS, run_on_threads

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
def test_device_memory_has_all_bindings(sizes, threads, monkeypatch):
    monkeypatch.setenv(THREADS, str(threads))
    arrays = given(sizes)
    bound = bind(check(SHADER).pipeline("main", {}), arrays)
    memory = make_device_memory(bound)
    left = memory.words.view(np.uint8).copy()
    for each in bound:
        assert np.array_equal(memory.part(each).view(np.uint32), arrays[each.key])
        start = memory.places[each.variable.name]
        left[start : start + len(each.data)] = 0
    assert not left.any()  # nothing but zeros in between


@pytest.mark.parametrize("sizes", SIZES)
def test_a_snapshot_shares_what_no_run_writes(sizes):
    arrays = given(sizes)
    bound = bind(check(SHADER).pipeline("main", {}), arrays)
    kept, memory = snapshot(bound)
    for each in bound:
        assert np.array_equal(memory.part(each).view(np.uint32), arrays[each.key])
    for each in kept:
        assert np.array_equal(each.data.view(np.uint32), arrays[each.key])
        assert np.shares_memory(each.data, memory.words) == (each.key != "c")
        assert not np.shares_memory(each.data, arrays[each.key])


@pytest.mark.parametrize("sizes", SIZES)
def test_writable_bindings_come_first(sizes):
    memory = make_device_memory(bind(check(SHADER).pipeline("main", {}), given(sizes)))
    assert memory.places["c"] == 0
    assert 0 < 4 * sizes[2] <= memory.places["a"] < memory.places["b"]


@pytest.mark.parametrize("words", [1, 15, 16, 17, 1000])
def test_words_begin_with_a_cache_line(words):
    """Of 64 bytes, wherever the allocation begins."""
    for offset in range(16):

        def make(count, dtype, offset=offset):
            room = np.zeros(count + 32, np.uint32)
            first = (-room.ctypes.data % 64) // 4 + offset
            return room[first : first + count]

        found = device_memory._lined_up(make, words)
        assert (found.ctypes.data % 64, len(found)) == (0, words)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("sizes", SIZES)
def test_a_snapshot_does_not_change(sizes, threads, monkeypatch):
    monkeypatch.setenv(THREADS, str(threads))
    arrays = given(sizes)
    before = {name: array.copy() for name, array in arrays.items()}
    kept, _ = snapshot(bind(check(SHADER).pipeline("main", {}), arrays))
    for array in arrays.values():
        array[:] = 7
    assert all(np.array_equal(each.data.view(np.uint32), before[each.key]) for each in kept)


def test_a_run_uses_the_arrays_as_they_were():
    """Of any size: changing the arrays afterwards affects neither outputs nor the replays that compute them."""
    arrays = given((640_000, 640_000, 640_000))
    run = bankshot.simulate(SHADER, grid=10_000, bindings=arrays, probes="none")
    wanted = arrays["c"] + (arrays["a"] ^ arrays["b"])
    for array in arrays.values():
        array[:] = 7
    assert np.array_equal(run.outputs["c"], wanted)
    assert run.writer("c", 639_999).workgroup == (9_999, 0, 0)


def test_two_threads_work_at_once():
    """The calling thread and another meet at a barrier."""
    both, who = threading.Barrier(2, timeout=30), set()

    def work():
        who.add(threading.current_thread())
        both.wait()

    run_on_threads(work, 2)
    assert threading.current_thread() in who
    assert len(who) == 2


@pytest.mark.parametrize("here", [True, False])
def test_errors_of_a_thread_are_raised(here):
    both = threading.Barrier(2, timeout=30)

    def work():
        both.wait()
        if (threading.current_thread() is threading.main_thread()) == here:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_on_threads(work, 2)


@pytest.mark.parametrize("threads", [1, 2])
def test_large_bindings_are_copied_where_they_are_not_zero(threads, monkeypatch):
    monkeypatch.setenv(THREADS, str(threads))
    arrays = {name: np.zeros(4_000_000, np.uint32) for name in "abc"}
    arrays["a"][[0, 999_999, 3_999_999]] = 1 << 31, 2, 3
    arrays["c"][1_234_567] = 4 << 8
    bound = bind(check(SHADER).pipeline("main", {}), arrays)
    kept, device_memory = snapshot(bound)
    for found in ({each.key: device_memory.part(each) for each in bound}, {each.key: each.data for each in kept}):
        assert all(np.array_equal(found[name].view(np.uint32), arrays[name]) for name in "abc")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux, where a process can read its size")
def test_large_outputs_that_are_zero_take_no_memory_before_they_are_stored_to():
    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    arrays = {"a": np.ones(1, np.uint32), "b": np.ones(1, np.uint32), "c": np.zeros(32_000_000, np.uint32)}
    bound = bind(check(SHADER).pipeline("main", {}), arrays)
    assert not arrays["c"].any()  # its pages exist from now on
    before = resident()
    kept, device_memory = snapshot(bound)
    assert resident() - before < arrays["c"].nbytes // 8
    assert sum(len(each.data) for each in kept) <= device_memory.words.nbytes
