"""The same WGSL text through the simulator and through wgpu, and every bit in which the outputs differ.

Outputs whose bits the manifest calls free have no bits to compare: wgpu's are held against the reference.
"""

from __future__ import annotations

from dataclasses import dataclass

from .audit import OutputCheck, Say, expected_outputs, gpu_checks, run_on_gpu, simulate, timed
from .gpu import AdapterInfo, require_adapter
from .kernels.manifest import Case
from .probing.counters import CounterDiff, diff_counters

FALLBACK = "lavapipe"  # the profile for adapters whose rounding nobody has measured


@dataclass(frozen=True, slots=True)
class Diff:
    """`device` is the profile that the simulator rounded as. `counters`: where they were compared too."""

    case: Case
    device: str
    adapter: AdapterInfo
    outputs: tuple[OutputCheck, ...]
    seconds: dict[str, float]
    counters: CounterDiff | None = None

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.outputs) and (self.counters is None or self.counters.ok)


def diff(
    case: Case,
    device: str | None,
    adapter: str | None,
    worst: int,
    counters: bool = False,
    say: Say = lambda stage: None,
) -> Diff:
    """Run `case` both ways. `device` None: the profile that rounds as the adapter does. `counters`: compare them too.

    Raises `NoAdapter`.
    """
    info = require_adapter(adapter)
    profile = device or info.profile or FALLBACK
    seconds: dict[str, float] = {}
    say(f"running on {info.name}")
    on_gpu = timed(seconds, f"wgpu on {info.name}", lambda: run_on_gpu(case, adapter))
    run = timed(seconds, f"simulator as {profile}", lambda: simulate(case, profile, "none", say))
    truth = timed(seconds, "reference", lambda: expected_outputs(case)) if case.kernel.free else {}
    outputs = tuple(gpu_checks(case, run, on_gpu, truth, worst, adapter))
    counted = timed(seconds, "counters", lambda: diff_counters(case, profile, adapter, say)) if counters else None
    return Diff(case, profile, info, outputs, seconds, counted)
