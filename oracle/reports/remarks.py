"""Remarks: what is wrong with a case, each at a place in a file, for programs that show it beside the source.

An `Entry` is one audited case with its remarks. It holds plain values, so that it can be sent between processes.
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
from ..judge.coverage import CaseOutcome
from .check_words import comparison_words, counter_words
from .prediction import time_check_words

if TYPE_CHECKING:
    from ...sim import Finding, Note
    from ...sim.wgsl.diagnostics import Diagnostic
    from ...sim.wgsl.source import Span
    from ..goldens.golden_store import Verdict
    from ..judge.output_checks import OutputCheck
    from ..judge.verdict import Audit

ERROR, WARNING, NOTE = "error", "warning", "note"
LEVELS = (ERROR, WARNING, NOTE)  # the worst first
LEVEL_OF = {"error": ERROR, "warning": WARNING, "info": NOTE}  # by the severity of a finding

# The codes of remarks; those of findings are the simulator's.
CODES = {
    "output": "an output differs from what is expected",
    "unbounded": "elements of an output have no bound to be checked against",
    "counter": "a counter differs from the manifest",
    "predicted-time": "the predicted time is more than the manifest allows",
    "limit": "the dispatch is beyond a limit of the device",
    "golden": "a run differs from its golden",
    "unchecked": "nothing could have failed for elements of an output",
    "wrong-use": "a kernel cannot be run",
}

# Among remarks of a level, the codes that come first and last; those of findings are between them.
_FIRST, _LAST = ("wrong-use", "output"), ("limit", "counter", "predicted-time", "golden", "unchecked", "unbounded")

# The counters that an entry shows.
FIGURES = ("excess_wavefronts", "excess_sectors", "working_invocations", "barriers")


@frozen
class Remark:
    """One thing to report at a place.

    `line` and `column` count from 1; 0 if unknown. `end_column` is past the last character; 0 if the place ends on
    another line. `weight` sorts remarks of a code. `also`: other places that explain it, as (message, file, line).
    `cases`: in how many cases it occurred. `hint`: what helps, if known.
    """

    level: str
    code: str
    message: str
    file: str
    line: int = 0
    column: int = 0
    weight: int = 0
    also: Sequence[tuple[str, str, int]] = ()
    cases: int = 1
    hint: str = ""
    end_column: int = 0

    @property
    def rank(self) -> tuple[int, int, int, str, int]:
        """The key that sorts remarks, the worst first: wrong outputs before findings before costs."""
        of_code = _FIRST.index(self.code) if self.code in _FIRST else len(_FIRST)
        of_code += 1 + _LAST.index(self.code) if self.code in _LAST else 0
        return LEVELS.index(self.level), of_code, -self.weight, self.file, self.line


@frozen
class Entry:
    """One case: its title, whether it is clean, its figures by the names in `FIGURES`, and the adapters that it was
    compared with. `outcome`: a `CaseOutcome`. `compared`: for each output, what checked how much of it.
    `truths` and `not_compared`: as in `Compared`. `golden`: the state of its golden, as in `golden_store.STATES`."""

    title: str
    ok: bool
    figures: Mapping[str, float] = field(default_factory=dict[str, float])
    adapter: str | None = None
    remarks: Sequence[Remark] = ()
    outcome: str = ""
    compared: Sequence[str] = ()
    truths: Sequence[str] = ()
    not_compared: Sequence[str] = ()
    golden: str = ""

    @property
    def word(self) -> str:
        """The outcome."""
        return self.outcome or ("clean" if self.ok else "failed")

    def plain(self) -> dict[str, Any]:
        """The entry as JSON-like values, for `entry_of_plain`."""
        return asdict(self)


def entry_of_plain(data: Mapping[str, Any]) -> Entry:
    """The entry that `Entry.plain` describes."""
    given: dict[str, Any] = {**data, "remarks": tuple(Remark(**remark) for remark in data["remarks"])}
    return Entry(**given)


def entry_of(audit: Audit) -> Entry:
    """The remarks of an audited case."""
    return Entry(
        title=f"{audit.case.kernel.name} {audit.case.shape}".strip(),
        ok=audit.ok,
        figures=figures_of(audit.run.counters),
        adapter=", ".join(adapter.name for adapter in audit.adapters) or None,
        remarks=tuple(_remarks(audit)),
        outcome=audit.outcome.value,
        compared=tuple(map(str, audit.coverage.outputs)),
        truths=audit.compared.truths,
        not_compared=audit.compared.not_compared,
        golden="" if audit.golden is None else audit.golden.state,
    )


def figures_of(counters: Mapping[str, float]) -> dict[str, float]:
    """The figures that users set budgets for, as far as the probes of the run counted them."""
    known = {**counters, **derived(counters, FIGURES)}
    return {name: known[name] for name in FIGURES if name in known}


def entry_of_error(title: str, error: Exception, file: str = "") -> Entry:
    """The remarks of a kernel that could not be run, because of its shader (`WgslError`) or its data (`UsageError`)."""
    diagnostics = getattr(error, "diagnostics", None)
    if diagnostics:
        remarks = [_of_span(ERROR, d.code, d.message, d.span, file, notes=d.notes, hint=d.hint) for d in diagnostics]
    else:
        at = re.match(r"(?P<file>[^\n:]+\.\w+)(:(?P<line>\d+))?: (?P<message>.*)", str(error), re.DOTALL)
        where = (at["message"], at["file"], int(at["line"] or 0)) if at else (str(error), file, 0)
        remarks = [Remark(ERROR, "wrong-use", *where)]
    return Entry(title, ok=False, remarks=tuple(remarks), outcome=CaseOutcome.ERROR.value)


def entry_of_diagnostics(file: str, diagnostics: Iterable[Diagnostic]) -> Entry:
    """The remarks of a file that was checked."""
    remarks = [
        _of_span(LEVEL_OF[d.severity], d.code, d.message, d.span, file, notes=d.notes, hint=d.hint) for d in diagnostics
    ]
    return Entry(file, ok=not remarks, remarks=tuple(remarks))


def merged(entries: Iterable[Entry]) -> list[Remark]:
    """The remarks of all entries, worst first. Of remarks with one code at one place, only the worst is kept."""
    found: dict[tuple[str, str, int], Remark] = {}
    for remark in (remark for entry in entries for remark in entry.remarks):
        key = (remark.code, remark.file, remark.line)
        before = found.get(key)
        if before is None:
            found[key] = remark
        else:
            worse = min(before, remark, key=lambda each: each.rank)
            found[key] = replace(worse, cases=before.cases + remark.cases)
    return sorted(found.values(), key=lambda remark: remark.rank)


def remark_words(remark: Remark) -> str:
    """The message with the line it is about, for a log that shows nothing else."""
    at = f"{Path(remark.file).name}:{remark.line}: " if remark.line else ""
    more = f" (in {remark.cases} cases)" if remark.cases > 1 else ""
    also = "".join(f"\n{Path(file).name}:{line}: {message}" for message, file, line in remark.also)
    hint = f"\nhint: {remark.hint}" if remark.hint else ""
    return f"{at}{remark.message}{more}{also}{hint}"


def from_root(file: str) -> str:
    """A path relative to the root of the repository, if the file is inside it."""
    root = Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd()).resolve()
    path = Path(file).resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else Path(file).as_posix()


# ---- from an audit -----------------------------------------------------------------------------------


def _remarks(audit: Audit) -> Iterator[Remark]:
    kernel = audit.case.kernel
    entry = audit.run.pipeline.entry.span if hasattr(audit.run.pipeline, "entry") else None
    vacuous = {check.output for check in audit.outputs if not check.ok and check.comparison.vacuous}
    for check in audit.outputs:
        if not check.comparison.ok or check.output in vacuous:
            verdict = comparison_words(check.comparison) + _worst(check) + _likely(check) + _advice(check)
            words = f"{check.output} against {check.against}: {verdict}"
            yield _of_span(
                ERROR, "output", words, check.written or entry, str(kernel.source), check.comparison.mismatches
            )
        elif check.comparison.unbounded and not check.checked_elsewhere:
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
    if audit.predicted is not None and not audit.predicted.ok and kernel.predicted_us_max is not None:
        line = _line_of(kernel.path, "predicted_us_max", kernel.predicted_us_max.us)
        words = f"predicted time  {time_check_words(audit.predicted)}"
        yield Remark(ERROR, "predicted-time", words, str(kernel.path), line)
    for check in audit.findings:
        if not check.allowed:
            yield of_finding(check.finding, str(kernel.source))
    unchecked = [words for words in audit.unchecked if words.partition(":")[0] not in vacuous]
    if unchecked and not audit.differs:
        yield _of_span(ERROR, "unchecked", "; ".join(unchecked), entry, str(kernel.source))
    if audit.golden is not None and audit.golden.differs:
        yield from golden_remarks(audit.golden, kernel.path)


def _worst(check: OutputCheck) -> str:
    """The element that differs most, and the invocation that wrote it."""
    if not check.comparison.worst:
        return ""
    d = check.comparison.worst[0]
    owner = f", written by {d.owner}" if d.owner else ""
    ours, theirs = d.numbers
    return f"; worst [{', '.join(map(str, d.index))}]: {ours} for {theirs}{owner}"


def _likely(check: OutputCheck) -> str:
    return "" if check.likely is None else f"; {check.likely}"


def _advice(check: OutputCheck) -> str:
    return f"; {check.advice}" if check.advice else ""


def of_finding(f: Finding, file: str) -> Remark:
    """The remark of a finding, at the level of its severity. `file` is for a finding without a place."""
    return _of_span(LEVEL_OF[f.severity], f.code, f.message, f.span, file, f.count, f.notes, f.hint)


def golden_remarks(verdict: Verdict, owner: Path, line: int = 0) -> Iterator[Remark]:
    """A remark for each line that changed. Other changes are reported at `owner`, the manifest or test."""
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
    """The path without `..`; links do not matter here."""
    return os.path.normpath(path)


def _of_span(level: str, code: str, message: str, span: Span | None, file: str, weight: int = 0,
             notes: Sequence[Note] = (), hint: str | None = None) -> Remark:  # fmt: skip
    also = [(note.message, note.span.place.file, note.span.line) for note in notes if note.span]
    if span is None:
        return Remark(level, code, message, file, weight=weight, also=also, hint=hint or "")
    place, length = span.place, span.end - span.start
    inside = "\n" not in span.source.text[span.start : span.end]
    end = place.column + max(length, 1) if inside else 0
    return Remark(
        level, code, message, place.file, place.line, place.column, weight, also, hint=hint or "", end_column=end
    )


def _line_of(path: Path, key: str, value: object) -> int:
    """The first line of a manifest that gives this value to this key; 0 if none does."""
    pattern = rf"""\b{re.escape(key)}\s*=\s*["']?{re.escape(str(value))}(?![\w.])"""
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((number for number, line in enumerate(lines, 1) if re.search(pattern, line)), 0)
