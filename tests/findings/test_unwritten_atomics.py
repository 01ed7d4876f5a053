"""Atomic operations on workgroup memory that nothing has written: which count, what a finding says, and when none is
made."""

from types import SimpleNamespace

import numpy as np
import pytest

import bankshot
from bankshot.sim.findings.atomic_uninit import atomic_reads
from bankshot.sim.findings.replay import rerun_budget

HEAD = """
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read_write> n: array<atomic<u32>, 4>;
var<workgroup> w: atomic<u32>;
var<workgroup> v: array<atomic<u32>, 4>;
var<workgroup> t: array<u32, 32>;
var<workgroup> q: array<u32, 32>;
@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) i: u32) {
    _ = &n;
"""


def run(body, **options):
    bindings = {"y": np.zeros(32, np.uint32), "n": np.zeros(4, np.uint32)}
    module = bankshot.check(f"{HEAD}{body}\n}}", uniformity="off")
    return bankshot.simulate(module, grid=1, bindings=bindings, **options)


# What depends on the contents of workgroup memory. Spec: WGSL, "Atomic Built-in Functions".
READS = {
    **{f"{name}(&w, 1u);": True for name in (
        "atomicAdd", "atomicSub", "atomicMax", "atomicMin", "atomicAnd", "atomicOr", "atomicXor", "atomicExchange",
    )},
    "_ = atomicCompareExchangeWeak(&w, 0u, 1u).exchanged;": True,
    "atomicStore(&w, 1u);": False,
    "y[i] = atomicLoad(&w);": True,
    "atomicAdd(&n[1], 1u);": False,
    "t[i] = 1u; y[i] = t[i];": False,
    "y[i] = workgroupUniformLoad(&w);": True,
    "workgroupBarrier();": False,
}  # fmt: skip


@pytest.mark.parametrize("body", READS)
def test_which_operations_read_workgroup_memory(body):
    found = atomic_reads(run(body, probes="none").program)
    names = [body.removeprefix("_ = ").removeprefix("y[i] = ").partition("(")[0]]
    assert [site.name for site in found] == (names if READS[body] else [])


def unwritten(body, **options):
    return [f for f in run(body, probes=["uninit"], **options).findings if f.code == "uninit"]


def test_a_finding_names_each_operation_of_its_variable_in_the_order_of_the_text():
    body = "if i > 9u { atomicMax(&v[1], i); }\natomicAdd(&w, 1u);\nworkgroupBarrier();\ny[i] = atomicLoad(&w);"
    (finding,) = unwritten(body)
    assert finding.message == "this atomicAdd updates w, which was never written"
    assert (finding.verdict, finding.severity, finding.workgroup) == ("harmful", "warning", (0, 0, 0))
    load, change = [note.message for note in finding.notes]
    assert load == "or this atomicLoad of w"
    # A NaN's bits, 0x7fc07fc0, and 32 more.
    words = "32 of 32 elements of y differ, the first is y[0]: 2143322080 instead of 32"
    assert change == f"with NaNs there, {words}"


def test_an_update_that_comes_after_a_store_is_right():
    assert unwritten("if i == 0u { atomicStore(&w, 5u); } workgroupBarrier(); y[i] = atomicAdd(&w, 1u);") == []


def test_an_update_that_no_output_shows_is_not_reported():
    assert unwritten("atomicAdd(&w, 1u); y[i] = i;") == []


def test_a_loop_that_ends_only_with_zeros_there():
    body = "if i == 0u { loop { if atomicAdd(&w, 1u) == 7u { break; } } } y[i] = 1u;"
    (finding,) = unwritten(body)
    assert [note.message for note in finding.notes] == ["with NaNs there, it does not terminate"]


def messages(found):
    return {f.message.replace(", which was never written", ""): f.verdict for f in found}


def test_a_load_and_an_atomic_of_one_output_are_two_causes():
    found = unwritten("atomicAdd(&w, 1u); y[i] = t[i] + atomicLoad(&w);")
    assert messages(found) == {"invocation 0 loads t[0]": "harmful", "this atomicAdd updates w": "harmful"}


STRUCT = "struct Shared { n: atomic<u32>, t: array<u32, 32>, m: atomic<u32>, } var<workgroup> s: Shared;"


@pytest.mark.parametrize(
    ("atomic", "word"), [("w", "t"), ("s.n", "s.t"), ("s.m", "s.t"), ("s.n", "t"), ("v[2]", "s.t")]
)
def test_each_cause_is_judged_on_its_own(atomic, word):
    harmless, harmful = f"({word}[i] & 0u)", f"atomicLoad(&{atomic})"
    head = STRUCT + HEAD
    atomics = f"if i == 0u {{ atomicStore(&{atomic}, 0u); }} workgroupBarrier();"

    def found(body):
        module = bankshot.check(f"{head}{body}\n}}", uniformity="off")
        buffers = {"y": np.zeros(32, np.uint32), "n": np.zeros(4, np.uint32)}
        return messages(bankshot.simulate(module, grid=3, bindings=buffers, probes=["uninit"]).findings)

    loads = f"invocation 0 loads {word}[0]"
    reads = f"this atomicLoad reads {atomic.partition('.')[0].partition('[')[0]}"
    assert found(f"y[i] = {harmless} + {harmful};") == {loads: "unseen", reads: "harmful"}
    assert found(f"{atomics} y[i] = {harmless} + {harmful};") == {loads: "unseen"}
    assert found(f"{atomics} y[i] = {word}[i] + {harmful};") == {loads: "harmful"}


def test_of_two_loads_that_reach_one_output_the_harmless_one_is_unseen():
    (one, other) = unwritten("y[i] = (t[i] & 0u) + q[i];")
    assert (one.verdict, other.verdict) == ("unseen", "harmful")


@pytest.mark.parametrize(("budget", "jumps", "allowed"), [
    (1 << 20, 0, 1000), (1 << 20, 10, 1040), (1040, 10, 1040), (1039, 10, 1039), (50, 10, 50),
    (1 << 20, 1 << 20, 1 << 20),
])  # fmt: skip
def test_a_rerun_may_take_four_times_as_long_and_no_longer_than_the_run(budget, jumps, allowed):
    launch = SimpleNamespace(options=SimpleNamespace(budget=budget))
    assert rerun_budget(launch, SimpleNamespace(jumps=jumps)) == allowed
