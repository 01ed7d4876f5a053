"""Stores of one invocation to neighbouring words, one right after the other.

They reach the L2 cache together. On an H200, four stores to the words of a vec4 take as long as two of vec2 if nothing
but other accesses and arithmetic lies between them, and twice as long in a loop.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..analysis.uses import split
from ..fast_dataclass import frozen
from ..ir import ir
from ..ir.ir import Region, Value
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
    search = _Search(lowered)
    search.region(lowered.body)
    return search.found


class _Search:
    def __init__(self, lowered: Lowered) -> None:
        self._accesses, self._sites = lowered.accesses, lowered.sites.rows
        self._open: dict[_Key, list[_Stored]] = {}
        self.found: dict[SourceSite, int] = {}

    def region(self, region: Region) -> None:
        """Search a region and those inside it. Stores before and after these are not together."""
        for item in region.items:
            if isinstance(item, ir.Store) and item.site >= 0:
                self._store(item)
            elif inner := ir.regions(item):
                self._close()
                for each in inner:
                    self.region(each)
            elif isinstance(item, ir.Barrier | ir.Jump):
                self._close()
        self._close()

    def _store(self, item: ir.Store) -> None:
        access, parts = self._accesses[item.access], split(item.address)
        if access.memory == "storage":
            first = (access.offset + parts.constant) * access.unit
            key = access.variable, access.stride, access.count, parts.lane, parts.shared
            stored = _Stored(first, first + access.bytes_per_lane, self._sites[item.site])
            self._open.setdefault(key, []).append(stored)

    def _close(self) -> None:
        for stores in self._open.values():
            run: list[_Stored] = []
            for each in sorted(stores, key=lambda store: (store.first, store.end)):
                if run and each.first != run[-1].end:
                    self._note(run)
                    run = []
                run.append(each)
            self._note(run)
        self._open.clear()

    def _note(self, run: list[_Stored]) -> None:
        """Note a run of several. Of a site that is part of more than one, the shortest counts."""
        size = run[-1].end - run[0].first
        for each in run if len(run) > 1 else ():
            self.found[each.site] = min(size, self.found.get(each.site, size))
