"""Binding values to the variables of an entry point, by name or by (group, binding).

Arrays, bytes, scalars, sequences and mappings of struct members are accepted. Sizes, dtypes and access modes are
checked before anything runs. `texture_arrays` and `samplers` bind textures and samplers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..instrument.shadows import Shadow
from ..wgsl import types as t
from ..wgsl.diagnostics import WgslError, fail
from ..wgsl.typed import Pipeline, Variable
from .binding import DTYPES, Bits, Blank, Bound, Key, is_array, is_bytes, is_mapping, is_sequence, scalars
from .foreign_arrays import as_numpy
from .samplers import bind_sampler
from .texture_arrays import bind_texture

if TYPE_CHECKING:
    from .binding import Bindings

_HANDLES = (t.Texture, t.Sampler)


def words(variable: Variable, contents: NDArray[Any]) -> Bound:
    """Return a hidden buffer of instrumentation with these contents."""
    return Bound(variable, variable.type, variable.name, contents, contents.view(np.uint8))


def blank(variable: Variable, count: int, dtype: DTypeLike) -> Bound:
    """Return a hidden buffer of `count` zeros."""
    contents = np.zeros(count, dtype)
    return Blank(variable, variable.type, variable.name, contents, contents.view(np.uint8))


def hide(shadows: Iterable[Shadow], bound: list[Bound], dtype: DTypeLike) -> dict[Shadow, Bound]:
    """Return a hidden buffer of zeros for each shadow of a buffer."""
    sizes = {b.variable: len(b.data) for b in bound}
    return {s: blank(s.variable, sizes[s.of] // s.unit, dtype) for s in shadows if s.of in sizes}


def bind(pipeline: Pipeline, bindings: Bindings) -> list[Bound]:
    """Match the values given with the variables that the entry point uses (see `Binder`)."""
    return Binder(pipeline, {}).bind(bindings)


class Binder:
    """Matches values with the variables that an entry point uses, again and again.

    `lasting`: values of bindings that `bind` need not be given. They are copied, and checked here.
    """

    def __init__(self, pipeline: Pipeline, lasting: Bindings) -> None:
        self._types = {v: pipeline.store_types[v] for v in pipeline.globals if _bindable(v)}
        bindable = [v for v in pipeline.module.globals if _bindable(v)]
        self._keys = {v.name for v in bindable} | {v.binding for v in bindable}
        self._fits: dict[Variable, tuple[Any, ...]] = {}  # types and bytes of the last one that was checked
        self._wanted = [(v, v.name, v.binding, type_) for v, type_ in self._types.items()]
        bound = self._given(cast("Mapping[Key, object]", lasting))
        self._lasting = {each.variable: each.with_data(each.data.copy()) for each in bound}

    def bind(self, bindings: Bindings) -> list[Bound]:
        """Return the binding of each variable. A bound array shares its memory with the array given.

        Raises `WgslError`, which names the binding.
        """
        given = self._given(cast("Mapping[Key, object]", bindings))
        if len(given) == len(self._types):
            return given
        bound = self._lasting | {each.variable: each for each in given}
        for variable, type_ in self._types.items():
            if variable not in bound:
                raise _missing(variable, type_)
        return [bound[variable] for variable in self._types]

    def _given(self, given: Mapping[Key, object]) -> list[Bound]:
        """Return the bindings that are given, in the order of the shader."""
        for key in given:
            if key not in self._keys:
                raise _unknown(key, [*self._types])
        bound: list[Bound] = []
        for variable, name, place, type_ in self._wanted:
            key = name if name in given else place
            if key is None or key not in given:
                continue
            if key is not place and place in given:
                raise fail("bound-twice", f"{name} is given by name and as {place}", variable.span)
            bound.append(self._bound(variable, type_, key, given[key]))
        return bound

    def _bound(self, variable: Variable, type_: t.Type, key: Key, value: object) -> Bound:
        if isinstance(type_, _HANDLES) or not (type(value) is np.ndarray or _is_number_of(type_, value)):
            return _bound(variable, type_, key, value)
        contents = cast("NDArray[Any]", value)
        fits = type(value), contents.dtype, contents.nbytes
        if self._fits.get(variable) == fits:
            return Bound(variable, type_, key, value, _bytes_of(contents))
        bound = _bound(variable, type_, key, value)
        self._fits[variable] = fits
        return bound


def _bindable(variable: Variable) -> bool:
    """Whether a value is bound to it: a binding, or immediate data, which has a name only."""
    return variable.binding is not None or variable.space == "immediate"


def _unknown(key: Key, wanted: list[Variable]) -> WgslError:
    names = ", ".join(v.name for v in wanted) or "none"
    close = get_close_matches(key, [v.name for v in wanted], 1) if isinstance(key, str) else []
    hint = f"did you mean {close[0]}?" if close else f"the entry point uses: {names}"
    return fail("unknown-binding", f"the shader has no binding {key!r}", None, hint=hint)


def _missing(variable: Variable, type_: t.Type) -> WgslError:
    place, otherwise = "", ""
    if variable.binding is not None:
        group, binding = variable.binding
        place, otherwise = f"@group({group}) @binding({binding}), ", f", or as ({group}, {binding})"
    return fail(
        "missing-binding",
        f"nothing is bound to {variable.name}, which is {place}{_kind(variable)}{type_}",
        variable.span,
        hint=f"give it by name, {variable.name}=…{otherwise}",
    )


def _kind(variable: Variable) -> str:
    return "" if variable.space == "handle" else f"{variable.space}, "


def _bound(variable: Variable, type_: t.Type, key: Key, value: object) -> Bound:
    if isinstance(type_, t.Sampler):
        return bind_sampler(variable, type_, key, value)
    value = as_numpy(variable, value)
    if isinstance(type_, t.Texture):
        return bind_texture(variable, type_, key, value)
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
        return f"in memory a vec3<{element.elem}> takes the space of a vec4"
    return None


def _as_bytes(variable: Variable, type_: t.Type, value: object) -> NDArray[np.uint8]:
    if is_bytes(value):
        return np.frombuffer(bytes(value), np.uint8)
    if is_array(value):
        _check_dtype(variable, type_, value)
        return _bytes_of(value)
    if _is_number_of(type_, value):
        return _bytes_of(np.asarray(value))
    return _packed(variable, type_, value)


def _is_number_of(type_: t.Type, value: object) -> bool:
    """Whether a value is a number of NumPy whose bytes are those of a scalar in the shader."""
    if not isinstance(value, np.generic) or not isinstance(type_, t.Scalar):
        return False
    return cast("np.generic[Any]", value).dtype == DTYPES[t.KIND[type_]]


def _bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).ravel().view(np.uint8)


def _check_dtype(variable: Variable, type_: t.Type, value: NDArray[Any]) -> None:
    """Check that a plain dtype is that of the shader's scalars, or bytes, or words where there are several kinds of
    scalars. Structured dtypes are not checked."""
    dtype = value.dtype
    if dtype.hasobject or dtype != dtype.newbyteorder("<"):
        what = "Python objects" if dtype.hasobject else "big-endian"
        raise fail("binding-dtype", f"{variable.name} is {what}, and a GPU's memory is little-endian", variable.span)
    if isinstance(type_, t.Buffer):
        return
    kinds = {t.KIND[s] for s in scalars(type_)}
    if dtype.names or dtype == np.uint8 or (len(kinds) > 1 and dtype == np.uint32):
        return
    if len(kinds) > 1:
        raise fail(
            "binding-dtype",
            f"{variable.name} is {dtype}, and {type_} holds {' and '.join(sorted(kinds))}",
            variable.span,
            hint="pass a structured dtype, uint32 words, a sequence of values, or bytes",
        )
    wanted = DTYPES[kinds.pop()]
    words = wanted.kind in "iu" and (dtype.kind in "iu" or isinstance(value, Bits))
    if dtype.itemsize == wanted.itemsize and (dtype.kind == wanted.kind or words):
        return
    raise fail(
        "binding-dtype",
        f"{variable.name} is {dtype}, and {type_} holds {wanted.name}",
        variable.span,
        hint=f"pass {variable.name}.astype(np.{wanted.name}), or its bytes",
    )


def _packed(variable: Variable, type_: t.Type, value: object) -> NDArray[np.uint8]:
    """Lay out scalars, nested sequences and mappings of struct members as the type requires."""
    if _is_runtime(type_) and is_sequence(value) and isinstance(type_, t.Array):
        type_ = _of_length(variable, type_, value)
    if _is_runtime(type_):
        raise fail(
            "binding-dtype",
            f"{variable.name} is a {type(value).__name__}, and {type_} needs a NumPy array or bytes",
            variable.span,
        )
    places, numbers = _places(type_, 0), _numbers(variable, type_, value)
    if len(numbers) != len(places):
        raise fail(
            "binding-size", f"{variable.name} has {len(numbers)} values, and {type_} needs {len(places)}", variable.span
        )
    data = np.zeros(t.size_of(type_), np.uint8)
    for (scalar, offset), number in zip(places, numbers, strict=True):
        word = _word(scalar, number)
        if word is None:
            raise fail("binding-dtype", f"{number!r} in {variable.name} is not a value of {scalar}", variable.span)
        data[offset : offset + len(word)] = np.frombuffer(word, np.uint8)
    return data


def _of_length(variable: Variable, type_: t.Array, value: object) -> t.Array:
    """The type of a runtime-sized array that holds just these numbers."""
    count, rest = divmod(len(_numbers(variable, None, value)), len(_places(type_.elem, 0)))
    return replace(type_, count=max(1, count + (rest > 0)))


def _word(scalar: t.Scalar, number: object) -> bytes | None:
    """Return the bytes of a number; None where the type cannot represent it."""
    if not isinstance(number, bool | int | float | np.bool_ | np.number) or isinstance(number, np.complexfloating):
        return None
    number = cast(float, number)
    dtype = DTYPES[t.KIND[scalar]]
    if dtype.kind != "f":
        bounds = np.iinfo(dtype)
        whole = np.isfinite(number) and int(number) == number and bounds.min <= number <= bounds.max
        return np.array(int(number), dtype).tobytes() if whole else None
    try:
        with np.errstate(over="ignore"):
            word = np.array(float(number), dtype)
    except OverflowError:
        return None
    return None if np.isinf(word) and np.isfinite(number) else word.tobytes()


def _numbers(variable: Variable, type_: t.Type | None, value: object) -> list[object]:
    """Flatten a value into numbers, members of structs in their order. `type_` None: the shapes do not match."""
    if is_mapping(value):
        if not isinstance(type_, t.Struct) or set(value) != {m.name for m in type_.members}:
            wanted = (
                ", ".join(m.name for m in type_.members) if isinstance(type_, t.Struct) else f"no members, but {type_}"
            )
            given = ", ".join(map(str, value))
            raise fail("binding-members", f"{variable.name} is given {given}, and has {wanted}", variable.span)
        return [n for m in type_.members for n in _numbers(variable, m.type, value[m.name])]
    if is_array(value):
        return value.ravel().tolist()
    if is_sequence(value):
        types = _parts(type_)
        fitting = types if len(types) == len(value) else [None] * len(value)
        return [n for part, each in zip(value, fitting, strict=True) for n in _numbers(variable, each, part)]
    return [value]


def _parts(type_: t.Type | None) -> Sequence[t.Type]:
    """Return the types of the elements of an array, or of the members of a struct."""
    match type_:
        case t.Array(elem=elem, count=int(count)):
            return [elem] * count
        case t.Struct(members=members):
            return [m.type for m in members]
        case _:
            return []


def _places(type_: t.Type, offset: int) -> list[tuple[t.Scalar, int]]:
    """Return the scalars of a type with their byte offsets."""
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
