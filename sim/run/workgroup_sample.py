"""What two neighbouring workgroups of a dispatch access: they run again, with nothing but the words that they need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import log2, prod

import numpy as np
from numpy.typing import NDArray

from ..codegen.program import Program
from ..fast_dataclass import frozen
from ..launch.launch import Launch
from ..launch.sample_memory import GRANULE, Accessed, Parts, SampleMemory, bytes_of
from ..machine import layout as at
from ..models.device import Device
from ..models.time_model import COSTS
from .atomic_contention import Contention, contentions
from .dispatch import Dispatch
from .workgroup_schedule import middle_of_work

SAMPLED = frozenset(("sampled", "cached", "sectors", "lanes"))  # probes
_OWN_DATA = 0.7  # a growth from which on the workgroups of a core have data of their own
# Workgroups whose data fill the sets of a core's cache evenly, and how what it holds shrinks with more. On an H200,
# workgroups that load rows of their own again and again miss half if 4 have 192 KiB, 8 have 120 and 16 have 80.
_EVEN, _UNEVENLY = 4, 0.6


@frozen
class Spread:
    """The bytes of the lines and of the granules that hold the accessed sectors of a buffer, for each byte of these.

    `new`: bytes of granules that a workgroup accesses and its neighbour does not. `own`: bytes of the sectors that one
    workgroup accesses. `covered`: the share of the bytes of these sectors that is accessed.
    """

    lines: float
    granules: float
    new: float
    own: float
    covered: float


@frozen
class Misses:
    """What a load asks of the cache of a core, and the shares that it does not serve: of its `sectors`, and of its
    `executions`, those that wait for such a sector. `wavefronts`: that the banks of the cache take to each line.
    `page_changes`: of the sectors that it does not serve, those on another page than the one before."""

    sectors: float
    executions: float
    wavefronts: float = 1.0
    page_changes: float = 0.0


@frozen
class Sample:
    """What two neighbouring workgroups access.

    `misses`: of each load, by the number of its place in the program that ran. `missed`: bytes of the sectors that the
    loads of one workgroup miss in the cache of its core. `spreads`: of each buffer. `contention`: for each buffer that
    atomic operations change.
    """

    misses: Mapping[int, Misses]
    missed: float
    spreads: Mapping[str, Spread]
    contention: Mapping[str, Contention]


@frozen
class Sampler:
    """A program that samples workgroups. `loads`: of each place that loads, by its number, the probes that count what
    its cache lacks, those that count its sectors, and those that count its wavefronts."""

    program: Program
    loads: list[tuple[int, list[int], list[int], list[int]]]


def sampler(program: Program) -> Sampler:
    """Return the sampler of a program with the probes `SAMPLED`."""
    probes: dict[str, dict[int, list[int]]] = {"cached": {}, "sectors": {}, "banks": {}}
    for number, probe in enumerate(program.memory_probes):
        if probe.kind in probes:
            probes[probe.kind].setdefault(probe.site, []).append(number)
    sectors, banks = probes["sectors"], probes["banks"]
    return Sampler(program, [(site, its, sectors.get(site, []), banks[site]) for site, its in probes["cached"].items()])


def sample_workgroups(
    dispatch: Dispatch,
    sampler: Sampler,
    resident: int,
    changed: frozenset[str],
    executed_by_each: NDArray[np.int64] | None,
) -> Sample:
    """Run two neighbouring workgroups in the middle of what all execute. `resident`: workgroups that share a core's
    cache; `changed`: buffers that atomic operations change; `executed_by_each`: as of `unevenness`."""
    last = prod(dispatch.grid) - 1
    middle = middle_of_work(executed_by_each, last + 1)
    memory = SampleMemory(dispatch.bound, dispatch.device)
    how = replace(dispatch.how, chosen=np.array([middle, min(middle + 1, last)][: last + 1]), threads=1, trace=None)
    launch = Launch(
        sampler.program, dispatch.bound, dispatch.grid, dispatch.device, how, memory.memory, notes=memory.notes
    )
    memory.limit_cache(cache_lines(dispatch.device, resident))
    counted = launch.run_one_by_one(min(2, last + 1))
    spreads = {name: _spread(parts, dispatch.device) for name, parts in memory.parts().items()}
    contention = contentions(memory.accessed(), changed, alone=last == 0) if changed else {}
    if resident > 1 and memory.was_full and (growth := _growth(memory.accessed())) < _OWN_DATA:
        memory.restart()
        memory.limit_cache(cache_lines(dispatch.device, resident**growth))
        counted = launch.run_one_by_one(1)
    memory.close()
    bounds, tallies = counted
    missed = sum([bounds[probe][at.MISSED] for _, cached, *_ in sampler.loads for probe in cached])
    missed_bytes = float(missed * dispatch.device.sector_bytes)
    return Sample(_misses(sampler, bounds, tallies), missed_bytes, spreads, contention)


def cache_lines(device: Device, sharing: float) -> int:
    """Return the lines of a core's cache that are one workgroup's of `sharing`."""
    known = device.costs.costs.get("cache_bytes") if device.costs else None
    size = known.value if known else COSTS["cache_bytes"][1]
    return max(1, int(size / device.line_bytes / sharing / max(1.0, sharing / _EVEN) ** _UNEVENLY))


def _growth(accessed: Accessed) -> float:
    """Return the growth of accessed words from one workgroup to two: 0 the same ones, 1 twice as many."""
    one, both = (np.count_nonzero(bytes_of(each)) for each in (accessed.first, accessed.first | accessed.second))
    return log2(max(1.0, both / max(1, one)))


def _spread(parts: Parts, device: Device) -> Spread:
    """Return the spread of a buffer of which two workgroups access these parts."""
    sectors, lines = parts.sectors * device.sector_bytes, parts.lines * device.line_bytes
    granules, own = 4 * GRANULE * parts.granules, 4 * GRANULE * parts.own
    return Spread(
        lines=max(1.0, lines / sectors),
        granules=max(1.0, granules / sectors),
        new=float(granules - own),
        own=own * sectors / granules,
        covered=min(1.0, 4 * parts.words / sectors),
    )


def _misses(sampler: Sampler, bounds: list[list[int]], tallies: list[list[int]]) -> dict[int, Misses]:
    """Return the misses of each place that loads, from what a workgroup counted."""
    found: dict[int, Misses] = {}
    for site, cached, counts, banks in sampler.loads:
        if executed := sum([bounds[probe][at.EXECUTED] for probe in cached]):
            missed = sum([bounds[probe][at.MISSED] for probe in cached])
            sectors = sum([tallies[probe][at.CHARGED] for probe in counts])
            delayed = sum([bounds[probe][at.DELAYED] for probe in cached])
            wavefronts = sum([tallies[probe][at.CHARGED] for probe in banks])
            lines = sum([tallies[probe][at.LINES] for probe in counts])
            page_changes = sum([bounds[probe][at.PAGE_CHANGES] for probe in cached])
            found[site] = Misses(
                sectors=min(1.0, missed / sectors) if sectors else 1.0,
                executions=delayed / executed,
                wavefronts=wavefronts / lines if lines else 1.0,
                page_changes=page_changes / max(1, missed),
            )
    return found
