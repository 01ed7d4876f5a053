"""Disagreements that others have to answer for: the rows of `known.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import sim
from sim.wgsl import typed

from .judging import Judge, Verdict
from .programs import Program


@dataclass(frozen=True, slots=True)
class Fault:
    """`program` is the smallest text that shows it on `adapter`: the verdict on it is `word`, with `words` in it (a
    pattern). `mend`: builtins, and what they are written as to get around it."""

    name: str
    whose: str
    reason: str
    word: str
    words: str
    program: str
    adapter: str = "lavapipe"
    mend: Mapping[str, str] = field(default_factory=dict)

    def explains(self, verdict: Verdict) -> bool:
        return verdict.word == self.word and re.search(self.words, verdict.why) is not None

    def is_evident(self, judge: Judge, program: Program, verdict: Verdict) -> bool:
        """Whether it is why there is no agreement: by the adapter's own words or, where outputs differ, as there is
        agreement on the program once it is mended."""
        if judge.opinion.profile != self.adapter or verdict.word != self.word:
            return False
        if verdict.word != "differs":
            return self.explains(verdict)
        around = mended(program, self.mend)
        return around != program and judge.judge(around).agreed

    @property
    def smallest(self) -> Program:
        return Program(self.program.lstrip())


FAULTS = tuple(
    Fault(**row) for row in tomllib.loads(Path(__file__).with_name("known.toml").read_text(encoding="utf-8"))["fault"]
)


def answer_for(judge: Judge, program: Program, verdict: Verdict) -> Fault | None:
    """The fault that is the reason for a verdict on a program."""
    return next((fault for fault in FAULTS if fault.is_evident(judge, program, verdict)), None)


def mended(program: Program, mend: Mapping[str, str]) -> Program:
    """The program with calls of builtins written as `mend` has it: `{0}`, `{1}`, … are arguments, `{R}` the result's
    type."""
    text = program.text
    while (call := _innermost(sim.check(text), mend)) is not None:
        args = [f"({arg.span.text})" for arg in call.args]
        made = mend[call.builtin.name].replace("{R}", str(call.type)).format(*args)
        text = f"{text[: call.span.start]}({made}){text[call.span.end :]}"
    return replace(program, text=text)


def _innermost(module: typed.Module, mend: Mapping[str, str]) -> typed.BuiltinCall | None:
    """A call of one of these builtins with no such call in it."""
    expressions = (e for f in module.functions.values() for e in typed.every_expression(f))  # operands come first
    return next((e for e in expressions if isinstance(e, typed.BuiltinCall) and e.builtin.name in mend), None)
