"""What launches of one program on one device have in common, kept for the next: it depends on no data, size or grid.

It never changes once it is made, so that no run sees anything of another, whatever thread it is in. It lives no longer
than its program, and what is kept of all programs has no more than `ROOM`. Each step here is one operation of a dict:
threads cannot come between, and there is no lock that a process could be forked off with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from weakref import ref

from ..codegen.program import Program
from ..ir.sites import SourceSite
from ..models import Device
from .machine_arrays import AccessTable, strands_of
from .race_tables import Watched
from .schedules import Schedule
from .workspace import Template

ROOM = 32 << 20  # bytes
_LEAST = 1 << 14  # that an outfit has beside its mould

Key = tuple["ref[Program]", Device, Schedule, str, tuple[tuple[str, int], ...]]


class LaunchSetup:
    """`sites` of the program, with the widths of the texels that are bound; `mould`: its arrays before a run, made when
    a first one needs it."""

    def __init__(self, program: Program, device: Device, schedule: Schedule, policy: str, widths: Mapping[str, int]):
        self.sites = _with_widths(program.sites, widths)
        self.lockstep_groups = strands_of(program, device, schedule)
        self.accesses = AccessTable(program, device, policy)
        self.watched = Watched(program)
        self.template: Template | None = None

    @property
    def nbytes(self) -> int:
        return _LEAST + (0 if self.template is None else self.template.image.nbytes)


class LaunchSetups:
    """Outfits that are kept, those used last at the end."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._kept: dict[Key, LaunchSetup] = {}

    @property
    def nbytes(self) -> int:
        return sum(launch_setup.nbytes for launch_setup in list(self._kept.values()))

    def of(
        self, program: Program, device: Device, schedule: Schedule, policy: str, widths: Mapping[str, int]
    ) -> LaunchSetup:
        """The outfit of a program. `widths`: bytes of the texels that are bound, by the name of the texture."""
        key = (ref(program, self._forget), device, schedule, policy, tuple(widths.items()))
        known = self._kept.pop(key, None)
        launch_setup = known or LaunchSetup(program, device, schedule, policy, widths)
        self._kept[key] = launch_setup
        if known is None:
            self._make_room()
        return launch_setup

    def keep(self, launch_setup: LaunchSetup, template: Template) -> None:
        """Keep a mould, where it leaves room for others."""
        if template.image.nbytes <= self._room // 4:
            launch_setup.template = template
            self._make_room()

    def _make_room(self) -> None:
        """Let go what was used longest ago, until the rest has room."""
        over = self.nbytes - self._room
        for key in list(self._kept) if over > 0 else ():
            launch_setup = self._kept.pop(key, None)
            over -= 0 if launch_setup is None else launch_setup.nbytes
            if over <= 0:
                return

    def _forget(self, program: ref[Program]) -> None:
        """A program is gone."""
        for key in list(self._kept):
            if key[0] is program:
                self._kept.pop(key, None)


OUTFITS = LaunchSetups(ROOM)


def _with_widths(sites: list[SourceSite], widths: Mapping[str, int]) -> list[SourceSite]:
    if not widths:
        return sites
    known = [None if site.variable is None else widths.get(site.variable) for site in sites]
    return [s if width is None else replace(s, bytes_per_lane=width) for s, width in zip(sites, known, strict=True)]
