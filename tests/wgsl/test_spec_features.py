"""The extensions and language features that the spec lists, in its text of August 2026, and what Bankshot does."""

from __future__ import annotations

import pytest

from bankshot.sim.wgsl.check.check_module import EXTENSIONS, LANGUAGE_FEATURES, check
from bankshot.sim.wgsl.diagnostics import WgslError
from bankshot.sim.wgsl.source import Source

# Spec: "Enable Extensions" and "Language Extensions".
ENABLES = ("f16", "clip_distances", "dual_source_blending", "subgroups", "primitive_index", "subgroup_size_control")
FEATURES = {
    "readonly_and_readwrite_storage_textures": "@group(0) @binding(0) var a: texture_storage_2d<r32uint, read_write>;",
    "packed_4x8_integer_dot_product": "const a = dot4U8Packed(1u, 2u);",
    "unrestricted_pointer_parameters": "fn f(p: ptr<workgroup, u32>) { }",
    "pointer_composite_access": "fn f(p: ptr<function, vec2u>) -> u32 { return p.x; }",
    "uniform_buffer_standard_layout": "@group(0) @binding(0) var<uniform> a: array<u32, 4>;",
    "subgroup_id": "enable subgroups; @compute @workgroup_size(1) fn f(@builtin(subgroup_id) a: u32) { }",
    "subgroup_uniformity": "enable subgroups;",
    "texture_and_sampler_let": "@group(0) @binding(0) var s: sampler; fn f() { let a = s; }",
    "texture_formats_tier1": "@group(0) @binding(0) var a: texture_storage_2d<r8unorm, write>;",
    "linear_indexing": "@compute @workgroup_size(1) fn f(@builtin(workgroup_index) a: u32) { }",
    "immediate_address_space": "var<immediate> a: u32;",
    "fragment_depth": "@fragment fn f() -> @builtin(frag_depth, less) f32 { return 0.5; }",
    "buffer_view": "var<workgroup> a: buffer<4>;",
}
PROPOSED = {"swizzle_assignment": "fn f() { var v = vec2u(); v.xy = v.yx; }"}


def test_each_extension_and_feature_of_the_spec_is_known() -> None:
    assert set(EXTENSIONS) == set(ENABLES)
    assert {*FEATURES, *PROPOSED} == LANGUAGE_FEATURES


@pytest.mark.parametrize(("name", "text"), (FEATURES | PROPOSED).items())
def test_a_feature_may_be_required_and_used(name: str, text: str) -> None:
    module = check(Source(f"requires {name}; {text}"))
    assert module.requires == {name}


UNCHECKED = ("subgroup_uniformity", "texture_and_sampler_let")  # nothing is written for one, one is always allowed


@pytest.mark.parametrize("name", sorted(LANGUAGE_FEATURES.difference(UNCHECKED)))
def test_without_a_feature_its_use_is_an_error(name: str) -> None:
    text = (FEATURES | PROPOSED)[name]
    with pytest.raises(WgslError):
        check(Source(text), features=LANGUAGE_FEATURES - {name})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("@fragment fn f() -> @builtin(frag_depth, any) f32 { return 0.5; }", "'any' is not a depth mode"),
        ("@vertex fn f() -> @builtin(position, less) vec4f { return vec4f(); }", "'position' has no depth mode"),
    ],
)
def test_depth_modes(text: str, said: str) -> None:
    with pytest.raises(WgslError, match=said):
        check(Source(text))


def test_an_unknown_feature_is_told_with_the_known_ones() -> None:
    with pytest.raises(WgslError, match="'do_while' is not a supported language feature") as refused:
        check(Source("requires do_while;"))
    assert all(name in str(refused.value) for name in FEATURES)
