"""Source sites: one row per access, operation or barrier as written, for which the machine counts.

A function that is inlined several times still has one site per expression.
"""

from __future__ import annotations

from dataclasses import field

from ..fast_dataclass import entity, frozen
from ..wgsl.source import Source, Span

Place = tuple[int, int, str, str | None]  # where it starts and ends, its kind and variable


@frozen(slots=True)
class SourceSite:
    """A place in the source. `kind` is load, store, atomic, barrier, subgroup, op, or index (checked, not counted).

    Memory sites have a space and a variable. `bytes_per_lane` is 0 for a sampled texture, whose format is unknown until
    it is bound. `part` numbers the accesses of one expression (the columns of a matrix, the members of a struct).
    `flops` is per active lane and execution.
    """

    kind: str
    span: Span
    space: str | None = None
    variable: str | None = None
    bytes_per_lane: int = 0
    part: int = 0
    flops: int = 0
    name: str | None = None  # of the builtin or operator

    def __hash__(self) -> int:
        """By what tells the sites of a module apart."""
        return hash((self.span.start, self.span.end, self.kind, self.part))

    @property
    def place(self) -> Place:
        """What the parts of one access have in common."""
        return self.span.start, self.span.end, self.kind, self.variable

    @property
    def line(self) -> int:
        return self.span.line

    @property
    def is_work(self) -> bool:
        """Whether it accesses memory that other invocations or the host can see."""
        return self.kind in ("load", "store", "atomic") and self.space in ("storage", "workgroup", "texture")

    @property
    def takes_turns(self) -> bool:
        """Whether lanes that access the same word are serialized: read-modify-write atomics."""
        return self.kind == "atomic" and self.name not in _PLAIN_ATOMICS


_PLAIN_ATOMICS = ("atomicLoad", "atomicStore", "workgroupUniformLoad")  # cost as much as other loads and stores

NO_SITE = SourceSite("none", Span(Source(""), 0, 0))


@entity
class SiteTable:
    rows: list[SourceSite] = field(default_factory=list[SourceSite])
    _numbers: dict[SourceSite, int] = field(default_factory=dict[SourceSite, int])

    def number(self, site: SourceSite) -> int:
        """Return the number of a site, the same for equal sites."""
        number = self._numbers.setdefault(site, len(self.rows))
        if number == len(self.rows):
            self.rows.append(site)
        return number
