"""From a pipeline to a program: lowering, the passes over ir, emission, the passes over instructions, and registers.

`build` is the usual way. `draft` stops before emission, for analyses; the other `build_with_…` add instrumentation.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from ..analysis.dead_flops import count_dead_flops
from ..analysis.lane_uniformity import Uniformity, find_uniformity
from ..analysis.order_dependent_atomics import find_order_dependent_atomics
from ..analysis.tabulate import tabulate
from ..analysis.tail_lanes import find_tail_lanes
from ..analysis.uses import Uses, count_uses, find_copies
from ..analysis.workgroup_equivalence import Comparison
from ..fast_dataclass import frozen
from ..instrument.shadows import Shadow, mark_stores
from ..ir.ir import Margin, Value
from ..ir.lowered import Lowered
from ..ir.passes import ALL, MODELLED, Passes
from ..ir.rounding import Rounding
from ..ir.verify import checked
from ..lowering.lower import lower
from ..utilization.steps import Chunk, note_steps
from ..wgsl import types as t
from ..wgsl.typed import Pipeline
from ..without_gc import without_gc
from .checked_sums import join_checks
from .copies import drop_copies
from .emit import Emitter
from .fma_contraction import combine, contract, has_products
from .loops import note_costs
from .outer_products import tile
from .program import Program, has_storage_atomics
from .virtual_registers import assemble
from .wide_accesses import mark_wide_accesses

if TYPE_CHECKING:
    from ..instrument.error_bounds import Instrumented


# The passes over instructions, in the order in which they run.
INSTRUCTION_PASSES = {"checked": join_checks, "rename": drop_copies, "tiles": tile, "wide": mark_wide_accesses}


@without_gc()
def build(
    pipeline: Pipeline,
    *,
    rounding: Rounding,
    probes: frozenset[str],
    workgroups_per_batch: int,
    interleaved: int = 0,
    trace: str | None = None,
    policy: str = "clamp",
    poisoned: frozenset[int] = frozenset(),
    passes: Passes = ALL,
) -> Program:
    """Build the program of a pipeline.

    `workgroups_per_batch` workgroups run in one row of registers; `interleaved`: so many are interleaved instead, if
    any. `trace`: the name of a variable to trace. `policy`: what indices out of bounds do (clamp, zero or wrap).
    `poisoned`: see `lower`. `passes`: those that are on."""
    passes = _needed(passes, rounding, probes)
    ready, facts = _probed(pipeline, rounding, probes, workgroups_per_batch, trace, policy, passes, poisoned)
    if interleaved:
        program = _finish(pipeline, ready, probes, interleaved, passes=passes, interleaved=True)
    else:
        program = _finish(pipeline, ready, probes, workgroups_per_batch, passes=passes, facts=facts)
    ready.discard()
    return program


def lowered(pipeline: Pipeline, **options: Any) -> Lowered:
    """Return what `build` generates code from, with the same options."""
    return draft(pipeline, **options).lowered


@frozen
class Draft:
    """A lowered pipeline, for analyses, that can become a program."""

    pipeline: Pipeline
    lowered: Lowered
    probes: frozenset[str]
    passes: Passes
    workgroups_per_batch: int

    def watch(self, comparisons: Sequence[Comparison]) -> None:
        """Measure the margins of comparisons, each by its place in the sequence."""
        for place, each in enumerate(comparisons):
            items = each.value.region.items
            margin = Margin(each.one, each.other, each.least, each.signed, place)
            items.insert(items.index(each.value) + 1, margin)

    def program(self) -> Program:
        return _finish(self.pipeline, self.lowered, self.probes, self.workgroups_per_batch, passes=self.passes)

    def tabulated(self, values: list[Value], step: int, room: int) -> Program:
        """Build a program that only computes `values` (see `analysis.tabulate`)."""
        tables = tabulate(self.lowered, values, prod(self.pipeline.workgroup_size), step, room)
        return _finish(self.pipeline, tables, frozenset(), 1, passes=self.passes)


@without_gc()
def draft(
    pipeline: Pipeline,
    *,
    rounding: Rounding,
    probes: frozenset[str],
    workgroups_per_batch: int = 1,
    trace: str | None = None,
    policy: str = "clamp",
    poisoned: frozenset[int] = frozenset(),
    passes: Passes = ALL,
) -> Draft:
    """Lower a pipeline, with the same arguments as `build`."""
    passes = _needed(passes, rounding, probes)
    ready, _ = _probed(pipeline, rounding, probes, workgroups_per_batch, trace, policy, passes, poisoned)
    return Draft(pipeline, ready, probes, passes, workgroups_per_batch)


_Facts = tuple[Uniformity, Uses]  # without `copies` and `addresses`


def _needed(passes: Passes, rounding: Rounding, probes: frozenset[str]) -> Passes:
    """Return the passes that are on, with those that models of compilers need if one is used."""
    return passes | MODELLED if rounding.contracts or "merged" in probes else passes


def _probed(
    pipeline: Pipeline,
    rounding: Rounding,
    probes: frozenset[str],
    workgroups_per_batch: int,
    trace: str | None,
    policy: str,
    passes: Passes,
    poisoned: frozenset[int] = frozenset(),
) -> tuple[Lowered, _Facts | None]:
    """Lower a pipeline for these probes. Returns the facts about the result as well, if they had to be found."""
    lowered = _lowered(
        pipeline,
        rounding,
        policy=policy,
        checks="bounds" in probes,
        inspects="nan" in probes,
        trace=trace,
        passes=passes,
        poisoned=poisoned,
        widens="components" in probes,
    )
    inspects = lowered.inspects if "nan" in probes else []
    combines = "nan" not in probes and "combine" in passes and not rounding.contracts and has_products(lowered)
    if not (inspects or combines):
        return lowered, None
    uniformity = _uniformity(lowered, workgroups_per_batch, passes)
    uses = count_uses(lowered.body, uniformity, passes=passes, inspects=inspects)
    if combines:
        combine(lowered.body, uses)
        checked(lowered)
    return lowered, (uniformity, uses)


def build_with_bounds(
    pipeline: Pipeline, *, rounding: Rounding, subnormal: frozenset[str], workgroups_per_batch: int, policy: str
) -> tuple[Program, Instrumented]:
    """Build a program that also computes error bounds. Returns it with how to read them (see `Instrumented`)."""
    from ..instrument.error_bounds import add_error_bounds  # few runs need it

    lowered = _lowered(pipeline, rounding, fold_floats=False, policy=policy)
    instrumented = add_error_bounds(lowered, subnormal, _filtered(pipeline), prod(pipeline.workgroup_size))
    checked(lowered)
    return _finish(pipeline, lowered, frozenset(), workgroups_per_batch, instrumented.shadows), instrumented


def build_with_sites(
    pipeline: Pipeline, *, rounding: Rounding, workgroups_per_batch: int, policy: str
) -> tuple[Program, list[Shadow]]:
    """Build a program that also leaves, in the shadow of each element of a buffer, 1 + the site that stored it last."""
    lowered = _lowered(pipeline, rounding, policy=policy)
    shadows = mark_stores(lowered)
    checked(lowered)
    return _finish(pipeline, lowered, frozenset(), workgroups_per_batch, shadows), shadows


def build_with_dead_flops(pipeline: Pipeline, *, rounding: Rounding, workgroups_per_batch: int, policy: str) -> Program:
    """Build a program that also stores the dead FLOPs of each invocation (see `analysis.dead_flops`)."""
    lowered = lower(pipeline, rounding, checks=False, inspects=False, policy=policy)
    count_dead_flops(lowered, prod(pipeline.workgroup_size))
    checked(lowered)
    return _finish(pipeline, lowered, frozenset(), workgroups_per_batch)


def build_with_steps(pipeline: Pipeline, *, rounding: Rounding, policy: str) -> tuple[Program, list[Chunk]]:
    """Build a program whose trace has the steps of a workgroup (see `utilization.steps`)."""
    lowered = lower(pipeline, rounding, checks=False, inspects=False, policy=policy, passes=frozenset())
    chunks = note_steps(lowered)
    checked(lowered)
    return _finish(pipeline, lowered, frozenset(), 1), chunks


def _lowered(
    pipeline: Pipeline,
    rounding: Rounding,
    *,
    policy: str,
    checks: bool = False,
    inspects: bool = False,
    fold_floats: bool = True,
    trace: str | None = None,
    passes: Passes = ALL,
    poisoned: frozenset[int] = frozenset(),
    widens: bool = False,
) -> Lowered:
    lowered = lower(
        pipeline,
        rounding,
        checks=checks,
        inspects=inspects,
        policy=policy,
        fold_floats=fold_floats,
        trace=trace,
        passes=passes,
        poisoned=poisoned,
        widens=widens,
    )
    checked(lowered)
    if rounding.contracts and has_products(lowered):
        # A trace must not change the rounding, so traced values are not uses.
        contract(lowered, count_uses(lowered.body, Uniformity(), notes=not lowered.points))
        checked(lowered)
    return lowered


def _filtered(pipeline: Pipeline) -> frozenset[str]:
    """Return the textures of a shader that filters, for which WGSL gives no accuracy."""
    names = (v.name for v in pipeline.globals if isinstance(v.type, t.Texture))
    return frozenset(names if any(isinstance(v.type, t.Sampler) for v in pipeline.globals) else ())


def _finish(
    pipeline: Pipeline,
    lowered: Lowered,
    probes: frozenset[str],
    workgroups_per_batch: int,
    shadows: Sequence[Shadow] = (),
    *,
    passes: Passes = ALL,
    interleaved: bool = False,
    facts: _Facts | None = None,
) -> Program:
    """Generate code. `facts`: those about the program as it is, if they are known."""
    if facts is None:
        uniformity = _uniformity(lowered, workgroups_per_batch, passes)
        facts = uniformity, count_uses(lowered.body, uniformity, passes=passes)
    uniformity, uses = facts
    find_copies(uses, lowered.body, uniformity)
    tail_lanes = find_tail_lanes(lowered.body, uniformity, passes)
    emitted = probes | {"meets"} if interleaved else probes
    if not has_storage_atomics(lowered.sites.rows):  # else one thread runs it
        emitted |= {"loaded"}
    emitter = Emitter(lowered, uniformity, uses, tail_lanes, emitted, workgroups_per_batch)
    code, operands, tables = emitter.code, emitter.operands, emitter.probes
    for name, shorten in INSTRUCTION_PASSES.items():
        if name in passes:
            shorten(code)
    for position, label in code.jumps:
        code.instructions[position].a = label.position
    encoded, rows = assemble(code, operands.fixed_rows, "rows" in passes)
    offsets, size = _shared_offsets(pipeline, shadows)
    note_costs(encoded)
    return Program(
        encoded,
        rows,
        {name: reg.row for name, reg in operands.inputs.items()},
        {bits: reg.row for bits, reg in operands.constants.items()},
        lowered.accesses,
        lowered.sites.rows,
        tables.block_sites,
        tables.block_instructions,
        tables.memory_probes,
        tables.race_probes,
        tables.value_checks,
        emitter.flow.loops,
        [ins.span for ins in code.instructions],
        probes,
        workgroups_per_batch,
        pipeline.workgroup_size,
        size,
        offsets,
        dict(pipeline.store_types),
        lowered.points,
        tables.margin_count,
        find_order_dependent_atomics(lowered, uses),
        interleaved,
        emitter.flow.waits,
    )


def _uniformity(lowered: Lowered, workgroups_per_batch: int, passes: Passes) -> Uniformity:
    return find_uniformity(
        lowered.body, lowered.accesses, lowered.builder.slots, one_workgroup=workgroups_per_batch == 1, passes=passes
    )


def _shared_offsets(pipeline: Pipeline, shadows: Sequence[Shadow]) -> tuple[dict[str, int], int]:
    """Return the byte offset of each workgroup variable, aligned to 16 bytes, and the size of all."""
    sizes = {v.name: t.size_of(pipeline.store_types[v]) for v in pipeline.globals if v.space == "workgroup"}
    sizes |= {s.variable.name: sizes[s.of.name] * 4 // s.unit for s in shadows if s.of.space == "workgroup"}
    offsets: dict[str, int] = {}
    size = 0
    for name, each in sizes.items():
        offsets[name] = size
        size = t.round_up(16, size + each)
    return offsets, size
