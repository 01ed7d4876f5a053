"""Alias analysis: no call may access one variable in two ways if one of them writes.

Functions are analysed callees first. Each gets a summary of the module-scope variables and pointer parameters that it
reads and writes, also through calls. Spec: WGSL, "Alias Analysis".
"""

from __future__ import annotations

from dataclasses import field

from ...fast_dataclass import entity
from .. import typed
from .. import types as t
from ..diagnostics import Note, WgslError, fail
from ..source import Span


@entity
class Summary:
    """The roots (module-scope variables, pointer parameters) that a function reads and writes, each with a span."""

    reads: dict[typed.Variable, Span] = field(default_factory=dict[typed.Variable, Span])
    writes: dict[typed.Variable, Span] = field(default_factory=dict[typed.Variable, Span])


def check_aliasing(functions: list[typed.Function]) -> None:
    """Check `functions`, given callees first. Raises `WgslError`."""
    summaries: dict[typed.Function, Summary] = {}
    for function in typed.concerned(functions, {f for f in functions if _takes_pointer(f)}):
        summaries[function] = _Walk(function, summaries).summary


def _takes_pointer(function: typed.Function) -> bool:
    return any(isinstance(param.type, t.Pointer) for param in function.params)


class _Walk:
    """The analysis of one function: the root of each `let` pointer, and the accesses."""

    def __init__(self, function: typed.Function, summaries: dict[typed.Function, Summary]) -> None:
        self.summaries = summaries
        self.summary = Summary()
        self.roots: dict[typed.Variable, typed.Variable] = {}  # of let-declared pointers
        assert function.body is not None
        for stmt in typed.statements(function.body):
            self._statement(stmt)

    def _statement(self, stmt: typed.Stmt) -> None:
        for expr in typed.operands(stmt):
            for part in typed.expressions(expr):
                self._expression(part)
        match stmt:
            case typed.LetDecl() if isinstance(stmt.init.type, t.Pointer):
                root = self._root(stmt.init)
                if root is not None:
                    self.roots[stmt.var] = root
            case typed.Assign():
                self._note(self.summary.writes, stmt.target)
            case typed.CompoundAssign():
                self._note(self.summary.reads, stmt.target)
                self._note(self.summary.writes, stmt.target)
            case _:
                pass

    def _expression(self, part: typed.Expr) -> None:
        match part:
            case typed.Load():
                self._note(self.summary.reads, part.ref)
            case typed.BuiltinCall():
                reads, writes = _EFFECTS.get(part.builtin.name, (True, True))
                for arg in part.args:
                    if isinstance(arg.type, t.Pointer) and part.builtin.name not in _UNREAD:
                        if reads:
                            self._note(self.summary.reads, arg)
                        if writes:
                            self._note(self.summary.writes, arg)
            case typed.Call():
                self._call(part)
            case _:
                pass

    def _note(self, where: dict[typed.Variable, Span], view: typed.Expr) -> None:
        root = self._root(view)
        if root is not None:
            where.setdefault(root, view.span)

    def _root(self, view: typed.Expr) -> typed.Variable | None:
        """Return the root of a reference or pointer: a variable, or a pointer parameter."""
        while not isinstance(view, (typed.VarRef, typed.ValueRef)):
            inner = typed.children(view)
            if not inner:
                return None
            view = inner[0]
        return self.roots.get(view.var, view.var)

    def _call(self, call: typed.Call) -> None:
        callee = self.summaries[call.function]
        passed: dict[typed.Variable, tuple[typed.Variable, typed.Expr]] = {}
        for param, arg in zip(call.function.params, call.args, strict=True):
            root = self._root(arg) if isinstance(arg.type, t.Pointer) else None
            if root is None:
                continue
            if root in passed:
                self._check_two(call, callee, passed[root], (param, arg))
            else:
                passed[root] = (param, arg)
            self._check_global(call, callee, root, param, arg)
            # An access of the callee through its parameter is an access of this function to the root.
            for done, mine in ((callee.reads, self.summary.reads), (callee.writes, self.summary.writes)):
                if param in done:
                    mine.setdefault(root, arg.span)
        for done, mine in ((callee.reads, self.summary.reads), (callee.writes, self.summary.writes)):
            for variable in done:
                if variable.space not in (None, "function"):
                    mine.setdefault(variable, call.span)

    def _check_two(
        self,
        call: typed.Call,
        callee: Summary,
        first: tuple[typed.Variable, typed.Expr],
        second: tuple[typed.Variable, typed.Expr],
    ) -> None:
        for param, _ in (first, second):
            used = first[0] in callee.reads or first[0] in callee.writes
            used = used and (second[0] in callee.reads or second[0] in callee.writes)
            if param in callee.writes and used:
                other = Note("the other pointer to the same variable", first[1].span)
                raise _aliased(call, second[1], f"'{param.name}' is written", other, callee.writes[param])

    def _check_global(
        self, call: typed.Call, callee: Summary, root: typed.Variable, param: typed.Variable, arg: typed.Expr
    ) -> None:
        if root in callee.writes and (param in callee.reads or param in callee.writes):
            raise _aliased(call, arg, f"'{root.name}' is written", None, callee.writes[root])
        if root in callee.reads and param in callee.writes:
            raise _aliased(call, arg, f"'{param.name}' is written", None, callee.writes[param])


_UNREAD = ("arrayLength", "bufferLength", "bufferView", "bufferArrayView")  # they only look at the pointer
# Whether builtins with a pointer argument read and write the memory that it points to. The others do both.
_EFFECTS = {"atomicLoad": (True, False), "atomicStore": (False, True), "workgroupUniformLoad": (True, False)}


def _aliased(call: typed.Call, arg: typed.Expr, written: str, other: Note | None, where: Span) -> WgslError:
    message = f"'{call.function.name}' could reach the same variable in two ways, and write it"
    notes = [note for note in (other, Note(f"{written} here", where)) if note]
    return fail("aliased-pointer", message, arg.span, *notes)
