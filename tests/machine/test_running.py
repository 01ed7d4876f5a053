"""Atomics, barriers, endless loops, batches and threads."""

import os
import time
from types import SimpleNamespace

import numpy as np
import pytest

import bankshot
from bankshot.sim.launch.partition import run_parts
from bankshot.sim.launch.threads import THREADS
from bankshot.sim.machine.compile import loader

HEAD = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;\n"


def entry(body, size):
    return f"""
    @compute @workgroup_size({size})
    fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) group: vec3u) {{ {body} }}
    """


def run(source, grid=1, size=64, **options):
    options = {"bindings": {"y": np.zeros(size, np.uint32)}, **options}
    return bankshot.simulate(
        source if isinstance(source, bankshot.check("").__class__) else HEAD + source, grid=grid, **options
    )


def diverging(source):
    """A module whose barriers some invocations may miss."""
    return bankshot.check(HEAD + source, uniformity="off")


# ---- atomics -----------------------------------------------------------------------------------------

_SIGNED = 1 << 31
ATOMICS = {
    "atomicAdd": lambda old, v: old + v,
    "atomicSub": lambda old, v: old - v,
    "atomicMax": max,
    "atomicMin": min,
    "atomicAnd": lambda old, v: old & v,
    "atomicOr": lambda old, v: old | v,
    "atomicXor": lambda old, v: old ^ v,
    "atomicExchange": lambda old, v: v,
}


def wrapped(kind, value):
    value &= 0xFFFFFFFF
    return value - (1 << 32) if kind == "i32" and value >= _SIGNED else value


@pytest.mark.parametrize("space", ["storage", "workgroup"])
@pytest.mark.parametrize("kind", ["i32", "u32"])
@pytest.mark.parametrize("name", ATOMICS)
def test_atomics_go_in_lane_order(name, kind, space):
    own = "var<workgroup> cells: array<atomic<{0}>, 3>;"
    shared = "@group(0) @binding(1) var<storage, read_write> cells: array<atomic<{0}>, 3>;"
    source = (own if space == "workgroup" else shared).format(kind)
    value = f"{kind}((i * 7u + 3u) * 2654435761u)"
    body = f"if i != 2u {{ y[i] = u32({name}(&cells[i % 3u], {value})); }}"
    if space == "workgroup":
        body += " workgroupBarrier(); if i < 3u { y[20u + i] = u32(atomicLoad(&cells[i])); }"
    bindings = {"y": np.zeros(23, np.uint32)}
    if space == "storage":
        bindings["cells"] = np.zeros(3, np.uint32)
    done = run(source + entry(body, 20), bindings=bindings)
    cells, old = [0, 0, 0], [0] * 20
    for lane in range(20):
        if lane != 2:
            old[lane] = cells[lane % 3]
            cells[lane % 3] = wrapped(kind, ATOMICS[name](cells[lane % 3], wrapped(kind, (lane * 7 + 3) * 2654435761)))
    assert done.outputs["y"][:20].tolist() == [v & 0xFFFFFFFF for v in old]
    after = done.outputs["y"][20:] if space == "workgroup" else done.outputs["cells"].view(np.uint32)
    assert after.tolist() == [v & 0xFFFFFFFF for v in cells]


def test_compare_and_exchange():
    source = "var<workgroup> cell: atomic<u32>;" + entry(
        """let r = atomicCompareExchangeWeak(&cell, i / 2u, i / 2u + 1u);
        y[i] = r.old_value * 2u + u32(r.exchanged);
        workgroupBarrier();
        if i == 0u { y[8] = atomicLoad(&cell); }""",
        8,
    )
    cell, expected = 0, []
    for lane in range(8):
        expected.append(cell * 2 + (cell == lane // 2))
        cell = lane // 2 + 1 if cell == lane // 2 else cell
    assert run(source, size=9).outputs["y"].tolist() == [*expected, cell]


def test_the_operands_of_an_atomic_are_evaluated_in_order():
    """Spec: "Order of Execution": the arguments from left to right, an index within the first among them."""
    source = """
    var<private> calls: u32;
    fn next() -> u32 { calls += 1u; return calls; }
    @group(0) @binding(1) var<storage, read_write> cells: array<atomic<u32>, 4>;
    """
    cells = np.zeros(4, np.uint32)
    body = "let old = atomicExchange(&cells[next()], 10u * next()); y[i] = old;"
    done = run(source + entry(body, 1), size=1, bindings={"y": np.zeros(1, np.uint32), "cells": cells})
    assert done.outputs["cells"].tolist() == [0, 20, 0, 0]


@pytest.mark.parametrize(("policy", "after"), [("clamp", [1, 3]), ("zero", [1, 1]), ("wrap", [2, 2])])
def test_atomics_past_the_end(policy, after):
    source = "@group(0) @binding(1) var<storage, read_write> cells: array<atomic<u32>, 2>;" + entry(
        "y[i] = atomicAdd(&cells[i], 1u);", 4
    )
    bindings = {"y": np.zeros(4, np.uint32), "cells": np.zeros(2, np.uint32)}
    done = run(source, bindings=bindings, out_of_bounds=policy)
    assert done.outputs["cells"].tolist() == after
    (finding,) = done.findings
    assert (finding.code, finding.message) == ("out-of-bounds", "atomicAdd of cells[2], which has 2 elements")


def test_an_exchange_out_of_bounds_reports_failure():
    source = "@group(0) @binding(1) var<storage, read_write> cells: array<atomic<u32>, 2>;" + entry(
        "y[i] = u32(atomicCompareExchangeWeak(&cells[i], 6u, 7u).exchanged);", 4
    )
    bindings = {"y": np.zeros(4, np.uint32), "cells": np.full(2, 6, np.uint32)}
    done = run(source, bindings=bindings, out_of_bounds="zero")
    assert done.outputs["y"].tolist() == [1, 1, 0, 0]


def test_workgroups_of_a_batch_have_their_own_atomics():
    source = "var<workgroup> sum: atomic<u32>;" + entry(
        "atomicAdd(&sum, group.x + i); workgroupBarrier(); y[group.x * 3u + i] = atomicLoad(&sum);", 3
    )
    expected = np.repeat([3 * g + 3 for g in range(400)], 3)
    np.testing.assert_array_equal(run(source, 400, 1200).outputs["y"], expected)


# ---- barriers ----------------------------------------------------------------------------------------


def test_the_checker_refuses_a_barrier_that_some_may_miss():
    with pytest.raises(bankshot.WgslError, match="uniform"):
        bankshot.check(HEAD + entry("if i < 5u { workgroupBarrier(); } y[i] = 1u;", 64))


def test_a_warning_says_what_the_error_would():
    module = bankshot.check(HEAD + entry("if i < 5u { workgroupBarrier(); } y[i] = 1u;", 64), uniformity="warning")
    (warning,) = module.warnings
    assert warning.severity == "warning"
    assert run(module).outputs["y"].all()


@pytest.mark.parametrize("size", [16, 64, 200])
def test_a_barrier_that_some_invocations_miss(size):
    module = diverging(entry("workgroupBarrier(); if group.x != 1u && i >= 3u { return; }\nworkgroupBarrier();", size))
    (finding,) = run(module, grid=40).findings
    assert (finding.code, finding.severity, finding.count) == ("barrier-divergence", "error", 39)
    assert finding.message == f"{size - 3} of {size} invocations do not reach this barrier: 3 to {size - 1}"
    assert (finding.workgroup, finding.lanes, finding.epoch) == ((0, 0, 0), tuple(range(3, size)), 1)
    assert finding.span.line == 5
    assert "every invocation of a workgroup must reach each barrier" in finding.render()


def test_every_divergence_is_counted():
    module = diverging(entry("for (var k = 0u; k <= i; k++) { workgroupBarrier(); }", 16))
    (finding,) = run(module, grid=100).findings
    assert finding.count == 100 * 15
    assert (finding.lanes, finding.epoch) == ((0,), 1)


def test_a_barrier_that_every_invocation_reaches_is_no_finding():
    module = diverging(entry("if y[0] == 0u { workgroupBarrier(); } if i < 100u { storageBarrier(); }", 64))
    assert run(module, grid=9).findings == []


def test_a_barrier_that_a_whole_workgroup_leaves_out_is_no_finding():
    module = diverging(entry("if i < group.x * 1000u { workgroupBarrier(); }", 4))
    done = run(module, grid=9)
    assert done.findings == []
    assert done.counters["barriers"] == 8


# ---- endless loops -----------------------------------------------------------------------------------


@pytest.mark.parametrize("condition", ["true", "i < 100u", "y[0] == 0u"])
def test_an_endless_loop_is_stopped(condition):
    body = f"""y[i] = 7u * i;
    while {condition} {{ y[63] = 5u; if group.x > 5000u {{ break; }} }}
    y[i] = 1u;"""
    done = run(entry(body, 64), grid=2, budget=1000)
    (finding,) = [f for f in done.findings if f.code == "endless-loop"]
    assert finding.span.line == 5
    assert done.finished == 0
    assert done.outputs["y"][:3].tolist() == [0, 7, 14]


def test_a_budget_that_is_just_enough():
    source = entry("for (var k = 0u; k < 100u; k++) { y[i] += 1u; }", 8)
    assert run(source, budget=100).findings == []
    assert [f.code for f in run(source, budget=99).findings] == ["endless-loop"]


NESTED = "for ({outer}) {{ for ({inner}) {{ y[i] += 1u; }} }}"


@pytest.mark.parametrize(("outer", "inner", "column"), [
    ("var k = 0u; k < 9u; k += k", "var j = 0u; j < 64u; j++", "outer"),
    ("var k = 0u; k < 9u; k += k", "var j = 0u; j < y[i] % 128u; j++", "outer"),
    ("var k = 1u; k > 0u; k++", "var j = 0u; j < k % 512u; j++", "outer"),
    ("var k = 0u; k < 9u; k++", "var j = 0u; j < 64u; j += j", "inner"),
    ("var k = 0u; k < 99u; k++", "var j = 0u; j < 64u; j += 1u - k / 50u", "inner"),
])  # fmt: skip
def test_the_loop_that_does_not_end_is_named(outer, inner, column):
    text = entry(NESTED.format(outer=outer, inner=inner), 8)
    for options in ({"budget": 100_000}, {"budget": 100_000, "schedule": "subgroup-serial"}):
        (finding,) = [f for f in run(text, **options).findings if f.code == "endless-loop"]
        named = (HEAD + text)[finding.span.start :]
        assert named.startswith(f"for ({outer if column == 'outer' else inner})")


def test_a_stopped_run_keeps_its_counters():
    text = entry("for (var k = 0u; k < 50u; k += k) { y[i] += 1u; }", 8)
    done = run(text, budget=1000)
    assert done.finished == 0
    (store,) = [site for site in done.sites if site.kind == "store"]
    assert 8 * 1000 <= store.active_lanes <= 8 * 1001


def test_work_is_bounded_by_default():
    """The default budget is one of work, so that long bodies are not run as often as short ones."""
    start = time.perf_counter()
    text = entry("for (var k = 1u; k > 0u; k += 2u) { " + "y[i] += k * i; " * 60 + "}", 64)
    (finding,) = [f for f in run(text, probes="none").findings if f.code == "endless-loop"]
    assert "exceeded the default budget" in finding.message
    assert time.perf_counter() - start < 60  # 2 s on an idle machine


def test_the_first_batch_that_spends_the_budget_ends_the_run():
    text = entry("while y[0] == 0u { y[63] = 5u; }", 64)
    start = time.perf_counter()
    run(text, grid=6000, budget=10_000, probes="none")
    assert time.perf_counter() - start < 20  # 100 times as long if each batch spent it


# ---- batches and threads -----------------------------------------------------------------------------

MIXED = (
    "@group(0) @binding(1) var<storage, read> x: array<u32>; var<workgroup> tile: array<u32, {size}>;"
    + """
    @compute @workgroup_size({size})
    fn main(@builtin(local_invocation_index) i: u32, @builtin(global_invocation_id) id: vec3u,
            @builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) count: vec3u) {{
        tile[i] = x[(id.x * 7u + group.y) % 97u];
        workgroupBarrier();
        var sum = group.x + group.y * count.x + group.z * 1000u;
        for (var k = 0u; k <= (i + group.x) % 5u; k++) {{
            if k == 3u && i % 2u == 0u {{ continue; }}
            sum += tile[(i + k) % {size}u] * (k + 1u);
        }}
        y[(group.x + group.y * count.x + group.z * count.x * count.y) * {size}u + i] = sum;
    }}
    """
)


def expected_mixed(x, size, grid):
    out = []
    for z, y, gx in np.ndindex(grid[2], grid[1], grid[0]):
        tile = [int(x[((gx * size + i) * 7 + y) % 97]) for i in range(size)]
        for i in range(size):
            turns = [k for k in range((i + gx) % 5 + 1) if not (k == 3 and i % 2 == 0)]
            out.append(gx + y * grid[0] + z * 1000 + sum(tile[(i + k) % size] * (k + 1) for k in turns))
    return out


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(
    ("size", "grid"), [(1, (33, 3, 2)), (3, (171, 1, 1)), (17, (5, 7, 2)), (100, (3, 2, 2)), (256, (3, 1, 1))]
)
def test_batches_and_threads_change_nothing(size, grid, threads, monkeypatch):
    monkeypatch.setenv(THREADS, str(threads))
    x = np.arange(97, dtype=np.uint32) * 31
    given = {"x": x, "y": np.zeros(int(np.prod(grid)) * size, np.uint32)}
    done = run(MIXED.format(size=size), grid, bindings=given)
    assert done.outputs["y"].tolist() == expected_mixed(x, size, grid)
    assert done.finished == np.prod(grid)
    monkeypatch.setenv(THREADS, "1")
    alone = run(MIXED.format(size=size), grid, bindings=given)
    assert alone.counters == done.counters
    assert [s.counts() for s in alone.sites] == [s.counts() for s in done.sites]


def test_workgroups_that_see_each_other_go_in_grid_order():
    source = "@group(0) @binding(1) var<storage, read_write> next: atomic<u32>;" + entry(
        "if i == 0u { y[atomicAdd(&next, 1u)] = group.x; }", 128
    )
    done = run(source, 500, bindings={"y": np.zeros(500, np.uint32), "next": 0})
    assert done.outputs["y"].tolist() == list(range(500))


@pytest.fixture
def workers(monkeypatch):
    """The number of threads of each run, of three."""
    given = []

    def noted(piece, pieces, threads, *rest):
        given.append(threads)
        return run_parts(piece, pieces, threads, *rest)

    monkeypatch.setenv(THREADS, "3")
    monkeypatch.setattr("bankshot.sim.launch.launch.run_parts", noted)
    return given


def test_the_length_of_what_is_stored_to_is_not_read_from_it(workers):
    size = "@group(0) @binding(1) var<storage, read> x: array<u32>;"
    guarded = entry("let to = group.x * 128u + i; if to < arrayLength(&y) { y[to] = x[to]; }", 128)
    x = np.arange(1000, dtype=np.uint32)
    done = run(size + guarded, 8, size=1000, bindings={"x": x, "y": np.zeros(1000, np.uint32)}, probes="none")
    assert done.outputs["y"].tolist() == x.tolist()
    assert workers == [3]


def test_what_is_read_and_stored_to_takes_all_threads(workers):
    done = run(entry("y[i + group.x * 128u] += i;", 128), 8, size=1024, probes="none")
    assert workers == [3]
    assert done.outputs["y"].tolist() == [*range(128)] * 8


@pytest.mark.parametrize("threads", [1, 4])
def test_a_part_that_fails_raises_and_the_next_run_succeeds(threads, monkeypatch):
    monkeypatch.setenv(THREADS, str(threads))
    with monkeypatch.context() as broken:
        broken.setattr(loader.Machine, "ready", lambda self, *arguments: lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(entry("y[i] = 1u;", 256), 100, size=256)
    assert run(entry("y[i] = 1u;", 256), 100, size=256).outputs["y"].all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_has_its_own_threads(monkeypatch):
    monkeypatch.setenv(THREADS, "2")
    source = entry("y[i + group.x * 256u] = 1u;", 256)
    run(source, 40, size=256 * 40)
    child = os.fork()
    if child == 0:
        os._exit(0 if run(source, 40, size=256 * 40).outputs["y"].all() else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_progress_counts_every_workgroup():
    told = []
    run(entry("y[i] = 1u;", 256), grid=100, size=256, progress=lambda done, of: told.append((done, of)))
    assert told[-1] == (100, 100)
    assert told == sorted(told)


def test_the_progress_callback_may_end_the_run():
    """Parts that have not begun are cancelled, so the run ends at once."""
    pieces, ran = [(i, i + 1) for i in range(50)], []

    def piece(first, last, shadow):
        ran.append(first)
        time.sleep(0.01)
        return SimpleNamespace(races=np.zeros((1, 64), np.int64))

    def enough(done, of):
        raise TimeoutError

    with pytest.raises(TimeoutError):
        run_parts(piece, pieces, 2, enough)
    assert len(ran) < 25
