"""The builder shares, folds and hoists values; when it extends a program, it keeps to program order."""

import pytest

from bankshot.sim.ir import ir
from bankshot.sim.ir.builder import Builder
from bankshot.sim.ir.passes import ALL
from bankshot.sim.ir.sites import SourceSite
from bankshot.sim.ir.verify import verify
from bankshot.sim.wgsl.source import Source, Span


def program():
    """A program with a variable, a branch and a value in each region."""
    builder = Builder()
    lane = builder.input("local_index")
    slot = builder.block(["u32"], "v").slots[0]
    builder.set(slot, builder.op("add_u32", lane, lane))
    builder.branch(
        builder.op("lt_u32", lane, builder.const("u32", 9)),
        lambda: builder.set(slot, builder.op("mul_u32", lane, lane)),
    )
    late = builder.op("xor_u32", lane, builder.const("u32", 5))
    builder.set(slot, late)
    return builder, lane, slot, late


def test_an_equal_operation_is_built_once():
    builder, lane, _, late = program()
    assert builder.op("xor_u32", lane, builder.const("u32", 5)) is late
    assert Builder(passes=ALL - {"number"}).input("x") is not Builder().input("x")


def test_fold_floats_decides_whether_floats_are_folded():
    def total(builder):
        return builder.op("add_f32", builder.const("f32", 1.0), builder.const("f32", 2.0)).op

    assert (total(Builder()), total(Builder(fold_floats=False))) == ("const", "add_f32")


@pytest.mark.parametrize(
    ("op", "kinds", "floats"),
    [
        ("add_u32", "u32 u32", False),
        ("lt_i32", "i32 i32", False),
        ("lnot_bool", "bool", False),
        ("convert_u32_i32", "u32", False),
        ("convert_bool_u32", "bool", False),
        ("convert_i32_f32", "i32", True),
        ("convert_f32_i32", "f32", True),
        ("convert_bool_f16", "bool", True),
        ("lt_f32", "f32 f32", True),
        ("neg_f16", "f16", True),
    ],
)
def test_operations_of_floats_are_folded_only_where_floats_are(op, kinds, floats):
    """An operation that takes floats, or returns them."""
    found = {}
    for fold_floats in (True, False):
        builder = Builder(fold_floats=fold_floats)
        found[fold_floats] = builder.op(op, *(builder.const(kind, 1) for kind in kinds.split())).op
    assert found == {True: "const", False: op if floats else "const"}


def test_loop_invariant_values_are_hoisted_unless_the_builder_extends_a_program():
    builder = Builder()
    lane = builder.input("local_index")
    header = builder.here = builder.region(loop=True)
    assert builder.op("mul_u32", lane, lane).region is builder.root
    assert header.parent is builder.root
    branch = builder.here = builder.region()
    inner = builder.here = builder.region(loop=True)
    product = builder.op("mul_u32", builder.op("add_u32", lane, lane), lane)
    assert (branch.parent, inner.parent, product.region) == (header, branch, builder.root)  # out of both loops
    extending = Builder.extending(builder)
    extending.here = header
    assert extending.op("mul_u32", lane, lane).region is header


def test_an_extending_builder_keeps_to_program_order():
    """New items follow each store to the variable; the program still verifies, and nothing built later is used."""
    before, lane, slot, late = program()
    count = before.last_id
    builder = Builder.extending(before)
    total = builder.block(["u32"], "total").slots[0]
    made = []
    for region in ir.regions_of(before.root):
        for item in builder.rewrite(region):
            builder.append(item)
            if isinstance(item, ir.Set) and item.slot is slot:
                made.append(builder.op("xor_u32", lane, builder.const("u32", 5)))
                builder.set(total, builder.op("add_u32", builder.read(total), made[-1]))
    builder.prepend([ir.Set(total, builder.const("u32", 0))])
    verify(before.root)
    assert late not in made
    assert len(set(made)) == 2, "once per region"
    assert all(value.id > count for value in made)
    assert total in before.slots
    assert before.root.items[0].op == "const"


def test_an_extending_builder_shares_nothing_between_regions():
    """A region that is rewritten first may come after, or inside, one that is rewritten later."""
    before, lane, *_ = program()
    builder = Builder.extending(before)
    outer = builder.op("or_u32", lane, lane)
    builder.here = builder.region()
    assert builder.op("or_u32", lane, lane) is not outer
    assert builder.const("u32", 77) is builder.const("u32", 77)


def test_an_identity_of_the_caller_comes_before_the_operation():
    def nothing_times_anything(op, args):
        zero = [a for a in args if a.op == "const" and a.imm == 0]
        return zero[0] if op == "mul_f32" and zero else None

    builder = Builder(identity=nothing_times_anything)
    x = builder.reinterpret("f32", builder.input("x"))
    zero = builder.const("f32", 0.0)
    assert builder.op("mul_f32", x, zero) is zero
    assert builder.op("mul_f32", x, x).op == "mul_f32"


def test_only_where_needs_no_branch_for_a_known_condition():
    builder, lane, slot, _ = program()
    items = len(builder.here.items)
    builder.only_where(builder.const("bool", True), lambda: builder.set(slot, lane))
    builder.only_where(builder.const("bool", False), lambda: builder.set(slot, builder.const("u32", 3)))
    added = builder.here.items[items:]
    assert [item.value for item in added if isinstance(item, ir.Set)] == [lane]
    builder.only_where(builder.op("eq_u32", lane, builder.const("u32", 1)), lambda: builder.set(slot, lane))
    assert isinstance(builder.here.items[-1], ir.If)


def test_a_value_of_an_inner_region_is_not_used_outside_of_it():
    builder = Builder()
    lane = builder.input("local_index")
    outer = builder.here
    builder.here = builder.region()
    inner = builder.op("mul_u32", lane, lane)
    assert builder.op("mul_u32", lane, lane) is inner
    builder.here = outer
    later = builder.op("mul_u32", lane, lane)
    assert inner.region is outer or later is not inner


def test_instructions_are_counted_with_what_they_compute():
    builder = Builder()
    span, other = Span(Source("abcd"), 0, 1), Span(Source("abcd"), 1, 2)
    value = builder.const("f32", 2)
    for name, place in (("fp32", span), ("fp32", span), ("integer", span), ("fp32", other), (None, span)):
        builder.tally_computed(name, place, value if place is other else None)
    (count,) = [item for item in builder.root.items if isinstance(item, ir.Count)]
    assert count.computed == [("fp32", span, None)] * 2 + [("integer", span, None), ("fp32", other, value)]


@pytest.mark.parametrize(
    ("kind", "space", "name", "work", "turns"),
    [
        ("load", "storage", None, True, False),
        ("store", "workgroup", None, True, False),
        ("load", "texture", None, True, False),
        ("load", "uniform", None, False, False),
        ("load", "immediate", None, False, False),
        ("atomic", "storage", "atomicAdd", True, True),
        ("atomic", "workgroup", "atomicExchange", True, True),
        ("atomic", "workgroup", "atomicLoad", True, False),
        ("atomic", "storage", "atomicStore", True, False),
        ("atomic", "workgroup", "workgroupUniformLoad", True, False),
        ("barrier", "workgroup", "workgroupBarrier", False, False),
        ("subgroup", None, "subgroupAdd", False, False),
        ("op", None, "+", False, False),
        ("index", "storage", None, False, False),
    ],
)
def test_what_a_place_does_for_others(kind, space, name, work, turns):
    site = SourceSite(kind, Span(Source("a"), 0, 1), space, name=name)
    assert (site.is_work, site.takes_turns) == (work, turns)
