"""What there is to complain of, each at a place in a file: for readers that show a complaint beside the source.

An `Entry` is one audited case with its remarks; it consists of plain values, so that it can go between processes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...sim.fast_dataclass import frozen
from ...sim.run.counters import derived

if TYPE_CHECKING:
    from ..judge.verdict import Audit

ERROR, NOTE = "error", "note"

# Every kind of remark but the findings, whose codes are the simulator's.
CODES = {
    "output": "an output is not what it is to be",
    "unbounded": "elements of an output have no bound that they are held to",
    "counter": "a counter is not what the manifest expects",
    "limit": "the dispatch is beyond a limit of the device",
    "golden": "a run is not as its golden has it",
    "wrong-use": "a kernel cannot be run",
}

# The counters that an entry shows.
FIGURES = ("excess_wavefronts", "excess_sectors", "thread_utilization", "barriers")


@frozen
class Remark:
    """`line` and `column` count from 1; 0 where none is known. `weight` sorts remarks of a level. `also`: other places
    that explain it, as (message, file, line)."""

    level: str
    code: str
    message: str
    file: str
    line: int = 0
    column: int = 0
    weight: int = 0
    also: Sequence[Sequence[Any]] = ()
    cases: int = 1  # in how many cases


@frozen
class Entry:
    """One case: its title, whether it is clean, its figures by `FIGURES`, what it was compared with."""

    title: str
    ok: bool
    figures: Mapping[str, float] = field(default_factory=dict)
    adapter: str | None = None
    remarks: Sequence[Remark] = ()

    def plain(self) -> dict[str, Any]:
        """For `entry_of_plain`, in another process."""
        return asdict(self)


def entry_of_plain(data: Mapping[str, Any]) -> Entry:
    return Entry(**{**data, "remarks": tuple(Remark(**remark) for remark in data["remarks"])})


def entry_of(audit: Audit) -> Entry:
    return Entry(
        title=f"{audit.case.kernel.name} {audit.case.shape}".strip(),
        ok=audit.ok,
        figures=figures_of(audit.run.counters),
        adapter=", ".join(adapter.name for adapter in audit.adapters) or None,
        remarks=tuple(_remarks(audit)),
    )


def figures_of(counters: Mapping[str, float]) -> dict[str, float]:
    """The figures that people set budgets for; of a run without probes, those that were counted."""
    known = {**counters, **derived(counters, FIGURES)}
    return {name: known[name] for name in FIGURES if name in known}


def entry_of_error(title: str, error: Exception, file: str = "") -> Entry:
    """A kernel that could not be run: the shader is wrong (`WgslError`), or what it was given (`UsageError`)."""
    diagnostics = getattr(error, "diagnostics", None)
    if diagnostics:
        remarks = [_of_span(ERROR, d.code, d.message, d.span, file, notes=d.notes) for d in diagnostics]
    else:
        at = re.match(r"(?P<file>[^\n:]+\.\w+)(:(?P<line>\d+))?: (?P<message>.*)", str(error), re.DOTALL)
        where = (at["message"], at["file"], int(at["line"] or 0)) if at else (str(error), file, 0)
        remarks = [Remark(ERROR, "wrong-use", *where)]
    return Entry(title, ok=False, remarks=tuple(remarks))


def merged(entries: Iterable[Entry]) -> list[Remark]:
    """The remarks of all entries, worst first; what is said of one place in several cases stands once, at its worst."""
    found: dict[tuple[str, str, str, int], Remark] = {}
    for remark in (remark for entry in entries for remark in entry.remarks):
        key = (remark.level, remark.code, remark.file, remark.line)
        before = found.get(key)
        if before is None:
            found[key] = remark
        else:
            worse = max(before, remark, key=lambda r: r.weight)
            found[key] = replace(worse, cases=before.cases + remark.cases)
    return sorted(found.values(), key=lambda r: (r.level != ERROR, -r.weight, r.file, r.line))


# ---- from an audit -----------------------------------------------------------------------------------


def _remarks(audit: Audit) -> Iterator[Remark]:
    from .text import comparison_words, counter_words

    kernel = audit.case.kernel
    entry = audit.run.pipeline.entry.span if hasattr(audit.run.pipeline, "entry") else None
    for check in audit.outputs:
        if not check.ok:
            verdict = comparison_words(check.comparison) + _worst(check) + _likely(check) + _advice(check)
            words = f"{check.output} against {check.against}: {verdict}"
            yield _of_span(ERROR, "output", words, entry, str(kernel.source), check.comparison.mismatches)
        elif check.comparison.unbounded and not check.held_elsewhere:
            words = f"{check.output} against {check.against}: {comparison_words(check.comparison)}"
            yield _of_span(NOTE, "unbounded", words, entry, str(kernel.source), check.comparison.unbounded)
    for check in audit.limits:
        if not check.ok:
            words = f"beyond what {audit.device} allows, {check.exceeded}"
            yield _of_span(ERROR, "limit", words, entry, str(kernel.source))
    for check in audit.counters:
        if not check.ok:
            line = _line_of(kernel.path, check.counter, kernel.counters[check.counter])
            yield Remark(ERROR, "counter", f"{check.counter}  {counter_words(check)}", str(kernel.path), line)
    for check in audit.findings:
        if not check.allowed:
            yield of_finding(NOTE if check.ok else ERROR, check.finding, str(kernel.source))
    if audit.golden is not None and not audit.golden.ok:
        yield from golden_remarks(audit.golden, kernel.path)


def _worst(check: Any) -> str:
    """The element that is furthest off, and who wrote it."""
    if not check.comparison.worst:
        return ""
    d = check.comparison.worst[0]
    owner = f", written by {d.owner}" if d.owner else ""
    ours, theirs = d.numbers
    return f"; worst [{', '.join(map(str, d.index))}]: {ours} for {theirs}{owner}"


def _likely(check: Any) -> str:
    return "" if check.likely is None else f"; {check.likely}"


def _advice(check: Any) -> str:
    return f"; {check.advice}" if check.advice else ""


def of_finding(level: str, f: Any, file: str) -> Remark:
    """`file` stands for the place of a finding that has none."""
    return _of_span(level, f.code, f.message, f.span, file, f.count, getattr(f, "notes", ()))


def golden_remarks(verdict: Any, owner: Path, line: int = 0) -> Iterator[Remark]:
    """One for each line that changed. What lies at no line is said of `owner`, the manifest or test."""
    folder = owner.parent
    for change in verdict.changes:
        if change.line:
            file = Path(folder, change.file)
            yield Remark(ERROR, "golden", change.words, _tidy(file), change.line, weight=change.weight)
    cause = [str(verdict.likely)] if verdict.likely is not None and verdict.outputs else []
    rest = [*map(str, verdict.outputs), *cause, *(str(change) for change in verdict.changes if not change.line)]
    if rest or not verdict.changes:
        words = "; ".join([str(verdict).splitlines()[0], *rest, *filter(None, [verdict.advice])])
        yield Remark(ERROR, "golden", words, str(owner), line)


def _tidy(path: Path) -> str:
    """Without `..`, as links are of no matter here."""
    return os.path.normpath(path)


def _of_span(level: str, code: str, message: str, span: Any, file: str, weight: int = 0,
             notes: Sequence[Any] = ()) -> Remark:  # fmt: skip
    also = [(note.message, note.span.place.file, note.span.line) for note in notes if note.span]
    if span is None:
        return Remark(level, code, message, file, weight=weight, also=also)
    place = span.place
    return Remark(level, code, message, place.file, place.line, place.column, weight, also)


def _line_of(path: Path, key: str, value: Any) -> int:
    """The first line of a manifest that gives this value to this key; 0 where there is none."""
    pattern = rf"""\b{re.escape(key)}\s*=\s*["']?{re.escape(str(value))}(?![\w.])"""
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((number for number, line in enumerate(lines, 1) if re.search(pattern, line)), 0)
