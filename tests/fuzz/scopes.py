"""What a piece of a program can name: variables and the parts of them, by type.

A `Root` is text that stands for a value or a place; `routes(from, to)` are the ways from a type to a part of it. A
route is a string with `[#4]` for an index below 4, `[#0]` where the length is known at run time
only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import product

from bankshot.sim.wgsl import types as t

_DEEPEST = 5  # struct, struct, array, matrix, vector, scalar


@dataclass(frozen=True, slots=True)
class Root:
    """`writable`: assignable here. `constant`: known to the reader, which must not be able to compute too much.

    `space`: of a whole variable whose address can be taken, function or private. `owner`: the variable that it is a
    view of: two pointers into one must not meet. `clamped`: an index beyond the end is moved into the variable by
    every implementation, as it is not for buffers.
    """

    text: str
    type: t.Type
    writable: bool = False
    constant: bool = False
    space: str | None = None
    owner: str = ""
    clamped: bool = True


@cache
def routes(start: t.Type, end: t.Type, deepest: int = _DEEPEST) -> tuple[str, ...]:
    """Ways from a type to its parts of another type; the empty way where they are the same."""
    here = ("",) if start == end else ()
    if deepest == 0:
        return here
    return (*here, *(step + rest for step, part in _steps(start) for rest in routes(part, end, deepest - 1)))


def _steps(type_: t.Type) -> Iterator[tuple[str, t.Type]]:
    match type_:
        case t.Vec(size=size, elem=elem):
            yield ".x", elem
            yield f"[#{size}]", elem
            yield f".{'xyzw'[size - 1]}", elem
        case t.Mat(cols=cols, rows=rows, elem=elem):
            yield f"[#{cols}]", t.Vec(rows, elem)
        case t.Array(elem=elem, count=count):
            yield f"[#{count or 0}]", elem
        case t.Struct(members=members):
            for member in members:
                yield f".{member.name}", member.type


@cache
def swizzles(size: int, wanted: int) -> tuple[str, ...]:
    """Some ways to make a vector of `wanted` components from one of `size`."""
    letters = "xyzw"[:size]
    every = ["".join(chosen) for chosen in product(letters, repeat=wanted)]
    return tuple(every[:: max(1, len(every) // 7)])


@dataclass
class Scope:
    """Names in reach, innermost last."""

    levels: list[list[Root]] = field(default_factory=lambda: [[]])

    def add(self, *roots: Root) -> None:
        self.levels[-1].extend(roots)

    def push(self) -> None:
        self.levels.append([])

    def pop(self) -> None:
        self.levels.pop()

    def __iter__(self) -> Iterator[Root]:
        for level in reversed(self.levels):
            yield from level
