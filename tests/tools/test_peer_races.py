"""The comparison with another race detector: what counts, on twins whose result is known."""

from __future__ import annotations

from tests.findings.test_public_twins import MARK, TWINS, render
from tools import peer_races


def result(lines: list[int], seconds: float = 0.5, errors: tuple[str, ...] = ()) -> dict[str, object]:
    return {"races": len(lines), "lines": lines, "errors": list(errors), "seconds": seconds}


def test_a_row_counts_races_found_exact_lines_and_false_alarms():
    wrong = {"a": "x //! race\ny", "b": "x\ny //! component-race", "c": "x //! uninit"}
    results = {
        "a": (result([]), result([1])),
        "b": (result([2]), result([1, 2], seconds=2.0)),
        "c": (result([]), result([], errors=("not supported",))),
    }
    assert peer_races.row("tool", results, wrong) == "| tool | 2 of 2 | 1 | 1 of 3 | 1 of 6 | 0.500 | 2.00 |"


def test_ours_are_the_lines_of_races():
    name = next(name for name, twin in TWINS.items() if "//! race" in twin["body"])
    right, wrong = (render(TWINS[name], side) for side in (1, 2))
    marked = {n for n, line in enumerate(wrong.splitlines(), 1) for mark in MARK.findall(line) if mark == "race"}
    assert peer_races.ours(TWINS[name], right)["lines"] == []
    assert set(peer_races.ours(TWINS[name], wrong)["lines"]) == marked
    assert peer_races.case(TWINS[name], right)["text"] == right
