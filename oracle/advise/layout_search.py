"""`bankshot advise`: other layouts of workgroup arrays, run and counted: the fewest wavefronts, at the least memory.

Every row of its table is a run of the changed text. A layout counts only if the run leaves the same bits in every
output, asks global memory for as many sectors, and finds nothing that the text as written does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...sim.fast_dataclass import frozen
from ...sim.wgsl import types as t
from ...sim.wgsl.diagnostics import WgslError
from ..errors import UsageError
from ..judge.case_run import Say
from ..manifests.manifest import Case
from ..manifests.reflection import check_module
from .array_layouts import Change, Layouts, Pitch

PROBES = ("banks", "sectors", "bounds", "races")
SPREAD = 33  # a pitch is tried up to this, or up to this many more than as written where that is more already


@frozen
class Options:
    """`pitch` names the constant to vary, `values` what it is to be; both are found where they are None."""

    device: str = "nvidia"
    array: str | None = None
    pitch: str | None = None
    values: tuple[int, int] | None = None


@frozen
class Trial:
    """One layout, run. `mask` 0: no swizzle. `sites`: wavefronts of each access of the array, as in `Advice.sites`.

    `refused` says why it does not count; where there was no run, the figures are 0.
    """

    pitch: int
    mask: int = 0
    words: int = 0  # of the array
    bytes: int = 0  # of workgroup memory, all arrays
    wavefronts: int = 0
    excess: int = 0
    sites: tuple[int, ...] = ()
    same_sectors: bool = False
    same_outputs: bool = False
    refused: str | None = None

    @property
    def cost(self) -> tuple[int, int]:
        """What the search makes small: wavefronts, then memory."""
        return self.wavefronts, self.bytes


@frozen
class Advice:
    """Layouts of one array, varied by one pitch. `trials`: the first is the text as written."""

    array: str
    pitch: str  # what is varied
    sites: tuple[Any, ...]  # bankshot.Site of the accesses, as written
    trials: tuple[Trial, ...]

    @property
    def written(self) -> Trial:
        return self.trials[0]

    @property
    def best(self) -> Trial:
        """The cheapest that counts; of equals, the one that changes the text the least."""
        return min((trial for trial in self.trials if trial.refused is None), key=lambda trial: trial.cost)

    @property
    def best_pad(self) -> Trial:
        """The best that leaves the columns of a row where they are."""
        plain = (trial for trial in self.trials if trial.refused is None and not trial.mask)
        return min(plain, key=lambda trial: trial.cost)

    @property
    def ok(self) -> bool:
        """Whether nothing is better than the text as written."""
        return self.best is self.written


@frozen
class Advised:
    """All that was tried of one case. `reasons`: in sentences, what was not tried and why."""

    case: Case
    device: str
    advice: tuple[Advice, ...]
    reasons: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return all(advice.ok for advice in self.advice)


def advise(case: Case, options: Options, say: Say = lambda stage: None) -> Advised:
    """Try the layouts of the case's workgroup arrays. Raises `WgslError`, `UsageError`."""
    say("running the text as written")
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
        raise UsageError(f"--pitch {options.pitch}: the module has no whole number of that name that is known here")
    return Advised(case, options.device, tuple(advice), tuple(dict.fromkeys(reasons)))


def _of_array(layouts: Layouts, bench: _Bench, options: Options, say: Say) -> Iterator[Advice]:
    """Advice for each pitch of an array: on its values, and on swizzles of the one as written and of the narrowest."""
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
    """Runs changed texts of one case, and holds them against the text as written."""

    def __init__(self, case: Case, device: str) -> None:
        self._case = case
        self._device = device
        self.module = check_module(case.kernel)
        self.run = self._simulate(self.module, {})

    def _simulate(self, module: Any, overrides: dict[str, int]) -> Any:
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

    def sites(self, array: str, run: Any = None) -> tuple[Any, ...]:
        """The accesses of `array` that are charged for, in the order of the source."""
        return tuple(site for site in (run or self.run).sites if site.name == array and site.shared_requests)

    def trial(self, array: str, pitch: int, mask: int, change: Callable[[], Change]) -> Trial:
        """One layout. What its text, or its run, has against it is said in the trial."""
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

    def _objection(self, run: Any, same_outputs: bool, same_sectors: bool) -> str | None:
        if not same_outputs:
            return "outputs differ"
        if not same_sectors:
            return "global memory is asked for other sectors"
        known = set(map(_what_and_where, self.run.findings))
        news = [finding for finding in run.findings if _what_and_where(finding) not in known]
        return f"finds {news[0].code}: {news[0].message}" if news else None


def _bits(output: Any) -> list[bytes]:
    """The bits of an output: of an array, of bytes, or of a list of mip levels."""
    levels = output if isinstance(output, list) else [output]
    return [np.asarray(level).tobytes() if not isinstance(level, bytes) else level for level in levels]


def _what_and_where(finding: Any) -> tuple[str, Any]:
    return finding.code, finding.span and finding.span.place[:2]
