"""Texture filtering, in ordinary operations on f32: coordinates and a sampler select texels, which are blended.

Weights are exact in f32. Hardware rounds them to a few bits (Vulkan's subTexelPrecisionBits and mipmapPrecisionBits),
so filtered samples are close to those of a GPU, not equal. Anisotropic filtering is not modelled. Texture units blend,
so it counts no FLOPs. Spec: WebGPU, "GPUSampler"; Vulkan, "Image Operations".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..fast_dataclass import frozen
from ..ir import texture_handles
from ..ir.ir import Value
from ..wgsl import typed
from ..wgsl.texel_formats import is_depth
from .context import Lowering
from .textures import Image, known_word

_Read = Callable[[list[Value]], list[Value]]  # place of a texel -> its channels


@frozen
class Tap:
    """The two texels around a point along one axis, in bounds, and the weight of the second (0 to 1)."""

    low: Value
    high: Value
    weight: Value


@frozen
class Sample:
    """One sampling call. `layer`: in bounds, for arrays only. `rest`: the arguments between it and the offset."""

    lowering: Lowering
    image: Image
    sampler: typed.Expr
    point: list[Value]
    layer: list[Value]
    rest: list[list[Value]]
    offset: list[Value]
    site: int
    reference: Value | None = None

    # ---- operations ----

    def op(self, name: str, *args: Value) -> Value:
        return self.lowering.builder.op(name, *args)

    def const(self, kind: str, value: float) -> Value:
        return self.lowering.builder.const(kind, value)

    def setting(self, number: int) -> Value:
        """Load a word of the sampler."""
        return known_word(self.lowering, self.sampler, number)

    def is_set(self, number: int, value: int) -> Value:
        return self.op("eq_u32", self.setting(number), self.const("u32", value))

    def mix(self, one: list[Value], other: list[Value], weight: Value) -> list[Value]:
        op = self.op
        return [op("add_f32", a, op("mul_f32", op("sub_f32", b, a), weight)) for a, b in zip(one, other, strict=True)]

    def either(
        self, condition: Value, then: Callable[[], list[Value]], orelse: Callable[[], list[Value]]
    ) -> list[Value]:
        """Return the values of one of the two; only that one loads texels."""
        builder = self.lowering.builder
        width = 1 if is_depth(self.image.type) else 4
        slots = builder.block(["f32"] * width, "sample").slots

        def keep(values: list[Value]) -> None:
            for slot, value in zip(slots, values, strict=True):
                builder.set(slot, value)

        keep([self.const("f32", 0.0)] * width)
        builder.branch(condition, lambda: keep(then()), lambda: keep(orelse()))
        return [builder.get(slot) for slot in slots]

    # ---- places ----

    def taps(self, row: Value, linear: Value) -> list[Tap]:
        """Return the taps along each axis of a level; nearest filtering uses `low` only."""
        return [self._tap(axis, row, linear) for axis in range(self.image.shape.axes)]

    def _tap(self, axis: int, row: Value, linear: Value) -> Tap:
        op = self.op
        extent = self.image.extent(axis, row)
        back = op("select_f32", self.const("f32", 0.0), self.const("f32", 0.5), linear)
        point = op("sub_f32", op("mul_f32", self.point[axis], op("convert_u32_f32", extent)), back)
        whole = op("floor_f32", point)
        low = op("convert_f32_i32", whole)
        if self.offset:
            low = op("add_i32", low, self.offset[axis])
        high = op("add_i32", low, self.const("i32", 1))
        inside = partial(self.inside, axis, self.lowering.builder.reinterpret("i32", extent))
        return Tap(inside(low), inside(high), op("sub_f32", point, whole))

    def inside(self, axis: int, extent: Value, place: Value) -> Value:
        """Return a texel in bounds along an axis, by the sampler's address mode."""
        op = self.op
        one, zero = self.const("i32", 1), self.const("i32", 0)
        clamped = op("clamp_i32", place, zero, op("sub_i32", extent, one))
        twice = op("add_i32", extent, extent)
        there = self._modulo(place, twice)
        mirrored = op("min_i32", there, op("sub_i32", op("sub_i32", twice, one), there))
        chosen = op("select_i32", clamped, mirrored, self.is_set(texture_handles.MODES + axis, texture_handles.MIRROR))
        repeats = self.is_set(texture_handles.MODES + axis, texture_handles.REPEAT)
        return self.lowering.builder.reinterpret("u32", op("select_i32", chosen, self._modulo(place, extent), repeats))

    def _modulo(self, place: Value, period: Value) -> Value:
        rest = self.op("rem_i32", place, period)
        below = self.op("lt_i32", rest, self.const("i32", 0))
        return self.op("select_i32", rest, self.op("add_i32", rest, period), below)

    # ---- texels ----

    def read(self, row: Value, place: list[Value]) -> list[Value]:
        """Return the texel at a tap of each axis."""
        return self.fetch(row, [*place, *self.layer])

    def corners(self, row: Value, x: Tap, y: Tap) -> list[list[Value]]:
        """Return the four texels of two taps: low y before high, in each low x before high."""
        return [self.read(row, [along, down]) for down in (y.low, y.high) for along in (x.low, x.high)]

    def fetch(self, row: Value, place: list[Value]) -> list[Value]:
        """Return the texel at a place and layer; with a reference, the result of the comparison (0 or 1)."""
        texel = self.image.read(self.image.address(place, row), self.site)
        return texel if self.reference is None else [self._comparison(texel[0], self.reference)]

    def _comparison(self, texel: Value, reference: Value) -> Value:
        op, mode = self.op, self.setting(texture_handles.COMPARE)
        holds = self.const("bool", False)
        for bit, comparison in (
            (texture_handles.LESS, "lt"),
            (texture_handles.EQUAL, "eq"),
            (texture_handles.GREATER, "gt"),
        ):
            counts = op("ne_u32", op("and_u32", mode, self.const("u32", bit)), self.const("u32", 0))
            holds = op("or_bool", holds, op("and_bool", counts, op(f"{comparison}_f32", reference, texel)))
        return op("convert_bool_f32", holds)

    # ---- filters ----

    def at_detail(self, detail: Value) -> list[Value]:
        """Return the filtered value at a level of detail (f32)."""
        op, const = self.op, self.const
        lowest, highest = (self._float(self.setting(n)) for n in (texture_handles.LOWEST, texture_handles.HIGHEST))
        detail = op("min_f32", op("max_f32", detail, lowest), highest)
        magnified = op("le_f32", detail, const("f32", 0.0))
        linear = op(
            "select_bool",
            *(self.is_set(n, texture_handles.LINEAR) for n in (texture_handles.MIN, texture_handles.MAG)),
            magnified,
        )
        between = self.is_set(texture_handles.MIP, texture_handles.LINEAR)
        last = self.image.last_level()
        detail = op("clamp_f32", detail, const("f32", 0.0), op("convert_u32_f32", last))
        rounding = op("select_f32", const("f32", 0.5), const("f32", 0.0), between)
        whole = op("floor_f32", op("add_f32", detail, rounding))
        weight = op("select_f32", const("f32", 0.0), op("sub_f32", detail, whole), between)
        level = op("min_u32", op("convert_f32_u32", whole), last)
        first = self.at_level(level, linear)

        def blended() -> list[Value]:
            above = op("min_u32", op("add_u32", level, const("u32", 1)), last)
            return self.mix(first, self.at_level(above, linear), weight)

        return self.either(op("ne_f32", weight, const("f32", 0.0)), blended, lambda: first)

    def _float(self, word: Value) -> Value:
        return self.lowering.builder.reinterpret("f32", word)

    def at_level(self, level: Value, linear: Value) -> list[Value]:
        """Return the filtered value within a level (u32)."""
        row = self.image.row(level)
        taps = self.taps(row, linear)
        read = partial(self.read, row)
        return self.either(linear, lambda: self._blend(taps, [], read), lambda: read([tap.low for tap in taps]))

    def _blend(self, taps: list[Tap], chosen: list[Value], read: _Read) -> list[Value]:
        """Return the weighted sum of the texels around a point. `chosen`: the texel along the last axes."""
        if not taps:
            return read(chosen)
        *others, tap = taps
        low = self._blend(others, [tap.low, *chosen], read)
        return self.mix(low, self._blend(others, [tap.high, *chosen], read), tap.weight)
