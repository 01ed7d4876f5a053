"""The same reports for programs: one JSON document, whose `schema` number changes when a name in it does."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...sim.run.executed_instructions import by_class
from ..judge.counter_checks import with_derived
from .source_listing import ADDED

if TYPE_CHECKING:
    from pathlib import Path

    from ..comparison.compare import Comparison
    from ..diagnosis.mismatch import Diagnosis
    from ..goldens.golden_store import Verdict
    from ..judge.counter_checks import CounterCheck, LimitCheck
    from ..judge.counter_diff import CounterDiff
    from ..judge.device_comparison import Charged
    from ..judge.diff import Diff
    from ..judge.output_checks import OutputCheck
    from ..judge.run_result import RunResult
    from ..judge.verdict import Audit
    from ..manifests.manifest import Case
    from ..wgpu_client import AdapterInfo
    from .remarks import Entry

SCHEMA = 1

SITE = ("executions", "active_lanes", *ADDED)


def document(verb: str, entries: Sequence[dict[str, Any]], ok: bool, error: str | None = None) -> str:
    """The whole report of one command. `error`: what ended it before its last case, or why cases could not be run."""
    whole = {"tool": "bankshot", "schema": SCHEMA, "verb": verb, "ok": ok, "cases": list(entries)}
    if error is not None:
        whole["error"] = error
    return json.dumps(_finite(whole), indent=2)


def audit_entry(audit: Audit) -> dict[str, Any]:
    return {
        **case_entry(audit.case),
        "device": audit.device,
        "ok": audit.ok,
        "outputs": [output_entry(check) for check in audit.outputs],
        "expected_counters": [_counter_entry(check) for check in audit.counters],
        "limits": [_limit_entry(check) for check in audit.limits],
        "coverage": _coverage_entry(audit.run.coverage),
        "counters": dict(audit.run.counters),
        "sites": [site_entry(site) for site in audit.run.sites],
        "instructions": _instructions_entry(audit.run),
        "padding_flops": audit.run.padding_flops,
        "traffic": [_traffic_entry(each) for each in audit.run.traffic],
        "findings": [_finding_entry(item.finding, item.allowed) for item in audit.findings],
        "silenced": [_finding_entry(f, allowed=True) for f in audit.run.silenced],
        "gpu": adapter_entry(audit.adapter),
        "gpus": [adapter_entry(adapter) for adapter in audit.adapters],
        "devices": [_device_entry(charged) for charged in audit.devices],
        "likely": list(audit.likely),
        "golden": None if audit.golden is None else _golden_entry(audit.golden),
        "notes": list(audit.notes),
        "seconds": audit.seconds,
    }


def error_entry(kernel: str, source: Path, dims: dict[str, int], text: str, remarks: Entry) -> dict[str, Any]:
    """A case that could not be run, and the places that say why."""
    places = [
        {"label": each.message, "file": each.file, **({"line": each.line} if each.line else {}),
         **({"column": each.column} if each.column else {})}
        for each in remarks.remarks
    ]  # fmt: skip
    return {"kernel": kernel, "source": str(source), "dims": dims, "ok": False, "error": text, "places": places}


def _coverage_entry(coverage: Any) -> dict[str, Any]:
    """Which workgroups the counters are of, and how many each of those that ran stands for."""
    classes = [{"workgroup": list(place), "stands_for": size} for place, size in coverage.classes]
    return {**dataclasses.asdict(coverage), "classes": classes}


def _golden_entry(verdict: Verdict) -> dict[str, Any]:
    return {
        "file": str(verdict.path),
        "state": verdict.state,
        "ok": verdict.ok,
        "changes": [dataclasses.asdict(change) for change in verdict.changes],
        "outputs": [str(change) for change in verdict.outputs],
        "likely": _likely_entry(verdict.likely),
    }


def diff_entry(diff: Diff) -> dict[str, Any]:
    return {
        **case_entry(diff.case),
        "device": diff.device,
        "ok": diff.ok,
        "gpu": adapter_entry(diff.adapter),
        "outputs": [output_entry(check) for check in diff.outputs],
        "counters": None if diff.counters is None else _counter_diff_entry(diff.counters),
        "not_run": diff.not_run,
        "not_counted": diff.not_counted,
        "seconds": diff.seconds,
    }


def _counter_diff_entry(diff: CounterDiff) -> dict[str, Any]:
    return {
        "ok": diff.ok,
        "grid": list(diff.grid),
        "cut": diff.cut,
        "rows": diff.rows,
        "passes": diff.passes,
        "compared": diff.compared,
        "outputs_equal": diff.outputs_equal,
        "differences": [
            {
                "file": each.site.span.place.file,
                "line": each.site.line,
                "kind": each.site.kind,
                "name": each.site.variable or each.site.name,
                "counter": each.counter,
                "simulated": each.simulated,
                "counted": each.counted,
            }
            for each in diff.differences
        ],
    }


def run_entry(result: RunResult) -> dict[str, Any]:
    allow = result.case.kernel.allow
    return {
        **case_entry(result.case),
        "device": result.device,
        "ok": result.ok,
        "outputs": result.changed,
        "coverage": _coverage_entry(result.run.coverage),
        "counters": dict(result.run.counters),
        "sites": [site_entry(site) for site in result.run.sites],
        "instructions": _instructions_entry(result.run),
        "findings": [_finding_entry(f, allowed=f.code in allow) for f in result.run.findings],
        "silenced": [_finding_entry(f, allowed=True) for f in result.run.silenced],
        "devices": [_device_entry(charged) for charged in result.devices],
        **({} if result.trace is None else {"trace": _trace_entry(result)}),
    }


def _trace_entry(result: RunResult) -> dict[str, Any]:
    rows = [
        {"file": row.span.place.file, "line": row.line, "lane": row.lane, "name": row.name, "old": row.old,
         "new": row.new, "function": row.function}
        for row in result.run.trace
    ]  # fmt: skip
    return {**dataclasses.asdict(result.trace), "rows": rows, "missed": result.run.trace_missed}


def case_entry(case: Case) -> dict[str, Any]:
    kernel = case.kernel
    return {
        "kernel": kernel.name,
        "source": str(kernel.source),
        "entry": kernel.entry,
        "dims": case.shape.dims,
        "grid": list(case.grid),
        "overrides": case.overrides,
    }


def output_entry(check: OutputCheck) -> dict[str, Any]:
    doubts = [_finding_entry(finding, allowed=True) for finding in check.doubts]
    return {"output": check.output, "against": check.against, **comparison_entry(check.comparison), "ok": check.ok,
            "held": not check.comparison.vacuous, "likely": _likely_entry(check.likely), "doubts": doubts}  # fmt: skip


def _likely_entry(likely: Diagnosis | None) -> dict[str, str] | None:
    return None if likely is None else {"class": likely.name, "evidence": likely.evidence}


def comparison_entry(c: Comparison) -> dict[str, Any]:
    entry = {field.name: getattr(c, field.name) for field in dataclasses.fields(c) if field.name != "spread"}
    rule = {"name": c.rule.name, **c.rule.limits}
    return {**entry, "rule": rule, "share": c.share, "worst": [dataclasses.asdict(d) for d in c.worst]}


def site_entry(site: Any) -> dict[str, Any]:
    place = site.span.place
    return {
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "kind": site.kind,
        "space": site.space,
        "name": site.name,
        "bytes_per_lane": site.bytes_per_lane,
        **{name: getattr(site, name) for name in SITE},
    }


def _instructions_entry(run: Any) -> dict[str, Any]:
    """By class in all, and for each place."""
    totals = {
        kind: {"executions": issued, "lanes": lanes} for kind, (issued, lanes) in by_class(run.instructions).items()
    }
    places = [
        {"file": row.span.place.file, "line": row.line, "column": row.span.place.column, "class": row.kind,
         "executions": row.executions, "lanes": row.lanes}
        for row in run.instructions
    ]  # fmt: skip
    return {"totals": totals, "places": places}


def _traffic_entry(each: Any) -> dict[str, Any]:
    return {**dataclasses.asdict(each), "reuse": each.reuse, "again": each.again}


def _device_entry(charged: Charged) -> dict[str, Any]:
    return {
        "device": charged.device.name,
        "subgroup_size": charged.device.subgroup_size,
        "merge_adjacent": charged.device.merge_adjacent,
        "counted_anew": charged.anew,
        "counters": with_derived(charged.counters),
        "sector_bytes": charged.sector_bytes,
        "occupancy": dataclasses.asdict(charged.occupancy),
    }


def adapter_entry(adapter: AdapterInfo | None) -> dict[str, Any] | None:
    return None if adapter is None else {**dataclasses.asdict(adapter), "profile": adapter.profile}


def _limit_entry(check: LimitCheck) -> dict[str, Any]:
    return {**dataclasses.asdict(check.exceeded), "of": "device" if check.device else "default", "ok": check.ok}


def _counter_entry(check: CounterCheck) -> dict[str, Any]:
    return {**dataclasses.asdict(check), "ok": check.ok}


def _finding_entry(f: Any, allowed: bool) -> dict[str, Any]:
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


def _place(label: str, span: Any) -> dict[str, Any]:
    """A labelled place in the source; what is said of no place has a label alone."""
    if span is None:
        return {"label": label}
    return {"label": label, "file": span.place.file, "line": span.place.line, "column": span.place.column}


def _finite(value: Any) -> Any:
    """Without NaN and infinity, which JSON lacks (they become strings), and without NumPy's scalars."""
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if hasattr(value, "item"):
        return _finite(value.item() if getattr(value, "ndim", 0) == 0 else value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
