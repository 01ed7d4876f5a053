"""Modules whose compute entry points are valid, but a vertex or fragment stage is not: these stages are left out.

WebGPU rejects such a module as a whole, and `bankshot check` reports its errors. A run needs only the compute entry
points, in the simulator and through wgpu.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from ...sim.fast_dataclass import frozen
from ...sim.wgsl import typed
from ...sim.wgsl.check.check_module import check
from ...sim.wgsl.diagnostics import Diagnostic, WgslError
from ...sim.wgsl.source import Source
from ...sim.wgsl.syntax.lexer import Token, lex_all

CODE = "rendering-stage"  # of the warning of a module without its rendering stages
RENDERING = ("vertex", "fragment")


def check_for_compute(source: Source) -> typed.Module:
    """Check a module. Where only its vertex and fragment stages are wrong, return it without them, with a warning.
    Raises `WgslError`."""
    try:
        return check(source)
    except WgslError as error:
        whole = error
    rest = without_rendering(source)
    if rest is None:
        raise whole
    try:
        module = check(rest)
    except WgslError:
        raise whole from None
    if not module.compute_entry_points:
        raise whole
    module.warnings.append(left_out(whole.diagnostics[0]))
    return module


def left_out(error: Diagnostic) -> Diagnostic:
    """The warning that stages are left out because of an error in them."""
    at = f" ({error.span.place.file}:{error.span.place.line})" if error.span else ""
    message = f"a vertex or fragment stage is wrong, and left out: {error.message}{at}"
    return Diagnostic("warning", CODE, message, error.span)


def stage_notes(module: typed.Module) -> tuple[str, ...]:
    """What is left out of a module, in words for reports."""
    return tuple(warning.message for warning in module.warnings if warning.code == CODE)


def without_rendering(source: Source) -> Source | None:
    """Replace vertex and fragment entry points, and functions that only these call, by spaces, so that places stay.
    None where there are none.

    >>> made = without_rendering(Source("@vertex fn v() -> f32 { return g(); } fn g() { if a { } } fn f() {}"))
    >>> made.text.strip()
    'fn f() {}'
    """
    try:
        functions = {each.name: each for each in _functions(lex_all(source)[0])}
    except WgslError:
        return None
    rendering = [name for name, each in functions.items() if each.stage in RENDERING]
    others = [name for name, each in functions.items() if each.stage == "compute"]
    text = source.text
    for name in _reached(functions, rendering) - _reached(functions, others):
        start, end = functions[name].start, functions[name].end
        text = text[:start] + re.sub(r"[^\r\n]", " ", text[start:end]) + text[end:]
    return Source(text, source.name, source.origin) if rendering else None


@frozen
class _Function:
    """A function in a text: its offsets, its stage or "", and the names in it."""

    name: str
    stage: str
    start: int
    end: int
    names: frozenset[str]


def _functions(tokens: list[Token]) -> Iterator[_Function]:
    """Find the functions in the tokens of a module, which need not be valid otherwise."""
    first = depth = 0
    for number, token in enumerate(tokens):
        depth += {"{": 1, "}": -1}.get(token.kind, 0)
        if depth == 0 and token.kind in (";", "}"):
            yield from _function(tokens[first : number + 1])
            first = number + 1


def _function(tokens: list[Token]) -> Iterator[_Function]:
    """The function that one declaration is, if it is one."""
    words = [token.text for token in tokens]
    if "fn" not in words[:-1] or words[-1] != "}":
        return
    at = words.index("fn")
    stage = next((words[i + 1] for i in range(at) if words[i] == "@" and words[i + 1] in (*RENDERING, "compute")), "")
    yield _Function(words[at + 1], stage, tokens[0].start, tokens[-1].end, frozenset(words[at + 2 :]))


def _reached(functions: Mapping[str, _Function], roots: Collection[str]) -> set[str]:
    """The functions that are reached from some of them, and these."""
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += functions[name].names & functions.keys()
    return found
