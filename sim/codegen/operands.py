"""The registers of values and variables, and the operands of accesses to memory.

A uniform value is computed in lane 0 alone. Where some instruction needs it in all lanes, it is broadcast once, to a
register of its own. Constants and inputs have rows that are filled before the run.
"""

from __future__ import annotations

from itertools import count

from ..analysis.uses import FREE, Address, Uses, base, split
from ..ir import ir
from ..ir.access import UNITS_PER_ACCESS, Access
from ..ir.ir import Slot, Value
from ..machine import opcodes as op
from .virtual_registers import Code, Field, Ins, Reg

_WORKGROUP_ID = ("group_x", "group_y", "group_z")  # three rows that the machine finds one after the other


class Operands:
    """Operands of the instructions of `code`. `inputs` and `constants`: their registers, by name and by bits."""

    def __init__(self, code: Code, uses: Uses, accesses: list[Access], workgroups_per_batch: int) -> None:
        self.code = code
        self.uses = uses
        self.accesses = accesses
        self.workgroups_per_batch = workgroups_per_batch
        self.inputs: dict[str, Reg] = {}
        self.constants: dict[int, Reg] = {}
        self._in_lane0: dict[Value, Reg] = {}
        self._in_all_lanes: dict[Value, Reg] = {}
        self._slots: dict[Slot, Reg] = {}
        self._computed_at: dict[Value, int] = {}
        self._learnt: set[Value] = set()
        self._learns = count()
        self._split: dict[Value | None, Address] = {}
        for name in _WORKGROUP_ID:
            self.input(name)

    # ---- registers ----

    @property
    def fixed_rows(self) -> int:
        """The number of rows of inputs and constants, which come before all others."""
        return len(self.inputs) + len(self.constants)

    def input(self, name: str) -> Reg:
        reg = self.inputs.get(name)
        if reg is None:
            reg = self.inputs[name] = Reg(row=self.fixed_rows, fixed=True)
        return reg

    def constant(self, bits: int) -> Reg:
        reg = self.constants.get(bits)
        if reg is None:
            reg = self.constants[bits] = Reg(row=self.fixed_rows, fixed=True)
        return reg

    def slot(self, slot: Slot) -> Reg:
        """The register of a variable. Variables that are indexed at run time have adjacent rows."""
        if slot not in self._slots:
            block = slot.block
            if block is not None and block.indexed:
                whole = Reg(rows=block.rows)
                for i, each in enumerate(block.slots):
                    self._slots[each] = Reg(row=i, of=whole)
            else:
                self._slots[slot] = Reg()
        return self._slots[slot]

    def lane0(self, value: Value) -> Reg:
        """A register that holds the value in lane 0, if not in others."""
        while value.op == "bits":  # as in `base`
            value = value.args[0]
        if (reg := self._in_lane0.get(value)) is not None:
            return reg
        if value.op == "const":
            return self.constant(value.imm)
        return self.input(value.imm) if value.op == "input" else self._in_all_lanes[value]

    def all_lanes(self, value: Value) -> Reg:
        """A register that holds the value in every lane."""
        while value.op == "bits":
            value = value.args[0]
        return self.lane0(value) if value.op in FREE else self._in_all_lanes[value]

    # ---- values ----

    def compute(self, value: Value, ins: Ins) -> None:
        """Add `ins`, which computes `value` into its field D."""
        reg = ins.dest = Reg()
        self._computed_at[value] = len(self.code.instructions)
        self.code.add(ins)
        self.hold(value, reg)

    def hold(self, value: Value, reg: Reg) -> None:
        """Note that `reg` holds `value`, and broadcast it where it is uniform and all lanes need it."""
        if not value.uniform:
            self._in_all_lanes[value] = reg
            if value in self.uses.addresses:
                self.learn(value, reg)
            return
        self._in_lane0[value] = reg
        if value in self.uses.in_all_lanes:
            everywhere = self._in_all_lanes[value] = Reg()
            self.code.add(Ins(op.BROADCAST, dest=everywhere, a=reg))

    def hold_everywhere(self, value: Value, reg: Reg) -> None:
        """Note that `reg` holds a uniform value in every lane."""
        self._in_lane0[value] = self._in_all_lanes[value] = reg

    def learn(self, value: Value, reg: Reg) -> None:
        """Have the machine look once at the pattern of addresses that a loop uses again and again."""
        self._learnt.add(value)
        self.code.add(Ins(op.LEARN, a=reg, x=next(self._learns)))

    def compute_into(self, value: Value, slot: Slot) -> bool:
        """Let the instruction that computed `value` write a variable instead. Returns whether it can: it must lie in
        the same basic block, the value must have no other use, and nothing since may touch the variable."""
        position = self._computed_at.get(value, -1) if "copies" in self.uses.passes else -1
        if position < self.code.block_start or self.uses.count[value] != 1 or value.uniform != slot.uniform:
            return False
        reg = self.slot(slot)
        whole = reg.of or reg
        if any(whole in ins.registers() for ins in self.code.instructions[position + 1 :]):
            return False
        self.code.instructions[position].dest = reg
        return True

    def copy_to_adjacent(self, args: list[Value], first: int, rows: int) -> Reg:
        """Copy operands into `rows` adjacent rows, from the row number `first` on; returns these rows."""
        whole = Reg(rows=rows)
        for i, argument in enumerate(args):
            self.code.add(Ins(op.COPY, dest=Reg(row=first + i, of=whole), a=self.all_lanes(argument), mask=0))
        return whole

    # ---- accesses ----

    def access(self, opcode: int, item: ir.Memory, unit: int = 0) -> Ins:
        """An instruction with the operands of an access, to its unit number `unit`."""
        lane, shared, constant = self.address(item.address)
        return Ins(
            opcode,
            a=lane,
            b=shared,
            c=constant,
            e=item.access * UNITS_PER_ACCESS + unit,
            x=self._workgroup_offsets(self.accesses[item.access]),
        )

    def address(self, address: Value | None) -> tuple[Reg, Field, int]:
        """Fields A, B and C of an address: its part per lane, the part that all lanes share, and a constant."""
        parts = self._parts(address)
        lane = self.constant(0) if parts.lane is None else self.all_lanes(parts.lane)
        shared = -1 if parts.shared is None else self.lane0(parts.shared)
        return lane, shared, _signed(parts.constant)

    def is_learnt(self, item: ir.Memory) -> bool:
        """Whether the machine knows the pattern of an access's addresses."""
        lane = self._parts(item.address).lane
        return lane is None or base(lane) in self._learnt

    def _parts(self, address: Value | None) -> Address:
        """Split an address once, for its access and all probes of it."""
        parts = self._split.get(address)
        if parts is None:
            parts = self._split[address] = split(address, self.uses.passes)
        return parts

    def _workgroup_offsets(self, access: Access) -> Reg:
        """Where each lane's workgroup has its memory, when several share a row."""
        if access.space != "workgroup" or self.workgroups_per_batch == 1:
            return self.constant(0)
        return self.input(f"shared_base_{access.unit}")


def _signed(value: int) -> int:
    """The int32 with the same bits as a u32."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value
