"""The guards of an entry point: the conditions around all of its work.

`if (id.x >= n) { return; }` is a guard, and so is an `if` that contains everything. Lanes that a guard keeps out are
counted apart from lanes that diverge, which wait while others take a branch or an iteration.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import ir
from ..ir.ir import Item, Region, Value
from ..ir.sites import SourceSite


def find_bodies(root: Region, sites: Sequence[SourceSite]) -> set[int]:
    """Return the identities of the regions that make up the entry point's body.

    These are its own region and, where one arm of an `if`, a clause of a `switch` or an inlined call has all the work
    of such a region, the region of that too. Work is what other invocations can see: accesses to shared memory,
    barriers, and exchange within subgroups.
    """
    found: set[int] = set()
    region: Region | None = root
    clauses = False  # whether the region holds the clauses of a switch, which together are one statement
    while region is not None:
        if not clauses:
            found.add(id(region))
        busy = [item for item in region.items if _works(item, sites)]
        inside = ir.regions(busy[0]) if len(busy) == 1 and not isinstance(busy[0], ir.Loop) else ()
        arms = [arm for arm in inside if any(_works(each, sites) for each in arm.items)]
        region = arms[0] if len(arms) == 1 else None
        clauses = bool(arms) and isinstance(busy[0], ir.Scope) and busy[0].is_switch
    return found


def _works(item: Item, sites: Sequence[SourceSite]) -> bool:
    if isinstance(item, Value):  # the most frequent
        return False
    counts = [each for each in (item, *ir.items(item)) if isinstance(each, ir.Count)]
    return any(sites[s].is_work or sites[s].kind in ("barrier", "subgroup") for count in counts for s in count.sites)
