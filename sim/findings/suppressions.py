"""Findings that the author of a shader has answered for, in a comment on their line or on the one before:

// bankshot: allow(race) because every invocation stores the same value
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field

from ..fast_dataclass import entity
from ..wgsl.source import Source, Span
from .finding import CODES, Finding

_ALLOW = re.compile(r"//\s*bankshot:\s*allow\b\s*(?:\(([^)]*)\))?\s*(.*)")
_REASON = re.compile(r"because\s+\S")


@entity
class _Allow:
    """One comment: the codes it names, the line (0-based) it is about, and whether it silenced anything."""

    span: Span
    codes: tuple[str, ...]
    line: int
    reason: bool
    used: set[str] = field(default_factory=set)


def silence(findings: Iterable[Finding], source: Source, probes: frozenset[str]) -> tuple[list[Finding], list[Finding]]:
    """The findings that are left, with what is wrong with the comments themselves, and those that are silenced.

    A comment that silences nothing is told of where its kind of finding was looked for: `probes`.
    """
    allows = list(_allows(source))
    left: list[Finding] = []
    silenced: list[Finding] = []
    for finding in findings:
        answered = [a for a in allows if a.reason and finding.code in a.codes and a.line in _lines(finding, source)]
        for allow in answered:
            allow.used.add(finding.code)
        (silenced if answered else left).append(finding)
    return [*left, *(complaint for allow in allows for complaint in _complaints(allow, probes))], silenced


def _allows(source: Source) -> Iterable[_Allow]:
    if "bankshot" not in source.text:
        return
    texts = [source.line_text(i) for i in range(source.line_count)]
    for index, text in enumerate(texts):
        found = _ALLOW.search(text)
        if found is None:
            continue
        start = source.line_start(index)
        codes = tuple(code.strip() for code in (found[1] or "").split(",") if code.strip())
        about = index
        if not text[: found.start()].strip():  # a line of its own is about the next one that holds code
            about = next((i for i in range(index, len(texts)) if not _is_comment(texts[i])), index)
        span = Span(source, start + found.start(), start + len(text.rstrip()))
        yield _Allow(span, codes, about, bool(_REASON.match(found[2])))


def _is_comment(text: str) -> bool:
    return text.strip().startswith("//")


def _lines(finding: Finding, source: Source) -> set[int]:
    """The lines that a finding is about: its own, and all the places of what takes more than one."""
    several = finding.code in ("race", "atomic-order")
    spans = [finding.span, *(note.span for note in finding.notes if several)]
    return {source.line_index(span.start) for span in spans if span is not None and span.source is source}


def _complaints(allow: _Allow, probes: frozenset[str]) -> Iterable[Finding]:
    def complain(message: str, hint: str | None = None) -> Finding:
        return Finding("allow", "info", message, allow.span, 1, (0, 0, 0), (), hint=hint)

    if not allow.codes:
        yield complain("this allows nothing: no kind of finding is named", "write allow(race) because …")
    elif not allow.reason:
        yield complain("this allow gives no reason, and silences nothing", "go on with: because …")
    for code in allow.codes:
        if code not in CODES:
            yield complain(f"no finding is called {code}", f"there are {', '.join(CODES)}")
        elif allow.reason and code not in allow.used and (CODES[code] is None or CODES[code] in probes):
            yield complain(f"there is no {code} here to be allowed")
