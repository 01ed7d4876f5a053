"""Small right kernels, each with its data and a reference in NumPy."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from bankshot.oracle.manifests.cases import Request, plans
from bankshot.oracle.manifests.manifest import Case

Arrays = Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True)
class Kernel:
    """`head`: the rest of the [kernel] table, with dims and dispatch. `binds`: the tables of bindings. `shapes`: other
    sizes of N. `inexact`: whether its floats may round otherwise than the reference in float64."""

    name: str
    text: str
    head: str
    binds: str
    outputs: tuple[str, ...]
    reference: Callable[[Arrays, Mapping[str, int]], Mapping[str, NDArray[np.generic]]]
    shapes: tuple[int, ...] = ()
    inexact: bool = True

    @property
    def size(self) -> int:
        """The default of N."""
        return int(re.search(r"N = (\d+)", self.head)[1])  # type: ignore[index]

    def table(self) -> str:
        """The manifest up to [expect], without a reference."""
        return f'[kernel]\nsource = "k.wgsl"\n{self.head}\n{self.binds}'

    def reference_text(self) -> str:
        """The reference as the text of a Python file."""
        return f"import numpy as np\n\n\n{inspect.getsource(self.reference)}"


def _bind(name: str, dtype: str, shape: str, init: str) -> str:
    return f'[bind.{name}]\ndtype = "{dtype}"\nshape = {shape}\ninit = "{init}"\n'


# ---- references ----


def axpy(arrays, dims):
    x, y = arrays["x"].astype(np.float64), arrays["y0"].astype(np.float64)
    return {"y": 1.5 * x + y}


def mixed(arrays, dims):
    x = arrays["x"].astype(np.uint64)
    i = np.arange(x.size, dtype=np.uint64)
    return {"y": (((x ^ 0x5BD1E995) * 7 + i) & 0xFFFFFFFF) >> 3}


def row_sums(arrays, dims):
    x = arrays["x"].astype(np.float64)
    return {"total": x.sum(axis=1), "largest": x.max(axis=1)}


def transposed(arrays, dims):
    return {"y": arrays["x"].T.copy()}


def stencil(arrays, dims):
    x = np.pad(arrays["x"].astype(np.float64), 1, mode="edge")
    return {"y": 0.25 * x[:-2] + 0.5 * x[1:-1] + 0.25 * x[2:]}


def scan(arrays, dims):
    return {"y": np.cumsum(arrays["x"].reshape(-1, 32).astype(np.int64) % 1000, axis=1).reshape(-1)}


def histogram(arrays, dims):
    return {"bins": np.bincount(arrays["x"] & 7, minlength=8)}


def matvec(arrays, dims):
    return {"y": arrays["a"].astype(np.float64) @ arrays["x"].astype(np.float64)}


def swish(arrays, dims):
    x = arrays["x"].astype(np.float64)
    return {"y": x / (1 + np.exp(-x))}


def halves(arrays, dims):
    x = arrays["x"].astype(np.float64)
    return {"y": np.clip(2 * x + 0.5, -1, 1)}


def argmax(arrays, dims):
    x = arrays["x"].astype(np.float64)
    return {"place": x.argmax(axis=1), "value": x.max(axis=1)}


def packed(arrays, dims):
    x = arrays["x"].astype(np.int64)
    low = (x & 0xFFFF).astype(np.int64)
    high = (x >> 16) & 0xFFFF
    return {"low": low, "high": high - 0x8000, "sum": (low + high) & 0xFFFFFFFF}


# ---- kernels ----

_ONE = 'dims = { N = 100 }\ndispatch = ["ceil(N / 32)"]'
_ROWS = 'dims = { M = 5, N = 48 }\ndispatch = ["M"]'
_ID = "@builtin(global_invocation_id) id: vec3u"

KERNELS = (
    Kernel(
        "axpy",
        f"""\
override A: f32 = 1.5;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> y0: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(32) fn main({_ID}) {{
    let i = id.x;
    if i < arrayLength(&y) {{
        y[i] = A * x[i] + y0[i];
    }}
}}
""",
        f"{_ONE}\noverrides = {{ A = 1.5 }}",
        _bind("x", "f32", '["N"]', "normal")
        + _bind("y0", "f32", '["N"]', "uniform")
        + _bind("y", "f32", '["N"]', "unwritten"),
        ("y",),
        axpy,
        (1, 31, 64),
    ),
    Kernel(
        "mixed",
        f"""\
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
fn mix(v: u32, i: u32) -> u32 {{
    return ((v ^ 0x5bd1e995u) * 7u + i) >> 3u;
}}
@compute @workgroup_size(32) fn main({_ID}) {{
    if id.x >= arrayLength(&y) {{ return; }}
    y[id.x] = mix(x[id.x], id.x);
}}
""",
        _ONE,
        _bind("x", "u32", '["N"]', "uniform") + _bind("y", "u32", '["N"]', "unwritten"),
        ("y",),
        mixed,
        (1, 33),
        inexact=False,
    ),
    Kernel(
        "row_sums",
        """\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> total: array<f32>;
@group(0) @binding(2) var<storage, read_write> largest: array<f32>;
var<workgroup> part: array<f32, 16>;
var<workgroup> most: array<f32, 16>;
@compute @workgroup_size(16)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
    let n = N_COLUMNS;
    var sum = 0.0;
    var high = -1e30;
    for (var i = lane; i < n; i += 16u) {
        sum += x[w.x * n + i];
        high = max(high, x[w.x * n + i]);
    }
    part[lane] = sum;
    most[lane] = high;
    workgroupBarrier();
    for (var step = 8u; step > 0u; step /= 2u) {
        if lane < step {
            part[lane] += part[lane + step];
            most[lane] = max(most[lane], most[lane + step]);
        }
        workgroupBarrier();
    }
    if lane == 0u {
        total[w.x] = part[0];
        largest[w.x] = most[0];
    }
}
""",
        f'{_ROWS}\ndefines = {{ N_COLUMNS = "48u" }}',
        _bind("x", "f32", '["M", "N"]', "normal") + _bind("total", "f32", '["M"]', "unwritten")
        + _bind("largest", "f32", '["M"]', "unwritten"),
        ("total", "largest"),
        row_sums,
    ),
    Kernel(
        "transposed",
        """\
const TILE = 8u;
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
var<workgroup> tile: array<array<u32, 9>, 8>;
@compute @workgroup_size(8, 8)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_id) l: vec3u) {
    let row = w.y * TILE + l.y;
    let column = w.x * TILE + l.x;
    tile[l.y][l.x] = x[row * 24u + column];
    workgroupBarrier();
    let to = w.x * TILE + l.y;
    y[to * 16u + w.y * TILE + l.x] = tile[l.x][l.y];
}
""",
        "dims = { M = 16, N = 24 }\ndispatch = [3, 2]",
        _bind("x", "u32", '["M", "N"]', "uniform") + _bind("y", "u32", '["N", "M"]', "zeros"),
        ("y",),
        transposed,
        inexact=False,
    ),
    Kernel(
        "stencil",
        f"""\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(32) fn main({_ID}) {{
    let n = arrayLength(&x);
    let i = id.x;
    if i < n {{
        let before = x[select(i - 1u, 0u, i == 0u)];
        let after = x[min(i + 1u, n - 1u)];
        y[i] = 0.25 * before + 0.5 * x[i] + 0.25 * after;
    }}
}}
""",
        _ONE,
        _bind("x", "f32", '["N"]', "normal") + _bind("y", "f32", '["N"]', "unwritten"),
        ("y",),
        stencil,
        (2, 65),
    ),
    Kernel(
        "scan",
        """\
@group(0) @binding(0) var<storage, read> x: array<i32>;
@group(0) @binding(1) var<storage, read_write> y: array<i32>;
var<workgroup> s: array<i32, 32>;
@compute @workgroup_size(32)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
    let v = x[w.x * 32u + lane] % 1000;
    s[lane] = select(v, v + 1000, v < 0);
    workgroupBarrier();
    for (var step = 1u; step < 32u; step *= 2u) {
        var add = 0;
        if lane >= step { add = s[lane - step]; }
        workgroupBarrier();
        s[lane] += add;
        workgroupBarrier();
    }
    y[w.x * 32u + lane] = s[lane];
}
""",
        'dims = { N = 96 }\ndispatch = ["N / 32"]',
        _bind("x", "i32", '["N"]', "uniform") + _bind("y", "i32", '["N"]', "unwritten"),
        ("y",),
        scan,
        (32, 64),
        inexact=False,
    ),
    Kernel(
        "histogram",
        f"""\
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> bins: array<atomic<u32>, 8>;
@compute @workgroup_size(32) fn main({_ID}) {{
    if id.x < arrayLength(&x) {{
        atomicAdd(&bins[x[id.x] & 7u], 1u);
    }}
}}
""",
        _ONE,
        _bind("x", "u32", '["N"]', "uniform") + _bind("bins", "u32", "[8]", "zeros"),
        ("bins",),
        histogram,
        (7, 64),
        inexact=False,
    ),
    Kernel(
        "matvec",
        """\
@group(0) @binding(0) var<storage, read> a: array<vec4f>;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(8) fn main(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&y) {
        let n = arrayLength(&x);
        var sum = 0.0;
        for (var i = 0u; i < n; i++) {
            sum += dot(a[id.x * n + i], x[i]);
        }
        y[id.x] = sum;
    }
}
""",
        'dims = { M = 20, N = 16 }\ndispatch = ["ceil(M / 8)"]',
        _bind("a", "f32", '["M", "N"]', "uniform") + _bind("x", "f32", '["N"]', "uniform")
        + _bind("y", "f32", '["M"]', "unwritten"),
        ("y",),
        matvec,
        (4, 32),
    ),
    Kernel(
        "swish",
        f"""\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(32) fn main({_ID}) {{
    if id.x < arrayLength(&y) {{
        let v = x[id.x];
        y[id.x] = v / (1.0 + exp(-v));
    }}
}}
""",
        _ONE,
        _bind("x", "f32", '["N"]', "normal") + _bind("y", "f32", '["N"]', "zeros"),
        ("y",),
        swish,
        (1, 64),
    ),
    Kernel(
        "halves",
        f"""\
enable f16;
@group(0) @binding(0) var<storage, read> x: array<f16>;
@group(0) @binding(1) var<storage, read_write> y: array<f16>;
@compute @workgroup_size(32) fn main({_ID}) {{
    if id.x < arrayLength(&y) {{
        y[id.x] = clamp(2.0h * x[id.x] + 0.5h, -1.0h, 1.0h);
    }}
}}
""",
        _ONE,
        _bind("x", "f16", '["N"]', "uniform") + _bind("y", "f16", '["N"]', "unwritten"),
        ("y",),
        halves,
        (2, 64),
    ),
    Kernel(
        "argmax",
        f"""\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> place: array<u32>;
@group(0) @binding(2) var<storage, read_write> value: array<f32>;
@compute @workgroup_size(4) fn main({_ID}) {{
    let rows = arrayLength(&place);
    if id.x < rows {{
        let n = arrayLength(&x) / rows;
        var best = 0u;
        for (var i = 1u; i < n; i++) {{
            if x[id.x * n + i] > x[id.x * n + best] {{ best = i; }}
        }}
        place[id.x] = best;
        value[id.x] = x[id.x * n + best];
    }}
}}
""",
        'dims = { M = 6, N = 11 }\ndispatch = ["ceil(M / 4)"]',
        _bind("x", "f32", '["M", "N"]', "normal") + _bind("place", "u32", '["M"]', "unwritten")
        + _bind("value", "f32", '["M"]', "zeros"),
        ("place", "value"),
        argmax,
        (2, 20),
    ),
    Kernel(
        "packed",
        f"""\
struct Out {{ low: u32, high: i32 }}
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> low: array<u32>;
@group(0) @binding(2) var<storage, read_write> high: array<i32>;
@group(0) @binding(3) var<storage, read_write> sum: array<u32>;
fn split(v: u32) -> Out {{
    return Out(v & 0xffffu, i32(v >> 16u) - 0x8000);
}}
@compute @workgroup_size(32) fn main({_ID}) {{
    if id.x < arrayLength(&x) {{
        let o = split(x[id.x]);
        low[id.x] = o.low;
        high[id.x] = o.high;
        sum[id.x] = o.low + u32(o.high + 0x8000);
    }}
}}
""",
        _ONE,
        _bind("x", "u32", '["N"]', "uniform") + _bind("low", "u32", '["N"]', "zeros")
        + _bind("high", "i32", '["N"]', "unwritten") + _bind("sum", "u32", '["N"]', "zeros"),
        ("low", "high", "sum"),
        packed,
        (3, 32),
        inexact=False,
    ),
)  # fmt: skip


@cache
def default_case(kernel: Kernel) -> Case:
    """The case of a kernel at its default sizes, from a manifest without expectations."""
    from pathlib import Path
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        Path(folder, "k.wgsl").write_text(kernel.text)
        Path(folder, "k.toml").write_text(kernel.table())
        (plan,) = plans([Path(folder, "k.toml")], Request(sweep=False))
        (case,) = plan.cases()
        return case
