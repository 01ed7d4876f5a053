"""`bankshot fix`: find cures of races, and show them as a diff."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import click

from .options import JSON, PATHS, RequestOptions, device_option, request_of, request_options


@click.command()
@PATHS
@request_options
@device_option("Device profile that is simulated.")
@click.option("--write", "apply", is_flag=True, help="Change the files; without it, only show the changes.")
@JSON
def fix(paths: tuple[Path, ...], device: str, apply: bool, as_json: bool, **request: Unpack[RequestOptions]) -> None:
    """Find what ends races, try it on a copy, and show it as a unified diff, with the verdict before and after.

    Each change was run. The exit code is 0 if no race is left in the files.
    """
    from ..fix import fix as find_fix
    from ..judge.options import Options
    from ..manifests.cases import plans
    from ..reports.command_reports import report_of
    from ..reports.fix_report import fix_entry, show_fix
    from .each_case import report_cases, results_of

    options = Options(device, gpu=False, golden=False)
    work = plans(paths, request_of(request, quick=True))
    results = results_of(work, lambda case, say: [find_fix(case, options, apply=apply, say=say)])
    report_cases("fix", work, results, report_of(show_fix, fix_entry, as_json), good="without races")
