"""Random WGSL functions with every kind of control flow, and a plain interpreter that computes their results.

A program is a tree of tuples. `render` writes it as WGSL, `interpret` runs it for one invocation: a second, much
simpler implementation of the statements that lowering must get right when lanes diverge. All values are u32.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

Tree = tuple[Any, ...]
WORD = 0xFFFFFFFF
ELEMENTS = 4  # of the arrays `q` (function) and `z` (private)
LOGGED = 24  # values that an invocation may log; the last place takes all that come after

_OPERATORS = ("+", "-", "*", "^", "&", "|")
_COMPARISONS = ("<", "==", ">=", "!=")
_PRIVATE = ("p", "r")
_ARRAYS = ("z", "q")


@dataclass
class Program:
    """`functions[i]` may call those before it; each takes `x` and returns a value."""

    functions: list[list[Tree]] = field(default_factory=list)
    main: list[Tree] = field(default_factory=list)


# ---- making ------------------------------------------------------------------------------------------


class Maker:
    """Makes programs from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._counters = 0
        self._names: tuple[str, ...] = ()
        self._callable = 0
        self._arrays: tuple[str, ...] = ()

    def program(self) -> Program:
        program = Program()
        self._names, self._arrays = ("x", "y", *_PRIVATE), ("z",)
        for self._callable in range(2):
            body = [*self._body(2, False, False), ("return", self._expr(1))]
            program.functions.append(body)
        self._names, self._arrays, self._callable = ("a", "b", "c", "d", *_PRIVATE), _ARRAYS, 2
        program.main = self._body(3, False, False) + self._body(3, False, False)
        return program

    def _body(self, depth: int, looping: bool, leaving: bool) -> list[Tree]:
        return [self._statement(depth, looping, leaving) for _ in range(self._random.randint(1, 4))]

    def _statement(self, depth: int, looping: bool, leaving: bool) -> Tree:
        """`looping`: inside a loop, so that `continue` is allowed; `leaving`: `break` is."""
        pick, flat = self._random.random(), depth == 0
        if looping and pick < 0.06:
            return ("continue",)
        if leaving and pick < 0.12:
            return ("break",)
        if pick < 0.15:
            return ("return", self._expr(1))
        if flat or pick < 0.55:
            return self._simple()
        if pick < 0.75:
            orelse = self._body(depth - 1, looping, leaving) if self._random.random() < 0.5 else []
            return ("if", self._condition(2), self._body(depth - 1, looping, leaving), orelse)
        if pick < 0.9:
            return self._loop(depth)
        return self._switch(depth, looping)

    def _simple(self) -> Tree:
        name, array = self._random.choice(self._names), self._random.choice(self._arrays)
        return self._random.choice(
            [
                ("set", name, self._expr(2)),
                ("update", name, self._random.choice(_OPERATORS), self._expr(2)),
                ("put", array, ("binary", "+", self._name(), self._expr(1)), self._expr(2)),  # may be outside
                ("log", self._expr(2)),
                ("through", name, self._expr(1)),
            ]
        )

    def _loop(self, depth: int) -> Tree:
        self._counters += 1
        continuing = [self._simple() for _ in range(self._random.randint(0, 2))]
        break_if = self._condition(1) if self._random.random() < 0.4 else None
        limit = self._random.choice([("number", self._random.randint(1, 3)), self._few()])
        body = self._body(depth - 1, True, True)
        word = self._random.choice(("loop", "while", "for"))
        if word != "loop":
            continuing, break_if = [], None
        return (word, f"i{self._counters}", limit, body, continuing, break_if)

    def _few(self) -> Tree:
        return ("binary", "&", self._name(), ("number", 3))

    def _switch(self, depth: int, looping: bool) -> Tree:
        values = iter(self._random.sample(range(4), 4))
        cases = [
            ([next(values) for _ in range(self._random.randint(1, 2))], self._body(depth - 1, looping, True))
            for _ in range(self._random.randint(0, 2))
        ]
        cases.insert(self._random.randint(0, len(cases)), (None, self._body(depth - 1, looping, True)))
        return ("switch", self._few(), cases)

    def _expr(self, depth: int) -> Tree:
        pick = self._random.random()
        if depth == 0 or pick < 0.25:
            return self._random.choice([self._name(), ("number", self._random.randint(0, 5))])
        if pick < 0.7:
            left = self._random.choice([self._name(), self._parenthesized(depth)])
            return ("binary", self._random.choice(_OPERATORS), left, self._expr(depth - 1))
        if pick < 0.8:
            return ("element", self._random.choice(self._arrays), self._few())
        if pick < 0.92 and self._callable:
            return ("call", self._random.randrange(self._callable), self._expr(depth - 1))
        if pick < 0.96:
            return ("copied", self._random.choice(self._arrays), self._few())
        return ("bump", self._random.choice([n for n in self._names if n not in _PRIVATE]), self._expr(depth - 1))

    def _parenthesized(self, depth: int) -> Tree:
        return ("binary", self._random.choice(_OPERATORS), self._name(), self._expr(depth - 1))

    def _name(self) -> Tree:
        return ("name", self._random.choice(self._names))

    def _condition(self, depth: int) -> Tree:
        if depth and self._random.random() < 0.35:
            return ("logic", self._random.choice(("&&", "||")), self._condition(depth - 1), self._condition(depth - 1))
        right = self._random.choice([("number", self._random.randint(0, 3)), self._few()])
        return ("compare", self._random.choice(_COMPARISONS), self._random.choice([self._few(), self._expr(1)]), right)


# ---- as WGSL -----------------------------------------------------------------------------------------


def render(program: Program, workgroup_size: int) -> str:
    """The module: each invocation logs to its own piece of `out`, and starts from its words of `given`."""
    functions = [
        f"fn f{i}(x: u32) -> u32 {{\n  var y = x + 1u;\n{_block(body, 'return {}')}\n}}"
        for i, body in enumerate(program.functions)
    ]
    return "\n".join(
        [
            "@group(0) @binding(0) var<storage, read_write> out: array<u32>;",
            "@group(0) @binding(1) var<storage, read> given: array<u32>;",
            "@group(0) @binding(2) var<uniform> same: u32;",
            f"var<private> p = 2u; var<private> r: u32; var<private> z: array<u32, {ELEMENTS}>;",
            "var<private> place: u32; var<private> start: u32;",
            f"fn log(v: u32) {{ out[start + place] = v; place = min(place + 1u, {LOGGED - 1}u); }}",
            "fn bump(t: ptr<function, u32>, by: u32) -> u32 {",
            "  if (*t & 1u) == 1u { *t += by; return *t; }",
            "  let old = *t; *t ^= 5u; return old + by;",
            "}",
            *functions,
            f"@compute @workgroup_size({workgroup_size})",
            "fn main(@builtin(global_invocation_id) g: vec3u) {",
            f"  start = g.x * {LOGGED}u;",
            f"  var a = given[g.x]; var b = same; var c = 1u; var d = g.x; var q: array<u32, {ELEMENTS}>;",
            _block(program.main, "log({}); return"),
            "  log(a); log(b); log(c); log(d); log(p); log(r); log(q[1]); log(z[2]);",
            "}",
        ]
    ).replace("var y = x + 1u;", "var x_ = x; var y = x + 1u;")


def _block(body: list[Tree], leave: str) -> str:
    return "\n".join(_statement(s, leave) for s in body)


def _statement(s: Tree, leave: str) -> str:
    match s:
        case ("set", name, value):
            return f"{_name(name)} = {_wgsl(value)};"
        case ("update", name, op, value):
            return f"{_name(name)} {op}= {_wgsl(value)};"
        case ("put", array, index, value):
            return f"{array}[{_wgsl(index)}] = {_wgsl(value)};"
        case ("log", value):
            return f"log({_wgsl(value)});"
        case ("through", name, value):
            return f"{{ let t = &{_name(name)}; *t = *t + {_wgsl(value)}; }}"
        case ("if", condition, then, orelse):
            other = f" else {{\n{_block(orelse, leave)}\n}}" if orelse else ""
            return f"if {_wgsl(condition)} {{\n{_block(then, leave)}\n}}{other}"
        case ("loop", counter, limit, body, continuing, break_if):
            last = f"\nbreak if {_wgsl(break_if)};" if break_if else ""
            return (
                f"var {counter} = 0u;\nloop {{\nif {counter} >= {_wgsl(limit)} {{ break; }}\n{counter}++;\n"
                f"{_block(body, leave)}\ncontinuing {{\n{_block(continuing, leave)}{last}\n}}\n}}"
            )
        case ("while", counter, limit, body, _, _):
            head = f"var {counter} = 0u;\nwhile {counter} < {_wgsl(limit)}"
            return f"{head} {{\n{counter}++;\n{_block(body, leave)}\n}}"
        case ("for", counter, limit, body, _, _):
            head = f"for (var {counter} = 0u; {counter} < {_wgsl(limit)}; {counter}++)"
            return f"{head} {{\n{_block(body, leave)}\n}}"
        case ("switch", selector, cases):
            written = "\n".join(f"{_case(values)} {{\n{_block(body, leave)}\n}}" for values, body in cases)
            return f"switch {_wgsl(selector)} {{\n{written}\n}}"
        case ("return", value):
            return leave.format(_wgsl(value)) + ";"
        case (word,):
            return f"{word};"
    raise ValueError(s)


def _case(values: list[int] | None) -> str:
    return "default" if values is None else "case " + ", ".join(f"{v}u" for v in values)


def _name(name: str) -> str:
    return "x_" if name == "x" else name


def _wgsl(e: Tree) -> str:
    match e:
        case ("name", name):
            return _name(name)
        case ("number", value):
            return f"{value}u"
        case ("binary" | "compare", op, left, right):
            return f"({_wgsl(left)} {op} {_wgsl(right)})"
        case ("logic", op, left, right):
            return f"({_wgsl(left)} {op} {_wgsl(right)})"
        case ("element", array, index):
            return f"{array}[{_wgsl(index)}]"
        case ("copied", array, index):
            return f"array({', '.join(f'{array}[{i}]' for i in range(ELEMENTS))})[{_wgsl(index)}]"
        case ("call", number, argument):
            return f"f{number}({_wgsl(argument)})"
        case ("bump", name, value):
            return f"bump(&{_name(name)}, {_wgsl(value)})"
    raise ValueError(e)


# ---- as it is meant ----------------------------------------------------------------------------------


def interpret(program: Program, given: int, same: int, invocation: int) -> list[int]:
    """What one invocation logs."""
    run = _Run(program)
    run.scope = {"a": given, "b": same, "c": 1, "d": invocation, "q": [0] * ELEMENTS}
    left = run.body(program.main)
    if left:
        run.log(left[1])
    else:
        for name in "abcdpr":
            run.log(run.read(name))
        run.log(run.read("q")[1])
        run.log(run.read("z")[2])
    return run.logged


class _Run:
    def __init__(self, program: Program) -> None:
        self._functions = program.functions
        self._private: dict[str, Any] = {"p": 2, "r": 0, "z": [0] * ELEMENTS}
        self.scope: dict[str, Any] = {}
        self.logged = [0] * LOGGED
        self._place = 0

    def read(self, name: str) -> Any:
        return self._home(name)[name]

    def _home(self, name: str) -> dict[str, Any]:
        return self._private if name in self._private else self.scope

    def log(self, value: int) -> None:
        self.logged[self._place] = value
        self._place = min(self._place + 1, LOGGED - 1)

    def body(self, statements: list[Tree]) -> Tree | None:
        """Run in order; the jump that ends them early, if one does."""
        for s in statements:
            jump = self._statement(s)
            if jump:
                return jump
        return None

    def _statement(self, s: Tree) -> Tree | None:
        match s:
            case ("set", name, value):
                self._home(name)[name] = self._value(value)
            case ("update", name, op, value):
                old = self.read(name)
                self._home(name)[name] = _apply(op, old, self._value(value))
            case ("put", array, index, value):
                at = min(self._value(index), ELEMENTS - 1)
                self.read(array)[at] = self._value(value)
            case ("log", value):
                self.log(self._value(value))
            case ("through", name, value):
                old = self.read(name)
                self._home(name)[name] = _apply("+", old, self._value(value))
            case ("if", condition, then, orelse):
                return self.body(then if self._value(condition) else orelse)
            case ("loop" | "while" | "for", *_):
                return self._loop(s)
            case ("switch", selector, cases):
                chosen = self._value(selector)
                default = next(body for values, body in cases if values is None)
                jump = self.body(next((body for values, body in cases if values and chosen in values), default))
                return None if jump == ("break",) else jump
            case ("return", value):
                return ("return", self._value(value))
            case _:
                return s
        return None

    def _loop(self, loop: Tree) -> Tree | None:
        _, _, limit, body, continuing, break_if = loop
        turn = 0
        while turn < self._value(limit):
            turn += 1
            jump = self.body(body)
            if jump == ("break",):
                return None
            if jump and jump[0] == "return":
                return jump
            self.body(continuing)
            if break_if and self._value(break_if):
                return None
        return None

    def _value(self, e: Tree) -> int:
        match e:
            case ("name", name):
                return self.read(name)
            case ("number", value):
                return value
            case ("binary" | "compare", op, left, right):
                first = self._value(left)
                return _apply(op, first, self._value(right))
            case ("logic", op, left, right):
                first = self._value(left)
                return self._value(right) if bool(first) == (op == "&&") else first
            case ("element", array, index):
                return self.read(array)[min(self._value(index), ELEMENTS - 1)]
            case ("call", number, argument):
                return self._call(number, self._value(argument))
            case ("copied", array, index):
                elements = list(self.read(array))
                return elements[self._value(index)]
            case ("bump", name, value):
                return self._bump(name, self._value(value))
        raise ValueError(e)

    def _bump(self, name: str, by: int) -> int:
        old = self.read(name)
        self._home(name)[name] = (old + by) & WORD if old & 1 else old ^ 5
        return (old + by) & WORD

    def _call(self, number: int, argument: int) -> int:
        outer, self.scope = self.scope, {"x": argument, "y": (argument + 1) & WORD}
        jump = self.body(self._functions[number])
        self.scope = outer
        assert jump is not None
        return jump[1]


_MEANINGS = {
    "+": lambda a, b: (a + b) & WORD,
    "-": lambda a, b: (a - b) & WORD,
    "*": lambda a, b: (a * b) & WORD,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "<": lambda a, b: int(a < b),
    "==": lambda a, b: int(a == b),
    ">=": lambda a, b: int(a >= b),
    "!=": lambda a, b: int(a != b),
}


def _apply(op: str, left: int, right: int) -> int:
    return _MEANINGS[op](left, right)
