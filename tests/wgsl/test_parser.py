"""The grammar: how expressions group, what each statement and declaration becomes, and what is refused."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankshot.sim.wgsl.diagnostics import WgslError
from bankshot.sim.wgsl.source import Source
from bankshot.sim.wgsl.syntax import tree
from bankshot.sim.wgsl.syntax.parser import parse
from bankshot.sim.wgsl.syntax.printer import to_wgsl
from bankshot.sim.wgsl.syntax.token_cursor import MAX_NESTING


def expression(text: str) -> tree.Expr:
    (decl,) = parse(Source(f"const x = {text};")).decls
    assert isinstance(decl, tree.GlobalDecl)
    assert decl.init is not None
    return decl.init


def statement(text: str) -> tree.Stmt:
    (function,) = parse(Source(f"fn f() {{ {text} }}")).decls
    assert isinstance(function, tree.Function)
    (node,) = function.body.body
    return node


def grouped(node: tree.Expr) -> str:
    """The expression with every operation in brackets of its own."""
    match node:
        case tree.Binary(op=op, left=left, right=right):
            return f"[{grouped(left)} {op} {grouped(right)}]"
        case tree.Unary(op=op, operand=operand):
            return f"[{op} {grouped(operand)}]"
        case tree.Index(base=base, index=index):
            return f"[{grouped(base)} at {grouped(index)}]"
        case tree.Member(base=base, name=name):
            return f"[{grouped(base)} . {name}]"
        case tree.Call(callee=callee, args=args):
            return f"{grouped(callee)}({', '.join(map(grouped, args))})"
        case tree.Paren(inner=inner):
            return f"({grouped(inner)})"
        case tree.Ident(name=name, args=args):
            return name if args is None else f"{name}<{', '.join(map(grouped, args))}>"
        case tree.Literal(text=text):
            return text
    raise AssertionError(node)


def error_of(text: str):
    with pytest.raises(WgslError) as caught:
        parse(Source(text))
    return caught.value.diagnostics[0]


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("a + b * c - d", "[[a + [b * c]] - d]"),
        ("a * b / c % d", "[[[a * b] / c] % d]"),
        ("-a * !b", "[[- a] * [! b]]"),
        ("* * a", "[* [* a]]"),
        ("a--b", "[a - [- b]]"),
        ("a---b", "[a - [- [- b]]]"),
        ("&&a", "[& [& a]]"),
        ("a && &&b", "[a && [& [& b]]]"),
        ("-a.b[c].d", "[- [[[a . b] at c] . d]]"),
        ("a << b", "[a << b]"),
        ("-a >> ~b", "[[- a] >> [~ b]]"),
        ("a + b < c << d", "[[a + b] < [c << d]]"),
        ("a < b && c >= d && e", "[[[a < b] && [c >= d]] && e]"),
        ("a || b == c || d", "[[a || [b == c]] || d]"),
        ("a & b & -c", "[[a & b] & [- c]]"),
        ("a | b | c", "[[a | b] | c]"),
        ("a ^ b ^ c", "[[a ^ b] ^ c]"),
        ("(a & b) | c", "[([a & b]) | c]"),
        ("vec2<f32>(1, 2,).x", "[vec2<f32>(1, 2) . x]"),
        ("array<vec4<f32>, N + 1>()", "array<vec4<f32>, [N + 1]>()"),
        ("f()[0]", "[f() at 0]"),
        ("a < b", "[a < b]"),
        ("select(1, 2, a > b)", "select(1, 2, [a > b])"),
        ("array<u32,>", "array<u32>"),
    ],
)
def test_grouping(text, groups):
    assert grouped(expression(text)) == groups


_BITWISE = ["&", "|", "^"]
_TIGHT = ["+", "*", "<<", "<", "==", "&&", "||"]


@pytest.mark.parametrize(
    "text",
    [f"a {one} b {two} c" for one in _BITWISE for two in [*_BITWISE, *_TIGHT] if one != two]
    + [f"a {two} b {one} c" for one in _BITWISE for two in _TIGHT]
    + ["a < b < c", "a == b != c", "a << b << c", "a << b >> c", "a + b << c", "a << b + c", "a << b * c", "a * b >> c"]
    + ["a && b || c", "a || b && c", "a < b && c < d < e"],
)
def test_what_needs_parentheses(text):
    diagnostic = error_of(f"const x = {text};")
    assert diagnostic.code == "mixed-operators"
    assert diagnostic.hint


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("{}", tree.Block),
        ("@diagnostic(off, a.b) {}", tree.Block),
        ("var x: i32;", tree.LocalDecl),
        ("var<function> x = 1;", tree.LocalDecl),
        ("let x = 1;", tree.LocalDecl),
        ("const x: u32 = 1u;", tree.LocalDecl),
        ("x = 1;", tree.Assign),
        ("_ = x;", tree.Assign),
        ("x.yz += v;", tree.Assign),
        ("(*p)[i].x >>= 1u;", tree.Assign),
        ("*&x = 1;", tree.Assign),
        ("&&x = 1;", tree.Assign),
        ("x[0]++;", tree.Increment),
        ("(x)--;", tree.Increment),
        ("f(1, 2,);", tree.CallStmt),
        ("f<g>();", tree.CallStmt),
        ("if a {} else if b {} else {}", tree.If),
        ("@diagnostic(off, a) if (a) {}", tree.If),
        ("switch x { default {} }", tree.Switch),
        ("switch (x) @diagnostic(off, a) { case 1, 2, default: {} case 3, {} }", tree.Switch),
        ("loop { continuing { break if x; } }", tree.Loop),
        ("loop @diagnostic(off, a) { break; continuing @diagnostic(off, a) { x++; } }", tree.Loop),
        ("for (;;) {}", tree.For),
        ("for (var i = 0; i < 4; i++) {}", tree.For),
        ("for (let i = 0; ; f()) {}", tree.For),
        ("for (const i = 0; ; _ = 1) {}", tree.For),
        ("for (i = 0; ; i += 1) {}", tree.For),
        ("for (f(); a < b;) @diagnostic(off, a) {}", tree.For),
        ("while a < b {}", tree.While),
        ("loop { break; }", tree.Loop),
        ("return;", tree.Return),
        ("return (1);", tree.Return),
        ("discard;", tree.Discard),
        ("continue;", tree.Continue),
        ("const_assert 1 < 2;", tree.ConstAssert),
        (";;return;;", tree.Return),
    ],
)
def test_statements(text, kind):
    assert type(statement(text)) is kind


def test_switch_selectors():
    node = statement("switch x { case 1, default, 2: {} default: {} case default {} }")
    assert isinstance(node, tree.Switch)
    assert [[each and grouped(each) for each in case.selectors] for case in node.cases] == [
        ["1", None, "2"],
        [None],
        [None],
    ]


def test_loop_parts():
    node = statement("loop { a(); continuing { b(); break if c; } }")
    assert isinstance(node, tree.Loop)
    assert node.continuing is not None
    assert (len(node.body.body), len(node.continuing.body)) == (1, 1)
    assert node.break_if is not None
    assert grouped(node.break_if) == "c"


def test_declarations():
    module = parse(
        Source("""
        enable f16, subgroups,;
        requires a;
        diagnostic(off, chromium.b,);
        @group(0) @binding(1,) var<storage, read_write> x: array<u32>;
        var<private> y = 1;
        const c = 1;;
        @id(3) override o: f32;
        alias A = vec4<f32>;
        struct S { @align(16) a: u32, @size(8) b: A }
        const_assert c == 1;
        @compute @workgroup_size(8, o, 1)
        fn main(@builtin(position) p: u32, q: u32,) -> @location(0) u32 { return 1; };
        """)
    )
    directives = [(each.kind, [name for name, _ in each.names]) for each in module.directives]
    assert directives == [
        ("enable", ["f16", "subgroups"]),
        ("requires", ["a"]),
        ("diagnostic", ["off", "chromium.b"]),
    ]
    kinds = ["GlobalDecl"] * 4 + ["Alias", "Struct", "ConstAssert", "Function"]
    assert [type(each).__name__ for each in module.decls] == kinds
    main = module.decls[-1]
    assert isinstance(main, tree.Function)
    assert [(each.name, len(each.args)) for each in main.attributes] == [("compute", 0), ("workgroup_size", 3)]
    assert [each.name for each in main.result_attributes] == ["location"]
    assert [each.name for each in main.params] == ["p", "q"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("var x", "expected"),
        ("struct S {}", "expected"),
        ("struct S { a: u32; b: u32 }", "expected"),
        ("const x;", "expected"),
        ("@id(1) const x = 1;", "expected"),
        ("@compute;", "expected"),
        ("let x = 1;", "expected"),
        ("fn f() { let x; }", "expected"),
        ("fn f() { a; }", "expected"),
        ("fn f() { 1 = 2; }", "expected"),
        ("fn f() { a() = 2; }", "not-assignable"),
        ("fn f() { (a + b) = 2; }", "not-assignable"),
        ("fn f() { -a = 2; }", "expected"),
        ("fn f() { vec2<f32> = 2; }", "not-assignable"),
        ("fn f() { _ += 1; }", "expected"),
        ("fn f() { (f()); }", "expected"),
        ("fn f() { @must_use return; }", "misplaced-attribute"),
        ("fn f() { break if x; }", "misplaced-break-if"),
        ("fn f() { continuing {} }", "misplaced-continuing"),
        ("fn f() { loop { continuing {} x(); } }", "expected"),
        ("fn f() { loop { continuing { break if x; x(); } } }", "expected"),
        ("fn f() { switch x {} }", "expected"),
        ("fn f() { switch x { case: {} } }", "expected"),
        ("fn f() { for (const_assert true;;) {} }", "expected"),
        ("fn f() { for (;; var x = 1) {} }", "expected"),
        ("fn f() { if x {} else }", "expected"),
        ("fn f(a) {}", "expected"),
        ("fn f() {", "expected"),
        ("fn f() }", "expected"),
        ("fn _() {}", "expected"),
        ("fn if() {}", "expected"),
        ("const x = ;", "expected"),
        ("const x = (1;", "expected"),
        ("const x = a[1;", "expected"),
        ("const x = f(1 2);", "expected"),
        ("const x = a<>();", "expected"),
        ("const x = ++a;", "expected"),
        ("enable;", "expected"),
        ("enable f16", "expected"),
        ("; enable f16;", "misplaced-directive"),
        ("const x = 1; enable f16;", "misplaced-directive"),
        ("diagnostic(nope, a);", "unknown-severity"),
        ("@nope fn f() {}", "unknown-attribute"),
        ("@compute() fn f() {}", "expected"),
        ("@align struct S { a: u32 }", "wrong-parameter-count"),
        ("@workgroup_size(1, 2, 3, 4) fn f() {}", "wrong-parameter-count"),
    ],
)
def test_errors(text, code):
    assert error_of(text).code == code


def test_spans_cover_what_was_written():
    module = parse(Source("fn f() { x[1] = -(a + b); }"))
    (function,) = module.decls
    assert isinstance(function, tree.Function)
    assert function.span.text == "fn f() { x[1] = -(a + b); }"
    (assign,) = function.body.body
    assert isinstance(assign, tree.Assign)
    assert assign.target is not None
    spans = [assign.span, assign.target.span, assign.value.span, assign.op_span]
    assert [span.text for span in spans] == ["x[1] = -(a + b)", "x[1]", "-(a + b)", "="]


# ---- depth -----------------------------------------------------------------------------------------

_DEEP = {
    "parentheses": lambda n: f"const x = {'(' * n}1{')' * n};",
    "calls": lambda n: f"const x = {'f(' * n}1{')' * n};",
    "indices": lambda n: f"const x = {'a[' * n}1{']' * n};",
    "templates": lambda n: f"alias x = {'array<' * n}u32{'>' * n};",
    "prefixes": lambda n: f"const x = {'-' * n}1;",
    "sums": lambda n: f"const x = 1{' + 1' * n};",
    "members": lambda n: f"const x = a{'.b' * n};",
    "buried sums": lambda n: f"const x = {'(' * (n // 2)}1{' + 1)' * (n // 2)};",
    "mixed": lambda n: f"const x = {'(1 + 1 * -a[' * n}1{'])' * n};",
    "blocks": lambda n: f"fn f() {{ {'{' * n}{'}' * n} }}",
    "ifs": lambda n: f"fn f() {{ {'if a {' * n}{'}' * n} }}",
    "else ifs": lambda n: f"fn f() {{ if a {{}} {'else if a {}' * n} }}",
    "loops": lambda n: f"fn f() {{ {'loop {' * n}{'}' * n} }}",
    "continuing": lambda n: f"fn f() {{ {'loop { continuing {' * n}{'} }' * n} }}",
    "switches": lambda n: f"fn f() {{ {'switch a { default {' * n}{'} }' * n} }}",
}


@pytest.mark.parametrize("shape", _DEEP)
def test_too_deep_is_an_error_like_any_other(shape):
    assert error_of(_DEEP[shape](6 * MAX_NESTING)).code == "nesting-too-deep"


@pytest.mark.parametrize("shape", sorted(_DEEP.keys() - {"mixed"}))
def test_what_the_spec_asks_for_is_not_too_deep(shape):
    assert parse(Source(_DEEP[shape](127))).decls


def test_the_limit_holds_to_the_node():
    parse(Source(f"const x = 1{' + 1' * (MAX_NESTING - 1)};"))
    assert error_of(f"const x = 1{' + 1' * MAX_NESTING};").code == "nesting-too-deep"


def test_the_limit_holds_for_each_expression_of_a_function():
    first = f"let a = 1{' + 1' * (MAX_NESTING // 2)}; let b = 2"
    parse(Source(f"fn f() {{ {first}{' + 1' * (MAX_NESTING // 2)}; }}"))
    assert error_of(f"fn f() {{ {first}{' + 1' * MAX_NESTING}; }}").code == "nesting-too-deep"


def test_the_deepest_tree_can_be_printed():
    deepest = f"const x = {'(' * (MAX_NESTING - 1)}1{')' * (MAX_NESTING - 1)};\n"
    assert to_wgsl(parse(Source(deepest))) == deepest


# ---- anything at all -------------------------------------------------------------------------------

_SHADER = """
enable f16;
struct S { @align(16) a: vec4<f32>, b: array<u32, 4>, }
@group(0) @binding(0) var<storage, read_write> x: array<S>;
override N: u32 = 64u;
@compute @workgroup_size(N, 1, 1)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var total = 0.5f; /* sum */
    for (var i = 0u; i < N && id.x >= 1u; i++) { total += x[i].a.y * f32(i << 2u); }
    switch i32(id.y) { case 1, 2: { return; } default: { loop { continuing { break if total > 1e3; } } } }
    if ((id.z & 1u) == 0u) { x[id.x].b[0] = select(1u, 2u, total != 0.0); } else { _ = -total; } // end
    workgroupBarrier();
}
"""
_WORDS = re.findall(r"\w+|\s+|[^\w\s]", _SHADER)


def errors_of(source):
    """The places of the errors of a text."""
    try:
        parse(source)
    except WgslError as error:
        return [(each.span.start, each.span.end) for each in error.diagnostics]
    return []


@given(st.lists(st.tuples(st.integers(0, len(_WORDS) - 1), st.sampled_from(_WORDS), st.booleans()), max_size=4))
def test_a_mutated_shader_is_parsed_or_refused(changes):
    words = list(_WORDS)
    for index, word, insert in changes:
        words[index : index + (not insert)] = [word]
    text = "".join(words)
    assert all(0 <= start <= end <= len(text) for start, end in errors_of(Source(text)))


@given(st.text(alphabet="ab<>()[]{};:,=+-*&|!@_.1 \nfnvaletif", max_size=60))
def test_noise_is_parsed_or_refused(text):
    whole = f"fn f() {{ {text} }}"
    assert all(0 <= start <= end <= len(whole) for start, end in errors_of(Source(whole)))


# ---- the conformance data --------------------------------------------------------------------------


def test_every_valid_module_of_the_conformance_data_parses(conformance):
    refused = {}
    for record in conformance("valid"):
        if record["expect"]:
            try:
                parse(Source(record["wgsl"]))
            except WgslError as error:
                refused[record["id"]] = str(error)
    assert not refused
