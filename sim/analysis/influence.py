"""What loads, atomic operations and variables influence: which buffers may change if their values do.

A value influences what is computed from it, and what is stored at an address or under a condition that it influences.
A jump out of a region makes the rest of the region depend on the conditions of the jump. The analysis does not look at
single elements: a variable is one node.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from ..fast_dataclass import entity
from ..ir import ir
from ..ir.access import Access
from ..ir.ir import Region, Slot, Value
from ..ir.lowered import Lowered
from ..wgsl.source import Span

Node = Value | Slot | str  # a variable in memory by its name
_COMMUTES = frozenset(("add_u32", "sub_u32", "load"))


@entity
class Influence:
    """The influences in a program. `results`: what the accesses at each place read, and the variable itself if other
    results of it change what atomic operations leave; `units`: the access that loads a value, and its unit; `deciding`:
    conditions and addresses."""

    results: dict[Span, set[Node]] = field(default_factory=dict[Span, set[Node]])
    units: dict[Node, tuple[Access, int]] = field(default_factory=dict[Node, tuple[Access, int]])
    deciding: set[Node] = field(default_factory=set[Node])
    _uses: dict[Node, set[Node]] = field(default_factory=dict[Node, set[Node]])

    def of(self, nodes: Iterable[Node]) -> frozenset[Node]:
        """Return these nodes and all that they influence."""
        waiting = list(nodes)
        seen = set(waiting)
        while waiting:
            node = waiting.pop()
            new = self._uses.get(node, set()) - seen
            seen |= new
            waiting += new
        return frozenset(seen)

    def variables(self, nodes: Iterable[Node]) -> frozenset[str]:
        """Return the names of the variables that any of these nodes influences."""
        return frozenset(node for node in self.of(nodes) if isinstance(node, str))

    def may_load(self, node: Node, stores: Iterable[Access]) -> bool:
        """Whether a value may have been loaded from where one of these accesses stores."""
        if node not in self.units:
            return True
        access, unit = self.units[node]
        return any(access.may_overlap(unit, each) for each in stores)

    def only_data(self, variable: str) -> bool:
        """Whether the values of a variable are loaded, and influence neither a branch nor an address."""
        return variable in self._uses and not self.of([variable]) & self.deciding

    def add(self, node: Node, sources: Iterable[Node | None]) -> None:
        for source in sources:
            if source is not None:
                self._uses.setdefault(source, set()).add(node)


def find_influence(lowered: Lowered) -> Influence:
    """Find the influences in a lowered program."""
    walk = _Walk(lowered, Influence())
    walk.note_jumps(lowered.body, ())
    walk.region(lowered.body, frozenset())
    return walk.found


@entity
class _Walk:
    """Visits a program. `left_under`: the conditions of the jumps that leave a loop or scope, by its identity."""

    lowered: Lowered
    found: Influence
    left_under: dict[int, set[Value]] = field(default_factory=dict[int, set[Value]])

    def note_jumps(self, region: Region, conditions: tuple[Value, ...]) -> None:
        for item in region.items:
            if isinstance(item, ir.Jump):
                self.left_under.setdefault(id(item.target.node), set()).update(conditions)
            inside = (*conditions, *_conditions(item))
            for each in ir.regions(item):
                self.note_jumps(each, inside)

    def region(self, region: Region, under: frozenset[Node]) -> None:
        """Note the items of a region that runs under these conditions."""
        for item in region.items:
            self._item(item, under)
            conditions = _conditions(item)
            self.found.deciding.update(conditions)
            inside = under.union(conditions, self.left_under.get(id(item), ()))
            for each in ir.regions(item):
                self.region(each, inside)

    def _item(self, item: ir.Item, under: frozenset[Node]) -> None:
        add = self.found.add
        match item:
            case Value(op=op, args=args, imm=imm):
                add(item, [*args, imm if op == "get" else None])
            case ir.Set(slot=slot, value=value):
                add(slot, [value, *under])
            case ir.Put(block=block, index=index, value=value):
                for slot in block.slots:
                    add(slot, [index, value, *under])
            case ir.Pick(result=result, block=block, index=index):
                add(result, [index, *block.slots])
            case ir.Load(results=results, address=address, access=access, site=site):
                self._reads(results, self._name(access), address, site)
                loaded = self.lowered.accesses[access]
                if len(results) == loaded.units:
                    self.found.units.update((each, (loaded, unit)) for unit, each in enumerate(results))
            case ir.Store(values=values, address=address, access=access):
                self._writes(self._name(access), address, [*values, *under])
            case ir.Atomic(results=results, args=args, address=address, access=access, site=site):
                self._reads(results, self._name(access), address, site)
                self._writes(self._name(access), address, [*args, *under])
                if item.op not in _COMMUTES:
                    self._place(site).add(self._name(access))
            case ir.Collective(results=results, args=args):
                for result in results:
                    add(result, [*args, *under])
            case _:
                pass

    def _reads(self, results: list[Value], name: str, address: Value | None, site: int) -> None:
        for result in results:
            self.found.add(result, [name, address])
        if site >= 0:
            self._place(site).update(results)
        self._decides(address)

    def _writes(self, name: str, address: Value | None, sources: list[Node]) -> None:
        self.found.add(name, [address, *sources])
        self._decides(address)

    def _decides(self, address: Value | None) -> None:
        if address is not None:
            self.found.deciding.add(address)

    def _place(self, site: int) -> set[Node]:
        return self.found.results.setdefault(self.lowered.sites.rows[site].span, set())

    def _name(self, access: int) -> str:
        return self.lowered.accesses[access].variable.name


def _conditions(item: ir.Item) -> tuple[Value, ...]:
    """Return the conditions that decide whether the regions of an item run."""
    match item:
        case ir.If(condition=condition):
            return (condition,)
        case ir.Loop(condition=condition, break_if=break_if):
            return tuple(value for value in (condition, break_if) if value is not None)
        case _:
            return ()
