"""Arrays of function space that are indexed at run time: where a driver keeps each, and what an access costs there.

An array that holds constants alone is a table in the constant cache. Others are in registers, where each access selects
from the elements that its index may name, or in memory. A driver keeps an array in registers as long as selections do
not make a loop much longer. The rule was found on an H200, see docs/time-model.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Set

from ..fast_dataclass import frozen
from ..ir import ir
from .instruction_costs import InstructionCost, cost_of_value

_LANES = 32  # of a subgroup
_SECTORS = 4  # of a line
# The elements that accesses in an iteration may select from before the array is in memory: so many, and more for each
# of its instructions, of which an access to memory or to another array counts as three.
_SELECTED, _SELECTED_BY_INSTRUCTION, _BY_ACCESS = 13, 1.75, 3
# Elements of an array that is in registers, at most. Where lanes have indices of their own, memory takes a tenth of
# the time of registers or ten times it, by how many lanes name one element. Up to 20, the model charges registers.
_MOST_SHARED, _MOST_OF_LANES = 24, 20
# Elements of values that accesses in an iteration select from, at most. In loops of the same work, two accesses to
# values of 32 words are in registers on an H200, and four in memory.
_MOST_OF_VALUES = 64

# Of one element of all lanes: at an index that they share, or that is known before the run.
LOCAL_LOAD = InstructionCost("local", "local")
LOCAL_FILL = InstructionCost("local_fill", "issue")  # as the array is made, too

_Indexed = ir.Pick | ir.Put


@frozen
class ArraysOutsideRegisters:
    """The arrays of function space that are indexed at run time and take no registers.

    `in_memory`: the long ones, and those of which the accesses would make a loop much longer with selections. A driver
    copies a value, `Block.copied`, that is in memory each time that it is indexed: on an H200, each access to a value
    of 32 words takes as long as 32 stores. `tables`: those that hold constants alone.
    """

    in_memory: tuple[ir.Block, ...]
    tables: tuple[ir.Block, ...]

    @property
    def slots(self) -> frozenset[int]:
        """The identities of their slots."""
        return slots_of((*self.in_memory, *self.tables))

    @property
    def local_words(self) -> int:
        """The words of memory of each invocation that they take."""
        return sum(block.rows for block in self.in_memory)


def arrays_outside_registers(body: ir.Region, needed: Set[int]) -> ArraysOutsideRegisters:
    """Find the arrays of function space that take no registers. Needs the uniformity of indices.

    `needed`: the identities of the values that cost something, see `needed_values`.
    """
    blocks = _indexed(body)
    tables, selected, of_lanes = _constant_tables(body, blocks), _too_many_selections(body, needed), set[int]()
    for item in ir.items_of(body):
        if isinstance(item, _Indexed) and not item.index.uniform:
            of_lanes.add(id(item.block))

    def is_in_memory(block: ir.Block) -> bool:
        if block.copied:
            return id(block) in selected
        if id(block) in of_lanes:
            return block.rows > _MOST_OF_LANES
        return block.rows > _MOST_SHARED or id(block) in selected

    return ArraysOutsideRegisters(
        in_memory=tuple(block for block in blocks if id(block) not in tables and is_in_memory(block)),
        tables=tuple(block for block in blocks if id(block) in tables),
    )


def _too_many_selections(body: ir.Region, needed: Set[int]) -> set[int]:
    """Return the identities of the arrays that would take too many selections in a loop."""
    found, copied = set[int](), {id(block) for block in _indexed(body) if block.copied}
    for items in _by_loop(body):
        selected, accesses, forwarded = Counter[int](), Counter[int](), Forwarded()
        values = others = 0
        for item in items:
            match item:
                case ir.Pick(block=block, index=index) | ir.Put(block=block, index=index):
                    if not forwarded.leaves_out(item, items):
                        selected[id(block)] += _candidates(block, index)
                        accesses[id(block)] += 1
                case ir.Load() | ir.Store() | ir.Atomic():
                    others += 1
                case ir.Value():
                    values += id(item) in needed and cost_of_value(item) is not None
                case _:
                    pass
        others += accesses.total()
        of_values = sum(count for block, count in selected.items() if block in copied)
        for block, count in selected.items():
            instructions = values + _BY_ACCESS * (others - accesses[block])
            most = _SELECTED + _SELECTED_BY_INSTRUCTION * instructions
            if block in copied:
                count, most = of_values, min(most, _MOST_OF_VALUES)
            if count > most:
                found.add(block)
    return found


def _by_loop(region: ir.Region) -> Iterator[list[ir.Item]]:
    """Yield the items of each loop without those of the loops inside, and those outside of all loops."""
    found, loops = list[ir.Item](), list[ir.Loop]()
    waiting = [region]
    while waiting:
        for item in waiting.pop().items:
            found.append(item)
            match item:
                case ir.Loop():
                    loops.append(item)
                case ir.If(then=then, orelse=orelse):
                    waiting += (then, orelse)
                case ir.Scope(body=inner):
                    waiting.append(inner)
                case _:
                    pass
    yield found
    for loop in loops:
        parts = [*_by_loop(loop.header)], [*_by_loop(loop.body)], [*_by_loop(loop.continuing)]
        yield [item for own, *_ in parts for item in own]
        for _, *inner in parts:
            yield from inner


def _indexed(body: ir.Region) -> list[ir.Block]:
    return list({id(item.block): item.block for item in ir.items_of(body) if isinstance(item, _Indexed)}.values())


def _constant_tables(body: ir.Region, blocks: Iterable[ir.Block]) -> frozenset[int]:
    """Return the identities of those of these arrays that hold constants alone."""
    items = list(ir.items_of(body))
    changed = {id(item.slot) for item in items if isinstance(item, ir.Set) and item.value.op != "const"}
    stored = {id(item.block) for item in items if isinstance(item, ir.Put)}
    return frozenset(
        id(block)
        for block in blocks
        if id(block) not in stored and not any(id(slot) in changed for slot in block.slots)
    )


def slots_of(blocks: Iterable[ir.Block]) -> frozenset[int]:
    """Return the identities of the slots of blocks."""
    return frozenset(id(slot) for block in blocks for slot in block.slots)


_Place = tuple[int, int]  # an index, by the identity of what is not constant in it, and its constant


class Forwarded:
    """Finds accesses that compilers leave out: loads of what the same region loaded or stored just before, and stores
    to what it has stored to and not loaded since."""

    def __init__(self) -> None:
        self._region: object = None
        self._known: dict[int, dict[_Place, ir.Value]] = {}  # by the identity of an array: what elements hold
        self._stored: dict[int, set[_Place]] = {}  # likewise the elements that nothing has loaded since

    def leaves_out(self, item: ir.Pick | ir.Put, region: object) -> bool:
        """Whether an access is left out, in the order of the items of a region."""
        if region is not self._region:
            self._region = region
            self._known.clear()
            self._stored.clear()
        block, place = id(item.block), _place_of(item.index)
        known, stored = self._known.setdefault(block, {}), self._stored.setdefault(block, set())
        if isinstance(item, ir.Put):
            self._known[block] = {each: value for each, value in known.items() if each[0] == place[0]}
            self._known[block][place] = item.value
            is_repeated = place in stored
            stored.add(place)
            return is_repeated
        if place in known:
            return True
        self._stored[block] = {each for each in stored if each[0] == place[0]}
        known[place] = item.result
        return False

    def held(self, item: ir.Pick) -> ir.Value:
        """Return the value that a load finds which is left out."""
        return self._known[id(item.block)][_place_of(item.index)]


def _place_of(index: ir.Value) -> _Place:
    base, offset = _split(index)
    return id(base), offset


def _split(index: ir.Value) -> tuple[ir.Value, int]:
    """Return an index without the constant that is added to it, and that constant."""
    base, offset = index, 0
    while base.op.startswith("add_") and base.args[-1].op == "const":
        offset += base.args[-1].imm
        base = base.args[0]
    return base, offset


# ---- costs -------------------------------------------------------------------------------------------


def cost_of_table(block: ir.Block, index: ir.Value) -> InstructionCost:
    """Return the cost of an access to a table of constants, of which lanes that name different ones take turns.

    On an H200, 4, 8, 16 and 32 constants that any lane may name take 4, 12, 24 and 40 cycles of a core.
    """
    named = _candidates(block, index)
    times = 1 if index.uniform else round(named * (1 - (1 - 1 / named) ** _LANES))
    return InstructionCost("constant_table", "uniform_load", times=times)


def cost_of_selection(block: ir.Block, index: ir.Value, *, compared: bool, stores: bool) -> InstructionCost:
    """Return the cost of an access to an array in registers: the index is compared with each number that it may have,
    unless it was `compared` before, and each element is selected or not in its turn.

    A comparison counts as two selections: on an H200, a load takes 0.6 to 1 cycles of a core for each element, and a
    store at the same index a third of that more.
    """
    times = _candidates(block, index) * (1 if compared else 3)
    return InstructionCost("selection", "issue" if stores else "alu", times=times)


def cost_of_local(block: ir.Block, index: ir.Value, *, stores: bool) -> InstructionCost:
    """Return the cost of an access to an array in memory.

    Memory interleaves the arrays of a subgroup's lanes: an element of all lanes is a line. Lanes with indices of their
    own access as many lines as the array has elements, at most one each; their stores write a sector each.
    """
    if index.uniform:
        return InstructionCost("local_store", "issue") if stores else LOCAL_LOAD
    if stores:
        return InstructionCost("local_scattered_store", "issue", times=min(_LANES, _SECTORS * block.rows))
    return InstructionCost("local_scattered", "local_scattered", times=min(_LANES, block.rows))


def _candidates(block: ir.Block, index: ir.Value) -> int:
    """Return how many elements an index may name."""
    return -(-block.rows // _step(index))


def _step(index: ir.Value) -> int:
    """Return how far apart the numbers of the scalars are that an index may name: 4, for a component of vectors."""
    factor, _ = _split(index)
    constant = factor.args[-1].imm if factor.args and factor.args[-1].op == "const" else None
    if factor.op.startswith("mul_") and constant:
        return constant
    return 1 << constant if factor.op.startswith("shl_") and constant else 1
