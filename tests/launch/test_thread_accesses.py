"""Threads run workgroups in any order, and leave what one thread leaves: where they meet, one thread runs all again."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import bankshot
from bankshot.sim.launch import launch, partition
from bankshot.sim.launch.partition import Outcome
from bankshot.sim.launch.thread_accesses import ThreadAccesses, have_interfered, thread_accesses
from bankshot.sim.launch.threads import THREADS
from bankshot.sim.mechanisms import without
from bankshot.sim.run.prepared import dispatch_of
from tests.findings.test_random_accesses import make, make_on_one_word
from tests.findings.test_random_accesses import run as run_steps
from tests.launch.test_shadow_blocks import run_with

# ---- what a thread has accessed ----------------------------------------------------------------------

LAST = (1 << 16) * 32 + 40  # in the second part that is compared


def notes(stored: tuple[int, ...] = (), loaded: tuple[int, ...] = (), *, loads: bool = True) -> ThreadAccesses:
    made = thread_accesses(LAST + 1, loads=loads)
    for array, grains in ((made.stored, stored), (made.loaded, loaded)):
        for grain in grains:
            array[grain // 32] |= np.uint32(1 << grain % 32)
    return made


@pytest.mark.parametrize("grain", [0, 31, 32, LAST])
@pytest.mark.parametrize("loads", [True, False])
def test_two_threads_meet_where_both_store(grain: int, loads: bool) -> None:
    made = partial(notes, loads=loads)
    assert have_interfered([made((grain,)), made((grain,))])
    assert have_interfered([made((5, grain)), made(), made((7,)), made((6, grain))])
    assert not have_interfered([made((grain,)), made((5,)), made((7,))])


@pytest.mark.parametrize("grain", [0, 31, 32, LAST])
def test_two_threads_meet_where_one_loads_what_another_stores(grain: int) -> None:
    assert have_interfered([notes((grain,)), notes((), (grain,))])
    assert have_interfered([notes((), (grain,)), notes((5,)), notes((grain,))])
    assert not have_interfered([notes((), (grain,)), notes((5,), (grain,))])


def test_a_thread_does_not_meet_itself() -> None:
    assert not have_interfered([notes((3, LAST), (3, LAST)), notes((4,), (4,))])
    assert not have_interfered([notes((3,), (3,))])
    assert not have_interfered([])


# ---- what the machine notes --------------------------------------------------------------------------

HEAD = """
enable f16;
@group(0) @binding(0) var<storage, read_write> y: array<u32, 96>;
@group(0) @binding(1) var<storage, read_write> v: array<vec4u, 64>;
@group(0) @binding(2) var<storage, read_write> h: array<f16, 128>;
@group(0) @binding(3) var<storage, read> x: array<u32, 64>;
var<workgroup> t: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) l: u32, @builtin(workgroup_id) w: vec3u) {
    _ = &y; _ = &v; _ = &h; _ = &x; _ = &t;
"""
Meets = Callable[[str, str], bool]


@pytest.fixture
def meets(monkeypatch: pytest.MonkeyPatch) -> Iterator[Meets]:
    """Whether two threads meet, each of which runs one workgroup: `one` and `other`."""
    monkeypatch.setattr(partition, "_WORTH", 1)
    monkeypatch.setenv(THREADS, "2")
    monkeypatch.setattr(launch, "run_parts", in_order([0, 1]))

    def ran(one: str, other: str) -> bool:
        text = f"{HEAD} if w.x == 0u {{ {one} }} else {{ {other} }} }}"
        arrays = {"y": 96, "v": (64, 4), "x": 64}
        bindings: dict[str, Any] = {name: np.zeros(shape, np.uint32) for name, shape in arrays.items()}
        bindings["h"] = np.zeros(128, np.float16)
        made, _ = dispatch_of(text, grid=2, bindings=bindings).run(frozenset())
        return made.threads_interfered

    with without("history", "side by side"):
        yield ran


def in_order(order: list[int]) -> Callable[..., list[Outcome]]:
    """Return a `run_parts` that runs parts in this order if there are several threads, on one after the other."""

    def run_parts(
        run_part: Callable[[int, int, int], Outcome], parts: list[tuple[int, int]], threads: int, progress: Any
    ) -> list[Outcome]:
        if threads == 1 or len(parts) == 1:
            return partition.run_parts(run_part, parts, 1, progress)
        places = sorted(range(len(parts)), key=lambda place: order[place % len(order)])
        done = {place: run_part(*parts[place], place % threads) for place in places}
        return [done[place] for place in range(len(parts))]

    return run_parts


@pytest.mark.parametrize(
    ("one", "other", "met"),
    [
        ("y[l] = 1u;", "y[95u - l] = 2u;", True),
        ("if l < 48u { y[l] = 1u; }", "if l < 48u { y[95u - l] = 2u; }", False),
        ("if l <= 48u { y[l] = 1u; }", "if l < 48u { y[95u - l] = 2u; }", True),
        ("if l % 2u == 0u { y[l] = 1u; }", "if l % 2u == 1u { y[l] = 1u; }", False),
        ("y[7] = l;", "y[8] = l;", False),
        ("y[7] = l;", "if l == 9u { y[7] = l; }", True),
        ("y[l + 40u] = 1u;", "y[95] = 2u;", True),  # the last is clamped
        ("y[l + 40u] = 1u;", "y[39] = 2u;", False),
        # lanes that come back to a word
        ("y[l * 37u % 96u] = 1u;", "y[27] = 1u;", True),  # the last
        ("y[l * 37u % 96u] = 1u;", "y[0] = 1u;", True),  # the first
        ("y[l * 37u % 96u] = 1u;", "y[64] = 1u;", False),
        # loads of what is stored
        ("y[0] = y[l + 1u];", "y[64] = 1u;", True),
        ("y[0] = y[l + 1u];", "y[65] = 1u;", False),
        ("y[0] = y[9];", "if l == 3u { y[9] = 1u; }", True),
        # inactive lanes load nothing
        ("if l < 20u { y[0] = y[95u - l]; }", "if l < 20u { y[95u - 20u - l] = 1u; }", False),
        ("if l < 20u { y[0] = y[95u - l]; }", "if l < 20u { y[95u - 19u - l] = 1u; }", True),
        ("y[0] = y[200u + l];", "y[95] = 1u;", True),
        ("for (var k = 0u; k < 3u; k++) { y[0] += y[l / 4u * 3u + k + 1u]; }", "y[48] = 1u;", True),
        ("for (var k = 0u; k < 3u; k++) { y[0] += y[l / 4u * 3u + k + 1u]; }", "y[49] = 1u;", False),
        # vectors and their components
        ("v[l] = vec4u(1u);", "v[63].w = 2u;", True),
        ("if l < 63u { v[l] = vec4u(1u); }", "v[63] = vec4u(2u);", False),
        ("v[l].x = 1u;", "v[l].y = 1u;", False),
        ("v[l].z = 1u;", "v[17].z = 1u;", True),
        ("y[0] = v[l].x; v[0].y = 1u;", "v[l / 2u + 1u].z = 1u;", False),
        ("y[0] = v[l].x; v[0].y = 1u;", "v[9].x = 1u;", True),
        # four stores side by side
        ("let p = l / 3u * 4u; y[p] = 1u; y[p + 1u] = 1u; y[p + 2u] = 1u; y[p + 3u] = 1u;", "y[87] = 1u;", True),
        ("let p = l / 3u * 4u; y[p] = 1u; y[p + 1u] = 1u; y[p + 2u] = 1u; y[p + 3u] = 1u;", "y[88] = 1u;", False),
        # halves of words
        ("h[2u * l] = 1h;", "h[2u * l + 1u] = 1h;", False),
        ("h[2u * l] = 1h;", "h[126] = 1h;", True),
        ("h[0] = 1h; y[l + 30u] = 1u;", "y[29] = 1u;", False),
        ("h[0] = 1h; y[l + 30u] = 1u;", "y[93] = 1u;", True),
        # memory that threads do not share, or that none changes
        ("t[l] = l; y[0] = x[l];", "t[l] = l; y[1] = x[l];", False),
    ],
)
def test_threads_meet_in_a_grain(one: str, other: str, met: bool, meets: Meets) -> None:
    assert meets(one, other) == met
    assert meets(other, one) == met


@pytest.mark.parametrize("length", [1, 31, 32, 33, 63])
@pytest.mark.parametrize("start", [0, 1, 31, 32])
def test_every_grain_of_a_range_is_noted(start: int, length: int, meets: Meets) -> None:
    stores = f"if l < {length}u {{ y[l + {start}u] = 1u; }}"
    inside = [meets(stores, f"y[{place}] = 2u;") for place in (start, start + length - 1)]
    outside = [meets(stores, f"y[{place}] = 2u;") for place in (start - 1, start + length) if 0 <= place < 96]
    assert all(inside)
    assert not any(outside)


# ---- any order ---------------------------------------------------------------------------------------

PROBES: tuple[Any, ...] = ("none", "all", ("lanes", "sectors", "bounds"))


def steps(seed: int, **options: Any) -> bankshot.Run:
    size, groups = ((8, 3), (13, 5), (32, 4), (64, 3))[seed % 4]
    return run_steps((make, make_on_one_word)[seed % 2](seed, size, groups), size, groups, **options)


def told(run: bankshot.Run) -> tuple[object, ...]:
    found = [(str(each), each.verdict, each.count, [str(note) for note in each.notes]) for each in run.findings]
    sites = [site.counts() for site in run.sites]
    return found, sites, repr(list(run.counters.items())), {name: data.tobytes() for name, data in run.outputs.items()}


@pytest.mark.parametrize("probes", PROBES, ids=str)
@pytest.mark.parametrize("chunk", range(4))
@pytest.mark.parametrize("case", [run_with, steps])
def test_no_order_of_parts_changes_what_a_run_tells(
    case: Callable[..., bankshot.Run], chunk: int, probes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither does which of three threads runs them. Some of the kernels race, others work in place."""
    monkeypatch.setattr(partition, "_WORTH", 1)
    shuffled, met = random.Random(chunk), list[bool]()
    run = launch.Launch.run
    monkeypatch.setattr(
        launch.Launch, "run", lambda self, *progress: (run(self, *progress), met.append(self.threads_interfered))[0]
    )
    for seed in range(chunk * 8, chunk * 8 + 8):
        with without("history", "side by side"):
            monkeypatch.setenv(THREADS, "1")
            expected = told(case(seed, probes=probes))
            monkeypatch.setenv(THREADS, "3")
            for _ in range(2):
                with monkeypatch.context() as patch:
                    patch.setattr(launch, "run_parts", in_order(shuffled.sample(range(64), 64)))
                    assert told(case(seed, probes=probes)) == expected
    assert {*met} == {True, False}


IN_PLACE = """
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
    let i = id.y * (n.x * 64u) + id.x;
    if i < arrayLength(&y) { y[i] = y[i] * 2.0 + 1.0; }
}"""


@pytest.mark.parametrize("probes", PROBES, ids=str)
def test_a_kernel_that_works_in_place_runs_once_on_all_threads(probes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "_WORTH", 1)
    monkeypatch.setenv(THREADS, "2")
    used: list[set[int]] = []
    run_parts = in_order([0])

    def noted(
        run_part: Callable[[int, int, int], Outcome], parts: list[tuple[int, int]], threads: int, progress: Any
    ) -> list[Outcome]:
        used.append(set())
        return run_parts(lambda a, b, n: (used[-1].add(n), run_part(a, b, n))[1], parts, threads, progress)

    monkeypatch.setattr(launch, "run_parts", noted)
    given = np.arange(1000, dtype=np.float32)
    run = bankshot.simulate(IN_PLACE, grid=(5, 4), bindings={"y": given}, probes=probes)
    np.testing.assert_array_equal(run.outputs["y"], given * 2 + 1)
    assert used == [{0, 1}]
