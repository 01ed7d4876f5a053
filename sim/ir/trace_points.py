"""Trace points: the writes of a traced variable, one row per write as inlined.

Lowering reports every write to a `Tracer`, which appends an `ir.Note` after each write of the traced variable. Without
a variable to trace it appends nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..fast_dataclass import frozen
from ..wgsl import typed
from ..wgsl import types as t
from ..wgsl.diagnostics import did_you_mean, fail
from ..wgsl.source import Span
from ..wgsl.typed import Variable
from . import ir
from .builder import Builder
from .ir import Value

TRACEABLE = ("function", "private", "workgroup", None)  # None: let and parameters


@frozen
class Point:
    """One write of one scalar. `fresh`: the declaration, which gives component `component` its first value.

    The machine notes a component number, or for an `access` to workgroup memory an address in its units; add
    `component` to either. `write` numbers the writes: its points happen together.
    """

    variable: Variable
    function: str
    span: Span
    kind: str  # of the scalar
    write: int
    component: int = 0
    access: int = -1
    fresh: bool = False


class Tracer:
    """Notes writes to the variables called `name`: `function.name` for those of one function, None for no variable.

    `function` is the name of the function that is being lowered.
    """

    def __init__(self, builder: Builder, name: str | None) -> None:
        self.points: list[Point] = []
        self.function = ""
        self._builder = builder
        self._name = name
        self._writes = 0
        self._watched: set[Variable] = set()

    def begun(self, variable: Variable, values: Sequence[Value], span: Span) -> None:
        """Note the first value of a variable, `let` or parameter."""
        if variable.space in TRACEABLE and self._name in (variable.name, f"{self.function}.{variable.name}"):
            self._watched.add(variable)
            for i, value in enumerate(values):
                self._note(Point(variable, self.function, span, value.kind, self._writes, i, fresh=True), value)
            self._writes += 1

    def wrote(self, variable: Variable, values: Sequence[Value], at: Sequence[Value], span: Span) -> None:
        """Note a write of components of a function or private variable; `at` are their numbers."""
        if self._watches(variable):
            for value, index in zip(values, at, strict=True):
                self._note(Point(variable, self.function, span, value.kind, self._writes), value, index)
            self._writes += 1

    def stored(
        self, variable: Variable, values: Sequence[Value], access: int, address: Value | None, span: Span
    ) -> None:
        """Note a write of adjacent units of workgroup memory."""
        if self._watches(variable):
            for i, value in enumerate(values):
                point = Point(variable, self.function, span, value.kind, self._writes, i, access)
                self._note(point, value, address)
            self._writes += 1

    def _watches(self, variable: Variable | None) -> bool:
        """Whether it is traced: by its declaration, or as a workgroup variable of the name."""
        if self._name is None or variable is None:
            return False
        return variable in self._watched or (variable.space == "workgroup" and variable.name == self._name)

    def _note(self, point: Point, value: Value, address: Value | None = None) -> None:
        self._builder.append(ir.Note([value], len(self.points), address, point.access))
        self.points.append(point)


def check_name(name: str, pipeline: typed.Pipeline) -> None:
    """Raise `WgslError` if the entry point reaches no variable of the name, or if it cannot be traced."""
    named = {v.name: v for v in pipeline.globals}
    for function in typed.reached(pipeline.entry):
        for variable in _locals(function):
            named.setdefault(variable.name, variable)
            named[f"{function.name}.{variable.name}"] = variable
    if name not in named:
        names = [n for n, v in named.items() if "." not in n and v.space in TRACEABLE]
        hint = did_you_mean(name, named) or f"there are: {', '.join(names) or 'none'}"
        raise fail("unknown-variable", f"'{pipeline.entry.name}' reaches no variable '{name}'", None, hint=hint)
    variable = named[name]
    if variable.space not in TRACEABLE:
        message = f"'{name}' is in {variable.space} memory, and only variables of a workgroup can be traced"
        raise fail("not-traceable", message, variable.span)


def _locals(function: typed.Function) -> list[Variable]:
    assert function.body is not None
    declared = [s.var for s in typed.statements(function.body) if isinstance(s, (typed.VarDecl, typed.LetDecl))]
    return [v for v in (*function.params, *declared) if not isinstance(v.type, t.Pointer)]
