"""The one builder of ir values, for lowering and for passes that add to a lowered program.

`Builder()` builds a program. The same operation on the same values is built once, operations on constants are folded
with the scalar semantics, and a value that does not depend on a loop is placed before it.

`Builder.extending(lowered.builder)` adds to a program that is already built: values go where `here` points, in program
order, and are shared within one region only. The usual loop is:

    builder = Builder.extending(lowered.builder)
    for region in ir.regions_of(lowered.body):
        for item in builder.rewrite(region):
            builder.append(item)
            builder.append(...)  # new items after `item`
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from ..fast_dataclass import entity
from ..scalar import OPS
from ..wgsl.source import Span
from . import ir
from .ir import Block, Count, Item, Pick, Put, Region, Set, Slot, Value
from .passes import ALL, Passes
from .ranges import within
from .register_bits import from_bits, to_bits
from .simplify import simplify

Identity = Callable[[str, tuple[Value, ...]], Value | None]


@entity(slots=True)
class _Version:
    """What a slot holds since its last write, which was in `region`; `value`: that, where it is known."""

    region: Region
    value: Value | None = None


class Builder:
    """Builds values and items into the region `here`; `root` is the whole program, `span` the source being lowered.

    `fold_floats`: fold operations on float constants as well as on integers. `passes`: the optimizations that are on
    (see `passes.PASSES`). `identity(op, args)`: returns a value equal to the operation, or None to build it; tried
    after folding, for identities that hold for this caller's values only.
    """

    def __init__(self, fold_floats: bool = True, passes: Passes = ALL, identity: Identity | None = None) -> None:
        self.root = Region(None)
        self.here = self.root
        self.slots: list[Slot] = []
        self.operations: set[str] = set()  # of all values, and perhaps of some that are no longer in the program
        self.span: Span | None = None
        self._folds, self._fold_floats = "fold" in passes, fold_floats
        self._simplifies, self._limits = "simplify" in passes, "ranges" in passes
        self._numbers, self._forwards = "number" in passes, "forward" in passes
        self.hoists = "place" in passes  # whether it hoists loop-invariant values
        self._identity = identity
        self._extends = False
        self._last_id = 0
        self._sources: dict[tuple[str, str, Any], Value] = {}
        self._known: defaultdict[Region, dict[Any, Value]] = defaultdict(dict)  # in a region, by what they compute
        self._counts: dict[Region, Count] = {}
        self._versions: dict[Slot, _Version] = {}
        self._changes: list[tuple[Slot, _Version | None]] = []  # all so far, with the version before

    @classmethod
    def extending(cls, other: Builder, identity: Identity | None = None) -> Builder:
        """Return a builder that adds to the program of `other`, and replaces `other`, which must not build further.

        Constants and inputs go to the start of the program, everything else to the end of `here`. Nothing is hoisted,
        and nothing that `other` built is reused: it may come later in the program.
        """
        builder = cls(passes=ALL - {"place", "forward"}, identity=identity)
        builder.root = builder.here = other.root
        builder.slots = other.slots
        builder.operations = other.operations
        builder._extends = True
        builder._last_id = other.last_id
        return builder

    # ---- values ----

    def const(self, kind: str, value: float) -> Value:
        return self._source("const", kind, to_bits(kind, value))

    def input(self, name: str) -> Value:
        return self._source("input", "u32", name)

    def length(self, access: int) -> Value:
        return self._source("length", "u32", access)

    def op(self, name: str, *args: Value) -> Value:
        """Return the result of scalar operation `name`: folded, simplified, an earlier equal value, or a new one."""
        constants = 0
        for argument in args:
            if argument.op == "const":
                constants += 1
        if constants == len(args) and self._folds and (self._fold_floats or not _has_floats(name)):
            return self._folded(name, args)
        simpler = None if self._identity is None else self._identity(name, args)
        if simpler is None and constants:
            if self._simplifies:
                simpler = simplify(self, name, args)
            if simpler is None and self._limits:
                simpler = within(name, args)
        return self._value(name, args, OPS[name].result, self._home(args)) if simpler is None else simpler

    def _folded(self, name: str, args: tuple[Value, ...]) -> Value:
        return self._source("const", OPS[name].result, _fold(name, *[a.imm for a in args]))

    def computed(self, name: str, *args: Value) -> Value:
        """Return the result of scalar operation `name` as computed at run time, without folding or simplification."""
        return self._value(name, args, OPS[name].result, self._home(args))

    def reinterpret(self, kind: str, value: Value) -> Value:
        """Return the same bits as a value of another kind (registers have no type)."""
        if value.kind == kind:
            return value
        if value.op == "const":
            return self._source("const", kind, value.imm)
        home = self.here if self._extends else value.region
        return self._value("bits", (value,), kind, home)

    def result(self, kind: str) -> Value:
        """Return a new value for an effect item of `here` to define."""
        return self._new("result", (), kind, self.here)

    def fixed_load(self, kind: str, count: int, access: int, address: Value | None, site: int) -> list[Value]:
        """Load consecutive units of memory that no invocation writes, once per address."""
        home = self._home(() if address is None else (address,))
        keys = [("load", access, address, unit, kind) for unit in range(count)]
        found = [self._find(key, home) for key in keys] if self._numbers else []
        if found and all(v is not None for v in found):
            return [v for v in found if v is not None]
        results = [self._new("result", (), kind, home) for _ in range(count)]
        self._known[home].update(zip(keys, results, strict=True))
        home.items.append(ir.Load(results, access, address, site))
        return results

    def _source(self, op: str, kind: str, imm: Any) -> Value:
        """Return a value that does not depend on others. It is computed before everything else."""
        key = op, kind, imm
        value = self._sources.get(key) if self._numbers else None
        if value is None:
            value = self._sources[key] = self._new(op, (), kind, self.root, imm)
            if self._extends:
                self.root.items.insert(0, value)
            else:
                self.root.items.append(value)
        return value

    def _value(self, op: str, args: tuple[Value, ...], kind: str, home: Region) -> Value:
        key = op, args, kind
        if self._numbers and (found := self._find(key, home)) is not None:
            return found
        self.operations.add(op)
        value = self._known[home][key] = self._new(op, args, kind, home)
        home.items.append(value)
        return value

    def _new(self, op: str, args: tuple[Value, ...], kind: str, home: Region, imm: Any = None) -> Value:
        self._last_id += 1
        return Value(op, args, kind, home, imm, self._last_id, False, self.span)

    def _find(self, key: Any, home: Region) -> Value | None:
        """An equal value that is computed wherever `here` runs."""
        region = home if self._extends else self.here
        known = self._known
        value = known[region].get(key)
        if value is not None or self._extends:
            return value
        while region.parent is not None:
            limit, region = region.hidden_after, region.parent
            value = known[region].get(key)
            if value is not None and (limit is None or value.id <= limit):
                return value
        return None

    def _reaches(self, value: Value, region: Region) -> bool:
        """Whether a value that is known in `region` is computed wherever `here` runs."""
        here, limit = self.here, None
        while here is not region and not self._extends:
            if here.parent is None:
                return False
            limit, here = here.hidden_after, here.parent
        return limit is None or value.id <= limit

    def _home(self, args: Iterable[Value]) -> Region:
        """The region to compute a value of these arguments in: outside every loop that does not change it."""
        if not self.hoists or not self.here.depth:
            return self.here
        depth = 0
        for argument in args:
            if argument.region.depth > depth:
                depth = argument.region.depth
        home = region = self.here
        while region.depth > depth:
            assert region.parent is not None
            if region.loop:
                home = region.parent
            region = region.parent
        return home

    @property
    def last_id(self) -> int:
        """The id of the value built last."""
        return self._last_id

    # ---- variables ----

    def block(self, kinds: Iterable[str], name: str, region: Region | None = None) -> Block:
        """Declare a variable with a slot of each kind in `region` (None: in `here`)."""
        block = Block([])
        block.slots = [Slot(kind, name, region or self.here, block) for kind in kinds]
        self.slots += block.slots
        return block

    def table(self, kind: str, rows: int, name: str, region: Region | None = None) -> Block:
        """Declare a variable with a table of `rows` scalars. `set` sets all of them; `get` does not apply to it."""
        block = self.block([kind], name, region)
        block.slots[0].rows, block.indexed = rows, True
        return block

    def get(self, slot: Slot) -> Value:
        """Return the value of a slot since its last write, read once. The slot must have been written before."""
        version = self._versions[slot]
        if version.value is None or not self._reaches(version.value, version.region):
            version.value = self._new("get", (), slot.kind, version.region, slot)
            version.region.items.append(version.value)
        return version.value

    def read(self, slot: Slot) -> Value:
        """Read a slot here, whatever was read or written before."""
        value = self._new("get", (), slot.kind, self.here, slot)
        self.here.items.append(value)
        return value

    def set(self, slot: Slot, value: Value) -> None:
        self.here.items.append(Set(slot, value, self.span))
        self._change(slot, value if self._forwards else None)

    def pick(self, block: Block, index: Value) -> Value:
        """Read the scalar of a block whose number is known at run time; a number past the last reads the last."""
        block.indexed = True
        result = self._new("pick", (), block.slots[0].kind, self.here)
        result.imm = Pick(result, block, index)
        self.here.items.append(result.imm)
        return result

    def put(self, block: Block, index: Value, value: Value) -> None:
        """Write the scalar of a block whose number is known at run time; a number past the last writes the last."""
        block.indexed = True
        self.here.items.append(Put(block, index, value, self.span))
        self.changed(block.slots)

    def changed(self, slots: Iterable[Slot]) -> None:
        """Make later reads of `slots`, in this region, new values."""
        for slot in slots:
            self._change(slot)

    def _change(self, slot: Slot, value: Value | None = None) -> None:
        versions = self._versions
        self._changes.append((slot, versions.get(slot)))
        versions[slot] = _Version(self.here, value)

    @property
    def changes(self) -> int:
        """The number of changes of slots so far, for `changed_since` and `undo`."""
        return len(self._changes)

    def changed_since(self, changes: int) -> list[Slot]:
        """Return the slots that have changed since there were so many changes."""
        return list(dict.fromkeys(slot for slot, _ in self._changes[changes:]))

    def undo(self, changes: int) -> list[Slot]:
        """Go back to the versions when there were so many changes. Returns the slots that have changed since."""
        changed = self.changed_since(changes)
        for slot, before in reversed(self._changes[changes:]):
            if before is None:
                del self._versions[slot]
            else:
                self._versions[slot] = before
        del self._changes[changes:]
        return changed

    def merge(self, changes: int, *others: Slot) -> None:
        """End a construct that ran on some lanes only: slots that it changed get new values, and so do `others`.

        `changes`: how many there were before it."""
        changed = dict.fromkeys([*others, *self.undo(changes)])
        self.changed(slot for slot in changed if slot in self._versions)

    # ---- regions ----

    def region(self, loop: bool = False, parent: Region | None = None) -> Region:
        """Return a new region in `parent` (None: in `here`), not yet part of any item."""
        parent = parent or self.here
        return Region(parent, loop, depth=parent.depth + 1)

    def append(self, item: Item) -> None:
        """Append an item to `here`; one that may change the mask ends the open count."""
        self.here.items.append(item)
        if type(item) in _CHANGE_MASK:
            self._counts.pop(self.here, None)

    def prepend(self, items: Iterable[Item]) -> None:
        """Insert items at the start of the program, after its constants and inputs."""
        first = next((i for i, item in enumerate(self.root.items) if not _is_source(item)), len(self.root.items))
        self.root.items[first:first] = items

    def rewrite(self, region: Region) -> Iterator[Item]:
        """Empty a region and yield its former items, with `here` in the region: the caller appends what remains."""
        items, region.items = region.items, []
        outer, self.here = self.here, region
        yield from items
        self.here = outer

    def branch(self, condition: Value, then: Callable[[], Any], orelse: Callable[[], Any] = lambda: None) -> ir.If:
        """Append an `If`: what `then` builds runs where `condition` holds, what `orelse` builds in the other lanes."""
        before, outer = self.changes, self.here
        first = self.here = self.region(parent=outer)
        then()
        changed = self.undo(before)
        second = self.here = self.region(parent=outer)
        orelse()
        self.here = outer
        branch = ir.If(condition, first, second)
        self.append(branch)
        self.merge(before, *changed)
        return branch

    def only_where(self, condition: Value, then: Callable[[], Any]) -> None:
        """Run what `then` builds where `condition` holds; without a branch where that is known."""
        if condition.op != "const":
            self.branch(condition, then)
        elif condition.imm:
            then()

    # ---- counting ----

    def tally(self, site: int) -> None:
        """Count an execution of `site` here."""
        self.begin_count().sites.append(site)

    def tally_rounded(self, flops: int, values: Iterable[Value]) -> None:
        """Count `flops` FLOPs here, spent on `values`."""
        self.begin_count().rounded.append((flops, tuple(values)))

    def tally_computed(self, name: str | None, span: Span, value: Value | None = None) -> None:
        """Count an instruction of class `name` here (None: count nothing), at `span` in the source. `value`: what it
        computes, or decides by."""
        if name is not None:
            self.begin_count().computed.append((name, span, value))

    def begin_count(self) -> Count:
        """Return the count of this basic block; place it here, before what it counts, if there is none yet."""
        count = self._counts.get(self.here)
        if count is None:
            count = self._counts[self.here] = Count()
            self.here.items.append(count)
        return count


@lru_cache(maxsize=4096)  # offsets and strides recur, and NumPy's scalars are slow
def _fold(name: str, *bits: int) -> int:
    """Return the bits of a scalar operation's result, from those of its operands."""
    row = OPS[name]
    operands = [from_bits(kind, each) for kind, each in zip(row.args, bits, strict=True)]
    with np.errstate(all="ignore"):
        return to_bits(row.result, row.fn(*operands))


_CHANGE_MASK = frozenset((ir.If, ir.Loop, ir.Scope, ir.Jump))


def _is_source(item: Item) -> bool:
    return isinstance(item, Value) and item.op in ("const", "input", "length")


def _has_floats(name: str) -> bool:
    """Whether a scalar operation takes or returns floats."""
    row = OPS[name]
    return not {"f32", "f16"}.isdisjoint((row.result, *row.args))
