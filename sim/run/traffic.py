"""What a run moves of each storage buffer, against what it could not do without."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf

from ..fast_dataclass import sealed
from .dispatch import Dispatch
from .site import Site


@sealed
class Traffic:
    """Bytes of one buffer. `asked`: by active lanes, all together; `moved`: of the sectors that their requests touch,
    which is what would move if no cache held any of it; `distinct`: that are touched at all, in words of 4 bytes, which
    has to move once whatever holds it (its compulsory traffic); `size`: of the buffer."""

    buffer: str
    asked: int
    moved: int
    distinct: int
    size: int

    @property
    def reuse(self) -> float:
        """How often each byte that is touched is asked for."""
        return self.asked / self.distinct if self.distinct else 0.0

    @property
    def again(self) -> float:
        """How often each byte that is touched moves: 1 where every sector is touched by one request, and whole."""
        return self.moved / self.distinct if self.distinct else 0.0


def traffic(dispatch: Dispatch, sites: Iterable[Site], touched: Mapping[str, int]) -> list[Traffic]:
    """The traffic of every storage buffer that is bound, in that order. `touched`: bytes of each, by name."""
    rows = list(sites)
    found = []
    for bound in dispatch.bound:
        if bound.variable.space == "storage":
            mine = [row for row in rows if row.space == "storage" and row.site.variable == bound.variable.name]
            asked = sum(row.global_bytes for row in mine)
            moved = sum(row.global_sectors for row in mine) * dispatch.device.sector_bytes
            name = bound.variable.name
            found.append(Traffic(name, asked, moved, touched[name], len(bound.data)))
    return found


def intensities(flops: float, buffers: Iterable[Traffic]) -> dict[str, float]:
    """Operations for each byte asked for, moved, and compulsory: how far reuse could take a kernel under a roofline."""
    rows = list(buffers)
    sums = {name: sum(getattr(each, name) for each in rows) for name in ("asked", "moved", "distinct")}
    return {name: flops / total if total else inf for name, total in sums.items()}
