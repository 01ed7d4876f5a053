"""Device memory: bindings are copied into it, on any number of threads, and later changes do not show."""

from __future__ import annotations

import gc
import resource
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

import bankshot
from bankshot.sim.bindings.buffers import bind
from bankshot.sim.front_end import check
from bankshot.sim.launch import device_memory, launch
from bankshot.sim.launch.device_memory import SpareMemory, make_device_memory, snapshot
from bankshot.sim.launch.threads import THREADS, run_on_threads
from bankshot.sim.machine.compile.loader import address_of
from bankshot.sim.mechanisms import without

SHADER = """
@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read> b: array<u32>;
@group(0) @binding(2) var<storage, read_write> c: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { c[id.x] += a[id.x] ^ b[id.x]; }
"""
SIZES = [  # words of a, b and c
    *((1, 1, 1), (1500, 1, 2000), (3000, 1, 2000)),
    *((5, 70_000, 3), (1_000_000, 300_001, 800_000)),
]


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

        found = device_memory.lined_up(make, words)
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
    """Changing the arrays afterwards affects neither outputs nor the replays that compute them."""
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


# ---- memory that reruns use one after the other ----


def lasting(sizes=(300_000, 300_000, 300_000)):
    return snapshot(bind(check(SHADER).pipeline("main", {}), given(sizes)))[0]


def test_spare_memory_is_used_again_once_nothing_views_it():
    bound, spare = lasting(), SpareMemory()
    first = spare.make(bound)
    address, view = first.words.ctypes.data, first.part(bound[2])[:8]
    del first
    second = spare.make(bound)
    assert second.words.ctypes.data != address  # the view still uses the first
    del view
    third = spare.make(bound)
    assert third.words.ctypes.data == address


def test_nothing_is_spare_after_it_is_closed():
    """Neither what was spare, nor what is freed later."""
    bound, spare = lasting(), SpareMemory()
    one, two = spare.make(bound), spare.make(bound)
    rooms = [weakref.ref(each.words) for each in (one, two)]
    del one
    spare.close()
    del two
    gc.collect()
    assert spare._rooms == []
    assert all(np.array_equal(spare.make(bound).part(each), each.data) for each in bound)
    assert [room() for room in rooms] == [None, None]


def test_spare_memory_holds_the_bindings_again():
    bound, spare = lasting(), SpareMemory()
    memory = spare.make(bound)
    for each in bound:
        if each.writable:
            memory.part(each)[:] = 7
    address = memory.words.ctypes.data
    del memory
    again = spare.make(bound)
    assert again.words.ctypes.data == address
    assert all(np.array_equal(again.part(each), each.data) for each in bound)


@pytest.mark.parametrize("sizes", [(300_000, 300_000, 300_001), (300_000, 300_000, 300_000)])
def test_spare_memory_of_other_bindings_is_not_used(sizes):
    """Of another size, or with other contents that no run would write."""
    spare, bound = SpareMemory(), lasting(sizes)
    others = lasting()
    for each in others:
        each.data[:] = 7
    spare.make(others)
    assert all(np.array_equal(spare.make(bound).part(each), each.data) for each in bound)


def test_reruns_use_spare_memory(monkeypatch):
    """A race whose verdict takes several reruns: all but the first find the memory of the one before."""
    made = []
    whole = device_memory.make_device_memory
    monkeypatch.setattr(device_memory, "make_device_memory", lambda bound: made.append(1) or whole(bound))
    text = SHADER.replace("c[id.x] += a[id.x] ^ b[id.x];", "c[id.x] = a[id.x] + b[0] + min(0u, c[id.x / 2u]);")
    arrays = given((300_000, 300_000, 300_000))

    def runs():
        made.clear()
        return bankshot.simulate(text, grid=2_000, bindings=arrays, probes="races", cures=False), len(made)

    run, with_spare = runs()
    with without("spare memory"):
        again, alone = runs()
    assert with_spare < alone
    assert [str(each) for each in run.findings] == [str(each) for each in again.findings]
    assert run.findings


LARGE = (3_000_000, 1, 2_500_001)  # words that the allocator would not keep


def test_the_next_run_uses_the_memory_of_one_that_has_ended():
    """It holds what the next one is given, with nothing but zeros in between."""
    bound = bind(check(SHADER).pipeline("main", {}), given(LARGE))
    memory = make_device_memory(bound)
    first = address_of(memory.words)
    memory.words[:] = 0xFFFFFFFF
    del memory
    gc.collect()
    zeros = [np.zeros(n, np.uint32) for n in LARGE]
    bound = bind(check(SHADER).pipeline("main", {}), dict(zip("abc", zeros, strict=True)))
    memory = make_device_memory(bound)
    assert address_of(memory.words) == first
    assert not memory.words.any()


def test_memory_that_something_still_views_is_not_used_again():
    bound = bind(check(SHADER).pipeline("main", {}), given(LARGE))
    memory = make_device_memory(bound)
    view = memory.part(bound[0])[100:200]
    first = address_of(memory.words)
    del memory
    gc.collect()
    assert address_of(make_device_memory(bound).words) != first
    assert view.tolist() == bound[0].data[100:200].tolist()


# ---- large bindings, which runs keep no copy of ----

DOUBLED = """
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { x[id.x] *= 2u; }
"""


@pytest.fixture
def borrowed(monkeypatch):
    """Bindings from 4,096 bytes on count as large."""
    for module in (device_memory, launch):
        monkeypatch.setattr(module, "BORROWED", 4096)


def doubled(array):
    return bankshot.simulate(DOUBLED, grid=32, bindings={"x": array}, probes="none")


def test_a_large_binding_is_not_copied_and_its_output_is_not_either(borrowed):
    array = np.arange(2048, dtype=np.uint32)
    run = doubled(array)
    (kept,) = run.dispatch.bound
    assert np.shares_memory(kept.data, array)
    assert run.outputs["x"].base is not None
    assert run.outputs["x"].tolist() == (2 * array).tolist()
    assert run.writer("x", 2047).workgroup == (31, 0, 0)


@pytest.mark.parametrize(("read", "is_view"), [(1024, True), (1536, True), (6144, False)])
def test_a_large_output_is_a_view_where_it_is_most_of_the_memory(borrowed, read, is_view):
    """It has 8,192 bytes; beside it, half as many are only read, nearly as many, or three times as many."""
    arrays = {"a": np.ones(read, np.uint32), "b": np.ones(1, np.uint32), "c": np.ones(2048, np.uint32)}
    text = SHADER.replace("b[id.x]", "b[0]").replace("a[id.x]", "a[id.x / 2u]")
    output = bankshot.simulate(text, grid=32, bindings=arrays, probes="none").outputs["c"]
    assert (output.base is not None) == is_view
    assert output.tolist() == [1] * 2048


def test_what_needs_a_large_binding_that_has_changed_is_an_error(borrowed):
    array = np.arange(2048, dtype=np.uint32)
    run = doubled(array)
    array[2000] += 1
    with pytest.raises(bankshot.WgslError, match="x has changed since the run, which kept no copy of its 8,192 bytes"):
        run.writer("x", 0)
    assert run.outputs["x"].tolist() == (2 * np.arange(2048)).tolist()
    array[2000] -= 1
    assert doubled(array).writer("x", 0).lane == 0


def test_large_zeros_are_kept_as_they_were(borrowed):
    """They take no memory."""
    array = np.zeros(2048, np.uint32)
    run = doubled(array)
    array[:] = 1
    assert run.writer("x", 0).lane == 0


def test_other_bindings_are_copied():
    array = np.ones(2048, np.uint32)
    run = doubled(array)
    array[:] = 3
    assert run.writer("x", 0).lane == 0
    assert not np.shares_memory(run.dispatch.bound[0].data, array)
