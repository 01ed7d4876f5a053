"""Texts that bind one thing more than the shader does bind it where nothing is, in a group that is in use."""

import re

import numpy as np
import pytest

import bankshot
from bankshot.oracle.diagnosis.kept_floats import kept
from bankshot.oracle.diagnosis.texel_bounds import texel_bounds
from bankshot.oracle.gpu_counters.wgsl_probes import instrument

# Declarations, some not used; then where the new binding is.
DECLARED = {
    "one": ("@group(0) @binding(0)", "", (0, 1)),
    "a gap below": ("@group(0) @binding(7)", "", (0, 8)),
    "another group": ("@group(2) @binding(3)", "", (2, 4)),
    "an unused binding of the group": (
        "@group(2) @binding(3)", "@group(2) @binding(9) var<uniform> unused: vec4<u32>;", (2, 10)
    ),
    "an unused binding of a later group": (
        "@group(1) @binding(3)", "@group(2) @binding(9) var<uniform> unused: vec4<u32>;", (1, 4)
    ),
    "variables without a binding": (
        "@group(1) @binding(0)", "var<private> mine: f32; var<workgroup> tile: array<f32, 4>;", (1, 1)
    ),
}  # fmt: skip


def bindings(text):
    return [tuple(map(int, found)) for found in re.findall(r"@group\((\d+)\) *@binding\((\d+)\)", text)]


def pipeline(name, resource, body):
    place, more, _ = DECLARED[name]
    text = f"{place} {resource} {more} @compute @workgroup_size(4) fn main() {{ {body} }}"
    module = bankshot.check(text)
    return module.pipeline(), bindings(text)


BUFFER = "var<storage, read_write> y: array<f32>;"


@pytest.mark.parametrize("name", DECLARED)
def test_where_a_zero_is_bound(name):
    made, before = pipeline(name, BUFFER, "y[0] = y[1] * 2.0 + 1.0;")
    text = kept(made)
    assert bindings(text)[len(before) :] == [DECLARED[name][2]]
    bankshot.check(text)


@pytest.mark.parametrize("name", DECLARED)
def test_where_a_log_is_bound(name):
    made, before = pipeline(name, BUFFER, "y[0] = 1.0;")
    run = bankshot.simulate(made.module, grid=1, bindings={"y": np.zeros(4, np.float32)})
    probed = instrument(run.pipeline, run.program.sites, None)
    assert (probed.group, probed.binding) == DECLARED[name][2]
    assert bindings(probed.text)[len(before) :] == [DECLARED[name][2]]
    bankshot.check(probed.text)


@pytest.mark.parametrize("name", DECLARED)
def test_where_texels_are_bound(name):
    made, before = pipeline(name, "var t: texture_storage_2d<rgba8unorm, write>;",
                            "textureStore(t, vec2(1, 2), vec4(0.5));")  # fmt: skip
    texts = []

    class Enough(Exception):
        pass

    def rerun(text, extra):
        texts.append(text)
        raise Enough

    (variable,) = made.globals
    with pytest.raises(Enough):
        texel_bounds(made, variable, np.zeros((4, 4, 4), np.uint8), rerun)
    (text,) = texts
    assert bindings(text)[len(before) :] == [DECLARED[name][2]]
    bankshot.check(text)


def test_a_shader_without_bindings_uses_group_0():
    made, _ = pipeline("one", BUFFER, "y[0] = y[1] * 2.0;")
    text = made.module.source.text.replace("@group(0) @binding(0) " + BUFFER, "var<workgroup> y: array<f32, 4>;")
    assert bindings(kept(bankshot.check(text).pipeline())) == [(0, 0)]
