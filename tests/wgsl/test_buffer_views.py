"""What the checker says of buffers and their views; Tint agrees on which texts are wrong. Spec: "Buffer Types"."""

from __future__ import annotations

import pytest

from bankshot.sim.front_end import portability
from bankshot.sim.wgsl import types as t
from bankshot.sim.wgsl.check.check_module import LANGUAGE_FEATURES, check
from bankshot.sim.wgsl.diagnostics import WgslError
from bankshot.sim.wgsl.source import Source

HEAD = """
struct Tail { count: u32, rest: array<vec2u> }
@group(0) @binding(0) var<storage, read_write> b: buffer;
@group(0) @binding(1) var<storage> f: buffer<64>;
@group(0) @binding(2) var<uniform> u: buffer<64>;
@group(0) @binding(3) var<storage, read_write> list: array<u32>;
var<workgroup> w: buffer<64>;
fn narrow(p: ptr<storage, buffer<16>>) -> u32 { return bufferLength(p); }
fn wide(p: ptr<storage, buffer>) -> u32 { return bufferLength(p); }
@compute @workgroup_size(1) fn main(@builtin(local_invocation_index) i: u32) {
"""

VALID = [
    "let x = *bufferView<vec4f>(&b, 16);",
    "*bufferView<u32>(&b, i) = 1u;",
    "bufferView<array<u32, 4>>(&w, 0)[i] = 1u;",
    "let x = bufferView<Tail>(&f, 8).rest[1].y;",
    "let x = bufferArrayView<array<u32>>(&u, 4, 8)[i];",
    "let n = arrayLength(bufferView<array<u32>>(&w, 0)) + arrayLength(bufferView<array<vec4f>>(&u, 0));",
    "let n = bufferLength(&b) + bufferLength(&w);",
    "let p = &f; let n = narrow(p) + wide(&f);",
    "let buffer = 1; let x = buffer + 1;",
    "let x = bufferArrayView<Tail>(&b, 0, 16).rest[i];",
    "let x = bufferArrayView<Tail>(&b, 0, 24).rest[i];",
    "let x = bufferView<Tail>(&f, 48).rest[i];",
    "let x = bufferView<array<u32, 16>>(&f, 0)[i];",
    "let x = bufferArrayView<array<u32>>(&f, 32, 32)[i];",
    "let x = bufferArrayView<array<u32>>(&f, 0, i)[i];",
]


@pytest.mark.parametrize("text", VALID)
def test_valid(text: str) -> None:
    assert check(Source(f"{HEAD}{text} }}"))


INVALID = [
    ("let x = ¦b[0];", "a buffer cannot be indexed", "bufferView<Type>(&b, offset)"),
    ("let x = ¦b;", "a value of type buffer cannot be read as a whole", "bufferView<Type>(&b, offset)"),
    ("let x = *bufferView<u32>(¦b, 0);", "argument 1 of 'bufferView' must be a pointer", "&b"),
    ("let x = *bufferView<u32>(¦&list, 0);", "takes a pointer to a buffer", "buffer;"),
    ("let x = ¦bufferView(&b, 0);", "'bufferView' needs one template argument", "bufferView<Type>(&name, offset)"),
    ("let x = ¦bufferView<u32>(&b);", "'bufferView' takes 2 arguments, not 1", "bufferView<Type>(&name, offset)"),
    ("let x = ¦bufferLength<u32>(&b);", "'bufferLength' takes no template argument", "bufferLength(&name)"),
    ("let x = arrayLength(¦&b);", "'arrayLength' takes no pointer to a buffer", "bufferLength(&b)"),
    ("¦bufferView<u32>(&b, 0);", "the result of 'bufferView' must be used", "_ ="),
    ("let x = bufferView<¦atomic<u32>>(&b, 0);", "a buffer cannot be viewed as atomic<u32>", None),
    ("let x = bufferView<¦bool>(&b, 0);", "a buffer cannot be viewed as bool", None),
    ("let x = bufferView<¦buffer<4>>(&b, 0);", "a buffer cannot be viewed as buffer<4>", None),
    ("let x = bufferView<u32>(&b, ¦1.0);", "must be i32 or u32, not f32", "u32(1.0)"),
    ("let x = bufferView<u32>(&b, ¦-4);", "must not be negative", None),
    ("let x = bufferArrayView<array<u32>>(&b, 0, ¦-1);", "must not be negative", None),
    ("let x = bufferArrayView<Tail>(&b, 0, ¦8);", "must be 8 and a multiple of 8, not 8", None),
    ("let x = bufferArrayView<Tail>(&b, 0, ¦20);", "must be 8 and a multiple of 8, not 20", None),
    ("let x = ¦bufferView<Tail>(&f, 56);", "a view of 16 bytes at offset 56 is not within buffer<64>", None),
    ("let p = &b; let x = *bufferView<u32>(¦*p, 0);", "argument 1 of 'bufferView' must be a pointer", "&*p"),
    ("let x = *bufferView<u32>(¦list, 0);", "takes a pointer to a buffer, not array<u32>", "buffer;"),
    ("let x = ¦bufferView<vec3f>(&f, 64);", "a view of 12 bytes at offset 64 is not within buffer<64>", None),
    ("let x = bufferView<vec4u>(&b, ¦20);", "offset 20 is not a multiple of 16", "for example 16"),
    ("let x = bufferArrayView<array<u32>>(&b, 0, ¦0);", "must be a multiple of 4, not 0", None),
    ("let x = bufferArrayView<array<u32>>(&b, 0, ¦6);", "must be a multiple of 4, not 6", None),
    ("let x = ¦bufferView<u32>(&f, 64);", "a view of 4 bytes at offset 64 is not within buffer<64>", None),
    ("let x = ¦bufferView<array<u32, 17>>(&f, i);", "a view of 68 bytes at offset 0 is not within", None),
    ("let x = bufferArrayView<¦u32>(&b, 0, 4);", "views a runtime-sized array, not u32", "bufferView<u32>"),
    ("let x = bufferArrayView<array<vec2u>>(&b, 0, ¦12);", "must be a multiple of 8, not 12", None),
    ("let x = ¦bufferArrayView<array<u32>>(&f, 32, 64);", "a view of 64 bytes at offset 32", None),
    (
        "let x = narrow(¦&b);",
        "parameter 'p' of 'narrow' is ptr<storage, buffer<16>, read>",
        "declare the pointer as ptr<storage, buffer, read_write>",
    ),
    ("var x: ¦buffer<4>;", "cannot have type buffer<4>", None),
]
MODULES = [
    ("var<workgroup> a: ¦buffer;", "cannot have type buffer", "buffer<1024>"),
    ("@group(0) @binding(0) var<uniform> a: ¦buffer;", "cannot have type buffer", "buffer<1024>"),
    ("var<private> a: ¦buffer<4>;", "cannot have type buffer<4>", None),
    ("var<workgroup> a: buffer<¦6>;", "must be a multiple of 4, not 6", None),
    ("var<workgroup> a: buffer<¦0>;", "must be at least 1, not 0", None),
    ("struct A { a: ¦buffer<4> }", "member 'a' cannot have type buffer<4>", None),
    ("var<workgroup> a: array<¦buffer<4>, 2>;", "cannot have elements of type buffer<4>", None),
]


@pytest.mark.parametrize(
    ("text", "said", "hint"), [*((f"{HEAD}{text} }}", *rest) for text, *rest in INVALID), *MODULES]
)
def test_invalid(text: str, said: str, hint: str | None) -> None:
    source = Source(text.replace("¦", ""))
    with pytest.raises(WgslError) as refused:
        check(source)
    (told,) = refused.value.diagnostics
    assert said in told.message
    assert hint is None if told.hint is None else hint and hint in told.hint
    assert told.span is not None
    assert told.span.start == text.index("¦")


def test_what_is_not_supported_yet_is_said() -> None:
    with pytest.raises(WgslError, match="a buffer whose size is an override is not supported yet"):
        check(Source("override n = 4; var<workgroup> a: buffer<n>;"))
    with pytest.raises(WgslError, match="'bufferLength' needs the language feature 'buffer_view'"):
        check(
            Source("var<private> a = 1; fn f() { _ = bufferLength(&a); }"), features=LANGUAGE_FEATURES - {"buffer_view"}
        )
    with pytest.raises(WgslError, match="type 'buffer' needs the language feature 'buffer_view'"):
        check(Source("var<workgroup> a: buffer<4>;"), features=LANGUAGE_FEATURES - {"buffer_view"})


def test_with_f16_a_size_may_be_a_multiple_of_2() -> None:
    for size in (2, 6, 10, 64):
        assert check(Source(f"enable f16; var<workgroup> a: buffer<{size}>;"))
    for size in (1, 3, 9):
        with pytest.raises(WgslError, match="the size of a buffer must be a multiple"):
            check(Source(f"enable f16; var<workgroup> a: buffer<{size}>;"))


@pytest.mark.parametrize(
    "declaration", ["var<workgroup> w: buffer<64>;", "@group(0) @binding(0) var<storage> w: buffer;"]
)
def test_wgpu_reads_no_buffers(declaration: str) -> None:
    text = f"{declaration} @compute @workgroup_size(1) fn main() {{ _ = bufferLength(&w); }}"
    assert [note.code for note in portability(check(Source(text)))] == ["buffer-type"]


def to_buffer(size: int | None, space: str = "storage", access: str = "read") -> t.Pointer:
    return t.Pointer(space, t.buffer(size), access)


def to_array(size: int) -> t.Pointer:
    return t.Pointer("storage", t.Array(t.U32, size // 4), "read")


@pytest.mark.parametrize(
    ("given", "wanted", "narrows"),
    [
        (to_buffer(64), to_buffer(16), True),
        (to_buffer(64), to_buffer(60), True),
        (to_buffer(64), to_buffer(None), True),
        (to_buffer(64), to_buffer(64), False),
        (to_buffer(64), to_buffer(68), False),
        (to_buffer(None), to_buffer(16), False),
        (to_buffer(None), to_buffer(None), False),
        (to_buffer(64, "workgroup"), to_buffer(16, "workgroup"), True),
        (to_buffer(64, "workgroup"), to_buffer(16), False),
        (to_buffer(64, access="read_write"), to_buffer(16), False),
        (to_buffer(64), to_buffer(16, access="read_write"), False),
        (to_buffer(64), to_array(16), False),
        (to_array(64), to_buffer(16), False),
        (to_array(64), to_array(16), False),
        (to_buffer(64).store, to_buffer(16), False),
        (to_buffer(64), to_buffer(16).store, False),
    ],
    ids=str,
)
def test_a_pointer_narrows_to_a_smaller_buffer_of_its_space(given: t.Type, wanted: t.Type, narrows: bool) -> None:
    assert t.narrows_buffer(given, wanted) is narrows
