"""Integer expressions of shaders as polynomials of ids and sizes: comparisons, indices and divisors, each by hand."""

import pytest

import bankshot
from bankshot.oracle.guesses.index_forms import Walk

WGSL = """\
struct P {{ n: u32, m: i32, v: vec3<u32>, a: array<vec4<u32>, 2> }}
@group(0) @binding(0) var<uniform> p: P;
@group(0) @binding(1) var<uniform> dims: vec4<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
@group(0) @binding(3) var image: texture_2d<f32>;
override WIDE = 8u;
override LATE: f32 = 2.5;
const FOUR = 4u;
struct Ids {{
    @builtin(num_workgroups) all: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
}}
fn twice(x: u32) -> u32 {{ {callee} return x * 2u; }}
fn deeper(x: u32) -> u32 {{ return twice(x + 1u); }}
fn last(v: vec2<u32>) -> u32 {{ y[v.y] = 0u; return 0u; }}
@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>, ids: Ids) {{
    let copy = id;
    let d = dims;
    let n = p.n;
    let both = p.v;
    var k = p.n;
    var fixed = id.y + 3u;
    var zero: u32;
    let pair = vec2u(id.xy);
    let signed = vec2i(id.xy);
    let moved = pair + p.v.xy;
    var grown = id.xy;
    grown.x += n;
    k += 1u;
    {body}
}}
"""


def name_of(atom):
    if atom.kind == "size":
        variable, path = atom.key
        return ".".join([variable.name, *(str(step[1] if isinstance(step, tuple) else step) for step in path)])
    return "?" if atom.kind == "other" else f"{atom.kind}.{atom.key}"


def text(form):
    """A form as a sum, its terms in alphabetical order."""
    terms = [" * ".join([str(factor)] * (factor != 1 or not term) + sorted(map(name_of, term)))
             for term, factor in form.items()]  # fmt: skip
    return " + ".join(sorted(terms)) or "0"


def walked(body, callee=""):
    """What is reported of a body, in order."""
    found = []
    pipeline = bankshot.check(WGSL.format(body=body, callee=callee), uniformity="off").pipeline(
        entry="main", overrides={}
    )

    def size(variable, path):
        return (variable, path) if variable.name in ("p", "dims") or path == ("length",) else None

    Walk(
        pipeline,
        size,
        lambda name, left, right: found.append(f"{text(left)} {name} {text(right)}"),
        lambda variable, index: found.append(f"{variable.name}[{text(index)}]"),
        lambda divisor: found.append(f"/ {text(divisor)}"),
    ).run()
    return found


FORMS = {
    "0u": "0",
    "7u": "7",
    "WIDE": "8",
    "FOUR * 2u": "8",
    "id.x": "global.0",
    "id.z": "global.2",
    "copy.y": "global.1",
    "copy[1]": "global.1",
    "ids.lane": "local.0",
    "ids.group.y": "workgroup.1",
    "p.n": "p.0",
    "u32(p.m)": "p.1",
    "p.v.z": "p.2.2",
    "p.a[1].y": "p.3.1.1",
    "d.w": "dims.3",
    "d[2]": "dims.2",
    "n": "p.0",
    "both.y": "p.2.1",
    "k": "? + p.0",
    "fixed": "3 + global.1",
    "zero": "?",
    "arrayLength(&y)": "y.length",
    "textureDimensions(image).x": "64",
    "id.x + n": "global.0 + p.0",
    "id.x - 2u": "-2 + global.0",
    "id.x - id.x": "?",  # no terms are left
    "id.x + id.x": "2 * global.0",
    "(id.x + 1u) * (n - 1u)": "-1 + -1 * global.0 + global.0 * p.0 + p.0",
    "id.y * 2u * n + id.x": "2 * global.1 * p.0 + global.0",
    "(id.x * 6u) / 4u": "3/2 * global.0",
    "id.x >> 3u": "1/8 * global.0",
    "id.x << 3u": "8 * global.0",
    "id.x >> 31u": "1/2147483648 * global.0",
    "id.x << 31u": "2147483648 * global.0",
    "id.x >> 0u": "global.0",
    "id.x << 0u": "global.0",
    "id.x << n": "?",
    "id.x / n": "?",
    "min(id.x, n)": "global.0",
    "max(n, 1u)": "p.0",
    "clamp(id.x, 0u, n)": "?",
    "select(1u, 2u, n > 4u)": "?",
    "id.x % 8u": "?",
    "y[3]": "?",
    "u32(LATE)": "?",
    "id.xy.y": "global.1",
    "id.zyx.xz.y": "global.0",
    "pair.y": "global.1",
    "signed.x": "global.0",
    "(pair * 2u + vec2u(n, 1u)).y": "1 + 2 * global.1",
    "vec3u(n, id.yx).z": "global.0",
    "vec2u(n).y": "p.0",
    "vec2u().y": "0",
    "moved.x": "global.0 + p.2.0",
    "grown.x": "? + global.0",
    "textureDimensions(image).yx.x": "64",
    "~id.x": "?",
}


@pytest.mark.parametrize("index", FORMS)
def test_the_form_of_an_index(index):
    assert f"y[{FORMS[index]}]" in walked(f"y[{index}] = 0u;")


WALKS = {
    "if id.x >= p.n { return; }": ["global.0 >= p.0"],
    "if id.x < n && id.y != d.y { }": ["global.0 < p.0", "global.1 != dims.1"],
    "for (var i = 0u; i < n; i++) { y[i * 2u] = 0u; }": ["? < p.0", "y[2 * ?]"],
    "if any(id.xy >= p.v.yx) { return; }": ["global.0 >= p.2.1", "global.1 >= p.2.0"],
    "if id.x < ids.all.x { return; }": ["global.0 < ?"],
    "let q = p.v; if id.x >= q.y { return; }": ["global.0 >= p.2.1"],
    "let q = id; if q.y < n { return; }": ["global.1 < p.0"],
    "let q = vec2u(id.yx); if q.x < n { y[q.y] = 0u; }": ["global.1 < p.0", "y[global.0]"],
    "_ = textureLoad(image, id.xy + p.v.xy, 0);": ["global.0 + p.2.0 < 64", "global.1 + p.2.1 < 64"],
    "_ = id.x / (n + 1u);": ["/ 1 + p.0"],
    "_ = id.x % 8u;": ["/ 8"],
    "_ = id.x * 8u;": [],
}


@pytest.mark.parametrize("body", WALKS)
def test_what_a_walk_reports(body):
    assert walked(body) == WALKS[body]


def test_functions_are_walked_with_their_arguments():
    assert walked("_ = twice(id.x);", "y[x] = 1u;") == ["y[global.0]"]
    assert walked("_ = last(id.xy);") == ["y[global.1]"]
    assert walked("_ = deeper(n) + twice(2u);", "_ = x == p.n;") == ["1 + p.0 == p.0", "2 == p.0"]
