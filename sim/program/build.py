"""From a pipeline to a program, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..wgsl import types as t
from ..wgsl.records import frozen
from ..wgsl.typed import Pipeline
from .arrivals import find_arrivals
from .checked import join_checks
from .code import allocate
from .contract import combine, contract
from .copies import drop_copies
from .emit import Emitter
from .idle import left_out
from .ir import Margin, Value
from .likeness import Comparison
from .lower import Lowered, lower
from .padding import count_padding
from .passes import ALL, MODELLED, Passes
from .program import Program
from .rounding import Rounding
from .shadows import Shadow, mark_stores
from .tabulate import tabulate
from .tiles import tile
from .uniform import Uniformity, analyse
from .uses import Uses, count_uses, find_uses
from .verify import checked
from .wide import widen

if TYPE_CHECKING:
    from .bounds import Woven


# Passes over instructions, in their order.
SHORTER = {"checked": join_checks, "rename": drop_copies, "tiles": tile, "wide": widen}


def build(
    pipeline: Pipeline,
    *,
    rounding: Rounding,
    probes: frozenset[str],
    together: int,
    abreast: int = 0,
    trace: str | None = None,
    policy: str = "clamp",
    strange: frozenset[int] = frozenset(),
    passes: Passes = ALL,
) -> Program:
    """Lower, analyse, emit and allocate. `together`: workgroups per batch; `abreast`: as many go abreast instead, if
    any; `trace`: a variable that is watched; `policy`: of indices past their end, and `strange`, see `lower`;
    `passes`: those that are on."""
    passes = _needed(passes, rounding, probes)
    lowered = _probed(pipeline, rounding, probes, together, trace, policy, passes, strange)
    return _finish(pipeline, lowered, probes, abreast or together, [], passes, abreast=abreast > 0)


@frozen
class Draft:
    """A pipeline before it is a program of one workgroup at a time: what can be analysed, and what it is made of."""

    pipeline: Pipeline
    lowered: Lowered
    probes: frozenset[str]
    passes: Passes

    def watch(self, comparisons: Sequence[Comparison]) -> None:
        """Have these comparisons looked at wherever they are made."""
        for place, each in enumerate(comparisons):
            items = each.value.region.items
            margin = Margin(each.one, each.other, each.least, each.signed, place)
            items.insert(items.index(each.value) + 1, margin)

    def program(self) -> Program:
        return _finish(self.pipeline, self.lowered, self.probes, 1, [], self.passes)

    def tabulated(self, values: list[Value], step: int, room: int) -> Program:
        """A program that only computes `values`, see `tabulate`."""
        tables = tabulate(self.lowered, values, prod(self.pipeline.workgroup_size), step, room)
        return _finish(self.pipeline, tables, frozenset(), 1, [], self.passes)


def draft(
    pipeline: Pipeline, *, rounding: Rounding, probes: frozenset[str], policy: str, passes: Passes = ALL
) -> Draft:
    passes = _needed(passes, rounding, probes)
    return Draft(pipeline, _probed(pipeline, rounding, probes, 1, None, policy, passes), probes, passes)


def _needed(passes: Passes, rounding: Rounding, probes: frozenset[str]) -> Passes:
    """The passes that are on, and those that the models of compilers rest on, where one looks."""
    return passes | MODELLED if rounding.contracts or "merged" in probes else passes


def _probed(
    pipeline: Pipeline,
    rounding: Rounding,
    probes: frozenset[str],
    together: int,
    trace: str | None,
    policy: str,
    passes: Passes,
    strange: frozenset[int] = frozenset(),
) -> Lowered:
    looks = {"checks": "bounds" in probes, "inspects": "nan" in probes, "strange": strange}
    lowered = _lowered(pipeline, rounding, together, trace=trace, policy=policy, passes=passes, **looks)
    if "nan" in probes:
        uses = _counted(lowered, together)
        for each in lowered.inspects:  # what nothing needs, or is part of something else now, is not looked at
            each.active = each.result in uses.count
    elif "combine" in passes and not rounding.contracts:
        combine(lowered.body, _counted(lowered, together, passes))
        checked(lowered)
    return lowered


def build_with_bounds(
    pipeline: Pipeline, *, rounding: Rounding, subnormal: frozenset[str], together: int, policy: str
) -> tuple[Program, Woven]:
    """The same program with error bounds woven in (see `bounds`), and how to read them."""
    from .bounds import weave  # which few runs need

    lowered = _lowered(pipeline, rounding, together, fold_floats=False, policy=policy)
    woven = weave(lowered, subnormal, _filtered(pipeline), int(np.prod(pipeline.workgroup_size)))
    return _finish(pipeline, lowered, frozenset(), together, woven.shadows), woven


def build_with_sites(
    pipeline: Pipeline, *, rounding: Rounding, together: int, policy: str
) -> tuple[Program, list[Shadow]]:
    """The same program, which also leaves at each element of a buffer 1 + the site that stored it last."""
    lowered = _lowered(pipeline, rounding, together, policy=policy)
    shadows = mark_stores(lowered)
    return _finish(pipeline, lowered, frozenset(), together, shadows), shadows


def build_with_padding(pipeline: Pipeline, *, rounding: Rounding, together: int, policy: str) -> Program:
    """The same program, which also leaves the FLOPs of each invocation that are for nothing (see `padding`)."""
    lowered = lower(pipeline, rounding, checks=False, inspects=False, policy=policy)
    count_padding(lowered, prod(pipeline.workgroup_size))
    return _finish(pipeline, lowered, frozenset(), together, [])


def _lowered(
    pipeline: Pipeline,
    rounding: Rounding,
    together: int,
    *,
    policy: str,
    checks: bool = False,
    inspects: bool = False,
    **how: Any,
) -> Lowered:
    lowered = lower(pipeline, rounding, checks=checks, inspects=inspects, policy=policy, **how)
    checked(lowered)
    if rounding.contracts:
        # What is traced is rounded as if it were not.
        uniformity = _uniformity(lowered, together, ALL)
        contract(lowered.body, count_uses(lowered.body, uniformity, notes=not lowered.points))
        checked(lowered)
    return lowered


def _filtered(pipeline: Pipeline) -> frozenset[str]:
    """The textures of a shader that filters: how exactly, WGSL does not say."""
    names = (v.name for v in pipeline.globals if isinstance(v.type, t.Texture))
    return frozenset(names if any(isinstance(v.type, t.Sampler) for v in pipeline.globals) else ())


def _finish(
    pipeline: Pipeline,
    lowered: Lowered,
    probes: frozenset[str],
    together: int,
    shadows: list[Shadow],
    passes: Passes = ALL,
    *,
    abreast: bool = False,
) -> Program:
    uniformity, uses = _analysed(lowered, together, passes)
    idle = left_out(lowered.body, uniformity, passes)
    looks = probes | {"meets"} if abreast else probes
    emitter = Emitter(lowered.accesses, lowered.sites.rows, uniformity, uses, lowered.spans, looks, together, idle)
    emitter.program(lowered.body)
    code = emitter.code
    for name, shorten in SHORTER.items():
        if name in passes:
            shorten(code)
    for position, label in code.jumps:
        code.instructions[position].a = label.position
    rows = allocate(code, len(emitter.inputs) + len(emitter.constants), "rows" in passes)
    offsets, size = _shared_offsets(pipeline, shadows)
    return Program(
        np.array([ins.encode() for ins in code.instructions], np.int32),
        rows,
        emitter.inputs,
        emitter.constants,
        lowered.accesses,
        lowered.sites.rows,
        emitter.runs,
        emitter.computed,
        emitter.memory_probes,
        emitter.watched,
        emitter.inspected,
        emitter.loops,
        [ins.site for ins in code.instructions],
        probes,
        together,
        pipeline.workgroup_size,
        size,
        offsets,
        dict(pipeline.store_types),
        lowered.points,
        emitter.margins,
        find_arrivals(lowered, uses),
        abreast,
    )


def _analysed(lowered: Lowered, together: int, passes: Passes = ALL) -> tuple[Uniformity, Uses]:
    uniformity = _uniformity(lowered, together, passes)
    return uniformity, find_uses(lowered.body, uniformity, passes=passes)


def _counted(lowered: Lowered, together: int, passes: Passes = ALL) -> Uses:
    return count_uses(lowered.body, _uniformity(lowered, together, passes), passes=passes)


def _uniformity(lowered: Lowered, together: int, passes: Passes) -> Uniformity:
    return analyse(lowered.body, lowered.accesses, lowered.builder.slots, alone=together == 1, passes=passes)


def _shared_offsets(pipeline: Pipeline, shadows: list[Shadow]) -> tuple[dict[str, int], int]:
    """Byte offset of each workgroup variable, each on 16 bytes, and the size of them all."""
    sizes = {v.name: t.size_of(pipeline.store_types[v]) for v in pipeline.globals if v.space == "workgroup"}
    sizes |= {s.variable.name: sizes[s.of.name] * 4 // s.unit for s in shadows if s.of.space == "workgroup"}
    offsets: dict[str, int] = {}
    size = 0
    for name, each in sizes.items():
        offsets[name] = size
        size = t.round_up(16, size + each)
    return offsets, size
