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
    pattern). `mend`: builtins, and what they are written as to get around it; `var`: the value of variables without."""

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
        """Whether it is why there is no agreement: by the adapter's own words or, where outputs or counters differ, as
        there is agreement on the program once it is mended."""
        if judge.opinion.profile != self.adapter:
            return False
        if verdict.word not in ("differs", "counters"):
            return self.explains(verdict)
        around = mended(program, self.mend)
        return around != program and judge.judge(around, verdict.word == "counters").agreed

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
    type. `var` is the value of each variable of a function that has none of its own, of type `{R}`."""
    text = program.text
    for declared in reversed(_without_value(sim.check(text))) if "var" in mend else ():
        value = mend["var"].replace("{R}", str(declared.var.type))
        text = f"{text[: declared.span.end]} = {value}{text[declared.span.end :]}"
    while (call := _innermost(sim.check(text), mend)) is not None:
        args = [f"({arg.span.text})" for arg in call.args]
        made = mend[call.builtin.name].replace("{R}", str(call.type)).format(*args)
        text = f"{text[: call.span.start]}({made}){text[call.span.end :]}"
    return replace(program, text=text)


def _innermost(module: typed.Module, mend: Mapping[str, str]) -> typed.BuiltinCall | None:
    """A call of one of these builtins with no such call in it."""
    expressions = (e for f in module.functions.values() for e in typed.every_expression(f))  # operands come first
    return next((e for e in expressions if isinstance(e, typed.BuiltinCall) and e.builtin.name in mend), None)


def _without_value(module: typed.Module) -> list[typed.VarDecl]:
    """In the order of the text."""
    blocks = [f.body for f in module.functions.values() if f.body is not None]
    every = [stmt for block in blocks for stmt in typed.statements(block)]
    return sorted((s for s in every if isinstance(s, typed.VarDecl) and s.init is None), key=lambda s: s.span.start)
