"""Directives that an implementation chokes on, taken out of WGSL text without moving anything else in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ...sim.wgsl.diagnostics import WgslError
from ...sim.wgsl.source import LINE_BREAKS, Source
from ...sim.wgsl.syntax import tree
from ...sim.wgsl.syntax.parser import parse

# Without these in its directives a shader still means the same, where an implementation has what they stand for.
NAMED_ONLY: Mapping[str, tuple[str, ...] | None] = {
    "enable": ("subgroups", "subgroup_size_control"),
    "requires": None,
}  # None: every name

# The directives come first; what follows may be anything.
_HEAD = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/|(?:enable|requires|diagnostic)\b[^;{}]*;)*", re.DOTALL)


def without_directives(wgsl: str, refused: Callable[[str, str], bool]) -> str:
    """`wgsl` with blanks for every name of `NAMED_ONLY` of which `refused(kind, name)` holds.

    Every character that stays keeps its place, so that messages still point right.
    """
    head = _HEAD.match(wgsl)
    try:
        directives = parse(Source(head[0] if head else "")).directives
    except WgslError:
        return wgsl  # whoever is given it will say why
    for directive in directives:
        names = [name for name, _ in directive.names if _may_go(directive.kind, name) and refused(directive.kind, name)]
        if names:
            start, end = directive.span.start, directive.span.end
            wgsl = wgsl[:start] + _blanked(directive, set(names)) + wgsl[end:]
    return wgsl


def _may_go(kind: str, name: str) -> bool:
    names = NAMED_ONLY.get(kind, ())
    return names is None or name in names


def _blanked(directive: tree.Directive, gone: set[str]) -> str:
    """The text of a directive with blanks for the names that go, and for the commas that they need."""
    text, start = directive.span.text, directive.span.start
    kept = [span for name, span in directive.names if name not in gone]
    stays = set() if not kept else {*range(len(directive.kind)), len(text) - 1}
    for span in kept:
        stays.update(range(span.start - start, span.end - start))
    stays.update(text.rindex(",", 0, span.start - start) for span in kept[1:])
    return "".join(c if i in stays or c in LINE_BREAKS else " " for i, c in enumerate(text))
