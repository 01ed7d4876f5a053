"""Upper bounds of values: never too low, and tight where clamps depend on them."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bankshot.sim.ir.builder import Builder
from bankshot.sim.ir.passes import ALL
from bankshot.sim.ir.ranges import most
from bankshot.sim.scalar import OPS

NAMES = ("and", "or", "xor", "add", "mul", "shl", "shr", "div", "rem", "min", "max", "sub")
SPECIAL = ("select_u32", "extractBits_u32", "unpack4xU8_u32", "convert_bool_u32", "lt_u32")


def grown(seed):
    """A builder that decides nothing, and values of random operations, with what each is for two random inputs."""
    rng = random.Random(seed)
    builder = Builder(passes=ALL - {"fold", "simplify", "ranges"})
    numbers = [rng.choice((rng.randrange(2**32), rng.randrange(300))) for _ in range(2)]
    values = {"u32": [(builder.input(f"in{i}"), n) for i, n in enumerate(numbers)], "bool": []}
    values["u32"] += [(builder.const("u32", n), n) for n in (0, 1, 3, 4, 8, 31, 255, 0x0F0F0F0F, 2**32 - 1)]
    values["bool"].append((builder.const("bool", True), 1))
    for _ in range(30):
        name = rng.choice((*(f"{stem}_u32" for stem in NAMES), *SPECIAL))
        row = OPS[name]
        operands = [rng.choice(values[kind]) for kind in row.args]
        types = {"u32": np.uint32, "bool": np.bool_}
        with np.errstate(all="ignore"):
            result = int(row.fn(*(types[kind](n) for kind, (_, n) in zip(row.args, operands, strict=True))))
        values[row.result].append((builder.op(name, *(value for value, _ in operands)), result))
    return values["u32"]


@given(st.integers(0, 10**9))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_no_value_exceeds_its_bound(seed):
    for value, number in grown(seed):
        assert number <= most(value)


X = "x"


@pytest.mark.parametrize(
    ("operation", "largest"),
    [
        (("rem_u32", X, 10), 9),
        (("rem_u32", ("and_u32", X, 3), 10), 3),
        (("rem_u32", ("and_u32", X, 15), 10), 9),
        (("and_u32", X, 12), 12),
        (("shr_u32", ("and_u32", X, 0x0F0F0F0F), 28), 0),
        (("shl_u32", ("and_u32", X, 3), 33), 6),  # only five bits of the number count
        (("shr_u32", ("and_u32", X, 12), 34), 3),
        (("unpack4xU8_u32", ("and_u32", X, 0x0F0F0F0F), 2), 15),
        *((("unpack4xU8_u32", ("and_u32", X, 0x01020304), byte), 4 - byte) for byte in range(4)),
        *(
            (("unpack4xU8_u32", ("and_u32", X, 0x01020304), byte), 8 - byte) for byte in range(4, 8)
        ),  # of four, byte % 4
        (("unpack4xU8_u32", ("or_u32", X, 1), 2), 255),
        *(
            ((f"{stem}_u32", *operands), largest)  # of 12 and 3
            for stem, largest in {"and": 3, "or": 15, "xor": 15, "add": 15, "mul": 36, "min": 3, "max": 12}.items()
            for operands in ((("and_u32", X, 12), ("and_u32", X, 3)), (("and_u32", X, 3), ("and_u32", X, 12)))
        ),
        (("select_u32", ("and_u32", X, 12), ("and_u32", X, 3), ("lt_u32", X, 5)), 12),
        (("select_u32", ("and_u32", X, 3), ("and_u32", X, 12), ("lt_u32", X, 5)), 12),
        (("convert_bool_u32", ("lt_u32", X, 5)), 1),
        (("div_u32", ("and_u32", X, 12), 5), 2),
        (("add_u32", ("rem_u32", X, 4), 6), 9),
        (("add_u32", X, 1), 2**32 - 1),
        (("extractBits_u32", X, 3, 4), 15),
        (("min_u32", ("mul_u32", ("and_u32", X, 3), 5), 100), 15),
        (("div_u32", X, 0), 2**32 - 1),
    ],
)
def test_bounds_of_operations(operation, largest):
    builder = Builder(passes=ALL - {"fold", "simplify", "ranges"})

    def made(tree):
        if tree == X:
            return builder.input("local_index")
        return builder.const("u32", tree) if isinstance(tree, int) else builder.op(tree[0], *map(made, tree[1:]))

    assert most(made(operation)) == largest
