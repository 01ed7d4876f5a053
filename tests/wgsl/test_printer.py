"""Printing and parsing are inverse: on generated trees, on a page of every construct, on the conformance data."""

from dataclasses import fields
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bankshot.sim.wgsl.source import Source, Span
from bankshot.sim.wgsl.syntax import tree as syntax
from bankshot.sim.wgsl.syntax.parser import parse
from bankshot.sim.wgsl.syntax.printer import to_wgsl


@cache
def field_names(kind: type) -> list[str]:
    return [field.name for field in fields(kind) if field.name not in ("span", "name_span", "op_start")]


def same(one, other) -> bool:
    """Two trees alike in everything but their places."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, syntax.Node):
        return all(same(getattr(one, name), getattr(other, name)) for name in field_names(type(one)))
    return isinstance(one, Span) or one == other


def check_comes_back(text: str) -> None:
    tree = parse(Source(text))
    printed = to_wgsl(tree)
    again = parse(Source(printed))
    assert same(tree, again), printed
    assert to_wgsl(again) == printed


PAGE = """\
enable f16, subgroups;
diagnostic(off, a.b);

struct S {
    @align(16) a: vec4<f32>,
    b: array<u32, 4>,
}

@group(0) @binding(0) var<storage, read_write> x: array<S>;

@id(3) override n: u32 = 64u;

alias A = vec4<f32>;

const_assert 1 < 2;

@compute @workgroup_size(n, 1) fn main(@builtin(position) p: u32, q: f32) -> @location(0) f32 {
    let a = - -1 + (2 - -b) * !c[1].xy;
    @diagnostic(off, a) if a < b {
        return;
    } else if c {
        discard;
    } else {}
    switch x {
        case 1, default: {}
        case 2: {
            f<g>(1, 2);
        }
    }
    switch x {
        default {}
    }
    loop {
        break;
        continuing {
            x++;
            break if x > 1;
        }
    }
    for (; ; ) {}
    for (var i = 0; i < 4; i += 1) {
        continue;
    }
    while true {
        _ = *&x;
    }
}
"""


def test_layout():
    assert to_wgsl(parse(Source(PAGE))) == PAGE


def test_comments_empty_statements_and_trailing_commas_go():
    text = "fn f(a: u32,) { ; /* x */ g(1,); { } }; // y"
    assert to_wgsl(parse(Source(text))) == "fn f(a: u32) {\n    g(1);\n    {}\n}\n"


def test_a_part_is_printed_like_the_whole():
    (function,) = parse(Source("fn f() { if a { b = c + 1; } }")).decls
    assert isinstance(function, syntax.Function)
    (branch,) = function.body.body
    assert isinstance(branch, syntax.If)
    assert to_wgsl(branch) == "if a {\n    b = c + 1;\n}"
    assert to_wgsl(branch.then.body[0]) == "b = c + 1;"
    assert to_wgsl(branch.condition) == "a"


# ---- generated modules: the grammar again, from the author's side ------------------------------------


class Author:
    """Writes random modules that are right by the grammar, with blanks and comments in odd places."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def pick(self, *choices):
        """One of the choices; a choice that is a function is called."""
        choice = self.draw(st.sampled_from(choices))
        return choice() if callable(choice) else choice

    def some(self, item, least: int, separator: str) -> str:
        return separator.join(item() for _ in range(self.draw(st.integers(least, 3))))

    def spaced(self, *parts: str) -> str:
        return self.pick(" ", "\n", " /* < */ ", " // >\n").join(parts)

    def name(self) -> str:
        return self.pick("a", "b", "vec2", "x1")

    def type(self) -> str:
        return self.pick("a", "vec2<f32>", "array<vec4<f32>, 4>", "ptr<function, u32>")

    def expression(self, depth: int = 3) -> str:
        def below() -> str:
            return self.expression(depth - 1)

        def unary() -> str:
            return self.pick(self.name, self.literal, lambda: f"({below()})")

        if depth == 0:
            return self.pick(self.name, self.literal)
        return self.pick(
            unary,
            lambda: self.some(unary, 1, self.pick(" & ", " | ", " ^ ", " + ", "-", " * ", " && ", " || ")),
            lambda: self.spaced(unary(), self.pick("<<", ">>", "<", ">", "<=", ">=", "==", "!="), unary()),
            lambda: self.pick("-", "!", "~", "*", "&", "--", "- -", "&&") + unary(),
            lambda: self.spaced(self.name(), "(", self.some(below, 0, ","), ")"),
            lambda: self.spaced(self.name(), "<", self.some(unary, 1, ","), ">", "(", below(), ")"),
            lambda: self.spaced(unary(), "[", below(), "]"),
            lambda: self.spaced(unary(), ".", self.name()),
        )

    def literal(self) -> str:
        return self.pick("1", "2u", "0x1fi", "1.5", ".5f", "1h", "true", "0x1p-2")

    def update(self) -> str:
        place = self.pick("a", "a[1].x", "*b", "(*b).y")
        return self.pick(
            lambda: self.spaced(place, self.pick("=", "+=", "<<=", ">>="), self.expression()),
            lambda: self.spaced(place, self.pick("++", "--")),
            lambda: self.spaced("_", "=", self.expression()),
            lambda: self.spaced(self.name(), "(", self.expression(), ",", ")"),
        )

    def local(self) -> str:
        return self.pick(
            lambda: self.spaced("var", self.name(), ":", self.type()),
            lambda: self.spaced("var", "<", "function", ">", self.name(), "=", self.expression()),
            lambda: self.spaced(self.pick("let", "const"), self.name(), ":", self.type(), "=", self.expression()),
        )

    def block(self, depth: int) -> str:
        attribute = self.pick("", "@diagnostic(off, a.b)")
        return self.spaced(attribute, "{", self.some(lambda: self.statement(depth), 0, " "), "}")

    def statement(self, depth: int = 2) -> str:
        if depth == 0 or self.draw(st.booleans()):
            last = self.pick("return", "break", "continue", "discard", "", f"return {self.expression()}")
            return self.pick(self.update, self.local, last, lambda: f"const_assert {self.expression()}") + ";"
        block, condition = self.block(depth - 1), self.expression(2)
        body = self.some(lambda: self.statement(depth - 1), 0, "\n")
        return self.pick(
            block,
            lambda: self.spaced("if", condition, block, "else if", self.expression(2), block, "else", block),
            lambda: self.spaced(
                "switch", condition, "{", "case", self.pick("1,", "default, 2:"), block, "default", block, "}"
            ),
            lambda: self.spaced("loop", "{", body, "continuing", "{", body, "break if", condition, ";", "}", "}"),
            lambda: self.spaced("for", "(", self.pick("", self.local), ";", condition, ";", self.update(), ")", block),
            lambda: self.spaced("@diagnostic(off, a) while", condition, block),
        )

    def declaration(self) -> str:
        def typed() -> str:
            return self.spaced(self.pick("", "@size(16)", "@builtin(position)"), self.name(), ":", self.type())

        return self.pick(
            lambda: self.spaced("fn", self.name(), "(", self.some(typed, 0, ","), ")", "{", self.statement(), "}"),
            lambda: self.spaced("@must_use fn f() ->", "@location(0)", self.type(), self.block(2)),
            lambda: self.spaced("@group(", self.expression(), ") var<storage>", self.name(), ":", self.type(), ";"),
            lambda: self.spaced("@id(1) override", self.name(), "=", self.expression(), ";"),
            lambda: self.spaced("alias", self.name(), "=", self.type(), ";"),
            lambda: self.spaced("struct", self.name(), "{", self.some(typed, 1, ","), ",", "}"),
        )


@st.composite
def modules(draw: st.DrawFn) -> str:
    author = Author(draw)
    return author.some(author.declaration, 1, "\n")


@settings(deadline=None)
@given(modules())
def test_generated_modules_come_back(text):
    check_comes_back(text)


@pytest.mark.parametrize(
    "text", ["", "enable f16;", ";", "const a = b--c;", "const a = 1 .x;", "const a = &&b;", "const a = - - -b;"]
)
def test_small_modules_come_back(text):
    check_comes_back(text)


def test_the_conformance_data_comes_back(conformance):
    texts = {record["wgsl"] for record in conformance("valid") if record["expect"]}
    for text in sorted(texts)[::5]:
        check_comes_back(text)
