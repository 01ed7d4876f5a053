"""The typed module as text: snapshots, and that no node is unknown to the printer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import bankshot
from bankshot.sim.wgsl import typed, typed_printer
from bankshot.sim.wgsl.typed_printer import to_text

ROOT = Path(__file__).parents[2]
DUMPS = ROOT / "tests/files/dump"


def module_of(name: str) -> typed.Module:
    return bankshot.check((DUMPS / f"{name}.wgsl").read_text(encoding="utf-8"), name=f"{name}.wgsl")


@pytest.mark.parametrize("name", ["everything"])
def test_the_text_is_that_of_the_snapshot(name: str, golden: Callable[[str, Path], None]) -> None:
    golden(to_text(module_of(name)), DUMPS / f"{name}.typed.txt")


def subclasses(base: type) -> Iterator[type]:
    for each in base.__subclasses__():
        yield each
        yield from subclasses(each)


def test_the_snapshot_has_every_kind_of_statement_and_expression() -> None:
    bodies = [f.body for f in module_of("everything").functions.values() if f.body]
    stmts = [stmt for body in bodies for stmt in typed.statements(body)]
    parts = [part for stmt in stmts for operand in typed.operands(stmt) for part in typed.expressions(operand)]
    assert {*subclasses(typed.Stmt)} - {*map(type, stmts)} == set()
    assert {*subclasses(typed.Expr)} - {*map(type, parts)} == set()


SHADERS = sorted(ROOT.glob("shaders/*.wgsl"))


@pytest.mark.parametrize("path", SHADERS, ids=lambda path: path.stem)
def test_shaders_can_be_printed(path: Path) -> None:
    module = bankshot.check(path)
    text = to_text(module)
    assert text == to_text(bankshot.check(path))
    for function in module.functions.values():
        assert f"\nfn {function.name}(" in text


@pytest.mark.parametrize(
    ("expression", "printed"),
    [
        ("1 / 3.0", "0.33333334: f32"),
        ("f32(1 << 3)", "8: f32"),
        ("max(x, 2)", "max(x: f32, 2: f32): f32"),
        ("f32(i)", "convert(i: i32): f32"),
        ("x + f32(u32(i))", "+(x: f32, convert(convert(i: i32): u32): f32): f32"),
        ("vec3(x, 1, 2).y", "swizzle .y(construct(x: f32, 1: f32, 2: f32): vec3<f32>): f32"),
        ("3.4028234663852886e38f", "3.4028235e+38: f32"),
    ],
)
def test_expressions_carry_types_and_resolved_overloads(expression: str, printed: str) -> None:
    module = bankshot.check(f"fn f(x: f32, i: i32) -> f32 {{\n  return {expression};\n}}\n")
    line = to_text(module).splitlines()[-1]
    assert line.startswith("          return ")
    assert line.endswith(printed)


def test_the_parts_of_a_large_constant_are_counted() -> None:
    text = to_text(bankshot.check("fn f() {\n  let a = array<u32, 18>();\n}\n"))
    assert f"= ({'0, ' * 16}… 2 more): array<u32, 18>\n" in text


def test_a_long_expression_gets_one_operand_a_line() -> None:
    module = bankshot.check("fn f(x: f32) -> f32 {\n  return " + "(" * 9 + "x" + " + 1)" * 9 + ";\n}\n")
    lines = to_text(module).splitlines()
    assert max(map(len, lines)) <= 110
    assert lines[-1] == "          ): f32"


def test_lines_of_an_included_file_are_named(tmp_path: Path) -> None:
    (tmp_path / "other.wgsl").write_text("fn g() {\n    return;\n}\n", encoding="utf-8")
    module = bankshot.check('#include "other.wgsl"\nfn f() { g(); }\n', include_dirs=[tmp_path])
    text = to_text(module)
    assert f"  in {tmp_path / 'other.wgsl'}\n    2 | return;\n          return\n" in text
    assert "    2 | fn f() { g(); }\n" in text


def test_the_filters_of_statements_are_printed():
    filters = "@diagnostic(off, derivative_uniformity)"
    statements = (
        "if true { }",
        "switch 1 { default { } }",
        "loop { break; }",
        "while false { }",
        "for (;;) { break; }",
    )
    for statement in statements:
        lines = to_text(bankshot.check(f"fn f() {{ {filters} {statement} }}")).splitlines()
        assert [line.strip() for line in lines].count(filters.removeprefix("@")) == 1, statement


def test_an_attribute_without_arguments_has_no_parentheses() -> None:
    attributes: Any = {"invariant": True, "location": 2}
    assert typed_printer._attributes(attributes) == " @invariant @location(2)"
