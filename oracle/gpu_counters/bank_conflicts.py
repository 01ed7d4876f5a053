"""One access of one subgroup for each place whose banks conflict most: which lane asked which bank for which word.

The shader runs again with probes written into its text (see `instrument`), in a grid of one workgroup, so that the
addresses are those of the kernel; they are charged under the rules of the device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...sim.fast_dataclass import frozen
from ...sim.ir.sites import SourceSite
from ...sim.models import Device
from ..errors import UsageError
from ..manifests.manifest import Case
from .access_trace import record, requests
from .charges import banks
from .wgsl_probes import MOST_LANES

PLACES = 3
_MOST_ROWS = 1 << 18


@frozen
class Touch:
    """A word that a lane asks for. `turn`: how many other words of its bank were asked for by the lanes before; of an
    atomic operation, how many lanes."""

    lane: int
    bank: int
    word: int
    turn: int


@frozen
class Access:
    """What one subgroup of workgroup (0, 0, 0) asked at `site`, the dearest that was seen there."""

    site: SourceSite
    banks: int
    lanes: int
    wavefronts: int
    ideal: int
    touches: tuple[Touch, ...]

    @property
    def busiest(self) -> list[tuple[int, int, list[int]]]:
        """The banks that take the most turns: bank, turns, lanes."""
        most = max(t.turn for t in self.touches)
        banks = sorted({t.bank for t in self.touches if t.turn == most})
        return [(bank, most + 1, sorted({t.lane for t in self.touches if t.bank == bank})) for bank in banks]


def worst_accesses(case: Case, run: Any) -> tuple[Access, ...]:
    """The dearest accesses at the `PLACES` with the most excess wavefronts, worst first; none where none conflict.

    `run` is the case's. Raises `UsageError` where the kernel takes no probes.
    """
    excess = [row for row in run.sites if row.shared_wavefronts > row.shared_ideal_wavefronts]
    worst = sorted(excess, key=lambda row: row.shared_ideal_wavefronts - row.shared_wavefronts)[:PLACES]
    if not worst:
        return ()
    if np.prod(run.pipeline.workgroup_size) > MOST_LANES:
        raise UsageError(f"workgroups over {MOST_LANES} invocations cannot be recorded")
    sites = run.program.sites
    wanted = [sites.index(row.site) for row in worst]
    log = record(case, run, wanted, (0, 0, 0), (1, 1, 1), _MOST_ROWS)  # of a long run, the first of them
    asked = list(requests(log.rows, log.probes, sites, run.device.subgroup_size))
    accesses = (_dearest(row.site, [r.addresses for r in asked if r.site == row.site], run.device) for row in worst)
    return tuple(access for access in accesses if access is not None)


def _dearest(site: SourceSite, accesses: list[NDArray[np.int64]], device: Device) -> Access | None:
    """Of byte addresses `[lanes]`, -1 for those that are not there: the access that takes the most wavefronts over its
    ideal; None where none takes more."""
    best = None
    for asked in np.unique(np.array(accesses), axis=0) if accesses else ():
        costs = banks(device, site, np.maximum(asked, 0), asked >= 0)
        charged, ideal = costs["shared_wavefronts"], costs["shared_ideal_wavefronts"]
        if charged > ideal and (best is None or charged - ideal > best.wavefronts - best.ideal):
            best = Access(site, device.banks, len(asked), charged, ideal, _touches(asked, site, device))
    return best


def _touches(asked: NDArray[np.int64], site: SourceSite, device: Device) -> tuple[Touch, ...]:
    """Every word of an access, a bank as wide as the device's."""
    seen: dict[int, list[int]] = {}
    touches = []
    for lane in np.flatnonzero(asked >= 0):
        first, last = (int(asked[lane]) + end for end in (0, site.bytes_per_lane - 1))
        for word in range(first // device.bank_width, last // device.bank_width + 1):
            words = seen.setdefault(word % device.banks, [])
            if word not in words or site.takes_turns:
                words.append(word)
            turn = len(words) - 1 if site.takes_turns else words.index(word)
            touches.append(Touch(int(lane), word % device.banks, word, turn))
    return tuple(touches)
