"""Where an entry point begins in earnest: behind the conditions that stand around all that it does.

`if (id.x >= n) { return; }` is such a guard, and so is an `if` that holds everything: lanes that it keeps out are
missing from what follows for another reason than those that wait while others take a branch or a turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import ir
from .ir import Item, Region
from .sites import Site


def bodies(root: Region, sites: Sequence[Site]) -> set[int]:
    """Identities of the regions that are the entry point's body: its own, and, where one arm of an `if`, a block that
    is jumped out of or an inlined call holds all the work of such a region, that too.

    Work is what others can see: access to memory that is shared, barriers, exchange within subgroups.
    """
    found: set[int] = set()
    region: Region | None = root
    while region is not None:
        found.add(id(region))
        busy = [item for item in region.items if _works(item, sites)]
        arms = [arm for arm in _arms(busy[0]) if _works_in(arm, sites)] if len(busy) == 1 else []
        region = arms[0] if len(arms) == 1 and not isinstance(busy[0], ir.Loop) else None
    return found


def _arms(item: Item) -> tuple[Region, ...]:
    match item:
        case ir.If(then=then, orelse=orelse):
            return (then, orelse)
        case ir.Loop(header=header, body=body, continuing=continuing):
            return (header, body, continuing)
        case ir.Scope(body=body):
            return (body,)
    return ()


def _works(item: Item, sites: Sequence[Site]) -> bool:
    if isinstance(item, ir.Count):
        return any(sites[s].is_work or sites[s].kind in ("barrier", "subgroup") for s in item.sites)
    return any(_works_in(arm, sites) for arm in _arms(item))


def _works_in(region: Region, sites: Sequence[Site]) -> bool:
    return any(_works(item, sites) for item in region.items)
