"""Which values are uniform: the same in every lane of a batch.

Positions of a program are *convergent* where they have the same set of active lanes; each such set has a number, its
mask. A value is uniform if it is computed from uniform values. A variable is uniform if only uniform values are written
to it, under the mask it was declared under. A branch or loop with uniform conditions keeps its mask.

Everything is assumed uniform first, and refuted until nothing changes: loops reach a fixed point.
"""

from __future__ import annotations

from dataclasses import field

from ..fast_dataclass import entity
from ..ir import ir
from ..ir.access import Access
from ..ir.ir import Block, Region, Slot, Value
from ..ir.passes import ALL, Passes

_SHARED_INPUTS = frozenset(("grid_x", "grid_y", "grid_z", "subgroup_size", "subgroup_count"))
_GROUP_INPUTS = frozenset(("group_x", "group_y", "group_z"))
Leavable = ir.Loop | ir.Scope


@entity
class Uniformity:
    """Items by identity.

    `divergent`: Ifs whose lanes diverge, Loops and Scopes that lanes leave separately, Jumps that only some lanes take.
    `whole`: Sets and Puts that write every lane that can read the variable. `leaving`: items inside which some lanes
    leave a construct around the item. `skipping`: Loops in which only some lanes `continue`.
    """

    divergent: set[int] = field(default_factory=set[int])
    whole: set[int] = field(default_factory=set[int])
    leaving: set[int] = field(default_factory=set[int])
    skipping: set[int] = field(default_factory=set[int])


def find_uniformity(
    body: Region, accesses: list[Access], slots: list[Slot], *, one_workgroup: bool, passes: Passes = ALL
) -> Uniformity:
    """Mark `uniform` on values and slots. `one_workgroup`: a batch is one workgroup, so workgroup_id is uniform."""
    enabled = "uniform" in passes
    for slot in slots:
        slot.uniform = enabled
    divergent: set[int] = set()
    while True:
        walk = _Walk(accesses, one_workgroup, divergent, enabled)
        walk.region(body)
        if not walk.changed:
            return walk.found


class _Walk:
    """One pass under the present assumptions; `changed` if one was refuted on which the pass had relied before."""

    def __init__(self, accesses: list[Access], one_workgroup: bool, divergent: set[int], enabled: bool) -> None:
        self.found = Uniformity(divergent)
        self.changed = False
        self._accesses = accesses
        self._one_workgroup = one_workgroup
        self._enabled = enabled
        self._mask = self._masks = 0
        self._relied: set[Slot] = set()  # uniform variables that were read
        self._declared: dict[Slot, int] = {}
        self._wholes: dict[tuple[Block, int], bool] = {}  # whether all of a block was declared under a mask
        self._bodies: dict[int, int] = {}  # Loop or Scope -> mask of its body

    def region(self, region: Region) -> set[Leavable]:
        """Walk the items. Returns the constructs that some lanes leave by jumps inside."""
        left: set[Leavable] = set()
        for item in region.items:
            if isinstance(item, Value):
                item.uniform = self._enabled and self._value(item)
            elif not isinstance(item, ir.Count):
                left |= self._item(item)
        return left

    def _item(self, item: ir.Item) -> set[Leavable]:
        match item:
            case ir.Set(slot=slot, value=value):
                self._write(item, slot, value.uniform)
            case ir.Put(block=block):
                self._access_lanes(item, block)
            case ir.Pick(result=result, block=block):
                self._access_lanes(item, block)  # each lane may pick another row, so every lane needs its own
                result.uniform = False
            case ir.Load(results=results):
                for result in results:
                    result.uniform = self._enabled and self._loads_uniform(item)
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
        for argument in value.args:
            if not argument.uniform:
                return False
        if value.args:
            return True
        match value.op:
            case "input":
                return value.imm in _SHARED_INPUTS or (self._one_workgroup and value.imm in _GROUP_INPUTS)
            case "get":
                if value.imm.uniform:
                    self._relied.add(value.imm)
                return value.imm.uniform
            case _:
                return True

    def _write(self, item: ir.Set, slot: Slot, uniform: bool) -> None:
        whole = self._declared.setdefault(slot, self._mask) == self._mask
        if whole:
            self.found.whole.add(id(item))
        if slot.uniform and not (whole and uniform):
            self._refute(slot)

    def _access_lanes(self, item: ir.Put | ir.Pick, block: Block) -> None:
        """Access another row of a variable in each lane."""
        key = block, self._mask
        if (whole := self._wholes.get(key)) is None:
            whole = self._wholes[key] = all(
                self._declared.setdefault(slot, self._mask) == self._mask for slot in block.slots
            )
            for slot in block.slots:
                if slot.uniform:
                    self._refute(slot)
        if whole:
            self.found.whole.add(id(item))

    def _refute(self, slot: Slot) -> None:
        slot.uniform = False
        self.changed |= slot in self._relied

    def _loads_uniform(self, load: ir.Load) -> bool:
        same_address = load.address is None or load.address.uniform
        return same_address and (self._accesses[load.access].space != "workgroup" or self._one_workgroup)

    # ---- constructs ----

    def _new_mask(self) -> int:
        self._masks += 1
        return self._masks

    def _diverge(self, item: ir.Item) -> None:
        if id(item) not in self.found.divergent:
            self.found.divergent.add(id(item))
            self.changed = True

    def _enter(self, item: ir.Item) -> int:
        """Return the mask inside an item."""
        return self._new_mask() if id(item) in self.found.divergent else self._mask

    def _after(self, item: ir.Item, before: int, left: set[Leavable]) -> set[Leavable]:
        """End a construct: if some lanes have left for good, what follows has a new mask."""
        if left:
            self.found.leaving.add(id(item))
        self._mask = self._new_mask() if left else before
        return left

    def _if(self, item: ir.If) -> set[Leavable]:
        if not item.condition.uniform:
            self.found.divergent.add(id(item))  # this pass has not relied on it
        before = self._mask
        left: set[Leavable] = set()
        for region in (item.then, item.orelse):
            self._mask = before
            self._mask = self._enter(item)
            left |= self.region(region)
        return self._after(item, before, left)

    def _loop(self, loop: ir.Loop) -> set[Leavable]:
        before = self._mask
        self._mask = self._enter(loop)
        left = self.region(loop.header)
        self._bodies[id(loop)] = self._mask = self._enter(loop)
        left |= self.region(loop.body)
        # Lanes that `continue` arrive here: the continuing part runs on all lanes still in the loop.
        self._mask = self._enter(loop) if id(loop) in self.found.divergent else self._bodies[id(loop)]
        left |= self.region(loop.continuing)
        conditions = [c for c in (loop.condition, loop.break_if) if c is not None]
        if left or not all(c.uniform for c in conditions):
            self._diverge(loop)
        return self._after(loop, before, left - {loop})

    def _scope(self, scope: ir.Scope) -> set[Leavable]:
        before = self._mask
        self._bodies[id(scope)] = self._mask = self._enter(scope)
        left = self.region(scope.body)
        if left:
            self._diverge(scope)
        return self._after(scope, before, left - {scope})

    def _jump(self, jump: ir.Jump) -> set[Leavable]:
        target = jump.target.node
        assert target is not None
        if self._bodies[id(target)] == self._mask:
            return set()
        self._diverge(jump)
        if jump.kind == "continue":
            assert isinstance(target, ir.Loop)
            self.found.skipping.add(id(target))
        return {target}
