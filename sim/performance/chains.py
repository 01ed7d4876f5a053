"""What each region of a program issues, and the chain of dependent instructions that it takes at least.

A subgroup issues in order and waits for operands (Huang et al., "GPUMech", MICRO 2014: interval analysis). One pass
over the program keeps, for each value, when it is ready and along which steps. A region's own chain is the time that it
adds to its parent's; constructs inside it have their own. A value from before a loop is waited for once, before the
loop. What continues an iteration issues while its body waits. WGSL compilers bound the iterations of each loop, and the
check is a chain of its own beside the others. After both, the end of an iteration takes a `loop` step.

Subgroups that wait for each other are in the same phase of the program: what loads a tile is over before what computes
with it begins. A phase ends at a barrier, and where an outermost loop without barriers begins or ends, unless it has
neither accessed memory nor looped. A region that several phases share has costs for each. The check of an iteration
runs beside the first of them, up to its barrier. A region also has costs apart for what follows a jump out of it, which
fewer invocations may execute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import field
from functools import cached_property

from ..analysis.lane_uniformity import find_uniformity
from ..fast_dataclass import entity, frozen
from ..ir import ir
from ..ir.lowered import Lowered
from .function_arrays import (
    LOCAL_FILL,
    LOCAL_LOAD,
    ArraysOutsideRegisters,
    Forwarded,
    arrays_outside_registers,
    cost_of_local,
    cost_of_selection,
    cost_of_table,
    slots_of,
)
from .instruction_costs import (
    CHECK,
    FLOATS,
    MULTIPLY_AND_SUBTRACT,
    STEPS,
    InstructionCost,
    cost_of_access,
    cost_of_atomic,
    cost_of_value,
    executed_in_software,
    is_negation,
    needed_values,
    operands,
)
from .known_results import KnownResults
from .moments import CYCLES_OF, LoadsInFlight, Moment, latest
from .nested_continues import nest_continues
from .phases import Phases
from .predicated_branches import PredicatedBranches, uses_loaded_values
from .region_facts import leaving, storage_loads
from .registers import LiveWords, live_words, words_in_flight

# Steps that a subgroup only waits for in a side of a predicated branch if its condition holds in a lane.
_OF_SIDES = ("storage_load", "next_load")


@entity
class RegionCosts:
    """The costs of one execution of a region in one phase, without the regions inside it; up to a jump, or after one.

    `issued`: instructions by class. `chain`: steps by kind. `blocks`: its basic blocks, by their number in the program.
    `iterates`: it is the body of a loop. `counted_by`: where a part of a loop has no basic blocks of its own, another
    part that is executed as often; for later phases, the part of the region that has the blocks. `repeats`: it is a
    part of a loop. `software`: what a software adapter executes, with accesses by words and functions by name. `phase`:
    its number in the program. `sites`: the numbers of those that access memory.
    """

    parent: RegionCosts | None
    issued: Counter[str] = field(default_factory=Counter[str])
    chain: dict[str, float] = field(default_factory=dict[str, float])
    blocks: list[int] = field(default_factory=list[int])
    iterates: bool = False
    counted_by: RegionCosts | None = None
    repeats: bool = False
    software: Counter[str] = field(default_factory=Counter[str])
    phase: int = 0
    sites: list[int] = field(default_factory=list[int])

    @property
    def counted_blocks(self) -> list[int]:
        """The basic blocks that are executed as often as the region; empty if it has none."""
        return self.blocks or (self.counted_by.counted_blocks if self.counted_by else [])

    @cached_property
    def instructions(self) -> tuple[tuple[str, int], ...]:
        """What is issued by class, with `loop` for an iteration. Read it once the costs are complete."""
        return tuple((self.issued | Counter(loop=int(self.iterates))).items())


@frozen
class ProgramCosts:
    """The costs of a program. `regions`: each after its parent; `local_words`: of memory, that the arrays of function
    space of each invocation take."""

    regions: list[RegionCosts]
    live: LiveWords
    local_words: int


def program_costs(lowered: Lowered, *, barriers: bool, held: int, register_unit: int) -> ProgramCosts:
    """Return the costs of a program, set the uniformity of its values, and nest what follows a `continue`.

    `barriers`: a workgroup has several subgroups; with one, a compiler leaves barriers out. `held` and
    `register_unit`: see `words_in_flight`.
    """
    find_uniformity(lowered.body, lowered.accesses, lowered.builder.slots, one_workgroup=True)
    nest_continues(lowered.body)
    needed = needed_values(lowered.body)
    arrays = arrays_outside_registers(lowered.body, needed)
    live = live_words(lowered, needed, arrays.slots)
    held = max(held, live.kept_registers)
    rooms = {loop: words_in_flight(held, words, register_unit) for loop, words in live.through.items()}
    walk = _Walk(lowered, needed, arrays, barriers, words_in_flight(held, 0, register_unit), rooms)
    walk.region(lowered.body, None, Moment())
    return ProgramCosts(walk.found, live, arrays.local_words)


class _Walk:
    def __init__(
        self,
        lowered: Lowered,
        needed: Set[int],
        arrays: ArraysOutsideRegisters,
        barriers: bool,
        room: int,
        rooms: Mapping[int, int],
    ) -> None:
        self._barriers = barriers
        self._sites, self._accesses = lowered.sites.rows, lowered.accesses
        self._branches = PredicatedBranches(self._sites)
        self._needed = needed
        self._in_memory = frozenset(map(id, arrays.in_memory))
        self._constants = frozenset(map(id, arrays.tables))
        self._copied = slots_of(array for array in arrays.in_memory if array.copied)
        self._variables = slots_of(array for array in arrays.in_memory if not array.copied)
        self._compared = set[int]()  # indices, by identity
        self._forwarded = Forwarded()
        self._known = KnownResults()
        self._ready: dict[int, Moment] = {}  # by the identity of a value or slot
        self._blocks = 0
        self._leaving = leaving(lowered.body)
        self._storage_loads = storage_loads(lowered.body, self._sites)
        self._phases = Phases()
        self._loads = LoadsInFlight(room)
        self._rooms = rooms  # of loops, by identity
        self._stored = False  # to storage, since the last barrier that orders it
        self.found: list[RegionCosts] = []

    def region(
        self,
        region: ir.Region,
        parent: RegionCosts | None,
        start: Moment,
        *,
        iterates: bool = False,
        repeats: bool = False,
        issues: Moment | None = None,
    ) -> Moment:
        """Walk a region that begins at `start`. Returns when it ends. `issues`: when its instructions may issue, where
        they need nothing of what comes before."""
        counting = costs = RegionCosts(
            parent, iterates=iterates, repeats=repeats, software=Counter(loop=int(iterates)), phase=self._phases.current
        )
        self.found.append(costs)
        inside: Counter[str] = Counter()  # steps of the regions inside, in this part, that are theirs
        begun = end = start
        now = start if issues is None else issues
        left = False  # by jumps, since the last basic block
        for item in region.items:
            counts_anew = left and isinstance(item, ir.Count)
            if counts_anew or costs.phase != self._phases.current:
                self._close(costs, region, end.since(begun), inside)
                begun, inside = end, Counter[str]()
                counted_by = None if counts_anew else counting
                costs = RegionCosts(parent, repeats=repeats, counted_by=counted_by, phase=self._phases.current)
                self.found.append(costs)
                if counts_anew:
                    counting, left = costs, False
            if isinstance(item, ir.If | ir.Loop | ir.Scope):
                begin, done, now = self._construct(item, costs, now, end)
                inside.update(self._steps_inside(item, done.since(begin)))
                left |= id(item) in self._leaving
            else:
                now, done = self._item(item, costs, now, end)
            end = latest(end, done, now)
        self._close(costs, region, end.since(begun), inside)
        return end

    def _steps_inside(self, item: ir.If | ir.Loop | ir.Scope, steps: Counter[str]) -> Mapping[str, int]:
        """Return the steps of a construct that are its regions' own. `steps`: from where it begins to its end."""
        if not isinstance(item, ir.If):
            return steps
        waits = self._own_waits(item, steps)
        return waits if self._branches.is_predicated(item) else {**steps, **waits}

    def _own_waits(self, branch: ir.If | ir.Region, steps: Counter[str]) -> dict[str, int]:
        """Return how often a branch, or a side of it, waits for loads in it. What waits for loads before it is not its
        own, as what follows waits for them, too."""
        return {step: min(steps[step], self._storage_loads[id(branch)]) for step in _OF_SIDES}

    def _close(self, costs: RegionCosts, region: ir.Region, steps: Counter[str], inside: Counter[str]) -> None:
        """Set the chain of a region in a phase that took these steps. It takes the time to issue the region, if it is
        shorter."""
        steps.subtract(inside)
        if id(region) in self._storage_loads:  # a side of a branch
            steps = Counter({**steps, **self._own_waits(region, steps)})
        chain = {step: float(n) for step, n in steps.items() if n > 0}
        issued = costs.issued.total()
        if issued > _length(chain):
            chain = {"issue": float(issued)}
        costs.chain = chain

    def _construct(
        self, item: ir.If | ir.Loop | ir.Scope, costs: RegionCosts, now: Moment, end: Moment
    ) -> tuple[Moment, Moment, Moment]:
        """Return when it begins and ends, and the moment from which later items may issue."""
        match item:
            case ir.If(condition=condition, then=then, orelse=orelse):
                costs.software["branch"] += 1
                begin = self._after([condition], now)
                if self._branches.is_predicated(item):
                    last = latest(end, begin)
                    now = latest(now, self._after_jump(item, costs, begin))
                    return last, latest(self._conditional(item, costs, begin, last), now), now
                costs.issued["branch"] += 1
                begin = begin.after("branch")
                done = self._side(orelse, costs, self._side(then, costs, begin))
                return begin, done, done
            case ir.Scope(body=body):
                done = self.region(body, costs, now)
                return now, done, done
            case ir.Loop():
                costs.issued["loop_start"] += 1
                begin = latest(end, self._before_loop(item, now))
                waits = self._phases.before_loop(item, self._barriers)
                outside, self._loads = self._loads, LoadsInFlight(self._rooms[id(item)])
                before, self._known = self._known, self._known.in_loop()
                header = len(self.found)
                now = self.region(item.header, costs, begin, repeats=True)
                checked = now if item.condition is None else self._after([item.condition], now)
                body = len(self.found)
                now = self.region(item.body, costs, checked, iterates=True, repeats=True)
                continuing = len(self.found)
                now = self.region(item.continuing, costs, now, repeats=True, issues=checked)
                self._share_counts(self.found[body], self.found[continuing])
                halves = self.found[header:continuing], self.found[continuing:]
                first = [part for half in halves for part in half if part.phase == half[0].phase]
                _end_iteration([part for part in first if part.parent is costs])
                self._phases.after_loop(waits)
                self._loads, self._known = LoadsInFlight(outside.room), before.after(self._known)
                return begin, now, now

    def _after_jump(self, item: ir.If, costs: RegionCosts, begin: Moment) -> Moment:
        """Return when a subgroup goes on after a construct with jumps out of it, if it has any, which take a branch."""
        if id(item) not in self._leaving:
            return Moment()
        costs.issued["branch"] += 1
        return begin.after("jump")

    def _conditional(self, item: ir.If, costs: RegionCosts, begin: Moment, last: Moment) -> Moment:
        """Walk a construct without branches, which nothing waits for but what needs its results. All its instructions
        issue, whatever the condition, and only loads from storage are not waited for where it is false. Returns when it
        ends, or `last`, when all before it does."""
        outside = self._loads.conditional
        self._loads.conditional = outside or uses_loaded_values(item)
        for side in (item.then, item.orelse):
            first = len(self.found)
            last = self._side(side, costs, last, issues=begin)
            for part in self.found[first:]:
                costs.issued.update(part.issued)
                part.issued.clear()
                part.chain = {step: count for step, count in part.chain.items() if step in _OF_SIDES}
        self._loads.conditional &= outside
        return last

    def _side(self, region: ir.Region, parent: RegionCosts, start: Moment, issues: Moment | None = None) -> Moment:
        """Walk a side of a branch. What it computes is known in no other place."""
        before, self._known = self._known, self._known.in_branch()
        end = self.region(region, parent, start, issues=issues)
        self._known = before.after(self._known)
        return end

    def _share_counts(self, body: RegionCosts, continuing: RegionCosts) -> None:
        if not body.blocks:
            body.counted_by = continuing
        elif not continuing.blocks:
            continuing.counted_by = body

    def _before_loop(self, loop: ir.Loop, now: Moment) -> Moment:
        """Return when everything is ready that the loop takes from before it."""
        inner = list(ir.items(loop))
        made = {id(item) for item in inner}
        outer = [value for item in inner for value in operands(item) if id(value) not in made]
        slots = [item.imm for item in inner if isinstance(item, ir.Value) and item.op == "get"]
        return self._after([*outer, *slots], now)

    def _item(self, item: ir.Item, costs: RegionCosts, now: Moment, end: Moment) -> tuple[Moment, Moment]:
        """Return the moment from which later items may issue, and when this one has what it needs."""
        match item:
            case ir.Value():
                self._value(item, costs, now)
            case ir.Count():
                (costs.counted_by or costs).blocks.append(self._blocks)  # of all phases of the region
                self._blocks += 1
            case ir.Set(slot=slot, value=value):
                if id(slot) in self._copied:
                    self._issue(item, LOCAL_FILL, [], costs, now)
                elif id(slot) in self._variables:
                    self._filled_in(costs).issued["local_fill"] += slot.rows
                self._ready[id(slot)] = done = self._after([value], Moment())
                return now, done
            case ir.Load(results=results) if not any(id(each) in self._needed for each in results):
                pass
            case ir.Load(results=results, access=access):
                cost = cost_of_access(item, self._sites)
                first = self._known.first_load(item, self._accesses[access].variable)
                if first is not results:
                    self._count_in_software(item, cost, costs)  # which loads again
                    self._ready.update((id(new), self._ready[id(old)]) for new, old in zip(results, first, strict=True))
                    return now, now
                return now, self._issue(item, cost, results, costs, now)
            case ir.Store(access=access):
                self._known.forget(self._accesses[access].variable)
                return now, self._issue(item, cost_of_access(item, self._sites), [], costs, now)
            case ir.Atomic(results=results, access=access):
                self._known.forget(self._accesses[access].variable)
                used = any(id(each) in self._needed for each in results)
                return now, self._issue(item, cost_of_atomic(item, self._sites, used=used), results, costs, now)
            case ir.Pick() | ir.Put() if self._forwarded.leaves_out(item, costs):
                self._count_in_software(item, self._cost_of_indexed(item), costs)  # which does not leave it out
                if isinstance(item, ir.Pick):
                    self._ready[id(item.result)] = self._after([self._forwarded.held(item)], Moment())
            case ir.Pick(block=block, result=result):
                if id(block.slots[0]) in self._copied:  # a copy is made for this access: stores in order
                    now = self._after(block.slots, now).after("local_fill", block.rows)
                return now, self._issue(item, self._cost_of_indexed(item), [result], costs, now)
            case ir.Put():
                return now, self._issue(item, self._cost_of_indexed(item), [], costs, now)
            case ir.Collective(results=results):
                return now, self._issue(item, InstructionCost("subgroup", "subgroup"), results, costs, now)
            case ir.Barrier():
                self._known.forget_all()
                passed = self._ordered(item, latest(end, now))  # a subgroup issues in order
                costs.issued["barrier" if self._barriers else "branch"] += 1
                if self._barriers:
                    costs.software["barrier"] += 1
                    passed = passed.after("barrier")
                    self._phases.end()
                return passed, passed
            case _:
                pass
        return now, now

    def _ordered(self, barrier: ir.Barrier, now: Moment) -> Moment:
        """Return when the storage that a barrier orders is as it says, with one subgroup too."""
        if barrier.kind == "workgroup":
            return now
        stored, self._stored = self._stored, False
        return (now.after("stores_before_barrier") if stored else now).after("storage_barrier")

    def _filled_in(self, costs: RegionCosts) -> RegionCosts:
        """Return the region in which an array variable is filled: in a loop that of its declaration, otherwise the
        whole program, because compilers fill it before any branch."""
        around: RegionCosts | None = costs
        while around is not None:
            if around.repeats:
                return costs
            around = around.parent
        return self.found[0]

    def _value(self, value: ir.Value, costs: RegionCosts, now: Moment) -> None:
        if id(value) not in self._needed:
            return
        if value.op == "get" and id(value.imm) in self._variables:
            self._issue(value, LOCAL_LOAD, [value], costs, self._after([value.imm], now))
        elif value.op == "get":
            self._ready[id(value)] = self._ready.get(id(value.imm), Moment())
        elif (cost := self._cost(value)) is not None:
            self._issue(value, cost, [value], costs, now)
        elif value.args:
            self._ready[id(value)] = self._after(value.args, Moment())

    def _cost(self, value: ir.Value) -> InstructionCost | None:
        """Return the cost of a value. The quotient and the remainder of the same unsigned operands take one division;
        of signed ones, on an H200, two."""
        if is_negation(value):
            return None
        if value.op in ("div_u32", "rem_u32") and self._known.first_division(value) != value.op:
            return MULTIPLY_AND_SUBTRACT
        return cost_of_value(value)

    def _cost_of_indexed(self, item: ir.Pick | ir.Put) -> InstructionCost:
        """Return the cost of an access to an array of function space at an index that is known at run time."""
        block, index, stores = item.block, item.index, isinstance(item, ir.Put)
        if id(block) in self._constants:
            return cost_of_table(block, index)
        if id(block) in self._in_memory:
            return cost_of_local(block, index, stores=stores)
        compared = id(index) in self._compared
        self._compared.add(id(index))
        return cost_of_selection(block, index, compared=compared, stores=stores)

    def _count_in_software(self, item: ir.Item, cost: InstructionCost, costs: RegionCosts) -> None:
        for kind, times in executed_in_software(item, cost):
            costs.software[kind] += times

    def _issue(
        self, item: ir.Item, cost: InstructionCost, results: list[ir.Value], costs: RegionCosts, now: Moment
    ) -> Moment:
        """Count an instruction. Returns when it issues."""
        if isinstance(item, ir.Load | ir.Store | ir.Atomic):
            costs.sites.append(item.site)
            self._phases.busy = True
            self._stored |= cost.issued == "storage_store" or cost.step == "storage_atomic"
        costs.issued[cost.issued] += cost.times
        self._count_in_software(item, cost, costs)
        if cost.arithmetic:
            costs.issued["fp32"] += cost.arithmetic
        if cost.integer:
            costs.issued["integer"] += cost.integer
        if cost.prefix:
            costs.issued["subgroup"] += cost.prefix
        begin = self._after(operands(item), now)
        if cost.step == "storage_load":
            begin = self._loads.begin(begin, len(results))
        if results:
            ready = begin.after(cost.step, cost.steps)
            if cost.issued == "fp32_divide" and cost.step == "special":  # the divisor's reciprocal, and a product
                ready = latest(self._after(operands(item)[1:], now).after(cost.step), begin)
            if cost.then:
                ready = ready.after("alu", cost.then)
            if cost.issued in FLOATS:
                ready = ready.after("fp32", cost.steps)
            self._ready.update((id(each), ready) for each in results)
        return begin

    def _after(self, needs: Sequence[ir.Value | ir.Slot], now: Moment) -> Moment:
        return latest(now, *(self._ready.get(id(each), now) for each in needs)) if needs else now


def _end_iteration(parts: Sequence[RegionCosts]) -> None:
    """Add the end of an iteration to a loop, and the time of its check as far as the first phase of its parts is
    shorter, up to a barrier."""
    body = next(part for part in parts if part.iterates)
    barriers = sum(part.chain.get("barrier", 0.0) for part in parts)
    missing = max(0.0, CHECK + barriers * STEPS["barrier"] - sum(_length(part.chain) for part in parts))
    body.chain = {**body.chain, "loop": 1 + missing / STEPS["loop"]}


def _length(chain: dict[str, float]) -> float:
    return sum(CYCLES_OF[step] * count for step, count in chain.items())
