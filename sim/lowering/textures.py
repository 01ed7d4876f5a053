"""Textures as memory: the addresses of texels, and the builtins that take no sampler.

A texel out of bounds gets an address past the end of the texture, so that the access is reported like one of a buffer.
The launch makes such a load return the border or the nearest texel, and such a store do nothing. Spec: WGSL, "Texture
Built-in Functions".
"""

from __future__ import annotations

from ..ir import ir, texture_handles
from ..ir.access import Access
from ..ir.ir import Value
from ..ir.sites import SourceSite
from ..wgsl import typed
from ..wgsl import types as t
from ..wgsl.diagnostics import fail
from ..wgsl.texel_formats import channel_kind, format_of, is_depth, is_external, shape_of
from .context import Effect, Lowering
from .texel_stores import stored

_UNIT = 4  # bytes of a word
_TEXEL = texture_handles.TEXEL_BYTES // _UNIT
FACES = 6
_NO_SITE = -1  # sizes and settings are free


def known_word(lowering: Lowering, handle: typed.Expr, number: int, address: Value | None = None) -> Value:
    """Load a word of the table at the start of a texture or sampler."""
    access = Access(lowering.view(handle).variable, "uniform", _UNIT, 1, number)
    return lowering.builder.fixed_load("u32", 1, lowering.access(access), address, _NO_SITE)[0]


class Image:
    """The texture that is argument number `argument` of a builtin call."""

    def __init__(self, lowering: Lowering, call: typed.BuiltinCall, argument: int = 0) -> None:
        self.builder = lowering.builder
        self.handle = call.args[argument]
        self._lowering = lowering
        self._call = call
        self._variable = lowering.view(self.handle).variable
        type_ = self._variable.type
        assert isinstance(type_, t.Texture)
        if is_external(type_):
            raise fail("unsupported", f"the simulator cannot read {self._variable.name} ({type_})", call.span)
        self.type = type_
        self.shape = shape_of(type_)

    # ---- the table ----

    def last_level(self) -> Value:
        """Return the number of the last level."""
        levels = known_word(self._lowering, self.handle, texture_handles.LEVELS)
        return self.builder.op("sub_u32", levels, self.builder.const("u32", 1))

    def row(self, level: Value) -> Value:
        """Return the row of the table for a level (u32) that exists."""
        return self.builder.op("mul_u32", level, self.builder.const("u32", texture_handles.ROW))

    def row_of(self, level: Value | None) -> tuple[Value, Value]:
        """Return the row for any level (None: the first), clamped to the last, and whether the level exists."""
        builder = self.builder
        if level is None or (level.op == "const" and level.imm == 0):
            return builder.const("u32", 0), builder.const("bool", True)
        number, last = builder.reinterpret("u32", level), self.last_level()
        return self.row(builder.op("min_u32", number, last)), builder.op("le_u32", number, last)

    def extent(self, axis: int, row: Value) -> Value:
        """Return the width, height, or depth (layers, faces, samples) of a level."""
        return known_word(self._lowering, self.handle, texture_handles.WIDTH + axis, row)

    # ---- texels ----

    def address(self, place: list[Value], row: Value) -> Value:
        """Return the address of the texel at a place (u32: x, y, …) inside a level."""
        op = self.builder.op
        number = place[-1]
        for axis in reversed(range(len(place) - 1)):
            number = op("add_u32", op("mul_u32", number, self.extent(axis, row)), place[axis])
        number = op("add_u32", number, known_word(self._lowering, self.handle, texture_handles.FIRST, row))
        return op("mul_u32", number, self.builder.const("u32", _TEXEL))

    def checked_address(self, place: list[Value], level: Value | None) -> Value:
        """Return the address for any place (i32 or u32) and level: out of bounds, the nearest texel's plus the size."""
        builder, op = self.builder, self.builder.op
        row, inside = self.row_of(level)
        nearest: list[Value] = []
        for axis, coordinate in enumerate(place):
            extent, number = self.extent(axis, row), builder.reinterpret("u32", coordinate)
            inside = op("and_bool", inside, op("lt_u32", number, extent))
            if coordinate.kind == "i32":
                number = builder.reinterpret("u32", op("max_i32", coordinate, builder.const("i32", 0)))
            nearest.append(op("min_u32", number, op("sub_u32", extent, builder.const("u32", 1))))
        end = op("mul_u32", builder.length(self._access()), builder.const("u32", _TEXEL))
        beyond = op("select_u32", end, builder.const("u32", 0), inside)
        return op("add_u32", self.address(nearest, row), beyond)

    def read(self, address: Value, site: int) -> list[Value]:
        """Load the four channels of a texel, or the one of a depth texture."""
        kind = channel_kind(self.type)
        results = [self.builder.result(kind) for _ in range(1 if is_depth(self.type) else _TEXEL)]
        self.builder.append(ir.Load(results, self._access(), address, site))
        return results

    def write(self, address: Value, channels: list[Value], site: int) -> None:
        """Store the four channels of a texel."""
        self.builder.append(ir.Store(channels, self._access(writes=True), address, site))

    def site(self, kind: str) -> int:
        """Count this call here; return the number of its site."""
        width = format_of(self.type.format).bytes if self.type.format else 0
        site = SourceSite(kind, self._call.span, "texture", self._variable.name, width, name=self._call.builtin.name)
        number = self._lowering.sites.number(site)
        self.builder.tally(number)
        return number

    def _access(self, *, writes: bool = False) -> int:
        tail = (texture_handles.TEXELS, texture_handles.TEXEL_BYTES)
        offset = texture_handles.TEXELS // _UNIT
        return self._lowering.access(
            Access(self._variable, "storage", _UNIT, _TEXEL, offset, _TEXEL, None, tail, writes)
        )


def _load(lowering: Lowering, call: typed.BuiltinCall) -> list[Value]:
    image = Image(lowering, call)
    place, *rest = (lowering.value(argument) for argument in call.args[1:])
    third = rest.pop(0) if image.shape.third else []
    level = rest[0][0] if rest else None
    address = image.checked_address([*place, *third], level)
    return image.read(address, image.site("load"))


def _store(lowering: Lowering, call: typed.BuiltinCall) -> list[Value]:
    image = Image(lowering, call)
    *place, given = (lowering.value(argument) for argument in call.args[1:])
    assert image.type.format is not None
    channels = stored(lowering.builder, format_of(image.type.format), given, cut=lowering.rounding.cuts_f16)
    address = image.checked_address([value for part in place for value in part], None)
    image.write(address, channels, image.site("store"))
    return []


def _dimensions(lowering: Lowering, call: typed.BuiltinCall) -> list[Value]:
    image = Image(lowering, call)
    level = lowering.value(call.args[1])[0] if len(call.args) > 1 else None
    row, _ = image.row_of(level)
    return [image.extent(axis, row) for axis in range(image.shape.axes)]


def _third(lowering: Lowering, call: typed.BuiltinCall) -> list[Value]:
    """Return the number of layers or samples; the six faces of a cube are one layer."""
    image = Image(lowering, call)
    count = image.extent(2, lowering.builder.const("u32", 0))
    faces = FACES if image.shape.third == "face" else 1
    return [lowering.builder.op("div_u32", count, lowering.builder.const("u32", faces))]


def _levels(lowering: Lowering, call: typed.BuiltinCall) -> list[Value]:
    return [known_word(lowering, call.args[0], texture_handles.LEVELS)]


TEXTURES: dict[str, Effect] = {
    "textureLoad": _load,
    "textureStore": _store,
    "textureDimensions": _dimensions,
    "textureNumLayers": _third,
    "textureNumSamples": _third,
    "textureNumLevels": _levels,
}
