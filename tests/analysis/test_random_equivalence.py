"""Classes of workgroups compared with runs of all workgroups: random programs whose branches and addresses depend on
the workgroup, and every kernel of shaders/."""

import random
from collections import Counter

import numpy as np
import pytest

import bankshot
from bankshot.oracle.manifests.reflection import check_module
from tests.programs_made.project_kernels import project_kernels

SIZE = 1 << 12
PROGRAM = """
struct Dims {{ a: u32, b: u32, c: u32 }}
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(1) var<storage, read> x: array<u32>;
@group(0) @binding(2) var<storage, read> h: array<vec2u>;
@group(0) @binding(3) var<storage, read_write> y: array<u32>;
var<workgroup> tile: array<u32, 64>;

@compute @workgroup_size({size})
fn main(@builtin(workgroup_id) wg: vec3u, @builtin(local_invocation_index) lane: u32,
        @builtin(global_invocation_id) id: vec3u) {{
    var p = 0u;
    var q = wg.x;
    var sum = 0u;
{body}
    y[{place}] = sum;
}}
"""


class Maker:
    """Statements over `wg`, `lane`, `id`, loop counters and variables; every number is a u32."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.counters = []

    def number(self, depth=2):
        pick = self.random.random()
        if depth == 0 or pick < 0.3:
            leaves = ["wg.x", "wg.y", "lane", "id.x", "id.y", "p", "q", "dims.a", "dims.b", *self.counters]
            return self.random.choice([*leaves, f"{self.random.choice((0, 1, 3, 7, 8, 31, 32, 64, 4294967295))}u"])
        one, other = self.number(depth - 1), self.number(depth - 1)
        if pick < 0.4:
            return f"{self.random.choice(('min', 'max'))}({one}, {other})"
        if pick < 0.5:
            return f"({one} {self.random.choice(('/', '%'))} {self.random.choice((2, 3, 8, 32))}u)"
        if pick < 0.55:
            return f"({one} << {self.random.randrange(7)}u)"
        if pick < 0.6:
            return f"u32(i32({one}) - 5)"
        if pick < 0.65:
            return f"x[{one} % 64u]"
        if pick < 0.68:
            return f"select({one}, {other}, {self.condition()})"
        return f"({one} {self.random.choice(('+', '+', '-', '*', '^', '&'))} {other})"

    def condition(self):
        return f"({self.number(1)} {self.random.choice(('<', '<', '<=', '>', '>=', '==', '!='))} {self.number(1)})"

    def statement(self, depth):
        pick = self.random.random()
        if depth == 0 or pick < 0.35:
            array = self.random.choice((f"x[{self.number()}]", f"h[{self.number()}].x"))
            return f"sum += {array};"
        if pick < 0.5:
            return f"{self.random.choice(('p', 'q'))} = {self.number()};"
        if pick < 0.55:
            return f"tile[{self.number(1)} % 64u] = {self.number(1)};"
        if pick < 0.6:
            return f"p = tile[{self.number(1)} % 64u];"
        if pick < 0.8:
            return f"if {self.condition()} {{ {self.block(depth - 1)} }}"
        name = f"i{len(self.counters)}"
        self.counters.append(name)
        first, step = self.random.choice(("0u", "lane", "wg.x", "id.x % 64u")), self.random.choice(("1u", "16u", "32u"))
        end = self.random.choice(("4u", "64u", "wg.y + 2u", "(wg.x % 3u) * 16u", "lane", "dims.c"))
        body = self.block(depth - 1)
        self.counters.pop()
        return f"for (var {name} = {first}; {name} < {end}; {name} += {step}) {{ {body} }}"

    def block(self, depth):
        return " ".join(self.statement(depth) for _ in range(self.random.randint(1, 3)))

    def program(self):
        size = self.random.choice((1, 32, 48, 64))
        body = "\n".join(f"    {self.statement(2)}" for _ in range(self.random.randint(1, 5)))
        place = f"(wg.y * 8u + wg.x) * {size}u + lane"
        return PROGRAM.format(size=size, body=body, place=place)


@pytest.mark.parametrize("start", range(0, 120, 20))
def test_random_programs_count_alike_by_classes(start):
    """The option `check` raises if members of a class differ."""
    how = Counter()
    for seed in range(start, start + 20):
        numbers = np.random.default_rng(seed)
        bindings = {
            "dims": (numbers.integers(1, 100), 32, 40),
            "x": (numbers.integers(0, 4, SIZE) * numbers.choice([1, 32])).astype(np.uint32),
            "h": np.arange(SIZE, dtype=np.uint32),
            "y": np.zeros(SIZE, np.uint32),
        }
        text = Maker(seed).program()
        used = {
            name: value for name, value in bindings.items() if f"{name}[" in text.split("{", 2)[2] or name == "dims"
        }
        used = {name: value for name, value in used.items() if name != "dims" or "dims." in text}
        done = bankshot.simulate(text, grid=(8, 8), bindings=used, workgroups="check", replay=False, budget=1 << 20)
        how[done.coverage.how] += 1
    assert how["classes"] >= 3, how


@pytest.mark.parametrize("plan", project_kernels(), ids=lambda plan: plan.kernel.name)
def test_kernels_count_alike_by_classes(plan):
    """In the quick shape with the most workgroups."""
    quick = [plan.case(shape) for shape in plan.shapes if shape.cost == "quick"]
    case, kernel = max(quick, key=lambda case: np.prod(case.grid)), plan.kernel
    done = bankshot.simulate(
        check_module(kernel),
        entry=kernel.entry,
        grid=case.grid,
        bindings=case.bindings,
        overrides=kernel.overrides,
        workgroups="check",
        replay=False,
    )
    assert done.coverage.exact
