"""Insert probes into a shader's text, so that any WebGPU implementation records what the simulator counts.

Every access, barrier and operation that the simulator counts gets a probe: a call, around the expression or after the
statement, that writes one row into a storage buffer. A row holds the probe, the invocation, the byte address in the
variable, and the *path*: a hash of the calls and loop iterations that led there. Invocations of one subgroup whose rows
have the same probe and path passed it together, as one issued instruction; therefore no subgroup operation is needed.

The text changes by insertion only. Lines keep their numbers, and new declarations come after the end of the module.
All inserted names start with `bankshot_`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Protocol

from ...sim.fast_dataclass import frozen
from ...sim.wgsl import typed
from ...sim.wgsl import types as t
from ...sim.wgsl.source import Span
from ...sim.wgsl.syntax import tree
from ...sim.wgsl.syntax.parser import parse
from ...sim.wgsl.texel_formats import shape_of
from ...sim.wgsl.text_edits import Edits
from ..errors import UsageError
from ..gpu_account.components import pieces
from ..gpu_account.regions import Anchor
from .access_path import AccessPath, element_count, runtime_array
from .statements import can_end, header, loops, statements
from .wgsl_templates import FUNCTION, HEAD, INPUTS, LOOP, TEXEL

LOG = "bankshot_log"
HEADER_WORDS = 4  # the log before its rows: rows written, first workgroup, workgroups, capacity in rows
ROW_WORDS = 4
MOST_PROBES, MOST_LANES = 1 << 12, 1 << 10  # the first word of a row has 12 bits for the probe, 10 for the lane
MOST_STAGES = 1 << 8
STAGE_SHIFT = 24  # of the third word of a row; the bits below hold a part of the path
_SPACES = ("workgroup", "storage", "uniform")
_SAMPLES = ("textureSample", "textureGather")
_NONE: Mapping[int, Anchor] = MappingProxyType({})


def workgroup_shift(lanes: int) -> int:
    """Return the first bit of the workgroup in the first word of a row. The bits below hold the lane and the probe."""
    return 12 + (lanes - 1).bit_length()


class Probed(Protocol):
    """A place in the source that a probe records: an access, barrier or operation."""

    @property
    def kind(self) -> str: ...
    @property
    def span(self) -> Span: ...
    @property
    def space(self) -> str | None: ...
    @property
    def bytes_per_lane(self) -> int: ...
    @property
    def part(self) -> int: ...
    @property
    def name(self) -> str | None: ...


@frozen
class Probe:
    """The meaning of a probe's number in the log.

    `parts`: the numbers of its sites, with their byte offsets from the address in a row. `times`: how often each row
    counts; a workgroupUniformLoad has two barriers. `region`: the number of the region whose start it marks. A probe
    without parts and region marks the start of stages.
    """

    parts: tuple[tuple[int, int], ...] = ()
    times: int = 1
    region: int | None = None


@frozen
class Instrumented:
    """A shader with probes. `probes` are indexed by number; `group` and `binding` are those of the log."""

    text: str
    probes: tuple[Probe, ...]
    group: int
    binding: int


def instrument(
    pipeline: typed.Pipeline,
    sites: Sequence[Probed],
    wanted: Collection[int] | None = None,
    regions: Mapping[int, Anchor] = _NONE,
    stages: Sequence[Anchor] = (),
    first: str = "",
) -> Instrumented:
    """Insert probes for `sites` of a program of `pipeline`: all, or those with the numbers `wanted`.

    `regions` and `stages` are where probes mark their starts (see `gpu_account`). `first`: statements to execute before
    the entry point's own, without probes. Sites of textures must come from a
    launched program, which knows the size of their texels. Raises `UsageError` if a probe does not fit into the text,
    or if the shader samples textures: a GPU does not reveal which texels it reads.
    """
    _refuse_samples(pipeline)
    if len(stages) > MOST_STAGES:
        raise UsageError(f"{pipeline.entry.name} has {len(stages)} stages, at most {MOST_STAGES} can be told apart")
    writer = _Writer(pipeline, sites, range(len(sites)) if wanted is None else wanted, regions, stages)
    writer.write()
    writer.begin_with(first)
    return writer.finish()


def _refuse_samples(pipeline: typed.Pipeline) -> None:
    for function in typed.reached(pipeline.entry):
        for expr in typed.every_expression(function):
            if isinstance(expr, typed.BuiltinCall) and expr.builtin.name.startswith(_SAMPLES):
                where, what = _where(expr.span), "the implementation chooses which texels it reads"
                raise UsageError(f"{where}: {expr.builtin.name} cannot be counted on a GPU: {what}")


def _offsets(type_: t.Type) -> list[int]:
    return [offset for offset, _ in pieces(type_)]


def _where(span: Span) -> str:
    return f"{span.place.file}:{span.place.line}"


class _Writer:
    """Collects the insertions and declarations for the probes of one pipeline."""

    def __init__(
        self,
        pipeline: typed.Pipeline,
        sites: Sequence[Probed],
        wanted: Collection[int],
        regions: Mapping[int, Anchor],
        stages: Sequence[Anchor],
    ) -> None:
        self._pipeline = pipeline
        self._text = pipeline.module.source.text
        self._edits = Edits()
        self._made: list[str] = []  # declarations appended to the module
        self._probes: list[Probe] = []
        self._pointers: dict[typed.Variable, typed.Expr] = {}  # the reference that a `let` points to
        self._indices: dict[tuple[int, int], str] = {}  # the variable that keeps an index, by its start and end
        self._textures: set[str] = set()  # textures with a function that computes texel addresses
        self._calls = 0
        self._sites: dict[tuple[str, int, int], list[int]] = {}
        for number in wanted:
            site = sites[number]
            self._sites.setdefault((site.kind, site.span.start, site.span.end), []).append(number)
        self._all = sites
        self._marks: dict[int, Anchor] = {}  # by probe
        for number, anchor in regions.items():
            self._marks[len(self._probes)] = anchor
            self._probes.append(Probe(region=number))
        self._stages = stages
        self._stage_probe = len(self._probes)
        if stages:
            self._probes.append(Probe())
        self._headers: set[Span] = set()  # statements in the header of a `for`, which no statement can follow

    # ---- the module ----

    def write(self) -> None:
        reached = {function.name: function for function in typed.reached(self._pipeline.entry)}
        for decl in parse(self._pipeline.module.source).decls:
            if isinstance(decl, tree.Function) and decl.name in reached:
                self._function(decl, reached[decl.name])
        for number, anchor in enumerate(self._stages):
            self._mark(anchor, f"bankshot_begin({number}u, {self._stage_probe}u)")
        for probe, anchor in self._marks.items():
            self._mark(anchor, f"bankshot_at({probe}u)")
        for function in reached.values():
            assert function.body is not None
            for statement in typed.statements(function.body):
                self._statement(statement)
        for function in self._pipeline.module.functions.values():
            if function.name not in reached:
                self._unreached(function, reached)

    def begin_with(self, statements: str) -> None:
        body = self._pipeline.entry.body
        assert body is not None
        self._edits.at(body.span.start + 1, statements)

    def finish(self) -> Instrumented:
        if len(self._probes) > MOST_PROBES:
            raise UsageError(f"the shader needs {len(self._probes)} probes, at most {MOST_PROBES} can be told apart")
        group, binding = self._free_binding()
        probes = tuple(self._probes)
        shift = workgroup_shift(prod(self._pipeline.workgroup_size))
        head = HEAD.format(group=group, binding=binding, shift=shift, log=LOG)
        text = "\n".join([self._edits.apply(self._text), head, *self._made])
        return Instrumented(text, probes, group, binding)

    def _free_binding(self) -> tuple[int, int]:
        """Return a free binding in a group that is in use."""
        taken = [v.binding for v in self._pipeline.module.globals if v.binding is not None]
        group = min((v.binding[0] for v in self._pipeline.globals if v.binding is not None), default=0)
        return group, max((number for g, number in taken if g == group), default=-1) + 1

    def _probe(self, spans: list[tuple[str, Span]], offsets: list[int] | None = None, times: int = 1) -> int | None:
        """Add a probe for the sites of these kinds at these spans. Returns its number, None if there are no sites."""
        parts = [(n, 0) for kind, span in spans for n in self._sites.get((kind, span.start, span.end), [])]
        if offsets is not None:
            parts = [(number, offsets[self._all[number].part]) for number, _ in parts]
        if not parts:
            return None
        self._probes.append(Probe(tuple(parts), times))
        return len(self._probes) - 1

    # ---- functions, calls and loops, which make up the path ----

    def _function(self, decl: tree.Function, function: typed.Function) -> None:
        assert function.body is not None
        opening = self._text.index("(", decl.name_span.end) + 1
        start = self._text.index("{", decl.body.span.start) + 1
        self._headers |= {part.span for loop in loops(decl.body) for part in header(loop)}
        comma = ", " if decl.params else ""
        if function is self._pipeline.entry:
            added, arguments = self._inputs(function)
            self._edits.at(opening, added + comma if added else "")
            self._edits.at(start, f" bankshot_start({arguments});")
        else:
            self._edits.at(opening, f"bankshot_call: u32{comma}")
            self._edits.at(start, f" bankshot_enter_{decl.name}(bankshot_call);")
            self._made.append(FUNCTION.format(name=decl.name))
            self._returns(decl, function)
        for number, loop in enumerate(loops(decl.body)):
            self._loop(f"{decl.name}_{number}", loop)

    def _mark(self, anchor: Anchor, call: str) -> None:
        """Insert a call of a function that returns true."""
        match anchor.how:
            case "open":
                self._edits.at(self._text.index("{", anchor.span.start) + 1, f" _ = {call};")
            case "after" if self._text[anchor.span.end - 1] == "}":
                self._edits.ends.append((anchor.span.end, -1, f" _ = {call};"))
            case "after":
                self._edits.after(anchor.span, f"; _ = {call}")
            case "condition":
                self._edits.around(anchor.span, f"({call} && (", "))")
            case _:
                pass  # at the head of a loop, see `_loop`

    def _unreached(self, function: typed.Function, reached: dict[str, typed.Function]) -> None:
        """Adapt the calls in a function that the entry point never reaches, since its callees have a new parameter."""
        assert function.body is not None
        for statement in typed.statements(function.body):
            for operand in typed.operands(statement):
                for expr in typed.expressions(operand):
                    if isinstance(expr, typed.Call) and expr.function.name in reached:
                        self._call(expr)

    def _inputs(self, function: typed.Function) -> tuple[str, str]:
        """Return the parameters to add to the entry point, and the arguments for `bankshot_start`."""
        found: dict[str, str] = {}
        for parameter in function.params:
            if parameter.builtin:
                found[parameter.builtin] = parameter.name
            elif isinstance(parameter.type, t.Struct):
                for member in parameter.type.members:
                    if builtin := member.attrs.get("builtin"):
                        found[builtin] = f"{parameter.name}.{member.name}"
        missing = [name for name in INPUTS if name not in found]
        added = ", ".join(f"@builtin({name}) bankshot_{name}: {INPUTS[name]}" for name in missing)
        return added, ", ".join(found.get(name, f"bankshot_{name}") for name in INPUTS)

    def _returns(self, decl: tree.Function, function: typed.Function) -> None:
        name = decl.name
        for statement in statements(decl.body):
            if isinstance(statement, tree.Return):
                if statement.value is None:
                    self._edits.around(statement.span, f"{{ bankshot_leave_{name}(); ", "; }")
                else:
                    self._edits.around(statement.value.span, f"bankshot_back_{name}(", ")")
        if function.result is not None:
            body = f"bankshot_leave_{name}(); return v;"
            self._made.append(f"fn bankshot_back_{name}(v: {function.result}) -> {function.result} {{ {body} }}")
        elif not (decl.body.body and isinstance(decl.body.body[-1], tree.Return)):
            self._edits.at(decl.body.span.end - 1, f" bankshot_leave_{name}(); ")

    def _loop(self, name: str, loop: tree.Loop | tree.For | tree.While) -> None:
        rows = {"turn": "", "update": ""}
        for probe, anchor in self._marks.items():
            if anchor.how in rows and anchor.span == loop.span:
                rows[anchor.how] = f" bankshot_row({probe}u, 0u);"
        update = f" if bankshot_turns_{name} > 1u {{{rows['update']} }}" if rows["update"] else ""
        self._made.append(LOOP.format(name=name, rows=update + rows["turn"]))
        start = min([loop.span.start, *(a.span.start for a in loop.attributes)])
        self._edits.before(Span(loop.span.source, start, loop.span.end), f"bankshot_before_{name}(); ")
        turn = f"bankshot_turn_{name}()"
        if isinstance(loop, tree.Loop):
            self._edits.at(self._text.index("{", loop.body.span.start) + 1, f" _ = {turn};")
        elif loop.condition is not None:
            self._edits.around(loop.condition.span, f"{turn} && (", ")")
        else:
            assert isinstance(loop, tree.For)
            after = loop.init.span.end if loop.init else loop.span.start
            self._edits.at(self._text.index(";", after) + 1, f" {turn}")
        if can_end(loop):
            self._edits.ends.append((loop.span.end, -1, f" bankshot_after_{name}();"))

    # ---- statements and expressions that are counted ----

    def _statement(self, statement: typed.Stmt) -> None:
        for operand in typed.operands(statement):
            for expr in typed.expressions(operand):
                self._expression(expr)
        match statement:
            case typed.LetDecl(var=var, init=init) if isinstance(init.type, t.Pointer):
                self._pointers[var] = init
            case typed.Assign(target=target):
                self._stored(statement.span, target, [("store", target.span)])
            case typed.CompoundAssign(target=target):
                self._row_after(statement.span, self._probe([("op", statement.span)]))
                self._stored(statement.span, target, [("load", target.span), ("store", target.span)])
            case typed.Eval(expr=typed.BuiltinCall() as call) if call.type is typed.NOTHING:
                self._row_after(call.span, self._probe([("barrier", call.span)]))
                if call.builtin.name == "textureStore":
                    probe = self._probe([("store", call.span)])
                    self._row_after(call.span, probe, self._texel(call, probe))
            case _:
                pass

    def _stored(self, where: Span, target: typed.Expr, spans: list[tuple[str, Span]]) -> None:
        # An assignment to a swizzle makes one store for each component, all at one place in the source.
        if isinstance(target, typed.Swizzle) and len(target.components) > 1:
            base = self._path(target.base)
            paths = [base and base.element(component) for component in target.components]
        else:
            paths = [self._path(target)]
        for path in paths:
            if path is not None:
                probe = self._probe(spans, _offsets(path.type))
                self._row_after(where, probe, path.address)

    def _row_after(self, where: Span, probe: int | None, address: str = "0u") -> None:
        if probe is None:
            return
        if where in self._headers:
            raise UsageError(f"{_where(where)}: no probe fits into the header of a `for`")
        self._edits.after(where, f"; bankshot_row({probe}u, {address})")

    def _expression(self, expr: typed.Expr) -> None:
        match expr:
            case typed.Index() if isinstance(expr.base.type, t.Reference):
                self._stash(expr)
            case typed.Load(ref=ref):
                path = self._path(ref)
                if path is not None:
                    probe = self._probe([("load", expr.span)], _offsets(path.type))
                    self._wrap(expr.span, expr.type, [(probe, path.address)])
            case typed.Call():
                self._call(expr)
            case typed.BuiltinCall():
                self._builtin(expr)
            case _:
                pass

    def _builtin(self, call: typed.BuiltinCall) -> None:
        if self._sites.get(("atomic", call.span.start, call.span.end)):
            self._atomic(call)
        elif call.builtin.name == "workgroupUniformLoad":
            (pointer,) = call.args
            path = self._path(pointer)
            assert path is not None
            barriers = self._probe([("barrier", call.span)], times=2)
            load = self._probe([("load", call.span)], _offsets(path.type))
            self._wrap(call.span, call.type, [(barriers, "0u"), (load, path.address)])
        elif call.builtin.name == "textureLoad":
            probe = self._probe([("load", call.span)])
            self._wrap(call.span, call.type, [(probe, self._texel(call, probe))])
        elif call.type is not typed.NOTHING:
            probe = self._probe([("op", call.span), ("subgroup", call.span)])
            if isinstance(call.type, t.Struct):  # the result of frexp or modf, whose type has no name in WGSL
                call_or_arg: typed.Expr = call.args[0]
            else:
                call_or_arg = call
            self._wrap(call_or_arg.span, call_or_arg.type, [(probe, "0u")])

    def _atomic(self, call: typed.BuiltinCall) -> None:
        """Insert a probe around the last argument, since the result may be void or have a type without a name."""
        path = self._path(call.args[0])
        assert path is not None
        probe = self._probe([("atomic", call.span)], [0])
        around = call.args[-1] if len(call.args) > 1 else call
        self._wrap(around.span, around.type, [(probe, path.address)])

    def _wrap(self, span: Span, type_: t.Type, rows: list[tuple[int | None, str]]) -> None:
        """Enclose an expression in a function that writes rows and returns its value."""
        written = [f"bankshot_row({probe}u, {address}); " for probe, address in rows if probe is not None]
        if written:
            name = f"bankshot_value_{len(self._made)}"
            self._made.append(f"fn {name}(v: {type_}) -> {type_} {{ {''.join(written)}return v; }}")
            self._edits.around(span, f"{name}(", ")")

    def _call(self, call: typed.Call) -> None:
        self._calls += 1
        for argument in call.args:
            if isinstance(argument.type, t.Pointer) and argument.type.space in _SPACES:
                raise UsageError(f"{_where(argument.span)}: probes cannot follow a pointer into {call.function.name}")
        opening = self._text.index("(", call.span.start) + 1
        self._edits.at(opening, f"{self._calls}u{', ' if call.args else ''}")

    # ---- addresses ----

    def _stash(self, expr: typed.Index) -> None:
        """Keep the value of an index in a variable, for the address in the row that follows."""
        base = self._path(expr.base)
        if base is None or isinstance(self._constant(expr.index), int):
            return
        kept = f"bankshot_at_{len(self._indices)}"
        self._indices[expr.index.span.start, expr.index.span.end] = kept
        count = element_count(base.type)
        last = f"{count - 1}u" if count else f"arrayLength(&{runtime_array(base.variable)}) - 1u"
        kind = expr.index.type
        keep = f"fn {kept}_keep(i: {kind}) -> {kind} {{ {kept} = min(u32(i), {last}); return i; }}"
        self._made.append(f"var<private> {kept}: u32;\n{keep}")
        self._edits.around(expr.index.span, f"{kept}_keep(", ")")

    def _texel(self, call: typed.BuiltinCall, probe: int | None) -> str:
        """Return a WGSL expression for the byte address of the texel that a textureLoad or textureStore accesses."""
        texture = call.args[0]
        if probe is None:
            return ""
        if not isinstance(texture, typed.VarRef) or not isinstance(texture.var.type, t.Texture):
            raise UsageError(f"{_where(texture.span)}: probes cannot follow a texture into a function")
        name, shape = texture.var.name, shape_of(texture.var.type)
        if name not in self._textures:
            self._textures.add(name)
            self._made.append(_texel_function(name, texture.var.type))
        place, *rest = [self._kept(argument) for argument in call.args[1:]]
        third = rest.pop(0) if shape.third else "0u"
        level = rest.pop(0) if call.builtin.name == "textureLoad" and rest else "0u"
        bytes_ = self._all[self._probes[probe].parts[0][0]].bytes_per_lane
        zeros = "0u, " * (3 - shape.axes)
        return f"{bytes_}u * bankshot_texel_{name}(vec4<u32>({place}, {zeros}{third}), {level})"

    def _kept(self, argument: typed.Expr) -> str:
        """Keep the value of an argument as unsigned integers. Returns the name of the variable that holds it."""
        kept, kind = f"bankshot_at_{len(self._made)}", argument.type
        bits = str(kind).replace("i32", "u32")
        keep = f"fn {kept}_keep(v: {kind}) -> {kind} {{ {kept} = bitcast<{bits}>(v); return v; }}"
        self._made.append(f"var<private> {kept}: {bits};\n{keep}")
        self._edits.around(argument.span, f"{kept}_keep(", ")")
        return kept

    def _constant(self, expr: typed.Expr) -> int | None:
        folded = self._pipeline.fold(expr)
        return folded.value if isinstance(folded, typed.Const) else None

    def _path(self, ref: typed.Expr) -> AccessPath | None:
        """Return the path of a reference or pointer, None if it leads to memory that is not counted."""
        match ref:
            case typed.VarRef(var=var):
                counted = var.space in _SPACES
                return AccessPath(var, self._pipeline.store_types[var]) if counted else None
            case typed.ValueRef(var=var):
                return self._path(self._pointers[var]) if var in self._pointers else None
            case typed.AddressOf(ref=inner) | typed.Deref(pointer=inner):
                return self._path(inner)
            case typed.Member(base=inner, index=index):
                base = self._path(inner)
                return base and base.member(index)
            case typed.Swizzle(base=inner, components=(component,)):
                base = self._path(inner)
                return base and base.element(component)
            case typed.Index(base=inner, index=index):
                base, constant = self._path(inner), self._constant(index)
                kept = self._indices.get((index.span.start, index.span.end), "")
                return base and base.element(kept if constant is None else constant)
            case _:
                return None


def _texel_function(name: str, type_: t.Texture) -> str:
    shape = shape_of(type_)
    levels = "1u" if type_.format or shape.third == "sample" else f"textureNumLevels({name})"
    third = {"layer": f"textureNumLayers({name})", "sample": f"textureNumSamples({name})"}.get(shape.third or "", "1u")
    extent = f"textureDimensions({name}){', 1u' * (3 - shape.axes)}"
    return TEXEL.format(name=name, levels=levels, extent=extent, third=third)
