"""The pass that adds bounds to a program: to values, variables, memory, and branches that a rounding could flip.

It needs a lowered program whose float operations are as in the source (not folded). It changes no value of the program.

If a condition is in doubt, a lane may be elsewhere on another implementation, up to the end of the branch's extent: it
is *astray*. What an astray lane writes has no bound and, at the end of the extent, nor has what it could have written.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...fast_dataclass import entity, frozen
from ...ir import ir
from ...ir.access import Access
from ...ir.builder import Builder
from ...ir.ir import Block, Region, Slot, Value, items, regions
from ...ir.lowered import Lowered
from ...ir.sites import SourceSite
from ...wgsl import types as t
from ...wgsl.source import Source, Span
from ...wgsl.typed import Variable
from ..shadows import Shadow, Shadows
from .arithmetic import INF, Real, Truth, simpler_bound
from .error_rules import Rules
from .formats import FORMATS
from .inexact import Construct, Inexact, find_inexact, is_known_in, place
from .shapes import Shapes
from .subgroup_bounds import SubgroupBounds

NOTES = "notes of the bounds"  # the name of a variable, see `Instrumented`
_NONE = Span(Source(""), 0, 0)


@frozen
class Doubt:
    """A place in the source where a rounding could change what follows: a branch, or a conversion to an integer."""

    span: Span
    what: str


@entity
class Instrumented:
    """A program with bounds, and how to read them.

    `shadows` hold the bounds of variables. `notes` holds a word for each `lost` variable, 1 if it is lost, then two for
    each doubt: how often it arose, and the number in the grid of the first invocation in which it did (initially 0 and
    the largest u32)."""

    lowered: Lowered
    shadows: list[Shadow]
    notes: Variable
    doubts: list[Doubt]
    lost: list[Variable]


def add_error_bounds(lowered: Lowered, subnormal: frozenset[str], filtered: frozenset[str], lanes: int) -> Instrumented:
    """Add bounds to `lowered`, in place.

    `subnormal`: variables that hold subnormal floats at the start. `filtered`: textures whose samples have no bound.
    `lanes`: the number of invocations in a workgroup."""
    found = find_inexact(lowered.body, lowered.accesses, subnormal | filtered)
    instrumenter = _Instrumenter(lowered, found, subnormal, filtered, lanes)
    instrumenter.region(lowered.body)
    return Instrumented(lowered, instrumenter.shadows, instrumenter.notes, instrumenter.doubts, instrumenter.lost)


@entity
class _Astray:
    """An enclosing extent, and the variable or value that is infinity in lanes that are astray in it, else 0."""

    extent: Construct
    slot: Slot | None = None
    value: Real | None = None


class _Instrumenter:
    def __init__(
        self, lowered: Lowered, found: Inexact, subnormal: frozenset[str], filtered: frozenset[str], lanes: int
    ) -> None:
        self._shadows = Shadows(lowered.accesses, "bounds")
        self.notes = Variable(NOTES, t.Array(t.U32, None), _NONE, "storage", "read_write")
        self.doubts: list[Doubt] = []
        self.lost = sorted(found.lost, key=lambda v: v.name)
        self._lowered = lowered
        self._accesses = lowered.accesses
        self._found = found
        self._extents = found.extents
        self._subnormal = subnormal
        self._filtered = filtered
        self._lanes = lanes
        lowered.builder = self._builder = Builder.extending(lowered.builder, identity=simpler_bound)
        self._bounds: dict[Value, Real] = {}
        self._rules = Rules(self._builder, self._bounds, Shapes(lowered.body, lowered.accesses))
        self._subgroups = SubgroupBounds(self._builder, self._rules)
        self._blocks: dict[Block, Block] = {}
        self._astray: list[_Astray] = []

    @property
    def shadows(self) -> list[Shadow]:
        return self._shadows.all()

    # ---- values ----

    def region(self, region: Region) -> None:
        """Rewrite a region, with the bounds of each item behind it."""
        for item in self._builder.rewrite(region):
            self._item(item)

    def _number(self, number: float) -> Real:
        return Real(self._builder, number)

    def _bound(self, value: Value) -> Real:
        return self._rules.number(value).bound

    def _sum(self, values: list[Value]) -> Real:
        return sum((self._bound(v) for v in values), self._number(0.0))

    def _wild(self, address: Value | None) -> Real:
        """Return infinity where an address may differ, else 0."""
        return self._number(0.0) if address is None else self._rules.infinite_if_inexact(address)

    def _item(self, item: ir.Item) -> None:
        builder = self._builder
        match item:
            case ir.If():
                return self._if(item)
            case ir.Loop() | ir.Scope():
                return self._within(item)
            case ir.Store():
                builder.append(item)
                return self._store(item)
            case ir.Atomic():
                return self._atomic(item)
            case _:
                builder.append(item)
        match item:
            case Value() if item in self._found.values:
                self._bounds[item] = self._value(item)
            case ir.Set(slot=slot, value=value) if slot in self._found.slots:
                builder.append(ir.Set(self._slot(slot), (self._bound(value) + self._gone()).value))
            case ir.Put(block=block, index=index, value=value) if self._found.slots.intersection(block.slots):
                self._put(block, index, value)
            case ir.Pick(result=result, block=block, index=index) if result in self._found.values:
                self._bounds[result] = self._pick(block, index) + self._wild(index)
            case ir.Load(results=results) if results[0] in self._found.values:
                self._load(item)
            case ir.Collective(results=results) if results[0] in self._found.values:
                self._bounds.update(zip(results, self._subgroups.bounds(item, astray=bool(self._astray)), strict=True))
            case _:
                pass

    def _value(self, value: Value) -> Real:
        if value.op == "get":
            return Real(self._builder, self._builder.read(self._slot(value.imm)))
        bound = self._rules.bound(value)
        if value.op.startswith("convert_") and value.kind in ("i32", "u32"):
            self._doubt(bound, value, "conversion to an integer")
        return bound

    # ---- variables ----

    def _block(self, block: Block) -> Block:
        if block not in self._blocks:
            first, kinds = block.slots[0], ["f32"] * len(block.slots)
            self._blocks[block] = self._builder.block(kinds, f"{first.name} (bound)", first.region)
            self._blocks[block].slots[0].rows = first.rows
            self._blocks[block].indexed = block.indexed
        return self._blocks[block]

    def _slot(self, slot: Slot) -> Slot:
        assert slot.block is not None
        return self._block(slot.block).slots[slot.block.slots.index(slot)]

    def _put(self, block: Block, index: Value, value: Value) -> None:
        """If the index may differ, so may every element."""
        builder, wild, shadow = self._builder, self._wild(index), self._block(block)
        builder.append(ir.Put(shadow, index, (self._bound(value) + self._gone()).value))
        for slot in shadow.slots if not wild.is_zero else ():
            self._widen(slot, wild)

    def _widen(self, shadow: Slot, doubt: Real) -> None:
        """Add a doubt, which is 0 or infinity, to a bound: for a table, to that of each element."""
        builder = self._builder
        if shadow.rows > 1:
            unknown = ir.Set(shadow, self._number(INF).value)
            builder.only_where((~doubt.is_sure).value, lambda: builder.append(unknown))
        else:
            builder.append(ir.Set(shadow, (Real(builder, builder.read(shadow)) + doubt).value))

    def _pick(self, block: Block, index: Value) -> Real:
        if not self._found.slots.intersection(block.slots):  # only the index may differ
            return self._number(0.0)
        return Real(self._builder, self._builder.pick(self._block(block), index))

    # ---- memory ----

    def _load(self, load: ir.Load) -> None:
        which = place(self._accesses, load)
        more = self._wild(load.address) + self._lost_part(which[0])
        parts = [self._number(0.0)] * len(load.results)
        if which in self._found.places:
            results = [self._builder.result("f32") for _ in load.results]
            self._builder.append(ir.Load(results, self._shadows.beside(load), load.address, load.site))
            parts = [Real(self._builder, r) for r in results]
        for result, part in zip(load.results, parts, strict=True):
            self._bounds[result] = part + more + self._first(which, result)

    def _first(self, which: tuple[Variable, int], result: Value) -> Real:
        """Return the bound of a value that was in memory at the start."""
        if which[0].name in self._filtered and result.kind in FORMATS:
            return self._number(INF)
        if which[0].name not in self._subnormal or (which[1] == 4 and result.kind not in FORMATS):
            return self._number(0.0)
        if which[1] == 4:
            return self._rules.subnormal(result)
        builder = self._builder
        exponent = builder.op("and_u32", result, builder.const("u32", 0x7C00))
        fraction = builder.op("and_u32", result, builder.const("u32", 0x03FF))
        normal = Truth(builder, builder.op("ne_u32", exponent, builder.const("u32", 0)))
        zero = Truth(builder, builder.op("eq_u32", fraction, builder.const("u32", 0)))
        return (normal | zero).choose(0.0, FORMATS["f16"].least)

    def _store(self, store: ir.Store) -> None:
        if place(self._accesses, store) not in self._found.places:
            return
        wild = self._wild(store.address)
        bounds = [(self._bound(v) + self._gone() + wild).value for v in store.values]
        self._builder.append(ir.Store(bounds, self._shadows.beside(store), store.address, store.site))
        self._lose(store, wild)

    def _atomic(self, item: ir.Atomic) -> None:
        """The old value is as inexact as the memory was, the memory becomes as inexact as the operands."""
        builder, which = self._builder, place(self._accesses, item)
        before = self._lost_part(which[0]) + self._wild(item.address)
        if which in self._found.places and item.results:
            old = builder.result("f32")
            builder.append(ir.Load([old], self._shadows.beside(item), item.address, item.site))
            before = before + Real(builder, old)
        builder.append(item)
        for result in item.results:
            self._bounds[result] = before
        if which in self._found.places:
            wild = self._wild(item.address)
            inexact = self._sum(item.args) + wild + self._gone()
            unknown = [self._number(INF).value]
            store = ir.Store(unknown, self._shadows.beside(item), item.address, item.site)
            builder.only_where((~inexact.is_sure).value, lambda: builder.append(store))
            self._lose(item, wild)

    def _lost_part(self, variable: Variable) -> Real:
        """Return infinity if it is no longer known which elements of a variable were stored, else 0."""
        if variable not in self._found.lost:
            return self._number(0.0)
        word = self._builder.result("u32")
        self._builder.append(ir.Load([word], self._note(variable), None, self._site))
        zero = self._builder.const("u32", 0)
        return Truth(self._builder, self._builder.op("eq_u32", word, zero)).choose(0.0, INF)

    def _lose(self, item: ir.Store | ir.Atomic, where: Real) -> None:
        """Note that an unknown element of what an item stores to may have been stored, unless `where` is 0."""
        if where.is_zero:
            return
        note = self._note(place(self._accesses, item)[0])
        one = self._builder.const("u32", 1)
        self._builder.only_where(
            (~where.is_sure).value, lambda: self._builder.append(ir.Store([one], note, None, self._site))
        )

    @property
    def _site(self) -> int:
        """The site of accesses to the notes: a storage atomic, so that workgroups run one after another."""
        return self._lowered.sites.number(SourceSite("atomic", _NONE, "storage", NOTES))

    def _note(self, variable: Variable) -> int:
        return self._word(self.lost.index(variable), True)

    def _word(self, number: int, lost: bool) -> int:
        """Return the access to a word of the notes. Those of lost variables come first."""
        offset = number if lost else len(self.lost) + number
        return self._shadows.number(Access(self.notes, "storage", 4, 1, offset, writes=True))

    # ---- branches ----

    def _gone(self) -> Real:
        """Return infinity in lanes that are astray here, else 0."""
        total = self._number(0.0)
        for each in self._astray:
            if each.slot is not None:
                total = total + Real(self._builder, self._builder.read(each.slot))
            elif each.value is not None:
                total = total + each.value
        return total

    def _if(self, item: ir.If) -> None:
        doubt = self._wild(item.condition)
        extent = self._found.doubtful.get(id(item))
        if extent is None:
            self._builder.append(item)
            self._inside(item)
            return
        self._doubt(doubt, item, "branch")
        if extent is item:
            self._astray.append(_Astray(item, value=doubt))
        else:
            self._stray(extent, doubt)
        self._builder.append(item)
        self._inside(item)
        if extent is item:
            self._astray.pop()
            self._forget(item, doubt)

    def _inside(self, item: ir.If | ir.Scope) -> None:
        for region in (item.then, item.orelse) if isinstance(item, ir.If) else (item.body,):
            self.region(region)

    def _within(self, item: ir.Loop | ir.Scope) -> None:
        """Rewrite a construct that may be an extent."""
        builder, slot = self._builder, None
        if id(item) in self._extents:
            slot = builder.block(["f32"], "astray").slots[0]
            builder.append(ir.Set(slot, self._number(0.0).value))
            self._astray.append(_Astray(item, slot))
        builder.append(item)
        if isinstance(item, ir.Loop):
            self._loop(item)
        else:
            self._inside(item)
        if slot is not None:
            self._astray.pop()
            self._forget(item, Real(builder, builder.read(slot)))

    def _loop(self, loop: ir.Loop) -> None:
        extent = self._found.doubtful.get(id(loop))
        parts = ((loop.header, loop.condition), (loop.body, None), (loop.continuing, loop.break_if))
        for region, condition in parts:
            self.region(region)
            if extent is not None:
                outer, self._builder.here = self._builder.here, region
                doubt = self._wild(condition)
                self._doubt(doubt, loop, "loop")
                self._stray(extent, doubt)
                self._builder.here = outer

    def _stray(self, extent: Construct, doubt: Real) -> None:
        """Note that lanes in doubt are astray from here to the end of an extent."""
        if doubt.is_zero:
            return
        slot = next(each.slot for each in self._astray if each.extent is extent)
        assert slot is not None
        self._builder.append(ir.Set(slot, (Real(self._builder, self._builder.read(slot)) + doubt).value))

    def _forget(self, extent: Construct, astray: Real) -> None:
        """End an extent: lanes that went astray may have made any of its writes."""
        builder = self._builder
        for slot in _written(extent, self._found.slots):
            self._widen(self._slot(slot), astray)
        stores = [i for i in items(extent) if isinstance(i, ir.Store | ir.Atomic) and self._is_program(i)]
        builder.only_where((~astray.is_sure).value, lambda: self._forget_memory(stores))

    def _forget_memory(self, stores: list[ir.Store | ir.Atomic]) -> None:
        here, unknown = self._builder.here, self._number(INF)
        for store in stores:
            if is_known_in(here, store.address):
                width = len(store.values) if isinstance(store, ir.Store) else 1
                ghost = ir.Store([unknown.value] * width, self._shadows.beside(store), store.address, store.site)
                self._builder.append(ghost)
            else:
                self._lose(store, unknown)

    def _is_program(self, item: ir.Store | ir.Atomic) -> bool:
        """Whether a store is one of the program, and not of bounds or notes."""
        variable = self._accesses[item.access].variable
        return variable is not self.notes and all(variable is not s.variable for s in self.shadows)

    # ---- doubts ----

    def _doubt(self, bound: Real, about: ir.Item, what: str) -> None:
        """Note a doubt in lanes that are not astray already. Code inside a builtin has no span, and no doubts."""
        span = self._lowered.spans.get(id(about))
        if bound.is_zero or span is None:
            return
        builder = self._builder
        number = len(self.doubts)
        self.doubts.append(Doubt(span, what))
        sure = bound.is_sure | ~self._gone().is_sure

        def note() -> None:
            for op, word, value in (("add_u32", 0, builder.const("u32", 1)), ("min_u32", 1, self._invocation())):
                access = self._word(2 * number + word, False)
                builder.append(ir.Atomic(op, [builder.result("u32")], [value], access, None, self._site))

        builder.only_where((~sure).value, note)

    def _invocation(self) -> Value:
        """Return the number of the invocation in the grid, counted workgroup by workgroup."""
        builder, op = self._builder, self._builder.op
        x, y, z, width, height, lane = map(
            builder.input, ("group_x", "group_y", "group_z", "grid_x", "grid_y", "local_index")
        )
        group = op("add_u32", op("mul_u32", op("add_u32", op("mul_u32", z, height), y), width), x)
        return op("add_u32", op("mul_u32", group, builder.const("u32", self._lanes)), lane)


def _written(extent: Construct, slots: set[Slot]) -> Iterator[Slot]:
    """Yield the inexact variables that are written inside and declared outside, each once."""
    inside = {region for item in (extent, *items(extent)) for region in regions(item)}
    seen: set[Slot] = set()
    for item in items(extent):
        touched = [item.slot] if isinstance(item, ir.Set) else item.block.slots if isinstance(item, ir.Put) else []
        for slot in touched:
            if slot in slots and slot not in seen and slot.region not in inside:
                seen.add(slot)
                yield slot
