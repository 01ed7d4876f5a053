"""Check a simulated case against wgpu, on every requested adapter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import wgpu_client as gpu
from ..errors import DriverDied, GpuError, Lacking, NoAdapter, TooLarge
from ..manifests.manifest import Case
from .case_run import Truth, run_on_both, simulate, timed
from .grid_cap import cut, words
from .options import Log, Options
from .output_checks import OutputCheck, gpu_checks

if TYPE_CHECKING:
    from ...sim import Run

Adapters = dict[str | None, gpu.AdapterInfo]  # by the name in the request; None: the default


def find_adapters(options: Options, log: Log) -> Adapters:
    """Find the adapters to run on. Without any, notes the reason, or raises `NoAdapter` if the options insist."""
    try:
        return {name: gpu.require_adapter(name) for name in gpu.parse_adapters(options.adapter)}
    except NoAdapter as error:
        if options.insists:
            raise
        log.leave_out(f"with wgpu: {error}")
        return {}


def adapter_checks(
    case: Case, run: Run, truth: Truth, options: Options, name: str | None, log: Log
) -> list[OutputCheck]:
    """Check a case against the adapter requested as `name`. `run`: the case as simulated for `options.device`."""
    adapter, device = gpu.require_adapter(name), options.device
    if adapter.profile is None:
        log.note(f"no device profile is known to round as {adapter.name} does; bits are compared under {device}")
    profile = adapter.profile or device
    part = cut(case, run, adapter)
    if part is not case:
        log.note(words(case, part, adapter))
        log.left_out.append(f"with {adapter.name} in full: a software adapter runs a part of a long grid")
    log.say(f"running on {adapter.name}")
    spent: dict[str, float] = {}

    def as_adapter() -> Run:
        if profile == device and part is case:
            return run
        return timed(spent, f"simulator as {profile}", lambda: simulate(part, profile, "none", log.say))

    try:
        on_gpu, ours = run_on_both(part, name, as_adapter)
    except GpuError as error:
        if isinstance(error, DriverDied) or (options.insists and not isinstance(error, Lacking | TooLarge)):
            raise
        log.leave_out(f"with wgpu: {error}")
        return []
    log.seconds |= {f"wgpu on {adapter.name}": on_gpu.took, **on_gpu.clocked, **spent}
    unordered = _unordered(run)
    is_whole = part is case
    checks = gpu_checks(
        part,
        ours,
        on_gpu,
        truth if is_whole else None,
        adapter=name,
        unordered=unordered,
        whole=None if is_whole else run,
    )
    for left_out in sorted({case.name_of(var) for var in unordered} - {check.output for check in checks}):
        log.note(f"{left_out} is not compared with wgpu on {adapter.name}: it depends on the order of invocations")
        log.left_out.append("with wgpu in full: outputs depend on the order of invocations")
    return checks


def _unordered(run: Run) -> set[str]:
    """Return the variables whose contents depend on the order in which invocations reach atomics."""
    findings = (*run.findings, *run.silenced)
    outputs = [key for finding in findings if finding.code == "atomic-order" for key in finding.outputs]
    return {key for key in outputs if isinstance(key, str)}
