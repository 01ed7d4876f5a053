"""Run one WGSL text in the simulator and through wgpu, and find every bit in which the outputs differ.

Outputs whose bits the manifest calls free have no bits to compare: wgpu's are compared with the reference. A case that
an adapter cannot run, or whose counters cannot be compared, has a reason, and is neither clean nor a difference.
"""

from __future__ import annotations

from dataclasses import field

from ...sim.fast_dataclass import frozen
from ..errors import Lacking, TooLarge, UsageError
from ..manifests.manifest import Case
from ..wgpu_client import FALLBACK, AdapterInfo, require_adapter
from .case_run import MAY_HANG, Say, endless, expected_outputs, run_on_gpu, silent, simulate, timed
from .counter_diff import CounterDiff, diff_counters
from .output_checks import OutputCheck, gpu_checks


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
    `not_counted` say why something was not compared."""

    case: Case
    device: str
    adapter: AdapterInfo
    outputs: tuple[OutputCheck, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    counters: CounterDiff | None = None
    not_run: str | None = None
    not_counted: str | None = None

    @property
    def differs(self) -> bool:
        outputs = all(check.comparison.ok for check in self.outputs)
        return not (outputs and (self.counters is None or self.counters.ok))

    @property
    def refused(self) -> str | None:
        """Why the case is not clean, although nothing differs."""
        vacuous = ", ".join(check.output for check in self.outputs if check.comparison.vacuous)
        unchecked = f"no element of {vacuous} has a bound" if vacuous else None
        return None if self.differs else self.not_run or unchecked or self.not_counted

    @property
    def ok(self) -> bool:
        return not self.differs and self.refused is None


def diff(case: Case, adapter: str | None, options: Options, say: Say = silent) -> Diff:
    """Run `case` both ways. Raises `NoAdapter`, and `GpuError` where wgpu refuses the shader."""
    info = require_adapter(adapter)
    profile = options.device or info.profile or FALLBACK
    seconds: dict[str, float] = {}
    run = timed(seconds, f"simulator as {profile}", lambda: simulate(case, profile, "none", say))
    if endless(run):
        return Diff(case, profile, info, not_run=MAY_HANG)
    say(f"running on {info.name}")
    try:
        on_gpu = timed(seconds, f"wgpu on {info.name}", lambda: run_on_gpu(case, adapter))
    except (Lacking, TooLarge) as error:
        return Diff(case, profile, info, not_run=str(error))
    seconds.update(on_gpu.clocked)
    truth = timed(seconds, "reference", lambda: expected_outputs(case)) if case.kernel.free else {}
    outputs = tuple(gpu_checks(case, run, on_gpu, truth, options.worst, adapter))
    counted, reason = None, None
    if options.counters:
        try:
            counted = timed(seconds, "counters", lambda: diff_counters(case, profile, adapter, say))
        except UsageError as error:
            reason = str(error)
    return Diff(case, profile, info, outputs, seconds, counted, not_counted=reason)
