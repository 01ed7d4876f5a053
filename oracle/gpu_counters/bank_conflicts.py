"""The worst bank conflicts: for each of a few sites, one access of one subgroup with the bank and word of every lane.

The shader runs again with probes inserted into its text (see `instrument`), in a grid of one workgroup. The addresses
are those of the kernel; the device's rules say what they cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...sim.fast_dataclass import frozen
from ...sim.ir.sites import SourceSite
from ...sim.models import Device
from ..errors import UsageError
from ..manifests.manifest import Case
from .access_trace import record, requests
from .wgsl_probes import MOST_LANES

if TYPE_CHECKING:
    from ...sim.run.result import Run

PLACES = 3
_MOST_ROWS = 1 << 18


@frozen
class WordAccess:
    """A word that a lane accesses. `turn`: how many different words of its bank come before it in this access; for an
    atomic operation, how many lanes."""

    lane: int
    bank: int
    word: int
    turn: int


@frozen
class Access:
    """The most expensive access at `site` by one subgroup of workgroup (0, 0, 0)."""

    site: SourceSite
    banks: int
    lanes: int
    wavefronts: int
    ideal: int
    touches: tuple[WordAccess, ...]

    @property
    def busiest(self) -> list[tuple[int, int, list[int]]]:
        """The banks that take the most turns, each with the number of turns and its lanes."""
        most = max(t.turn for t in self.touches)
        banks = sorted({t.bank for t in self.touches if t.turn == most})
        return [(bank, most + 1, sorted({t.lane for t in self.touches if t.bank == bank})) for bank in banks]


def worst_accesses(case: Case, run: Run) -> tuple[Access, ...]:
    """Return the most expensive access at each of the `PLACES` sites with the most excess wavefronts, worst first.

    `run` is a run of `case`. The result is empty if no access conflicts. Raises `UsageError` if a probe cannot be
    inserted.
    """
    excess = [row for row in run.sites if row.shared_wavefronts > row.shared_ideal_wavefronts]
    worst = sorted(excess, key=lambda row: row.shared_ideal_wavefronts - row.shared_wavefronts)[:PLACES]
    if not worst:
        return ()
    if np.prod(run.pipeline.workgroup_size) > MOST_LANES:
        raise UsageError(f"workgroups of more than {MOST_LANES} invocations cannot be recorded")
    sites = run.program.sites
    wanted = [sites.index(row.site) for row in worst]
    log = record(case, run, wanted, (0, 0, 0), (1, 1, 1), _MOST_ROWS)  # rows that do not fit are left out
    asked = list(requests(log.rows, log.probes, sites, run.device.subgroup_size))
    accesses = (_costliest(row.site, [r.addresses for r in asked if r.site == row.site], run.device) for row in worst)
    return tuple(access for access in accesses if access is not None)


def _costliest(site: SourceSite, accesses: list[NDArray[np.int64]], device: Device) -> Access | None:
    """Return the access with the most wavefronts beyond its ideal, None if all are ideal.

    Each access is an array of byte addresses, `[lanes]`, -1 for inactive lanes.
    """
    best = None
    for asked in np.unique(np.array(accesses), axis=0) if accesses else ():
        charged, ideal = _wavefronts(device, site, np.maximum(asked, 0), asked >= 0)
        if charged > ideal and (best is None or charged - ideal > best.wavefronts - best.ideal):
            best = Access(site, device.banks, len(asked), charged, ideal, _words(asked, site, device))
    return best


def _wavefronts(device: Device, site: SourceSite, at: NDArray[np.int64], on: NDArray[np.bool_]) -> tuple[int, int]:
    """Return the wavefronts of an access, and its ideal. `at`: byte addresses, `[lanes]`; `on`: which are active."""
    if site.takes_turns:
        return device.shared_atomic_wavefronts(at, on), device.ideal_shared_atomic_wavefronts(at, on)
    how = (at, site.bytes_per_lane, on, site.kind != "load")
    return device.shared_wavefronts(*how), device.ideal_shared_wavefronts(*how)


def _words(asked: NDArray[np.int64], site: SourceSite, device: Device) -> tuple[WordAccess, ...]:
    """Return every word that an access touches, by lane. A word is as wide as a bank of the device."""
    seen: dict[int, list[int]] = {}
    touches: list[WordAccess] = []
    for lane in np.flatnonzero(asked >= 0):
        first, last = (int(asked[lane]) + end for end in (0, site.bytes_per_lane - 1))
        for word in range(first // device.bank_width, last // device.bank_width + 1):
            words = seen.setdefault(word % device.banks, [])
            if word not in words or site.takes_turns:
                words.append(word)
            turn = len(words) - 1 if site.takes_turns else words.index(word)
            touches.append(WordAccess(int(lane), word % device.banks, word, turn))
    return tuple(touches)
