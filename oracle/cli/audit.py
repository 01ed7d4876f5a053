"""`bankshot audit`: run kernels and judge them."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from ..errors import UsageError
from ..reports import formats
from .options import (
    ADAPTERS,
    JSON,
    PATHS,
    Command,
    RequestOptions,
    device_option,
    request_of,
    request_options,
    workgroup_options,
    workgroups_of,
)
from .schedule_options import ScheduleValues, schedule_options, schedules_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..manifests.cases import Broken, Plan
    from ..workers.progress import Meter
    from .audit_cases import Audits


_FILES = "bankshot.files"  # in a click context: the file of each format that writes one


def _file_options(command: Command) -> Command:
    """Add an option for each format that writes a file, such as --html FILE."""
    for each in reversed(formats.written()):
        command = click.option(
            f"--{each.name}",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help=each.help,
            expose_value=False,
            callback=_keep_file,
        )(command)
    return command


def _keep_file(context: click.Context, option: click.Parameter, file: Path | None) -> None:
    if file is not None:
        _files(context)[option.name or ""] = file


def _files(context: click.Context | None = None) -> dict[str, Path]:
    return (context or click.get_current_context()).meta.setdefault(_FILES, {})


def _more(detail: str) -> str:
    """Where the full report is, for the last line."""
    if files := _files():
        return f"full report: {', '.join(map(str, files.values()))}"
    return "-v shows each case in full" if detail == "rows" else ""


@click.command()
@PATHS
@request_options
@device_option("Device profile that is charged for and judged; profiles after a comma are charged as well.")
@ADAPTERS
@click.option("--gpu/--no-gpu", default=True, show_default=True, help="Compare with wgpu, bit for bit.")
@click.option(
    "--code/--no-code",
    default=True,
    show_default=True,
    help="Run references and preprocessors that manifests name. A kernel that needs what is not run is an error.",
)
@click.option("--sweep", is_flag=True, help="Every shape of the manifest, including heavy ones.")
@workgroup_options
@schedule_options
@click.option(
    "--listing",
    type=click.Choice(["auto", "full", "counted", "none"]),
    default="auto",
    show_default=True,
    help="The source with counters: in full, only lines that were charged, or none; auto: in full once per kernel.",
)
@click.option("--update-golden", is_flag=True, help="Write the goldens that manifests ask for; refused if CI is set.")
@click.option(
    "--format",
    "stdout",
    type=click.Choice([each.name for each in formats.printed()]),
    default="text",
    help="; ".join(f"{each.name}: {each.help}" for each in formats.printed()) + ".",
)
@_file_options
@click.option(
    "--jobs",
    type=click.IntRange(1),
    help="Processes that share the cases; by default one for each processor, up to eight, once the audit takes "
    "seconds.",
)
@click.option("-v", "--verbose", "detail", flag_value="full", help="Print each case in full, as of a single case.")
@click.option("-q", "--quiet", "detail", flag_value="none", help="Print only the last line.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "info"]),
    default="warning",
    show_default=True,
    help="The least severity of a finding that makes the exit code 1.",
)
@click.option(
    "--against",
    metavar="REV",
    help="Show what changed since an earlier audit: of a git revision, of another folder, or a file that --json wrote.",
)
@click.option("--time", "timed", is_flag=True, help="Also time the kernels on the adapter, as `bankshot time` does.")
@click.option("--rounds", type=click.IntRange(1, 1000), help="Rounds of --time; by default 10.")
@click.option("--watch", is_flag=True, help="Audit again whenever a manifest, its shaders or its references change.")
@JSON
def audit(
    paths: tuple[Path, ...],
    device: str,
    adapter: str | None,
    gpu: bool,
    code: bool,
    sweep: bool,
    listing: str,
    update_golden: bool,
    stdout: str,
    jobs: int | None,
    detail: str | None,
    fail_on: str,
    sample: int | None,
    check_classes: bool,
    schedules: int | None,
    seed: int | None,
    seconds: float | None,
    thorough: bool,
    against: str | None,
    timed: bool,
    rounds: int | None,
    watch: bool,
    as_json: bool,
    **more: Unpack[RequestOptions],
) -> None:
    """Run kernels in the shapes of their manifests and judge them: outputs, counters per line, findings, goldens."""
    from ..goldens import golden_files
    from ..judge.device_comparison import parse_devices
    from ..judge.options import Options
    from ..manifests.cases import plans
    from ..reports.protocol import Before, ReportOptions
    from ..reports.terminal import console
    from . import watch as watching
    from .audit_cases import Audits

    _check(gpu, timed, rounds, watch)
    first, *also = parse_devices(device)
    if update_golden:
        golden_files.may_write("--update-golden")
    request = request_of(more, quick=not sweep, code=code)
    stdout = _format(stdout, as_json, against, watch)
    results = watching.rounds(paths, request, gpu) if watch else None
    broken: list[Broken] = []
    work = plans(paths, request, broken)
    cases = len(broken) + sum(len(plan.shapes) for plan in work)
    detail = detail or ("full" if cases == 1 else "rows")
    out = console()
    kept = None if results is None else Before("the last save", results, keep=True)
    wanted = ReportOptions(stdout, listing, _files(), out.width, out.is_terminal, detail, _more(detail), kept, timed)
    options = Options(
        first,
        gpu,
        adapter,
        also=tuple(also),
        workgroups=workgroups_of(sample, check_classes),
        golden=request.as_in_manifest,
        update=update_golden,
        record=any(each.records for each in formats.enabled(wanted)),
        fail_on=fail_on,
        schedules=schedules_of(ScheduleValues(schedules=schedules, seed=seed, seconds=seconds), more),
        thorough=thorough,
    )
    if detail == "rows":  # in full, each case repeats them
        _print_questions(work)
    if code:
        _begin_references(work)
    with ExitStack() as stack:
        if against is not None:
            from .against import audited_before

            earlier = replace(options, update=False, golden=False, record=False)
            wanted = replace(wanted, before=stack.enter_context(audited_before(against, paths, request, earlier, jobs)))
        _report(Audits(work, options, wanted, broken), jobs, timed, rounds)


def _check(gpu: bool, timed: bool, rounds: int | None, watch: bool) -> None:
    """Raise `UsageError` for options that do not go together."""
    from ..wgpu_client.adapter_choice import check_no_gpu

    if not gpu:
        check_no_gpu()
    if rounds is not None and not timed:
        raise UsageError("--rounds are those of --time: give both, or neither")
    if timed and watch:
        raise UsageError("--time takes seconds, and --watch repeats: leave out one of them")


def _print_questions(work: Sequence[Plan]) -> None:
    """Print what the manifests still ask their authors."""
    for plan in work:
        for each in plan.kernel.questions:
            click.echo(f"{plan.kernel.path}: question: {each}", err=True)


def _begin_references(work: Sequence[Plan]) -> None:
    """Start the process of references in Python, if there are any, while this one imports its own modules."""
    from ..references import reference_process

    if any(":" in (plan.kernel.reference or "") for plan in work):
        reference_process.begin()


def _report(audits: Audits, jobs: int | None, timed: bool, rounds: int | None) -> None:
    """Audit all cases and report them, on `jobs` processes. `timed`: time them first, for `rounds` rounds."""
    from ..reports.audited import AuditReport
    from .audit_cases import in_turn
    from .each_case import report_cases

    report_cases(
        "audit",
        audits.work,
        lambda progress: in_turn(_timed(audits, rounds, progress) if timed else audits, jobs, progress),
        AuditReport(audits.wanted, audits.work, audits.broken),
        more=len(audits.broken),
        failed=lambda case: case.failure,
    )


def _timed(audits: Audits, rounds: int | None, progress: Meter) -> Audits:
    """Time all cases, side by side and before any is audited, so that no other process disturbs them."""
    from ..kernel_timing import Options, time_beside
    from ..wgpu_client import ROUNDS

    options, say = audits.options, partial(progress.stage, "times")
    times = time_beside(audits.cases, options.adapter, Options(rounds or ROUNDS), say, insist=options.insists)
    return replace(audits, times=times)


def _format(stdout: str, as_json: bool, against: str | None, watch: bool) -> str:
    """The format of what is printed. Raises `UsageError` for options that do not go together."""
    changes = ("changes", "markdown")
    if against is None and stdout in changes:
        raise UsageError(f"--format {stdout} shows what changed since an earlier audit: name it with --against REV")
    if against is not None and watch:
        raise UsageError("--watch shows what changed since the last save: leave out --against, or --watch")
    if against is not None and (as_json or stdout not in ("text", *changes)):
        raise UsageError("--against prints what changed: as --format changes, which is the default, or markdown")
    return "json" if as_json else "changes" if against is not None and stdout == "text" else stdout
