"""All mutants of a file, and a choice of them: at random by a seed, spread over the rooms."""

from __future__ import annotations

import ast
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .areas import Area
from .code import Code, Edit, Mutant
from .operators import OPERATORS

ROOT = Path(__file__).parents[2]
_WEIGHTS = {row.name: row.weight for row in OPERATORS}
_FEWEST = 6  # mutants of an area

# What changes no result: words, types, and how fast or how long.
_WORDS = re.compile(r"print|warn|log|debug|UsageError|.*Error|revealed|cast|isinstance|issubclass|TypeVar|NewType")
_KEYWORDS = re.compile(
    r"maxsize|indent|width|timeout|.*seconds|stacklevel|hint|help|default_factory|encoding|fmt|strict"
)
_FUNCTIONS = ("__repr__", "__str__")


@dataclass(frozen=True)
class _Candidate:
    """An edit that may be a mutant."""

    code: Code
    operator: str
    edit: Edit

    def mutant(self) -> Mutant | None:
        return self.code.mutant(self.operator, self.edit)


def candidates(name: str) -> list[_Candidate]:
    """Every edit of a file that may be a mutant, in the order of its syntax tree."""
    code = Code(ROOT / name, name)
    found: dict[Edit, _Candidate] = {}
    for node in _nodes(code.tree):
        for operator in OPERATORS:
            for edit in operator.rule(node, code):
                found.setdefault(edit, _Candidate(code, operator.name, edit))
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
    if isinstance(node, ast.FunctionDef) and node.name in _FUNCTIONS:
        return True
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return _WORDS.fullmatch(name) is not None
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) or _is_skipped(node.value)
    if isinstance(node, ast.Assign):
        return any(isinstance(each, ast.Name) and each.id == "__all__" for each in node.targets)
    if isinstance(node, ast.keyword):
        return node.arg is not None and _KEYWORDS.fullmatch(node.arg) is not None
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
    """Choose about `count` mutants, of each area more the larger it is, and no two of an operator in one line."""
    random_ = random.Random(seed)
    pools = {area: [each for name in area.files(ROOT) for each in candidates(name)] for area in areas}
    sizes = {area: len(pool) ** 0.5 for area, pool in pools.items()}
    fewest = min(_FEWEST, count // len(areas))
    share = (count - fewest * len(areas)) / sum(sizes.values())
    chosen: list[Mutant] = []
    for area, pool in pools.items():
        chosen += _pick(pool, round(fewest + share * sizes[area]), random_)
    return chosen


def _pick(pool: Sequence[_Candidate], count: int, random_: random.Random) -> list[Mutant]:
    """Pick an operator by its weight, then one of its mutants, as often as asked."""
    by_operator: defaultdict[str, list[_Candidate]] = defaultdict(list)
    for each in pool:
        by_operator[each.operator].append(each)
    picked: dict[tuple[str, int, str], Mutant] = {}
    while by_operator and len(picked) < count:
        names = list(by_operator)
        name = random_.choices(names, [_WEIGHTS[each] for each in names])[0]
        candidates = by_operator[name]
        mutant = candidates.pop(random_.randrange(len(candidates))).mutant()
        if mutant:
            picked.setdefault((mutant.file, mutant.line, mutant.operator), mutant)
        if not candidates:
            del by_operator[name]
    return list(picked.values())
