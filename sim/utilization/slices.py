"""A dynamic slice of one workgroup: which lanes need each instruction that they executed, for what they leave behind.

An instruction is *useful* in a lane if a store or an atomic operation whose effect the host can see depends on it in
that execution: through values, through memory, exchanges within subgroups, addresses and conditions (Korel and Laski,
"Dynamic program slicing", 1988). Two things that a program computes in vain are left out:

- Stores of a *padding zero* over a zero. A padding zero comes from no data: a constant, memory that the workgroup has
  not written, products with one, and their sums.
- Adding a padding zero to a number, or multiplying by one: the result is the number, or a padding zero.

Barriers and jumps are useful in the lanes that do anything useful. `Slicer` reads the steps forward for the padding
zeros, and backward for the needs: twice, since the last check of a loop depends on what the loop did before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from ..fast_dataclass import entity, frozen
from ..ir import ir
from ..ir.access import Access
from ..ir.instruction_classes import class_of_site
from ..ir.ir import Slot, Value
from ..ir.sites import SourceSite
from ..wgsl.source import Span
from .steps import Chunk, Construct, Decide, Enter, Step

_GRAIN = 2  # bytes: the smallest unit of memory

Cell = Value | Slot | tuple[ir.Block, int]
Place = tuple[str, Span]  # class of an instruction, and its source


@entity
class Tally:
    """Issue slots of one place: lanes of the subgroups that executed it, those that were active, and those of use."""

    issued: int = 0
    active: int = 0
    useful: int = 0


@frozen
class Interval:
    """What the subgroups of a workgroup issued up to a barrier (None: up to the end): instructions of each."""

    barrier: Span | None
    slots: list[int]


@entity
class Slice:
    """`tallies` by place, and the intervals between barriers."""

    tallies: dict[Place, Tally] = field(default_factory=dict[Place, Tally])
    intervals: list[Interval] = field(default_factory=list[Interval])


class Memory:
    """The grains of one variable. `zero`: it holds a padding zero, or for a buffer a zero; `needed`: something reads what
    it holds now."""

    def __init__(self, zero: NDArray[np.bool_], is_buffer: bool) -> None:
        self.zero = zero
        self.needed = np.full(len(zero), is_buffer)
        self.is_buffer = is_buffer


def slice_steps(
    steps: Sequence[Step],
    accesses: Sequence[Access],
    sites: Sequence[SourceSite],
    contents: Mapping[str, NDArray[np.uint8]],
    workgroup_bytes: Mapping[str, int],
    lanes: int,
    subgroup_size: int,
) -> Slice:
    """Slice the steps of a workgroup of `lanes` invocations.

    `contents`: bytes of each buffer before the run, by name; `workgroup_bytes`: the size of each workgroup variable.
    """
    slicer = _Slicer(accesses, sites, contents, workgroup_bytes, lanes, subgroup_size)
    zeros = slicer.forward(steps)
    slicer.backward(steps, zeros, final=False)
    slicer.backward(steps, zeros, final=True)
    return slicer.found


class _Lanes:
    """Sets of lanes, as the bits of an int."""

    def __init__(self, count: int, subgroup_size: int) -> None:
        self.all = (1 << count) - 1
        self._count, self._bytes = count, (count + 7) // 8
        self.subgroups = [
            ((1 << min(subgroup_size, count - start)) - 1) << start for start in range(0, count, subgroup_size)
        ]

    def of(self, lanes: NDArray[np.int64], which: NDArray[np.bool_] | None = None) -> int:
        """Return these lanes, or `which` of them."""
        if which is not None:
            lanes = lanes[which]
        if len(lanes) == self._count:
            return self.all
        bits = np.zeros(self._count, np.uint8)
        bits[lanes] = 1
        return int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")

    def among(self, some: int, lanes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of the lanes are in a set."""
        if some in (0, self.all):
            return np.full(len(lanes), bool(some))
        data = np.frombuffer(some.to_bytes(self._bytes, "little"), np.uint8)
        return np.unpackbits(data, bitorder="little")[lanes].astype(np.bool_)


class _Slicer:
    """Walks the steps of a workgroup in both directions (see `slice_steps`).

    `zero`: the lanes in which a value or variable is a padding zero. `needed`: those in which it is needed by what comes
    later. `useful`: those in which the last execution of a value was.
    """

    def __init__(
        self,
        accesses: Sequence[Access],
        sites: Sequence[SourceSite],
        contents: Mapping[str, NDArray[np.uint8]],
        workgroup_bytes: Mapping[str, int],
        lanes: int,
        subgroup_size: int,
    ) -> None:
        self.found = Slice()
        self._accesses, self._sites = accesses, sites
        self._lanes = _Lanes(lanes, subgroup_size)
        self._subgroup_size = subgroup_size
        self._contents, self._workgroup_bytes = contents, workgroup_bytes
        self._zero: dict[Cell, int] = {}
        self._needed: dict[Cell, int] = {}
        self._useful: dict[Value, int] = {}
        self._of_sites: dict[int, int] = {}
        self._entered: dict[ir.Loop, int] = {}
        self._governed: dict[Construct | tuple[ir.Loop, int], int] = {}
        self._memories: dict[str, Memory] = {}
        self._unsettled: list[tuple[Tally, int]] = []
        self._in_step = 0  # the lanes in which something of the step is useful
        self._final = False

    # ---- forward: padding zeros ----

    def forward(self, steps: Sequence[Step]) -> list[dict[int, tuple[int, ...]]]:
        """Return, for each step, the lanes with padding zeros that its parts need to know, by number of the part."""
        self._memories = self._fresh()
        found: list[dict[int, tuple[int, ...]]] = []
        slots = [0] * len(self._lanes.subgroups)
        for step in steps:
            active = self._lanes.of(step.lanes)
            known: dict[int, tuple[int, ...]] = {}
            for number, part in enumerate(step.chunk.parts):
                if isinstance(part, ir.Barrier):
                    self.found.intervals.append(Interval(self._sites[part.site].span, slots))
                    slots = [0] * len(self._lanes.subgroups)
                elif isinstance(part, ir.Count):
                    self._issue(part, active, slots)
                elif any(zeros := self._zeros(part, step, active)):
                    known[number] = zeros
            found.append(known)
        self.found.intervals.append(Interval(None, slots))
        return found

    def _issue(self, count: ir.Count, active: int, slots: list[int]) -> None:
        number = len(count.computed) + sum(class_of_site(self._sites[site]) is not None for site in count.sites)
        for place, lanes in enumerate(self._lanes.subgroups):
            slots[place] += number * bool(active & lanes)

    def _zeros(self, part: object, step: Step, active: int) -> tuple[int, ...]:
        """Follow the padding zeros through a part; return those of its operands, or what else its needs depend on."""
        zero = self._zero
        match part:
            case Value():
                return self._zeros_of(part, step)
            case ir.Set(slot=slot, value=value):
                zero[slot] = self._of(slot) & ~active | self._of(value) & active
            case ir.Pick(result=result, block=block):
                zero[result] = 0
                for cell, lanes in self._cells(block, step):
                    zero[result] |= self._of(cell) & lanes
            case ir.Put(block=block, value=value):
                for cell, lanes in self._cells(block, step):
                    zero[cell] = self._of(cell) & ~lanes | self._of(value) & lanes
            case ir.Load(results=results, access=access):
                for place, result in enumerate(results):
                    memory, grains = self._grains(access, step, place)
                    held = memory is not None and not memory.is_buffer
                    zero[result] = self._lanes.of(step.lanes, memory.zero[grains]) if memory and held else 0
            case ir.Store(values=values, access=access):
                return tuple(self._store_zero(value, access, step, place) for place, value in enumerate(values))
            case ir.Atomic(op=op, access=access) if op != "load":
                memory, grains = self._grains(access, step, 0)
                if memory is not None:
                    memory.zero[self._rows(memory, grains, access)] = False
            case _:
                pass
        return ()

    def _store_zero(self, value: Value, access: int, step: Step, place: int) -> int:
        """Store to memory; return the lanes that store a padding zero over a zero to a buffer."""
        memory, grains = self._grains(access, step, place)
        if memory is None:
            return 0
        zeros = self._lanes.among(self._of(value), step.lanes)
        rows = self._rows(memory, grains, access)
        held = memory.zero[rows].all(axis=0)
        memory.zero[rows] = zeros
        return self._lanes.of(step.lanes, zeros & held) if memory.is_buffer else 0

    def _zeros_of(self, value: Value, step: Step) -> tuple[int, ...]:
        stem = value.op.rpartition("_")[0]
        if value.op == "get":
            self._zero[value] = self._of(value.imm)
            return ()
        if value.op == "bits" or not value.kind.startswith("f"):
            self._zero[value] = self._of(value.args[0]) if value.op == "bits" else 0
            return (self._lanes.of(step.lanes, step.facts != 0),) if stem == "select" else ()
        known = tuple(self._of(each) for each in value.args)
        if stem == "select":
            chosen = self._lanes.of(step.lanes, step.facts != 0)
            self._zero[value] = known[0] & ~chosen | known[1] & chosen
            return (chosen,)
        self._zero[value] = _RESULTS[stem](*known) if stem in _RESULTS else 0
        return known if stem in _RESULTS else ()

    def _of(self, cell: Cell) -> int:
        """Return the lanes in which a value or variable is a padding zero."""
        if isinstance(cell, Value) and cell.op == "const":
            return 0 if cell.imm else self._lanes.all
        return self._zero.get(cell, 0)

    # ---- backward: needs ----

    def backward(self, steps: Sequence[Step], zeros: Sequence[dict[int, tuple[int, ...]]], *, final: bool) -> None:
        """Follow the needs back from what the workgroup leaves. `final`: the loops are known that did anything useful."""
        self._memories = self._fresh()
        self._needed, self._useful, self._final = {}, {}, final
        if not final:
            for step in steps:
                for part in step.chunk.parts:
                    if isinstance(part, Enter):
                        self._entered[part.loop] = self._entered.get(part.loop, 0) + 1
        entered = dict(self._entered)
        of_all = 0
        for step, known in zip(reversed(steps), reversed(zeros), strict=True):
            active = self._lanes.of(step.lanes)
            self._in_step = 0
            for number in range(len(step.chunk.parts) - 1, -1, -1):
                self._need(step.chunk.parts[number], step, active, known.get(number, ()))
            of_all |= self._in_step
            for construct in step.chunk.governors:
                key = self._key(construct)
                self._governed[key] = self._governed.get(key, 0) | self._in_step
        self._entered = entered
        for tally, active in self._unsettled:
            tally.useful += (active & of_all).bit_count()

    def _key(self, construct: Construct) -> Construct | tuple[ir.Loop, int]:
        return (construct, self._entered.get(construct, 0)) if isinstance(construct, ir.Loop) else construct

    def _need(self, part: object, step: Step, active: int, known: tuple[int, ...]) -> None:
        match part:
            case Value():
                self._need_value(part, known)
            case ir.Set(slot=slot, value=value):
                self._use(value, self._take(slot, active))
            case ir.Pick(result=result, block=block, index=index):
                wanted = self._made(result)
                self._use(index, wanted)
                for cell, lanes in self._cells(block, step):
                    self._use(cell, wanted & lanes)
            case ir.Put(block=block, index=index, value=value):
                for cell, lanes in self._cells(block, step):
                    taken = self._take(cell, lanes)
                    self._use(value, taken)
                    self._use(index, taken)
            case ir.Load():
                self._need_load(part, step)
            case ir.Store():
                self._need_store(part, step, active, known)
            case ir.Atomic():
                self._need_atomic(part, step, active)
            case ir.Collective():
                self._need_collective(part, step, active)
            case Enter(loop=loop):
                self._entered[loop] -= 1
            case Decide(construct=construct, condition=condition, leaves=leaves):
                wanted = self._governed.get(self._key(construct), 0)
                for loop in leaves:
                    wanted |= self._governed.get(self._key(loop), 0)
                if isinstance(construct, ir.If):
                    self._governed[construct] = 0
                self._use(condition, wanted & active)
            case ir.Count() if self._final:
                self._count(part, step.chunk, active)
            case _:
                pass

    def _need_value(self, value: Value, known: tuple[int, ...]) -> None:
        wanted = self._needed.pop(value, 0)
        self._useful[value] = 0
        if not wanted:
            return
        stem = value.op.rpartition("_")[0]
        if value.op == "get":
            self._use(value.imm, wanted)
        elif stem == "select":
            chosen = known[0] if known else 0
            self._spend(value, wanted)
            self._use(value.args[0], wanted & ~chosen)
            self._use(value.args[1], wanted & chosen)
            self._use(value.args[2], wanted)
        elif known and stem in _USES:
            useful, uses = _USES[stem](wanted, *known)
            self._spend(value, useful)
            for each, lanes in zip(value.args, uses, strict=True):
                self._use(each, lanes)
        else:
            self._spend(value, wanted)
            for each in value.args:
                self._use(each, wanted)

    def _need_load(self, load: ir.Load, step: Step) -> None:
        wanted = 0
        for place, result in enumerate(load.results):
            lanes = self._made(result)
            wanted |= lanes
            memory, grains = self._grains(load.access, step, place)
            if lanes and memory is not None:
                asking = grains[self._lanes.among(lanes, step.lanes)]
                memory.needed[self._rows(memory, asking, load.access)] = True
        self._reach(load.site, load.address, wanted)

    def _need_store(self, store: ir.Store, step: Step, active: int, known: tuple[int, ...]) -> None:
        wanted = 0
        for place, value in enumerate(store.values):
            memory, grains = self._grains(store.access, step, place)
            lanes = active
            if memory is not None:
                rows = self._rows(memory, grains, store.access)
                lanes = self._lanes.of(step.lanes, memory.needed[rows].any(axis=0))
                memory.needed[rows] = False
            lanes &= ~known[place] if known else -1
            self._use(value, lanes)
            wanted |= lanes
        self._reach(store.site, store.address, wanted)

    def _need_atomic(self, atomic: ir.Atomic, step: Step, active: int) -> None:
        wanted = 0
        for result in atomic.results:
            wanted |= self._made(result)
        memory, grains = self._grains(atomic.access, step, 0)
        if memory is not None:
            rows = self._rows(memory, grains, atomic.access)
            if atomic.op != "load":
                wanted |= self._lanes.of(step.lanes, memory.needed[rows].any(axis=0))
            if atomic.op == "store":
                memory.needed[rows] = False
            else:
                memory.needed[rows[:, self._lanes.among(wanted, step.lanes)]] = True
        for each in atomic.args:
            self._use(each, wanted)
        self._reach(atomic.site, atomic.address, wanted)

    def _need_collective(self, item: ir.Collective, step: Step, active: int) -> None:
        wanted = 0
        for result in item.results:
            wanted |= self._made(result)
        if not wanted:
            return
        given = 0
        if item is step.chunk.first:  # a shuffle, from known lanes
            asking = step.lanes[self._lanes.among(wanted, step.lanes)]
            sources = step.facts[self._lanes.among(wanted, step.lanes)]
            there = asking - asking % self._subgroup_size + np.minimum(sources, self._subgroup_size - 1)
            given = self._lanes.of(there[there < self._lanes.all.bit_length()]) & active
            self._use(item.args[1], wanted)
            self._use(item.args[0], given)
        else:
            for lanes in self._lanes.subgroups:
                given |= lanes & active if wanted & lanes else 0
            for each in item.args:
                self._use(each, given)
        self._of_sites[item.site] = self._of_sites.get(item.site, 0) | given | wanted
        self._in_step |= given | wanted

    # ---- what both directions share ----

    def _use(self, cell: Cell, lanes: int) -> None:
        if lanes:
            self._needed[cell] = self._needed.get(cell, 0) | lanes

    def _take(self, cell: Cell, lanes: int) -> int:
        """Return which of these lanes need what is in a variable, as they write it."""
        needed = self._needed.get(cell, 0)
        self._needed[cell] = needed & ~lanes
        return needed & lanes

    def _made(self, result: Value) -> int:
        """Return the lanes that need a result, as an item makes it."""
        return self._needed.pop(result, 0)

    def _spend(self, value: Value, lanes: int) -> None:
        self._useful[value] = lanes
        self._in_step |= lanes

    def _reach(self, site: int, address: Value | None, lanes: int) -> None:
        """Note the lanes in which an access is useful."""
        if lanes:
            self._of_sites[site] = self._of_sites.get(site, 0) | lanes
            self._in_step |= lanes
            if address is not None:
                self._use(address, lanes)

    def _cells(self, block: ir.Block, step: Step) -> Iterable[tuple[Cell, int]]:
        """Yield each scalar of a block that the lanes of a step pick, with the lanes that do."""
        rows = np.minimum(step.facts, block.rows - 1)
        for row in np.unique(rows).tolist():
            cell = (block, row) if block.is_table else block.slots[row]
            yield cell, self._lanes.of(step.lanes, rows == row)

    def _fresh(self) -> dict[str, Memory]:
        buffers = {
            name: Memory(data[: len(data) // _GRAIN * _GRAIN].reshape(-1, _GRAIN).max(axis=1, initial=0) == 0, True)
            for name, data in self._contents.items()
        }
        return buffers | {
            name: Memory(np.ones(size // _GRAIN, np.bool_), False) for name, size in self._workgroup_bytes.items()
        }

    def _grains(self, access: int, step: Step, place: int) -> tuple[Memory | None, NDArray[np.int64]]:
        """Return the memory of an access, and the first grain of unit `place` in each lane."""
        row = self._accesses[access]
        memory = self._memories.get(row.variable.name)
        if memory is None or not len(memory.zero):
            return None, step.facts
        units = step.facts + (row.offset + place)
        return memory, np.minimum((units & 0xFFFFFFFF) * row.unit // _GRAIN, len(memory.zero) - 1)

    def _rows(self, memory: Memory, grains: NDArray[np.int64], access: int) -> NDArray[np.int64]:
        """Return all grains of the units that begin at these: an array of grains per unit x lanes."""
        width = max(1, self._accesses[access].unit // _GRAIN)
        return np.minimum(grains + np.arange(width)[:, None], len(memory.zero) - 1)

    # ---- counting ----

    def _count(self, count: ir.Count, chunk: Chunk, active: int) -> None:
        issued = sum(self._subgroup_size for lanes in self._lanes.subgroups if active & lanes)
        for kind, span, value in count.computed:
            tally = self._tally((kind, span), issued, active)
            if value is not None and value.op != "const":
                same = value.region is chunk.region
                useful = self._needed.get(value, 0) | (self._useful.get(value, 0) if same else 0)
                tally.useful += (useful & active).bit_count()
            elif chunk.head_of is not None:
                tally.useful += (self._governed.get(self._key(chunk.head_of), 0) & active).bit_count()
            else:
                self._unsettled.append((tally, active))
        for number in dict.fromkeys(count.sites):
            site = self._sites[number]
            if (kind := class_of_site(site)) is None:
                continue
            tally = self._tally((kind, site.span), issued, active)
            if kind == "barrier":
                self._unsettled.append((tally, active))
            tally.useful += (self._of_sites.pop(number, 0) & active).bit_count()

    def _tally(self, place: Place, issued: int, active: int) -> Tally:
        tally = self.found.tallies.setdefault(place, Tally())
        tally.issued += issued
        tally.active += active.bit_count()
        return tally


def _either(one: int, other: int) -> int:
    return one | other


def _both(one: int, other: int) -> int:
    return one & other


# The lanes in which the result of a float operation is a padding zero, from those of its operands.
_RESULTS = {
    "mul": _either,
    "add": _both,
    "sub": _both,
    "min": _both,
    "max": _both,
    "div": lambda one, _: one,
    "fma": lambda one, other, more: (one | other) & more,
    "neg": lambda one: one,
    "abs": lambda one: one,
    "convert_f16": lambda one: one,
    "convert_f32": lambda one: one,
}


def _product(wanted: int, one: int, other: int) -> tuple[int, tuple[int, int]]:
    useful = wanted & ~one & ~other
    return useful, (useful | wanted & one, useful | wanted & other)


def _sum(wanted: int, one: int, other: int) -> tuple[int, tuple[int, int]]:
    return wanted & ~one & ~other, (wanted & ~(one & ~other), wanted & ~(other & ~one))


def _difference(wanted: int, one: int, other: int) -> tuple[int, tuple[int, int]]:
    return wanted & ~other, (wanted, wanted & ~other)


def _fused(wanted: int, one: int, other: int, more: int) -> tuple[int, tuple[int, int, int]]:
    useful = wanted & ~(one | other)
    return useful, (useful, useful, wanted)


def _same(wanted: int, one: int) -> tuple[int, tuple[int]]:
    return wanted & ~one, (wanted,)


# The lanes in which a float operation is useful, and those in which each operand is needed, from those in which its
# result is needed and its operands are padding zeros.
_USES = {
    "mul": _product,
    "add": _sum,
    "sub": _difference,
    "fma": _fused,
    "neg": _same,
    "abs": _same,
    "convert_f16": _same,
    "convert_f32": _same,
}
