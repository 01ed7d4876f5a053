"""`bankshot diff`: compare the simulator with wgpu."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import click

from .options import ADAPTERS, JSON, PATHS, RequestOptions, request_of, request_options


@click.command()
@PATHS
@request_options
@click.option("--device", help="Device profile; by default the one that rounds as the adapter does.")
@ADAPTERS
@click.option("--sweep", is_flag=True, help="Every shape of the manifest, not only its default sizes.")
@click.option("--worst", type=click.IntRange(min=0), default=10, show_default=True, help="Differing elements to show.")
@click.option(
    "--counters",
    is_flag=True,
    help="Also compare counters: run the shader again with probes in its text. A grid that would record over 16 "
    "million rows is cut: its longest axis is halved until it does not.",
)
@JSON
def diff(
    paths: tuple[Path, ...],
    device: str | None,
    adapter: str | None,
    sweep: bool,
    worst: int,
    counters: bool,
    as_json: bool,
    **request: Unpack[RequestOptions],
) -> None:
    """Run the same WGSL in the simulator and through wgpu, and show every difference in bits.

    Cases that the adapter cannot run, or whose counters cannot be compared, are unchecked: the reason is listed, and
    the exit code is 1.
    """
    from ..judge.diff import Options
    from ..judge.diff import diff as compare
    from ..manifests.cases import plans
    from ..reports.command_reports import report_of
    from ..reports.diff_report import diff_entry, show_diff
    from ..wgpu_client import parse_adapters
    from .each_case import report_cases, results_of

    names, options = parse_adapters(adapter), Options(device, worst, counters)
    work = plans(paths, request_of(request, sweep=sweep))
    report_cases(
        "diff",
        work,
        results_of(work, lambda case, say: (compare(case, name, options, say) for name in names)),
        report_of(show_diff, diff_entry, as_json),
        times=len(names),
        optional=lambda result: bool(result.not_run) and not result.stopped and result.compared.bare,
    )
