"""Twins: kernels that differ in one place, one of which is wrong. The wrong one is found, the right one is left alone.

`⟦right|wrong⟧` in a text stands for either. Kernels have `i` (local_invocation_index), `g` (workgroup number), and
`at`, a place of their own in the outputs `y` (u32) and `f` (f32).
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import bankshot
from bankshot.sim.run import dispatch

FILES = Path(__file__).parent.parent / "files"
SIZE, GROUPS = 64, 3
HEAD = """
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read_write> f: array<f32>;
@group(0) @binding(2) var<storage, read> x: array<u32>;
@group(0) @binding(3) var<storage, read_write> v: array<vec4u>;
@group(0) @binding(4) var<storage, read_write> count: array<atomic<u32>>;
var<workgroup> t: array<u32, 128>;
var<workgroup> s: array<f32, 128>;
var<workgroup> grid: array<array<u32, 8>, 16>;
var<workgroup> total: u32;
var<workgroup> bins: array<atomic<u32>, 8>;
struct Pair { a: u32, b: u32 }
var<workgroup> pairs: array<Pair, 64>;
var<workgroup> quads: array<vec4u, 64>;
"""
MAIN = """
@compute @workgroup_size({size})
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) group: vec3u) {{
    let g = group.x; let at = g * {size}u + i;
    _ = &y; _ = &f; _ = &x; _ = &v; _ = &count;
{body}
}}
"""
ALTERNATIVES = re.compile(r"⟦(.*?)\|(.*?)⟧")

TWINS = tomllib.loads((FILES / "twins.toml").read_text(encoding="utf-8"))
CASES = [(code, name, text) for code, table in TWINS.items() for name, text in table.items()]
FUNCTIONS = "fn put(at: u32) { t[at] = at; }\nfn fetch(at: u32) -> u32 { return t[at]; }\n"


def findings(body: str, size: int = SIZE, groups: int = GROUPS, **options) -> list[bankshot.Finding]:
    """The findings of one dispatch of a body."""
    half = "f16" in body or re.search(r"\bh\[", body)
    head = ("enable f16;\n" + HEAD + "var<workgroup> h: array<f16, 64>;\n") if half else HEAD
    module = bankshot.check(head + FUNCTIONS + MAIN.format(size=size, body=body), uniformity="off")
    count = size * groups
    bindings = {
        "y": np.zeros(count, np.uint32),
        "f": np.zeros(count, np.float32),
        "x": np.arange(count, dtype=np.uint32),
        "v": np.zeros((count // 4, 4), np.uint32),
        "count": np.zeros(4, np.uint32),
    }
    return bankshot.simulate(module, grid=groups, bindings=bindings, **options).findings


@pytest.mark.parametrize("batch", [512, 1], ids=["workgroups side by side", "one by one"])
@pytest.mark.parametrize(("code", "name", "text"), CASES, ids=[f"{code}: {name}" for code, name, _ in CASES])
def test_twins(code: str, name: str, text: str, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "_LANES_PER_BATCH", batch)
    right, wrong = (ALTERNATIVES.sub(rf"\{side}", text) for side in (1, 2))
    assert right != wrong
    assert [f.render() for f in findings(right)] == []
    assert code in {f.code for f in findings(wrong)}
