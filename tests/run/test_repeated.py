"""One module run again and again, with other data, grids, overrides, probes: each run is as if it were the first."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import bankshot
from bankshot.sim.codegen.build import build
from bankshot.sim.ir.passes import ALL
from bankshot.sim.ir.rounding import Rounding
from bankshot.sim.launch.launch_cache import LAUNCH_SETUPS, LaunchSetups
from bankshot.sim.launch.schedules import LOCKSTEP
from bankshot.sim.launch.threads import THREADS
from bankshot.sim.models import get
from bankshot.sim.run.dispatch import _PROGRAMS

ROOT = Path(__file__).parents[2]
# Each leaves behind what the next run must not find: stored words, known addresses, races, loops, findings.
SOURCES = {
    "unstored": """
        override scale: f32 = 1.0;
        @group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        var<workgroup> tile: array<f32, 64>;
        @compute @workgroup_size(64)
        fn main(@builtin(local_invocation_index) i: u32, @builtin(global_invocation_id) id: vec3u) {
            if x[id.x] > 0.0 { tile[i] = x[id.x]; }
            workgroupBarrier();
            y[id.x] = scale * tile[(i + 1u) % 64u] + sqrt(x[id.x]);
        }""",
    "racing": """
        override scale: f32 = 1.0;
        @group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(64)
        fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) grid: vec3u) {
            var sum = 0.0;
            for (var k = 0u; k < u32(abs(x[id.x]) * 8.0); k++) { sum += scale * x[(id.x + k * grid.x) % 64u]; }
            y[id.x / 2u + u32(x[0] > 0.0)] = sum;
        }""",
    "counting": """
        override scale: f32 = 1.0;
        @group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
        var<private> seen: u32;
        @compute @workgroup_size(32)
        fn main(@builtin(global_invocation_id) id: vec3u) {
            if x[id.x] > 0.0 { seen += u32(scale); }
            atomicAdd(&y[id.x % 7u], seen);
            atomicMax(&y[arrayLength(&y) - 1u], u32(x[id.x + 60u] > 0.0));
        }""",
}
CASES = [
    {"source": source, "seed": seed, "size": size, "grid": grid, "scale": scale, "probes": probes, "device": device}
    for source in SOURCES
    for seed, size, grid, scale, probes, device in (
        (1, 256, 3, 1.0, "all", "nvidia"),
        (2, 256, 3, 1.0, "all", "nvidia"),
        (2, 192, 3, 1.0, "none", "nvidia"),
        (3, 250, 4, 2.0, "all", "amd"),
        (4, 512, 5, 1.0, "counters", "nvidia"),
    )
]


def told(case, modules):
    """All that a run tells, of a module that is read once."""
    source = case["source"]
    module = modules[source] = modules.get(source) or bankshot.check(SOURCES[source])
    x = np.random.default_rng(case["seed"]).normal(size=case["size"]).astype(np.float32)
    y = np.zeros(case["size"], np.uint32 if source == "counting" else np.float32)
    given = {"grid": case["grid"], "overrides": {"scale": case["scale"]}, "device": case["device"]}
    run = bankshot.simulate(module, bindings={"x": x, "y": y}, probes=case["probes"], **given)
    return {
        "y": run.outputs["y"].tobytes().hex(),
        "counters": {name: float(value) for name, value in run.counters.items()},
        "sites": [site.counts() for site in run.sites],
        "findings": [
            f"{each} {each.verdict} {each.count} {[str(note) for note in each.notes]}" for each in run.findings
        ],
        "finished": run.finished,
    }


@pytest.fixture(scope="module")
def fresh():
    """What each case tells in a process of its own, forked from one that has run nothing."""
    if not hasattr(os, "fork"):
        pytest.skip("this system has no fork")
    code = """
import json, multiprocessing
from tests.run.test_repeated import CASES, told

def tell(case):
    print(json.dumps(told(case, {})), flush=True)

for case in CASES:
    process = multiprocessing.get_context("fork").Process(target=tell, args=[case])
    process.start()
    process.join()
"""
    lines = _output(code).splitlines()
    assert len(lines) == len(CASES)
    return list(map(json.loads, lines))


def _output(code, *arguments):
    return subprocess.run([sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, check=True).stdout


def test_the_cases_find_what_they_are_to_find(fresh):
    """Else nothing would be left behind that the next run could find."""
    found = " ".join(finding for each in fresh for finding in each["findings"])
    for word in ("uninit", "race", "not-finite", "out-of-bounds"):
        assert word in found


@pytest.mark.parametrize("threads", ["1", "3"])
def test_runs_of_one_module_do_not_see_each_other(fresh, threads, monkeypatch):
    monkeypatch.setenv(THREADS, threads)
    modules, order = {}, np.random.default_rng(5)
    for _ in range(3):
        for place in order.permutation(len(CASES)).tolist():
            assert told(CASES[place], modules) == fresh[place], CASES[place]


def test_runs_in_two_threads_do_not_see_each_other(fresh):
    modules = {}
    with ThreadPoolExecutor(2) as threads:
        done = list(threads.map(lambda case: told(case, modules), [*CASES, *reversed(CASES)]))
    assert done == [*fresh, *reversed(fresh)]


def test_no_run_changes_what_is_kept():
    module = bankshot.check(SOURCES["unstored"])
    told(CASES[0], {"unstored": module})
    (launch_setup,) = [
        launch_setup
        for (program, *_), launch_setup in LAUNCH_SETUPS._kept.items()
        if _is_of(program(), module, "races")
    ]
    before = launch_setup.template.image.copy()
    told(CASES[1], {"unstored": module})
    assert np.array_equal(launch_setup.template.image, before)


def _is_of(program, module, probe):
    return program is not None and probe in program.probe_names and program.sites[0].span.source is module.source


def test_what_is_given_does_not_outlive_the_run():
    module, given = bankshot.check(SOURCES["unstored"]), np.ones(256, np.float32)
    run = bankshot.simulate(module, grid=4, bindings={"x": given, "y": np.zeros(256, np.float32)})
    gone = [weakref.ref(given), weakref.ref(run._left.storage)]
    del given, run
    gc.collect()
    assert [each() for each in gone] == [None, None]


# ---- what is kept is bounded -------------------------------------------------------------------------


def _program(scale):
    pipeline = bankshot.check(SOURCES["racing"]).pipeline("main", {"scale": scale})
    return build(
        pipeline, rounding=Rounding(True, False, False), probes=frozenset(), workgroups_per_batch=1, passes=ALL
    )


def _kept(launch_setups, program):
    return launch_setups.of(program, get("nvidia"), LOCKSTEP, "clamp", {})


def test_what_is_kept_has_room():
    launch_setups = LaunchSetups(1 << 17)
    programs = [_program(scale) for scale in range(20)]
    for program in programs:
        assert _kept(launch_setups, program) is _kept(launch_setups, program)
        assert launch_setups.nbytes <= 1 << 17
    assert _kept(launch_setups, programs[-1]) in launch_setups._kept.values()
    assert len(launch_setups._kept) < len(programs)


def test_orders_that_only_pick_differently_share_their_memory(monkeypatch):
    setups = LaunchSetups(1 << 25)
    monkeypatch.setattr("bankshot.sim.launch.launch.LAUNCH_SETUPS", setups)
    module = bankshot.check(SOURCES["counting"])
    given = {"grid": 3, "bindings": {"x": np.ones(256, np.float32), "y": np.zeros(256, np.uint32)}, "probes": "none"}
    orders = ("serial", "reversed", *(f"random({n})" for n in range(4)), *(f"pct({n},{n})" for n in range(1, 4)))
    for order in orders:
        bankshot.simulate(module, schedule=order, **given)
    layouts = {key[2] for key in setups._kept}
    assert len(layouts) <= 3  # lockstep, invocations of one workgroup, and of several
    assert {"random(1)", "serial"}.isdisjoint(layout.name for layout in layouts)


def test_what_was_used_last_stays():
    launch_setups = LaunchSetups(1 << 17)
    first, *others = [_program(scale) for scale in range(20)]
    kept = _kept(launch_setups, first)
    for program in others:
        _kept(launch_setups, program)
        assert _kept(launch_setups, first) is kept


def test_what_is_kept_goes_with_its_program():
    launch_setups = LaunchSetups(1 << 20)
    program = _program(1.0)
    _kept(launch_setups, program)
    assert launch_setups.nbytes > 0
    del program
    gc.collect()
    assert launch_setups.nbytes == 0


def test_a_module_knows_few_of_the_programs_it_has_been():
    """As where a test draws overrides at random."""
    module, x = bankshot.check(SOURCES["racing"]), np.ones(64, np.float32)
    for scale in range(100):
        run = bankshot.simulate(
            module, grid=1, bindings={"x": x, "y": np.zeros(64, np.float32)}, overrides={"scale": scale}, probes="none"
        )
        assert run.outputs["y"][1] == 8 * scale
    assert len(_PROGRAMS[module]) <= 64
    assert len(module._pipelines) <= 64
