"""One finding for each cause: which races become one, what it says, and in which order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bankshot.sim.cures.causes import one_for_each_cause
from bankshot.sim.cures.search import Cure, Cures
from bankshot.sim.findings.finding import Finding
from bankshot.sim.wgsl.diagnostics import Note
from bankshot.sim.wgsl.source import Source, Span

SOURCE = Source("\n" * 20, "k.wgsl")


def place(line: int) -> Span:
    return Span(SOURCE, line - 1, line - 1)


def race(first: int, second: int, epoch: int | None = 0, count: int = 1, **other: str | None) -> Finding:
    """A race between two lines."""
    note = Note(f"the other access, line {first}", place(first))
    given = {"severity": "error", "verdict": None} | other
    made = Finding("race", "error", f"{first} and {second}", place(second), count, (0, 0, 0), (0,), epoch, (note,))
    return replace(made, **given)


def lines(findings: list[Finding]) -> list[tuple[int, int]]:
    """The line and the count of each finding."""
    return [(f.span.line, f.count) for f in findings if f.span]


def messages(finding: Finding) -> list[tuple[str, int | None]]:
    """The notes of a finding, with their lines."""
    return [(note.message, note.span.line if note.span else None) for note in finding.notes]


ALONE = [race(1, 2), race(3, 4), race(5, 6)]
JOINED = {
    "no line in common": (ALONE, [(2, 1), (4, 1), (6, 1)]),
    "one line in common": ([race(1, 2), race(3, 4), race(1, 5)], [(2, 2), (4, 1)]),
    "a line that is first and second": ([race(1, 2, count=3), race(2, 3, count=4)], [(2, 7)]),
    "a race that connects two others": ([race(1, 2), race(3, 4), race(2, 3)], [(2, 3)]),
    "the connecting one first": ([race(2, 3), race(1, 2), race(3, 4)], [(3, 3)]),
    "two pairs": ([race(1, 2), race(3, 4), race(4, 5), race(2, 6)], [(2, 2), (4, 2)]),
    "within and between workgroups": ([race(1, 2), race(1, 2, None), race(2, 3, None)], [(2, 3)]),
}


@pytest.mark.parametrize("name", JOINED)
def test_races_that_share_a_place_become_one(name: str) -> None:
    races, expected = JOINED[name]
    assert lines(one_for_each_cause(races, Cures(left=tuple(races)))) == expected


def test_the_others_of_a_cause_are_notes() -> None:
    races = [race(1, 2 + n, count=n + 1) for n in range(6)]
    (one,) = one_for_each_cause(races, Cures(left=tuple(races)))
    assert (one.count, one.span) == (21, place(2))
    others = [("another race of this cause, with line 1", line) for line in (3, 4, 5)]
    assert messages(one) == [("the other access, line 1", 1), *others, ("and 2 more", None)]
    (one,) = one_for_each_cause(races[:4], Cures(left=tuple(races[:4])))
    assert messages(one) == [("the other access, line 1", 1), *others]
    assert one.hint is None


@pytest.mark.parametrize(
    ("worse", "better"),
    [
        ({"severity": "error"}, {"severity": "warning"}),
        ({"severity": "warning"}, {"severity": "info"}),
        ({"severity": "error", "verdict": "same-value"}, {"severity": "warning", "verdict": "harmful"}),
        ({"verdict": "harmful"}, {"verdict": "wrong-barrier"}),
        ({"verdict": "wrong-barrier"}, {"verdict": None}),
        ({"verdict": None}, {"verdict": "unseen"}),
        ({"verdict": "unseen"}, {"verdict": "same-value"}),
    ],
)
def test_the_worst_of_a_cause_is_shown(worse: dict[str, str], better: dict[str, str]) -> None:
    one, two = race(1, 2, **better), race(1, 3, **worse)
    for races in ((one, two), (two, one)):
        (shown,) = one_for_each_cause(races, Cures(left=races))
        assert (shown.span, shown.severity, shown.verdict) == (two.span, two.severity, two.verdict)


def test_a_cure_is_the_hint_of_its_races() -> None:
    cures = Cures((Cure("this", (), (ALONE[0], ALONE[2])), Cure("that", (), (ALONE[1],), joint=True)))
    one, two = one_for_each_cause(ALONE, cures)
    assert (one.span, one.count, one.hint) == (place(2), 2, "this removes all 2 races")
    assert (two.span, two.count, two.hint) == (place(4), 1, "that remove this race")
    assert messages(one)[1:] == [("another race of this cause, with line 5", 6)]


def test_what_is_gone_is_a_note_of_the_first_cure_alone() -> None:
    gone, stays = (replace(race(8, line), code="uninit", message=f"line {line}", notes=()) for line in (9, 10))
    cures = Cures((Cure("this", (), (ALONE[0],)), Cure("that", (), (ALONE[1],))), (ALONE[2],), (gone,))
    found = one_for_each_cause([gone, *ALONE, stays], cures)
    assert [f.span for f in found] == [place(2), place(4), place(6), place(10)]
    assert messages(found[0])[1:] == [("this ends with the race: line 9", 9)]
    assert all(len(f.notes) == 1 for f in found[1:3])
    assert found[3] is stays


def test_a_search_that_gave_up_is_a_note_of_what_is_left() -> None:
    cures = Cures((Cure("this", (), (ALONE[0],)),), (ALONE[1],), gave_up="Bankshot tried enough")
    one, two = one_for_each_cause(ALONE[:2], cures)
    assert len(one.notes) == 1
    assert messages(two)[1:] == [("Bankshot tried enough, and none of them ends this race", None)]
