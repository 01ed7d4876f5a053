"""What is alike in every lane of a batch.

A *strand* is a mask as the program text shows it: places on one strand have one set of active lanes. A value is uniform
where it comes from uniform values; a variable where only uniform values are written to it, on the strand it was
declared on; a branch or loop that depends on uniform values keeps its strand. Everything is assumed uniform first and
refuted until nothing changes, so that loops settle.
"""

from __future__ import annotations

from dataclasses import field

from ..fast_dataclass import entity
from ..ir import ir
from ..ir.access import Access
from ..ir.ir import Region, Slot, Value
from ..ir.passes import ALL, Passes

_SHARED_INPUTS = frozenset(("grid_x", "grid_y", "grid_z", "subgroup_size", "subgroup_count"))
_GROUP_INPUTS = frozenset(("group_x", "group_y", "group_z"))
Leavable = ir.Loop | ir.Scope


@entity
class Uniformity:
    """Items by identity. `parted`: Ifs whose lanes part, Loops and Scopes that lanes leave apart, Jumps that only some
    lanes take. `whole`: Sets and Puts that write every lane that can read the variable. `leaving`: items inside which
    lanes leave something around them. `skipping`: Loops in which only some lanes `continue`."""

    divergent: set[int] = field(default_factory=set)
    whole: set[int] = field(default_factory=set)
    leaving: set[int] = field(default_factory=set)
    skipping: set[int] = field(default_factory=set)


def find_uniformity(
    body: Region, accesses: list[Access], slots: list[Slot], *, one_workgroup: bool, passes: Passes = ALL
) -> Uniformity:
    """Mark `uniform` on values and slots. `one_workgroup`: a batch is one workgroup, so workgroup_id is uniform."""
    looked_for = "uniform" in passes
    for slot in slots:
        slot.uniform = looked_for
    divergent: set[int] = set()
    while True:
        walk = _Walk(accesses, one_workgroup, divergent, looked_for)
        walk.region(body)
        if not walk.changed:
            return walk.found


class _Walk:
    """One pass under the present assumptions; `changed` where one had to be withdrawn."""

    def __init__(self, accesses: list[Access], one_workgroup: bool, divergent: set[int], looked_for: bool) -> None:
        self.found = Uniformity(divergent)
        self.changed = False
        self._accesses = accesses
        self._one_workgroup = one_workgroup
        self._looked_for = looked_for
        self._strand = self._strands = 0
        self._declared: dict[Slot, int] = {}
        self._bodies: dict[int, int] = {}  # Loop or Scope -> strand of its body

    def region(self, region: Region) -> set[Leavable]:
        """Walk the items; what some lanes leave by jumps inside."""
        left: set[Leavable] = set()
        for item in region.items:
            if isinstance(item, Value):
                item.uniform = self._looked_for and self._value(item)
            elif not isinstance(item, ir.Count):
                left |= self._item(item)
        return left

    def _item(self, item: ir.Item) -> set[Leavable]:
        match item:
            case ir.Set(slot=slot, value=value):
                self._write(item, [slot], value.uniform)
            case ir.Put(block=block):
                self._write(item, block.slots, False)
            case ir.Pick(result=result, block=block):
                self._write(item, block.slots, False)  # rows picked by lane are kept for every lane
                result.uniform = False
            case ir.Load(results=results):
                for result in results:
                    result.uniform = self._looked_for and self._loads_alike(item)
            case ir.If():
                return self._if(item)
            case ir.Loop():
                return self._loop(item)
            case ir.Scope():
                return self._scope(item)
            case ir.Jump():
                return self._jump(item)
            case _:
                pass
        return set()

    def _value(self, value: Value) -> bool:
        match value.op:
            case "const" | "length":
                return True
            case "input":
                return value.imm in _SHARED_INPUTS or (self._one_workgroup and value.imm in _GROUP_INPUTS)
            case "get":
                return value.imm.uniform
            case _:
                return all([a.uniform for a in value.args])

    def _write(self, item: ir.Set | ir.Put | ir.Pick, slots: list[Slot], alike: bool) -> None:
        whole = all(self._declared.setdefault(slot, self._strand) == self._strand for slot in slots)
        if whole:
            self.found.whole.add(id(item))
        for slot in slots:
            if slot.uniform and not (whole and alike):
                slot.uniform = False
                self.changed = True

    def _loads_alike(self, load: ir.Load) -> bool:
        alike = load.address is None or load.address.uniform
        return alike and (self._accesses[load.access].space != "workgroup" or self._one_workgroup)

    # ---- constructs ----

    def _new_strand(self) -> int:
        self._strands += 1
        return self._strands

    def _part(self, item: ir.Item) -> None:
        if id(item) not in self.found.divergent:
            self.found.divergent.add(id(item))
            self.changed = True

    def _enter(self, item: ir.Item) -> int:
        """The strand inside an item."""
        return self._new_strand() if id(item) in self.found.divergent else self._strand

    def _after(self, item: ir.Item, before: int, left: set[Leavable]) -> set[Leavable]:
        """Where some lanes have left for good, what follows is a strand of its own."""
        if left:
            self.found.leaving.add(id(item))
        self._strand = self._new_strand() if left else before
        return left

    def _if(self, item: ir.If) -> set[Leavable]:
        if not item.condition.uniform:
            self._part(item)
        before, left = self._strand, set()
        for region in (item.then, item.orelse):
            self._strand = before
            self._strand = self._enter(item)
            left |= self.region(region)
        return self._after(item, before, left)

    def _loop(self, loop: ir.Loop) -> set[Leavable]:
        before = self._strand
        self._strand = self._enter(loop)
        left = self.region(loop.header)
        self._bodies[id(loop)] = self._strand = self._enter(loop)
        left |= self.region(loop.body)
        # `continue` ends here: the continuing part runs on all lanes that are still in the loop.
        self._strand = self._enter(loop) if id(loop) in self.found.divergent else self._bodies[id(loop)]
        left |= self.region(loop.continuing)
        conditions = [c for c in (loop.condition, loop.break_if) if c is not None]
        if left or not all(c.uniform for c in conditions):
            self._part(loop)
        return self._after(loop, before, left - {loop})

    def _scope(self, scope: ir.Scope) -> set[Leavable]:
        before = self._strand
        self._bodies[id(scope)] = self._strand = self._enter(scope)
        left = self.region(scope.body)
        if left:
            self._part(scope)
        return self._after(scope, before, left - {scope})

    def _jump(self, jump: ir.Jump) -> set[Leavable]:
        target = jump.target.node
        assert target is not None
        if self._bodies[id(target)] == self._strand:
            return set()
        self._part(jump)
        if jump.kind == "continue":
            assert isinstance(target, ir.Loop)
            self.found.skipping.add(id(target))
        return {target}
