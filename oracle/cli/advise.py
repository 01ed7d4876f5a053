"""`bankshot advise`: try other layouts of workgroup arrays, and other changes of the text."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import click

from .options import JSON, PATHS, RequestOptions, device_option, request_of, request_options


@click.command()
@PATHS
@request_options
@device_option("Device profile that is charged for.")
@click.option("--array", metavar="NAME", help="One workgroup array; by default all that the entry point uses.")
@click.option("--pitch", metavar="NAME", help="The constant that is the row pitch; by default Bankshot finds it.")
@click.option(
    "--pads", metavar="FROM..TO", help="Values of the pitch to try: 0..33, or 33 more where it is already larger."
)
@click.option(
    "--most-bytes",
    metavar="N",
    type=click.IntRange(1),
    help="Workgroup memory that layouts may take; by default 16384, or what the text takes where that is more.",
)
@click.option(
    "--by",
    type=click.Choice(["time", "wavefronts"]),
    default="time",
    show_default=True,
    help="What the best layout has least of: predicted time, by the device or a shipped profile like it; wavefronts.",
)
@click.option("--patch", is_flag=True, help="Print the best change as a unified diff alone, for `git apply`.")
@click.option("--all", "show_all", is_flag=True, help="Show each layout that keeps the outputs, not only the best.")
@click.option("--apply", is_flag=True, help="Change the files; without it, only show the changes.")
@JSON
def advise(
    paths: tuple[Path, ...],
    device: str,
    array: str | None,
    pitch: str | None,
    pads: str | None,
    most_bytes: int | None,
    by: str,
    patch: bool,
    show_all: bool,
    apply: bool,
    as_json: bool,
    **request: Unpack[RequestOptions],
) -> None:
    """Try other row pitches and swizzles of workgroup arrays: least predicted time, fewest wavefronts, least memory.

    Also try arrays of structures as an array for each member, adjacent accesses as vectors, and invocations with x and
    y exchanged. The best change is shown as a unified diff. The exit code is 0 if none is better.
    """
    from functools import partial

    from ..advise.layout_search import Options
    from ..advise.layout_search import advise as search
    from ..manifests import inputs
    from ..manifests.cases import plans
    from ..reports.advise_report import advised_entry, show_advised, show_patch
    from ..reports.command_reports import report_of
    from .each_case import report_cases, results_of

    values = None if pads is None else inputs.parse_range("--pads", pads)
    options = Options(device, array, pitch, values, most_bytes, by)
    work = plans(paths, request_of(request, sweep=False))
    results = results_of(work, lambda case, say: [search(case, options, say, apply=apply)])
    report_cases(
        "advise",
        work,
        results,
        report_of(show_patch if patch else partial(show_advised, show_all=show_all), advised_entry, as_json),
        good="with no better layout",
        bad="with a better one",
    )
