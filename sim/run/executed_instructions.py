"""The instructions that a run executed, by class and place in the source."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ..codegen.program import Program
from ..fast_dataclass import sealed
from ..ir.instruction_classes import CLASSES, class_of_site
from ..machine import layout as at
from ..wgsl.source import Span


@sealed
class Instructions:
    """The instructions of one class at one place: how often subgroups executed them, and how often active lanes did."""

    kind: str  # one of `ir.instruction_classes.CLASSES`
    span: Span
    executions: int
    lanes: int

    @property
    def line(self) -> int:
        """1-based line in its original file."""
        return self.span.line


def count_instructions(program: Program, blocks: NDArray[np.int64]) -> list[Instructions]:
    """Count the instructions of a run, in the order of the source. `blocks`: see `machine.layout`."""
    found: dict[tuple[str, Span], list[int]] = {}
    for run, computed, block in zip(program.block_sites, program.block_instructions, blocks.tolist(), strict=False):
        written = dict(computed)
        for site in (program.sites[number] for number in run):
            if (kind := class_of_site(site)) is not None:
                written[kind, site.span] = written.get((kind, site.span), 0) + 1
        for key, times in written.items():
            counts = found.setdefault(key, [0, 0])
            counts[0] += times * block[at.EXECUTIONS]
            counts[1] += times * block[at.ACTIVE]
    rows = [Instructions(*key, *counts) for key, counts in found.items() if counts[0]]
    return sorted(rows, key=lambda row: (row.span.place.file, row.span.place.line, row.span.place.column, row.kind))


def by_class(rows: Iterable[Instructions]) -> dict[str, tuple[int, int]]:
    """Add up executions and lanes of each class that occurs, in the order of `CLASSES`."""
    sums = {kind: [0, 0] for kind in CLASSES}
    for row in rows:
        sums[row.kind][0] += row.executions
        sums[row.kind][1] += row.lanes
    return {kind: (executions, lanes) for kind, (executions, lanes) in sums.items() if executions}
