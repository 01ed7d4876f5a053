"""Which of the tried layouts and rewrites to take: for each array, and of all changes together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from .advice import no_slower

if TYPE_CHECKING:
    from .advice import Advice, Rewritten, Trial
    from .array_layouts import Change


def too_large(most_bytes: int) -> str:
    """Why a layout that takes more memory than this is refused, in words."""
    return f"more than {most_bytes:,} bytes of workgroup memory"


def fitting(advice: Sequence[Advice], written: int, most_bytes: int) -> list[Advice]:
    """Refuse each layout that does not fit, even where all other arrays have the layout that takes least.

    `written`: the bytes that the text takes, from which the bytes of each trial differ by those of its array.
    """
    saved: dict[str, int] = {}
    for each in advice:
        saved[each.array] = max([saved.get(each.array, 0), *(written - trial.bytes for trial in each.accepted)])
    found: list[Advice] = []
    for each in advice:
        most = most_bytes + sum(saved.values()) - saved[each.array]
        trials = (
            replace(trial, refused=too_large(most_bytes)) if trial.refused is None and trial.bytes > most else trial
            for trial in each.trials
        )
        found.append(replace(each, trials=tuple(trials)))
    return found


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
