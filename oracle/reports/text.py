"""Audits and differences for people: rich tables that read as well in a pipe, 120 columns wide."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from ...sim.run import counters
from ...sim.run.counters import COUNTERS, SUMMARY
from ...sim.wgsl.syntax.lexer import KEYWORDS
from ..judge.counter_checks import with_derived
from .source_listing import Line, against_ideal, compact, listings
from .tables import IDLE, Table, idle_letters, idle_words, tables, useful

if TYPE_CHECKING:
    from ..comparison.compare import Comparison, Difference
    from ..goldens.golden_store import Verdict
    from ..judge.counter_checks import CounterCheck
    from ..judge.counter_diff import CounterDiff
    from ..judge.device_comparison import Charged
    from ..judge.diff import Diff
    from ..judge.output_checks import OutputCheck
    from ..judge.run_result import RunResult
    from ..judge.verdict import Audit
    from ..manifests.manifest import Case

MOST_DIFFERENCES = 20  # of counters that are shown
_ANY_WIDTH = 1000
WIDTH = 120  # of a report that goes to no terminal

GUTTER = "{:>5} {:>6} {:>5}{} {:>11} {:>11}  {}"
IDLE_GUTTER = " {:>11}"  # of a listing in which lanes are idle
HEADINGS = ("wavefronts", "sectors", "source  (subgroups that issued; charged/ideal)")

# How source looks on a terminal: the later row counts where two fit.
COLOURS = (
    ("bright_blue", re.compile(rf"\b({'|'.join(sorted(KEYWORDS))})\b")),
    ("blue", re.compile(r"\b(0[xX][0-9a-fA-F.]+([pP][+-]?\d+)?|\d+\.?\d*([eE][+-]?\d+)?)[iufh]?\b")),
    ("bright_black", re.compile(r"//.*")),
)

# How a value of a unit is shown; a plain number without a row.
FORMATS = {"bytes": "bytes", "share": "%", "FLOP/byte": "ratio"}

# The totals of a run: name, heading, format.
TOTALS = tuple((row.key, row.title, FORMATS.get(row.unit, "")) for row in SUMMARY)

# A pair of counters: what was charged, what the access width needs, heading.
CHARGES = tuple((row.key, row.ideal, row.title) for row in counters.CHARGES)


def _row(name: str, heading: str = "") -> tuple[str, Callable[[Charged], str]]:
    row = COUNTERS[name]
    return heading or row.title, lambda charged: _amount(charged.counters[name], FORMATS.get(row.unit, ""))


# Devices side by side: how a figure is said, and the figure.
DEVICE_ROWS: tuple[tuple[str, Callable[[Charged], str]], ...] = (
    ("lanes of a subgroup", lambda charged: str(charged.device.subgroup_size)),
    ("adjacent scalar accesses", lambda charged: "merged" if charged.device.merge_adjacent else "as written"),
    _row("shared_wavefronts"),
    _row("shared_ideal_wavefronts", "ideal"),
    _row("global_sectors"),
    _row("global_ideal_sectors", "ideal"),
    ("bytes of these sectors", lambda charged: f"{charged.sector_bytes:,}"),
    _row("global_lines"),
    _row("executions"),
    _row("simt_efficiency"),
    _row("barriers", "barriers"),
    ("workgroups that a core holds", lambda charged: str(charged.occupancy.workgroups)),
    ("occupancy, registers unknown", lambda charged: _amount(charged.occupancy.fraction, "%")),
    ("which is limited by", lambda charged: ", ".join(charged.occupancy.limited_by)),
)


def console(stream: TextIO | None = None) -> Console:
    target = sys.stdout if stream is None else stream
    return Console(file=target, width=None if target.isatty() else WIDTH, highlight=False, emoji=False)


def show_audit(out: Console, audit: Audit, style: str) -> None:
    """One case. `style` is how the source is listed: full, counted (only lines that were charged) or none."""
    show_heading(out, audit.case, f"charged as {audit.device}")
    _checks(out, audit)
    for note in audit.notes:
        _say(out, f"  note: {note}")
    for adapter in audit.adapters:
        _say(out, f"  GPU: {adapter}")
    out.print()
    out.print(_totals({**audit.run.counters, **useful(audit.run)}))
    _say(out, f"  {audit.run.coverage}", "dim")
    for table in tables(audit.run):
        _table(out, table)
    _side_by_side(out, audit.devices)
    if style != "none":
        source = audit.case.kernel.source
        for file, lines in listings(audit.run.sites, source, audit.subgroup_size).items():
            if file != source:
                _say(out, f"  {file}", "dim")
            show_listing(out, [line for line in lines if style == "full" or line.counters])
    if not audit.findings:
        _say(out, "  no findings")
    for item in audit.findings:
        if item.allowed:
            _say(out, f"  accepted by the manifest: {_in_short(item.finding)}")
        else:
            _say(out, counted(item.finding))
    _silenced(out, audit.run)
    _took(out, audit.seconds)


def show_diff(out: Console, diff: Diff) -> None:
    show_heading(out, diff.case, f"simulated as {diff.device}")
    _say(out, f"  GPU: {diff.adapter}")
    for check in diff.outputs:
        show_output_check(out, check)
    if diff.counters is not None:
        _counter_diff(out, diff.counters)
    for what, reason in (("run", diff.not_run), ("counted", diff.not_counted)):
        if reason:
            _say(out, Text.assemble((f"  NOT {what.upper()}  ", "yellow"), reason))
    if diff.seconds:
        _took(out, diff.seconds)


def _counter_diff(out: Console, diff: CounterDiff) -> None:
    ran = "the whole grid" if not diff.cut else f"cut to a grid of {' x '.join(map(str, diff.grid))}"
    counted = f"{diff.compared:,} counters of {diff.rows:,} recorded events, {ran}"
    verdict = "all equal" if not diff.differences else f"{len(diff.differences):,} differ"
    _say(out, _verdict(not diff.differences).append(f"counters as {diff.device}: {counted}: {verdict}"))
    if not diff.outputs_equal:
        changed = f"the probes changed {', '.join(map(str, diff.changed))} by more than roundings"
        _say(out, _verdict(False).append(f"{changed}, so the counters are those of another run"))
    for each in diff.differences[:MOST_DIFFERENCES]:
        place = each.site.span.place
        what = f"{each.site.kind} of {each.site.variable}" if each.site.variable else each.site.name or each.site.kind
        at = f"{place.file}:{place.line}:{place.column}"
        _say(out, f"           {at}: {what}: {each.counter} {each.simulated:,} simulated, {each.counted:,} counted")


def show_run(out: Console, result: RunResult) -> None:
    show_heading(out, result.case, f"simulated as {result.device}")
    for name, s in result.changed.items():
        nan = f", {s['nan']:,} NaN" if s["nan"] else ""
        first = ", ".join(f"{value:.7g}" for value in s["first"])
        extremes = "" if s["min"] is None else f", {s['min']:.7g} to {s['max']:.7g}"
        _say(out, f"  {name}: {s['dtype']}{s['shape']}{extremes}{nan}; {first}, …")
    out.print()
    if result.trace is not None:
        _trace(out, result)
    out.print(_totals(result.run.counters))
    _say(out, f"  {result.run.coverage}", "dim")
    _side_by_side(out, result.devices)
    for finding in result.run.findings:
        _say(out, counted(finding))
    _silenced(out, result.run)
    out.print()


def _trace(out: Console, result: RunResult) -> None:
    for row in result.run.trace:
        _say(out, str(row))
    if result.run.trace_missed:
        _say(out, f"  {result.run.trace_missed:,} more values were not noted; trace fewer lanes", "yellow")
    if not result.run.trace:
        _say(out, f"  the lanes that are traced give {result.trace.variable} no value", "dim")
    out.print()


def counted(finding: Any) -> str:
    """A finding in full, with how often it happened."""
    return finding.render() + (f"\n  {finding.count:,} times in all" if finding.count > 1 else "")


def _silenced(out: Console, run: Any) -> None:
    for finding in run.silenced:
        _say(out, f"  allowed by a comment: {_in_short(finding)}")


def _in_short(finding: Any) -> str:
    place = finding.span.place if finding.span else None
    at = f" at {place.file}:{place.line}" if place else ""
    return f"{finding.code}{at}, {finding.count:,} times: {finding.message}"


def _say(out: Console, words: str | Text, style: str = "") -> None:
    """A line that is never broken: paths stay whole, and carets under what they point at."""
    out.print(Text(words, style) if isinstance(words, str) else words, soft_wrap=True)


def _took(out: Console, seconds: Mapping[str, float]) -> None:
    _say(out, f"  took: {', '.join(f'{what} {duration(s)}' for what, s in seconds.items())}", "dim")
    out.print()


def duration(seconds: float) -> str:
    """Short: a few digits in seconds, milliseconds or microseconds."""
    scales = ((0.1, "{:.2f} s", 1), (1e-3, "{:.0f} ms", 1e3), (0, "{:.0f} us", 1e6))
    return next(words.format(seconds * scale) for least, words, scale in scales if seconds >= least)


def show_heading(out: Console, case: Case, tail: str) -> None:
    kernel = case.kernel
    title = f"{kernel.name}  {case.shape}".rstrip()
    _say(out, title, "bold")
    grid = " x ".join(map(str, case.grid))
    entry = f" entry {kernel.entry}," if kernel.entry else ""
    _say(out, f"  {kernel.source},{entry} grid {grid}, {tail}", "dim")


def _checks(out: Console, audit: Audit) -> None:
    for check in audit.outputs:
        show_output_check(out, check)
    for check in audit.limits:
        if check.ok:
            _say(out, f"  note: beyond WebGPU's defaults, {check.exceeded}")
        else:
            _say(out, f"  EXCEEDS  what {audit.device} allows, {check.exceeded}", "bold red")
    for check in audit.counters:
        _say(out, _verdict(check.ok).append(f"{check.counter}  {counter_words(check)}"))
    if audit.golden is not None:
        _golden(out, audit.golden)


def _golden(out: Console, verdict: Verdict) -> None:
    """One line; what is not as it was and what to do about it below."""
    _say(out, _verdict(verdict.ok).append(verdict.headline))
    for words in (*verdict.sentences, verdict.advice):
        if words:
            _say(out, f"           {words}")
    for change in verdict.outputs:
        if change.comparison is not None:
            _show_differences(out, change.comparison.worst)


# The verdict of a check that could not fail, where another holds the output and where none does.
NOT_HELD = {True: ("  -        ", "yellow"), False: ("  NOT HELD ", "bold red")}


def show_output_check(out: Console, check: OutputCheck) -> None:
    """One line, and the worst elements below it where they differ."""
    words = f"{check.output} against {check.against}: {comparison_words(check.comparison)}"
    verdict = NOT_HELD.get(check.ok) if check.comparison.vacuous else None
    _say(out, Text.assemble(verdict or _verdict(check.ok), words))
    if check.comparison.worst:
        _show_differences(out, check.comparison.worst)
    if check.advice:
        _say(out, f"           {check.advice}")
    if check.likely is not None:
        _say(out, f"           {check.likely}")
    for finding in check.doubts:
        _say(out, f"  {_in_short(finding)}")


def _verdict(ok: bool) -> Text:
    return Text.assemble(("  ok       ", "green")) if ok else Text.assemble(("  DIFFERS  ", "bold red"))


def counter_words(check: CounterCheck) -> str:
    if check.ok:
        return f"{check.actual:,} as expected"
    return f"{check.actual:,}, the manifest expects {check.expected:,}"


def comparison_words(c: Comparison) -> str:
    """The verdict in a few words: the rule, how many elements, and the rule's own measure."""
    elements = f"{c.elements:,} element{'' if c.elements == 1 else 's'}"
    if c.ok and c.rule.row.bitwise:
        return f"bit for bit, {elements}"
    if c.vacuous:
        return f"{elements}, rule {c.rule}: none has a bound, so that any value passes"
    score = f", {c.measure} {c.score:.3g} (limit {c.limit:.3g})"
    if c.unbounded:
        score += f", {c.unbounded:,} of them without a bound, which pass whatever they hold"
    if c.ok:
        return f"{elements}, rule {c.rule}{score}"
    unit = " ULP" if all(d.is_float for d in c.worst) else ""
    ulp = "" if c.max_ulp is None else f", up to {c.max_ulp:,}{unit} apart"
    more = "" if c.rule.row.bitwise else score
    return f"{c.mismatches:,} of {elements} ({c.share:.2%}), rule {c.rule}{more}{ulp}"


def _show_differences(out: Console, worst: Sequence[Difference]) -> None:
    """As wide as it has to be, as one that leaves out part of an index tells nothing."""
    table, width = _differences(worst), out.width
    out.width = max(width, Measurement.get(out, out.options.update(width=_ANY_WIDTH), table).maximum)
    out.print(table)
    out.width = width


def _differences(worst: Sequence[Difference]) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 1))
    headings = ["index", "ours", "theirs", "our bits", "their bits", "ULP" if worst[0].is_float else "apart"]
    owners, bounds = any(d.owner for d in worst), any(d.bound is not None for d in worst)
    for heading in (*headings, *(["bound", "used"] if bounds else []), *(["written by"] if owners else [])):
        table.add_column(heading, justify="left" if heading == "written by" else "right", no_wrap=True)
    for d in worst:
        ulp = "NaN" if d.ulp is None else f"{d.ulp:,}"
        index = ", ".join(map(str, d.index))
        cells = (f"[{index}]", *d.numbers, d.actual_bits, d.expected_bits, ulp)
        if bounds and d.bound is not None and d.used is not None:
            cells += (f"{d.bound:.3g}", f"{d.used:.3g}")
        table.add_row(*(Text(cell) for cell in cells), *([Text(d.owner or "")] if owners else []))
    return table


def _totals(counters: Any) -> RichTable:
    table = RichTable(box=None, show_header=False, pad_edge=False, padding=(0, 2))
    table.add_column(justify="left", min_width=38)
    table.add_column(justify="left")
    values = with_derived(counters)
    for name, label, unit in TOTALS:
        if name in values:  # shares of lanes are counted by a probe
            table.add_row(f"  {label}", _amount(values[name], unit))
    if words := idle_words(values):
        table.add_row("  idle lanes, of those issued", words)
    if values["idle_skipped"]:
        table.add_row(f"  {COUNTERS['idle_skipped'].title}", f"{values['idle_skipped']:,}")
    for actual, ideal, label in CHARGES:
        words = f"{values[actual]:,}"
        if values[actual] != values[ideal]:
            words += f", ideal {values[ideal]:,} (x{values[actual] / max(values[ideal], 1):.3g})"
        table.add_row(f"  {label}", words)
    return table


def _table(out: Console, given: Table) -> None:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2))
    for number, heading in enumerate((f"  {given.caption}", *given.headings[1:])):
        table.add_column(heading, justify="right" if number else "left", no_wrap=True)
    for first, *rest in given.rows:
        table.add_row(f"  {first}", *rest)
    out.print(table)
    for note in given.notes:
        _say(out, f"  {note}")
    if given.notes:
        out.print()


def _side_by_side(out: Console, devices: Sequence[Charged]) -> None:
    """A row per counter and a column per device, where there are several."""
    if not devices:
        return
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2))
    table.add_column("  on each device", no_wrap=True)
    for charged in devices:
        table.add_column(charged.device.name, justify="right")
    for label, figure in DEVICE_ROWS:
        table.add_row(f"  {label}", *map(figure, devices))
    out.print(table)


def _amount(value: float, unit: str) -> str:
    match unit:
        case "%":
            return f"{value:.1%}"
        case "ratio":
            return f"{value:.3g}"
    return f"{value:,} {unit}".rstrip()


def show_listing(out: Console, lines: Sequence[Line]) -> None:
    """The source behind a gutter: subgroups that issued, active lanes, why others idle, memory charges against their
    ideal."""
    idle = any(line.lanes not in (None, 1.0) for line in lines)
    column = IDLE_GUTTER.format("idle") if idle else ""
    rows = [Text(GUTTER.format("line", "issued", "lanes", column, *HEADINGS), "dim")]
    rows += [Text(_gutter(line, idle)).append_text(_highlighted(line.text)) for line in lines]
    if idle:
        causes = ", ".join(f"{letter} {words}" for _, words, letter in IDLE)
        rows.append(Text(f"  idle, in percent: {causes}", "dim"))
    width = out.width
    for row in rows:
        row.truncate(width, overflow="ellipsis")
        row.rstrip()
    _say(out, Text("\n").join([Text(), *rows, Text()]))  # at once: a line at a time takes five times as long


def _gutter(line: Line, idle: bool) -> str:
    """What stands before a line of source; `idle`: with the column of idle lanes."""
    c = line.counters
    if c is None:
        return GUTTER.format(line.number, "", "", IDLE_GUTTER.format("") if idle else "", "", "", "")
    causes = IDLE_GUTTER.format(idle_letters(c, line.issued)) if idle else ""
    wavefronts = against_ideal(c["shared_wavefronts"], c["shared_ideal_wavefronts"])
    sectors = against_ideal(c["global_sectors"], c["global_ideal_sectors"])
    return GUTTER.format(line.number, compact(c["executions"]), f"{line.lanes:.0%}", causes, wavefronts, sectors, "")


def _highlighted(text: str) -> Text:
    code = Text(text.expandtabs(4))
    for style, pattern in COLOURS:
        code.highlight_regex(pattern, style)
    return code
