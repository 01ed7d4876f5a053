"""Variables that a loop body declares without an initial value, and may read before it writes them.

Such a variable is zero in each iteration. An implementation that does not reset it (naga, see `portability`) keeps the
value of the previous iteration, which is visible only in a read before a write. `read_first` finds those variables.

The walk passes once over what follows a declaration, with the parts of the variable (elements, components or members)
that every path has written. Where it cannot decide, it assumes a write: an index that is not constant covers every
part, a pointer to the variable writes it, and a loop has at least one iteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .. import typed
from .. import types as t

Parts = frozenset[int]  # written in this iteration
State = Parts | None  # None: unreachable
ANY: Parts = frozenset((-1,))  # one part, unknown which


def read_first(function: typed.Function) -> Iterator[typed.Variable]:
    """Iterate over the variables of a function that a loop may read first, in the order of the text."""
    if function.body is not None:
        yield from _declared(function.body, in_loop=False)


def _declared(block: typed.Block, in_loop: bool, loop: typed.Loop | None = None) -> Iterator[typed.Variable]:
    """Iterate over those in a block, which may be the body of `loop`."""
    for number, stmt in enumerate(block.body):
        if isinstance(stmt, typed.VarDecl) and stmt.init is None and in_loop:
            walk = _Walk(stmt.var)
            walk.rest(block.body[number + 1 :], loop)
            if walk.found:
                yield stmt.var
        for inner in typed.blocks(stmt):
            is_loop = isinstance(stmt, typed.Loop)
            yield from _declared(inner, in_loop or is_loop, stmt if is_loop and inner is stmt.body else None)


def _parts(type_: t.Type) -> int:
    match type_:
        case t.Struct(members=members):
            return len(members)
        case t.Array(count=count) if isinstance(count, int):
            return count
        case t.Vec(size=size):
            return size
        case t.Mat(cols=cols):
            return cols
        case _:
            return 1


class _Walk:
    """`found`: whether a part is read before it is written. `breaks` and `continues` have, for each enclosing loop or
    `switch`, the states in which control leaves it, and those in which it leaves an iteration."""

    def __init__(self, variable: typed.Variable) -> None:
        self._variable = variable
        self._all: Parts = frozenset(range(_parts(variable.type)))
        self._breaks: list[list[State]] = [[]]
        self._continues: list[list[State]] = [[]]
        self.found = False

    def rest(self, statements: list[typed.Stmt], loop: typed.Loop | None) -> None:
        """Walk what follows the declaration in its block, and the `continuing` of the `loop` whose body that is."""
        self._iteration(statements, loop, frozenset())

    # ---- statements ----

    def _iteration(self, statements: list[typed.Stmt], loop: typed.Loop | None, state: Parts) -> State:
        """Return the state after an iteration of a loop, of which these statements are the body or its end."""
        after = _joined([self._block(statements, state), *self._continues[-1]])
        if loop is None or after is None:
            return after
        after = self._block(loop.continuing.body if loop.continuing else (), after)
        return after if after is None else self._reads(loop.break_if, after)

    def _block(self, statements: Iterable[typed.Stmt], state: State) -> State:
        for stmt in statements:
            if state is None:
                break
            state = self._statement(stmt, state)
        return state

    def _statement(self, stmt: typed.Stmt, state: Parts) -> State:
        match stmt:
            case typed.Block(body=body):
                return self._block(body, state)
            case typed.Loop():
                return self._loop(stmt, state)
            case typed.Assign(target=target, value=value) | typed.CompoundAssign(target=target, value=value):
                after = self._reads(value, self._indices(target, state))
                if isinstance(stmt, typed.CompoundAssign):
                    self._read(target, after)
                stored = self._place(target)
                return after if stored is None else after | (self._all if stored == ANY else stored)
            case typed.Break():
                self._breaks[-1].append(state)
                return None
            case typed.Continue():
                self._continues[-1].append(state)
                return None
            case _:
                pass
        for operand in typed.operands(stmt):
            state = self._reads(operand, state)
        match stmt:
            case typed.Return() | typed.Discard():
                return None
            case typed.If(then=then, orelse=orelse):
                return _joined([self._block(then.body, state), self._block(orelse.body if orelse else (), state)])
            case typed.Switch(cases=cases):
                self._breaks.append([])
                ends = [self._block(case.body.body, state) for case in cases]
                return _joined([*ends, *self._breaks.pop()])
            case _:
                return state

    def _loop(self, loop: typed.Loop, state: Parts) -> State:
        self._breaks.append([])
        self._continues.append([])
        end = self._iteration(loop.body.body, loop, self._reads(loop.condition, state))
        self._continues.pop()
        leaves = loop.condition is not None or loop.break_if is not None
        return _joined([end if leaves else None, *self._breaks.pop()])

    # ---- expressions ----

    def _reads(self, expr: typed.Expr | None, state: Parts) -> Parts:
        """Visit the reads of an expression; return the state after it."""
        for part in () if expr is None else typed.expressions(expr):
            if isinstance(part, typed.Load):
                self._read(part.ref, state)
            elif isinstance(part, typed.AddressOf) and self._place(part.ref) is not None:
                state = self._all
        return state

    def _indices(self, target: typed.Expr, state: Parts) -> Parts:
        """Visit the reads of the indices in an assignment target; return the state after them."""
        while isinstance(target, (typed.Index, typed.Member, typed.Swizzle)):
            if isinstance(target, typed.Index):
                state = self._reads(target.index, state)
            target = target.base
        return state

    def _read(self, place: typed.Expr, state: Parts) -> None:
        parts = self._place(place)
        if parts is not None:
            self.found |= not (state if parts == ANY else parts <= state)

    def _place(self, place: typed.Expr) -> Parts | None:
        """Return the parts of the variable that a reference covers, `ANY` if unknown, None for another variable."""
        parts = self._all
        while isinstance(place, (typed.Index, typed.Member, typed.Swizzle)):
            match place:
                case typed.Index(index=typed.Const(value=value)):
                    parts = frozenset((int(value),))
                case typed.Index():
                    parts = ANY
                case typed.Member(index=index):
                    parts = frozenset((index,))
                case typed.Swizzle(components=components):
                    parts = frozenset(components)
            place = place.base
        return parts if isinstance(place, typed.VarRef) and place.var is self._variable else None


def _joined(states: Iterable[State]) -> State:
    """Return what all paths that reach a point have written."""
    known = [state for state in states if state is not None]
    return known[0].intersection(*known) if known else None
