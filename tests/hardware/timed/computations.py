"""Arithmetic: maps of functions, n-body, divergent loops, arrays indexed at run time, and long dependent chains."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.hardware.timed.dispatch import Timed, buffers, constants, eighths, seeded, shrink, words, zeros

FLOATS = buffers({"x": "f32"}, {"y": "f32"})
INTEGERS = buffers({"x": "u32"}, {"y": "u32"})
MAP = """\
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u) {
    var v = x[id.x];
    for (var i = 0u; i < TIMES; i += 1u) {
        v = EXPRESSION;
    }
    y[id.x] = v;
}
"""
# By name: text, and the buffers' kind. Each keeps its argument in a range where it is accurate.
FUNCTIONS = {
    "multiply and add": ("v * 0.5 + 0.25", "f32"),
    "exp": ("exp(v * 0.5 - 1.0)", "f32"),
    "sin": ("sin(v)", "f32"),
    "sqrt": ("sqrt(v * v + 1.0)", "f32"),
    "inverseSqrt": ("inverseSqrt(v * v + 1.0)", "f32"),
    "division": ("1.0 / (v * v + 1.0)", "f32"),
    "log": ("log(v * v + 1.5)", "f32"),
    "pow": ("pow(v * v + 1.0, 0.25)", "f32"),
    "tanh": ("tanh(v)", "f32"),
    "tanh by exp": ("1.0 - 2.0 / (exp(2.0 * v) + 1.0)", "f32"),
    "hash": ("(v ^ (v >> 15u)) * 2654435769u", "u32"),
    "integer division": ("v / 7u + i * 1000003u", "u32"),
    "integer remainder": ("(v + 12345u) % (i * 2u + 1000003u)", "u32"),
    "count bits": ("v + countOneBits(v)", "u32"),
    "reverse bits": ("reverseBits(v) + 1u", "u32"),
}


def maps(scale: int) -> Iterator[Timed]:
    for size, times in ((1 << 22, 1), (1 << 21, 16), (1 << 20, 128)):
        n = shrink(size, scale, 4096)
        for kernel, (expression, kind) in FUNCTIONS.items():
            rng = seeded("map", n, times, kind)
            x = eighths(rng, n) if kind == "f32" else words(rng, n)
            text = constants(TIMES=times) + (FLOATS if kind == "f32" else INTEGERS)
            text += MAP.replace("EXPRESSION", expression)
            bindings = {"x": x, "y": np.zeros_like(x)}
            yield Timed("map", kernel, f"{n}, {times} times", text, (n // 256, 1, 1), bindings)


BODIES = buffers({"bodies": "vec4f"}, {"forces": "vec4f"})
PULL = """\
fn pull(at: vec3f, other: vec4f) -> vec3f {
    let away = other.xyz - at;
    let distance = inverseSqrt(dot(away, away) + 0.01);
    return away * (other.w * distance * distance * distance);
}

"""
NBODY_NAIVE = """\
@compute @workgroup_size(T)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let at = bodies[id.x].xyz;
    var force = vec3f();
    for (var i = 0u; i < N; i += 1u) {
        force += pull(at, bodies[i]);
    }
    forces[id.x] = vec4f(force, 0.0);
}
"""
NBODY_TILED = """\
var<workgroup> tile: array<vec4f, T>;

@compute @workgroup_size(T)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) lane: u32) {
    let at = bodies[id.x].xyz;
    var force = vec3f();
    for (var first = 0u; first < N; first += T) {
        tile[lane] = bodies[first + lane];
        workgroupBarrier();
        for (var i = 0u; i < T; i += 1u) {
            force += pull(at, tile[i]);
        }
        workgroupBarrier();
    }
    forces[id.x] = vec4f(force, 0.0);
}
"""
NBODY_SCALARS = """\
@compute @workgroup_size(T)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let first = id.x * 4u;
    let at = vec3f(bodies[first], bodies[first + 1u], bodies[first + 2u]);
    var force = vec3f();
    for (var i = 0u; i < 4u * N; i += 4u) {
        force += pull(at, vec4f(bodies[i], bodies[i + 1u], bodies[i + 2u], bodies[i + 3u]));
    }
    forces[first] = force.x;
    forces[first + 1u] = force.y;
    forces[first + 2u] = force.z;
}
"""


def bodies(scale: int) -> Iterator[Timed]:
    scalars = buffers({"bodies": "f32"}, {"forces": "f32"})
    for size in (4096, 8192, 16384):
        n = shrink(size, scale, 512)
        variants = {"scalar loads, 64 threads": (scalars + PULL + NBODY_SCALARS, 64)}
        for threads in (64, 128, 256):
            variants[f"naive, {threads} threads"] = BODIES + PULL + NBODY_NAIVE, threads
            variants[f"tiles of {threads}"] = BODIES + PULL + NBODY_TILED, threads
        for kernel, (text, threads) in variants.items():
            bindings = {"bodies": np.abs(eighths(seeded("n-body", n), n, 4)), "forces": zeros(n, 4)}
            text = constants(N=n, T=threads) + text
            yield Timed("n-body", kernel, str(n), text, (n // threads, 1, 1), bindings)


MANDELBROT = """\
@compute @workgroup_size(WX, WY)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let cx = f32(id.x) * (3.0 / f32(SIDE)) - 2.25;
    let cy = f32(id.y) * (3.0 / f32(SIDE)) - 1.5;
    var zx = 0.0;
    var zy = 0.0;
    var n = 0u;
    while n < LIMIT && zx * zx + zy * zy < 4.0 {
        let next = zx * zx - zy * zy + cx;
        zy = 2.0 * zx * zy + cy;
        zx = next;
        n += 1u;
    }
    y[id.y * SIDE + id.x] = n;
}
"""
COLLATZ = """\
@compute @workgroup_size(T)
fn main(@builtin(global_invocation_id) id: vec3u) {
    var v = x[id.x];
    var n = 0u;
    while v > 1u {
        if v % 2u == 0u {
            v /= 2u;
        } else {
            v = 3u * v + 1u;
        }
        n += 1u;
    }
    y[id.x] = n;
}
"""


def divergent_loops(scale: int) -> Iterator[Timed]:
    for size, limit in ((512, 256), (1024, 256), (1024, 2048)):
        side, limit = shrink(size, scale, 256), shrink(limit, scale, 32)
        for wx, wy in ((8, 4), (8, 8), (16, 16), (32, 8), (64, 1), (256, 1)):
            text = constants(SIDE=side, LIMIT=limit, WX=wx, WY=wy) + buffers({}, {"y": "u32"}) + MANDELBROT
            bindings = {"y": np.zeros((side, side), np.uint32)}
            shape = f"{side}x{side} to {limit}"
            yield Timed("mandelbrot", f"{wx}x{wy}", shape, text, (side // wx, side // wy, 1), bindings)
    for size in (1 << 18, 1 << 20):
        n = shrink(size, scale, 4096)
        for threads in (32, 64, 256):
            for order in ("in order", "shuffled", "32 apart"):
                numbers = np.arange(n, dtype=np.uint32) % (1 << 17) + 1  # from which 32 bits suffice
                if order == "shuffled":
                    numbers = seeded("collatz", n).permutation(numbers)
                elif order == "32 apart":
                    numbers = numbers.reshape(-1, 32).T.reshape(-1)
                text = constants(T=threads) + INTEGERS + COLLATZ
                bindings = {"x": numbers.copy(), "y": np.zeros_like(numbers)}
                yield Timed("collatz", f"{order}, {threads} threads", str(n), text, (n // threads, 1, 1), bindings)


SORT = """\
    for (var i = 1u; i < SIZE; i += 1u) {
        let value = AT(i);
        var j = i;
        while j > 0u && AT(j - 1u) > value {
            AT(j) = AT(j - 1u);
            j -= 1u;
        }
        AT(j) = value;
    }"""
ODD_EVEN = """\
    for (var round = 0u; round < SIZE; round += 1u) {
        for (var i = round % 2u; i + 1u < SIZE; i += 2u) {
            let low = min(AT(i), AT(i + 1u));
            let high = max(AT(i), AT(i + 1u));
            AT(i) = low;
            AT(i + 1u) = high;
        }
    }"""
SORTED = """\
DECLARED
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) lane: u32) {
LOCAL
    for (var i = 0u; i < SIZE; i += 1u) {
        AT(i) = x[id.x * SIZE + i];
    }
BODY
    for (var i = 0u; i < SIZE; i += 1u) {
        y[id.x * SIZE + i] = AT(i);
    }
}
"""
ROWS = "var<workgroup> kept: array<u32, 64 * SIZE>;\n"
PADDED_ROWS = "var<workgroup> kept: array<u32, 64 * (SIZE + 1)>;\n"
# Where the numbers of a thread lie: a module's declaration, a function's, and the text around the index.
PLACES = {
    "function": ("", "    var kept: array<u32, SIZE>;\n", "kept[", "]"),
    "workgroup, row per thread": (ROWS, "", "kept[lane * SIZE + ", "]"),
    "workgroup, padded row": (
        "var<workgroup> kept: array<u32, 64 * (SIZE + 1)>;\n",
        "",
        "kept[lane * (SIZE + 1u) + ",
        "]",
    ),
    "workgroup, interleaved": (ROWS, "", "kept[lane + 64u * (", ")]"),
}


def _at(text: str, opening: str, closing: str) -> str:
    """Replace each AT(index) by an element; no index has parentheses."""
    parts = text.split("AT(")
    return parts[0] + "".join(opening + part.replace(")", closing, 1) for part in parts[1:])


def thread_sorts(scale: int) -> Iterator[Timed]:
    for size in (8, 16, 32):
        threads = shrink(1 << 17, scale, 512)
        for place, (declared, local, opening, closing) in PLACES.items():
            for name, body in (("insertion", SORT), ("odd-even", ODD_EVEN)):
                text = SORTED.replace("DECLARED\n", declared).replace("LOCAL\n", local).replace("BODY", body)
                text = constants(SIZE=size) + INTEGERS + _at(text, opening, closing)
                x = words(seeded("sorted", size), threads, size)
                bindings = {"x": x, "y": np.zeros_like(x)}
                shape = f"{threads} of {size}"
                yield Timed("sort per thread", f"{name}, {place}", shape, text, (threads // 64, 1, 1), bindings)
