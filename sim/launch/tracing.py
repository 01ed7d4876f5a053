"""Traces: the changes of one variable, from the notes that the machine takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..fast_dataclass import sealed
from ..ir.access import Access
from ..ir.register_bits import from_bits
from ..ir.trace_points import Point
from ..machine import layout as at
from ..wgsl import types as t
from ..wgsl.source import Span
from ..wgsl.typed import Pipeline, Variable

_SHOWN = 8  # components of a new composite


@sealed
class Trace:
    """What to trace: a `var` or `let`, parameter, private or workgroup variable, by name or as `function.name`.

    `lanes` are local invocation indices, None for all; `limit` is the largest number of values that are noted.
    """

    variable: str
    workgroup: tuple[int, int, int] = (0, 0, 0)
    lanes: tuple[int, ...] | None = (0,)
    limit: int = 1 << 18


@sealed
class TraceRow:
    """One change, made by invocation `lane` at `span`, in `function`.

    `name` is the variable, or the part of it that changed (`v.x`, `tile[3].y`). `old` is None for the initial value.
    `new` is a number or bool; for the initial value of a composite, the tuple of all its components. `function` is
    empty for the initial value of a private variable.
    """

    lane: int
    name: str
    old: Any
    new: Any
    function: str
    span: Span

    @property
    def line(self) -> int:
        """1-based line in its original file."""
        return self.span.line

    def __str__(self) -> str:
        place = self.span.place
        change = f"= {_shown(self.new)}" if self.old is None else f"{_shown(self.old)} -> {_shown(self.new)}"
        where = f"  in {self.function}" if self.function else ""
        return f"{place.file}:{place.line}: lane {self.lane}: {self.name} {change}{where}"


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        more = ", …" if len(items) > _SHOWN else ""
        return f"({', '.join(map(_shown, items[:_SHOWN]))}{more})"
    return str(value).lower() if isinstance(value, bool) else f"{value:.9g}" if isinstance(value, float) else str(value)


def rows(
    notes: NDArray[np.int64], points: list[Point], accesses: list[Access], pipeline: Pipeline, trace: Trace
) -> list[TraceRow]:
    """Extract the changes from the machine's notes, ordered by write, lane and component."""
    replay = _Replay(points, accesses, pipeline)
    found = [row for write in _writes(notes, points) for row in replay.write(write)]
    return [row for row in found if trace.lanes is None or row.lane in trace.lanes]


def _writes(notes: NDArray[np.int64], points: list[Point]) -> Iterator[list[list[int]]]:
    """Group the notes by execution of a write, each group sorted by lane."""
    written: list[list[int]] = []
    last = -1  # point of the last note
    seen: set[tuple[int, int]] = set()
    rows: list[list[int]] = notes.tolist()
    for note in rows:
        point, lane = note[at.NOTE_POINT], note[at.NOTE_LANE]
        again = (point, lane) in seen
        if written and (again or points[last].write != points[point].write):
            yield sorted(written, key=lambda one: one[at.NOTE_LANE])
            written, seen = [], set()
        written.append(note)
        last = point
        seen.add((point, lane))
    if written:
        yield sorted(written, key=lambda one: one[at.NOTE_LANE])


class _Replay:
    """Replays the writes of a variable to find what each of them changed."""

    def __init__(self, points: list[Point], accesses: list[Access], pipeline: Pipeline) -> None:
        self._points = points
        self._accesses = accesses
        self._pipeline = pipeline
        self._state: dict[tuple[Variable, int, int], int] = {}  # bits, by variable, lane and component
        self._paths: dict[Variable, list[str]] = {}
        self._places: dict[Variable, dict[int, int]] = {}  # component by byte

    def write(self, notes: list[list[int]]) -> Iterator[TraceRow]:
        """Yield the rows of one execution of a write."""
        begun: dict[int, list[Any]] = {}
        for number, lane, place, bits in notes:
            point = self._points[number]
            variable = point.variable
            component = self._component(point, place)
            owner = -1 if variable.space == "workgroup" else lane
            old = self._state.get((variable, owner, component), 0 if owner < 0 else None)
            self._state[variable, owner, component] = bits
            if point.fresh:
                value = _number(point.kind, bits)
                begun.setdefault(lane, []).append(value)
                if len(begun[lane]) == len(self._components(variable)):
                    new = begun[lane]
                    whole = tuple(new) if len(new) > 1 else value
                    yield TraceRow(lane, variable.name, None, whole, point.function, point.span)
            elif bits != old:
                name = variable.name + self._components(variable)[component]
                before = None if old is None else _number(point.kind, old)
                yield TraceRow(lane, name, before, _number(point.kind, bits), point.function, point.span)

    def _component(self, point: Point, place: int) -> int:
        if point.access < 0:
            return place + point.component
        access = self._accesses[point.access]
        byte = (place + access.offset + point.component) * access.unit
        self._components(point.variable)
        return self._places[point.variable][byte]

    def _components(self, variable: Variable) -> list[str]:
        """Return the path of each component of a variable, in order."""
        if variable not in self._paths:
            parts = list(_parts(self._pipeline.store_types.get(variable, variable.type), "", 0))
            self._paths[variable] = [path for path, _ in parts]
            self._places[variable] = {byte: i for i, (_, byte) in enumerate(parts)}
        return self._paths[variable]


def _parts(type_: t.Type, path: str, byte: int) -> Iterator[tuple[str, int]]:
    """Yield path and byte offset of every scalar of a type, in the order of `types.flatten`."""
    match type_:
        case t.Vec(size=size, elem=elem):
            for i in range(size):
                yield f"{path}.{'xyzw'[i]}", byte + i * t.size_of(elem)
        case t.Mat(cols=count, rows=size, elem=elem):
            for i in range(count):
                yield from _parts(t.Vec(size, elem), f"{path}[{i}]", byte + i * t.stride_of(type_))
        case t.Array(elem=elem, count=int(count)):
            for i in range(count):
                yield from _parts(elem, f"{path}[{i}]", byte + i * t.stride_of(type_))
        case t.Struct(members=members):
            for member in members:
                yield from _parts(member.type, f"{path}.{member.name}", byte + member.offset)
        case _:
            yield path, byte


def _number(kind: str, bits: int) -> Any:
    value = from_bits(kind, bits).item()
    return bool(value) if kind == "bool" else value
