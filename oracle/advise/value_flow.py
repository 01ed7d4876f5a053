"""Where the value of a name goes in a module's syntax tree: into an array's size, into its indices, or elsewhere.

It is what tells a row pitch from a number that means more. Names are told apart by function, not by block: a name that
is declared twice in one function counts as one, which can only find more uses, never fewer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, fields

from ...sim.fast_dataclass import frozen
from ...sim.wgsl.source import Span
from ...sim.wgsl.syntax import tree as s

COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">=", "&&", "||"))


@frozen
class Sink:
    """What a value goes into. `kind`: `index` of, or `size` of, the array `name`; `name`, another name, in `function`
    ("" at module scope); or `other`."""

    kind: str
    name: str = ""
    function: str = ""


OTHER = Sink("other")


@frozen
class Use:
    """One place where a name stands. `factor`: the value is multiplied on its way."""

    sink: Sink
    factor: bool
    span: Span


@dataclass
class Reach:
    """Everything that the value of one name comes to. `elsewhere`: uses that are no size and no index of the array."""

    sized: bool = False
    indexed: bool = False
    multiplied: bool = False
    elsewhere: list[Span] = field(default_factory=list)


class Flow:
    """The uses of every name of a module."""

    def __init__(self, module: s.Module) -> None:
        self.functions = {d.name: d for d in module.decls if isinstance(d, s.Function)}
        self.uses: dict[tuple[str, str], list[Use]] = defaultdict(list)  # by (function, name)
        self._function = ""
        self._locals: set[str] = set()
        for decl in module.decls:
            if isinstance(decl, s.GlobalDecl):
                self._global(decl)
            elif isinstance(decl, s.Function):
                self._enter(decl)
            else:
                self._all(decl)

    def reach(self, name: str, array: str) -> Reach:
        """What becomes of the module-scope constant `name`, seen from `array`."""
        found = Reach()
        todo, seen = [("", name)], {("", name)}
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

    # ---- declarations and statements ----

    def _global(self, decl: s.GlobalDecl) -> None:
        for attribute in decl.attributes:
            self._all(attribute)
        if decl.keyword == "var":
            self._expr(decl.type, Sink("size", decl.name))
            self._expr(decl.init, OTHER)
        else:
            self._expr(decl.init, Sink("name", decl.name))

    def _enter(self, function: s.Function) -> None:
        self._function = function.name
        declared = (n.name for n in nodes(function.body) if isinstance(n, s.LocalDecl))
        self._locals = {*declared, *(p.name for p in function.params)}
        self._all(function)
        self._function, self._locals = "", set()

    def _all(self, node: s.Node) -> None:
        """A declaration, a statement or an attribute, and all in it."""
        match node:
            case s.LocalDecl():
                self._expr(node.type, OTHER)
                self._expr(node.init, Sink("name", node.name, self._function))
            case s.Assign(target=s.Ident(name=name)) if name in self._locals:
                self._expr(node.value, Sink("name", name, self._function), node.op == "*=")
            case s.Increment(target=s.Ident()):
                pass
            case s.Return():
                self._expr(node.value, Sink("name", self._function))
            case s.Expr():
                self._expr(node, OTHER)
            case _:
                for part in parts(node):
                    self._all(part)

    # ---- expressions ----

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
                    self._expr(arg, Sink("name", param.name, callee.name))
            case s.Index(base=base, index=index):
                self._expr(base, OTHER)
                root = root_of(base)
                self._expr(index, OTHER if root is None or root in self._locals else Sink("index", root))
            case s.Binary(op=op, left=left, right=right):
                # What is divided by, or compared with, says more than how far rows lie apart.
                through = OTHER if op in COMPARISONS else sink
                self._expr(left, through, factor or op == "*")
                self._expr(right, OTHER if op in ("/", "%") else through, factor or op == "*")
            case s.Expr():
                for part in parts(node):
                    if isinstance(part, s.Expr):
                        self._expr(part, sink, factor)


def parts(node: s.Node) -> Iterator[s.Node]:
    """The nodes directly within a node."""
    for each in fields(node):
        value = getattr(node, each.name)
        for item in value if isinstance(value, list) else (value,):
            if isinstance(item, s.Node):
                yield item


def nodes(node: s.Node) -> Iterator[s.Node]:
    """A node and everything in it."""
    yield node
    for part in parts(node):
        yield from nodes(part)


def root_of(node: s.Expr) -> str | None:
    """The name at the bottom of `name[i].x[j]`; None where there is none."""
    while isinstance(node, s.Index | s.Member):
        node = node.base
    return node.name if isinstance(node, s.Ident) else None
