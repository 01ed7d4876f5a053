"""Disagreements that others have to answer for: the rows of `known.toml`."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from .judging import Verdict
from .programs import Program


@dataclass(frozen=True, slots=True)
class Fault:
    """`program` is the smallest text that shows it; the verdict on it is `word`, with `words` in it (a pattern)."""

    name: str
    whose: str
    reason: str
    word: str
    words: str
    program: str

    def explains(self, verdict: Verdict) -> bool:
        return verdict.word == self.word and re.search(self.words, verdict.why) is not None

    @property
    def smallest(self) -> Program:
        return Program(self.program.lstrip())


FAULTS = tuple(
    Fault(**row) for row in tomllib.loads(Path(__file__).with_name("known.toml").read_text(encoding="utf-8"))["fault"]
)


def answer_for(verdict: Verdict) -> Fault | None:
    """The fault that an adapter's own words tell of. Outputs that differ say nothing: they are never explained so."""
    return next((fault for fault in FAULTS if verdict.word == "refused" and fault.explains(verdict)), None)
