"""Run one WGSL text in the simulator and through wgpu, and find every bit in which the outputs differ.

Outputs whose bits the manifest calls free have no bits to compare: both runs are compared with the reference. A case
that an adapter cannot run, or whose counters cannot be compared, has a reason, and is unchecked.
"""

from __future__ import annotations

from dataclasses import field

from ...sim.device_files import find
from ...sim.fast_dataclass import frozen
from ..errors import Lacking, TooLarge, UsageError
from ..manifests.manifest import Case
from ..manifests.rendering_stages import stage_notes
from ..wgpu_client import FALLBACK, AdapterInfo, require_adapter
from .case_run import MAY_HANG, Say, endless, expected_outputs, run_on_gpu, silent, simulate, timed
from .counter_diff import CounterDiff, diff_counters
from .coverage import NO_OUTPUT, CaseOutcome, Compared, Coverage, coverage_of, covered, is_bare
from .output_checks import OutputCheck, gpu_checks, reference_check

COUNTED = "counters"


@frozen
class Options:
    """`device` None: the profile that rounds as the adapter does. `worst`: how many differing elements are listed.
    `counters`: compare them too."""

    device: str | None = None
    worst: int = 10
    counters: bool = False


@frozen
class Diff:
    """`device` is the profile that the simulator rounded as. `counters`: where they were compared too. `not_run` and
    `not_counted` say why something was not compared. `notes`: what is left out of the shader."""

    case: Case
    device: str
    adapter: AdapterInfo
    outputs: tuple[OutputCheck, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    counters: CounterDiff | None = None
    not_run: str | None = None
    not_counted: str | None = None
    coverage: Coverage = Coverage()
    notes: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        outputs = all(check.comparison.ok for check in self.outputs)
        return not (outputs and (self.counters is None or self.counters.ok))

    @property
    def stopped(self) -> bool:
        """Whether the simulated run was ended before its end."""
        return self.not_run == MAY_HANG

    @property
    def unchecked(self) -> tuple[str, ...]:
        """What was not compared, in words, if that counts against the case."""
        if self.not_run:
            return (self.not_run,)
        bare = is_bare(self.case) and not any(check.comparison.vacuous for check in self.outputs)
        outputs = () if bare else self.coverage.left_words
        if not is_bare(self.case) and not self.coverage.outputs and self.counters is None:
            outputs = (NO_OUTPUT,)
        return (*outputs, *([self.not_counted] if self.not_counted else []))

    @property
    def outcome(self) -> CaseOutcome:
        if self.differs:
            return CaseOutcome.FAILED
        return CaseOutcome.UNCHECKED if self.unchecked else CaseOutcome.CLEAN

    @property
    def ok(self) -> bool:
        return self.outcome.ok

    @property
    def compared(self) -> Compared:
        """What the last line of the command says about the case."""
        reasons = [f"with {self.adapter.name}: {self.not_run}"] if self.not_run else []
        reasons += [f"{each.output} with {self.adapter.name}" for each in self.coverage.left if not self.not_run]
        reasons += [f"counters: {self.not_counted}"] if self.not_counted else []
        counted = [COUNTED] if self.counters is not None else []
        return Compared((*self.coverage.truths, *counted), tuple(reasons), bare=is_bare(self.case))


def diff(case: Case, adapter: str | None, options: Options, say: Say = silent) -> Diff:
    """Run `case` both ways. Raises `NoAdapter`, and `GpuError` where wgpu refuses the shader."""
    info = require_adapter(adapter)
    profile = options.device or info.profile or FALLBACK
    seconds: dict[str, float] = {}
    run = timed(seconds, f"simulator as {profile}", lambda: simulate(case, profile, "none", say))
    name = find(profile).name
    if endless(run):
        return Diff(case, name, info, not_run=MAY_HANG)
    say(f"running on {info.name}")
    try:
        on_gpu = timed(seconds, f"wgpu on {info.name}", lambda: run_on_gpu(case, adapter))
    except (Lacking, TooLarge) as error:
        return Diff(case, name, info, not_run=str(error))
    seconds.update(on_gpu.clocked)
    truth = timed(seconds, "reference", lambda: expected_outputs(case)) if case.kernel.free else {}
    outputs = [reference_check(case, truth, name, run, run) for name in sorted(case.kernel.free)]
    outputs += gpu_checks(case, run, on_gpu, truth, options.worst, adapter)
    coverage = coverage_of(case, run.pipeline, outputs)
    counted, reason = None, None
    if options.counters:
        try:
            counted = timed(seconds, "counters", lambda: diff_counters(case, profile, adapter, say))
        except UsageError as error:
            reason = str(error)
    checks = covered(outputs, coverage)
    notes = stage_notes(run.pipeline.module)
    return Diff(case, name, info, checks, seconds, counted, not_counted=reason, coverage=coverage, notes=notes)
