"""Names and what they denote: the entities of a module, and the nested scopes of a function.

A name is looked up in the scopes of the function, then in the module, then among the predeclared names; `check_module`
does the last two. Spec: WGSL, "Declaration and Scope".
"""

from __future__ import annotations

from collections.abc import Iterable
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
    """A `const`: its type may be abstract; its value is None where it is not evaluated."""

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
    """A name of a loop body that a `continue` (`jump`) may have skipped: invalid in the continuing block."""

    name: str
    jump: Span


@entity
class InvalidName:
    """A name whose declaration is an error: every use raises that same error, so that it is reported once."""

    name: str
    error: WgslError


Entity = (
    Bypassed
    | InvalidName
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
    """Return the category of an entity with its article: "a type", "a function"."""
    match entity:
        case Bypassed() | InvalidName():
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


def declared(entity: Entity) -> tuple[Note, ...]:
    """Return a note at the declaration of an entity, or none where it is predeclared."""
    span = getattr(entity, "span", None)
    return (Note(f"'{entity.name}' declared here", span),) if isinstance(span, Span) else ()


@entity
class Scope:
    """The declarations of a block; `parent` is the enclosing scope."""

    parent: Scope | None = None
    entities: dict[str, tuple[Entity, Span]] = field(default_factory=dict[str, tuple[Entity, Span]])

    def declare(self, name: str, entity: Entity, span: Span) -> None:
        """Declare a name. Raises `WgslError` where this scope has declared it before."""
        first = self.entities.get(name)
        if first and not isinstance(first[0], InvalidName):
            raise redeclared(name, span, first[1])
        self.entities[name] = (entity, span)

    def fail(self, name: str, error: WgslError, span: Span) -> None:
        """Make later uses of a name raise this error."""
        self.entities[name] = (InvalidName(name, error), span)

    def root(self) -> Scope:
        """Return the outermost scope: that of the function's parameters."""
        return self.parent.root() if self.parent else self

    def lookup(self, name: str) -> Entity | None:
        """Return the innermost entity of this name, or None."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.entities.get(name)
            if found is not None:
                return found[0]
            scope = scope.parent
        return None

    def names(self) -> Iterable[str]:
        """Iterate over the usable names in scope, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield from (name for name, (entity, _) in scope.entities.items() if not isinstance(entity, InvalidName))
            scope = scope.parent


class ModuleContext(Protocol):
    """What expressions and statements ask of the module around them; `check_module.ModuleScope` answers."""

    def lookup(self, name: str, span: Span) -> Entity | None: ...

    def names(self, *, types: bool = False) -> Iterable[str]: ...

    def similar(self, name: str, candidates: Iterable[str]) -> str | None: ...

    def supports(self, feature: str) -> bool: ...

    def has_extension(self, name: str) -> bool: ...

    def need_extension(self, name: str, what: str, span: Span) -> None: ...

    def need_feature(self, name: str, what: str, span: Span) -> None: ...

    def warn(self, diagnostic: Diagnostic) -> None: ...

    def report(self, error: WgslError) -> None: ...


def redeclared(name: str, span: Span, first: Span) -> WgslError:
    """Return the error of a second declaration of a name in one scope."""
    return fail("redeclaration", f"'{name}' is declared twice", span, Note(f"'{name}' first declared here", first))
