"""Modules that WGSL refuses, each beside those that it accepts up to the limit: attributes, interfaces, declarations.

`¦` marks the place of the error. The second column is part of the message, the third part of the hint.
"""

from __future__ import annotations

import pytest

from bankshot.sim.wgsl.check.check_module import check
from bankshot.sim.wgsl.source import Source
from tests.wgsl.test_messages import refused

BLEND = "enable dual_source_blending; "
A, B = "@location(0) @blend_src(0) a: vec4f", "@location(0) @blend_src(1) b: vec4f"
SAMPLED = "@group(0) @binding(0) var t: texture_2d<f32>; @group(0) @binding(1) var s: sampler; "
READ = "@group(0) @binding(0) var<storage> b: array<u32>; "
WRITE = "@group(0) @binding(0) var<storage, read_write> b: array<u32>; "

REFUSED: list[tuple[str, str, str | None]] = [
    # attributes
    ("¦@const fn f() { }", "attribute '@const' is not known", None),
    ("¦@align(4) fn f() { }", "'@align' is not allowed on a function", "it goes on: struct member"),
    ("@must_use ¦@must_use fn f() -> u32 { return 1; }", "attribute '@must_use' is given twice", None),
    ("¦@must_use fn f() { }", "function 'f' returns nothing that must be used", "leave out '@must_use'"),
    (
        "@diagnostic(off, derivative_uniformity) ¦@diagnostic(off, derivative_uniformity) fn f() { }",
        "diagnostic rule 'derivative_uniformity' is filtered twice",
        None,
    ),
    (
        "diagnostic(off, derivative_uniformity); ¦diagnostic(info, derivative_uniformity);",
        "diagnostic rule 'derivative_uniformity' is given two severities",
        None,
    ),
    ("@compute ¦@vertex @workgroup_size(1) fn f() { }", "both a compute and a vertex entry point", None),
    ("@vertex ¦@fragment fn f() { }", "both a vertex and a fragment entry point", None),
    ("¦@workgroup_size(1) fn f() { }", "@workgroup_size is only for a compute entry point", "write @compute"),
    ("@fragment ¦@workgroup_size(1) fn f() { }", "@workgroup_size is only for a compute entry point", None),
    ("@compute fn ¦f() { }", "compute entry point 'f' needs a @workgroup_size", "@workgroup_size(64)"),
    ("@compute @workgroup_size(1, ¦0) fn f() { }", "@workgroup_size must be at least 1, not 0", None),
    ("@compute @workgroup_size(1u, ¦1i) fn f() { }", "must all be i32 or all u32", None),
    ("@compute @workgroup_size(¦1.0) fn f() { }", "@workgroup_size must be an i32 or u32", None),
    ("@compute @workgroup_size(¦1f, 1) fn f() { }", "must all be i32 or all u32", None),
    ("var<private> n = 1; @compute @workgroup_size(¦n) fn f() { }", "must be a const- or override-expression", None),
    # inputs and outputs
    (f"{BLEND}struct O {{ @location(0) ¦@blend_src(2) a: vec4f }}", "@blend_src must be 0 or 1, not 2", None),
    (f"{BLEND}struct O {{ ¦@blend_src(0) a: vec4f }}", "@blend_src is only for something with a @location", None),
    (f"{BLEND}struct O {{ @location(0) @blend_src(0) ¦a: vec4f }}", "dual source blending takes two", None),
    (f"{BLEND}struct O {{ {A.replace(' a', ' ¦a')}, {B.replace('4f', '4u')} }}", "two members of one type", None),
    (f"{BLEND}struct O {{ {A.replace(' a', ' ¦a')}, {B.replace('n(0', 'n(1')} }}", "two members of one type", None),
    (f"{BLEND}struct O {{ {A.replace(' a', ' ¦a')}, @location(0) b: vec4f }}", "two members of one type", None),
    (f"{BLEND}struct O {{ {A.replace(' a', ' ¦a')}, {B}, @location(1) c: vec4f }}", "two members of one type", None),
    (
        f"{BLEND}struct O {{ {A.replace(' a', ' ¦a')}, {B} }} @fragment fn f(x: O) {{ }}",
        "@blend_src is only for the output of a fragment entry point",
        None,
    ),
    (
        f"{BLEND}struct O {{ @builtin(position) p: vec4f, {A.replace(' a', ' ¦a')}, {B} }}"
        "@vertex fn f() -> O { return O(); }",
        "@blend_src is only for the output of a fragment entry point",
        None,
    ),
    ("struct S { @location(0) a: f32, @location(0) ¦b: f32 }", "location 0 is given twice", None),
    ("struct O { @builtin(frag_depth) ¦@invariant p: f32 }", "@invariant is only for @builtin(position)", None),
    ("struct O { @builtin(position) ¦@location(0) p: vec4f }", "cannot be a built-in value and have a location", None),
    ("struct O { @location(¦-1) p: vec4f }", "@location must not be negative", None),
    ("struct O { @location(¦0.5) p: vec4f }", "@location must be an i32 or u32", None),
    ("struct O { ¦@location(0) p: bool }", "only a number or a vector of numbers has a @location", None),
    ("struct O { ¦@location(0) p: vec2<bool> }", "only a number or a vector of numbers has a @location", None),
    ("struct O { ¦@location(0) p: mat2x2f }", "only a number or a vector of numbers has a @location", None),
    ("struct O { @location(0) @interpolate(flat, ¦center) p: f32 }", "'flat' interpolation cannot be sampled", None),
    ("struct O { @location(0) @interpolate(linear, ¦first) p: f32 }", "cannot be sampled 'first'", None),
    ("struct O { @location(0) @interpolate(perspective, ¦either) p: f32 }", "cannot be sampled 'either'", None),
    ("struct O { @location(0) @interpolate(linear, ¦middle) p: f32 }", "is not an interpolation sampling", None),
    ("struct O { @location(0) @interpolate(¦round) p: f32 }", "'round' is not an interpolation type", None),
    ("struct O { ¦@interpolate(flat) p: f32 }", "@interpolate is only for something with a @location", None),
    ("@compute @workgroup_size(1) fn f(@location(0) ¦x: u32) { }", "takes only built-in values", None),
    ("@compute @workgroup_size(1) fn f(¦x: vec3u) { }", "needs a @builtin", "@builtin(global_invocation_id)"),
    ("@compute @workgroup_size(1) fn f(¦x: u32) { }", "needs a @builtin", "@builtin(local_invocation_index)"),
    ("@compute @workgroup_size(1) fn f(¦x: f32) { }", "needs a @builtin", None),
    ("@fragment fn f(¦x: f32) { }", "needs a @builtin or a @location", "@location(0)"),
    ("@fragment fn f(@location(0) ¦x: u32) { }", "is of integers, so it needs @interpolate(flat)", None),
    ("@fragment fn f(@location(0) ¦x: vec2i) { }", "is of integers, so it needs @interpolate(flat)", None),
    ("@fragment fn f(@location(0) @interpolate(linear) ¦x: vec2i) { }", "it needs @interpolate(flat)", None),
    (
        "struct O { @builtin(position) p: vec4f, @location(0) ¦a: u32 } @vertex fn f() -> O { return O(); }",
        "is of integers, so it needs @interpolate(flat)",
        None,
    ),
    (
        "@compute @workgroup_size(1) fn f(@builtin(workgroup_id) a: vec3u, @builtin(workgroup_id) ¦b: vec3u) { }",
        "built-in value 'workgroup_id' is given twice",
        None,
    ),
    ("@fragment fn f(@builtin(frag_depth) ¦a: f32) { }", "'frag_depth' is not an input of a fragment", None),
    (
        "@fragment fn f() -> @builtin(position) ¦vec4f { return vec4f(); }",
        "'position' is not an output of a fragment",
        None,
    ),
    ("@vertex fn f() -> @location(0) ¦f32 { return 1; }", "must return @builtin(position)", None),
    ("@vertex fn ¦f() { }", "vertex entry point 'f' must return @builtin(position)", None),
    (
        "struct O { @location(0) a: f32 } @vertex fn f() -> ¦O { return O(); }",
        "vertex entry point 'f' must return @builtin(position)",
        None,
    ),
    ("@compute @workgroup_size(1) fn f() -> ¦u32 { return 1; }", "cannot return a value", "read_write"),
    ("fn f(¦@location(0) x: f32) { }", "@location is only for a parameter of an entry point", None),
    ("fn f() -> ¦@location(0) f32 { return 1; }", "@location is only for the return type of an entry point", None),
    (
        "enable clip_distances; struct O { ¦@builtin(clip_distances) a: array<f32, 9> }",
        "is an array of up to 8 f32",
        None,
    ),
    # overrides
    ("override ¦a;", "override 'a' needs a type or an initializer", None),
    ("override b = ¦array(1, 2);", "override 'b' must be a scalar", None),
    ("override b: ¦vec2f;", "override 'b' must be a scalar, not vec2<f32>", None),
    ("@id(¦65536) override a = 1;", "@id must be from 0 to 65535, not 65536", None),
    ("@id(¦-1) override a = 1;", "@id must be from 0 to 65535, not -1", None),
    ("@id(3) override a = 1; ¦@id(3) override b = 1;", "@id(3) is given twice", "another number"),
    ("var<private> n = 1; override a = ¦n;", "must be a const- or override-expression", None),
    # module-scope variables
    ("var<private> ¦a;", "'a' needs a type", None),
    ("var ¦a: u32;", "module-scope variable 'a' needs an address space", "var<private>"),
    ("var<private> b = 1; var<private> a = ¦b;", "'b' is a variable, known only when the shader runs", None),
    ("fn g() -> u32 { return 1; } var<private> a = ¦g();", "'g' is a function, called only when", None),
    ("var<workgroup> a: u32 = ¦1;", "the workgroup address space cannot have an initializer", "starts as zero"),
    (f"{READ.replace(';', ' = ¦array(1);', 1)}", "the storage address space cannot have an initializer", None),
    ("var<workgroup, ¦read> a: u32;", "workgroup address space takes no access mode", "write var<workgroup> a: u32"),
    ("var<storage, read, ¦u32> a: u32;", "an address space and an access mode", "write var<storage, read> a: u32"),
    ("var<¦shader> a: u32;", "'shader' is not an address space", "write var<private> a: u32"),
    ("fn f(a: ptr<¦shader, u32>) { }", "'shader' is not an address space", "one of"),
    ("fn f(a: ptr<storage, u32, ¦rw>) { }", "'rw' is not an access mode", "one of read, write, read_write"),
    ("fn f(a: ptr<storage, u32, ¦f32>) { }", "'f32' is a type, not an access mode", "one of read, write, read_write"),
    ("fn f(a: ptr<¦read, u32>) { }", "'read' is an access mode, not an address space", "for example storage"),
    ("alias A = texture_storage_2d<¦rgba8, write>;", "'rgba8' is not a texel format", "did you mean 'rgba8"),
    ("alias A = texture_storage_2d<¦zzz, write>;", "'zzz' is not a texel format", None),
    ("alias A = texture_storage_2d<¦write, write>;", "'write' is an access mode, not a texel format", "rgba8unorm"),
    ("var<storage, ¦write> a: u32;", "the storage address space takes read or read_write, not write", None),
    ("var<¦function> a: u32;", "cannot be in the function address space", "write var<private> a: u32"),
    ("var<¦1> a: u32;", "an address space is expected here", "write var<private> a: u32"),
    ("@group(0) var<storage> ¦a: u32;", "resource 'a' needs @binding", "write @binding(0) before 'var'"),
    ("@binding(0) var<storage> ¦a: u32;", "resource 'a' needs @group", "write @group(0) before 'var'"),
    ("var<uniform> ¦a: u32;", "needs @group and @binding", "write @group(0) @binding(0) before 'var'"),
    ("@group(¦-1) @binding(0) var<storage> a: u32;", "@group must not be negative", None),
    ("@group(0) @binding(¦-1) var<storage> a: u32;", "@binding must not be negative", None),
    ("¦@group(0) var<private> a: u32;", "the private address space takes no @group", "leave out '@group'"),
    ("enable ¦subgroup_id;", "'subgroup_id' is not an extension", "write 'requires subgroup_id;'"),
    ("enable ¦subgroup;", "'subgroup' is not an extension", "did you mean 'subgroups'?"),
    (
        "struct S { a: u32, b: array<u32, 2> } var<immediate> v: ¦S;",
        "it must be host-shareable, constructible and without arrays",
        None,
    ),
    # structs
    ("struct S { a: ¦array<u32>, b: u32 }", "a runtime-sized array, so it must be the last member", None),
    ("struct S { a: ¦texture_2d<f32> }", "member 'a' cannot have type texture_2d<f32>", None),
    ("struct S { a: u32, ¦a: u32 }", "'a' is declared twice", None),
    ("struct S { @align(¦3) a: u32 }", "@align must be a power of two, not 3", "write @align(4)"),
    ("struct S { @align(¦0) a: u32 }", "@align must be a power of two, not 0", "write @align(4)"),
    ("struct S { @align(¦-4) a: u32 }", "@align must be a power of two, not -4", "write @align(4)"),
    ("struct S { @align(¦20) a: u32 }", "@align must be a power of two, not 20", "write @align(32)"),
    ("struct S { @align(¦3) a: vec4f }", "@align must be a power of two, not 3", "write @align(16)"),
    ("struct S { @align(¦2) a: u32 }", "@align must be at least 4, the alignment of u32, not 2", "@align(4)"),
    ("struct S { @size(¦11) a: vec3u }", "@size must be at least 12, the size of vec3<u32>, not 11", "@size(12)"),
    ("struct S { ¦@size(64) a: array<u32> }", "@size cannot be given to array<u32>", "leave it out"),
    # targets and places
    (f"{READ}fn f() {{ let p = &b; ¦p[0] = 1; }}", "what a ptr<storage, array<u32>, read> points to can only be", None),
    (f"{READ}fn f() {{ let p = &b[0]; ¦*p = 1; }}", "what a ptr<storage, u32, read> points to can only be read", None),
    (
        "struct S { a: array<vec2u, 2> } @group(0) @binding(0) var<uniform> b: S; fn f() { ¦b.a[1].x = 1; }",
        "'b' can only be read",
        "what is written must be in var<storage, read_write>",
    ),
    ("struct S { a: atomic<u32> } var<workgroup> s: S; fn f() { ¦s = S(); }", "a value of type S", "s.a = …"),
    ("fn f() { let a = 1; _ = ¦a<u32>; }", "'a' is a value and takes no template arguments", None),
    ("override a = 1; fn f() { _ = ¦a<u32>; }", "'a' is an override and takes no template arguments", None),
    ("fn g() { } fn f() { ¦g<u32>(); }", "function 'g' takes no template arguments", None),
    ("fn f() { ¦main(); } @compute @workgroup_size(1) fn main() { }", "is an entry point and cannot be called", None),
    ("struct S { a: u32 } fn f() { _ = ¦S<u32>(1); }", "type 'S' takes no template arguments", None),
    ("fn f() { _ = ¦ptr(1, 2); }", "'ptr' cannot be constructed", None),
    ("fn f() { _ = ¦atomic(1); }", "'atomic' cannot be constructed", None),
    ("fn f() { _ = ¦atomic<u32>(1); }", "a value of type atomic<u32> cannot be constructed", None),
    ("fn f() { _ = ¦array<u32>(1); }", "a value of type array<u32> cannot be constructed", None),
    ("fn f() { var ¦a; }", "'a' needs a type or an initializer", None),
    ("fn f() { const a: ¦ptr<function, u32> = 1; }", "a const cannot have type ptr<function, u32>", None),
    ("fn f() { var<¦private> a: u32; }", "the private address space must be declared at module scope", None),
    ("fn f() { var<function, ¦read> a: u32; }", "a function-scope variable takes no access mode", "write var a: u32"),
    ("fn f() { var<function, read, ¦u32> a: u32; }", "an address space and an access mode", "write var a: u32"),
    ("fn f() { ¦break; }", "a break must be in a loop or a switch", None),
    ("fn f() { ¦continue; }", "a continue must be in a loop", None),
    ("fn f() { switch 1 { default: { ¦continue; } } }", "a continue must be in a loop", None),
    ("fn f() { loop { break; continuing { ¦break; } } }", "cannot leave a continuing block", "with break if …;"),
    ("fn f() { loop { break; continuing { ¦continue; } } }", "cannot be in a continuing block", "with 'if'"),
    ("fn f() { loop { break; continuing { ¦return; } } }", "cannot be in a continuing block", "'break if …;'"),
    (
        "fn f() { loop { if true { continue; } let a = 1; break; continuing { _ = ¦a; } } }",
        "'a' is declared after",
        None,
    ),
    ("fn f(a: u32) { let ¦a = 1; }", "'a' is declared twice", None),
    ("fn f() { { let a = 1; } _ = ¦a; }", "'a' is not declared", None),
    ("fn f() { for (var a = 0; a < 1; a++) { } _ = ¦a; }", "'a' is not declared", None),
    ("@compute @workgroup_size(1) fn f(@builtin(¦position<u32>) a: vec4f) { }", "this is not a built-in value", None),
    ("struct S { ¦@builtin(frag_depth, less) a: vec2f }", "'frag_depth' has type f32, not vec2<f32>", None),
    ("struct S { @builtin(position, ¦less) a: vec4f }", "'position' has no depth mode", "only 'frag_depth' has one"),
    ("struct S { @builtin(frag_depth, ¦any) a: f32 }", "'any' is not a depth mode", "one of less, greater"),
    # functions and types
    ("fn f(a: u32, ¦a: u32) { }", "'a' is declared twice", None),
    ("fn f(a: ptr<private, u32, ¦read_write>) { }", "the private address space takes no access mode", None),
    ("fn f(a: ptr<storage, u32, ¦write>) { }", "takes read or read_write, not write", None),
    ("fn f(a: ptr<¦storage<u32>, u32>) { }", "'storage' takes no template arguments", None),
    (
        "fn f(a: ¦array<u32>) { }",
        "cannot have type array<u32>",
        "pass a pointer: a: ptr<storage, array<u32>, read_write>",
    ),
    (
        "fn f(a: ¦atomic<u32>) { }",
        "cannot have type atomic<u32>",
        "pass a pointer: a: ptr<storage, atomic<u32>, read_write>",
    ),
    (
        f"{READ}fn f() -> ¦array<u32> {{ return b; }}",
        "cannot return a value of type array<u32>",
        "give the array a length",
    ),
    ("fn f() -> ¦atomic<u32> { }", "cannot return a value of type atomic<u32>", "through a pointer"),
    ("fn f() -> ¦ptr<function, u32> { }", "cannot return a value of type ptr<function, u32>", "through a pointer"),
    ("alias A = vec3<¦texture_external>;", "the component type of a vector must be", None),
    ("alias A = mat2x2<¦u32>;", "the type of a matrix must be f32 or f16, not u32", None),
    ("enable f16; alias A = atomic<¦f16>;", "the type of an atomic must be i32 or u32, not f16", None),
    ("alias A = texture_2d<¦bool>;", "the sampled type of a texture must be f32, i32 or u32, not bool", None),
    ("alias A = ¦vec3<f32, f32>;", "'vec3' takes 1 template argument, not 2", "vec3<f32>"),
    ("alias A = ¦array<f32, 2, 2>;", "'array' takes 1 or 2 template arguments, not 3", "array<f32, 4>"),
    ("alias A = array<¦array<f32>, 2>;", "an array cannot have elements of type array<f32>", None),
    ("alias A = array<u32, ¦0>;", "an array length must be at least 1, not 0", None),
    ("alias A = array<u32, ¦-1>;", "an array length must be at least 1, not -1", None),
    ("alias A = array<u32, ¦1.0>;", "an array length must be an i32 or u32, not f32", None),
    ("var<private> n = 1; alias A = array<u32, ¦n>;", "must be a const- or override-expression", None),
    ("const n = 1; alias A = ¦n;", "'n' is a constant, not a type", "a type belongs here, such as f32"),
    ("struct S { a: u32 } alias A = ¦S<u32>;", "type 'S' takes no template arguments", None),
    ("const a = ¦a;", "the declaration of 'a' needs itself", None),
    ("const ¦a = b; const b = a;", "the declaration of 'a' needs itself", None),
]

NESTED = ["struct S1 { a: i32 }", *(f"struct S{i} {{ b: i32, a: S{i - 1}, c: i32 }}" for i in range(2, 16))]
REFUSED += [
    (f"{' '.join(NESTED)} struct ¦S16 {{ b: i32, a: S15, c: i32 }}", "S16 nests 16 deep, more than 15", None),
]

ACCEPTED = [
    " ".join(NESTED),
    "diagnostic(off, derivative_uniformity); diagnostic(off, derivative_uniformity);",
    "@must_use fn f() -> u32 { return 1; }",
    "@compute @workgroup_size(1, 1, 1) fn f() { }",
    "@compute @workgroup_size(1u, 1) fn f() { }",
    "override n = 1; @compute @workgroup_size(n, n) fn f() { }",
    f"{BLEND}struct O {{ {A}, {B} }} @fragment fn f() -> O {{ return O(); }}",
    f"{BLEND}struct O {{ {B}, {A} }} @fragment fn f() -> O {{ return O(); }}",
    "struct O { @builtin(position) @invariant p: vec4f } @vertex fn f() -> O { return O(); }",
    "@vertex fn f() -> @builtin(position) @invariant vec4f { return vec4f(); }",
    "@vertex fn f(@location(0) x: u32) -> @builtin(position) vec4f { return vec4f(); }",
    "struct O { @location(0) a: f32, @builtin(position) p: vec4f } @vertex fn f() -> O { return O(); }",
    "@fragment fn f(@location(0) @interpolate(flat) x: vec2i) { }",
    "@fragment fn f(@location(0) @interpolate(flat, first) x: vec2i) { }",
    "@fragment fn f(@location(0) @interpolate(flat, either) x: f32) { }",
    "@fragment fn f(@location(0) @interpolate(linear, center) x: f32) { }",
    "@fragment fn f(@location(0) @interpolate(linear, centroid) x: f32) { }",
    "@fragment fn f(@location(0) @interpolate(perspective, sample) x: f32) { }",
    "@fragment fn f(@location(0) x: f32) -> @location(0) u32 { return 1u; }",
    "@fragment fn f(@builtin(sample_mask) m: u32) -> @builtin(sample_mask) u32 { return m; }",
    "@fragment fn f(@builtin(sample_index) n: u32, @builtin(front_facing) b: bool) { }",
    "enable clip_distances; struct O { @builtin(position) p: vec4f, @builtin(clip_distances) a: array<f32, 8> }"
    "@vertex fn f() -> O { return O(); }",
    "@id(0) override a = 1; @id(65535) override b: bool; override c: f32 = 1;",
    "@group(0) @binding(0) var<storage, read> a: u32; @group(1) @binding(0) var<storage, read_write> b: u32;",
    "struct S { a: u32, b: array<u32> }",
    "struct S { @align(4) a: u32, @size(12) b: vec3u, @align(64) @size(100) c: u32 }",
    "fn f(a: ptr<storage, u32, read>, b: ptr<storage, u32, read_write>, c: ptr<private, u32>) { }",
    "alias A = array<u32, 1>; alias B = array<A, 3u>; override n = 2; var<workgroup> w: array<B, n>;",
    "const c = 7; fn f() { const a: array<u32, 2> = array(c, 2); const_assert a[0] == 7u; }",
    f"{SAMPLED}@fragment fn f() {{ _ = textureGather(3, t, s, vec2f(), vec2i(-8, 7)); }}",
]


@pytest.mark.parametrize(("text", "said", "hint"), REFUSED, ids=[row[0][:70] for row in REFUSED])
def test_refused(text: str, said: str, hint: str | None) -> None:
    assert len(refused(text, said, hint)) == 1


@pytest.mark.parametrize("text", ACCEPTED, ids=[text[:70] for text in ACCEPTED])
def test_accepted(text: str) -> None:
    assert not check(Source(text)).warnings


SAMPLINGS = {
    "perspective": {"center", "centroid", "sample"},
    "linear": {"center", "centroid", "sample"},
    "flat": {"first", "either"},
}


@pytest.mark.parametrize("sampling", ["center", "centroid", "sample", "first", "either"])
@pytest.mark.parametrize("kind", SAMPLINGS)
def test_each_interpolation_type_has_its_samplings(kind: str, sampling: str) -> None:
    text = f"@fragment fn f(@location(0) @interpolate({kind}, ¦{sampling}) x: f32) {{ }}"
    if sampling in SAMPLINGS[kind]:
        check(Source(text.replace("¦", "")))
    else:
        refused(text, f"'{kind}' interpolation cannot be sampled '{sampling}'", None)
