"""Places in the source that are counted: one row for each access, operation or barrier as written.

A piece of source that is inlined several times is still one place.
"""

from __future__ import annotations

from dataclasses import field

from ..fast_dataclass import entity, frozen
from ..wgsl.source import Source, Span


@frozen
class SourceSite:
    """`kind` is load, store, atomic, barrier, subgroup, op, or index: one that is looked at, and not counted.

    Memory sites say where they point; `bytes_per_lane` of a sampled texture, whose format is not known before it is
    bound, is 0.
    `part` tells apart the accesses that one expression makes (the columns of a matrix, the members of a struct).
    `flops` is per active lane and execution.
    """

    kind: str
    span: Span
    space: str | None = None
    variable: str | None = None
    bytes_per_lane: int = 0
    part: int = 0
    flops: int = 0
    name: str | None = None  # of the operation, atomic ones too

    @property
    def line(self) -> int:
        return self.span.line

    @property
    def is_work(self) -> bool:
        """Whether an invocation that comes here does something for the result: reads or writes what others can see."""
        return self.kind in ("load", "store", "atomic") and self.space in ("storage", "workgroup", "texture")

    @property
    def takes_turns(self) -> bool:
        """Whether lanes that meet on a word are served one after the other: atomic operations that read and write."""
        return self.kind == "atomic" and self.name not in _PLAIN_ATOMICS


_PLAIN_ATOMICS = ("atomicLoad", "atomicStore", "workgroupUniformLoad")  # cost what other loads and stores do

NO_SITE = SourceSite("none", Span(Source(""), 0, 0))


@entity
class SiteTable:
    rows: list[SourceSite] = field(default_factory=list)
    _numbers: dict[SourceSite, int] = field(default_factory=dict)

    def number(self, site: SourceSite) -> int:
        """The number of this site, the same for equal sites."""
        if site not in self._numbers:
            self._numbers[site] = len(self.rows)
            self.rows.append(site)
        return self._numbers[site]
