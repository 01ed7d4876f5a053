"""The stages of an entry point: what tells lanes behind a guard from lanes that diverge.

A *stage* is a stretch of statements that the same invocations begin. The statements that count are those of the entry
point's body; where all its work lies in one arm of one of them, in an `if`, a `switch` or a call, also those of that
arm, and so on. Work is what other invocations can see: accesses to workgroup memory, storage and textures, barriers and
subgroup operations. A stage ends with a statement that some invocations may not come out of at its end.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...sim.wgsl import typed
from ...sim.wgsl import types as t
from .regions import Anchor, has_effects, start_of

_SHARED = ("workgroup", "storage")
_LEAVES = (typed.Return, typed.Break, typed.Continue)


def find_stages(pipeline: typed.Pipeline) -> list[Anchor]:
    """Return where each stage begins. The first begins with the entry point."""
    search = _Search(pipeline)
    body = pipeline.entry.body
    assert body is not None
    search.arm(Anchor("open", body.span), body.body)
    return search.stages


class _Search:
    def __init__(self, pipeline: typed.Pipeline) -> None:
        self.stages: list[Anchor] = []
        self._pipeline = pipeline
        self._working: dict[typed.Function, bool] = {}

    def arm(self, start: Anchor, body: list[typed.Stmt]) -> None:
        """Add the stages of a list of statements."""
        self.stages.append(start)
        statements = list(self._flat(body))
        busy = [statement for statement in statements if self._works(statement)]
        for number, statement in enumerate(statements):
            descends = busy == [statement] and self._descend(statement)
            last = number == len(statements) - 1
            if (descends or _may_leave(statement)) and not last:
                self.stages.append(Anchor("after", statement.span))

    def _flat(self, body: list[typed.Stmt]) -> Iterator[typed.Stmt]:
        """Iterate over statements; of blocks, and of an `if` that is decided before the shader runs, over the inner."""
        for statement in body:
            match statement:
                case typed.Block(body=inner):
                    yield from self._flat(inner)
                case typed.If(condition=condition, then=then, orelse=orelse):
                    decided = self._pipeline.fold(condition)
                    if isinstance(decided, typed.Const):
                        taken = then if decided.value else orelse
                        yield from self._flat(taken.body if taken else [])
                    else:
                        yield statement
                case _:
                    yield statement

    def _descend(self, statement: typed.Stmt) -> bool:
        """Add the stages of the one arm of a statement that has all its work. Returns whether there is one."""
        own = any(self._expression_works(operand) for operand in typed.operands(statement))
        match statement:
            case typed.If(then=then, orelse=orelse) if not own:
                arms = [arm for arm in (then, orelse) if arm is not None and self._block_works(arm)]
                if len(arms) == 1:
                    self.arm(start_of(arms[0]), arms[0].body)
                return len(arms) == 1
            case typed.Switch(cases=cases) if not own:
                arms = [case.body for case in cases if self._block_works(case.body)]
                if len(arms) == 1:
                    self.arm(Anchor("open", arms[0].span), arms[0].body)
                return len(arms) == 1
            case typed.If() | typed.Switch() | typed.Loop():
                return False
            case _:
                calls = [e for operand in typed.operands(statement) for e in typed.expressions(operand)]
                busy = [e for e in calls if isinstance(e, typed.Call) and self._function_works(e.function)]
                if len(busy) != 1 or any(self._is_work(e) for e in calls) or self._writes(statement):
                    return False
                body = busy[0].function.body
                assert body is not None
                self.arm(Anchor("open", body.span), body.body)
                return True

    # ---- work ----

    def _works(self, statement: typed.Stmt) -> bool:
        if self._writes(statement) or any(self._expression_works(e) for e in typed.operands(statement)):
            return True
        return any(self._block_works(block) for block in typed.blocks(statement))

    def _block_works(self, block: typed.Block) -> bool:
        return any(self._works(statement) for statement in block.body)

    def _expression_works(self, expr: typed.Expr) -> bool:
        return any(
            self._is_work(part) or (isinstance(part, typed.Call) and self._function_works(part.function))
            for part in typed.expressions(expr)
        )

    def _function_works(self, function: typed.Function) -> bool:
        if function not in self._working:
            assert function.body is not None
            self._working[function] = self._block_works(function.body)
        return self._working[function]

    def _writes(self, statement: typed.Stmt) -> bool:
        match statement:
            case typed.Assign(target=target) | typed.CompoundAssign(target=target):
                assert isinstance(target.type, t.Reference)
                return target.type.space in _SHARED
            case _:
                return False

    def _is_work(self, expr: typed.Expr) -> bool:
        match expr:
            case typed.Load(ref=ref):
                return isinstance(ref.type, t.Reference) and ref.type.space in _SHARED
            case typed.BuiltinCall():
                return has_effects(expr) and expr.builtin.name not in _QUERIES
            case _:
                return False


_QUERIES = ("arrayLength", "textureDimensions", "textureNumLayers", "textureNumLevels", "textureNumSamples")


def _may_leave(statement: typed.Stmt) -> bool:
    """Return whether a statement has blocks with a jump in them."""
    inner = [s for block in typed.blocks(statement) for s in typed.statements(block)]
    return any(isinstance(s, _LEAVES) for s in inner)
