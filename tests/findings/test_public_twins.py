"""Twins after public suites of faulty kernels: wrong texts are found with code and lines, right ones are clean.

The tables are in `files/public_twins`, one file for each subject. `⟦right|wrong⟧` in a body stands for either. A
comment `//! code` marks a line of the wrong text where that finding, or a note of it, may point; elsewhere it may not.
Bodies have `i` (local_invocation_index), `g` (the workgroup's number), `at` (a place of their own in the outputs),
`lid`, `wid`, and with subgroups `lane` and `sub`. `size` and `groups` are those of the dispatch; `module` has
declarations.
"""

from __future__ import annotations

import math
import re
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bankshot
from bankshot.sim.run import dispatch

FILES = sorted((Path(__file__).parent.parent / "files" / "public_twins").glob("*.toml"))
TWINS = {
    f"{file.stem}: {name}": twin for file in FILES for name, twin in tomllib.loads(file.read_text("utf-8")).items()
}
ALTERNATIVES = re.compile(r"⟦(.*?)\|(.*?)⟧", re.DOTALL)
MARK = re.compile(r"//! ([a-z-]+)")
LEAST = 256  # elements of each output

HEAD = """
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read_write> f: array<f32>;
@group(0) @binding(2) var<storage, read> x: array<u32>;
@group(0) @binding(3) var<storage, read_write> v: array<vec4u>;
@group(0) @binding(4) var<storage, read_write> count: array<atomic<u32>>;
"""
MAIN = """
@compute @workgroup_size({size})
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) wid: vec3u,
        @builtin(local_invocation_id) lid: vec3u{more}) {{
    let g = wid.x + wid.y * {columns}u; let at = g * {lanes}u + i;
    _ = &y; _ = &f; _ = &x; _ = &v; _ = &count;
{body}
}}
"""


def sizes(twin: dict[str, Any]) -> tuple[list[int], list[int]]:
    """The workgroup size and the grid."""
    given = twin.get("size", 64), twin.get("groups", 2)
    size, groups = ([n] if isinstance(n, int) else n for n in given)
    return size, groups


def render(twin: dict[str, Any], side: int) -> str:
    """The right text (1), or the wrong one (2)."""
    size, groups = sizes(twin)
    subgroups = "subgroup" in twin["body"]
    more = ", @builtin(subgroup_invocation_id) lane: u32, @builtin(subgroup_id) sub: u32" if subgroups else ""
    text = MAIN.format(
        size=", ".join(map(str, size)), columns=groups[0], lanes=math.prod(size), body=twin["body"], more=more
    )
    extensions = ["subgroups"] * subgroups + ["f16"] * ("f16" in twin.get("module", ""))
    enable = "".join(f"enable {name};\n" for name in extensions)
    return enable + HEAD + ALTERNATIVES.sub(rf"\{side}", twin.get("module", "") + text)


@lru_cache(maxsize=2)  # the two texts of a twin, for both sizes of a batch
def checked(text: str) -> bankshot.Module:
    return bankshot.check(text, uniformity="off")


def findings(text: str, twin: dict[str, Any], replay: bool = True) -> list[bankshot.Finding]:
    size, groups = sizes(twin)
    count = max(LEAST, math.prod(size) * math.prod(groups))
    bindings: dict[str, Any] = {
        "y": np.zeros(count, np.uint32),
        "f": np.zeros(count, np.float32),
        "x": np.arange(count, dtype=np.uint32),
        "v": np.zeros((count // 4, 4), np.uint32),
        "count": np.zeros(64, np.uint32),
    }
    more = {"image": np.zeros((8, 64), np.uint32), "cells": bytes(8 * count), "queue": bytes(4 + 4 * count)}
    bindings |= {name: value for name, value in more.items() if re.search(rf"@binding\(5\).* {name}:", text)}
    return bankshot.simulate(checked(text), grid=groups, bindings=bindings, replay=replay).findings


def places(found: list[bankshot.Finding]) -> set[tuple[str, int]]:
    """The findings' codes, with each line that they point at."""
    return {(f.code, span.line) for f in found for _, span in f.spans}


@pytest.mark.parametrize(
    ("batch", "replay"), [(512, True), (1, False)], ids=["side by side", "one by one, without verdicts"]
)
@pytest.mark.parametrize("name", TWINS)
def test_public_twins(name: str, batch: int, replay: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "_LANES_PER_BATCH", batch)
    twin = TWINS[name]
    right, wrong = render(twin, 1), render(twin, 2)
    assert right != wrong
    marks = {(mark, n) for n, line in enumerate(wrong.splitlines(), 1) for mark in MARK.findall(line)}
    assert [f.render() for f in findings(right, twin, replay)] == []
    found = places(findings(wrong, twin, replay))
    assert found <= marks
    assert {code for code, _ in found} == {code for code, _ in marks}
