"""The texture builtins. The simulator supports those of compute shaders. Spec: WGSL, "Texture Built-in Functions"."""

from __future__ import annotations

from collections.abc import Iterable

from .row import ANY_STAGE, Builtin

_FRAGMENT = frozenset(("fragment",))

_COORDS = {
    "1d": "f32",
    "2d": "vec2<f32>",
    "2d_array": "vec2<f32>",
    "3d": "vec3<f32>",
    "cube": "vec3<f32>",
    "cube_array": "vec3<f32>",
}
_OFFSETS = {"2d": "vec2<i32>", "2d_array": "vec2<i32>", "3d": "vec3<i32>"}
_COLOR = ("2d", "2d_array", "3d", "cube", "cube_array")
_FLAT = ("2d", "2d_array", "cube", "cube_array")  # the shapes of gathers, and of depth textures


def _sampled(
    shapes: Iterable[str],
    *,
    texture: str = "texture_{}<f32>",
    sampler: str = "sampler",
    first: str = "",
    extra: str = "",
    result: str = "vec4<f32>",
    over: str = "",
) -> tuple[str, ...]:
    """Return the signatures over several texture shapes, each without and (where the shape has one) with an offset.

    The parameters are, in order: `first`, texture, sampler, coordinates, array index, `extra`, offset. In `extra`, `{}`
    is the type of the coordinates.
    """
    signatures: list[str] = []
    for shape in shapes:
        coords = _COORDS[shape]
        index = ", int" if shape.endswith("array") else ""
        head = f"({first}{texture.format(shape)}, {sampler}, {coords}{index}{extra.format(coords, coords)}"
        offsets = ("", f", const {_OFFSETS[shape]}") if shape in _OFFSETS else ("",)
        signatures += [f"{head}{offset}) -> {result}{over}" for offset in offsets]
    return tuple(signatures)


def _texture(
    name: str,
    *signatures: str,
    stages: frozenset[str] = ANY_STAGE,
    uniform: str | None = None,
    must_use: bool = True,
    anchor: str | None = None,
) -> Builtin:
    return Builtin(
        name,
        signatures,
        anchor or name.lower(),
        kind="effect",
        const=False,
        must_use=must_use,
        stages=stages,
        uniform=uniform,
        nonuniform_result=uniform is not None,
    )


_CHANNEL = "; S: word"
_DEPTH = "texture_depth_{}"
_COMPARE = {"texture": _DEPTH, "sampler": "sampler_comparison", "extra": ", f32"}
_DERIVATIVE = "derivative_uniformity"


def _dimensions(result: str, sampled: Iterable[str], plain: Iterable[str], storage: Iterable[str]) -> tuple[str, ...]:
    """Return the signatures of textureDimensions; only `sampled` textures take a level."""
    whole = [f"({name}) -> {result}{over}" for name, over in map(_channeled, (*sampled, *plain))]
    level = [f"({name}, int) -> {result}{over}" for name, over in map(_channeled, sampled)]
    stored = [f"(texture_storage_{shape}<F, A>) -> {result}{_STORAGE_ANY}" for shape in storage]
    return (*whole, *level, *stored)


def _channeled(name: str) -> tuple[str, str]:
    return name, _CHANNEL if "<S>" in name else ""


_STORAGE_ANY = "; F: format; A: read | write | read_write"
_STORAGE_READ = "; F: format; A: read | read_write"
_STORAGE_WRITE = "; F: format; A: write | read_write"
_STORAGE_COORDS = {"1d": "int", "2d": "vec2<int>", "2d_array": "vec2<int>, int", "3d": "vec3<int>"}

_DIMENSIONS = (
    *_dimensions("u32", ["texture_1d<S>"], [], ["1d"]),
    *_dimensions(
        "vec2<u32>",
        [*(f"texture_{shape}<S>" for shape in _FLAT), *(f"texture_depth_{shape}" for shape in _FLAT)],
        ["texture_multisampled_2d<S>", "texture_depth_multisampled_2d", "texture_external"],
        ["2d", "2d_array"],
    ),
    *_dimensions("vec3<u32>", ["texture_3d<S>"], [], ["3d"]),
)

_LOAD = (
    "(texture_1d<S>, int, int) -> vec4<S>; S: word",
    "(texture_2d<S>, vec2<int>, int) -> vec4<S>; S: word",
    "(texture_2d_array<S>, vec2<int>, int, int) -> vec4<S>; S: word",
    "(texture_3d<S>, vec3<int>, int) -> vec4<S>; S: word",
    "(texture_multisampled_2d<S>, vec2<int>, int) -> vec4<S>; S: word",
    "(texture_depth_2d, vec2<int>, int) -> f32",
    "(texture_depth_2d_array, vec2<int>, int, int) -> f32",
    "(texture_depth_multisampled_2d, vec2<int>, int) -> f32",
    "(texture_external, vec2<int>) -> vec4<f32>",
    *(
        f"(texture_storage_{shape}<F, A>, {coords}) -> vec4<texel<F>>{_STORAGE_READ}"
        for shape, coords in _STORAGE_COORDS.items()
    ),
)

_LAYERED = ("texture_2d_array<S>", "texture_cube_array<S>", "texture_depth_2d_array", "texture_depth_cube_array")
_LEVELLED = (
    *(f"texture_{shape}<S>" for shape in ("1d", *_COLOR)),
    *(f"texture_depth_{shape}" for shape in _FLAT),
)

ROWS = (
    _texture("textureDimensions", *_DIMENSIONS),
    _texture(
        "textureGather",
        *_sampled(_FLAT, first="const int, ", texture="texture_{}<S>", result="vec4<S>", over=_CHANNEL),
        *_sampled(_FLAT, texture=_DEPTH),
    ),
    _texture("textureGatherCompare", *_sampled(_FLAT, **_COMPARE)),
    _texture("textureLoad", *_LOAD),
    _texture(
        "textureNumLayers",
        *(f"({name}) -> u32{over}" for name, over in map(_channeled, _LAYERED)),
        f"(texture_storage_2d_array<F, A>) -> u32{_STORAGE_ANY}",
    ),
    _texture("textureNumLevels", *(f"({name}) -> u32{over}" for name, over in map(_channeled, _LEVELLED))),
    _texture(
        "textureNumSamples", "(texture_multisampled_2d<S>) -> u32; S: word", "(texture_depth_multisampled_2d) -> u32"
    ),
    _texture(
        "textureSample",
        *_sampled(("1d", *_COLOR)),
        *_sampled(_FLAT, texture=_DEPTH, result="f32"),
        stages=_FRAGMENT,
        uniform=_DERIVATIVE,
    ),
    _texture("textureSampleBias", *_sampled(_COLOR, extra=", f32"), stages=_FRAGMENT, uniform=_DERIVATIVE),
    _texture("textureSampleCompare", *_sampled(_FLAT, **_COMPARE, result="f32"), stages=_FRAGMENT, uniform=_DERIVATIVE),
    _texture("textureSampleCompareLevel", *_sampled(_FLAT, **_COMPARE, result="f32")),
    _texture("textureSampleGrad", *_sampled(_COLOR, extra=", {}, {}")),
    _texture(
        "textureSampleLevel",
        *_sampled(("1d", *_COLOR), extra=", f32"),
        *_sampled(_FLAT, texture=_DEPTH, extra=", int", result="f32"),
    ),
    _texture(
        "textureSampleBaseClampToEdge",
        *(f"({name}, sampler, vec2<f32>) -> vec4<f32>" for name in ("texture_2d<f32>", "texture_external")),
        anchor="textureSampleBaseClampToEdge",
    ),
    _texture(
        "textureStore",
        *(
            f"(texture_storage_{shape}<F, A>, {coords}, vec4<texel<F>>){_STORAGE_WRITE}"
            for shape, coords in _STORAGE_COORDS.items()
        ),
        must_use=False,
    ),
)
