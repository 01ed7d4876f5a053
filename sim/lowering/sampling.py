"""The sampling builtins: each interprets its arguments for `filtering`. Spec: WGSL, "Texture Built-in Functions"."""

from __future__ import annotations

from dataclasses import replace

from ..ir.ir import Value
from ..wgsl import typed
from ..wgsl import types as t
from ..wgsl.diagnostics import fail
from .context import Effect, Lowering
from .cube_maps import CubeSample, project
from .filtering import Sample
from .textures import FACES, Image


def _sample(lowering: Lowering, call: typed.BuiltinCall, rest: int, first: int = 0) -> Sample:
    """Interpret the arguments of a call: `first` before the texture, `rest` between coordinates and offset."""
    image = Image(lowering, call, first)
    values = [lowering.value(argument) for argument in call.args[first + 2 :]]
    layer = [_layer(lowering, image, values.pop(1)[0])] if image.type.kind.endswith("array") else []
    given, offset = values[1 : 1 + rest], values[1 + rest] if len(values) > 1 + rest else []
    site = image.site("load")
    if image.shape.third != "face":
        return Sample(lowering, image, call.args[first + 1], values[0], layer, given, offset, site)
    face, point = project(lowering.builder, values[0])
    return CubeSample(lowering, image, call.args[first + 1], point, layer, given, [], site, face=face)


def _layer(lowering: Lowering, image: Image, index: Value) -> Value:
    """Return an array index, clamped to the number of layers."""
    builder = lowering.builder
    if index.kind == "i32":
        index = builder.reinterpret("u32", builder.op("max_i32", index, builder.const("i32", 0)))
    faces = builder.const("u32", FACES if image.shape.third == "face" else 1)
    layers = builder.op("div_u32", image.extent(2, builder.const("u32", 0)), faces)
    return builder.op("min_u32", index, builder.op("sub_u32", layers, builder.const("u32", 1)))


def _level(lowering: Lowering, call: typed.BuiltinCall) -> list[Value]:
    sample = _sample(lowering, call, rest=1)
    detail = sample.rest[0][0]
    return sample.at_detail(detail if detail.kind == "f32" else sample.op(f"convert_{detail.kind}_f32", detail))


def _compare(lowering: Lowering, call: typed.BuiltinCall) -> list[Value]:
    sample = _sample(lowering, call, rest=1)
    return replace(sample, reference=sample.rest[0][0]).at_detail(sample.const("f32", 0.0))


def _grad(lowering: Lowering, call: typed.BuiltinCall) -> list[Value]:
    """The level of detail is the binary logarithm of the longer gradient, in texels."""
    sample = _sample(lowering, call, rest=2)
    if isinstance(sample, CubeSample):
        raise fail("unsupported", f"the simulator cannot sample a {sample.image.type} by gradients yet", call.span)
    op, row = sample.op, sample.const("u32", 0)
    squares: list[Value] = []
    for direction in sample.rest:
        square = sample.const("f32", 0.0)
        for axis, part in enumerate(direction):
            texels = op("mul_f32", part, op("convert_u32_f32", sample.image.extent(axis, row)))
            square = op("add_f32", square, op("mul_f32", texels, texels))
        squares.append(square)
    half = op("mul_f32", op("log2_f32", op("max_f32", *squares)), sample.const("f32", 0.5))
    return sample.at_detail(half)


def _base_clamped(lowering: Lowering, call: typed.BuiltinCall) -> list[Value]:
    """Sample the first level, at least half a texel away from every edge."""
    sample = _sample(lowering, call, rest=0)
    op, one = sample.op, sample.const("f32", 1.0)
    point: list[Value] = []
    for axis, part in enumerate(sample.point):
        extent = sample.image.extent(axis, sample.const("u32", 0))
        half = op("div_f32", sample.const("f32", 0.5), op("convert_u32_f32", extent))
        point.append(op("clamp_f32", part, half, op("sub_f32", one, half)))
    return replace(sample, point=point).at_detail(sample.const("f32", 0.0))


def _gather(lowering: Lowering, call: typed.BuiltinCall) -> list[Value]:
    """Return one channel of the four texels that a linear filter would blend, counterclockwise from the lower left."""
    first = 0 if isinstance(call.args[0].type, t.Texture) else 1
    return _gathered(_sample(lowering, call, rest=0, first=first), lowering.value(call.args[0])[0].imm if first else 0)


def _gather_compare(lowering: Lowering, call: typed.BuiltinCall) -> list[Value]:
    sample = _sample(lowering, call, rest=1)
    return _gathered(replace(sample, reference=sample.rest[0][0]), 0)


def _gathered(sample: Sample, channel: int) -> list[Value]:
    row = sample.const("u32", 0)
    x, y = sample.taps(row, sample.const("bool", True))
    corners = sample.corners(row, x, y)
    return [corners[number][channel] for number in (2, 3, 1, 0)]


SAMPLING: dict[str, Effect] = {
    "textureSampleLevel": _level,
    "textureSampleGrad": _grad,
    "textureSampleCompareLevel": _compare,
    "textureSampleBaseClampToEdge": _base_clamped,
    "textureGather": _gather,
    "textureGatherCompare": _gather_compare,
}
