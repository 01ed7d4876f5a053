"""`bankshot run`: simulate kernels and show what they do."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import click

from ...sim.dump import STAGES
from ..errors import UsageError
from .options import (
    JSON,
    PATHS,
    RequestOptions,
    device_option,
    once,
    pairs,
    request_of,
    request_options,
    workgroup_options,
    workgroups_of,
)
from .schedule_options import ScheduleValues, schedule_options, schedules_of


@click.command()
@PATHS
@request_options
@device_option("Device profile; profiles after a comma are charged as well, side by side.")
@click.option("--probes", default="all", show_default=True, help="all, counters, none, or names separated by commas.")
@workgroup_options
@click.option(
    "--schedule",
    default="lockstep",
    show_default=True,
    metavar="NAME",
    help="The order of invocations that outputs come from: lockstep, mirrored, reversed, subgroup-serial, "
    "turns(SEED), random(SEED), …; counters and findings are those of lockstep.",
)
@schedule_options
@click.option("--save", "saves", multiple=True, metavar="NAME=FILE.npy", help="Write a binding's final contents.")
@click.option("--trace", "variable", metavar="VAR", help="Show the values of a variable as they change.")
@click.option("--workgroup", default="0", show_default=True, metavar="X,Y,Z", help="The workgroup to trace.")
@click.option(
    "--timeline",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE.json",
    help="Write which lanes write and read workgroup memory between barriers; open it with ui.perfetto.dev.",
)
@click.option("--lanes", default="0", show_default=True, metavar="LANES", help="The lanes to trace: 0-3,7, or all.")
@click.option(
    "--dump",
    "stages",
    multiple=True,
    type=click.Choice(list(STAGES)),
    help="Print a stage of the kernel as text instead of running it: the syntax tree as WGSL, the typed module, the "
    "lowered ir, the program, or the machine and its arrays. Can be repeated. In any command, BANKSHOT_DEBUG=1..5 "
    "prints the stages up to that number to stderr.",
)
@JSON
def run(
    paths: tuple[Path, ...],
    device: str,
    probes: str,
    saves: tuple[str, ...],
    variable: str | None,
    workgroup: str,
    file: Path | None,
    lanes: str,
    as_json: bool,
    sample: int | None,
    check_classes: bool,
    schedule: str,
    schedules: int | None,
    seed: int | None,
    seconds: float | None,
    thorough: bool,
    stages: tuple[str, ...],
    **request: Unpack[RequestOptions],
) -> None:
    """Simulate kernels at their default sizes; show outputs, totals and findings."""
    from ... import sim
    from ..judge.device_comparison import parse_devices
    from ..manifests import inputs
    from ..manifests.cases import plans
    from ..reports.command_reports import report_of
    from ..reports.run_report import run_entry, show_run
    from .dump import dump_kernels
    from .each_case import report_cases, results_of
    from .simulated_run import TimelineFile, simulated_run

    devices, workgroups = parse_devices(device), workgroups_of(sample, check_classes)
    trace, timeline = None, None
    if variable is not None:
        chosen = None if lanes == "all" else inputs.parse_lanes(lanes)
        trace = sim.Trace(variable, inputs.parse_place(workgroup), chosen)
    if file is not None:
        timeline = TimelineFile(file, inputs.parse_place(workgroup))
    several = schedules_of(ScheduleValues(schedules=schedules, seed=seed, seconds=seconds), request)
    targets = once("--save", [(name, Path(value)) for name, value in pairs("--save", saves)])
    work = plans(paths, request_of(request, sweep=False))
    if stages:
        if as_json or targets or trace or timeline:
            raise UsageError("--dump prints text and runs nothing: leave out --json, --save, --trace and --timeline")
        for text in dump_kernels(work, devices[0], probes, stages):
            click.echo(text, nl=False)
        return
    if (targets or timeline) and len(work) > 1:
        names, option = ", ".join(plan.kernel.name for plan in work), "--save" if targets else "--timeline"
        raise UsageError(f"{option}: several kernels would write to the same file; choose one with --kernel: {names}")
    results = results_of(
        work,
        lambda case, say: [
            simulated_run(
                case,
                devices,
                probes,
                targets,
                say,
                trace,
                timeline,
                workgroups,
                schedule=schedule,
                schedules=several,
                thorough=thorough,
            )
        ],
    )
    report_cases("run", work, results, report_of(show_run, run_entry, as_json), good="without findings")
