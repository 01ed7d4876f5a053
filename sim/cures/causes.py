"""One finding for each cause: races that one cure ends, or that share a place, become one finding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..findings.finding import Finding
from ..findings.grouping import VERDICTS
from ..wgsl.diagnostics import Note
from ..wgsl.source import Span
from .search import Cures

_SHOWN = 3  # pairs of places beside the first
_SEVERITIES = ("error", "warning", "info")


def one_for_each_cause(findings: Iterable[Finding], found: Cures) -> list[Finding]:
    """Return the findings, the races of each cause as one, which says what ends them."""
    of_cause: dict[Finding, Finding] = {}  # the first finding of a cause -> all of them, as one
    gone = set(found.gone)
    for number, cure in enumerate(found.cures):
        one, first = _joined(cure.races), cure.races[0]
        also = tuple(Note(f"this ends with the race: {f.message}", f.span) for f in found.gone if number == 0)
        of_cause[first] = replace(one, hint=cure.sentence, notes=(*one.notes, *also))
    for group in connected(found.left):
        one = _joined(group)
        note = (Note(f"{found.gave_up}, and none of them ends this race"),) if found.gave_up else ()
        of_cause[group[0]] = replace(one, notes=(*one.notes, *note))
    left = [of_cause.get(f) for f in findings if f.code == "race"]
    others = [f for f in findings if f.code != "race" and f not in gone]
    return [*(f for f in left if f is not None), *others]


def _joined(races: tuple[Finding, ...]) -> Finding:
    """Return several races as one finding: the worst, with the places of others as notes."""
    worst = min(races, key=lambda f: (_SEVERITIES.index(f.severity), VERDICTS.index(f.verdict)))
    others = [f for f in races if f is not worst]
    notes = [Note(f"another race of this cause, with line {_other(f).line}", f.span) for f in others[:_SHOWN]]
    if more := len(others) - _SHOWN:
        notes += [Note(f"and {more} more")] if more > 0 else []
    return replace(worst, count=sum(f.count for f in races), notes=(*worst.notes, *notes))


def _other(race: Finding) -> Span:
    """Return the first of the two places of a race."""
    return race.spans[1][1]


def connected(races: tuple[Finding, ...]) -> list[tuple[Finding, ...]]:
    """Group races that share a place."""
    groups: list[tuple[set[object], list[Finding]]] = []
    for race in races:
        places: set[object] = {(span.start, span.end) for _, span in race.spans[:2]}
        joined = [(known, members) for known, members in groups if known & places]
        groups = [(known, members) for known, members in groups if not known & places]
        members = [f for _, members in joined for f in members]
        groups.append((places.union(*(p for p, _ in joined)), [*members, race]))
    order = {id(race): number for number, race in enumerate(races)}
    return [tuple(sorted(members, key=lambda f: order[id(f)])) for _, members in groups]
