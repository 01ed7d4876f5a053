"""Which causes of races are judged once more, in which changed text, and which verdicts that changes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from bankshot.sim.findings.effort import Effort
from bankshot.sim.findings.finding import Finding
from bankshot.sim.findings.table import RACE
from bankshot.sim.run import causes_apart
from bankshot.sim.wgsl.diagnostics import Note
from bankshot.sim.wgsl.source import Source, Span

TEXT = Source("x" * 100)


def race(place: int, verdict: str, count: int = 1) -> Finding:
    words = {"lane": 0, "group": "", "does": "", "place": "", "other": 1, "other_group": "", "other_does": ""}
    span, other = Span(TEXT, place, place + 1), Span(TEXT, place + 1, place + 2)
    notes = [Note("the other", other), Note(f"{verdict} {place}")]
    return RACE.make(span, count=count, epoch=0, notes=notes, verdict=verdict, order="", advice="", **words)


def judged(monkeypatch: pytest.MonkeyPatch, cured: list[list[Finding]], left: list[Finding], verdict: str) -> Any:
    """The cures that each text has for which races were judged again, and the verdicts that changed, by place.

    Each race has the given verdict there. The cure of a cause is named like its first place.
    """
    texts: list[list[Any]] = []

    def races_with(dispatch: Any, budget: int, effort: Effort, replacements: list[Any]) -> dict[Any, Finding]:
        texts.append(replacements)
        again = [race(each.span.start, verdict) for cause in [*cured, left] for each in cause if each.span]
        return {causes_apart._places([span for _, span in each.spans], each, []): each for each in again}

    monkeypatch.setattr(causes_apart, "_races_with", races_with)
    cures = [
        SimpleNamespace(races=tuple(races), replacements=[f"at {races[0].span.start}"])
        for races in cured
        if races[0].span
    ]
    found: Any = SimpleNamespace(cures=cures, left=tuple(left))
    changed = causes_apart.judged_apart(cast(Any, None), 9, Effort(0.0), found)
    return texts, {each.span.start: new.verdict for each, new in changed.items() if each.span}


def test_each_harmful_cause_is_judged_where_the_others_are_cured(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = [race(10, "harmful")], [race(20, "unseen"), race(30, "harmful")]
    texts, changed = judged(monkeypatch, [one, other], [], "unseen")
    assert texts == [["at 20"], ["at 10"]]
    assert changed == {10: "unseen", 30: "unseen"}


def test_harmless_causes_are_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other, harmless = [race(10, "harmful")], [race(20, "harmful")], [race(30, "unseen")]
    texts, changed = judged(monkeypatch, [one, other, harmless], [], "same-value")
    assert texts == [["at 20", "at 30"], ["at 10", "at 30"]]
    assert changed == {10: "same-value", 20: "same-value"}
    assert judged(monkeypatch, [one, harmless], [], "unseen") == ([], {})  # no other cause harms


@pytest.mark.parametrize(("causes", "judgements"), [(1, 0), (2, 2), (4, 4), (5, 0)])
def test_up_to_four_causes_are_judged(monkeypatch: pytest.MonkeyPatch, causes: int, judgements: int) -> None:
    texts, _ = judged(monkeypatch, [[race(10 * n, "harmful")] for n in range(causes)], [], "unseen")
    assert len(texts) == judgements


def test_a_harmful_cause_that_nothing_cures_would_still_change_the_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    one, left = [race(10, "harmful")], race(20, "harmful")
    texts, changed = judged(monkeypatch, [one], [left], "unseen")
    assert texts == [["at 10"]]  # only what is left is judged, without the other
    assert changed == {20: "unseen"}
    texts, changed = judged(monkeypatch, [one, [race(40, "harmful")]], [race(20, "unseen")], "unseen")
    assert changed == {10: "unseen", 40: "unseen"}


def test_what_still_harms_or_is_gone_keeps_its_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = [race(10, "harmful")], [race(20, "harmful", count=2)]
    assert judged(monkeypatch, [one, other], [], "harmful")[1] == {}
    assert judged(monkeypatch, [one, other], [], "unseen")[1] == {10: "unseen"}  # the other shows less often there


def test_the_note_says_what_was_cured() -> None:
    before = race(10, "harmful")
    unseen = causes_apart._with_verdict(before, race(10, "unseen"))
    assert (unseen.verdict, unseen.severity) == ("unseen", "warning")
    assert unseen.notes[-1].message == "with the other races cured, unseen 10"
    same = causes_apart._with_verdict(before, race(10, "same-value"))
    assert (same.verdict, same.severity) == ("same-value", "warning")
    assert same.notes == before.notes
