"""What launches of one program on one device have in common, kept for the next: it depends on no data, size or grid.

It never changes once it is made, so that no run sees anything of another, whatever thread it is in. It lives no longer
than its program, and what is kept of all programs has no more than `ROOM`. Each step here is one operation of a dict:
threads cannot come between, and there is no lock that a process could be forked off with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from weakref import ref

from ..models import Device
from ..program.program import Program
from ..program.sites import Site
from .arrays import AccessTable, strands_of
from .desks import Mould
from .schedules import Schedule
from .watching import Watched

ROOM = 32 << 20  # bytes
_LEAST = 1 << 14  # that an outfit has beside its mould

Key = tuple["ref[Program]", Device, Schedule, str, tuple[tuple[str, int], ...]]


class Outfit:
    """`sites` of the program, with the widths of the texels that are bound; `mould`: its arrays before a run, made when
    a first one needs it."""

    def __init__(self, program: Program, device: Device, schedule: Schedule, policy: str, widths: Mapping[str, int]):
        self.sites = _with_widths(program.sites, widths)
        self.strands = strands_of(program, device, schedule)
        self.accesses = AccessTable(program, device, policy)
        self.watched = Watched(program)
        self.mould: Mould | None = None

    @property
    def nbytes(self) -> int:
        return _LEAST + (0 if self.mould is None else self.mould.image.nbytes)


class Outfits:
    """Outfits that are kept, those used last at the end."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._kept: dict[Key, Outfit] = {}

    @property
    def nbytes(self) -> int:
        return sum(outfit.nbytes for outfit in list(self._kept.values()))

    def of(
        self, program: Program, device: Device, schedule: Schedule, policy: str, widths: Mapping[str, int]
    ) -> Outfit:
        """The outfit of a program. `widths`: bytes of the texels that are bound, by the name of the texture."""
        key = (ref(program, self._forget), device, schedule, policy, tuple(widths.items()))
        known = self._kept.pop(key, None)
        outfit = known or Outfit(program, device, schedule, policy, widths)
        self._kept[key] = outfit
        if known is None:
            self._make_room()
        return outfit

    def keep(self, outfit: Outfit, mould: Mould) -> None:
        """Keep a mould, where it leaves room for others."""
        if mould.image.nbytes <= self._room // 4:
            outfit.mould = mould
            self._make_room()

    def _make_room(self) -> None:
        """Let go what was used longest ago, until the rest has room."""
        over = self.nbytes - self._room
        for key in list(self._kept) if over > 0 else ():
            outfit = self._kept.pop(key, None)
            over -= 0 if outfit is None else outfit.nbytes
            if over <= 0:
                return

    def _forget(self, program: ref[Program]) -> None:
        """A program is gone."""
        for key in list(self._kept):
            if key[0] is program:
                self._kept.pop(key, None)


OUTFITS = Outfits(ROOM)


def _with_widths(sites: list[Site], widths: Mapping[str, int]) -> list[Site]:
    if not widths:
        return sites
    known = [None if site.variable is None else widths.get(site.variable) for site in sites]
    return [s if width is None else replace(s, bytes_per_lane=width) for s, width in zip(sites, known, strict=True)]
