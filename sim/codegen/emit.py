"""From the intermediate program to instructions: masks, jumps and probes.

Control flow that all lanes take together is a jump. Where lanes part, both ways run under a mask: the lanes of an `If`
are a new mask row; a `Loop` or `Scope` that lanes leave apart has a row of the lanes still in it, from which every jump
takes its own lanes away. No mask (None) means every lane.

Where it pays (see `idle`), lanes past the last active one are left out for a while. How many are computed then has a
number, the level: each construct that leaves lanes out goes one up, and its end comes back to the level around it,
whichever way led there. A row that is a mask is right in all lanes, also in those that are left out.
"""

from __future__ import annotations

from dataclasses import field, replace

from ..analysis.adjacent_accesses import merged
from ..analysis.guards import bodies
from ..analysis.lane_uniformity import Uniformity
from ..analysis.spin_loops import deciding
from ..analysis.tail_lanes import Idle
from ..analysis.uses import FREE, Uses, base, split
from ..fast_dataclass import entity
from ..ir import ir
from ..ir.access import UNITS_PER_ACCESS, Access
from ..ir.ir import Region, Slot, Value
from ..ir.sites import Site
from ..machine import layout as at
from ..machine import opcodes as op
from ..wgsl.source import Span
from .program import MemoryProbe, ValueCheck
from .virtual_registers import Code, Field, Ins, Label, Reg

_GROUP_ROWS = ("group_x", "group_y", "group_z")


@entity
class _Around:
    """A construct around the place where we are. `stay`: lanes still in it; `turn`: those still in this turn of it."""

    item: ir.Loop | ir.Scope
    exit: Label
    onward: Label | None = None
    stay: Reg | None = None
    turn: Reg | None = None

    @property
    def mask(self) -> Reg | None:
        return self.turn or self.stay

    def rows(self, kind: str) -> list[Reg]:
        """Rows that a jump out of this (or on to its next turn) takes lanes from."""
        return [r for r in ((self.turn,) if kind == "continue" else (self.stay, self.turn)) if r is not None]


@entity
class Emitter:
    """Emits one program. `probes` names what is counted; `together` is workgroups per batch; `idle`: see `idle`."""

    accesses: list[Access]
    sites: list[Site]
    uniformity: Uniformity
    uses: Uses
    spans: dict[int, Span]
    probes: frozenset[str]
    workgroups_per_batch: int
    idle: Idle
    code: Code = field(default_factory=Code)
    inputs: dict[str, int] = field(default_factory=dict)
    constants: dict[int, int] = field(default_factory=dict)
    runs: list[list[int]] = field(default_factory=list)
    computed: list[dict[tuple[str, Span], int]] = field(default_factory=list)
    memory_probes: list[MemoryProbe] = field(default_factory=list)
    watched: list[MemoryProbe] = field(default_factory=list)
    inspected: list[ValueCheck] = field(default_factory=list)
    loops: list[tuple[Span, tuple[int, ...]]] = field(default_factory=list)
    margins: int = 0

    def __post_init__(self) -> None:
        self._mask: Reg | None = None
        self._around: list[_Around] = []
        self._level = 0  # of leaving lanes out
        self._narrow: dict[Value, Reg] = {}
        self._wide: dict[Value, Reg] = {}
        self._slots: dict[Slot, Reg] = {}
        self._fixed: dict[int, Reg] = {}
        self._defs: dict[Value, int] = {}
        self._learnt: set[Value] = set()
        self._written = {access.variable for access in self.accesses if access.writes}
        self._atomics = any(site.kind == "atomic" for site in self.sites)
        self._halves = any(access.unit == 2 for access in self.accesses if access.writes)
        self._straight = 0  # where the present straight run of instructions began
        self._bodies: set[int] = set()
        self._merged: dict[int, int] = {}
        self._in_body = False  # whether this is what `guards` calls the entry point's body, and no construct in it
        self._through: Reg | None = None  # lanes that were there when the outermost construct in it began
        for name in _GROUP_ROWS:
            self._input(name)

    def program(self, body: Region) -> None:
        if "lanes" in self.probes:
            self._bodies = bodies(body, self.sites)
        if "merged" in self.probes:
            self._merged = merged(body, self.accesses)
        self.region(body)
        self._add(Ins(op.HALT))

    # ---- registers ----

    def _row(self, number: int) -> Reg:
        """A register whose row is known."""
        if number not in self._fixed:
            self._fixed[number] = Reg(row=number, fixed=True)
        return self._fixed[number]

    def _input(self, name: str) -> Reg:
        if name not in self.inputs:
            self.inputs[name] = len(self.inputs) + len(self.constants)
        return self._row(self.inputs[name])

    def _constant(self, bits: int) -> Reg:
        if bits not in self.constants:
            self.constants[bits] = len(self.inputs) + len(self.constants)
        return self._row(self.constants[bits])

    def _slot(self, slot: Slot) -> Reg:
        if slot not in self._slots:
            block = slot.block
            if block is not None and block.indexed:
                whole = Reg(rows=len(block.slots))
                for i, each in enumerate(block.slots):
                    self._slots[each] = Reg(row=i, of=whole)
            else:
                self._slots[slot] = Reg()
        return self._slots[slot]

    def _lane0(self, value: Value) -> Reg:
        """A register that holds the value at least in lane 0."""
        value = base(value)
        if value.op == "const":
            return self._constant(value.imm)
        if value.op == "input":
            return self._input(value.imm)
        return self._narrow.get(value) or self._wide[value]

    def _lanes(self, value: Value) -> Reg:
        """A register that holds the value in every lane."""
        value = base(value)
        return self._lane0(value) if value.op in FREE else self._wide[value]

    def _add(self, ins: Ins) -> Ins:
        return self.code.add(ins)

    def _define(self, value: Value, ins: Ins) -> None:
        """`ins` computes `value` into its D."""
        reg = Reg()
        ins.d = reg
        self._defs[value] = self.code.here
        self._add(ins)
        self._known(value, reg)

    def _known(self, value: Value, reg: Reg) -> None:
        """`value` is in `reg`: in lane 0 where it is uniform, and then spread if it is needed in all."""
        if not value.uniform:
            self._wide[value] = reg
            if value in self.uses.addresses:
                self._learn(value, reg)
            return
        self._narrow[value] = reg
        if value in self.uses.wide:
            spread = self._wide[value] = Reg()
            self._add(Ins(op.BROADCAST, d=spread, a=reg))

    def _learn(self, value: Value, reg: Reg) -> None:
        """Let the machine look once at a row of addresses that will be used again and again."""
        self._learnt.add(value)
        self._add(Ins(op.LEARN, a=reg))

    # ---- labels ----

    def _place(self, label: Label, level: int) -> None:
        """Here is the label; whichever way led to it, so many lanes are computed from here on."""
        self.code.place(label)
        self._straight = self.code.here
        if label.levels - {level}:
            self._level = -1
        self._back_to(level)

    def _jump(self, ins: Ins, label: Label) -> None:
        label.levels.add(self._level)
        self.code.jump(ins, label)
        self._straight = self.code.here

    def _back_to(self, level: int) -> None:
        if self._level != level:
            self._add(Ins(op.RESTORE, d=level))
        self._level = level

    # ---- masks ----

    def _mask_field(self) -> Field:
        return -1 if self._mask is None else self._mask

    def _both(self, one: Reg, other: Reg) -> Reg:
        """The lanes that two masks share, of which one is that of the place where we are."""
        both = Reg()
        opcode = op.MASK if self._level else op.scalar_opcodes()["and_bool"]
        self._add(Ins(opcode, d=both, a=one, b=other))
        return both

    def _everyone(self) -> Reg:
        """A row of its own that starts as the present mask."""
        row, mask = Reg(), self._mask or self._constant(1)
        self._add(Ins(op.MASK, d=row, a=mask, b=mask) if self._level else Ins(op.COPY, d=row, a=mask, m=0))
        return row

    def _others(self, condition: Value, outer: Reg | None) -> Reg:
        """The lanes of a mask in which a condition does not hold."""
        other = Reg()
        self._add(Ins(op.scalar_opcodes()["lnot_bool"], d=other, a=self._lanes(condition)))
        return other if outer is None else self._both(outer, other)

    def _while_any(self, mask: Reg, label: Label, idle: bool, level: int | None = None) -> None:
        """Go to a label where nobody is active in a mask; else leave out (if that pays: `idle`) who comes after them:
        at the next level, or at one that is known."""
        level = self._level + 1 if level is None else level
        if not idle or level == at.LEVELS:
            self._jump(Ins(op.JUMP_NONE, m=mask), label)
            return
        self._jump(Ins(op.NARROW, d=level, m=mask), label)
        self._level = level

    # ---- items ----

    def region(self, region: Region) -> None:
        outer, self._in_body = self._in_body, id(region) in self._bodies
        for item in region.items:
            if self._in_body and isinstance(item, ir.If | ir.Loop | ir.Scope):
                self._through = None if self._mask is None else self._everyone()
            self._item(item)
            if id(item) in self.uniformity.leaving:
                self._without_those_gone(item)
        self._in_body = outer

    def _without_those_gone(self, item: ir.Item) -> None:
        """Some lanes have left, inside this item, what is around: the mask here is what is still in the innermost."""
        around = next(a for a in reversed(self._around) if a.mask is not None)
        still = around.mask
        assert still is not None
        # Nobody may be left, and then nobody would ever end a loop that waits for what it stores.
        label = around.exit if around.turn is None else around.onward
        assert label is not None
        self._while_any(still, label, id(item) in self.idle.after)
        if self._mask is not still:
            self._mask = still if self._mask is None else self._both(self._mask, still)

    def _item(self, item: ir.Item) -> None:
        match item:
            case Value():
                self._value(item)
            case ir.Count(sites=sites, computed=computed):
                if "lanes" in self.probes:
                    work = any(self.sites[s].is_work for s in sites)
                    through = self._mask if self._in_body else self._through
                    mask, through = self._mask_field(), -1 if through is None else through
                    self._add(Ins(op.COUNT, a=len(self.runs), b=through, m=mask, x=int(work)))
                    self.runs.append(sites)
                    self.computed.append(computed)
            case ir.Set():
                self._set(item)
            case ir.Pick(result=result, block=block, index=index) if result in self.uses.count:
                self._define(
                    result, Ins(op.PICK, a=self._slot(block.slots[0]), b=self._lanes(index), c=len(block.slots))
                )
            case ir.Put(block=block, index=index, value=value) if self.uses.slots.intersection(block.slots):
                mask = -1 if id(item) in self.uniformity.whole else self._mask_field()
                first = self._slot(block.slots[0])
                self._add(Ins(op.PUT, d=self._lanes(value), a=first, b=self._lanes(index), c=len(block.slots), m=mask))
            case ir.Load():
                self._load(item)
            case ir.Store():
                self._store(item)
            case ir.Atomic():
                self._atomic(item)
            case ir.Check():
                self._probe(item)
            case ir.Barrier(kind=kind, site=site):
                self._add(Ins(op.BARRIER, a=site, b=ORDERS[kind], m=self._mask_field(), site=site))
            case ir.Inspect(active=True):
                self._inspect(item)
            case ir.If():
                self._if(item)
            case ir.Loop():
                self._loop(item)
            case ir.Scope():
                self._scope(item)
            case ir.Jump():
                self._leave(item)
            case ir.Collective():
                self._collective(item)
            case ir.Note():
                self._note(item)
            case ir.Margin():
                self._margin(item)
            case _:
                pass

    def _value(self, value: Value) -> None:
        if value.op in ("const", "bits") or value not in self.uses.count:
            return
        if value.op == "input":
            if value in self.uses.addresses:
                self._learn(value, self._input(value.imm))
        elif value.op == "get":
            self._get(value)
        elif value.op == "length":
            reg = self._narrow[value] = self._wide[value] = Reg()
            self._add(Ins(op.LENGTH, d=reg, e=value.imm * UNITS_PER_ACCESS))
        else:
            take = self._lane0 if value.uniform else self._lanes
            operands = [take(a) for a in value.args]
            ins = Ins(op.scalar_opcodes()[value.op], m=1 if value.uniform else 0)
            for name, reg in zip("abce", operands, strict=False):
                setattr(ins, name, reg)
            self._define(value, ins)

    def _get(self, value: Value) -> None:
        slot: Slot = value.imm
        reg = self._slot(slot)
        if value in self.uses.copies:
            kept = Reg()
            self._add(Ins(op.COPY, d=kept, a=reg, m=1 if slot.uniform else 0))
            reg = kept
        self._known(value, reg)

    def _set(self, item: ir.Set) -> None:
        slot, value = item.slot, base(item.value)
        if slot not in self.uses.slots:
            return
        reg = self._slot(slot)
        if id(item) not in self.uniformity.whole and self._mask is not None:
            self._add(Ins(op.BLEND, d=reg, a=self._lanes(value), m=self._mask))
        elif value.uniform and not slot.uniform and value.op not in FREE:
            self._add(Ins(op.BROADCAST, d=reg, a=self._lane0(value)))
        elif not self._retarget(value, slot, reg):
            self._add(Ins(op.COPY, d=reg, a=self._lane0(value), m=1 if slot.uniform else 0))

    def _retarget(self, value: Value, slot: Slot, reg: Reg) -> bool:
        """Let the instruction that computed `value`, just now and for this alone, write the variable itself."""
        position = self._defs.get(value, -1) if "copies" in self.uses.passes else -1
        if position < self._straight or self.uses.count[value] != 1 or value.uniform != slot.uniform:
            return False
        whole = reg.of or reg
        if any(whole in ins.registers() for ins in self.code.instructions[position + 1 :]):
            return False
        self.code.instructions[position].d = reg
        return True

    # ---- memory ----

    def _memory(self, opcode: int, item: ir.Memory, unit: int = 0) -> Ins:
        """An instruction with the operands of an access (to its unit number `unit`)."""
        access = self.accesses[item.access]
        parts = split(item.address, self.uses.passes)
        return Ins(
            opcode,
            a=self._lanes(parts.lane) if parts.lane is not None else self._constant(0),
            b=self._lane0(parts.shared) if parts.shared is not None else -1,
            c=_signed(parts.constant),
            e=item.access * UNITS_PER_ACCESS + unit,
            x=self._offsets(access),
            site=item.site,
        )

    def _is_learnt(self, item: ir.Memory) -> bool:
        """Whether the machine knows the pattern of an access' addresses."""
        lane = split(item.address, self.uses.passes).lane
        return lane is None or base(lane) in self._learnt

    def _offsets(self, access: Access) -> Reg:
        """Where each lane's workgroup has its memory, when several run side by side."""
        if access.space != "workgroup" or self.workgroups_per_batch == 1:
            return self._constant(0)
        return self._input(f"shared_base_{access.unit}")

    def _probe(self, item: ir.Memory) -> None:
        access = self.accesses[item.access]
        kinds = []
        if access.stride:
            kinds += ["bounds", "reach"]
        if access.space == "workgroup":
            kinds.append("banks")
        elif access.space == "storage":
            kinds += ["sectors", "touched"]
            if access.writes:
                kinds += ["writers", "meets"]
        for kind in kinds:
            words = self._merged.get(id(item), access.units) if kind in _CHARGED else access.units
            if kind in self.probes and words:
                number = item.access if words == access.units else self._wider(access, words)
                ins = self._memory(_PROBES[kind], item)
                ins.e = number * UNITS_PER_ACCESS
                ins.x = len(self.memory_probes)
                ins.m = self._mask_field()
                ins.d = int(self._halves if kind == "meets" else self._is_learnt(item))
                self._add(ins)
                self.memory_probes.append(MemoryProbe(kind, item.site, number))

    def _wider(self, access: Access, words: int) -> int:
        """The number of an access of several words that begins where one of one word does."""
        wide = replace(access, units=words)
        if wide not in self.accesses:
            self.accesses.append(wide)
        return self.accesses.index(wide)

    def _watch(self, opcode: int, item: ir.Load | ir.Store | ir.Atomic, unit: int, d: Field) -> None:
        """Watch an access (or one unit of it), where the memory is shared and somebody writes to it."""
        access = self.accesses[item.access]
        shared = access.memory in ORDERS and access.variable in self._written
        own = access.space == "workgroup"
        asked = self.probes & {"races", "order"} or ("across" in self.probes and not own)
        if (shared and asked) or (own and "uninit" in self.probes):
            ins = self._memory(opcode, item, unit)
            ins.d, ins.m, ins.x = d, self._mask_field(), len(self.watched)
            self._add(ins)
            self.watched.append(MemoryProbe("watch", item.site, item.access))

    def _watch_whole(self, item: ir.Load | ir.Store | ir.Atomic, writes: bool) -> None:
        """Watch who is ordered after whom; otherwise whether a load is in order."""
        if "order" in self.probes:
            self._watch(op.WATCH_ORDER, item, 0, int(writes))
        elif isinstance(item, ir.Load):
            self._watch(op.WATCH_READ, item, 0, int(self._is_learnt(item)))

    def _inspect(self, item: ir.Inspect) -> None:
        """Look at an operation where the source has it: what it computes may be placed, and known, elsewhere."""
        result = item.result
        kinds = op.OPS[result.op].args
        shown = [
            a for a, kind in zip(result.args, kinds, strict=True) if item.kind != at.BORN or kind in ("f32", "f16")
        ]
        a, b, c = (*map(self._lanes, shown), -1, -1)[:3]
        self._add(Ins(op.CHECK, d=self._lanes(result), a=a, b=b, c=c, e=item.kind, m=self._mask_field(),
                      x=len(self.inspected), site=item.site))  # fmt: skip
        self.inspected.append(ValueCheck(item.kind, result.op, item.site))

    def _margin(self, item: ir.Margin) -> None:
        one, other = self._lanes(item.one), self._lanes(item.other)
        signed, mask = int(item.signed), self._mask_field()
        self._add(Ins(op.MARGIN, a=one, b=other, c=signed, e=item.least, m=mask, x=item.place))
        self.margins += 1

    def _load(self, load: ir.Load) -> None:
        self._probe(load)
        self._watch_whole(load, writes=False)
        for i, result in enumerate(load.results):
            if result in self.uses.count:
                ins = self._memory(op.LOAD, load, unit=i)
                ins.m = 1 if result.uniform else 0
                alone = self.workgroups_per_batch == 1 or self.accesses[load.access].space != "workgroup"
                if alone and not result.uniform and self._is_learnt(load):
                    ins.op = op.LOAD_KNOWN
                self._define(result, ins)

    def _store(self, store: ir.Store) -> None:
        self._probe(store)
        self._watch_whole(store, writes=True)
        for i, value in enumerate(store.values):
            if "order" not in self.probes:
                self._watch(op.WATCH_WRITE, store, i, self._lanes(value))
            ins = self._memory(op.STORE, store, unit=i)
            ins.d = self._lanes(value)
            ins.m = self._mask_field()
            if self._is_learnt(store):
                ins.op = op.STORE_KNOWN
            self._add(ins)

    def _note(self, note: ir.Note) -> None:
        parts = split(note.address, self.uses.passes)
        self._add(
            Ins(
                op.TRACE,
                d=self._lanes(note.values[0]),
                a=self._lanes(parts.lane) if parts.lane is not None else self._constant(0),
                b=self._lane0(parts.shared) if parts.shared is not None else -1,
                c=_signed(parts.constant),
                e=-1 if note.access < 0 else note.access * UNITS_PER_ACCESS,
                m=self._mask_field(),
                x=note.point,
            )
        )

    def _atomic(self, item: ir.Atomic) -> None:
        self._probe(item)
        self._watch_whole(item, writes=item.op != "load")
        rows = self._adjacent(item.args, 1, 3)
        ins = self._memory(op.FIRST_ATOMIC + op.ATOMICS.index(item.op), item)
        ins.d = Reg(row=0, of=rows)
        ins.m = self._mask_field()
        self._add(ins)
        for i, result in enumerate(item.results):
            self._known(result, Reg(row=i, of=rows))

    def _collective(self, item: ir.Collective) -> None:
        rows = self._adjacent(item.args, len(item.results), op.COLLECTIVE_ROWS)
        self._add(
            Ins(
                op.FIRST_COLLECTIVE + op.COLLECTIVES.index(item.op),
                d=Reg(row=0, of=rows),
                a=op.scalar_opcodes()[item.scalar] if item.scalar else -1,
                m=self._mask_field(),
                site=item.site,
            )
        )
        for i, result in enumerate(item.results):
            self._known(result, Reg(row=i, of=rows))

    def _adjacent(self, args: list[Value], first: int, rows: int) -> Reg:
        """As many rows, side by side, with copies of the operands from the row number `first` on."""
        workgroups_per_batch = Reg(rows=rows)
        for i, argument in enumerate(args):
            self._add(Ins(op.COPY, d=Reg(row=first + i, of=workgroups_per_batch), a=self._lanes(argument), m=0))
        return workgroups_per_batch

    # ---- control flow ----

    def _if(self, item: ir.If) -> None:
        if id(item) in self.uniformity.divergent:
            self._part(item)
            return
        outer, level = self._mask, self._level
        orelse, end = Label(), Label()
        self._jump(Ins(op.JUMP_ZERO, b=self._lane0(item.condition)), orelse)
        self.region(item.then)
        self._mask = outer
        if item.orelse.items:
            self._jump(Ins(op.JUMP), end)
            self._level = level
            self._place(orelse, level)
            self.region(item.orelse)
            self._mask = outer
            self._place(end, level)
        else:
            self._place(orelse, level)

    def _part(self, item: ir.If) -> None:
        """An `if` whose arms run one after the other, each under its mask."""
        outer, level = self._mask, self._level
        orelse, end = Label(), Label()
        condition = self._lanes(item.condition)
        self._mask = condition if outer is None else self._both(outer, condition)
        self._while_any(self._mask, orelse, id(item.then) in self.idle.inside)
        self.region(item.then)
        self._place(orelse, level)
        if item.orelse.items:
            self._mask = self._others(item.condition, outer)
            self._while_any(self._mask, end, id(item.orelse) in self.idle.inside)
            self.region(item.orelse)
            self._place(end, level)
        self._mask = outer

    def _loop(self, loop: ir.Loop) -> None:
        outer = self._mask
        level = self._level
        around, idle = _Around(loop, Label(), Label()), id(loop) in self.idle.inside
        if id(loop) in self.uniformity.divergent:
            around.stay = self._mask = self._everyone()
            if idle:
                self._while_any(around.stay, around.exit, idle)
        own = self._level
        self._around.append(around)
        start, top = self.code.here, Label()
        self._place(top, own)
        self.region(loop.header)
        self._back_to(own)
        if loop.condition is not None:
            self._stay_while(loop.condition, around)
        if around.stay is not None:
            self._while_any(around.stay, around.exit, idle and own > level, own)
        if id(loop) in self.uniformity.skipping:
            around.turn = self._everyone()
            self._mask = around.turn
        self.region(loop.body)
        assert around.onward is not None
        self._place(around.onward, own)
        self._mask = around.stay or outer
        around.turn = None
        self.region(loop.continuing)
        self._back_to(own)
        if loop.break_if is not None:
            self._stay_unless(loop.break_if, around)
        self._jump(Ins(op.JUMP, e=len(self.loops)), top)
        self.code.loops.append((start, self.code.here - 1))
        self.loops.append((self.spans[id(loop)], deciding(loop) if self._atomics else ()))
        self._place(around.exit, level)
        self._around.pop()
        self._mask = outer

    def _stay_while(self, condition: Value, around: _Around) -> None:
        if condition.uniform:
            self._jump(Ins(op.JUMP_ZERO, b=self._lane0(condition)), around.exit)
        else:
            assert around.stay is not None
            self._add(Ins(op.scalar_opcodes()["and_bool"], d=around.stay, a=around.stay, b=self._lanes(condition)))

    def _stay_unless(self, condition: Value, around: _Around) -> None:
        if condition.uniform:
            again = Label()
            self._jump(Ins(op.JUMP_ZERO, b=self._lane0(condition)), again)
            self._jump(Ins(op.JUMP), around.exit)
            self._place(again, self._level)
        else:
            assert around.stay is not None
            self._add(Ins(op.BLEND, d=around.stay, a=self._constant(0), m=self._lanes(condition)))

    def _scope(self, scope: ir.Scope) -> None:
        outer, level = self._mask, self._level
        around = _Around(scope, Label())
        if id(scope) in self.uniformity.divergent:
            around.stay = self._mask = self._everyone()
        self._around.append(around)
        self.region(scope.body)
        self._place(around.exit, level)
        self._around.pop()
        self._mask = outer

    def _leave(self, jump: ir.Jump) -> None:
        index = next(i for i, a in enumerate(self._around) if a.item is jump.target.node)
        target = self._around[index]
        if id(jump) not in self.uniformity.divergent:
            label = target.onward if jump.kind == "continue" else target.exit
            assert label is not None
            self._jump(Ins(op.JUMP), label)
            return
        mask = self._mask
        assert mask is not None
        # Outermost first: the mask itself may be the innermost of these rows.
        rows = [*target.rows(jump.kind), *(r for a in self._around[index + 1 :] for r in a.rows("exit"))]
        for row in sorted(rows, key=lambda r: r is mask):
            self._add(Ins(op.BLEND, d=row, a=self._constant(0), m=mask))


# What each barrier orders, and the memory that it is of.
ORDERS = {"workgroup": at.ORDERED_WORKGROUP, "storage": at.ORDERED_STORAGE, "texture": at.ORDERED_TEXTURE}
_CHARGED = ("banks", "sectors")
_PROBES = {
    **{"banks": op.BANKS, "sectors": op.SECTORS, "bounds": op.BOUNDS, "reach": op.REACH},
    **{"writers": op.WRITERS, "touched": op.TOUCHED, "meets": op.MEETS},
}


def _signed(value: int) -> int:
    """A constant as the int32 field that holds the same bits."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value
