"""What truths cover of a case's outputs: which outputs a case has, of what size, and which a kernel has lost."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import bankshot
from bankshot.oracle.comparison.compare import compare
from bankshot.oracle.judge.coverage import CaseOutcome, OutputCoverage, coverage_of, covered, output_sizes
from bankshot.oracle.judge.output_checks import OutputCheck

SHADER = """\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> z: array<f32>;
@group(0) @binding(3) var<storage, read_write> w: array<f32>;
@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) { y[i] = x[i] + z[i] + w[i]; }
"""
PIPELINE = bankshot.check(SHADER).pipeline()
ZEROS = np.zeros(4, np.float32)


def case(suffix="toml", inits=None, rules=(), gpu_rules=(), free=(), unchecked=None, **data):
    """A case whose manifest calls `y` `out`."""
    inits = {"x": "normal", "y": "zeros", "z": "normal", "w": "normal"} | (inits or {})
    names = {"y": "out"}
    bindings = [SimpleNamespace(var=var, name=names.get(var, var), init=init) for var, init in inits.items()]
    kernel = SimpleNamespace(path=Path(f"k.{suffix}"), bindings=bindings, rules=dict.fromkeys(rules),
                             gpu_rules=dict.fromkeys(gpu_rules), free=free, unchecked=unchecked or {})  # fmt: skip
    buffers = {var: ZEROS for var in inits} | data
    return SimpleNamespace(kernel=kernel, bindings=buffers, name_of=lambda var: names.get(var, var))


OUTPUTS = {
    "what is stored": ({}, ["y"]),
    "a rule": ({"rules": ["z"]}, ["y", "z"]),
    "a rule for GPUs": ({"gpu_rules": ["z"]}, ["y", "z"]),
    "free": ({"free": ["z"]}, ["y", "z"]),
    "all of them": ({"rules": ["z"], "free": ["w"], "gpu_rules": ["out"]}, ["y", "z", "w"]),
    "nothing at the start": ({"inits": {"z": "unwritten"}}, ["y", "z"]),
    "zeros at the start": ({"inits": {"w": "zeros"}}, ["y", "w"]),
    "an input of zeros": ({"inits": {"x": "zeros"}}, ["y"]),
    "a rule for an input": ({"rules": ["x"]}, ["y"]),
    "a rule by the name of another": ({"rules": ["y"]}, ["y"]),
    "no manifest": ({"suffix": "wgsl", "rules": ["z"], "inits": {"w": "zeros"}}, ["y"]),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_the_outputs_of_a_case(name):
    given, names = OUTPUTS[name]
    assert output_sizes(case(**given), PIPELINE) == dict.fromkeys(names, 4)


@pytest.mark.parametrize(
    ("data", "size"),
    [(ZEROS, 4), (np.zeros((2, 3), np.uint8), 6), (b"12345678", 8), ([ZEROS, ZEROS[:3]], 7), ([1, 2, 3], 3)],
)
def test_the_elements_of_an_output(data, size):
    assert output_sizes(case(y=data), PIPELINE) == {"y": size}


def test_a_variable_that_is_not_bound_is_no_output():
    made = case(rules=["z"])
    del made.bindings["z"]
    assert output_sizes(made, PIPELINE) == {"y": 4}


# ---- coverage ------------------------------------------------------------------------------------------

ONES = np.ones(4, np.float32)


def check(output="out", truth="reference", unchecked=None, initial=ZEROS, elements=ONES):
    compared = compare(elements, elements, initial=initial)
    if unchecked is not None:
        compared = compared.without(np.array(unchecked, bool))
    return OutputCheck(output, "it", compared, truth=truth)


def rows(coverage):
    return [(each.output, each.elements, dict(each.truths), each.unchecked) for each in coverage.outputs]


def test_nothing_covers_an_output_without_a_truth():
    found = coverage_of(case(), PIPELINE, [])
    assert rows(found) == [("out", 4, {}, 4)]
    assert (found.counters, found.idle) == (0, False)


def test_truths_cover_outputs_by_their_names_in_the_manifest():
    checks = [check(unchecked=[0, 0, 0, 1]), check(truth="wgpu on a", unchecked=[1, 1, 1, 0])]
    found = coverage_of(case(unchecked={"out": "scratch", "z": "other"}), PIPELINE, checks, counters=3)
    assert found.outputs == (OutputCoverage("out", 4, {"reference": 3, "wgpu on a": 1}, 0, "scratch"),)
    assert (found.counters, found.idle) == (3, False)


@pytest.mark.parametrize(
    ("held", "truths", "left"), [(["y"], {"golden": 4}, 0), (["y.0", "y.1"], {"golden": 4}, 0), (["z"], {}, 4)]
)
def test_a_golden_covers_the_variables_that_it_holds(held, truths, left):
    assert rows(coverage_of(case(), PIPELINE, [], held)) == [("out", 4, truths, left)]


def test_what_the_kernel_never_stores_is_lost():
    """`z` has a rule, and a golden and a reference that compare it: the kernel loads it only."""
    made = case(rules=["z"])
    found = coverage_of(made, PIPELINE, [check(), check("z")], ["y", "z"])
    assert [(each.output, each.lost, each.unchecked, dict(each.truths)) for each in found.outputs] == [
        ("out", False, 0, {"reference": 4, "golden": 4}), ("z", True, 4, {}),
    ]  # fmt: skip


def test_what_only_a_reference_names_is_lost_if_the_kernel_never_stores_to_it():
    found = coverage_of(case(), PIPELINE, [check(), check("w"), check("z", "wgpu on a")])
    assert [(each.output, each.lost, each.unchecked) for each in found.outputs] == [
        ("out", False, 0), ("w", True, 4), ("z", False, 0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("checks", "idle"),
    [
        ([], False),
        ([check()], False),
        ([check(initial=ONES)], True),  # the output is expected to stay as it was
        ([check(initial=ONES), check("z", initial=ONES)], True),
        ([check(initial=ONES), check("z")], False),
        ([check(initial=ONES[:0], elements=ONES[:0])], False),  # an empty output cannot change
    ],
)
def test_a_case_is_idle_where_no_output_is_expected_to_change(checks, idle):
    assert coverage_of(case(), PIPELINE, checks).idle == idle


def test_checks_of_outputs_of_which_nothing_is_left_are_covered_elsewhere():
    part = [1, 0, 0, 0]
    checks = [check(unchecked=part), check(truth="wgpu on a"), check("z", unchecked=part)]
    made = covered(checks, coverage_of(case(rules=["z"]), PIPELINE, checks))
    assert [(each.output, each.checked_elsewhere, each.outcome) for each in made] == [
        ("out", True, CaseOutcome.CLEAN), ("out", True, CaseOutcome.CLEAN), ("z", False, CaseOutcome.UNCHECKED),
    ]  # fmt: skip
    reasons = covered(checks, coverage_of(case(rules=["z"], unchecked={"z": "scratch"}), PIPELINE, checks))
    assert [each.checked_elsewhere for each in reasons] == [True] * 3
