"""Flat code from ir: steps with program counters, so that an invocation's state is a counter and its live registers.

Registers hold 32 bits as Python ints, as in the machine. Each load, store or atomic operation accesses one word: an
access to several units becomes a step for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from ..fast_dataclass import entity
from ..ir import ir
from ..ir.ir import Block, Region, Slot, Value
from ..ir.lowered import Lowered
from ..ir.sites import SourceSite
from ..wgsl.source import Span

_PURE = frozenset(("op", "copy", "fill", "pick"))  # whose result is all they do


@entity
class Step:
    """One step. `kind` is op, copy, fill, pick, put, jump or branch, which no other invocation
    can see, or access, barrier, collective or end.

    `op`: the operation; of an access load, store, compare or that of an atomic; of a barrier the memory that it orders.
    `unit`: which unit of the access. `address`: a register, or -1. `target`: of a jump, or of a branch not taken.
    `block`: the registers that a pick or put selects from. `rows`: where that is one register with a table, and for a
    fill, how many scalars the table has.
    """

    kind: str
    op: str = ""
    results: tuple[int, ...] = ()
    args: tuple[int, ...] = ()
    access: int = -1
    unit: int = 0
    address: int = -1
    target: int = -1
    block: tuple[int, ...] = ()
    rows: int = 0
    scalar: str = ""
    site: int = -1
    atomic: bool = False


@entity
class Code:
    """A flattened entry point. `live[pc]`: the registers that steps from `pc` on may read, in ascending order.

    `constants` and `inputs` never change: register to bits, and register to the name of an input. `lengths`: register
    to the access whose array's length it holds. `tables`: register to the number of its scalars, which it holds as a
    tuple.
    """

    steps: list[Step]
    registers: int
    constants: dict[int, int]
    inputs: dict[int, str]
    lengths: dict[int, int]
    tables: dict[int, int] = field(default_factory=dict[int, int])
    live: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    sites: Sequence[SourceSite] = ()

    def span(self, pc: int) -> Span | None:
        """The place in the source of a step, if it has a site."""
        site = self.steps[pc].site
        return self.sites[site].span if site >= 0 else None

    def span_near(self, pc: int) -> Span | None:
        """The place of the first step from `pc` on that has one."""
        return next((span for each in range(pc, len(self.steps)) if (span := self.span(each)) is not None), None)


def flatten(lowered: Lowered) -> Code:
    """Return the flat code of a program without probes."""
    flat = _Flattener()
    flat.region(lowered.body)
    flat.emit(Step("end"))
    code = Code(
        flat.steps, flat.registers, flat.constants, flat.inputs, flat.lengths, flat.tables, sites=lowered.sites.rows
    )
    code.live = _liveness(code)
    return code


class _Flattener:
    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.registers = 0
        self.constants: dict[int, int] = {}
        self.inputs: dict[int, str] = {}
        self.lengths: dict[int, int] = {}
        self.tables: dict[int, int] = {}
        self._of: dict[Value | Slot, int] = {}
        self._exits: dict[ir.Loop | ir.Scope, list[Step]] = {}
        self._continues: dict[ir.Loop, list[Step]] = {}

    def emit(self, step: Step) -> Step:
        self.steps.append(step)
        return step

    def _register(self, of: Value | Slot) -> int:
        if of not in self._of:
            self._of[of] = self.registers
            if isinstance(of, Slot) and of.rows > 1:
                self.tables[self.registers] = of.rows
            self.registers += 1
        return self._of[of]

    def _all(self, of: Sequence[Value | Slot]) -> tuple[int, ...]:
        return tuple(self._register(each) for each in of)

    def region(self, region: Region) -> None:
        for item in region.items:
            self._item(item)

    def _item(self, item: ir.Item) -> None:
        match item:
            case Value():
                self._value(item)
            case ir.Set(slot=slot, value=value) if slot.rows > 1:
                self.emit(Step("fill", results=self._all([slot]), args=self._all([value]), rows=slot.rows))
            case ir.Set(slot=slot, value=value):
                self.emit(Step("copy", results=self._all([slot]), args=self._all([value])))
            case ir.Pick(result=result, block=block, index=index):
                step = Step("pick", results=self._all([result]), args=self._all([index]))
                self._select(step, block)
            case ir.Put(block=block, index=index, value=value):
                self._select(Step("put", args=self._all([index, value])), block)
            case ir.Load() | ir.Store() | ir.Atomic():
                self._memory(item)
            case ir.Barrier(kind=kind, site=site):
                self.emit(Step("barrier", kind, site=site))
            case ir.Collective(op=op, results=results, args=args, site=site, scalar=scalar):
                step = Step("collective", op, self._all(results), self._all(args), site=site, scalar=scalar)
                self.emit(step)
            case ir.If() | ir.Loop() | ir.Scope() | ir.Jump():
                self._control(item)
            case _:
                pass  # counts and probes

    def _select(self, step: Step, block: Block) -> None:
        step.block, step.rows = self._all(block.slots), block.rows if block.is_table else 0
        self.emit(step)

    def _value(self, value: Value) -> None:
        register = self._register(value)
        match value.op:
            case "const":
                self.constants[register] = value.imm
            case "input":
                self.inputs[register] = value.imm
            case "length":
                self.lengths[register] = value.imm
            case "get":
                self.emit(Step("copy", results=(register,), args=self._all([value.imm])))
            case "bits":
                self.emit(Step("copy", results=(register,), args=self._all(value.args)))
            case _:
                self.emit(Step("op", value.op, (register,), self._all(value.args)))

    def _memory(self, item: ir.Load | ir.Store | ir.Atomic) -> None:
        address = -1 if item.address is None else self._register(item.address)
        match item:
            case ir.Atomic(op=op, results=results, args=args):
                step = Step("access", op, self._all(results), self._all(args), item.access, atomic=True)
                step.address, step.site = address, item.site
                self.emit(step)
            case ir.Load(results=results):
                for unit, result in enumerate(results):
                    step = Step("access", "load", self._all([result]), (), item.access, unit, address)
                    step.site = item.site
                    self.emit(step)
            case ir.Store(values=values):
                for unit, value in enumerate(values):
                    step = Step("access", "store", (), self._all([value]), item.access, unit, address)
                    step.site = item.site
                    self.emit(step)

    def _control(self, item: ir.If | ir.Loop | ir.Scope | ir.Jump) -> None:
        match item:
            case ir.If(condition=condition, then=then, orelse=orelse):
                branch = self.emit(Step("branch", args=self._all([condition])))
                self.region(then)
                if orelse.items:
                    over = self.emit(Step("jump"))
                    branch.target = len(self.steps)
                    self.region(orelse)
                    over.target = len(self.steps)
                else:
                    branch.target = len(self.steps)
            case ir.Loop():
                self._loop(item)
            case ir.Scope(body=body):
                self.region(body)
                self._land(self._exits.pop(item, []))
            case ir.Jump(kind=kind, target=target):
                assert target.node is not None
                jumps = self._continues if kind == "continue" else self._exits
                jumps.setdefault(target.node, []).append(self.emit(Step("jump")))  # pyright: ignore[reportArgumentType]

    def _loop(self, loop: ir.Loop) -> None:
        start = len(self.steps)
        exits = self._exits.setdefault(loop, [])
        self.region(loop.header)
        if loop.condition is not None:
            exits.append(self.emit(Step("branch", args=self._all([loop.condition]))))
        self.region(loop.body)
        self._land(self._continues.pop(loop, []))
        self.region(loop.continuing)
        if loop.break_if is not None:
            self.emit(Step("branch", args=self._all([loop.break_if]), target=start))
            exits.append(self.emit(Step("jump")))
        else:
            self.emit(Step("jump", target=start))
        self._land(self._exits.pop(loop))

    def _land(self, jumps: list[Step]) -> None:
        for jump in jumps:
            jump.target = len(self.steps)


# ---- liveness ----------------------------------------------------------------------------------------


def _liveness(code: Code) -> list[tuple[int, ...]]:
    """Find the live registers before each step; drop steps whose results are dead."""
    steps = code.steps
    fixed = {*code.constants, *code.inputs, *code.lengths}
    live = [0] * (len(steps) + 1)
    changed = True
    while changed:
        changed = False
        for pc in reversed(range(len(steps))):
            now = _live_before(steps[pc], live, pc, fixed)
            if now != live[pc]:
                live[pc] = now
                changed = True
    for pc, step in enumerate(steps):
        if step.kind in _PURE and not live[pc + 1] >> step.results[0] & 1:
            steps[pc] = Step("jump", target=pc + 1)
    return [tuple(set_bits(each)) for each in live]


def _live_before(step: Step, live: list[int], pc: int, fixed: set[int]) -> int:
    match step.kind:
        case "jump":
            return live[step.target]
        case "end":
            return 0
        case _:
            pass
    after = live[pc + 1]
    if step.kind == "branch":
        after |= live[step.target]
    if step.kind in _PURE and not after >> step.results[0] & 1:
        return after
    for register in step.results:
        after &= ~(1 << register)
    read = step.args + (step.block if step.kind == "pick" else ()) + ((step.address,) if step.address >= 0 else ())
    for register in read:
        if register not in fixed:
            after |= 1 << register
    return after


def set_bits(mask: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set, in ascending order."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
