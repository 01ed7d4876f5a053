"""The text of a new manifest, and of the stub of its reference."""

from __future__ import annotations

import json
import keyword
from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np

from ...sim.bindings.binding import scalars
from ...sim.wgsl import typed
from ...sim.wgsl import types as t
from ...sim.wgsl.typed import Pipeline, Variable
from ..errors import UsageError
from ..manifests import inputs
from ..manifests.reflection import dtype_of
from . import invented_inputs
from .array_sizes import FRACTION, array_of
from .index_forms import root_of
from .invented_inputs import Recipe
from .new_manifest import Draft
from .size_uses import numbers_of

_DTYPES = {np.dtype(dtype): name for name, dtype in inputs.DTYPES.items()}


def manifest_text(made: Draft, source: str, preprocessing: Mapping[str, Any], reference: str) -> str:
    """Write the manifest. `source` and `reference`: as its keys hold them; `preprocessing`: more keys of [kernel]."""
    bindings = [line for variable in _bound(made.pipeline) for line in _binding(made, variable)]
    lines = ["# Written by `bankshot init`."]
    if made.questions:
        lines[0] += " An audit repeats the questions: delete each that you have answered."
        lines += ["questions = [", *(f"    {_toml(each)}," for each in made.questions), "]"]
    lines += ["", "[kernel]", f"source = {_toml(source)}", f"entry = {_toml(made.pipeline.entry.name)}"]
    lines += [f"{key} = {_toml(value)}" for key, value in preprocessing.items() if value]
    lines += [f"reference = {_toml(reference)}"]
    if made.dims:
        lines += [f"dims = {_toml(made.dims)}"]
    lines += [f"dispatch = {_toml(made.dispatch)}"]
    if made.overrides:
        lines += [f"overrides = {_toml(made.overrides)}"]
    return "\n".join([*lines, *bindings, *_sweeps(made), ""])


def _sweeps(made: Draft) -> Iterator[str]:
    if not any(made.edges.values()):
        return
    name, default = next(iter(made.dims.items()))
    yield from ("", "[[sweep]]", f"{name} = {default}")
    for name, sizes in made.edges.items():
        if sizes:
            yield from ("", "[[sweep]]", f"{name} = {_toml(sizes)}")


def _toml(value: object) -> str:
    match value:
        case dict():
            pairs = cast("dict[str, object]", value).items()
            return "{ " + ", ".join(f"{_key(key)} = {_toml(each)}" for key, each in pairs) + " }"
        case list():
            return "[" + ", ".join(map(_toml, cast("list[object]", value))) + "]"
        case str() | bool():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return str(value)


def _key(text: str) -> str:
    return text if text.isascii() and text.isidentifier() else json.dumps(text)


# ---- bindings ----


def _bound(pipeline: Pipeline) -> list[Variable]:
    return [v for v in pipeline.globals if v.binding is not None or v.space == "immediate"]


def _binding(made: Draft, variable: Variable) -> Iterator[str]:
    yield ""
    yield f"[bind.{_key(variable.name)}]"
    for key, value in _contents(made, variable).items():
        yield f"{key} = {_toml(value)}"


def _contents(made: Draft, variable: Variable) -> dict[str, Any]:
    type_ = made.pipeline.store_types[variable]
    if isinstance(type_, t.Sampler):
        return {"sampler": {"compare": "less"} if type_.comparison else {}}
    if isinstance(type_, t.Texture):
        return _texels(variable, type_)
    numbers = _numbers(made, variable)
    if numbers and isinstance(type_, t.Struct) and _is_flat(type_):
        return {"struct": _members(type_, numbers)}
    dtype, count = _words(type_)
    if numbers and len({str(scalar) for scalar in scalars(type_)}) == 1 and len(numbers) == count:
        return {"dtype": dtype, "values": [*numbers.values()]}
    return {"dtype": dtype, "shape": _shape(made, variable, dtype), "init": _init(made, variable, dtype)}


def _texels(variable: Variable, type_: t.Texture) -> dict[str, Any]:
    texels = invented_inputs.texels(variable.name, type_, Recipe("", (1,), 256, 1))
    first = texels[0] if isinstance(texels, list) else texels
    init = "uniform" if type_.access in (None, "read") and first.dtype.kind != "f" else "ones"
    made = {"dtype": _DTYPES[first.dtype], "shape": list(first.shape), "init": init}
    return {**made, "levels": len(texels)} if isinstance(texels, list) else made


def _numbers(made: Draft, variable: Variable) -> dict[tuple[Any, ...], str | float]:
    """The numbers of a binding that the host passes, by path: dims, invented floats, and 0."""
    found: dict[tuple[Any, ...], str | float] = {}
    for key, scalar in numbers_of(made.pipeline):
        if key[0] is variable:
            found[key[1]] = made.uses.names.get(key) or (FRACTION if t.is_float(scalar) else 0)
    return found


def _is_flat(type_: t.Struct) -> bool:
    try:
        return all(not dtype_of(member.type).names for member in type_.members)
    except UsageError:
        return False


def _members(type_: t.Struct, numbers: Mapping[tuple[Any, ...], str | float]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for number, member in enumerate(type_.members):
        values = [value for path, value in numbers.items() if path[0] == number]
        made[member.name] = values[0] if len(values) == 1 else values
    return made


def _words(type_: t.Type) -> tuple[str, int]:
    """The dtype of a buffer, and its numbers without a runtime-sized array: u32 words where scalars are of several
    kinds."""
    kinds = {str(scalar) for scalar in scalars(type_)}
    dtype = kinds.pop() if len(kinds) == 1 else "u32"
    size = t.size_of(type_) if t.has_fixed_footprint(type_) else 0
    return dtype, t.round_up(4, size) // np.dtype(inputs.DTYPES[dtype]).itemsize


def _shape(made: Draft, variable: Variable, dtype: str) -> list[str | int]:
    type_ = made.pipeline.store_types[variable]
    array, width = array_of(type_), np.dtype(inputs.DTYPES[dtype]).itemsize
    if array is None:
        return [_words(type_)[1]]
    each = t.stride_of(array[0]) // width
    factors = (
        (made.uses.names[variable, ("length",)],) if variable in made.uses.lengths else made.extents[variable].factors
    )
    sizes = [int(text) if text.isdigit() else text for text in factors]
    if not array[1]:
        return [*sizes, each] if each > 1 else _even(sizes, dtype)
    return [f"{array[1] // width} + {' * '.join(map(str, (*sizes, each)))}"]


def _even(sizes: list[str | int], dtype: str) -> list[str | int]:
    """Sizes of an array of 16-bit floats that fills whole words."""
    if dtype != "f16":
        return sizes
    whole = " * ".join(map(str, sizes))
    return [f"2 * ceil({whole} / 2)"]


def _init(made: Draft, variable: Variable, dtype: str) -> str:
    type_ = made.pipeline.store_types[variable]
    if len(scalars(type_)) > 1 or _has_atomics(type_):
        return "zeros"
    if variable.space == "storage" and variable.access != "read" and not _is_read(made.pipeline, variable):
        return "unwritten"
    return "normal" if dtype.startswith("f") else made.contents.init


def _has_atomics(type_: t.Type) -> bool:
    match type_:
        case t.Atomic():
            return True
        case t.Array(elem=elem):
            return _has_atomics(elem)
        case t.Struct(members=members):
            return any(_has_atomics(member.type) for member in members)
        case _:
            return False


def _is_read(pipeline: Pipeline, variable: Variable) -> bool:
    """Whether the entry point may load from a variable: directly, or through a pointer."""
    for function in typed.reached(pipeline.entry):
        assert function.body is not None
        for part in typed.every_expression(function):
            if isinstance(part, typed.Load | typed.AddressOf) and root_of(part.ref) is variable:
                return True
        for statement in typed.statements(function.body):
            if isinstance(statement, typed.CompoundAssign) and root_of(statement.target) is variable:
                return True
    return False


# ---- the reference ----


def reference_text(made: Draft, manifest: str, function: str) -> str:
    """Write a Python file with a stub of the reference, which `bankshot audit` does not compare with."""
    outputs = made.outputs
    read = [v.name for v in _bound(made.pipeline) if v.space == "storage" and v.name not in outputs]
    what = [f"    {v.name}: {_described(made, v)}" for v in _bound(made.pipeline) if v.space != "handle"]
    lets = [f'    {_local(name)} = arrays["{name}"].astype(np.float64)' for name in read if _is_float(made, name)]
    lets += [f'    {_local(name)} = arrays["{name}"]' for name in read if not _is_float(made, name)]
    expected = ", ".join(f'"{name}": …' for name in outputs)
    lines = [
        f'"""What the kernel of {manifest} should compute, in NumPy."""',
        "",
        "import numpy as np",
        "",
        "",
        f"def {function}(arrays, dims):",
        '    """Return the expected value of each output.',
        "",
        f"    dims: {', '.join(made.dims) or 'none'}. arrays, as they are before the run:",
        "",
        *what,
        '    """',
        *lets,
        f"    return NotImplemented  # {{{expected}}}",
        "",
    ]
    return "\n".join(lines)


def _local(name: str) -> str:
    taken = name in ("np", "arrays", "dims") or keyword.iskeyword(name)
    return f"{name}_" if taken else name


def _is_float(made: Draft, name: str) -> bool:
    types = [type_ for v, type_ in made.pipeline.store_types.items() if v.name == name]
    return all(t.is_float(scalar) for type_ in types for scalar in scalars(type_))


def _described(made: Draft, variable: Variable) -> str:
    contents = _contents(made, variable)
    if "struct" in contents:
        return f"a struct of {', '.join(contents['struct'])}"
    if "values" in contents:
        return f"{contents['dtype']}, {_toml(contents['values'])}"
    return f"{contents['dtype']} [{', '.join(map(str, contents['shape']))}]"
