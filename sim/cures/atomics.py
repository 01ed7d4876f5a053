"""Atomics in place of loads and stores: for statements that update a word which other invocations update, too.

The variable becomes atomic, `x = max(x, a)` and `if x < a { x = a; }` become `atomicMax(&x, a)`, other loads and stores
`atomicLoad` and `atomicStore`. A variable whose address is taken, or that is copied whole, stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..fast_dataclass import frozen
from ..wgsl import typed
from ..wgsl import types as t
from ..wgsl.source import Source
from ..wgsl.text_edits import Replacement
from .changes import Change, Race
from .places import Places

ATOMIC = 3  # the effort of such a change
_ATOMIC = {"+": "Add", "-": "Sub", "&": "And", "|": "Or", "^": "Xor", "max": "Max", "min": "Min"}
_COMMUTES = frozenset(_ATOMIC) - {"-"}
_GUARDS = {"<": "Max", "<=": "Max", ">": "Min", ">=": "Min"}  # of `if x < a { x = a; }`
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ONE = {"++": "Add", "--": "Sub"}


@frozen
class _Update:
    """A statement that updates a word: its target, the function `atomic…`, and the other operand; None: 1."""

    stmt: typed.Stmt
    target: typed.Expr
    name: str
    operand: typed.Expr | None


def atomic_changes(source: Source, places: Places, races: Iterable[Race]) -> Iterator[Change]:
    """Yield a change for each variable whose races are between updates, or between stores of the same value."""
    by_variable: dict[str, list[Race]] = {}
    for race in races:
        by_variable.setdefault(race.variable, []).append(race)
    for name, found in by_variable.items():
        users = {part.var for f in places.functions for part in _uses(f, name)}
        variable = next(iter(users)) if len(users) == 1 else None
        scalar = None if variable is None else _scalar(source, variable)
        if variable is None or scalar is None:
            continue
        updates = [u for f in places.functions for u in _updates(_body(f), variable)]
        ends = frozenset(race for race in found if race.same_value or _is_of(race, updates))
        replacements = _rewritten(source, places, variable, updates) if ends else None
        if replacements is not None:
            lines = {f"atomic{u.name} in line {u.stmt.span.line}": None for u in updates}
            words = f"{' and '.join(lines) or 'atomicStore'} with {name} of {scalar.text}"
            yield Change(words, (scalar, *replacements), ends, len(ends), 0, effort=ATOMIC)


def _uses(function: typed.Function, name: str) -> list[typed.VarRef]:
    """List the mentions of a variable in memory by its name."""
    parts = [part for part in typed.every_expression(function) if isinstance(part, typed.VarRef)]
    return [part for part in parts if part.var.name == name and part.var.space in ("workgroup", "storage")]


def _scalar(source: Source, variable: typed.Variable) -> Replacement | None:
    """Return the change of the type in a declaration, of an integer or an array of integers."""
    if variable.access == "read":
        return None
    declared = re.compile(rf"\b{re.escape(variable.name)}\s*:\s*(?:array\s*<\s*)?([iu]32)\b(?=\s*[,>;])")
    found = declared.search(source.text, variable.span.start)
    return None if found is None else Replacement(found.start(1), found.end(1), f"atomic<{found[1]}>")


def _is_of(race: Race, updates: list[_Update]) -> bool:
    """Whether both accesses of a race are updates of a word."""

    def inside(start: int, end: int) -> bool:
        return any(
            u.stmt.span.start <= start
            and end <= u.stmt.span.end
            and (u.operand is None or not u.operand.span.start <= start < u.operand.span.end)
            for u in updates
        )

    return all(inside(span.start, span.end) for span in race.spans)


# ---- updates ----


def _body(function: typed.Function) -> typed.Block:
    assert function.body is not None
    return function.body


def _updates(block: typed.Block, variable: typed.Variable) -> Iterator[_Update]:
    for stmt in block.body:
        update = _update(stmt)
        if update is not None and _root(update.target) is variable and isinstance(_stored(update.target), t.Scalar):
            yield update
            continue
        for inner in typed.blocks(stmt):
            yield from _updates(inner, variable)


def _stored(ref: typed.Expr) -> t.Type:
    assert isinstance(ref.type, t.Reference)
    return ref.type.store


def _update(stmt: typed.Stmt) -> _Update | None:
    match stmt:
        case typed.CompoundAssign(target=target, builtin=builtin, value=value) if builtin.name in _ATOMIC:
            within = target.span.end <= value.span.start and value.span.end <= stmt.span.end
            step = stmt.span.text[target.span.end - stmt.span.start :].strip()
            if step in _ONE:
                return _Update(stmt, target, _ONE[step], None)
            return _Update(stmt, target, _ATOMIC[builtin.name], value) if within else None
        case typed.Assign(target=target, value=typed.BuiltinCall(builtin=builtin, args=[one, two])) if (
            builtin.name in _ATOMIC
        ):
            if _loads(one, target):
                return _Update(stmt, target, _ATOMIC[builtin.name], two)
            if _loads(two, target) and builtin.name in _COMMUTES:
                return _Update(stmt, target, _ATOMIC[builtin.name], one)
        case typed.If(
            condition=typed.BuiltinCall(builtin=builtin, args=[one, two]),
            then=typed.Block(body=[typed.Assign(target=target, value=value)]),
            orelse=None,
        ) if builtin.name in _GUARDS:
            if _loads(one, target) and two.span.text == value.span.text:
                return _Update(stmt, target, _GUARDS[builtin.name], value)
            if _loads(two, target) and one.span.text == value.span.text:
                return _Update(stmt, target, _GUARDS[_MIRRORED[builtin.name]], value)
        case _:
            pass
    return None


def _loads(expr: typed.Expr, target: typed.Expr) -> bool:
    """Whether an expression is the value of a target, written in the same way."""
    return isinstance(expr, typed.Load) and expr.ref.span.text == target.span.text


def _root(ref: typed.Expr) -> typed.Variable | None:
    """Return the variable of which a reference is the whole, or an element."""
    whole = ref.base if isinstance(ref, typed.Index) else ref
    return whole.var if isinstance(whole, typed.VarRef) else None


# ---- the other uses ----


def _rewritten(
    source: Source, places: Places, variable: typed.Variable, updates: list[_Update]
) -> tuple[Replacement, ...] | None:
    """Return the changes of all uses of a variable; None where one cannot be atomic."""
    of_statement = {u.stmt: u for u in updates}
    made: list[Replacement] = []
    uses = 0
    for function in places.functions:
        uses += len(_uses(function, variable.name))
        made_here, seen = _in_block(source, _body(function), variable, of_statement)
        made += made_here
        uses -= seen
    return tuple(made) if not uses else None


def _in_block(
    source: Source, block: typed.Block, variable: typed.Variable, updates: dict[typed.Stmt, _Update]
) -> tuple[list[Replacement], int]:
    """Return the changes of a block, and how many uses of the variable these cover."""
    made: list[Replacement] = []
    seen = 0
    for stmt in block.body:
        update = updates.get(stmt)
        parts: list[typed.Expr] = list(typed.operands(stmt))
        if update is not None:
            made += _call(source, stmt, f"atomic{update.name}", update.target, update.operand)
            seen += 2 if not isinstance(stmt, typed.CompoundAssign) else 1
            parts = [] if update.operand is None else [update.operand]
            parts += _indices(update.target)
        elif isinstance(stmt, typed.Assign) and _root(stmt.target) is variable:
            made += _call(source, stmt, "atomicStore", stmt.target, stmt.value)
            seen += 1
            parts = [stmt.value, *_indices(stmt.target)]
        for part in (each for operand in parts for each in typed.expressions(operand)):
            if isinstance(part, typed.Load) and _root(part.ref) is variable and isinstance(part.type, t.Scalar):
                start, end = part.ref.span.start, part.ref.span.end
                made += [Replacement(start, start, "atomicLoad(&"), Replacement(end, end, ")")]
                seen += 1
        if update is None or not isinstance(stmt, typed.If):
            for inner in typed.blocks(stmt):
                more, count = _in_block(source, inner, variable, updates)
                made += more
                seen += count
    return made, seen


def _indices(ref: typed.Expr) -> list[typed.Expr]:
    return [ref.index] if isinstance(ref, typed.Index) else []


def _call(
    source: Source, stmt: typed.Stmt, name: str, target: typed.Expr, operand: typed.Expr | None
) -> list[Replacement]:
    """Replace a statement by a call, around its target and its operand."""
    if isinstance(stmt, typed.If):
        assert operand is not None
        call = f"{name}(&{target.span.text}, {operand.span.text});"
        return [Replacement(stmt.span.start, stmt.span.end, call)]
    begin = Replacement(stmt.span.start, target.span.start, f"{name}(&")
    if operand is None:
        return [begin, Replacement(target.span.end, stmt.span.end, ", 1)")]
    return [
        begin,
        Replacement(target.span.end, operand.span.start, ", "),
        Replacement(operand.span.end, stmt.span.end, ")"),
    ]
