"""The bounds of outputs: which inputs may hold subnormal numbers, and which elements have a bound of their own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bankshot
from bankshot.sim.bindings.binding import Bound
from bankshot.sim.bindings.buffers import bind
from bankshot.sim.instrument.error_bounds.instrument import Doubt
from bankshot.sim.run import output_bounds
from bankshot.sim.wgsl.source import Source, Span


def bound(type_: str, array: np.ndarray) -> Bound:
    text = f"""enable f16; struct Mixed {{ a: u32, b: f32 }} struct Halves {{ a: vec2h, b: u32, c: f16 }}
        @group(0) @binding(0) var<storage, read_write> v: {type_};
        @compute @workgroup_size(1) fn main() {{ _ = &v; }}"""
    (found,) = bind(bankshot.check(text).pipeline("main", {}), {"v": array})
    return found


# IEEE 754: a number is subnormal if its exponent bits are 0 and its fraction is not.
SINGLE = {0: False, 1: True, 0x7FFFFF: True, 0x800000: False, 0x3F800000: False, 0x7F800000: False,
          0x80000000: False, 0x80000001: True, 0x807FFFFF: True, 0x80800000: False}  # fmt: skip
HALF = {0: False, 1: True, 0x3FF: True, 0x400: False, 0x3C00: False, 0x7C00: False, 0x8000: False, 0x8001: True,
        0x83FF: True, 0x8400: False}  # fmt: skip


@pytest.mark.parametrize(("bits", "subnormal"), SINGLE.items())
def test_subnormal_numbers_of_32_bits(bits: int, subnormal: bool) -> None:
    words = np.array([0x3F800000, bits], np.uint32)
    assert output_bounds._has_subnormals(bound("array<f32>", words.view(np.float32))) == subnormal
    assert output_bounds._has_subnormals(bound("array<Mixed>", words.view(np.uint8))) == subnormal
    assert not output_bounds._has_subnormals(bound("array<u32>", words))


@pytest.mark.parametrize(("bits", "subnormal"), HALF.items())
@pytest.mark.parametrize("place", [0, 1])
def test_subnormal_numbers_of_16_bits(bits: int, subnormal: bool, place: int) -> None:
    halves = np.full(2, 0x3C00, np.uint16)
    halves[place] = bits
    assert output_bounds._has_subnormals(bound("array<f16>", halves.view(np.float16))) == subnormal
    assert not output_bounds._has_subnormals(bound("array<u32>", halves.view(np.uint32)))


def test_each_element_has_the_largest_bound_of_its_parts() -> None:
    """Shadows of two and four bytes, of an output whose elements have either size. A NaN bounds nothing."""
    four, two = np.array([1, 5, np.nan], np.float32), np.array([2, 0, 3, 4, 0, 0], np.float32)
    singles = output_bounds._per_unit(bound("array<f32>", np.zeros(3, np.float32)), {4: four, 2: two})
    assert singles.tolist() == [2, 5, np.inf]
    halves = output_bounds._per_unit(bound("array<f16>", np.zeros(6, np.float16)), {4: four, 2: two})
    assert halves.tolist() == [2, 1, 5, 5, np.inf, np.inf]


def test_a_place_that_is_inlined_twice_is_one_finding() -> None:
    """With the counts of both, and the first invocation of either: number 70 of the grid is lane 6 of workgroup 1."""
    source = Source("if a < b {}\nif b < a {}\n")
    one, other = (Doubt(Span(source, at, at + 2), "a branch") for at in (0, 12))
    instrumented: Any = SimpleNamespace(doubts=[one, other, one, other])
    dispatch: Any = SimpleNamespace(lanes=64, grid=(2, 2, 2))
    notes = np.array([[2, 200], [0, 0xFFFFFFFF], [3, 70], [1, 511]], np.uint32)
    found = [*output_bounds._findings(instrumented, notes, dispatch)]
    assert [(f.span, f.count, f.workgroup, f.lanes) for f in found] == [
        (one.span, 5, (1, 0, 0), (6,)), (other.span, 1, (1, 1, 1), (63,)),
    ]  # fmt: skip


def test_an_integer_is_exact_or_unbounded() -> None:
    """In a struct of 12 bytes: two halves, an integer, a half and padding."""
    struct = bound("array<Halves>", np.zeros(24, np.uint8))
    assert output_bounds._integers(struct, 4).tolist() == [False, True, False] * 2
    assert output_bounds._integers(struct, 2).tolist() == [False, False, True, True, False, False] * 2
    sized = bound("array<Halves, 2>", np.zeros(24, np.uint8))
    assert output_bounds._integers(sized, 4).tolist() == [False, True, False] * 2
    nested = bound("array<array<Mixed, 2>, 3>", np.zeros(48, np.uint8))
    assert output_bounds._integers(nested, 4).tolist() == [True, False] * 6
    units = output_bounds._per_unit(struct, {4: np.array([1, 2, 3, 4, 0, 6], np.float32)})
    assert units.tolist() == [1, np.inf, 3, 4, 0, 6]
