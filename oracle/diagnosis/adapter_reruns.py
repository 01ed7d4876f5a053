"""Causes found by rerunning on the GPU, for outputs that are compared with a GPU's."""

from __future__ import annotations

import numpy as np

from ...sim.wgsl import typed
from ...sim.wgsl import types as t
from ...sim.wgsl.diagnostics import WgslError
from ..comparison.bits import bits_of
from ..comparison.compare import rejected
from ..comparison.rules import EXACT
from ..errors import GpuError, UsageError
from .kept_floats import ZERO, kept
from .loop_limit import NEVER, limited
from .mismatch import Mismatch
from .simulator_reruns import decides

RERUNS = 2  # to detect results that vary from run to run


def reorders_floats(m: Mismatch) -> str | None:
    """Detect that the driver rewrites float arithmetic: the GPU agrees bit for bit with the simulator, which fuses
    nothing that the text keeps apart, where each operation keeps its own result."""
    text = None if m.on_gpu is None else kept(m.run.pipeline)
    if text is None:
        return None
    try:
        ours = m.rerun_output(device=m.run.device.with_(fma="fused")) if m.run.device.fma == "contracted" else m.ours
        if rejected(m.run_on_gpu(text), ours, EXACT).any():
            return None
    except (GpuError, WgslError, UsageError):
        return None
    return "the driver reorders floats; wgpu agrees bit for bit where each operation keeps its own result"


def reordering_within_bounds(m: Mismatch) -> str | None:
    """Detect that the driver rewrites float arithmetic, and that all errors are within the derived bounds."""
    return reorders_floats(m) if m.within_bounds else None


def loops_left(m: Mismatch) -> str | None:
    """Detect that the driver leaves loops early: all elements agree with the simulator under the driver's limit, and
    not with the same text without a limit."""
    from ... import sim

    limit = m.run.device.loop_turns
    if m.on_gpu is None or limit is None:
        return None

    def agrees(text: str) -> bool:
        return m.agrees(m.rerun_output(module=sim.check(text, uniformity="off")))

    for text, control in zip(limited(m.run.pipeline, limit), limited(m.run.pipeline, NEVER), strict=True):
        try:
            found = agrees(text) and not agrees(control)
        except WgslError:  # a loop at whose end nothing is returned, for example
            continue
        if found:
            return f"the driver leaves loops after {limit:,} turns; under that limit, {m.all_elements_agree}"
    return None


def unsteady(m: Mismatch) -> str | None:
    """Detect that the GPU's output varies from run to run."""
    if m.on_gpu is None:
        return None
    for _ in range(RERUNS):
        again = m.run_on_gpu()
        differ = int(np.count_nonzero(bits_of(again) != bits_of(m.expected)))
        if differ:
            return f"wgpu gives different results from run to run: {differ:,} elements differ"
    return None


def not_zeroed(m: Mismatch) -> str | None:
    """Detect that the GPU did not zero workgroup memory: outputs agree where the shader zeroes it itself."""
    if m.on_gpu is None:
        return None
    text = zeroing(m.run.pipeline.module.source.text, m.run.pipeline)
    try:
        if text is None or rejected(m.run_on_gpu(text), m.ours, m.rule, m.bound).any():
            return None
        alone = zeroing(m.run.pipeline.module.source.text, m.run.pipeline, zero=False)
        if not rejected(m.run_on_gpu(alone), m.ours, m.rule, m.bound).any():
            return None
    except GpuError:
        return None
    return "wgpu did not zero workgroup memory; it agrees where the shader zeroes it"


def racing_memory(m: Mismatch) -> str | None:
    """Detect a race that decides an output, where the GPU's loads come before stores that they race with: then zeroed
    memory makes a difference, too."""
    evidence = decides("race", 0)(m) if m.on_gpu is not None and m.find("race") else None
    return evidence if evidence is not None and not_zeroed(m) is not None else None


def zeroing(text: str, pipeline: typed.Pipeline, zero: bool = True) -> str | None:
    """Return the text with statements at the start of the entry point that zero its workgroup memory, as WGSL requires
    of implementations; None where there is no such memory. Without `zero`, there is only the barrier after them."""
    statements, body = zeroing_statements(pipeline), pipeline.entry.body
    if not statements or body is None:
        return None
    at = body.span.start + 1
    return f"{text[:at]} {statements if zero else ''} workgroupBarrier(); {text[at:]}"


def zeroing_statements(pipeline: typed.Pipeline) -> str:
    """Return statements that zero the workgroup memory of an entry point; none where it has none."""
    shared = [v for v in pipeline.store_types if v.space == "workgroup"]
    return " ".join(_zero(v.name, v.type, pipeline.store_types[v]) for v in shared)


def filling(entry: str) -> str:
    """Return a text whose run leaves other values than zeros in workgroup memory, for a driver that reuses it.

    It has the binding `kept_floats.ZERO`, without which drivers would leave out the stores.
    """
    return f"""
@group(0) @binding(0) var<storage, read_write> {ZERO}: array<u32>;
var<workgroup> filled: array<u32, 4096>;
@compute @workgroup_size(64) fn {entry}(@builtin(local_invocation_index) i: u32) {{
    for (var k = i; k < 4096u; k += 64u) {{ filled[k] = 0x7fc07fc0u + {ZERO}[0]; }}
    workgroupBarrier();
    {ZERO}[0] = filled[({ZERO}[0] + 4095u) % 4096u];
}}
"""


def _zero(path: str, type_: t.Type, sized: t.Type, depth: int = 0) -> str:
    """Return a statement that zeroes a variable. `sized`: its type with the values of overrides; `depth` numbers nested
    loops."""
    match type_, sized:
        case t.Atomic(), _:
            return f"atomicStore(&{path}, 0);"
        case t.Struct(), t.Struct() if t.contains_atomic(type_):
            parts = zip(type_.members, sized.members, strict=True)
            return " ".join(_zero(f"{path}.{of.name}", of.type, to.type, depth) for of, to in parts)
        case t.Array(), t.Array() if t.contains_atomic(type_) or isinstance(type_.count, t.OverrideCount):
            i = f"zeroed_{depth}"
            each = _zero(f"{path}[{i}]", type_.elem, sized.elem, depth + 1)
            return f"for (var {i} = 0u; {i} < {sized.count}u; {i}++) {{ {each} }}"
        case _:
            return f"{path} = {type_}();"
