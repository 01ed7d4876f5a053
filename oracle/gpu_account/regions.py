"""Divide a shader's text into regions, in each of which all places are executed by the same invocations together.

A region begins where the invocations that execute it may be others than before: at the start of a block, after a
statement with blocks, at the head of a loop and its continuing part, and right of `&&` and `||`. A probe at its start
therefore tells how often each place in it was executed, and by whom.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import field

from ...sim.fast_dataclass import entity, frozen
from ...sim.wgsl import typed
from ...sim.wgsl import types as t
from ...sim.wgsl.source import Span
from .components import components, element, pieces
from .flops import flops, is_float
from .instruction_classes import instructions

_MEMORY = ("workgroup", "storage", "uniform", "immediate")
_OWN = ("function", "private")
_TEXEL = re.compile(r"([rgba]+)(8|16|32)[a-z]+")


@frozen
class Place:
    """An access, barrier or operation as written.

    `kind`: load, store, atomic, barrier, subgroup, op or instruction. Accesses have a space, a variable and
    `bytes_per_lane`. A value of several scalars or vectors takes several accesses, numbered by `part`; `offset` is that
    of the part in it.
    """

    kind: str
    span: Span
    space: str | None = None
    variable: str | None = None
    bytes_per_lane: int = 0
    part: int = 0
    offset: int = 0
    flops: int = 0
    name: str | None = None

    @property
    def key(self) -> tuple[str, int, int, int]:
        return self.kind, self.span.start, self.span.end, self.part

    @property
    def takes_turns(self) -> bool:
        """Whether it reads and writes atomically."""
        return self.kind == "atomic" and self.name not in ("atomicLoad", "atomicStore", "workgroupUniformLoad")


@frozen
class Anchor:
    """Where a probe is inserted.

    `how`: "open" (after the first brace of a block), "after" (a statement), "condition" (before an expression that is a
    condition), "turn" (at the head of a loop) or "update" (of a `for`). `span` is that of the block, statement,
    expression or loop.
    """

    how: str
    span: Span


@entity
class Region:
    """A region with its places and instructions, each as often as one execution of the region executes it."""

    anchor: Anchor
    places: list[Place] = field(default_factory=list[Place])
    instructions: Counter[tuple[str, Span]] = field(default_factory=Counter[tuple[str, Span]])


def find_regions(pipeline: typed.Pipeline, texel_bytes: Mapping[str, int], fused: bool) -> list[Region]:
    """Return the regions of all functions that the entry point reaches. `texel_bytes`: of each texture, by name."""
    walk = _Walk(pipeline, texel_bytes, fused)
    for function in typed.reached(pipeline.entry):
        assert function.body is not None
        walk.block(function.body, _returns_early(function.body), function.body.body)
    return walk.regions


def is_constant(expr: typed.Expr) -> bool:
    """Return whether an expression has constants and overrides only, so that its value is known before the run."""
    match expr:
        case typed.Const() | typed.OverrideRef():
            return True
        case typed.Construct() | typed.Convert() | typed.Member() | typed.Swizzle() | typed.Index():
            return all(map(is_constant, typed.children(expr)))
        case typed.ShortCircuit():
            return all(map(is_constant, typed.children(expr)))
        case typed.BuiltinCall(args=args):
            return bool(args) and all(map(is_constant, args)) and not has_effects(expr)
        case _:
            return False


def has_effects(call: typed.BuiltinCall) -> bool:
    """Return whether a builtin does more than compute a value of its arguments."""
    starts = ("atomic", "subgroup", "quad", "texture", "storageBarrier", "workgroup", "arrayLength")
    return call.builtin.name.startswith(starts)


def start_of(block: typed.Block) -> Anchor:
    """Return where a block begins: after its brace, or before the condition of an `else if`, which has none."""
    first = block.body[0] if block.body else None
    if isinstance(first, typed.If) and first.span == block.span:
        return Anchor("condition", first.condition.span)
    return Anchor("open", block.span)


def _returns_early(body: typed.Block) -> bool:
    """Return whether a function has a `return` other than its last statement."""
    returns = [s for s in typed.statements(body) if isinstance(s, typed.Return)]
    return bool(returns) and (len(returns) > 1 or body.body[-1] is not returns[0])


class _Walk:
    """Walks the statements and expressions of a pipeline. `_early`: whether returns of this function are jumps."""

    def __init__(self, pipeline: typed.Pipeline, texel_bytes: Mapping[str, int], fused: bool) -> None:
        self.regions: list[Region] = []
        self._pipeline = pipeline
        self._texel_bytes = texel_bytes
        self._fused = fused
        self._pointers: dict[typed.Variable, typed.Expr] = {}

    def _begin(self, how: str, span: Span) -> Region:
        self.regions.append(Region(Anchor(how, span)))
        return self.regions[-1]

    # ---- statements ----

    def block(self, block: typed.Block, early: bool, body: list[typed.Stmt]) -> None:
        """Walk the body of a function."""
        self._early = early
        self._list(body, self._begin("open", block.span))

    def _list(self, body: list[typed.Stmt], region: Region) -> None:
        ended: typed.Stmt | None = None  # the statement with blocks right before, after which a region begins
        for statement in body:
            if ended is not None:
                region = self._begin("after", ended.span)
            ended = statement if self._statement(statement, region) else None

    def _statement(self, statement: typed.Stmt, region: Region) -> bool:
        """Walk a statement that begins in a region. Return whether it has blocks."""
        match statement:
            case typed.Block(body=body):
                if body and isinstance(body[-1], typed.Loop) and body[-1].span == statement.span:  # a `for`
                    for inner in body:
                        self._statement(inner, region)
                else:
                    self._list(body, self._begin("open", statement.span))
                return True
            case typed.If():
                self._if(statement, region)
                return True
            case typed.Switch(selector=selector, cases=cases):
                self._expression(selector, region)
                self._control(region, selector.span, selector)
                for case in cases:
                    self._list(case.body.body, self._begin("open", case.body.span))
                return True
            case typed.Loop():
                self._loop(statement)
                return True
            case _:
                self._simple(statement, region)
                return False

    def _if(self, statement: typed.If, region: Region) -> None:
        self._expression(statement.condition, region)
        self._control(region, statement.condition.span, statement.condition)
        self._list(statement.then.body, self._begin("open", statement.then.span))
        if statement.orelse is not None:
            start = start_of(statement.orelse)
            self._list(statement.orelse.body, self._begin(start.how, start.span))

    def _loop(self, loop: typed.Loop) -> None:
        head = self._begin("turn", loop.span)
        head.instructions["control", (loop.condition or loop).span] += 1
        if loop.condition is not None:
            self._expression(loop.condition, head)
        self._list(loop.body.body, self._begin("open", loop.body.span))
        if loop.continuing is not None:
            body = loop.continuing.body
            is_update = len(body) == 1 and body[0].span == loop.continuing.span
            how, span = ("update", loop.span) if is_update else ("open", loop.continuing.span)
            region = self._begin(how, span)
            self._list(body, region)
            if loop.break_if is not None:
                if body and isinstance(body[-1], typed.Block | typed.If | typed.Switch | typed.Loop):
                    region = self._begin("condition", loop.break_if.span)
                self._expression(loop.break_if, region)

    def _simple(self, statement: typed.Stmt, region: Region) -> None:
        match statement:
            case typed.LetDecl(var=var, init=init) if isinstance(init.type, t.Pointer):
                self._pointers[var] = init
                self._expression(init, region)
            case typed.Eval(expr=typed.Load(ref=ref, type=t.Array() | t.Struct())):
                self._expression(ref, region)  # not loaded, since only parts of it could be
            case typed.Assign(target=target, value=value):
                self._expression(target, region)
                self._expression(value, region)
                self._store(target, region)
            case typed.CompoundAssign(target=target, builtin=builtin, value=value, result=result):
                self._expression(target, region)
                self._expression(value, region)
                assert isinstance(target.type, t.Reference)
                self._access("load", target, target.span, target.type.store, region)
                self._operation(builtin.name, [target.type.store, value.type], result, statement.span, region)
                self._store(target, region)
            case typed.Break() | typed.Continue():
                region.instructions["control", statement.span] += 1
            case typed.Return(value=value):
                if value is not None:
                    self._expression(value, region)
                if self._early:
                    region.instructions["control", statement.span] += 1
            case _:
                for operand in typed.operands(statement):
                    self._expression(operand, region)

    def _control(self, region: Region, span: Span, condition: typed.Expr) -> None:
        if not is_constant(condition):
            region.instructions["control", span] += 1

    def _store(self, target: typed.Expr, region: Region) -> None:
        if isinstance(target, typed.Swizzle) and len(target.components) > 1:  # a store for each component
            assert isinstance(target.type, t.Reference)
            assert isinstance(target.type.store, t.Vec)
            for _ in target.components:
                self._access("store", target, target.span, target.type.store.elem, region)
        else:
            assert isinstance(target.type, t.Reference)
            self._access("store", target, target.span, target.type.store, region)

    # ---- expressions ----

    def _expression(self, expr: typed.Expr, region: Region) -> None:
        if isinstance(expr, typed.ShortCircuit):
            self._short_circuit(expr, region)
            return
        for child in typed.children(expr):
            self._expression(child, region)
        match expr:
            case typed.Load(ref=ref):
                self._access("load", ref, expr.span, expr.type, region)
            case typed.Convert(arg=arg) if element(arg.type) != element(expr.type) and not is_constant(arg):
                region.instructions["conversion", expr.span] += components(expr.type)
            case typed.BuiltinCall():
                self._builtin(expr, region)
            case _:
                pass

    def _short_circuit(self, expr: typed.ShortCircuit, region: Region) -> None:
        self._expression(expr.left, region)
        decided = self._pipeline.fold(expr.left)
        if isinstance(decided, typed.Const):
            if bool(decided.value) == (expr.op == "&&"):
                self._expression(expr.right, region)
        elif is_free(expr.right):
            self._expression(expr.right, region)
        else:
            region.instructions["control", expr.span] += 1
            self._expression(expr.right, self._begin("condition", expr.right.span))

    def _operation(self, name: str, arguments: list[t.Type], result: t.Type, span: Span, region: Region) -> None:
        if count := flops(name, arguments, result):
            region.places.append(Place("op", span, flops=count, name=name))
        for kind, number in instructions(name, arguments, result, self._fused).items():
            region.instructions[kind, span] += number

    def _builtin(self, call: typed.BuiltinCall, region: Region) -> None:
        name, span = call.builtin.name, call.span
        if name.startswith(("subgroup", "quad")):
            self._add(region, Place("subgroup", span, name=name), "subgroup")
        elif name.endswith("Barrier"):
            self._add(region, Place("barrier", span, name=name), "barrier")
        elif name == "workgroupUniformLoad":
            self._add(region, Place("barrier", span, name=name), "barrier")
            self._add(region, Place("barrier", span, name=name), "barrier")
            kind = "atomic" if isinstance(_pointed_at(call.args[0]), t.Atomic) else "load"
            self._access(kind, call.args[0], span, call.type, region, name)
        elif name.startswith("atomic"):
            self._access("atomic", call.args[0], span, _pointed_at(call.args[0]), region, name)
        elif name in ("textureLoad", "textureStore"):
            self._texel(call, region)
        elif not has_effects(call) and not is_constant(call):
            self._operation(name, [arg.type for arg in call.args], call.type, span, region)

    def _texel(self, call: typed.BuiltinCall, region: Region) -> None:
        texture, kind = call.args[0], "load" if call.builtin.name == "textureLoad" else "store"
        if isinstance(texture, typed.VarRef | typed.ValueRef):
            assert isinstance(texture.var.type, t.Texture)
            width = _texel_bytes(texture.var.type.format) or self._texel_bytes.get(texture.var.name, 0)
            place = Place(kind, call.span, "texture", texture.var.name, width, name=call.builtin.name)
            self._add(region, place, f"texture_{kind}")

    def _access(
        self, kind: str, ref: typed.Expr, span: Span, type_: t.Type, region: Region, name: str | None = None
    ) -> None:
        variable = self._root(ref)
        if variable is None or variable.space not in _MEMORY:
            return
        instruction = "atomic" if kind == "atomic" else f"{variable.space}_{kind}"
        for part, (offset, width) in enumerate(pieces(type_)):
            place = Place(kind, span, variable.space, variable.name, width, part, offset, name=name)
            self._add(region, place, instruction)

    def _add(self, region: Region, place: Place, instruction: str) -> None:
        region.places.append(place)
        region.instructions[instruction, place.span] += 1

    def _root(self, expr: typed.Expr) -> typed.Variable | None:
        """Return the variable that a reference or pointer leads to; None for a pointer that is a parameter."""
        while not isinstance(expr, typed.VarRef):
            if isinstance(expr, typed.ValueRef):
                if expr.var not in self._pointers:
                    return None
                expr = self._pointers[expr.var]
            else:
                children = typed.children(expr)
                if not children:
                    return None
                expr = children[0]
        return expr.var


def is_free(expr: typed.Expr) -> bool:
    """Return whether an expression takes no branch right of `&&` or `||`: no call, float result or shared memory."""
    for part in typed.expressions(expr):
        match part:
            case typed.Call():
                return False
            case typed.BuiltinCall():
                if has_effects(part) or is_float(part.type):
                    return False
            case typed.Load(ref=ref) if isinstance(ref.type, t.Reference) and ref.type.space not in _OWN:
                return False
            case typed.ShortCircuit(right=right) if not is_free(right):
                return False
            case _:
                pass
    return True


def _pointed_at(expr: typed.Expr) -> t.Type:
    assert isinstance(expr.type, t.Pointer)
    return expr.type.store


def _texel_bytes(format_: str | None) -> int:
    """Return the bytes of a texel of a storage texture; 0 where the format is not part of the type."""
    if not format_:
        return 0
    parts = _TEXEL.fullmatch(format_)
    return len(parts[1]) * int(parts[2]) // 8 if parts else 4  # formats of unequal channels share one word
