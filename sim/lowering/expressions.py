"""Lowering of expressions: each becomes the list of its scalar components."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from operator import attrgetter
from typing import Any, ClassVar, cast

from ..ir import ir
from ..ir.builder import Builder
from ..ir.instruction_classes import class_of
from ..ir.ir import Block, Value
from ..ir.rounding import Rounding
from ..ir.sites import SourceSite
from ..scalar import OPS
from ..wgsl import typed
from ..wgsl import types as t
from ..wgsl.builtins import Builtin, compositions
from ..wgsl.diagnostics import Crash, fail, first_words
from ..wgsl.source import Source, Span
from ..wgsl.typed import Variable
from .buffer_views import buffer_view
from .context import Lowering
from .effects import EFFECTS
from .inspections import RIGHT_DECIDES, inspection
from .views import View

_INPUTS = {
    "local_invocation_id": ("local_x", "local_y", "local_z"),
    "workgroup_id": ("group_x", "group_y", "group_z"),
    "num_workgroups": ("grid_x", "grid_y", "grid_z"),
    "local_invocation_index": ("local_index",),
    "subgroup_invocation_id": ("subgroup_lane",),
    "subgroup_id": ("subgroup_index",),
    "subgroup_size": ("subgroup_size",),
    "num_subgroups": ("subgroup_count",),
}


class _Ops:
    """The operations that `compositions.apply` composes: builds values, adds up their FLOPs and checks them.

    `counted`: they are instructions of the shader as written."""

    def __init__(self, lowering: Expressions, name: str, span: Span, counted: bool) -> None:
        self._lowering = lowering
        self._name, self._span, self._counted = name, span, counted
        self.flops = 0

    def const(self, kind: str, value: float, /) -> Value:
        return self._lowering.builder.const(kind, value)

    def __call__(self, op: str, /, *args: Value) -> Value:
        lowering, builder = self._lowering, self._lowering.builder
        name = class_of(op)
        if name is None and op.startswith("bitcast_"):
            return builder.reinterpret(OPS[op].result, args[0])
        if len(args) == 3 and not lowering.rounding.fused and op.startswith("fma_"):
            kind = op.removeprefix("fma_")
            return self(f"add_{kind}", self(f"mul_{kind}", args[0], args[1]), args[2])
        count = builder.begin_count() if self._counted else None
        inspecting = lowering.inspecting
        value = lowering.computed(op, args, self._name, self._span) if inspecting else builder.op(op, *args)
        if count is not None and name is not None:
            count.computed.append((name, self._span, value))
            self.flops += OPS[op].flops
        return value


class Expressions(Lowering):
    """Lowers expressions to components (`value`) or memory views (`view`)."""

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
        super().__init__(rounding, checks, builder, trace, policy, poisoned)
        self.pipeline = pipeline
        self.inspects: list[ir.Inspect] = []
        self.inspecting = inspects
        self.values: dict[Variable, list[Value]] = {}
        self.views: dict[Variable, View] = {
            var: View(var, type_) for var, type_ in pipeline.store_types.items() if var.space != "private"
        }
        self._tables: dict[int, Block] = {}

    @abstractmethod
    def call(self, expr: typed.Call) -> list[Value]:
        """Inline a call of a user function and return its result's components."""

    # ---- values ----

    def argument(self, expr: typed.Expr) -> list[Value] | View:
        """Return the view that a pointer or handle denotes, or the components of any other value."""
        return self.view(expr) if isinstance(expr.type, (t.Pointer, t.Texture, t.Sampler)) else self.value(expr)

    def evaluate(self, expr: typed.Expr) -> None:
        """Lower an expression for its effects; a composite is not loaded for them."""
        if isinstance(expr, typed.Load) and isinstance(expr.type, (t.Array, t.Struct)):
            self.view(expr.ref)
        elif isinstance(expr.type, (t.Reference, t.Pointer, t.Texture, t.Sampler)):
            self.view(expr)
        else:
            self.value(expr)

    def value(self, expr: typed.Expr) -> list[Value]:
        """See `Lowering.value`."""
        lower = self._VALUES.get(type(expr))
        if lower is None:
            raise Crash(f"no value for a {type(expr).__name__}", expr.span)
        return lower(self, expr)

    def is_known(self, expr: typed.Expr) -> bool:
        """Whether the value of an expression is known before the shader runs."""
        # The checker has folded what is made of constants alone.
        return type(expr) is typed.Const or (bool(self.pipeline.values) and is_constant(expr))

    def _constant(self, type_: t.Type, value: Any) -> list[Value]:
        const = self.builder.const
        if isinstance(type_, t.Scalar):
            return [const(t.KIND[type_], value)]
        return [const(kind, each) for kind, each in zip(t.kinds(type_), _flat(value), strict=True)]

    def _load(self, expr: typed.Load) -> list[Value]:
        return self.load(self.view(expr.ref), expr.span)

    def _swizzle(self, expr: typed.Swizzle) -> list[Value]:
        parts = self.value(expr.base)
        return [parts[c] for c in expr.components]

    def _index(self, expr: typed.Index) -> list[Value]:
        base, span = expr.base, expr.span
        parts, at = self.value(base), self.value(expr.index)[0]
        element = _element_type(base.type)
        width = t.components(element)
        if at.op == "const":
            start = min(at.imm * width, len(parts) - width)  # a folded index may be out of bounds
            return parts[start : start + width]
        block = self._table(parts)
        block.copied = isinstance(base.type, t.Array)
        view = View(_NAMELESS, base.type, block=block).element(at, span, first_words(base.span.text))
        return self.load(view, span)

    def _table(self, parts: list[Value]) -> Block:
        """Put the components of a value into slots, to index them at run time."""
        block = self.builder.block([p.kind for p in parts], "value")
        for slot, part in zip(block.slots, parts, strict=True):
            self.builder.set(slot, part)
        return block

    def _member(self, expr: typed.Member) -> list[Value]:
        base, index = expr.base, expr.index
        assert isinstance(base.type, t.Struct)
        widths = [t.components(m.type) for m in base.type.members]
        start = sum(widths[:index])
        return self.value(base)[start : start + widths[index]]

    def _convert(self, expr: typed.Convert) -> list[Value]:
        arg = expr.arg
        source, target = t.KIND[t.element_of(arg.type)], t.KIND[t.element_of(expr.type)]
        parts = self.value(arg)
        if source == target:
            return parts
        if counted := not self.is_known(arg):
            self.builder.begin_count()
        converted = [self.computed(f"convert_{source}_{target}", (part,), str(expr.type), expr.span) for part in parts]
        self.spans.update((id(value), expr.span) for value in converted)
        if counted:
            for value in converted:
                self.builder.tally_computed("conversion", expr.span, value)
        return converted

    def _construct(self, expr: typed.Construct) -> list[Value]:
        if not expr.args:
            return [self.builder.const(kind, 0) for kind in t.kinds(expr.type)]
        parts = [part for arg in expr.args for part in self.value(arg)]
        if len(parts) == 1 and isinstance(expr.type, t.Vec):
            return parts * expr.type.size
        return parts

    def _short_circuit(self, expr: typed.ShortCircuit) -> list[Value]:
        return [self._either_or_both(expr)]

    def _either_or_both(self, expr: typed.ShortCircuit) -> Value:
        left = self.value(expr.left)[0]
        is_and = expr.op == "&&"
        if self.is_known(expr.left):
            return self.value(expr.right)[0] if bool(left.imm) == is_and else left
        if _is_free(expr.right):
            matters = (lambda: left) if is_and else (lambda: self.builder.op("lnot_bool", left))
            right = self.speculate(lambda: self.value(expr.right)[0], matters)
            return self.builder.op("and_bool" if is_and else "or_bool", left, right)
        self.builder.tally_computed("control", expr.span, left)
        if left.op == "const":
            return self.value(expr.right)[0] if bool(left.imm) == is_and else left
        slot = self.builder.block(["bool"], "condition").slots[0]
        self.builder.set(slot, left)
        condition = left if is_and else self.builder.op("lnot_bool", left)
        self.branch(condition, lambda: self.builder.set(slot, self.value(expr.right)[0]), span=expr.span)
        return self.builder.get(slot)

    def branch(
        self,
        condition: Value,
        then: Callable[[], Any],
        orelse: Callable[[], Any] = lambda: None,
        span: Span | None = None,
    ) -> None:
        """Lower `then` where the condition holds, `orelse` in the other lanes. `span`: of a branch in the source."""
        branch = self.builder.branch(condition, then, orelse)
        if span is not None:
            self.spans[id(branch)] = span

    # ---- builtins ----

    def apply(
        self,
        builtin: Builtin,
        arg_types: list[t.Type],
        args: list[list[Value]],
        result: t.Type,
        span: Span,
        counted: bool = True,
    ) -> list[Value]:
        """Lower a pure builtin or operator to scalar operations; return its components. `counted`: it takes
        instructions."""
        self.builder.span = span
        ops = _Ops(self, builtin.name, span, counted)
        values = compositions.apply(builtin, ops, arg_types, args, result)
        if ops.flops:
            self.builder.tally(self.sites.number(SourceSite("op", span, flops=ops.flops, name=builtin.name)))
            self.builder.tally_rounded(ops.flops, values)
        return values

    def computed(self, op: str, args: tuple[Value, ...], name: str, span: Span) -> Value:
        """Build a scalar operation of the source, and check it if it can go wrong. Folded operations cannot."""
        result = self.builder.op(op, *args)
        if (
            self.inspecting
            and (kind := inspection(op)) is not None
            and result.op == op
            and not (kind in RIGHT_DECIDES and args[1].op == "const")
        ):
            check = ir.Inspect(kind, result, self.sites.number(SourceSite("check", span, name=name)))
            self.inspects.append(check)
            self.check_here(lambda: self.builder.append(check))
        return result

    def _builtin(self, expr: typed.BuiltinCall) -> list[Value]:
        if expr.builtin.kind != "effect":
            args = list(map(self.value, expr.args))
            counted = expr.builtin.name != "bitcast" and not self.is_known(expr)
            return self.apply(expr.builtin, list(map(_TYPE, expr.args)), args, expr.type, expr.span, counted)
        effect = EFFECTS.get(expr.builtin.name)
        if effect is None:
            raise fail("unsupported", f"the simulator cannot run {expr.builtin.name} yet", expr.span)
        self.builder.span = expr.span
        return effect(self, expr)

    _VALUES: ClassVar[dict[type[typed.Expr], Callable[[Expressions, Any], list[Value]]]] = {
        typed.BuiltinCall: _builtin,
        typed.Const: lambda self, expr: self._constant(expr.type, expr.value),
        typed.Load: _load,
        typed.ValueRef: lambda self, expr: self.values[expr.var],
        typed.OverrideRef: lambda self, expr: self._constant(expr.type, self.pipeline.values[expr.override]),
        typed.Index: _index,
        typed.Member: _member,
        typed.Swizzle: _swizzle,
        typed.ShortCircuit: _short_circuit,
        typed.Convert: _convert,
        typed.Construct: _construct,
        typed.Call: lambda self, expr: self.call(expr),
    }

    # ---- views ----

    def view(self, expr: typed.Expr) -> View:
        """See `Lowering.view`."""
        match expr:
            case typed.VarRef(var=var) | typed.ValueRef(var=var):
                view = self.views.get(var)
                if view is None:
                    raise fail("unsupported", f"the simulator cannot reach {var.name} ({var.type}) yet", expr.span)
                return view
            case typed.AddressOf(ref=ref):
                return self.view(ref)
            case typed.Deref(pointer=pointer):
                return self.view(pointer)
            case typed.Index(base=base, index=index):
                return self.view(base).element(self.value(index)[0], expr.span, first_words(base.span.text))
            case typed.Member(base=base, index=index):
                return self.view(base).member(index)
            case typed.Swizzle(base=base, components=(component,)):
                return self.view(base).component(component)
            case typed.BuiltinCall():
                return buffer_view(self, expr)
            case _:
                raise Crash(f"no memory view for a {type(expr).__name__}", expr.span)

    # ---- entry point inputs ----

    def entry_input(self, parameter: Variable) -> list[Value]:
        """Return the components of an entry point's parameter: a builtin value, or a struct of them."""
        if isinstance(parameter.type, t.Struct):
            members = parameter.type.members
            return [v for m in members for v in self._builtin_input(m.attrs.get("builtin"), parameter.span)]
        return self._builtin_input(parameter.builtin, parameter.span)

    def _builtin_input(self, name: str | None, span: Span) -> list[Value]:
        match name:
            case "global_invocation_id":
                return self._global_id()
            case "global_invocation_index":
                extents = self._each("mul_u32", self._parts("num_workgroups"), self._sizes())
                return [self._linear(self._global_id(), extents)]
            case "workgroup_index":
                return [self._linear(self._parts("workgroup_id"), self._parts("num_workgroups"))]
            case str() if name in _INPUTS:
                return self._parts(name)
            case _:
                raise fail("unsupported", f"the simulator cannot give the builtin value {name} yet", span)

    def _parts(self, name: str) -> list[Value]:
        return [self.builder.input(part) for part in _INPUTS[name]]

    def _sizes(self) -> list[Value]:
        return [self.builder.const("u32", n) for n in self.pipeline.workgroup_size]

    def _each(self, op: str, ones: list[Value], others: list[Value]) -> list[Value]:
        return [self.builder.op(op, one, other) for one, other in zip(ones, others, strict=True)]

    def _global_id(self) -> list[Value]:
        corner = self._each("mul_u32", self._parts("workgroup_id"), self._sizes())
        return self._each("add_u32", corner, self._parts("local_invocation_id"))

    def _linear(self, position: list[Value], extents: list[Value]) -> Value:
        """Return the linear index of a position in a box, x first."""
        (x, y, z), (width, height, _), op = position, extents, self.builder.op
        row = op("add_u32", op("mul_u32", z, height), y)
        return op("add_u32", op("mul_u32", row, width), x)


_TYPE = attrgetter("type")
_NAMELESS = Variable("", typed.NOTHING, Span(Source(""), 0, 0))  # a value to index at run time


def _flat(value: typed.Value) -> list[bool | int | float]:
    if not isinstance(value, tuple):
        return [value]
    return [x for part in cast(tuple[typed.Value, ...], value) for x in _flat(part)]


def _element_type(type_: t.Type) -> t.Type:
    match type_:
        case t.Array(elem=elem) | t.Vec(elem=elem):
            return elem
        case t.Mat(rows=rows, elem=elem):
            return t.Vec(rows, elem)
        case _:
            raise Crash(f"{type_} has no elements")


def is_constant(expr: typed.Expr) -> bool:
    """Whether the value of an expression is known before the shader runs: it is made of constants and overrides."""
    if isinstance(expr, typed.Const):
        return True
    if type(expr) in _VARYING:
        return False
    if isinstance(expr, typed.BuiltinCall) and expr.builtin.kind == "effect":
        return False
    return all(map(is_constant, typed.children(expr)))


_VARYING = frozenset((typed.Load, typed.VarRef, typed.ValueRef, typed.Call))


def _is_free(expr: typed.Expr) -> bool:
    """Whether an expression may be evaluated speculatively: it has no effects, and nothing in it is counted."""
    for part in typed.expressions(expr):
        if isinstance(part, typed.Call) or (isinstance(part, typed.BuiltinCall) and not _is_uncounted(part)):
            return False
        reference = part.ref.type if isinstance(part, typed.Load) else None
        if isinstance(reference, t.Reference) and reference.space not in ("function", "private"):
            return False
    return True


def _is_uncounted(call: typed.BuiltinCall) -> bool:
    """Whether a builtin only uses its operands, and computes no floats."""
    return call.builtin.kind != "effect" and not any(t.is_float(s) for s in t.flatten(call.type))
