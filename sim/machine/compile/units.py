"""The functions of the machine, and the units in which it is compiled.

`@part(...)` makes a function a unit: an object file of its own, which others call by its symbol. `@compiled` functions
become part of each unit that calls them, and so do `@inlined` ones, which are small, or called once. How they are
compiled is up to `fast` or `plain`; both offer what is imported from `path` here.
"""

# Numba and llvmlite have no types, so strict checks would find only unknowns.
# pyright: basic

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from numba import types

from . import paths
from .scalar_functions import called_as

path: Any = paths.implementation()
compiled, inlined = path.compiled, path.inlined  # decorators
array = path.array  # array(dtype, dimensions): the type of a contiguous array
start_of, length_of = path.start_of, path.length_of  # of an array, in code that is written as LLVM IR
recorded = path.recorded  # recorded(type of a tuple): a function from the address of headers to the arrays


def kind_of(value: Any) -> Any:
    """The type of an array, or of a record of arrays."""
    if isinstance(value, tuple):
        return types.NamedTuple([kind_of(each) for each in value], type(value))
    return array(getattr(types, value.dtype.name), value.ndim)


class Part:
    """A unit: a function that is compiled on its own. Others reach it by the address of its symbol: what Numba sees
    called, it optimizes anew with the caller, and the machine is too large for that."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...], returns: Any, record: Any) -> None:
        self.symbol = f"{function.__module__}.{function.__name__}"
        self.arrays = list(_arrays(record))
        self.function, self._signature = function, returns(*arguments)
        self.call = called_as(function, self._signature, path.caller(self.symbol, self._signature))

    def compile(self) -> bytes:
        """The object file that has it."""
        return path.object_code(self.function, self._signature, self.symbol)


def _arrays(kinds: Any) -> Iterator[tuple[str, int]]:
    """Data type and dimensions of each array in a record of these types, records in it taken apart."""
    for kind in kinds:
        if isinstance(kind, types.BaseTuple):
            yield from _arrays(kind)
        else:
            yield kind.dtype.name, kind.ndim


PARTS: list[Part] = []  # the last one is what Python calls


def part(*arguments: Any, returns: Any = types.void, record: Any = ()) -> Callable[[Callable[..., Any]], Any]:
    """Make a function a `Part` of these argument types; the result is what compiled functions call. `record`: types of
    what is at the address that it takes, where Python is to put it there."""

    def make(function: Callable[..., Any]) -> Any:
        PARTS.append(Part(function, arguments, returns, record))
        return PARTS[-1].call

    return make
