"""Trace where the value of a name flows in a module's syntax tree: into an array's size, its indices, or elsewhere.

This distinguishes a row pitch from a constant with other uses. Names are resolved by function, not by block: a name
that is declared twice in one function counts as one name, which can only add uses, never miss any.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import field, fields
from functools import cache
from typing import Any, cast

from ...sim.fast_dataclass import entity, frozen
from ...sim.wgsl.source import Span
from ...sim.wgsl.syntax import tree as s

COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">=", "&&", "||"))


@frozen
class Sink:
    """The destination of a value.

    `kind` is `index` or `size` of the array `name`; `name` for another name in `function` ("" at module scope); or
    `other`.
    """

    kind: str
    name: str = ""
    function: str = ""


OTHER = Sink("other")


@frozen
class Use:
    """One use of a name. `factor`: the value is multiplied on its way to the sink."""

    sink: Sink
    factor: bool
    span: Span


@entity
class ValueUses:
    """All uses of one name's value. `elsewhere`: uses other than in the size or an index of the array."""

    sized: bool = False
    indexed: bool = False
    multiplied: bool = False
    elsewhere: list[Span] = field(default_factory=list[Span])


class Flow:
    """The uses of every name of a module."""

    def __init__(self, module: s.Module) -> None:
        self.functions = {d.name: d for d in module.decls if isinstance(d, s.Function)}
        self.uses: dict[tuple[str, str], list[Use]] = defaultdict(list)  # by (function, name)
        self._given: dict[Sink, list[tuple[str, s.Expr]]] = defaultdict(list)  # values, with the functions they are in
        self._function = ""
        self._locals: set[str] = set()
        for decl in module.decls:
            if isinstance(decl, s.GlobalDecl):
                self._global(decl)
            elif isinstance(decl, s.Function):
                self._enter(decl)
            else:
                self._all(decl)

    def reach(self, name: str, array: str, function: str = "") -> ValueUses:
        """Find all uses of a name, at module scope or in `function`, with respect to `array`."""
        found = ValueUses()
        todo, seen = [(function, name)], {(function, name)}
        for key in todo:
            for use in self.uses[key]:
                sink = use.sink
                found.multiplied |= use.factor
                if sink.kind == "name":
                    if (sink.function, sink.name) not in seen:
                        seen.add((sink.function, sink.name))
                        todo.append((sink.function, sink.name))
                elif sink.name != array or sink.kind == "other":
                    found.elsewhere.append(use.span)
                else:
                    found.sized |= sink.kind == "size"
                    found.indexed |= sink.kind == "index"
        return found

    def sources(self, array: str) -> Iterator[s.Expr]:
        """Yield each expression whose value decides an index of `array`, directly or through names and calls."""
        todo, seen = [Sink("index", array)], {Sink("index", array)}
        for sink in todo:
            for function, value in self._given[sink]:
                yield value
                for node in nodes(value):
                    if isinstance(node, s.Ident):
                        for where in (function, ""):
                            named = Sink("name", node.name, where)
                            if named not in seen:
                                seen.add(named)
                                todo.append(named)

    def offsets(self, array: str) -> Iterator[s.Expr]:
        """Yield each value of a `let` or a parameter that is added to indices of `array`, and has no other use."""
        for function in self.functions.values():
            for node in nodes(function.body):
                given: list[tuple[str, str, s.Expr | None]] = []
                if isinstance(node, s.LocalDecl) and node.keyword == "let":
                    given = [(function.name, node.name, node.init)]
                elif isinstance(node, s.Call) and node.callee.name in self.functions:
                    callee = self.functions[node.callee.name]
                    given = [(callee.name, p.name, arg) for p, arg in zip(callee.params, node.args, strict=False)]
                for where, name, value in given:
                    found = self.reach(name, array, where)
                    if value is not None and found.indexed and not (found.multiplied or found.elsewhere):
                        yield value

    # ---- declarations and statements ----

    def _global(self, decl: s.GlobalDecl) -> None:
        for attribute in decl.attributes:
            self._all(attribute)
        if decl.keyword == "var":
            self._expr(decl.type, Sink("size", decl.name))
            self._expr(decl.init, OTHER)
        else:
            self._give(decl.init, Sink("name", decl.name))

    def _enter(self, function: s.Function) -> None:
        self._function = function.name
        declared = (n.name for n in nodes(function.body) if isinstance(n, s.LocalDecl))
        self._locals = {*declared, *(p.name for p in function.params)}
        self._all(function)
        self._function, self._locals = "", set()

    def _all(self, node: s.Node) -> None:
        """Visit a declaration, a statement or an attribute, and everything in it."""
        match node:
            case s.LocalDecl():
                self._expr(node.type, OTHER)
                self._give(node.init, Sink("name", node.name, self._function))
            case s.Assign(target=s.Ident(name=name)) if name in self._locals:
                self._give(node.value, Sink("name", name, self._function), node.op == "*=")
            case s.Increment(target=s.Ident()):
                pass
            case s.Return():
                self._give(node.value, Sink("name", self._function))
            case s.Expr():
                self._expr(node, OTHER)
            case _:
                for part in parts(node):
                    self._all(part)

    # ---- expressions ----

    def _give(self, node: s.Expr | None, sink: Sink, factor: bool = False) -> None:
        """Visit an expression whose value goes to a sink."""
        if node is not None:
            self._given[sink].append((self._function, node))
        self._expr(node, sink, factor)

    def _expr(self, node: s.Expr | None, sink: Sink, factor: bool = False) -> None:
        match node:
            case s.Ident():
                where = self._function if node.name in self._locals else ""
                self.uses[where, node.name].append(Use(sink, factor, node.span))
                for arg in node.args or ():
                    self._expr(arg, sink if sink.kind == "size" else OTHER, factor)
            case s.Call(callee=callee, args=args) if callee.name in self.functions:
                self.uses["", callee.name].append(Use(sink, factor, callee.span))
                for param, arg in zip(self.functions[callee.name].params, args, strict=False):
                    self._give(arg, Sink("name", param.name, callee.name))
            case s.Index(base=base, index=index):
                self._expr(base, OTHER)
                root = root_of(base)
                self._give(index, OTHER if root is None or root in self._locals else Sink("index", root))
            case s.Binary(op=op, left=left, right=right):
                # A divisor or an operand of a comparison is more than a distance between rows.
                through = OTHER if op in COMPARISONS else sink
                self._expr(left, through, factor or op == "*")
                self._expr(right, OTHER if op in ("/", "%") else through, factor or op == "*")
            case s.Expr():
                for part in parts(node):
                    if isinstance(part, s.Expr):
                        self._expr(part, sink, factor)
            case None:
                pass


def parts(node: s.Node) -> Iterator[s.Node]:
    """Yield the nodes directly within a node."""
    for name in _fields_of(type(node)):
        value: Any = getattr(node, name)
        items = cast(list[Any], value) if isinstance(value, list) else [value]
        for item in items:
            if isinstance(item, s.Node):
                yield item


@cache
def _fields_of(kind: type[s.Node]) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))


def nodes(node: s.Node) -> Iterator[s.Node]:
    """Yield a node and everything in it."""
    yield node
    for part in parts(node):
        yield from nodes(part)


def root_of(node: s.Expr) -> str | None:
    """Return the name at the root of `name[i].x[j]`, None if the root is not a name."""
    while isinstance(node, s.Index | s.Member):
        node = node.base
    return node.name if isinstance(node, s.Ident) else None
