"""No mechanism that makes runs faster changes what they tell: outputs, counters, findings, verdicts and cures."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import bankshot
from bankshot.oracle.manifests.reflection import check_module
from bankshot.sim import mechanisms
from bankshot.sim.launch import partition, run_history
from bankshot.sim.launch.threads import THREADS
from bankshot.sim.mechanisms import MECHANISMS, all_off, is_on, without
from bankshot.sim.run import dispatch
from tests.findings.test_random_accesses import make, make_on_one_word
from tests.findings.test_random_accesses import run as run_steps
from tests.launch.test_shadow_blocks import run_with as accesses
from tests.programs_made.project_kernels import project_kernels

KERNELS = {plan.kernel.name: plan.kernel for plan in project_kernels()}
# One lane of a workgroup loops over all, which sixteen interleaved workgroups do sixteen times as fast.
LEADER = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> t: array<f32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) i: u32) {
    t[i] = x[w.x * 64u + i];
    workgroupBarrier();
    if i == 0u {
        var sum = 0.0;
        for (var k = 0u; k < 64u; k++) { sum += t[k] * t[63u - k]; }
        y[w.x STEP] = sum;
    }
}"""
IN_PLACE = """
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
    let i = id.y * (n.x * 64u) + id.x;
    if i < arrayLength(&y) { y[i] = y[i + SHIFT] * 2.0 + 1.0; }
}"""
Case = Callable[..., bankshot.Run]


def leader(step: str, **options: Any) -> bankshot.Run:
    bindings = {"x": np.linspace(0, 1, 2048, dtype=np.float32), "y": np.zeros(32, np.float32)}
    return bankshot.simulate(LEADER.replace("STEP", step), grid=32, bindings=bindings, **options)


def in_place(shift: int, **options: Any) -> bankshot.Run:
    """Each workgroup changes a part of `y` in place, from its elements or those `shift` further on."""
    bindings = {"y": np.linspace(0, 1, 2000, dtype=np.float32)}
    return bankshot.simulate(IN_PLACE.replace("SHIFT", f"{shift}u"), grid=(8, 4), bindings=bindings, **options)


def steps(seed: int, **options: Any) -> bankshot.Run:
    size, groups = ((8, 3), (13, 5), (32, 4), (64, 3))[seed % 4]
    return run_steps((make, make_on_one_word)[seed % 2](seed, size, groups), size, groups, **options)


def project_kernel(name: str, **options: Any) -> bankshot.Run:
    chosen = KERNELS[name]
    case = chosen.case(min(chosen.shapes, key=lambda shape: np.prod(list(shape.dims.values()))))
    return bankshot.simulate(check_module(chosen), **case.launch, **options)


GENERATED: dict[str, Case] = {
    **{f"accesses-{seed}": partial(accesses, seed) for seed in range(10)},
    **{f"steps-{seed}": partial(steps, seed) for seed in range(10)},
    **{f"in-place-{shift}": partial(in_place, shift) for shift in (0, 1, 64)},
    "leader": partial(leader, ""),
    "leader-racing": partial(leader, "/ 2u"),
}


def told(case: Case, **options: Any) -> dict[str, Any]:
    """Return all that a run with all probes tells, and the outputs of one without."""
    run, plain = case(**options), case(probes="none")
    return {
        "outputs": [{name: data.tobytes() for name, data in each.outputs.items()} for each in (run, plain)],
        "counters": repr(list(run.counters.items())),
        "sites": [site.counts() for site in run.sites],
        "findings": [
            (str(each), each.verdict, each.count, [str(note) for note in each.notes], each.hint)
            for each in (*run.findings, *run.silenced)
        ],
        "cures": [cure.sentence for cure in run.cures],
        "finished": run.finished,
    }


@pytest.fixture(autouse=True)
def two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small runs use what only large ones do: threads, and interleaved workgroups."""
    monkeypatch.setenv(THREADS, "2")
    monkeypatch.setattr(partition, "_WORTH", 1)
    monkeypatch.setattr(partition, "_PATIENCE", 0)
    monkeypatch.setattr(run_history, "_SHORT", 0)
    monkeypatch.setattr(dispatch, "MIN_SPEEDUP", 0)


def depends_on_batches(case: Case) -> bool:
    """Whether workgroups meet, so that it matters which of them run side by side."""
    found = case(probes=("races", "bounds"), replay=False).findings
    return any(each.code == "out-of-bounds" or each.epoch is None for each in found)


@pytest.mark.parametrize("name", GENERATED)
def test_no_mechanism_changes_what_a_run_tells(name: str) -> None:
    case = GENERATED[name]
    expected = told(case)
    assert told(case) == expected  # with what the first has left
    for each in MECHANISMS:
        if each != "side by side" or not depends_on_batches(case):
            with without(each):
                assert told(case) == expected, each
    with without(*MECHANISMS.keys() - {"side by side"}):
        assert told(case) == expected
    assert told(case, workgroups="check") == expected


@pytest.mark.parametrize("number", range(len(KERNELS)))
def test_none_changes_what_a_kernel_of_the_project_tells(number: int) -> None:
    """All are off at once, and one alone: each in two kernels, as it is in every generated one."""
    case = partial(project_kernel, list(KERNELS)[number])
    expected = told(case)
    for names in (MECHANISMS, *([[name] for name in MECHANISMS] * 2)[number : number + 1]):
        with without(*names):
            assert told(case) == expected, names
    assert told(case, workgroups="check") == expected


def test_every_mechanism_has_a_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[str] = set()

    class Noted(set[str]):
        def __contains__(self, name: object) -> bool:
            asked.add(str(name))
            return False

    monkeypatch.setattr(mechanisms, "_off", Noted())
    for case in (GENERATED["leader"], GENERATED["leader-racing"]):
        told(case)
    assert asked == set(MECHANISMS)


def test_the_generated_kernels_race_and_are_clean() -> None:
    """Else the findings would be equal in vain."""
    verdicts = [{each.verdict for each in case().findings if each.code == "race"} for case in GENERATED.values()]
    assert {verdict for each in verdicts for verdict in each} >= {"harmful", "unseen", "same-value"}
    assert set() in verdicts


def test_a_mechanism_is_off_only_inside() -> None:
    with without("blocks"):
        with without("threads"):
            assert all_off() == {"blocks", "threads"}
        assert not is_on("blocks")
        assert is_on("threads")
    assert not all_off()
