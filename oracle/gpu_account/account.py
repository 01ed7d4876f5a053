"""The account: counters of each place, charged for what a GPU recorded.

Records come in two forms. A *region* was entered: from this follow the executions of all places in it. An *access* was
made at an address: from this follow the requests to memory and what they cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from ...sim.fast_dataclass import entity
from ...sim.wgsl.source import Span
from . import global_memory, shared_memory
from .hardware import Hardware
from .idle_lanes import Begun, Integers, Passage, Shape, executions
from .regions import Place, Region

COUNTERS = (
    *("executions", "active_lanes", "idle_guard", "idle_overhang", "idle_divergence", "idle_skipped"),
    *("shared_requests", "shared_wavefronts", "shared_ideal_wavefronts"),
    *("global_requests", "global_sectors", "global_ideal_sectors", "global_lines", "global_bytes"),
    *("atomics", "atomic_turns", "barriers", "flops"),
)

Key = tuple[str, int, int, int]


@entity
class Account:
    """Counters by place, and executions and lanes of instructions by class and place.

    `working`: the invocations, as workgroup and lane, that accessed memory that others see.
    """

    hardware: Hardware
    shape: Shape
    places: dict[Key, Place] = field(default_factory=dict[Key, Place])
    counters: dict[Key, Counter[str]] = field(default_factory=dict[Key, Counter[str]])
    instructions: dict[tuple[str, Span], list[int]] = field(default_factory=dict[tuple[str, Span], list[int]])
    working: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])

    def open(self, regions: Sequence[Region]) -> None:
        """Add a row of zeros for every place and instruction in the text."""
        for region in regions:
            for place in region.places:
                self.places[place.key] = place
                self.counters[place.key] = Counter()
            for key in region.instructions:
                self.instructions[key] = [0, 0]

    # ---- regions ----

    def entered(self, region: Region, passage: Passage, stages: Begun) -> None:
        """Charge the arrivals at the start of a region to all that is in it."""
        done = executions(passage, self.shape, stages)
        visits = done.pop("visits")
        for place in region.places:
            row = self.counters[place.key]
            row.update(done)
            row["flops"] += done["active_lanes"] * place.flops
            row["atomics"] += done["active_lanes"] if place.kind == "atomic" else 0
            row["barriers"] += visits if place.kind == "barrier" else 0
        for key, times in region.instructions.items():
            self.instructions[key][0] += times * done["executions"]
            self.instructions[key][1] += times * done["active_lanes"]
        if any(_is_work(place) for place in region.places):
            self.working.update(zip(passage.workgroup.tolist(), passage.lane.tolist(), strict=True))

    # ---- accesses ----

    def accessed(self, place: Place, passage: Passage, addresses: Integers) -> None:
        """Charge accesses at byte addresses to a place, those of one subgroup at one time together."""
        size = self.shape.subgroup_size
        subgroup = passage.lane // size
        order = np.lexsort((subgroup, passage.path, passage.workgroup))
        arrivals = np.column_stack([passage.workgroup, passage.path, subgroup])[order]
        first = np.ones(len(arrivals), np.bool_)
        first[1:] = (arrivals[1:] != arrivals[:-1]).any(axis=1)
        asked = np.full((int(first.sum()), size), -1, np.int64)
        asked[np.cumsum(first) - 1, passage.lane[order] % size] = addresses[order]
        row = self.counters[place.key]
        for pattern, times in _patterns(asked, self._period):
            for name, cost in self._cost(place, pattern, pattern >= 0).items():
                row[name] += times * cost

    @property
    def _period(self) -> int:
        """The bytes after which banks, sectors and lines repeat."""
        hardware = self.hardware
        return max(hardware.banks * hardware.bank_width, hardware.line_bytes, hardware.sector_bytes, 16)

    def _cost(self, place: Place, at: Integers, active: NDArray[np.bool_]) -> Mapping[str, int]:
        hardware, width = self.hardware, place.bytes_per_lane
        turns = {"atomic_turns": global_memory.turns(at, active)} if place.takes_turns else {}
        if place.space == "workgroup":
            if place.takes_turns:
                wavefronts, ideal = shared_memory.atomic(hardware, at, active)
            else:
                wavefronts, ideal = shared_memory.access(hardware, at, active, width, place.kind == "load")
            return {
                "shared_requests": 1,
                "shared_wavefronts": wavefronts,
                "shared_ideal_wavefronts": ideal,
                **turns,
            }
        if place.space in ("storage", "texture"):
            if place.takes_turns:
                sectors = global_memory.atomic_sectors(hardware, at, active)
            else:
                sectors = global_memory.sectors(hardware, at, active, width)
            return {
                "global_requests": 1,
                "global_sectors": sectors,
                "global_ideal_sectors": global_memory.ideal_sectors(hardware, at, active, width),
                "global_lines": global_memory.lines(hardware, at, active, width),
                "global_bytes": width * int(active.sum()),
                **turns,
            }
        return {}


def _is_work(place: Place) -> bool:
    return place.kind in ("load", "store", "atomic") and place.space in ("workgroup", "storage", "texture")


def _patterns(asked: Integers, period: int) -> list[tuple[Integers, int]]:
    """Return the different accesses among some, and how often each occurs; whole periods apart, they are alike."""
    lowest = np.where(asked >= 0, asked, np.iinfo(np.int64).max).min(axis=1, keepdims=True)
    moved = np.where(asked >= 0, asked - lowest // period * period, -1)
    patterns, counts = np.unique(moved, axis=0, return_counts=True)
    return list(zip(patterns, counts.tolist(), strict=True))
