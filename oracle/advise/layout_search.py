"""`bankshot advise`: search the layouts of workgroup arrays for the shortest predicted time, few wavefronts and little
memory. Without a profile that predicts times, wavefronts decide.

Each row of its table is a run of the changed text. A layout is accepted only if the run leaves the same bits in every
output, requests as many sectors of global memory, has no findings that the original text does not have, and fits into
workgroup memory. Swizzles are chosen by recorded accesses, among all that `swizzles` lists; the best is run. Where the
accesses of all workgroups were recorded, the result is the best of the space that is searched, else a heuristic's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from math import prod
from operator import add, gt
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from ...sim.bounded_cache import remember
from ...sim.cures.patches import Patch
from ...sim.device_files import find, with_times
from ...sim.fast_dataclass import frozen
from ...sim.models.time_model import predict
from ...sim.wgsl import types as t
from ...sim.wgsl.check.pipeline import GRANTED
from ...sim.wgsl.diagnostics import WgslError
from ..errors import UsageError
from ..gpu_counters.access_trace import by_workgroup, record, requests
from ..gpu_counters.wgsl_probes import workgroup_shift
from ..judge.case_run import Say
from ..manifests.manifest import Case
from ..manifests.reflection import check_module
from ..patch_files import write_patch
from .advice import Advice, AdviceReport, Rewritten, Trial, how_slow
from .advised_patch import patch_of_change
from .array_layouts import Change, Layouts, Pitch, counts_of, has_arrays, rows_of
from .bank_patterns import Patterns, patterns_of
from .layout_choice import best_of_arrays, cheapest, fewest_of_arrays, fitting, too_large
from .limits import Stride, residency, scattered, strides
from .rewrites import Rewrite, rewrites
from .swizzle_choice import Cost, Space, fewer
from .swizzles import Swizzle

if TYPE_CHECKING:
    from ...sim.findings.finding import Finding
    from ...sim.run.result import Run
    from ...sim.run.site import Site
    from ...sim.wgsl.typed import Module

COUNTED, WATCHED = ("banks", "sectors"), ("bounds", "races")  # what a change may save, and what it may break
_COSTS = ("shared_wavefronts", "global_sectors")
_WORD = 4  # bytes
_EVERYWHERE = 16_384  # bytes of workgroup memory that every WebGPU device has
_MOST_ROWS = 1 << 22  # recorded of a workgroup; its accesses repeat
_ROWS_OF_STRIDES = 1 << 14  # recorded of the first workgroup
_ROWS_OF_ALL = 1 << 20  # recorded of all workgroups, else of the first
_MOST_MODULES = 8  # changed texts that are kept
_MOST_WORK = 1 << 28  # addresses that a search of the swizzles of all pitches looks at
_Recorded = tuple[Patterns, int, bool]  # of all workgroups, or of the first
_T = TypeVar("_T")
BY = ("time", "wavefronts")
SPREAD = 33  # pitches up to this are tried; if the original is larger, those up to this much above it


@frozen
class Options:
    """What to vary: `pitch` names a constant, `values` are the least and the largest value to try.

    None leaves the choice to the search. `most_bytes`: of workgroup memory; None for what every device has, or what the
    original takes where that is more. `by`: what the best layout has least of: predicted time, where a profile predicts
    it, or wavefronts.
    """

    device: str = "nvidia"
    array: str | None = None
    pitch: str | None = None
    values: tuple[int, int] | None = None
    most_bytes: int | None = None
    by: str = "time"  # one of `BY`


def advise(case: Case, options: Options, say: Say = lambda stage: None, *, apply: bool = False) -> AdviceReport:
    """Try the layouts of the case's workgroup arrays. `apply`: change the files.

    Raises `WgslError`, `UsageError`.
    """
    say("running the original text")
    bench = _Bench(case, options)
    arrays = bench.arrays
    if options.array is not None and options.array not in arrays:
        raise UsageError(f"--array {options.array}: the arrays in workgroup memory are {', '.join(arrays) or 'none'}")
    reasons = bench.structures
    if not arrays and not reasons:
        reasons = [f"{bench.run.pipeline.entry.name} uses no array in workgroup memory"]
    advice: list[Advice] = []
    for array in arrays if options.array is None else [options.array]:
        if not bench.sites([array]):
            reasons.append(f"{array} is not accessed with these data, so that its layout makes no difference")
            continue
        layouts = Layouts(bench.module, bench.run.pipeline, array)
        found = list(_of_array(layouts, bench, options, say, reasons))
        advice += found
        if not bench.excess(array):
            reasons += [] if found else [f"{array} has no bank conflicts"]
        elif not found or min(each.best.excess for each in found):
            reasons += layouts.reasons or ([] if found else [f"no layout of {array} has fewer bank conflicts"])
    if options.pitch is not None and not any(each.pitch == options.pitch for each in advice):
        raise UsageError(f"--pitch {options.pitch}: the module has no integer constant of that name with a known value")
    if bench.written_bytes > bench.most_bytes:
        advice = fitting(advice, bench.written_bytes, bench.most_bytes)
        arrays = {each.array for each in advice}
        advice = [each for each in advice if each.accepted]
        without = arrays - {each.array for each in advice}
        reasons += [_none_accepted(array, too_large(bench.most_bytes)) for array in sorted(without)]
    better = best_of_arrays([each for each in advice if not each.ok])
    together = bench.together([(each.array, each.best.change) for each in better]) if len(better) > 1 else None
    fewest = _fewest(bench, advice) if any(each.slower for each in advice) else None
    tried = _rewritten(bench, say) if options.array is None and options.pitch is None else ()
    change = cheapest(bench.run.counters, better, together, tried, bench.most_bytes)
    any_array = Layouts(bench.module, bench.run.pipeline, bench.arrays[0]) if change else None
    patch = patch_of_change(case, any_array, change, reasons) if change and any_array else Patch({})
    written = write_patch(patch) if apply else ()
    reasons = list(dict.fromkeys(reasons))
    taken = [bench.written_bytes, *([bench.bytes(change)] if change else [])]
    resident = tuple(residency(bench.run, each) for each in taken)
    times = bench.predicted_us(change)
    found = tuple(advice), tuple(reasons), together, patch, written, tried, bench.strides(), resident, times
    return AdviceReport(case, bench.run, bench.run.device.name, *found, bench.timed_as, fewest)


def _fewest(bench: _Bench, advice: Sequence[Advice]) -> Trial:
    """Return the layouts with the fewest wavefronts of all arrays at once; of one array, the run that was made."""
    found = fewest_of_arrays(advice)
    return bench.together([(array, trial.change) for array, trial in found]) if len(found) > 1 else found[0][1]


def _rewritten(bench: _Bench, say: Say) -> tuple[Rewritten, ...]:
    """Try the changes that are not layouts."""
    layouts = [Layouts(bench.module, bench.run.pipeline, array) for array in bench.arrays]
    say("trying other changes")
    return tuple(bench.rewritten(each) for each in rewrites(layouts, bench.run.pipeline))


def _of_array(layouts: Layouts, bench: _Bench, options: Options, say: Say, reasons: list[str]) -> Iterator[Advice]:
    """Try each pitch of an array: its values, then the best swizzle of the original and of the narrowest layout, and
    where conflicts remain of all others.

    Where no layout is accepted, a reason says so: the text as written takes more memory than is allowed, or a race
    makes its outputs differ from run to run.
    """
    array = layouts.array
    pitches: list[Pitch | None] = [*layouts.pitches(options.pitch)]
    if options.pitch is None and all(pitch and pitch.of_rows for pitch in pitches):
        pitches += bench.hidden(layouts)
    for pitch in pitches or [None]:
        say(f"trying other layouts of {array}")
        trials = bench.pitched(layouts, pitch, options)
        if pitch and _half_applied(trials):
            if not any(each and (each.moved or each.is_hidden) for each in pitches):
                pitches += bench.hidden(layouts)
            trials = [trials[0], *(_explained(trial, pitch) for trial in trials[1:])]
        accepted = [trial for trial in trials if trial.refused is None]
        if not accepted:
            reasons.append(_none_accepted(array, trials[0].refused))
            continue
        narrowest = min(accepted, key=lambda trial: trial.pitch)
        complete = True
        for start in (trials[0], narrowest)[: 1 + (narrowest is not trials[0])]:
            if start.excess and layouts.indices:
                swizzles, whole = bench.best_swizzles(array, start)
                complete &= whole
                trials += [bench.swizzled(layouts, start, swizzle) for swizzle in swizzles]
        others = [trial for trial in accepted if trial not in (trials[0], narrowest)]
        known = accepted if bench.timed_as else [trial for trial in trials if trial.refused is None]
        least = min(known, key=lambda trial: trial.wavefronts)
        if others and least.excess and layouts.indices:
            chosen, searched = bench.best_of_pitches(array, narrowest, others, least.wavefronts)
            complete &= searched
            trials += [bench.swizzled(layouts, start, swizzle) for start, swizzle in chosen]
        if len(trials) > 1:
            yield Advice(array, pitch.name if pitch else "", bench.sites([array]), tuple(trials), complete)


def _none_accepted(array: str, reason: str | None) -> str:
    return f"no layout of {array} is accepted, nor is the text as written: {reason}"


def _half_applied(trials: Sequence[Trial]) -> bool:
    """Whether rows that are further apart change what the kernel does: then only a part of the text has changed.

    The first of `trials` is the text as written.
    """
    written, *tried = trials
    return written.refused is None and any(trial.differs and trial.pitch > written.pitch for trial in tried)


def _explained(trial: Trial, pitch: Pitch) -> Trial:
    """Return a trial that says why a pitch that is only a part of what the text says changes what the kernel does."""
    return replace(trial, refused=f"{pitch.name} is only a part of what places the rows") if trial.differs else trial


def _values(pitch: Pitch, options: Options) -> range:
    low, high = options.values or ((0, SPREAD) if pitch.now <= SPREAD else (pitch.now, pitch.now + SPREAD))
    return range(max(low, pitch.least), high + 1)


class _Bench:
    """Runs variants of one case's shader and compares them with the original."""

    def __init__(self, case: Case, options: Options) -> None:
        self._case = case
        self._device = options.device
        self.module = check_module(case.kernel)
        self._changed_modules: dict[Any, Module] = {}
        self.timed_as = with_times(find(options.device)) if options.by == "time" else None
        self._probes = (*COUNTED, "lanes") if self.timed_as else COUNTED
        self.run = self._simulate(self.module, {}, (*COUNTED, *WATCHED, "lanes"))
        self._most_of_one = max(_EVERYWHERE if options.most_bytes is None else options.most_bytes, self.written_bytes)
        self.most_bytes = self._most_of_one if options.most_bytes is None else options.most_bytes

    def _simulate(self, module: Module, overrides: dict[str, int], probes: tuple[str, ...] = COUNTED) -> Run:
        from ... import sim

        return sim.simulate(
            module,
            entry=self._case.kernel.entry,
            grid=self._case.grid,
            bindings=self._case.bindings,
            overrides={**self._case.overrides, **overrides},
            device=self._device,
            probes=probes,
            replay=False,
            cures=False,
        )

    def _changed(self, change: Change) -> Module:
        """Return the module with the edits of a change; the last ones are kept. Raises `WgslError`."""
        made = (change.edits, change.functions)
        return remember(self._changed_modules, made, lambda: change.module(self.module), _MOST_MODULES)

    @property
    def written_bytes(self) -> int:
        """The workgroup memory of the text as written."""
        return self.run.pipeline.workgroup_bytes

    @property
    def arrays(self) -> list[str]:
        """The arrays in workgroup memory that the entry point uses."""
        stored = self.run.pipeline.store_types.items()
        return [v.name for v, type_ in stored if v.space == "workgroup" and isinstance(type_, t.Array)]

    @property
    def structures(self) -> list[str]:
        """A sentence for each structure in workgroup memory that has an array."""
        stored = self.run.pipeline.store_types.items()
        found = [
            v.name for v, held in stored if v.space == "workgroup" and isinstance(held, t.Struct) and has_arrays(held)
        ]
        return [f"{name} is a structure: layouts of arrays in a structure are not searched" for name in found]

    def sites(self, arrays: Collection[str], run: Run | None = None) -> tuple[Site, ...]:
        """Return the accesses to `arrays` that cost wavefronts, in source order."""
        return tuple(site for site in (run or self.run).sites if site.name in arrays and site.shared_requests)

    def excess(self, array: str) -> int:
        """The wavefronts that bank conflicts add to the accesses of an array, in the text as written."""
        return sum(site.shared_wavefronts - site.shared_ideal_wavefronts for site in self.sites([array]))

    def bytes(self, change: Change) -> int:
        """Return the workgroup memory of the text with a change."""
        overrides: dict[str | int, Any] = {**self._case.overrides, **change.overrides}
        return self._changed(change).pipeline(self._case.kernel.entry, overrides, GRANTED).workgroup_bytes

    def us_of(self, run: Run) -> float | None:
        """Return the predicted time of a run; None where no profile predicts it."""
        return None if self.timed_as is None else predict(run.work, self.timed_as).us

    def predicted_us(self, change: Change | None) -> tuple[float, ...]:
        """Return the predicted time of the text as written, and with a change; nothing where no profile predicts it."""
        if self.timed_as is None:
            return ()
        runs = [self.run]
        if change is not None:
            runs.append(self._simulate(self._changed(change), dict(change.overrides), self._probes))
        return tuple(us for run in runs if (us := self.us_of(run)) is not None)

    def strides(self) -> tuple[Stride, ...]:
        """Return how far apart lanes of the first workgroup access global memory, where that costs most."""
        wanted = scattered(self.run)
        try:
            log = record(self._case, self.run, wanted, (0, 0, 0), self.run.grid, _ROWS_OF_STRIDES) if wanted else None
        except UsageError:  # of textures, or of invocations than a log has room for
            return ()
        size = self.run.device.subgroup_size
        return strides(requests(log.rows, log.probes, self.run.program.sites, size)) if log else ()

    def pitched(self, layouts: Layouts, pitch: Pitch | None, options: Options) -> list[Trial]:
        """Run the text as written, and with each value of a pitch.

        Rows that are further apart keep every output. If a run says otherwise, the text has more that depends on the
        pitch than the change of it found, and a function of each index moves the rows instead.
        """
        if pitch is None:
            return [self.trial([layouts.array], 0, Change())]
        values = [value for value in _values(pitch, options) if value != pitch.now]
        written, *tried = [self._at(layouts, pitch, value) for value in (pitch.now, *values)]
        moved = pitch.by_function
        proven = any(trial.refused is None and trial.pitch > pitch.now for trial in tried)
        unknown = not proven and written.refused is None and any(trial.differs for trial in tried)
        if moved and (unknown or _half_applied([written, *tried])):
            again = [self._at(layouts, moved, value) for value in values]
            tried = max(tried, again, key=lambda trials: sum(trial.refused is None for trial in trials))
        return [written, *tried]

    def _at(self, layouts: Layouts, pitch: Pitch, value: int) -> Trial:
        return self.trial([layouts.array], value, layouts.change(pitch, value))

    def swizzled(self, layouts: Layouts, start: Trial, swizzle: Swizzle) -> Trial:
        """Run a layout with its elements swizzled."""
        change = layouts.swizzled(start.change, swizzle, start.row)
        return self.trial([layouts.array], start.pitch, change, swizzle)

    def together(self, layouts: Sequence[tuple[str, Change]]) -> Trial:
        """Run one layout for each of several arrays at once."""
        change = reduce(add, (change for _, change in layouts))
        if change.overlaps:
            return Trial(0, refused="two of the changes are of one place in the text")
        trial = self.trial([array for array, _ in layouts], 0, change)
        fits = trial.refused is not None or trial.bytes <= self.most_bytes
        return trial if fits else replace(trial, refused=too_large(self.most_bytes))

    def trial(self, arrays: Collection[str], pitch: int, change: Change, swizzle: Swizzle | None = None) -> Trial:
        """Run one layout, and count for `arrays`. If it is not accepted, the trial says why."""
        try:
            module = self._changed(change)
            if self.bytes(change) > self._most_of_one:
                return Trial(pitch, swizzle, refused=too_large(self.most_bytes))
            run = self._simulate(module, dict(change.overrides), self._probes)
        except WgslError as error:
            return Trial(pitch, swizzle, refused=error.diagnostics[0].message, differs=True)
        sites = self.sites(arrays, run)
        same_sectors = run.counters["global_sectors"] == self.run.counters["global_sectors"]
        same_outputs = all(_bits(run.outputs[key]) == _bits(value) for key, value in self.run.outputs.items())
        refused = _difference(same_outputs, same_sectors) or self._new_finding(module, dict(change.overrides))
        stored = [held for v, held in run.pipeline.store_types.items() if v.name in arrays]
        return Trial(
            pitch=pitch,
            swizzle=swizzle,
            change=change,
            words=sum(-(-t.size_of(held) // _WORD) for held in stored),
            row=counts_of(stored[0])[-1] if len(counts_of(stored[0])) > 1 else 0,
            bytes=run.pipeline.workgroup_bytes,
            wavefronts=sum(site.shared_wavefronts for site in sites),
            excess=sum(site.shared_wavefronts - site.shared_ideal_wavefronts for site in sites),
            sites=tuple(site.shared_wavefronts for site in sites),
            same_sectors=same_sectors,
            same_outputs=same_outputs,
            us=self.us_of(run) if same_outputs and same_sectors else None,
            refused=refused,
            differs=refused is not None,
        )

    def rewritten(self, rewrite: Rewrite) -> Rewritten:
        """Run the text with a rewrite. If it is not accepted, or saves nothing, the result says why."""
        words, change = rewrite.words, rewrite.change
        try:
            module = self._changed(change)
            if self.bytes(change) > self.most_bytes:
                return Rewritten(words, change, refused=too_large(self.most_bytes))
            run = self._simulate(module, {}, self._probes)
        except WgslError as error:
            return Rewritten(words, change, refused=error.diagnostics[0].message)
        costs, before = ([each.counters[name] for name in _COSTS] for each in (run, self.run))
        same_outputs = all(_bits(run.outputs[key]) == _bits(value) for key, value in self.run.outputs.items())
        refused = _difference(same_outputs, same_sectors=True)
        if refused is None and (costs == before or any(map(gt, costs, before))):
            refused = "no fewer wavefronts and sectors"
        us = self.us_of(run) if refused is None else None
        if us is not None and (written := self.us_of(self.run)) and us > written:
            refused = f"{_saved(before, costs)}, but is {how_slow(us, written)}"
        refused = refused or self._new_finding(module, {})
        wavefronts, sectors = map(int, costs)
        excess = wavefronts - int(run.counters["shared_ideal_wavefronts"])
        return Rewritten(words, change, wavefronts, excess, sectors, run.pipeline.workgroup_bytes, us, refused)

    def best_swizzles(self, array: str, trial: Trial) -> tuple[list[Swizzle], bool]:
        """Return the swizzles of a trial's text to run, and whether the accesses of all workgroups decided, not of the
        first alone: the one with the fewest wavefronts, if one saves any, and where times decide those with fewer
        operations, too."""
        patterns, length, whole = self._patterns(array, trial)
        return [swizzle for swizzle, _ in self._to_run(Space(patterns, length, trial.row or length).best())], whole

    def best_of_pitches(
        self, array: str, base: Trial, others: Sequence[Trial], least: int
    ) -> tuple[list[tuple[Trial, Swizzle]], bool]:
        """Return the layouts of `others` and their swizzles to run, as `best_swizzles` does, if they take fewer
        wavefronts than `least`; and whether all were searched, by the accesses of all workgroups to `base`."""
        recorded = self._patterns(array, base)
        found: list[tuple[Trial, Cost]] = []
        complete, work = recorded[2], 0
        for trial in others:
            patterns, length, whole = self._moved(array, base, trial, recorded)
            space = Space(patterns, length, trial.row or length)
            work, complete = work + space.work, complete and whole
            if work > _MOST_WORK:
                complete = False
                break
            found += [(trial, each) for each in space.best()]
        chosen = self._to_run(fewer(found, lambda each: each[1], least))
        return [(trial, swizzle) for trial, (swizzle, _) in chosen], complete

    def _to_run(self, best: list[_T]) -> list[_T]:
        return best if self.timed_as else best[-1:]

    def _moved(self, array: str, base: Trial, trial: Trial, recorded: _Recorded) -> _Recorded:
        """Return the accesses of `base` in another layout's rows, or that layout's own if more than rows move."""
        patterns, length, whole = recorded
        moved = patterns.with_pitch(base.pitch, trial.pitch)
        if moved is None or (base.row or length) % base.pitch or (whole and moved.wavefronts() != trial.wavefronts):
            return self._patterns(array, trial)
        return moved, length // base.pitch * trial.pitch, whole

    def hidden(self, layouts: Layouts) -> list[Pitch]:
        """Return a pitch that the indices do not show, if there is one: of an array whose accesses leave out the end of
        each row, or, where no swizzle ends the conflicts, one of the factors on the way to its indices."""
        if not layouts.indices or not self.sites([layouts.array]):
            return []
        patterns, length, _ = self._patterns(layouts.array, self.trial([layouts.array], 0, Change()))
        row = layouts.counts[-1]
        rows = patterns.padded_rows(length)
        if rows and row % rows[0] == 0 and (len(layouts.counts) == 1 or rows[0] < row):
            return layouts.hidden(*rows)
        swizzles = Space(patterns, length, row if len(layouts.counts) > 1 else length).best()
        if min([patterns.wavefronts(), *(cost for _, cost in swizzles)]) == patterns.ideal:
            return []  # a swizzle of the text ends all conflicts
        least, best = patterns.wavefronts(), 0
        for pitch in sorted(each for each in layouts.factors if 2 < each < row and row % each == 0):
            for wider in range(pitch + 1, pitch + SPREAD + 1):
                moved = patterns.with_pitch(pitch, wider)
                if moved and (cost := moved.wavefronts()) < least:
                    least, best = cost, pitch
        return layouts.hidden(best, best) if best else []

    def _patterns(self, array: str, trial: Trial) -> _Recorded:
        """Return the accesses to an array in a trial's text, the number of its elements, and whether the accesses are
        those of all workgroups: of the first alone where all are too many."""
        run = self._simulate(self._changed(trial.change), dict(trial.change.overrides))
        sites = run.program.sites
        wanted = [n for n, site in enumerate(sites) if site.variable == array and site.is_work]
        kernel = replace(self._case.kernel, overrides={**self._case.overrides, **trial.change.overrides})
        lanes, workgroups, size = prod(run.pipeline.workgroup_size), prod(run.grid), run.device.subgroup_size
        rows = size * sum(site.shared_requests for site in self.sites([array], run))
        whole = rows <= _ROWS_OF_ALL and workgroups <= 1 << (32 - workgroup_shift(lanes))
        most, count = (rows, workgroups) if whole else (_MOST_ROWS, 1)
        grid = run.grid if whole or "num_workgroups" in run.pipeline.module.source.text else (1, 1, 1)
        log = record(replace(self._case, kernel=kernel), run, wanted, (0, 0, 0), grid, most, count)
        parts = by_workgroup(log.rows, lanes)
        found = [each for part in parts for each in requests(part, log.probes, sites, size, lanes)]
        held = next(type_ for v, type_ in run.pipeline.store_types.items() if v.name == array)
        array_of_rows, length = rows_of(held)
        return patterns_of(found, t.stride_of(array_of_rows), run.device), length, whole and not log.missed

    def _new_finding(self, module: Module, overrides: dict[str, int]) -> str | None:
        """Return what a changed text is found to do that the original does not, in words."""
        known = set(map(_what_and_where, self.run.findings))
        found = self._simulate(module, overrides, WATCHED).findings
        news = [finding for finding in found if _what_and_where(finding) not in known]
        return f"new finding {news[0].code}: {news[0].message}" if news else None


def _difference(same_outputs: bool, same_sectors: bool) -> str | None:
    """Return what a change must keep and does not, in words."""
    if not same_outputs:
        return "outputs differ"
    return None if same_sectors else "the number of global memory sectors differs"


def _saved(before: Sequence[float], after: Sequence[float]) -> str:
    """Return what a change saves of `_COSTS`, in words."""
    pairs = zip(before, after, ("wavefronts", "sectors"), strict=True)
    return "saves " + " and ".join(f"{int(old - new):,} {unit}" for old, new, unit in pairs if old != new)


def _bits(output: Any) -> list[bytes]:
    """Return the bits of an output: an array, bytes, or a list of mip levels."""
    levels = cast(list[Any], output) if isinstance(output, list) else [output]
    return [np.asarray(level).tobytes() if not isinstance(level, bytes) else level for level in levels]


def _what_and_where(finding: Finding) -> tuple[str, tuple[str, int] | None]:
    return finding.code, finding.span and finding.span.place[:2]
