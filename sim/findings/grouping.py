"""One finding for each pair of places that race, however many parts an access has: elements, members, columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .finding import Finding
from .table import RACE

_VERDICTS = ("harmful", "wrong-barrier", None, "unseen", "same-value")  # the worst first


def group_races(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings with one race for each pair of places: the worst, which counts all."""
    kept: dict[object, Finding] = {}
    for finding in findings:
        key = finding.race_places if finding.code == RACE.code else id(finding)
        known = kept.get(key)
        if known is None:
            kept[key] = finding
            continue
        worst = min(known, finding, key=lambda f: _VERDICTS.index(f.verdict))
        kept[key] = replace(worst, count=known.count + finding.count)
    return list(kept.values())
