"""From ir to instructions on virtual registers, item by item.

`control_flow` emits constructs and keeps the mask, `probe_code` emits probes, `operands` gives every value its
register. What is left is here: values, variables, memory, and the exchange of values in subgroups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ..analysis.adjacent_accesses import find_merged_accesses
from ..analysis.guards import find_bodies
from ..analysis.lane_uniformity import Uniformity
from ..analysis.tail_lanes import TailLanes
from ..analysis.uses import FREE, Uses, base
from ..instrument.probes import ProbePlan
from ..ir import ir
from ..ir.access import UNITS_PER_ACCESS
from ..ir.ir import Region, Slot, Value
from ..ir.lowered import Lowered
from ..machine import opcodes as op
from ..machine.instruction import COLLECTIVE_ROWS
from .control_flow import ControlFlow
from .operands import Operands
from .probe_code import ProbeEmitter
from .program import ORDERS
from .virtual_registers import Code, Ins, Reg

_ATOMIC_ROWS = 3  # the old value, then the operands; a compare-exchange also gives whether it did


class Emitter:
    """Emits one program. `probes` are the names of those requested, `workgroups_per_batch` share a row."""

    def __init__(
        self,
        lowered: Lowered,
        uniformity: Uniformity,
        uses: Uses,
        tail_lanes: TailLanes,
        probes: frozenset[str],
        workgroups_per_batch: int,
    ) -> None:
        sites, accesses = lowered.sites.rows, lowered.accesses
        self.code = Code()
        self.operands = Operands(self.code, uses, accesses, workgroups_per_batch)
        has_atomics = any(site.kind == "atomic" for site in sites)
        self.flow = ControlFlow(self.operands, uniformity, tail_lanes, lowered.spans, has_atomics)
        merged = find_merged_accesses(lowered.body, accesses) if "merged" in probes else {}
        self.probes = ProbeEmitter(self.operands, self.flow, ProbePlan(probes, accesses, merged), sites)
        self._accesses, self._sites, self._spans = accesses, sites, lowered.spans
        self._uniformity = uniformity
        self._uses = uses
        self._opcodes = op.scalar_opcodes()
        self._one_workgroup = workgroups_per_batch == 1
        self._counts_lanes = "lanes" in probes
        self._bodies = find_bodies(lowered.body, sites) if self._counts_lanes else set[int]()
        self._in_body = False  # directly in the entry point's body (see `guards`), not in a construct in it
        self._past_guards: Reg | None = None  # the lanes that were active when the outermost construct in it began
        self._region(lowered.body)
        self.code.add(Ins(op.HALT))

    def _region(self, region: Region) -> None:
        outer, self._in_body = self._in_body, id(region) in self._bodies
        code, spans = self.code, self._spans
        for item in region.items:
            if isinstance(item, Value):  # the most frequent
                code.span = item.span or spans.get(id(item)) or code.span
                self._value(item)
                continue
            constructs = type(item) in ir.WITH_REGIONS
            if constructs and self._in_body:
                self._past_guards = None if self.flow.mask is None else self.flow.copy_of_mask()
            code.span = ir.span_of(item, self._sites) or spans.get(id(item)) or code.span
            self._ITEMS[type(item)](self, item)
            if constructs:
                self.flow.drop_lanes_that_left(item)
        self._in_body = outer

    def _count(self, item: ir.Count) -> None:
        if self._counts_lanes:
            self.probes.count(item, self.flow.mask if self._in_body else self._past_guards)

    # ---- values ----

    def _value(self, value: Value) -> None:
        operands = self.operands
        if value.op in ("const", "bits") or value not in self._uses.count:
            return
        if value.args:
            take = operands.lane0 if value.uniform else operands.all_lanes
            opcode, mask = self._opcodes[value.op], 1 if value.uniform else 0
            operands.compute(value, Ins(opcode, -1, *map(take, value.args), mask=mask))
        elif value.op == "input":
            if value in self._uses.addresses:
                operands.learn(value, operands.input(value.imm))
        elif value.op == "get":
            self._get(value)
        elif value.op == "length":
            reg = Reg()
            self.code.add(Ins(op.LENGTH, dest=reg, e=value.imm * UNITS_PER_ACCESS))
            operands.hold_everywhere(value, reg)

    # ---- variables ----

    def _get(self, value: Value) -> None:
        slot: Slot = value.imm
        reg = self.operands.slot(slot)
        if value in self._uses.copies:
            kept = Reg()
            self.code.add(Ins(op.COPY, dest=kept, a=reg, mask=1 if slot.uniform else 0))
            reg = kept
        self.operands.hold(value, reg)

    def _set(self, item: ir.Set) -> None:
        slot, value = item.slot, base(item.value)
        if slot not in self._uses.slots:
            return
        operands, mask = self.operands, self.flow.mask
        reg = operands.slot(slot)
        if slot.rows > 1:
            everywhere = id(item) in self._uniformity.whole
            written = -1 if everywhere else self.flow.mask_field()
            self.code.add(Ins(op.PUT_ALL, dest=operands.all_lanes(value), a=reg, c=slot.rows, mask=written))
        elif id(item) not in self._uniformity.whole and mask is not None:
            self.code.add(Ins(op.BLEND, dest=reg, a=operands.all_lanes(value), mask=mask))
        elif value.uniform and not slot.uniform and value.op not in FREE:
            self.code.add(Ins(op.BROADCAST, dest=reg, a=operands.lane0(value)))
        elif not operands.compute_into(value, slot):
            self.code.add(Ins(op.COPY, dest=reg, a=operands.lane0(value), mask=1 if slot.uniform else 0))

    def _pick(self, item: ir.Pick) -> None:
        if item.result not in self._uses.count:
            return
        first, rows = self.operands.slot(item.block.slots[0]), item.block.rows
        self.operands.compute(item.result, Ins(op.PICK, a=first, b=self.operands.all_lanes(item.index), c=rows))

    def _put(self, item: ir.Put) -> None:
        if not self._uses.slots.intersection(item.block.slots):
            return
        first, lanes = self.operands.slot(item.block.slots[0]), self.operands.all_lanes
        mask = -1 if id(item) in self._uniformity.whole else self.flow.mask_field()
        self.code.add(Ins(op.PUT, dest=lanes(item.value), a=first, b=lanes(item.index), c=item.block.rows, mask=mask))

    # ---- memory ----

    def _load(self, load: ir.Load) -> None:
        self.probes.before(load)
        one_memory = self._one_workgroup or self._accesses[load.access].space != "workgroup"
        for unit, result in enumerate(load.results):
            if result in self._uses.count:
                known = one_memory and not result.uniform and self.operands.is_learnt(load)
                ins = self.operands.access(op.LOAD_KNOWN if known else op.LOAD, load, unit)
                ins.mask = 1 if result.uniform else 0
                self.operands.compute(result, ins)

    def _store(self, store: ir.Store) -> None:
        self.probes.before(store)
        opcode = op.STORE_KNOWN if self.operands.is_learnt(store) else op.STORE
        for unit, value in enumerate(store.values):
            stored = self.operands.all_lanes(value)
            self.probes.before_unit(store, unit, stored)
            if store.watched:
                continue
            ins = self.operands.access(opcode, store, unit)
            ins.dest, ins.mask = stored, self.flow.mask_field()
            self.code.add(ins)

    def _atomic(self, item: ir.Atomic) -> None:
        self.probes.before(item)
        rows = self.operands.copy_to_adjacent(item.args, 1, _ATOMIC_ROWS)
        ins = self.operands.access(op.FIRST_ATOMIC + op.ATOMICS.index(item.op), item)
        ins.dest, ins.mask = Reg(row=0, of=rows), self.flow.mask_field()
        self.code.add(ins)
        self._hold_results(item.results, rows)

    def _barrier(self, item: ir.Barrier) -> None:
        self.code.add(Ins(op.BARRIER, a=item.site, b=ORDERS[item.kind], mask=self.flow.mask_field()))

    def _inspect(self, item: ir.Inspect) -> None:
        if item.active:
            self.probes.check(item)

    # ---- subgroups ----

    def _collective(self, item: ir.Collective) -> None:
        rows = self.operands.copy_to_adjacent(item.args, len(item.results), COLLECTIVE_ROWS)
        opcode = op.FIRST_COLLECTIVE + op.COLLECTIVES.index(item.op)
        combine = op.scalar_opcodes()[item.scalar] if item.scalar else -1
        self.code.add(Ins(opcode, dest=Reg(row=0, of=rows), a=combine, mask=self.flow.mask_field()))
        self._hold_results(item.results, rows)

    def _hold_results(self, results: list[Value], rows: Reg) -> None:
        for i, result in enumerate(results):
            self.operands.hold(result, Reg(row=i, of=rows))

    # ---- which item is what ----

    _ITEMS: ClassVar[dict[type[ir.Item], Callable[[Emitter, Any], None]]] = {
        ir.Count: _count,
        ir.Set: _set,
        ir.Pick: _pick,
        ir.Put: _put,
        ir.Load: _load,
        ir.Store: _store,
        ir.Atomic: _atomic,
        ir.Check: lambda self, item: self.probes.before(item),
        ir.Barrier: _barrier,
        ir.Collective: _collective,
        ir.Note: lambda self, item: self.probes.trace(item),
        ir.Inspect: _inspect,
        ir.Margin: lambda self, item: self.probes.margin(item),
        ir.If: lambda self, item: self.flow.branch(item, self._region),
        ir.Loop: lambda self, item: self.flow.loop(item, self._region),
        ir.Scope: lambda self, item: self.flow.scope(item, self._region),
        ir.Jump: lambda self, item: self.flow.leave(item),
    }
