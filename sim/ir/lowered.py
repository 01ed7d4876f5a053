"""A lowered entry point: its ir, and the tables that ir refers to."""

from __future__ import annotations

from ..fast_dataclass import entity
from ..wgsl.source import Span
from . import ir
from .access import Access
from .builder import Builder
from .sites import SiteTable
from .trace_points import Point


@entity
class Lowered:
    """The body of an entry point, with the tables that codegen and the launch need."""

    builder: Builder
    body: ir.Region
    accesses: list[Access]
    sites: SiteTable
    spans: dict[int, Span]  # of loops, branches and conversions, by identity
    inspects: list[ir.Inspect]
    points: list[Point]

    def discard(self) -> None:
        """Empty the body, once nothing needs it any more: its memory is free at once, without a garbage collection.

        A region holds its values, and a value its region."""
        for region in ir.regions_of(self.body):
            region.items.clear()
        for slot in self.builder.slots:
            slot.block = None
