"""WGSL types, and how they lie in memory.

Types are frozen values: equal types compare equal (structs by identity of declaration). Sizes and alignments are in
bytes. Spec: WGSL, "Types" and "Memory Layout".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .source import Span


@dataclass(frozen=True, slots=True)
class Scalar:
    """bool, i32, u32, f32, f16, abstract-int or abstract-float."""

    name: str

    def __str__(self) -> str:
        return self.name


BOOL, I32, U32, F32, F16 = (Scalar(n) for n in ("bool", "i32", "u32", "f32", "f16"))
ABSTRACT_INT, ABSTRACT_FLOAT = Scalar("abstract-int"), Scalar("abstract-float")


@dataclass(frozen=True, slots=True)
class Vec:
    size: int
    elem: Scalar

    def __str__(self) -> str:
        return f"vec{self.size}<{self.elem}>"


@dataclass(frozen=True, slots=True)
class Mat:
    """`cols` columns of `rows` components each: WGSL's matCxR."""

    cols: int
    rows: int
    elem: Scalar

    def __str__(self) -> str:
        return f"mat{self.cols}x{self.rows}<{self.elem}>"


@dataclass(frozen=True, slots=True)
class Atomic:
    elem: Scalar

    def __str__(self) -> str:
        return f"atomic<{self.elem}>"


@dataclass(frozen=True, slots=True)
class OverrideCount:
    """An array length that waits for pipeline creation; `expr` is a typed override-expression.

    Two such types are equal only where they name the same override directly (`key`: the override's name or id of the
    expression), as the spec has it.
    """

    key: object
    expr: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OverrideCount) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True, slots=True)
class Array:
    """`count` None: runtime-sized."""

    elem: Type
    count: int | OverrideCount | None

    def __str__(self) -> str:
        if self.count is None:
            return f"array<{self.elem}>"
        count = self.count if isinstance(self.count, int) else "override"
        return f"array<{self.elem}, {count}>"


@dataclass(frozen=True, slots=True)
class Member:
    """A struct member with its byte offset; `attrs` holds io attributes: {"builtin": "…", "location": 0, …}."""

    name: str
    type: Type
    offset: int
    size: int
    align: int
    span: Span | None = None
    attrs: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Struct:
    """Equal only to itself. `size` and `align` per the layout rules; for a runtime-sized tail, `size` is the fixed part."""

    name: str
    members: tuple[Member, ...]
    size: int
    align: int

    def __str__(self) -> str:
        return self.name

    def index(self, name: str) -> int | None:
        return next((i for i, m in enumerate(self.members) if m.name == name), None)


@dataclass(frozen=True, slots=True)
class Pointer:
    """`space`: function, private, workgroup, uniform, storage, handle, immediate. `access`: read, write, read_write."""

    space: str
    store: Type
    access: str

    def __str__(self) -> str:
        tail = f", {self.access}" if self.space == "storage" else ""
        return f"ptr<{self.space}, {self.store}{tail}>"


@dataclass(frozen=True, slots=True)
class Reference:
    """A memory view: what a variable's name means before the load rule."""

    space: str
    store: Type
    access: str

    def __str__(self) -> str:
        return f"ref<{self.space}, {self.store}, {self.access}>"


@dataclass(frozen=True, slots=True)
class Texture:
    """`kind` as spelled (texture_2d, texture_storage_2d, …); `sampled` its channel type, or `format` and `access`."""

    kind: str
    sampled: Scalar | None = None
    format: str | None = None
    access: str | None = None

    def __str__(self) -> str:
        inner = ", ".join(str(x) for x in (self.sampled, self.format, self.access) if x is not None)
        return f"{self.kind}<{inner}>" if inner else self.kind


@dataclass(frozen=True, slots=True)
class Sampler:
    comparison: bool = False

    def __str__(self) -> str:
        return "sampler_comparison" if self.comparison else "sampler"


Type = Scalar | Vec | Mat | Atomic | Array | Struct | Pointer | Reference | Texture | Sampler
