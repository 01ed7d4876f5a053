"""Numbers as the bits of a register."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bankshot.sim.ir.register_bits import from_bits, to_bits


@pytest.mark.parametrize(
    ("kind", "value", "bits"),
    [
        ("f32", 0.0, 0x00000000),
        ("f32", -0.0, 0x80000000),
        ("f32", 1, 0x3F800000),
        ("f32", 0.1, 0x3DCCCCCD),
        ("f32", 16777217, 0x4B800000),  # rounds to even
        ("f32", 1.401298464324817e-45, 0x00000001),
        ("f32", 1e-46, 0x00000000),
        ("f32", 3.4028234663852886e38, 0x7F7FFFFF),
        ("f32", -3.4028235e38, 0xFF7FFFFF),
        ("f32", 1e39, 0x7F800000),
        ("f32", -math.inf, 0xFF800000),
        ("f32", math.nan, 0x7FC00000),
        ("f32", np.uint32(0x7F800001).view(np.float32), 0x7F800001),  # a signalling NaN keeps its bits
        ("f16", 65504.0, 0x477FE000),
        ("i32", -1, 0xFFFFFFFF),
        ("u32", np.uint32(0xFFFFFFFF), 0xFFFFFFFF),
        ("bool", True, 0x00000001),
    ],
)
def test_bits_of_a_number(kind: str, value: float, bits: int) -> None:
    assert to_bits(kind, value) == bits
    assert to_bits(kind, from_bits(kind, bits)) == bits
