"""Dataclasses that cost next to nothing to define.

`dataclass(frozen=True)` writes six functions for each class, and has them compiled whenever a process starts: half a
millisecond. There are some 250 classes here, and an audit is to take less than half a second. So of these functions
only `__init__` is written, and the others are shared. That nobody assigns to a member of what is frozen, the type
checker sees to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def entity(cls: type[T]) -> type[T]:
    """Part of a tree or a graph: equal only to itself, and may be changed."""
    cls.__doc__ = cls.__doc__ or cls.__name__  # else it would be the signature, which takes as long as all the rest
    made = dataclass(repr=False, eq=False)(cls)
    if made.__repr__ is object.__repr__:
        made.__repr__ = _words
    return made


@overload
def frozen(cls: type[T], /) -> type[T]: ...
@overload
def frozen(*, eq: bool = True) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: Any = None, /, *, eq: bool = True) -> Any:
    """A value: frozen, and equal to another of the same class with equal members; `eq` False: only to itself."""

    def make(each: Any) -> Any:
        own, made = each.__dict__, entity(each)
        if eq and "__eq__" not in own:
            names = [member.name for member in fields(made) if member.compare]
            made._members = attrgetter(*names or ["__class__"])
            made.__eq__, made.__hash__ = _equal, own.get("__hash__") or _hash
        return made

    return make if cls is None else make(cls)


def _words(self: Any) -> str:
    shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({shown})"


def _equal(self: Any, other: Any) -> bool:
    if self is other:
        return True
    made = type(self)
    return made._members(self) == made._members(other) if type(other) is made else NotImplemented


def _hash(self: Any) -> int:
    return hash(type(self)._members(self))
