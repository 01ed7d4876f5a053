"""An audited case as an entry of a JSON document."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from ..judge.coverage import CaseOutcome
from ..judge.schedule_options import agreement_entry
from .cost_places import cost_places
from .json_document import Entry
from .json_entries import (
    adapter_entry,
    case_entry,
    coverage_entry,
    device_entry,
    finding_entry,
    instructions_entry,
    likely_entry,
    output_coverage_entry,
    output_entry,
    site_entry,
    utilization_entry,
)
from .prediction import prediction_entry, time_check_entry
from .times_report import timing_entry

if TYPE_CHECKING:
    from ...sim.run.traffic import Traffic
    from ..goldens.golden_store import Verdict
    from ..judge.counter_checks import CounterCheck, LimitCheck
    from ..judge.verdict import Audit
from .protocol import CaseFailure


def audit_entry(audit: Audit) -> Entry:
    return {
        **case_entry(audit.case),
        "device": audit.device,
        "ok": audit.ok,
        "outcome": audit.outcome,
        "compared": [output_coverage_entry(each) for each in audit.coverage.outputs],
        "unchecked": list(audit.unchecked),
        "not_compared": list(audit.not_compared),
        "outputs": [output_entry(check) for check in audit.outputs],
        "expected_counters": [_counter_entry(check) for check in audit.counters],
        "expected_time": time_check_entry(audit.predicted),
        "limits": [_limit_entry(check) for check in audit.limits],
        "coverage": coverage_entry(audit.run.coverage),
        "schedules": agreement_entry(audit.run),
        "counters": dict(audit.run.counters),
        "cost": [place.entry() for place in cost_places(audit.run)],
        "sites": [site_entry(site) for site in audit.run.sites],
        "instructions": instructions_entry(audit.run),
        "utilization": utilization_entry(audit.run),
        **prediction_entry(audit.run),
        "padding_flops": audit.run.padding_flops,
        "traffic": [_traffic_entry(each) for each in audit.run.traffic],
        "findings": [finding_entry(item.finding, item.allowed) for item in audit.findings],
        "silenced": [finding_entry(f, allowed=True) for f in audit.run.silenced],
        "gpu": adapter_entry(audit.adapter),
        "gpus": [adapter_entry(adapter) for adapter in audit.adapters],
        "devices": [device_entry(charged) for charged in audit.devices],
        "likely": list(audit.likely),
        "times": [timing_entry(each) for each in audit.times],
        "golden": None if audit.golden is None else _golden_entry(audit.golden),
        "notes": list(audit.notes),
        "seconds": audit.seconds,
    }


def failure_entry(case: CaseFailure) -> Entry:
    """A case that could not be run, and the places that say why."""
    places = [
        {"label": each.message, "file": each.file, **({"line": each.line} if each.line else {}),
         **({"column": each.column} if each.column else {})}
        for each in case.remarks.remarks
    ]  # fmt: skip
    return {
        "kernel": case.kernel,
        "source": str(case.source),
        "dims": case.shape.dims,
        "ok": False,
        "outcome": CaseOutcome.ERROR,
        "error": case.failure.reason,
        "places": places,
    }


def _golden_entry(verdict: Verdict) -> Entry:
    return {
        "file": str(verdict.path),
        "state": verdict.state,
        "ok": verdict.ok,
        "changes": [dataclasses.asdict(change) for change in verdict.changes],
        "outputs": [str(change) for change in verdict.outputs],
        "likely": likely_entry(verdict.likely),
    }


def _traffic_entry(each: Traffic) -> Entry:
    return {**dataclasses.asdict(each), "reuse": each.reuse, "again": each.again}


def _limit_entry(check: LimitCheck) -> Entry:
    return {**dataclasses.asdict(check.exceeded), "of": "device" if check.device else "default", "ok": check.ok}


def _counter_entry(check: CounterCheck) -> Entry:
    return {**dataclasses.asdict(check), "ok": check.ok}
