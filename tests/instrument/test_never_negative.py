"""Which values every implementation computes as 0 or more. Here p is such a value, and x and z may be negative."""

from __future__ import annotations

import pytest

from bankshot.sim.instrument.error_bounds.discontinuities import never_negative
from bankshot.sim.ir.builder import Builder
from bankshot.sim.ir.ir import Value

UNARY = ("abs", "exp", "exp2", "sqrt", "inverseSqrt", "saturate", "cosh")
OPERATIONS = [
    *((f"{name} x", True) for name in UNARY),
    *((f"{name} x", False) for name in ("neg", "log", "log2", "sin", "cos", "tan", "tanh", "sinh", "atan", "trunc")),
    ("neg p", False),
    ("sub p p", False),
    ("mul x x", True),
    ("mul x z", False),
    *((f"{name} p p", True) for name in ("mul", "add", "div", "min", "max")),
    *((f"{name} {args}", False) for name in ("mul", "add", "div", "min") for args in ("p x", "x p")),
    *((f"{name} x x", False) for name in ("add", "div", "min")),
    ("max p x", True),
    ("max x p", True),
    ("max x z", False),
    ("fma p p p", True),
    ("fma x x p", True),
    *((f"fma {args}", False) for args in ("x p p", "p x p", "x z p", "p p x", "x x x")),
    ("select p p condition", True),
    *((f"select {args} condition", False) for args in ("p x", "x p", "x z")),
]


@pytest.fixture
def values() -> dict[str, Value]:
    builder = Builder()
    made = {name: builder.reinterpret("f32", builder.input(name)) for name in "xyz"}
    condition = builder.computed("eq_f32", made["x"], made["z"])
    return {**made, "p": builder.computed("abs_f32", made["y"]), "condition": condition}


@pytest.mark.parametrize(("text", "expected"), OPERATIONS, ids=str)
def test_operations(text: str, expected: bool, values: dict[str, Value]) -> None:
    name, *args = text.split()
    assert never_negative(Builder().computed(f"{name}_f32", *(values[each] for each in args)), {}) is expected


@pytest.mark.parametrize(
    ("kind", "number", "expected"),
    [
        *((kind, number, number >= 0) for kind in ("f32", "f16") for number in (1.0, 0.5, 0.0, -0.5, float("-inf"))),
        ("f32", float("nan"), False),
        ("u32", 1, False),
        ("i32", 1, False),
    ],
)
def test_constants(kind: str, number: float, expected: bool) -> None:
    assert never_negative(Builder().const(kind, number), {}) is expected


def test_inputs(values: dict[str, Value]) -> None:
    assert [never_negative(values[name], {}) for name in "xyzp"] == [False, False, False, True]


def test_nothing_below_a_root_is_looked_at_and_nothing_twice(values: dict[str, Value]) -> None:
    root = Builder().computed("sqrt_f32", values["x"])
    known: dict[Value, bool] = {}
    assert never_negative(root, known)
    assert known == {root: True}
    assert never_negative(values["x"], {values["x"]: True})
