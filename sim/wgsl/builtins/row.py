"""The row of the builtin table: everything that Bankshot knows about one builtin function or operator."""

from __future__ import annotations

from functools import cached_property

from ...fast_dataclass import frozen
from .accuracy import Accuracy
from .signature import Signature, parse

ANY_STAGE = frozenset(("vertex", "fragment", "compute"))


@frozen(eq=False)
class Builtin:
    """One builtin. `name` is unique in the table; a row equals only itself.

    - `signatures`: in the language of `signature.py`.
    - `anchor`: the section of the spec, `https://www.w3.org/TR/WGSL/#anchor`. For readers; no code uses it.
    - `kind`: "op" applies the scalar operation `{op}_{kind}` to each component, with the kind of the first argument's
      elements, and broadcasts scalars; "compose" is defined in `compositions.py` by scalar operations; "effect" has
      effects (memory, other invocations, textures) and is lowered by name; "construct" is a value constructor.
    - `const`: may occur in const- and override-expressions.
    - `must_use`: a call cannot be a statement.
    - `stages`: pipeline stages that may call it.
    - `requires`: the `enable` extension or language feature that provides it.
    - `uniform`: what a call in non-uniform control flow triggers: "error" (cannot be filtered), or the diagnostic
      rule; `uniform_args`: arguments that must be uniform, too.
    - `nonuniform_result`: the result may differ between invocations, whatever the arguments.
    - `accuracy`: of an f32 or f16 result; None where nothing is rounded.
    """

    name: str
    signatures: tuple[str, ...]
    anchor: str
    kind: str = "op"
    op: str = ""
    const: bool = True
    must_use: bool = True
    stages: frozenset[str] = ANY_STAGE
    requires: str | None = None
    uniform: str | None = None
    uniform_args: tuple[int, ...] = ()
    nonuniform_result: bool = False
    accuracy: Accuracy | None = None

    @cached_property
    def overloads(self) -> tuple[Signature, ...]:
        """The parsed signatures."""
        return tuple(parse(text) for text in self.signatures)

    @property
    def is_operator(self) -> bool:
        """Whether the row is an operator, not a function."""
        return not self.name[0].isalpha() or self.name.startswith("unary")
