"""Lowering of memory accesses: views become addresses, loads and stores, each with its site."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir import ir
from ..ir.access import BUFFERS, NOWHERE, Access
from ..ir.builder import Builder
from ..ir.ir import Block, Value
from ..ir.sites import SiteTable, SourceSite
from ..ir.trace_points import Tracer
from ..wgsl import types as t
from ..wgsl.diagnostics import fail
from ..wgsl.source import Span
from ..wgsl.typed import Variable
from .address_sums import Sum
from .views import Step, View, leaves

MOST_COMPONENTS = 1 << 16  # of one value
MOST_ROWS = 1 << 18  # of one variable of an invocation: 1 MiB
LARGE = 512  # components; a function or private variable with more is a table, and copied in a loop
_NARROW = t.F16  # the only scalar of two bytes


def _unit_of(leaf: t.Scalar | t.Vec) -> int:
    """Return the bytes of a component in memory."""
    return 2 if t.element_of(leaf) is _NARROW else 4


class Memory:
    """Loads and stores `View`s.

    `checks`: check indices that are kept in bounds. `trace`: the variable to trace. `policy`: clamp, zero or wrap, for
    indices out of bounds. `widens`: probes see each store to a component as one to its whole vector. Spec: "Vector
    Access Expression".
    """

    widens = False

    def __init__(self, checks: bool, builder: Builder, trace: str | None, policy: str) -> None:
        self.builder = builder
        self.policy = policy
        self.tracer = Tracer(builder, trace)
        self.checks = checks
        self._checked: set[tuple[Value, Span, ir.Region]] = set()
        self._mixed = dict[Value, bool]() if builder.hoists else None
        self.sites = SiteTable()
        self.accesses: list[Access] = []
        self._numbers: dict[Access, int] = {}
        self._tails: dict[Variable, tuple[int, int] | None] = {}
        self._pending: list[Callable[[], Any]] | None = None  # checks of an operand that may not matter
        self._tracing = trace is not None
        self.spans: dict[int, Span] = {}  # of loops, branches and conversions, by identity

    def access(self, access: Access) -> int:
        """Return the number of an access, the same for equal accesses."""
        number = self._numbers.setdefault(access, len(self.accesses))
        if number == len(self.accesses):
            self.accesses.append(access)
        return number

    def _tail_of(self, variable: Variable) -> tuple[int, int] | None:
        """Return the byte offset and stride of the runtime-sized array at the end of a variable, if it has one."""
        if variable not in self._tails:
            self._tails[variable] = t.tail_of(variable.type)
        return self._tails[variable]

    # ---- checks ----

    def check_here(self, build: Callable[[], Any]) -> None:
        """Build a check here, or once it is known where the operand being lowered matters."""
        if self._pending is None:
            build()
        else:
            self._pending.append(build)

    def speculate(self, lower: Callable[[], Value], matters: Callable[[], Value]) -> Value:
        """Lower an operand in all lanes, with its checks only in those where it matters."""
        outer, self._pending = self._pending, []
        operand = lower()
        checks, self._pending = self._pending, outer
        if checks:
            condition = matters()
            self.check_here(lambda: self.builder.only_where(condition, lambda: [build() for build in checks]))
        return operand

    # ---- whole values ----

    def load(self, view: View, span: Span) -> list[Value]:
        """Load a value; return its components."""
        self.builder.span = span
        if (slots := view.slots) is not None:
            return list(map(self.builder.get, slots))
        if isinstance(view.type, t.Scalar) and not view.block:
            return self._load_leaf(view, view.type, 0, span, 0)
        self.fits(view.type, span)
        if view.block:
            return self._pick(view, view.block)
        components: list[Value] = []
        for part, (leaf, offset) in enumerate(leaves(view.type)):
            components += self._load_leaf(view, leaf, offset, span, part)
        return components

    def store(self, view: View, values: list[Value], span: Span) -> None:
        """Store a value, given its components."""
        self.builder.span = span
        if view.block:
            self._set(view, view.block, values, span)
            return
        if isinstance(view.type, t.Scalar):
            self._store_leaf(view, view.type, 0, values, span, 0)
            return
        rest = iter(values)
        for part, (leaf, offset) in enumerate(leaves(view.type)):
            width = t.components(leaf)
            self._store_leaf(view, leaf, offset, [next(rest) for _ in range(width)], span, part)

    def fits(self, type_: t.Type, span: Span) -> None:
        """Raise `WgslError` if a value has too many components."""
        if (count := t.components(type_)) > MOST_COMPONENTS:
            raise fail("unsupported", f"the simulator cannot make a value of {count:,} components", span)

    def is_large(self, type_: t.Type) -> bool:
        return t.components(type_) > LARGE

    def fits_in_registers(self, type_: t.Type, variable: Variable) -> None:
        """Raise `WgslError` if a function or private variable is too large."""
        if (count := t.components(type_)) > MOST_ROWS:
            message = f"variable '{variable.name}' takes {4 * count:,} bytes of each invocation, and the simulator"
            raise fail("unsupported", f"{message} supports {4 * MOST_ROWS:,}", variable.span)

    # ---- function and private variables ----

    def _pick(self, view: View, block: Block) -> list[Value]:
        index, inside = self._slot_index(view), self._inside(view)
        picked = [self.builder.pick(block, self._plus(index, i)) for i in range(t.components(view.type))]
        if inside is not None:
            picked = [self._either(inside, value, self.builder.const("u32", 0)) for value in picked]
        return [self.builder.reinterpret(kind, value) for kind, value in zip(t.kinds(view.type), picked, strict=True)]

    def _set(self, view: View, block: Block, values: list[Value], span: Span) -> None:
        builder = self.builder
        if (slots := view.slots) is not None:
            for slot, value in zip(slots, values, strict=True):
                builder.set(slot, value)
            if self._tracing:
                first = view.offset
                places = [builder.const("u32", place) for place in range(first, first + len(values))]
                self.tracer.wrote(view.variable, values, places, span)
            return
        start = self._slot_index(view) if view.steps else builder.const("u32", view.offset)
        inside = self._inside(view)
        places = [self._plus(start, i) for i in range(len(values))]
        for place, value in zip(places, values, strict=True):
            kept = value if inside is None else self._either(inside, value, builder.pick(block, place))
            builder.put(block, place, builder.reinterpret(block.slots[0].kind if block.is_table else value.kind, kept))
        self.tracer.wrote(view.variable, values, places, span)

    def copies_in_loop(self, to: View, source: View) -> bool:
        """Whether `copy` can copy one variable, or part of it, to another."""
        tables = to.block and to.block.is_table and source.block and source.block.is_table
        is_plain = not self._tracing and self._inside(to) is None and self._inside(source) is None
        return bool(tables) and is_plain and self.is_large(to.type)

    def copy(self, to: View, source: View, span: Span) -> None:
        """Copy a table, or part of it, to another of the same type, in a loop over its scalars."""
        builder, one = self.builder, self.builder.const("u32", 1)
        assert to.block is not None
        assert source.block is not None
        builder.span = span
        starts = self._slot_index(to), self._slot_index(source)
        number = builder.block(["u32"], "component").slots[0]
        builder.set(number, builder.const("u32", 0))
        before, outer = builder.changes, builder.here
        header = builder.here = builder.region(loop=True)
        builder.changed([number])
        at = builder.get(number)
        condition = builder.op("lt_u32", at, builder.const("u32", t.components(to.type)))
        body = builder.here = builder.region(parent=header)
        picked = builder.pick(source.block, builder.op("add_u32", starts[1], at))
        copied = builder.reinterpret(to.block.slots[0].kind, picked)
        builder.put(to.block, builder.op("add_u32", starts[0], at), copied)
        continuing = builder.here = builder.region(parent=body)
        builder.set(number, builder.op("add_u32", at, one))
        builder.here = outer
        loop = ir.Loop(header, condition, body, continuing, None)
        self.spans[id(loop)] = span
        builder.append(loop)
        builder.merge(before)

    def _slot_index(self, view: View) -> Value:
        total = Sum(self._mixed)
        total.constant = view.offset
        for step in view.steps:
            total.add(self._kept(step, view), step.stride)
        return self._plus(total.value(self.builder) or self.builder.const("u32", 0), total.constant)

    def _plus(self, value: Value, offset: int) -> Value:
        return self.builder.op("add_u32", value, self.builder.const("u32", offset))

    def _kept(self, step: Step, view: View) -> Value:
        """Return an index in bounds, as the policy has it; check it if it could be out of bounds."""
        builder = self.builder
        index = builder.reinterpret("u32", step.index)
        last = self._last_index(view, step)
        if self.policy == "wrap":
            kept = builder.op("rem_u32", index, builder.op("add_u32", last, builder.const("u32", 1)))
        else:
            kept = builder.op("min_u32", index, last)
        if kept is not index:  # else it cannot be out of bounds
            self._check(step, index, view.variable)
        return kept

    def _inside(self, view: View) -> Value | None:
        """Return whether all indices are in bounds, if the policy skips other accesses, else None."""
        discards = self.policy == "zero" or (self.policy == "zero-buffers" and view.variable.space in BUFFERS)
        if not discards or not view.steps:
            return None
        builder = self.builder
        inside = builder.const("bool", True)
        for step in view.steps:
            index = builder.reinterpret("u32", step.index)
            inside = builder.op("and_bool", inside, builder.op("le_u32", index, self._last_index(view, step)))
        return inside

    def _either(self, condition: Value, value: Value, other: Value) -> Value:
        """Return the bits of `value` where the condition holds, else those of `other`."""
        builder = self.builder
        return builder.op("select_u32", builder.reinterpret("u32", other), builder.reinterpret("u32", value), condition)

    def _check(self, step: Step, index: Value, variable: Variable) -> None:
        """Check an index, once per expression: a composite takes several accesses."""
        if not self.checks:
            return
        if self._pending is None:
            if (key := (index, step.span, self.builder.here)) in self._checked:
                return
            self._checked.add(key)
        tail = (step.tail or self._tail_of(variable)) if step.count is None else None
        access = Access(variable, "index", 4, 1, 0, 1, step.count, tail)
        site = self.sites.number(SourceSite("index", step.span, variable=step.of))
        check = ir.Check(self.access(access), index, site)
        self.check_here(lambda: self.builder.append(check))

    # ---- buffers and workgroup memory ----

    def address(self, view: View, leaf: t.Scalar | t.Vec, offset: int, *, writes: bool) -> tuple[int, Value | None]:
        """Return the access number of one scalar or vector of a view, and its address without the constant part."""
        unit = _unit_of(leaf)
        one = view.steps[0] if len(view.steps) == 1 else None
        total = None
        if view.steps:
            total = Sum(self._mixed)
            for step in view.steps:
                total.add(step.index if one else self._kept(step, view), step.stride // unit)
        access = Access(
            view.variable,
            view.variable.space or "",
            unit,
            t.components(leaf),
            (view.offset + offset) // unit,
            one.stride // unit if one else 0,
            one.count if one else 1,
            (one.tail if one else None) or view.tail or self._tail_of(view.variable),
            writes,
            one.of if one else "",
            writes and view.vector is not None,
        )
        number = self.access(access)
        if total is None:
            return number, None
        dynamic = total.value(self.builder)
        constant = total.constant & 0xFFFFFFFF
        if constant:
            base = self.builder.const("u32", constant)
            dynamic = base if dynamic is None else self.builder.op("add_u32", dynamic, base)
        inside = None if one else self._inside(view)  # the machine applies the policy to a single index
        if inside is not None:
            at = self.builder.const("u32", 0) if dynamic is None else dynamic
            dynamic = self._either(inside, at, self.builder.const("u32", NOWHERE))
        return number, dynamic

    def _last_index(self, view: View, step: Step) -> Value:
        if step.count is not None:
            return self.builder.const("u32", step.count - 1)
        length = self._length(view.variable, step.tail or view.tail)
        return self.builder.op("sub_u32", length, self.builder.const("u32", 1))

    def length(self, view: View) -> Value:
        """Return the length of the runtime-sized array at the end of `view.variable`, or of a view of a buffer."""
        return self._length(view.variable, view.tail)

    def _length(self, variable: Variable, tail: tuple[int, int] | None) -> Value:
        access = Access(variable, "index", 4, 1, 0, 0, None, tail or self._tail_of(variable))  # accesses nothing
        return self.builder.length(self.access(access))

    def site(
        self, kind: str, view: View, leaf: t.Scalar | t.Vec, span: Span, part: int, name: str | None = None
    ) -> int:
        bytes_per_lane = _unit_of(leaf) * t.components(leaf)
        number = self.sites.number(
            SourceSite(kind, span, view.variable.space, view.variable.name, bytes_per_lane, part, name=name)
        )
        self.builder.tally(number)
        return number

    def _load_leaf(self, view: View, leaf: t.Scalar | t.Vec, offset: int, span: Span, part: int) -> list[Value]:
        builder = self.builder
        access, address = self.address(view, leaf, offset, writes=False)
        kind = t.KIND[t.element_of(leaf)]
        site = self.site("load", view, leaf, span, part)
        raw = "u32" if kind == "f16" else kind
        if view.variable.space == "uniform" and address is None:
            # Uniform buffers are read-only: loads can be shared, and hoisted out of loops.
            results = builder.fixed_load(raw, t.components(leaf), access, address, site)
        else:
            results = [builder.result(raw) for _ in range(t.components(leaf))]
            builder.append(ir.Load(results, access, address, site))
        return [builder.op("f16_from_bits_u32", r) for r in results] if kind == "f16" else results

    def _store_leaf(
        self, view: View, leaf: t.Scalar | t.Vec, offset: int, values: list[Value], span: Span, part: int
    ) -> None:
        builder = self.builder
        access, address = self.address(view, leaf, offset, writes=True)
        narrow = t.element_of(leaf) == _NARROW
        words = [builder.op("f16_to_bits_f16", v) for v in values] if narrow else values
        site = self.site("store", view, leaf, span, part)
        builder.append(ir.Store(words, access, address, site))
        if self.widens and view.vector is not None and isinstance(whole := view.vector.type, t.Vec):
            access_of_all, start = self.address(view.vector, whole, 0, writes=True)
            builder.append(ir.Store(words * whole.size, access_of_all, start, site, watched=True))
        self.tracer.stored(view.variable, values, access, address, span)
