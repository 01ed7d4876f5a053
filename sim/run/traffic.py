"""Bytes that a run requests, moves and needs of each storage buffer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf

from ..fast_dataclass import sealed
from .dispatch import Dispatch
from .site import Site


@sealed
class Traffic:
    """Bytes of one buffer.

    `asked`: requested by active lanes. `moved`: in the sectors that requests touch, which would move if nothing were
    cached. `distinct`: in the 4-byte words that are accessed at all, its compulsory traffic. `size`: of the buffer.
    """

    buffer: str
    asked: int
    moved: int
    distinct: int
    size: int

    @property
    def reuse(self) -> float:
        """How often each accessed byte is requested, on average."""
        return self.asked / self.distinct if self.distinct else 0.0

    @property
    def again(self) -> float:
        """How often each accessed byte moves, on average: 1 where one request uses the whole of each sector."""
        return self.moved / self.distinct if self.distinct else 0.0


def traffic(dispatch: Dispatch, sites: Iterable[Site], touched: Mapping[str, int]) -> list[Traffic]:
    """Return the traffic of every bound storage buffer. `touched`: accessed bytes of each, by name."""
    rows = list(sites)
    found: list[Traffic] = []
    for bound in dispatch.bound:
        if bound.variable.space == "storage":
            mine = [row for row in rows if row.site.variable == bound.variable.name]
            asked = sum(row.global_bytes for row in mine)
            moved = sum(row.global_sectors for row in mine) * dispatch.device.sector_bytes
            name = bound.variable.name
            found.append(Traffic(name, asked, moved, touched[name], len(bound.data)))
    return found


def intensities(flops: float, buffers: Iterable[Traffic]) -> dict[str, float]:
    """Return operations per byte requested, moved and needed: where reuse would put a kernel on a roofline."""
    rows = list(buffers)
    sums = {name: sum(getattr(each, name) for each in rows) for name in ("asked", "moved", "distinct")}
    return {name: flops / total if total else inf for name, total in sums.items()}
