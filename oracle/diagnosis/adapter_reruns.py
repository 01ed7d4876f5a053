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
from .kept_floats import kept
from .loop_limit import NEVER, limited
from .mismatch import Mismatch

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


def zeroing(text: str, pipeline: typed.Pipeline, zero: bool = True) -> str | None:
    """Return the text with statements at the start of the entry point that zero its workgroup memory, as WGSL requires
    of implementations; None where there is no such memory. Without `zero`, there is only the barrier after them."""
    shared = {v: type_ for v, type_ in pipeline.store_types.items() if v.space == "workgroup"}
    body = pipeline.entry.body
    if not shared or body is None:
        return None
    statements = " ".join(_zero(v.name, type_) for v, type_ in shared.items() if zero)
    at = body.span.start + 1
    return f"{text[:at]} {statements} workgroupBarrier(); {text[at:]}"


def _zero(path: str, type_: t.Type, depth: int = 0) -> str:
    """Return a statement that zeroes a variable; `depth` numbers nested loops."""
    match type_:
        case t.Atomic():
            return f"atomicStore(&{path}, 0);"
        case t.Struct() if t.contains_atomic(type_):
            return " ".join(_zero(f"{path}.{m.name}", m.type, depth) for m in type_.members)
        case t.Array(elem=elem, count=count) if t.contains_atomic(type_):
            i = f"zeroed_{depth}"
            return f"for (var {i} = 0u; {i} < {count}u; {i}++) {{ {_zero(f'{path}[{i}]', elem, depth + 1)} }}"
        case _:
            return f"{path} = {type_}();"
