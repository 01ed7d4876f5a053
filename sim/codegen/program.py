"""The finished program: what the machine runs, and what says how to read its counts."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..fast_dataclass import frozen
from ..ir.access import Access
from ..ir.sites import SourceSite
from ..ir.trace_points import Point
from ..wgsl import types as t
from ..wgsl.source import Span
from ..wgsl.typed import Variable


@frozen
class MemoryProbe:
    """`kind` is banks, sectors, bounds, writers, touched or watch; `site` and `access` by number."""

    kind: str
    site: int
    access: int


@frozen
class Inspected:
    """`kind` of the machine's checks; `op` is the scalar operation, `site` by number."""

    kind: int
    op: str
    site: int


@frozen(eq=False)
class Program:
    """`together` workgroups run side by side, one after the other in a row of registers; `abreast`: the same lane of
    each next to the other.

    `code` is int32[n, 8] (see `machine.opcodes`); `rows` registers of which the first are filled before the run:
    `inputs` by name, `constants` with their bits in every lane. `runs[i]` are the sites that count number i counts, and
    `computed[i]` how many instructions of which class at which place."""

    code: NDArray[np.int32]
    rows: int
    inputs: dict[str, int]
    constants: dict[int, int]
    accesses: list[Access]
    sites: list[SourceSite]
    runs: list[list[int]]
    computed: list[dict[tuple[str, Span], int]]
    probes: list[MemoryProbe]
    watched: list[MemoryProbe]
    inspected: list[Inspected]
    loops: list[tuple[Span, tuple[int, ...]]]  # and the sites of the atomic operations that decide whether it ends
    places: list[int]  # site of each instruction, -1 for none
    named: frozenset[str]  # the probes that were asked for
    workgroups_per_batch: int
    workgroup_size: tuple[int, int, int]
    shared_bytes: int
    shared_offsets: dict[str, int]
    types: dict[Variable, t.Type]  # store types, with what overrides decide
    points: list[Point]  # what is traced
    margins: int  # comparisons that are watched
    arrivals: list[int]  # sites of atomic operations at which the order of invocations may show
    interleaved: bool

    @cached_property
    def exchanges(self) -> bool:
        """Whether subgroups exchange values, so that their invocations stay side by side."""
        return any(site.kind == "subgroup" for site in self.sites)

    @cached_property
    def independent(self) -> bool:
        """Whether workgroups cannot see each other: nothing in storage is both read and written, or atomic."""
        storage = [a for a in self.accesses if a.space == "storage"]
        written = {a.variable for a in storage if a.writes}
        read = {a.variable for a in storage if not a.writes}
        atomic = any(s.kind == "atomic" and s.space == "storage" for s in self.sites)
        return not atomic and not (written & read)

    def pitches(self, lanes: int) -> tuple[int, int]:
        """How far apart in a row neighbouring lanes of a workgroup, or strand, of so many lanes are; and how far the
        same lane of neighbouring workgroups is."""
        return (self.workgroups_per_batch, 1) if self.interleaved else (1, lanes)
