"""Suppressions: comments in a shader, on the line of a finding or on the line before, that accept it with a reason.

// bankshot: allow(race) because every invocation stores the same value
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field

from ..fast_dataclass import entity
from ..wgsl.source import Source, Span
from .finding import Finding
from .table import ALLOW, KINDS, SUPPRESSIBLE

_ALLOW = re.compile(r"//\s*bankshot:\s*allow\b\s*(?:\(([^)]*)\))?\s*(.*)")
_REASON = re.compile(r"because\s+\S")


@entity
class _Comment:
    """One comment: the codes it names, the line (0-based) it applies to, and the codes that it suppressed."""

    span: Span
    codes: tuple[str, ...]
    line: int
    reason: bool
    used: set[str] = field(default_factory=lambda: set[str]())


def suppress(
    findings: Iterable[Finding], source: Source, probes: frozenset[str]
) -> tuple[list[Finding], list[Finding]]:
    """Return the findings that are left, followed by findings about the comments themselves, and those suppressed.

    A comment that suppresses nothing is a finding where one of `probes` looked for what it allows.
    """
    comments = list(_comments(source))
    left: list[Finding] = []
    suppressed: list[Finding] = []
    for finding in findings:
        lines = _lines(finding, source)
        matching = [c for c in comments if c.reason and finding.code in c.codes and c.line in lines]
        for comment in matching:
            comment.used.add(finding.code)
        (suppressed if matching else left).append(finding)
    return [*left, *(complaint for comment in comments for complaint in _complaints(comment, probes))], suppressed


def _comments(source: Source) -> Iterable[_Comment]:
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
        if not text[: found.start()].strip():  # alone on its line, it applies to the next line of code
            about = next((i for i in range(index, len(texts)) if not _is_comment(texts[i])), index)
        span = Span(source, start + found.start(), start + len(text.rstrip()))
        yield _Comment(span, codes, about, bool(_REASON.match(found[2])))


def _is_comment(text: str) -> bool:
    return text.strip().startswith("//")


def _lines(finding: Finding, source: Source) -> set[int]:
    """Return the lines on which a comment may suppress a finding."""
    kind = KINDS[finding.code]
    spans = [finding.span, *(note.span for note in finding.notes if kind.at_every_span)]
    return {source.line_index(span.start) for span in spans if span is not None and span.source is source}


def _is_looked_for(code: str, probes: frozenset[str]) -> bool:
    return KINDS[code].probe in (None, *probes) and not KINDS[code].on_request


def _complaints(comment: _Comment, probes: frozenset[str]) -> Iterable[Finding]:
    def complain(complaint: str, advice: str = "") -> Finding:
        return ALLOW.make(comment.span, complaint=complaint, advice=advice)

    if not comment.codes:
        yield complain("this comment allows nothing, because it names no finding", "write allow(race) because …")
    elif not comment.reason:
        yield complain("this comment gives no reason, so it suppresses nothing", "add: because …")
    for code in comment.codes:
        if code not in SUPPRESSIBLE:
            yield complain(f"there is no finding called {code}", f"findings are {', '.join(SUPPRESSIBLE)}")
        elif comment.reason and code not in comment.used and _is_looked_for(code, probes):
            yield complain(f"there is no {code} here to allow")
