"""One finding for each pair of places that race, however many parts an access has: elements, members, columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .finding import Finding

_VERDICTS = ("harmful", "wrong-barrier", None, "unseen", "same-value")  # the worst first


def group_races(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings with one race for each pair of places: the worst, which counts all."""
    kept: dict[object, Finding] = {}
    for finding in findings:
        key = _pair(finding)
        known = kept.get(key)
        if known is None:
            kept[key] = finding
            continue
        worst = min(known, finding, key=lambda f: _VERDICTS.index(f.verdict))
        kept[key] = replace(worst, count=known.count + finding.count)
    return list(kept.values())


def _pair(finding: Finding) -> object:
    """Return what the findings of one pair of places have in common; a finding of another kind is alone."""
    spans = finding.spans
    if finding.code != "race" or len(spans) < 2:
        return id(finding)
    one, two = ((span.start, span.end) for _, span in spans[:2])
    return frozenset((one, two)), finding.epoch is None
