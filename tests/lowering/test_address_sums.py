"""Addresses are sums whose outer terms are added first, so that a loop computes only what changes in it."""

from __future__ import annotations

import random

import pytest

from bankshot.sim.analysis.uses import split
from bankshot.sim.ir.builder import Builder
from bankshot.sim.ir.passes import ALL
from bankshot.sim.lowering.address_sums import Sum

NO_PASSES = ALL - {"fold", "simplify", "ranges"}  # so that each operation stays


class Made:
    """A builder in a loop within a loop: `a` and `b` are computed outside, `m` in the outer loop, `k` in the inner."""

    def __init__(self) -> None:
        self.builder = builder = Builder(passes=NO_PASSES)
        self.names = {"a": builder.input("local_index"), "b": builder.input("group_x")}
        for name in "mk":
            slot = builder.block(["u32"], name).slots[0]
            builder.here = builder.region(loop=True)
            builder.set(slot, self.names["a"])
            self.names[name] = builder.op("xor_u32", builder.read(slot), self.names["a"])
            builder.set(slot, self.names[name])

    def value(self, tree):
        """The value of a tree: a name, a number, or an operation and two trees."""
        if isinstance(tree, str):
            return self.names[tree]
        if isinstance(tree, int):
            return self.builder.const("u32", tree)
        op, left, right = tree
        return self.builder.op(f"{op}_u32", self.value(left), self.value(right))

    def text(self, value) -> str:
        """A value, written out."""
        for name, known in self.names.items():
            if value is known:
                return name
        if value.op == "const":
            return str(value.imm)
        return f"{value.op.partition('_')[0]}({', '.join(map(self.text, value.args))})"

    def sum_of(self, tree, times: int = 1) -> tuple[str, int]:
        total = Sum({})
        total.add(self.value(tree), times)
        value = total.value(self.builder)
        return "" if value is None else self.text(value), total.constant % 2**32


# Tree, the sum without its constant, and the constant, worked out by hand.
BY_HAND = {
    "terms of one place stay together": (("add", "a", "b"), "mul(add(a, b), 1)", 0),
    "those of one loop, too": (("add", "k", "k"), "mul(add(k, k), 1)", 0),
    "a constant is kept apart": (("add", "k", 5), "mul(k, 1)", 5),
    "one that is subtracted": (("sub", "k", 5), "mul(k, 1)", 2**32 - 5),
    "the outer term first": (("add", "k", "a"), "add(mul(a, 1), mul(k, 1))", 0),
    "the outer loop before the inner": (("add", "k", "m"), "add(mul(m, 1), mul(k, 1))", 0),
    "a difference": (("sub", "k", "a"), "add(mul(a, 4294967295), mul(k, 1))", 0),
    "a multiple": (("mul", ("add", "k", "a"), 3), "add(mul(a, 3), mul(k, 3))", 0),
    "a shifted sum": (("shl", ("add", "k", "a"), 4), "add(mul(a, 16), mul(k, 16))", 0),
    "a shift by more than 31": (("shl", ("add", "k", 3), 33), "mul(k, 2)", 6),
    "a product of two": (("mul", "k", "a"), "mul(mul(k, a), 1)", 0),
    "a sum in a sum": (("add", ("add", "k", "a"), "k"), "add(mul(a, 1), mul(k, 2))", 0),
    "on the right": (("add", "k", ("add", "k", "a")), "add(mul(a, 1), mul(k, 2))", 0),
    "a multiple in a sum": (("add", ("mul", ("add", "k", "a"), 8), "k"), "add(mul(a, 8), mul(k, 9))", 0),
    "a shift in a sum": (("add", "k", ("shl", ("sub", "k", "a"), 1)), "add(mul(a, 4294967294), mul(k, 3))", 0),
    "terms that cancel": (("sub", ("add", "k", "a"), "k"), "mul(a, 1)", 0),
    "all of them": (("sub", ("add", "k", 7), ("add", "k", 7)), "", 0),
    "other operations are terms": (("add", ("xor", "k", "a"), "a"), "add(mul(a, 1), mul(xor(k, a), 1))", 0),
}


@pytest.mark.parametrize(("tree", "terms", "constant"), BY_HAND.values(), ids=BY_HAND)
def test_sums_by_hand(tree, terms, constant):
    assert Made().sum_of(tree) == (terms, constant)


def test_the_factor_of_a_sum():
    assert Made().sum_of(("add", ("sub", "k", "a"), 5), 12) == ("add(mul(a, 4294967284), mul(k, 12))", 60)


def number(value, given) -> int:
    """The value, where `given` says that of each name's value."""
    if value in given:
        return given[value]
    if value.op == "const":
        return value.imm
    left, right = (number(each, given) for each in value.args)
    op = value.op.partition("_")[0]
    return {"add": left + right, "sub": left - right, "mul": left * right, "shl": left << (right & 31),
            "xor": left ^ right}[op] % 2**32  # fmt: skip


def random_tree(random_: random.Random, depth: int):
    if depth == 0 or random_.random() < 0.2:
        return random_.choice(("a", "b", "m", "k", random_.randrange(2**32)))
    op = random_.choice(("add", "add", "sub", "mul", "shl", "xor"))
    right = random_.randrange(40) if op == "shl" or random_.random() < 0.2 else random_tree(random_, depth - 1)
    return op, random_tree(random_, depth - 1), right


@pytest.mark.parametrize("seed", range(60))
def test_a_sum_has_the_value_of_what_was_added(seed):
    random_, made, total, wanted = random.Random(seed), Made(), Sum({}), 0
    given = {value: random_.randrange(2**32) for value in made.names.values()}
    for _ in range(random_.randrange(1, 4)):
        value, times = made.value(random_tree(random_, 4)), random_.choice((1, 1, 4, -1, 12))
        total.add(value, times)
        wanted += number(value, given) * times
    rest = total.value(made.builder)
    assert ((0 if rest is None else number(rest, given)) + total.constant) % 2**32 == wanted % 2**32


def test_a_long_chain_is_split_a_little_and_costs_no_more_than_a_short_one():
    made = Made()
    value = made.value("k")
    for _ in range(300):
        value = made.builder.op("add_u32", value, made.builder.const("u32", 3))
    total = Sum({})
    total.add(value)
    rest = total.value(made.builder)
    assert number(rest, {made.names["k"]: 5}) + total.constant == 5 + 3 * 300
    assert 0 < total.constant < 500
    parts = split(value)
    assert number(parts.lane, {made.names["k"]: 5}) + parts.constant == 5 + 3 * 300
    assert 0 < parts.constant < 500
