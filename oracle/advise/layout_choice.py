"""Which of the tried layouts and rewrites to take: for each array, and of all changes together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf
from operator import le
from typing import TYPE_CHECKING

from ...sim.fast_dataclass import frozen
from .advice import no_slower

if TYPE_CHECKING:
    from .advice import Advice, Rewritten, Trial
    from .array_layouts import Change


def too_large(most_bytes: int) -> str:
    """Why a layout that takes more memory than this is refused, in words."""
    return f"more than {most_bytes:,} bytes of workgroup memory"


def fitting(advice: Sequence[Advice], written: int, most_bytes: int) -> list[Advice]:
    """Refuse each layout that takes more memory than that of its array in the best choice of one for each array that
    fits, and all where none does.

    `written`: the bytes that the text takes, from which the bytes of each trial differ by those of its array.
    """
    chosen = _best_that_fit(advice, written, most_bytes)
    alone, beside = too_large(most_bytes), f"{too_large(most_bytes)}, beside the layouts of other arrays"
    found: list[Advice] = []
    for each in advice:
        most = chosen[each.array].bytes if chosen else 0
        words = beside if chosen and len(chosen) > 1 else alone
        trials = (
            replace(trial, refused=words) if trial.refused is None and trial.bytes > most else trial
            for trial in each.trials
        )
        found.append(replace(each, trials=tuple(trials)))
    return found


def _best_that_fit(advice: Sequence[Advice], written: int, most_bytes: int) -> dict[str, Trial] | None:
    """Return the layout of each array of the fastest choice that takes at most `most_bytes`; of those as fast, the one
    with the fewest wavefronts, then the fewest changes. None where none fits. Times that layouts save are added up."""
    choices = [_Choice((), 0.0, 0, 0, written)]
    for array in dict.fromkeys(each.array for each in advice):
        pitches = [each for each in advice if each.array == array]
        text = pitches[0].written
        trials = [t for each in pitches for t in each.accepted if t is text or t is not each.written]
        choices = [each.with_one(array, trial, text, written) for each in choices for trial in trials]
        choices = _not_worse(choices)
    fit = [each for each in choices if each.bytes <= most_bytes]
    if not fit:
        return None
    now = max([0.0, *(each.written.us or 0.0 for each in advice)])
    least = now + min(each.us for each in fit)
    fastest = [each for each in fit if no_slower(now + each.us, least)]
    return dict(min(fastest, key=lambda each: (each.wavefronts, each.changes, each.bytes)).trials)


@frozen
class _Choice:
    """A layout for each of some arrays: the microseconds that they add, their wavefronts, how many are not as written,
    and the bytes of the text."""

    trials: tuple[tuple[str, Trial], ...]
    us: float
    wavefronts: int
    changes: int
    bytes: int

    def with_one(self, array: str, trial: Trial, text: Trial, written: int) -> _Choice:
        """Return the choice with a layout of one more array. `text`: as written; `written`: the bytes of the text."""
        return _Choice(
            (*self.trials, (array, trial)),
            self.us + (0.0 if trial.us is None or text.us is None else trial.us - text.us),
            self.wavefronts + trial.wavefronts,
            self.changes + (trial is not text),
            self.bytes + trial.bytes - written,
        )

    @property
    def costs(self) -> tuple[float, ...]:
        return self.us, self.wavefronts, self.changes


def _not_worse(choices: Iterable[_Choice]) -> list[_Choice]:
    """Leave out each choice than which another takes no more bytes, time, wavefronts and changes."""
    kept: list[_Choice] = []
    for each in sorted(choices, key=lambda each: (each.bytes, each.costs)):
        if not any(all(map(le, other.costs, each.costs)) for other in kept):
            kept.append(each)
    return kept


def best_of_arrays(better: Sequence[Advice]) -> list[Advice]:
    """Return the best advice for each array, which may have several pitches."""
    found: list[Advice] = []
    for array in dict.fromkeys(each.array for each in better):
        pitches = [each for each in better if each.array == array]
        least = min(_times(each.best.us for each in pitches))
        fastest = [each for each in pitches if no_slower(each.best.us, least)]
        found.append(min(fastest, key=lambda each: (each.best.wavefronts, each.best.bytes)))
    return found


def fewest_of_arrays(advice: Sequence[Advice]) -> list[tuple[str, Trial]]:
    """Return each array and its layout with the fewest wavefronts, whatever its predicted time."""
    arrays = dict.fromkeys(each.array for each in advice)
    found = {array: [each.fewest for each in advice if each.array == array] for array in arrays}
    return [(array, min(trials, key=lambda trial: trial.wavefronts)) for array, trials in found.items()]


def cheapest(
    counters: Mapping[str, float],
    better: Sequence[Advice],
    together: Trial | None,
    tried: Sequence[Rewritten],
    most_bytes: int,
) -> Change | None:
    """Return the change with the shortest predicted time, or of those that take as long, and where times are not known,
    the fewest wavefronts and sectors: of the best layouts, or of a rewrite. It takes no more than `most_bytes`."""
    fit = [each for each in better if each.best.bytes <= most_bytes]
    written = int(counters["shared_wavefronts"] + counters["global_sectors"])
    found = [(each.wavefronts + each.sectors, each.us, each.change) for each in tried if each.refused is None]
    if together and together.refused is None and no_slower(together.us, min(_times(each.best.us for each in fit))):
        saved = sum(each.written.wavefronts for each in better) - together.wavefronts
        found.insert(0, (written - saved, together.us, together.change))
    else:
        alone = ((written - a.written.wavefronts + a.best.wavefronts, a.best.us, a.best.change) for a in fit)
        found = [*alone, *found]
    least = min(_times(us for _, us, _ in found))
    fastest = [(cost, change) for cost, us, change in found if no_slower(us, least)]
    return min(fastest, key=lambda each: each[0])[1] if fastest else None


def _times(times: Iterable[float | None]) -> list[float]:
    """The times that are known, and one that is longer than any."""
    return [*(us for us in times if us is not None), inf]
