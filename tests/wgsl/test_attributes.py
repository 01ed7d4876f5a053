"""Attributes: places, numbers of parameters, extensions, and the types of built-in values. Spec: "Attributes"."""

import pytest

import bankshot

# What each attribute needs besides its own place: the extension, and a module with the attribute in it.
EXTENSIONS = {
    "blend_src": ("dual_source_blending", "struct S { @location(0) @blend_src(0) a: vec4f, "
                  "@location(0) @blend_src(1) b: vec4f } @fragment fn f() -> S { return S(); }"),
    "subgroup_size": ("subgroup_size_control", "@compute @workgroup_size(32) @subgroup_size(32) fn f() {}"),
}  # fmt: skip


def code_of(text):
    """The code of the error of a module, "" if it is valid."""
    try:
        bankshot.check(text)
    except bankshot.WgslError as error:
        return error.diagnostics[0].code
    return ""


@pytest.mark.parametrize("name", EXTENSIONS)
def test_an_attribute_needs_its_extension(name):
    extension, text = EXTENSIONS[name]
    with pytest.raises(bankshot.WgslError, match=f"attribute '@{name}' needs the extension '{extension}'"):
        bankshot.check(text)
    also = "enable subgroups; " if extension == "subgroup_size_control" else ""
    assert bankshot.check(f"{also}enable {extension}; {text}").entry_points


VERTEX = "enable clip_distances; struct S {{ @builtin(position) p: vec4f, @builtin(clip_distances) c: {} }}"


@pytest.mark.parametrize(
    ("type_", "valid"),
    [
        ("array<f32, 1>", True),
        ("array<f32, 7>", True),
        ("array<f32, 8>", True),
        ("array<f32, 9>", False),
        ("array<f32, 64>", False),
        ("array<i32, 8>", False),
        ("array<vec2f, 2>", False),
        ("vec4f", False),
        ("f32", False),
    ],
)
def test_clip_distances_are_an_array_of_up_to_eight_f32(type_, valid):
    text = f"{VERTEX.format(type_)} @vertex fn f() -> S {{ return S(); }}"
    assert code_of(text) == ("" if valid else "builtin-type")


# The places of each attribute, by the spec.
MEMBER, PARAMETER, RESULT, GLOBAL = "struct member", "parameter", "return type", "module-scope variable"
FUNCTION, OVERRIDE, BLOCK, LOOP = "function", "override", "block", "loop"
IO = {MEMBER, PARAMETER, RESULT}
PLACES = {
    "align(16)": {MEMBER},
    "binding(0)": {GLOBAL},
    "builtin(position)": IO,
    "compute": {FUNCTION},
    "diagnostic(off, derivative_uniformity)": {FUNCTION, BLOCK, LOOP},
    "fragment": {FUNCTION},
    "group(0)": {GLOBAL},
    "id(1)": {OVERRIDE},
    "interpolate(flat)": IO,
    "invariant": IO,
    "location(0)": IO,
    "must_use": {FUNCTION},
    "size(16)": {MEMBER},
    "vertex": {FUNCTION},
    "workgroup_size(1)": {FUNCTION},
}
TEXTS = {
    MEMBER: "struct S {{ {} a: vec4f }}",
    PARAMETER: "fn f({} a: vec4f) {{}}",
    RESULT: "fn f() -> {} vec4f {{ return vec4f(); }}",
    GLOBAL: "{} var<private> a: vec4f;",
    FUNCTION: "{} fn f() -> vec4f {{ return vec4f(); }}",
    OVERRIDE: "{} override a: f32 = 1.0;",
    BLOCK: "fn f() {{ {} {{ }} }}",
    LOOP: "fn f() {{ {} loop {{ break; }} }}",
}


@pytest.mark.parametrize("attribute", PLACES)
def test_an_attribute_has_its_places(attribute):
    for place, text in TEXTS.items():
        misplaced = f"is not allowed on a {place}"
        try:
            bankshot.check(text.format(f"@{attribute}"))
            refused = False
        except bankshot.WgslError as error:
            refused = misplaced in str(error)
        assert refused == (place not in PLACES[attribute]), place


@pytest.mark.parametrize(
    ("attribute", "place", "fewest", "most"),
    [
        ("align", MEMBER, 1, 1),
        ("binding", GLOBAL, 1, 1),
        ("builtin", MEMBER, 1, 2),
        ("compute", FUNCTION, 0, 0),
        ("fragment", FUNCTION, 0, 0),
        ("group", GLOBAL, 1, 1),
        ("id", OVERRIDE, 1, 1),
        ("interpolate", MEMBER, 1, 2),
        ("invariant", MEMBER, 0, 0),
        ("location", MEMBER, 1, 1),
        ("must_use", FUNCTION, 0, 0),
        ("size", MEMBER, 1, 1),
        ("vertex", FUNCTION, 0, 0),
        ("workgroup_size", FUNCTION, 1, 3),
    ],
)
def test_an_attribute_has_its_number_of_parameters(attribute, place, fewest, most):
    for count in range(5):
        given = f"@{attribute}({', '.join(['16'] * count)})" if count else f"@{attribute}"
        if not most and count:
            assert code_of(TEXTS[place].format(given)) == "expected"  # '(' is no part of this attribute
        else:
            refused = code_of(TEXTS[place].format(given)) == "wrong-parameter-count"
            assert refused == (not fewest <= count <= most), count
