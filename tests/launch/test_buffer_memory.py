"""Buffers run: each view reads and writes the bytes that the spec says, within the buffer. Spec: "Buffer View
Built-in Functions"."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bankshot

HEAD = """
struct Particle { position: vec3f, mass: f32 }
struct Counted { count: u32, rest: array<vec2u> }
@group(0) @binding(0) var<storage, read_write> b: buffer;
@group(0) @binding(1) var<storage, read_write> out: array<u32, 8>;
"""
WORDS = np.arange(100, 116, dtype=np.uint32)


def run(body: str, before: str = "", *, lanes: int = 8, **options: Any) -> bankshot.Run:
    entry = f"@compute @workgroup_size({lanes}) fn main(@builtin(local_invocation_index) i: u32) {{ {body} }}"
    given = {name: WORDS.copy() for name in ("c", "u") if f" {name}:" in before}
    bindings = {"b": WORDS.copy(), "out": np.zeros(8, np.uint32), **given}
    return bankshot.simulate(HEAD + before + entry, grid=1, bindings=bindings, **options)


def out(body: str, before: str = "") -> list[int]:
    """What eight invocations write."""
    made = run(f"out[i] = {body};", before)
    assert made.findings == []
    return made.outputs["out"].tolist()


UNIFORM = "@group(0) @binding(2) var<uniform> u: buffer<32>;"
FIXED = "@group(0) @binding(2) var<storage> c: buffer<48>;"


@pytest.mark.parametrize(
    ("value", "before", "expected"),
    [
        ("*bufferView<u32>(&b, i * 8u)", "", range(100, 116, 2)),
        ("*bufferView<u32>(&b, i * 8u + 3u)", "", range(100, 116, 2)),  # the bits below the alignment are ignored
        ("bufferView<vec4u>(&b, 16u * (i / 4u))[i % 4u]", "", range(100, 108)),
        ("bufferView<array<u32>>(&b, 32)[i]", "", range(108, 116)),
        ("bufferView<Counted>(&b, 8).rest[i / 4u].y", "", [105] * 4 + [107] * 4),
        ("arrayLength(&bufferView<Counted>(&b, 8).rest)", "", [6] * 8),
        ("arrayLength(bufferView<array<vec2u>>(&b, 8))", "", [7] * 8),
        ("arrayLength(bufferView<array<u32>>(&c, 16))", FIXED, [8] * 8),
        ("arrayLength(bufferArrayView<array<u32>>(&b, 4u * i, 12u))", "", [3] * 8),
        ("bufferArrayView<array<u32>>(&b, 4u * i, 12u)[2]", "", range(102, 110)),
        ("bufferView<array<u32, 8>>(&u, 0)[i]", UNIFORM, range(100, 108)),
        ("bufferLength(&b)", "", [64] * 8),
        ("bufferLength(&c)", FIXED, [48] * 8),  # 64 bytes are bound
    ],
)
def test_a_view_reads_what_lies_there(value: str, before: str, expected: Any) -> None:
    assert out(value, before) == list(expected)


def test_a_struct_is_viewed_with_its_layout() -> None:
    before = "fn mass(o: u32) -> u32 { let p = bufferView<Particle>(&b, o); return bitcast<u32>(p.mass); }"
    assert out("mass(16u * (i % 4u))", before) == [103, 107, 111, 115] * 2


def test_a_view_stores_what_another_reads() -> None:
    made = run("*bufferView<vec2f>(&b, 8u * i) = vec2f(f32(i), 0.5); out[i] = *bufferView<u32>(&b, 8u * i + 4u);")
    assert made.outputs["out"].tolist() == [0x3F000000] * 8
    assert made.outputs["b"].view(np.float32)[::2].tolist() == list(range(8))


def test_workgroup_memory_is_viewed() -> None:
    body = "let w = bufferView<array<u32>>(&s, 0); w[i] = i * i; workgroupBarrier(); out[i] = w[7u - i];"
    assert run(body, "var<workgroup> s: buffer<32>;").outputs["out"].tolist() == [(7 - i) ** 2 for i in range(8)]


def test_the_length_is_the_least_of_the_buffers_passed_through() -> None:
    """The example of the spec, with smaller buffers."""
    before = """
    @group(0) @binding(2) var<storage> c: buffer<48>;
    fn foobar(p: ptr<storage, buffer>) -> u32 { return bufferLength(p); }
    fn bar(p: ptr<storage, buffer<32>>) -> u32 { return foobar(p); }
    fn foo(p: ptr<storage, buffer<16>>) -> u32 { return bufferLength(p); }
    """
    body = "out[0] = bufferLength(&c); out[1] = foo(&c); out[2] = bar(&c); out[3] = foobar(&c);"
    assert run(body, before, lanes=1).outputs["out"].tolist()[:4] == [48, 16, 32, 48]


@pytest.mark.parametrize(
    ("body", "said", "count"),
    [
        ("*bufferView<u32>(&b, i * 16u) = 9u;", "b (in steps of 4 bytes)[16], which has 16 elements", 4),
        ("*bufferView<vec4u>(&b, 4096u) = vec4u(9);", "b (in steps of 16 bytes)[256], which has 4 elements", 1),
        ("*bufferView<vec2u>(&b, i * 64u) = vec2u(9);", "b (in steps of 8 bytes)[8], which has 8 elements", 7),
        ("bufferView<array<u32>>(&b, 48)[i] = 9u;", "bufferView<array<u32>>(&b, 48)[4], which has 4 elements", 4),
        (
            "bufferArrayView<array<u32>>(&b, 0u, 24u)[i] = i;",
            "index 6 of bufferArrayView<array<u32>>(&b, 0u, 24u), which has 6 elements",
            2,
        ),
    ],
)
@pytest.mark.parametrize("policy", ["clamp", "zero"])
def test_what_is_out_of_bounds_is_found(body: str, said: str, count: int, policy: str) -> None:
    made = run(body, lanes=1 if "4096" in body else 8, out_of_bounds=policy)
    (found,) = [one for one in made.findings if one.code == "out-of-bounds"]
    assert said in found.message
    assert found.count == count


def test_views_of_the_same_bytes_race() -> None:
    made = run("*bufferView<f32>(&b, 4u * i) = 1.0; out[i] = *bufferView<u32>(&b, 4u * ((i + 1u) % 8u));")
    assert [one.code for one in made.findings] == ["race"]
    assert run("*bufferView<f32>(&b, 8u * i) = 1.0; out[i] = *bufferView<u32>(&b, 8u * i + 4u);").findings == []


def test_a_buffer_too_small_for_its_views_is_refused() -> None:
    with pytest.raises(bankshot.WgslError, match="b has 64 bytes, and a view of it needs 256"):
        run("let x = bufferView<array<vec4u, 16>>(&b, i); out[i] = (*x)[0].x;")


@pytest.mark.parametrize(
    "body",
    [
        "out[i] = bufferView<array<u32>>(&b, 4u * i)[0];",
        "out[i] = bufferArrayView<array<u32>>(&b, 0u, 4u * i + 4u)[0];",
        "out[i] = bufferArrayView<Counted>(&b, 0u, 4u * i + 16u).count;",
    ],
)
def test_what_cannot_run_yet_is_said(body: str) -> None:
    with pytest.raises(bankshot.WgslError, match=r"the simulator cannot run .* yet"):
        run(body)


def test_a_runtime_sized_struct_in_a_buffer_of_fixed_size_cannot_run_yet() -> None:
    with pytest.raises(bankshot.WgslError, match="cannot run a runtime-sized struct in a buffer of fixed size yet"):
        run("out[i] = bufferView<Counted>(&c, 0u).count;", FIXED)
