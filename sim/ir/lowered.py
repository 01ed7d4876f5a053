"""A lowered entry point: its ir, with what codegen and the launch need beside it."""

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
    """What the emitter and the launch need."""

    builder: Builder
    body: ir.Region
    accesses: list[Access]
    sites: SiteTable
    spans: dict[int, Span]  # of loops, branches and conversions, by identity
    inspects: list[ir.Inspect]
    points: list[Point]
