"""Random WGSL programs on floats with every kind of control flow, in two renderings.

`plain` writes `x + y`; `directed` writes `add(x, y)`, a function that gives the other of the two neighbours of an
inexact result wherever a hash of the operands and a seed says so. Both are what the spec allows, so the second
computes what another implementation may, branches included. Values are near multiples of 0.1, so that rounding often
decides a comparison.
"""

from __future__ import annotations

import random

Tree = tuple

HEAD = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> tenth: f32;
@group(0) @binding(3) var<uniform> seed: u32;
var<private> z: array<f32, 4>;
var<workgroup> w: array<f32, 32>;
"""
NEIGHBOURS = """
fn hash(a: f32, b: f32) -> u32 {
    var h = (bitcast<u32>(a) ^ seed) * 0x9E3779B1u + bitcast<u32>(b) * 0x85EBCA77u;
    h ^= h >> 15u;
    h *= 0xC2B2AE3Du;
    return (h ^ (h >> 13u)) & 3u;
}
// The neighbour of s on the side where the exact result s + lost lies, for some operands.
fn other(s: f32, lost: f32, h: u32) -> f32 {
    if lost == 0.0 || h > seed % 4u || abs(s) < 1e-30 { return s; }
    let away = (lost > 0.0) == (s > 0.0);
    return bitcast<f32>(select(bitcast<u32>(s) - 1u, bitcast<u32>(s) + 1u, away));
}
fn add(a: f32, b: f32) -> f32 {
    let s = a + b;
    let t = s - a;
    return other(s, (a - (s - t)) + (b - t), hash(a, b));
}
fn sub(a: f32, b: f32) -> f32 { return add(a, -b); }
fn mul(a: f32, b: f32) -> f32 {
    let p = a * b;
    return other(p, fma(a, b, -p), hash(a, b));
}
"""
VARIABLES = ("a", "b", "c", "d")


class Maker:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._counters = 0

    def program(self) -> list[Tree]:
        return [*self._body(3, False), *self._body(2, False)]

    def _body(self, depth: int, looping: bool) -> list[Tree]:
        return [self._statement(depth, looping) for _ in range(self._random.randint(1, 4))]

    def _statement(self, depth: int, looping: bool) -> Tree:
        pick = self._random.random()
        if looping and pick < 0.1:
            return (self._random.choice(("break", "continue")),)
        if pick < 0.04:
            return ("return",)
        if depth == 0 or pick < 0.55:
            return self._simple()
        if pick < 0.8:
            orelse = self._body(depth - 1, looping) if self._random.random() < 0.5 else []
            return ("if", self._condition(), self._body(depth - 1, looping), orelse)
        self._counters += 1
        until = self._condition() if self._random.random() < 0.5 else None
        return ("loop", f"k{self._counters}", self._random.randint(1, 4), until, self._body(depth - 1, True))

    def _simple(self) -> Tree:
        choice = self._random
        place = choice.choice(("z", "w", "y"))
        return choice.choice(
            [
                ("set", choice.choice(VARIABLES), self._expr(2)),
                ("set", choice.choice(VARIABLES), self._expr(2)),
                ("put", place, self._index(place), self._expr(1)),
                ("swap", choice.choice(VARIABLES), choice.choice(VARIABLES)),
            ]
        )

    def _index(self, place: str) -> Tree:
        wide = {"z": 4, "w": 32, "y": 64}[place]
        if place != "z" and self._random.random() < 0.5:
            return ("own", wide)
        return self._random.choice([("of", self._random.choice(VARIABLES), wide), ("fixed", self._random.randrange(4))])

    def _condition(self) -> Tree:
        return (self._random.choice(("<", ">=", "==", "!=")), self._expr(1), self._expr(1))

    def _expr(self, depth: int) -> Tree:
        pick = self._random.random()
        if depth == 0 or pick < 0.2:
            return ("name", self._random.choice((*VARIABLES, "v"))) if pick < 0.15 else ("name", "tenth")
        if pick < 0.75:
            return (self._random.choice(("add", "sub", "mul")), self._expr(depth - 1), self._expr(depth - 1))
        if pick < 0.85:
            place = self._random.choice(("z", "w"))
            return ("element", place, self._index(place))
        name = self._random.choice(("floor", "abs", "min", "max", "select", "round"))
        return (name, *(self._expr(depth - 1) for _ in range({"min": 2, "max": 2, "select": 4}.get(name, 1))))


_SYMBOLS = {"add": "+", "sub": "-", "mul": "*"}


class Renderer:
    """`directed`: with functions in place of operators."""

    def __init__(self, directed: bool) -> None:
        self._directed = directed

    def source(self, body: list[Tree]) -> str:
        entry = f"""
@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) i: u32) {{
    let v = x[id.x];
    var a = v; var b = 0.3; var c = v; var d = 0.5;
    z[1] = v; w[i] = v;
    run(v, a, b, c, d, id.x, i);
}}
fn run(v: f32, a_: f32, b_: f32, c_: f32, d_: f32, g: u32, i: u32) {{
    var a = a_; var b = b_; var c = c_; var d = d_;
    body(v, &a, &b, &c, &d, g, i);
    y[64u + g * 4u] = a; y[65u + g * 4u] = b; y[66u + g * 4u] = c; y[67u + g * 4u] = {self._op("add", "d", "z[1]")};
}}
fn body(v: f32, pa: ptr<function, f32>, pb: ptr<function, f32>, pc: ptr<function, f32>, pd: ptr<function, f32>,
        g: u32, i: u32) {{
    let out = g;
{self._block(body)}
}}"""
        return HEAD + (NEIGHBOURS if self._directed else "") + entry

    def _op(self, name: str, left: str, right: str) -> str:
        return f"{name}({left}, {right})" if self._directed else f"({left} {_SYMBOLS[name]} {right})"

    def _block(self, body: list[Tree]) -> str:
        return "\n".join(map(self._statement, body))

    def _name(self, name: str) -> str:
        return f"(*p{name})" if name in VARIABLES else name

    def _statement(self, tree: Tree) -> str:
        match tree:
            case ("set", name, value):
                return f"{self._name(name)} = clamp({self._expr(value)}, -8.0, 8.0);"
            case ("swap", one, other):
                return f"{self._name(one)} = {self._name(other)};"
            case ("put", place, index, value):
                return f"{place}[{self._index(index)}] = clamp({self._expr(value)}, -8.0, 8.0);"
            case ("if", condition, then, orelse):
                return f"if {self._expr(condition)} {{ {self._block(then)} }} else {{ {self._block(orelse)} }}"
            case ("loop", counter, limit, until, body):
                end = f"continuing {{ {counter}++; break if {self._expr(until)}; }}" if until else ""
                if until:
                    head = f"var {counter} = 0u; loop {{ if {counter} >= {limit}u {{ break; }}"
                    return f"{head} {self._block(body)} {end} }}"
                return f"for (var {counter} = 0u; {counter} < {limit}u; {counter}++) {{ {self._block(body)} }}"
            case (word,):
                return f"if v > 0.0 {{ {word}; }}"
            case _:
                raise AssertionError(tree)

    def _index(self, tree: Tree) -> str:
        match tree:
            case ("own", wide):
                return "i" if wide == 32 else "out"
            case ("of", name, wide):
                return f"u32(abs({self._name(name)}) * 10.0) % {wide}u"
            case (_, number):
                return f"{number}u"
            case _:
                raise AssertionError(tree)

    def _expr(self, tree: Tree) -> str:
        match tree:
            case ("name", name):
                return self._name(name)
            case ("element", place, index):
                return f"{place}[{self._index(index)}]"
            case (("add" | "sub" | "mul") as name, left, right):
                return self._op(name, self._expr(left), self._expr(right))
            case ("select", no, yes, left, right):
                return f"select({self._expr(no)}, {self._expr(yes)}, {self._expr(left)} < {self._expr(right)})"
            case (("<" | ">=" | "==" | "!=") as symbol, left, right):
                return f"({self._expr(left)} {symbol} {self._expr(right)})"
            case (name, *operands):
                return f"{name}({', '.join(map(self._expr, operands))})"
            case _:
                raise AssertionError(tree)
