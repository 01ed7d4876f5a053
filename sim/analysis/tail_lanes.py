"""Where it pays to leave out the tail lanes, those past the last active one.

Where lanes diverge, the machine may narrow to the vectors up to the last active lane. No program can see what inactive
lanes compute, except by a shuffle, which may read any lane of its subgroup. Narrowing pays for itself in code that is
long enough, or that loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from ..fast_dataclass import frozen
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


def find_tail_lanes(body: Region, uniformity: Uniformity, passes: Passes) -> TailLanes:
    """Find where to narrow."""
    found = TailLanes()
    if "tail_lanes" not in passes or not (uniformity.divergent or uniformity.leaving):
        return found
    for region in ir.regions_of(body):
        for place, item in enumerate(region.items):
            if type(item) not in ir.WITH_REGIONS:
                continue
            match item:
                case ir.If(then=then, orelse=orelse) if id(item) in uniformity.divergent:
                    found.inside.update(id(arm) for arm in (then, orelse) if _pays(arm.items))
                case ir.Loop() if id(item) in uniformity.divergent and _reads_active_lanes_only([item]):
                    found.inside.add(id(item))
                case _:
                    pass
            if id(item) in uniformity.leaving and _pays(region.items[place + 1 :]):
                found.after.add(id(item))
    return found


def _pays(items: Sequence[Item]) -> bool:
    return _is_long(items) and _reads_active_lanes_only(items)


def _is_long(items: Sequence[Item]) -> bool:
    """Whether there is a loop, or enough work on all lanes."""
    work = 0
    for each in _all(items):
        work += _is_on_all_lanes(each)
        if work >= _MIN_ITEMS or isinstance(each, ir.Loop):
            return True
    return False


def _is_on_all_lanes(item: Item) -> bool:
    if isinstance(item, Value):
        return not item.uniform and item.op not in ("const", "bits", "get", "input")
    return isinstance(item, (ir.Set, ir.Pick, ir.Put, ir.Load, ir.Store, ir.Atomic, ir.Collective))


def _reads_active_lanes_only(items: Iterable[Item]) -> bool:
    """Whether no lane reads a value of one that may be inactive."""
    return not any(isinstance(each, ir.Collective) and each.op in _ANY_LANE for each in _all(items))


def _all(items: Iterable[Item]) -> Iterator[Item]:
    for item in items:
        yield item
        if type(item) in ir.WITH_REGIONS:
            yield from ir.items(item)
