"""Drivers that leave loops early: the limit that the simulator reproduces is that of the real driver."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import bankshot
from bankshot.oracle.diagnosis.adapter_reruns import loops_left
from bankshot.oracle.diagnosis.loop_limit import limited
from bankshot.oracle.diagnosis.mismatch import Mismatch
from bankshot.oracle.judge.case_run import simulate
from bankshot.oracle.judge.diff import Options, diff
from bankshot.oracle.manifests.manifest import Case
from bankshot.oracle.manifests.manifest_loader import load

HEAD = """\
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<uniform> n: vec3u;
@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3u) {
    var c = 0u; var d = 0u; var e = 0u;
    BODY
    y[4 * id.x] = c; y[4 * id.x + 1] = d; y[4 * id.x + 2] = e;
}
"""
MANIFEST = """\
[kernel]
source = "k.wgsl"
dispatch = [1]
[bind.y]
dtype = "u32"
shape = [64]
init = "zeros"
[bind.n]
dtype = "u32"
values = [70000, 300, 40000]
"""
BODIES = {
    "one loop": "for (var i = 0u; i < n.x; i++) { c++; e += (c * 7u) ^ e; }",
    "while": "while c < n.x { c++; }",
    "loop": "loop { c++; if c >= n.x { break; } }",
    "break if": "loop { d++; continuing { c++; break if c >= n.x; } }",
    "nested": "for (var i = 0u; i < n.y; i++) { c++; for (var j = 0u; j < n.y; j++) { d++; e += (d * 7u) ^ e; } }",
    "one after the other": "for (var i = 0u; i < n.z; i++) { c++; e += c; } for (var i = 0u; i < n.z; i++) { d++; }",
    "lanes that leave earlier": "while c < id.x * 9000u { c++; } for (var i = 0u; i < n.y; i++) { d++; }",
    "an unrolled loop": "for (var i = 0u; i < n.x; i++) { c++; for (var j = 0u; j < 4u; j++) { d++; e += d ^ e; } }",
}


@pytest.fixture
def case(tmp_path: Path) -> Callable[[str], Case]:
    def make(body: str) -> Case:
        (tmp_path / "k.wgsl").write_text(HEAD.replace("BODY", body))
        (tmp_path / "k.toml").write_text(MANIFEST)
        kernel = load(tmp_path / "k.toml")
        return kernel.case(kernel.shapes[0])

    return make


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_the_limit_of_lavapipe_is_a_cause(case, body: str) -> None:
    (check,) = diff(case(body), "llvmpipe", Options()).outputs
    assert check.likely is not None
    assert check.likely.name == "loop limit of the driver"
    assert check.likely.evidence == (
        "the driver leaves loops after 65,535 turns; under that limit, all 64 elements agree"
    )


def test_a_limit_does_not_explain_another_difference(case) -> None:
    """The simulator rounds as a device that it is not compared with; no limit of loops gives the same outputs."""
    body = "for (var i = 0u; i < n.y; i++) { c++; } if n.z == 40000u { d = subgroupAdd(1u); }"
    made = case(body)
    made.kernel.source.write_text("enable subgroups;\n" + HEAD.replace("BODY", body))
    kernel = load(made.kernel.path)
    (check,) = diff(kernel.case(kernel.shapes[0]), "swiftshader", Options(device="lavapipe")).outputs
    assert check.likely is not None
    assert check.likely.name == "subgroup size"


def test_a_text_that_agrees_without_the_limit_proves_nothing(case) -> None:
    """A text may also change the order in which workgroups run, and thereby who wins a race."""
    made = case("for (var i = 0u; i < 9u; i++) { c++; }")
    run = simulate(made, "lavapipe", "none")
    m = Mismatch(made, run, "y", np.zeros_like(run.outputs["y"]), on_gpu=lambda text: run.outputs["y"])
    assert loops_left(replace(m, expected=run.outputs["y"])) is None
    assert loops_left(m) is None


def counted(*loops: str) -> list[set[str]]:
    """The conditions of the loops that count, in each text."""
    found = limited(bankshot.check(HEAD.replace("BODY", " ".join(loops))).pipeline(), 9)
    return [set(re.findall(r"bankshot_turn_\d\(\) && \((.*?)\) \{", text)) for text in found]


def constant(number: int) -> str:
    return f"while c < {number}u {{ c++; }}"


@pytest.mark.parametrize("count", range(4))
def test_every_subset_of_up_to_three_loops_may_be_unrolled(count: int) -> None:
    conditions = [f"c < {n}u" for n in range(count)]
    subsets = [{*left} for size in range(count, -1, -1) for left in combinations(conditions, size)]
    texts = counted("while c < n.x { c++; }", *map(constant, range(count)))
    assert sorted(map(sorted, texts)) == sorted(sorted({"c < n.x", *subset}) for subset in subsets)
    assert texts[0] == {"c < n.x", *conditions}  # as they are, first
    alone = counted(*map(constant, range(count)))  # a text in which no loop counts is that of the module
    assert sorted(map(sorted, alone)) == sorted(sorted(subset) for subset in subsets if subset)


def test_of_four_loops_all_or_none_are_unrolled() -> None:
    conditions = {f"c < {n}u" for n in range(4)}
    texts = counted("while c < n.x { c++; }", *map(constant, range(4)))
    assert texts == [{"c < n.x", *conditions}, {"c < n.x"}]
    assert counted(*map(constant, range(4))) == [conditions]


@pytest.mark.parametrize(
    ("condition", "unrolled"),
    [
        *((f"c {sign} 7u", True) for sign in ("<", "<=", ">", ">=", "!=")),
        ("7u > c", True),
        ("c < 2u * 3u", True),
        ("c == 7u", False),
        ("c < n.x", False),
        ("c + 1u < n.x", False),
        ("c < 7u && d < 7u", False),
        ("bool(c)", False),
    ],
)
def test_a_loop_that_compares_with_a_constant_may_be_unrolled(condition: str, unrolled: bool) -> None:
    texts = counted("while d < n.y { d++; }", f"while {condition} {{ c++; }}")
    assert texts == [{"d < n.y", condition}, *([{"d < n.y"}] if unrolled else [])]


def test_a_limit_counts_the_turn_in_which_a_loop_ends() -> None:
    body = "for (var i = 0u; i < 3u; i++) { c++; } while d < 3 { d++; } loop { e++; if e > 8 { break; } }"
    (text, *_) = limited(bankshot.check(HEAD.replace("BODY", body)).pipeline(), 6)
    module = bankshot.check(text, uniformity="off")
    given = {"y": bytes(256), "n": bytes(16)}
    run = bankshot.simulate(module, grid=1, bindings=given, device="lavapipe", probes="none")
    words = memoryview(run.outputs["y"]).cast("I")
    assert list(words[:3]) == [3, 2, 1]
