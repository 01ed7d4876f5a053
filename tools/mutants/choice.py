"""All mutants of a file, and a choice of them: at random by a seed, spread over the rooms."""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path

from .areas import Area
from .code import Code, Edit, Mutant
from .operators import OPERATORS

ROOT = Path(__file__).parents[2]
_WEIGHTS = {row.name: row.weight for row in OPERATORS}
_FEWEST = 6  # mutants of an area

# What changes no result: words, types, looks, and how fast or how long.
_WORDS = re.compile(r"print|warn|log|debug|UsageError|.*Error|revealed|cast|isinstance|issubclass|TypeVar|NewType")
_KEYWORDS = re.compile(
    r"maxsize|indent|width|timeout|.*seconds|stacklevel|hint|help|default_factory|encoding|fmt|strict"
    r"|ms|lw|fontsize|padding|alpha|zorder"
)
_FUNCTIONS = ("__repr__", "__str__")


@dataclass(frozen=True)
class Candidate:
    """An edit that may be a mutant."""

    code: Code
    operator: str
    edit: Edit

    def mutant(self) -> Mutant | None:
        return self.code.mutant(self.operator, self.edit)

    def draw(self, seed: int) -> float:
        """A number above 0, at most 1, that depends on the seed and on the edit in its line."""
        before, after = self.code.around(self.edit)
        drawn = hashlib.sha256("\0".join((str(seed), self.code.name, before, self.edit.text, after)).encode()).digest()
        return (int.from_bytes(drawn[:6]) + 1) / (1 << 48)


def candidates(name: str) -> list[Candidate]:
    """Every edit of a file that may be a mutant, in the order of its syntax tree."""
    code = Code(ROOT / name, name)
    found: dict[Edit, Candidate] = {}
    for node in _nodes(code.tree):
        for operator in OPERATORS:
            for edit in operator.rule(node, code):
                found.setdefault(edit, Candidate(code, operator.name, edit))
    return list(found.values())


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """A node and those below it, without what the program does not compute with."""
    if _is_skipped(node):
        return
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        yield from (each for child in node.orelse for each in _nodes(child))
        return
    yield node
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        defaults = [each for each in (*node.args.defaults, *node.args.kw_defaults) if each is not None]
        children: Sequence[ast.AST] = [*defaults, *node.body]
    elif isinstance(node, ast.ClassDef):
        children = node.body
    elif isinstance(node, ast.AnnAssign):
        children = [node.value] if node.value else []
    else:
        children = list(ast.iter_child_nodes(node))
    for child in children:
        yield from _nodes(child)


def _is_skipped(node: ast.AST) -> bool:
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom | ast.expr_context):
        return True
    if isinstance(node, ast.FunctionDef):
        return node.name in _FUNCTIONS or any(
            isinstance(each, ast.Name) and each.id == "overload" for each in node.decorator_list
        )
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return _WORDS.fullmatch(name) is not None
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) or _is_skipped(node.value)
    if isinstance(node, ast.Assign):
        return any(isinstance(each, ast.Name) and each.id == "__all__" for each in node.targets)
    if isinstance(node, ast.keyword):
        return node.arg is not None and _KEYWORDS.fullmatch(node.arg) is not None
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Name) and node.value.id == "Callable"
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) and _is_type(node)


def _is_type(node: ast.AST) -> bool:
    """Whether a union may be one of types."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _is_type(node.left) or _is_type(node.right)
    if isinstance(node, ast.Subscript):
        return _is_type(node.value)
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    simple = ("int", "str", "float", "bool", "bytes", "list", "dict", "tuple", "object", "set")
    return (
        (isinstance(node, ast.Constant) and node.value is None) or name in simple or bool(re.match("[A-Z]+[a-z]", name))
    )


def choose(count: int, seed: int, areas: Sequence[Area]) -> list[Mutant]:
    """Choose about `count` mutants, of each area more the larger it is, and no two of an operator in one line.

    More mutants include those of a smaller count, and a change of the code leaves most of the others as they were.
    """
    pools = {area: [each for name in area.files(ROOT) for each in candidates(name)] for area in areas}
    sizes = {area: len(pool) ** 0.5 for area, pool in pools.items()}
    fewest = min(_FEWEST, count // len(areas))
    share = (count - fewest * len(areas)) / sum(sizes.values())
    chosen: list[Mutant] = []
    for area, pool in pools.items():
        chosen += pick(pool, round(fewest + share * sizes[area]), seed)
    return chosen


def pick(pool: Sequence[Candidate], count: int, seed: int) -> list[Mutant]:
    """Pick at random, each operator as often as its weight says (Efraimidis and Spirakis, "Weighted random sampling
    with a reservoir", 2006)."""
    made_by = Counter(each.operator for each in pool)

    def late(candidate: Candidate) -> float:
        return -log(candidate.draw(seed)) * made_by[candidate.operator] / _WEIGHTS[candidate.operator]

    picked: dict[tuple[str, int, str], Mutant] = {}
    for each in sorted(pool, key=late):
        if len(picked) == count:
            break
        if mutant := each.mutant():
            picked.setdefault((mutant.file, mutant.line, mutant.operator), mutant)
    return list(picked.values())
