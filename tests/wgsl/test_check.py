"""The checker: what it accepts, what it rejects and under which code, and what the typed tree then says.

One row is one rule of the spec; the rejected twin of an accepted module differs in one thing.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import bankshot
from bankshot.sim.wgsl import typed
from bankshot.sim.wgsl import types as t
from bankshot.sim.wgsl.check.check_module import LANGUAGE_FEATURES, check
from bankshot.sim.wgsl.diagnostics import WgslError
from bankshot.sim.wgsl.source import Source


def module(text: str) -> typed.Module:
    return check(Source(text))


def body(text: str) -> list[typed.Stmt]:
    """The statements of a function `f` with this body."""
    made = module(f"fn f() {{ {text} }}").functions["f"].body
    assert made is not None
    return made.body


def code(text: str) -> str:
    """The code of the error that a module gives, or "" where it gives none."""
    try:
        module(text)
    except WgslError as error:
        return error.diagnostics[0].code
    return ""


def fn(statements: str) -> str:
    return f"fn f() {{ {statements} }}"


ACCEPTED = {
    "declarations in any order": "fn f() -> i32 { return a; } const a = b; const b = 2;",
    "a local shadows a global": "const x = 1; fn f() { let x = x + 1; }",
    "a module-scope name hides a builtin": "fn min() -> i32 { return 1; } fn f() { let x = min(); }",
    "an enumerant's name can be a variable": "const rgba8unorm = 12; const x = rgba8unorm;",
    "unreachable code": "fn f() -> i32 { return 1; let x = 2; }",
    "a loop that only returns": "fn f() -> i32 { loop { return 1; } }",
    "a switch that always returns": "fn f(x: u32) -> i32 { switch x { case 1: { return 1; } default { return 2; } } }",
    "short circuit guards evaluation": "const x = false && (1i / 0i) == 1;",
    "the least abstract-int is its own negation": """
        const least = -9223372036854775807 - 1;
        const_assert -least == least;
        const_assert abs(least) == least;""",
    "array length from a const": "const n = 4; var<private> a: array<f32, n * 2>;",
    "workgroup array sized by an override": "override n = 4u; var<workgroup> a: array<f32, n>;",
    "a vertex stage with more outputs": """
        struct Out { @builtin(position) at: vec4f, @location(0) colour: vec4f }
        @vertex fn f() -> Out { return Out(); }""",
    "runtime-sized tail": "struct S { n: u32, data: array<f32> } @group(0) @binding(0) var<storage> s: S;",
    "a pointer into an array element": fn("var a: array<i32, 4>; let p = &a[2]; *p = 1;"),
    "a member through a pointer": "struct S { x: i32 } fn f(p: ptr<function, S>) { p.x = 1; }",
    "a component is assigned": fn("var v: vec3f; v.y = 1; v[2] = 2;"),
    "matrix times vector": fn("let m = mat2x3f(); let v: vec3f = m * vec2f(1);"),
    "a for's variable shadowed in its body": fn("for (var i = 0; i < 4; i++) { let i = i + 1; }"),
    "a use after the same name in an inner scope": fn("{ let x = 1; } let x = 2u; let y: u32 = x;"),
    "an alias of a struct constructs it": "struct S { x: i32 } alias T = S; const s: S = T(3);",
    "a continue before what continuing does not use": fn(
        "var i = 0; loop { if i > 1 { continue; } let x = 1; if x > i { break; } continuing { i++; } }"
    ),
    "two entry points share a binding": """
        @group(0) @binding(0) var<storage> a: f32; @group(0) @binding(0) var<storage> b: f32;
        @compute @workgroup_size(1) fn one() { _ = a; } @compute @workgroup_size(1) fn two() { _ = b; }""",
    "a phony assignment of an abstract number that no concrete type holds": fn("_ = 1 << 40u;"),
    "a phony assignment of a pointer": "@group(0) @binding(0) var<storage> a: array<f32>; fn f() { _ = &a; }",
}

REJECTED = {
    "var of a let": ("not-assignable", fn("let x = 1; x = 2;")),
    "a name used before its declaration": ("unresolved-name", fn("let y = x; let x = 1;")),
    "the same name twice in one scope": ("redeclaration", fn("let x = 1; let x = 2;")),
    "a parameter declared again": ("redeclaration", "fn f(x: i32) { let x = 1; }"),
    "a module-scope name twice": ("redeclaration", "const x = 1; fn x() {}"),
    "a type as a value": ("not-a-value", fn("let x = f32;")),
    "a value as a type": ("not-a-type", "const x = 1; var<private> y: x;"),
    "a variable in a const": ("not-constant", "var<private> x = 1; const y = x;"),
    "an override in a const": ("not-constant", "override x = 1; const y = x;"),
    "a struct that holds itself": ("recursive-declaration", "struct S { x: array<S, 2> }"),
    "an alias of itself": ("recursive-declaration", "alias A = array<A, 2>;"),
    "a function that calls itself": ("recursive-declaration", "fn f() { f(); }"),
    "module-scope var without space": ("address-space", "var x: i32;"),
    "a workgroup variable in a function": ("address-space", fn("var<workgroup> x: i32;")),
    "a workgroup variable with an initializer": ("no-initializer", "var<workgroup> x: i32 = 1;"),
    "a bool in a storage buffer": ("store-type", "@group(0) @binding(0) var<storage> x: bool;"),
    "a private atomic": ("store-type", "var<private> x: atomic<u32>;"),
    "an override-sized private array": ("store-type", "override n = 4; var<private> a: array<f32, n>;"),
    "a storage buffer without binding": ("missing-binding", "@group(0) var<storage> x: u32;"),
    "a workgroup variable with a binding": ("misplaced-attribute", "@group(0) @binding(0) var<workgroup> x: u32;"),
    "a write-only storage buffer": ("access-mode", "@group(0) @binding(0) var<storage, write> x: u32;"),
    "an access mode for private": ("access-mode", "var<private, read_write> x: u32;"),
    "a runtime-sized array in the middle": ("member-type", "struct S { a: array<f32>, b: f32 }"),
    "an array of length zero": ("array-length", "var<private> a: array<f32, 0>;"),
    "an array of negative length": ("array-length", "var<private> a: array<f32, -1>;"),
    "an array length that is a float": ("array-length", "var<private> a: array<f32, 2.0>;"),
    "too small a @size": ("attribute-value", "struct S { @size(2) a: f32 }"),
    "an @align of 3": ("attribute-value", "struct S { @align(3) a: f32 }"),
    "an unknown attribute": ("unknown-attribute", "@workgroupsize(1) fn f() {}"),
    "an attribute twice": ("duplicate-attribute", "struct S { @align(4) @align(4) a: f32 }"),
    "an initializer of another type": ("type-mismatch", fn("let x: i32 = 1.5;")),
    "u32 from i32 without conversion": ("type-mismatch", fn("let x = 1i; let y: u32 = x;")),
    "an abstract number that does not fit": ("value-out-of-range", fn("let x: u32 = -1;")),
    "a condition that is a number": ("type-mismatch", fn("if 1 {}")),
    "a float index": ("type-mismatch", fn("var a: array<i32, 4>; let x = a[1.0];")),
    "a vector of 3 indexed at 3": ("index-out-of-bounds", fn("var v: vec3f; let x = v[3];")),
    "a swizzle out of range": ("no-such-member", fn("var v: vec2f; let x = v.z;")),
    "a swizzle of two alphabets": ("no-such-member", fn("var v: vec4f; let x = v.xg;")),
    "the address of a value": ("not-a-reference", fn("let x = 1; let p = &x;")),
    "the address of a component": ("address-of-component", fn("var v: vec2f; let p = &v.x;")),
    "dereferencing a number": ("not-a-pointer", fn("let x = 1; let y = *x;")),
    "integer division by zero": ("division-by-zero", fn("var x = 1; let y = x / 0;")),
    "a function without result as value": ("no-value", "fn g() {} fn f() { let x = g(); }"),
    "a must_use result dropped": ("unused-value", "@must_use fn g() -> i32 { return 1; } fn f() { g(); }"),
    "too many arguments": ("wrong-argument-count", "fn g(x: i32) {} fn f() { g(1, 2); }"),
    "an argument of another type": ("type-mismatch", "fn g(x: u32) {} fn f() { g(1i); }"),
    "calling an entry point": ("entry-point-call", "@compute @workgroup_size(1) fn g() {} fn f() { g(); }"),
    "calling a variable": ("not-callable", fn("let x = 1; let y = x();")),
    "a missing return": ("missing-return", "fn f(x: i32) -> i32 { if x > 0 { return 1; } }"),
    "a loop without end": ("endless-loop", fn("loop {}")),
    "a break outside of loops": ("misplaced-break", fn("break;")),
    "a break out of continuing": ("misplaced-break", fn("loop { break; continuing { if true { break; } } }")),
    "a continue outside of loops": ("misplaced-continue", fn("continue;")),
    "a return in continuing": ("misplaced-return", fn("loop { break; continuing { return; } }")),
    "a case twice": ("duplicate-case", fn("switch 1 { case 1, 1: {} default {} }")),
    "default twice": ("duplicate-case", fn("switch 1 { default {} default {} }")),
    "cases of two types": ("type-mismatch", fn("switch 1u { case 1i: {} default {} }")),
    "incrementing a float": ("type-mismatch", fn("var x = 1.0; x++;")),
    "a compound assignment of another type": ("type-mismatch", fn("var x = 1.0; x += vec2f(1);")),
    "compute without workgroup size": ("missing-workgroup-size", "@compute fn f() {}"),
    "a workgroup size of zero": ("attribute-value", "@compute @workgroup_size(0) fn f() {}"),
    "workgroup sizes of two types": ("type-mismatch", "@compute @workgroup_size(1i, 1u) fn f() {}"),
    "an input that is no built-in value": ("missing-io-attribute", "@compute @workgroup_size(1) fn f(x: u32) {}"),
    "a built-in value of another type": (
        "builtin-type",
        "@compute @workgroup_size(1) fn f(@builtin(local_invocation_id) x: u32) {}",
    ),
    "a vertex stage without a position": (
        "missing-position",
        "struct Out { @location(0) a: vec4f, @location(1) b: vec4f } @vertex fn f() -> Out { return Out(); }",
    ),
    "an atomic beside other members in a buffer that is read": (
        "store-type",
        "struct S { a: u32, b: atomic<u32>, c: f32 } @group(0) @binding(0) var<storage, read> s: S;",
    ),
    "the length of no array": (
        "no-matching-overload",
        "@group(0) @binding(0) var<storage> s: u32; fn f() -> u32 { return arrayLength(&s); }",
    ),
    "a vertex input in compute": (
        "builtin-stage",
        "@compute @workgroup_size(1) fn f(@builtin(vertex_index) x: u32) {}",
    ),
    "a built-in value twice": (
        "duplicate-io",
        "@compute @workgroup_size(1) fn f(@builtin(workgroup_id) x: vec3u, @builtin(workgroup_id) y: vec3u) {}",
    ),
    "a compute result": ("entry-point-result", "@compute @workgroup_size(1) fn f() -> i32 { return 1; }"),
    "a barrier in a fragment shader": ("builtin-stage", "@fragment fn f() { workgroupBarrier(); }"),
    "an unknown extension": ("unknown-extension", "enable f64;"),
    "an unknown feature": ("unknown-feature", "requires everything;"),
    "f16 without enable": ("extension-not-enabled", "var<private> x: f16;"),
    "two severities for one rule": (
        "conflicting-diagnostic",
        "diagnostic(off, derivative_uniformity); diagnostic(error, derivative_uniformity);",
    ),
    "an @id twice": ("duplicate-id", "@id(1) override a = 1; @id(1) override b = 2;"),
    "a vector override": ("override-type", "override a = vec2f(1);"),
}


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(text: str) -> None:
    assert code(text) == ""


@pytest.mark.parametrize(("expected", "text"), REJECTED.values(), ids=REJECTED.keys())
def test_rejected(expected: str, text: str) -> None:
    assert code(text) == expected


def test_every_declaration_has_its_own_complaint() -> None:
    text = """
        const a = b;
        const b = c;
        fn f() -> i32 { return b; }
        fn g() { let x = 1; x = 2; }
        fn h() -> i32 { }
        var<private> d = 1u + 1i;
        """
    with pytest.raises(WgslError) as error:
        module(text)
    found = [(d.code, d.span.line) for d in error.value.diagnostics if d.span]
    assert found == [("unresolved-name", 3), ("not-assignable", 5), ("no-matching-overload", 7)]


# ---- limits of the spec ------------------------------------------------------------------------------------


def nested_array(depth: int) -> str:
    return f"var<private> a: {'array<' * depth}i32{', 1>' * depth};"


LIMITS = {
    "struct members": (1023, lambda n: f"struct S {{ {' '.join(f'm{i}: i32,' for i in range(n))} }}"),
    "parameters": (255, lambda n: f"fn f({', '.join(f'p{i}: i32' for i in range(n))}) {{}}"),
    "nesting of composites": (15, nested_array),
    "nesting in a struct": (15, lambda n: f"struct S {{ a: {'array<' * (n - 1)}i32{', 1>' * (n - 1)} }}"),
    "nesting of structs": (
        15,
        lambda n: "struct S1 { a: i32 } " + " ".join(f"struct S{i} {{ a: S{i - 1} }}" for i in range(2, n + 1)),
    ),
    "braces": (127, lambda n: fn("{" * n + "}" * n)),
    "case selectors": (
        1023,
        lambda n: fn(f"switch 0 {{ {' '.join(f'case {i}: {{}}' for i in range(1, n))} default {{}} }}"),
    ),
    "members with those of elements": (
        15,  # structs of 1,023 members and an array of such, 1,024 each; at most 16,384 in all
        lambda n: (
            f"struct A {{ {' '.join(f'm{i}: i32,' for i in range(1023))} }} struct B {{ "
            + " ".join(f"a{i}: array<A, 2>," for i in range(n))
            + f"{' '.join(f'b{i}: i32,' for i in range(1000))} }}"
        ),
    ),
    "elements of an array constructor": (65535, lambda n: f"const a = array({'1, ' * n});"),
}


@pytest.mark.parametrize(("limit", "make"), LIMITS.values(), ids=LIMITS.keys())
def test_limits(limit: int, make: Callable[[int], str]) -> None:
    module(make(limit))
    assert code(make(limit + 1)) == "limit"


# ---- pointers ------------------------------------------------------------------------------------------------

ALIASING = """
var<private> g: i32;
struct P { x: i32, y: i32 }
fn read_two(a: ptr<function, i32>, b: ptr<function, i32>) -> i32 { return *a + *b; }
fn write_one(a: ptr<function, i32>, b: ptr<function, i32>) { *a = *b; }
fn write_unused(a: ptr<function, i32>, b: ptr<function, i32>) { *a = 1; }
fn through(a: ptr<function, i32>, b: ptr<function, i32>) { write_one(a, b); }
fn read_global(a: ptr<private, i32>) -> i32 { return *a + g; }
fn write_global(a: ptr<private, i32>) -> i32 { g = 2; return *a; }
fn write_both(a: ptr<private, i32>) { *a = g; }
fn ignore(a: ptr<private, i32>) { g = 2; }
fn main() { var x = 1; var y = 2; var p: P; let q = &x;
"""


@pytest.mark.parametrize(
    ("call", "aliased"),
    [
        ("_ = read_two(&x, &x);", False),
        ("write_one(&x, &y);", False),
        ("write_one(&x, &x);", True),
        ("write_one(&x, q);", True),
        ("write_one(&p.x, &p.y);", True),
        ("write_unused(&x, &x);", False),
        ("through(&x, &x);", True),
        ("_ = read_global(&g);", False),
        ("_ = write_global(&g);", True),
        ("write_both(&g);", True),
        ("ignore(&g);", False),
    ],
)
def test_alias_analysis(call: str, aliased: bool) -> None:
    assert code(f"{ALIASING} {call} }}") == ("aliased-pointer" if aliased else "")


ATOMIC = """
var<workgroup> g: atomic<u32>;
var<workgroup> plain: u32;
fn loads(a: ptr<workgroup, atomic<u32>>, b: ptr<workgroup, atomic<u32>>) { _ = atomicLoad(a) + atomicLoad(b); }
fn stores(a: ptr<workgroup, atomic<u32>>, b: ptr<workgroup, atomic<u32>>) { atomicStore(a, atomicLoad(b)); }
fn stores_other(a: ptr<workgroup, atomic<u32>>, b: ptr<workgroup, atomic<u32>>) { atomicStore(b, atomicLoad(a)); }
fn adds(a: ptr<workgroup, atomic<u32>>, b: ptr<workgroup, atomic<u32>>) { _ = atomicAdd(a, atomicLoad(b)); }
fn unused(a: ptr<workgroup, atomic<u32>>, b: ptr<workgroup, atomic<u32>>) { atomicStore(a, 1u); }
fn uniform_load(a: ptr<workgroup, u32>, b: ptr<workgroup, u32>) { _ = workgroupUniformLoad(a) + *b; }
fn main() {
"""


@pytest.mark.parametrize(
    ("call", "aliased"),
    [
        ("loads(&g, &g);", False),
        ("stores(&g, &g);", True),
        ("stores_other(&g, &g);", True),
        ("adds(&g, &g);", True),
        ("unused(&g, &g);", False),
        ("uniform_load(&plain, &plain);", False),
    ],
)
def test_what_builtins_read_and_write_through_pointers(call: str, aliased: bool) -> None:
    assert code(f"{ATOMIC} {call} }}") == ("aliased-pointer" if aliased else "")


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("n", "n", True),
        ("n", "m", False),
        ("n", "(n)", False),
        ("n", "4", False),
        ("4u", "4", True),
        ("2 + 2", "4", True),
    ],
)
def test_array_types_are_the_same_by_length(first: str, second: str, same: bool) -> None:
    text = f"""override n = 4; override m = 4;
        var<workgroup> a: array<i32, {first}>;
        fn g(p: ptr<workgroup, array<i32, {second}>>) {{}}
        fn f() {{ g(&a); }}"""
    assert code(text) == ("" if same else "type-mismatch")


# ---- the typed tree ------------------------------------------------------------------------------------


def test_constants_are_folded_and_concretized() -> None:
    let = body("let x = (1 + 2) * 4.0;")[0]
    assert isinstance(let, typed.LetDecl)
    assert isinstance(let.init, typed.Const)
    assert (let.init.type, let.init.value) == (t.F32, 12.0)


def test_the_load_rule_is_written_out() -> None:
    let = body("var x = 1u; let y = x;")[1]
    assert isinstance(let, typed.LetDecl)
    assert isinstance(let.init, typed.Load)
    assert isinstance(let.init.ref, typed.VarRef)
    assert let.init.ref.type == t.Reference("function", t.U32, "read_write")


def test_abstract_operands_are_converted_to_the_other_operand() -> None:
    let = body("var x = 1.5; let y = x * 2;")[1]
    assert isinstance(let, typed.LetDecl)
    assert isinstance(let.init, typed.BuiltinCall)
    assert [a.type for a in let.init.args] == [t.F32, t.F32]
    factor = let.init.args[1]
    assert isinstance(factor, typed.Const)
    assert factor.value == 2.0


def test_for_becomes_a_loop_inside_a_block() -> None:
    block = body("for (var i = 0; i < 3; i++) { continue; }")[0]
    assert isinstance(block, typed.Block)
    loop = block.body[1]
    assert isinstance(loop, typed.Loop)
    assert loop.condition is not None
    assert loop.continuing is not None
    assert isinstance(loop.continuing.body[0], typed.CompoundAssign)


def test_an_explicit_conversion_of_a_runtime_value() -> None:
    let = body("var i = 3; let x = vec2f(f32(i), 1);")[1]
    assert isinstance(let, typed.LetDecl)
    assert isinstance(let.init, typed.Construct)
    assert isinstance(let.init.args[0], typed.Convert)


def test_static_accesses_go_through_calls() -> None:
    made = module(
        """
        var<private> a: i32; var<private> b: i32; override n = 4u; var<workgroup> tile: array<f32, n>;
        fn h() { _ = a; } fn g() { h(); tile[0] = 1; } fn unrelated() { _ = b; }
        @compute @workgroup_size(1) fn main() { g(); }"""
    )
    main = made.functions["main"]
    assert [v.name for v in main.globals] == ["a", "tile"]
    assert [o.name for o in main.overrides] == ["n"]


def test_a_module_without_some_features() -> None:
    text = "fn f(p: ptr<workgroup, u32>) -> u32 { return *p; }"
    check(Source(text))
    with pytest.raises(WgslError, match="cannot point into the workgroup address space"):
        check(Source(text), features=LANGUAGE_FEATURES - {"unrestricted_pointer_parameters"})


POINTERS = """
struct S { m: u32, list: array<u32, 2> }
fn take(p: ptr<function, u32>) {} fn take_all(p: ptr<function, array<u32, 2>>) {} fn take_s(p: ptr<function, S>) {}
fn pass_on(p: ptr<function, S>, q: ptr<function, u32>) { take(q); take_s(p); let r = p; take_s(r); take_s(&*p); }
fn f(p: ptr<function, S>) { var x = 0u; var a = array(1u, 2u); var s = S(); var i = 0; """


@pytest.mark.parametrize(
    "statement",
    [
        "take(&x);",
        "let q = &x; take(q);",
        "take(&(x));",
        "take_all(&a);",
        "take_s(&s);",
        "take_s(p);",
        "pass_on(p, &x);",
    ],
)
def test_pointers_to_whole_variables_need_no_feature(statement: str) -> None:
    source = Source(POINTERS + statement + "}")
    without = check(source, features=LANGUAGE_FEATURES - {"unrestricted_pointer_parameters"})
    assert without.functions.keys() == check(source).functions.keys()


@pytest.mark.parametrize(
    "statement",
    ["take(&a[0]);", "take(&a[i]);", "take(&s.m);", "take(&s.list[i]);", "take_all(&s.list);", "take(&p.m);",
     "take(&(*p).m);", "take(&(a[1]));", "pass_on(p, &s.m);", "let q = &s; take(&q.m);", "let q = &s.m; take(q);",
     "let q = &s.list; let r = &(*q)[0]; take(r);", "let q = &a[i]; let r = q; take(r);", "let q = &p.m; take(&*q);"],
)  # fmt: skip
def test_pointers_to_parts_need_a_feature(statement: str) -> None:
    check(Source(POINTERS + statement + "}"))
    with pytest.raises(WgslError, match="takes only a pointer to a whole variable"):
        check(Source(POINTERS + statement + "}"), features=LANGUAGE_FEATURES - {"unrestricted_pointer_parameters"})


def test_an_unknown_diagnostic_rule_is_a_warning() -> None:
    made = module("diagnostic(off, derivative_uniformty);")
    assert [(w.severity, w.hint) for w in made.warnings] == [("warning", "did you mean 'derivative_uniformity'?")]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("kernels/scale.wgsl", "'kernels/scale.wgsl' is no shader"),
        (b"fn f() {}", "a shader is text, or the pathlib.Path of a file, and this is of type bytes"),
        (None, "a shader is text, or the pathlib.Path of a file, and this is of type NoneType"),
    ],
)
def test_what_is_no_shader_is_said_so(given, message: str) -> None:
    with pytest.raises(WgslError) as caught:
        bankshot.check(given)
    assert caught.value.diagnostics[0].message == message
    with pytest.raises(WgslError):
        bankshot.simulate(given, grid=1)
