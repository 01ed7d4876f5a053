"""Portability notes on a valid shader: one row of `ROWS` each.

A warning is valid WGSL that naga rejects, or runs differently; the hint says how to write it portably. Naga is the
translator of wgpu and Firefox, here as of wgpu 29 (wgpu-py 0.32). An info is what the host must request: features,
optional parts of the language, limits beyond WebGPU's defaults. `tests/wgsl/test_portability.py` compares every row
with wgpu.

Conversely, `ACCEPTED` lists errors that naga does not report: such a shader runs under wgpu, and in no browser that
follows the spec.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Container, Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from typing import cast

from ...fast_dataclass import frozen
from .. import typed
from .. import types as t
from ..diagnostics import Diagnostic, Note, WgslError
from ..source import Span
from ..syntax import tree as syntax
from ..syntax.parser import parse
from .stale_loop_variables import read_first

Place = tuple[Span, str]  # a span, and the word for `{}` in the message

# Builtins that naga 29 does not evaluate in const-expressions.
NOT_CONST = frozenset(
    """
    bitcast extractBits insertBits ldexp quantizeToF16 determinant faceForward frexp mix modf reflect refract
    smoothstep transpose pack4x8snorm pack4x8unorm pack4xI8 pack4xU8 pack4xI8Clamp pack4xU8Clamp pack2x16snorm
    pack2x16unorm pack2x16float unpack4x8snorm unpack4x8unorm unpack4xI8 unpack4xU8 unpack2x16snorm unpack2x16unorm
    unpack2x16float
    """.split()  # noqa: SIM905
)
KNOWN_ENABLES = frozenset(("f16",))
KNOWN_REQUIRES = frozenset(
    ("readonly_and_readwrite_storage_textures", "packed_4x8_integer_dot_product", "pointer_composite_access")
)
UNKNOWN_BUILTIN_VALUES = frozenset(("global_invocation_index", "workgroup_index"))
UNKNOWN_BUILTINS = frozenset(("subgroupElect",))
U32_LANES = frozenset(("subgroupBroadcast", "subgroupShuffle", "quadBroadcast"))
U32_DELTAS = frozenset(("subgroupShuffleUp", "subgroupShuffleDown", "subgroupShuffleXor"))
PLAIN_NUMBERS = re.compile(r"[\d\s()+*/%-]+", re.ASCII)  # an expression of abstract type, as written
FEATURES = {"f16": "shader-f16", "subgroups": "subgroups", "subgroup_size_control": "subgroup-size-control"}


FATAL = frozenset(("pointer-argument",))  # codes of what aborts the process of wgpu, instead of raising an error


@frozen
class Subject:
    """A checked module, with the views of it that the rows search."""

    module: typed.Module
    limits: Mapping[str, int]

    @cached_property
    def tree(self) -> syntax.Module:
        return parse(self.module.source)

    @cached_property
    def statements(self) -> list[typed.Stmt]:
        bodies = [f.body for f in self.module.functions.values() if f.body is not None]
        return [stmt for body in bodies for stmt in typed.statements(body)]

    @cached_property
    def expressions(self) -> list[typed.Expr]:
        return [part for stmt in self.statements for e in typed.operands(stmt) for part in typed.expressions(e)]

    @cached_property
    def pipelines(self) -> list[typed.Pipeline]:
        """The pipelines of the compute entry points whose overrides all have a value."""
        made: list[typed.Pipeline] = []
        boundless: dict[str, int] = dict.fromkeys(_WORKGROUP_LIMITS, 1 << 31)
        for function in self.module.compute_entry_points:
            try:
                made.append(self.module.pipeline(function.name, limits=boundless))
            except WgslError:
                continue  # creating the pipeline reports this
        return made


@frozen
class Row:
    """A kind of note. `message` and `hint` may contain `{}`, for the word that `find` yields with each span."""

    code: str
    severity: str
    message: str
    hint: str
    find: Callable[[Subject], Iterator[Place]]


def notes(module: typed.Module, limits: Mapping[str, int], codes: Container[str] | None = None) -> list[Diagnostic]:
    """List the notes on a checked module, or those with some `codes`, in the order of the text. `limits`: WebGPU's
    defaults, by name."""
    subject = Subject(module, limits)
    found = [
        Diagnostic(row.severity, row.code, row.message.format(word), span, (), row.hint.format(word))
        for row in ROWS
        if codes is None or row.code in codes
        for span, word in row.find(subject)
    ]
    return sorted(found, key=lambda d: d.span.start if d.span else 0)


def with_acceptance(error: Diagnostic) -> Diagnostic:
    """Add a note to an error that naga does not report."""
    if error.code not in ACCEPTED:
        return error
    return dataclasses.replace(
        error, notes=(*error.notes, Note(f"naga (wgpu, Firefox) accepts {ACCEPTED[error.code]}"))
    )


# Code of an error -> what naga accepts, where the specification and Chrome do not.
ACCEPTED: Mapping[str, str] = {
    "mixed-operators": "operators without the parentheses that WGSL asks for",
    "non-uniform": "barriers and subgroup operations in control flow that may differ between invocations",
    "aliased-pointer": "calls that reach one variable in two ways",
    "endless-loop": "loops that can never be left",
    "literal-above-largest": "literals that round down to the largest number",
}


# ---- directives and attributes -------------------------------------------------------------------------


def _directives(subject: Subject, kind: str) -> Iterator[Place]:
    for directive in subject.tree.directives:
        if directive.kind == kind:
            yield from ((span, name) for name, span in directive.names)


def _enables(subject: Subject) -> Iterator[Place]:
    return ((span, name) for span, name in _directives(subject, "enable") if name not in KNOWN_ENABLES)


def _requires(subject: Subject) -> Iterator[Place]:
    return ((span, name) for span, name in _directives(subject, "requires") if name not in KNOWN_REQUIRES)


def _features(subject: Subject) -> Iterator[Place]:
    return ((span, FEATURES[name]) for span, name in _directives(subject, "enable") if name in FEATURES)


def _language(subject: Subject) -> Iterator[Place]:
    return ((span, name) for span, name in _directives(subject, "requires") if name in KNOWN_REQUIRES)


def _diagnostic_attributes(subject: Subject) -> Iterator[Place]:
    """Find those within functions; naga reads the attribute of a whole function."""
    for function in (decl for decl in subject.tree.decls if isinstance(decl, syntax.Function)):
        for node in _walk(function.body):
            if isinstance(node, syntax.Attribute) and node.name == "diagnostic":
                yield node.span, node.name


# ---- constants -----------------------------------------------------------------------------------------


def _constant_roots(node: syntax.Node) -> list[syntax.Expr | None]:
    """List the expressions of a node itself that must be constant."""
    match node:
        case syntax.GlobalDecl(init=init):
            return [init]
        case syntax.LocalDecl(keyword="const", init=init):
            return [init]
        case syntax.ConstAssert(condition=condition):
            return [condition]
        case syntax.Attribute(args=args) | syntax.Ident(args=list(args)):
            return list(args)
        case syntax.Case(selectors=selectors):
            return selectors
        case _:
            return []


def _constant_builtins(subject: Subject) -> Iterator[Place]:
    seen: set[int] = set()
    for node in _walk(subject.tree):
        for root in _constant_roots(node):
            for part in _walk(root):
                if isinstance(part, syntax.Call) and part.callee.name in NOT_CONST and id(part) not in seen:
                    seen.add(id(part))
                    yield part.span, part.callee.name


def _walk(node: object) -> Iterator[syntax.Node]:
    """Iterate over a node of the syntax tree (or a list of them) and all nodes in it."""
    if isinstance(node, list):
        for item in cast("list[object]", node):
            yield from _walk(item)
    elif isinstance(node, syntax.Node):
        yield node
        for field in dataclasses.fields(node):
            yield from _walk(getattr(node, field.name))


# ---- pointers ------------------------------------------------------------------------------------------


def _pointer_parameters(subject: Subject) -> Iterator[Place]:
    for function in subject.module.functions.values():
        for parameter in function.params:
            if isinstance(parameter.type, t.Pointer) and not _passable(parameter.type):
                yield parameter.span, parameter.type.space


def _pointer_arguments(subject: Subject) -> Iterator[Place]:
    lets = {stmt.var: stmt.init for stmt in subject.statements if isinstance(stmt, typed.LetDecl)}
    for call in subject.expressions:
        if isinstance(call, typed.Call):
            for argument in call.args:
                if isinstance(argument.type, t.Pointer) and _passable(argument.type) and _is_part(argument, lets):
                    yield argument.span, call.function.name


def _passable(pointer: t.Pointer) -> bool:
    return pointer.space in ("function", "private")


def _is_part(expr: typed.Expr, lets: Mapping[typed.Variable, typed.Expr]) -> bool:
    """Whether a pointer points to a part of a variable: an element, a member, a component."""
    match expr:
        case typed.AddressOf(ref=inner) | typed.Deref(pointer=inner):
            return _is_part(inner, lets)
        case typed.ValueRef(var=var) if var in lets:
            return _is_part(lets[var], lets)
        case _:
            return isinstance(expr, typed.Index | typed.Member | typed.Swizzle)


# ---- statements and builtins ---------------------------------------------------------------------------


def _swizzle_assignments(subject: Subject) -> Iterator[Place]:
    for stmt in subject.statements:
        target = stmt.target if isinstance(stmt, typed.Assign | typed.CompoundAssign) else None
        if isinstance(target, typed.Swizzle) and len(target.components) > 1:
            yield target.span, "xyzw"[target.components[0]]


def _unseen_returns(subject: Subject) -> Iterator[Place]:
    for function in subject.module.functions.values():
        if function.result is not None and function.body is not None:
            yield from ((stmt.span, function.name) for stmt in _no_return(function.body))


def _no_return(block: typed.Block) -> Iterator[typed.Stmt]:
    """Iterate over the last statements of a block that returns, where naga sees no return: it looks at no loop."""
    last = next((stmt for stmt in reversed(block.body) if not _is_constant(stmt)), block)
    match last:
        case typed.Return():
            return
        case typed.Block() if last.body:
            yield from _no_return(last)
        case typed.If(orelse=typed.Block()) | typed.Switch():
            for inner in typed.blocks(last):
                yield from _no_return(inner)
        case _:
            yield last


def _is_constant(stmt: typed.Stmt) -> bool:
    """Whether a declaration needs no code."""
    return isinstance(stmt, typed.VarDecl | typed.LetDecl) and isinstance(stmt.init, typed.Const | None)


def _kept_values(subject: Subject) -> Iterator[Place]:
    for function in subject.module.functions.values():
        yield from ((variable.span, variable.name) for variable in read_first(function))


def _builtin_values(subject: Subject) -> Iterator[Place]:
    for function in subject.module.entry_points:
        for parameter in function.params:
            members = parameter.type.members if isinstance(parameter.type, t.Struct) else ()
            for name in (parameter.builtin, *(m.attrs.get("builtin") for m in members)):
                if name in UNKNOWN_BUILTIN_VALUES:
                    yield parameter.span, name


def _calls(subject: Subject, names: frozenset[str]) -> Iterator[typed.BuiltinCall]:
    return (e for e in subject.expressions if isinstance(e, typed.BuiltinCall) and e.builtin.name in names)


def _builtins(subject: Subject) -> Iterator[Place]:
    return ((call.span, call.builtin.name) for call in _calls(subject, UNKNOWN_BUILTINS))


def _signed_lanes(subject: Subject) -> Iterator[Place]:
    for call in _calls(subject, U32_LANES):
        if call.args[1].type == t.I32:
            yield call.args[1].span, call.builtin.name
    for call in _calls(subject, U32_DELTAS):  # u32 in WGSL, but naga makes abstract-int an i32
        if PLAIN_NUMBERS.fullmatch(call.args[1].span.text):
            yield call.args[1].span, call.builtin.name


# ---- memory --------------------------------------------------------------------------------------------


def _immediates(subject: Subject) -> Iterator[Place]:
    return ((v.span, v.name) for v in subject.module.globals if v.space == "immediate")


def _buffers(subject: Subject) -> Iterator[Place]:
    return ((v.span, v.name) for v in subject.module.globals if isinstance(v.type, t.Buffer))


def _uniform_layouts(subject: Subject) -> Iterator[Place]:
    return (
        (v.span, v.name)
        for v in subject.module.globals
        if v.space == "uniform" and not isinstance(v.type, t.Scalar) and _is_tight(v.type)
    )


def _is_tight(type_: t.Type) -> bool:
    """Whether arrays or structs are closer than 16 bytes. Spec: language feature uniform_buffer_standard_layout."""
    match type_:
        case t.Buffer():
            return False
        case t.Array(elem=elem):
            return t.stride_of(type_) % 16 != 0 or _is_tight(elem)
        case t.Struct(members=members):
            nested = [m for m in members if isinstance(m.type, t.Array | t.Struct)]
            crowded = any(
                isinstance(one.type, t.Struct) and one.offset + t.round_up(16, t.size_of(one.type)) > following.offset
                for one, following in pairwise(members)
            )
            return crowded or any(m.offset % 16 or _is_tight(m.type) for m in nested)
        case _:
            return False


_WORKGROUP_LIMITS: tuple[str, ...] = (
    "maxComputeInvocationsPerWorkgroup",
    "maxComputeWorkgroupSizeX",
    "maxComputeWorkgroupSizeY",
    "maxComputeWorkgroupSizeZ",
    "maxComputeWorkgroupStorageSize",
)


def _beyond_limits(subject: Subject) -> Iterator[Place]:
    for pipeline in subject.pipelines:
        x, y, z = pipeline.workgroup_size
        spaces = [v.space for v in pipeline.globals]
        groups = [v.binding[0] + 1 for v in pipeline.globals if v.binding is not None]
        workgroup = zip(_WORKGROUP_LIMITS, (x * y * z, x, y, z, pipeline.workgroup_bytes), strict=True)
        used: dict[str, int] = {
            **dict(workgroup),
            "maxStorageBuffersPerShaderStage": spaces.count("storage"),
            "maxUniformBuffersPerShaderStage": spaces.count("uniform"),
            "maxBindGroups": max(groups, default=0),
        }
        for name, value in used.items():
            if value > subject.limits[name]:
                yield pipeline.entry.span, f"{name} of {value:,} (the default is {subject.limits[name]:,})"


# ---- the table -----------------------------------------------------------------------------------------

WARNING, INFO = "warning", "info"

ROWS = (
    Row("enable-directive", WARNING, "wgpu refuses 'enable {}'",
        "leave the line out for wgpu, which has the functions of subgroups without it", _enables),
    Row("requires-directive", WARNING, "wgpu refuses 'requires {}'",
        "leave the directive out, and do without the feature where wgpu is to run the shader", _requires),
    Row("diagnostic-attribute", WARNING, "wgpu refuses '@{}' within a function",
        "put it before the function, or write a 'diagnostic' directive at the top", _diagnostic_attributes),
    Row("const-builtin", WARNING, "wgpu refuses '{}' where a constant is asked for",
        "write its value, or use 'let' in a function", _constant_builtins),
    Row("pointer-parameter", WARNING, "wgpu refuses pointers into {} memory as parameters",
        "name the variable in the function, or pass values", _pointer_parameters),
    Row("pointer-argument", WARNING, "wgpu aborts the whole process on a pointer to part of a variable as argument",
        "pass the whole variable, or copy the part into one, and back after '{}'", _pointer_arguments),
    Row("swizzle-assignment", WARNING, "wgpu refuses assignments to several components at once",
        "assign them one by one, '.{}' first", _swizzle_assignments),
    Row("unseen-return", WARNING, "wgpu refuses '{}', because it ends in a statement in which wgpu sees no 'return'",
        "write a 'return' after it, which is never reached", _unseen_returns),
    Row("kept-value", WARNING, "wgpu leaves in '{}' what the last turn of the loop left, where WGSL has it zero",
        "give '{}' an initial value; it is read before all of it is assigned", _kept_values),
    Row("builtin-value", WARNING, "wgpu does not know the builtin value '{}'",
        "compute it from workgroup_id, num_workgroups and local_invocation_index", _builtin_values),
    Row("builtin-function", WARNING, "wgpu does not know '{}'",
        "compare subgroupBroadcastFirst(subgroup_invocation_id) with the invocation's own", _builtins),
    Row("signed-lane", WARNING, "wgpu refuses a signed lane in '{}'", "write it as u32: 1u for 1", _signed_lanes),
    Row("buffer-type", WARNING, "wgpu does not know the type 'buffer' of '{}'",
        "declare it as an array, and read other types with bitcast", _buffers),
    Row("immediate", WARNING, "wgpu refuses the address space of '{}'", "use a uniform buffer", _immediates),
    Row("uniform-layout", WARNING, "wgpu refuses arrays and structs closer than 16 bytes in a uniform buffer",
        "pad '{}' with @align(16) and @size, or make it a storage buffer", _uniform_layouts),
    Row("feature", INFO, "the device must be requested with the feature '{}'",
        "not every adapter has it", _features),
    Row("language-feature", INFO, "not every browser has the language feature '{}'",
        "ask navigator.gpu.wgslLanguageFeatures", _language),
    Row("limit", INFO, "the device must be requested with {}", "not every adapter has as much", _beyond_limits),
)  # fmt: skip
