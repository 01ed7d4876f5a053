"""Which workgroups ran for the counters of a run, and for how many each stands."""

from __future__ import annotations

from ..fast_dataclass import sealed

Place = tuple[int, int, int]


@sealed
class Coverage:
    """`how` is all, classes or sample. `workgroups` of the grid, of which `ran` were run for the counters; `classes`:
    the first workgroup_id of each class, and how many workgroups do what it does. `why`: the proof, or why there is
    none, in words; empty where nobody asked for it."""

    how: str
    workgroups: int
    ran: int
    why: str = ""
    classes: tuple[tuple[Place, int], ...] = ()

    @property
    def exact(self) -> bool:
        """Whether the counters are those of the whole grid."""
        return self.how != "sample"

    def __str__(self) -> str:
        why = f": {self.why}" if self.why else ""
        if self.how == "classes":
            return f"counters of {self.workgroups:,} workgroups from {self.ran:,} that ran{why}"
        if self.how == "sample":
            return f"a sample: {self.ran:,} of {self.workgroups:,} workgroups ran, of the others nothing is known"
        return f"all {self.workgroups:,} workgroups ran{why}" if self.workgroups > 1 else "the only workgroup ran"
