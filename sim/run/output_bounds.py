"""How far other conforming implementations may be from a run's outputs, derived by a rerun with error bounds.

`instrument.error_bounds` says what conforms and how bounds are computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..bindings.binding import Bound, Key, Output, is_array, scalars
from ..bindings.buffers import hide, words
from ..bindings.texture_arrays import BoundTexture
from ..fast_dataclass import sealed
from ..findings.finding import Finding
from ..findings.table import ROUNDING
from ..instrument.error_bounds import Doubt, Instrumented
from ..wgsl import types as t

if TYPE_CHECKING:
    from .dispatch import Dispatch

_NEVER = 0xFFFFFFFF


@sealed
class Bounds(Mapping[Key, NDArray[np.float64]]):
    """For each output the largest |conforming result - result of this run|, infinite where it is unbounded.

    An array has the shape of its output; for bytes and structured arrays it is flat, with an element for each 32-bit
    word. The bound of an integer is 0 or infinite. `findings` are the branches and conversions that rounding could have
    decided otherwise.
    """

    outputs: dict[Key, NDArray[np.float64]]
    findings: tuple[Finding, ...]

    def __getitem__(self, key: Key) -> NDArray[np.float64]:
        return self.outputs[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self.outputs)

    def __len__(self) -> int:
        return len(self.outputs)


def derive_bounds(dispatch: Dispatch, outputs: Mapping[Key, Output]) -> Bounds:
    """Run `dispatch` with bounds. Raises `WgslError` where the run itself does."""
    subnormal = frozenset(b.variable.name for b in dispatch.bound if _has_subnormals(b))
    program, instrumented = dispatch.build_with_bounds(subnormal)
    hidden = hide(instrumented.shadows, dispatch.bound, np.float32)
    notes = words(instrumented.notes, _first_notes(instrumented))
    launch = dispatch.launch(program, [*dispatch.bound, *hidden.values(), notes])
    launch.run()
    output = launch.output(notes)
    lost = {v for v, word in zip(instrumented.lost, output, strict=False) if word}
    bounds: dict[Key, NDArray[np.float64]] = {}
    for bound in dispatch.bound:
        if isinstance(bound, BoundTexture):
            if bound.writable:  # the rounding of formats is not modelled
                bounds[bound.key] = np.full(np.shape(outputs[bound.key]), np.inf)
        elif bound.writable:
            parts = {s.unit: launch.output(hidden[s]) for s in hidden if s.of is bound.variable}
            units = _per_unit(bound, parts)
            units[_differ(bound, outputs[bound.key], launch.output(bound)) | (bound.variable in lost)] = np.inf
            bounds[bound.key] = units.reshape(_shape(bound))
    return Bounds(bounds, tuple(_findings(instrumented, output[len(instrumented.lost) :].reshape(-1, 2), dispatch)))


# ---- what goes in --------------------------------------------------------------------------------------------


def _has_subnormals(bound: Bound) -> bool:
    """Whether any float in a buffer may be subnormal; where it also holds integers, any word."""
    kinds = scalars(bound.type)  # none, of a texture
    words, halves = bound.data.view(np.uint32), bound.data.view(np.uint16)
    small = t.F32 in kinds and bool(np.any(((words & 0x7F800000) == 0) & ((words & 0x7FFFFF) != 0)))
    return small or (t.F16 in kinds and bool(np.any(((halves & 0x7C00) == 0) & ((halves & 0x3FF) != 0))))


def _first_notes(instrumented: Instrumented) -> NDArray[np.uint32]:
    return np.array([0] * len(instrumented.lost) + [0, _NEVER] * len(instrumented.doubts), np.uint32)


# ---- what comes out ------------------------------------------------------------------------------------------


def _unit(bound: Bound) -> int:
    """Return the bytes of an element that has a bound of its own."""
    given = _plain(bound)
    return 2 if given is not None and given.dtype.itemsize == 2 else 4


def _plain(bound: Bound) -> NDArray[Any] | None:
    """Return the array that was given, unless its dtype is structured."""
    return bound.given if is_array(bound.given) and bound.given.dtype.names is None else None


def _shape(bound: Bound) -> tuple[int, ...]:
    given = _plain(bound)
    return given.shape if given is not None and given.dtype.itemsize == _unit(bound) else (-1,)


def _per_unit(bound: Bound, parts: Mapping[int, NDArray[np.float32]]) -> NDArray[np.float64]:
    unit = _unit(bound)
    units = np.zeros(len(bound.data) // unit)
    for width, part in parts.items():
        known = np.where(np.isnan(part), np.inf, part.astype(np.float64))
        known = known.reshape(-1, 2).max(axis=1) if width < unit else np.repeat(known, width // unit)
        units = np.maximum(units, known)
    units[_integers(bound, unit) & (units > 0)] = np.inf
    return units


def _integers(bound: Bound, unit: int) -> NDArray[np.bool_]:
    """Return a mask of the elements that are integers."""
    marks = np.zeros(len(bound.data) // 2, np.bool_)
    _mark(marks, bound.type)
    return marks[:: unit // 2]


def _mark(marks: NDArray[np.bool_], type_: t.Type) -> None:
    """Mark the integers of a type at the start of `marks`, one for each two bytes."""
    match type_:
        case t.Struct(members=members):
            for member in members:
                _mark(marks[member.offset // 2 :], member.type)
        case t.Array(elem=elem):
            stride = t.stride_of(type_) // 2
            each = np.zeros(stride, np.bool_)
            _mark(each, elem)
            whole = len(marks) // stride if type_.count is None else t.size_of(type_) // 2 // stride
            marks[: whole * stride] = np.tile(each, whole)
        case _:
            marks[: t.size_of(type_) // 2] = t.element_of(type_) in t.INTEGERS


def _differ(bound: Bound, one: Output, other: Output) -> NDArray[np.bool_]:
    """Return a mask of the elements whose bits differ in the run with bounds: by a race, or the order of atomics."""
    words = [np.frombuffer(np.ascontiguousarray(x).tobytes(), f"<u{_unit(bound)}") for x in (one, other)]
    return words[0] != words[1]


def _findings(instrumented: Instrumented, notes: NDArray[np.uint32], dispatch: Dispatch) -> Iterator[Finding]:
    """Yield a finding for each place in the source, however often it was inlined."""
    places: dict[Doubt, list[tuple[int, int]]] = {}
    for doubt, (count, first) in zip(instrumented.doubts, notes, strict=False):
        if count:
            places.setdefault(doubt, []).append((int(count), int(first)))
    for doubt, times in places.items():
        group, lane = divmod(min(first for _, first in times), dispatch.lanes)
        x, y, _ = dispatch.grid
        yield ROUNDING.make(
            doubt.span,
            count=sum(count for count, _ in times),
            workgroup=(group % x, group // x % y, group // (x * y)),
            lanes=(lane,),
            what=doubt.what,
        )
