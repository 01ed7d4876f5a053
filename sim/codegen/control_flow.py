"""Masks and jumps: the instructions of structured control flow.

Control flow that all lanes take together is a jump. Where lanes diverge, both ways run, each under a mask: the arms of
an `If` have masks of their own; a `Loop` or `Scope` that lanes leave separately has a row of the lanes still in it, and
each jump out of it clears its own lanes there. No mask (None) means that every lane is active.

Where it pays (see `analysis.tail_lanes`), the machine narrows to the vectors up to the last active lane. Each construct
that narrows has a level, one above that of the construct around it, and its end restores the level around it whichever
way led there. Rows that are masks are correct in all lanes, also beyond the narrowed ones.
"""

from __future__ import annotations

from collections.abc import Callable

from ..analysis.lane_uniformity import Uniformity
from ..analysis.spin_loops import deciding_atomics, retries, waits_in_storage
from ..analysis.tail_lanes import TailLanes
from ..fast_dataclass import entity
from ..ir import ir
from ..ir.ir import Region, Value
from ..machine import layout as at
from ..machine import opcodes as op
from ..wgsl.source import Span
from .operands import Operands
from .virtual_registers import Field, Ins, Label, Reg

EmitRegion = Callable[[Region], None]


@entity
class _Enclosing:
    """A construct that encloses the present position.

    `exit` and `next` are the labels of its end and of its continuing part. `inside` is the mask of lanes still in it,
    `iterating` that of lanes still in this iteration (None: the same)."""

    item: ir.Loop | ir.Scope
    exit: Label
    next: Label | None = None
    inside: Reg | None = None
    iterating: Reg | None = None

    @property
    def mask(self) -> Reg | None:
        return self.iterating or self.inside

    def masks(self, kind: str) -> list[Reg]:
        """The masks that a jump of this kind, out of the construct or on to its next iteration, clears lanes in."""
        found = (self.iterating,) if kind == "continue" else (self.inside, self.iterating)
        return [mask for mask in found if mask is not None]


class ControlFlow:
    """Emits constructs. `mask` is that of the present position. `region`, where a method takes it, emits what is inside
    a construct."""

    def __init__(
        self,
        operands: Operands,
        uniformity: Uniformity,
        tail_lanes: TailLanes,
        spans: dict[int, Span],
        has_atomics: bool,
    ) -> None:
        self.mask: Reg | None = None
        self.waits = False  # a loop waits for other workgroups
        self.loops: list[tuple[Span, tuple[int, ...]]] = []  # see `Program`
        self._operands = operands
        self._code = operands.code
        self._uniformity = uniformity
        self._tail_lanes = tail_lanes
        self._spans = spans
        self._has_atomics = has_atomics
        self._enclosing: list[_Enclosing] = []
        self._level = 0

    # ---- labels and levels ----

    def _place(self, label: Label, level: int) -> None:
        """Place a label, behind which the machine is at `level` whichever way led there."""
        self._code.place(label)
        if label.levels - {level}:
            self._level = -1
        self._restore(level)

    def _jump(self, ins: Ins, label: Label) -> None:
        label.levels.add(self._level)
        self._code.jump(ins, label)

    def _restore(self, level: int) -> None:
        if self._level != level:
            self._code.add(Ins(op.RESTORE, dest=level))
        self._level = level

    # ---- masks ----

    def mask_field(self) -> Field:
        return -1 if self.mask is None else self.mask

    def copy_of_mask(self) -> Reg:
        """A new row that starts as the present mask."""
        row, mask = Reg(), self.mask or self._operands.constant(1)
        self._code.add(
            Ins(op.MASK, dest=row, a=mask, b=mask) if self._level else Ins(op.COPY, dest=row, a=mask, mask=0)
        )
        return row

    def _intersect(self, one: Reg, other: Reg) -> Reg:
        """The lanes in both of two masks, one of which is the mask of the present position."""
        both = Reg()
        opcode = op.MASK if self._level else op.scalar_opcodes()["and_bool"]
        self._code.add(Ins(opcode, dest=both, a=one, b=other))
        return both

    def _complement(self, condition: Value, outer: Reg | None) -> Reg:
        """The lanes of a mask in which a condition does not hold."""
        other = Reg()
        self._code.add(Ins(op.scalar_opcodes()["lnot_bool"], dest=other, a=self._operands.all_lanes(condition)))
        return other if outer is None else self._intersect(outer, other)

    def _jump_unless_any(self, mask: Reg, label: Label, narrow: bool, level: int | None = None) -> None:
        """Jump to a label if no lane of a mask is active; else narrow to the last that is, if `narrow`, at the next
        level or at a given one."""
        level = self._level + 1 if level is None else level
        if not narrow or level == at.LEVELS:
            self._jump(Ins(op.JUMP_NONE, mask=mask), label)
            return
        self._jump(Ins(op.NARROW, dest=level, mask=mask), label)
        self._level = level

    def drop_lanes_that_left(self, item: ir.Item) -> None:
        """Some lanes have left an enclosing construct inside `item`: go on with those still in the innermost one."""
        if id(item) not in self._uniformity.leaving:
            return
        enclosing = next(each for each in reversed(self._enclosing) if each.mask is not None)
        remaining = enclosing.mask
        assert remaining is not None
        # Without lanes, a loop that waits for something stored in what follows would never end.
        label = enclosing.exit if enclosing.iterating is None else enclosing.next
        assert label is not None
        self._jump_unless_any(remaining, label, id(item) in self._tail_lanes.after)
        if self.mask is not remaining:
            self.mask = remaining if self.mask is None else self._intersect(self.mask, remaining)

    # ---- constructs ----

    def branch(self, item: ir.If, region: EmitRegion) -> None:
        if id(item) in self._uniformity.divergent:
            self._divergent_branch(item, region)
            return
        outer, level = self.mask, self._level
        orelse, end = Label(), Label()
        self._jump(Ins(op.JUMP_ZERO, b=self._operands.lane0(item.condition)), orelse)
        region(item.then)
        self.mask = outer
        if item.orelse.items:
            self._jump(Ins(op.JUMP), end)
            self._level = level
            self._place(orelse, level)
            region(item.orelse)
            self.mask = outer
            self._place(end, level)
        else:
            self._place(orelse, level)

    def _divergent_branch(self, item: ir.If, region: EmitRegion) -> None:
        """Emit both arms, one after the other, each under its mask."""
        outer, level = self.mask, self._level
        orelse, end = Label(), Label()
        condition = self._operands.all_lanes(item.condition)
        self.mask = condition if outer is None else self._intersect(outer, condition)
        self._jump_unless_any(self.mask, orelse, id(item.then) in self._tail_lanes.inside)
        region(item.then)
        self._place(orelse, level)
        if item.orelse.items:
            self.mask = self._complement(item.condition, outer)
            self._jump_unless_any(self.mask, end, id(item.orelse) in self._tail_lanes.inside)
            region(item.orelse)
            self._place(end, level)
        self.mask = outer

    def loop(self, loop: ir.Loop, region: EmitRegion) -> None:
        outer, level = self.mask, self._level
        next_, top = Label(), Label()
        loop_ = _Enclosing(loop, Label(), next_)
        narrow = id(loop) in self._tail_lanes.inside
        if id(loop) in self._uniformity.divergent:
            loop_.inside = self.mask = self.copy_of_mask()
            if narrow:
                self._jump_unless_any(loop_.inside, loop_.exit, narrow)
        own = self._level
        self._enclosing.append(loop_)
        start = self._code.here
        self._place(top, own)
        region(loop.header)
        self._restore(own)
        if loop.condition is not None:
            self._stay_if(loop.condition, loop_)
        if loop_.inside is not None:
            self._jump_unless_any(loop_.inside, loop_.exit, narrow and own > level, own)
        if id(loop) in self._uniformity.skipping:
            loop_.iterating = self.mask = self.copy_of_mask()
        region(loop.body)
        self._place(next_, own)
        self.mask = loop_.inside or outer
        region(loop.continuing)
        self._restore(own)
        if loop.break_if is not None:
            self._leave_if(loop.break_if, loop_)
        awaited = deciding_atomics(loop) if self._has_atomics else ()
        waits = bool(awaited) and not retries(loop)
        self.waits |= waits and waits_in_storage(loop, awaited, self._operands.accesses)
        self._jump(Ins(op.JUMP, e=len(self.loops), mask=1 if waits else -1), top)
        self._code.loops.append((start, self._code.here - 1))
        self.loops.append((self._spans[id(loop)], awaited))
        self._place(loop_.exit, level)
        self._enclosing.pop()
        self.mask = outer

    def _stay_if(self, condition: Value, loop: _Enclosing) -> None:
        if condition.uniform:
            self._jump(Ins(op.JUMP_ZERO, b=self._operands.lane0(condition)), loop.exit)
        else:
            assert loop.inside is not None
            both = op.scalar_opcodes()["and_bool"]
            self._code.add(Ins(both, dest=loop.inside, a=loop.inside, b=self._operands.all_lanes(condition)))

    def _leave_if(self, condition: Value, loop: _Enclosing) -> None:
        if condition.uniform:
            again = Label()
            self._jump(Ins(op.JUMP_ZERO, b=self._operands.lane0(condition)), again)
            self._jump(Ins(op.JUMP), loop.exit)
            self._place(again, self._level)
        else:
            assert loop.inside is not None
            self._clear(loop.inside, self._operands.all_lanes(condition))

    def scope(self, scope: ir.Scope, region: EmitRegion) -> None:
        outer, level = self.mask, self._level
        scope_ = _Enclosing(scope, Label())
        if id(scope) in self._uniformity.divergent:
            scope_.inside = self.mask = self.copy_of_mask()
        self._enclosing.append(scope_)
        region(scope.body)
        self._place(scope_.exit, level)
        self._enclosing.pop()
        self.mask = outer

    def leave(self, jump: ir.Jump) -> None:
        """Jump, or clear the active lanes in the masks of all constructs that they leave."""
        index = next(i for i, each in enumerate(self._enclosing) if each.item is jump.target.node)
        target = self._enclosing[index]
        if id(jump) not in self._uniformity.divergent:
            label = target.next if jump.kind == "continue" else target.exit
            assert label is not None
            self._jump(Ins(op.JUMP), label)
            return
        mask = self.mask
        assert mask is not None
        inner = self._enclosing[index + 1 :]
        masks = [*target.masks(jump.kind), *(each for enclosing in inner for each in enclosing.masks("exit"))]
        # The mask that says which lanes leave may be one of these, and is cleared last.
        for each in sorted(masks, key=lambda each: each is mask):
            self._clear(each, mask)

    def _clear(self, mask: Reg, lanes: Reg) -> None:
        self._code.add(Ins(op.BLEND, dest=mask, a=self._operands.constant(0), mask=lanes))
