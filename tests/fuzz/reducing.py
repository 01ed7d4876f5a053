"""Makes a program small while something holds of it: takes out declarations, statements and operands, largest first.

Any text that the reader takes is tried, so that what is left need not look as if it had been generated. It is up to
the condition that the program still means something.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import bankshot
from bankshot.sim.wgsl import typed
from bankshot.sim.wgsl import types as t
from bankshot.sim.wgsl.source import Span
from bankshot.sim.wgsl.syntax import tree
from bankshot.sim.wgsl.syntax.parser import parse

from .programs import Program


@dataclass(frozen=True, slots=True)
class Edit:
    """Text in place of other text."""

    start: int
    end: int
    text: str

    @property
    def gain(self) -> int:
        return self.end - self.start - len(self.text)

    def apply(self, text: str) -> str:
        return text[: self.start] + self.text + text[self.end :]


def reduce(program: Program, holds: Callable[[Program], bool], seconds: float) -> Program:
    """The smallest that is found in some seconds, `holds` being true of it."""
    end = time.monotonic() + seconds
    for grid in ((1, 1, 1), (2, 1, 1)):
        smaller = replace(program, grid=grid)
        if program.grid != grid and holds(smaller):
            program = smaller
            break
    before = None
    while before != program and time.monotonic() < end:
        before = program
        program = _once(program, holds, end)
    return replace(program, text=_tidy(program.text))


def _once(program: Program, holds: Callable[[Program], bool], end: float) -> Program:
    """Every edit once, those of what earlier ones left."""
    tried: set[str] = set()
    while time.monotonic() < end:
        texts = (edit.apply(program.text) for edit in _edits(program.text))
        text = next((text for text in texts if text not in tried and not tried.add(text) and _is_valid(text)), None)
        if text is None:
            return program
        smaller = replace(program, text=text)
        if holds(smaller):
            program = smaller
    return program


def _is_valid(text: str) -> bool:
    try:
        bankshot.check(text)
    except bankshot.WgslError:
        return False
    return True


def _edits(text: str) -> list[Edit]:
    module = bankshot.check(text)
    found = [*_declarations(module), *_statements(module), *_operands(module)]
    return sorted((edit for edit in found if edit.gain > 0), key=lambda edit: -edit.gain)


def _declarations(module: typed.Module) -> Iterator[Edit]:
    for decl in parse(module.source).decls:
        yield Edit(decl.span.start, decl.span.end, "")
        if isinstance(decl, tree.Struct) and len(decl.members) > 1:
            yield from (Edit(member.span.start, member.span.end, "") for member in decl.members)


def _statements(module: typed.Module) -> Iterator[Edit]:
    """Programs without one statement, or with one of its blocks instead of it."""
    for stmt in _all_statements(module):
        yield Edit(stmt.span.start, stmt.span.end, "")
        for block in typed.blocks(stmt):
            yield Edit(stmt.span.start, stmt.span.end, block.span.text)


def _operands(module: typed.Module) -> Iterator[Edit]:
    """Zeros for values, or a part of the same type for the whole."""
    for stmt in _all_statements(module):
        for operand in typed.operands(stmt):
            for expr in typed.expressions(operand):
                if t.is_constructible(expr.type) and t.is_concrete(expr.type):
                    yield _instead(expr.span, f"{expr.type}()")
                    alike = (part for part in typed.expressions(expr) if part.type == expr.type)
                    yield from (_instead(expr.span, part.span.text) for part in alike)


def _instead(span: Span, text: str) -> Edit:
    return Edit(span.start, span.end, text)


def _all_statements(module: typed.Module) -> Iterator[typed.Stmt]:
    for function in module.functions.values():
        if function.body is not None:
            yield from typed.statements(function.body)


def _tidy(text: str) -> str:
    """Without the semicolons of statements that are gone."""
    return re.sub(r"(?m)^[\s;,]*\n", "", text)
