"""Other values for a buffer: what is added to each number, by its type."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot
from bankshot.sim.bindings.variation import vary
from bankshot.sim.run.prepared import dispatch_of

STRUCTS = "struct Same { a: vec3f, b: f32 } struct Mixed { a: vec3f, b: u32 } struct Atomics { a: atomic<u32> }\n"


def varied(type_: str, values: np.ndarray, space: str = "storage, read_write") -> tuple[np.ndarray, np.ndarray]:
    """The data of a binding before and after, as its own type of number."""
    text = f"@group(0) @binding(0) var<{space}> y: {type_};\n@compute @workgroup_size(1) fn main() {{ _ = &y; }}"
    enable = "enable f16;\n" if "f16" in type_ else ""
    (bound,) = dispatch_of(bankshot.check(enable + STRUCTS + text), grid=1, bindings={"y": values}).bound
    return bound.data.view(values.dtype), vary(bound).data.view(values.dtype)


@pytest.mark.parametrize(
    ("type_", "dtype", "share"),
    [
        ("array<u32>", np.uint32, 1),
        ("array<i32>", np.int32, 1),
        ("array<f32>", np.float32, 256),
        ("array<f16>", np.float16, 256),
        ("array<vec4<f32>>", np.float32, 256),
        ("array<mat2x2<f32>>", np.float32, 256),
        ("array<Same>", np.float32, 256),
        ("array<array<vec4i, 2>>", np.int32, 1),
    ],
)
def test_numbers_grow_by_what_repeats_after_251(type_, dtype, share):
    before, after = varied(type_, np.zeros(512, dtype))
    expected = np.array([1 + k % 251 for k in range(512)])
    np.testing.assert_array_equal(before, 0)
    np.testing.assert_array_equal(after, (expected / share).astype(dtype))


@pytest.mark.parametrize("type_", ["array<Mixed>", "array<atomic<u32>>", "array<Atomics>"])
def test_what_is_not_of_one_type_stays(type_):
    before, after = varied(type_, np.arange(64, dtype=np.uint32))
    np.testing.assert_array_equal(after, before)
    np.testing.assert_array_equal(before, np.arange(64))
