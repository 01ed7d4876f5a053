"""One finding for each place, or pair of places that race, however many parts an access has: elements, members."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..ir.sites import Place, SourceSite
from .finding import Finding
from .table import RACE

VERDICTS = ("harmful", "wrong-barrier", None, "unseen", "same-value")  # the worst first


def group_races(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings with one race for each pair of places: the worst, which counts all."""
    kept: dict[object, Finding] = {}
    for finding in findings:
        key = finding.race_places if finding.code == RACE.code else id(finding)
        known = kept.get(key)
        if known is None:
            kept[key] = finding
            continue
        worst = min(known, finding, key=lambda f: VERDICTS.index(f.verdict))
        kept[key] = replace(worst, count=known.count + finding.count)
    return list(kept.values())


class AtPlaces:
    """Findings by the place of an access. `first`: that of the first part of it that was found."""

    def __init__(self) -> None:
        self.first: dict[Place, Finding] = {}
        self._times: dict[tuple[Place, int], int] = {}

    def counts(self, site: SourceSite, times: int) -> bool:
        """Count a part of an access. Returns whether it is the first of its place that happened at all."""
        if times == 0:
            return False
        place = site.place
        self._times[place, site.part] = self._times.get((place, site.part), 0) + times  # inlined copies are one part
        return place not in self.first

    def findings(self) -> list[Finding]:
        """Return one finding for each place, which happened as often as its most frequent part."""
        most: dict[Place, int] = {}
        for (place, _), times in self._times.items():
            most[place] = max(times, most.get(place, 0))
        return [replace(finding, count=most[place]) for place, finding in self.first.items()]
