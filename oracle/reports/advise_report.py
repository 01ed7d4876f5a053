"""The result of `bankshot advise`: a table for people, an entry for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...sim.cures.patches import unified
from ...sim.wgsl.diagnostics import listed
from .cost_places import CONFLICTS, cost_places
from .cost_text import show_cost
from .json_document import Entry
from .json_entries import case_entry
from .prediction import shown_us
from .source_listing import compact
from .terminal import say, show_heading, show_unmapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...sim import Site
    from ...sim.models import Device
    from ..advise.advice import Advice, AdviceReport, Rewritten, Trial
    from .cost_places import CostPlace

MOST_COLUMNS = 5  # of accesses; those beyond are summed in one
_UNBOUNDED = 1_000  # characters, more than any table takes
MOST_ROWS = 5  # of accepted layouts, beside those that are marked; `--all` shows the others


def show_advised(out: Console, result: AdviceReport, show_all: bool = False) -> None:
    """Print the report. `show_all`: each accepted layout, not only the best few."""
    show_heading(out, result.case, f"charged as {result.device}")
    for advice in result.advice:
        out.print()
        say(out, f"  {advice.array}: {_verdict(advice)}", "bold")
        say(out, f"  {_proof(advice)}", "dim")
        shown = _shown(advice, show_all)
        out.print(_fitting_table(out, advice, shown))
        if more := len(advice.accepted) - len(shown):
            say(out, f"  {more} more layouts rank below those; --all shows them", "dim")
        _refused(out, advice)
    _rewrites(out, result)
    _changes(out, result)
    for reason in result.reasons:
        say(out, f"  note: {reason}")
    if not result.advice and not result.reasons:
        say(out, "  no layout to try")
    if places := _costs(result):
        show_cost(out, places)
    _limits(out, result)
    out.print()


def _limits(out: Console, result: AdviceReport) -> None:
    """Print the strides of scattered accesses, and what bounds the workgroups in flight."""
    for words in dict.fromkeys(stride.words for stride in result.strides):
        say(out, f"  stride: {words}")
    if result.timed_as is not None and result.predicted_us:
        times = _times(result.timed_as, result.predicted_us, result.limiter)
        say(out, f"  predicted time on {result.timed_as.name}: {times}")
    if not result.residency:
        return
    now, *then = result.residency
    changed = f"; {then[0].workgroups} with the change" if then and then[0].workgroups != now.workgroups else ""
    limits = f"({now.fraction:.0%} of its subgroups), limited by {listed(now.limited_by)}{changed}"
    say(out, f"  limits: {now.workgroups} resident workgroups per core {limits}")
    say(out, f"  registers: no limit up to {now.registers} a lane; how many the kernel takes is up to the compiler")
    if now.fill is not None and now.fill < 1:
        say(out, f"  tail: {now.tail} ({now.fill:.1%} of those in all waves)")


def _times(device: Device, us: Sequence[float], limiter: str) -> str:
    """The time before, what takes most of it, and after the change; of a device that was not calibrated, only which is
    shorter."""
    before, *after = us
    if device.calibrated:
        return "".join(
            [f"{shown_us(before)}, mostly {limiter}", *(f"; {shown_us(each)} with the change" for each in after)]
        )
    ratio = [f"; with the change {each / before:.2f} of that as written" for each in after]
    return "for ranking only, the device was not calibrated" + "".join(ratio)


def _costs(result: AdviceReport) -> tuple[CostPlace, ...]:
    """The places that cost most of the text as written; conflicts only where no layout ends them."""
    return tuple(place for place in cost_places(result.run) if result.ok or place.resource != CONFLICTS)


def show_patch(out: Console, result: AdviceReport) -> None:
    """Print the change of the files alone, or say which files have changed."""
    show_unmapped(out, result.patch, indent="")
    say(out, f"changed: {', '.join(result.written)}" if result.written else unified(result.patch).rstrip("\n"))


def _rewrites(out: Console, result: AdviceReport) -> None:
    """Print what changes other than layouts save."""
    counters = result.run.counters if result.rewrites else {}
    for each in result.rewrites:
        if each.refused is not None:
            say(out, f"  rejected: {each.words}: {each.refused}", "dim")
            continue
        pairs = (("wavefronts", "shared_wavefronts", each.wavefronts), ("sectors", "global_sectors", each.sectors))
        saved = [f"{int(counters[key]):,} {unit} become {now:,}" for unit, key, now in pairs if counters[key] != now]
        say(out, f"  better: {each.words}: {' and '.join(saved)}, {each.bytes:,} bytes", "bold")


def _changes(out: Console, result: AdviceReport) -> None:
    """Print the best layouts of all arrays together, and the change of the files."""
    if result.together is not None:
        out.print()
        say(out, f"  together: {result.together.refused or _counted(result.together)}", "bold")
    if result.fewest is not None and result.fewest.refused is None:
        slower = f", but {result.slowdown}" if result.slowdown else ""
        fewest = _counted(result.fewest)
        say(out, f"  fewest of all arrays together: {fewest}{slower}; `--by wavefronts` shows the change")
    show_unmapped(out, result.patch)
    if result.written:
        say(out, f"  changed: {', '.join(result.written)}")
    elif result.patch.files:
        out.print()
        say(out, unified(result.patch).rstrip("\n"))


def _counted(trial: Trial) -> str:
    return f"{trial.wavefronts:,} wavefronts, {trial.excess:,} of them excess, {trial.bytes:,} bytes"


def _verdict(advice: Advice) -> str:
    written, best = advice.written, advice.best
    now = _pitch(advice) if advice.pitch else "its layout"
    if advice.ok:
        return f"{now}, as written, is the best of {_qualified(advice)}"
    saved = f"{written.wavefronts:,} wavefronts become {best.wavefronts:,}"
    memory = f"{best.bytes - written.bytes:+,} bytes" if best.bytes != written.bytes else "the same memory"
    return f"{now} is best {_changed(written, best)}: {saved}, {memory}"


def _pitch(advice: Advice) -> str:
    """What is varied, and its value as written: a constant, perhaps in indices alone, or a number in indices."""
    name, *place = advice.pitch.partition(" in indices of ")
    value = "" if name.rstrip("u").isdigit() else f" = {advice.written.pitch}"
    return "".join([name, value, *place])


def _changed(written: Trial, trial: Trial) -> str:
    """What a layout changes."""
    changed = [f"changed to {trial.pitch}"] if trial.pitch != written.pitch else []
    if trial.swizzle is not None:
        changed.append(f"swizzled as {trial.swizzle.text('index')}")
    return " and ".join(changed)


def _proof(advice: Advice) -> str:
    """How much the verdict says."""
    if advice.slower:
        return _slower(advice)
    if advice.exact:
        return "no layout that was searched takes fewer wavefronts"
    how = "by the accesses of the first workgroup, or not for every pitch"
    return f"a heuristic: swizzles were chosen {how}, so that a better one may exist"


def _slower(advice: Advice) -> str:
    """Which layout takes fewest wavefronts, and how much slower than the best it is predicted to be."""
    layout = _changed(advice.written, advice.fewest) or "as written"
    words = f"{layout}, it takes {advice.fewest.wavefronts:,} wavefronts, {advice.fewest.excess:,} of them excess"
    return f"{words}, but is {advice.slowdown}" if advice.slowdown else words


def _qualified(advice: Advice) -> str:
    return f"{len(advice.accepted)} layouts that keep the outputs"


def _shown(advice: Advice, show_all: bool) -> list[Trial]:
    """The accepted layouts to show, by pitch: the best few and those that are marked, or all."""
    accepted = advice.accepted
    if not show_all:
        ranked = sorted(accepted, key=lambda t: (t.us or 0.0, t.wavefronts, t.bytes))[:MOST_ROWS]
        marked = (advice.written, advice.best, advice.best_pad)
        accepted = [trial for trial in accepted if any(trial is each for each in (*ranked, *marked))]
    return sorted(accepted, key=lambda t: (t.pitch, t.swizzle is not None))


def _fitting_table(out: Console, advice: Advice, shown: Sequence[Trial]) -> Table:
    """The table with as many columns of accesses as the console has room for."""
    unbounded = out.options.update(max_width=_UNBOUNDED)
    for most in range(MOST_COLUMNS, 0, -1):
        table = _table(advice, shown, most)
        if out.measure(table, options=unbounded).maximum <= out.width:
            return table
    return _table(advice, shown, 0)


def _table(advice: Advice, shown: Sequence[Trial], most: int = MOST_COLUMNS) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=True, padding=(0, 1, 0, 0))
    groups = _groups(advice, most)
    headings = [_heading([advice.sites[number] for number in group]) for group in groups]
    timed = advice.written.us is not None
    times = ["predicted"] if timed else []
    for heading in ["pitch", "bytes", *times, "wavefronts", "excess", *headings, ""]:
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for trial in shown:
        words, style = _mark(advice, trial)
        sites = [compact(sum(trial.sites[number] for number in group)) for group in groups]
        us = [_relative(trial.us, advice.written.us)] if timed else []
        counted = [f"{n:,}" for n in (trial.wavefronts, trial.excess)]
        cells = (_name(trial), f"{trial.bytes:,}", *us, *counted, *sites, words)
        table.add_row(*map(Text, cells), style=style)
    return table


def _relative(us: float | None, written: float | None) -> str:
    """The predicted time as a part of that of the text as written."""
    return f"x{us / written:.3f}" if us is not None and written else ""


def _name(trial: Trial) -> str:
    words = [str(trial.pitch)] if trial.pitch else []
    return " ".join([*words, "swizzled"] if trial.swizzle else words) or "as written"


def _groups(advice: Advice, most: int = MOST_COLUMNS) -> list[list[int]]:
    """The accesses of each column of the table: neighbours of one kind that cost the same in every layout share one."""
    groups: list[list[int]] = []
    counted = [trial.sites for trial in advice.accepted]
    for number, site in enumerate(advice.sites):
        before = number - 1
        alike = number > 0 and advice.sites[before].kind == site.kind
        if alike and all(sites[number] == sites[before] for sites in counted):
            groups[-1].append(number)
        else:
            groups.append([number])
    kept, others = groups[:most], groups[most:]
    return [*kept, [number for group in others for number in group]] if others else kept


def _heading(sites: list[Site]) -> str:
    """The heading of a column, lines and kind: `98-101 load`."""
    lines, kinds = sorted({site.line for site in sites}), {site.kind for site in sites}
    shown = f"{lines[0]}-{lines[-1]}" if len(lines) > 1 else str(lines[0])
    return f"{shown} {kinds.pop() if len(kinds) == 1 else 'others'}"


def _mark(advice: Advice, trial: Trial) -> tuple[str, str]:
    """The text beside a row, and its style."""
    marks = ((advice.written, "as written"), (advice.best, "best"), (advice.best_pad, "best without a swizzle"))
    names = [words for marked, words in marks if marked is trial]
    if trial is advice.best:
        names = [words for words in names if words != marks[2][1]]
    return f"<- {', '.join(names)}" if names else "", "bold green" if trial is advice.best else "bold" if names else ""


def _refused(out: Console, advice: Advice) -> None:
    """Print the layouts that do not qualify, by reason."""
    by_reason: dict[str, list[str]] = {}
    for trial in advice.trials:
        if trial.refused is not None:
            name = _name(trial) if trial.pitch or trial.swizzle or trial is advice.written else "0"
            by_reason.setdefault(trial.refused, []).append(name)
    for reason, names in by_reason.items():
        shown = ", ".join(names) if len(names) <= 4 else f"{names[0]} … {names[-1]} ({len(names)})"
        say(out, f"  rejected: {shown}: {reason}", "dim")


def advised_entry(result: AdviceReport) -> Entry:
    return {
        **case_entry(result.case),
        "device": result.device,
        "ok": result.ok,
        "arrays": [_entry(advice, result) for advice in result.advice],
        "strides": [{"line": s.site.line, "name": s.site.variable, "bytes": s.bytes} for s in result.strides],
        "residency": [asdict(each) for each in result.residency],
        **_predicted(result.predicted_us, result),
        "predicted_on": result.timed_as and {"device": result.timed_as.name, "calibrated": result.timed_as.calibrated},
        "limiter": result.limiter,
        "cost": [place.entry() for place in _costs(result)],
        "together": result.together and _trial(result.together, result),
        "fewest_wavefronts": result.fewest and _trial(result.fewest, result),
        "rewrites": [_rewritten(each, result) for each in result.rewrites],
        "diff": "" if result.written else unified(result.patch),
        "unmapped": list(result.patch.unmapped),
        "written": list(result.written),
        "reasons": list(result.reasons),
    }


def _predicted(us: float | tuple[float, ...] | None, result: AdviceReport) -> Entry:
    """Predicted times in microseconds; relative to the text as written, if the device was not calibrated."""
    if result.timed_as is None or result.timed_as.calibrated:
        return {"predicted_us": list(us) if isinstance(us, tuple) else us}
    written, *_ = result.predicted_us
    if isinstance(us, tuple):
        return {"predicted_us": [], "predicted_relative": [each / written for each in us]}
    return {"predicted_us": None, "predicted_relative": None if us is None else us / written}


def _entry(advice: Advice, result: AdviceReport) -> Entry:
    return {
        "array": advice.array,
        "pitch": advice.pitch,
        "exact": advice.exact,
        "sites": [{"file": s.span.place.file, "line": s.line, "kind": s.kind} for s in advice.sites],
        "written": _trial(advice.written, result),
        "best": _trial(advice.best, result),
        "trials": [_trial(trial, result) for trial in advice.trials],
    }


def _trial(trial: Trial, result: AdviceReport) -> Entry:
    return {
        "pitch": trial.pitch,
        "swizzle": trial.swizzle and trial.swizzle.text("index"),
        "words": trial.words,
        "workgroup_memory_bytes": trial.bytes,
        "shared_wavefronts": trial.wavefronts,
        "excess": trial.excess,
        "by_site": list(trial.sites),
        "same_sectors": trial.same_sectors,
        "same_outputs": trial.same_outputs,
        **_predicted(trial.us, result),
        "refused": trial.refused,
    }


def _rewritten(each: Rewritten, result: AdviceReport) -> Entry:
    return {
        "words": each.words,
        "workgroup_memory_bytes": each.bytes,
        "shared_wavefronts": each.wavefronts,
        "excess": each.excess,
        "global_sectors": each.sectors,
        **_predicted(each.us, result),
        "refused": each.refused,
    }
