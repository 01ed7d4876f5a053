"""A cache of what launches of a program on a device share: it does not depend on data, sizes or the grid.

Entries never change, so runs cannot affect each other, in any thread. An entry lives no longer than its program, and
all of them take no more than `ROOM` bytes. Each step is one operation of a dict, atomic without a lock, which a process
could be forked with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from ..codegen.program import Program
from ..ir.sites import SourceSite
from ..mechanisms import all_off
from ..models import Device
from .machine_arrays import AccessTable, lockstep_groups_of
from .race_tables import WatchedAccesses
from .schedules import Schedule
from .workspace import LaunchTables, Template

ROOM = 32 << 20  # bytes
_LEAST = 1 << 14  # bytes of a setup without its template

Key = tuple["ref[Program]", Device, Schedule, str, tuple[tuple[str, int], ...], frozenset[str]]


class LaunchSetup:
    """What the launches of a program share.

    `program`: one with the widths of the bound texels, if there are any; `template` is made by the first launch.
    """

    def __init__(self, program: Program, device: Device, schedule: Schedule, policy: str, widths: Mapping[str, int]):
        self.program = replace(program, sites=_with_widths(program.sites, widths)) if widths else None
        self.lockstep_groups = lockstep_groups_of(program, device, schedule)
        self.accesses = AccessTable(program, device, policy)
        self.watched = WatchedAccesses(program)
        self.template: Template | None = None
        self._last: tuple[tuple[int, ...], object, object, LaunchTables] | None = None

    def tables(
        self,
        grid: tuple[int, ...],
        options: object,
        placed: NDArray[np.int64],
        make: Callable[[], LaunchTables],
    ) -> LaunchTables:
        """Return the tables of a launch: those of the last one, if it had this grid, equal options, and this very
        access table for the places of its bindings."""
        if self._last is not None:
            known_grid, known_options, known_places, tables = self._last
            if known_places is placed and known_grid == grid and known_options == options:
                return tables
        tables = make()
        self._last = grid, options, placed, tables  # one assignment: another thread sees all or nothing
        return tables

    @property
    def nbytes(self) -> int:
        return _LEAST + (0 if self.template is None else self.template.nbytes)


class LaunchSetups:
    """A cache of setups, the most recently used last."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._kept: dict[Key, LaunchSetup] = {}

    @property
    def nbytes(self) -> int:
        return sum([launch_setup.nbytes for launch_setup in list(self._kept.values())])

    def of(
        self, program: Program, device: Device, schedule: Schedule, policy: str, widths: Mapping[str, int]
    ) -> LaunchSetup:
        """Return the setup of a program. `widths` has the bytes per texel of each bound texture, by name."""
        key = (ref(program, self._forget), device, schedule, policy, tuple(widths.items()), all_off())
        known = self._kept.pop(key, None)
        launch_setup = known or LaunchSetup(program, device, schedule, policy, widths)
        self._kept[key] = launch_setup
        if known is None:
            self._make_room()
        return launch_setup

    def keep(self, launch_setup: LaunchSetup, template: Template) -> None:
        """Keep a template, if it leaves room for others."""
        if template.image.nbytes <= self._room // 4:
            launch_setup.template = template
            self._make_room()

    def _make_room(self) -> None:
        """Drop the least recently used setups until the rest fits."""
        over = self.nbytes - self._room
        for key in list(self._kept) if over > 0 else ():
            launch_setup = self._kept.pop(key, None)
            over -= 0 if launch_setup is None else launch_setup.nbytes
            if over <= 0:
                return

    def _forget(self, program: ref[Program]) -> None:
        """Drop the setups of a program that no longer exists."""
        for key in list(self._kept):
            owner, *_ = key
            if owner is program:
                self._kept.pop(key, None)


LAUNCH_SETUPS = LaunchSetups(ROOM)


def _with_widths(sites: list[SourceSite], widths: Mapping[str, int]) -> list[SourceSite]:
    known = [widths.get(site.variable or "") for site in sites]
    return [s if width is None else replace(s, bytes_per_lane=width) for s, width in zip(sites, known, strict=True)]
