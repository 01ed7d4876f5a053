"""Faults in what the simulator counts, one row each: a counter shows them.

`bankshot diff --counters` must name it for the kernel `COUNTED`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bankshot.sim.codegen import emit
from bankshot.sim.codegen.control_flow import ControlFlow
from bankshot.sim.codegen.probe_code import ProbeEmitter
from bankshot.sim.instrument import probes as probe_table
from bankshot.sim.ir import instruction_classes, ir
from bankshot.sim.ir.builder import Builder
from bankshot.sim.ir.sites import SiteTable, SourceSite
from bankshot.sim.launch import machine_arrays
from bankshot.sim.lowering import accesses, effects, expressions, lower, views
from bankshot.sim.machine import layout as at
from bankshot.sim.models.device import Device
from bankshot.sim.run import executed_instructions
from bankshot.sim.run import site as run_site
from bankshot.sim.scalar import OPS
from bankshot.sim.wgsl import types as t
from tests.judge.seeded_faults import Faults

FAULTS = Faults()

# ---- rules: the figures that the machine charges by ----------------------------------------------------


def _bank_rule(patch: Any, change: Callable[[Any, int, bool], Any]) -> None:
    right = Device.bank_rule
    patch.setattr(Device, "bank_rule", lambda self, width, store=False: change(right(self, width, store), width, store))


FAULTS.row("wide accesses are served like words", "shared_wavefronts", _bank_rule,
    lambda rule, width, store: rule._replace(shift=0, columns=32))  # fmt: skip
FAULTS.row("there are half as many banks", "shared_wavefronts", _bank_rule,
    lambda rule, width, store: rule._replace(columns=rule.columns // 2))  # fmt: skip
FAULTS.row("pairs do not merge", "shared_wavefronts", _bank_rule,
    lambda rule, width, store: rule._replace(merge=0))  # fmt: skip
FAULTS.row("pairs of stores merge, too", "shared_wavefronts", _bank_rule,
    lambda rule, width, store: rule._replace(merge=int(width > 4)))  # fmt: skip
FAULTS.row("a quarter of the lanes is served", "shared_ideal_wavefronts", _bank_rule,
    lambda rule, width, store: rule._replace(order=rule.order[:8]))  # fmt: skip


def _units(patch: Any, wrong: int, right: int) -> None:
    of = machine_arrays.units_of
    patch.setattr(
        machine_arrays,
        "units_of",
        lambda size, access, texels: of(wrong if size == right else size, access, texels),
    )


FAULTS.row("sectors have 64 bytes", "global_sectors", _units, 64, 32)
FAULTS.row("sectors have 16 bytes", "global_ideal_sectors", _units, 16, 32)
FAULTS.row("lines have 64 bytes", "global_lines", _units, 64, 128)


@FAULTS.made_by("atomics are charged like stores", "atomic_turns")
def _(patch: Any) -> None:
    patch.setattr(SourceSite, "takes_turns", property(lambda self: False))


@FAULTS.made_by("an access to a vector is one for each component", "global_requests")
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
    FAULTS.row(f"{_op} of f32 counts {_flops}", "flops", _weight, f"{_op}_f32", _flops)


@FAULTS.made_by("a dot product counts its products alone", "flops")
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


@FAULTS.made_by("a product of a matrix and a vector counts one for each element", "flops")
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


FAULTS.row("roots are of class fp32", "instructions_issued", _class, ("sqrt",), "fp32")
FAULTS.row("comparisons of floats are of class integer", "instruction_lanes", _class, ("gt_f32", "lt_f32"), "integer")
FAULTS.row("sums of integers are no instructions", "instruction_lanes", _class, ("add_u32",), None)


@FAULTS.made_by("conversions are no instructions", "instructions_issued")
def _(patch: Any) -> None:
    patch.setattr(expressions.Expressions, "is_known", lambda self, expr: True)


@FAULTS.made_by("jumps are no instructions", "instruction_lanes")
def _(patch: Any) -> None:
    right = lower._Lowering._jump

    def jump(self: Any, kind: str, target: Any, span: Any) -> None:
        tally = self.builder.tally_computed
        self.builder.tally_computed = lambda name, span: None
        right(self, kind, target, span)
        self.builder.tally_computed = tally

    patch.setattr(lower._Lowering, "_jump", jump)


@FAULTS.made_by("stores are of class storage_load", "instructions_issued")
def _(patch: Any) -> None:
    right = instruction_classes.class_of_site
    patch.setattr(
        executed_instructions, "class_of_site", lambda site: "storage_load" if site.kind == "store" else right(site)
    )


# ---- what is derived from the records -------------------------------------------------------------------


def _derived(patch: Any, counter: str, of_site: Callable[[Any], int]) -> None:
    rows = tuple(replace(row, of_site=of_site) if row.key == counter else row for row in run_site.SITE_COUNTERS)
    patch.setattr(run_site, "SITE_COUNTERS", rows)


FAULTS.row("a barrier counts once for each subgroup", "barriers", _derived, "barriers",
    lambda site: site.executions if site.site.kind == "barrier" else 0)  # fmt: skip
FAULTS.row("lanes behind a guard count as diverged", "idle_divergence", _derived, "idle_divergence",
    lambda site: site.present - site.active)  # fmt: skip
FAULTS.row("the causes of idle lanes are swapped", "idle_guard", _derived, "idle_guard",
    lambda site: site.admitted - site.active)  # fmt: skip
FAULTS.row("lanes past the workgroup count as behind a guard", "idle_guard", _derived, "idle_guard",
    lambda site: site.executions * site.subgroup_size - site.admitted)  # fmt: skip
FAULTS.row("the last subgroup counts as full", "idle_overhang", _derived, "idle_overhang", lambda site: 0)
FAULTS.row("skipped subgroups are forgotten", "idle_skipped", _derived, "idle_skipped", lambda site: 0)
FAULTS.row("an atomic operation counts once for each subgroup", "atomics", _derived, "atomics",
    lambda site: site.executions if site.site.kind == "atomic" else 0)  # fmt: skip
FAULTS.row("FLOPs count idle lanes, too", "flops", _derived, "flops",
    lambda site: site.executions * site.subgroup_size * site.site.flops)  # fmt: skip
FAULTS.row("turns in workgroup memory are forgotten", "atomic_turns", _derived, "atomic_turns",
    lambda site: site.sectors[at.SERIALIZED_LANES])  # fmt: skip
FAULTS.row("ideal wavefronts are those that were taken", "shared_ideal_wavefronts", _derived, "shared_ideal_wavefronts",
    lambda site: site.banks[at.CHARGED])  # fmt: skip


# ---- probes and masks -----------------------------------------------------------------------------------


def _probe_rows(patch: Any, name: str, change: Callable[[Any], Any]) -> None:
    patch.setattr(probe_table, "PROBES", tuple(change(row) if row.name == name else row for row in probe_table.PROBES))


FAULTS.row("stores to workgroup memory have no probe", "shared_requests", _probe_rows, "banks",
    lambda row: replace(row, events=(ir.Load, ir.Atomic)))  # fmt: skip
FAULTS.row("atomic operations on storage have no probe", "global_requests", _probe_rows, "sectors",
    lambda row: replace(row, events=(ir.Load, ir.Store)))  # fmt: skip


@FAULTS.made_by("probes of memory count idle lanes", "global_bytes")
def _(patch: Any) -> None:
    right = ProbeEmitter._probe

    def probe(self: Any, item: Any, unit: int, stored: Any) -> None:
        add = self._add
        self._add = lambda ins: (setattr(ins, "mask", -1), add(ins))
        right(self, item, unit, stored)
        self._add = add

    patch.setattr(ProbeEmitter, "_probe", probe)


@FAULTS.made_by("executions count idle lanes", "active_lanes")
def _(patch: Any) -> None:
    right = ProbeEmitter.count

    def count(self: Any, item: Any, past_guards: Any) -> None:
        add = self._add
        self._add = lambda ins: (setattr(ins, "mask", -1), add(ins))
        right(self, item, past_guards)
        self._add = add

    patch.setattr(ProbeEmitter, "count", count)


@FAULTS.made_by("no statement is outermost but the whole body", "idle_guard")
def _(patch: Any) -> None:
    patch.setattr(emit, "find_bodies", lambda body, sites: {id(body)})


@FAULTS.made_by("the mask of the other arm is not inverted", "active_lanes")
def _(patch: Any) -> None:
    def complement(self: Any, condition: Any, outer: Any) -> Any:
        lanes = self._operands.all_lanes(condition)
        return lanes if outer is None else self._intersect(outer, lanes)

    patch.setattr(ControlFlow, "_complement", complement)


@FAULTS.made_by("an inner mask forgets the outer one", "active_lanes")
def _(patch: Any) -> None:
    patch.setattr(ControlFlow, "_intersect", lambda self, one, other: other)


@FAULTS.made_by("an operation in a loop is not counted", "executions")
def _(patch: Any) -> None:
    right = Builder.tally

    def tally(self: Any, site: int) -> None:
        if self.here.depth < 2:
            right(self, site)

    patch.setattr(Builder, "tally", tally)


@FAULTS.made_by("the columns of a matrix are one place", "executions")
def _(patch: Any) -> None:
    right = SiteTable.number
    patch.setattr(SiteTable, "number", lambda self, site: right(self, replace(site, part=0)))


@FAULTS.made_by("a store is counted as a load", "executions")
def _(patch: Any) -> None:
    right = accesses.Memory.site

    def site(self: Any, kind: str, *rest: Any) -> int:
        return right(self, "load" if kind == "store" and rest[0].variable.space == "storage" else kind, *rest)

    patch.setattr(accesses.Memory, "site", site)


@FAULTS.made_by("the right side of && runs in all lanes", "active_lanes")
def _(patch: Any) -> None:
    right = expressions.Expressions.branch

    def branch(self: Any, condition: Any, then: Any, orelse: Any = lambda: None, span: Any = None) -> None:
        if span is not None and "&&" in span.text:
            condition = self.builder.op("or_bool", condition, self.builder.op("lnot_bool", condition))
        right(self, condition, then, orelse, span)

    patch.setattr(expressions.Expressions, "branch", branch)


# ---- what is executed -----------------------------------------------------------------------------------


@FAULTS.made_by("a column of a matrix is an element too far", "executions")
def _(patch: Any) -> None:
    right = accesses.leaves
    patch.setattr(accesses, "leaves", lambda type_: [*right(type_)][:-1] if isinstance(type_, t.Mat) else right(type_))


@FAULTS.made_by("a barrier is forgotten", "barriers")
def _(patch: Any) -> None:
    patch.setitem(effects.EFFECTS, "workgroupBarrier", lambda lowering, call: [])
