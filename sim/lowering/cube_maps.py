"""Sampling of cube maps: a direction becomes a face and a point on it; texels beyond an edge are on the next face.

Spec: Vulkan, "Cube Map Face Selection", which WebGPU follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from ..fast_dataclass import frozen
from ..ir.builder import Builder
from ..ir.ir import Value
from .filtering import Sample, Tap
from .textures import FACES

# For each face, the coordinate of the direction (x, y, z) that goes right, down and out of it, and its sign.
_AXES = (
    ((2, -1), (1, -1), (0, +1)),
    ((2, +1), (1, -1), (0, -1)),
    ((0, +1), (2, +1), (1, +1)),
    ((0, +1), (2, -1), (1, -1)),
    ((0, +1), (1, -1), (2, +1)),
    ((0, -1), (1, -1), (2, -1)),
)
_RIGHT, _DOWN, _OUT = range(3)


def project(builder: Builder, direction: Sequence[Value]) -> tuple[Value, list[Value]]:
    """Return the face (u32) that a direction hits, and the point on it: right and down, from 0 to 1."""
    op, const = builder.op, builder.const
    x, y, z = (op("abs_f32", part) for part in direction)
    by_z = op("and_bool", op("ge_f32", z, x), op("ge_f32", z, y))
    axis = op("select_u32", const("u32", 0), const("u32", 1), op("ge_f32", y, x))
    axis = op("select_u32", axis, const("u32", 2), by_z)
    out = op("select_f32", direction[0], direction[1], op("eq_u32", axis, const("u32", 1)))
    out = op("select_f32", out, direction[2], by_z)
    behind = op("convert_bool_u32", op("lt_f32", out, const("f32", 0.0)))
    face = op("add_u32", op("add_u32", axis, axis), behind)
    distance = op("abs_f32", out)
    point: list[Value] = []
    for part in (_RIGHT, _DOWN):
        along = _by_face(builder, face, [_signed(builder, direction[axes[part][0]], axes[part][1]) for axes in _AXES])
        ahead = op("add_f32", op("div_f32", along, distance), const("f32", 1.0))
        point.append(op("mul_f32", ahead, const("f32", 0.5)))
    return face, point


def _direction(builder: Builder, face: Value, parts: Sequence[Value]) -> list[Value]:
    """Return the direction of a point of a face, given as right, down and out."""
    return [_by_face(builder, face, [_along(builder, axes, parts, axis) for axes in _AXES]) for axis in range(3)]


def _along(builder: Builder, axes: Sequence[tuple[int, int]], parts: Sequence[Value], axis: int) -> Value:
    part = next(part for part, (of, _) in enumerate(axes) if of == axis)
    return _signed(builder, parts[part], axes[part][1])


def _signed(builder: Builder, value: Value, sign: int) -> Value:
    return value if sign > 0 else builder.op("neg_f32", value)


def _by_face(builder: Builder, face: Value, values: Sequence[Value]) -> Value:
    """Return one of six values."""
    chosen = values[0]
    for number, value in enumerate(values[1:], 1):
        is_it = builder.op("eq_u32", face, builder.const("u32", number))
        chosen = builder.op("select_f32", chosen, value, is_it)
    return chosen


@frozen
class CubeSample(Sample):
    """A sample of a cube map: `point` is on `face`, and `layer` counts cubes."""

    face: Value = field(kw_only=True)

    def inside(self, axis: int, extent: Value, place: Value) -> Value:
        """Return the texel as it is: address modes do not apply to cubes, and `read` finds the next face."""
        return place

    def at_level(self, level: Value, linear: Value) -> list[Value]:
        """Return the filtered value within a level (u32)."""
        row = self.image.row(level)
        x, y = self.taps(row, linear)
        return self.either(
            linear, lambda: self._blended(x, y, row), lambda: self._fetch(row, self.face, [x.low, y.low])
        )

    def corners(self, row: Value, x: Tap, y: Tap) -> list[list[Value]]:
        """Return four texels. Where three faces meet, the missing one is the mean of the others."""
        texels = super().corners(row, x, y)
        whole: list[list[Value]] = []
        for number, place in enumerate(((x.low, y.low), (x.high, y.low), (x.low, y.high), (x.high, y.high))):
            mean, missing = self._mean(texels[:number] + texels[number + 1 :]), self._is_corner(row, place)
            pairs = zip(texels[number], mean, strict=True)
            whole.append([self.op(f"select_{texel.kind}", texel, other, missing) for texel, other in pairs])
        return whole

    def read(self, row: Value, place: list[Value]) -> list[Value]:
        """Return the texel at a place of the face or, beyond an edge, of the next face."""
        op, const = self.op, self.const
        size = op("convert_u32_f32", self.image.extent(0, row))
        out = const("f32", 1.0)
        parts: list[Value] = []
        for number in place:
            twice = op("add_f32", op("convert_i32_f32", op("add_i32", number, number)), const("f32", 1.0))
            along = op("sub_f32", op("div_f32", twice, size), const("f32", 1.0))
            over = op("max_f32", op("sub_f32", op("abs_f32", along), const("f32", 1.0)), const("f32", 0.0))
            out = op("sub_f32", out, over)
            parts.append(op("clamp_f32", along, const("f32", -1.0), const("f32", 1.0)))
        face, point = project(self.lowering.builder, _direction(self.lowering.builder, self.face, [*parts, out]))
        return self._fetch(row, face, [op("convert_f32_i32", op("mul_f32", part, size)) for part in point])

    def _fetch(self, row: Value, face: Value, place: list[Value]) -> list[Value]:
        """Return the texel of a face that is nearest to a place."""
        op, reinterpret = self.op, self.lowering.builder.reinterpret
        most = op("sub_i32", reinterpret("i32", self.image.extent(0, row)), self.const("i32", 1))
        x, y = (reinterpret("u32", op("clamp_i32", number, self.const("i32", 0), most)) for number in place)
        for cube in self.layer:
            face = op("add_u32", face, op("mul_u32", cube, self.const("u32", FACES)))
        return self.fetch(row, [x, y, face])

    def _blended(self, x: Tap, y: Tap, row: Value) -> list[Value]:
        left_up, right_up, left_down, right_down = self.corners(row, x, y)
        up, down = self.mix(left_up, right_up, x.weight), self.mix(left_down, right_down, x.weight)
        return self.mix(up, down, y.weight)

    def _is_corner(self, row: Value, place: Sequence[Value]) -> Value:
        """Return whether a place is beyond two edges."""
        builder = self.lowering.builder
        extent = self.image.extent(0, row)
        beyond = [self.op("ge_u32", builder.reinterpret("u32", number), extent) for number in place]
        return self.op("and_bool", *beyond)

    def _mean(self, texels: list[list[Value]]) -> list[Value]:
        """Return the mean of three texels; the first one, if they are integers."""
        if texels[0][0].kind != "f32":
            return texels[0]
        op, count = self.op, self.const("f32", len(texels))
        sums = [op("add_f32", op("add_f32", a, b), c) for a, b, c in zip(*texels, strict=True)]
        return [op("div_f32", total, count) for total in sums]
