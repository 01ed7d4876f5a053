"""Function-scope arrays of more than `LARGE` components: their values, bounds and counters, and what length costs."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot
from bankshot.oracle import wgpu_client
from bankshot.sim.codegen.build import build
from bankshot.sim.ir.rounding import Rounding
from bankshot.sim.lowering import accesses
from tests.programs_made.dispatch import ENTRY, HEAD, run, values

N = 32
LANES = range(4)
EXACT = Rounding(fused=False, contracts=False, cuts_f16=False)

# Each: declarations, the body, and what invocation i stores, worked out by hand.
KERNELS = {
    "it starts as zero": ("", f"var a: array<u32, {N}>; y[i] = a[i * 7u] + a[{N - 1}];", lambda i: 0),
    "indices known and unknown": (
        "",
        f"var a: array<u32, {N}>; a[i + 5u] = i + 1u; a[{N - 1}] = 100u;"
        f" y[i] = a[6u] + a[i + 5u] + a[{N - 2}u + i % 2u];",
        lambda i: (2 if i == 1 else 0) + i + 1 + (100 if i % 2 else 0),
    ),
    "vectors and their components": (
        "",
        f"var a: array<vec4u, {N}>; a[i].y = 7u; a[i] += vec4(1u, i, 2u, 3u); a[3].w *= 5u;"
        " y[i] = dot(a[i], vec4(1u)) + a[3].w;",
        lambda i: 13 + i + (15 + 12 if i == 3 else 0),
    ),
    "writes of some invocations": (
        "",
        f"var a: array<u32, {N}>;"
        f" if i > 1u {{ a[i] = 9u; a[0] = 1u; var b: array<u32, {N}>; b[1] = 2u; a[1] = b[i - 1u]; }}"
        " y[i] = a[i] + a[0] + a[1];",
        lambda i: [0, 0, 12, 10][i],
    ),
    "a copy is another variable": (
        "",
        f"var a: array<u32, {N}>; a[i] = 3u; var b = a; b[i] += 1u; a[i + 1u] = 20u;"
        " y[i] = a[i] + 10u * b[i] + b[i + 1u];",
        lambda i: 43,
    ),
    "a copy to a part, and from one": (
        "",
        f"var a: array<array<u32, {N}>, 3>; var b: array<u32, {N}>; b[7] = i; a[i % 3u] = b;"
        " a[2][7] += 50u; b = a[2];"
        " y[i] = a[0][7] + a[1][7] + a[2][7] + 1000u * b[7];",
        lambda i: [50050, 50051, 52052, 50053][i],
    ),
    "a copy of some invocations": (
        "",
        f"var a: array<u32, {N}>; var b: array<u32, {N}>; b[3] = 5u; if i == 2u {{ a = b; }} y[i] = a[3];",
        lambda i: 5 if i == 2 else 0,
    ),
    "zero by assignment": (
        "",
        f"var a: array<u32, {N}>; a[i] = 8u; let was = a[i]; a = array<u32, {N}>(); y[i] = was + a[i];",
        lambda i: 8,
    ),
    "by pointer": (
        f"fn add(p: ptr<function, array<u32, {N}>>, at: u32) -> u32 {{ (*p)[at] += 4u; return (*p)[at + 1u]; }}",
        f"var a: array<u32, {N}>; a[i + 1u] = i; let r = add(&a, i); y[i] = a[i] + 10u * r;",
        lambda i: 4 + 10 * i,
    ),
    "by value": (
        f"fn last(a: array<u32, {N}>) -> u32 {{ return a[{N - 1}]; }}",
        f"var a: array<u32, {N}>; a[{N - 1}u - i] = 6u; let b = a; a[{N - 1}] = 1u; y[i] = last(b) + last(a);",
        lambda i: 7 if i == 0 else 1,
    ),
    "private memory": (
        f"var<private> a: array<i32, {N}>; fn change(at: u32) {{ a[at] -= 3; }}",
        "change(i); change(2u); y[i] = u32(-a[2]) + u32(-a[i]);",
        lambda i: 12 if i == 2 else 6,
    ),
    "members of several types": (
        f"struct S {{ f: array<f32, {N}>, b: bool, u: array<u32, 4>, m: mat2x2f }}",
        "var s: S; s.f[i] = 1.5; s.b = i == 1u; s.u[i] = 3u; s.m[i % 2u].x = 2.0; let t = s.m;"
        " y[i] = u32(2.0 * s.f[i] + t[0].x) + select(0u, 100u, s.b) + s.u[i];",
        lambda i: [8, 106, 8, 6][i],
    ),
    "an index out of bounds is the last": (
        "",
        f"var a: array<u32, {N}>; a[{N - 1}] = i; let k = min(i + {N - 1}u, {N - 1}u); y[i] = a[k];",
        lambda i: i,
    ),
    "comparison, element by element": (
        "",
        f"var a: array<u32, {N}>; var b = a; b[i * 5u] = 1u; var same = 0u;"
        f" for (var k = 0u; k < {N}u; k++) {{ same += u32(a[k] == b[k]); }} y[i] = same;",
        lambda i: N - 1,
    ),
}


@pytest.fixture
def small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat arrays of `N` elements as large: drivers take minutes to compile copies of larger ones."""
    monkeypatch.setattr(accesses, "LARGE", 10)


@pytest.mark.usefixtures("small_is_large")
@pytest.mark.parametrize("name", KERNELS)
def test_a_large_array_holds_what_is_written(name: str) -> None:
    before, body, expected = KERNELS[name]
    assert values(body, before=before) == [expected(i) for i in LANES]


def test_an_adapter_agrees(adapter: wgpu_client.AdapterInfo) -> None:
    def on_the_adapter(before: str, body: str) -> list[int]:
        text = before + HEAD + ENTRY.format(size=4, body=body).replace(", @builtin(workgroup_id) group: vec3u", "")
        return wgpu_client.run(text, "main", (1, 1, 1), {"y": np.zeros(4, np.uint32)}).outputs["y"].tolist()

    found = {name: on_the_adapter(before, body) for name, (before, body, _) in KERNELS.items()}
    assert found == {name: [expected(i) for i in LANES] for name, (_, _, expected) in KERNELS.items()}


@pytest.mark.usefixtures("small_is_large")
def test_it_is_zero_again_in_each_iteration() -> None:  # naga keeps the old elements
    body = f"for (var k = 0u; k < 3u; k++) {{ var a: array<u32, {N}>; a[k + i] += 2u; y[i] += a[k + i] + a[k]; }}"
    assert values(body) == [12, 6, 6, 6]


@pytest.mark.usefixtures("small_is_large")
def test_a_pointer_to_an_element() -> None:  # which naga does not support
    before = "fn add(p: ptr<function, u32>) { *p += 1u; }"
    assert values(f"var a: array<u32, {N}>; a[i] = i; add(&a[i]); y[i] = a[i];", before=before) == [1, 2, 3, 4]


@pytest.mark.usefixtures("small_is_large")
@pytest.mark.parametrize(
    ("policy", "expected"),
    [("clamp", [77001, 77002, 77003, 77004]), ("zero", [1, 2, 3, 4]), ("wrap", [77077] * 4)],
)
def test_an_index_out_of_bounds(policy: str, expected: list[int]) -> None:
    body = f"""
        var a: array<u32, {N}>;
        for (var k = 0u; k < {N}u; k++) {{ a[k] = k + 1u; }}
        a[{N}u + i] = 77u;
        y[i] = a[{N}u + i] * 1000u + a[i];
    """
    assert run(body, out_of_bounds=policy).outputs["y"].tolist() == expected


def test_counters_are_those_of_a_small_array() -> None:
    def counters(length: int) -> object:
        return run(
            f"var a: array<vec4f, {length}>; a[i] = vec4f(f32(i)); var b = a; y[i] = u32(b[i].x * 2.0);"
        ).counters

    assert counters(8) == counters(1000)


@pytest.mark.parametrize(
    "write",
    [
        "a[i] = exp(f32(i) * 0.1);",
        "if exp(f32(i)) > 0.5 { a[i] = exp(f32(i) * 0.1); }",  # a branch that other implementations may not take
        "let inexact = exp(f32(i) * 0.1); if inexact > 1.0 { a[i + 1u] = 9.0; } a[i] = inexact;",
    ],
)
def test_bounds_of_elements_are_those_of_a_small_array(write: str) -> None:
    def bounds(length: int) -> list[float]:
        body = f"var a: array<f32, {length}>; {write} var b = a; y[i] = b[i] + b[i + 5u];"
        text = HEAD.replace("u32", "f32") + ENTRY.format(size=4, body=body)
        done = bankshot.simulate(text, grid=1, bindings={"y": np.zeros(4, np.float32)})
        return done.bounds["y"].tolist()

    assert bounds(10) == bounds(1000)


def test_a_longer_array_takes_no_more_instructions() -> None:
    def instructions(length: int) -> int:
        body = f"var a: array<vec4u, {length}>; a[i * 9u].x = i; a[3].y += 1u; var b = a; y[i] = b[i].x + a[3].y;"
        module = bankshot.check(HEAD + ENTRY.format(size=4, body=body))
        return len(build(module.pipeline(), rounding=EXACT, probes=frozenset(), workgroups_per_batch=1).code)

    assert instructions(accesses.LARGE) == instructions(65536) < 50


def test_an_array_that_takes_too_much_memory_is_refused() -> None:
    with pytest.raises(bankshot.WgslError) as refused:
        run("var a: array<vec4u, 65537>; y[i] = a[i].x;")
    (diagnostic,) = refused.value.diagnostics
    assert (
        diagnostic.message
        == "variable 'a' takes 1,048,592 bytes of each invocation, and the simulator supports 1,048,576"
    )
