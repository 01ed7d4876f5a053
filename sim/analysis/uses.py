"""The uses of values: which are needed, in all lanes or in one, and which reads of variables need a copy.

Codegen and the passes over ir rely on these facts. They hold as long as the ir does not change.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import field

from ..fast_dataclass import entity, frozen
from ..ir import ir
from ..ir.ir import Block, Region, Slot, Value
from ..ir.passes import ALL, Passes
from .lane_uniformity import Uniformity
from .loop_nest import LoopNest

FREE = frozenset(("const", "input", "length"))  # values that no instruction at their position computes

_MOST_CONSTANTS = 32  # of an address: one at the end of a chain of thousands costs no more


def base(value: Value) -> Value:
    """Return the value whose register this one shares."""
    while value.op == "bits":
        value = value.args[0]
    return value


@frozen(slots=True)
class Address:
    """An address as a sum: a part per lane, a part that all lanes share, and a constant."""

    lane: Value | None
    shared: Value | None
    constant: int


_ZERO = Address(None, None, 0)


def split(address: Value | None, passes: Passes = ALL) -> Address:
    """Split an address into the parts that memory instructions take."""
    if "address" not in passes:
        return Address(address, None, 0)
    constant = 0
    if address is None:
        return _ZERO
    for _ in range(_MOST_CONSTANTS):
        if address.op != "add_u32" or address.args[1].op != "const":
            break
        constant += address.args[1].imm
        address = address.args[0]
    address = base(address)
    if address.op == "const":
        return Address(None, None, constant + address.imm)
    if address.uniform:
        return Address(None, address, constant)
    if address.op == "add_u32":
        left, right = base(address.args[0]), base(address.args[1])
        if left.uniform != right.uniform:
            return Address(right, left, constant) if left.uniform else Address(left, right, constant)
    return Address(address, None, constant)


@entity
class Uses:
    """What a program uses.

    `count`: how often each needed value is used, without constants, which nothing computes. `in_all_lanes`: the uniform
    values needed in every lane. `slots`: the variables that are read. `copies`: reads of a variable that outlive the
    value read, and so need a copy. `addresses`: values that are the per-lane part of an address in a loop that does not
    change them. `loops`: whether there are loops. `passes`: the passes that are on.
    """

    passes: Passes = ALL
    count: Counter[Value] = field(default_factory=Counter[Value])
    in_all_lanes: set[Value] = field(default_factory=set[Value])
    slots: set[Slot] = field(default_factory=set[Slot])
    copies: set[Value] = field(default_factory=set[Value])
    addresses: set[Value] = field(default_factory=set[Value])
    loops: bool = False


def _written(item: ir.Memory | ir.Note) -> list[Value]:
    match item:
        case ir.Load() | ir.Check():
            return []
        case ir.Atomic(args=args):
            return args
        case _:
            return item.values


def _of_access(item: ir.Memory | ir.Note, address: Address) -> list[tuple[Value, bool]]:
    """List what an access or a note takes, and whether it takes it in all lanes."""
    found = [(value, True) for value in _written(item)]
    if address.shared is not None:
        found.insert(0, (address.shared, False))
    if address.lane is not None:
        found.insert(0, (address.lane, True))
    return found


def operands(item: ir.Item, uniformity: Uniformity, passes: Passes) -> Sequence[tuple[Value, bool]]:
    """List the values that an item takes, and whether it takes them in all lanes."""
    match item:
        case Value(args=args):
            everywhere = not item.uniform
            return [(value, everywhere) for value in args]
        case ir.Set(slot=slot, value=value) if slot.rows > 1:
            return ((value, True),)
        case ir.Set(slot=slot, value=value):
            # A uniform value that is written to every lane is broadcast straight into the variable.
            return ((value, not slot.uniform and not (value.uniform and id(item) in uniformity.whole)),)
        case ir.Load() | ir.Store() | ir.Atomic() | ir.Check() | ir.Note():
            return _of_access(item, split(item.address, passes))
        case ir.Pick(index=index):
            return ((index, True),)
        case ir.Put(index=index, value=value):
            return (index, True), (value, True)
        case ir.Collective(args=args):
            return [(value, True) for value in args]
        case ir.Inspect(result=result, active=True):
            return [(value, True) for value in (result, *result.args)]
        case ir.Margin(one=one, other=other):
            return (one, True), (other, True)
        case ir.If(condition=condition):
            return ((condition, id(item) in uniformity.divergent),)
        case _:
            return ()


def find_uses(body: Region, uniformity: Uniformity, *, notes: bool = True, passes: Passes = ALL) -> Uses:
    """Find the uses of all values that some effect depends on. `notes`: traced values are uses."""
    uses = count_uses(body, uniformity, notes=notes, passes=passes)
    find_copies(uses, body, uniformity)
    return uses


def count_uses(
    body: Region,
    uniformity: Uniformity,
    *,
    notes: bool = True,
    passes: Passes = ALL,
    inspects: Iterable[ir.Inspect] = (),
) -> Uses:
    """Find the same, except `copies` and `addresses`. Those of `inspects` become active whose value an effect needs."""
    uses = Uses(passes)
    _Marker(uses, uniformity, notes).program(body, inspects)
    return uses


def find_copies(uses: Uses, body: Region, uniformity: Uniformity) -> None:
    """Add `copies` and `addresses` to uses that are counted."""
    if uses.slots or uses.loops:  # else no variable is read, and nothing twice
        _Order(uses, uniformity).find_copies(body)


class _Marker:
    """Walks from effects to the values that they need."""

    def __init__(self, uses: Uses, uniformity: Uniformity, notes: bool) -> None:
        self._uses = uses
        self._uniformity = uniformity
        self._skipped: set[type[ir.Item]] = {ir.Count, Value, ir.Pick}  # needed only where something needs them
        if not notes:
            self._skipped.add(ir.Note)
        # Writes to a variable that is never read are not needed, nor are the reads that only these writes need. A `Put`
        # is one to the whole block.
        self._unread: dict[Slot | Block, list[ir.Set | ir.Put]] = {}
        self._read: list[Slot | Block] = []  # variables whose writes are still to be visited
        self._read_blocks: set[Block | None] = set()
        self._picked: set[Block] = set()

    def program(self, body: Region, inspects: Iterable[ir.Inspect]) -> None:
        self.region(body)
        self._writes_that_are_read()
        for each in inspects:
            each.active = each.result in self._uses.count
            if each.active:
                self._operands(each)
        if "dead" not in self._uses.passes:
            for item in ir.items_of(body):
                if isinstance(item, Value):
                    self.need(item, not item.uniform)
                elif isinstance(item, ir.Pick):
                    self.need(item.result, True)
            self._writes_that_are_read()

    def _writes_that_are_read(self) -> None:
        while self._read:
            for write in self._unread.pop(self._read.pop(), ()):
                self._write(write)

    def _write(self, item: ir.Set | ir.Put) -> None:
        """Visit a write once its variable is known to be read; for a `Put`, any of its slots."""
        if isinstance(item, ir.Set):
            variable, is_read = item.slot, item.slot in self._uses.slots
        else:
            variable, is_read = item.block, item.block in self._read_blocks
        if is_read:
            self._operands(item)
        else:
            self._unread.setdefault(variable, []).append(item)

    def region(self, region: Region) -> None:
        for item in region.items:
            if type(item) not in self._skipped:
                self._item(item)

    def _item(self, item: ir.Item) -> None:
        match item:
            case ir.Set() | ir.Put():
                return self._write(item)
            case ir.If(then=then, orelse=orelse):
                self.region(then)
                self.region(orelse)
            case ir.Loop():
                self._uses.loops = True
                for region in (item.header, item.body, item.continuing):
                    self.region(region)
                for condition in (item.condition, item.break_if):
                    if condition is not None:
                        self.need(condition, not condition.uniform)
            case ir.Scope(body=body):
                self.region(body)
            case _:
                pass
        self._operands(item)

    def _operands(self, item: ir.Item) -> None:
        for value, everywhere in operands(item, self._uniformity, self._uses.passes):
            self.need(value, everywhere)

    def need(self, value: Value, everywhere: bool) -> None:
        count, in_all_lanes = self._uses.count, self._uses.in_all_lanes
        waiting = [(value, everywhere)]  # chains of values may be longer than the call stack
        while waiting:
            value, everywhere = waiting.pop()
            while value.op == "bits":  # as in `base`
                value = value.args[0]
            if value.op == "const":
                continue
            count[value] = times = count.get(value, 0) + 1
            if everywhere and value.uniform:
                in_all_lanes.add(value)
            if times > 1:
                continue
            if value.args:
                everywhere = not value.uniform
                for argument in value.args:
                    waiting.append((argument, everywhere))
            elif value.op == "get":
                self._reads([value.imm])
            elif value.op == "pick":
                if value.imm.block not in self._picked:
                    self._picked.add(value.imm.block)
                    self._reads(value.imm.block.slots)
                waiting.append((value.imm.index, True))

    def _reads(self, slots: list[Slot]) -> None:
        """Note a read of slots of one block."""
        block = slots[0].block
        self._read += [each for each in (*slots, block) if each in self._unread]
        self._read_blocks.add(block)
        self._uses.slots.update(slots)


def _from_outside(value: Value, region: Region) -> bool:
    """Whether a value is computed outside of some loop around `region`."""
    here: Region | None = region
    while here is not None and here is not value.region:
        if here.loop:
            return True
        here = here.parent
    return False


_ACCESSES = (ir.Load, ir.Store, ir.Atomic, ir.Check)


class _Order:
    """The reads and writes of variables in program order, which tell which reads need a copy."""

    def __init__(self, uses: Uses, uniformity: Uniformity) -> None:
        self._uses = uses
        self._uniformity = uniformity
        self._clock = 0
        self._loops: list[tuple[int, int]] = []
        self._reads: dict[Value, int] = {}
        self._last: dict[Value, int] = {}
        self._writes: dict[Slot, list[int]] = {}

    def find_copies(self, body: Region) -> None:
        self._region(body)
        loops = LoopNest(self._loops)
        for value, read in self._reads.items():
            if "copies" not in self._uses.passes:
                self._uses.copies.add(value)
            last = loops.last_use(read, self._last.get(value, read))
            writes = self._writes.get(value.imm, [])  # in ascending order
            next_write = bisect_right(writes, read)
            if next_write < len(writes) and writes[next_write] < last:
                self._uses.copies.add(value)

    def _region(self, region: Region) -> None:
        needed, last = self._uses.count, self._last
        for item in region.items:
            self._clock += 1
            if isinstance(item, Value):
                if item not in needed:
                    continue
                if item.op == "get":
                    self._reads[item] = self._clock
                for value in item.args:
                    last[base(value) if value.op == "bits" else value] = self._clock
                continue
            if isinstance(item, ir.Count):
                continue
            if isinstance(item, ir.Set):
                last[base(item.value)] = self._clock
                self._writes.setdefault(item.slot, []).append(self._clock)
                continue
            if isinstance(item, _ACCESSES):
                self._access(item, region)
                continue
            for value, _ in operands(item, self._uniformity, self._uses.passes):
                last[base(value)] = self._clock
            match item:
                case ir.Put(block=block):
                    for slot in block.slots:
                        self._writes.setdefault(slot, []).append(self._clock)
                case ir.If(condition=condition, then=then, orelse=orelse):
                    self._region(then)
                    self._read_again(condition)  # the mask of the other arm is made from it
                    self._region(orelse)
                case ir.Loop():
                    self._loop(item)
                case ir.Scope(body=inner):
                    self._region(inner)
                case _:
                    pass

    def _access(self, item: ir.Memory, region: Region) -> None:
        address = split(item.address, self._uses.passes)
        for value, _ in _of_access(item, address):
            self._last[base(value)] = self._clock
        lane = address.lane
        if "learn" in self._uses.passes and lane is not None and _from_outside(base(lane), region):
            self._uses.addresses.add(base(lane))

    def _loop(self, loop: ir.Loop) -> None:
        start = self._clock
        self._region(loop.header)
        if loop.condition is not None:
            self._read_again(loop.condition)
        self._region(loop.body)
        self._region(loop.continuing)
        if loop.break_if is not None:
            self._read_again(loop.break_if)
        self._clock += 1
        self._loops.append((start, self._clock))

    def _read_again(self, value: Value) -> None:
        """Note a use after everything so far."""
        self._clock += 1
        self._last[base(value)] = self._clock
