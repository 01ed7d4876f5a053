"""What a prepared dispatch keeps from run to run, and what a run in another order adds to the findings."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot
from bankshot.sim.run import dispatch
from bankshot.sim.run.prepared import prepare

RACES = """
var<workgroup> t: array<u32, 8>;
@group(0) @binding(0) var<storage, read_write> y: array<u32, 8>;
@compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {
    t[i] = i; y[i] = t[7u - i] & 0u;
}"""
ENDLESS = """
@group(0) @binding(0) var<storage, read_write> y: array<u32, 8>;
@compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {
    loop { y[i] += 0u; if y[i] > 7u { break; } }
}"""


@pytest.mark.parametrize("schedule", ["lockstep", "reversed", "serial", "random(3)"])
@pytest.mark.parametrize(("text", "code"), [(RACES, "race"), (ENDLESS, "endless-loop")])
def test_a_run_in_another_order_finds_nothing_twice(text, code, schedule):
    run = bankshot.simulate(text, grid=1, bindings={"y": np.zeros(8, np.uint32)}, schedule=schedule)
    assert [finding.code for finding in run.findings] == [code]


@pytest.mark.parametrize("probes", ["none", "all"])
def test_the_program_is_built_once_and_ahead_of_the_runs(monkeypatch, probes):
    built = []
    monkeypatch.setattr(dispatch, "_built", lambda *args, known=dispatch._built, **options: (
        built.append(options["probes"]), known(*args, **options))[1])  # fmt: skip
    prepared = prepare(RACES.replace("& 0u", "& 1u").replace("7u - i", "i"), grid=1, probes=probes)
    assert len(built) == 1
    for number in range(3):
        prepared.run({"y": np.full(8, number, np.uint32)})
    assert len(built) == len(set(built))


def test_a_prepared_dispatch_of_some_workgroups_is_built_by_its_first_run(monkeypatch):
    built = []
    monkeypatch.setattr(dispatch, "_built", lambda *args, known=dispatch._built, **options: (
        built.append(args), known(*args, **options))[1])  # fmt: skip
    prepared = prepare(RACES, grid=1, workgroups="classes")
    assert not built
    prepared.run({"y": np.zeros(8, np.uint32)})
    assert built


TWO = """
@group(0) @binding(0) var<storage, read_write> y: array<u32, 4>;
@group(0) @binding(1) var<storage, read_write> z: array<u32, 4>;
@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) { y[0] = i; z[1] = i + 5u; }"""


def test_schedules_show_every_output_that_depends_on_them():
    bindings = {name: np.zeros(4, np.uint32) for name in "yz"}
    run = bankshot.simulate(TWO, grid=1, bindings=bindings, probes="none", schedules=8)
    assert sorted(str(key) for finding in run.findings for key in finding.outputs or ()) == ["y", "z"]
