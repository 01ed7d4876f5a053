"""The last value that the spec allows, the first that it does not, and what the hints say."""

from __future__ import annotations

import pytest

from bankshot.sim.front_end import portability
from bankshot.sim.wgsl.analysis.portability import with_acceptance
from bankshot.sim.wgsl.check.check_module import LANGUAGE_FEATURES, check
from bankshot.sim.wgsl.check.check_types import GENERATORS
from bankshot.sim.wgsl.diagnostics import Diagnostic, WgslError
from bankshot.sim.wgsl.source import Source

SUBGROUPS = "enable subgroups; @compute @workgroup_size(64) fn f(@builtin(local_invocation_index) x: u32)"


def error_of(text: str) -> tuple[str, str | None]:
    with pytest.raises(WgslError) as error:
        check(Source(text))
    (diagnostic,) = error.value.diagnostics
    return diagnostic.message, diagnostic.hint


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("subgroupBroadcast", "id"),
        ("subgroupShuffle", "id"),
        ("subgroupShuffleUp", "delta"),
        ("subgroupShuffleDown", "delta"),
        ("subgroupShuffleXor", "mask"),
    ],
)
def test_the_lanes_that_a_constant_can_name(name: str, what: str) -> None:
    """No subgroup has more than 128 invocations. Spec: "Subgroup Built-in Functions"."""
    assert check(Source(f"{SUBGROUPS} {{ _ = {name}(x, 0u); _ = {name}(x, 127u); }}"))
    assert error_of(f"{SUBGROUPS} {{ _ = {name}(x, 128u); }}")[0] == f"the {what} 128 is not from 0 to 127"


@pytest.mark.parametrize(
    ("workgroup", "subgroup", "problem"),
    [
        ("64", 16, None),
        ("16, 3", 16, None),
        ("16", 1, None),
        ("24", 16, "the workgroup size along x, 24, is not a multiple of the subgroup size 16"),
        ("16", 32, "the workgroup size along x, 16, is not a multiple of the subgroup size 32"),
        ("8, 2", 16, "the workgroup size along x, 8, is not a multiple of the subgroup size 16"),
        ("24", 12, "the subgroup size must be a power of two, not 12"),
    ],
)
def test_the_workgroup_is_a_whole_number_of_subgroups(workgroup: str, subgroup: int, problem: str | None) -> None:
    attributes = f"@compute @workgroup_size({workgroup}) @subgroup_size({subgroup})"
    module = check(Source(f"enable subgroups; enable subgroup_size_control; {attributes} fn f() {{}}"))
    if problem is None:
        assert module.pipeline("f").subgroup_size == subgroup
    else:
        with pytest.raises(WgslError) as error:
            module.pipeline("f")
        assert error.value.diagnostics[0].message == problem


@pytest.mark.parametrize("name", sorted(GENERATORS))
def test_a_type_with_a_wrong_template_has_an_example(name: str) -> None:
    template = "<1, 2>" if name == "buffer" else ""  # which needs no template
    message, hint = error_of(f"fn f() {{ var x: {name}{template}; }}")
    assert message.startswith(f"'{name}' takes ")
    assert hint is not None
    assert hint.startswith(f"for example {name}<")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("fn f() { var<u32> x; }", "write var x: u32"),
        ("fn f() { var<u32> x: u32; }", "write var x: u32"),
        ("fn f() { var<f32, u32> x; }", "write var x: u32"),
        ("var<vec2f> x;", "write var<private> x: vec2f"),
        ("var<private, u32> x;", "write var<private> x: u32"),
        ("var<u32> x = 1;", "write var<private> x: u32 = …"),
        ("var<private, read> x = 1;", "write var<private> x = …"),
    ],
)
def test_the_declaration_that_was_meant(text: str, hint: str) -> None:
    assert error_of(text)[1] == hint


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        ("vec4f(v, 1.0)", "it needs 4 components, and 3 are given"),
        ("vec2f(v, v)", "it needs 2 components, and 4 are given"),
        ("vec3f(m, 1.0)", None),  # the components of a matrix do not count
        ("vec4f(v, a)", None),
    ],
)
def test_the_components_that_a_vector_needs(call: str, hint: str | None) -> None:
    message, given = error_of(f"fn f(v: vec2f, m: mat2x2f, a: array<f32, 2>) {{ let x = {call}; }}")
    assert message.startswith("no overload of 'vec")
    assert given == hint


@pytest.mark.parametrize(
    "attributes", ["@compute @workgroup_size(64)", "@workgroup_size(8, 8) @compute", "@must_use", "@diagnostic(off, x)"]
)
def test_a_brace_that_is_missing_before_a_function_with_attributes(attributes: str) -> None:
    assert error_of(f"fn f() {{ let x = 1;\n{attributes} fn g() {{}}") == (
        "expected '}' at the end of the body of the function, found '@'",
        "functions cannot be declared within functions",
    )


def test_an_unknown_attribute_lists_those_of_wgsl() -> None:
    """All but @const, which no shader may use. Spec: "Attribute Names"."""
    message, hint = error_of("@nothing fn f() {}")
    assert message == "there is no attribute 'nothing'"
    assert hint is not None
    assert hint.removeprefix("one of ").split(", ") == [
        *("align", "binding", "blend_src", "builtin", "compute", "diagnostic", "fragment", "group", "id"),
        *("interpolate", "invariant", "location", "must_use", "size", "subgroup_size", "vertex", "workgroup_size"),
    ]


@pytest.mark.parametrize(("call", "since"), [("pack4x8snorm(vec4f(x))", False), ("pack2x16float(vec2f(x))", False),
                                             ("unpack4x8unorm(7u).x", False), ("pack4xI8(vec4i(7))", True),
                                             ("unpack4xU8(7u).x", True)])  # fmt: skip
def test_packing_that_came_with_a_language_feature(call: str, since: bool) -> None:
    source = Source(f"fn f(x: f32) {{ let y = {call}; }}")
    assert check(source)
    without = LANGUAGE_FEATURES - {"packed_4x8_integer_dot_product"}
    if since:
        with pytest.raises(WgslError, match="packed_4x8_integer_dot_product"):
            check(source, features=without)
    else:
        assert check(source, features=without)


@pytest.mark.parametrize(
    ("texture", "uniform"),
    [
        ("texture_storage_2d<r32uint, read_write>", False),  # others may store to it
        ("texture_storage_2d<r32uint, read>", True),
        ("texture_2d<u32>", True),
    ],
)
def test_a_texel_is_uniform_unless_others_may_store_to_it(texture: str, uniform: bool) -> None:
    level = ", 0" if texture == "texture_2d<u32>" else ""
    source = Source(f"""@group(0) @binding(0) var t: {texture};
        @compute @workgroup_size(8) fn f() {{ if textureLoad(t, vec2u(){level}).x > 1u {{ workgroupBarrier(); }} }}""")
    if uniform:
        assert check(source)
    else:
        with pytest.raises(WgslError, match="workgroupBarrier"):
            check(source)


def test_the_carets_below_a_long_line_end_with_it() -> None:
    """The line is cut, and so are the carets below what is longer than all that is shown."""
    with pytest.raises(WgslError) as error:
        check(Source(f"fn f() {{ let x = {'a + ' * 300}b; }}"))
    with pytest.raises(WgslError) as long_name:
        check(Source(f"fn f() {{ let x = {'a' * 800}; }}"))
    for raised in (error, long_name):
        for line, carets in zip(
            str(raised.value).splitlines()[1::3], str(raised.value).splitlines()[2::3], strict=True
        ):
            assert set(carets) <= {" ", "^"}
            assert len(carets) <= len(line) < 500


def test_naga_accepts_some_errors_alone() -> None:
    known, other = (Diagnostic("error", code, "m", None) for code in ("mixed-operators", "type-mismatch"))
    assert with_acceptance(other) is other
    (note,) = with_acceptance(known).notes
    assert note.message.startswith("naga (wgpu, Firefox) accepts operators without")


def test_a_break_in_a_switch_does_not_leave_the_loop() -> None:
    """The analysis of variables that naga does not clear in each iteration."""
    source = """fn f() { for (var k = 0; k < 4; k++) { var a: i32;
        switch k { case 1 { break; } default { a = 1; } }
        switch k { case 2 { a = 2; break; } default { } }
        let b = a; } }"""
    assert "kept-value" in [note.code for note in portability(check(Source(source)))]


@pytest.mark.parametrize("second", [0, 1])
def test_a_location_is_given_once(second: int) -> None:
    members = f"@location(0) a: f32, @location({second}) b: f32"
    for text in (f"@fragment fn f({members}) {{}}", f"struct V {{ {members} }} @fragment fn f(v: V) {{}}"):
        if second:
            assert check(Source(text))
        else:
            assert error_of(text)[0] == "location 0 is given twice"


def test_the_most_elements_of_an_array_constructor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bankshot.sim.wgsl.check.check_calls.MAX_ARRAY_CONSTRUCTOR", 4)
    assert check(Source("const a = array(1, 2, 3, 4);"))
    message, _ = error_of("const a = array(1, 2, 3, 4, 5);")
    assert message == "an array constructor takes at most 4 elements, not 5"
