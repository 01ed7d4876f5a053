"""Lowering of statements: control flow, variables and functions.

User functions are inlined (WGSL has no recursion). Composites become scalars; pointers and references become `View`s,
which are known while lowering. `expressions` lowers expressions, `accesses` loads and stores.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..fast_dataclass import entity
from ..ir import ir
from ..ir.builder import Builder
from ..ir.ir import Block, Target, Value
from ..ir.lowered import Lowered
from ..ir.passes import ALL, Passes
from ..ir.rounding import Rounding
from ..ir.trace_points import check_name
from ..wgsl import typed
from ..wgsl import types as t
from ..wgsl.diagnostics import fail
from ..wgsl.source import Span
from ..wgsl.typed import Variable
from .buffer_views import narrowed
from .expressions import Expressions
from .views import View

MAX_STATEMENTS = 1 << 17  # after inlining; a limit of the simulator, against exponential inlining


@entity
class _Frame:
    """One inlined call. `exit` None: the only return is the last statement."""

    function: typed.Function
    results: list[Value] | None = None
    block: Block | None = None
    exit: Target | None = None


def lower(
    pipeline: typed.Pipeline,
    rounding: Rounding,
    *,
    checks: bool,
    inspects: bool,
    fold_floats: bool = True,
    trace: str | None = None,
    policy: str = "clamp",
    poisoned: frozenset[int] = frozenset(),
    widens: bool = False,
    passes: Passes = ALL,
) -> Lowered:
    """Lower a pipeline for a device with this rounding.

    `checks`: check indices that are kept in bounds. `inspects`: check operations that can go wrong. `fold_floats`: fold
    operations on float constants. `trace`: a variable whose writes are noted. `policy`: what an index out of bounds
    does (clamp, zero or wrap), where lowering decides it: with several indices, and in function and private variables.
    `poisoned`: offsets in the source of shuffles that return poison for lanes that are not active. `widens`:
    probes see stores to components as stores to vectors. `passes`: the optimizations that are on.

    Raises `WgslError` for what the simulator cannot run.
    """
    if trace is not None:
        check_name(trace, pipeline)
    lowering = _Lowering(pipeline, rounding, checks, inspects, Builder(fold_floats, passes), trace, policy, poisoned)
    lowering.widens = widens
    lowering.entry()
    builder, points = lowering.builder, lowering.tracer.points
    return Lowered(
        *(builder, builder.root, lowering.accesses, lowering.sites, lowering.spans, lowering.inspects, points)
    )


class _Lowering(Expressions):
    def __init__(
        self,
        pipeline: typed.Pipeline,
        rounding: Rounding,
        checks: bool,
        inspects: bool,
        builder: Builder,
        trace: str | None,
        policy: str,
        poisoned: frozenset[int],
    ) -> None:
        super().__init__(pipeline, rounding, checks, inspects, builder, trace, policy, poisoned)
        self._frames: list[_Frame] = []
        self._loops: list[Target] = []  # targets of `continue`, innermost last
        self._breaks: list[Target] = []  # targets of `break`, innermost last
        self._private: list[Block] = []
        self._statement_count = 0

    def entry(self) -> None:
        """Lower the entry point."""
        for variable in self.pipeline.globals:
            if variable.space == "private":
                self._declare(variable, self.pipeline.store_types[variable], variable.init)
                self._private.append(self._block(variable))
        function = self.pipeline.entry
        self.tracer.function = function.name
        for parameter in function.params:
            self._name(parameter, self.entry_input(parameter))
        self._body(function)

    # ---- functions ----

    def call(self, expr: typed.Call) -> list[Value]:
        """See `Expressions.call`."""
        function = expr.function
        self._count(expr.span)
        if function.result is not None:
            self.fits(function.result, expr.span)
        arguments = [self.argument(a) for a in expr.args]
        outer, self.tracer.function = self.tracer.function, function.name
        for parameter, value in zip(function.params, arguments, strict=True):
            self._name(parameter, narrowed(value, parameter.type) if isinstance(value, View) else value)
        result = self._body(function)
        self.tracer.function = outer
        return result

    def _name(self, var: Variable, value: list[Value] | View) -> None:
        """Bind a `let` or a parameter to a value or a pointer."""
        if isinstance(value, View):
            self.views[var] = value
        else:
            self.values[var] = value
            self.tracer.begun(var, value, var.span)

    def _body(self, function: typed.Function) -> list[Value]:
        assert function.body is not None
        frame = _Frame(function)
        self._frames.append(frame)
        loops, self._loops, breaks, self._breaks = self._loops, [], self._breaks, []
        if _returns_early(function.body):
            result = self._scoped_body(function, frame)
        else:
            self._statements(function.body.body)
            result = frame.results or []
        self._loops, self._breaks = loops, breaks
        self._frames.pop()
        return result

    def _scoped_body(self, function: typed.Function, frame: _Frame) -> list[Value]:
        builder = self.builder
        if function.result is not None:
            frame.block = builder.block(t.kinds(function.result), function.name)
            for slot in frame.block.slots:
                builder.set(slot, builder.const(slot.kind, 0))
        frame.exit = Target()
        before = builder.changes
        outer, builder.here = builder.here, builder.region()
        assert function.body is not None
        self._statements(function.body.body)
        scope = ir.Scope(builder.here)
        builder.here = outer
        builder.append(scope)
        frame.exit.node = scope
        builder.merge(before)
        return [builder.get(slot) for slot in frame.block.slots] if frame.block else []

    # ---- statements ----

    def _statements(self, statements: Iterable[typed.Stmt]) -> bool:
        """Lower statements in order. Returns False if what follows them is unreachable."""
        return all(map(self._statement, statements))

    def _count(self, span: Span) -> None:
        self._statement_count += 1
        if self._statement_count > MAX_STATEMENTS:
            raise fail("limit", f"inlined, the calls make more than {MAX_STATEMENTS} statements", span)

    def _statement(self, statement: typed.Stmt) -> bool:
        self._count(statement.span)
        self.builder.span = statement.span
        match statement:
            case typed.Assign(target=target, value=value):  # the most frequent
                self._assign(target, value)
            case typed.LetDecl(var=var, init=init):
                self._bind(var, init)
            case typed.VarDecl(var=var, init=init):
                self._declare(var, var.type, init)
            case typed.CompoundAssign():
                self._compound(statement)
            case typed.Eval(expr=expr):
                self.evaluate(expr)
            case typed.Block(body=body):
                return self._statements(body)
            case typed.If():
                return self._if(statement)
            case typed.Switch():
                self._switch(statement)
            case typed.Loop():
                self._loop(statement)
            case typed.Break():
                self._jump("exit", self._breaks[-1], statement.span)
                return False
            case typed.Continue():
                self._jump("continue", self._loops[-1], statement.span)
                return False
            case typed.Return():
                return self._return(statement)
            case _:
                name = type(statement).__name__.lower()
                raise fail("unsupported", f"the simulator cannot run a {name} statement", statement.span)
        return True

    def _declare(self, var: Variable, type_: t.Type, init: typed.Expr | None) -> None:
        builder = self.builder
        if self.is_large(type_):
            return self._declare_table(var, type_, init)
        kinds = t.kinds(type_)
        initial = self.value(init) if init is not None else [builder.const(kind, 0) for kind in kinds]
        block = builder.block(kinds, var.name)
        for slot, value in zip(block.slots, initial, strict=True):
            builder.set(slot, value)
        self.views[var] = View(var, type_, block=block)
        self.tracer.begun(var, initial, var.span)

    def _declare_table(self, var: Variable, type_: t.Type, init: typed.Expr | None) -> None:
        self.fits_in_registers(type_, var)
        builder, kinds = self.builder, t.kinds(type_)
        block = builder.table(kinds[0], len(kinds), var.name)
        zero = builder.const(block.slots[0].kind, 0)
        builder.set(block.slots[0], zero)
        view = self.views[var] = View(var, type_, block=block)
        self.tracer.begun(var, [zero] * len(kinds), var.span)
        if init is not None:
            self._assign_value(view, init, var.span)

    def _assign_value(self, view: View, value: typed.Expr, span: Span) -> None:
        """Store a value; copy a large one from variable to variable in a loop, which takes few instructions."""
        source = self.view(value.ref) if isinstance(value, typed.Load) else None
        if source is not None and self.copies_in_loop(view, source):
            self.copy(view, source, span)
        else:
            self.store(view, self.value(value) if source is None else self.load(source, value.span), span)

    def _bind(self, var: Variable, init: typed.Expr) -> None:
        self._name(var, self.argument(init))

    def _assign(self, target: typed.Expr, value: typed.Expr) -> None:
        if isinstance(target, typed.Swizzle) and len(target.components) > 1:
            view = self.view(target.base)
            for component, part in zip(target.components, self.value(value), strict=True):
                self.store(view.component(component), [part], target.span)
            return
        self._assign_value(self.view(target), value, target.span)

    def _compound(self, statement: typed.CompoundAssign) -> None:
        target = statement.target
        view = self.view(target)
        assert isinstance(target.type, t.Reference)
        old = self.load(view, target.span)
        new = self.apply(
            statement.builtin,
            [target.type.store, statement.value.type],
            [old, self.value(statement.value)],
            statement.result,
            statement.span,
        )
        self.store(view, new, target.span)

    def _return(self, statement: typed.Return) -> bool:
        frame = self._frames[-1]
        results = self.value(statement.value) if statement.value is not None else []
        if frame.exit is None:
            frame.results = results
            return False
        if frame.block is not None:
            for slot, part in zip(frame.block.slots, results, strict=True):
                self.builder.set(slot, part)
        self._jump("exit", frame.exit, statement.span)
        return False

    def _jump(self, kind: str, target: Target, span: Span) -> None:
        self.builder.tally_computed("control", span)
        if kind == "continue":
            target.continues += 1
        else:
            target.jumps += 1
        self.builder.append(ir.Jump(kind, target))

    # ---- control flow ----

    def _if(self, statement: typed.If) -> bool:
        condition = self.value(statement.condition)[0]
        orelse = statement.orelse.body if statement.orelse else []
        self._count_condition(statement.condition, condition)
        return self._branch(condition, statement.condition.span, statement.then.body, orelse)

    def _count_condition(self, condition: typed.Expr, value: Value) -> None:
        if not self.is_known(condition):
            self.builder.tally_computed("control", condition.span, value)

    def _branch(self, condition: Value, span: Span, then: list[typed.Stmt], orelse: list[typed.Stmt]) -> bool:
        if condition.op == "const":
            return self._statements(then if condition.imm else orelse)
        self.branch(condition, lambda: self._statements(then), lambda: self._statements(orelse), span)
        return True

    def _switch(self, statement: typed.Switch) -> None:
        builder = self.builder
        selector = self.value(statement.selector)[0]
        self._count_condition(statement.selector, selector)
        target = Target()
        self._breaks.append(target)
        before = builder.changes
        outer, builder.here = builder.here, builder.region()
        kind = selector.kind
        conditions: list[Value] = []
        for case in statement.cases:
            matches = [builder.op(f"eq_{kind}", selector, builder.const(kind, v)) for v in case.values]
            condition = builder.const("bool", False)
            for match_ in matches:
                condition = builder.op("or_bool", condition, match_)
            conditions.append(condition)
        default = next((i for i, c in enumerate(statement.cases) if c.default), None)
        if default is not None:
            other = builder.const("bool", False)
            for i, condition in enumerate(conditions):
                if i != default:
                    other = builder.op("or_bool", other, condition)
            conditions[default] = builder.op("lnot_bool", other)
        for case, condition in zip(statement.cases, conditions, strict=True):
            if not self._branch(condition, statement.selector.span, case.body.body, []):
                break
        scope = ir.Scope(builder.here, is_switch=True)
        builder.here = outer
        builder.append(scope)
        target.node = scope
        self._breaks.pop()
        builder.merge(before)

    def _loop(self, statement: typed.Loop) -> None:
        builder = self.builder
        target = Target()
        before = builder.changes
        outer = builder.here
        header = builder.here = builder.region(loop=True)
        builder.tally_computed("control", (statement.condition or statement).span)
        builder.changed(slot for block in self._assigned(statement) for slot in block.slots)
        condition = self.value(statement.condition)[0] if statement.condition else None
        body = builder.here = builder.region(parent=header)
        first_of_body = builder.last_id
        self._loops.append(target)
        self._breaks.append(target)
        before_body = builder.changes
        goes_on = self._statements(statement.body.body) or target.continues > 0
        continuing = builder.here = builder.region(parent=body)
        continuing.hidden_after = first_of_body if target.continues else None
        builder.changed(builder.changed_since(before_body))
        self._loops.pop()
        if statement.continuing and goes_on:
            self._statements(statement.continuing.body)
        break_if = self.value(statement.break_if)[0] if statement.break_if and goes_on else None
        self._breaks.pop()
        builder.here = outer
        loop = ir.Loop(header, condition, body, continuing, break_if)
        self.spans[id(loop)] = statement.span
        builder.append(loop)
        target.node = loop
        builder.merge(before)

    def _assigned(self, loop: typed.Loop) -> set[Block]:
        """Return the variables from before a loop that an iteration may change."""
        found: set[Block] = set()
        parts = [loop.body] if loop.continuing is None else [loop.body, loop.continuing]
        for statement in (s for part in parts for s in typed.statements(part)):
            if isinstance(statement, typed.LetDecl) and isinstance(statement.var.type, t.Pointer):
                found |= self._roots(statement.init)  # so there is no need to find writes through it
            if isinstance(statement, (typed.Assign, typed.CompoundAssign)):
                found |= self._roots(statement.target)
            elif isinstance(statement, typed.LetDecl) and isinstance(statement.init.type, t.Pointer):
                found |= self._roots(statement.init)  # writes through it change a variable from before the loop
            for operand in typed.operands(statement):
                found |= self._passed(operand)
        for operand in typed.operands(loop):
            found |= self._passed(operand)
        return found

    def _passed(self, expr: typed.Expr) -> set[Block]:
        """Return the variables that the calls in an expression may change."""
        found: set[Block] = set()
        for part in typed.expressions(expr):
            if isinstance(part, typed.Call):
                found |= set(self._private)
                for argument in part.args:
                    if isinstance(argument.type, t.Pointer):
                        found |= self._roots(argument)
        return found

    def _roots(self, expr: typed.Expr) -> set[Block]:
        """Return the function or private variable at the root of a path, if it exists already."""
        while not isinstance(expr, (typed.VarRef, typed.ValueRef)):
            expr = typed.children(expr)[0]
        view = self.views.get(expr.var)
        return {view.block} if view is not None and view.block else set()

    def _block(self, var: Variable) -> Block:
        block = self.views[var].block
        assert block is not None
        return block


def _returns_early(body: typed.Block) -> bool:
    """Whether some return is not the last statement of the function."""
    returns = sum(isinstance(s, typed.Return) for s in typed.statements(body))
    last = body.body[-1] if body.body else None
    return returns > (1 if isinstance(last, typed.Return) else 0)
