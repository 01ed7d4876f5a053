"""The phases of a program: what subgroups do between two places where they wait for each other."""

from __future__ import annotations

from ..ir import ir


class Phases:
    """Numbers the phases of a program. `busy`: the current one has accessed memory or looped."""

    def __init__(self) -> None:
        self.current = 0
        self.busy = False
        self._inside = 0  # so many loops without barriers

    def end(self) -> None:
        """End the phase here, if it has done anything and is not inside a loop without barriers."""
        if self.busy and not self._inside:
            self.current += 1
            self.busy = False

    def before_loop(self, loop: ir.Loop, barriers: bool) -> bool:
        """Begin a loop. Returns whether it has barriers. `barriers`: subgroups wait at them."""
        self.end()
        waits = barriers and not self._inside and any(isinstance(item, ir.Barrier) for item in ir.items(loop))
        self._inside += not waits
        return waits

    def after_loop(self, waits: bool) -> None:
        """End a loop that `before_loop` began."""
        if not waits:
            self._inside -= 1
            self.busy = True
        self.end()
