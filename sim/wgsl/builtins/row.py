"""The row of the builtin table: everything the house knows about one builtin function or operator."""

from __future__ import annotations

from ...fast_dataclass import frozen
from .accuracy import Accuracy
from .signature import Signature, parse

ANY_STAGE = frozenset(("vertex", "fragment", "compute"))


@frozen(eq=False)
class Builtin:
    """One builtin. `name` is unique in the table, and a row equal only to itself.

    - `signatures`: in the mini-language of `signature.py`.
    - `anchor`: its place in the spec, `https://www.w3.org/TR/WGSL/#anchor`.
    - `kind`: "op" applies the scalar operation `{op}_{kind}` to each component, where kind is that of the first
      argument's elements and scalars stand for each component; "compose" is written in `compositions.py` from scalar
      operations; "effect" touches the machine (memory, other invocations, textures) and is lowered by name.
    - `const`: may appear in const- and override-expressions.
    - `must_use`: a call may not stand as a statement.
    - `stages`: pipeline stages it may be called from.
    - `requires`: the `enable` extension or language feature that brings it.
    - `uniform`: what a call in non-uniform control flow triggers: "error" (cannot be filtered), or the diagnostic
      rule; `uniform_args`: arguments that must be uniform too.
    - `nonuniform_result`: its result may differ between invocations whatever the arguments.
    - `accuracy`: of an f32 or f16 result; None where there is nothing to round.
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

    @property
    def overloads(self) -> tuple[Signature, ...]:
        return tuple(parse(text) for text in self.signatures)

    @property
    def is_operator(self) -> bool:
        return not self.name[0].isalpha() or self.name.startswith("unary")
