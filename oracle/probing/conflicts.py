"""One access of one subgroup for each place whose banks conflict most: which lane asked which bank for which word.

The shader runs again with probes written into its text (see `instrument`), in a grid of one workgroup, so that the
addresses are those of the kernel; they are charged under the rules of the device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sim
from sim.models import Device
from sim.program.sites import Site

from ..errors import UsageError
from ..kernels.manifest import Case
from .instrument import LOG, MOST_LANES, ROW_WORDS, Instrumented, instrument
from .trace import requests

PLACES = 3
_MOST_ROWS = 1 << 18


@dataclass(frozen=True, slots=True)
class Touch:
    """A word that a lane asks for. `turn`: how many other words of its bank were asked for by the lanes before."""

    lane: int
    bank: int
    word: int
    turn: int


@dataclass(frozen=True, slots=True)
class Access:
    """What one subgroup of workgroup (0, 0, 0) asked at `site`, the dearest that was seen there."""

    site: Site
    banks: int
    lanes: int
    wavefronts: int
    ideal: int
    touches: tuple[Touch, ...]

    @property
    def busiest(self) -> list[tuple[int, int, list[int]]]:
        """The banks that are asked for the most words: bank, words, lanes."""
        words = {bank: {t.word for t in self.touches if t.bank == bank} for bank in range(self.banks)}
        most = max(map(len, words.values()))
        return [
            (bank, most, sorted({t.lane for t in self.touches if t.bank == bank}))
            for bank, asked in words.items()
            if len(asked) == most
        ]


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
    probed = instrument(run.pipeline, sites, [sites.index(row.site) for row in worst])
    asked = list(requests(_record(case, run, probed), probed.probes, sites, run.device.subgroup_size))
    accesses = (_dearest(row.site, [r.addresses for r in asked if r.site == row.site], run.device) for row in worst)
    return tuple(access for access in accesses if access is not None)


def _record(case: Case, run: Any, probed: Instrumented) -> NDArray[np.uint32]:
    """Rows of the first workgroup, `[rows, 4]`; of a long run, the first of them."""
    log = np.zeros(probed.rows_offset // 4 + ROW_WORDS * _MOST_ROWS, np.uint32)
    log[1:4] = 0, 1, _MOST_ROWS
    out = sim.simulate(
        probed.text,
        entry=run.pipeline.entry.name,
        grid=1,
        bindings={**case.bindings, LOG: log},
        overrides=case.kernel.overrides,
        device=run.device,
        probes="none",
    )
    words = out.outputs[LOG]
    used = min(int(words[0]), _MOST_ROWS)
    return words[probed.rows_offset // 4 :][: used * ROW_WORDS].reshape(used, ROW_WORDS)


def _dearest(site: Site, accesses: list[NDArray[np.int64]], device: Device) -> Access | None:
    """Of byte addresses `[lanes]`, -1 for those that are not there: the access that takes the most wavefronts over its
    ideal; None where none takes more."""
    best = None
    for asked in np.unique(np.array(accesses), axis=0) if accesses else ():
        how = (np.maximum(asked, 0), site.bytes_per_lane, asked >= 0, site.kind != "load")
        charged, ideal = device.shared_wavefronts(*how), device.ideal_shared_wavefronts(*how)
        if charged > ideal and (best is None or charged - ideal > best.wavefronts - best.ideal):
            best = Access(site, device.banks, len(asked), charged, ideal, _touches(asked, site.bytes_per_lane, device))
    return best


def _touches(asked: NDArray[np.int64], width: int, device: Device) -> tuple[Touch, ...]:
    """Every word of an access, a bank as wide as the device's."""
    seen: dict[int, list[int]] = {}
    touches = []
    for lane in np.flatnonzero(asked >= 0):
        first, last = int(asked[lane]) // device.bank_width, (int(asked[lane]) + width - 1) // device.bank_width
        for word in range(first, last + 1):
            words = seen.setdefault(word % device.banks, [])
            if word not in words:
                words.append(word)
            touches.append(Touch(int(lane), word % device.banks, word, words.index(word)))
    return tuple(touches)
