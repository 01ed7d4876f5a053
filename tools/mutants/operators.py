"""The mutation operators, one row each: what a small slip of a programmer does to a node of the syntax tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from .code import Code, Edit

Rule = Callable[[ast.AST, Code], Iterator[Edit]]

_COMPARED: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
_COMPUTED: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.FloorDiv: ("//", "*"),
    ast.Div: ("/", "*"),
    ast.Mod: ("%", "//"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "&"),
}
_ORDERED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift)
_OTHER_NAME = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum"}
_LEAST_ROWS = 3


def _operator(code: Code, left: ast.expr, right: ast.expr, sign: str) -> tuple[int, int] | None:
    """The place of an operator between two operands; only blanks, parentheses and comments are beside it."""
    start, end = code.end(left), code.start(right)
    words = r"\s+".join(map(re.escape, sign.split()))
    found = re.search(rf"(?<![\w<>=]){words}(?![\w=])" if sign[0].isalpha() else re.escape(sign), code.text(start, end))
    return (start + found.start(), start + found.end()) if found and "#" not in code.text(start, end) else None


def _compare(node: ast.AST, code: Code) -> Iterator[Edit]:
    if isinstance(node, ast.Compare):
        for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            sign, other = _COMPARED[type(op)]
            if place := _operator(code, left, right, sign):
                yield Edit(*place, other)


def _arithmetic(node: ast.AST, code: Code) -> Iterator[Edit]:
    if isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED:
        sign, other = _COMPUTED[type(node.op)]
        if place := _operator(code, node.left, node.right, sign):
            yield Edit(*place, other)
    if isinstance(node, ast.AugAssign) and type(node.op) in _COMPUTED:
        sign, other = _COMPUTED[type(node.op)]
        start, end = code.end(node.target), code.start(node.value)
        if (text := code.text(start, end)).count(f"{sign}=") == 1:
            yield Edit(start, end, text.replace(f"{sign}=", f"{other}="))


def _swap(node: ast.AST, code: Code) -> Iterator[Edit]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, _ORDERED):
        sign, _ = _COMPUTED[type(node.op)]
        if place := _operator(code, node.left, node.right, sign):
            left, right = code.text(code.start(node), place[0]), code.text(place[1], code.end(node))
            yield Edit(code.start(node), code.end(node), f"({right.strip()}) {sign} ({left.strip()})")


def _mask(node: ast.AST, code: Code) -> Iterator[Edit]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.Mod):
        sign, _ = _COMPUTED[type(node.op)]
        if place := _operator(code, node.left, node.right, sign):
            yield Edit(place[0], code.end(node), "")
            if isinstance(node.op, ast.BitAnd):
                yield Edit(code.start(node), place[1], "")
    if isinstance(node, ast.comprehension):
        for test in node.ifs:
            yield Edit(code.start(test), code.end(test), "True")


def _connective(node: ast.AST, code: Code) -> Iterator[Edit]:
    if isinstance(node, ast.BoolOp):
        sign, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            if place := _operator(code, left, right, sign):
                yield Edit(*place, other)


def _operand(node: ast.AST, code: Code) -> Iterator[Edit]:
    if isinstance(node, ast.BoolOp):
        for value in node.values:
            yield Edit(code.start(value), code.end(value), "True" if isinstance(node.op, ast.And) else "False")


def _negation(node: ast.AST, code: Code) -> Iterator[Edit]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
        yield Edit(code.start(node), code.start(node.operand), "")
    if isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(node.test, ast.UnaryOp):
        yield Edit(code.start(node.test), code.end(node.test), f"not ({code.of(node.test)})")


def _constant(node: ast.AST, code: Code) -> Iterator[Edit]:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        for step in (-1,) if _means_any(node, code) else (1, -1):
            yield Edit(code.start(node), code.end(node), str(node.value + step))
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield Edit(code.start(node), code.end(node), str(not node.value))


def _means_any(node: ast.AST, code: Code) -> bool:
    """Whether a constant is the 1 of a -1 in `reshape`, where NumPy takes any negative number for the same."""
    negative = code.parents.get(node)
    call = code.parents.get(negative) if isinstance(negative, ast.UnaryOp) else None
    if isinstance(call, ast.Tuple):
        call = code.parents.get(call)
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "reshape"


def _row(node: ast.AST, code: Code) -> Iterator[Edit]:
    """A row of a table, which is a list, a set or a dict, or a tuple outside functions."""
    if isinstance(node, ast.Dict):
        rows = [(code.start(key or value), code.end(value)) for key, value in zip(node.keys, node.values, strict=True)]
    elif isinstance(node, ast.List | ast.Set) or (isinstance(node, ast.Tuple) and _is_table(node, code)):
        rows = [(code.start(each), code.end(each)) for each in node.elts]
    else:
        return
    if len(rows) >= _LEAST_ROWS:
        for (start, _), (following, _) in pairwise(rows):
            yield Edit(start, following, "")
        yield Edit(rows[-2][1], rows[-1][1], "")


def _is_table(node: ast.Tuple, code: Code) -> bool:
    parent: ast.AST | None = node
    while parent := code.parents.get(parent):
        if isinstance(parent, ast.FunctionDef | ast.Lambda | ast.Subscript):
            return False
    return isinstance(node.ctx, ast.Load)


def _statement(node: ast.AST, code: Code) -> Iterator[Edit]:
    called = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Yield | ast.YieldFrom)
    stored = isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Name | ast.Tuple)
    if called or stored or isinstance(node, ast.AugAssign):
        assert isinstance(node, ast.stmt)
        yield Edit(code.start(node), code.end(node), "pass")


def _guard(node: ast.AST, code: Code) -> Iterator[Edit]:
    """An `if` around a jump: the case that it stands for is forgotten."""
    jumps = (ast.Return, ast.Raise, ast.Continue, ast.Break)
    if isinstance(node, ast.If) and not node.orelse and len(node.body) == 1 and isinstance(node.body[0], jumps):
        yield Edit(code.start(node.test), code.end(node.test), "False")


def _early(node: ast.AST, code: Code) -> Iterator[Edit]:
    """A loop that ends after its first turn, or a function that ends before its last statement."""
    if isinstance(node, ast.For | ast.While) and not node.orelse:
        last = node.body[-1]
        if isinstance(last, ast.Expr | ast.Assign | ast.AugAssign):
            yield Edit(code.end(last), code.end(last), "; break")
    if isinstance(node, ast.FunctionDef) and len(node.body) > 1 and not _has_result(node):
        yield Edit(code.start(node.body[-1]), code.end(node.body[-1]), "return")


def _has_result(node: ast.FunctionDef) -> bool:
    return any(isinstance(each, ast.Return | ast.Yield | ast.YieldFrom) for each in ast.walk(node))


def _name(node: ast.AST, code: Code) -> Iterator[Edit]:
    if isinstance(node, ast.Call):
        function = node.func
        name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
        if name in _OTHER_NAME and isinstance(function, ast.Name | ast.Attribute):
            yield Edit(code.end(function) - len(name), code.end(function), _OTHER_NAME[name])


def _choice(node: ast.AST, code: Code) -> Iterator[Edit]:
    if isinstance(node, ast.IfExp):
        yield Edit(code.start(node.test), code.end(node.test), "True")
        yield Edit(code.start(node.test), code.end(node.test), "False")


@dataclass(frozen=True)
class Operator:
    """A row of the table. `weight`: how often it is chosen beside the others."""

    name: str
    does: str
    rule: Rule
    weight: float = 1.0


OPERATORS = (
    Operator("compare", "another comparison: < for <=, == for !=, in for not in", _compare, 2.0),
    Operator("arithmetic", "another operation: + for -, << for >>, & for |", _arithmetic),
    Operator("swap", "the operands of -, /, %, << or >> change places", _swap),
    Operator("mask", "a mask, a remainder or the filter of a comprehension is dropped", _mask, 2.0),
    Operator("connective", "and for or", _connective, 2.0),
    Operator("operand", "a part of a condition is dropped", _operand),
    Operator("negation", "not, - or ~ is dropped; a condition is negated", _negation),
    Operator("constant", "a whole number is off by one; True for False", _constant, 2.0),
    Operator("row", "a row of a table is removed", _row, 2.0),
    Operator("statement", "a statement is removed", _statement, 2.0),
    Operator("guard", "an `if` in front of a return, raise, continue or break never holds", _guard, 2.0),
    Operator("early", "a loop ends after a turn, a function before its last statement", _early),
    Operator("name", "min for max, any for all", _name, 2.0),
    Operator("choice", "a conditional expression always takes one side", _choice),
)
