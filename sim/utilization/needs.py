"""What the results of a workgroup need, found backward through its steps.

The needs begin at what the host can see: buffers, when the workgroup ends. They lead from values to their operands,
from loads to the stores that they read, from exchanges to the lanes that give, from accesses to their addresses, and
from whatever a condition decides to the condition.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ir import ir
from ..ir.instruction_classes import class_of_site
from ..ir.ir import Value
from ..ir.sites import SourceSite
from .padding_zeros import Known, stem_of
from .steps import Chunk, Construct, Decide, Enter, Part, Step
from .tallies import Place, Tally
from .workgroup_memory import Cell, Lanes, Memories

Key = Construct | tuple[ir.Loop, int]


class Governed:
    """The lanes in which a construct decides over something useful: for loops, each time that they are entered."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._useful: dict[Key, int] = {}
        self._last: dict[ir.Loop, int] = {}
        for step in steps:
            for part in step.chunk.parts:
                if isinstance(part, Enter):
                    self._last[part.loop] = self._last.get(part.loop, 0) + 1
        self._now = dict(self._last)

    def rewind(self) -> None:
        """Begin again at the end of the steps."""
        self._now = dict(self._last)

    def leave(self, loop: ir.Loop) -> None:
        """Step back to before a loop was entered."""
        self._now[loop] -= 1

    def add(self, construct: Construct, lanes: int) -> None:
        key = self._key(construct)
        self._useful[key] = self._useful.get(key, 0) | lanes

    def get(self, construct: Construct) -> int:
        return self._useful.get(self._key(construct), 0)

    def forget(self, branch: ir.If) -> None:
        """Step back to before a condition was evaluated."""
        self._useful[branch] = 0

    def _key(self, construct: Construct) -> Key:
        return (construct, self._now.get(construct, 0)) if isinstance(construct, ir.Loop) else construct


class Needs:
    """One walk backward. `tallies`: where to count, in the second walk; the first one fills `governed`."""

    def __init__(
        self,
        lanes: Lanes,
        memories: Memories,
        sites: Sequence[SourceSite],
        governed: Governed,
        tallies: dict[Place, Tally] | None,
    ) -> None:
        self._lanes, self._memories, self._sites = lanes, memories, sites
        self._governed, self._tallies = governed, tallies
        self._needed: dict[Cell, int] = {}  # the lanes in which what comes later needs a value or variable
        self._decisive: dict[Cell, int] = {}  # those of them in which an address or a condition does
        self._useful: dict[Value, int] = {}  # the lanes in which the last execution of a value was useful
        self._of_sites: dict[int, int] = {}  # the same for accesses and exchanges, by site
        self._unsettled: list[tuple[Tally, int]] = []  # useful in the lanes that do anything useful
        self._in_step = 0  # the lanes in which something of the step is useful

    def follow(self, steps: Sequence[Step], active: Sequence[int], known: Sequence[Known]) -> None:
        """Walk the steps. `active`: the lanes of each; `known`: what `PaddingZeros` found."""
        self._governed.rewind()
        useful = 0
        for step, lanes, zeros in zip(reversed(steps), reversed(active), reversed(known), strict=True):
            self._in_step = 0
            parts = step.chunk.parts
            for number in range(len(parts) - 1, -1, -1):
                self._need(parts[number], step, lanes, zeros.get(number, ()))
            useful |= self._in_step
            for construct in step.chunk.governors if self._in_step else ():
                self._governed.add(construct, self._in_step)
        for tally, lanes in self._unsettled:
            tally.useful += (lanes & useful).bit_count()

    def _need(self, part: Part, step: Step, active: int, known: tuple[int, ...]) -> None:
        match part:
            case Value():
                self._need_value(part, known)
            case ir.Set(slot=slot, value=value):
                self._use(value, *self._take(slot, active))
            case ir.Pick(result=result, block=block, index=index):
                wanted, decisive = self._take(result)
                self._use(index, wanted, wanted)
                for cell, lanes in self._lanes.picks(block, step):
                    self._use(cell, wanted & lanes, decisive & lanes)
            case ir.Put(block=block, index=index, value=value):
                for cell, lanes in self._lanes.picks(block, step):
                    taken, decisive = self._take(cell, lanes)
                    self._use(value, taken, decisive)
                    self._use(index, taken, taken)
            case ir.Load():
                self._need_load(part, step)
            case ir.Store():
                self._need_store(part, step, active, known)
            case ir.Atomic():
                self._need_atomic(part, step, active)
            case ir.Collective():
                self._need_collective(part, step, active)
            case Enter(loop=loop):
                self._governed.leave(loop)
            case Decide(construct=construct, condition=condition, leaves=leaves):
                wanted = self._governed.get(construct)
                for loop in leaves:
                    wanted |= self._governed.get(loop)
                if isinstance(construct, ir.If):
                    self._governed.forget(construct)
                self._use(condition, wanted & active, wanted & active)
            case ir.Count() if self._tallies is not None:
                self._count(part, step.chunk, active, self._tallies)
            case _:
                pass

    def _need_value(self, value: Value, known: tuple[int, ...]) -> None:
        wanted, decisive = self._take(value)
        self._useful[value] = 0
        if not wanted:
            return
        stem = stem_of(value.op)
        if value.op == "get":
            self._use(value.imm, wanted, decisive)
        elif stem == "select":
            chosen = known[0] if known else 0
            other, one, condition = value.args
            self._spend(value, wanted)
            self._use(other, wanted & ~chosen, decisive & ~chosen)
            self._use(one, wanted & chosen, decisive & chosen)
            self._use(condition, wanted, wanted)
        elif known and stem in _USES:
            useful, uses = _USES[stem](wanted & ~decisive, *known)
            self._spend(value, useful | decisive)
            for each, lanes in zip(value.args, uses, strict=True):
                self._use(each, lanes | decisive, decisive)
        else:
            self._spend(value, wanted)
            for each in value.args:
                self._use(each, wanted, decisive)

    def _need_load(self, load: ir.Load, step: Step) -> None:
        wanted = 0
        for place, result in enumerate(load.results):
            lanes, _ = self._take(result)
            wanted |= lanes
            held = self._memories.grains(load.access, step, place) if lanes else None
            if held is not None:
                memory, grains = held
                memory.needed[grains[:, self._lanes.among(lanes, step.lanes)]] = True
        self._reach(load.site, load.address, wanted)

    def _need_store(self, store: ir.Store, step: Step, active: int, in_vain: tuple[int, ...]) -> None:
        wanted = 0
        for place, value in enumerate(store.values):
            lanes = active
            if (held := self._memories.grains(store.access, step, place)) is not None:
                memory, grains = held
                lanes = self._lanes.of(step.lanes, np.logical_or.reduce(memory.needed[grains]))
                memory.needed[grains] = False
            if in_vain:
                lanes &= ~in_vain[place]
            self._use(value, lanes)
            wanted |= lanes
        self._reach(store.site, store.address, wanted)

    def _need_atomic(self, atomic: ir.Atomic, step: Step, active: int) -> None:
        wanted = 0
        for result in atomic.results:
            wanted |= self._take(result)[0]
        if (held := self._memories.grains(atomic.access, step, 0)) is not None:
            memory, grains = held
            if atomic.op != "load":
                wanted |= self._lanes.of(step.lanes, np.logical_or.reduce(memory.needed[grains]))
            if atomic.op == "store":
                memory.needed[grains] = False
            else:
                memory.needed[grains[:, self._lanes.among(wanted, step.lanes)]] = True
        for each in atomic.args:
            self._use(each, wanted)
        self._reach(atomic.site, atomic.address, wanted)

    def _need_collective(self, item: ir.Collective, step: Step, active: int) -> None:
        wanted = decisive = 0
        for result in item.results:
            lanes, deciding = self._take(result)
            wanted |= lanes
            decisive |= deciding
        if not wanted:
            return
        if item is step.chunk.first:  # a shuffle, from known lanes
            given = self._lanes.sources(step, self._lanes.among(wanted, step.lanes)) & active
            value, source = item.args
            self._use(source, wanted, wanted)
            self._use(value, given, given if decisive else 0)
        else:
            given = sum(lanes & active for lanes in self._lanes.subgroups if wanted & lanes)
            for each in item.args:
                self._use(each, given, given if decisive else 0)
        self._reach(item.site, None, given | wanted)

    def _use(self, cell: Cell, lanes: int, decisive: int = 0) -> None:
        """Need a value or variable in these lanes; in the decisive ones for an address or a condition."""
        if lanes:
            self._needed[cell] = self._needed.get(cell, 0) | lanes
        if decisive:
            self._decisive[cell] = self._decisive.get(cell, 0) | decisive

    def _take(self, cell: Cell, lanes: int = -1) -> tuple[int, int]:
        """Return which of these lanes need a value or variable, and the decisive ones, as they make or write it."""
        needed, decisive = self._needed.pop(cell, 0), self._decisive.pop(cell, 0)
        if kept := needed & ~lanes:
            self._use(cell, kept, decisive & ~lanes)
        return needed & lanes, decisive & lanes

    def _spend(self, value: Value, lanes: int) -> None:
        self._useful[value] = lanes
        self._in_step |= lanes

    def _reach(self, site: int, address: Value | None, lanes: int) -> None:
        """Note the lanes in which an access or an exchange is useful."""
        if lanes:
            self._of_sites[site] = self._of_sites.get(site, 0) | lanes
            self._in_step |= lanes
            if address is not None:
                self._use(address, lanes, lanes)

    def _count(self, count: ir.Count, chunk: Chunk, active: int, tallies: dict[Place, Tally]) -> None:
        """Count the instructions of a basic block, whose values and accesses have been walked."""
        issued = self._lanes.slots(active)
        for kind, span, value in count.computed:
            tally = tallies.setdefault((kind, span), Tally())
            tally.add(issued, active)
            if value is not None and value.op != "const":
                useful = self._needed.get(value, 0)
                if value.region is chunk.region:
                    useful |= self._useful.get(value, 0)
                tally.useful += (useful & active).bit_count()
            elif chunk.head_of is not None:
                tally.useful += (self._governed.get(chunk.head_of) & active).bit_count()
            else:
                self._unsettled.append((tally, active))
        for number in count.sites:
            site = self._sites[number]
            if (kind := class_of_site(site)) is None:
                continue
            tally = tallies.setdefault((kind, site.span), Tally())
            tally.add(issued, active)
            if kind == "barrier":
                self._unsettled.append((tally, active))
            tally.useful += (self._of_sites.get(number, 0) & active).bit_count()
        for number in count.sites:
            self._of_sites.pop(number, None)


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


def _shifted(wanted: int, one: int, other: int) -> tuple[int, tuple[int, int]]:
    return wanted & ~one & ~other, (wanted, wanted & ~one & ~other)


def _same(wanted: int, one: int) -> tuple[int, tuple[int]]:
    return wanted & ~one, (wanted,)


# The lanes in which an operation is useful, and those in which each operand is needed, from those in which its result
# is needed as data and its operands are padding zeros.
_USES = {
    "mul": _product,
    "and": _product,
    "add": _sum,
    "or": _sum,
    "xor": _sum,
    "sub": _difference,
    "fma": _fused,
    "shl": _shifted,
    "shr": _shifted,
    "neg": _same,
    "abs": _same,
    "convert": _same,
}
