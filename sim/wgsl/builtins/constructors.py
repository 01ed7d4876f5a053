"""The value constructors of scalars, vectors and matrices, in the form of the other builtins.

Their kind is "construct": the arguments are converted to the parameters, then combined (`typed.Construct`); a single
argument of the result's shape is a value conversion (`typed.Convert`). `overloads.py` has the constructors of arrays
and structs, which take any number of arguments. Spec: WGSL, "Value Constructor Built-in Functions".
"""

from __future__ import annotations

from collections.abc import Iterator

from .row import Builtin


def _scalar(name: str) -> Builtin:
    return Builtin(name, (f"() -> {name}", f"(T) -> {name}; T: scalar"), f"{name}-builtin", kind="construct")


def _splits(total: int) -> Iterator[tuple[int, ...]]:
    """Iterate over the ordered ways to fill `total` components with scalars and vectors."""
    for first in range(1, total + 1):
        if first == total:
            yield (total,)
        else:
            yield from ((first, *rest) for rest in _splits(total - first))


def _vector(size: int) -> Builtin:
    """`vec3(…)` infers its component type, `vec3<T>(…)` names it; both convert a whole vector, and both splat."""
    parts = [split for split in _splits(size) if split != (size,)]
    lists = [", ".join("T" if n == 1 else f"vec{n}<T>" for n in split) for split in parts]
    vec = f"vec{size}"
    signatures = (
        f"() -> {vec}<ai>",
        *(f"({params}) -> {vec}<T>; T: scalar" for params in ("T", f"{vec}<T>", *lists)),
        *(f"<T>({params}) -> {vec}<T>; T: concrete" for params in ("", "T", *lists)),
        f"<T>({vec}<S>) -> {vec}<T>; T: concrete; S: scalar",
    )
    return Builtin(vec, signatures, f"{vec}-builtin", kind="construct")


def _matrix(cols: int, rows: int) -> Builtin:
    mat = f"mat{cols}x{rows}"
    lists = (", ".join([f"vec{rows}<T>"] * cols), ", ".join(["T"] * (cols * rows)))
    signatures = (
        *(f"({params}) -> {mat}<T>; T: anyfloat" for params in (f"{mat}<T>", *lists)),
        *(f"<T>({params}) -> {mat}<T>; T: float" for params in ("", *lists)),
        f"<T>({mat}<S>) -> {mat}<T>; T: float; S: anyfloat",
    )
    return Builtin(mat, signatures, f"{mat}-builtin", kind="construct")


ROWS = (
    *(_scalar(name) for name in ("bool", "i32", "u32", "f32", "f16")),
    *(_vector(size) for size in (2, 3, 4)),
    *(_matrix(cols, rows) for cols in (2, 3, 4) for rows in (2, 3, 4)),
)
