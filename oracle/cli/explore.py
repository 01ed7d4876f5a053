"""`bankshot explore`: every outcome of a small dispatch."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import click

from .options import JSON, PATHS, RequestOptions, device_option, request_of, request_options


@click.command()
@PATHS
@request_options
@device_option("Device profile; it decides the subgroup size and rounding.")
@click.option(
    "--memory",
    type=click.Choice(["weak", "sc"]),
    default="weak",
    show_default=True,
    help="weak: WGSL's memory model; sc: every load reads what was stored last.",
)
@click.option(
    "--progress",
    "models",
    default="",
    metavar="MODEL,…",
    help="Decide whether the kernel always ends under these progress models: fair, hsa, obe, hsa+obe, lobe, none, or "
    "all.",
)
@click.option("--within", default="fair", show_default=True, metavar="MODEL",
              help="The progress model for the invocations of each workgroup.")  # fmt: skip
@click.option("--barriers", is_flag=True, help="Explore without each barrier as well; say which barriers matter.")
@click.option("--states", type=click.IntRange(1), default=1_000_000, show_default=True, help="Stop after N states.")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), default=60.0, show_default=True, metavar="SECONDS",
              help="Stop after so long.")  # fmt: skip
@JSON
def explore(
    paths: tuple[Path, ...],
    device: str,
    memory: str,
    models: str,
    within: str,
    barriers: bool,
    states: int,
    seconds: float,
    as_json: bool,
    **request: Unpack[RequestOptions],
) -> None:
    """Run kernels of few invocations in every order that WGSL allows; show each outcome and how it comes about."""
    from ..judge.explored import Limits, ProgressModels, explored
    from ..manifests.cases import plans
    from ..reports.command_reports import report_of
    from ..reports.explore_report import explored_entry, show_explored
    from .each_case import report_cases, results_of

    limits, progress = Limits(states, seconds), ProgressModels.parse(models, within)
    work = plans(paths, request_of(request, sweep=False))
    results = results_of(
        work, lambda case, say: [explored(case, device, memory, progress, limits, say, barriers=barriers)]
    )
    report_cases("explore", work, results, report_of(show_explored, explored_entry, as_json), good="without findings")
