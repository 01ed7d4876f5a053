"""Dataclasses that cost next to nothing to define.

`dataclass(frozen=True)` writes six functions for each class, and has them compiled whenever a process starts: half a
millisecond. There are some 250 classes here, and an audit is to take less than half a second. So of these functions
only `__init__` is written, when a first instance is made, and the others are shared. That nobody assigns to a member of
what is `frozen`, the type checker sees to; what is `sealed`, which other people's programs hold, refuses it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")
K = TypeVar("K")


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def entity(cls: type[T]) -> type[T]:
    """Part of a tree or a graph: equal only to itself, and may be changed."""
    cls.__doc__ = cls.__doc__ or cls.__name__  # else it would be the signature, which takes as long as all the rest
    made = dataclass(init=False, repr=False, eq=False)(cls)
    if "__init__" not in cls.__dict__:
        _write_late(made)
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


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def sealed(cls: type[T]) -> type[T]:
    """A value as `frozen` has them, to whose members nobody can assign."""
    made: Any = frozen(cls)
    made.__setattr__, made.__delattr__ = _refuse, _refuse
    return made


def _write_late(made: Any) -> None:
    """Have `__init__` written when it is first called: of most classes a process makes no instance."""

    def first(self: Any, /, *given: Any, **named: Any) -> None:
        made.__init__ = _written(made)
        made.__init__(self, *given, **named)

    made.__init__ = first


def _written(made: Any) -> Callable[..., None]:
    """`__init__`, as `dataclass` has it."""
    known: dict[str, Any] = {"_none": MISSING, "_set": object.__setattr__}
    assign = " _set(self, {0!r}, {1})" if made.__setattr__ is _refuse else " self.{0} = {1}"
    body, by_place, by_name = [" pass"], ["self"], ["*"]
    for member in fields(made):
        name, parameters = member.name, by_name if member.kw_only else by_place
        if member.default_factory is not MISSING:
            known[f"_make_{name}"] = member.default_factory
            value = f"_make_{name}()" + f" if {name} is _none else {name}" * member.init
            body.append(assign.format(name, value))
            parameters += [f"{name}=_none"] * member.init
        elif member.init:
            known[f"_is_{name}"] = member.default
            body.append(assign.format(name, name))
            parameters.append(name if member.default is MISSING else f"{name}=_is_{name}")
    if hasattr(made, "__post_init__"):
        body.append(" self.__post_init__()")
    parameters = ", ".join(by_place + (by_name if len(by_name) > 1 else []))
    exec(f"def __init__({parameters}):\n" + "\n".join(body), known)
    known["__init__"].__qualname__ = f"{made.__qualname__}.__init__"
    return known["__init__"]


def _refuse(self: Any, name: str, *_: Any) -> None:
    raise FrozenInstanceError(f"{name!r} of {type(self).__name__} cannot be changed")


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


def recall(known: dict[K, T], key: K, make: Callable[[], T], most: int) -> T:
    """What was made for this key before, or else now. The `most` that were asked for last stay known.

    Each step is one operation of a dict: of two threads that ask at once both may make it, and no harm is done."""
    found = known.pop(key, None)
    known[key] = found = make() if found is None else found
    if len(known) > most:
        for oldest in list(known)[:-most]:
            known.pop(oldest, None)
    return found
