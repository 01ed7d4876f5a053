"""Statements, with every kind of control flow. All loops end, and an invocation writes only what belongs to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from bankshot.sim.wgsl import types as t

from .expressions import WHOLE_KINDS, Expressions, Function
from .scopes import Root, routes

Lines = list[str]

ARITHMETIC, BITS, SHIFTS = ("+", "-", "*", "/", "%"), ("&", "|", "^"), ("<<", ">>")
# Of an element for each operation, so that order cannot matter.
ATOMICS = ("atomicAdd", "atomicMax", "atomicMin", "atomicAnd", "atomicOr", "atomicXor")
_MOST_TURNS = 3


@dataclass(frozen=True, slots=True)
class Flow:
    """Where a statement stands: in a loop, where `break` is a statement, in a function that returns `result`."""

    looping: bool = False
    breaking: bool = False
    result: t.Type | None = None


@dataclass(frozen=True, slots=True)
class Counters:
    """A variable that is an array of atomics, an element for each of `ATOMICS`."""

    name: str
    elem: t.Scalar


class Statements(Expressions):
    """Writes statements. `counters`: what atomics may be applied to here."""

    _names = 0

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        self.counters: list[Counters] = []

    def fresh(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"

    # ---- blocks ----

    def block(self, depth: int, flow: Flow, most: int = 3) -> Lines:
        """Some statements in a scope of their own."""
        self.scope.push()
        lines = [line for _ in range(self.choice.between(1, most)) for line in self.statement(depth, flow)]
        self.scope.pop()
        return lines

    def statement(self, depth: int, flow: Flow) -> Lines:
        kinds: list[Callable[[int, Flow], Lines]] = [self._assign, self._declare, self._update, self._declare]
        if self.counters:
            kinds.append(self._atomic)
        if any(self.callable(f) for f in self.functions):
            kinds.append(self._called)
        if flow.breaking or flow.looping or flow.result:
            kinds.append(self._leave)
        if depth > 0:
            kinds += [self._if, self._if, self._for, self._while, self._loop, self._switch, self._braces]
        return self.choice.of(kinds)(depth, flow)

    # ---- simple ones ----

    def _declare(self, depth: int, flow: Flow) -> Lines:
        type_, name = self.type(), self.fresh("v")
        match self.choice.below(4):
            case 0:
                line, root = f"let {name} = {self.value(type_, 2)};", Root(name, type_)
            case 1:
                line, root = f"var {name}: {type_};", self._variable(name, type_)
            case 2 if targets := [r for r in self.roots() if r.space == "function"]:
                target = self.choice.of(targets)
                root = replace(target, text=f"(*{name})", space=None)
                line = f"let {name} = &{target.text};"
            case _:
                line, root = f"var {name} = {type_}({self.value(type_, 2)});", self._variable(name, type_)
        self.scope.add(root)
        return [line]

    def _variable(self, name: str, type_: t.Type) -> Root:
        return Root(name, type_, writable=True, space="function", owner=name)

    def target(self) -> tuple[str, t.Type] | None:
        """Something to assign to: a variable, or a part of one."""
        roots = [root for root in self.roots() if root.writable]
        if not roots:
            return None
        root = self.choice.of(roots)
        type_ = self.choice.of(whole_and_parts(root.type))
        return self.place(root, self.choice.of(routes(root.type, type_))), type_

    def _assign(self, depth: int, flow: Flow) -> Lines:
        target = self.target()
        if target is None:
            return [f"_ = {self.moving(self.type(), 2)};"]
        place, type_ = target
        return [f"{place} = {self.value(type_, 2)};"]

    def _update(self, depth: int, flow: Flow) -> Lines:
        """`+=` and the like, and `++`."""
        target = self.target()
        if target is None or not isinstance(target[1], t.Scalar | t.Vec | t.Mat) or t.element_of(target[1]) == t.BOOL:
            return self._assign(depth, flow)
        place, type_ = target
        whole = t.element_of(type_) in WHOLE_KINDS
        if type_ in WHOLE_KINDS and self.choice.chance(20):
            return [f"{place}{self.choice.of(('++', '--'))};"]
        if isinstance(type_, t.Mat):
            return [f"{place} {self.choice.of(('+', '-'))}= {self.value(type_, 1)};"]
        operator = self.choice.of((*ARITHMETIC, *BITS, *SHIFTS) if whole else ARITHMETIC)
        if operator in SHIFTS:
            shift = t.with_element(type_, t.U32)
            amount = self.moving(shift)
            return [f"{place} {operator}= {amount if shift == t.U32 else f'({amount} & {shift}(31u))'};"]
        return [f"{place} {operator}= {self.moving(type_, 2) if operator in '/%' else self.value(type_, 2)};"]

    def _atomic(self, depth: int, flow: Flow) -> Lines:
        array, number = self.choice.of(self.counters), self.choice.below(len(ATOMICS))
        name = "atomicSub" if number == 0 and self.choice.chance(30) else ATOMICS[number]
        return [f"{name}(&{array.name}[{number}], {self.value(array.elem, 2)});"]

    def _called(self, depth: int, flow: Flow) -> Lines:
        function = self.choice.of([f for f in self.functions if self.callable(f)])
        return [f"_ = {self.call(function, 2)};" if self.choice.chance(50) else f"{self.call(function, 2)};"]

    def _leave(self, depth: int, flow: Flow) -> Lines:
        words = ["break;"] * flow.breaking + ["continue;"] * flow.looping
        if flow.result:
            words.append(f"return {self.value(flow.result, 1)};")
        return self._when([self.choice.of(words)])

    def _when(self, lines: Lines) -> Lines:
        return [f"if {self.moving(t.BOOL, 2)} {{", *lines, "}"]

    # ---- control flow ----

    def _braces(self, depth: int, flow: Flow) -> Lines:
        return ["{", *self.block(depth - 1, flow), "}"]

    def _if(self, depth: int, flow: Flow) -> Lines:
        lines = [f"if {self.value(t.BOOL, 2)} {{", *self.block(depth - 1, flow)]
        if self.choice.chance(20):
            lines += [f"}} else if {self.value(t.BOOL, 2)} {{", *self.block(depth - 1, flow)]
        if self.choice.chance(40):
            lines += ["} else {", *self.block(depth - 1, flow)]
        return [*lines, "}"]

    def _limit(self) -> str:
        """How many turns."""
        return (
            f"({self.value(t.U32, 1)} & {_MOST_TURNS}u)" if self.choice.chance(60) else f"{self.choice.between(1, 3)}u"
        )

    def _for(self, depth: int, flow: Flow) -> Lines:
        k, limit, inside = self.fresh("k"), self._limit(), replace(flow, looping=True, breaking=True)
        self.scope.push()
        self.scope.add(Root(k, t.U32))
        body = self.block(depth - 1, inside)
        self.scope.pop()
        return [f"for (var {k} = 0u; {k} < {limit}; {k}++) {{", *body, "}"]

    def _while(self, depth: int, flow: Flow) -> Lines:
        k, limit, inside = self.fresh("k"), self._limit(), replace(flow, looping=True, breaking=True)
        self.scope.add(Root(k, t.U32))
        return [f"var {k} = 0u;", f"while {k} < {limit} {{", f"{k}++;", *self.block(depth - 1, inside), "}"]

    def _loop(self, depth: int, flow: Flow) -> Lines:
        k, limit, inside = self.fresh("k"), self._limit(), replace(flow, looping=True, breaking=True)
        self.scope.add(Root(k, t.U32))
        body = self.block(depth - 1, inside)
        start = [f"var {k} = 0u;", "loop {", f"if {k} >= {limit} {{ break; }}"]
        if not self.choice.chance(60):
            return [*start, f"{k}++;", *body, "}"]
        last = [f"break if {self.moving(t.BOOL)};"] if self.choice.chance(50) else []
        more = self.block(0, Flow())
        return [*start, *body, "continuing {", f"{k}++;", *more, *last, "}", "}"]

    def _switch(self, depth: int, flow: Flow) -> Lines:
        kind, inside = self.choice.of(WHOLE_KINDS), replace(flow, breaking=True)
        suffix = "u" if kind == t.U32 else "i"
        numbers = iter(range(8))
        cases = [
            ", ".join(f"{next(numbers)}{suffix}" for _ in range(self.choice.between(1, 2)))
            for _ in range(self.choice.between(0, 2))
        ]
        heads = [f"case {case} {{" for case in cases]
        default = "default {" if self.choice.chance(70) else f"case {next(numbers)}{suffix}, default {{"
        heads.insert(self.choice.below(len(heads) + 1), default)
        selector = self.moving(kind, 2)
        lines = [line for head in heads for line in (head, *self.block(depth - 1, inside), "}")]
        return [f"switch {selector} & {_MOST_TURNS}{suffix} {{", *lines, "}"]

    # ---- functions ----

    def function(self, alone: bool, outside: list[Root]) -> Lines:
        """A function that may call those before it, to be called by those after it. `outside`: what it can name."""
        choice, name, result = self.choice, self.fresh("fun"), self.type()
        params = (t.U32, *(self.type() for _ in range(choice.between(0, 3))))
        spaces = (None, "function", "private") if alone else (None,)
        pointers = (None, *(choice.of(spaces) for _ in params[1:]))
        written = []
        self.scope.push()
        self.scope.add(*outside)
        for number, (param, space) in enumerate(zip(params, pointers, strict=True)):
            written.append(f"p{number}: {param if space is None else f'ptr<{space}, {param}>'}")
            text = f"p{number}" if space is None else f"(*p{number})"
            self.scope.add(Root(text, param, writable=space is not None))
        every, self.functions = self.functions, [f for f in self.functions if f.alone or not alone]
        body = self.block(2, Flow(result=result))
        last = f"return {self.value(result, 2)};"
        self.functions = [*every, Function(name, params, pointers, result, alone)]
        self.scope.pop()
        return [f"fn {name}({', '.join(written)}) -> {result} {{", *body, last, "}"]


def whole_and_parts(type_: t.Type) -> list[t.Type]:
    """A type and those of its parts."""
    match type_:
        case t.Vec():
            return [type_, type_.elem]
        case t.Mat():
            return [type_, t.Vec(type_.rows, type_.elem), type_.elem]
        case t.Array():
            return [type_, *whole_and_parts(type_.elem)]
        case t.Struct():
            return [type_, *(part for member in type_.members for part in whole_and_parts(member.type))]
        case _:
            return [type_]
