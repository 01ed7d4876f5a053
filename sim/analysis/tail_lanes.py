"""Where lanes past the last active one are worth leaving out: what stands under a mask, and is not over at once.

Where lanes part, the machine may go on with as many vectors of lanes as hold the last active one. What lanes compute
that are not active nobody sees, but for a shuffle, which may ask any lane of its subgroup.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from ..fast_dataclass import frozen
from ..ir import ir
from ..ir.ir import Item, Region, Value
from ..ir.passes import Passes
from .lane_uniformity import Uniformity

_WORTH = 4  # items on all lanes; leaving lanes out, and coming back to all, costs about as much as two
_ANY_LANE = ("shuffle", "shuffle_last")


@frozen
class TailLanes:
    """Where lanes are left out, by identity. `inside`: arms of `if`s, and loops. `after`: items inside which lanes
    leave something around them; they are left out of the rest of the region."""

    inside: set[int] = field(default_factory=set)
    after: set[int] = field(default_factory=set)


def find_tail_lanes(body: Region, uniformity: Uniformity, passes: Passes) -> TailLanes:
    """Where lanes that are not active are left out."""
    found = TailLanes()
    for region in ir.regions_of(body) if "idle" in passes else ():
        for place, item in enumerate(region.items):
            match item:
                case ir.If(then=then, orelse=orelse) if id(item) in uniformity.divergent:
                    found.inside.update(id(arm) for arm in (then, orelse) if _pays(arm.items))
                case ir.Loop() if id(item) in uniformity.divergent and _keeps_apart([item]):
                    found.inside.add(id(item))
                case _:
                    pass
            if id(item) in uniformity.leaving and _pays(region.items[place + 1 :]):
                found.after.add(id(item))
    return found


def _pays(items: Sequence[Item]) -> bool:
    return _is_long(items) and _keeps_apart(items)


def _is_long(items: Sequence[Item]) -> bool:
    """Whether there is a loop, or some work on all lanes."""
    every = _all(items)
    return any(isinstance(each, ir.Loop) for each in every) or sum(map(_is_of_all_lanes, every)) >= _WORTH


def _is_of_all_lanes(item: Item) -> bool:
    if isinstance(item, Value):
        return not item.uniform and item.op not in ("const", "bits", "get", "input")
    return isinstance(item, ir.Set | ir.Pick | ir.Put | ir.Load | ir.Store | ir.Atomic | ir.Collective)


def _keeps_apart(items: Iterable[Item]) -> bool:
    """Whether no lane asks what one has that may not be active."""
    return not any(isinstance(each, ir.Collective) and each.op in _ANY_LANE for each in _all(items))


def _all(items: Iterable[Item]) -> list[Item]:
    return [each for item in items for each in (item, *ir.items(item))]
