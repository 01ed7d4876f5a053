"""The table of findings, and those who read it."""

import string
import tomllib
from pathlib import Path

import pytest

import bankshot
from bankshot.sim.findings import table
from bankshot.sim.findings.reruns import REPLAYS
from bankshot.sim.findings.table import (
    BY_CHECK,
    KINDS,
    NOT_FINITE,
    OUT_OF_BOUNDS,
    RACE,
    SUPPRESSIBLE,
    UNINIT,
    depending_on,
)
from bankshot.sim.machine import layout

SEVERITIES = ("error", "warning", "info")
DEPENDS = ("lanes", "data", "workgroups")


def test_every_kind_is_found_by_its_code():
    kinds = [each for each in vars(table).values() if isinstance(each, table.Kind)]
    assert {each.code: each for each in kinds} == KINDS


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_row_is_complete(kind):
    assert kind.severity in SEVERITIES
    assert set(kind.downgraded.values()) <= set(SEVERITIES)
    assert kind.title[0].isupper()
    assert kind.title[-1] != "."
    assert kind.message
    assert kind.evidence
    assert kind.probe in (None, *bankshot.PROBES)
    assert kind.depends_on in DEPENDS
    assert kind.replay is None or kind.replay in REPLAYS


def test_every_replay_belongs_to_a_kind():
    assert {kind.replay for kind in KINDS.values() if kind.replay} == set(REPLAYS)


def test_every_numeric_check_of_the_machine_belongs_to_a_kind():
    checks = (layout.NON_FINITE, layout.DIVIDES_U32, layout.DIVIDES_I32, layout.SHIFTS, layout.TO_I32, layout.TO_U32)
    assert set(BY_CHECK) == set(checks)


def fields(kind):
    """The names that the message and the hint of a kind ask for."""
    return [name for text in (kind.message, kind.hint) for _, name, _, _ in string.Formatter().parse(text) if name]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_words_fill_in_every_field(kind):
    finding = kind.make(None, **dict.fromkeys(fields(kind), 7))
    assert "{" not in f"{finding.message}{finding.hint}"


def test_a_missing_word_is_an_error():
    with pytest.raises(KeyError, match="lane"):
        NOT_FINITE.make(None, operation="1.0 / 0.0 = inf")


def test_a_verdict_brings_its_severity():
    def severity(kind, verdict):
        return kind.make(None, verdict=verdict, **dict.fromkeys(fields(kind), "x")).severity

    assert [severity(RACE, verdict) for verdict in (None, "harmful", "same-value")] == ["error", "error", "warning"]
    for kind in (UNINIT, OUT_OF_BOUNDS):
        assert [severity(kind, verdict) for verdict in (None, "harmful", "unseen")] == ["warning", "warning", "info"]


def test_each_kind_depends_on_one_thing():
    assert NOT_FINITE.code in depending_on("data")
    assert set().union(*map(depending_on, DEPENDS)) == set(KINDS)


def test_comments_suppress_what_runs_find():
    assert set(KINDS) - set(SUPPRESSIBLE) == {"allow", "rounding"}


def test_every_row_of_the_module_is_listed():
    assert {kind.code for kind in vars(table).values() if isinstance(kind, table.Kind)} == set(KINDS)


HERE = Path(__file__).parent
TWINS = tomllib.loads((HERE.parent / "files" / "twins.toml").read_text(encoding="utf-8"))
ELSEWHERE = {
    "redundant-barrier": "findings/test_deleted_barriers.py",
    "inactive-lane": "findings/test_shuffled.py",
    "endless-loop": "findings/test_waiting.py",
    "allow": "findings/test_allow.py",
    "rounding": "instrument/test_error_bounds.py",
    "schedule-dependent": "run/test_schedule_sweep.py",
    "weak-order": "explore/test_reduced.py",
}


@pytest.mark.parametrize("code", KINDS)
def test_a_kernel_shows_every_kind(code):
    """Add a pair of kernels to tests/files/twins.toml, or name the file that tests the kind."""
    assert code in TWINS or f'"{code}"' in (HERE.parent / ELSEWHERE[code]).read_text(encoding="utf-8")
