"""Disagreements that others have to answer for: the rows of `known.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import bankshot
from bankshot.sim.wgsl import typed
from bankshot.sim.wgsl import types as t
from bankshot.sim.wgsl.syntax import tree
from bankshot.sim.wgsl.syntax.parser import parse

from .judging import Judge, Verdict
from .programs import Program

THEIRS = ("differs", "counters", "refused", "lost", "died", "hung")  # verdicts that may be the adapter's fault


@dataclass(frozen=True, slots=True)
class Fault:
    """`program` is the smallest text that shows it on `adapter`, if it is of naga on all: the verdict on it is `word`,
    with `words` in it (a pattern). `mend`: how programs are written to get around it, see `mended`."""

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
        """Whether it is why there is no agreement: as there is agreement on the program once it is mended, where it can
        be, and as these are the adapter's own words, where it has words. Counters of which nothing is known agree on
        nothing."""
        said, here = self.explains(verdict), self.whose == "naga" or judge.opinion.profile == self.adapter
        if not here or verdict.word not in THEIRS:
            return False
        if not self.mend or (verdict.word == "refused" and not said):
            return said and verdict.word == "refused"
        try:
            around = mended(program, self.mend)
        except bankshot.WgslError:  # it makes constants of what must not be one, say
            return False
        then = judge.judge(around, verdict.word == "counters")
        return around != program and then.agreed and (verdict.word, then.word) != ("counters", "open")

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
    type. So `+=` and the like of floats: `{0}` is what is assigned to, `{R}` its element type. `var` is the value of a
    variable of a function that has none of its own. `override` is what overrides are declared as: `{name}` of type
    `{R}`, with the `{value}` that they get. `break if` replaces those statements."""
    if "override" in mend:
        program = _without_overrides(program, mend["override"])
    text = re.sub(r"\bbreak if [^;]*;", mend.get("break if", r"\g<0>"), program.text)
    for declared in reversed(_without_value(bankshot.check(text))) if "var" in mend else ():
        value = mend["var"].replace("{R}", str(declared.var.type))
        text = f"{text[: declared.span.end]} = {value}{text[declared.span.end :]}"
    for stmt in reversed(_updates(bankshot.check(text), mend)):
        name, elem = f"{stmt.builtin.name}=", str(t.element_of(stmt.result))
        target, _, value = stmt.span.text.rstrip("; ").partition(name)  # spans of expressions lack outer parentheses
        made = mend[name].replace("{R}", elem).format(target.strip(), f"({value.strip()})")
        text = f"{text[: stmt.span.start]}{made}{text[stmt.span.start + len(stmt.span.text.rstrip('; ')) :]}"
    return replace(program, text=_rewritten(text, 0, len(text), _calls(bankshot.check(text), mend), mend))


def _without_overrides(program: Program, made: str) -> Program:
    module, text = bankshot.check(program.text), program.text
    values = module.pipeline("main", {**program.overrides}).values
    declared = {decl.name: decl.span for decl in parse(module.source).decls if isinstance(decl, tree.GlobalDecl)}
    for override in reversed(module.overrides):
        span, value = declared[override.name], values.get(override, 0)
        line = made.replace("{R}", str(override.type)).format(name=override.name, value=value)
        text = f"{text[: span.start]}{line}{text[span.end :]}"
    return replace(program, text=text, overrides={})


def _calls(module: typed.Module, mend: Mapping[str, str]) -> list[typed.BuiltinCall]:
    """In the order of the text, each before those in its arguments."""
    every = (e for f in module.functions.values() for e in typed.every_expression(f))
    found = {e.span: e for e in every if isinstance(e, typed.BuiltinCall) and e.builtin.name in mend}
    return sorted(found.values(), key=lambda call: (call.span.start, -call.span.end))


def _rewritten(text: str, start: int, end: int, calls: list[typed.BuiltinCall], mend: Mapping[str, str]) -> str:
    """A part of the text, with the calls in it as `mend` has them."""
    made = ""
    for call in calls:
        if start <= call.span.start and call.span.end <= end:
            args = [f"({_rewritten(text, a.span.start, a.span.end, calls, mend)})" for a in call.args]
            instead = mend[call.builtin.name].replace("{R}", str(call.type)).format(*args)
            made += f"{text[start : call.span.start]}({instead})"
            start = call.span.end
    return made + text[start:end]


def _without_value(module: typed.Module) -> list[typed.VarDecl]:
    return [s for s in _statements(module) if isinstance(s, typed.VarDecl) and s.init is None]


def _updates(module: typed.Module, mend: Mapping[str, str]) -> list[typed.CompoundAssign]:
    every = [s for s in _statements(module) if isinstance(s, typed.CompoundAssign) and f"{s.builtin.name}=" in mend]
    return [s for s in every if t.is_float(t.element_of(s.result))]


def _statements(module: typed.Module) -> list[typed.Stmt]:
    """In the order of the text."""
    blocks = [f.body for f in module.functions.values() if f.body is not None]
    return sorted((s for block in blocks for s in typed.statements(block)), key=lambda s: s.span.start)
