"""Conversions of floats at the ends of the range of integers: the last number inside, and the first outside."""

import numpy as np
import pytest

import bankshot

SHADER = """\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<KIND>;
@compute @workgroup_size(1) fn main() { y[0] = KIND(x[0]); }
"""
MOST = {"i32": np.float32(2**31), "u32": np.float32(2**32)}  # the first that is too large


def found(kind, number):
    given = {"x": np.array([number], np.float32), "y": np.zeros(1, kind.replace("i", "int").replace("u", "uint"))}
    run = bankshot.simulate(SHADER.replace("KIND", kind), grid=1, bindings=given)
    return [finding.code for finding in run.findings]


@pytest.mark.parametrize("kind", MOST)
def test_the_largest_number_converts(kind):
    assert found(kind, np.nextafter(MOST[kind], np.float32(0))) == []
    assert found(kind, MOST[kind]) == ["conversion"]


def test_the_least_i32_converts():
    assert found("i32", np.float32(-(2**31))) == []
    assert found("i32", np.nextafter(np.float32(-(2**31)), np.float32(-np.inf))) == ["conversion"]


def test_what_truncates_to_zero_converts_to_u32():
    assert found("u32", np.nextafter(np.float32(-1), np.float32(0))) == []
    assert found("u32", np.float32(-1)) == ["conversion"]


@pytest.mark.parametrize("kind", MOST)
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_does_not_convert(kind, number):
    assert found(kind, number) == ["conversion"]
