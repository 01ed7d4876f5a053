"""Shadow memory by blocks, and used by one run after another, finds what fresh shadow memory by grains finds.

The kernels load and store storage regularly and irregularly: whole elements and components, shifted, reversed, strided,
out of bounds, by some invocations, in loops and with barriers in between.
"""

from __future__ import annotations

import random
import threading
from typing import Any

import numpy as np
import pytest

import bankshot
from bankshot.sim.launch import launch, partition, race_tables, shadow_pool, thread_accesses
from bankshot.sim.launch.launch_cache import LAUNCH_SETUPS
from bankshot.sim.launch.threads import THREADS
from bankshot.sim.launch.workspace import Workspace
from bankshot.sim.machine import layout as at
from bankshot.sim.mechanisms import without
from bankshot.sim.run.prepared import dispatch_of

HEAD = """
struct Two { first: vec2f, second: f32 }
struct Tail { count: f32, data: array<f32> }
@group(0) @binding(0) var<storage, read_write> a: array<f32>;
@group(0) @binding(1) var<storage, read_write> b: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> c: Tail;
@group(0) @binding(3) var<storage, read_write> d: array<Two>;
@group(0) @binding(4) var<storage, read_write> e: array<vec3f>;
@group(0) @binding(5) var<storage, read> places: array<u32>;
"""
SCALARS = ("a[{}]", "b[{}].y", "b[{}].w", "c.data[{}]", "d[{}].second", "d[{}].first.y", "e[{}].z")
WHOLE = ("a[{}]", "b[{}]", "c.data[{}]", "d[{}].first", "e[{}]")
PLACES = (
    *("i", "i", "i", "i + 1u", "i + 16u", "i ^ 1u", "i / 2u", "i * 2u", "i % 16u", "i & 48u", "199u - i", "places[i]"),
    *("i + 150u", "id.x + 32u * id.y", "3u"),
)
WHEN = ("", "", "", "if i < 37u", "if l < 5u", "if i % 2u == 0u", "if i != 20u", "if w.x == 1u")
SIZES = ("16", "20", "64", "16, 4", "8, 4", "33")
GRAIN_TYPES = ("", "enable f16;\n@group(0) @binding(6) var<storage, read_write> f: array<f16>;")


def kernel(seed: int) -> str:
    """Make a kernel of a few steps: loads and stores of elements and components, and barriers."""
    rng = random.Random(seed)
    halves = rng.choice(GRAIN_TYPES)
    forms = (*SCALARS, *WHOLE, *(("f[{}]",) if halves else ()))
    steps = []
    for number in range(rng.choice((2, 3, 4, 6))):
        if rng.random() < 0.15:
            steps.append(f"{rng.choice(('storage', 'storage', 'workgroup'))}Barrier();")
            continue
        place = rng.choice(PLACES) if rng.random() < 0.6 else "i"
        form = rng.choice(forms[: rng.choice((1, 3, len(forms)))]).format(place)
        loads = rng.random() < 0.45
        step = f"sum += f32({form}{components(form)});" if loads else f"{form} = {value(form, rng)};"
        turns = rng.choice(("", "", "", f"for (var k{number} = 0u; k{number} < 2u; k{number}++)"))
        steps.append(f"{turns} {{ {rng.choice(WHEN)} {{ {step} }} }}")
    body = "\n    ".join(steps)
    return f"""{halves.split(chr(10))[0]}{HEAD}{halves.partition(chr(10))[2]}
@compute @workgroup_size({rng.choice(SIZES)})
fn main(@builtin(local_invocation_index) l: u32, @builtin(workgroup_id) w: vec3u, @builtin(num_workgroups) n: vec3u,
        @builtin(global_invocation_id) id: vec3u) {{
    let i = l + w.x * 32u;
    var sum = f32(l);
    {body}
    _ = &a; _ = &b; _ = &c; _ = &d; _ = &e; _ = &places;
    a[i + 300u] = sum;
}}"""


def components(form: str) -> str:
    is_vector = form.endswith("]") and form[0] in "be"
    return ".x" if is_vector or form.endswith(".first") else ""


def value(form: str, rng: random.Random) -> str:
    number = rng.choice(("1.0", "f32(l)", "sum"))
    whole = form.endswith("]")
    if form.startswith("f["):
        return f"f16({number})"
    if form.endswith(".first"):
        return f"vec2f({number})"
    return f"vec4f({number})" if whole and form.startswith("b[") else (
        f"vec3f({number})" if whole and form.startswith("e[") else number
    )  # fmt: skip


def run_with(seed: int, **options: Any) -> bankshot.Run:
    bindings = {
        "a": np.arange(500, dtype=np.float32),
        "b": np.ones((200, 4), np.float32),
        "c": np.ones(201, np.float32),
        "d": np.ones((200, 4), np.float32),
        "e": np.ones((200, 4), np.float32),
        "places": np.random.default_rng(seed).permutation(200).astype(np.uint32),
    }
    text = kernel(seed)
    if "f16" in text:
        bindings["f"] = np.ones(200, np.float16)
    return bankshot.simulate(text, grid=4, bindings=bindings, **options)


def run_of(seed: int) -> bankshot.Run:
    return run_with(seed, probes=("races", "bounds", "uninit", "lanes"), replay=False)


def told(seed: int) -> tuple[object, ...]:
    """Return all that a run of a kernel tells, but for the values of racing outputs."""
    run = run_of(seed)
    found = [f"{each} {each.count} {[str(note) for note in each.notes]}" for each in run.findings]
    return found, dict(run.counters.items()), {name: data.tobytes() for name, data in run.outputs.items()}


@pytest.fixture
def by_grains(monkeypatch):
    """Shadow memory without blocks, and fresh for each run."""

    def result(seed):
        with monkeypatch.context() as patch:
            patch.setattr(race_tables, "_BY_GRAINS", frozenset(("races",)))
            patch.setattr(race_tables, "SHADOWS", shadow_pool.ShadowPool(0))
            patch.setenv(THREADS, "1")
            LAUNCH_SETUPS._kept.clear()
            try:
                return told(seed)
            finally:
                LAUNCH_SETUPS._kept.clear()

    return result


@pytest.fixture
def no_pool(monkeypatch):
    """Shadow memory that no other run uses: what a run with few records leaves is of no use to one with all."""
    for module in (race_tables, launch):
        monkeypatch.setattr(module, "SHADOWS", shadow_pool.ShadowPool(0))


@pytest.fixture
def one_pool(monkeypatch):
    """Shadow memory that only these runs use, one after the other."""
    pool = shadow_pool.ShadowPool(1 << 24)
    for module in (race_tables, launch):
        monkeypatch.setattr(module, "SHADOWS", pool)


@pytest.mark.parametrize("chunk", range(6))
def test_blocks_find_what_grains_find(chunk, by_grains, one_pool, monkeypatch):
    seeds = range(chunk * 25, chunk * 25 + 25)
    expected = [by_grains(seed) for seed in seeds]
    assert any(found for found, _, _ in expected)
    assert [told(seed) for seed in seeds] == expected
    monkeypatch.setattr(partition, "_WORTH", 1)  # parts of one batch, so that both threads have some
    monkeypatch.setattr(partition, "_PATIENCE", 0)
    monkeypatch.setenv(THREADS, "2")
    assert [told(seed) for seed in seeds] == expected


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("recorded", [16, 512])
def test_where_records_have_no_room_the_run_says_so(recorded, threads, no_pool, monkeypatch):
    """It finds no pair of accesses that is not there, and all that is there unless it says that it watched in part."""

    def pairs(run):
        spans = [(each.code, [each.span, *(note.span for note in each.notes)]) for each in run.findings]
        return {(code, *[span.start for span in some if span is not None]) for code, some in spans}

    def others(run):
        return dict(run.counters.items()), {name: data.tobytes() for name, data in run.outputs.items()}

    seeds = range(40)
    expected = [run_of(seed) for seed in seeds]
    monkeypatch.setattr(shadow_pool, "RECORDED", recorded)
    monkeypatch.setattr(partition, "_WORTH", 1)
    monkeypatch.setattr(partition, "_PATIENCE", 0)
    monkeypatch.setenv(THREADS, threads)
    in_part = 0
    for seed, whole in zip(seeds, expected, strict=True):
        found = run_of(seed)
        assert others(found) == others(whole)
        assert pairs(found) == pairs(whole) or (found.coverage.unwatched and pairs(found) < pairs(whole))
        in_part += found.coverage.unwatched > 0
    assert 5 < in_part < 40


def test_accesses_without_records_are_counted(no_pool, monkeypatch):
    """Of 64 invocations, 48 store past the 16 grains that have records."""
    monkeypatch.setattr(shadow_pool, "RECORDED", 16)
    text = """@group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) { y[i * 37u % 64u] = i; }"""
    run = bankshot.simulate(text, grid=1, bindings={"y": np.zeros(64, np.uint32)})
    assert run.coverage.unwatched == 48
    assert "watched in part: races were not looked for in 48 accesses" in str(run.coverage)
    text = text.replace("i * 37u % 64u", "i")
    run = bankshot.simulate(text, grid=1, bindings={"y": np.zeros(64, np.uint32)})
    assert run.coverage.unwatched == 0
    assert "in part" not in str(run.coverage)


def test_regular_accesses_split_only_spans_in_part_and_blocks_of_two_workgroups(one_pool):
    """Else the comparison above would compare grains with grains.

    The elements of `c` begin one word into a block, so that its spans are split, and three blocks that have words of
    two workgroups: they are not recorded.
    """
    text = (
        HEAD
        + """
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
            a[id.x] += 1.0; b[id.x] = 2.0 * b[id.x]; c.data[id.x] = a[id.x]; d[id.x].second = 1.0;
            _ = &e; _ = &places;
        }"""
    )
    bindings = {"a": 256, "b": 1024, "c": 257, "d": 1024, "e": 4, "places": 1}
    given = {name: np.ones(size, np.uint32 if name == "places" else np.float32) for name, size in bindings.items()}
    assert not bankshot.simulate(text, grid=4, bindings=given, probes="races").findings
    shadow = race_tables.SHADOWS.take(1)
    assert np.count_nonzero(shadow.arrays.covers[at.WRITER]) == (256 + 1024 + 1024) // 64 + 256 // 16 + 1 - 3
    assert np.count_nonzero(shadow.arrays.stamps[at.WRITER]) == 3 * 16
    assert not shadow.arrays.stamps[at.READER :].any()


def test_spans_are_whole_under_a_guard_that_all_lanes_pass(one_pool):
    text = """@group(0) @binding(0) var<storage, read_write> a: array<f32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
            if id.x < arrayLength(&a) { a[id.x] *= 2.0; }
        }"""
    bankshot.simulate(text, grid=4, bindings={"a": np.ones(256, np.float32)}, probes="races")
    shadow = race_tables.SHADOWS.take(1)
    for who in (at.WRITER, at.READER):
        assert np.count_nonzero(shadow.arrays.covers[who]) == 256 // 64


def test_a_program_whose_stores_overlap_is_not_run_twice_again(monkeypatch):
    """Two threads may both store to word 0: their run does not count. The next run takes one thread from the start."""
    monkeypatch.setattr(partition, "_WORTH", 1)
    monkeypatch.setattr(partition, "_PATIENCE", 0)
    monkeypatch.setattr(launch, "have_interfered", lambda threads: any(len(each.stored) > 1 for each in threads))
    monkeypatch.setenv(THREADS, "2")
    runs = []
    run = launch.Launch._outcomes
    monkeypatch.setattr(launch.Launch, "_outcomes", lambda self, *parts: (runs.append(self), run(self, *parts))[1])
    module = bankshot.check("""
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x / 512u] = id.x; }""")
    for expected in (2, 1, 1):
        runs.clear()
        bankshot.simulate(module, grid=64, bindings={"y": np.zeros(8, np.uint32)}, probes="races", replay=False)
        assert len(runs) == expected


@pytest.fixture
def on_two_threads(monkeypatch):
    """Two threads run the two workgroups of the first run, one each. Gives the runs that begin."""
    both, runs = threading.Barrier(2, timeout=30), []
    run, launched = Workspace.run, launch.Launch._outcomes

    def together(self, first, last):
        if len(runs) == 1:
            both.wait()
        return run(self, first, last)

    monkeypatch.setattr(partition, "_WORTH", 1)
    monkeypatch.setenv(THREADS, "2")
    monkeypatch.setattr(Workspace, "run", together)
    monkeypatch.setattr(launch.Launch, "_outcomes", lambda self, *parts: (runs.append(self), launched(self, *parts))[1])
    with without("history"):
        yield runs


def two_workgroups(stride):
    """Two workgroups that store numbers of their own, `stride` elements apart."""
    text = f"""
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(256)
        fn main(@builtin(local_invocation_index) l: u32, @builtin(workgroup_id) w: vec3u) {{
            y[l + {stride}u * w.x] = w.x;
        }}"""
    return dispatch_of(text, grid=2, bindings={"y": np.zeros(512, np.uint32)})


@pytest.mark.parametrize(
    ("probes", "off"), [(("races",), ()), (("races",), ("blocks",)), (("races", "components"), ())]
)
def test_races_of_workgroups_on_two_threads_are_counted(probes, off, on_two_threads):
    """Whether shadow memory has records of blocks or only of grains."""
    with without(*off):
        _, outcome = two_workgroups(0).run(frozenset(probes))
    assert race_tables.race_rows(outcome.races)[:, at.RACE_TIMES].tolist() == [256]
    assert len(on_two_threads) == 2  # the second on one thread


@pytest.mark.parametrize("off", [(), ("blocks",)])
@pytest.mark.parametrize(("stride", "runs"), [(0, 2), (255, 2), (256, 1)])
@pytest.mark.parametrize("part", [1, 3, 1 << 16])
def test_stores_of_two_threads_overlap_in_a_shared_element(part, stride, runs, off, on_two_threads, monkeypatch):
    monkeypatch.setattr(thread_accesses, "_PART", part)
    with without(*off):
        two_workgroups(stride).run(frozenset(("races",)))
    assert len(on_two_threads) == runs


@pytest.mark.parametrize(("stride", "runs"), [(0, 2), (255, 2), (256, 1)])
@pytest.mark.parametrize("off", [(), ("blocks",)])
def test_stores_without_records_overlap_only_with_those_of_the_same_run(
    off, stride, runs, one_pool, on_two_threads, monkeypatch
):
    """The first 16 elements have records. An earlier run on the same shadow memory stored to
    every element."""
    monkeypatch.setattr(shadow_pool, "RECORDED", 16)
    two_workgroups(256).run(frozenset(("races",)))
    on_two_threads.clear()
    with without(*off):
        two_workgroups(stride).run(frozenset(("races",)))
    assert len(on_two_threads) == runs
