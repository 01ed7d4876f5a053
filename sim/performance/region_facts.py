"""What chains need to know about the regions of a program before they come to them."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import ir
from ..ir.sites import SourceSite
from .instruction_costs import cost_of_access


def leaving(body: ir.Region) -> frozenset[int]:
    """Return the identities of constructs with jumps out of them: fewer invocations may execute what follows."""
    found = set[int]()

    def left(construct: ir.If | ir.Loop | ir.Scope) -> set[int]:
        """Return the identities of what jumps inside a construct leave, besides itself."""
        inside = [item for region in ir.regions(construct) for item in region.items]
        nodes = {id(item.target.node) for item in inside if isinstance(item, ir.Jump)}
        nodes = nodes.union(*(left(item) for item in inside if isinstance(item, ir.If | ir.Loop | ir.Scope)))
        nodes.discard(id(construct))
        if nodes:
            found.add(id(construct))
        return nodes

    for item in body.items:
        if isinstance(item, ir.If | ir.Loop | ir.Scope):
            left(item)
    return frozenset(found)


def storage_loads(body: ir.Region, sites: Sequence[SourceSite]) -> dict[int, int]:
    """Return the number of loads from storage in each branch, and in each side of one, by identity."""
    found = dict[int, int]()

    def count(region: ir.Region) -> int:
        loads = 0
        for item in region.items:
            if isinstance(item, ir.Load):
                loads += cost_of_access(item, sites).step == "storage_load"
            elif inner := ir.regions(item):
                counts = {id(each): count(each) for each in inner}
                loads += sum(counts.values())
                if isinstance(item, ir.If):
                    found.update({**counts, id(item): sum(counts.values())})
        return loads

    count(body)
    return found
