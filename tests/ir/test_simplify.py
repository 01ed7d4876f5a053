"""Identities of operations with a constant: each that is listed is used, and each that is used holds."""

import itertools

import numpy as np
import pytest

from bankshot.sim.ir.builder import Builder
from bankshot.sim.ir.passes import ALL
from bankshot.sim.ir.ranges import within
from bankshot.sim.ir.simplify import simplify
from bankshot.sim.scalar import OPS

NUMPY = {"u32": np.uint32, "i32": np.int32, "bool": np.bool_}
LEFT, ZERO = "the left operand", "zero"
# Operation and constant -> what it gives for every integer on the left, by hand.
IDENTITIES = {
    ("add", 0): LEFT,
    ("sub", 0): LEFT,
    ("mul", 1): LEFT,
    ("mul", 0): ZERO,
    ("div", 1): LEFT,
    ("or", 0): LEFT,
    ("xor", 0): LEFT,
    ("and", 0): ZERO,
    ("and", 0xFFFFFFFF): LEFT,
    ("shl", 0): LEFT,
    ("shr", 0): LEFT,
}
EDGES = (0, 1, 2, 3, 7, 8, 255, 256, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF)


@pytest.fixture
def builder():
    return Builder(passes=ALL - {"fold", "simplify", "ranges"})


def word(number, kind):
    return NUMPY[kind](bool(number)) if kind == "bool" else np.uint32(number).view(NUMPY[kind])


def constant(builder, name, number):
    """The constant on the right of an operation."""
    kind = OPS[name].args[1]
    return builder.const(kind, word(number, kind).item())


def evaluated(value, left, number):
    """A value as NumPy computes it, where `left` is `number`."""
    if value is left:
        return number
    if value.op == "const":
        return np.uint32(value.imm & 0xFFFFFFFF).view(number.dtype) if number.dtype != np.bool_ else np.bool_(value.imm)
    row = OPS[value.op]
    given = [evaluated(each, left, number) for each in value.args]
    with np.errstate(all="ignore"):
        return NUMPY[row.result](row.fn(*given))


@pytest.mark.parametrize("kind", ["i32", "u32"])
@pytest.mark.parametrize(("stem", "number"), IDENTITIES)
def test_an_identity_is_used(builder, stem, number, kind):
    name = f"{stem}_{kind}"
    left = builder.input("local_index")
    made = simplify(builder, name, (left, constant(builder, name, number)))
    if IDENTITIES[stem, number] == LEFT:
        assert made is left
    else:
        assert (made.op, made.imm) == ("const", 0)


@pytest.mark.parametrize(
    "name", [f"{stem}_{kind}" for stem in ("add", "sub", "mul", "div", "rem", "and", "or", "xor", "shl", "shr", "eq")
             for kind in ("i32", "u32")]
)  # fmt: skip
def test_what_replaces_an_operation_has_its_bits(builder, name):
    kind, other = OPS[name].args
    left = builder.input("local_index")
    for right in (*EDGES, 16, 31, 32, 1 << 20):
        made = simplify(builder, name, (left, constant(builder, name, right)))
        for number in EDGES if made is not None else ():
            with np.errstate(all="ignore"):
                wanted = OPS[name].fn(word(number, kind), word(right, other))
            assert evaluated(made, left, word(number, kind)) == NUMPY[OPS[name].result](wanted), (right, number)


@pytest.mark.parametrize(("stem", "right"), [("and", 0), ("and", 1), ("or", 0), ("or", 1)])
def test_a_boolean_operation_with_a_constant_is_replaced(builder, stem, right):
    left = builder.input("local_index")
    made = simplify(builder, f"{stem}_bool", (left, builder.const("bool", right)))
    for number in (np.False_, np.True_):
        wanted = number & bool(right) if stem == "and" else number | bool(right)
        assert evaluated(made, left, number) == wanted


@pytest.mark.parametrize("exponent", range(32))
def test_division_by_a_power_of_two_is_a_shift_and_a_remainder_a_mask(builder, exponent):
    left, right = builder.input("local_index"), builder.const("u32", 1 << exponent)
    quotient, remainder = (simplify(builder, name, (left, right)) for name in ("div_u32", "rem_u32"))
    if exponent == 0:
        assert quotient is left
    else:
        assert (quotient.op, quotient.args[1].imm) == ("shr_u32", exponent)
    assert (remainder.op, remainder.args[1].imm) == ("and_u32", (1 << exponent) - 1)


def test_division_by_other_numbers_stays(builder):
    left = builder.input("local_index")
    for right, name in itertools.product((0, 3, 6, 0xFFFFFFFF), ("div_u32", "rem_u32", "div_i32", "rem_i32")):
        assert simplify(builder, name, (left, constant(builder, name, right))) is None


def test_a_signed_division_by_a_power_of_two_is_no_shift(builder):
    """It rounds to zero."""
    left = builder.input("local_index")
    assert simplify(builder, "div_i32", (left, builder.const("i32", 8))) is None
    assert simplify(builder, "rem_i32", (left, builder.const("i32", 8))) is None


@pytest.mark.parametrize("name", ["add_i32", "mul_u32", "and_u32", "or_i32", "xor_u32", "eq_i32", "ne_u32"])
def test_a_constant_on_the_left_moves_to_the_right(builder, name):
    other, const = builder.input("local_index"), constant(builder, name, 5)
    made = simplify(builder, name, (const, other))
    assert (made.op, made.args) == (name, (other, const))


@pytest.mark.parametrize("name", ["sub_i32", "div_u32", "shl_u32", "lt_u32"])
def test_the_operands_of_other_operations_stay(builder, name):
    other, const = builder.input("local_index"), builder.const(OPS[name].args[0], 5)
    assert simplify(builder, name, (const, other)) is None


@pytest.mark.parametrize("condition", [0, 1])
def test_a_choice_that_is_known_is_made(builder, condition):
    no, yes = builder.input("local_index"), builder.const("u32", 3)
    assert simplify(builder, "select_u32", (no, yes, builder.const("bool", condition))) is (yes if condition else no)


@pytest.mark.parametrize(
    ("name", "limit", "kept"),
    [
        # the left operand is at most 9
        ("rem_u32", 10, True),
        ("rem_u32", 9, False),
        ("min_u32", 9, True),
        ("min_u32", 8, False),
        ("and_u32", 15, True),
        ("and_u32", 7, False),
        ("and_u32", 13, False),
        ("add_u32", 15, False),
    ],
)
def test_a_limit_that_changes_nothing_is_left_out(builder, name, limit, kept):
    left = builder.op("rem_u32", builder.input("local_index"), builder.const("u32", 10))
    assert (within(name, (left, builder.const("u32", limit))) is left) == kept


def test_a_mask_of_all_ones_is_left_out_up_to_its_last_value(builder):
    left = builder.op("and_u32", builder.input("local_index"), builder.const("u32", 15))
    assert within("and_u32", (left, builder.const("u32", 15))) is left
    assert within("and_u32", (left, builder.const("u32", 14))) is None
    assert within("min_u32", (left, builder.input("local_index"))) is None
