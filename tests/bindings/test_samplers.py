"""Samplers: their fields, what is wrong with them, and what each comparison holds for."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot

TEXT = """@group(0) @binding(0) var image: texture_depth_2d;
@group(0) @binding(1) var s: sampler_comparison;
@group(0) @binding(2) var<storage, read_write> y: array<f32, 3>;
@compute @workgroup_size(3) fn main(@builtin(local_invocation_index) i: u32) {
    y[i] = textureSampleCompareLevel(image, s, vec2f(0.5), f32(i + 1u) / 4.0);
}
"""
# The reference value is less than the texel, equal, greater. Spec: WebGPU, GPUCompareFunction.
COMPARISONS = {
    "never": [0, 0, 0],
    "less": [1, 0, 0],
    "equal": [0, 1, 0],
    "less-equal": [1, 1, 0],
    "greater": [0, 0, 1],
    "not-equal": [1, 0, 1],
    "greater-equal": [0, 1, 1],
    "always": [1, 1, 1],
}


@pytest.mark.parametrize("compare", COMPARISONS)
def test_comparisons_of_the_reference_with_the_texel(compare):
    given = {"image": np.full((1, 1), 0.5, np.float32), "s": {"compare": compare}, "y": np.zeros(3, np.float32)}
    run = bankshot.simulate(TEXT, grid=1, bindings=given, probes="none")
    assert run.outputs["y"].tolist() == COMPARISONS[compare]


@pytest.mark.parametrize(
    ("address", "modes"),
    [
        ("repeat", ("repeat", "repeat", "repeat")),
        (("repeat",), ("repeat", "clamp-to-edge", "clamp-to-edge")),
        (("repeat", "mirror-repeat"), ("repeat", "mirror-repeat", "clamp-to-edge")),
        (("repeat", "mirror-repeat", "repeat"), ("repeat", "mirror-repeat", "repeat")),
    ],
)
def test_the_mode_of_each_axis(address, modes):
    assert bankshot.Sampler(address=address).addresses == modes


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"mag": "cubic"}, "mag must be one of nearest, linear, not 'cubic'"),
        ({"min": "cubic"}, "min must be one of nearest, linear"),
        ({"mip": "cubic"}, "mip must be one of nearest, linear"),
        ({"address": "wrap"}, "address must be one of clamp-to-edge, repeat, mirror-repeat"),
        ({"address": ("repeat", "wrap")}, "address must be one of clamp-to-edge, repeat, mirror-repeat"),
        ({"address": ()}, "address has 0 modes"),
        ({"address": ("repeat",) * 4}, "address has 4 modes, and a texture has one to 3 axes"),
        ({"compare": "same"}, "compare must be one of never, less, equal"),
        ({"lod": (2.0, 1.0)}, "lod must be the lowest and the highest level of detail, at least 0"),
        ({"lod": (-1.0, 1.0)}, "lod must be the lowest and the highest"),
        ({"lod": (0.0, 1.0, 2.0)}, "lod must be the lowest and the highest"),
        ({"lod": (1.0, 1.0)}, None),
        ({"lod": (0.0, 0.0)}, None),
    ],
)
def test_what_is_wrong_with_a_sampler(wrong, words):
    if words is None:
        assert bankshot.Sampler(**wrong).lod == wrong["lod"]
        return
    with pytest.raises(ValueError, match=words):
        bankshot.Sampler(**wrong)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (bankshot.Sampler(), "s is a sampler_comparison, which compares, not"),
        ({}, "s is a sampler_comparison, which compares, not"),
        ({"compare": "les"}, "s: compare must be one of"),
        ({"lod": 1}, "s: "),
        (
            {"compares": "less"},
            "s is given compares, and a sampler is a bankshot.Sampler, or a mapping of mag, min, mip",
        ),
        (3, "s is given a int, and a sampler is a bankshot.Sampler"),
    ],
)
def test_what_is_no_sampler_for_a_binding(given, words):
    bindings = {"image": np.full((1, 1), 0.5, np.float32), "s": given, "y": np.zeros(3, np.float32)}
    with pytest.raises(bankshot.WgslError, match=words):
        bankshot.simulate(TEXT, grid=1, bindings=bindings)


def test_a_sampler_that_compares_is_no_other():
    text = TEXT.replace("sampler_comparison", "sampler").replace("SampleCompareLevel", "SampleLevel")
    text = text.replace("f32(i + 1u) / 4.0", "i32(i)").replace("texture_depth_2d", "texture_2d<f32>")
    text = text.replace("i32(i));", "0.0).x;")
    bindings = {"image": np.zeros((1, 1, 4), np.float32), "s": {"compare": "less"}, "y": np.zeros(3, np.float32)}
    with pytest.raises(bankshot.WgslError, match="s is a sampler, which does not compare, not"):
        bankshot.simulate(text, grid=1, bindings=bindings)
