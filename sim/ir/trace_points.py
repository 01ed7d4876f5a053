"""What is traced: where in the source a watched variable gets a value. One row for each place, as it is inlined.

The lowering tells a `Tracer` of every write; where the variable is watched, an `ir.Note` follows the write. A tracer
that watches nothing leaves no notes, and the program is what it is without tracing.
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
    """One write of one scalar. `fresh`: the variable begins here, component `component` of it.

    What the machine notes as a place is a component number, or, of an `access` to workgroup memory, an address in its
    units; `component` is to be added. `write` numbers the writes: the points of one happen together.
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
    """Notes what is written to the variables called `name` (`function.name` for those of one function; None: to none).

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
        """A variable or value comes into being."""
        if variable.space in TRACEABLE and self._name in (variable.name, f"{self.function}.{variable.name}"):
            self._watched.add(variable)
            for i, value in enumerate(values):
                self._note(Point(variable, self.function, span, value.kind, self._writes, i, fresh=True), value)
            self._writes += 1

    def wrote(self, variable: Variable, values: Sequence[Value], at: Sequence[Value], span: Span) -> None:
        """Components of a function or private variable have been written; `at` are their numbers in it."""
        if self._watches(variable):
            for value, index in zip(values, at, strict=True):
                self._note(Point(variable, self.function, span, value.kind, self._writes), value, index)
            self._writes += 1

    def stored(
        self, variable: Variable, values: Sequence[Value], access: int, address: Value | None, span: Span
    ) -> None:
        """Units of workgroup memory, side by side, have been written."""
        if self._watches(variable):
            for i, value in enumerate(values):
                point = Point(variable, self.function, span, value.kind, self._writes, i, access)
                self._note(point, value, address)
            self._writes += 1

    def _watches(self, variable: Variable | None) -> bool:
        """Whether it is one that was seen to begin, or a workgroup variable of the name."""
        if self._name is None or variable is None:
            return False
        return variable in self._watched or (variable.space == "workgroup" and variable.name == self._name)

    def _note(self, point: Point, value: Value, address: Value | None = None) -> None:
        self._builder.append(ir.Note([value], len(self.points), address, point.access))
        self.points.append(point)


def check_name(name: str, pipeline: typed.Pipeline) -> None:
    """Raises `WgslError` where nothing that the entry point reaches has the name, or where it cannot be traced."""
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
    declared = [s.var for s in typed.statements(function.body) if isinstance(s, typed.VarDecl | typed.LetDecl)]
    return [v for v in (*function.params, *declared) if not isinstance(v.type, t.Pointer)]
