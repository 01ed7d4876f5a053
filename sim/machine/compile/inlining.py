"""Inline functions in Numba's IR, and shorten that IR, before types are inferred.

Numba has the like (`inline="always"`), but goes through all its passes for each place, and copies twice. Here a piece
is read once. Constants of modules are looked up, the truth of a branch is asked for once, and where a piece never
changes a parameter, that is the argument itself: fewer statements, each of which costs Numba as much as ten of LLVM's.
"""

# Numba and llvmlite have no types, so strict checks would find only unknowns.
# pyright: basic

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from copy import copy
from functools import cache
from itertools import count
from types import FunctionType, ModuleType
from typing import Any

from numba.core import bytecode, interpreter, ir

COMPILED: dict[Any, Any] = {}  # by plain functions, which compiled ones may call
Bodies = dict[int, list[Any]]  # the statements of each block, by its label, in the order of the text


class Piece:
    """A function without code of its own: its statements stand where it is called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function


@cache
def _read(piece: Piece) -> Any:
    """The IR of a piece."""
    identity = bytecode.FunctionIdentity.from_function(piece.function)
    function = interpreter.Interpreter(identity).interpret(bytecode.ByteCode(func_id=identity))
    for block in function.blocks.values():
        *_, before, end = [None, *block.body]
        if isinstance(end, ir.Return) and _is(before, "cast"):  # to the one type of all results, which SSA does, too
            end.value = before.value.value
    fill(function)
    return function


def fill(function: Any) -> None:
    """Shorten a function's IR, and put all pieces in their places."""
    constants = _shorten(function)
    bodies = _merged(_expanded(function, constants))
    _drop_unused(bodies)
    labels = {label: i for i, label in enumerate(bodies)}
    scope = next(iter(function.blocks.values())).scope
    function.blocks = {}
    for label, (*body, end) in bodies.items():
        block = function.blocks[labels[label]] = ir.Block(scope, end.loc)
        block.body = [*body, _led(end, labels)]


def _is(statement: Any, what: str) -> bool:
    """Whether a statement assigns the value of such an expression."""
    return isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Expr) and statement.value.op == what


def _led(end: Any, labels: dict[int, int]) -> Any:
    """The end of a block, which leads to blocks that have other labels now."""
    if isinstance(end, ir.Jump):
        return ir.Jump(labels[end.target], end.loc)
    if isinstance(end, ir.Branch):
        return ir.Branch(end.cond, labels[end.truebr], labels[end.falsebr], end.loc)
    return end


# ---- pieces ------------------------------------------------------------------------------------------


def _expanded(function: Any, constants: dict[str, Any]) -> Bodies:
    """All statements, those of pieces among them."""
    bodies: Bodies = {}
    fresh, places = count(max(function.blocks) + 1), count()
    for label, block in sorted(function.blocks.items()):
        here, body = label, []
        for each in block.body:
            piece = constants.get(each.value.func.name) if _is(each, "call") else None
            if not isinstance(piece, Piece):
                body.append(each)
                continue
            after, place = next(fresh), _Place(_read(piece), each, block.scope, next(places))
            labels = {label: next(fresh) for label in place.piece.blocks}
            bodies[here] = [*body, *place.changed(), ir.Jump(labels[0], each.loc)]
            for inner, part in place.piece.blocks.items():
                bodies[labels[inner]] = list(place.statements(part.body, labels, after))
            here, body = after, []
        bodies[here] = body
    return bodies


class _Place:
    """Where a piece is called, and its variables there."""

    def __init__(self, piece: Any, call: Any, scope: Any, number: int) -> None:
        self.piece, self._call, self._scope, self._number = piece, call, scope, number
        given = call.value.args
        if len(given) != piece.arg_count or call.value.kws or call.value.vararg:
            raise TypeError(f"{piece.func_id.func_name} takes {piece.arg_count} arguments, by position: {call.loc}")
        written = Counter(each.target.name for b in piece.blocks.values() for each in b.body if _assigns(each))
        self._arguments = dict(zip(piece.arg_names, given, strict=True))
        self._names = {name: var for name, var in self._arguments.items() if written[name] == 1}

    def changed(self) -> Iterator[Any]:
        """The piece's own variables for those parameters that it changes."""
        for name, var in self._arguments.items():
            if name not in self._names:
                yield ir.Assign(var, self._named(name), self._call.loc)

    def statements(self, body: list[Any], labels: dict[int, int], after: int) -> Iterator[Any]:
        """Those of one of its blocks."""
        for each in body:
            if isinstance(each, ir.Return):
                yield ir.Assign(self._copied(each.value), self._call.target, each.loc)
                yield ir.Jump(after, each.loc)
            elif not (_assigns(each) and isinstance(each.value, ir.Arg)):
                yield _led(self._copied(each), labels)

    def _copied(self, value: Any) -> Any:
        """What is like it, with the variables of this place."""
        if isinstance(value, ir.Var):
            return self._named(value.name)
        if isinstance(value, list | tuple):
            return type(value)(self._copied(each) for each in value)
        if isinstance(value, ir.Expr):
            return ir.Expr(value.op, value.loc, **{k: self._copied(v) for k, v in value._kws.items()})
        if isinstance(value, ir.Stmt):
            made = copy(value)
            vars(made).update({k: self._copied(v) for k, v in vars(value).items()})
            return made
        return value

    def _named(self, name: str) -> Any:
        if name not in self._names:
            self._names[name] = self._scope.define(f"${name}~{self._number}", self._call.loc)
        return self._names[name]


def _assigns(statement: Any) -> bool:
    return isinstance(statement, ir.Assign)


def _merged(bodies: Bodies) -> Bodies:
    """Merge each block into the only one that leads to it, and leave out blocks that are never reached."""
    first = next(iter(bodies))
    reached, waiting = Counter([first]), [first]
    while waiting:
        for target in bodies[waiting.pop()][-1].get_targets():
            reached[target] += 1
            if reached[target] == 1:
                waiting.append(target)
    bodies = {label: body for label, body in bodies.items() if label in reached}
    for label in list(bodies):
        body = bodies.get(label)
        while body and isinstance(body[-1], ir.Jump) and reached[body[-1].target] == 1 and body[-1].target != first:
            body[-1:] = bodies.pop(body[-1].target)
    return bodies


# ---- shorter -----------------------------------------------------------------------------------------


def _shorten(function: Any) -> dict[str, Any]:
    """Look up constants of modules, and leave it to branches whether a number is 0. Returns what variables are known
    to hold."""
    constants: dict[str, Any] = {}
    for block in function.blocks.values():
        end = block.body[-1]
        for each in filter(_assigns, block.body):
            value: Any = each.value
            if _is(each, "getattr") and isinstance(module := constants.get(value.value.name), ModuleType):
                each.value = value = ir.Global(value.attr, getattr(module, value.attr), each.loc)
            elif _is(each, "call") and constants.get(value.func.name) is bool and _decides(each.target, end):
                each.value = end.cond = value.args[0]
            if isinstance(value, ir.Global) and isinstance(value.value, FunctionType):
                each.value = value = ir.Global(value.name, COMPILED.get(value.value, value.value), each.loc)
            if isinstance(value, ir.Global | ir.FreeVar):
                constants[each.target.name] = value.value
            elif isinstance(value, ir.Var) and value.name in constants:  # what waits while a choice is made
                constants[each.target.name] = constants[value.name]
    return constants


def _decides(variable: Any, end: Any) -> bool:
    """Whether only a branch reads it."""
    return isinstance(end, ir.Branch) and end.cond.name == variable.name and variable.is_temp


def _drop_unused(bodies: Bodies) -> None:
    """Leave out unused values."""
    uses = Counter(var.name for body in bodies.values() for each in body for var in _used(each))
    dropping = True
    while dropping:
        dropping = False
        for body in bodies.values():
            kept = []
            for each in reversed(body):
                if _is_pure(each) and uses[each.target.name] == 0:
                    uses.subtract(var.name for var in _used(each))
                    dropping = True
                else:
                    kept.append(each)
            body[:] = reversed(kept)


def _used(statement: Any) -> list[Any]:
    """The variables that a statement reads."""
    if not _assigns(statement):
        return statement.list_vars()
    value = statement.value
    return [value] if isinstance(value, ir.Var) else value.list_vars() if isinstance(value, ir.Expr) else []


def _is_pure(statement: Any) -> bool:
    """Whether a statement assigns a constant or another variable, without side effects."""
    if not _assigns(statement):
        return False
    return isinstance(statement.value, ir.Global | ir.FreeVar | ir.Const | ir.Var) or _is(statement, "cast")
