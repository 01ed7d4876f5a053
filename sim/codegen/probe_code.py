"""The instructions of probes, and the tables that say how to read what they count."""

from __future__ import annotations

from collections import Counter

from ..instrument.probes import DestField, ProbePlan
from ..ir import ir
from ..ir.access import UNITS_PER_ACCESS
from ..ir.instruction_classes import instructions_of
from ..ir.sites import SourceSite
from ..machine import layout as at
from ..machine import opcodes as op
from ..wgsl.source import Span
from .control_flow import ControlFlow
from .operands import Operands
from .program import MemoryProbe, ValueCheck
from .virtual_registers import Field, Ins, Reg

_OPCODES = {name: opcode for opcode, name in enumerate(op.NAMES)}


class ProbeEmitter:
    """Emits probes at the present position. The tables are those of `Program`."""

    def __init__(self, operands: Operands, flow: ControlFlow, plan: ProbePlan, sites: list[SourceSite]) -> None:
        self.block_sites: list[list[int]] = []
        self.block_instructions: list[dict[tuple[str, Span], int]] = []
        self.memory_probes: list[MemoryProbe] = []
        self.race_probes: list[MemoryProbe] = []
        self.value_checks: list[ValueCheck] = []
        self.margin_count = 0
        self._operands = operands
        self._add = operands.code.add
        self._flow = flow
        self._plan = plan
        self._sites = sites

    def before(self, item: ir.Memory) -> None:
        """Emit the probes of an access."""
        self._probe(item, 0, None)

    def before_unit(self, item: ir.Store, unit: int, stored: Reg) -> None:
        """Emit the probes of one unit of a store."""
        self._probe(item, unit, stored)

    def _probe(self, item: ir.Memory, unit: int, stored: Reg | None) -> None:
        for probe, access in self._plan.of(item, per_unit=stored is not None):
            ins = self._operands.access(_OPCODES[probe.name], item)
            ins.dest = self._dest_field(probe.dest, item, stored)
            ins.e = access * UNITS_PER_ACCESS + unit
            ins.mask = self._flow.mask_field()
            if not probe.has_row:
                self._add(ins)
                continue
            table, kind = (self.race_probes, "watch") if probe.watches_races else (self.memory_probes, probe.name)
            ins.x = len(table)
            self._add(ins)
            table.append(MemoryProbe(kind, item.site, access))

    def _dest_field(self, what: DestField, item: ir.Memory, stored: Reg | None) -> Field:
        match what:
            case DestField.PATTERN:
                return int(self._operands.is_learnt(item))
            case DestField.HALVES:
                return int(self._plan.writes_halves)
            case DestField.WRITES:
                return int(isinstance(item, ir.Store) or (isinstance(item, ir.Atomic) and item.op != "load"))
            case DestField.VALUE:
                assert stored is not None
                return stored
            case DestField.OPERAND:
                assert isinstance(item, ir.Atomic)
                return self._operands.all_lanes(item.args[-1]) if item.args else 0

    def count(self, item: ir.Count, past_guards: Reg | None) -> None:
        """Count a basic block. `past_guards`: the lanes that the entry point's guards let through."""
        sites = [self._sites[site] for site in item.sites]
        does_work = any(site.is_work for site in sites)
        instructions = instructions_of(item.computed, sites)
        guarded = -1 if past_guards is None else past_guards
        block, mask = len(self.block_sites), self._flow.mask_field()
        self._add(Ins(op.COUNT, a=block, b=guarded, c=instructions, mask=mask, x=int(does_work)))
        self.block_sites.append(item.sites)
        self.block_instructions.append(dict(Counter((kind, span) for kind, span, _ in item.computed)))

    def check(self, item: ir.Inspect) -> None:
        """Check an operation where the source has it, wherever it is computed."""
        result, lanes = item.result, self._operands.all_lanes
        kinds = op.OPS[result.op].args
        shown = [
            arg
            for arg, kind in zip(result.args, kinds, strict=True)
            if item.kind != at.NON_FINITE or kind in ("f32", "f16")
        ]
        a, b, c = (*map(lanes, shown), -1, -1)[:3]
        mask, place = self._flow.mask_field(), len(self.value_checks)
        self._add(Ins(op.CHECK, dest=lanes(result), a=a, b=b, c=c, e=item.kind, mask=mask, x=place))
        self.value_checks.append(ValueCheck(item.kind, result.op, item.site))

    def margin(self, item: ir.Margin) -> None:
        one, other = self._operands.all_lanes(item.one), self._operands.all_lanes(item.other)
        signed, mask = int(item.signed), self._flow.mask_field()
        self._add(Ins(op.MARGIN, a=one, b=other, c=signed, e=item.least, mask=mask, x=item.place))
        self.margin_count += 1

    def trace(self, note: ir.Note) -> None:
        lane, shared, constant = self._operands.address(note.address)
        access = -1 if note.access < 0 else note.access * UNITS_PER_ACCESS
        value, mask = self._operands.all_lanes(note.values[0]), self._flow.mask_field()
        self._add(Ins(op.TRACE, dest=value, a=lane, b=shared, c=constant, e=access, mask=mask, x=note.point))
