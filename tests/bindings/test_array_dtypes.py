"""Which dtypes of arrays can be bound to which types, and which sizes."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot
from bankshot.sim.run.prepared import dispatch_of

STRUCTS = """enable f16;
struct Mixed { a: f32, b: u32, c: i32, d: f32 }
struct Same { a: f32, b: f32 }
"""
WORDS = ("uint32", "int32", "uint8")
FIT = {
    "array<f32>": ("float32", "uint8"),
    "array<vec3f>": ("float32", "uint8"),
    "array<Same>": ("float32", "uint8"),
    "array<u32>": WORDS,
    "array<i32>": WORDS,
    "array<atomic<u32>>": WORDS,
    "array<f16>": ("float16", "uint8"),
    "array<vec4h>": ("float16", "uint8"),
    "array<Mixed>": ("uint32", "uint8"),
}
DTYPES = ("float16", "float32", "float64", "uint8", "uint16", "uint32", "int32", "uint64", "bool", "object",
          ">f4", ">u4", "f4,f4", "f4,u4,i4,f4")  # fmt: skip


def bound(type_: str, value: np.ndarray) -> np.ndarray:
    text = f"{STRUCTS}@group(0) @binding(0) var<storage, read_write> y: {type_};\n"
    module = bankshot.check(f"{text}@compute @workgroup_size(1) fn main() {{ _ = &y; }}")
    return dispatch_of(module, grid=1, bindings={"y": value}).bound[0].data


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("type_", FIT)
def test_dtypes_that_fit(type_, dtype):
    array = np.zeros(64, dtype)
    if dtype in FIT[type_] or array.dtype.names:  # structured dtypes are not checked
        assert len(bound(type_, array)) == array.nbytes
    else:
        with pytest.raises(bankshot.WgslError, match="y is ") as caught:
            bound(type_, array)
        assert caught.value.diagnostics[0].code == "binding-dtype"


@pytest.mark.parametrize(
    ("type_", "size", "words"),
    [
        ("array<u32>", 4, None),
        ("array<u32, 3>", 12, None),
        ("array<u32, 3>", 16, None),
        ("array<u32, 3>", 8, "y has 8 bytes, and array<u32, 3> needs 12"),
        ("array<vec3f, 2>", 32, None),
        ("array<vec3f, 2>", 28, "y has 28 bytes, and array<vec3<f32>, 2> needs 32"),
        ("vec3f", 12, None),
        ("array<u32>", 0, "y has 0 bytes, and array<u32> needs at least 4"),
        ("array<f16>", 6, "y has 6 bytes, which is not a multiple of 4"),
        ("array<f16, 3>", 6, "y has 6 bytes"),
        ("array<f16>", 8, None),
    ],
)
def test_sizes(type_, size, words):
    value = np.zeros(size, np.uint8)
    if words is None:
        assert len(bound(type_, value)) == size
        return
    with pytest.raises(bankshot.WgslError) as caught:
        bound(type_, value)
    diagnostic = caught.value.diagnostics[0]
    assert words in diagnostic.message
    assert (diagnostic.hint == "in memory a vec3<f32> takes the space of a vec4") == ("vec3" in type_)
