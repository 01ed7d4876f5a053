"""Where it pays to leave out the tail lanes, those past the last active one.

Where lanes diverge, the machine may narrow to the vectors up to the last active lane. No program can see what inactive
lanes compute, except by a shuffle, which may read any lane of its subgroup. Narrowing pays for itself in code that is
long enough, or that loops.
"""

from __future__ import annotations

from dataclasses import field

from ..fast_dataclass import entity, frozen
from ..ir import ir
from ..ir.ir import Item, Region, Value
from ..ir.passes import Passes
from .lane_uniformity import Uniformity

_MIN_ITEMS = 4  # on all lanes; to narrow and restore costs about as much as two of them
_ANY_LANE = ("shuffle", "shuffle_last")


@frozen
class TailLanes:
    """Where to narrow, by identity. `inside`: in arms of `if`s, and in loops. `after`: in the rest of a region, behind
    items inside which lanes leave an enclosing construct."""

    inside: set[int] = field(default_factory=set[int])
    after: set[int] = field(default_factory=set[int])


@entity
class _Content:
    """What is in some items, and in those inside them: how many work on all lanes, and whether there are loops and
    operations that read a lane which may be inactive."""

    work: int = 0
    loops: bool = False
    shuffles: bool = False

    @property
    def pays(self) -> bool:
        """Whether it pays to narrow for them: there is a loop, or enough work, and no lane reads an inactive one."""
        return (self.loops or self.work >= _MIN_ITEMS) and not self.shuffles

    def add_item(self, item: Item) -> None:
        if isinstance(item, Value):
            self.work += not item.uniform and item.op not in ("const", "bits", "get", "input")
        elif isinstance(item, ir.Collective):
            self.work += 1
            self.shuffles |= item.op in _ANY_LANE
        else:
            self.work += isinstance(item, (ir.Set, ir.Pick, ir.Put, ir.Load, ir.Store, ir.Atomic))
            self.loops |= isinstance(item, ir.Loop)

    def add(self, other: _Content) -> None:
        self.work += other.work
        self.loops |= other.loops
        self.shuffles |= other.shuffles


def find_tail_lanes(body: Region, uniformity: Uniformity, passes: Passes) -> TailLanes:
    """Find where to narrow."""
    found = TailLanes()
    if "tail_lanes" in passes and (uniformity.divergent or uniformity.leaving):
        _visit(body, uniformity, found)
    return found


def _visit(region: Region, uniformity: Uniformity, found: TailLanes) -> _Content:
    """Find where to narrow in a region, in one pass from its end. Returns what is in it."""
    after = _Content()  # what is in the items after the present one
    for item in reversed(region.items):
        if type(item) in ir.WITH_REGIONS:
            if id(item) in uniformity.leaving and after.pays:
                found.after.add(id(item))
            inner = {id(part): _visit(part, uniformity, found) for part in ir.regions(item)}
            if id(item) in uniformity.divergent:
                if isinstance(item, ir.If):
                    found.inside.update(arm for arm, content in inner.items() if content.pays)
                elif isinstance(item, ir.Loop) and not any(content.shuffles for content in inner.values()):
                    found.inside.add(id(item))
            for content in inner.values():
                after.add(content)
        after.add_item(item)
    return after
