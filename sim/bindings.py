"""What a kernel is given, as bytes, and what it leaves, as it was given.

Arrays, bytes, scalars and small sequences go in by variable name or by (group, binding); sizes, dtypes and access modes
are checked before anything runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .wgsl import types as t
from .wgsl.diagnostics import WgslError, fail
from .wgsl.typed import Pipeline, Variable

Key = str | tuple[int, int]
_DTYPES = {"f32": "<f4", "i32": "<i4", "u32": "<u4", "f16": "<f2"}


@dataclass(frozen=True)
class Bound:
    """One binding: its variable, its store type, the key and value it was given as, and its bytes."""

    variable: Variable
    type: t.Type
    key: Key
    given: Any
    data: NDArray[np.uint8]

    @property
    def writable(self) -> bool:
        return self.variable.space == "storage" and self.variable.access in ("read_write", "write")

    @property
    def item_bytes(self) -> int:
        """Bytes of one element as it was given; 1 of bytes."""
        if isinstance(self.given, np.ndarray):
            return self.given.dtype.itemsize
        return 1 if isinstance(self.given, bytes | bytearray | memoryview) else 4

    def output(self, data: NDArray[np.uint8]) -> Any:
        """These bytes in the form in which the binding was given."""
        if isinstance(self.given, bytes | bytearray | memoryview):
            return data.tobytes()
        if isinstance(self.given, np.ndarray):
            return data.view(self.given.dtype).reshape(self.given.shape).copy()
        scalars = {t.KIND[s] for s in t.flatten(self.type)} if t.is_constructible(self.type) else set()
        return data.view(_DTYPES[scalars.pop()] if len(scalars) == 1 else np.uint8).copy()


def bind(pipeline: Pipeline, given: Mapping[Key, Any]) -> list[Bound]:
    """Match what is given with what the entry point uses. Raises `WgslError` naming the binding."""
    wanted = [v for v in pipeline.globals if v.binding is not None]
    by_key: dict[Key, Variable] = {v.name: v for v in wanted} | {v.binding: v for v in wanted if v.binding}
    declared = {v.name for v in pipeline.module.globals} | {v.binding for v in pipeline.module.globals}
    for key in given:
        if key not in by_key and key not in declared:
            raise _unknown(key, wanted)
    bound = []
    for variable in wanted:
        keys: list[Key] = [k for k in (variable.name, variable.binding) if k is not None and k in given]
        if not keys:
            raise _missing(variable, pipeline.store_types[variable])
        bound.append(_bound(variable, pipeline.store_types[variable], keys[0], given[keys[0]]))
    return bound


def _unknown(key: Key, wanted: list[Variable]) -> WgslError:
    names = ", ".join(v.name for v in wanted) or "none"
    close = get_close_matches(key, [v.name for v in wanted], 1) if isinstance(key, str) else []
    hint = f"did you mean {close[0]}?" if close else f"the entry point uses: {names}"
    return fail("unknown-binding", f"the shader has no binding {key!r}", None, hint=hint)


def _missing(variable: Variable, type_: t.Type) -> WgslError:
    group, binding = variable.binding or (0, 0)
    return fail(
        "missing-binding",
        f"nothing is bound to {variable.name}, which is @group({group}) @binding({binding}), {variable.space}, {type_}",
        variable.span,
        hint=f"give it by name, {variable.name}=…, or as ({group}, {binding})",
    )


def _bound(variable: Variable, type_: t.Type, key: Key, value: Any) -> Bound:
    if variable.space not in ("storage", "uniform"):
        raise fail("unsupported", f"the simulator cannot bind {variable.name} ({type_}) yet", variable.span)
    data = _as_bytes(variable, type_, value)
    least = t.min_binding_size(type_)
    if len(data) < least:
        what = "at least " if _is_runtime(type_) else ""
        raise fail(
            "binding-size",
            f"{variable.name} has {len(data)} bytes, and {type_} needs {what}{least}",
            variable.span,
            hint=_padding_hint(type_),
        )
    if len(data) % 4:
        raise fail(
            "binding-size", f"{variable.name} has {len(data)} bytes, which is not a multiple of 4", variable.span
        )
    return Bound(variable, type_, key, value, data)


def _is_runtime(type_: t.Type) -> bool:
    return not t.has_fixed_footprint(type_)


def _padding_hint(type_: t.Type) -> str | None:
    element = type_.elem if isinstance(type_, t.Array) else type_
    if isinstance(element, t.Vec) and element.size == 3:
        return f"in memory a vec3<{element.elem}> takes the room of a vec4"
    return None


def _as_bytes(variable: Variable, type_: t.Type, value: Any) -> NDArray[np.uint8]:
    if isinstance(value, bytes | bytearray | memoryview):
        return np.frombuffer(bytes(value), np.uint8)
    if isinstance(value, np.ndarray):
        _check_dtype(variable, type_, value)
        return np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8)
    return _packed(variable, type_, value)


def _check_dtype(variable: Variable, type_: t.Type, value: NDArray[Any]) -> None:
    """A plain dtype must be that of the shader's scalars (or bytes); a structured one is taken at its word."""
    kinds = {t.KIND[s] for s in _scalars(type_)}
    if value.dtype.names or value.dtype == np.uint8 or len(kinds) != 1:
        return
    wanted = np.dtype(_DTYPES[kinds.pop()])
    both_words = value.dtype.kind in "iu" and wanted.kind in "iu"
    if value.dtype.itemsize == wanted.itemsize and (value.dtype.kind == wanted.kind or both_words):
        return
    raise fail(
        "binding-dtype",
        f"{variable.name} is {value.dtype}, and {type_} holds {wanted.name}",
        variable.span,
        hint=f"pass {variable.name}.astype(np.{wanted.name}), or its bytes",
    )


def _scalars(type_: t.Type) -> set[t.Scalar]:
    match type_:
        case t.Scalar():
            return {type_}
        case t.Atomic(elem=elem) | t.Array(elem=elem) | t.Vec(elem=elem) | t.Mat(elem=elem):
            return _scalars(elem)
        case t.Struct(members=members):
            return {s for m in members for s in _scalars(m.type)}
        case _:
            return set()


def _packed(variable: Variable, type_: t.Type, value: Any) -> NDArray[np.uint8]:
    """Scalars and nested sequences, laid out as the shader wants them."""
    if not t.is_constructible(type_) and not isinstance(type_, t.Atomic):
        raise fail(
            "binding-dtype",
            f"{variable.name} is a {type(value).__name__}, and {type_} needs a NumPy array or bytes",
            variable.span,
        )
    places = list(_places(type_, 0))
    numbers = list(_numbers(value))
    if len(numbers) != len(places):
        raise fail(
            "binding-size", f"{variable.name} has {len(numbers)} values, and {type_} needs {len(places)}", variable.span
        )
    data = np.zeros(t.size_of(type_), np.uint8)
    for (scalar, offset), number in zip(places, numbers, strict=True):
        dtype = np.dtype(_DTYPES[t.KIND[scalar]])
        try:
            word = np.array(number, dtype)
        except (OverflowError, ValueError, TypeError):
            raise fail(
                "binding-dtype", f"{number!r} in {variable.name} is not a value of {scalar}", variable.span
            ) from None
        data[offset : offset + dtype.itemsize] = np.frombuffer(word.tobytes(), np.uint8)
    return data


def _numbers(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [n for part in value.values() for n in _numbers(part)]
    if isinstance(value, list | tuple):
        return [n for part in value for n in _numbers(part)]
    return [value]


def _places(type_: t.Type, offset: int) -> list[tuple[t.Scalar, int]]:
    """The scalars of a type with their byte offsets."""
    match type_:
        case t.Scalar():
            return [(type_, offset)]
        case t.Atomic(elem=elem):
            return [(elem, offset)]
        case t.Struct(members=members):
            return [p for m in members for p in _places(m.type, offset + m.offset)]
        case t.Vec(size=n, elem=elem):
            return [(elem, offset + i * t.size_of(elem)) for i in range(n)]
        case t.Mat(cols=n, rows=rows, elem=elem):
            column = t.Vec(rows, elem)
            return [p for i in range(n) for p in _places(column, offset + i * t.stride_of(type_))]
        case t.Array(elem=elem, count=int(n)):
            return [p for i in range(n) for p in _places(elem, offset + i * t.stride_of(type_))]
        case _:
            return []
