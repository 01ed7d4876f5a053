"""Faults that are seeded in the simulator, one row each, and two kernels in which each of them shows.

A fault changes the simulator's Python: its tables, its lowering, or its code generation. What is compiled into
the machine has its faults in `tools/seeded_faults.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from bankshot.sim.codegen import emit
from bankshot.sim.codegen.control_flow import ControlFlow
from bankshot.sim.codegen.probe_code import ProbeEmitter
from bankshot.sim.instrument import probes as probe_table
from bankshot.sim.ir import instruction_classes, ir
from bankshot.sim.ir.builder import Builder
from bankshot.sim.ir.sites import SiteTable
from bankshot.sim.launch import machine_arrays
from bankshot.sim.lowering import accesses, effects, expressions, lower, views
from bankshot.sim.machine import layout as at
from bankshot.sim.models.device import Device
from bankshot.sim.run import site as run_site
from bankshot.sim.scalar import OPS
from bankshot.sim.wgsl import types as t
from bankshot.sim.wgsl.builtins import compositions

# Two subgroups of 32, of which the second has 16 invocations, and a guard that keeps out a part of the last workgroup.
# All floats are whole numbers, so that they are the same however a device rounds.
COUNTED = """\
struct Pair { a: f32, b: vec3<f32>, c: mat2x2<f32> }
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(0) @binding(1) var<storage, read_write> hist: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> pairs: array<Pair>;
@group(0) @binding(3) var<storage, read_write> quads: array<vec4<f32>>;
override N = 70u;
var<workgroup> tile: array<f32, 1024>;
var<workgroup> wide: array<vec4<f32>, 128>;
var<workgroup> sums: array<atomic<u32>, 64>;

fn weight(v: vec3<f32>, s: f32) -> f32 {
    if s > 40.0 { return dot(v, v); }
    return fma(s, 2.0, 1.0);
}

@compute @workgroup_size(48)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) i: u32) {
    for (var k = 0u; k < 3u; k++) { tile[i + 48u * k] = f32(i); }  // some drivers leave workgroup memory unwritten
    if i < 4u { atomicStore(&sums[i], 0u); }
    wide[i / 2u] = vec4(f32(i / 2u));
    workgroupBarrier();
    if id.x >= N { return; }
    let f = f32(id.x);
    var acc = tile[i / 4u] + tile[(i % 4u) * 32u];
    tile[i * 8u + 512u] = f;
    let q = wide[i / 2u] + wide[(i * 5u) % 24u];
    for (var k = 0u; k < i % 5u; k++) {
        if k == 2u { continue; }
        acc += f32(k) * 2.0;
    }
    if i % 3u == 0u { acc += weight(vec3(f), f); } else { acc -= q.x - 3.0; }
    if i < 16u && atomicAdd(&sums[i % 4u], 1u) < 60u { acc += floor(sqrt(f)); }
    switch i % 3u { case 0u: { acc += 1.0; }
        case 1u: { atomicMax(&hist[i % 4u * 8u], id.x); } default: { acc = -acc; } }
    pairs[id.x].a = pairs[id.x].b.x + f;
    pairs[id.x].b = vec3(f, acc, 1.0);
    let p = pairs[id.x].c;
    quads[id.x * 2u] = vec4((p * vec2(f, 2.0)), (mat2x2(f, 1.0, 2.0, 3.0) * vec2(f, 1.0)));
    y[id.x * 3u] = acc + f32(i) / 1.0;
}
"""

# Whole workgroups, on the profile that rounds as the adapter does: its bits are those of the GPU.
VALUES = """\
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(0) @binding(1) var<storage, read_write> z: array<u32>;
@group(0) @binding(2) var<storage, read_write> hist: array<atomic<u32>>;
@group(0) @binding(3) var<storage, read> x: array<f32>;
var<workgroup> seen: array<u32, 64>;

fn clipped(v: f32) -> f32 {
    if v < 0.5 { return v * 3.0; }
    return min(v, 0.75);
}

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
    let f = x[i];
    var own = array<u32, 5>(3u, 1u, 4u, 1u, 5u);
    seen[i] = i * i;
    workgroupBarrier();
    let m = mat2x3(f, 2.0, 3.0, 4.0, f, 6.0) * vec2(f, 0.5);
    y[i] = f / 3.0;
    y[64u + i] = clipped(f) - 0.1;
    y[128u + i] = dot(vec3(f, 2.0, 3.0), vec3(7.0, f, 5.0));
    y[192u + i] = m.x * 5.0 - m.z;
    y[256u + i] = round(f * 9.0) + fract(f * 5.0);
    y[320u + i] = mix(f, 2.0, 0.25);
    z[i] = (i * 77u) / (i % 7u + 2u) + own[i % 9u];
    z[64u + i] = 0x80000001u >> (i % 40u);
    z[128u + i] = u32((i32(i) - 32) >> 1u);
    z[192u + i] = u32(i32(f * 100.0 - 50.0));
    z[256u + i] = select(i, 7u, i < 20u) ^ extractBits(i * 999u, 3u, 5u);
    z[320u + i] = seen[63u - i] % (i + 1u);
    var turns = 0u;
    loop { turns += 1u; if turns == 3u { continue; } if turns > i % 6u { break; } z[384u + i] += turns; }
    if i % 5u == 2u { atomicMax(&hist[i % 3u], i); } else { atomicAdd(&hist[3u + i % 3u], 1u); }
}
"""


@dataclass(frozen=True)
class Fault:
    """A fault: `seed(patch)` makes it. `shows` is the counter or output that the report names; a counter is compared by
    `bankshot diff --counters`, an output by `bankshot diff`."""

    name: str
    shows: str
    seed: Callable[[Any], None]

    @property
    def is_counter(self) -> bool:
        return self.shows not in OUTPUTS


OUTPUTS = ("y", "z", "hist")
FAULTS: list[Fault] = []


def fault(name: str, shows: str) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    def add(seed: Callable[[Any], None]) -> Callable[[Any], None]:
        FAULTS.append(Fault(name, shows, seed))
        return seed

    return add


def _rows(name: str, shows: str, seed: Callable[..., None], *arguments: Any) -> None:
    FAULTS.append(Fault(name, shows, lambda patch: seed(patch, *arguments)))


# ---- rules: the figures that the machine charges by ----------------------------------------------------


def _bank_rule(patch: Any, change: Callable[[Any, int, bool], Any]) -> None:
    right = Device.bank_rule
    patch.setattr(Device, "bank_rule", lambda self, width, store=False: change(right(self, width, store), width, store))


_rows("wide accesses are served like words", "shared_wavefronts", _bank_rule,
      lambda rule, width, store: rule._replace(shift=0, columns=32))  # fmt: skip
_rows("there are half as many banks", "shared_wavefronts", _bank_rule,
      lambda rule, width, store: rule._replace(columns=rule.columns // 2))  # fmt: skip
_rows("pairs do not merge", "shared_wavefronts", _bank_rule,
      lambda rule, width, store: rule._replace(merge=0))  # fmt: skip
_rows("pairs of stores merge, too", "shared_wavefronts", _bank_rule,
      lambda rule, width, store: rule._replace(merge=int(width > 4)))  # fmt: skip
_rows("a quarter of the lanes is served", "shared_ideal_wavefronts", _bank_rule,
      lambda rule, width, store: rule._replace(order=rule.order[:8]))  # fmt: skip


def _units(patch: Any, wrong: int, right: int) -> None:
    of = machine_arrays.units_of
    patch.setattr(
        machine_arrays,
        "units_of",
        lambda size, access, texels: of(wrong if size == right else size, access, texels),
    )


_rows("sectors have 64 bytes", "global_sectors", _units, 64, 32)
_rows("sectors have 16 bytes", "global_ideal_sectors", _units, 16, 32)
_rows("lines have 64 bytes", "global_lines", _units, 64, 128)


@fault("atomics are charged like stores", "atomic_turns")
def _(patch: Any) -> None:
    from bankshot.sim.ir.sites import SourceSite

    patch.setattr(SourceSite, "takes_turns", property(lambda self: False))


@fault("an access to a vector is one for each component", "global_requests")
def _(patch: Any) -> None:
    right = views.leaves

    def scalars(type_: t.Type, offset: int = 0) -> Any:
        for leaf, start in right(type_, offset):
            if isinstance(leaf, t.Vec) and leaf.size == 3:
                yield from ((leaf.elem, start + 4 * i) for i in range(leaf.size))
            else:
                yield leaf, start

    patch.setattr(accesses, "leaves", scalars)


# ---- weights ------------------------------------------------------------------------------------------


def _weight(patch: Any, op: str, flops: int) -> None:
    patch.setitem(OPS, op, replace(OPS[op], flops=flops))


for _op, _flops in (("fma", 1), ("add", 2), ("mul", 0), ("sqrt", 0), ("div", 4), ("neg", 1), ("floor", 1), ("sub", 0)):
    _rows(f"{_op} of f32 counts {_flops}", "flops", _weight, f"{_op}_f32", _flops)


@fault("a dot product counts its products alone", "flops")
def _(patch: Any) -> None:
    right = expressions.Expressions.apply

    def apply(self: Any, builtin: Any, arg_types: Any, args: Any, result: Any, span: Any, counted: bool = True) -> Any:
        if builtin.name != "dot":
            return right(self, builtin, arg_types, args, result, span, counted)
        tally, sites = self.builder.tally, self.sites
        self.builder.tally = lambda number: tally(sites.number(replace(sites.rows[number], flops=len(args[0]))))
        values = right(self, builtin, arg_types, args, result, span, counted)
        del self.builder.tally
        return values

    patch.setattr(expressions.Expressions, "apply", apply)


@fault("a product of a matrix and a vector counts one for each element", "flops")
def _(patch: Any) -> None:
    right = expressions.SourceSite

    def site(kind: str, span: Any, **more: Any) -> Any:
        if kind == "op" and more["name"] == "*" and more["flops"] > 4:
            more["flops"] = 4
        return right(kind, span, **more)

    patch.setattr(expressions, "SourceSite", site)


def _class(patch: Any, ops: tuple[str, ...], kind: str | None) -> None:
    right = expressions.class_of
    patch.setattr(expressions, "class_of", lambda op: kind if op.startswith(ops) else right(op))


_rows("roots are of class fp32", "instructions_issued", _class, ("sqrt",), "fp32")
_rows("comparisons of floats are of class integer", "instruction_lanes", _class, ("gt_f32", "lt_f32"), "integer")
_rows("sums of integers are no instructions", "instruction_lanes", _class, ("add_u32",), None)


@fault("conversions are no instructions", "instructions_issued")
def _(patch: Any) -> None:
    patch.setattr(expressions.Expressions, "is_known", lambda self, expr: True)


@fault("jumps are no instructions", "instruction_lanes")
def _(patch: Any) -> None:
    right = lower._Lowering._jump

    def jump(self: Any, kind: str, target: Any, span: Any) -> None:
        tally = self.builder.tally_computed
        self.builder.tally_computed = lambda name, span: None
        right(self, kind, target, span)
        self.builder.tally_computed = tally

    patch.setattr(lower._Lowering, "_jump", jump)


@fault("stores are of class storage_load", "instructions_issued")
def _(patch: Any) -> None:
    from bankshot.sim.run import executed_instructions

    right = instruction_classes.class_of_site
    patch.setattr(
        executed_instructions, "class_of_site", lambda site: "storage_load" if site.kind == "store" else right(site)
    )


# ---- what is derived from the records -------------------------------------------------------------------


def _derived(patch: Any, counter: str, of_site: Callable[[Any], int]) -> None:
    rows = tuple(replace(row, of_site=of_site) if row.key == counter else row for row in run_site.SITE_COUNTERS)
    patch.setattr(run_site, "SITE_COUNTERS", rows)


_rows("a barrier counts once for each subgroup", "barriers", _derived, "barriers",
      lambda site: site.executions if site.site.kind == "barrier" else 0)  # fmt: skip
_rows("lanes behind a guard count as diverged", "idle_divergence", _derived, "idle_divergence",
      lambda site: site.present - site.active)  # fmt: skip
_rows("the causes of idle lanes are swapped", "idle_guard", _derived, "idle_guard",
      lambda site: site.admitted - site.active)  # fmt: skip
_rows("lanes past the workgroup count as behind a guard", "idle_guard", _derived, "idle_guard",
      lambda site: site.executions * site.subgroup_size - site.admitted)  # fmt: skip
_rows("the last subgroup counts as full", "idle_overhang", _derived, "idle_overhang", lambda site: 0)
_rows("skipped subgroups are forgotten", "idle_skipped", _derived, "idle_skipped", lambda site: 0)
_rows("an atomic operation counts once for each subgroup", "atomics", _derived, "atomics",
      lambda site: site.executions if site.site.kind == "atomic" else 0)  # fmt: skip
_rows("FLOPs count idle lanes, too", "flops", _derived, "flops",
      lambda site: site.executions * site.subgroup_size * site.site.flops)  # fmt: skip
_rows("turns in workgroup memory are forgotten", "atomic_turns", _derived, "atomic_turns",
      lambda site: site.sectors[at.SERIALIZED_LANES])  # fmt: skip
_rows("ideal wavefronts are those that were taken", "shared_ideal_wavefronts", _derived, "shared_ideal_wavefronts",
      lambda site: site.banks[at.CHARGED])  # fmt: skip


# ---- probes and masks -----------------------------------------------------------------------------------


def _probe_rows(patch: Any, name: str, change: Callable[[Any], Any]) -> None:
    patch.setattr(probe_table, "PROBES", tuple(change(row) if row.name == name else row for row in probe_table.PROBES))


_rows("stores to workgroup memory have no probe", "shared_requests", _probe_rows, "banks",
      lambda row: replace(row, events=(ir.Load, ir.Atomic)))  # fmt: skip
_rows("atomic operations on storage have no probe", "global_requests", _probe_rows, "sectors",
      lambda row: replace(row, events=(ir.Load, ir.Store)))  # fmt: skip


@fault("probes of memory count idle lanes", "global_bytes")
def _(patch: Any) -> None:
    right = ProbeEmitter._probe

    def probe(self: Any, item: Any, unit: int, stored: Any) -> None:
        add = self._add
        self._add = lambda ins: (setattr(ins, "mask", -1), add(ins))
        right(self, item, unit, stored)
        self._add = add

    patch.setattr(ProbeEmitter, "_probe", probe)


@fault("executions count idle lanes", "active_lanes")
def _(patch: Any) -> None:
    right = ProbeEmitter.count

    def count(self: Any, item: Any, past_guards: Any) -> None:
        add = self._add
        self._add = lambda ins: (setattr(ins, "mask", -1), add(ins))
        right(self, item, past_guards)
        self._add = add

    patch.setattr(ProbeEmitter, "count", count)


@fault("no statement is outermost but the whole body", "idle_guard")
def _(patch: Any) -> None:
    patch.setattr(emit, "find_bodies", lambda body, sites: {id(body)})


@fault("the mask of the other arm is not inverted", "active_lanes")
def _(patch: Any) -> None:
    def complement(self: Any, condition: Any, outer: Any) -> Any:
        lanes = self._operands.all_lanes(condition)
        return lanes if outer is None else self._intersect(outer, lanes)

    patch.setattr(ControlFlow, "_complement", complement)


@fault("the other arm runs in all lanes", "hist")
def _(patch: Any) -> None:
    patch.setattr(ControlFlow, "_complement", lambda self, condition, outer: outer or self._operands.constant(1))


@fault("an inner mask forgets the outer one", "active_lanes")
def _(patch: Any) -> None:
    patch.setattr(ControlFlow, "_intersect", lambda self, one, other: other)


@fault("an operation in a loop is not counted", "executions")
def _(patch: Any) -> None:
    right = Builder.tally

    def tally(self: Any, site: int) -> None:
        if self.here.depth < 2:
            right(self, site)

    patch.setattr(Builder, "tally", tally)


@fault("the columns of a matrix are one place", "executions")
def _(patch: Any) -> None:
    right = SiteTable.number
    patch.setattr(SiteTable, "number", lambda self, site: right(self, replace(site, part=0)))


@fault("a store is counted as a load", "executions")
def _(patch: Any) -> None:
    right = accesses.Memory.site

    def site(self: Any, kind: str, *rest: Any) -> int:
        return right(self, "load" if kind == "store" and rest[0].variable.space == "storage" else kind, *rest)

    patch.setattr(accesses.Memory, "site", site)


@fault("the right side of && runs in all lanes", "active_lanes")
def _(patch: Any) -> None:
    right = expressions.Expressions.branch

    def branch(self: Any, condition: Any, then: Any, orelse: Any = lambda: None, span: Any = None) -> None:
        if span is not None and "&&" in span.text:
            condition = self.builder.op("or_bool", condition, self.builder.op("lnot_bool", condition))
        right(self, condition, then, orelse, span)

    patch.setattr(expressions.Expressions, "branch", branch)


# ---- semantics ------------------------------------------------------------------------------------------


def _instead(patch: Any, change: Callable[[Any, str, tuple[Any, ...]], Any], *ops: str) -> None:
    """Build something else instead of a scalar operation."""
    right = Builder.op

    def op(self: Any, name: str, /, *args: Any) -> Any:
        if name not in ops:
            return right(self, name, *args)
        return change(lambda name, *args: right(self, name, *args), name, (self, *args))

    patch.setattr(Builder, "op", op)


def _renamed(other: str) -> Callable[[Any, str, tuple[Any, ...]], Any]:
    return lambda op, name, args: op(other, *args[1:])


def _inexact(op: Any, name: str, args: tuple[Any, ...]) -> Any:
    builder, left, right = args
    return op(name, left, op("mul_f32", right, builder.const("f32", 1 + 2.0**-18)))


def _few_bits(op: Any, name: str, args: tuple[Any, ...]) -> Any:
    builder, left, right = args
    return op(name, left, op("and_u32", right, builder.const("u32", 15)))


def _logical(op: Any, name: str, args: tuple[Any, ...]) -> Any:
    builder, left, right = args
    return builder.reinterpret("i32", op("shr_u32", builder.reinterpret("u32", left), right))


def _rounded(op: Any, name: str, args: tuple[Any, ...]) -> Any:
    return op(name, op("round_f32", args[1]))


def _swapped(op: Any, name: str, args: tuple[Any, ...]) -> Any:
    _, one, other, *rest = args
    return op(name, other, one, *rest)


_rows("a difference is rounded badly", "y", _instead, _inexact, "sub_f32")
_rows("a quotient of u32 is a product", "z", _instead, _renamed("mul_u32"), "div_u32")
_rows("a remainder of u32 is a quotient", "z", _instead, _renamed("div_u32"), "rem_u32")
_rows("a shift takes four bits of its amount", "z", _instead, _few_bits, "shr_u32")
_rows("a shift of i32 forgets the sign", "z", _instead, _logical, "shr_i32")
_rows("a conversion to i32 rounds", "z", _instead, _rounded, "convert_f32_i32")
_rows("min takes the larger", "y", _instead, _renamed("max_f32"), "min_f32")
_rows("less is less or equal", "z", _instead, _renamed("le_u32"), "lt_u32")
_rows("select takes the other", "z", _instead, _swapped, "select_u32")
_rows("a difference is the other way round", "y", _instead, _swapped, "sub_f32")
_rows("round goes down", "y", _instead, _renamed("floor_f32"), "round_f32")
_rows("fract keeps all", "y", _instead, lambda op, name, args: args[1], "fract_f32")


@fault("a dot product forgets its last component", "y")
def _(patch: Any) -> None:
    right = compositions._dot
    patch.setattr(compositions, "_dot", lambda ops, kind, a, b: right(ops, kind, a[:-1], b[:-1]))


@fault("a matrix is read by row", "y")
def _(patch: Any) -> None:
    patch.setattr(
        compositions,
        "_rows",
        lambda type_, handles: [handles[i : i + type_.cols] for i in range(0, len(handles), type_.cols)],
    )


@fault("lanes are numbered from 1", "z")
def _(patch: Any) -> None:
    right = expressions.Expressions._builtin_input

    def builtin_input(self: Any, name: str | None, span: Any) -> Any:
        values = right(self, name, span)
        if name != "local_invocation_index":
            return values
        return [self.builder.op("add_u32", values[0], self.builder.const("u32", 1))]

    patch.setattr(expressions.Expressions, "_builtin_input", builtin_input)


@fault("an index out of bounds wraps", "z")
def _(patch: Any) -> None:
    right = accesses.Memory._kept

    def kept(self: Any, step: Any, view: Any) -> Any:
        self.policy, before = "wrap", self.policy
        value = right(self, step, view)
        self.policy = before
        return value

    patch.setattr(accesses.Memory, "_kept", kept)


@fault("a column of a matrix is an element too far", "executions")
def _(patch: Any) -> None:
    right = accesses.leaves
    patch.setattr(accesses, "leaves", lambda type_: [*right(type_)][:-1] if isinstance(type_, t.Mat) else right(type_))


@fault("continue leaves the loop", "z")
def _(patch: Any) -> None:
    right = lower._Lowering._jump

    def jump(self: Any, kind: str, target: Any, span: Any) -> None:
        right(self, "exit" if kind == "continue" else kind, target, span)

    patch.setattr(lower._Lowering, "_jump", jump)


@fault("a return does not leave", "y")
def _(patch: Any) -> None:
    right = lower._Lowering._jump

    def jump(self: Any, kind: str, target: Any, span: Any) -> None:
        if not span.text.startswith("return"):
            right(self, kind, target, span)

    patch.setattr(lower._Lowering, "_jump", jump)


@fault("atomicMax adds", "hist")
def _(patch: Any) -> None:
    patch.setitem(effects.EFFECTS, "atomicMax", effects.EFFECTS["atomicAdd"])


@fault("a barrier is forgotten", "barriers")
def _(patch: Any) -> None:
    patch.setitem(effects.EFFECTS, "workgroupBarrier", lambda lowering, call: [])


@fault("stores go to the next element", "y")
def _(patch: Any) -> None:
    right = accesses.Memory._store_leaf

    def store(self: Any, view: Any, leaf: Any, offset: int, values: Any, span: Any, part: int) -> None:
        moved = 4 if view.variable.name == "y" else 0
        right(self, view, leaf, offset + moved, values, span, part)

    patch.setattr(accesses.Memory, "_store_leaf", store)
