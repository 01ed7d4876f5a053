"""`bankshot time`: time kernels on an adapter."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from .options import ADAPTERS, JSON, PATHS, RequestOptions, request_of, request_options

if TYPE_CHECKING:
    from rich.console import Console

    from ..kernel_timing import CaseTime
    from ..workers.progress import Meter


@click.command()
@PATHS
@request_options
@ADAPTERS
@click.option("--sweep", is_flag=True, help="Every shape of the manifest, not only its default sizes.")
@click.option(
    "--rounds",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    help="Rounds of all kernels; each times up to 5 passes of a kernel, and none begins after a minute.",
)
@click.option(
    "--cold",
    is_flag=True,
    help="Replace what caches hold before each pass; by default they hold what the last pass left.",
)
@JSON
def time(
    paths: tuple[Path, ...],
    adapter: str | None,
    sweep: bool,
    rounds: int,
    cold: bool,
    as_json: bool,
    **request: Unpack[RequestOptions],
) -> None:
    """Time kernels on a wgpu adapter by its own clock.

    The kernels run in interleaved rounds at the adapter's fastest clocks, each pass from the same contents; the time of
    a dispatch that does nothing is taken off. Cases that the adapter cannot time are listed with the reason, and the
    exit code is 1. No output is judged: `bankshot audit` does that.
    """
    from ..kernel_timing import Options, time_cases
    from ..manifests.cases import plans
    from ..reports.command_reports import report_of
    from ..reports.times_report import show_adapter, show_time, time_entry
    from ..wgpu_client import parse_adapters
    from .each_case import report_cases

    names = parse_adapters(adapter)
    work = plans(paths, request_of(request, sweep=sweep))
    shown: set[str] = set()

    def results(progress: Meter) -> Iterator[CaseTime]:
        for name in names:
            cases = (case for plan in work for case in plan.cases())
            yield from time_cases(
                cases, name, Options(rounds, cold), partial(progress.stage, name or "default adapter")
            )

    def show(out: Console, timed: CaseTime) -> None:
        if timed.adapter.name not in shown:
            shown.add(timed.adapter.name)
            show_adapter(out, timed)
        show_time(out, timed)

    report_cases("time", work, results, report_of(show, time_entry, as_json), times=len(names), good="timed")
