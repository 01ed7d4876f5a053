"""Which variables each stage may use. Spec: "Address Spaces", and "Entry Point Declaration"."""

from __future__ import annotations

import pytest

import bankshot

ENTRY = {
    "compute": "@compute @workgroup_size(1) fn main() { use_it(); }",
    "fragment": "@fragment fn main() { use_it(); }",
    "vertex": "@vertex fn main() -> @builtin(position) vec4f { use_it(); return vec4f(); }",
}
AT = "@group(0) @binding(0) var"
# Variable, a statement that uses it, the stages that must not, and what the message calls it.
VARIABLES = {
    "workgroup": ("var<workgroup> v: u32;", "_ = v;", "fragment vertex", "in the workgroup address space"),
    "storage, read": (f"{AT}<storage, read> v: u32;", "_ = v;", "", ""),
    "storage, read_write": (f"{AT}<storage, read_write> v: u32;", "_ = v;", "vertex", "a writable storage buffer"),
    "uniform": (f"{AT}<uniform> v: u32;", "_ = v;", "", ""),
    "private": ("var<private> v: u32;", "v = 1u;", "", ""),
    "sampled": (f"{AT} v: texture_2d<f32>;", "_ = textureLoad(v, vec2u(), 0);", "", ""),
    "texture, read": (f"{AT} v: texture_storage_2d<r32uint, read>;", "_ = textureLoad(v, vec2u());", "", ""),
    "texture, write": (
        f"{AT} v: texture_storage_2d<r32uint, write>;",
        "textureStore(v, vec2u(), vec4u());",
        "vertex",
        "a writable storage texture",
    ),
    "texture, read_write": (
        f"{AT} v: texture_storage_2d<r32uint, read_write>;",
        "_ = textureDimensions(v);",
        "vertex",
        "a writable storage texture",
    ),
}


@pytest.mark.parametrize("stage", ENTRY)
@pytest.mark.parametrize("name", VARIABLES)
def test_a_variable_in_a_stage(name, stage):
    variable, use, refused, what = VARIABLES[name]
    text = f"{variable}\nfn use_it() {{ {use} }}\n{ENTRY[stage]}"
    if stage not in refused.split():
        bankshot.check(text)
        return
    with pytest.raises(bankshot.WgslError, match=f"'v' is {what} and cannot be used in a {stage} shader"):
        bankshot.check(text)
