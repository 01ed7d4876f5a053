"""The invariants of ir. Tests verify them after every pass.

A value is used only where it has been computed on every path. Values and variables have the kinds that the table of
operations requires. A variable is written before it is read. Jumps leave a construct that contains them.
"""

from __future__ import annotations

import os
from dataclasses import field

from ..fast_dataclass import entity
from ..scalar import OPS
from ..wgsl.diagnostics import Crash
from . import ir
from .ir import Region, Slot, Value
from .lowered import Lowered

ON = "BANKSHOT_VERIFY"  # environment variable: "1" verifies every program
_SOURCES = frozenset(("const", "input", "length", "get"))


def checked(lowered: Lowered) -> None:
    """Verify a program if the environment asks for it. Raises `Crash`."""
    if os.environ.get(ON) == "1":
        verify(lowered.body)


def verify(body: Region) -> None:
    """Raise `Crash` if a program breaks an invariant."""
    _Verifier().region(body, _Scope())


@entity
class _Scope:
    """What is known at a position: computed values, written variables, enclosing constructs."""

    values: set[Value] = field(default_factory=set[Value])
    slots: set[Slot] = field(default_factory=set[Slot])
    around: tuple[ir.Loop | ir.Scope, ...] = ()

    def inside(self, *constructs: ir.Loop | ir.Scope) -> _Scope:
        return _Scope(set(self.values), set(self.slots), (*self.around, *constructs))


class _Verifier:
    def region(self, region: Region, scope: _Scope) -> None:
        for item in region.items:
            self._item(item, region, scope)

    def _item(self, item: ir.Item, region: Region, scope: _Scope) -> None:
        match item:
            case Value():
                self._value(item, region, scope)
            case ir.Set(slot=slot, value=value):
                self._use(value, slot.kind, item, scope)
                scope.slots.add(slot)
            case ir.Pick(result=result, block=block, index=index):
                self._use(index, "u32", item, scope)
                self._written(block.slots, item, scope)
                scope.values.add(result)
            case ir.Put(block=block, index=index, value=value):
                self._use(index, "u32", item, scope)
                self._use(value, value.kind, item, scope)
                kinds = {slot.kind for slot in block.slots}  # a struct has several
                self._expect(value.kind in kinds, item, f"uses %{value.id}, of kind {value.kind}, which no slot has")
            case ir.Load() | ir.Store() | ir.Atomic() | ir.Check() | ir.Note():
                self._memory(item, scope)
            case ir.Collective(args=args, results=results):
                for each in args:
                    self._use(each, each.kind, item, scope)
                scope.values.update(results)
            case ir.Inspect(result=result, active=True):
                self._use(result, result.kind, item, scope)
            case ir.If(condition=condition, then=then, orelse=orelse):
                self._use(condition, "bool", item, scope)
                self.region(then, scope.inside())
                self.region(orelse, scope.inside())
            case ir.Loop():
                self._loop(item, scope.inside(item))
            case ir.Scope(body=body):
                self.region(body, scope.inside(item))
            case ir.Jump(kind=kind, target=target):
                leaves = target.node in scope.around and (kind == "exit" or isinstance(target.node, ir.Loop))
                self._expect(leaves, item, "does not lead out of what is around it")
            case _:
                pass

    def _loop(self, loop: ir.Loop, scope: _Scope) -> None:
        self.region(loop.header, scope)
        if loop.condition is not None:
            self._use(loop.condition, "bool", loop, scope)
        known: _Scope | None = None  # what an iteration has computed by its first `continue`
        for item in loop.body.items:
            if known is None and _goes_on(item, loop):
                known = scope.inside()
            self._item(item, loop.body, scope)
        known = known or scope
        self.region(loop.continuing, known)
        if loop.break_if is not None:
            self._use(loop.break_if, "bool", loop, known)

    def _value(self, value: Value, region: Region, scope: _Scope) -> None:
        self._expect(value.region is region, value, "is not in the region that it says")
        self._expect(value not in scope.values, value, "is computed twice")
        if value.op == "get":
            self._expect(value.imm.kind == value.kind, value, "has another kind than its variable")
            self._written([value.imm], value, scope)
        elif value.op == "bits":
            self._use(value.args[0], value.args[0].kind, value, scope)
        elif value.op not in _SOURCES:
            row = OPS[value.op]
            if row.result != value.kind or len(row.args) != len(value.args):
                self._expect(row.result == value.kind, value, f"is no {row.result}")
                self._expect(False, value, f"does not have {len(row.args)} operands")
            for argument, kind in zip(value.args, row.args, strict=True):
                self._use(argument, kind, value, scope)
        scope.values.add(value)

    def _memory(self, item: ir.Memory | ir.Note, scope: _Scope) -> None:
        if item.address is not None:
            self._use(item.address, "u32", item, scope)
        match item:
            case ir.Store(values=values) | ir.Note(values=values) | ir.Atomic(args=values):
                for each in values:
                    self._use(each, each.kind, item, scope)
            case _:
                pass
        if isinstance(item, (ir.Load, ir.Atomic)):
            scope.values.update(item.results)

    def _use(self, value: Value, kind: str, item: ir.Item, scope: _Scope) -> None:
        if value in scope.values and value.kind == kind:  # writing the messages would take most of the time
            return
        self._expect(value in scope.values, item, f"uses %{value.id}, which may not have been computed")
        self._expect(value.kind == kind, item, f"uses %{value.id}, of kind {value.kind}, as {kind}")

    def _written(self, slots: list[Slot], item: ir.Item, scope: _Scope) -> None:
        for slot in slots:
            if slot not in scope.slots:
                self._expect(False, item, f"reads {slot.name}, which may not have been written")

    def _expect(self, holds: bool, item: ir.Item, what: str) -> None:
        if not holds:
            name = f"%{item.id} = {item.op}" if isinstance(item, Value) else type(item).__name__
            raise Crash(f"the intermediate program is malformed: {name} {what}")


def _goes_on(item: ir.Item, loop: ir.Loop) -> bool:
    """Whether an item may `continue` a loop."""
    jumps = (each for each in (item, *ir.items(item)) if isinstance(each, ir.Jump))
    return any(jump.kind == "continue" and jump.target.node is loop for jump in jumps)
