"""Parts of the front end, each by what WGSL or its error says: layout, stages, calls, texel formats and syntax."""

from __future__ import annotations

import pytest

from bankshot.sim.wgsl import typed
from bankshot.sim.wgsl import types as t
from bankshot.sim.wgsl.check.check_module import LANGUAGE_FEATURES, check
from bankshot.sim.wgsl.diagnostics import WgslError
from bankshot.sim.wgsl.source import Source
from bankshot.sim.wgsl.texel_formats import is_written
from tests.wgsl.test_messages import refused

F = "fn f() { "
UPDATES = ("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")
REFUSED: list[tuple[str, str, str | None]] = [
    ("¦\0fn f() { }", "null character", None),
    ("fn f() { }¦\0", "null character", None),
    (F + "for (var j = 0; j < 3; j++¦, j++) { } }", "expected ')' after the update", "the update is one statement"),
    (F + "for (var j = 0; j < 3; j++¦;) { } }", "expected ')' after the update", "leave out the ';'"),
    (F + "for (var j = 0¦, k = 1; j < 3; j++) { } }", "expected ';' after the initializer", "is one statement"),
    (F + "let a = vec3f¦{1, 2, 3}; }", "expected ';'", "a value is written like a call of its type: vec3f(…)"),
    (F + "let a = 1¦{1, 2, 3}; }", "expected ';'", None),
    *((f"¦a {update} 1;", "expected a declaration", "statements are in functions") for update in UPDATES),
    *(
        (f"¦a{rest};", "expected a declaration", "statements are in functions")
        for rest in ("++", "--", "(1)", "[0]", ".x")
    ),
    ("¦return 1;", "expected a declaration", "statements are in functions"),
    ("¦a;", "expected a declaration", None),
    ("¦1;", "expected a declaration", None),
    (F + "if true ¦then { } }", "expected '{' before the body", "the body follows the condition"),
    (F + "if (true)¦) { } }", "expected '{' before the body", "there are more ')' than '('"),
    (
        "var<immediate> a: u32; var<immediate> ¦b: u32; fn g() { _ = b; } "
        "@compute @workgroup_size(1) fn main() { _ = a; g(); }",
        "entry point 'main' uses two variables in the immediate address space",
        None,
    ),
]


@pytest.mark.parametrize(("text", "said", "hint"), REFUSED, ids=[row[0][:70] for row in REFUSED])
def test_refused(text: str, said: str, hint: str | None) -> None:
    assert refused(text, said, hint)


STRICT = LANGUAGE_FEATURES - {"uniform_buffer_standard_layout"}
UNIFORM = "{} @group(0) @binding(0) var<uniform> u: S;"


@pytest.mark.parametrize(
    ("structs", "said"),
    [
        ("struct S { a: vec3f, b: f32 }", None),
        ("struct A { x: f32 } struct S { a: A, @align(16) b: f32 }", None),
        ("struct A { x: f32 } struct S { @size(16) a: A, b: f32 }", None),
        ("struct A { x: vec4f, y: f32 } struct S { a: A, b: f32 }", None),
        ("struct A { x: f32 } struct S { a: A, b: f32 }", "member 'b' of S is 4 bytes after the struct 'a', not 16"),
        (
            "struct A { x: array<vec4f, 2>, y: f32 } struct S { a: A, @align(4) b: f32 }",
            None,
        ),
        (
            "struct A { x: f32 } struct S { b: f32, a: A }",
            "member 'a' of S is at byte 4, which is not a multiple of 16",
        ),
        ("struct S { b: f32, a: array<vec4f, 2> }", None),
        ("struct S { a: array<f32, 4> }", "array<f32, 4>"),
        ("struct S { a: array<vec4f, 4> }", None),
    ],
)
def test_the_layout_of_uniform_buffers_without_the_feature_that_relaxes_it(structs: str, said: str | None) -> None:
    source = Source(UNIFORM.format(structs))
    check(source)
    if said is None:
        check(source, features=STRICT)
    else:
        with pytest.raises(WgslError) as error:
            check(source, features=STRICT)
        assert said in error.value.diagnostics[0].message


STORAGE = t.Texture("texture_storage_2d", format="r32uint", access="write")


@pytest.mark.parametrize(
    ("type_", "written"),
    [
        (t.Texture("texture_2d", t.F32), False),
        (t.Texture("texture_storage_2d", format="r32uint", access="read"), False),
        (STORAGE, True),
        (t.Texture("texture_storage_2d", format="r32uint", access="read_write"), True),
        (t.Pointer("storage", t.U32, "read_write"), False),
        (t.Sampler(), False),
        (t.U32, False),
    ],
    ids=str,
)
def test_a_shader_may_write_storage_textures_that_are_not_read_only(type_: t.Type, written: bool) -> None:
    assert is_written(type_) == written


def test_functions_that_an_entry_point_reaches() -> None:
    """Each once, the nearest first."""
    text = """
    fn d() { } fn c() { d(); } fn b() { d(); c(); } fn alone() { d(); }
    @compute @workgroup_size(1) fn main() { b(); c(); d(); b(); }"""
    main = check(Source(text)).functions["main"]
    assert [function.name for function in typed.reached(main)] == ["main", "b", "c", "d"]
    chain = " ".join(f"fn f{n}() {{ f{n + 1}(); }}" for n in range(4)) + " fn f4() { }"
    start = check(Source(chain)).functions["f0"]
    assert [function.name for function in typed.reached(start)] == ["f0", "f1", "f2", "f3", "f4"]


def test_functions_that_an_analysis_concerns() -> None:
    """Those that reach a marked function, and all that they call, also beside it."""
    text = """
    fn leaf() { } fn marked() { leaf(); } fn beside() { } fn apart() { leaf(); }
    fn caller() { marked(); beside(); }
    @compute @workgroup_size(1) fn main() { caller(); }
    @compute @workgroup_size(1) fn other() { apart(); }"""
    functions = check(Source(text)).functions  # callees first
    found = typed.concerned(list(functions.values()), {functions["marked"]})
    assert [function.name for function in found] == ["leaf", "marked", "beside", "caller", "main"]
    assert typed.concerned(list(functions.values()), set()) == []
