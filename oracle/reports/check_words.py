"""Verdicts of checks in words, which the terminal, the HTML page and remarks share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..comparison.compare import Comparison
    from ..judge.counter_checks import CounterCheck


NO_REJECTION = "no element could have failed"


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 case`, `2 cases`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def counter_words(check: CounterCheck) -> str:
    if check.ok:
        return f"{check.actual:,} as expected"
    return f"{check.actual:,}, the manifest expects {check.expected:,}"


def comparison_words(c: Comparison) -> str:
    """A comparison in a few words: the rule, how many elements, and the rule's own measure."""
    elements = counted(c.elements, "element")
    if c.ok and c.rule.row.bitwise:
        return f"{'bit for bit' if c.bitwise else 'equal'}, {elements}"
    if c.ok and c.vacuous:
        why = "no element has a bound, so any value passes" if c.unbounded == c.elements else NO_REJECTION
        return f"{elements}, rule {c.rule}: {why}"
    score = f", {c.measure} {c.score:.3g} (limit {c.limit:.3g})"
    if c.unbounded:
        score += f", {c.unbounded:,} without a bound, where any value passes"
    if loose := c.unchecked_count - c.unbounded:
        score += f", {loose:,} that could not have failed"
    if c.ok:
        return f"{elements}, rule {c.rule}{score}"
    unit = " ULP" if all(d.is_float for d in c.worst) else ""
    ulp = "" if c.max_ulp is None else f", up to {c.max_ulp:,}{unit} apart"
    more = "" if c.rule.row.bitwise else score
    return f"{c.mismatches:,} of {elements} ({c.share:.2%}), rule {c.rule}{more}{ulp}"
