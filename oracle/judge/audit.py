"""Audit a case: simulate it, check its outputs, counters, limits, findings and golden, and gather the verdict.

Counters come from one simulated run with all probes. Where an adapter rounds as another device profile does, the
simulator runs a second time under that profile, without probes.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from ...sim.device_files import find
from ..manifests.manifest import Case
from ..manifests.rendering_stages import stage_notes
from .adapter_checks import adapter_checks, find_adapters
from .case_run import (
    EVERYTHING,
    MAY_HANG,
    Say,
    Truth,
    endless,
    expected_outputs,
    find_reference,
    prepare_on_gpu,
    side_by_side,
    silent,
    simulate,
)
from .counter_checks import counter_checks, limit_checks
from .coverage import coverage_of, covered
from .device_comparison import Charged
from .golden_check import golden_check
from .options import Log, Options
from .output_checks import reference_check
from .recordings import Recordings, record_case
from .schedule_options import schedules_of
from .time_check import require_times, time_check
from .verdict import Audit, finding_checks

if TYPE_CHECKING:
    from ...sim import Finding, Run

ENDLESS = f"with wgpu: {MAY_HANG}"
WEAK_SECONDS = 2.0  # for the search of orders that only weak memory has
PARTLY_WATCHED = "in full for races: some irregular accesses to large buffers are not watched"
STOPPED = "outputs of a run that was stopped are not judged"


def audit(case: Case, options: Options, say: Say = silent) -> Audit:
    """Run `case` and judge it. Raises `WgslError`, `UsageError`."""
    if case.kernel.reference is not None:
        find_reference(case)  # before the run, which may be long
    require_times(case, options.device)
    with _drivers_compiling(case, options):
        log = Log(say)
        run = _simulate(case, options, log)
        truth = _compute_reference(case, run, log)
        options = _what_can_be_judged(options, run, log)
        adapters = find_adapters(options, log) if options.gpu else {}
        outputs = [reference_check(case, truth, name, run, run) for name in truth]
        for name in adapters:
            outputs += adapter_checks(case, run, truth, options, name, log)
        devices = _charge_others(case, run, options, log)
        verdict = Audit(
            case=case,
            device=find(options.device).name,
            run=run,
            outputs=tuple(outputs),
            counters=counter_checks(case, run.counters) if run.coverage.exact else (),
            limits=limit_checks(case, run.pipeline, run.device),
            findings=finding_checks(case, [*run.findings, *_weak_orders(run, log)], options.fail_on),
            adapters=tuple(adapters.values()),
            notes=tuple(log.notes),
            seconds=log.seconds,
            devices=devices,
            recordings=_record(case, run, options, log),
            not_compared=tuple(log.left_out),
            stopped=endless(run),
            predicted=time_check(case, run) if run.coverage.exact and not endless(run) else None,
        )
        return _with_coverage(replace(verdict, golden=golden_check(verdict, options)))


def _with_coverage(audit: Audit) -> Audit:
    """Add what the checks of an audit cover, and say which of the manifest's reasons are not needed."""
    held = audit.golden.held if audit.golden else ()
    coverage = coverage_of(audit.case, audit.run.pipeline, audit.outputs, held, len(audit.counters))
    checked = {each.output for each in coverage.outputs if not each.unchecked}
    needless = [f"{name} is checked in full; [expect] unchecked need not name it"
                for name in audit.case.kernel.unchecked if name in checked]  # fmt: skip
    questions = [f"question in {audit.case.kernel.path.name}: {each}" for each in audit.case.kernel.questions]
    return replace(audit, outputs=covered(audit.outputs, coverage), coverage=coverage).noting([*needless, *questions])


@contextmanager
def _drivers_compiling(case: Case, options: Options) -> Generator[None]:
    """Let drivers compile the shader in the background, and wait for them at the end."""
    preparing = prepare_on_gpu(case, options.adapter) if options.gpu else None
    try:
        yield
    finally:
        if preparing is not None:
            preparing.join()


def _simulate(case: Case, options: Options, log: Log) -> Run:
    run = log.timed(
        "simulator, all probes",
        lambda: simulate(
            case,
            options.device,
            EVERYTHING,
            log.say,
            workgroups=options.workgroups,
            schedules=options.schedules or schedules_of(case),
            thorough=options.thorough,
        ),
    )
    if run.agreement is not None:
        log.note(str(run.agreement))
    if run.coverage.unwatched:
        log.leave_out(PARTLY_WATCHED)
    for note in stage_notes(run.pipeline.module):
        log.note(note)
    if case.unset:
        log.note(f"0, as the manifest gives no value: {', '.join(case.unset)}")
    return run


def _weak_orders(run: Run, log: Log) -> list[Finding]:
    """Return what only weak memory shows, and note what comments allow."""
    if endless(run) or not run.program.order_dependent_atomics:
        return []
    from ...sim.explore.reduced import find_weak_orders  # few kernels need it

    log.say("searching the orders of atomics")
    found, allowed = log.timed("orders of atomics", lambda: find_weak_orders(run.dispatch, run.program, WEAK_SECONDS))
    run.silenced.extend(allowed)
    return found


def _compute_reference(case: Case, run: Run, log: Log) -> Truth:
    """Compute the expected outputs; empty if there is no reference, or only a sample ran."""
    if not run.coverage.exact or endless(run):
        return {}
    if case.kernel.reference is None:
        where = ": the manifest names none" if case.kernel.path.suffix == ".toml" else ""
        log.note(f"no reference to compare with{where}")
        return {}
    log.say("computing the reference")
    truth = log.timed("reference", lambda: expected_outputs(case))
    if not truth:
        log.note(f"no reference to compare with: {case.kernel.reference} returns NotImplemented; write it")
    return truth


def _what_can_be_judged(options: Options, run: Run, log: Log) -> Options:
    """Leave out the comparisons that this run rules out."""
    if not run.coverage.exact:
        log.note("outputs and expected counters of a sample are not judged")
        return replace(options, gpu=False, golden=False)
    if endless(run):
        log.note(STOPPED)
        if options.gpu:
            log.leave_out(ENDLESS)
        return replace(options, gpu=False, golden=False)
    if not options.gpu:
        log.left_out.append("with wgpu: not asked for")
    return options


def _record(case: Case, run: Run, options: Options, log: Log) -> Recordings | None:
    """Record what reports draw, if the options ask for it."""
    if not options.record:
        return None
    log.say("recording accesses")
    return record_case(case, run)


def _charge_others(case: Case, run: Run, options: Options, log: Log) -> tuple[Charged, ...]:
    """Charge the run for the profiles of `options.also`, too."""
    if not options.also:
        return ()
    return log.timed(
        "other devices",
        lambda: side_by_side(case, run, options.also, log.say, workgroups=options.workgroups),
    )
