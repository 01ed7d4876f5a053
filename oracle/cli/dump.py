"""`bankshot run --dump STAGE`: the stages of kernels as text, without running them (see `sim.dump`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...sim import dump
from ...sim.run.prepared import dispatch_of, dump_stage
from ..manifests.binding_checks import fit
from ..manifests.cases import Plan
from ..manifests.reflection import check_module


def dump_kernels(work: Sequence[Plan], device: str, probes: str, stages: Sequence[str]) -> Iterator[str]:
    """Return the text of each stage of each kernel at its default size, under a heading if there are several.

    `probes`: all, counters, none, or names separated by commas; they decide which instructions there are. Raises
    `UsageError` and `WgslError`.
    """
    names = probes if probes in ("all", "none") else probes.split(",")
    has_heading = len(work) * len(stages) > 1
    for plan in work:
        for case in plan.cases():
            module = check_module(case.kernel)
            fit(case, module)
            dispatch = dispatch_of(module, **case.launch, device=device)
            for stage in stages:
                heading = f"{dump.heading(stage, dispatch.pipeline)}\n" if has_heading else ""
                yield heading + dump_stage(stage, dispatch, names)
