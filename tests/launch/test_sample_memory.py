"""Sampled workgroups run in memory that is filled as they access it, and access the same words as in a copy of it."""

from dataclasses import replace

import numpy as np
import pytest

import bankshot
from bankshot.sim.codegen.build import build
from bankshot.sim.launch import device_memory, launch, sample_memory
from bankshot.sim.launch.device_memory import make_device_memory
from bankshot.sim.launch.launch import Launch
from bankshot.sim.launch.sample_memory import Parts, SampleMemory, bytes_of
from bankshot.sim.models import Cost, MeasuredCosts, get
from bankshot.sim.run.dispatch import Dispatch
from bankshot.sim.run.workgroup_sample import SAMPLED

HEAD = """\
enable f16;
struct Row { a: vec3f, b: f32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<storage, read_write> n: array<atomic<u32>>;
@group(0) @binding(3) var<storage, read_write> h: array<f16>;
@group(0) @binding(4) var<storage, read> s: array<Row>;
@group(0) @binding(5) var<uniform> u: vec4u;
@group(0) @binding(6) var t: texture_2d<f32>;
@compute @workgroup_size(48)
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u) {
  let g = w.x * 48u + i;
"""
BODIES = {
    "consecutive": "y[g] = u32(x[g]);",
    "one address": "y[g] = u32(x[w.x]);",
    "strided": "y[g] = u32(x[(g * 5u) % 700u]);",
    "some lanes": "if i % 3u == 1u { y[g] = u32(x[g]); }",
    "indirect": "let k = y[y[g] % 500u] % 500u; y[k] = u32(x[k]) + 1u;",
    "in place": "let k = y[g] % 500u; y[g] = 7u; workgroupBarrier(); y[k] += u32(x[k]);",
    "atomic": "y[atomicAdd(&n[g % 7u], 1u) % 500u] = atomicMax(&n[100u + g], 5u);",
    "atomic loads": "if atomicLoad(&n[g]) > 40u { atomicStore(&n[g + 1u], 0u); }",
    "halves": "h[g] = h[(g + 3u) % 402u] + 1h;",
    "vectors": "y[g] = u32(s[g % 60u].a.y + s[(3u * g) % 60u].b);",
    "out of bounds": "y[g + 400u] = u32(x[g * 9u]) + u32(h[g + 300u]);",
    "uniform": "y[u.y + g] = u.x;",
    "texture": "y[g] = u32(textureLoad(t, vec2u(g % 9u, w.x), 0).x);",
    "past the texture": "y[g] = u32(textureLoad(t, vec2u(g, w.x), 0).x);",
}


def dispatch(body: str, policy: str = "clamp", grid: int = 6) -> Dispatch:
    random = np.random.default_rng(1)
    given = {
        "x": random.uniform(0, 500, 701).astype(np.float32),
        "y": random.integers(0, 500, 503, np.uint32),
        "n": random.integers(0, 90, 400, np.uint32),
        "h": random.uniform(0, 9, 402).astype(np.float16),
        "s": random.uniform(0, 9, 4 * 60).astype(np.float32),
        "u": np.array([9, 16, 0, 0], np.uint32),
        "t": random.uniform(0, 9, (7, 9)).astype(np.float32),
    }
    used = {name: value for name, value in given.items() if any(name + end in body for end in ("[", ".", ","))}
    run = bankshot.simulate(HEAD + body + "}", grid=grid, bindings=used, device="nvidia-h200", out_of_bounds=policy)
    return run.dispatch


def ran(each: Dispatch, numbers: list[int], sample: SampleMemory | None) -> Launch:
    """Run workgroups in the memory of a sample, or in a copy of all memory that notes what is touched."""
    options = each.build_options(SAMPLED if sample else frozenset(("touched",))) | {"workgroups_per_batch": 1}
    program, how = build(each.pipeline, **options), replace(each.how, chosen=np.array(numbers), threads=1)
    memory, notes = (sample.memory, sample.notes) if sample else (make_device_memory(each.bound), None)
    found = Launch(program, each.bound, each.grid, each.device, how, memory, notes=notes)
    found.run_one_by_one(len(numbers))
    return found


@pytest.mark.parametrize("policy", ["clamp", "zero", "wrap"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_sample_accesses_what_it_accesses_in_a_copy_of_all_memory(body: str, policy: str) -> None:
    each = dispatch(body, policy)
    memory = SampleMemory(each.bound, each.device)
    memory.limit_cache(100)
    sampled, whole, alone = ran(each, [2, 3], memory), ran(each, [2, 3], None), ran(each, [2], None)
    accessed = memory.accessed()
    for bound in each.bound:
        if bound.variable.space != "storage":
            continue
        mine = accessed.buffers == accessed.names.index(bound.variable.name)
        words = (accessed.words[mine, np.newaxis] + np.arange(8)).ravel()
        first, second = (bytes_of(notes[mine]) != 0 for notes in (accessed.first, accessed.second))
        both = words[first | second]
        assert words[first].tolist() == np.flatnonzero(alone._notes_of(bound)).tolist()
        assert both.tolist() == np.flatnonzero(whole._notes_of(bound)).tolist()
        found, expected = (run.device_memory.part(bound).view(np.uint32) for run in (sampled, whole))
        assert found[both].tolist() == expected[both].tolist()
        parts = memory.parts().get(bound.variable.name, Parts(0, 0, 0, 0, 0))
        assert [parts.sectors, parts.granules, parts.lines] == [len({*(both // size)}) for size in (8, 16, 32)]
        assert parts.own == len({*(words[first] // 16)})
        assert parts.words == len(both)
    memory.close()


def test_atomic_operations_are_counted_up_to_127() -> None:
    each = dispatch("for (var k = 0u; k <= i; k++) { atomicAdd(&n[3u + i * 2u], 1u); } atomicAdd(&n[0], 1u);")
    memory = SampleMemory(each.bound, each.device)
    memory.limit_cache(100)
    ran(each, [2, 3], memory)
    words, first, second = memory.accessed().operations("n")
    counts = np.zeros(400, int)
    counts[(words[:, np.newaxis] + np.arange(8)).ravel()] = first.ravel()
    assert counts[3:99:2].tolist() == [*range(1, 49)]
    assert counts[0] == 48
    assert counts[4:99:2].tolist() == [0] * 48
    assert second.tolist() == first.tolist()
    each = dispatch("for (var k = 0u; k < 5u; k++) { atomicAdd(&n[0], 1u); }")
    memory = SampleMemory(each.bound, each.device)
    ran(each, [2, 3], memory)
    _, first, _ = memory.accessed().operations("n")
    assert first.tolist() == [[127, 0, 0, 0, 0, 0, 0, 0]]


def test_memory_that_is_used_again_has_no_notes() -> None:
    found: dict[str, list[list[list[int]]]] = {"consecutive": [], "strided": []}
    for name in [*found] * 2:
        each = dispatch(BODIES[name])
        memory = SampleMemory(each.bound, each.device)
        memory.limit_cache(100)
        ran(each, [2, 3], memory)
        accessed = memory.accessed()
        found[name].append([accessed.words.tolist(), accessed.first.tolist(), accessed.second.tolist()])
        memory.close()
    assert all(first == again for first, again in found.values())
    (room,) = sample_memory._IDLE
    assert not room.rows.any()


PREDICTED = """\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] += x[id.x]; }
"""


def predicted(words: int, grid: int = 8) -> bankshot.Run:
    given = {"x": np.ones(words, np.float32), "y": np.ones(words, np.float32)}
    return bankshot.simulate(PREDICTED, grid=grid, bindings=given, device="nvidia-h200", probes="counters")


def test_a_prediction_copies_no_binding(monkeypatch) -> None:
    run = predicted(1 << 20)

    def refused(*args: object) -> None:
        raise AssertionError("device memory is made")

    monkeypatch.setattr(device_memory, "_copy", refused)
    monkeypatch.setattr(launch, "make_device_memory", refused)
    listed: list[int] = []
    close = SampleMemory.close

    def noted(memory: SampleMemory) -> None:
        listed.append(len(memory._room.listed))
        close(memory)

    monkeypatch.setattr(SampleMemory, "close", noted)
    assert run.predicted_time.us > 0
    assert listed == [2 * 2 * 64 // 8]  # chunks: two buffers, two workgroups


def test_a_workgroup_runs_again_only_where_its_cache_was_full(monkeypatch) -> None:
    counts: list[int] = []
    run_one_by_one = Launch.run_one_by_one

    def noted(launched: Launch, count: int) -> object:
        counts.append(count)
        return run_one_by_one(launched, count)

    monkeypatch.setattr(Launch, "run_one_by_one", noted)
    shared = PREDICTED.replace("x[id.x]", "x[id.x % 64u] + x[id.x % 64u + 64u] + x[id.x % 64u]")
    given = {"x": np.ones(512, np.float32), "y": np.ones(512, np.float32)}
    for lines, expected in ((6, [2]), (5, [2, 1])):  # a workgroup loads six
        costs = MeasuredCosts({"cache_bytes": Cost(8 * lines * 128.0 * 2**0.6 + 1, None, "by hand")})
        device = get("nvidia").with_(cores=1, costs=costs)
        counts.clear()
        assert bankshot.simulate(shared, grid=8, bindings=given, device=device, probes="counters").work
        assert counts == expected


def test_the_only_workgroup_runs_once(monkeypatch) -> None:
    counts: list[int] = []
    run_one_by_one = Launch.run_one_by_one

    def noted(launched: Launch, count: int) -> object:
        counts.append(count)
        return run_one_by_one(launched, count)

    monkeypatch.setattr(Launch, "run_one_by_one", noted)
    assert predicted(64, grid=1).work.moved_again == 0
    assert counts == [1]


@pytest.mark.parametrize(("element", "fails"), [(260, True), (2000, False)])
def test_only_what_was_accessed_must_be_as_it_was(monkeypatch, element: int, fails: bool) -> None:
    """The sampled workgroups are those of elements 256 to 383."""
    for module in (device_memory, launch):
        monkeypatch.setattr(module, "BORROWED", 4096)
    monkeypatch.setattr(device_memory, "_CHECKED", 1024)
    given = {"x": np.ones(2048, np.float32), "y": np.ones(2048, np.float32)}
    run = bankshot.simulate(PREDICTED, grid=8, bindings=given, device="nvidia-h200", probes="counters")
    given["y"][element] = 5
    if fails:
        with pytest.raises(bankshot.WgslError, match="y has changed since the run"):
            _ = run.predicted_time
    else:
        assert run.predicted_time.us > 0
