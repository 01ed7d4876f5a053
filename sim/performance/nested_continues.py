"""What follows a `continue`, as the other side of its branch: compilers treat the two alike.

On an H200, `if c { continue; } rest` and `if !c { rest }` take the same time in nine loops of different lengths, in
which the rest is predicated or branched over.
"""

from __future__ import annotations

from ..ir import ir


def nest_continues(body: ir.Region) -> None:
    """Move what follows a branch that ends in a `continue` into its other side, in the body of each loop."""
    for item in [*ir.items_of(body)]:
        if isinstance(item, ir.Loop):
            _nest(item)


def _nest(loop: ir.Loop) -> None:
    region: ir.Region | None = loop.body
    while region is not None:
        items, region = region.items, None
        for place, item in enumerate(items):
            if isinstance(item, ir.If) and (sides := _sides(item, loop)):
                continuing, other = sides
                continuing.items.pop()
                other.items += items[place + 1 :]
                del items[place + 1 :]
                region = other
                break


def _sides(branch: ir.If, loop: ir.Loop) -> tuple[ir.Region, ir.Region] | None:
    """Return the side of a branch that ends in a `continue` of this loop, and the other one, if there is one."""
    for side, other in ((branch.then, branch.orelse), (branch.orelse, branch.then)):
        last = side.items[-1] if side.items else None
        if isinstance(last, ir.Jump) and last.kind == "continue" and last.target.node is loop:
            return side, other
    return None
