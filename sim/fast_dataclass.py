"""The one way to make a record in Bankshot: `entity`, `frozen` and `sealed`, dataclasses that are cheap to define.

- `entity`: part of a tree or a graph. Mutable; equal only to itself.
- `frozen`: a value. Compared by its fields; a type checker refuses assignments to them.
- `sealed`: a `frozen` value that users hold. Assignments raise `FrozenInstanceError` at run time, too.

Use `NamedTuple` where the record must be a tuple: Numba compiles it, or a call unpacks it. Use `dataclass` only for
`Counters` and `Site`, rows that users hold, mutable and compared by value.

A `dataclass` generates and compiles six functions when the class is defined: 310 µs for `dataclass(frozen=True)` on
CPython 3.11, against 20 µs here. `sim` alone has over 200 records, which makes 60 ms at the start of every command; a
warm command takes 600 ms in all.

The saving comes from sharing all methods but `__init__`, and from generating that one when the first instance is made:
a process makes no instance of most classes. `dataclasses.fields`, `replace` and `asdict`, `match`, pickling and copying
work as with any dataclass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")


@overload
def entity(cls: type[T], /) -> type[T]: ...
@overload
def entity(*, slots: bool = False) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(eq_default=False, field_specifiers=(field,))
def entity(cls: Any = None, /, *, slots: bool = False) -> Any:
    """Make a class a mutable record whose instances equal only themselves.

    `slots`: its instances have no `__dict__`, so that they take less time and memory, but the class takes twice as long
    to make. It is for the records of which a module has thousands.
    """

    def make(each: Any) -> Any:
        own = each.__dict__
        each.__doc__ = each.__doc__ or each.__name__  # else `dataclass` renders the signature, which doubles the cost
        made: Any = dataclass(init=False, repr=False, eq=False, slots=slots)(each)
        if "__init__" not in own:
            _generate_init_late(made)
        if made.__repr__ is object.__repr__:
            made.__repr__ = _repr
        return made

    return make if cls is None else make(cls)


@overload
def frozen(cls: type[T], /) -> type[T]: ...
@overload
def frozen(*, eq: bool = True, slots: bool = False) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: Any = None, /, *, eq: bool = True, slots: bool = False) -> Any:
    """Make a class an immutable record.

    Instances of one class are equal where their fields are, less those with `compare=False`. With `eq=False` each
    equals only itself. `slots`: as in `entity`.
    """

    def make(each: Any) -> Any:
        own, made = each.__dict__, entity(slots=slots)(each)
        if eq and "__eq__" not in own:
            compared = [member for member in fields(made) if member.compare]
            made._compared = _getter(compared)
            made._hashed = _getter([member for member in compared if member.hash is not False])
            made.__eq__, made.__hash__ = _equal, own.get("__hash__") or _hash
        return made

    return make if cls is None else make(cls)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def sealed(cls: type[T]) -> type[T]:
    """Make a class a `frozen` record that raises `FrozenInstanceError` on assignment and deletion."""
    made: Any = frozen(cls)
    made.__setattr__, made.__delattr__ = _refuse, _refuse
    return made


def _getter(members: list[Field[Any]]) -> Callable[[object], object]:
    """Return a function from an instance to the values of these fields."""
    return attrgetter(*[member.name for member in members] or ["__class__"])


def _generate_init_late(made: Any) -> None:
    """Give a class an `__init__` that generates the real one at its first call."""

    def first(self: Any, /, *given: Any, **named: Any) -> None:
        made.__init__ = _generated_init(made)
        made.__init__(self, *given, **named)

    made.__init__ = first


def _generated_init(made: Any) -> Callable[..., None]:
    """Compile the `__init__` that `dataclass` would give the class."""
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


def _repr(self: Any) -> str:
    shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({shown})"


def _equal(self: Any, other: Any) -> bool:
    if self is other:
        return True
    made = self.__class__
    if type(other) is not made:
        return NotImplemented
    return bool(made._compared(self) == made._compared(other))


def _hash(self: Any) -> int:
    made = self.__class__
    return hash(made._hashed(self))
