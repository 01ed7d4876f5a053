"""Both implementations of `docs/counting-rules.md` count what its table says, for all sizes."""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import bankshot
from bankshot.oracle.gpu_account.regions import find_regions
from bankshot.oracle.judge.counter_diff import diff_counters
from bankshot.oracle.manifests import cases
from bankshot.sim.front_end import check

PAGE = (Path(__file__).parents[2] / "docs" / "counting-rules.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| (`.*?) \| (.*?) \|", PAGE, re.M))
OPERATORS = "+-*/%"


def vector(n, kind="f32"):
    return kind if n == 1 else f"vec{n}<{kind}>"


def calls(name):
    """Yield a call of an operation of the table for each size: its text, with types for arguments, and the sizes."""
    sizes = (2, 3, 4)
    if name == "matCxR * vecC":
        yield from ((f"mat{c}x{r}<f32> * {vector(c)}", {"C": c, "R": r}) for c in sizes for r in sizes)
    elif name == "vecR * matCxR":
        yield from ((f"{vector(r)} * mat{c}x{r}<f32>", {"C": c, "R": r}) for c in sizes for r in sizes)
    elif name == "matKxR * matCxK":
        for c, r, k in np.ndindex(3, 3, 3):
            yield f"mat{k + 2}x{r + 2}<f32> * mat{c + 2}x{k + 2}<f32>", {"C": c + 2, "R": r + 2, "K": k + 2}
    elif name == "determinant":
        yield from ((f"determinant(mat{c}x{c}<f32>)", {"C": c}) for c in sizes)
    elif name == "mix(vec, vec, scalar)":
        yield from ((f"mix({vector(n)}, {vector(n)}, f32)", {"n": n}) for n in sizes)
    elif name == "cross":
        yield "cross(vec3<f32>, vec3<f32>)", {"n": 3}
    elif name in OPERATORS:
        yield from ((f"{vector(n)} {name} {vector(n)}", {"n": n}) for n in (1, *sizes))
        yield f"vec3<f32> {name} f32", {"n": 3}
        if name in "+-":
            yield f"mat3x2<f32> {name} mat3x2<f32>", {"n": 6}
        if name == "*":
            yield "f32 * mat2x4<f32>", {"n": 8}
    else:
        three = ("fma", "mix", "smoothstep", "refract", "faceForward")
        two = ("pow", "atan2", "dot", "distance", "reflect")
        count = 3 if name in three else 2 if name in two else 1
        vectors_only = name in ("dot", "normalize", "reflect", "refract", "faceForward")
        for n in sizes if vectors_only else (1, *sizes):
            arguments = [vector(n)] * count
            if name == "refract":
                arguments[2] = "f32"
            yield f"{name}({', '.join(arguments)})", {"n": n}


CASES = [
    (text, eval(formula, {}, sizes))
    for names, formula in ROWS.items()
    for name in re.findall(r"`(.*?)`", names)
    for text, sizes in calls(name)
]
UNCOUNTED = [
    *("f32 < f32", "-vec3<f32>", "abs(f32)", "min(f32, f32)", "max(vec2<f32>, vec2<f32>)", "clamp(f32, f32, f32)"),
    *("saturate(f32)", "sign(f32)", "step(f32, f32)", "select(f32, f32, bool)", "floor(vec4<f32>)", "ceil(f32)"),
    *("trunc(f32)", "round(f32)", "transpose(mat2x3<f32>)", "f32(i32)", "pack4x8unorm(vec4<f32>)", "i32 * i32"),
    *("dot(vec3<i32>, vec3<i32>)", "ldexp(f32, i32)", "modf(f32).fract", "frexp(f32).exp", "quantizeToF16(f32)"),
]
CALLS = [*CASES, *((text, 0) for text in UNCOUNTED)]
TYPE = re.compile(r"(?:(?<![\w.])(?:f32|i32|bool|vec\d<\w+>|mat\dx\d<\w+>))(?!\()")


def shader(texts):
    """Return a shader with a line for each call, and the number of the first of these."""
    made, lines = [], []
    for number, text in enumerate(texts):
        types = TYPE.findall(text)
        count = iter(range(len(types)))
        lines.append(f"    let r{number} = {TYPE.sub(lambda _: f'x{number}_{next(count)}', text)};")  # noqa: B023
        made += [f"    var x{number}_{i}: {kind};" for i, kind in enumerate(types)]
    body = "\n".join(lines)
    start = "@group(0) @binding(0) var<storage, read_write> y: f32;\n@compute @workgroup_size(1) fn main() {\n"
    return "\n".join([start, *made, body, "    y = 1.0;\n}"]), len(made) + 4


@pytest.fixture(scope="module")
def counted():
    """FLOPs by line, as simulated and as accounted for, and the line of the first call."""
    text, first = shader([text for text, _ in CALLS])
    run = bankshot.simulate(text, grid=1, bindings={"y": np.zeros(1, np.float32)})
    simulated = Counter()
    for site in run.sites:
        simulated[site.line] += site.flops
    accounted = Counter()
    for region in find_regions(check(text).pipeline(), {}, True):
        for place in region.places:
            accounted[place.span.line] += place.flops
    return simulated, accounted, first


def test_the_table_covers_every_operation_that_has_flops():
    assert len(CALLS) > 150


@pytest.mark.parametrize("number", range(len(CALLS)), ids=[text for text, _ in CALLS])
def test_an_operation_counts_what_the_page_says(counted, number):
    simulated, accounted, first = counted
    expected = CALLS[number][1]
    assert (simulated[first + number], accounted[first + number]) == (expected, expected)


HEAD = """
override K = 3u;
struct S { a: f32, b: mat2x3<f32> }
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(0) @binding(1) var<uniform> p: vec4u;
@group(0) @binding(2) var<storage, read_write> s: S;
var<workgroup> t: array<f32, 32>;
var<workgroup> c: atomic<u32>;
fn twice(x: f32) -> f32 { return x + x; }
"""
INSTRUCTIONS = [
    ("let v = f + 1.0;", {"fp32": 1}),
    ("let v = vec3(f) * 2.0;", {"fp32": 3}),
    ("let v = 2.0; let w = v * 3.0;", {"fp32": 1}),  # not a constant expression: v is a value at run time
    ("let v = f32(K * 2u);", {}),
    ("let v = f * f32(K);", {"fp32": 1}),
    ("if K == 3u { t[0] = 1.0; }", {"workgroup_store": 1}),
    ("let b = i == 3u; if b { t[0] = 1.0; }", {"integer": 1, "control": 1}),
    ("let b = false; if b { t[0] = 1.0; }", {"control": 1}),
    ("let v = bitcast<f32>(i & 7u);", {"integer": 1}),
    ("let v = length(vec3(f));", {"fp32": 5, "special": 1}),
    ("let v = length(f);", {"fp32": 1}),
    ("let v = normalize(vec2(f));", {"fp32": 3 + 2, "special": 1}),
    ("let v = cross(vec3(f), vec3(f));", {"fp32": 9}),
    ("let v = mix(vec3(f), vec3(f), 0.5);", {"fp32": 1 + 9}),
    ("let v = smoothstep(0.0, 1.0, f);", {"fp32": 8}),
    ("let v = reflect(vec2(f), vec2(f));", {"fp32": 8}),
    ("let v = refract(vec2(f), vec2(f), f);", {"fp32": 20, "special": 1}),
    ("let v = faceForward(vec2(f), vec2(f), vec2(f));", {"fp32": 8}),
    ("let v = determinant(mat3x3(f, f, f, f, f, f, f, f, f));", {"fp32": 14}),
    ("let v = fma(vec2(f), vec2(f), vec2(f));", {"fp32": 2}),
    ("let v = exp(vec2(f)) + sqrt(f);", {"special": 3, "fp32": 2}),
    ("let v = modf(f).fract;", {"fp32": 2}),
    ("let v = all(vec3(f) < vec3(1.0));", {"fp32": 3, "integer": 2}),
    ("let v = unpack4x8unorm(i); let w = pack4x8unorm(v);", {"conversion": 5}),
    ("let v = dot(vec4(i), vec4(i)) + countOneBits(i);", {"integer": 9}),
    ("let v = vec2<f32>(vec2(i)) + vec2(f);", {"conversion": 2, "fp32": 2}),
    ("let v = s;", {"storage_load": 3}),
    ("_ = s;", {}),
    ("let v = p.x; let w = p;", {"uniform_load": 2}),
    ("y[i] += 2.0;", {"storage_load": 1, "storage_store": 1, "fp32": 1}),
    ("s.b = mat2x3(f, f, f, f, f, f);", {"storage_store": 2}),
    ("let v = workgroupUniformLoad(&t[1]);", {"barrier": 2, "workgroup_load": 1}),
    ("let v = workgroupUniformLoad(&c);", {"barrier": 2, "atomic": 1}),
    ("let v = twice(f) + twice(f);", {"fp32": 1}),  # those of the function are at its own place
    ("if f > 1.0 { return; } y[1] = f;", {"fp32": 1, "control": 1, "storage_store": 1}),
    ("if f < 1.0 { return; } y[1] = f;", {"fp32": 1, "control": 2}),
    ("let v = i > 0u && i < 9u;", {"integer": 2}),  # free: both sides; && itself is none
    ("let v = i > 0u && t[i] > f;", {"integer": 1, "control": 1}),  # i is 0: the right side is not evaluated
    ("let v = i > 0u && sqrt(f) > 1.0;", {"integer": 1, "control": 1}),
    ("switch i { case 1u: { t[0] = f; } default: { t[1] = f; break; } }", {"control": 2, "workgroup_store": 1}),
    ("for (var k = 0u; k < 2u; k++) { if k == 1u { continue; } }", {"control": 3 + 2 + 1, "integer": 3 + 2 + 2}),
    ("var k = 0u; loop { k++; continuing { break if k > 2u; } }", {"control": 3, "integer": 3 + 3}),
]


@pytest.fixture(scope="module")
def instructions(adapter, tmp_path_factory):
    """A comparison of both counts of one invocation, and the simulator's instructions by line of the first body."""
    functions = [f"fn b{n}(i: u32, f: f32) {{ {body} }}" for n, (body, _) in enumerate(INSTRUCTIONS)]
    calls = "\n".join(f"b{n}(i, f);" for n in range(len(functions)))
    start = "@compute @workgroup_size(1) fn main(@builtin(local_invocation_index) i: u32) { let f = f32(i);"
    text = "\n".join([*functions, HEAD, start, calls, "_ = p.x; _ = &s; _ = &c; y[0] = f; }"])
    path = tmp_path_factory.mktemp("kernel") / "kernel.wgsl"
    path.write_text(text)
    arrays = {"y": np.zeros(4, np.float32), "p": np.zeros(4, np.uint32), "s": np.zeros(12, np.float32)}
    (plan,) = cases.plans([path], cases.Request(arrays=arrays, grid=(1, 1, 1)))
    (case,) = plan.cases()
    found = [Counter() for _ in functions]
    for row in bankshot.simulate(text, grid=1, bindings=arrays, device="nvidia", probes="counters").instructions:
        if row.line <= len(functions):
            found[row.line - 1][row.kind] += row.lanes
    return diff_counters(case, "nvidia", None), found


def test_the_gpu_executes_the_instructions_that_are_simulated(instructions):
    diff, _ = instructions
    assert [(d.site.span.text, d.counter, d.simulated, d.counted) for d in diff.differences] == []
    assert diff.instructions > 70


@pytest.mark.parametrize("number", range(len(INSTRUCTIONS)), ids=[body for body, _ in INSTRUCTIONS])
def test_instructions_by_hand(instructions, number):
    _, found = instructions
    assert found[number] == INSTRUCTIONS[number][1]
