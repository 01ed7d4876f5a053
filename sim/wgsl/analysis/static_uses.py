"""What one declaration mentions: the checker collects it, the analyses of the call graph read it.

Spec: WGSL, "Statically Accessed".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ...fast_dataclass import entity
from .. import typed
from ..source import Span


@entity
class Uses:
    """The entities that the text of one declaration mentions, each with the span of its first mention."""

    globals: dict[typed.Variable, Span] = field(default_factory=dict[typed.Variable, Span])
    overrides: dict[typed.Override, Span] = field(default_factory=dict[typed.Override, Span])
    calls: dict[typed.Function, Span] = field(default_factory=dict[typed.Function, Span])
    builtins: dict[str, Span] = field(default_factory=dict[str, Span])
    discard: Span | None = None


AllUses = Mapping[typed.Variable | typed.Override | typed.Function, Uses]
