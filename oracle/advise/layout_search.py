"""`bankshot advise`: search the layouts of workgroup arrays for the fewest wavefronts and the least memory.

Each row of its table is a run of the changed text. A layout is accepted only if the run leaves the same bits in every
output, requests as many sectors of global memory, and has no findings that the original text does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ...sim.fast_dataclass import frozen
from ...sim.wgsl import types as t
from ...sim.wgsl.diagnostics import WgslError
from ..errors import UsageError
from ..judge.case_run import Say
from ..judge.coverage import CaseOutcome, Compared
from ..manifests.manifest import Case
from ..manifests.reflection import check_module
from .array_layouts import Change, Layouts, Pitch

if TYPE_CHECKING:
    from ...sim.findings.finding import Finding
    from ...sim.run.simulate import Run
    from ...sim.run.site import Site
    from ...sim.wgsl.typed import Module

PROBES = ("banks", "sectors", "bounds", "races")
SPREAD = 33  # pitches up to this are tried; if the original is larger, those up to this much above it


@frozen
class Options:
    """What to vary: `pitch` names a constant, `values` are the least and the largest value to try.

    None leaves the choice to the search.
    """

    device: str = "nvidia"
    array: str | None = None
    pitch: str | None = None
    values: tuple[int, int] | None = None


@frozen
class Trial:
    """The run of one layout.

    `mask` 0 means no swizzle. `sites` are the wavefronts of each access to the array, in the order of `Advice.sites`.
    `refused` says why the layout is not accepted; if it could not run at all, the figures are 0.
    """

    pitch: int
    mask: int = 0
    words: int = 0  # 32-bit words of the array
    bytes: int = 0  # workgroup memory of all arrays
    wavefronts: int = 0
    excess: int = 0
    sites: tuple[int, ...] = ()
    same_sectors: bool = False
    same_outputs: bool = False
    refused: str | None = None

    @property
    def cost(self) -> tuple[int, int]:
        """What the search minimizes: wavefronts, then memory."""
        return self.wavefronts, self.bytes


@frozen
class Advice:
    """The layouts of one array that vary one pitch. `sites` are the accesses of the original text, which is the first
    of `trials`."""

    array: str
    pitch: str
    sites: tuple[Site, ...]
    trials: tuple[Trial, ...]

    @property
    def written(self) -> Trial:
        return self.trials[0]

    @property
    def best(self) -> Trial:
        """The cheapest accepted layout; among equals, the one that changes the text least."""
        return min((trial for trial in self.trials if trial.refused is None), key=lambda trial: trial.cost)

    @property
    def best_pad(self) -> Trial:
        """The cheapest accepted layout without a swizzle."""
        plain = (trial for trial in self.trials if trial.refused is None and not trial.mask)
        return min(plain, key=lambda trial: trial.cost)

    @property
    def ok(self) -> bool:
        """Whether no layout is better than the original."""
        return self.best is self.written


@frozen
class AdviceReport:
    """The advice for one case. `reasons` are sentences that say what was not tried, and why."""

    case: Case
    device: str
    advice: tuple[Advice, ...]
    reasons: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return all(advice.ok for advice in self.advice)

    @property
    def outcome(self) -> CaseOutcome:
        return CaseOutcome.CLEAN if self.ok else CaseOutcome.FAILED

    @property
    def compared(self) -> Compared:
        """Nothing: each layout is compared with the original text alone."""
        return Compared()


def advise(case: Case, options: Options, say: Say = lambda stage: None) -> AdviceReport:
    """Try the layouts of the case's workgroup arrays. Raises `WgslError`, `UsageError`."""
    say("running the original text")
    bench = _Bench(case, options.device)
    arrays = [v.name for v, type_ in bench.run.pipeline.store_types.items()
              if v.space == "workgroup" and isinstance(type_, t.Array)]  # fmt: skip
    if options.array is not None and options.array not in arrays:
        raise UsageError(f"--array {options.array}: the arrays in workgroup memory are {', '.join(arrays) or 'none'}")
    reasons = [] if arrays else [f"{bench.run.pipeline.entry.name} uses no array in workgroup memory"]
    advice: list[Advice] = []
    for array in arrays if options.array is None else [options.array]:
        layouts = Layouts(bench.module, bench.run.pipeline, array)
        advice += _of_array(layouts, bench, options, say)
        reasons += layouts.reasons
    if options.pitch is not None and not any(each.pitch == options.pitch for each in advice):
        raise UsageError(f"--pitch {options.pitch}: the module has no integer constant of that name with a known value")
    return AdviceReport(case, options.device, tuple(advice), tuple(dict.fromkeys(reasons)))


def _of_array(layouts: Layouts, bench: _Bench, options: Options, say: Say) -> Iterator[Advice]:
    """Try each pitch of an array: its values, then swizzles of the original and of the narrowest layout."""
    array = layouts.array
    for pitch in layouts.pitches(options.pitch):
        say(f"trying other layouts of {array}")

        def tried(value: int, mask: int = 0, pitch: Pitch = pitch) -> Trial:
            return bench.trial(array, value, mask, lambda: layouts.change(pitch, value, mask))

        trials = [tried(pitch.now), *(tried(value) for value in _values(pitch.now, options) if value != pitch.now)]
        narrowest = min(trial.pitch for trial in trials if trial.refused is None)
        trials += [
            tried(value, mask) for value in sorted({pitch.now, narrowest}) for mask in layouts.masks(pitch, value)
        ]
        yield Advice(array, pitch.name, bench.sites(array), tuple(trials))


def _values(now: int, options: Options) -> range:
    low, high = options.values or ((0, SPREAD) if now <= SPREAD else (now, now + SPREAD))
    return range(low, high + 1)


class _Bench:
    """Runs variants of one case's shader and compares them with the original."""

    def __init__(self, case: Case, device: str) -> None:
        self._case = case
        self._device = device
        self.module = check_module(case.kernel)
        self.run = self._simulate(self.module, {})

    def _simulate(self, module: Module, overrides: dict[str, int]) -> Run:
        from ... import sim

        return sim.simulate(
            module,
            entry=self._case.kernel.entry,
            grid=self._case.grid,
            bindings=self._case.bindings,
            overrides={**self._case.overrides, **overrides},
            device=self._device,
            probes=PROBES,
        )

    def sites(self, array: str, run: Run | None = None) -> tuple[Site, ...]:
        """Return the accesses to `array` that cost wavefronts, in source order."""
        return tuple(site for site in (run or self.run).sites if site.name == array and site.shared_requests)

    def trial(self, array: str, pitch: int, mask: int, change: Callable[[], Change]) -> Trial:
        """Run one layout. If it is not accepted, the trial says why."""
        try:
            changed = change()
            module = changed.module(self.module)
            run = self._simulate(module, dict(changed.overrides))
        except WgslError as error:
            return Trial(pitch, mask, refused=error.diagnostics[0].message)
        sites = self.sites(array, run)
        same_sectors = run.counters["global_sectors"] == self.run.counters["global_sectors"]
        same_outputs = all(_bits(run.outputs[key]) == _bits(value) for key, value in self.run.outputs.items())
        return Trial(
            pitch=pitch,
            mask=mask,
            words=next(-(-t.size_of(held) // 4) for v, held in run.pipeline.store_types.items() if v.name == array),
            bytes=run.pipeline.workgroup_bytes,
            wavefronts=sum(site.shared_wavefronts for site in sites),
            excess=sum(site.shared_wavefronts - site.shared_ideal_wavefronts for site in sites),
            sites=tuple(site.shared_wavefronts for site in sites),
            same_sectors=same_sectors,
            same_outputs=same_outputs,
            refused=self._objection(run, same_outputs, same_sectors),
        )

    def _objection(self, run: Run, same_outputs: bool, same_sectors: bool) -> str | None:
        if not same_outputs:
            return "outputs differ"
        if not same_sectors:
            return "the number of global memory sectors differs"
        known = set(map(_what_and_where, self.run.findings))
        news = [finding for finding in run.findings if _what_and_where(finding) not in known]
        return f"new finding {news[0].code}: {news[0].message}" if news else None


def _bits(output: Any) -> list[bytes]:
    """Return the bits of an output: an array, bytes, or a list of mip levels."""
    levels = cast(list[Any], output) if isinstance(output, list) else [output]
    return [np.asarray(level).tobytes() if not isinstance(level, bytes) else level for level in levels]


def _what_and_where(finding: Finding) -> tuple[str, tuple[str, int] | None]:
    return finding.code, finding.span and finding.span.place[:2]
