"""The last line of a litmus test: `exists (P1:r0 == 1 /\\ x == 2)`, `~exists …` or `forall …`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_TOKEN = re.compile(r"/\\|\\/|==|!=|[=~()]|P\d+\s*:\s*\w+|\w+")


def holds(condition: str, outcomes: Sequence[Mapping[str, int]]) -> bool:
    """Whether a condition holds for these outcomes: registers as `P1:r0`, and words, each with its value."""
    quantifier, body = re.findall(r"(~\s*exists|exists|forall)(.*)", condition, re.DOTALL)[0]
    tokens = ["".join(each.split()) for each in _TOKEN.findall(body)]
    true = [_Parser(tokens, outcome).condition() for outcome in outcomes]
    if quantifier == "forall":
        return all(true)
    return any(true) == (quantifier == "exists")


class _Parser:
    def __init__(self, tokens: list[str], outcome: Mapping[str, int]) -> None:
        self._left, self._outcome = [*tokens], outcome

    def condition(self) -> bool:
        """Read alternatives, joined by `\\/`."""
        result = self._all()
        while self._left and self._left[0] == "\\/":
            self._left.pop(0)
            result = self._all() or result
        return result

    def _all(self) -> bool:
        result = self._one()
        while self._left and self._left[0] == "/\\":
            self._left.pop(0)
            result = self._one() and result
        return result

    def _one(self) -> bool:
        token = self._left.pop(0)
        if token in ("~", "not"):
            return not self._one()
        if token == "(":
            result = self.condition()
            assert self._left.pop(0) == ")"
            return result
        operator, other = self._left.pop(0), self._left.pop(0)
        return (self._value(token) != self._value(other)) == (operator == "!=")

    def _value(self, token: str) -> int:
        return int(token) if token.isdigit() else self._outcome.get(token, 0)
