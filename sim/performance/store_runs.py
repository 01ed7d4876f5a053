"""Stores of one invocation to neighbouring words, one right after the other.

They reach the L2 cache together. On an H200, four stores to the words of a vec4 take as long as two of vec2 if nothing
but other accesses and arithmetic lies between them, and twice as long in a loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..analysis.uses import split
from ..fast_dataclass import frozen
from ..ir import ir
from ..ir.ir import Item, Value
from ..ir.lowered import Lowered
from ..ir.sites import SourceSite
from ..wgsl.typed import Variable

_Key = tuple[Variable, int, int | None, Value | None, Value | None]  # all of a store but the constant in its address


@frozen
class _Stored:
    """A store to the bytes from `first` up to `end`, counted from the part of the address that its run shares."""

    first: int
    end: int
    site: SourceSite


def store_runs(lowered: Lowered) -> Mapping[SourceSite, int]:
    """Return the bytes that each store to storage writes together with its neighbours, for those that have any."""
    found: dict[SourceSite, int] = {}
    for items in ir.straight_runs(lowered.body):
        for stores in _by_key(lowered, items):
            for run in _neighbors(stores):
                size = run[-1].end - run[0].first
                for each in run if len(run) > 1 else ():  # of a site that is part of several runs, the shortest counts
                    found[each.site] = min(size, found.get(each.site, size))
    return found


def _by_key(lowered: Lowered, items: Sequence[Item]) -> Iterable[list[_Stored]]:
    """Return the stores to storage, those together whose addresses differ by constants."""
    found: dict[_Key, list[_Stored]] = {}
    for item in items:
        if not isinstance(item, ir.Store) or item.site < 0:
            continue
        access, parts = lowered.accesses[item.access], split(item.address)
        if access.memory == "storage":
            first = (access.offset + parts.constant) * access.unit
            key = access.variable, access.stride, access.count, parts.lane, parts.shared
            stored = _Stored(first, first + access.bytes_per_lane, lowered.sites.rows[item.site])
            found.setdefault(key, []).append(stored)
    return found.values()


def _neighbors(stores: list[_Stored]) -> Iterator[list[_Stored]]:
    """Divide stores into runs in which each begins where the one before it ends."""
    run: list[_Stored] = []
    for each in sorted(stores, key=lambda store: (store.first, store.end)):
        if run and each.first != run[-1].end:
            yield run
            run = []
        run.append(each)
    yield run
