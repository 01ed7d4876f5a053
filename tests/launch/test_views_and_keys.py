"""The least size of a buffer for the views of it, and keys of workgroups that join several."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot
from bankshot.sim.launch import workgroup_classes

VIEW = """@group(0) @binding(0) var<storage, read_write> b: buffer;
@compute @workgroup_size(1) fn main(@builtin(workgroup_id) w: vec3u) {{
    bufferView<{type_}>(&b, {offset})[{index}] = {value};
}}
"""


@pytest.mark.parametrize(
    ("type_", "offset", "value", "least"),
    [
        ("array<u32>", 4, "7u", 8),
        ("array<u32>", 12, "7u", 16),
        ("array<vec4u>", 16, "vec4u(7u)", 32),
        ("array<vec2u>", 8, "vec2u(7u)", 16),
    ],
)
@pytest.mark.parametrize("index", ["0", "w.x"])
def test_a_buffer_has_room_for_an_element_of_each_view(type_, offset, value, least, index):
    text = VIEW.format(type_=type_, offset=offset, value=value, index=index)
    made = bankshot.simulate(text, grid=1, bindings={"b": np.zeros(least // 4, np.uint32)}).outputs["b"]
    assert made.tolist() == [0] * (offset // 4) + [7] * (least // 4 - offset // 4)
    with pytest.raises(bankshot.WgslError, match=f"b has {least - 4} bytes, and a view of it needs {least}"):
        bankshot.simulate(text, grid=1, bindings={"b": np.zeros(least // 4 - 1, np.uint32)})


@pytest.mark.parametrize("scale", [1, 1 << 12, 1 << 29])
@pytest.mark.parametrize("seed", range(4))
def test_a_joined_key_is_equal_where_both_keys_are(seed, scale):
    random = np.random.default_rng(seed)
    one, other = (random.integers(0, 5, 200) * scale for _ in range(2))
    made = workgroup_classes._joined(one, other)
    same = (one[:, None] == one) & (other[:, None] == other)
    assert ((made[:, None] == made) == same).all()


def test_a_joined_key_of_few_values_keeps_their_order():
    one, other = np.array([1, 0, 1, 0]), np.array([0, 2, 1, 0])
    assert np.argsort(workgroup_classes._joined(one, other)).tolist() == [3, 1, 0, 2]
