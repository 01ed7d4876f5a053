"""Outputs, counters and findings do not depend on which optimization passes are on.

Programs are verified after each pass as well, as in all tests (see `tests/conftest.py`).
"""

from dataclasses import fields
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bankshot
from bankshot.oracle.manifests.reflection import check_module
from bankshot.sim.ir import ir
from bankshot.sim.ir.builder import Builder
from bankshot.sim.ir.passes import ALL, PASSES
from bankshot.sim.ir.verify import verify
from bankshot.sim.launch.launch import RunOptions
from bankshot.sim.machine import opcodes as op
from bankshot.sim.run import prepared as running
from bankshot.sim.run.counters import Counters
from bankshot.sim.wgsl.diagnostics import Crash
from tests.programs_made.checked_programs import float_program, integer_program
from tests.programs_made.project_kernels import project_kernels

COUNTERS = [field.name for field in fields(Counters)]
DEVICES = ("lavapipe", "nvidia")  # one that rounds products and sums apart, and one that contracts them
CHOSEN = st.sets(st.sampled_from(sorted(PASSES))).map(frozenset)
SETTINGS = settings(max_examples=15, deadline=None, derandomize=True)


def simulate(passes, module, **given):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "RunOptions", partial(RunOptions, passes=passes))
        return bankshot.simulate(module, **given)


def told(done):
    """All that people see of a run. A place that nothing came to may be unknown to a program that left it out."""
    outputs = {name: np.asarray(value).tobytes() for name, value in done.outputs.items()}
    sites = [(s.site, [getattr(s, name) for name in COUNTERS]) for s in done.sites if s.executions]
    return outputs, done.counters, sites, done.findings


def assert_alike(module, several, **given):
    expected = told(simulate(ALL, module, **given))
    for passes in several:
        assert told(simulate(passes, module, **given)) == expected, sorted(ALL - passes)


def without_each():
    return [ALL - {name} for name in PASSES]


def test_representative_workgroups_run_with_the_same_passes():
    source = """
    @group(0) @binding(0) var<storage, read_write> y: array<u32>;
    @compute @workgroup_size(32) fn main(@builtin(global_invocation_id) id: vec3u) {
        var sum = 0u;
        for (var k = 0u; k < 4u; k++) { sum += (id.x + k) * 2u; }
        if id.x < arrayLength(&y) { y[id.x] = sum; }
    }
    """
    module, y = bankshot.check(source), np.zeros(32 * 40, np.uint32)
    given = {"grid": 40, "bindings": {"y": y}, "workgroups": "classes"}
    expected = simulate(ALL, module, **given)
    assert expected.coverage.how == "classes"
    for passes in (*without_each(), frozenset()):
        done = simulate(passes, module, **given)
        assert told(done) == told(expected), sorted(ALL - passes)
    assert done.coverage.how == "classes"
    assert len(done.program.code) > len(expected.program.code)


@pytest.mark.parametrize(
    ("make", "seed"),
    [*((integer_program, seed) for seed in (2, 4, 6)), *((float_program, seed) for seed in (4, 10, 12))],
)
def test_each_pass_may_be_off(make, seed):
    """For programs that most passes change, and that take little time."""
    module, given = make(seed)
    assert_alike(module, [*without_each(), frozenset()], device="lavapipe", **given)


@pytest.mark.parametrize("make", [integer_program, float_program])
@given(seed=st.integers(10, 10_000), passes=CHOSEN, device=st.sampled_from(DEVICES))
@SETTINGS
def test_any_set_of_passes_may_be_on(make, seed, passes, device):
    module, given = make(seed)
    assert_alike(module, [passes], device=device, **given)


def test_whether_other_data_show_a_race_does_not_depend_on_passes():
    """It has a race that stores one value, and a buffer that only some passes find to be mere data."""
    module, given = float_program(304)
    assert_alike(module, [ALL - {"forward"}, frozenset()], device="lavapipe", **given)


KERNELS = {f"{plan.kernel.path.stem}-{plan.kernel.name}": plan for plan in project_kernels()}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_do_not_depend_on_passes(name):
    plan = KERNELS[name]
    case = plan.case(min(plan.shapes, key=lambda shape: np.prod(list(shape.dims.values()))))
    module, kernel = check_module(case.kernel), case.kernel
    given = {"entry": kernel.entry, "grid": case.grid, "bindings": case.bindings, "overrides": kernel.overrides}
    turn = list(KERNELS).index(name) % len(PASSES)
    assert_alike(module, [without_each()[turn], frozenset()], device="lavapipe", **given)


# ---- what each is good for ---------------------------------------------------------------------------

HEAD = """
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<uniform> n: u32;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
"""
LOOP = "var s = 0.0; for (var k = 0u; k < n; k++) { s += x[i + k * 64u] * x[i * 3u]; } y[i] = s;"

# What a pass makes shorter, and what is counted: instructions, rows of registers, or those of one kind.
INSTRUCTION_PASSES = {
    "fold": ("let a = 2u; y[i + a * 3u] = 1.0;", "instructions"),
    "simplify": ("y[(i / 8u) * 1u] = 1.0;", "instructions"),
    "ranges": ("var a = array(1.0, 2.0, 3.0, 4.0); y[i] = a[i % 4u];", "instructions"),
    "number": ("y[i * n + 1u] = x[i * n];", "instructions"),
    "forward": ("var a = 2u; y[i + a * 3u] = 1.0;", "instructions"),
    "place": (LOOP, "in loops"),
    "combine": (LOOP, "instructions"),
    "uniform": ("if n > 3u { y[i] = 1.0; }", "masks"),
    "dead": ("let a = f32(i) * 3.0; y[i] = 1.0;", "instructions"),
    "address": ("y[i * 2u + n * 4u + 8u] = 1.0;", "instructions"),
    "copies": (LOOP, "instructions"),
    "rows": ("let a = f32(i) * 3.0; let b = a + 1.0; let c = b * b; y[i] = c - 1.0;", "rows"),
}


def size(program, what):
    code = program.code[:, 0]
    match what:
        case "rows":
            return program.rows
        case "masks":
            return int(np.sum(code == op.JUMP_NONE))
        case "in loops":
            last = int(np.flatnonzero(code == op.JUMP)[-1])
            return last - int(program.code[last, 2])
    return len(code)


@pytest.mark.parametrize("name", INSTRUCTION_PASSES)
def test_a_pass_makes_programs_shorter(name):
    body, what = INSTRUCTION_PASSES[name]
    given = {"grid": 1, "bindings": {"y": np.zeros(640, np.float32), "x": np.ones(640, np.float32), "n": np.uint32(4)}}
    with_it, without = (
        simulate(passes, HEAD + body + "}", device="lavapipe", probes="none", **given).program
        for passes in (ALL - {"tiles"}, ALL - {"tiles", name})  # which combines products and sums as well
    )
    assert size(with_it, what) < size(without, what)


# ---- the verifier ------------------------------------------------------------------------------------


def started():
    """A program that adds two numbers and keeps the sum."""
    builder = Builder()
    one = builder.input("local_index")
    total = builder.op("add_u32", one, builder.const("u32", 7))
    block = builder.block(["u32"], "v")
    builder.set(block.slots[0], total)
    return builder, total, block.slots[0]


def test_a_well_formed_program_is_accepted():
    builder, _, slot = started()
    builder.get(slot)
    assert verify(builder.root) is None


def test_a_break_or_an_outer_continue_hides_nothing_from_the_continuing():
    """What leaves the loop, or goes on with the one around it, does not reach this `continuing`."""
    builder, total, slot = started()
    outer, inner = ir.Target(), ir.Target()
    body, continuing, around = builder.region(), builder.region(), builder.region()
    product = ir.Value("mul_u32", (total, total), "u32", body, None, 99)
    body.items += [ir.Jump("exit", inner), ir.Jump("continue", outer), product]
    continuing.items.append(ir.Set(slot, product))
    inner.node = ir.Loop(builder.region(loop=True), None, body, continuing, None)
    around.items.append(inner.node)
    outer.node = ir.Loop(builder.region(loop=True), None, around, builder.region(), None)
    builder.append(outer.node)
    assert verify(builder.root) is None


def used_before_it_is_made(builder, total, slot):
    builder.root.items.remove(total)
    builder.root.items.append(total)


def made_in_a_branch(builder, total, slot):
    inner, orelse = builder.region(), builder.region()
    builder.here = inner
    hidden = builder.op("mul_u32", total, builder.input("local_x"))
    builder.here = builder.root
    builder.append(ir.If(builder.const("bool", True), inner, orelse))
    builder.append(ir.Set(slot, hidden))


def of_another_kind(builder, total, slot):
    builder.append(ir.Set(slot, builder.op("convert_u32_f32", total)))


def with_too_few_operands(builder, total, slot):
    total.args = total.args[:1]


def of_an_unknown_variable_kind(builder, total, slot):
    inner = builder.region()
    inner.items.append(ir.Value("get", (), "f32", inner, slot, 99))
    builder.append(ir.Scope(inner))


def with_a_result_of_another_kind(builder, total, slot):
    total.kind = "i32"


def in_a_region_that_is_not_its_own(builder, total, slot):
    inner = builder.region()
    inner.items.append(ir.Value("mul_u32", (total, total), "u32", builder.root, None, 99))
    builder.append(ir.Scope(inner))


def put_into_slots_of_other_kinds(builder, total, slot):
    builder.append(ir.Put(slot.block, builder.const("u32", 0), builder.const("f32", 1)))


def made_twice(builder, total, slot):
    builder.append(total)


def read_before_it_is_written(builder, total, slot):
    other = builder.block(["u32"], "w").slots[0]
    builder.changed([other])
    builder.get(other)


def jumping_to_where_it_is_not(builder, total, slot):
    builder.append(ir.Jump("exit", ir.Target(ir.Scope(builder.region()))))


def past_what_a_turn_may_skip(builder, total, slot):
    header, body, target = builder.region(loop=True), builder.region(), ir.Target()
    continuing = builder.region()
    body.items += [ir.Jump("continue", target)]
    late = ir.Value("mul_u32", (total, total), "u32", body, None, 99)
    body.items.append(late)
    continuing.items.append(ir.Set(slot, late))
    target.node = ir.Loop(header, None, body, continuing, None)
    builder.append(target.node)


def malformed_past_a_continue(builder, total, slot):
    header, body, target = builder.region(loop=True), builder.region(), ir.Target()
    body.items += [ir.Jump("continue", target), ir.Value("mul_u32", (total,), "u32", body, None, 99)]
    target.node = ir.Loop(header, None, body, builder.region(), None)
    builder.append(target.node)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (used_before_it_is_made, "may not have been computed"),
        (made_in_a_branch, "may not have been computed"),
        (of_another_kind, "of kind f32, as u32"),
        (with_too_few_operands, "does not have 2 operands"),
        (of_an_unknown_variable_kind, "has another kind than its variable"),
        (with_a_result_of_another_kind, "is no u32"),
        (in_a_region_that_is_not_its_own, "is not in the region that it says"),
        (put_into_slots_of_other_kinds, "which no slot has"),
        (made_twice, "is computed twice"),
        (read_before_it_is_written, "may not have been written"),
        (jumping_to_where_it_is_not, "does not lead out"),
        (past_what_a_turn_may_skip, "may not have been computed"),
        (malformed_past_a_continue, "does not have 2 operands"),
    ],
)
def test_a_malformed_program_is_rejected(broken, message):
    builder, total, slot = started()
    broken(builder, total, slot)
    with pytest.raises(Crash, match=message):
        verify(builder.root)


def test_bits_of_f16_keep_their_kind():
    """Pairs in words and back, with a sum in between that wants f16."""
    source = """
        enable f16;
        @group(0) @binding(0) var<storage, read_write> words: array<u32, 4>;
        @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {
            words[i] = bitcast<u32>(bitcast<vec2<f16>>(words[i]) + vec2<f16>(1h, 0h));
        }
    """
    words = np.array([[0, 1], [-2, 0.5], [1e-7, -0.0], [65504, 3]], np.float16)
    given = words.reshape(-1).view(np.uint32)
    after = bankshot.simulate(source, grid=1, bindings={"words": given}).outputs["words"]
    assert after.tolist() == (words + np.array([1, 0], np.float16)).reshape(-1).view(np.uint32).tolist()
