"""Regions of a text, their places and instructions, each by hand."""

import pytest

import bankshot
from bankshot.oracle.gpu_account import components, flops, instruction_classes
from bankshot.oracle.gpu_account.regions import _texel_bytes, find_regions, is_free
from bankshot.sim.wgsl import typed
from bankshot.sim.wgsl import types as t

WGSL = """\
enable f16; enable subgroups;
struct S {{ a: f32, v: vec3<f32>, m: mat2x3<f32>, l: array<vec2<u32>, 2> }}
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read_write> s: array<S>;
@group(0) @binding(2) var<uniform> u: vec4<f32>;
@group(0) @binding(3) var<storage, read_write> n: atomic<u32>;
@group(0) @binding(4) var image: texture_2d<f32>;
@group(0) @binding(5) var stored: texture_storage_2d<rgba16float, write>;
@group(0) @binding(6) var<storage, read_write> h: array<vec4<f16>>;
var<workgroup> w: array<f32, 64>;
var<workgroup> c: atomic<u32>;
var<private> p: f32;
override LATE: bool;
fn f(x: u32) -> u32 {{ return x; }}
fn late(x: u32) -> u32 {{ let a = x; var b = a; return b; }}
fn early(x: u32) -> u32 {{ if x == 1u {{ return 2u; }} return x; }}
fn at(q: ptr<function, u32>) {{ *q = 1u; }}
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {{
    _ = &y; _ = &s; _ = &u; _ = &n; _ = &h; _ = textureDimensions(image); _ = textureDimensions(stored);
    {body}
}}
"""


def regions(body, fused=True, which=slice(None), **overrides):
    pipeline = bankshot.check(WGSL.format(body=body), uniformity="off").pipeline(overrides={"LATE": False} | overrides)
    return find_regions(pipeline, {"image": 4}, fused)[which]


def places(region):
    return [" ".join(map(str, filter(None, (
        p.kind, p.space, p.variable, p.bytes_per_lane, p.name, p.flops and f"{p.flops} flops",
        p.part and f"part {p.part} at {p.offset}",
    )))) for p in region.places]  # fmt: skip


def issued(region):
    return {f"{kind} of {span.text}": count for (kind, span), count in region.instructions.items()}


ACCESSES = {
    "y[i] = 7u;": ["store storage y 4"],
    "y[i] = y[3];": ["load storage y 4", "store storage y 4"],
    "y[i] += 2u;": ["load storage y 4", "store storage y 4"],
    "w[i] = 1.0;": ["store workgroup w 4"],
    "p = 1.0; _ = p; var k = 1u; k += 1u;": [],
    "_ = u;": ["load uniform u 16"],
    "_ = u.y;": ["load uniform u 4"],
    "_ = h[i];": ["load storage h 8"],
    "h[i].xz = vec2h();": ["store storage h 2", "store storage h 2"],
    "h[i].x = 1.0h;": ["store storage h 2"],
    "_ = s[i].v;": ["load storage s 12"],
    "_ = s[i].m;": ["load storage s 12", "load storage s 12 part 1 at 16"],
    "_ = s[i].l;": [],  # a value of which only parts could be loaded
    "_ = s[y[0]].l;": ["load storage y 4"],  # but its place is computed
    "let l = s[i].l;": ["load storage s 8", "load storage s 8 part 1 at 8"],
    "let all = s[i];": [
        "load storage s 4", "load storage s 12 part 1 at 16", "load storage s 12 part 2 at 32",
        "load storage s 12 part 3 at 48", "load storage s 8 part 4 at 64", "load storage s 8 part 5 at 72",
    ],
    "let q = &y; q[i] = 1u;": ["store storage y 4"],
    "let q = &y[i]; let r = q; *r = *q;": ["load storage y 4", "store storage y 4"],
    "_ = atomicAdd(&n, 1u);": ["atomic storage n 4 atomicAdd"],
    "_ = atomicLoad(&c);": ["atomic workgroup c 4 atomicLoad"],
    "workgroupBarrier(); storageBarrier();": ["barrier workgroupBarrier", "barrier storageBarrier"],
    "_ = workgroupUniformLoad(&w[0]);": [
        *["barrier workgroupUniformLoad"] * 2, "load workgroup w 4 workgroupUniformLoad",
    ],
    "_ = workgroupUniformLoad(&c);": [
        *["barrier workgroupUniformLoad"] * 2, "atomic workgroup c 4 workgroupUniformLoad",
    ],
    "_ = subgroupAdd(i);": ["subgroup subgroupAdd"],
    "_ = quadSwapX(i);": ["subgroup quadSwapX"],
    "_ = textureLoad(image, vec2u(i), 0);": ["load texture image 4 textureLoad"],
    "textureStore(stored, vec2u(i), vec4f());": ["store texture stored 8 textureStore"],
    "_ = arrayLength(&y);": [],
    "p = w[i] * 2.0 + w[3];": [
        "load workgroup w 4", "op * 1 flops", "load workgroup w 4", "op + 1 flops",
    ],
    "p *= 3.0;": ["op * 1 flops"],
    "_ = i * 3u;": [],
    "_ = dot(u, u);": ["load uniform u 16", "load uniform u 16", "op dot 7 flops"],
    "var k = 1u; at(&k);": [],
    "_ = 2.0 * f32(3);": [],
}  # fmt: skip


@pytest.mark.parametrize("body", ACCESSES)
def test_the_places_of_a_statement(body):
    (main,) = (each for each in regions(body) if "_ = &y" in each.anchor.span.text)
    assert places(main) == ACCESSES[body]


INSTRUCTIONS = {
    "y[i] = 7u;": {"storage_store of y[i]": 1},
    "y[i] += 2u;": {"storage_load of y[i]": 1, "integer of y[i] += 2u": 1, "storage_store of y[i]": 1},
    "h[i].xz = vec2h();": {"storage_store of h[i].xz": 2},
    "let l = s[i].l;": {"storage_load of s[i].l": 2},
    "_ = workgroupUniformLoad(&w[0]);": {
        "barrier of workgroupUniformLoad(&w[0])": 2, "workgroup_load of workgroupUniformLoad(&w[0])": 1,
    },
    "_ = textureLoad(image, vec2u(i), 0);": {"texture_load of textureLoad(image, vec2u(i), 0)": 1},
    "_ = f32(i);": {"conversion of f32(i)": 1},
    "_ = u32(i);": {},  # of one type
    "_ = vec4f(vec4u(i));": {"conversion of vec4f(vec4u(i))": 4},
    "_ = f32(7);": {},
    "_ = i < 3u && i > 1u;": {"integer of i < 3u": 1, "integer of i > 1u": 1},
    "if i < 3u { }": {"integer of i < 3u": 1, "control of i < 3u": 1},
    "if true { }": {},
    "switch i { default { } }": {"control of i": 1},
    "switch 3 { default { } }": {},
}  # fmt: skip


@pytest.mark.parametrize("body", INSTRUCTIONS)
def test_the_instructions_of_a_statement(body):
    assert issued(regions(body, which=0)) == INSTRUCTIONS[body]


STORE = "y[0] = 1u;"
REGIONS = {
    # the anchors of the regions after that of the function, and the instructions of each
    "": [],
    f"if i == 3u {{ {STORE} }}": [("open", "{ y[0]", 1)],
    f"if i == 3u {{ {STORE} }} {STORE}": [("open", "{ y[0]", 1), ("after", "if i", 1)],
    f"if i == 3u {{ }} else {{ {STORE} }}": [("open", "{ }", 0), ("open", "{ y[0]", 1)],
    f"if i == 3u {{ }} else if i == 4u {{ {STORE} }}": [
        ("open", "{ }", 0), ("condition", "i == 4u", 2), ("open", "{ y[0]", 1),
    ],
    f"{{ {STORE} }} {STORE}": [("open", "{ y[0]", 1), ("after", "{ y[0]", 1)],
    f"switch i {{ case 1u {{ {STORE} }} default {{ }} }}": [("open", "{ y[0]", 1), ("open", "{ }", 0)],
    "loop { break; }": [("turn", "loop", 1), ("open", "{ break", 1)],
    "while i == 9u { continue; }": [("turn", "while", 2), ("open", "{ continue", 1)],
    f"for (var k = 0u; k < 4u; k++) {{ {STORE} }}": [
        ("turn", "for", 2), ("open", "{ y[0]", 1), ("update", "for", 1),
    ],
    "loop { continuing { y[0] = 1u; break if i == 3u; } }": [
        ("turn", "loop", 1), ("open", "{ continuing", 0), ("open", "{ y[0]", 2),
    ],
    "loop { continuing { if i == 2u { } break if i == 3u; } }": [
        ("turn", "loop", 1), ("open", "{ continuing", 0), ("open", "{ if", 2), ("open", "{ }", 0),
        ("condition", "i == 3u", 1),
    ],
    "_ = i == 1u && y[0] == 2u;": [("condition", "y[0] == 2u", 2)],
    "_ = i == 1u || f(i) == 2u;": [("condition", "f(i) == 2u", 1)],
    "_ = i == 1u && i == 2u;": [],
    "_ = LATE && y[0] == 2u;": [],  # decided before the run
    "_ = !LATE && y[0] == 2u;": [],
    "_ = true || y[0] == 2u;": [],
}  # fmt: skip


@pytest.mark.parametrize("body", REGIONS)
def test_where_regions_begin(body):
    found = regions(body)
    mine = [r for r in found if r.anchor.how != "open" or "_ = &y" not in r.anchor.span.text]
    mine = [r for r in mine if not r.anchor.span.text.startswith("{ return x")]
    made = [(r.anchor.how, r.anchor.span.text, sum(r.instructions.values())) for r in mine]
    assert [(how, count) for how, _, count in made] == [(how, count) for how, _, count in REGIONS[body]]
    for (_, text, _), (_, start, _) in zip(made, REGIONS[body], strict=True):
        assert text.startswith(start)


@pytest.mark.parametrize(
    ("body", "late", "loads"),
    [("_ = LATE && y[0] == 2u;", False, 0), ("_ = LATE && y[0] == 2u;", True, 1), ("_ = LATE || y[0] == 2u;", False, 1),
     ("_ = LATE || y[0] == 2u;", True, 0)],
)  # fmt: skip
def test_what_is_decided_before_the_run_is_not_counted(body, late, loads):
    (main,) = regions(body, LATE=late)
    assert sum(place.kind == "load" for place in main.places) == loads


def test_only_returns_that_are_jumps_are_instructions():
    """`early` has two returns, and `f` one at its end."""
    first = [r for r in regions("_ = f(i);") if r.anchor.span.text.startswith("{ return x")]
    assert [issued(each) for each in first] == [{}]
    last = [r for r in regions("_ = late(i);") if r.anchor.span.text.startswith("{ let a")]
    assert [issued(each) for each in last] == [{}]
    found = regions("_ = early(i);")
    jumps = [span for r in found for kind, span in r.instructions if kind == "control"]
    assert sorted(span.text for span in jumps) == ["return 2u", "return x", "x == 1u"]


FREE = {"i == 2u": True, "i + 1u == 2u": True, "p == 1.0": True, "p + 1.0 == 1.0": False, "y[0] == 1u": False,
        "f(i) == 1u": False, "u.x == 1.0": False, "w[0] == 1.0": False, "atomicLoad(&n) == 1u": False,
        "(i == 2u && i == 3u)": True, "(i == 2u && y[0] == 3u)": False}  # fmt: skip


@pytest.mark.parametrize("text", FREE)
def test_operands_that_take_no_branch(text):
    pipeline = bankshot.check(WGSL.format(body=f"_ = i == 1u && {text};"), uniformity="off").pipeline(
        overrides={"LATE": False}
    )
    (both, *_) = [e for e in typed.every_expression(pipeline.entry) if isinstance(e, typed.ShortCircuit)]
    assert is_free(both.right) == FREE[text]


@pytest.mark.parametrize(
    ("format_", "size"),
    [("rgba8unorm", 4), ("r32float", 4), ("rg32uint", 8), ("rgba16float", 8), ("rgba32sint", 16), ("r8unorm", 1),
     ("rg8snorm", 2), ("rgb10a2unorm", 4), ("rg11b10ufloat", 4), ("bgra8unorm", 4), (None, 0), ("", 0)],
)  # fmt: skip
def test_the_bytes_of_a_texel(format_, size):
    assert _texel_bytes(format_) == size


# ---- instructions of operations ------------------------------------------------------------------------

F, U, H, B = t.F32, t.U32, t.F16, t.BOOL
F2, F3, F4, U4, B3 = t.Vec(2, F), t.Vec(3, F), t.Vec(4, F), t.Vec(4, U), t.Vec(3, B)
M23, M2, M3, M4 = t.Mat(2, 3, F), t.Mat(2, 2, F), t.Mat(3, 3, F), t.Mat(4, 4, F)
COUNTED = [
    # name, arguments, result; instructions by class; FLOPs
    ("+", [F, F], F, {"fp32": 1}, 1),
    ("+", [F4, F4], F4, {"fp32": 4}, 4),
    ("+", [H, H], H, {"fp16": 1}, 1),
    ("+", [U4, U4], U4, {"integer": 4}, 0),
    ("&", [B3, B3], B3, {"integer": 3}, 0),
    ("*", [F3, F3], F3, {"fp32": 3}, 3),
    ("*", [F3, F], F3, {"fp32": 3}, 3),
    ("*", [M23, F2], F3, {"fp32": 9}, 9),  # three sums of two products
    ("*", [F3, M23], F2, {"fp32": 10}, 10),  # two sums of three products
    ("*", [M23, M2], M23, {"fp32": 18}, 18),
    ("*", [M23, F], M23, {"fp32": 6}, 6),
    ("<", [F4, F4], t.Vec(4, B), {"fp32": 4}, 0),
    ("min", [F3, F3], F3, {"fp32": 3}, 0),
    ("all", [B3], B, {"integer": 2}, 0),
    ("any", [t.Vec(4, B)], B, {"integer": 3}, 0),
    ("all", [B], B, {}, 0),
    ("dot", [F3, F3], F, {"fp32": 5}, 5),
    ("dot", [U4, U4], U, {"integer": 7}, 0),
    ("length", [F4], F, {"fp32": 7, "special": 1}, 8),
    ("length", [F], F, {"fp32": 1}, 0),
    ("distance", [F2, F2], F, {"fp32": 5, "special": 1}, 6),
    ("distance", [F, F], F, {"fp32": 2}, 1),
    ("normalize", [F2], F2, {"fp32": 5, "special": 1}, 6),
    ("cross", [F3, F3], F3, {"fp32": 9}, 9),
    ("faceForward", [F2, F2, F2], F2, {"fp32": 8}, 3),
    ("reflect", [F2, F2], F2, {"fp32": 8}, 8),
    ("refract", [F2, F2, F], F2, {"fp32": 20, "special": 1}, 17),
    ("mix", [F3, F3, F], F3, {"fp32": 10}, 10),
    ("mix", [F3, F3, F3], F3, {"fp32": 12}, 12),
    ("smoothstep", [F2, F2, F2], F2, {"fp32": 16}, 14),
    ("determinant", [M2], F, {"fp32": 3}, 3),
    ("determinant", [M3], F, {"fp32": 14}, 14),
    ("determinant", [M4], F, {"fp32": 63}, 63),
    ("modf", [F3], F3, {"fp32": 6}, 0),
    ("frexp", [F], F, {"fp32": 2}, 0),
    ("sqrt", [F4], F4, {"special": 4}, 4),
    ("inverseSqrt", [F], F, {"special": 1}, 1),
    ("pow", [F2, F2], F2, {"special": 2}, 2),
    ("tanh", [F], F, {"special": 1}, 1),
    ("fract", [F2], F2, {"fp32": 2}, 2),
    ("abs", [F2], F2, {"fp32": 2}, 0),
    ("bitcast", [F4], U4, {}, 0),
    ("transpose", [M23], t.Mat(3, 2, F), {}, 0),
    ("pack4x8unorm", [F4], U, {"conversion": 1}, 0),
    ("unpack4x8unorm", [U], F4, {"conversion": 4}, 0),
    ("unpack2x16float", [U], F2, {"conversion": 2}, 0),
    ("quantizeToF16", [F3], F3, {"conversion": 3}, 0),
    ("select", [F3, F3, B], F3, {"fp32": 3}, 0),
]


@pytest.mark.parametrize(("name", "arguments", "result", "classes", "count"), COUNTED)
def test_what_an_operation_counts(name, arguments, result, classes, count):
    assert dict(instruction_classes.instructions(name, arguments, result, True)) == classes
    assert flops.flops(name, arguments, result) == count


SPECIAL = """acos acosh asin asinh atan atan2 atanh cos cosh sin sinh tan tanh exp exp2 log log2 pow inverseSqrt
    sqrt""".split()  # noqa: SIM905
PLAIN = "+ - / % fract degrees radians".split()  # noqa: SIM905
NO_FLOPS = "abs ceil clamp floor max min round saturate select sign step trunc < <= == -x".split()  # noqa: SIM905


@pytest.mark.parametrize("name", SPECIAL)
def test_functions_of_the_special_unit(name):
    assert dict(instruction_classes.instructions(name, [F3], F3, True)) == {"special": 3}
    assert flops.flops(name, [F3], F3) == 3
    assert flops.flops(name, [U4], U4) == 0


@pytest.mark.parametrize("name", [*PLAIN, *NO_FLOPS])
@pytest.mark.parametrize(
    ("type_", "unit"), [(F2, "fp32"), (t.Vec(2, H), "fp16"), (t.Vec(2, U), "integer"), (t.Vec(2, t.I32), "integer")]
)
def test_functions_of_each_component(name, type_, unit):
    assert dict(instruction_classes.instructions(name, [type_], type_, True)) == {unit: 2}
    assert flops.flops(name, [type_], type_) == (2 if name in PLAIN and unit != "integer" else 0)


@pytest.mark.parametrize(("fused", "issued"), [(True, 3), (False, 6)])
def test_a_fused_product_is_one_instruction_or_two(fused, issued):
    assert dict(instruction_classes.instructions("fma", [F3, F3, F3], F3, fused)) == {"fp32": issued}
    assert flops.flops("fma", [F3, F3, F3], F3) == 6


# ---- scalars of types ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_", "count", "element", "pieces"),
    [
        (F, 1, "f32", [(0, 4)]),
        (H, 1, "f16", [(0, 2)]),
        (t.Vec(3, H), 3, "f16", [(0, 6)]),
        (F4, 4, "f32", [(0, 16)]),
        (M23, 6, "f32", [(0, 12), (16, 12)]),
        (t.Mat(3, 2, H), 6, "f16", [(0, 4), (4, 4), (8, 4)]),
        (t.Atomic(U), 1, "u32", [(0, 4)]),
        (t.Array(F3, 2), 1, "", [(0, 12), (16, 12)]),
    ],
)
def test_the_scalars_of_a_type_and_the_accesses_that_it_takes(type_, count, element, pieces):
    assert (components.components(type_), components.element(type_)) == (count, element)
    assert [*components.pieces(type_)] == pieces
    assert [*components.pieces(type_, 100)] == [(100 + offset, size) for offset, size in pieces]
