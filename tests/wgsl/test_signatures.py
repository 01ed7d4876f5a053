"""Signatures of builtins are spelled out in messages."""

from __future__ import annotations

import pytest

from bankshot.sim.wgsl import types as t
from bankshot.sim.wgsl.builtins.signature import OPEN, parse


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("(af, ai) -> af", "(abstract-float, abstract-int) -> abstract-float"),
        ("(T) -> T; T: anynum", "(T) -> T; T: number"),
        ("(T) -> T; T: num", "(T) -> T; T: number"),
        ("(T) -> T; T: signed", "(T) -> T; T: signed number"),
        ("(T) -> T; T: anyint", "(T) -> T; T: integer"),
        ("(T) -> T; T: int", "(T) -> T; T: integer"),
        ("(T) -> T; T: anyfloat", "(T) -> T; T: float"),
        ("(T) -> u32; T: word", "(T) -> u32; T: i32 | u32 | f32"),
        ("(T, T, bool) -> T; T: concrete", "(T, T, bool) -> T; T: scalar"),
        ("(vecN<af>) -> vecN<af>", "(vecN<abstract-float>) -> vecN<abstract-float>"),
        ("(bool)", "(bool)"),
    ],
)
def test_a_signature_in_messages(written, said):
    assert str(parse(written)) == said


@pytest.mark.parametrize(
    ("type_", "holds"),
    [
        (t.F32, True),
        (t.Vec(3, t.BOOL), True),
        (t.Array(t.F32, 4), True),
        (t.Array(t.F32, None), False),  # sized by its buffer
        (t.Atomic(t.U32), False),
        (t.Array(t.Atomic(t.U32), 4), False),
        (t.ABSTRACT_INT, False),
        (t.ABSTRACT_FLOAT, False),
        ("read", False),  # an enumerant
    ],
    ids=str,
)
def test_which_types_are_constructible_and_concrete(type_, holds):
    """WGSL, "Constructible Types"."""
    assert OPEN["constructible"](type_) == holds
