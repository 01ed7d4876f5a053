"""Blank out directives that an implementation refuses, without moving anything else in the WGSL text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ...sim.wgsl.diagnostics import WgslError
from ...sim.wgsl.source import LINE_BREAKS, Source
from ...sim.wgsl.syntax import tree
from ...sim.wgsl.syntax.parser import parse

# Names whose directive changes nothing on an implementation that offers the extension or language feature anyway.
NAMED_ONLY: Mapping[str, tuple[str, ...] | None] = {
    "enable": ("subgroups", "subgroup_size_control"),
    "requires": None,
}  # None: every name

# Directives come first in a module.
_HEAD = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/|(?:enable|requires|diagnostic)\b[^;{}]*;)*", re.DOTALL)


def without_directives(wgsl: str, refused: Callable[[str, str], bool]) -> str:
    """Replace every name of `NAMED_ONLY` for which `refused(kind, name)` holds with blanks.

    All other characters keep their positions, so that messages still point at the right place.
    """
    head = _HEAD.match(wgsl)
    try:
        directives = parse(Source(head[0] if head else "")).directives
    except WgslError:
        return wgsl  # the implementation reports the error
    for directive in directives:
        kind = directive.kind
        names = [name for name, _ in directive.names if _removable(kind, name) and refused(kind, name)]
        if names:
            start, end = directive.span.start, directive.span.end
            wgsl = wgsl[:start] + _blanked(directive, set(names)) + wgsl[end:]
    return wgsl


def _removable(kind: str, name: str) -> bool:
    names = NAMED_ONLY.get(kind, ())
    return names is None or name in names


def _blanked(directive: tree.Directive, removed: set[str]) -> str:
    """Return the text of a directive with blanks for the removed names and their commas."""
    text, start = directive.span.text, directive.span.start
    names = [span for name, span in directive.names if name not in removed]
    kept: set[int] = {*range(len(directive.kind)), len(text) - 1} if names else set()
    for span in names:
        kept.update(range(span.start - start, span.end - start))
    kept.update(text.rindex(",", 0, span.start - start) for span in names[1:])
    return "".join(c if i in kept or c in LINE_BREAKS else " " for i, c in enumerate(text))
