"""Names of places in memory, such as `tile[3].x`, from a type and a byte offset; and the numbers stored there."""

from __future__ import annotations

import numpy as np

from ..wgsl import types as t

_COMPONENTS = "xyzw"
_DTYPES = {"f32": np.float32, "i32": np.int32, "u32": np.uint32, "bool": np.uint32}


def path(type_: t.Type, byte: int) -> tuple[str, t.Scalar | None]:
    """Return the path to the scalar at this byte of a value, and its type; None in padding."""
    match type_:
        case t.Scalar():
            return "", type_
        case t.Atomic(elem=elem):
            return path(elem, byte)
        case t.Vec(elem=elem):
            number = byte // t.size_of(elem)
            return (f".{_COMPONENTS[number]}", elem) if number < type_.size else ("", None)
        case t.Mat(rows=rows, elem=elem):
            return _element(t.Vec(rows, elem), t.stride_of(type_), byte)
        case t.Array(elem=elem):
            return _element(elem, t.stride_of(type_), byte)
        case t.Struct(members=members):
            inside = [m for m in members if m.offset <= byte]
            if inside:
                rest, scalar = path(inside[-1].type, byte - inside[-1].offset)
                return f".{inside[-1].name}{rest}", scalar
        case _:
            pass
    return "", None


def _element(elem: t.Type, stride: int, byte: int) -> tuple[str, t.Scalar | None]:
    rest, scalar = path(elem, byte % stride)
    return f"[{byte // stride}]{rest}", scalar


def number(scalar: t.Scalar | None, bits: int) -> str:
    """Format bits of memory as the number that a shader reads."""
    kind = t.KIND[scalar] if scalar is not None else "u32"
    if kind == "f16":
        return _short(np.uint16(bits & 0xFFFF).view(np.float16))
    if kind == "bool":
        return "true" if bits else "false"
    value = np.uint32(bits).view(_DTYPES[kind])
    return _short(value) if kind == "f32" else str(value)


def register(kind: str, bits: int) -> str:
    """Format bits of a register as a number; registers hold f16 as f32."""
    return (
        _short(np.uint32(bits).view(np.float32)) if kind in ("f32", "f16") else str(np.uint32(bits).view(_DTYPES[kind]))
    )


def _short(value: np.generic) -> str:
    text = f"{value.item():.7g}"
    return text if any(c in text for c in ".en") else f"{text}.0"
