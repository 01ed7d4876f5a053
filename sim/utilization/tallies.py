"""Issue slots, by place in the source."""

from __future__ import annotations

from ..fast_dataclass import entity
from ..wgsl.source import Span

Place = tuple[str, Span]  # class of an instruction, and its source


@entity
class Tally:
    """Issue slots: lanes of the subgroups that executed a place, those that were active, and those of use."""

    issued: int = 0
    active: int = 0
    useful: int = 0

    def add(self, issued: int, active: int) -> None:
        """Count an execution by the lanes `active`."""
        self.issued += issued
        self.active += active.bit_count()
