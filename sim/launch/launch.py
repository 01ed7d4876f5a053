"""One launch: the arrays the machine runs on, and the threads it runs in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bindings.binding import Bound, Key
from ..bindings.texture_arrays import BoundTexture
from ..codegen.interleaved import narrows_in_loops
from ..codegen.program import Program
from ..fast_dataclass import frozen
from ..ir import texture_handles
from ..ir.access import UNITS_PER_ACCESS, Access
from ..ir.passes import ALL, Passes
from ..ir.sites import SourceSite
from ..machine import layout as at
from ..models import Device
from ..wgsl import types as t
from ..wgsl.typed import Variable
from .device_memory import DeviceMemory, make_arena
from .launch_cache import OUTFITS
from .machine_arrays import MachineArrays, units_of
from .partition import Outcome, in_pieces, in_threads, total
from .race_tables import Shadow, Watching
from .schedules import LOCKSTEP, Schedule
from .threads import processors
from .tracing import Trace
from .workspace import LaunchParams, Template, Workspace

BUDGET = 1 << 24  # turns of loops: seconds, where loops of kernels that end take thousands
_GLANCE = 1 << 14  # turns, to see what they are for
_GRID = ("grid_x", "grid_y", "grid_z")  # inputs


@frozen
class RunOptions:
    """Everything about a run that WGSL leaves open, or that is changed to see what depends on it.

    `policy`: what accesses out of bounds do. `filling`: what each word of workgroup memory holds at first. `ignored`:
    a barrier that is taken to order nothing; the run ends where it was needed. `threads`: at most. `trace`: a variable
    whose values are noted. `strange`: shuffles that give strange numbers for lanes that are not active, by where they
    start in the text. `passes`: by which the program is made shorter; nothing depends on them. `chosen`: the
    workgroups that run, by their numbers in the grid (None: all).
    """

    policy: str = "clamp"
    budget: int = BUDGET
    schedule: Schedule = LOCKSTEP
    filling: int = 0
    ignored: SourceSite | None = None
    threads: int | None = None
    trace: Trace | None = None
    poisoned: frozenset[int] = frozenset()
    passes: Passes = ALL
    chosen: NDArray[np.int64] | None = None


class Launch:
    """A program with its memory, `arena` or one of its own. `run` may be called once."""

    def __init__(
        self,
        program: Program,
        bound: list[Bound],
        grid: tuple[int, int, int],
        device: Device,
        how: RunOptions,
        device_memory: DeviceMemory | None = None,
    ) -> None:
        self._texel_bytes = {b.variable.name: b.format.bytes for b in bound if isinstance(b, BoundTexture)}
        self._outfit = OUTFITS.of(program, device, how.schedule, how.policy, self._texel_bytes)
        self.program = replace(program, sites=self._outfit.sites) if self._texel_bytes else program
        self.grid = grid
        self.device = device
        self._bound = bound
        self.how = how
        device_memory = device_memory or make_arena(bound)
        self._places, self.storage = device_memory.places, device_memory.words
        words = len(self.storage)
        noted = words if "writers" in program.probe_names else 2 * words if program.interleaved else 1
        self._writers = np.zeros(noted, np.int64)
        self._touched = np.zeros(words if "touched" in program.probe_names else 1, np.uint8)
        self._lanes = self._outfit.lockstep_groups.lanes
        self.count = prod(grid) if how.chosen is None else len(how.chosen)
        self._order = how.schedule.order(self.count)
        if how.chosen is not None:
            self._order = how.chosen[self._order] if self._order.size else how.chosen
        self.watching = Watching(program, self._outfit.watched, self._places, words)

    def output(self, bound: Bound) -> Any:
        start = self._places[bound.variable.name]
        return bound.output(self.storage.view(np.uint8)[start : start + len(bound.data)])

    def writer(self, bound: Bound, byte: int) -> int | None:
        """The invocation, counted through the grid, that stored to this byte last."""
        number = int(self._writers[(self._places[bound.variable.name] + byte) // 4])
        if not number:
            return None
        place, lane = divmod(number - 1, self._lanes)
        return self.number(place) * self._lanes + lane

    def take_touched(self) -> dict[str, int]:
        """Bytes of each storage buffer that were accessed, in whole words; of a launch with the probe `touched`, once:
        what it noted is let go."""
        noted, self._touched = self._touched, np.zeros(1, np.uint8)
        return {b.variable.name: self._noted(noted, b) for b in self._bound if b.variable.space == "storage"}

    def _noted(self, noted: NDArray[np.uint8], bound: Bound) -> int:
        first, size = self._places[bound.variable.name] // 4, len(bound.data)
        return min(size, 4 * int(np.count_nonzero(noted[first : first + -(-size // 4)])))

    @property
    def invocations(self) -> int:
        return self.count * self._lanes

    def outputs(self) -> dict[Key, Any]:
        """Every writable binding as it is now, by the key it was given by."""
        return {b.key: self.output(b) for b in self._bound if b.writable}

    def number(self, place: int) -> int:
        """The number in the grid of the workgroup that runs at this place."""
        return int(self._order[place]) if self._order.size else place

    def workgroup(self, place: int) -> tuple[int, int, int]:
        """The workgroup_id of the workgroup that runs at this place."""
        index = self.number(place)
        x, y, _ = self.grid
        return index % x, index // x % y, index // (x * y)

    def type_of(self, variable: Variable) -> t.Type:
        """The store type of a variable, with what overrides decide."""
        return self.program.types[variable]

    def run(self, progress: Callable[[int, int], None] | None = None) -> Outcome:
        """Run every workgroup, in pieces on as many threads as there are processors where that cannot matter."""
        program, work = self.program, len(self.program.code) * self._lanes
        pieces = in_pieces(self.count, self._threads, program.workgroups_per_batch, work, bool(program.loops))
        return total(self._outcomes(pieces, progress))

    def run_each(self) -> list[Outcome]:
        """The same, and what came of each workgroup alone."""
        return self._outcomes([(place, place + 1) for place in range(self.count)], None)

    def _outcomes(self, pieces: list[tuple[int, int]], progress: Callable[[int, int], None] | None) -> list[Outcome]:
        threads = self._threads
        template, given = self._mould(), self._given()
        numbers = list(range(threads if self.watching.watches_storage else 1))
        shadows: dict[int, Shadow] = {}
        idle: dict[int, list[Workspace]] = {number: [] for number in numbers}

        def piece(first: int, last: int, number: int) -> Outcome:
            desks = idle[number]
            workspace = (
                desks.pop() if desks else Workspace(template, given, shadows.setdefault(number, self.watching.shadow()))
            )
            outcome = workspace.run(first, last)
            desks.append(workspace)
            return outcome

        outcomes = in_threads(piece, pieces, threads, numbers, progress)
        seen = list(shadows.values())
        self.met = threads > 1 and (self.watching.overlap(seen) or any(map(self._stores_outside, outcomes)))
        self.unclear = self.program.interleaved and any(map(_is_unclear, outcomes))
        return [self._in_texels(outcome) for outcome in outcomes] if self._texel_bytes else outcomes

    def glance(self) -> float:
        """Run a workgroup from the middle, before it runs with all others, which changes nothing where none reads what
        one has stored: the part of its lanes that loops need, see `Desk.glance`."""
        workspace = Workspace(self._mould(), self._given(), self.watching.shadow())
        return workspace.glance(self.count // 2, _GLANCE)

    @cached_property
    def _threads(self) -> int:
        """How many threads may work on it: one where workgroups see each other, or go in an order that counts."""
        if self.how.schedule != LOCKSTEP or not self._independent():
            return 1
        return max(1, min(self.how.threads or processors(), self.watching.threads, self.count))

    def _stores_outside(self, outcome: Outcome) -> bool:
        """Whether stores out of bounds have gone to places that others store to as well."""
        if not outcome.bounds[:, at.OUTSIDE].any():
            return False
        accesses = [self.program.accesses[probe.access] for probe in self.program.memory_probes]
        counts = zip(accesses, outcome.bounds[:, at.OUTSIDE], strict=False)
        return self.how.policy != "zero" and any(n > 0 and a.writes and a.space == "storage" for a, n in counts)

    @property
    def device_memory(self) -> DeviceMemory:
        """What holds its memory."""
        return DeviceMemory(self._places, self.storage)

    @property
    def may_go_abreast(self) -> bool:
        """Whether workgroups could go abreast, and might gain by it. Nobody looks at lanes, nor do they at each other;
        what order workgroups go in shows nowhere but where two store to one place, which is found out."""
        how, program = self.how, self.program
        watched = program.probe_names or how.trace is not None or how.ignored is not None or how.schedule != LOCKSTEP
        if watched or "interleaved" not in how.passes or not narrows_in_loops(program):
            return False
        return program.independent and not program.exchanges_values

    def _independent(self) -> bool:
        """Whether workgroups cannot see each other."""
        return self.program.independent

    # ---- textures: counted as their formats pack them ----

    def _in_texels(self, outcome: Outcome) -> Outcome:
        """The outcome, whose bytes of texture sites are those of the format."""
        for probe, tally in zip(self.program.memory_probes, outcome.tallies, strict=False):
            site = self.program.sites[probe.site]
            if site.variable in self._texel_bytes:
                tally[at.BYTES] = tally[at.BYTES] * site.bytes_per_lane // texture_handles.TEXEL_BYTES
        return outcome

    # ---- arrays ----

    def _mould(self) -> Template:
        """What desks are cast from; a trace takes one of its own."""
        how, launch_setup = self.how, self._outfit
        if how.trace is None and launch_setup.template is not None:
            return launch_setup.template
        template = Template(self.machine_arrays())
        if how.trace is None:
            OUTFITS.keep(launch_setup, template)
        return template

    def machine_arrays(self) -> tuple[Any, ...]:
        """The arguments of `machine.core.run` for this program, before a launch fills them in."""
        how, launch_setup = self.how, self._outfit
        notes = 0 if how.trace is None else how.trace.limit
        arrays = MachineArrays(
            self.program, self.device, how.schedule, launch_setup.lockstep_groups, self._texel_bytes, notes
        )
        return arrays.arguments(launch_setup.accesses, launch_setup.watched)

    def _given(self) -> LaunchParams:
        """What is this launch's own in the arrays of the machine."""
        how, access = self.how, self._access_table()
        ignored = -1 if how.ignored is None else self.program.sites.index(how.ignored)
        config = (*self.grid, how.budget, ignored, how.ignored is not None, how.filling)
        inputs = self.program.inputs
        rows = {inputs[name]: n for name, n in zip(_GRID, self.grid, strict=True) if name in inputs}
        tables = (access, self._outfit.watched.table(access), self._traced())
        return LaunchParams(config, rows, *tables, (self.storage, self._order, self._writers, self._touched))

    def _traced(self) -> NDArray[np.int64]:
        """The workgroup that is traced (-1: none), and its lanes: all of them for memory that they share."""
        traced = np.zeros(1 + self._lanes, np.int64)
        traced[0] = -1
        if self.how.trace is not None:
            (x, y, z), (width, height, _) = self.how.trace.workgroup, self.grid
            traced[0] = (z * height + y) * width + x
            shared = any(point.variable.space == "workgroup" for point in self.program.trace_points)
            lanes = None if shared else self.how.trace.lanes
            traced[1:] = [lanes is None or lane in lanes for lane in range(self._lanes)]
        return traced

    def _access_table(self) -> NDArray[np.int64]:
        return self._outfit.accesses.at(self._places, self._sizes)

    @property
    def _sizes(self) -> dict[str, int]:
        return {b.variable.name: len(b.data) for b in self._bound}

    def limits(self) -> list[int]:
        """The highest address of each access that is in bounds."""
        return self._access_table()[::UNITS_PER_ACCESS, at.LIMIT].tolist()

    def elements(self, access: Access) -> int:
        """How many elements the array has that an access indexes."""
        return access.elements(self._sizes.get(access.variable.name, 0))

    def line(self, access: Access) -> int:
        """How many units of an access a line of memory holds."""
        return units_of(self.device.line_bytes, access, self._texel_bytes)


def _is_unclear(outcome: Outcome) -> bool:
    """Whether something happened, abreast, that the order of workgroups has to tell: a loop without an end, a barrier
    that some do not reach, or workgroups that store to one place."""
    return bool(outcome.events[0, 0] or outcome.bounds[:, at.OUTSIDE].any())
