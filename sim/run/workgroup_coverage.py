"""Which workgroups ran for the counters of a run, and how many each represents."""

from __future__ import annotations

from collections.abc import Iterator

from ..fast_dataclass import sealed
from ..launch.shadow_pool import RECORDED

Place = tuple[int, int, int]


@sealed
class Coverage:
    """Which workgroups ran.

    `how` is "all", "classes" or "sample". Of the `workgroups` of the grid, `ran` were run for the counters. `classes`
    has the first workgroup_id of each class, and how many workgroups it represents. `why` is the proof, or why there is
    none, in words; empty unless classes were requested. `unwatched`: accesses of words in which races were not looked
    for, because they are irregular and shadow memory has no room for them. Each thread has a shadow of its own, so the
    number depends on which workgroups a thread runs (see docs/findings.md). `untried_orders`: orders of atomic
    operations in which outputs may differ, and that were not tried because they take too long.
    """

    how: str
    workgroups: int
    ran: int
    why: str = ""
    classes: tuple[tuple[Place, int], ...] = ()
    unwatched: int = 0
    untried_orders: int = 0

    @property
    def exact(self) -> bool:
        """Whether the counters are those of the whole grid."""
        return self.how != "sample"

    def __str__(self) -> str:
        return "; ".join((self._workgroups, *self._not_done))

    @property
    def _not_done(self) -> Iterator[str]:
        if self.unwatched:
            yield (
                f"watched in part: races were not looked for in {self.unwatched:,} accesses, which are irregular and "
                f"past the first {RECORDED:,} elements of the bindings"
            )
        if self.untried_orders:
            more = "1 more order" if self.untried_orders == 1 else f"{self.untried_orders:,} more orders"
            yield f"{more} of atomic operations would take too long without --thorough"

    @property
    def _workgroups(self) -> str:
        why = f": {self.why}" if self.why else ""
        if self.how == "classes":
            representatives = "1 representative" if self.ran == 1 else f"{self.ran:,} representatives"
            return f"{self.workgroups:,} workgroups, {representatives} simulated{why}"
        if self.how == "sample":
            return f"a sample: {self.ran:,} of {self.workgroups:,} workgroups ran"
        return f"all {self.workgroups:,} workgroups ran{why}" if self.workgroups > 1 else "the only workgroup ran"
