"""A finished program: the code that the machine runs, and the tables that say how to read its counts."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..fast_dataclass import frozen
from ..ir.access import Access
from ..ir.sites import SourceSite
from ..ir.trace_points import Point
from ..machine import instruction as field
from ..machine import layout as at
from ..machine import opcodes as op
from ..wgsl import types as t
from ..wgsl.source import Span
from ..wgsl.typed import Variable

ORDERS = {"workgroup": at.ORDERED_WORKGROUP, "storage": at.ORDERED_STORAGE, "texture": at.ORDERED_TEXTURE}
"""The memory that each kind of barrier orders, as the machine numbers it."""


@frozen
class MemoryProbe:
    """A probe of one access. `kind` is the name of its row in `instrument.probes`; `site` and `access` are indices."""

    kind: str
    site: int
    access: int


@frozen
class ValueCheck:
    """A check for NaN, infinity and the like. `kind` is one of `machine.layout`; `op` the scalar operation it checks;
    `site` an index."""

    kind: int
    op: str
    site: int


@frozen(eq=False)
class Program:
    """A program and its tables.

    `code` is int32[n, 8] (see `machine.opcodes`). It uses `rows` rows of registers, the first of which are filled
    before the run: `inputs` by name, `constants` with their bits in every lane.

    A `count` instruction number i counts the sites `block_sites[i]` and, by class and place in the source, the
    instructions `block_instructions[i]`. The other tables of probes are indexed by field X of their instructions.

    A batch is `workgroups_per_batch` workgroups. In a row of registers one follows the other; if `interleaved`, the
    same lane of each lies side by side.
    """

    code: NDArray[np.int32]
    rows: int
    inputs: dict[str, int]
    constants: dict[int, int]
    accesses: list[Access]
    sites: list[SourceSite]
    block_sites: list[list[int]]
    block_instructions: list[dict[tuple[str, Span], int]]
    memory_probes: list[MemoryProbe]
    race_probes: list[MemoryProbe]
    value_checks: list[ValueCheck]
    loops: list[tuple[Span, tuple[int, ...]]]  # with the sites of the atomic operations that decide whether it ends
    instruction_spans: list[Span | None]  # the source of each instruction
    probe_names: frozenset[str]  # the probes that the caller asked for
    workgroups_per_batch: int
    workgroup_size: tuple[int, int, int]
    shared_bytes: int
    shared_offsets: dict[str, int]
    types: dict[Variable, t.Type]  # store types, sized by the overrides
    trace_points: list[Point]
    margin_count: int  # comparisons whose margin is measured
    order_dependent_atomics: list[int]  # sites of atomic operations whose result may depend on the invocations' order
    interleaved: bool
    waits: bool  # a loop waits for other workgroups

    @cached_property
    def exchanges_values(self) -> bool:
        """Whether subgroups exchange values, so that their invocations must stay side by side."""
        return any(site.kind == "subgroup" for site in self.sites)

    @cached_property
    def iteration_cost(self) -> int:
        """The mean cost of an iteration of its loops; 0 without loops."""
        ends = jumps_backward(self.code)
        costs = self.code[ends, field.COST] + self.code[ends, field.COST_ONCE]
        return int(costs.mean()) if ends.any() else 0

    @cached_property
    def sites_at(self) -> dict[tuple[int, int], list[SourceSite]]:
        """The sites at each place in the source, by where it starts and ends."""
        found: dict[tuple[int, int], list[SourceSite]] = {}
        for site in self.sites:
            found.setdefault((site.span.start, site.span.end), []).append(site)
        return found

    @cached_property
    def watched_at(self) -> dict[tuple[int, int], list[Access]]:
        """The accesses that race probes watch at each place in the source, by where it starts and ends."""
        found: dict[tuple[int, int], list[Access]] = {}
        for probe in self.race_probes:
            span = self.sites[probe.site].span
            found.setdefault((span.start, span.end), []).append(self.accesses[probe.access])
        return found

    @cached_property
    def independent(self) -> bool:
        """Whether workgroups cannot see each other: no storage variable is both read and written, or atomic."""
        storage = [a for a in self.accesses if a.space == "storage"]
        written = {a.variable for a in storage if a.writes}
        read = {a.variable for a in storage if not a.writes}
        return not self.has_storage_atomics and not (written & read)

    @cached_property
    def has_storage_atomics(self) -> bool:
        """Whether it has atomic operations on storage."""
        return has_storage_atomics(self.sites)

    def pitches(self, lanes: int) -> tuple[int, int]:
        """Return two distances in a row of registers: between neighbouring lanes of a workgroup (or of a lockstep group
        of `lanes` lanes), and between the same lane of neighbouring workgroups."""
        return (self.workgroups_per_batch, 1) if self.interleaved else (1, lanes)


def has_storage_atomics(sites: Iterable[SourceSite]) -> bool:
    """Whether some of these sites are atomic operations on storage."""
    return any(site.kind == "atomic" and site.space == "storage" for site in sites)


def jumps_backward(code: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which instructions jump backward: each ends a loop."""
    return (code[:, field.OP] == op.JUMP) & (code[:, field.TARGET] <= np.arange(len(code)))
