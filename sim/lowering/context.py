"""What the lowering of a builtin may use of the lowering around it: values, views, memory and the builder.

Builtins depend on this interface, `Expressions` implements it and finds them by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from ..ir.builder import Builder
from ..ir.ir import Value
from ..ir.rounding import Rounding
from ..wgsl import typed
from .accesses import Memory
from .views import View


class Lowering(Memory, ABC):
    """The lowering of one pipeline.

    `rounding`: how the device rounds. `poisoned`: offsets in the source of the shuffles that return poison for lanes
    that are not active (see `lower.lower`).
    """

    def __init__(
        self,
        rounding: Rounding,
        checks: bool,
        builder: Builder,
        trace: str | None,
        policy: str,
        poisoned: frozenset[int],
    ) -> None:
        super().__init__(checks, builder, trace, policy)
        self.rounding = rounding
        self.poisoned = poisoned

    @abstractmethod
    def value(self, expr: typed.Expr) -> list[Value]:
        """Return the scalar components of an expression's value, in the order of `types.flatten`."""

    @abstractmethod
    def view(self, expr: typed.Expr) -> View:
        """Return the memory view that a reference, a pointer or a handle denotes."""


Effect = Callable[[Lowering, typed.BuiltinCall], list[Value]]
"""Lowers a call of one builtin that touches memory, textures or other invocations; returns the call's components."""
