"""Uniformity analysis: barriers, derivatives and subgroup operations only in uniform control flow.

Every function becomes a graph, in which an edge means "is uniform only if that is". A `Need` is a place that must be
uniform. It fails where a path leads from it to a node that may be non-uniform; the path is the explanation. A `Summary`
has what a function needs of its callers and does to its arguments.

The analysis runs once for each scope: "workgroup" (the whole draw in other stages) and "subgroup". Spec: WGSL,
"Uniformity".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from ...fast_dataclass import entity, frozen
from .. import typed
from .. import types as t
from ..builtins import BUILTINS, Builtin
from ..diagnostics import Diagnostic, Note, WgslError
from ..source import Span
from .behavior import NEXT, Behavior, behavior_of
from .current_values import Changes, Values
from .static_uses import AllUses, Uses
from .uniformity_graph import (
    Key,
    Need,
    Node,
    Reach,
    Summary,
    after_jump,
    depends_on,
    explained,
    hint_for,
    reach,
    under,
)

# Built-in values of compute shaders that are equal for all invocations in a scope.
_WORKGROUP_INPUTS = frozenset(("workgroup_id", "num_workgroups", "num_subgroups", "subgroup_size"))
UNIFORM_INPUTS = {"workgroup": _WORKGROUP_INPUTS, "subgroup": _WORKGROUP_INPUTS | {"subgroup_id"}}

# Subgroup operations whose result is equal in the whole subgroup.
SUBGROUP_UNIFORM = frozenset(
    f"subgroup{name}"
    for name in ("Add", "All", "And", "Any", "Ballot", "Broadcast", "BroadcastFirst", "Max", "Min", "Mul", "Or", "Xor")
)

# The scope whose analysis checks a triggering rule; "error" is that of barriers, which cannot be filtered.
_SCOPE_OF = {"error": "workgroup", "derivative_uniformity": "workgroup", "subgroup_uniformity": "subgroup"}


# ---- the analysis --------------------------------------------------------------------------------------


def check_uniformity(
    module: typed.Module,
    functions: Sequence[typed.Function],
    uses: AllUses,
    *,
    subgroup_scope: bool = True,
    severity: str = "error",
) -> list[Diagnostic]:
    """Analyse functions, given callees first. Returns warnings and infos; raises `WgslError` for an error.

    `uses`: what they mention; only functions around a call that must be uniform are analysed. `subgroup_scope`: the
    language feature `subgroup_uniformity` is on, so that subgroup operations need uniformity only in their subgroup.
    `severity` (error, warning, info or off) is for what no diagnostic filter covers.
    """
    found: dict[tuple[str, Span], Diagnostic] = {}
    for scope in ("workgroup", "subgroup") if subgroup_scope else ("workgroup",):
        rules = _Rules(scope, subgroup_scope, severity)
        summaries: dict[typed.Function, Summary] = {}
        for function in typed.concerned(functions, {f for f in functions if rules.concern(uses[f])}):
            walk = _Walk(module, function, rules, summaries)
            summaries[function] = walk.summary()
            for diagnostic in walk.failures():
                if diagnostic.severity == "error":
                    raise WgslError(diagnostic)
                assert diagnostic.span is not None
                found.setdefault((diagnostic.code, diagnostic.span), diagnostic)
    return list(found.values())


@frozen
class _Rules:
    """The parameters of one run of the analysis."""

    scope: str
    subgroup_scope: bool
    severity: str

    def apply(self, rule: str) -> bool:
        """Whether this scope checks a triggering rule. Without a subgroup scope, the workgroup scope checks all."""
        return not self.subgroup_scope or _SCOPE_OF[rule] == self.scope

    def concern(self, uses: Uses) -> bool:
        """Whether a function with these uses calls a builtin that this scope checks."""
        rules = (BUILTINS[name].uniform for name in uses.builtins)
        return any(rule is not None and self.apply(rule) for rule in rules)


@entity
class _View:
    """The target of a reference or pointer: its root, a node of the indices, and whether it is all of the root."""

    root: typed.Variable
    node: Node
    full: bool


@entity
class _Exits:
    """The changes since `base` where control leaves a loop or switch, and where it enters the continuing block."""

    base: Values
    breaks: list[Changes] = field(default_factory=list[Changes])
    continues: list[Changes] = field(default_factory=list[Changes])


class _Walk:
    """The analysis of one function in one scope: builds the graph."""

    def __init__(
        self,
        module: typed.Module,
        function: typed.Function,
        rules: _Rules,
        summaries: Mapping[typed.Function, Summary],
    ) -> None:
        self.function = function
        self.rules = rules
        self.summaries = summaries
        self.needs: dict[Need, Node] = {}
        self.called: dict[Need, Note] = {}  # the calls that bring the needs of callees
        self.filters: list[dict[str, str]] = [module.diagnostics, function.diagnostics]
        self.behaviors: dict[int, Behavior] = {}
        self.values = Values()
        self.lets: dict[typed.Variable, Node] = {}
        self.views: dict[typed.Variable, _View] = {}
        self.exits: list[_Exits] = []
        self.result = depends_on()
        self.contents: dict[int, Node] = {}
        self.control = Node(key=None if function.stage else ("control", 0))
        for i, param in enumerate(function.params):
            self._parameter(i, param)
        assert function.body is not None
        self._block(self.control, function.body)
        self._leave()

    def summary(self) -> Summary:
        """Summarize the function for its callers."""
        needs = {need: reach([node]) for need, node in self.needs.items()}
        passed = {need: reach.keys for need, reach in needs.items() if reach.source is None and reach.keys}
        contents = {i: reach([node]) for i, node in self.contents.items()}
        return Summary(passed, reach([self.result]), contents)

    def failures(self) -> Iterator[Diagnostic]:
        """Iterate over the diagnostics of the needs that fail in this function."""
        for need, node in self.needs.items():
            if notes := explained(node):
                message = f"'{need.name}' {need.what}"
                called = (self.called[need],) if need in self.called else ()
                yield Diagnostic(
                    need.severity, "non-uniform", message, need.span, (*called, *notes), hint_for(need, notes)
                )

    # ---- parameters and exits --------------------------------------------------------------------------

    def _parameter(self, i: int, param: typed.Variable) -> None:
        node = Node(key=None if self.function.stage else ("value", i))
        if self.function.stage:
            node.source = self._input(param)
        self.lets[param] = node
        if isinstance(param.type, t.Pointer):
            self.views[param] = _View(param, node, True)
            if param.type.space == "function":
                self.values[param] = Node(key=("contents", i))
                self.contents[i] = depends_on()

    def _input(self, param: typed.Variable) -> Note | None:
        """Explain why an entry point's parameter may differ between invocations, or return None."""
        attrs = [m.attrs for m in param.type.members] if isinstance(param.type, t.Struct) else [param.attrs]
        names = [a.get("builtin") for a in attrs]
        uniform = UNIFORM_INPUTS[self.rules.scope] if self.function.stage == "compute" else frozenset[str]()
        if all(name in uniform for name in names):
            return None
        return Note(f"'{param.name}' may differ between invocations", param.span)

    def _leave(self) -> None:
        """Return: the caller sees what pointer parameters point to now."""
        for i, node in self.contents.items():
            node.edges.append(self.values[self.function.params[i]])

    # ---- statements ------------------------------------------------------------------------------------

    def _behavior(self, stmt: typed.Stmt) -> Behavior:
        if id(stmt) not in self.behaviors:
            self.behaviors[id(stmt)] = behavior_of(stmt)
        return self.behaviors[id(stmt)]

    def _block(self, cf: Node, block: typed.Block) -> Node:
        self.filters.append(block.diagnostics)
        for stmt in block.body:
            cf = self._statement(cf, stmt)
            if "Next" not in self._behavior(stmt):
                break
        self.filters.pop()
        return cf

    def _statement(self, cf: Node, stmt: typed.Stmt) -> Node:
        match stmt:
            case typed.Block():
                return self._block(cf, stmt)
            case typed.VarDecl():
                self.values[stmt.var] = self._value(cf, stmt.init) if stmt.init else cf
            case typed.LetDecl():
                self._let(cf, stmt)
            case typed.Assign() | typed.CompoundAssign():
                self._assign(cf, stmt)
            case typed.Eval():
                self._value(cf, stmt.expr)
            case typed.Return():
                if stmt.value is not None:
                    self.result.edges.append(self._value(cf, stmt.value))
                self._leave()
            case typed.Break():
                self.exits[-1].breaks.append(self.values.since(self.exits[-1].base))
            case typed.Continue():
                loop = next(e for e in reversed(self.exits) if e.continues is not _SWITCH)
                loop.continues.append(self.values.since(loop.base))
            case typed.If() | typed.Switch() | typed.Loop():
                self.filters.append(stmt.diagnostics)
                cf = self._compound(cf, stmt)
                self.filters.pop()
            case _:
                pass
        return cf

    def _compound(self, cf: Node, stmt: typed.If | typed.Switch | typed.Loop) -> Node:
        match stmt:
            case typed.If():
                return self._if(cf, stmt)
            case typed.Switch():
                return self._switch(cf, stmt)
            case typed.Loop():
                return self._loop(cf, stmt)

    def _let(self, cf: Node, stmt: typed.LetDecl) -> None:
        if isinstance(stmt.init.type, t.Pointer):
            self.views[stmt.var] = self._view(cf, stmt.init)
        self.lets[stmt.var] = self._value(cf, stmt.init)

    def _assign(self, cf: Node, stmt: typed.Assign | typed.CompoundAssign) -> None:
        view = self._view(cf, stmt.target)
        loaded = self.values.get(view.root)  # by a compound assignment, before a call in the value changes it
        value = self._value(cf, stmt.value)
        if loaded is None:
            return
        after = depends_on(cf, value, view.node)
        if isinstance(stmt, typed.CompoundAssign):
            after.edges.append(loaded)
        if not view.full:
            after.edges.append(self.values[view.root])
        self.values[view.root] = after

    def _if(self, cf: Node, stmt: typed.If) -> Node:
        condition = under(self._value(cf, stmt.condition), "under this condition", stmt.condition)
        before = self.values
        ends: list[Node] = []
        states: list[Changes] = []
        for branch in (stmt.then, stmt.orelse):
            self.values = Values(before)
            ends.append(self._block(condition, branch) if branch else condition)
            if branch is None or "Next" in self._behavior(branch):
                states.append(self.values.own)
        self.values = before.joined(states)
        return cf if self._behavior(stmt) == NEXT else after_jump(stmt, ends)

    def _switch(self, cf: Node, stmt: typed.Switch) -> Node:
        selector = under(self._value(cf, stmt.selector), "in a case of this 'switch'", stmt.selector)
        before = self.values
        ends: list[Node] = []
        self.exits.append(_Exits(before, continues=_SWITCH))
        states: list[Changes] = []
        for case in stmt.cases:
            self.values = Values(before)
            ends.append(self._block(selector, case.body))
            if "Next" in self._behavior(case.body):
                states.append(self.values.own)
        states += self.exits.pop().breaks
        self.values = before.joined(states)
        return cf if self._behavior(stmt) == NEXT else after_jump(stmt, ends)

    def _loop(self, cf: Node, stmt: typed.Loop) -> Node:
        start, before = depends_on(cf), self.values
        entering = Values(before, loop=True)
        self.values = Values(entering)
        self.exits.append(_Exits(entering))
        exits = self.exits[-1]
        end = start
        if stmt.condition is not None:
            end = under(self._value(start, stmt.condition), "while this condition holds", stmt.condition)
            exits.breaks.append(self.values.since(entering))
        end = self._block(end, stmt.body)
        behavior = self._behavior(stmt.body)
        states = ([self.values.own] if "Next" in behavior else []) + exits.continues
        if states:
            self.values = Values(entering).joined(states)
            end = self._continuing(end, stmt, exits)
            start.edges.append(end)
            entering.iterates(self.values.own)
        self.exits.pop()
        self.values = before.joined([{**entering.own, **state} for state in exits.breaks or [self.values.own]])
        return cf if "Return" not in behavior else after_jump(stmt, [start, end])

    def _continuing(self, cf: Node, stmt: typed.Loop, exits: _Exits) -> Node:
        if stmt.continuing is not None:
            cf = self._block(cf, stmt.continuing)
        if stmt.break_if is not None:
            cf = under(self._value(cf, stmt.break_if), "unless this condition ends the loop", stmt.break_if)
            exits.breaks.append(self.values.since(exits.base))
        return cf

    # ---- expressions -----------------------------------------------------------------------------------

    def _value(self, cf: Node, expr: typed.Expr) -> Node:
        match expr:
            case typed.ValueRef():
                return depends_on(cf, self.lets[expr.var])
            case typed.Load():
                return self._loaded(cf, self._view(cf, expr.ref), expr.span)
            case typed.ShortCircuit():
                return self._short_circuit(cf, expr)
            case typed.Call():
                return self._call(cf, expr)
            case typed.BuiltinCall():
                return self._builtin(cf, expr)
            case typed.AddressOf():
                return self._view(cf, expr.ref).node
            case _:
                parts = [self._value(cf, part) for part in typed.children(expr)]
                return depends_on(cf, *parts)

    def _short_circuit(self, cf: Node, expr: typed.ShortCircuit) -> Node:
        left = self._value(cf, expr.left)
        before = self.values
        self.values = Values(before)
        right = self._value(
            under(left, f"the right side of '{expr.op}' depends on its left side", expr.left), expr.right
        )
        self.values = before.joined([{}, self.values.own])  # the right side may not run
        return right

    def _loaded(self, cf: Node, view: _View, span: Span) -> Node:
        """Return the node of a value in memory: tracked in function scope, non-uniform in shared writable memory."""
        root = view.root
        if root in self.values:
            return depends_on(cf, view.node, self.values[root])
        access = root.type.access if isinstance(root.type, t.Pointer) else root.access
        if access == "read":
            return depends_on(cf, view.node)
        instead = f"; workgroupUniformLoad(&{root.name}) does not" if root.space == "workgroup" else ""
        note = Note(f"reading '{root.name}' may give a non-uniform value{instead}", span)
        return depends_on(cf, view.node, source=note)

    def _view(self, cf: Node, expr: typed.Expr) -> _View:
        match expr:
            case typed.VarRef():
                return _View(expr.var, cf, True)
            case typed.ValueRef():
                return self.views[expr.var]
            case typed.AddressOf():
                return self._view(cf, expr.ref)
            case typed.Deref():
                return self._view(cf, expr.pointer)
            case typed.Index():
                base = self._view(cf, expr.base)
                return _View(base.root, depends_on(base.node, self._value(cf, expr.index)), False)
            case typed.Member() | typed.Swizzle():
                base = self._view(cf, expr.base)
                return _View(base.root, base.node, False)
            case typed.BuiltinCall():  # a view of a buffer
                base, *numbers = expr.args
                view = self._view(cf, base)
                return _View(view.root, depends_on(view.node, *(self._value(cf, n) for n in numbers)), False)
            case _:
                raise TypeError(f"{type(expr).__name__} is no memory view")

    # ---- calls -----------------------------------------------------------------------------------------

    def _need(self, need: Need, node: Node) -> None:
        self.needs.setdefault(need, depends_on()).edges.append(node)

    def _severity(self, rule: str) -> str:
        """How bad it is to break a rule here: the nearest filter says."""
        return next((f[rule] for f in reversed(self.filters) if rule in f), self.rules.severity)

    def _builtin(self, cf: Node, call: typed.BuiltinCall) -> Node:
        row = call.builtin
        args = [self._value(cf, arg) for arg in call.args]
        if row.uniform and self.rules.apply(row.uniform):
            severity = self._severity(row.uniform)
            if severity != "off":
                where = "must only be called in uniform control flow"
                self._need(Need(row.name, call.span, severity, where), cf)
                for i in row.uniform_args:
                    what = f"needs a uniform value for argument {i + 1}"
                    self._need(Need(row.name, call.args[i].span, severity, what), args[i])
        source = None
        if self._is_nonuniform(row, call):
            source = Note(f"the result of '{row.name}' may be non-uniform", call.span)
        return depends_on(cf, *args, source=source)

    def _is_nonuniform(self, row: Builtin, call: typed.BuiltinCall) -> bool:
        if self.rules.scope == "subgroup" and row.name in SUBGROUP_UNIFORM:
            return False
        first = call.args[0].type if call.args else None
        if row.name == "textureLoad":
            return isinstance(first, t.Texture) and first.access == "read_write"
        return row.nonuniform_result or row.name.startswith("atomic")

    def _call(self, cf: Node, call: typed.Call) -> Node:
        summary = self.summaries[call.function]
        nodes: dict[Key, Node] = {("control", 0): cf}
        views: dict[int, _View] = {}
        for i, arg in enumerate(call.args):
            nodes["value", i] = self._value(cf, arg)
            if isinstance(arg.type, t.Pointer) and arg.type.space == "function":
                views[i] = self._view(cf, arg)
        for i, view in views.items():  # as they are once every argument is evaluated
            nodes["contents", i] = depends_on(view.node, self.values[view.root])
        for need, keys in summary.needs.items():
            self.called.setdefault(need, Note(f"'{call.function.name}' is called here", call.span))
            self._need(need, depends_on(*_chosen(nodes, keys)))
        for i, view in views.items():
            after = self._mapped(summary.contents[i], nodes, call)
            # Behind a pointer to a part, or a `let` of one, the rest of the variable is unchanged.
            after.edges.append(nodes["value", i])
            if not view.full:
                after.edges.append(self.values[view.root])
            self.values[view.root] = after
        return depends_on(cf, self._mapped(summary.result, nodes, call))

    def _mapped(self, reach: Reach, nodes: dict[Key, Node], call: typed.Call) -> Node:
        """Translate the dependencies of a callee's result or contents into nodes of this function."""
        source = reach.source and Note(f"'{call.function.name}' may give a non-uniform value", call.span)
        return depends_on(*_chosen(nodes, reach.keys), source=source)


def _chosen(nodes: Mapping[Key, Node], keys: frozenset[Key]) -> Iterator[Node]:
    """Iterate over the nodes with these keys in the order of the call: of two paths, a note tells the first."""
    return (node for key, node in nodes.items() if key in keys)


_SWITCH: list[Changes] = []  # marks the exits of a switch, which a `continue` passes through
