"""Where an entry point begins in earnest: behind the conditions that stand around all that it does.

`if (id.x >= n) { return; }` is such a guard, and so is an `if` that holds everything: lanes that it keeps out are
missing from what follows for another reason than those that wait while others take a branch or a turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import ir
from ..ir.ir import Item, Region
from ..ir.sites import SourceSite


def find_bodies(root: Region, sites: Sequence[SourceSite]) -> set[int]:
    """Identities of the regions that are the entry point's body: its own, and, where one arm of an `if`, a block that
    is jumped out of or an inlined call holds all the work of such a region, that too.

    Work is what others can see: access to memory that is shared, barriers, exchange within subgroups.
    """
    found: set[int] = set()
    region: Region | None = root
    while region is not None:
        found.add(id(region))
        busy = [item for item in region.items if _works(item, sites)]
        inside = ir.regions(busy[0]) if len(busy) == 1 and not isinstance(busy[0], ir.Loop) else ()
        arms = [arm for arm in inside if any(_works(each, sites) for each in arm.items)]
        region = arms[0] if len(arms) == 1 else None
    return found


def _works(item: Item, sites: Sequence[SourceSite]) -> bool:
    counts = [each for each in (item, *ir.items(item)) if isinstance(each, ir.Count)]
    return any(sites[s].is_work or sites[s].kind in ("barrier", "subgroup") for count in counts for s in count.sites)
