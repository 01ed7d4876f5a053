"""A dynamic slice of one workgroup: in which lanes each instruction matters for what the workgroup leaves behind.

An instruction is *useful* in a lane if a store or an atomic operation whose effect the host can see depends on it in
that execution: through values, memory, exchanges within subgroups, addresses and conditions (Korel and Laski, "Dynamic
program slicing", 1988). Two things that a program computes in vain are left out:

- a store of a padding zero over a zero (see `padding_zeros`);
- adding a padding zero to a number, or multiplying by one, where neither an address nor a condition depends on the
  result: it is the number, or a padding zero.

Barriers and jumps are useful in the lanes that do anything useful. The needs are followed twice, since the last check
of a loop depends on what the loop did before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from ..fast_dataclass import entity, frozen
from ..ir import ir
from ..ir.instruction_classes import instructions_of
from ..ir.sites import SourceSite
from ..wgsl.source import Span
from .needs import Governed, Needs
from .padding_zeros import PaddingZeros
from .steps import Step
from .tallies import Place, Tally
from .workgroup_memory import Lanes, Memories


@frozen
class Interval:
    """What the subgroups of a workgroup issued up to a barrier (None: up to the end): instructions of each."""

    barrier: Span | None
    issued: list[int]


@entity
class Slice:
    """`tallies` by place, and the intervals between barriers."""

    tallies: dict[Place, Tally] = field(default_factory=dict[Place, Tally])
    intervals: list[Interval] = field(default_factory=list[Interval])


def slice_steps(
    steps: Sequence[Step],
    sites: Sequence[SourceSite],
    memories: Callable[[], Memories],
    lanes: int,
    subgroup_size: int,
) -> Slice:
    """Slice the steps of a workgroup of `lanes` invocations. `memories` makes its memory as it was before."""
    sets = Lanes(lanes, subgroup_size)
    active = [sets.of(step.lanes) for step in steps]
    zeros = PaddingZeros(sets, memories()).follow(steps, active)
    governed, found = Governed(steps), Slice()
    for tallies in (None, found.tallies):
        Needs(sets, memories(), sites, governed, tallies).follow(steps, active, zeros)
    found.intervals = _intervals(steps, active, sites, sets)
    return found


def _intervals(
    steps: Sequence[Step], active: Sequence[int], sites: Sequence[SourceSite], lanes: Lanes
) -> list[Interval]:
    found: list[Interval] = []
    issued = [0] * len(lanes.subgroups)
    for step, now in zip(steps, active, strict=True):
        for part in step.chunk.parts:
            if isinstance(part, ir.Barrier):
                found.append(Interval(sites[part.site].span, issued))
                issued = [0] * len(lanes.subgroups)
            elif isinstance(part, ir.Count):
                number = instructions_of(part.computed, [sites[site] for site in part.sites])
                for place, subgroup in enumerate(lanes.subgroups):
                    issued[place] += number * bool(now & subgroup)
    return [*found, Interval(None, issued)]
