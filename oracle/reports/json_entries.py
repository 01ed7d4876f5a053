"""Parts of JSON documents that several commands share."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from ...sim.run.executed_instructions import by_class
from ...sim.utilization.utilization import DEFINITIONS
from ..judge.counter_checks import with_derived
from .json_document import Entry
from .source_listing import ADDED

if TYPE_CHECKING:
    from ...sim import Diagnostic, Finding, Run, Site
    from ...sim.run.workgroup_coverage import Coverage
    from ...sim.wgsl.source import Span
    from ..comparison.compare import Comparison
    from ..diagnosis.mismatch import Diagnosis
    from ..judge.coverage import OutputCoverage
    from ..judge.device_comparison import Charged
    from ..judge.output_checks import OutputCheck
    from ..manifests.manifest import Case
    from ..wgpu_client import AdapterInfo

SITE = ("executions", "active_lanes", *ADDED)  # counters of a place


_NOT_IN_JSON = ("mismatch_map", "unchecked")  # of a comparison: whole arrays


def case_entry(case: Case) -> Entry:
    kernel = case.kernel
    return {
        "kernel": kernel.name,
        "source": str(kernel.source),
        "entry": kernel.entry,
        "dims": case.shape.dims,
        "grid": list(case.grid),
        "overrides": case.overrides,
    }


def output_entry(check: OutputCheck) -> Entry:
    doubts = [finding_entry(finding, allowed=True) for finding in check.doubts]
    return {
        "output": check.output,
        "against": check.against,
        **comparison_entry(check.comparison),
        "ok": check.ok,
        "outcome": check.outcome,
        "held": not check.comparison.vacuous,
        "allowed": check.allowed,
        "likely": likely_entry(check.likely),
        "doubts": doubts,
    }


def output_coverage_entry(each: OutputCoverage) -> Entry:
    return {"output": each.output, "elements": each.elements, "truths": dict(each.truths), "unchecked": each.unchecked,
            "reason": each.reason or None}  # fmt: skip


def likely_entry(likely: Diagnosis | None) -> dict[str, str] | None:
    return None if likely is None else {"class": likely.name, "evidence": likely.evidence}


def comparison_entry(c: Comparison) -> Entry:
    entry = {each.name: getattr(c, each.name) for each in dataclasses.fields(c) if each.name not in _NOT_IN_JSON}
    rule = {"name": c.rule.name, **c.rule.limits}
    entry["unchecked"] = c.unchecked_count
    return {**entry, "rule": rule, "share": c.share, "worst": [dataclasses.asdict(d) for d in c.worst]}


def site_entry(site: Site) -> Entry:
    place = site.span.place
    return {
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "text": site.span.line_text,
        "kind": site.kind,
        "space": site.space,
        "name": site.name,
        "bytes_per_lane": site.bytes_per_lane,
        **{name: getattr(site, name) for name in SITE},
    }


def instructions_entry(run: Run) -> Entry:
    """The instructions of a run: totals by class, and those of each place."""
    totals = {
        kind: {"executions": issued, "lanes": lanes} for kind, (issued, lanes) in by_class(run.instructions).items()
    }
    places = [
        {"file": row.span.place.file, "line": row.line, "column": row.span.place.column, "class": row.kind,
         "executions": row.executions, "lanes": row.lanes}
        for row in run.instructions
    ]  # fmt: skip
    return {"totals": totals, "places": places}


def utilization_entry(run: Run) -> Entry:
    """The utilizations of a run, from 0 to 1 and null where they are not known, and the issue slots of each line."""
    found = run.utilization
    headline = found.headline and {
        "key": found.headline.key, "value": found.headline.value, "cause": found.headline.cause,
        **({} if (span := found.headline.span) is None else {"file": span.place.file, "line": span.line}),
    }  # fmt: skip
    return {
        **{row.key: getattr(found, row.key) for row in DEFINITIONS},
        "headline": headline,
        "workgroups": found.workgroups,
        "measured": found.measured,
        "exact": found.exact,
        "missing": found.missing,
        "lines": [
            {"file": row.span.place.file, "line": row.line, "issued": row.issued, "active": row.active,
             "useful": row.useful}
            for row in found.lines
        ],
    }  # fmt: skip


def coverage_entry(coverage: Coverage) -> Entry:
    """Which workgroups were simulated, and how many each of them represents."""
    classes = [{"workgroup": list(place), "stands_for": size} for place, size in coverage.classes]
    return {**dataclasses.asdict(coverage), "classes": classes}


def device_entry(charged: Charged) -> Entry:
    return {
        "device": charged.device.name,
        "subgroup_size": charged.device.subgroup_size,
        "merge_adjacent": charged.device.merge_adjacent,
        "counted_anew": charged.anew,
        "counters": with_derived(charged.counters),
        "sector_bytes": charged.sector_bytes,
        "occupancy": dataclasses.asdict(charged.occupancy),
    }


def adapter_entry(adapter: AdapterInfo | None) -> Entry | None:
    return None if adapter is None else {**dataclasses.asdict(adapter), "profile": adapter.profile}


def finding_entry(f: Finding, allowed: bool) -> Entry:
    return {
        "code": f.code,
        "severity": f.severity,
        "message": f.message,
        "allowed": allowed,
        "count": f.count,
        "lanes": f.lanes,
        "workgroup": f.workgroup,
        "epoch": f.epoch,
        "verdict": f.verdict,
        "places": [_place(f.code, f.span), *(_place(note.message, note.span) for note in f.notes)],
        "hint": f.hint,
        "text": f.render(),
    }


def diagnostic_entry(d: Diagnostic) -> Entry:
    return {
        "code": d.code,
        "severity": d.severity,
        "message": d.message,
        "places": [_place(d.code, d.span), *(_place(note.message, note.span) for note in d.notes)],
        "hint": d.hint,
        "text": d.render(),
    }


def _place(label: str, span: Span | None) -> Entry:
    """A labelled place in the source; only the label where there is no place."""
    if span is None:
        return {"label": label}
    return {"label": label, "file": span.place.file, "line": span.place.line, "column": span.place.column}
