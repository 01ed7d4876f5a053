"""More mistakes, mostly habits of other languages: each with its place (`¦`), part of the message, part of the hint."""

from __future__ import annotations

import pytest

from bankshot.sim.wgsl.check.check_module import check
from bankshot.sim.wgsl.diagnostics import WgslError
from bankshot.sim.wgsl.source import Source
from tests.wgsl.test_messages import HEAD, Row, refused
from tests.wgsl.test_messages import ROWS as OTHER_ROWS

LANGUAGES: list[Row] = [
    ("unsigned¦ int a = 3;", "after 'unsigned'", "var a: u32 = …"),
    ("int¦ a[4] = 3;", "after 'int'", "var a: array<i32, 4>"),
    ("let a = ¦ivec2(1, 2);", "'ivec2' is not declared", "vec2<i32>"),
    ("let a = ¦make_float2(1.0, 2.0);", "'make_float2' is not declared", "vec2<f32>"),
    ("let a = ¦texture2D(image, vec2f());", "'texture2D' is not declared", "textureSampleLevel"),
    ("let a = ¦log10(x);", "'log10' is not declared", "log2(x)"),
    ("let a = ¦rcp(x);", "'rcp' is not declared", "1.0 / x"),
    ("let a = ¦UINT_MAX;", "'UINT_MAX' is not declared", "4294967295u"),
    ("¦atomicInc(&counter);", "'atomicInc' is not declared", "atomicAdd(&x, 1)"),
    ("let a = ¦this.x;", "'this' is a reserved word", "give the function a parameter"),
    ("let a = ¦new Particle();", "'new' is a reserved word", "call of its type"),
    ("¦auto a = 3;", "'auto' is a reserved word", "let name = …"),
    ("switch n { case 1: { ¦fallthrough; } default: { } }", "'fallthrough' is a reserved word", "case 1, 2:"),
    ("¦try { k = 1; }", "'try' is a reserved word", "no exceptions"),
    ("let ¦new = 1;", "'new' is a reserved word", "give it another name"),
    ("var p: ¦f64;", "'f64' is not declared", "f32"),
    ("var p: ¦u8;", "'u8' is not declared", "u32"),
    ("var p: ¦string;", "'string' is not declared", "no strings"),
    ("let a = inp[i]¦->x;", "expected ';'", "'.'"),
    ("let a = Particle¦{v, x};", "expected ';'", "Particle(…)"),
    ("let a = x¦ if yes else 1.0;", "expected ';'", "select(if_false, if_true, condition)"),
    ("if yes ¦then { k = 1; }", "expected '{'", "if condition { … }"),
    ("if yes¦: k = 1;", "expected '{'", "if condition { … }"),
    ("if yes¦) { k = 1; }", "expected '{'", "more ')' than '('"),
    ("for ¦var j = 0; j < 3; j++ { }", "expected '(' after 'for'", "for (var i = 0;"),
    ("switch n { case ¦1..3: { } default: { } }", "'1..3' is not a number", "no ranges"),
    ("let a = i ==¦= 3;", "expected an expression, found '='", "write =="),
    ("let a = i >>¦> 2;", "expected an expression, found '>'", "write >>"),
    ("let a = yes ^¦^ yes;", "expected an expression, found '^'", "write != for bools"),
    ("k =¦> 3;", "expected an expression, found '>'", "no '=>'"),
    ("let a :¦= 3;", "expected the type of 'a', found '='", "let name = …"),
    ("let a = ¦0b101;", "'0b101' is not a number", "0x5"),
    ("let a = ¦0777;", "'0777' is not a number", "no leading 0"),
    ("let a = ¦1.0d;", "'1.0d' is not a number", "i, u, f and h"),
    ("let a = ¦10ul;", "'10ul' is not a number", "i, u, f and h"),
    ("let a = ¦1.5u;", "'1.5u' is not a number", "suffix of integers"),
    ("if yes { return¦ }", "expected ';' after 'return'", None),
    ("if ¦{ }", "expected the condition of the 'if', found '{'", None),
    ("if yes { } else if ¦{ }", "expected the condition of the 'if', found '{'", None),
    ("while ¦{ }", "expected the condition of the 'while', found '{'", None),
    ("workgroupBarrier¦;", "after 'workgroupBarrier'", "workgroupBarrier()"),
    ("out.¦push(1.0);", "WGSL has no methods", "fixed size"),
    ("x¦ + 1;", "after 'x'", "let a = …;"),
    ("log_it¦ x;", "after 'log_it'", "log_it(…)"),
    ("let a = max(¦;", "expected ')' after '('", None),
]

VALUES: list[Row] = [
    ("let a = ¦f32;", "'f32' is a type, not a value", "f32(…)"),
    ("let a = ¦max;", "'max' is a built-in function, not a value", "max(…)"),
    ("let a: ¦F32 = 1.0;", "'F32' is not declared", "'f32'"),
    ("let a = ¦ID.x;", "'ID' is not declared", "'id'"),
    ("let a: ¦sizes = 1;", "'sizes' is not declared", None),  # 'size' is no type
    ("let p = &¦PI;", "only a variable, or a part of one, has an address", "var copy = PI;"),
    ("let p = &¦1;", "only a variable, or a part of one, has an address", "var copy = 1;"),
    ("let a = textureLoad(&¦image, vec2i(), 0);", "'image' is a texture_2d<f32>, which has no address", "without '&'"),
    ("let a = ¦image[0];", "cannot be indexed", "textureLoad"),
    ("let a = length(¦inp);", "'length' takes a vector, not array<f32>", "arrayLength(&inp)"),
    ("let p = &k; let a = p ¦+ 1;", "does not take ptr<function, i32>", "*p"),
    ("let a: bool = ¦i & 1;", "must be bool, not u32", "(i & 1) != 0"),
    ("if ¦v == v { }", "must be bool, not vec3<bool>", "all(v == v) or any(v == v)"),
    ("let a = select(yes, 1, ¦2);", "no overload of 'select'", "the condition comes last"),
    ("let a = select(1, 2, ¦n);", "no overload of 'select'", "n != 0"),
    ("let a = ¦vec3f(i, i, i);", "no overload of 'vec3<f32>'", "f32(i), f32(i), f32(i)"),
    ("let a = ¦pow(i, 2u);", "no overload of 'pow'", "f32(i), f32(2u)"),
    ("let a = ¦~x;", "operator '~' does not take f32", "convert it: u32(x)"),
    ("let a = Particle(v, ¦i);", "member 'mass' of Particle is f32", "f32(i)"),
    ("let a: vec2f = ¦v;", "must be vec2<f32>, not vec3<f32>", "v.xy"),
    ("let a = ¦sqrt(-1.0);", "infinite or not a number", "at least 0"),
    ("let a = ¦log(0.0);", "infinite or not a number", "greater than 0"),
    ("let a = ¦acos(2.0);", "infinite or not a number", "from -1 to 1"),
    ("¦counter++;", "cannot be assigned", "atomicAdd(&counter, 1)"),
    ("¦counter -= 2u;", "cannot be assigned", "atomicSub(&counter, …)"),
    ("¦counter = 2u;", "cannot be assigned", "atomicStore(&counter, …)"),
    ("loop { continuing { ¦break; } }", "a break cannot leave a continuing block", "break if"),
    ("var a: ¦texture_2d<f32> = image;", "cannot have type texture_2d<f32>", "'let'"),
]

UPDATES: list[Row] = [
    ("for (var j = 0; j < 3; j¦ + 1) { }", "after 'j'", "a value alone does nothing: write j += 1"),
    ("for (var j = 9; j > 0; j¦ - 2) { }", "after 'j'", "write j -= 2"),
    ("for (var j = 1; j < 9; j¦ * 2) { }", "after 'j'", "write j *= 2"),
    ("for (var j = 1u; j < 9; j¦ << 1u) { }", "after 'j'", "write j <<= 1u"),
    ("for (var j = 1; j < 9; j¦ + n * 2) { }", "after 'j'", "write j += …"),
    ("for (var j = 1; j < 9; j¦) { }", "after 'j'", "write j++ or j += 1"),
    ("for (var j = 1; j < 9; j¦ == j + 1) { }", "after 'j'", "'==' compares; '=' assigns: j = …"),
    ("k¦ + 1;", "after 'k'", "write k += 1, or name the value: let a = …;"),
    ("k¦ == 1;", "after 'k'", "'==' compares; '=' assigns: k = …"),
    ("k¦ < 1;", "after 'k'", "name it, let a = …;"),
    ("out[i]¦ + x;", "after 'out[i]'", "write out[i] += x, or"),
    ("w.x¦ / 2.0;", "after 'w.x'", "write w.x /= 2.0, or"),
    ("k¦;", "after 'k'", "call it, k(), or assign to it"),
]
SHAPES: list[Row] = [
    ("out[i] = ¦v;", "must be f32, not vec3<f32>", "take one of its components: v.x"),
    ("out[¦id] = x;", "an index must be an i32 or u32, not vec3<u32>", "take one of its components: id.x"),
    ("out[i] = ¦v * 2.0;", "must be f32, not vec3<f32>", "(v * 2.0).x"),
    ("out[i] = ¦vec3u();", "must be f32, not vec3<u32>", None),
    ("let a = ¦vec2f(x, x, x);", "'vec2' takes 0, 1 or 2 arguments, not 3", "it needs 2 components, and 3 are given"),
    ("let a = vec3f(¦v, x, x);", "no overload of 'vec3<f32>'", "it needs 3 components, and 5 are given"),
    ("let a = ¦max(x, 1.0, 2.0);", "'max' takes 2 arguments, not 3", "nest the calls: max(max(x, 1.0), 2.0)"),
    ("let a = ¦min(x);", "'min' takes 2 arguments, not 1", None),
    ("let a = mat3x3f() ¦* w;", "does not take mat3x3<f32> and vec4<f32>", "by a vector of 3 components"),
    ("let a = mat2x4f() ¦* w;", "does not take mat2x4<f32> and vec4<f32>", "by a vector of 2 components"),
    ("let a = particles[0] ¦== particles[1];", "does not take Particle and Particle", "apply it to their members"),
    ("let a = array(1, 2) ¦+ array(3, 4);", "does not take array<", "apply it to their elements"),
    ("let a = ¦Particle(v, x, x);", "Particle has 2 members, but 3 values are given", "its members are position"),
    ("let a = ¦array<f32, 4>(x);", "array<f32, 4> has 4 elements, but 1 value is given", "give 4 values"),
    ("let a = inp.¦length;", "has no members", "arrayLength(&inp)"),
    ("let a = inp.¦size;", "has no members", "arrayLength(&inp)"),
    ("let a = inp.¦x;", "has no members", None),
    ("let a = tile.¦length;", "has no members", None),  # its size is in its type
    ("let a = w.xy.¦z;", "vec2<f32> has no component 'z'", "it has x, y"),
    ("let a = w.rg.¦b;", "vec2<f32> has no component 'b'", "it has r, g"),
    ("¦print(x);", "'print' is not declared", "--trace NAME"),
]

MODULES: list[Row] = [
    ("fn f(¦&x: i32) { }", "expected the name of the parameter, found '&'", "name: ptr<function, T>"),
    ("fn f(¦*x: i32) { }", "expected the name of the parameter, found '*'", "name: ptr<function, T>"),
    ("fn f(x: f32,¦, y: f32) { }", "expected the name of the parameter, found ','", "leave out one ','"),
    ("fn f(x: ¦const i32) { }", "found 'const'", "leave out 'const'"),
    ("fn f() -> ¦array<f32> { return out; }", "which cannot be copied", "give the array a length"),
    ("fn f32() { } fn g() -> ¦f32 { return 1.0; }", "'f32' is a function, not a type", "hides the type 'f32'"),
    ("fn f() { let f = ¦fn(y: f32) -> f32 { return y; }; }", "found 'fn'", "outside of functions"),
    ("fn f() { let a = ¦let b = 3; }", "found 'let'", "a statement of its own"),
    ("fn f() { let max = 1; let a = ¦max(1, 2); }", "'max' is a value and cannot be called", "hides WGSL's own 'max'"),
    ("fn f() { switch 1 { default: { } ¦default: { } } }", "default is given twice", "one default"),
    ("¦pub fn f() { }", "'pub' is a reserved word", "leave it out"),
    ("¦class A { x: f32 }", "'class' is a reserved word", "struct Name"),
    ("¦typedef f32 A;", "'typedef' is a reserved word", "alias"),
    ("¦static_assert true;", "'static_assert' is a reserved word", "const_assert"),
    ("¦layout(binding = 0) uniform A { };", "'layout' is a reserved word", "@binding(0)"),
    ("¦__global__ void f() { }", "'__global__' starts with two underscores", "@compute"),
    ("¦RWStructuredBuffer<f32> a;", "expected a declaration", "var<storage, read_write>"),
    ("¦cbuffer A { x: f32 }", "expected a declaration", "var<uniform>"),
    ("¦[numthreads(8, 8, 1)] fn f() { }", "expected a declaration", "@workgroup_size"),
    ("¦k = 1;", "expected a declaration, found 'k'", "in functions"),
    ("¦workgroupBarrier();", "expected a declaration", "in functions"),
    ("¦return;", "expected a declaration", "in functions"),
    ("fn f() { ¦struct A { x: f32 } }", "expected '}' at the end of the body of the function", None),
    ("struct A { x: f32, ¦fn g() { } }", "'fn' is a keyword", "another name"),
    ("struct A { ¦var x: f32 }", "'var' is a keyword", "leave out 'var'"),
    ("fn ¦default() { }", "'default' is a keyword", "another name"),
    ("fn ¦2f() { }", "expected the name of the function", "starts with a letter"),
    ("fn f(¦ { }", "expected ')' after '('", None),
    ("fn f() ¦; fn g() { }", "expected '{' before the body", "declared once"),
    ("fn f() ¦=> f32 { return 1.0; }", "expected '->' or '{'", "follows '->'"),
    ("fn f() ¦= 1.0;", "expected '->' or '{'", "return …;"),
    ("fn f() -> ¦(f32, f32) { }", "expected the type of the result", "struct"),
    ("fn f(x: ¦[f32; 4]) { }", "expected the type of the parameter 'x'", "array<f32, 4>"),
    ("fn f(x: i32¦[4]) { }", "expected the end of the type", "array<i32, 4>"),
    ("fn f(x: ¦*i32) { }", "expected the type of the parameter 'x'", "ptr<function, f32>"),
    ("fn f(x: i32¦*) { }", "expected the end of the type", "ptr<function, f32>"),
    ("fn f(x: ¦array<f32>) { }", "cannot have type array<f32>", "x: ptr<storage, array<f32>, read_write>"),
    ("fn f(x: ¦atomic<u32>) { }", "cannot have type atomic<u32>", "ptr<storage, atomic<u32>, read_write>"),
    ("fn f() -> vec2u { return vec2u(); } fn g() { ¦f().x = 1u; }", "only a variable, or a part of one", None),
    ("fn f() { return ¦1; }", "function 'f' returns nothing", "-> i32"),
    ("fn f() -> ¦ptr<function, i32> { }", "cannot return", "through a pointer"),
    ("¦@must_use fn f() { }", "returns nothing that must be used", "leave out"),
    ("@¦stage(compute) fn f() { }", "there is no attribute 'stage'", "@compute"),
    ("@¦numthreads(8) fn f() { }", "there is no attribute 'numthreads'", "@workgroup_size(64)"),
    ("@¦set(0) @binding(0) var<uniform> a: f32;", "there is no attribute 'set'", "@group"),
    ("@¦inline fn f() { }", "there is no attribute 'inline'", "leave it out"),
    ("@¦zzz fn f() { }", "there is no attribute 'zzz'", "one of align, binding"),
    ("@¦group 0 @binding(0) var<uniform> a: f32;", "'@group' takes 1 parameter, 0 given", "@group(0)"),
    ("@compute @¦workgroup_size fn f() { }", "takes 1 to 3 parameters, 0 given", "@workgroup_size(64)"),
    ("@compute @workgroup_size(¦64.0) fn f() { }", "@workgroup_size must be an i32 or u32, not abstract-float", None),
    (
        "@compute @workgroup_size(1) fn f(@¦global_invocation_id id: vec3u) { }",
        "there is no attribute 'global_invocation_id'",
        "@builtin(global_invocation_id)",
    ),
    (
        "@compute @workgroup_size(1) fn f(@builtin(¦xyz) id: vec3u) { }",
        "'xyz' is not a built-in value",
        "those of a compute shader are local_invocation_id",
    ),
    ("@compute @workgroup_size(1) fn f(¦i: u32) { }", "needs a @builtin", "@builtin(local_invocation_index)"),
    ("var ¦a = 1;", "module-scope variable 'a' needs an address space", "var<private>"),
    ("@group(0) @binding(0) var a: ¦texture_2d;", "takes 1 template argument, not 0", "texture_2d<f32>"),
    (
        "@group(0) @binding(0) var a: ¦texture_storage_2d<rgba8unorm>;",
        "takes 2 template arguments, not 1",
        "texture_storage_2d<rgba8unorm, write>",
    ),
    (
        "@group(0) @binding(0) var a: texture_storage_2d<¦rgba8, write>;",
        "'rgba8' is not a texel format",
        "did you mean 'rgba8",
    ),
    ("@group(0) @binding(0) var<storage> a: ¦texture_2d<f32>;", "cannot have type", "var name: texture_2d<f32>;"),
    ("@group(0) @binding(0) var<storage> a: ¦array<bool>;", "cannot have type array<bool>", "store it as u32"),
    ("override n = 4; var<private> a: ¦array<f32, n>;", "cannot have type", "var<workgroup>"),
    ("@group(0) @binding(0) var<¦read_write> a: f32;", "not an address space", "storage, read_write"),
    ("@group(0) @binding(0) var<uniform, ¦read> a: f32;", "takes no access mode", "var<uniform>"),
    ("¦@group(0) @binding(0) var<workgroup> a: f32;", "takes no @group", "leave out '@group'"),
    ("requires ¦foo;", "not a supported language feature", "one of "),
    ("@id(1) override a = 1; ¦@id(1) override b = 1;", "@id(1) is given twice", "another number"),
    ("fn f(p: ¦ptr<f32>) { }", "takes 2 or 3 template arguments, not 1", "ptr<function, f32>"),
]
ROWS = [
    (f"{HEAD}{text} }}", *rest) for table in (LANGUAGES, VALUES, UPDATES, SHAPES) for text, *rest in table
] + MODULES


@pytest.mark.parametrize(("text", "said", "hint"), ROWS, ids=[row[0].removeprefix(HEAD)[:60] for row in ROWS])
def test_the_first_error_has_place_cause_and_cure(text: str, said: str, hint: str | None) -> None:
    assert refused(text, said, hint)


def test_no_row_is_given_twice() -> None:
    texts = [text for text, *_ in (*ROWS, *OTHER_ROWS)]
    assert len({*texts}) == len(texts)


@pytest.mark.parametrize("text", ["fn f() { fn g() { } }", "fn f() { struct A { x: f32 } }", "fn f() { } fn g() { } }"])
def test_a_brace_that_is_left_over_is_no_second_error(text: str) -> None:
    with pytest.raises(WgslError) as caught:
        check(Source(text))
    assert len(caught.value.diagnostics) == 1


def test_a_call_with_a_wrong_number_of_arguments_shows_the_signatures() -> None:
    with pytest.raises(WgslError) as caught:
        check(Source("fn f() { let a = clamp(1.0, 2.0); }"))
    assert [note.message for note in caught.value.diagnostics[0].notes] == [
        "candidate: clamp(T, T, T) -> T; T: number | vecN<number>"
    ]
