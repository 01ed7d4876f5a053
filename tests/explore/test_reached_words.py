"""Which word an access reaches: past the end by each policy, in structs and halves, and the names of words."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot
from bankshot.sim.explore.search import System
from bankshot.sim.run.prepared import dispatch_of

TEXT = """enable f16;
struct Two {{ a: u32, b: vec2u }}
@group(0) @binding(0) var<storage, read_write> y: array<u32, 4>;
@group(0) @binding(1) var<storage, read_write> s: array<Two, 3>;
@group(0) @binding(2) var<storage, read_write> h: array<f16, 4>;
@group(0) @binding(3) var<uniform> at: u32;
@group(0) @binding(4) var<storage, read_write> one: u32;
var<workgroup> t: array<u32, 4>;
var<workgroup> w: u32;
@compute @workgroup_size(1) fn main() {{ _ = &y; _ = &s; _ = &h; _ = at; _ = &t; _ = &w; _ = &one; {} }}
"""
Y, S = [10, 11, 12, 13], [[0, 9, 1, 2], [3, 9, 4, 5], [6, 9, 7, 8]]  # 9: padding


def given(at):
    return {
        "y": np.array(Y, np.uint32),
        "s": np.array(S, np.uint32).ravel(),
        "h": np.array([1, 2, 3, 4], np.float16),
        "at": np.uint32(at),
        "one": np.uint32(5),
    }


def explored(body, at, policy):
    (outcome,) = bankshot.explore(TEXT.format(body), grid=1, bindings=given(at), out_of_bounds=policy).outcomes
    return outcome.outputs


# An index, and the element that it reaches by each policy: of four, then of three; None: none.
REACHED = {
    ("clamp", 3): (3, 2), ("clamp", 4): (3, 2), ("clamp", 6): (3, 2), ("clamp", 0xFFFFFFFF): (3, 2),
    ("zero", 3): (3, None), ("zero", 4): (None, None), ("zero", 0xFFFFFFFF): (None, None),
    ("wrap", 3): (3, 0), ("wrap", 4): (0, 1), ("wrap", 6): (2, 0), ("wrap", 1 << 20 | 1): (1, 2),
    ("zero-buffers", 2): (2, 2), ("zero-buffers", 4): (None, None),
}  # fmt: skip


@pytest.mark.parametrize(("policy", "at"), REACHED)
def test_an_access_past_the_end(policy, at):
    four, three = REACHED[policy, at]
    stored = explored("y[at] = 7u; s[at].b.y = 8u;", at, policy)
    assert stored["y"].tolist() == [7 if n == four else old for n, old in enumerate(Y)]
    expected = [[*old[:3], 8] if n == three else old for n, old in enumerate(S)]
    assert np.frombuffer(stored["s"].tobytes(), np.uint32).reshape(3, 4).tolist() == expected
    loaded = explored("y[0] = y[at]; y[1] = s[at].b.x;", at, policy)["y"].tolist()
    assert loaded[:2] == [0 if four is None else Y[four], 0 if three is None else S[three][2]]


@pytest.mark.parametrize(("policy", "at"), REACHED)
def test_an_access_past_the_end_of_workgroup_memory(policy, at):
    four = at if at < 4 else REACHED["clamp" if policy == "zero-buffers" else policy, at][0]
    copy = "y[0] = t[0]; y[1] = t[1]; y[2] = t[2]; y[3] = t[3];"
    assert explored(f"t[at] = 7u; w = 9u; {copy}", at, policy)["y"].tolist() == [7 * (n == four) for n in range(4)]


@pytest.mark.parametrize(("policy", "index"), [("clamp", 3), ("zero", None), ("wrap", 1)])
def test_an_element_of_two_bytes_past_the_end(policy, index):
    halves = explored("h[at] = 9.0h;", 5, policy)["h"].tolist()
    assert halves == [9 if n == index else n + 1 for n in range(4)]


def test_words_have_names():
    system = System(dispatch_of(TEXT.format(""), grid=2, bindings=given(0)), "sc")
    words = system.words
    names = [words.name(word) for word in range(len(words.initial))]
    assert [names[word] for word in words.part(system.dispatch.bound[0])] == ["y[0]", "y[1]", "y[2]", "y[3]"]
    by_name = {bound.variable.name: words.part(bound) for bound in system.dispatch.bound}
    assert {name: len(part) for name, part in by_name.items()} == {"y": 4, "s": 12, "h": 2, "at": 1, "one": 1}
    assert [names[word] for word in by_name["h"]] == ["h[0]", "h[1]"]
    assert names[by_name["s"][11]] == "s[11]"
    assert (names[by_name["at"][0]], names[by_name["one"][0]]) == ("at", "one")
    # t is 16 bytes, w is 4, and each variable begins at a multiple of 16, so that a workgroup has 8 words
    own = names[words.storage :]
    assert own[:5] == own[8:13] == ["t[0]", "t[1]", "t[2]", "t[3]", own[4]]
    assert (len(own), own[4][0]) == (16, "w")
    assert {words.space(word) for word in range(words.storage)} == {"storage"}
    assert {words.space(word) for word in range(words.storage, len(names))} == {"workgroup"}
