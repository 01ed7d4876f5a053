"""Names and what they denote: the entities of a module, and the nested scopes of a function.

Spec: WGSL, "Declaration and Scope". A name is looked up in the scopes of the function, then in the module, then among
the predeclared names; the last two are the business of `check`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import field
from typing import Protocol

from ...fast_dataclass import entity
from .. import typed
from .. import types as t
from ..builtins import Builtin
from ..diagnostics import Diagnostic, Note, WgslError, fail
from ..source import Span


@entity
class Constant:
    """A `const`: its type may be abstract, its value is known (None only while nothing is evaluated)."""

    name: str
    type: t.Type
    value: typed.Value
    span: Span


@entity
class TypeName:
    """A struct, an alias, or a predeclared type such as `f32` or `vec3f`."""

    name: str
    type: t.Type
    span: Span | None = None


@entity
class Generator:
    """A predeclared type generator: `vec3`, `array`, `ptr`, `texture_2d`."""

    name: str


@entity
class Enumerant:
    """A predeclared enumerant; `kind` is access mode, address space or texel format."""

    name: str
    kind: str


@entity
class Bypassed:
    """A name of a loop body that the `continue` may have jumped over: the continuing block cannot use it."""

    name: str
    jump: Span


@entity
class TaskError:
    """A name that an error is about: whoever uses it fails of that same error, so that people hear of it once."""

    name: str
    error: WgslError


Entity = (
    Bypassed
    | TaskError
    | Constant
    | TypeName
    | Generator
    | Enumerant
    | Builtin
    | typed.Variable
    | typed.Override
    | typed.Function
)


def describe(entity: Entity) -> str:
    """What an entity is, with its article: "a type", "a function"."""
    match entity:
        case Bypassed() | TaskError():
            return "a name that cannot be used"
        case Constant():
            return "a constant"
        case TypeName():
            return "a type"
        case Generator():
            return "a type generator"
        case Enumerant():
            return f"an {entity.kind}" if entity.kind[0] in "aeiou" else f"a {entity.kind}"
        case Builtin():
            return "a built-in function"
        case typed.Function():
            return "a function"
        case typed.Override():
            return "an override"
        case _:
            return "a variable" if entity.space else "a value"


@entity
class Scope:
    """The declarations between two braces; `parent` is what lies around them."""

    parent: Scope | None = None
    entities: dict[str, tuple[Entity, Span]] = field(default_factory=dict)

    def declare(self, name: str, entity: Entity, span: Span) -> None:
        """Give a name a meaning from here on. Raises `WgslError` where this scope has the name already."""
        first = self.entities.get(name)
        if first and not isinstance(first[0], TaskError):
            raise redeclared(name, span, first[1])
        self.entities[name] = (entity, span)

    def fail(self, name: str, error: WgslError, span: Span) -> None:
        """From here on, whoever uses the name fails of this error."""
        self.entities[name] = (TaskError(name, error), span)

    def root(self) -> Scope:
        """The outermost scope: that of the function's parameters."""
        return self.parent.root() if self.parent else self

    def lookup(self, name: str) -> Entity | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.entities:
                return scope.entities[name][0]
            scope = scope.parent
        return None

    def names(self) -> Iterable[str]:
        """Every name in sight that can be used, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield from (name for name, (entity, _) in scope.entities.items() if not isinstance(entity, TaskError))
            scope = scope.parent


class ModuleContext(Protocol):
    """What expressions and statements ask of the module around them; `check_module.ModuleScope` answers."""

    def lookup(self, name: str, span: Span) -> Entity | None: ...

    def names(self) -> Iterable[str]: ...

    def supports(self, feature: str) -> bool: ...

    def need_extension(self, name: str, what: str, span: Span) -> None: ...

    def need_feature(self, name: str, what: str, span: Span) -> None: ...

    def warn(self, diagnostic: Diagnostic) -> None: ...

    def collecting(self) -> AbstractContextManager[None]: ...


def redeclared(name: str, span: Span, first: Span) -> WgslError:
    return fail("redeclaration", f"'{name}' is declared twice", span, Note(f"'{name}' first declared here", first))
