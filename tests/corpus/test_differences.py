"""Elements of outputs that differ: by kind, by word and by channel, each worked out by hand."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import bankshot
from bankshot.oracle.corpus import trial
from bankshot.oracle.corpus.difference import (
    Difference,
    differences,
    differing,
    differing_texels,
    errors,
    holds_floats,
    texel_errors,
    texels,
)
from bankshot.oracle.corpus.embedded import Shader
from bankshot.oracle.corpus.trial import trials
from bankshot.oracle.guesses.invented_inputs import COUNTER, HALF, SINGLE, STEP, WHOLE

PADDING = 0
INF, NAN = np.inf, np.nan


def words(*values):
    """A buffer: numbers are f32, pairs are two f16, `("u", n)` is u32 and `("pad", n)` padding; and its codes."""
    data, codes = [], []
    for value in values:
        match value:
            case ("u", number):
                data.append(np.uint32(number).tobytes())
                codes += [WHOLE] * 2
            case ("count", number):
                data.append(np.uint32(number).tobytes())
                codes += [COUNTER] * 2
            case ("pad", number):
                data.append(np.uint32(number).tobytes())
                codes += [PADDING] * 2
            case (low, high):
                data.append(np.array([low, high], np.float16).tobytes())
                codes += [HALF] * 2
            case number:
                data.append(np.float32(number).tobytes())
                codes += [SINGLE] * 2
    return np.array(codes, np.uint8), np.frombuffer(b"".join(data), np.uint32)


def compared(ours, theirs):
    (codes, a), (_, b) = words(*ours), words(*theirs)
    found = [(d.code, d.count, d.elements, d.first, d.ours, d.theirs, d.error, d.ulp)
             for d in differences("y", codes, a, b)]  # fmt: skip
    return found, differing(codes, a, b).tolist(), errors(codes, a, b).tolist()


# Two buffers; the differences, which words differ, and by how much.
BUFFERS = {
    "equal": ([1.0, 2.0], [1.0, 2.0], [], [False, False], [0, 0]),
    "floats": ([1.0, 2.0, 8.0], [1.0, 3.0, 4.0], [(SINGLE, 2, 3, 4, 2.0, 3.0, 1.0, 1 << 23)],
               [False, True, True], [0, 1, 4]),
    "one step": ([1.0, -8.0], [1.0 + 2**-23, -8.0], [(SINGLE, 1, 2, 0, 1.0, 1 + 2**-23, 2**-26, 1)],
                 [True, False], [2**-23, 0]),
    "two NaN": ([NAN], [-NAN], [], [False], [0]),
    "one NaN": ([1.0, NAN], [1.0, 1.0], [(SINGLE, 1, 2, 4, NAN, 1.0, INF, None)], [False, True], [0, INF]),
    "one infinity": ([1.0, INF], [1.0, 2.0], [(SINGLE, 1, 2, 4, INF, 2.0, INF, 127 << 23)], [False, True], [0, INF]),
    "zeros": ([0.0], [-0.0], [(SINGLE, 1, 1, 0, 0.0, -0.0, 0.0, 0)], [True], [0]),
    "whole numbers": ([("u", 7), ("u", 7)], [("u", 7), ("u", 10)], [(WHOLE, 1, 2, 4, 7, 10, 0.3, 3)],
                      [False, True], [0, 3]),
    "nothing large": ([("u", 7)], [("u", 0)], [(WHOLE, 1, 1, 0, 7, 0, 7.0, 7)], [True], [7]),
    "padding": ([("pad", 1), 2.0], [("pad", 9), 2.0], [], [False, False], [0, 0]),
    "halves": ([(1.0, 2.0), (4.0, 5.0)], [(1.0, 2.0), (4.0, 4.0)], [(HALF, 1, 4, 6, 5.0, 4.0, 0.25, 256)],
               [False, True], [0, 1]),
    "the larger of two halves": ([(1.0, 2.0)], [(1.5, 4.0)], [(HALF, 2, 2, 0, 1.0, 1.5, 0.5, 1024)], [True], [2]),
    "kinds apart": (
        [1.0, ("u", 2), ("count", 3), 5.0], [1.0, ("u", 3), ("count", 5), 4.0],
        [(WHOLE, 1, 1, 4, 2, 3, 1 / 3, 1), (COUNTER, 1, 1, 8, 3, 5, 0.4, 2),
         (SINGLE, 1, 2, 12, 5.0, 4.0, 0.25, 1 << 21)],
        [False, True, True, True], [0, 1, 2, 1],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BUFFERS)
def test_the_elements_of_a_buffer_that_differ(name):
    ours, theirs, expected, which, far = BUFFERS[name]
    found, differ, off = compared(ours, theirs)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one[:4] == other[:4]
        np.testing.assert_array_equal(one[4:6], other[4:6])
        assert one[6] == pytest.approx(other[6], rel=1e-6)
        assert other[7] is None or one[7] == other[7]
    assert differ == which
    np.testing.assert_allclose(off, far)


@pytest.mark.parametrize(
    ("difference", "text"),
    [
        (Difference("y", SINGLE, 2, 9, 4, np.float32(2), np.float32(3), 0.3333, 7),
         "y: 2 of 9, up to 7 ULP, 0.33 of the largest; at byte 4 2 here, 3 there"),
        (Difference("y", HALF, 1, 9, 0, np.float16(2.5), np.float16(3), 1.0, 7),
         "y: 1 of 9, up to 7 ULP, 1 of the largest; at byte 0 2.5 here, 3 there"),
        (Difference("y", WHOLE, 1, 9, 0, np.uint32(4_000_000_000), np.uint32(3), 1.0, 7),
         "y: 1 of 9; at byte 0 4e+09 here, 3 there"),
    ],
)  # fmt: skip
def test_a_difference_in_words(difference, text):
    assert str(difference) == text


def texture(format_):
    text = f"@group(0) @binding(0) var t: texture_storage_2d<{format_}, write>;"
    module = bankshot.check(text + "@compute @workgroup_size(1) fn main() { textureStore(t, vec2(0), vec4()); }")
    (type_,) = module.pipeline().store_types.values()
    return type_


def shown(format_, ours, theirs, dtype):
    found = texels("t", texture(format_), np.array(ours, dtype), np.array(theirs, dtype))
    return [(d.count, d.elements, d.first, d.error) for d in found]


def test_texels_that_differ():
    assert shown("rgba8unorm", [[[1, 2, 3, 4]]], [[[1, 2, 3, 4]]], np.uint8) == []
    assert shown("rgba8unorm", [[[1, 2, 3, 4]]], [[[1, 4, 3, 1]]], np.uint8) == [(2, 4, 1, 3.0)]  # in steps
    assert shown("rgba8uint", [[[1, 2, 3, 4]]], [[[1, 4, 3, 1]]], np.uint8) == [(2, 4, 1, 3 / 4)]  # of the largest
    assert shown("rgba32float", [[[1, 2, 3, 8]]], [[[1, 2, 3, 4]]], np.float32) == [(1, 4, 12, 1.0)]
    assert shown("rgb10a2unorm", [[8]], [[9]], np.uint32) == [(1, 1, 0, 1 / 9)]  # four channels in a word
    assert shown("rgba16float", [[[1, NAN, 3, 8]]], [[[1, NAN, 4, 8]]], np.float16) == [(1, 4, 4, 1 / 8)]
    a, b = np.array([[1.0, NAN, 2.0, 1.0, NAN]], np.float32), np.array([[1.0, -NAN, 5.0, NAN, 1.0]], np.float32)
    assert differing_texels(a, b).tolist() == [False, False, True, True, True]
    assert texel_errors(a, b).tolist() == [0, 0, 3, INF, INF]


@pytest.mark.parametrize(
    ("format_", "dtype", "kind", "floats"),
    [
        ("rgba8unorm", np.uint8, STEP, True),
        ("rgba8snorm", np.int8, STEP, True),
        ("rgba8uint", np.uint8, WHOLE, False),
        ("rgba32sint", np.int32, WHOLE, False),
        ("rgba32float", np.float32, SINGLE, True),
        ("rgba16float", np.float16, HALF, True),
    ],
)
def test_channels_of_a_texture_are_of_one_kind(format_, dtype, kind, floats):
    ours, theirs = np.array([[[1, 2, 3, 4]]], dtype), np.array([[[1, 2, 3, 5]]], dtype)
    (difference,) = texels("t", texture(format_), ours, theirs)
    assert (difference.code, holds_floats(texture(format_))) == (kind, floats)


def test_differences_of_all_outputs_are_listed():
    """A buffer and a texture, one element of each; what a run does not return is not compared."""
    declared = "@group(0) @binding(0) var t: texture_storage_2d<rgba8uint, write>;"
    declared += "@group(0) @binding(1) var<storage, read_write> y: array<u32, 2>;"
    declared += "@group(0) @binding(2) var<storage, read> x: array<u32, 2>;"
    body = "textureStore(t, vec2(0), vec4u(x[0])); y[0] = 1u;"
    pipeline = bankshot.check(f"{declared} @compute @workgroup_size(1) fn main() {{ {body} }}").pipeline()
    recipe = trial.RECIPES[0]
    ours = {"t": np.array([[[1, 2, 3, 4]]], np.uint8), "y": np.array([5, 6], np.uint32)}
    theirs = {"t": np.array([[[1, 2, 3, 5]]], np.uint8), "y": np.array([5, 7], np.uint32)}
    entry = SimpleNamespace(pipeline=pipeline)
    found = trial._Entry.differences(entry, recipe, ours, theirs)
    assert {(each.binding, each.count, each.elements) for each in found} == {("t", 1, 4), ("y", 1, 2)}


def test_the_time_of_a_stage_is_the_sum_of_its_runs(monkeypatch):
    clock = iter(range(0, 99, 3))  # each stage takes three seconds
    monkeypatch.setattr(trial.time, "perf_counter", lambda: next(clock))
    said = []
    module = trial._Module(Shader(Path("a.wgsl"), 1, "a\nb\n"), None, lambda *words: said.append(words), None)
    for name in ("check", "simulate", "check"):
        with module.stage("main", name):
            pass
    first = module.trial("main", "same", "why")
    assert first.seconds == {"check": 6, "simulate": 3}
    assert said == [("main", "check"), ("main", "simulate"), ("main", "check")]
    assert module.trial("main", "same").seconds == {}
    (only,) = trials(Shader(Path("b.wgsl"), 1, "const a = 1;"), None)
    assert only.verdict == "no-compute"
